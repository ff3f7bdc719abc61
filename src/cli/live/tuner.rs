//! The radio's settings while it runs, for the viewers of `--serve`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use serde_json::{Map, Value, json};
use soapysdr::{Device, Direction};

use crate::blocks::{Health, Radio, RadioConfig};
use crate::cli::run::dashboard::Tuner;
use crate::{Error, Result};

/// What can be changed, and within what.
pub(super) struct Dials {
    rx: Option<(Device, Vec<usize>)>,
    tx: Option<(Device, Vec<usize>)>,
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
        let end = |device: Option<&Device>, channels: &[usize]| device.map(|device| (device.clone(), channels.to_vec()));
        let channels = |end: &Option<crate::blocks::End>| end.as_ref().map(|end| end.channels.clone()).unwrap_or_default();
        let (rx, tx) = (end(radio.rx_device(), &channels(&config.rx)), end(radio.tx_device(), &channels(&config.tx)));
        let mut dials = Vec::new();
        let ends = [(&rx, Direction::Rx), (&tx, Direction::Tx)];
        let first = |channels: &[usize]| channels.first().copied().unwrap_or(0);
        let mut range: Option<(f64, f64)> = None;
        for (end, direction) in &ends {
            let Some((device, channels)) = end else { continue };
            let ranges = device.frequency_range(*direction, first(channels)).unwrap_or_default();
            let low = ranges.iter().map(|r| r.minimum).fold(f64::INFINITY, f64::min);
            let high = ranges.iter().map(|r| r.maximum).fold(f64::NEG_INFINITY, f64::max);
            if low <= high {
                range = Some(range.map_or((low, high), |(a, b)| (low.max(a), high.min(b))));
            }
        }
        if let Some((low, high)) = range.filter(|(low, high)| low < high) {
            dials.push(Dial { name: "frequency", label: "Frequency", unit: "MHz", low: low / MHZ, high: high / MHZ });
        }
        for (end, direction) in &ends {
            let Some((device, channels)) = end else { continue };
            let channel = first(channels);
            let (Ok(range), Ok(now)) = (device.gain_range(*direction, channel), device.gain(*direction, channel)) else { continue };
            dials.push(match direction {
                Direction::Rx => Dial { name: "rx-gain", label: "Receive gain", unit: "dB", low: range.minimum, high: range.maximum },
                Direction::Tx => Dial { name: "tx-gain", label: "Transmit gain", unit: "dB", low: range.minimum.min(now), high: now },
            });
        }
        if tx.is_some() {
            dials.push(Dial { name: "tx-level", label: "Transmit level", unit: "dBFS", low: -backoff_db - DEEPEST_DB, high: -backoff_db });
        }
        Self { rx, tx, dials, drive: radio.drive(), level_dbfs: -backoff_db, health: radio.health(), queue: config.queue }
    }

    fn ends(&self) -> impl Iterator<Item = (&Device, &[usize], Direction)> {
        let ends = [(&self.rx, Direction::Rx), (&self.tx, Direction::Tx)];
        ends.into_iter().filter_map(|(end, direction)| end.as_ref().map(|(device, channels)| (device, &channels[..], direction)))
    }

    /// For each channel of the directions that `wanted` names.
    fn each(&self, wanted: Option<Direction>, set: impl Fn(&Device, Direction, usize) -> Result<(), soapysdr::Error>) -> Result<()> {
        for (device, channels, direction) in self.ends().filter(|(.., d)| wanted.is_none_or(|w| w == *d)) {
            for &channel in channels {
                set(device, direction, channel).map_err(|e| Error::Data(format!("the radio refuses: {}", e.message)))?;
            }
        }
        Ok(())
    }

    fn read(&self, dial: &Dial) -> Option<f64> {
        let of = |direction: Direction| {
            self.ends().find(|(.., d)| *d == direction).map(|(device, channels, _)| (device, channels.first().copied().unwrap_or(0)))
        };
        let value = match dial.name {
            "frequency" => {
                let (device, channels, direction) = self.ends().next()?;
                device.frequency(direction, *channels.first()?).ok()? / MHZ
            }
            "rx-gain" => of(Direction::Rx).and_then(|(device, channel)| device.gain(Direction::Rx, channel).ok())?,
            "tx-gain" => of(Direction::Tx).and_then(|(device, channel)| device.gain(Direction::Tx, channel).ok())?,
            _ => {
                let factor = f64::from(f32::from_bits(self.drive.load(Ordering::Relaxed)));
                // The factor is in single precision: what lies beyond these digits is none of the user's.
                (1e4 * (self.level_dbfs + crate::dsp::db(factor * factor, 1.0))).round() / 1e4
            }
        };
        Some(value).filter(|v| v.is_finite())
    }
}

impl Tuner for Dials {
    fn settings(&self) -> Vec<Value> {
        self.dials.iter().map(|d| json!({ "name": d.name, "label": d.label, "unit": d.unit, "low": d.low, "high": d.high })).collect()
    }

    fn transmits(&self) -> bool {
        self.tx.is_some()
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
            "frequency" => self.each(None, |device, direction, channel| device.set_frequency(direction, channel, value * MHZ, ())),
            "rx-gain" => self.each(Some(Direction::Rx), |device, direction, channel| device.set_gain(direction, channel, value)),
            "tx-gain" => self.each(Some(Direction::Tx), |device, direction, channel| device.set_gain(direction, channel, value)),
            _ => {
                let factor = 10f32.powf((value - self.level_dbfs) as f32 / 20.0).min(1.0);
                self.drive.store(factor.to_bits(), Ordering::Relaxed);
                Ok(())
            }
        }
    }
}
