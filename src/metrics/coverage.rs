//! Do the predicted variances hold?

use num_complex::Complex;

use super::nmse::wide;
use crate::{Error, Real, Result};

/// Counts how many samples lie in the interval that their predicted variance gives; a calibrated filter has `rate() ≈ level`.
///
/// The variance is that of the whole error, `E|y − p|²`. A complex error is taken to be circular, its interval a disc of radius
/// `sqrt(−ln(1 − level) · variance)`; a real one has the two-sided normal interval.
///
/// ```
/// use kaflow::{Complex64, metrics::Coverage};
/// let mut coverage = Coverage::complex(0.95)?;
/// coverage.push(Complex64::new(1.7, 0.0), Complex64::ZERO, 1.0); // the disc's radius is 1.731
/// coverage.push(Complex64::new(1.8, 0.0), Complex64::ZERO, 1.0);
/// assert_eq!(coverage.rate(), 0.5);
/// # Ok::<_, kaflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Coverage {
    level: f64,
    /// Squared radius for variance 1.
    radius: f64,
    inside: u64,
    samples: u64,
}

impl Coverage {
    /// For complex errors; `level` such as 0.95.
    pub fn complex(level: f64) -> Result<Self> {
        Self::with(level, |level| -libm::log1p(-level))
    }

    /// For real errors.
    pub fn real(level: f64) -> Result<Self> {
        Self::with(level, |level| normal_quantile((1.0 + level) / 2.0).powi(2))
    }

    fn with(level: f64, radius: impl Fn(f64) -> f64) -> Result<Self> {
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::parameter("level", "between 0 and 1", level));
        }
        Ok(Self { level, radius: radius(level), inside: 0, samples: 0 })
    }

    /// Takes in one sample with its prediction and the variance of that; where one of them is not finite (the filter does not know), it is left out.
    pub fn push<T: Real>(&mut self, measured: Complex<T>, predicted: Complex<T>, variance: T) {
        let error = (wide(measured) - wide(predicted)).norm_sqr();
        let variance = variance.wide();
        if error.is_finite() && variance.is_finite() {
            self.samples += 1;
            self.inside += u64::from(error <= self.radius * variance);
        }
    }

    /// The level asked for.
    pub fn level(&self) -> f64 {
        self.level
    }

    /// Samples that counted.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The fraction inside; NaN before the first sample.
    pub fn rate(&self) -> f64 {
        self.inside as f64 / self.samples as f64
    }
}

/// The standard normal quantile: `x` with `P(X ≤ x) = p`; infinite at 0 and 1, NaN outside.
///
/// ```
/// assert!((kaflow::metrics::normal_quantile(0.975) - 1.959963984540054).abs() < 1e-12);
/// ```
pub fn normal_quantile(p: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return match p {
            0.0 => f64::NEG_INFINITY,
            1.0 => f64::INFINITY,
            _ => f64::NAN,
        };
    }
    if p > 0.5 {
        // The lower tail is where erfc keeps its digits.
        return -normal_quantile(1.0 - p);
    }
    // Bisection needs no starting value and ends when the interval cannot be halved.
    let (mut low, mut high) = (-39.0, 0.0);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if 0.5 * libm::erfc(-middle / std::f64::consts::SQRT_2) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
}
