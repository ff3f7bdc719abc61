//! How linear a transmitter is: what it adds to its own channel and to those beside it.

use num_complex::{Complex, Complex64};

use super::{power, welch, wide};
use crate::dsp::{Fourier, db};
use crate::{Error, Real, Result};

/// A channel around 0 Hz and its neighbours, in cycles a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Integration bandwidth of the channel and of each neighbour.
    pub width: f64,
    /// From the channel's middle to a neighbour's.
    pub spacing: f64,
}

/// Samples for each cycle of a signal's bandwidth that are needed to see both neighbours.
pub(crate) const LEAST_OVERSAMPLING: f64 = 3.0;

/// Of the power, what lies inside a signal's band.
const INSIDE: f64 = 0.998;

/// The longest windows of a spectrum.
const LONGEST: usize = 4096;

impl Band {
    /// The band of `width`, else that of the signal itself; the neighbours 2 % beyond, else at `spacing`. An error where they are not observed: an oversampling of at least 3 is needed.
    pub(crate) fn of<T: Real>(signal: &[Complex<T>], width: Option<f64>, spacing: Option<f64>) -> Result<Self> {
        let found = || -> Result<f64> {
            let (low, high) = welch(signal, window(signal.len())?, 1.0)?.occupied(INSIDE);
            Ok(2.0 * high.max(-low))
        };
        let width = width.map_or_else(found, Ok)?;
        if !(width > 0.0 && width.is_finite()) {
            return Err(Error::parameter("bandwidth", "positive", width));
        }
        if width * LEAST_OVERSAMPLING > 1.0 + 1e-9 {
            let problem = format!(
                "sampled at {:.2} times the signal's bandwidth; predistortion needs at least 3 to see what falls beside it",
                1.0 / width
            );
            return Err(Error::Data(format!("{problem}: record at a higher rate, or resample both recordings")));
        }
        let spacing = spacing.unwrap_or((1.02 * width).min(0.5 - width / 2.0));
        Ok(Self { width, spacing })
    }
}

/// What a transmitter does to a signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linearity {
    /// Power in the lower and in the upper neighbour over that in the channel (ACLR), in dBc.
    pub aclr_dbc: (f64, f64),
    /// Error vector magnitude in dB: what is left in the channel when every frequency is equalised, as an OFDM receiver does, over what is equalised.
    pub evm_db: f64,
    /// All that one complex gain does not explain, in dB.
    pub nmse_db: f64,
}

/// A window that leaves enough of them to average.
fn window(samples: usize) -> Result<usize> {
    let size = LONGEST.min((samples / 8 + 1).next_power_of_two() / 2);
    if size < 128 {
        return Err(Error::Data(format!("{samples} samples are too short to measure a spectrum: at least 1024 are needed")));
    }
    Ok(size)
}

/// Compares what a transmitter put out with what it was to send; both in step, within a small part of a window.
///
/// ```
/// use kaflow::{Complex64, metrics::{Band, linearity}};
/// // Two tones of which an amplifier makes two more, 40 dB below.
/// let tone = |n: usize, f: f64| Complex64::cis(std::f64::consts::TAU * f * n as f64);
/// let x: Vec<_> = (0..16_384).map(|n| tone(n, 0.03) + tone(n, -0.03)).collect();
/// let y: Vec<_> = (0..16_384).map(|n| 2.0 * x[n] + 0.02 * (tone(n, 0.09) + tone(n, -0.09))).collect();
/// let found = linearity(&x, &y, Band { width: 0.08, spacing: 0.09 })?;
/// assert!((found.aclr_dbc.0 + 43.0).abs() < 0.1 && (found.nmse_db + 40.0).abs() < 0.1 && found.evm_db < -60.0);
/// # Ok::<_, kaflow::Error>(())
/// ```
pub fn linearity<T: Real>(sent: &[Complex<T>], output: &[Complex<T>], band: Band) -> Result<Linearity> {
    let n = sent.len().min(output.len());
    let (sent, output) = (&sent[..n], &output[..n]);
    let size = window(n)?;
    let aclr_dbc = welch(output, size, 1.0)?.acpr_db(band.width, band.spacing)?;
    let (explained, left) = in_band(sent, output, size, band.width);
    let (mut cross, mut energy) = (Complex64::default(), 0.0);
    for (&x, &y) in sent.iter().zip(output) {
        let (x, y) = (wide(x), wide(y));
        if x.is_finite() && y.is_finite() {
            cross += y * x.conj();
            energy += x.norm_sqr();
        }
    }
    let coherent = cross.norm_sqr() / energy / n as f64;
    Ok(Linearity { aclr_dbc, evm_db: db(left, explained), nmse_db: db((power(output) - coherent).max(0.0), coherent) })
}

/// Power in the band that follows from the input by one gain at each frequency, and what is left.
fn in_band<T: Real>(sent: &[Complex<T>], output: &[Complex<T>], size: usize, width: f64) -> (f64, f64) {
    let mut fourier = Fourier::double(size);
    let mut spectrum = |samples: &[Complex<T>]| {
        let window = |(i, &z): (usize, &Complex<T>)| {
            let z = wide(z);
            let w = 0.5 - 0.5 * libm::cos(std::f64::consts::TAU * i as f64 / size as f64);
            if z.is_finite() { z * w } else { Complex64::default() }
        };
        let mut bins: Vec<Complex64> = samples.iter().enumerate().map(window).collect();
        fourier.forward(&mut bins);
        bins
    };
    let mut sums = vec![(0.0, 0.0, Complex64::default()); size];
    for start in (0..=sent.len() - size).step_by(size / 2) {
        let (x, y) = (spectrum(&sent[start..start + size]), spectrum(&output[start..start + size]));
        for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
            *sum = (sum.0 + x.norm_sqr(), sum.1 + y.norm_sqr(), sum.2 + y * x.conj());
        }
    }
    let (mut explained, mut left) = (0.0, 0.0);
    for (k, (xx, yy, xy)) in sums.into_iter().enumerate() {
        let f = k as f64 / size as f64;
        if f.min(1.0 - f) <= width / 2.0 && xx > 0.0 {
            let coherent = xy.norm_sqr() / xx;
            explained += coherent;
            left += (yy - coherent).max(0.0);
        }
    }
    (explained, left)
}
