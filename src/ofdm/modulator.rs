//! From points to samples, symbol by symbol.

use num_complex::Complex32;

use super::{
    Config,
    clip::Clipper,
    layout::{Layout, pilot_polarity},
};
use crate::Result;
use crate::dsp::Fourier;

/// Turns the points of one OFDM symbol into samples, and knows the preamble.
///
/// The signal has rms 1 before clipping, whatever the numerology. A *piece* (preamble part or symbol) is written with its cyclic suffix of
/// `window` samples and without the edges: [`Overlap`] shapes and joins the pieces.
#[derive(Clone, Debug)]
pub(crate) struct Modulator {
    layout: Layout,
    fourier: Fourier,
    clipper: Clipper,
    polarity: [f32; 127],
    scale: f32,
    symbol: Vec<Complex32>,
}

impl Modulator {
    /// A modulator of a valid `config`.
    pub(crate) fn new(config: &Config) -> Result<Self> {
        config.validate()?;
        let layout = Layout::new(config);
        Ok(Self {
            fourier: Fourier::new(layout.size),
            clipper: Clipper::new(config, &layout),
            polarity: pilot_polarity(),
            scale: 1.0 / (config.active as f32).sqrt(),
            symbol: vec![Complex32::default(); layout.size],
            layout,
        })
    }

    /// Appends symbol number `index` (it sets the pilots' polarity) with the points of the data carriers, lowest frequency first; points
    /// that are missing count as zero.
    pub(crate) fn symbol(&mut self, index: usize, points: &[Complex32], out: &mut Vec<Complex32>) {
        self.symbol.fill(Complex32::default());
        for (&bin, point) in self.layout.data.iter().zip(points) {
            self.symbol[bin] = point * self.scale;
        }
        let polarity = self.polarity[index % self.polarity.len()] * self.scale;
        for &(_, bin, sign) in &self.layout.pilots {
            self.symbol[bin] = Complex32::new(sign * polarity, 0.0);
        }
        self.fourier.inverse(&mut self.symbol);
        self.clipper.apply(&mut self.symbol, &mut self.fourier);
        out.extend_from_slice(&self.symbol[self.layout.size - self.layout.prefix..]);
        out.extend_from_slice(&self.symbol);
        out.extend_from_slice(&self.symbol[..self.layout.window]);
    }

    /// Appends the short training: two and a half symbols that repeat every quarter of a symbol.
    pub(crate) fn short_training(&self, out: &mut Vec<Complex32>) {
        let size = self.layout.size;
        let length = size * 2 + size / 2 + self.layout.window;
        out.extend(self.layout.short.iter().cycle().take(length));
    }

    /// Appends the long training: a double prefix and two equal symbols.
    pub(crate) fn long_training(&self, out: &mut Vec<Complex32>) {
        let Layout { size, guard, window, .. } = self.layout;
        out.extend(self.layout.long.iter().cycle().skip(size - guard).take(guard + 2 * size + window));
    }
}

/// Joins pieces whose edges overlap: each rises over `window` samples while the one before it falls, and the two edges add up to one.
#[derive(Clone, Debug)]
pub(crate) struct Overlap {
    rise: Vec<f32>,
    tail: Vec<Complex32>,
}

impl Overlap {
    /// Raised-cosine edges of `window` samples; 0 is a hard edge.
    pub(crate) fn new(window: usize) -> Self {
        // Half-sample centres: rise[i] + rise[window − 1 − i] = 1.
        let rise = (0..window).map(|i| (0.5 - 0.5 * libm::cos(std::f64::consts::PI * (i as f64 + 0.5) / window as f64)) as f32).collect();
        Self { rise, tail: vec![Complex32::default(); window] }
    }

    /// Appends `piece` without its last `window` samples, which fade out under the next piece.
    ///
    /// A piece is at least `window` samples longer than its suffix.
    pub(crate) fn join(&mut self, piece: &[Complex32], out: &mut Vec<Complex32>) {
        let window = self.rise.len();
        let (body, suffix) = piece.split_at(piece.len() - window);
        let start = out.len();
        out.extend_from_slice(body);
        for ((z, rise), tail) in out[start..].iter_mut().zip(&self.rise).zip(&self.tail) {
            *z = *z * rise + tail;
        }
        for ((tail, z), fall) in self.tail.iter_mut().zip(suffix).zip(self.rise.iter().rev()) {
            *tail = z * fall;
        }
    }

    /// Appends `samples` zeros, under which the last piece fades out.
    pub(crate) fn silence(&mut self, samples: usize, out: &mut Vec<Complex32>) {
        let start = out.len();
        out.resize(start + samples, Complex32::default());
        out[start..].iter_mut().zip(&self.tail).for_each(|(z, tail)| *z += tail);
        let faded = samples.min(self.tail.len());
        self.tail.copy_within(faded.., 0);
        let kept = self.tail.len() - faded;
        self.tail[kept..].fill(Complex32::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_without_a_seam() {
        let mut overlap = Overlap::new(4);
        let mut out = Vec::new();
        for _ in 0..3 {
            overlap.join(&[Complex32::ONE; 20], &mut out); // 16 samples and a suffix of 4
        }
        assert_eq!(out.len(), 48);
        assert!(out[4..].iter().all(|z| (z.re - 1.0).abs() < 1e-6)); // seamless behind the first edge
    }
}
