//! Errors of points and of bits.

use num_complex::Complex;

use super::wide;
use crate::Real;
use crate::dsp::db;

/// Running error vector magnitude: rms of the error over rms of the ideal points.
///
/// ```
/// use kaflow::{Complex32, metrics::Evm};
/// let mut evm = Evm::default();
/// evm.push(Complex32::new(1.1, 0.0), Complex32::new(1.0, 0.0));
/// assert!((evm.percent() - 10.0).abs() < 1e-4 && (evm.db() + 20.0).abs() < 1e-4);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evm {
    error: f64,
    power: f64,
    points: u64,
}

impl Evm {
    /// Takes in one point, received and ideal; a pair that is not finite is left out.
    pub fn push<T: Real>(&mut self, received: Complex<T>, ideal: Complex<T>) {
        let (z, ideal) = (wide(received), wide(ideal));
        let (error, power) = ((z - ideal).norm_sqr(), ideal.norm_sqr());
        if error.is_finite() && power.is_finite() {
            self.error += error;
            self.power += power;
            self.points += 1;
        }
    }

    /// Adds what another one has seen.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.error += other.error;
        self.power += other.power;
        self.points += other.points;
    }

    /// The ratio of the two rms values; 0 before the first point.
    pub(crate) fn rms(&self) -> f64 {
        if self.power > 0.0 { (self.error / self.power).sqrt() } else { 0.0 }
    }

    /// The same in percent.
    pub fn percent(&self) -> f64 {
        100.0 * self.rms()
    }

    /// The same in dB, `20 log10(rms)`, finite in every case.
    pub fn db(&self) -> f64 {
        db(self.error, self.power)
    }

    /// Points taken in.
    pub(crate) fn points(&self) -> u64 {
        self.points
    }
}

/// Running bit error rate.
///
/// ```
/// let mut ber = kaflow::metrics::Ber::default();
/// ber.extend(&[0, 1, 1, 0], &[0, 1, 0, 0]);
/// assert_eq!((ber.errors, ber.bits, ber.rate()), (1, 4, 0.25));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ber {
    /// Wrong bits.
    pub errors: u64,
    /// Bits compared.
    pub bits: u64,
}

impl Ber {
    /// Compares bits, one to a byte (the lowest counts). Bits that only one side has are errors: they were lost, or never sent.
    pub fn extend(&mut self, sent: &[u8], received: &[u8]) {
        let wrong = sent.iter().zip(received).filter(|(a, b)| (*a ^ *b) & 1 == 1).count();
        self.errors += (wrong + sent.len().abs_diff(received.len())) as u64;
        self.bits += sent.len().max(received.len()) as u64;
    }

    /// Wrong bits over bits; 0 before the first.
    pub fn rate(&self) -> f64 {
        if self.bits == 0 { 0.0 } else { self.errors as f64 / self.bits as f64 }
    }
}
