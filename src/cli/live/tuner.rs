//! The radio's settings while it runs, for the viewers of `--serve`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use serde_json::{Map, Value, json};
use soapysdr::{Args, Device, Direction};

use crate::blocks::{Devices, End, Health, Radio, RadioConfig};
use crate::cli::run::dashboard::Tuner;
use crate::{Error, Result};

/// What can be changed, and within what.
pub(super) struct Dials {
    devices: Arc<Devices>,
    /// Centre frequency of the ends that have none of their own, in Hz.
    frequency: f64,
    dials: Vec<Dial>,
    /// The factor on what is transmitted, as the bits of an f32.
    drive: Arc<AtomicU32>,
    /// Mean power that is transmitted at a factor of 1, in dB relative to full scale.
    level_dbfs: f64,
    health: Arc<Health>,
    queue: usize,
}

struct Dial {
    name: &'static str,
    label: &'static str,
    unit: &'static str,
    low: f64,
    high: f64,
}

/// How far below the command line's the transmit level can be set, in dB.
const DEEPEST_DB: f64 = 60.0;

const MHZ: f64 = 1e6;

impl Dials {
    /// The settings of a radio as it was opened: the transmitter's gain and level only ever go down from there.
    pub(super) fn new(radio: &Radio, config: &RadioConfig, backoff_db: f64) -> Self {
        let devices = radio.devices();
        let mut dials = Vec::new();
        let mut range: Option<(f64, f64)> = None;
        for (device, end, direction) in ends(&devices) {
            let ranges = device.frequency_range(direction, first(end)).unwrap_or_default();
            let low = ranges.iter().map(|r| r.minimum).fold(f64::INFINITY, f64::min);
            let high = ranges.iter().map(|r| r.maximum).fold(f64::NEG_INFINITY, f64::max);
            if low <= high {
                range = Some(range.map_or((low, high), |(a, b)| (low.max(a), high.min(b))));
            }
        }
        if let Some((low, high)) = range.filter(|(low, high)| low < high) {
            dials.push(Dial { name: "frequency", label: "Frequency", unit: "MHz", low: low / MHZ, high: high / MHZ });
        }
        for (device, end, direction) in ends(&devices) {
            let (Ok(range), Some(now)) = (device.gain_range(direction, first(end)), devices.read_back(direction)) else { continue };
            let now = now.gain;
            dials.push(match direction {
                Direction::Rx => Dial { name: "rx-gain", label: "Receive gain", unit: "dB", low: range.minimum, high: range.maximum },
                Direction::Tx => Dial { name: "tx-gain", label: "Transmit gain", unit: "dB", low: range.minimum.min(now), high: now },
            });
        }
        if config.tx.is_some() {
            dials.push(Dial { name: "tx-level", label: "Transmit level", unit: "dBFS", low: -backoff_db - DEEPEST_DB, high: -backoff_db });
        }
        let frequency = config.frequency;
        Self { devices, frequency, dials, drive: radio.drive(), level_dbfs: -backoff_db, health: radio.health(), queue: config.queue }
    }

    /// For each channel of the directions that `wanted` names.
    fn each(&self, wanted: Option<Direction>, set: impl Fn(&Device, &End, Direction, usize) -> Result<(), soapysdr::Error>) -> Result<()> {
        for (device, end, direction) in ends(&self.devices).filter(|(.., d)| wanted.is_none_or(|w| w == *d)) {
            for &channel in &end.channels {
                set(&device, end, direction, channel).map_err(|e| Error::Data(format!("the radio refuses: {}", e.message)))?;
            }
        }
        Ok(())
    }

    /// Tunes all ends, as far apart as they were: the first is at `frequency`.
    fn tune(&self, frequency: f64) -> Result<()> {
        let own = |end: &End| end.frequency.unwrap_or(self.frequency);
        let apart = ends(&self.devices).next().map_or(0.0, |(_, end, _)| own(end));
        self.each(None, |device, end, direction, channel| {
            let mut arguments = Args::new();
            if let Some(offset) = end.lo_offset {
                arguments.set("OFFSET", offset.to_string());
            }
            device.set_frequency(direction, channel, frequency + own(end) - apart, arguments)
        })
    }

    fn read(&self, dial: &Dial) -> Option<f64> {
        let gain = |direction| self.devices.get(direction).and_then(|(device, end)| device.gain(direction, first(end)).ok());
        let value = match dial.name {
            "frequency" => {
                let (device, end, direction) = ends(&self.devices).next()?;
                device.frequency(direction, first(end)).ok()? / MHZ
            }
            "rx-gain" => gain(Direction::Rx)?,
            "tx-gain" => gain(Direction::Tx)?,
            _ => {
                let factor = f64::from(f32::from_bits(self.drive.load(Ordering::Relaxed)));
                // The factor is in single precision: what lies beyond these digits is none of the user's.
                (1e4 * (self.level_dbfs + crate::dsp::db(factor * factor, 1.0))).round() / 1e4
            }
        };
        Some(value).filter(|v| v.is_finite())
    }
}

/// Those that are open.
fn ends(devices: &Devices) -> impl Iterator<Item = (Device, &End, Direction)> {
    [Direction::Rx, Direction::Tx].into_iter().filter_map(|direction| devices.get(direction).map(|(device, end)| (device, end, direction)))
}

fn first(end: &End) -> usize {
    end.channels.first().copied().unwrap_or(0)
}

impl Tuner for Dials {
    fn settings(&self) -> Vec<Value> {
        self.dials.iter().map(|d| json!({ "name": d.name, "label": d.label, "unit": d.unit, "low": d.low, "high": d.high })).collect()
    }

    fn transmits(&self) -> bool {
        self.devices.get(Direction::Tx).is_some()
    }

    fn state(&self) -> Value {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let settings: Map<_, _> = self.dials.iter().map(|dial| (dial.name.to_owned(), json!(self.read(dial)))).collect();
        json!({
            "settings": settings,
            "received": of(&self.health.received),
            "overflows": of(&self.health.overflows),
            "underflows": of(&self.health.underflows),
            "gap_samples": of(&self.health.gap_samples),
            "level_dbfs": self.health.rx.mean_dbfs(),
            "peak_dbfs": self.health.rx.peak_dbfs(),
            "clipped": self.health.rx.clipped(),
            "dropped": of(&self.health.dropped),
            "queue": self.health.depth.load(Ordering::Relaxed),
            "queue_size": self.queue,
        })
    }

    fn set(&self, setting: &str, value: f64) -> Result<()> {
        let unknown = || Error::unknown("setting", setting, self.dials.iter().map(|d| d.name));
        let dial = self.dials.iter().find(|d| d.name == setting).ok_or_else(unknown)?;
        // The last digits are lost on the way to the page and back.
        let slack = 1e-9 * (dial.high - dial.low).abs();
        if !(dial.low - slack..=dial.high + slack).contains(&value) {
            return Err(Error::parameter(dial.label, format!("between {} and {} {}", dial.low, dial.high, dial.unit), value));
        }
        let value = value.clamp(dial.low, dial.high);
        match dial.name {
            "frequency" => self.tune(value * MHZ),
            "rx-gain" => self.each(Some(Direction::Rx), |device, _, direction, channel| device.set_gain(direction, channel, value)),
            "tx-gain" => self.each(Some(Direction::Tx), |device, _, direction, channel| device.set_gain(direction, channel, value)),
            _ => {
                let factor = 10f32.powf((value - self.level_dbfs) as f32 / 20.0).min(1.0);
                self.drive.store(factor.to_bits(), Ordering::Relaxed);
                Ok(())
            }
        }
    }
}
