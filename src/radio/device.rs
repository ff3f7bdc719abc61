//! The simulated radio itself: tuning, gains, streams and faults.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::air::{Air, Event, Sent};
use super::format::{Format, Sample};
use super::receiver::Receiver;
use super::{CHANNELS, Direction, FREQUENCY, Faults, Settings};
use crate::channel::{Amplifier, Stage};
use crate::error::require;
use crate::{Error, Result};

/// Samples that go through the channel at once.
const BLOCK: usize = 8192;

/// Lost samples still pass through the channel, so that it has moved on afterwards; beyond so many it stands still instead.
const PASSED_UNHEARD: u64 = 1 << 18;

/// The overall gain, of either direction, at which an amplitude of 1 is an amplitude of 1: a transmitted mean power of 1 then has no back-off.
pub const UNITY_GAIN_DB: f64 = 40.0;

/// The gain elements of a direction and their largest gain in dB.
const GAINS: [[(&str, f64); 2]; 2] = [[("DRIVER", 30.0), ("PA", 30.0)], [("LNA", 30.0), ("PGA", 30.0)]];

/// Least and largest frequency, rate and bandwidth in Hz.
const NUMBERS: [(&str, f64, f64); 3] = [("frequency", 70e6, 6e9), ("rate", 1e5, 61.44e6), ("bandwidth", 2e5, 56e6)];

/// Why a stream call brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    Timeout,
    Overflow,
    Underflow,
    Late,
    /// The device has disappeared.
    Gone,
    NotSupported,
}

struct Tuning {
    frequency: f64,
    bandwidth: f64,
    gains: [f64; 2],
}

struct RxStream {
    channels: Vec<usize>,
    format: Format,
    receiver: Option<Receiver>,
    /// Index of the next sample; those before were delivered or lost.
    next: u64,
    delivered: u64,
    /// Where each kind of fault struck last, in delivered samples.
    struck: [u64; 3],
    stalled: u64,
    sent: Sent,
    /// A loss that has still to be told.
    overflowed: bool,
}

struct TxStream {
    channels: Vec<usize>,
    format: Format,
    amplifiers: Vec<Option<Amplifier>>,
    active: bool,
}

/// A simulated radio of four transmit and four receive channels.
pub(super) struct Radio {
    settings: Mutex<Settings>,
    air: Arc<Air>,
    tuning: Mutex<[[Tuning; CHANNELS]; 2]>,
    rx: Mutex<Option<RxStream>>,
    tx: Mutex<Option<TxStream>>,
    gone: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn amplitude(db: f64) -> f64 {
    10f64.powf(db / 20.0)
}

impl Radio {
    pub(super) fn open(arguments: &str) -> Result<Self> {
        let settings = Settings::parse(arguments)?;
        let air = Air::open(settings.air.as_deref(), settings.real_time);
        let start = |_| Tuning { frequency: FREQUENCY, bandwidth: 56e6, gains: [15.0; 2] };
        Ok(Self {
            air,
            settings: Mutex::new(settings),
            tuning: Mutex::new([0, 1].map(|_| std::array::from_fn(start))),
            rx: Mutex::default(),
            tx: Mutex::default(),
            gone: AtomicBool::new(false),
        })
    }

    /// Least, largest and step of a number or a gain element.
    pub(super) fn range(direction: Direction, name: &str) -> Option<(f64, f64, f64)> {
        let gain = GAINS[direction as usize].iter().find(|g| g.0 == name).map(|g| (0.0, g.1, 0.25));
        gain.or_else(|| NUMBERS.iter().find(|n| n.0 == name).map(|n| (n.1, n.2, 0.0)))
    }

    pub(super) fn set(&self, direction: Direction, channel: usize, name: &str, value: f64) -> Result<()> {
        require(channel < CHANNELS, "channel", "between 0 and 3", channel as f64)?;
        let names = || GAINS[direction as usize].iter().map(|g| g.0).chain(NUMBERS.iter().map(|n| n.0));
        let (low, high, _) = Self::range(direction, name).ok_or_else(|| Error::unknown("gain element", name, names()))?;
        if !(low..=high).contains(&value) {
            return Err(Error::parameter(name, format!("between {low} and {high}"), value));
        }
        if name == "rate" {
            // One clock for both directions.
            return if self.air.set_rate(value) {
                Ok(())
            } else {
                Err(Error::Data("the sample rate cannot be changed while a stream is active: it is that of both directions".into()))
            };
        }
        let mut tuning = lock(&self.tuning);
        let channels = &mut tuning[direction as usize][channel];
        match name {
            "frequency" => channels.frequency = value,
            "bandwidth" => channels.bandwidth = value,
            element => {
                let index = GAINS[direction as usize].iter().position(|g| g.0 == element).unwrap_or(0);
                channels.gains[index] = value;
            }
        }
        if name == "frequency" && direction == Direction::Tx {
            self.air.tune(channel, value);
        }
        Ok(())
    }

    pub(super) fn get(&self, direction: Direction, channel: usize, name: &str) -> f64 {
        if name == "rate" {
            return self.air.rate();
        }
        let tuning = lock(&self.tuning);
        let Some(channel) = tuning[direction as usize].get(channel) else { return f64::NAN };
        match name {
            "frequency" => channel.frequency,
            "bandwidth" => channel.bandwidth,
            element => GAINS[direction as usize].iter().position(|g| g.0 == element).map_or(f64::NAN, |i| channel.gains[i]),
        }
    }

    /// Noise, Doppler and faults change at once, the other settings when the receiver is activated next.
    pub(super) fn write_setting(&self, key: &str, value: &str) -> Result<()> {
        let mut settings = lock(&self.settings);
        settings.set(key, value)?;
        let settings = settings.clone();
        let rate = self.air.rate();
        match lock(&self.rx).as_mut().and_then(|rx| rx.receiver.as_mut()) {
            Some(receiver) => receiver.update(&settings, rate),
            None => Ok(()),
        }
    }

    /// The settings that a program may want to know.
    pub(super) fn read_setting(&self, key: &str) -> Option<String> {
        let settings = lock(&self.settings);
        match key {
            "pace" => Some(if settings.real_time { "real" } else { "fast" }.into()),
            "snr" => Some(settings.snr_db.to_string()),
            "doppler" => Some(settings.doppler_hz.to_string()),
            "seed" => Some(settings.seed.to_string()),
            _ => None,
        }
    }

    pub(super) fn time_ns(&self) -> i64 {
        self.air.time_ns(None)
    }

    pub(super) fn set_time(&self, time_ns: i64) {
        self.air.set_time(time_ns);
    }

    pub(super) fn setup(&self, direction: Direction, format: &str, channels: &[usize]) -> Result<()> {
        let format = format.parse()?;
        let channels = if channels.is_empty() { vec![0] } else { channels.to_vec() };
        for (i, &channel) in channels.iter().enumerate() {
            let expected = "channels between 0 and 3, each once";
            require(channel < CHANNELS && !channels[..i].contains(&channel), "channels", expected, channel as f64)?;
        }
        let busy = || Error::Data("the device has one stream for each direction, and this one is in use".into());
        match direction {
            Direction::Rx => {
                let mut rx = lock(&self.rx);
                if rx.is_some() {
                    return Err(busy());
                }
                *rx = Some(RxStream {
                    channels,
                    format,
                    receiver: None,
                    next: 0,
                    delivered: 0,
                    struck: [0; 3],
                    stalled: 0,
                    sent: Sent::default(),
                    overflowed: false,
                });
            }
            Direction::Tx => {
                let mut tx = lock(&self.tx);
                if tx.is_some() {
                    return Err(busy());
                }
                let model = lock(&self.settings).amplifier.clone();
                let amplifier = model.map(|model| Amplifier::new(model, 0.0)).transpose()?;
                *tx = Some(TxStream { amplifiers: vec![amplifier; channels.len()], channels, format, active: false });
            }
        }
        Ok(())
    }

    pub(super) fn close(&self, direction: Direction) {
        self.deactivate(direction);
        match direction {
            Direction::Rx => *lock(&self.rx) = None,
            Direction::Tx => *lock(&self.tx) = None,
        }
    }

    pub(super) fn activate(&self, direction: Direction, at_ns: Option<i64>) -> Result<(), Failure> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(Failure::Gone);
        }
        match direction {
            Direction::Tx => {
                lock(&self.tx).as_mut().ok_or(Failure::NotSupported)?.active = true;
                self.air.activate_transmitter();
            }
            Direction::Rx => {
                let mut rx = lock(&self.rx);
                let rx = rx.as_mut().ok_or(Failure::NotSupported)?;
                let receiver = Receiver::new(&lock(&self.settings), &rx.channels, self.air.rate());
                rx.receiver = Some(receiver.map_err(|_| Failure::NotSupported)?);
                rx.next = self.air.listen(at_ns);
                (rx.delivered, rx.struck, rx.stalled, rx.overflowed) = (0, [0; 3], 0, false);
            }
        }
        Ok(())
    }

    pub(super) fn deactivate(&self, direction: Direction) {
        match direction {
            Direction::Tx => {
                if let Some(tx) = lock(&self.tx).as_mut().filter(|tx| tx.active) {
                    tx.active = false;
                    self.air.stop_transmitter();
                }
            }
            Direction::Rx => {
                if let Some(rx) = lock(&self.rx).as_mut().filter(|rx| rx.receiver.is_some()) {
                    rx.receiver = None;
                    self.air.stop_listening();
                }
            }
        }
    }

    /// The format of a stream that is set up.
    pub(super) fn format(&self, direction: Direction) -> Option<(Format, usize)> {
        match direction {
            Direction::Rx => lock(&self.rx).as_ref().map(|rx| (rx.format, rx.channels.len())),
            Direction::Tx => lock(&self.tx).as_ref().map(|tx| (tx.format, tx.channels.len())),
        }
    }

    /// Reads into one buffer for each channel; gives the number of samples and the time of the first one.
    pub(super) fn read<S: Sample>(&self, buffers: &mut [&mut [S]], timeout: Duration) -> Result<(usize, i64), Failure> {
        let deadline = Instant::now() + timeout;
        if self.gone.load(Ordering::Relaxed) {
            return Err(Failure::Gone);
        }
        let mut guard = lock(&self.rx);
        let Some(rx) = guard.as_mut().filter(|rx| rx.receiver.is_some()) else {
            drop(guard);
            std::thread::sleep(timeout);
            return Err(Failure::Timeout);
        };
        let (faults, cfo_hz, real_time) = {
            let settings = lock(&self.settings);
            (settings.faults, settings.cfo_hz, settings.real_time)
        };
        self.strike(rx, &faults, real_time, deadline)?;
        let wanted = buffers.iter().map(|b| b.len()).min().unwrap_or(0).min(BLOCK);
        let count = wanted.min(usize::try_from(to_next_fault(&faults, rx.delivered)).unwrap_or(usize::MAX));
        let gains = self.tune(rx, cfo_hz)?;
        if !self.fill(rx, count, deadline) && rx.receiver.as_ref().is_none_or(|r| r.ready() == 0) {
            return Err(if std::mem::take(&mut rx.overflowed) { Failure::Overflow } else { Failure::Timeout });
        }
        if std::mem::take(&mut rx.overflowed) {
            return Err(Failure::Overflow);
        }
        let Some(receiver) = &mut rx.receiver else { return Err(Failure::Timeout) };
        let count = count.min(receiver.ready());
        for (antenna, (buffer, gain)) in buffers.iter_mut().zip(gains).enumerate() {
            receiver.deliver(antenna, gain, &mut buffer[..count]);
        }
        let time = self.air.time_ns(Some(rx.next));
        rx.next += count as u64;
        rx.delivered += count as u64;
        Ok((count, time))
    }

    /// Tunes the receiver to where it stands now; gives the gain of each of its channels.
    fn tune(&self, rx: &mut RxStream, cfo_hz: f64) -> Result<[f32; CHANNELS], Failure> {
        let tuning = lock(&self.tuning);
        let of = |channel: &usize| &tuning[Direction::Rx as usize][*channel];
        let frequencies: Vec<f64> = rx.channels.iter().map(|c| of(c).frequency).collect();
        let mut gains = [0.0; CHANNELS];
        for (gain, channel) in gains.iter_mut().zip(&rx.channels) {
            *gain = amplitude(of(channel).gains.iter().sum::<f64>() - UNITY_GAIN_DB) as f32;
        }
        match &mut rx.receiver {
            Some(receiver) => {
                receiver.tune(&self.air.frequencies(), &frequencies, cfo_hz, self.air.rate()).map_err(|_| Failure::NotSupported)?
            }
            None => return Err(Failure::Timeout),
        }
        Ok(gains)
    }

    /// Brings `count` samples through the channel; false when the time is up before.
    fn fill(&self, rx: &mut RxStream, count: usize, deadline: Instant) -> bool {
        let Some(receiver) = &mut rx.receiver else { return false };
        while receiver.ready() < count {
            let Some(heard) = self.air.take((count - receiver.ready()).min(BLOCK), deadline, &mut rx.sent) else { return false };
            if heard.lost > 0 {
                // What waited in the channel's delay is older than the loss: it goes with it.
                rx.next += heard.lost + receiver.discard(usize::MAX) as u64;
                rx.overflowed = true;
            }
            receiver.feed(&rx.sent, heard.samples);
        }
        true
    }

    /// Loses samples: they pass through the channel and are not delivered.
    fn lose(&self, rx: &mut RxStream, count: u64, deadline: Instant) -> Result<(), Failure> {
        let heard = count.min(PASSED_UNHEARD);
        let cfo_hz = lock(&self.settings).cfo_hz;
        self.tune(rx, cfo_hz)?;
        let mut left = heard as usize;
        while left > 0 {
            let n = left.min(BLOCK);
            self.fill(rx, n, deadline.max(Instant::now() + Duration::from_millis(100)));
            let dropped = rx.receiver.as_mut().map_or(0, |r| r.discard(n));
            if dropped == 0 {
                // The transmitter has stopped writing: there is nothing to lose, and time jumps all the same.
                self.air.skip(left as u64);
                break;
            }
            left -= dropped;
        }
        self.air.skip(count - heard);
        rx.next += count;
        Ok(())
    }

    /// Lets the faults happen whose time has come.
    fn strike(&self, rx: &mut RxStream, faults: &Faults, real_time: bool, deadline: Instant) -> Result<(), Failure> {
        if faults.vanish_after > 0 && rx.delivered >= faults.vanish_after {
            self.gone.store(true, Ordering::Relaxed);
            return Err(Failure::Gone);
        }
        let mut due = |kind: usize, every: u64| {
            let strikes = every > 0 && rx.delivered > 0 && rx.delivered.is_multiple_of(every) && rx.struck[kind] != rx.delivered;
            if strikes {
                rx.struck[kind] = rx.delivered;
            }
            strikes
        };
        let (overflows, jumps, stalls) = (due(0, faults.overflow_every), due(1, faults.jump_every), due(2, faults.stall_every));
        if stalls {
            rx.stalled = faults.stall;
        }
        if jumps && faults.jump < 0 {
            self.air.shift_clock(faults.jump);
        } else if jumps {
            self.lose(rx, faults.jump.unsigned_abs(), deadline)?;
        }
        if overflows {
            self.lose(rx, faults.overflow_length, deadline)?;
            rx.overflowed = true;
        }
        if rx.stalled > 0 {
            rx.stalled -= 1;
            // Paced, a stall takes its time; unpaced only the result counts.
            let pause = deadline.saturating_duration_since(Instant::now());
            std::thread::sleep(if real_time { pause } else { pause.min(Duration::from_micros(50)) });
            return Err(Failure::Timeout);
        }
        Ok(())
    }

    /// Writes one buffer for each channel; gives how many samples were taken.
    pub(super) fn write<S: Sample>(&self, buffers: &[&[S]], at_ns: Option<i64>, end: bool, timeout: Duration) -> Result<usize, Failure> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(Failure::Gone);
        }
        let mut guard = lock(&self.tx);
        let tx = guard.as_mut().filter(|tx| tx.active).ok_or(Failure::NotSupported)?;
        let wanted = buffers.iter().map(|b| b.len()).min().unwrap_or(0);
        let space = self.air.space(Instant::now() + timeout);
        if space == 0 && wanted > 0 {
            return Err(Failure::Timeout);
        }
        let count = wanted.min(usize::try_from(space).unwrap_or(usize::MAX)).min(2 * BLOCK);
        let mut sent = Sent::default();
        for ((buffer, &channel), amplifier) in buffers.iter().zip(&tx.channels).zip(&mut tx.amplifiers) {
            let gain = lock(&self.tuning)[Direction::Tx as usize][channel].gains.iter().sum::<f64>() - UNITY_GAIN_DB;
            let out = &mut sent[channel];
            out.extend(buffer[..count].iter().map(|s| s.to_complex()));
            match amplifier {
                // Within its range any gain is a back-off that the amplifier takes.
                Some(amplifier) => {
                    let _ = amplifier.set_ibo_db(-gain);
                    amplifier.process(out);
                }
                None => out.iter_mut().for_each(|z| *z *= amplitude(gain) as f32),
            }
        }
        // The end of the burst is the end of what the program wrote, not of what there was room for.
        self.air.transmit(sent, count, at_ns, end && count == wanted);
        Ok(count)
    }

    /// The next event of a stream.
    pub(super) fn status(&self, direction: Direction, timeout: Duration) -> Result<i64, Failure> {
        if direction == Direction::Rx || !self.air.transmitting() {
            return Err(Failure::NotSupported);
        }
        match self.air.event(Instant::now() + timeout) {
            Some((Event::Underflow, _)) => Err(Failure::Underflow),
            Some((Event::Late, _)) => Err(Failure::Late),
            None => Err(Failure::Timeout),
        }
    }
}

/// Samples that can be delivered before a fault strikes.
fn to_next_fault(faults: &Faults, delivered: u64) -> u64 {
    let periodic = [faults.overflow_every, faults.jump_every, faults.stall_every].into_iter().filter(|&every| every > 0);
    let next = periodic.map(|every| every - delivered % every).min().unwrap_or(u64::MAX);
    if faults.vanish_after > 0 { next.min(faults.vanish_after.saturating_sub(delivered).max(1)) } else { next }
}
