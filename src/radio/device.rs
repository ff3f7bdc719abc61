//! The simulated radio itself: tuning, gains, settings, sensors.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::air::{Air, PULSE_NS};
use super::parameters::{PARAMETERS, Parameter};
use super::receiver::Tuned;
use super::stream::RxStream;
use super::transmitter::TxStream;
use super::{CHANNELS, Direction, FREQUENCY, Settings, TimeStamps};
use crate::error::require;
use crate::{Error, Result};

/// The overall gain, of either direction, at which an amplitude of 1 is an amplitude of 1: a transmitted mean power of 1 then has no back-off.
pub(crate) const UNITY_GAIN_DB: f64 = 40.0;

/// The gain elements of a direction; each has 0 to [`ELEMENT_DB`] dB.
const GAINS: [[&str; 2]; 2] = [["DRIVER", "PA"], ["LNA", "PGA"]];
const ELEMENT_DB: f64 = 30.0;

/// Where clock and time may come from.
pub(super) const SOURCES: [&str; 2] = ["internal", "external"];

/// Least and largest of what can be tuned.
const RANGES: [(&str, f64, f64); 6] = [
    ("frequency", 70e6, 6e9),
    ("rate", 1e5, 61.44e6),
    ("bandwidth", 2e5, 56e6),
    ("correction", -1000.0, 1000.0),
    ("gain_mode", 0.0, 1.0),
    ("dc_mode", 0.0, 1.0),
];

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

#[derive(Clone, Copy)]
struct Tuning {
    frequency: f64,
    /// Of the analogue filter in Hz; 0 follows the rate.
    bandwidth: f64,
    /// Of the oscillator in ppm.
    correction: f64,
    gains: [f64; 2],
    automatic_gain: bool,
    automatic_dc: bool,
}

/// What happened so far, for the sensors.
#[derive(Default)]
pub(super) struct Losses {
    pub(super) gap_samples: AtomicU64,
    pub(super) overflows: AtomicU64,
    pub(super) underflows: AtomicU64,
    pub(super) late: AtomicU64,
}

/// A simulated radio of four transmit and four receive channels.
pub(super) struct Radio {
    pub(super) settings: Mutex<Settings>,
    pub(super) air: Arc<Air>,
    tuning: Mutex<[[Tuning; CHANNELS]; 2]>,
    // Where more than one is held, they are taken in this order.
    pub(super) rx: Mutex<Option<RxStream>>,
    pub(super) tx: Mutex<Option<TxStream>>,
    pub(super) gone: AtomicBool,
    pub(super) losses: Losses,
    /// Whether clock and time come from outside.
    external: [AtomicBool; 2],
    /// What its clock shows at the time 0 of its air, in nanoseconds.
    zero_ns: AtomicI64,
    /// Samples a second that it transmits, once somebody has set that.
    tx_rate: Mutex<Option<f64>>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Radio {
    /// Opens a radio; also gives what of its arguments it ignores, in words.
    pub(super) fn open(arguments: &str) -> Result<(Self, Vec<String>)> {
        let (settings, ignored) = Settings::parse(arguments)?;
        let air = Air::open(settings.air.as_deref(), settings.real_time);
        let start = Tuning {
            frequency: FREQUENCY,
            bandwidth: 0.0,
            correction: 0.0,
            gains: [ELEMENT_DB / 2.0; 2],
            automatic_gain: false,
            automatic_dc: false,
        };
        let radio = Self {
            settings: Mutex::new(settings),
            tuning: Mutex::new([[start; CHANNELS]; 2]),
            rx: Mutex::default(),
            tx: Mutex::default(),
            gone: AtomicBool::new(false),
            losses: Losses::default(),
            external: Default::default(),
            // Its time begins when it is opened; its air may have begun before.
            zero_ns: AtomicI64::new(-air.time_ns(None)),
            tx_rate: Mutex::default(),
            air,
        };
        Ok((radio, ignored))
    }

    /// The names of a direction's gain elements.
    pub(super) fn gains(direction: Direction) -> [&'static str; 2] {
        GAINS[direction as usize]
    }

    /// The index of a gain element that `name` means; none for a number that is no gain.
    fn element(direction: Direction, name: &str) -> Result<Option<usize>> {
        let Some(element) = name.strip_prefix("gain:") else { return Ok(None) };
        let names = Self::gains(direction);
        names.iter().position(|n| *n == element).map(Some).ok_or_else(|| Error::unknown("gain element", element, names))
    }

    /// Least, largest and step of a number; gain elements are `gain:NAME`.
    pub(super) fn range(direction: Direction, name: &str) -> Result<(f64, f64, f64)> {
        if Self::element(direction, name)?.is_some() {
            return Ok((0.0, ELEMENT_DB, 0.25));
        }
        let found = RANGES.iter().find(|range| range.0 == name).map(|range| (range.1, range.2, 0.0));
        found.ok_or_else(|| Error::unknown("number", name, RANGES.iter().map(|range| range.0)))
    }

    /// Sets a number. As drivers do, gains and bandwidths take the nearest value that there is; a frequency or rate that there is not is refused.
    pub(super) fn set(&self, direction: Direction, channel: usize, name: &str, value: f64) -> Result<()> {
        require(channel < CHANNELS, "channel", "between 0 and 3", channel as f64)?;
        require(!value.is_nan(), name, "a number", value)?;
        let element = Self::element(direction, name)?;
        let (low, high, _) = Self::range(direction, name)?;
        if ["frequency", "rate", "correction"].contains(&name) {
            require((low..=high).contains(&value), name, &format!("between {low} and {high}"), value)?;
        }
        if name == "rate" {
            return self.set_rate(direction, value);
        }
        let mut tuning = lock(&self.tuning);
        let tuned = &mut tuning[direction as usize][channel];
        match (element, name) {
            (Some(element), _) => tuned.gains[element] = value.clamp(low, high),
            (None, "frequency") => tuned.frequency = value,
            (None, "correction") => tuned.correction = value,
            (None, "gain_mode") => tuned.automatic_gain = value != 0.0,
            (None, "dc_mode") => tuned.automatic_dc = value != 0.0,
            _ => tuned.bandwidth = if value == 0.0 { 0.0 } else { value.clamp(low, high) },
        }
        if direction == Direction::Tx {
            self.air.tune(channel, tuned.frequency * (1.0 + 1e-6 * tuned.correction));
        }
        Ok(())
    }

    /// One rate for all channels of a direction; it may change at any time. The air has the receiver's, and until one is set, the transmitter's.
    fn set_rate(&self, direction: Direction, rate: f64) -> Result<()> {
        if direction == Direction::Tx {
            *lock(&self.tx_rate) = Some(rate);
        }
        if self.air.set_rate(rate, direction == Direction::Rx) { self.update() } else { Ok(()) }
    }

    /// Samples a second that it transmits: those that it receives, as long as nobody has set them.
    pub(super) fn tx_rate(&self) -> f64 {
        lock(&self.tx_rate).unwrap_or_else(|| self.air.rate())
    }

    fn rate(&self, direction: Direction) -> f64 {
        if direction == Direction::Tx { self.tx_rate() } else { self.air.rate() }
    }

    pub(super) fn get(&self, direction: Direction, channel: usize, name: &str) -> Result<f64> {
        require(channel < CHANNELS, "channel", "between 0 and 3", channel as f64)?;
        let element = Self::element(direction, name)?;
        Self::range(direction, name)?;
        let tuned = lock(&self.tuning)[direction as usize][channel];
        Ok(match (element, name) {
            (Some(element), _) => tuned.gains[element],
            (None, "rate") => self.rate(direction),
            (None, "frequency") => tuned.frequency,
            (None, "correction") => tuned.correction,
            (None, "gain_mode") => f64::from(u8::from(tuned.automatic_gain)),
            (None, "dc_mode") => f64::from(u8::from(tuned.automatic_dc)),
            _ if tuned.bandwidth == 0.0 => {
                let (low, high, _) = Self::range(direction, "bandwidth")?;
                self.rate(direction).clamp(low, high)
            }
            _ => tuned.bandwidth,
        })
    }

    /// How a receive channel stands.
    pub(super) fn tuned(&self, channel: usize) -> Tuned {
        let tuned = lock(&self.tuning)[Direction::Rx as usize][channel];
        Tuned {
            frequency: tuned.frequency * (1.0 + 1e-6 * tuned.correction),
            gain: amplitude(tuned.gains.iter().sum::<f64>() - UNITY_GAIN_DB),
            without_dc: tuned.automatic_dc,
        }
    }

    /// The overall gain of a transmit channel in dB above that at which 1 is 1.
    pub(super) fn drive_db(&self, channel: usize) -> f64 {
        lock(&self.tuning)[Direction::Tx as usize][channel].gains.iter().sum::<f64>() - UNITY_GAIN_DB
    }

    /// Automatic gain: a decibel at a time, down where a read has come near full scale and up where it has stayed far below.
    pub(super) fn level(&self, channel: usize, peak: f32) {
        let mut tuning = lock(&self.tuning);
        let tuned = &mut tuning[Direction::Rx as usize][channel];
        if !tuned.automatic_gain || (0.4..0.9).contains(&peak) {
            return;
        }
        let step: f64 = if peak < 0.4 { 1.0 } else { -1.0 };
        let overall = (tuned.gains.iter().sum::<f64>() + step).clamp(0.0, 2.0 * ELEMENT_DB);
        tuned.gains = [overall.min(ELEMENT_DB), (overall - ELEMENT_DB).max(0.0)];
    }

    /// Changes a setting. Delay and taps change when the receiver is activated next, the amplifier when the transmitter is set up next, the rest at once.
    pub(super) fn write_setting(&self, key: &str, value: &str) -> Result<()> {
        let mut changed = lock(&self.settings).clone();
        changed.set(key, value)?;
        changed.scenario(self.air.rate())?;
        *lock(&self.settings) = changed;
        self.update()
    }

    /// Brings a receiver that is running to the settings and the rate.
    fn update(&self) -> Result<()> {
        let mut rx = lock(&self.rx);
        let settings = lock(&self.settings).clone();
        rx.as_mut().map_or(Ok(()), |rx| rx.update(&settings, self.air.rate()))
    }

    pub(super) fn read_setting(&self, key: &str) -> Result<String> {
        lock(&self.settings).get(key, self.air.rate()).ok_or_else(|| Error::unknown("setting", key, Settings::names()))
    }

    /// All settings, a line for each: name, value, type, unit, least, largest, options (with bars between them), description.
    pub(super) fn settings_table(&self) -> String {
        let settings = lock(&self.settings);
        let line = |p: &Parameter| {
            let kind = match (p.range, p.whole) {
                (_, true) => "int",
                ((0.0, 0.0), false) if p.options == ["false", "true"] => "bool",
                ((0.0, 0.0), false) => "string",
                _ => "float",
            };
            // SoapyRemote has no infinity, and beyond 300 dB there is none to tell from it.
            let finite = |end: f64| if end.is_finite() { end } else { end.clamp(-300.0, 300.0) };
            let (low, high) = (finite(p.range.0), finite(p.range.1));
            let value = settings.get(p.name, self.air.rate()).unwrap_or_default();
            format!("{}\t{value}\t{kind}\t{}\t{low}\t{high}\t{}\t{}\n", p.name, p.unit, p.options.join("|"), p.about)
        };
        PARAMETERS.iter().map(line).collect()
    }

    /// A sensor: what was lost so far, or the true taps of a receive channel that is in use.
    pub(super) fn sensor(&self, channel: usize, key: &str) -> Result<String> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed).to_string();
        let losses = &self.losses;
        Ok(match key {
            "gap_samples" => count(&losses.gap_samples),
            "overflows" => count(&losses.overflows),
            "underflows" => count(&losses.underflows),
            "late" => count(&losses.late),
            "ref_locked" => (self.connected() || !self.external[0].load(Ordering::Relaxed)).to_string(),
            _ => {
                let tx = key.strip_prefix("taps_tx").and_then(|tx| tx.parse().ok()).filter(|&tx: &usize| tx < CHANNELS);
                let tx = tx.ok_or_else(|| Error::unknown("sensor", key, Self::sensors(true)))?;
                let taps = lock(&self.rx).as_ref().and_then(|rx| rx.taps(channel, tx)).unwrap_or_default();
                taps.iter().map(|z| format!("{}{:+}j", z.re, z.im)).collect::<Vec<_>>().join(" ")
            }
        })
    }

    /// The names of the sensors of the device, or of a receive channel.
    pub(super) fn sensors(of_channel: bool) -> Vec<String> {
        match of_channel {
            true => (0..CHANNELS).map(|tx| format!("taps_tx{tx}")).collect(),
            false => ["gap_samples", "overflows", "underflows", "late", "ref_locked"].map(String::from).into(),
        }
    }

    fn connected(&self) -> bool {
        lock(&self.settings).reference
    }

    /// Where `clock` or `time` comes from: internal or external.
    pub(super) fn source(&self, what: &str) -> &'static str {
        SOURCES[usize::from(self.external[usize::from(what == "time")].load(Ordering::Relaxed))]
    }

    pub(super) fn set_source(&self, what: &str, source: &str) -> Result<()> {
        let known = SOURCES.iter().position(|name| *name == source).ok_or_else(|| Error::unknown("source", source, SOURCES))?;
        self.external[usize::from(what == "time")].store(known > 0, Ordering::Relaxed);
        Ok(())
    }

    /// The time of a sample, or of now, by its clock.
    pub(super) fn time_ns(&self, sample: Option<u64>) -> i64 {
        self.air.time_ns(sample) + self.zero_ns.load(Ordering::Relaxed)
    }

    /// The time of the air at a time of its clock.
    pub(super) fn to_air(&self, time_ns: i64) -> i64 {
        time_ns - self.zero_ns.load(Ordering::Relaxed)
    }

    /// The clock shows `time_ns` now.
    pub(super) fn set_time(&self, time_ns: i64) {
        self.zero_ns.store(time_ns - self.air.time_ns(None), Ordering::Relaxed);
    }

    /// Sets the clock by so many samples, without a sample lost.
    pub(super) fn shift_clock(&self, samples: i64) {
        self.zero_ns.fetch_add((samples as f64 * 1e9 / self.air.rate()).round() as i64, Ordering::Relaxed);
    }

    /// The time of the last pulse, one at each whole second of the air, so that all radios in it see the same ones; none where no pulses come.
    pub(super) fn pulse_ns(&self) -> Option<i64> {
        let last = || self.air.last_pulse_ns() + self.zero_ns.load(Ordering::Relaxed);
        (self.connected() && self.source("time") != SOURCES[0]).then(last)
    }

    /// The clock shows `time_ns` at the next pulse.
    pub(super) fn set_time_at_pulse(&self, time_ns: i64) {
        self.zero_ns.store(time_ns - (self.air.last_pulse_ns() + PULSE_NS), Ordering::Relaxed);
    }

    /// Whether it has time.
    pub(super) fn has_time(&self) -> bool {
        lock(&self.settings).quirks.time_stamps != TimeStamps::None
    }

    pub(super) fn full_duplex(&self) -> bool {
        !lock(&self.settings).half_duplex
    }
}

pub(super) fn amplitude(db: f64) -> f32 {
    10f64.powf(db / 20.0) as f32
}
