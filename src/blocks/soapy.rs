//! Opening radios: what a source and a sink share.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use num_complex::Complex32;
use soapysdr::{Args, Device, Direction, RxStream, TxStream};

use super::soapy_health::{Health, Relapse};
use crate::{Error, Result};

/// Samples of each channel in one packet of the queue.
pub(super) const PACKET: usize = 8192;

/// How long a stream call may wait before it looks whether it should stop, in microseconds.
pub(super) const PATIENCE_US: i64 = 100_000;

/// Errors in a row after which a stream counts as dead.
pub(super) const DEAD_AFTER: u32 = 5;

/// From the moment that both streams are ready, or that the transmitter has fallen behind, to the first sample, in nanoseconds of the device's time.
pub(super) const LEAD_NS: i64 = 50_000_000;

/// One direction of a radio.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Device arguments with an explicit `driver=`.
    pub device: String,
    /// Channels of the device, one stream for each.
    pub channels: Vec<usize>,
    /// Antenna; the device's own choice where not given.
    pub antenna: Option<String>,
    /// Overall gain in dB.
    pub gain: Option<f64>,
    /// Gain of single elements in dB, after the overall gain.
    pub gains: Vec<(String, f64)>,
    /// Bandwidth of the analogue filter in Hz.
    pub bandwidth: Option<f64>,
}

impl End {
    /// Channel 0 of a device, with the device's own gain and antenna.
    pub fn new(device: impl Into<String>) -> Self {
        Self { device: device.into(), channels: vec![0], antenna: None, gain: None, gains: Vec::new(), bandwidth: None }
    }
}

/// What to open, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioConfig {
    /// The receiver, if any.
    pub rx: Option<End>,
    /// The transmitter, if any; the same device as the receiver makes it full duplex.
    pub tx: Option<End>,
    /// Centre frequency in Hz.
    pub frequency: f64,
    /// Samples a second.
    pub rate: f64,
    /// Clock source; the device's own choice where not given.
    pub clock_source: Option<String>,
    /// Time source; the device's own choice where not given.
    pub time_source: Option<String>,
    /// Packets of 8192 samples between a driver's thread and the flowgraph.
    pub queue: usize,
    /// Let the driver wait when the queue is full, instead of dropping what it brings: for a device that can wait.
    pub patient: bool,
}

impl RadioConfig {
    /// One device at both ends.
    pub fn duplex(device: &str, frequency: f64, rate: f64) -> Self {
        Self {
            rx: Some(End::new(device)),
            tx: Some(End::new(device)),
            frequency,
            rate,
            clock_source: None,
            time_source: None,
            queue: 512,
            patient: false,
        }
    }
}

/// Devices that are set up, with streams that wait for their start.
///
/// Both streams are set up before either is activated; they start together, at a time in the near future where the device has time, else at once.
pub struct Radio {
    rate: f64,
    pub(super) shared: Arc<Shared>,
    rx_device: Option<Device>,
    tx_device: Option<Device>,
    config: RadioConfig,
    drive: Arc<AtomicU32>,
}

/// What a source and a sink have in common while they run.
pub(super) struct Shared {
    pub(super) rate: f64,
    pub(super) queue: usize,
    pub(super) patient: bool,
    pub(super) stop: Arc<AtomicBool>,
    /// A device has disappeared: nothing more is to be sent or received, but what was received is still of interest.
    pub(super) gone: AtomicBool,
    pub(super) health: Arc<Health>,
    /// What the transmitter has to tell the receiver when it has fallen behind.
    pub(super) relapse: Relapse,
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    rx: Option<(RxStream<Complex32>, Device)>,
    tx: Option<(TxStream<Complex32>, Device)>,
    start: Option<Start>,
}

/// When the streams start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) rx_timed: bool,
    pub(super) tx_at_ns: Option<i64>,
}

fn refused(device: &str, what: &str, error: &soapysdr::Error) -> Error {
    Error::Data(format!("{device}: {what}: {}", error.message))
}

/// Refuses arguments that do not name a radio's driver: an empty search has taken a sound card for a radio.
pub fn check_device(arguments: &str) -> Result<()> {
    match Args::from(arguments).get("driver") {
        None | Some("") => {
            let expected = "given with an explicit driver=..., as `kaflow devices` lists them";
            Err(Error::parameter("device", expected, format!("'{arguments}'")))
        }
        Some("audio") => Err(Error::parameter("device", "a radio: a sound card cannot receive or transmit here", arguments)),
        Some(_) => Ok(()),
    }
}

/// Opens a device by arguments that name their driver.
pub fn open_device(arguments: &str) -> Result<Device> {
    check_device(arguments)?;
    Device::new(arguments).map_err(|e| refused(arguments, "cannot be opened (`kaflow devices` lists what there is)", &e))
}

impl Radio {
    /// Opens and tunes the devices and sets both streams up. Nothing is transmitted yet.
    pub fn open(config: &RadioConfig) -> Result<Self> {
        if config.queue == 0 {
            return Err(Error::parameter("queue", "at least 1 packet", config.queue));
        }
        let end = |end: &Option<End>| end.as_ref().map(|end| open_device(&end.device)).transpose();
        let (rx_device, tx_device) = (end(&config.rx)?, end(&config.tx)?);
        let mut rate = config.rate;
        for (device, end, direction) in [(&rx_device, &config.rx, Direction::Rx), (&tx_device, &config.tx, Direction::Tx)] {
            if let (Some(device), Some(end)) = (device, end) {
                rate = tune(device, end, direction, config)?;
            }
        }
        let mut streams = Streams::default();
        if let (Some(device), Some(end)) = (&rx_device, &config.rx) {
            let stream = device.rx_stream(&end.channels).map_err(|e| refused(&end.device, "cannot receive", &e))?;
            streams.rx = Some((stream, device.clone()));
        }
        if let (Some(device), Some(end)) = (&tx_device, &config.tx) {
            let stream = device.tx_stream(&end.channels).map_err(|e| refused(&end.device, "cannot transmit", &e))?;
            streams.tx = Some((stream, device.clone()));
        }
        let shared = Shared {
            rate,
            queue: config.queue,
            patient: config.patient,
            stop: Arc::default(),
            gone: AtomicBool::new(false),
            health: Arc::default(),
            relapse: Relapse::new(matches!((&config.rx, &config.tx), (Some(rx), Some(tx)) if rx.device == tx.device)),
            streams: Mutex::new(streams),
        };
        Ok(Self {
            rate,
            shared: Arc::new(shared),
            rx_device,
            tx_device,
            config: config.clone(),
            drive: Arc::new(AtomicU32::new(1f32.to_bits())),
        })
    }

    /// The sample rate that the device has in fact.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// What has happened so far.
    pub fn health(&self) -> Arc<Health> {
        self.shared.health.clone()
    }

    /// Ends both streams cleanly once it is true.
    pub fn stop(&self) -> Arc<AtomicBool> {
        self.shared.stop.clone()
    }

    /// The factor on what a flowgraph transmits, 1 at first, as the bits of an f32: it may change at any time.
    pub fn drive(&self) -> Arc<AtomicU32> {
        self.drive.clone()
    }

    /// Receive channels.
    pub fn rx_channels(&self) -> usize {
        self.config.rx.as_ref().map_or(0, |end| end.channels.len())
    }

    /// Transmit channels.
    pub fn tx_channels(&self) -> usize {
        self.config.tx.as_ref().map_or(0, |end| end.channels.len())
    }

    /// Changes the overall transmit gain in dB, at any time.
    pub fn set_tx_gain(&self, gain: f64) -> Result<()> {
        let (Some(device), Some(end)) = (&self.tx_device, &self.config.tx) else { return Ok(()) };
        end.channels.iter().try_for_each(|&channel| {
            device.set_gain(Direction::Tx, channel, gain).map_err(|e| refused(&end.device, &format!("gain {gain} dB"), &e))
        })
    }

    /// The device that transmits.
    pub fn tx_device(&self) -> Option<&Device> {
        self.tx_device.as_ref()
    }

    /// The device that receives.
    pub fn rx_device(&self) -> Option<&Device> {
        self.rx_device.as_ref()
    }
}

/// Applies what the configuration says to one direction of a device; gives the rate that it took.
fn tune(device: &Device, end: &End, direction: Direction, config: &RadioConfig) -> Result<f64> {
    let fail = |what: String| move |e: soapysdr::Error| refused(&end.device, &what, &e);
    if let Some(source) = &config.clock_source {
        device.set_clock_source(source.as_str()).map_err(fail(format!("clock source '{source}'")))?;
    }
    if let Some(source) = &config.time_source {
        device.set_time_source(source.as_str()).map_err(fail(format!("time source '{source}'")))?;
    }
    let available = device.num_channels(direction).map_err(fail("channels".into()))?;
    let (verb, gain_name) = if direction == Direction::Tx { ("transmit", "tx-gain") } else { ("receive", "rx-gain") };
    if available == 0 {
        return Err(Error::Data(format!("{}: cannot {verb}: it has no channels for that", end.device)));
    }
    for &channel in &end.channels {
        if channel >= available {
            let has = format!("below {available}: {} has that many in this direction", end.device);
            return Err(Error::parameter("channel", has, channel));
        }
        device.set_sample_rate(direction, channel, config.rate).map_err(fail(format!("{} samples a second", config.rate)))?;
        if let Some(bandwidth) = end.bandwidth {
            device.set_bandwidth(direction, channel, bandwidth).map_err(fail(format!("bandwidth {bandwidth} Hz")))?;
        }
        if let Some(antenna) = &end.antenna {
            device.set_antenna(direction, channel, antenna.as_str()).map_err(fail(format!("antenna '{antenna}'")))?;
        }
        device.set_frequency(direction, channel, config.frequency, ()).map_err(fail(format!("{} Hz", config.frequency)))?;
        if let Some(gain) = end.gain {
            // SoapySDR would take the nearest gain that there is, without a word.
            if let Ok(range) = device.gain_range(direction, channel)
                && !(range.minimum..=range.maximum).contains(&gain)
            {
                let has = format!("between {} and {} dB, as {} has it", range.minimum, range.maximum, end.device);
                return Err(Error::parameter(gain_name, has, gain));
            }
            device.set_gain(direction, channel, gain).map_err(fail(format!("gain {gain} dB")))?;
        }
        for (element, gain) in &end.gains {
            let set = device.set_gain_element(direction, channel, element.as_str(), *gain);
            set.map_err(fail(format!("gain {gain} dB of element '{element}'")))?;
        }
    }
    let first = end.channels.first().copied().unwrap_or(0);
    let rate = device.sample_rate(direction, first).map_err(fail("sample rate".into()))?;
    if (rate - config.rate).abs() > 1e-6 * config.rate {
        let problem = format!("a rate that the device has; asked for that, it runs at {rate}");
        return Err(Error::parameter("rate", problem, config.rate));
    }
    Ok(rate)
}

impl Shared {
    fn streams(&self) -> std::sync::MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Activates both streams, once: the first of source and sink that is initialised does it for both.
    pub(super) fn start(&self) -> Result<Start> {
        let mut guard = self.streams();
        let streams = &mut *guard;
        if let Some(start) = streams.start {
            return Ok(start);
        }
        let time = |device: &Device| match device.has_hardware_time(None) {
            Ok(true) => device.get_hardware_time(None).ok(),
            _ => None,
        };
        let mut start = Start { rx_timed: false, tx_at_ns: None };
        let now = streams.tx.as_ref().and_then(|(_, device)| time(device));
        if let Some((stream, _)) = &mut streams.tx {
            stream.activate(None).map_err(|e| Error::Data(format!("the transmit stream does not start: {}", e.message)))?;
            start.tx_at_ns = now.map(|t| t + LEAD_NS);
        }
        if let Some((stream, device)) = &mut streams.rx {
            let now = time(device);
            start.rx_timed = now.is_some();
            // Devices of their own have times of their own: only where the transmitter is timed as well does the receiver's start have to fit.
            let at = now.map(|t| start.tx_at_ns.filter(|&at| at > t && at - t <= 2 * LEAD_NS).unwrap_or(t + LEAD_NS));
            let started = stream.activate(at);
            if let Err(error) = started {
                // Not every device that has time can start at one.
                stream.activate(None).map_err(|_| Error::Data(format!("the receive stream does not start: {}", error.message)))?;
            }
        }
        streams.start = Some(start);
        Ok(start)
    }

    pub(super) fn take_rx(&self) -> Option<RxStream<Complex32>> {
        self.streams().rx.take().map(|(stream, _)| stream)
    }

    pub(super) fn take_tx(&self) -> Option<(TxStream<Complex32>, Device)> {
        self.streams().tx.take()
    }

    /// Whether nobody is interested any more.
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the drivers have nothing more to do.
    pub(super) fn over(&self) -> bool {
        self.stopped() || self.gone.load(Ordering::Relaxed)
    }
}
