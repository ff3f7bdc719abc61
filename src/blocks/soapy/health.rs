//! What happens to a radio's streams while they run.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use num_complex::Complex32;

use super::radio::LEAD_NS;
use crate::dsp::{Extent, db};

/// A received sample with a part this large was clipped by the converter: the largest code of 12 bits, which not every driver scales to 1, lies above.
pub(super) const ADC_CLIPS: f32 = 1.0 - 1.0 / 2048.0;

/// A transmitted sample with a part larger than this is clipped by the converter.
pub(super) const DAC_CLIPS: f32 = 1.0;

/// What has happened to the streams so far; counts only ever grow, but for a gap that turns out to be shorter than a time stamp had said.
#[derive(Debug, Default)]
pub struct Health {
    /// Samples received, of each channel.
    pub received: AtomicU64,
    /// Samples handed to the transmitter.
    pub sent: AtomicU64,
    /// Times that the receiver said that it lost samples.
    pub overflows: AtomicU64,
    /// Times that the transmitter ran dry.
    pub underflows: AtomicU64,
    /// Times that a stream was late, or that its clock went backwards.
    pub time_errors: AtomicU64,
    /// Calls in which nothing came or went for a tenth of a second.
    pub timeouts: AtomicU64,
    /// Packets that the driver called corrupt.
    pub corrupt: AtomicU64,
    /// Gaps in what the source puts out, the one at its end included.
    pub gaps: AtomicU64,
    /// Gaps of a length that nobody knows; a part of `gaps`.
    pub unknown_gaps: AtomicU64,
    /// Samples missing in those gaps, as far as it is known: what the driver lost by its time stamps, what was dropped, what was received while the transmitter was behind.
    pub gap_samples: AtomicU64,
    /// Samples dropped because the flowgraph did not keep up; a part of `gap_samples`.
    pub dropped: AtomicU64,
    /// Times that a device was lost and has come back.
    pub reconnects: AtomicU64,
    /// Samples waiting in the receive queue now.
    pub depth: AtomicUsize,
    /// The most samples that ever waited.
    pub deepest: AtomicUsize,
    /// The level of what was received.
    pub rx: Level,
    /// The level of what was transmitted.
    pub tx: Level,
}

/// Levels of a stream, over all of its channels, against the converter's full scale.
#[derive(Debug, Default)]
pub struct Level {
    samples: AtomicU64,
    clipped: AtomicU64,
    /// Largest part of a sample, as bits: numbers that are not negative are in the order of their bits.
    peak: AtomicU32,
    /// Sum of the samples' powers, as bits; one thread writes it.
    energy: AtomicU64,
}

impl Level {
    pub(super) fn note(&self, samples: &[Complex32], clips: f32) {
        let extent = Extent::of(samples, clips);
        self.samples.fetch_add(samples.len() as u64, Ordering::Relaxed);
        self.clipped.fetch_add(extent.beyond, Ordering::Relaxed);
        self.peak.fetch_max(extent.peak.to_bits(), Ordering::Relaxed);
        let before = f64::from_bits(self.energy.load(Ordering::Relaxed));
        self.energy.store((before + extent.energy).to_bits(), Ordering::Relaxed);
    }

    /// Samples that the converter clipped.
    pub fn clipped(&self) -> u64 {
        self.clipped.load(Ordering::Relaxed)
    }

    /// The largest real or imaginary part in dB of full scale.
    pub fn peak_dbfs(&self) -> f64 {
        let peak = f64::from(f32::from_bits(self.peak.load(Ordering::Relaxed)));
        db(peak * peak, 1.0)
    }

    /// The mean power in dB of that of a tone whose amplitude is full scale.
    pub fn mean_dbfs(&self) -> f64 {
        let samples = self.samples.load(Ordering::Relaxed).max(1);
        db(f64::from_bits(self.energy.load(Ordering::Relaxed)), samples as f64)
    }
}

impl Health {
    pub(super) fn count(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// All figures by name, for reports.
    pub(crate) fn figures(&self) -> Vec<(&'static str, f64)> {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        vec![
            ("received", of(&self.received)),
            ("sent", of(&self.sent)),
            ("overflows", of(&self.overflows)),
            ("underflows", of(&self.underflows)),
            ("time_errors", of(&self.time_errors)),
            ("timeouts", of(&self.timeouts)),
            ("corrupt", of(&self.corrupt)),
            ("gaps", of(&self.gaps)),
            ("unknown_gaps", of(&self.unknown_gaps)),
            ("gap_samples", of(&self.gap_samples)),
            ("dropped", of(&self.dropped)),
            ("reconnects", of(&self.reconnects)),
            ("queue_most", self.deepest.load(Ordering::Relaxed) as f64),
            ("rx_clipped", self.rx.clipped() as f64),
            ("rx_peak_dbfs", self.rx.peak_dbfs()),
            ("rx_mean_dbfs", self.rx.mean_dbfs()),
            ("tx_clipped", self.tx.clipped() as f64),
            ("tx_peak_dbfs", self.tx.peak_dbfs()),
            ("tx_mean_dbfs", self.tx.mean_dbfs()),
        ]
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} overflows, {} underflows, {} time errors, {} timeouts, {} gaps of {} samples ({} dropped by us), queue {} samples (most {})",
            of(&self.overflows),
            of(&self.underflows),
            of(&self.time_errors),
            of(&self.timeouts),
            of(&self.gaps),
            of(&self.gap_samples),
            of(&self.dropped),
            self.depth.load(Ordering::Relaxed),
            self.deepest.load(Ordering::Relaxed)
        )?;
        match of(&self.reconnects) {
            0 => {}
            times => write!(f, ", reconnects: {times}")?,
        }
        for (name, level) in [("received", &self.rx), ("transmitted", &self.tx)] {
            if level.samples.load(Ordering::Relaxed) > 0 {
                write!(f, "; {name} {:.1} dBFS, peak {:.1} dBFS, {} clipped", level.mean_dbfs(), level.peak_dbfs(), level.clipped())?;
            }
        }
        Ok(())
    }
}

/// A transmitter that has fallen behind.
pub(super) struct Relapse {
    /// Both ends have one time.
    one_time: bool,
    /// When the transmitter is back in its place, in nanoseconds of its clock.
    silent_until_ns: AtomicI64,
    /// It is back, and nobody knows where.
    displaced: AtomicBool,
}

impl Relapse {
    pub(super) fn new(one_time: bool) -> Self {
        Self { one_time, silent_until_ns: AtomicI64::new(i64::MIN), displaced: AtomicBool::new(false) }
    }

    /// The devices have been opened anew.
    pub(super) fn forget(&self) {
        self.silent_until_ns.store(i64::MIN, Ordering::Relaxed);
        self.displaced.store(false, Ordering::Relaxed);
    }

    /// The transmitter goes on at a time, where it would be had it not fallen behind; none when the device has no time.
    pub(super) fn note(&self, back_at_ns: Option<i64>) {
        match back_at_ns {
            Some(at) => self.silent_until_ns.store(at, Ordering::Relaxed),
            None => self.displaced.store(true, Ordering::Relaxed),
        }
    }

    /// Whether what was received at a time is nothing but silence, because the transmitter has fallen behind.
    pub(super) fn silent(&self, time_ns: Option<i64>) -> bool {
        let left = |time: i64| self.silent_until_ns.load(Ordering::Relaxed).saturating_sub(time);
        // Much longer than it ever takes, it is the clock that has been set.
        self.one_time && time_ns.is_some_and(|time| (1..=10 * LEAD_NS).contains(&left(time)))
    }

    /// Whether the transmitter has lost its place; once.
    pub(super) fn displaced(&self) -> bool {
        self.displaced.load(Ordering::Relaxed) && self.displaced.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_a_tone_and_clipping_is_counted_to_the_sample() {
        let level = Level::default();
        let tone: Vec<Complex32> = (0..4000).map(|n| Complex32::from_polar(0.5, 0.01 * n as f32)).collect();
        level.note(&tone, ADC_CLIPS);
        assert!((level.mean_dbfs() + 6.02).abs() < 0.01 && (level.peak_dbfs() + 6.02).abs() < 0.01);
        assert_eq!(level.clipped(), 0);
        level.note(&[Complex32::new(0.1, -1.0), Complex32::new(2047.5 / 2048.0, 0.0), Complex32::new(0.99, 0.99)], ADC_CLIPS);
        assert_eq!((level.clipped(), level.peak_dbfs()), (2, 0.0));
    }
}
