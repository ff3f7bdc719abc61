//! The amplifier's curve from symbols that were read.

use num_complex::{Complex32, Complex64};

use super::{
    Curve,
    curve::{NODES, REACH, STEP},
};
use crate::dsp::Fourier;
use crate::dsp::solve;
use crate::ofdm::{Config, clip, layout::Layout};

/// Functions of the envelope: a constant and Gaussian bumps.
const BUMPS: usize = 9;
const BASIS: usize = BUMPS + 1;
/// Symbols over which the past counts, at most.
const MEMORY: f64 = 500.0;
/// Weight of the belief that the curve is the one that it started from, in samples.
const PRIOR: f64 = 3.0;

/// Fits `G(r) = Σ θ_b B_b(r)` by least squares to `Y = H · FFT(x G(|x|))`, over the symbols of all packets: the channel changes from one to the next, the amplifier
/// does not. The clipping of the waveform is known and comes first.
#[derive(Clone, Debug)]
pub(crate) struct Learner {
    bins: Vec<usize>,
    level: f32,
    fourier: Fourier,
    clipped: Vec<Complex32>,
    work: Vec<Complex32>,
    /// The basis at the nodes of a curve.
    nodes: Vec<[f32; BASIS]>,
    /// `H · FFT(x B_b)` on the active carriers, basis after basis.
    columns: Vec<Complex32>,
    matrix: Vec<Complex64>,
    right: Vec<Complex64>,
    /// The curve that it started from, in the basis.
    start: [Complex64; BASIS],
    theta: [Complex64; BASIS],
    symbols: f64,
}

fn basis(r: f64) -> [f64; BASIS] {
    let width = 3.2 / (BUMPS - 1) as f64;
    std::array::from_fn(|b| if b == 0 { 1.0 } else { (-0.5 * (r / width - (b - 1) as f64).powi(2)).exp() })
}

impl Learner {
    pub(crate) fn new(config: &Config, oversampling: usize) -> Self {
        let layout = Layout::new(&Config { oversampling, ..config.clone() });
        let mut start = [Complex64::ZERO; BASIS];
        start[0] = Complex64::ONE;
        Self {
            bins: layout.active.iter().map(|&(_, bin)| bin).collect(),
            level: config.clip.map_or(REACH, |clip| clip.level()) as f32,
            fourier: Fourier::new(layout.size),
            clipped: vec![Complex32::ZERO; layout.size],
            work: vec![Complex32::ZERO; layout.size],
            nodes: (0..NODES).map(|i| basis(i as f64 * STEP).map(|b| b as f32)).collect(),
            columns: vec![Complex32::ZERO; config.active * BASIS],
            matrix: vec![Complex64::ZERO; BASIS * BASIS],
            right: vec![Complex64::ZERO; BASIS],
            start,
            theta: start,
            symbols: 0.0,
        }
    }

    /// Starts from a curve, forgetting everything.
    pub(crate) fn begin(&mut self, curve: &Curve) {
        self.matrix.fill(Complex64::ZERO);
        self.right.fill(Complex64::ZERO);
        self.symbols = 0.0;
        // Least squares over the nodes that a signal visits.
        let mut matrix = vec![Complex64::ZERO; BASIS * BASIS];
        let mut right = [Complex64::ZERO; BASIS];
        for i in 0..NODES {
            let r = i as f64 * STEP;
            if r > f64::from(self.level) {
                break;
            }
            let (b, weight) = (basis(r), r * (-0.5 * r * r).exp() + 1e-3);
            for p in 0..BASIS {
                right[p] += curve.gain(r) * b[p] * weight;
                for q in 0..=p {
                    matrix[p * BASIS + q] += b[p] * b[q] * weight;
                }
            }
        }
        (0..BASIS).for_each(|p| matrix[p * BASIS + p] += 1e-6);
        if solve(&mut matrix, &mut right) {
            self.start = right;
        }
        self.theta = self.start;
    }

    /// Symbols that it has seen.
    pub(crate) fn symbols(&self) -> f64 {
        self.symbols
    }

    /// Takes in a symbol: the points that were sent, what arrived on the active carriers and the channel there, the noise.
    pub(crate) fn add(&mut self, points: &[Complex32], arrived: impl Iterator<Item = (Complex32, Complex32)>, noise: f32) {
        let active = self.bins.len();
        self.clipped.fill(Complex32::ZERO);
        let scale = 1.0 / (active as f32).sqrt();
        self.bins.iter().zip(points).for_each(|(&bin, &z)| self.clipped[bin] = z * scale);
        self.fourier.inverse(&mut self.clipped);
        clip(&mut self.clipped, self.level);
        let back = (active as f32).sqrt() / self.work.len() as f32;
        for b in 0..BASIS {
            for (work, &x) in self.work.iter_mut().zip(&self.clipped) {
                let place = (x.re * x.re + x.im * x.im).sqrt() * (1.0 / STEP) as f32;
                let i = (place as usize).min(NODES - 2);
                let f = place - i as f32;
                *work = x * (self.nodes[i][b] * (1.0 - f) + self.nodes[i + 1][b] * f);
            }
            self.fourier.forward(&mut self.work);
            for (slot, &bin) in self.bins.iter().enumerate() {
                self.columns[b * active + slot] = self.work[bin] * back;
            }
        }
        let forget = 1.0 - 1.0 / MEMORY;
        self.matrix.iter_mut().for_each(|z| *z *= forget);
        self.right.iter_mut().for_each(|z| *z *= forget);
        self.symbols += 1.0;
        let inverse = 1.0 / noise.max(1e-9);
        // |H|² weighs the carriers, and H*Y is matched to it.
        for (slot, (y, h)) in arrived.enumerate() {
            let matched = y * h.conj();
            for b in 0..BASIS {
                self.work[b] = self.columns[b * active + slot];
            }
            let weight = h.norm_sqr() * inverse;
            for p in 0..BASIS {
                let column = self.work[p].conj();
                let z = column * matched * inverse;
                self.right[p] += Complex64::new(z.re.into(), z.im.into());
                let column = column * weight;
                for q in 0..=p {
                    let z = column * self.work[q];
                    self.matrix[p * BASIS + q] += Complex64::new(z.re.into(), z.im.into());
                }
            }
        }
    }

    /// The curve, and what it was divided by to have the size of all curves: the channel has to take that.
    pub(crate) fn curve(&mut self) -> (Curve, Complex64) {
        let (mut matrix, mut theta) = (self.matrix.clone(), self.theta);
        let trace = (0..BASIS).map(|p| matrix[p * BASIS + p].re).sum::<f64>() / BASIS as f64;
        let prior = PRIOR * trace.max(1e-12) / (1.0 + self.symbols) * 1e-2;
        theta.copy_from_slice(&self.right);
        for p in 0..BASIS {
            matrix[p * BASIS + p] += prior;
            theta[p] += self.start[p] * prior;
        }
        if solve(&mut matrix, &mut theta) {
            self.theta = theta;
        }
        let (theta, level) = (self.theta, f64::from(self.level));
        let gain = |r: f64| {
            let clipped = r.min(level);
            basis(clipped).iter().zip(&theta).map(|(b, t)| t * b).sum::<Complex64>() * (clipped / r)
        };
        let mut curve = Curve::raw(gain);
        let scale = curve.normalize();
        (curve, scale)
    }
}
