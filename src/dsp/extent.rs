//! How large samples are.

use num_complex::Complex32;

/// The extent of some samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Extent {
    /// The largest real or imaginary part.
    pub(crate) peak: f32,
    /// Samples with a part beyond the limit.
    pub(crate) beyond: u64,
    /// `Σ|z|²`.
    pub(crate) energy: f64,
}

impl Extent {
    pub(crate) fn of(samples: &[Complex32], limit: f32) -> Self {
        // Side by side, so that no sample waits for the one before.
        const LANES: usize = 8;
        let mut extent = Self::default();
        let mut peak = [0.0f32; LANES];
        // Sums of a few hundred are exact enough in single precision, and quick.
        for run in samples.chunks(256) {
            let (mut power, mut beyond) = ([0.0f32; LANES], [0u32; LANES]);
            let mut add = |k: usize, z: Complex32| {
                let (re, im) = (z.re.abs(), z.im.abs());
                peak[k] = greater(re, greater(im, peak[k]));
                beyond[k] += u32::from((re > limit) | (im > limit));
                power[k] += z.norm_sqr();
            };
            let whole = run.chunks_exact(LANES);
            whole.remainder().iter().enumerate().for_each(|(k, z)| add(k, *z));
            whole.for_each(|some| (0..LANES).for_each(|k| add(k, some[k])));
            extent.energy += f64::from(power.iter().sum::<f32>());
            extent.beyond += u64::from(beyond.iter().sum::<u32>());
        }
        extent.peak = peak.into_iter().fold(0.0, f32::max);
        extent
    }
}

/// `b` where `a` is no number: one instruction, unlike `f32::max`.
fn greater(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_counts_however_many_there_are() {
        for n in [0u64, 1, 7, 8, 9, 255, 256, 257, 1000] {
            let samples: Vec<Complex32> = (1..=n).map(|k| Complex32::new(-(k as f32), 0.5)).collect();
            let extent = Extent::of(&samples, 5.0);
            let energy: f64 = samples.iter().map(|z| f64::from(z.norm_sqr())).sum();
            assert_eq!((extent.peak, extent.beyond), (n as f32, n.saturating_sub(5)));
            assert!((extent.energy - energy).abs() <= 1e-5 * energy);
        }
    }
}
