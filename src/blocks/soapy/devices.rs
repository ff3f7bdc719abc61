//! Devices that are open: alone, in a pair, lost and opened again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use num_complex::Complex32;
use soapysdr::{Args, Device, Direction, TxStream};

use super::clock;
use super::config::{End, RadioConfig};
use super::tune::{ReadBack, Rise, check_duplex, settled_rate, tune};
use crate::radio::calls::{Calls, Of};
use crate::radio::client::RxStream;
use crate::radio::sockets::Sockets;
use crate::{Error, Result, radio};

pub(super) fn refused(device: &str, what: &str, error: &soapysdr::Error) -> Error {
    Error::Device(format!("{device}: {what}: {}", error.message))
}

/// Refuses arguments that do not name a radio's driver: an empty search has taken a sound card for a radio.
pub(crate) fn check_device(arguments: &str) -> Result<()> {
    match Args::from(arguments).get("driver") {
        None | Some("") => {
            let expected = "given with an explicit driver=..., as `kaflow devices` lists them";
            Err(Error::parameter("device", expected, format!("'{arguments}'")))
        }
        Some("audio") => Err(Error::parameter("device", "a radio: a sound card cannot receive or transmit here", arguments)),
        // The driver ignores what it does not know, as drivers do; a person who wrote it wants to know.
        Some(radio::DRIVER) => radio::check(arguments),
        Some(_) => Ok(()),
    }
}

/// Opens a device by arguments that name their driver.
pub(crate) fn open_device(arguments: &str) -> Result<Device> {
    check_device(arguments)?;
    Device::new(arguments).map_err(|e| refused(arguments, "cannot be opened (`kaflow devices` lists what there is)", &e))
}

/// Bytes of a piece over TCP: SoapyRemote's own choice is that of a datagram, which has both hosts wait for their systems most of the time, and shares of a window that every system grants.
const PIECE: &str = "32768";

/// The arguments of an end's stream. SoapyRemote's own choice is UDP: it never looks at the numbers of its datagrams, so that those that are lost on their way to the transmitter shorten the frame, and
/// nobody is told. Where nothing else is asked for, it is TCP.
fn stream_args(end: &End) -> String {
    let (device, given) = (Args::from(end.device.as_str()), Args::from(end.stream_args.as_str()));
    if device.get("driver") != Some("remote") {
        return end.stream_args.clone();
    }
    let asked =
        |name: &str| given.get(format!("remote:{name}").as_str()).or(device.get(format!("remote:{name}").as_str())).or(device.get(name));
    let mut arguments = Vec::new();
    if asked("prot").is_none() {
        arguments.push("remote:prot=tcp".to_owned());
    }
    if asked("prot").is_none_or(|prot| prot == "tcp") && asked("mtu").is_none() {
        arguments.push(format!("remote:mtu={PIECE}"));
    }
    arguments.extend((!end.stream_args.is_empty()).then(|| end.stream_args.clone()));
    arguments.join(",")
}

/// Samples a second at either end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rates {
    pub(super) rx: f64,
    pub(super) tx: f64,
}

/// Streams that are set up and not active.
#[derive(Default)]
pub(super) struct Streams {
    pub(super) rx: Option<(RxStream, Device)>,
    pub(super) tx: Option<(TxStream<Complex32>, Device)>,
}

/// The devices of a radio. SoapySDR has one device for each set of arguments, so all that hold one have to let go of it before it can be opened anew.
pub(crate) struct Devices {
    config: RadioConfig,
    open: Mutex<Open>,
}

/// None while the devices are lost.
#[derive(Default)]
struct Open {
    rx: Option<Opened>,
    tx: Option<Opened>,
    /// The transmitter's gains, until they are set.
    rise: Option<Rise>,
    /// The connections that their drivers have made.
    sockets: Sockets,
}

/// A device, and its other calls. Those are made with a handle of their own that is opened along with it: opening goes through a search, which takes time and may not find a radio in use.
#[derive(Clone)]
struct Opened {
    device: Device,
    calls: Arc<Calls>,
}

impl Opened {
    fn new(arguments: &str) -> Result<Self> {
        let device = open_device(arguments)?;
        let calls = Calls::open(arguments).map_err(|e| refused(arguments, "cannot be asked", &e))?;
        Ok(Self { device, calls: Arc::new(calls) })
    }
}

impl Devices {
    /// Opens and tunes the devices and sets both streams up; gives their rates too. Nothing is transmitted yet, and the transmit gain is as low as it can be.
    pub(super) fn new(config: &RadioConfig) -> Result<(Self, Streams, Rates)> {
        let devices = Self { config: config.clone(), open: Mutex::default() };
        let (streams, rates) = devices.open()?;
        Ok((devices, streams, rates))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens what is not open.
    pub(super) fn open(&self) -> Result<(Streams, Rates)> {
        let (config, before) = (&self.config, Sockets::now());
        let new = |end: &Option<End>| end.as_ref().map(|end| Opened::new(&end.device)).transpose();
        let rx = new(&config.rx)?;
        let tx = match (&rx, &config.tx) {
            (Some(rx), Some(end)) if config.one_device() => {
                check_duplex(&rx.device, &end.device)?;
                Some(rx.clone())
            }
            (_, end) => new(end)?,
        };
        let ends = [(&rx, &config.rx, Direction::Rx), (&tx, &config.tx, Direction::Tx)];
        let ends: Vec<_> =
            ends.into_iter().filter_map(|(opened, end, direction)| Some((opened.as_ref()?, end.as_ref()?, direction))).collect();
        let mut all: Vec<(&Opened, &str)> = ends.iter().map(|(opened, end, _)| (*opened, end.device.as_str())).collect();
        all.truncate(if config.one_device() { 1 } else { 2 });
        clock::set(&all.iter().map(|(opened, name)| (&opened.device, *name)).collect::<Vec<_>>(), config)?;
        set(&all, &config.settings)?;
        let (mut rates, mut rise) = (Rates { rx: config.rate, tx: config.rate }, None);
        for (opened, end, direction) in &ends {
            rise = tune(&opened.device, &opened.calls, end, *direction, config)?;
        }
        for (opened, end, direction) in &ends {
            let rate = if *direction == Direction::Tx { &mut rates.tx } else { &mut rates.rx };
            *rate = settled_rate(&opened.device, end, *direction, config)?;
        }
        let mut streams = Streams::default();
        for (Opened { device, .. }, end, direction) in ends {
            if direction == Direction::Rx {
                let stream = RxStream::open(&end.device, &end.channels, &stream_args(end));
                let stream = stream.map_err(|e| refused(&end.device, "cannot receive", &e))?;
                streams.rx = Some((stream, device.clone()));
            } else {
                let stream = device.tx_stream_args(&end.channels, stream_args(end).as_str());
                let stream = stream.map_err(|e| refused(&end.device, "cannot transmit", &e))?;
                streams.tx = Some((stream, device.clone()));
            }
        }
        *self.lock() = Open { rx, tx, rise, sockets: before.since() };
        Ok((streams, rates))
    }

    /// Lets go of them.
    pub(super) fn release(&self) {
        drop(std::mem::take(&mut *self.lock()));
    }

    /// Makes calls return that wait for a peer who is gone; false where there are none.
    pub(super) fn unplug(&self) -> bool {
        let sockets = self.lock().sockets.clone();
        sockets.unplug() > 0
    }

    /// One of them, and what it was to be; none where there is none, or while it is lost.
    pub(crate) fn get(&self, direction: Direction) -> Option<(Device, &End)> {
        self.opened(direction).map(|(opened, end)| (opened.device, end))
    }

    fn opened(&self, direction: Direction) -> Option<(Opened, &End)> {
        let open = self.lock();
        let (opened, end) = match direction {
            Direction::Rx => (&open.rx, &self.config.rx),
            Direction::Tx => (&open.tx, &self.config.tx),
        };
        Some((opened.clone()?, end.as_ref()?))
    }

    /// The names of the arguments that a stream may have, as far as the driver lists them.
    pub(crate) fn stream_arguments(&self, direction: Direction) -> Vec<String> {
        let Some((opened, end)) = self.opened(direction) else { return Vec::new() };
        let channel = end.channels.first().copied().unwrap_or(0);
        opened.calls.arguments(Of::Stream(direction, channel)).into_iter().map(|argument| argument.key).collect()
    }

    /// Brings the transmitter to the gains that it is to have, once.
    pub(super) fn rise(&self) -> Result<()> {
        let Some((device, end)) = self.get(Direction::Tx) else { return Ok(()) };
        let rise = self.lock().rise.take();
        rise.map_or(Ok(()), |rise| rise.apply(&device, end))
    }

    /// What the device has made of its configuration; of a transmitter that has not started yet, with the gain that it is going to have.
    pub(crate) fn read_back(&self, direction: Direction) -> Option<ReadBack> {
        let (opened, end) = self.opened(direction)?;
        let told = ReadBack::of(&opened.device, &opened.calls, end, direction);
        let expected = self.lock().rise.as_ref().filter(|_| direction == Direction::Tx).map(|rise| rise.expected);
        Some(ReadBack { gain: expected.unwrap_or(told.gain), ..told })
    }
}

/// Changes settings by name, each of those devices that have it.
fn set(devices: &[(&Opened, &str)], settings: &[(String, String)]) -> Result<()> {
    if settings.is_empty() {
        return Ok(());
    }
    let known: Vec<_> = devices.iter().map(|(opened, _)| opened.calls.arguments(Of::Settings)).collect();
    for (key, value) in settings {
        let having = devices.iter().zip(&known).filter_map(|(at, known)| known.iter().find(|s| s.key == *key).map(|s| (at, s)));
        let mut found = false;
        for ((Opened { device, .. }, name), setting) in having {
            found = true;
            if !setting.options.is_empty() && !setting.options.contains(value) {
                return Err(Error::parameter(key, format!("one of {}, as {name} has it", setting.options.join(", ")), value));
            }
            if let (Some((low, high)), Ok(number)) = (setting.range, value.parse::<f64>())
                && !(low..=high).contains(&number)
            {
                let (unit, nearest) = (&setting.unit, number.max(low).min(high));
                let has = format!("between {low} and {high} {unit}");
                return Err(Error::parameter(key, format!("{}, as {name} has it, the nearest being {nearest}", has.trim_end()), value));
            }
            device.write_setting(key.as_str(), value.as_str()).map_err(|e| refused(name, &format!("setting {key}={value}"), &e))?;
        }
        if !found {
            return Err(Error::unknown("setting", key, known.iter().flatten().map(|setting| &setting.key)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_radio_is_reached_over_tcp_unless_another_way_is_asked_for() {
        let of = |device: &str, given: &str| stream_args(&End { stream_args: given.into(), ..End::new(device) });
        assert_eq!(of("driver=remote,remote=tcp://there:1,remote:driver=uhd", ""), "remote:prot=tcp,remote:mtu=32768");
        assert_eq!(of("driver=remote,remote:driver=uhd", "remote:mtu=9000"), "remote:prot=tcp,remote:mtu=9000");
        assert_eq!(of("driver=remote,remote:driver=uhd", "remote:prot=udp"), "remote:prot=udp");
        assert_eq!(of("driver=remote,remote:prot=udp", ""), "");
        assert_eq!(of("driver=uhd", "recv_frame_size=1000"), "recv_frame_size=1000");
    }
}
