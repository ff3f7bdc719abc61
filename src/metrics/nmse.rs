//! Normalised mean squared error.

use num_complex::Complex;

use crate::dsp::db;
use crate::{Error, Real, Result};

/// Which samples an average runs over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Memory {
    /// All since the start.
    All,
    /// The last so many, at least 1.
    Sliding(usize),
    /// All, each a factor `exp(−1/n)` less than the one after it, n > 0 in samples.
    Exponential(f64),
}

/// Running NMSE, `10 log10(Σ|y − p|² / Σ|y|²)`, where y was measured and p predicted.
///
/// 0 dB is what predicting nothing gives. [`Memory`] says which samples count; a pair that is not finite does not.
///
/// ```
/// use kaflow::{Complex64, metrics::{Memory, Nmse}};
/// let mut nmse = Nmse::new(Memory::All)?;
/// nmse.push(Complex64::new(0.0, 2.0), Complex64::new(0.0, 1.8));
/// assert!((nmse.db() + 20.0).abs() < 1e-9);
/// # Ok::<_, kaflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Nmse {
    memory: Memory,
    error: f64,
    power: f64,
    samples: u64,
    skipped: u64,
    ring: Vec<(f64, f64)>,
    next: usize,
    decay: f64,
}

impl Nmse {
    /// An empty average.
    pub fn new(memory: Memory) -> Result<Self> {
        let (slots, decay) = match memory {
            Memory::All => (0, 1.0),
            Memory::Sliding(0) => return Err(Error::parameter("window", "at least 1 sample", 0)),
            Memory::Sliding(samples) => (samples, 1.0),
            Memory::Exponential(samples) if samples > 0.0 => (0, (-1.0 / samples).exp()),
            Memory::Exponential(samples) => return Err(Error::parameter("time constant", "positive, in samples", samples)),
        };
        Ok(Self { memory, error: 0.0, power: 0.0, samples: 0, skipped: 0, ring: Vec::with_capacity(slots), next: 0, decay })
    }

    /// Takes in one pair, measured and predicted.
    pub fn push<T: Real>(&mut self, measured: Complex<T>, predicted: Complex<T>) {
        let (y, p) = (wide(measured), wide(predicted));
        let (error, power) = ((y - p).norm_sqr(), y.norm_sqr());
        if !(error.is_finite() && power.is_finite()) {
            self.skipped += 1;
            return;
        }
        self.samples += 1;
        match self.memory {
            Memory::Sliding(samples) if self.ring.len() < samples => self.ring.push((error, power)),
            Memory::Sliding(samples) => {
                let (old_error, old_power) = std::mem::replace(&mut self.ring[self.next], (error, power));
                self.next = (self.next + 1) % samples;
                if self.next == 0 {
                    // Once in a window the sums are taken afresh, or what was subtracted would leave its rounding for ever.
                    (self.error, self.power) = self.ring.iter().fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
                    return;
                }
                self.error = (self.error - old_error).max(0.0);
                self.power = (self.power - old_power).max(0.0);
            }
            Memory::All | Memory::Exponential(_) => {
                self.error *= self.decay;
                self.power *= self.decay;
            }
        }
        self.error += error;
        self.power += power;
    }

    /// Takes in as many pairs as the shorter slice has.
    pub fn extend<T: Real>(&mut self, measured: &[Complex<T>], predicted: &[Complex<T>]) {
        measured.iter().zip(predicted).for_each(|(&y, &p)| self.push(y, p));
    }

    /// The NMSE in dB, finite in every case (see [`db`](super::db)).
    pub fn db(&self) -> f64 {
        db(self.error, self.power)
    }

    /// The weighted sums `Σ|y − p|²` and `Σ|y|²`.
    pub fn sums(&self) -> (f64, f64) {
        (self.error, self.power)
    }

    /// Pairs taken in since the start.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Pairs that were not finite.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Forgets all pairs.
    pub fn reset(&mut self) {
        (self.error, self.power, self.samples, self.skipped, self.next) = (0.0, 0.0, 0, 0, 0);
        self.ring.clear();
    }
}

pub(super) fn wide<T: Real>(z: Complex<T>) -> Complex<f64> {
    Complex::new(z.re.wide(), z.im.wide())
}

/// NMSE of whole slices in dB; the shorter one counts.
pub fn nmse_db<T: Real>(measured: &[Complex<T>], predicted: &[Complex<T>]) -> f64 {
    let (error, power) = measured
        .iter()
        .zip(predicted)
        .map(|(&y, &p)| (wide(y), wide(p)))
        .map(|(y, p)| ((y - p).norm_sqr(), y.norm_sqr()))
        .filter(|(error, power)| error.is_finite() && power.is_finite())
        .fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
    db(error, power)
}

/// NMSE over time: for every whole stretch of `window` samples (0 counts as 1) its middle, in samples, and its NMSE in dB.
pub fn nmse_over_time<T: Real>(measured: &[Complex<T>], predicted: &[Complex<T>], window: usize) -> Vec<(f64, f64)> {
    let window = window.max(1);
    let stretches = measured.chunks_exact(window).zip(predicted.chunks_exact(window));
    stretches.enumerate().map(|(i, (y, p))| ((i as f64 + 0.5) * window as f64, nmse_db(y, p))).collect()
}
