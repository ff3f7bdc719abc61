//! Opening radios: what a source and a sink share.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use num_complex::Complex32;
use soapysdr::{Args, Device, Direction, TxStream};

use super::soapy_health::{Health, Relapse};
use super::soapy_tune::{ReadBack, check_duplex, tune};
use crate::radio::client::RxStream;
use crate::{Error, Result, radio};

/// Samples of each channel in one packet of the queue, at most.
pub(super) const PACKET: usize = 8192;

/// Samples of each channel that the queue may hold: 2 GiB.
const LARGEST_QUEUE: usize = 1 << 28;

/// The time that a driver has to start its streams on top of what it has to bring samples.
const START: Duration = Duration::from_secs(10);

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
    /// Bandwidth of the analogue filter in Hz; 0 lets the device choose.
    pub bandwidth: Option<f64>,
    /// Arguments of the stream, `key=value, key=value`, as the driver has them.
    pub stream_args: String,
}

impl End {
    /// Channel 0 of a device, with the device's own gain and antenna.
    pub fn new(device: impl Into<String>) -> Self {
        Self {
            device: device.into(),
            channels: vec![0],
            antenna: None,
            gain: None,
            gains: Vec::new(),
            bandwidth: None,
            stream_args: String::new(),
        }
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
    /// Samples of each channel that may wait between a driver's thread and the flowgraph.
    pub queue: usize,
    /// How long nothing may come or go before a stream counts as dead.
    pub timeout: Duration,
    /// Let the driver wait when the queue is full, instead of dropping what it brings: for a device that can wait.
    pub patient: bool,
}

impl RadioConfig {
    /// The usual queue: four million samples, 0.2 s at 20 MS/s.
    pub(crate) const QUEUE: usize = 1 << 22;
    /// The usual patience.
    pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

    /// One device at both ends.
    pub fn duplex(device: &str, frequency: f64, rate: f64) -> Self {
        Self {
            rx: Some(End::new(device)),
            tx: Some(End::new(device)),
            frequency,
            rate,
            clock_source: None,
            time_source: None,
            queue: Self::QUEUE,
            timeout: Self::TIMEOUT,
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
    pub(super) timeout: Duration,
    opened: Instant,
    /// When samples came last and went last, in milliseconds since `opened`.
    pub(super) heard: AtomicU64,
    pub(super) told: AtomicU64,
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
    rx: Option<(RxStream, Device)>,
    tx: Option<(TxStream<Complex32>, Device)>,
    start: Option<Start>,
}

/// When the streams start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) tx_at_ns: Option<i64>,
}

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
        Some(radio::DRIVER) => radio::Settings::check(arguments),
        Some(_) => Ok(()),
    }
}

/// Opens a device by arguments that name their driver.
pub(crate) fn open_device(arguments: &str) -> Result<Device> {
    check_device(arguments)?;
    Device::new(arguments).map_err(|e| refused(arguments, "cannot be opened (`kaflow devices` lists what there is)", &e))
}

impl Radio {
    /// Opens and tunes the devices and sets both streams up. Nothing is transmitted yet.
    pub fn open(config: &RadioConfig) -> Result<Self> {
        if !(1..=LARGEST_QUEUE).contains(&config.queue) {
            return Err(Error::parameter("queue", format!("between 1 and {LARGEST_QUEUE} samples"), config.queue));
        }
        if config.timeout.is_zero() {
            return Err(Error::parameter("timeout", "more than 0 s", "0"));
        }
        let rx_device = config.rx.as_ref().map(|end| open_device(&end.device)).transpose()?;
        let tx_device = match (&config.rx, &config.tx) {
            (Some(rx), Some(tx)) if rx.device == tx.device => rx_device.clone(),
            (_, tx) => tx.as_ref().map(|end| open_device(&end.device)).transpose()?,
        };
        if let (Some(rx), Some(tx), Some(device)) = (&config.rx, &config.tx, &rx_device)
            && rx.device == tx.device
        {
            check_duplex(device, &rx.device)?;
        }
        let mut rate = config.rate;
        for (device, end, direction) in [(&rx_device, &config.rx, Direction::Rx), (&tx_device, &config.tx, Direction::Tx)] {
            if let (Some(device), Some(end)) = (device, end) {
                rate = tune(device, end, direction, config)?;
            }
        }
        let mut streams = Streams::default();
        if let (Some(device), Some(end)) = (&rx_device, &config.rx) {
            let stream = RxStream::open(&end.device, &end.channels, &end.stream_args);
            let stream = stream.map_err(|e| refused(&end.device, "cannot receive", &e))?;
            streams.rx = Some((stream, device.clone()));
        }
        if let (Some(device), Some(end)) = (&tx_device, &config.tx) {
            let stream = device.tx_stream_args(&end.channels, end.stream_args.as_str());
            let stream = stream.map_err(|e| refused(&end.device, "cannot transmit", &e))?;
            streams.tx = Some((stream, device.clone()));
        }
        let shared = Shared {
            rate,
            queue: config.queue,
            patient: config.patient,
            timeout: config.timeout,
            opened: Instant::now(),
            heard: AtomicU64::new(0),
            told: AtomicU64::new(0),
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

    /// What the device has made of its configuration; none for a direction that is not in use. What it does not tell is not a number.
    pub fn read_back(&self, direction: Direction) -> Option<ReadBack> {
        let (device, end) = match direction {
            Direction::Rx => (self.rx_device.as_ref()?, self.config.rx.as_ref()?),
            Direction::Tx => (self.tx_device.as_ref()?, self.config.tx.as_ref()?),
        };
        Some(ReadBack::of(device, end, direction))
    }

    /// The device that receives.
    pub(crate) fn rx_device(&self) -> Option<&Device> {
        self.rx_device.as_ref()
    }

    /// The device that transmits.
    pub(crate) fn tx_device(&self) -> Option<&Device> {
        self.tx_device.as_ref()
    }
}

impl Shared {
    fn streams(&self) -> std::sync::MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Activates both streams, once: the first of source and sink that is initialised does it for both. A driver that does not return is left alone.
    pub(super) fn start(self: &Arc<Self>) -> Result<Start> {
        let (done, started) = crossbeam::channel::bounded(1);
        let shared = self.clone();
        let thread = std::thread::Builder::new().name("kaflow start".into()).spawn(move || {
            let _ = done.send(shared.activate());
        });
        thread.map_err(|e| Error::io("thread", e))?;
        let patience = START.saturating_add(self.timeout);
        let silent = |_| Error::Device(format!("the driver has not started its streams within {} s", patience.as_secs()));
        let start = started.recv_timeout(patience).map_err(silent)??;
        self.note(&self.heard);
        self.note(&self.told);
        Ok(start)
    }

    fn activate(&self) -> Result<Start> {
        let mut guard = self.streams();
        let streams = &mut *guard;
        if let Some(start) = streams.start {
            return Ok(start);
        }
        let time = |device: &Device| match device.has_hardware_time(None) {
            Ok(true) => device.get_hardware_time(None).ok(),
            _ => None,
        };
        let mut start = Start { tx_at_ns: None };
        let now = streams.tx.as_ref().and_then(|(_, device)| time(device));
        if let Some((stream, _)) = &mut streams.tx {
            stream.activate(None).map_err(|e| Error::Device(format!("the transmit stream does not start: {}", e.message)))?;
            start.tx_at_ns = now.map(|t| t + LEAD_NS);
        }
        if let Some((stream, device)) = &mut streams.rx {
            let now = time(device);
            // Devices of their own have times of their own: only where the transmitter is timed as well does the receiver's start have to fit.
            let at = now.map(|t| start.tx_at_ns.filter(|&at| at > t && at - t <= 2 * LEAD_NS).unwrap_or(t + LEAD_NS));
            let started = stream.activate(at);
            if let Err(error) = started {
                // Not every device that has time can start at one.
                stream.activate(None).map_err(|_| Error::Device(format!("the receive stream does not start: {}", error.message)))?;
            }
        }
        streams.start = Some(start);
        Ok(start)
    }

    /// Something came or went now.
    pub(super) fn note(&self, when: &AtomicU64) {
        when.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Whether nothing has come or gone for too long.
    pub(super) fn overdue(&self, when: &AtomicU64) -> bool {
        let last = Duration::from_millis(when.load(Ordering::Relaxed));
        self.opened.elapsed().saturating_sub(last) > self.timeout
    }

    pub(super) fn take_rx(&self) -> Option<RxStream> {
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
