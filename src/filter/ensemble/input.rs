//! The input and its unit: its RMS, in steps of 3 dB and more.

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use super::planes::Planes;
use crate::Real;

/// Samples over which the power is averaged.
const WINDOW: f64 = 2000.0;
/// A cell whose power has left the unit by this factor (5 dB) may be the first at a new level; after so many samples of such cells, louder or quieter, it is.
const STEP: f64 = 3.0;
const STEP_UP: f64 = 128.0;
const STEP_DOWN: f64 = 256.0;
/// Samples during which the unit is the mean power so far.
const START: f64 = 64.0;
/// The unit changes when the power has left it by this factor (3 dB): ordinary fluctuations leave it alone.
const HYSTERESIS: f64 = 2.0;
/// Power above which a sample is a glitch, in units of the mean power (OFDM peaks at 12 dB, real Gaussian data at 14 dB).
const GLITCH: f64 = 1e3;
/// So many samples in a row that do not fit are a signal that begins.
const BEGIN: u32 = 8;
/// The most that one sample counts, in units of the mean power.
const LOUDEST: f64 = 50.0;
/// Below this part of the unit's power a sample is silence, and counts so much less that pauses do not change the unit.
const QUIET: f64 = 1e-4;
const QUIET_WEIGHT: f64 = 0.01;

/// Samples as they came, with their running power.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Input<T: Real> {
    pub(super) x: Planes<T>,
    mean: f64,
    count: f64,
    unit: f64,
    odd: u32,
    // Of the samples since the power was last settled.
    sum: f64,
    weight: f64,
    // Power of all of them that are not zero, and how many there are.
    plain: (f64, f64),
    // The same of the cell before, and how many samples there were in a row that may be at a new level, louder or quieter.
    recent: (f64, f64),
    step: f64,
}

/// What happened to the unit.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    None,
    /// Its amplitude grew by this factor.
    Grown(f64),
    /// What came before was not the signal: it begins here.
    Begin,
}

impl<T: Real> Input<T> {
    pub(super) fn new(history: usize) -> Self {
        Self::behind(Planes::new(history))
    }

    /// Nothing is known but the samples.
    fn behind(x: Planes<T>) -> Self {
        Self { x, mean: 0.0, count: 0.0, unit: 0.0, odd: 0, sum: 0.0, weight: 0.0, plain: (0.0, 0.0), recent: (0.0, 0.0), step: 0.0 }
    }

    /// One over the RMS; zero as long as there was only silence.
    pub(super) fn inverse(&self) -> f64 {
        if self.unit > 0.0 { self.unit.sqrt().recip() } else { 0.0 }
    }

    /// Whether the unit changes with every sample.
    pub(super) fn is_starting(&self) -> bool {
        self.count < START
    }

    pub(super) fn is_sound(&self, history: usize) -> bool {
        let numbers = [
            self.mean,
            self.count,
            self.unit,
            self.sum,
            self.weight,
            self.plain.0,
            self.plain.1,
            self.recent.0,
            self.recent.1,
            self.step.abs(),
        ];
        self.x.fits(history) && numbers.iter().all(|x| x.is_finite() && *x >= 0.0) && self.odd <= BEGIN
    }

    /// Takes in samples, the first one at place `at` of the planes; a glitch counts as zero.
    pub(super) fn take(&mut self, at: usize, tx: &[Complex<T>]) {
        if !self.take_usual(at, tx) {
            self.take_any(at, tx);
        }
    }

    /// Takes in samples none of which is a glitch, very loud or silence; false where one is, or may be.
    fn take_usual(&mut self, at: usize, tx: &[Complex<T>]) -> bool {
        let (low, high) = (T::of(1.01 * QUIET * self.unit), T::of(0.99 * LOUDEST * self.mean));
        let usual = |x: &Complex<T>| (x.norm_sqr() > low) & (x.norm_sqr() < high);
        if self.count <= START || self.odd >= BEGIN || tx.is_empty() || !tx.iter().fold(true, |all, x| all & usual(x)) {
            return false;
        }
        let range = at..at + tx.len();
        // One after the other: it must not matter where calls end.
        let (mut sum, mut plain) = (self.sum, self.plain.0);
        for ((x, re), im) in tx.iter().zip(&mut self.x.re[range.clone()]).zip(&mut self.x.im[range]) {
            (*re, *im) = (x.re, x.im);
            let power = x.re.wide() * x.re.wide() + x.im.wide() * x.im.wide();
            (sum, plain) = (sum + power, plain + power);
        }
        (self.sum, self.plain.0) = (sum, plain);
        self.weight += tx.len() as f64;
        self.plain.1 += tx.len() as f64;
        self.odd = 0;
        true
    }

    fn take_any(&mut self, at: usize, tx: &[Complex<T>]) {
        for (i, &x) in tx.iter().enumerate() {
            let power = x.re.wide() * x.re.wide() + x.im.wide() * x.im.wide();
            if self.unit == 0.0 && power > 0.0 {
                (self.mean, self.unit) = (power, power);
            }
            let glitch = self.count > START && power > GLITCH * self.mean;
            let odd = glitch || self.count <= START && power > 0.0 && power * GLITCH < self.mean;
            self.odd = if self.odd >= BEGIN {
                BEGIN
            } else if odd {
                self.odd + 1
            } else {
                0
            };
            self.x.set(at + i, if glitch { Complex::default() } else { x });
            let weight = if power < QUIET * self.unit { QUIET_WEIGHT } else { 1.0 };
            if power > 0.0 && self.is_starting() {
                self.count += 1.0;
                self.mean += (power - self.mean) / self.count;
                self.unit = self.mean;
            } else if power > 0.0 {
                self.sum += weight * power.min(LOUDEST * self.mean);
                self.weight += weight;
                if !glitch {
                    self.plain = (self.plain.0 + power, self.plain.1 + 1.0);
                }
            }
        }
    }

    /// Settles the power after some samples.
    pub(super) fn settle(&mut self) -> Change {
        if self.odd >= BEGIN {
            *self = Self::behind(self.x.clone());
            return Change::Begin;
        }
        if self.weight == 0.0 {
            return Change::None;
        }
        let (mean, weight) = (self.sum / self.weight, self.weight);
        (self.sum, self.weight) = (0.0, 0.0);
        let plain = std::mem::take(&mut self.plain);
        if plain.1 == 0.0 {
            return Change::None;
        }
        let recent = std::mem::replace(&mut self.recent, plain);
        let level = plain.0 / plain.1 / self.unit;
        // Samples in a row are counted upwards where they are louder, downwards where they are quieter.
        self.step = match level {
            _ if level > STEP => self.step.max(0.0) + plain.1,
            _ if level * STEP < 1.0 => self.step.min(0.0) - plain.1,
            _ => 0.0,
        };
        if self.step >= STEP_UP || -self.step >= STEP_DOWN {
            // The first cell in the row began at the old level: the last two know the new one.
            let power = (plain.0 + recent.0) / (plain.1 + recent.1);
            let ratio = (power / self.unit).sqrt();
            (self.mean, self.unit, self.count, self.step) = (power, power, START.max(plain.1 + recent.1), 0.0);
            return Change::Grown(ratio);
        }
        if self.step != 0.0 {
            // Not before it is known which level this is.
            return Change::None;
        }
        self.count = (self.count + weight).min(WINDOW);
        self.mean += (mean - self.mean) * (weight / self.count).min(1.0);
        if self.mean > HYSTERESIS * self.unit || HYSTERESIS * self.mean < self.unit {
            let ratio = (self.mean / self.unit).sqrt();
            self.unit = self.mean;
            return Change::Grown(ratio);
        }
        Change::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the unit is after samples of some amplitude, in cells of 64.
    fn after(input: &mut Input<f64>, amplitude: f64, cells: usize) -> (f64, usize) {
        let mut changes = 0;
        for _ in 0..cells {
            // Envelopes that vary, with a mean power of 1.
            let x: Vec<_> = (0..64).map(|n| Complex::from_polar(amplitude * if n % 2 == 0 { 1.3416 } else { 0.4472 }, n as f64)).collect();
            input.take(16, &x);
            changes += usize::from(input.settle() != Change::None);
        }
        (1.0 / input.inverse(), changes)
    }

    #[test]
    fn the_unit_follows_steps_and_overlooks_glitches_and_pauses() {
        for step in [0.001, 0.1, 0.4, 2.5, 10.0, 20.0] {
            let mut input = Input::new(16);
            let (unit, _) = after(&mut input, 1.0, 40);
            assert!((unit - 1.0).abs() < 0.05, "{unit}");
            let (unit, changes) = after(&mut input, step, 6);
            assert!((unit / step - 1.0).abs() < 0.1 && changes == 1, "step by {step}: {unit} after {changes} changes");
        }
        let mut input = Input::new(16);
        after(&mut input, 1.0, 40);
        input.take(16, &[Complex::new(1e6, 0.0)]);
        assert_eq!(input.settle(), Change::None);
        let (unit, changes) = after(&mut input, 0.0, 100);
        assert!((unit - 1.0).abs() < 0.05 && changes == 0, "{unit}");
    }
}
