//! A radio: what a source and a sink share.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use num_complex::Complex32;
use soapysdr::{Device, Direction, TxStream};

use super::clock::from_outside;
use super::config::RadioConfig;
use super::devices::{Devices, Rates, Streams};
use super::health::{Health, Relapse};
use super::reunion::Reunion;
use super::tune::ReadBack;
use crate::radio::client::RxStream;
use crate::{Error, Result};

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

/// Devices that are set up, with streams that wait for their start.
///
/// Both streams are set up before either is activated; they start together, at a time in the near future where the device has time, else at once. The transmit gain is as low as the device has
/// it until its stream has started. At any end the transmitter stops first; a panic anywhere in the process stops it too.
pub struct Radio {
    pub(super) shared: Arc<Shared>,
    config: RadioConfig,
    drive: Arc<AtomicU32>,
}

/// What a source and a sink have in common while they run.
pub(super) struct Shared {
    pub(super) rates: Rates,
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
    /// The transmit stream is active.
    pub(super) transmits: AtomicBool,
    pub(super) health: Arc<Health>,
    /// What the transmitter has to tell the receiver when it has fallen behind.
    pub(super) relapse: Relapse,
    pub(super) devices: Arc<Devices>,
    pub(super) reunion: Reunion,
    streams: Mutex<(Streams, Option<Start>)>,
}

/// When the streams start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) tx_at_ns: Option<i64>,
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
        let (devices, streams, rates) = Devices::new(config)?;
        let shared = Shared {
            rates,
            queue: config.queue,
            patient: config.patient,
            timeout: config.timeout,
            opened: Instant::now(),
            heard: AtomicU64::new(0),
            told: AtomicU64::new(0),
            stop: Arc::default(),
            gone: AtomicBool::new(false),
            transmits: AtomicBool::new(false),
            health: Arc::default(),
            relapse: Relapse::new(config.one_device() || from_outside(&config.time_source)),
            devices: Arc::new(devices),
            reunion: Reunion::new(config.reconnect),
            streams: Mutex::new((streams, None)),
        };
        Ok(Self { shared: Arc::new(shared), config: config.clone(), drive: Arc::new(AtomicU32::new(1f32.to_bits())) })
    }

    /// Samples a second that are received in fact.
    pub fn rate(&self) -> f64 {
        self.shared.rates.rx
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

    /// Whether transmitter and receiver sample by one clock: they do in one device, and in two that follow one from outside, unless the receiver says otherwise (`clocks` in what SoapySDR calls its
    /// hardware information).
    pub fn one_clock(&self) -> bool {
        let says =
            || self.shared.devices.get(Direction::Rx).and_then(|(device, _)| device.hardware_info().ok()?.get("clocks").map(str::to_owned));
        (self.config.one_device() || from_outside(&self.config.clock_source)) && says().is_none_or(|clocks| clocks == "1")
    }

    /// What the device has made of its configuration; none for a direction that is not in use. What it does not tell is not a number. Before the start, the transmit gain is the one that it is going to have.
    pub fn read_back(&self, direction: Direction) -> Option<ReadBack> {
        self.shared.devices.read_back(direction)
    }

    /// The devices, for as long as they are open.
    pub(crate) fn devices(&self) -> Arc<Devices> {
        self.shared.devices.clone()
    }
}

impl Shared {
    fn streams(&self) -> std::sync::MutexGuard<'_, (Streams, Option<Start>)> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Activates both streams, once: the first of source and sink that is initialised does it for both. A driver that does not return is left alone.
    pub(super) fn start(self: &Arc<Self>) -> Result<Start> {
        super::stop::watch_over(self);
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

    pub(super) fn activate(&self) -> Result<Start> {
        let mut guard = self.streams();
        let (streams, started) = &mut *guard;
        if let Some(start) = *started {
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
            self.transmits.store(true, Ordering::SeqCst);
            start.tx_at_ns = now.map(|t| t + LEAD_NS);
        }
        if let Some((stream, device)) = &mut streams.rx {
            let now = time(device);
            // Devices of their own have times of their own: only where the transmitter is timed as well does the receiver's start have to fit.
            let at = now.map(|t| start.tx_at_ns.filter(|&at| at > t && at - t <= 2 * LEAD_NS).unwrap_or(t + LEAD_NS));
            let begun = stream.activate(at);
            if let Err(error) = begun {
                // Not every device that has time can start at one.
                stream.activate(None).map_err(|_| Error::Device(format!("the receive stream does not start: {}", error.message)))?;
            }
        }
        self.devices.rise()?;
        *started = Some(start);
        Ok(start)
    }

    /// Streams that were opened anew, in place of those that were lost.
    pub(super) fn replace(&self, streams: Streams) {
        *self.streams() = (streams, None);
    }

    /// Something came or went now.
    pub(super) fn note(&self, when: &AtomicU64) {
        when.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Whether nothing has come or gone for too long.
    pub(super) fn overdue(&self, when: &AtomicU64) -> bool {
        self.silent_for(when) > self.timeout
    }

    /// Whether a call into a driver that is to be waited for does not return: longer than it takes to notice that a stream is dead.
    pub(super) fn stuck(&self, when: &AtomicU64) -> bool {
        let notice = if self.reunion.wanted() { Duration::from_micros(10 * PATIENCE_US as u64) } else { Duration::ZERO };
        match self.reunion.overdue() {
            Some(by) => by > START,
            None => self.silent_for(when) > self.timeout.saturating_add(notice) && !self.shaken(),
        }
    }

    /// Whether a driver that does not return waits for a peer who is gone, and has been told so: it gets as long again.
    fn shaken(&self) -> bool {
        let shaken = self.reunion.wanted() && self.devices.unplug();
        if shaken {
            self.note(&self.heard);
            self.note(&self.told);
        }
        shaken
    }

    /// What to say of a driver that is [stuck](Self::stuck).
    pub(super) fn silence_of(&self, what: &str) -> Error {
        let wait = self.timeout.as_secs_f64();
        let lost = if self.reunion.wanted() { "; its driver does not return, so the radio cannot be opened again: start anew" } else { "" };
        Error::Device(format!(
            "{what} for {wait} s, and its driver does not say why: is the radio, or the host that it is at, still there?{lost}"
        ))
    }

    fn silent_for(&self, when: &AtomicU64) -> Duration {
        self.opened.elapsed().saturating_sub(Duration::from_millis(when.load(Ordering::Relaxed)))
    }

    pub(super) fn take_rx(&self) -> Option<RxStream> {
        self.streams().0.rx.take().map(|(stream, _)| stream)
    }

    pub(super) fn take_tx(&self) -> Option<(TxStream<Complex32>, Device)> {
        self.streams().0.tx.take()
    }

    /// Whether nobody is interested any more.
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the drivers have nothing more to do.
    pub(super) fn over(&self) -> bool {
        self.stopped() || self.gone.load(Ordering::Relaxed)
    }

    /// Whether a driver's thread has to let its stream go: it is over, or the devices are lost and to be opened again.
    pub(super) fn interrupted(&self) -> bool {
        self.over() || self.reunion.lost()
    }

    /// The transmit stream has stopped.
    pub(super) fn silenced(&self) {
        self.transmits.store(false, Ordering::SeqCst);
    }
}
