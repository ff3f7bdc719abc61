//! What an amplifier does to the envelope.

use num_complex::{Complex, Complex64};

use super::wide;
use crate::dsp::db;
use crate::{Error, Real, Result};

/// Mean power `Σ|x|² / n` of the finite samples; 0 when there are none.
pub fn power<T: Real>(samples: &[Complex<T>]) -> f64 {
    let (sum, count) = finite_powers(samples).fold((0.0, 0u64), |(sum, count), p| (sum + p, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Peak-to-average power ratio in dB, `10 log10(max|x|² / mean|x|²)`; 0 for silence.
pub fn papr_db<T: Real>(samples: &[Complex<T>]) -> f64 {
    db(finite_powers(samples).fold(0.0, f64::max), power(samples))
}

fn finite_powers<T: Real>(samples: &[Complex<T>]) -> impl Iterator<Item = f64> {
    samples.iter().map(|&z| wide(z).norm_sqr()).filter(|p| p.is_finite())
}

/// One point of a measured amplifier curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AmPoint {
    /// Input magnitude: rms of the samples in the bin.
    pub input: f64,
    /// Output magnitude that is coherent with the input.
    pub output: f64,
    /// Phase from input to output, in degrees.
    pub phase_deg: f64,
    /// Rms of what the point does not explain (memory, fading, noise), in units of output magnitude.
    pub spread: f64,
    /// Samples in the bin.
    pub samples: u64,
}

/// Measured AM/AM and AM/PM: complex gain over bins of the input magnitude, from aligned pairs.
///
/// The gain of a bin is the least-squares one, `Σ rx·conj(tx) / Σ|tx|²`, so noise averages out of it instead of adding to the magnitude.
///
/// ```
/// use kaflow::{Complex64, metrics::AmCurve};
/// let mut curve = AmCurve::new(10, 1.0)?;
/// for n in 1..100 {
///     let x = Complex64::from_polar(n as f64 / 100.0, n as f64);
///     curve.push(x, x * 2.0 * Complex64::i());
/// }
/// let points = curve.points();
/// assert_eq!(points.len(), 10);
/// assert!(points.iter().all(|p| (p.output / p.input - 2.0).abs() < 1e-9 && (p.phase_deg - 90.0).abs() < 1e-9));
/// # Ok::<_, kaflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AmCurve {
    largest: f64,
    bins: Vec<Bin>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    cross: Complex64,
    input: f64,
    output: f64,
    samples: u64,
}

impl AmCurve {
    /// `bins` equal steps of input magnitude from 0 to `largest`; what is larger counts in the last.
    pub fn new(bins: usize, largest: f64) -> Result<Self> {
        if bins == 0 {
            return Err(Error::parameter("bins", "at least 1", bins));
        }
        if !(largest > 0.0 && largest.is_finite()) {
            return Err(Error::parameter("largest magnitude", "positive", largest));
        }
        Ok(Self { largest, bins: vec![Bin::default(); bins] })
    }

    /// The curve of whole slices, up to their largest input magnitude. An error when the input is silent.
    pub(crate) fn measure<T: Real>(tx: &[Complex<T>], rx: &[Complex<T>], bins: usize) -> Result<Vec<AmPoint>> {
        let largest = finite_powers(tx).fold(0.0, f64::max).sqrt();
        if largest == 0.0 {
            return Err(Error::Data("the input is silent: there is no amplifier curve to measure".into()));
        }
        let mut curve = Self::new(bins, largest)?;
        tx.iter().zip(rx).for_each(|(&x, &y)| curve.push(x, y));
        Ok(curve.points())
    }

    /// Takes in one aligned pair; one that is not finite is left out.
    pub fn push<T: Real>(&mut self, tx: Complex<T>, rx: Complex<T>) {
        let (x, y) = (wide(tx), wide(rx));
        let (px, py) = (x.norm_sqr(), y.norm_sqr());
        if !(px.is_finite() && py.is_finite()) {
            return;
        }
        let index = (px.sqrt() / self.largest * self.bins.len() as f64) as usize;
        let last = self.bins.len() - 1;
        let bin = &mut self.bins[index.min(last)];
        bin.cross += y * x.conj();
        bin.input += px;
        bin.output += py;
        bin.samples += 1;
    }

    /// The curve so far; empty bins are left out.
    pub fn points(&self) -> Vec<AmPoint> {
        let point = |bin: &Bin| {
            let gain = bin.cross / bin.input;
            let n = bin.samples as f64;
            let input = (bin.input / n).sqrt();
            AmPoint {
                input,
                output: gain.norm() * input,
                phase_deg: gain.arg().to_degrees(),
                spread: ((bin.output - gain.norm_sqr() * bin.input) / n).max(0.0).sqrt(),
                samples: bin.samples,
            }
        };
        self.bins.iter().filter(|bin| bin.input > 0.0).map(point).collect()
    }
}
