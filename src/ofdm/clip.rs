//! Polar clipping.

use num_complex::Complex32;

use super::{Config, layout::Layout};
use crate::dsp::Fourier;

/// Limits the magnitude of every sample to `level` and keeps its phase.
pub(crate) fn clip(samples: &mut [Complex32], level: f32) {
    let square = level * level;
    for z in samples {
        let power = z.re * z.re + z.im * z.im;
        if power > square {
            // The square root is exact to the last bit on every machine, hypot is not.
            let gain = level / power.sqrt();
            *z = Complex32::new(z.re * gain, z.im * gain);
        }
    }
}

/// Clipping of whole symbols as a [`Config`] asks for it.
#[derive(Clone, Debug)]
pub(crate) struct Clipper {
    level: f32,
    iterations: usize,
    /// Bins that the filter empties; none without a filter.
    idle: Vec<usize>,
    filter: bool,
}

impl Clipper {
    pub(crate) fn new(config: &Config, layout: &Layout) -> Self {
        let Some(clip) = config.clip else {
            return Self { level: f32::INFINITY, iterations: 0, idle: Vec::new(), filter: false };
        };
        let mut idle = vec![true; layout.size];
        layout.active.iter().for_each(|&(_, bin)| idle[bin] = false);
        Self {
            level: clip.level() as f32,
            iterations: if clip.filter { clip.iterations } else { 1 },
            idle: (0..layout.size).filter(|&bin| clip.filter && idle[bin]).collect(),
            filter: clip.filter,
        }
    }

    /// Clips one period of a symbol of rms 1. Filtering the period, not the stream, keeps the carriers orthogonal and the prefix cyclic.
    pub(crate) fn apply(&self, symbol: &mut [Complex32], fourier: &mut Fourier) {
        for _ in 0..self.iterations {
            clip(symbol, self.level);
            if self.filter {
                fourier.forward(symbol);
                self.idle.iter().for_each(|&bin| symbol[bin] = Complex32::default());
                let scale = 1.0 / symbol.len() as f32;
                symbol.iter_mut().for_each(|z| *z *= scale);
                fourier.inverse(symbol);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitudes_are_limited_and_phases_kept() {
        let mut x = [Complex32::new(3.0, 4.0), Complex32::new(0.1, 0.0)];
        clip(&mut x, 1.0);
        assert!((x[0] - Complex32::new(0.6, 0.8)).norm() < 1e-6 && x[1].re == 0.1);
    }
}
