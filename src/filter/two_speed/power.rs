//! The unit of the input: its RMS, in steps.

use serde::{Deserialize, Serialize};

/// Samples over which the power is averaged.
const WINDOW: f64 = 4096.0;
/// The unit changes when the power has left it by this factor (3 dB): ordinary fluctuations leave it alone.
const HYSTERESIS: f64 = 2.0;
/// Power above which a sample is a glitch, in units of the mean power (OFDM peaks at 12 dB, real Gaussian data at 14 dB).
const GLITCH: f64 = 1e3;
/// So many samples in a row that do not fit are a signal that begins.
const BEGIN: u32 = 8;
/// The most that one sample counts, in units of the mean power: a glitch alone cannot change the unit.
const LOUDEST: f64 = 1e2;
/// Below this part of the unit's power a sample is silence: it counts `HUSH` times less, so that pauses do not change the unit.
const SILENCE: f64 = 1e-4;
const HUSH: f64 = 0.01;

/// Running power of a stream and the unit derived from it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Power {
    mean: f64,
    count: f64,
    pace: f64,
    /// Power of the unit; zero before the first sample that is not zero.
    unit: f64,
    // Samples in a row that do not fit the power.
    odd: u32,
}

/// What a sample does to the unit.
pub(super) enum Change {
    /// Nothing.
    None,
    /// Its amplitude grows by this factor.
    Grow(f64),
    /// Nothing, and the sample is too large to be one.
    Glitch,
    /// What came before was not the signal: it begins here.
    Restart,
}

impl Power {
    /// `1 / RMS`, or zero as long as there was only silence.
    pub(super) fn inverse(&self) -> f64 {
        if self.unit > 0.0 { self.unit.sqrt().recip() } else { 0.0 }
    }

    /// Whether a stream can have led here.
    pub(super) fn is_sound(&self) -> bool {
        [self.mean, self.count, self.pace, self.unit].iter().all(|x| x.is_finite() && *x >= 0.0) && self.odd <= BEGIN
    }

    /// A state that only a forger writes.
    #[cfg(test)]
    pub(super) fn forge(&mut self) {
        self.odd = u32::MAX;
    }

    fn begin(&mut self, power: f64) {
        *self = Self { mean: power, count: 1.0, pace: 1.0, unit: power, odd: 0 };
    }

    /// Takes in the power of a sample that changes nothing; of another one it takes in nothing and says no.
    #[inline(always)]
    pub(super) fn steady(&mut self, power: f64) -> bool {
        if power == 0.0 {
            return true;
        }
        let next = self.with(power);
        let steady = self.count > 0.0 && !self.is_odd(power) && !next.has_left();
        if steady {
            *self = next;
        }
        steady
    }

    /// Takes in the power of a sample.
    pub(super) fn push(&mut self, power: f64) -> Change {
        if self.steady(power) {
            return Change::None;
        }
        if self.count == 0.0 {
            self.begin(power);
            return Change::None;
        }
        let (odd, glitch) = (self.is_odd(power), power > self.mean);
        let run = if odd { self.odd + 1 } else { 0 };
        if run == BEGIN {
            self.begin(power);
            return Change::Restart;
        }
        *self = Self { odd: run, ..self.with(power) };
        if self.has_left() {
            let ratio = self.mean / self.unit;
            self.unit = self.mean;
            return Change::Grow(ratio.sqrt());
        }
        if odd && glitch { Change::Glitch } else { Change::None }
    }

    /// Whether a sample does not fit the power: a glitch, or what follows one at the very start, which leaves all that comes far below it.
    #[inline(always)]
    fn is_odd(&self, power: f64) -> bool {
        if self.count > 64.0 { power > GLITCH * self.mean } else { power * GLITCH < self.mean }
    }

    /// After a sample.
    #[inline(always)]
    fn with(&self, power: f64) -> Self {
        let (count, pace) = if self.count < WINDOW { (self.count + 1.0, (self.count + 1.0).recip()) } else { (self.count, self.pace) };
        let weight = if power < SILENCE * self.unit { HUSH } else { 1.0 };
        let mean = self.mean + weight * (power.min(LOUDEST * self.mean) - self.mean) * pace;
        Self { mean, count, pace, unit: self.unit, odd: 0 }
    }

    /// Whether the power has left its unit.
    #[inline(always)]
    fn has_left(&self) -> bool {
        self.mean > HYSTERESIS * self.unit || (HYSTERESIS * self.mean < self.unit && self.mean > f64::MIN_POSITIVE)
    }
}
