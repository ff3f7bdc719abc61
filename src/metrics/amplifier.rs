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
pub(crate) struct AmPoint {
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

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    cross: Complex64,
    input: f64,
    output: f64,
    samples: u64,
}

/// Measured AM/AM and AM/PM of aligned pairs: complex gain over `bins` equal steps of the input magnitude; empty ones are left out, and so are samples that are not finite.
/// An error when the input is silent.
///
/// The gain of a bin is the least-squares one, `Σ rx·conj(tx) / Σ|tx|²`, so noise averages out of it instead of adding to the magnitude.
pub(crate) fn am_curve<T: Real>(tx: &[Complex<T>], rx: &[Complex<T>], bins: usize) -> Result<Vec<AmPoint>> {
    if bins == 0 {
        return Err(Error::parameter("bins", "at least 1", bins));
    }
    let largest = finite_powers(tx).fold(0.0, f64::max).sqrt();
    if largest == 0.0 {
        return Err(Error::Data("the input is silent: there is no amplifier curve to measure".into()));
    }
    let mut sums = vec![Bin::default(); bins];
    for (&x, &y) in tx.iter().zip(rx) {
        let (x, y) = (wide(x), wide(y));
        let (px, py) = (x.norm_sqr(), y.norm_sqr());
        if px.is_finite() && py.is_finite() {
            let bin = &mut sums[((px.sqrt() / largest * bins as f64) as usize).min(bins - 1)];
            bin.cross += y * x.conj();
            bin.input += px;
            bin.output += py;
            bin.samples += 1;
        }
    }
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
    Ok(sums.iter().filter(|bin| bin.input > 0.0).map(point).collect())
}
