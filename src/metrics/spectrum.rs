//! Power spectral density and what is read from it.

use num_complex::{Complex, Complex64};

use super::wide;
use crate::dsp::{Fourier, db};
use crate::{Error, Real, Result};

/// A two-sided power spectral density, lowest frequency first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Psd {
    /// Samples a second.
    pub sample_rate: f64,
    /// Power in each Hz; bin i is centred at [`frequency(i)`](Self::frequency). Times [`resolution`](Self::resolution) they add up to the mean power.
    pub density: Vec<f64>,
}

/// Welch's estimate (1967): Hann window of `size` samples, half overlapped, periodograms averaged.
///
/// Samples that are not finite count as zero. Needs at least `size` samples.
pub(crate) fn welch<T: Real>(samples: &[Complex<T>], size: usize, sample_rate: f64) -> Result<Psd> {
    if size < 2 {
        return Err(Error::parameter("spectrum size", "at least 2 samples", size));
    }
    if samples.len() < size {
        return Err(Error::Data(format!("a spectrum over {size} samples needs as many, there are {}", samples.len())));
    }
    if !(sample_rate > 0.0 && sample_rate.is_finite()) {
        return Err(Error::parameter("sample_rate", "positive", sample_rate));
    }
    let window: Vec<f64> = (0..size).map(|n| 0.5 - 0.5 * libm::cos(std::f64::consts::TAU * n as f64 / size as f64)).collect();
    let mut fourier = Fourier::double(size);
    let mut segment = vec![Complex64::default(); size];
    let mut sum = vec![0.0; size];
    let mut segments = 0.0;
    for start in (0..=samples.len() - size).step_by(size.div_ceil(2)) {
        for ((out, &z), w) in segment.iter_mut().zip(&samples[start..]).zip(&window) {
            let z = wide(z);
            *out = if z.re.is_finite() && z.im.is_finite() { z * w } else { Complex64::default() };
        }
        fourier.forward(&mut segment);
        sum.iter_mut().zip(&segment).for_each(|(sum, z)| *sum += z.norm_sqr());
        segments += 1.0;
    }
    let energy: f64 = window.iter().map(|w| w * w).sum();
    let scale = 1.0 / (segments * energy * sample_rate);
    sum.iter_mut().for_each(|p| *p *= scale);
    sum.rotate_left(size.div_ceil(2));
    Ok(Psd { sample_rate, density: sum })
}

impl Psd {
    /// Width of a bin in Hz.
    pub(crate) fn resolution(&self) -> f64 {
        self.sample_rate / self.density.len() as f64
    }

    /// Centre of bin `i` in Hz, from `−sample_rate/2` up.
    pub(crate) fn frequency(&self, i: usize) -> f64 {
        (i as f64 - (self.density.len() / 2) as f64) * self.resolution()
    }

    /// Power between two frequencies in Hz; a bin that lies partly inside counts by its share.
    pub(crate) fn power(&self, from: f64, to: f64) -> f64 {
        let width = self.resolution();
        let share = |centre: f64| ((to.min(centre + width / 2.0) - from.max(centre - width / 2.0)) / width).clamp(0.0, 1.0);
        // The lowest bin straddles the edge: its lower half is the upper end of the spectrum.
        let wrapped = |i: usize| if i == 0 { share(self.frequency(0) + self.sample_rate) } else { 0.0 };
        self.density.iter().enumerate().map(|(i, density)| density * (share(self.frequency(i)) + wrapped(i)).min(1.0)).sum::<f64>() * width
    }

    /// Adjacent channel power ratio in dB: the power in the lower and in the upper neighbour, each `bandwidth` Hz wide and `spacing` Hz away, over that
    /// of the channel around 0 Hz. An error when the neighbours lie outside the spectrum: oversample more.
    pub(crate) fn acpr_db(&self, bandwidth: f64, spacing: f64) -> Result<(f64, f64)> {
        if !(bandwidth > 0.0 && spacing > 0.0) || spacing + bandwidth / 2.0 > self.sample_rate / 2.0 {
            return Err(Error::parameter(
                "adjacent channel",
                format!("inside ±{} Hz (half the sample rate)", self.sample_rate / 2.0),
                format!("{bandwidth} Hz at ±{spacing} Hz"),
            ));
        }
        let channel = self.power(-bandwidth / 2.0, bandwidth / 2.0);
        let neighbour = |centre: f64| db(self.power(centre - bandwidth / 2.0, centre + bandwidth / 2.0), channel);
        Ok((neighbour(-spacing), neighbour(spacing)))
    }

    /// The lowest and highest frequency in Hz between which `fraction` (such as 0.99) of the power lies, half of the rest on each side.
    pub(crate) fn occupied(&self, fraction: f64) -> (f64, f64) {
        let total: f64 = self.density.iter().sum();
        let rest = total * (1.0 - fraction.clamp(0.0, 1.0)) / 2.0;
        let mut below = 0.0;
        let mut beyond = |p: &f64| {
            below += p;
            below > rest
        };
        let low = self.density.iter().position(&mut beyond).unwrap_or(0);
        let mut above = 0.0;
        let mut beyond = |p: &f64| {
            above += p;
            above > rest
        };
        let high = self.density.iter().rposition(&mut beyond).unwrap_or(self.density.len() - 1);
        (self.frequency(low) - self.resolution() / 2.0, self.frequency(high) + self.resolution() / 2.0)
    }

    /// The density in dB (of power in each Hz), finite in every bin.
    pub(crate) fn db(&self) -> Vec<f64> {
        self.density.iter().map(|&p| db(p, 1.0)).collect()
    }
}
