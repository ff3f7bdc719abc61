//! Where exactly, and how far off in frequency?

use num_complex::{Complex32, Complex64};

use super::{detector::wide, layout::Layout};
use crate::dsp::Fourier;

/// What the long training says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sync {
    /// Where the transform of the first long training symbol starts, in samples of the block: all paths are inside the prefix there.
    pub(crate) timing: isize,
    /// Where its strongest path starts.
    pub(crate) strongest: usize,
    /// Carrier offset, in cycles a sample.
    pub(crate) offset: f64,
    /// Rms of the long training as received.
    pub(crate) rms: f64,
    /// How much of the power is the long training, 0 for anything else, 1 without noise.
    quality: f64,
}

/// Finds the long training in a block by correlation with the known symbol.
#[derive(Clone, Debug)]
pub(crate) struct Synchronizer {
    size: usize,
    /// Paths that the prefix can hold.
    taps: usize,
    fourier: Fourier,
    /// Conjugate spectrum of the long training symbol, padded to a block.
    reference: Vec<Complex32>,
    block: Vec<Complex32>,
    /// What turns both correlations squared, over the energy in the block, into numbers that add up to 1 over all lags without noise.
    scale: f64,
    energy: Vec<f64>,
    sums: Vec<f64>,
    /// The best quality seen.
    best: f64,
}

/// What counts as the long training: most of the power in the right place, in the worse of the two, and two symbols that are alike (1.7 dB SNR).
const QUALITY: f64 = 0.42;
const LIKENESS: f64 = 0.35;

impl Synchronizer {
    pub(crate) fn new(layout: &Layout) -> Self {
        let size = layout.size;
        let mut fourier = Fourier::new(4 * size);
        let mut reference = layout.long.clone();
        reference.resize(4 * size, Complex32::default());
        fourier.forward(&mut reference);
        reference.iter_mut().for_each(|z| *z = z.conj());
        // Transforms there and back, unscaled, are worth 4·size; the reference's energy is that of its spectrum over 4·size. A path on part of
        // the carriers smears over the neighbouring lags, which together see it size / active times.
        let scale =
            (4 * size) as f64 * size as f64 / layout.active.len() as f64 * reference.iter().map(|&z| wide(z).norm_sqr()).sum::<f64>();
        Self {
            size,
            taps: layout.prefix - layout.window + 1,
            fourier,
            reference,
            block: vec![Complex32::default(); 4 * size],
            scale,
            energy: Vec::new(),
            sums: Vec::new(),
            best: 0.0,
        }
    }

    /// The best match with the long training seen so far, and what it takes.
    pub(crate) fn best(&self) -> (f64, f64) {
        (self.best, QUALITY)
    }

    /// Samples that [`find`](Self::find) looks at.
    pub(crate) fn block_samples(&self) -> usize {
        self.size * 7 / 2
    }

    /// The long training that starts in the first one and a half symbols of `block`, whose carrier offset is about `coarse` cycles a
    /// sample or, when that is at the edge of what the short training can tell, at the other edge.
    pub(crate) fn find(&mut self, block: &[Complex32], coarse: f64) -> Option<Sync> {
        let range = 2.0 / self.size as f64;
        let mut best = self.at(block, coarse);
        if coarse.abs() > 0.9 * range {
            let other = self.at(block, coarse - (2.0 * range).copysign(coarse));
            if other.is_some_and(|other| best.is_none_or(|best| other.quality > best.quality)) {
                best = other;
            }
        }
        best
    }

    fn at(&mut self, samples: &[Complex32], coarse: f64) -> Option<Sync> {
        let size = self.size;
        let power: f64 = samples.iter().map(|&z| wide(z).norm_sqr()).sum::<f64>() / samples.len() as f64;
        if power <= 0.0 {
            return None;
        }
        self.block.fill(Complex32::default());
        rotate(samples, coarse, 0.0, 1.0 / power.sqrt(), &mut self.block);
        // Running sums of the energy, taken before the block is transformed in place.
        self.sum(|this, n| wide(this.block[n]).norm_sqr(), samples.len());
        let total = self.sums[samples.len()];

        self.fourier.forward(&mut self.block);
        self.block.iter_mut().zip(&self.reference).for_each(|(z, r)| *z *= r);
        self.fourier.inverse(&mut self.block);
        let last = samples.len() - 2 * size;
        self.energy.clear();
        for n in 0..=last {
            // The lesser counts for both: half a symbol early, the prefix and the first symbol would also make a pair.
            let correlation = 2.0 * wide(self.block[n]).norm_sqr().min(wide(self.block[n + size]).norm_sqr());
            let energy = self.sums[n + 2 * size] - self.sums[n];
            self.energy.push(if energy > 1e-9 * total { correlation / (self.scale * energy) } else { 0.0 });
        }
        let strongest = (0..=last).max_by(|&a, &b| self.energy[a].total_cmp(&self.energy[b]))?;
        let (timing, share) = self.window(strongest);
        // Random samples have their fair share in any window.
        let fair = self.taps as f64 / size as f64;
        let quality = (share - fair) / (1.0 - fair).max(0.25);
        self.best = self.best.max(quality);
        if quality < QUALITY || timing + 2 * (size as isize) > samples.len() as isize {
            return None;
        }
        self.refine(samples, coarse, timing, strongest, quality)
    }

    /// Fills `sums` such that `sums[b] − sums[a]` is the sum of the values from a up to b.
    fn sum(&mut self, value: impl Fn(&Self, usize) -> f64, count: usize) {
        self.sums.clear();
        self.sums.push(0.0);
        let mut total = 0.0;
        for n in 0..count {
            total += value(self, n);
            self.sums.push(total);
        }
    }

    /// The start of the stretch of paths with the most energy, the middle of the stretch preferred, and that energy.
    fn window(&mut self, strongest: usize) -> (isize, f64) {
        let taps = self.taps;
        // Two boxes make the trapezoid that prefers the middle: a single path ends up well inside the prefix.
        let long = (3 * taps / 4).max(1);
        let short = taps + 1 - long;
        self.sum(|this, n| this.energy[n], self.energy.len());
        let inside = |from: isize, length: usize| {
            let clamp = |n: isize| n.clamp(0, self.energy.len() as isize) as usize;
            self.sums[clamp(from + length as isize)] - self.sums[clamp(from)]
        };
        let first = strongest as isize + 1 - taps as isize;
        let score = |start: isize| (0..short).map(|i| inside(start + i as isize, long)).sum::<f64>();
        let best = (first..=strongest as isize).max_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap_or(strongest as isize);
        (best, inside(best, taps))
    }

    /// The fine carrier offset from the turn between the two long training symbols.
    fn refine(&mut self, samples: &[Complex32], coarse: f64, timing: isize, strongest: usize, quality: f64) -> Option<Sync> {
        let size = self.size;
        // Before the block there is only more of the prefix: the stretch may start late, both symbols are cyclic.
        let from = timing.max(0) as usize;
        let (mut cross, mut first, mut second) = (Complex64::default(), 0.0, 0.0);
        for (&a, &b) in samples[from..from + size].iter().zip(&samples[from + size..from + 2 * size]) {
            let (a, b) = (wide(a), wide(b));
            cross += b * a.conj();
            first += a.norm_sqr();
            second += b.norm_sqr();
        }
        if cross.norm_sqr() < LIKENESS * first * second {
            return None;
        }
        let turn = std::f64::consts::TAU * size as f64;
        let residual = (cross * Complex64::cis(-turn * coarse)).arg() / turn;
        let rms = ((first + second) / (2 * size) as f64).sqrt();
        Some(Sync { timing, strongest, offset: coarse + residual, rms, quality })
    }
}

/// Takes a carrier offset (cycles a sample) and the phase `turns` at the first sample out of `samples`, and scales them.
pub(crate) fn rotate(samples: &[Complex32], offset: f64, turns: f64, scale: f64, out: &mut [Complex32]) {
    let phasor = |turns: f64| {
        let (sin, cos) = libm::sincos(-std::f64::consts::TAU * turns.fract());
        Complex64::new(cos, sin)
    };
    // Four turns side by side, as each waits for the one before.
    let start = phasor(turns) * scale;
    let mut turn = [0.0, 1.0, 2.0, 3.0].map(|n| start * phasor(n * offset));
    let step = phasor(4.0 * offset);
    for (out, samples) in out.chunks_mut(4).zip(samples.chunks(4)) {
        for ((out, &z), turn) in out.iter_mut().zip(samples).zip(&mut turn) {
            let z = wide(z) * *turn;
            *out = Complex32::new(z.re as f32, z.im as f32);
            *turn *= step;
        }
    }
}
