//! The slow part: the nonlinearity, a kernel expansion over the envelope.

use num_complex::Complex;
use num_traits::{One, Zero};
use serde::{Deserialize, Serialize};

use super::basis::Basis;
use super::linear::{LANES, Lane, Matrix, Vector, with_length};
use crate::Real;

/// Prior deviation of the linear weight, and of the weight of a Gaussian at envelope 1.
const DEVIATION: f64 = 0.1;
/// A Gaussian at envelope `c` deviates by `DEVIATION (1 + SOFT) / (c + SOFT)`: about the same deviation of the *output* `r G(r)` everywhere.
const SOFT: f64 = 0.3;
/// Samples by which the line is longer than its window, so that it is moved rarely.
const SLACK: usize = 64;

/// Kalman filter over the weights of `g(x) = x G(|x|)`, with the samples that it needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Saturation<T: Real> {
    /// Functions for each lag of the memory, padding included.
    stride: usize,
    memory: usize,
    lags: usize,
    keep: T,
    pub(super) theta: Vector<T>,
    cov: Matrix<T>,
    prior: Vec<T>,
    // The mean gain is `gauge . theta`; a step along `lift` changes it and is what the prior forbids.
    gauge: Vec<T>,
    lift: Vec<T>,
    // The line, written backwards: from `start` the newest sample first, in units of the input's RMS, and the basis at its envelope.
    start: usize,
    x: Vec<Complex<T>>,
    phi: Vec<T>,
    d: Vector<T>,
    k: Vector<T>,
}

impl<T: Real> Saturation<T> {
    /// `lags` taps behind the nonlinearity.
    pub(super) fn new(basis: &Basis<T>, memory: usize, taps: usize, drift: f64) -> Self {
        let stride = basis.stride();
        let n = stride * (memory + 1);
        let lags = taps + memory;
        let mut saturation = Self {
            stride,
            memory,
            lags,
            keep: T::one(),
            theta: Vector::zeros(n),
            cov: Matrix::zeros(n),
            prior: Vec::new(),
            gauge: vec![T::zero(); n],
            lift: vec![T::zero(); n],
            start: 0,
            x: vec![Complex::zero(); lags + SLACK],
            phi: vec![T::zero(); (lags + SLACK) * stride],
            d: Vector::zeros(n),
            k: Vector::zeros(n),
        };
        saturation.set_prior(basis);
        saturation.set_drift(drift);
        saturation.reset();
        saturation
    }

    /// Independent weights, conditioned on a power-weighted mean gain of exactly 1: no update can leave that plane.
    /// The lags of the memory have no linear weight, since the channel has it already.
    fn set_prior(&mut self, basis: &Basis<T>) {
        let (len, n, w) = (basis.len(), self.d.len(), basis.gauge());
        let variance = |j: usize| {
            let d = if j == 0 { DEVIATION } else { DEVIATION * (1.0 + SOFT) / (basis.centre(j) + SOFT) };
            d * d
        };
        self.prior = vec![T::zero(); n * n];
        for m in 0..=self.memory {
            for j in usize::from(m > 0)..len {
                let i = m * self.stride + j;
                self.prior[i * n + i] = T::of(variance(j));
            }
        }
        let norm: f64 = (0..len).map(|j| w[j] * w[j] * variance(j)).sum();
        for i in 0..len {
            self.gauge[i] = T::of(w[i]);
            self.lift[i] = T::of(variance(i) * w[i] / norm);
            for j in 0..len {
                self.prior[i * n + j] -= T::of(variance(i) * w[i] * variance(j) * w[j] / norm);
            }
        }
    }

    /// Takes rounding errors that have left the plane back to it. Unchecked they would grow: a Kalman filter amplifies a variance that has
    /// become negative. Returns the factor that the channel takes over.
    pub(super) fn project(&mut self) -> Complex<T> {
        let n = self.d.len();
        for i in 0..n {
            let row = i * n..(i + 1) * n;
            self.k.re[i] = self.cov.re[row.clone()].iter().zip(&self.gauge).map(|(p, w)| *p * *w).sum();
            self.k.im[i] = self.cov.im[row].iter().zip(&self.gauge).map(|(p, w)| *p * *w).sum();
        }
        let both: T = self.k.re.iter().zip(&self.gauge).map(|(p, w)| *p * *w).sum();
        for i in 0..n {
            for j in 0..n {
                let (v, u) = (self.lift[i], self.lift[j]);
                self.cov.re[i * n + j] -= (v * self.k.re[j] + u * self.k.re[i]) - both * (v * u);
                self.cov.im[i * n + j] -= u * self.k.im[i] - v * self.k.im[j];
            }
        }
        self.renormalise()
    }

    fn renormalise(&mut self) -> Complex<T> {
        let mean: Complex<T> = self.gauge.iter().enumerate().map(|(j, w)| self.theta.get(j) * *w).sum();
        let power = mean.norm_sqr();
        let mean = if power > T::of(1e-4) && power < T::of(1e4) { mean } else { Complex::one() };
        self.theta.scale(mean.inv());
        mean
    }

    pub(super) fn set_drift(&mut self, drift: f64) {
        self.keep = T::of(1.0 - drift);
    }

    /// Weights, without padding.
    pub(super) fn size(&self, basis: &Basis<T>) -> usize {
        basis.len() * (self.memory + 1)
    }

    pub(super) fn lags(&self) -> usize {
        self.lags
    }

    pub(super) fn reset(&mut self) {
        self.theta.clear();
        self.theta.re[0] = T::one();
        self.reopen();
        self.x.fill(Complex::zero());
        self.phi.fill(T::zero());
        self.start = SLACK;
    }

    /// As uncertain as before the first sample, but keeps the estimate.
    pub(super) fn reopen(&mut self) {
        self.cov.re.copy_from_slice(&self.prior);
        self.cov.im.fill(T::zero());
    }

    /// Takes in the newest sample.
    #[inline(always)]
    pub(super) fn push(&mut self, x: Complex<T>, basis: &Basis<T>) {
        if self.start == 0 {
            let kept = self.lags - 1;
            self.x.copy_within(..kept, SLACK + 1);
            self.phi.copy_within(..kept * self.stride, (SLACK + 1) * self.stride);
            self.start = SLACK + 1;
        }
        self.start -= 1;
        self.x[self.start] = x;
        let at = self.start * self.stride;
        basis.eval(x.norm_sqr().sqrt(), &mut self.phi[at..at + self.stride]);
    }

    /// Output of the nonlinearity `lag` samples ago, with the present weights.
    #[inline(always)]
    pub(super) fn output(&self, lag: usize) -> Complex<T> {
        let mut u = Complex::zero();
        for m in 0..=self.memory {
            let at = self.start + lag + m;
            let phi = &self.phi[at * self.stride..][..self.stride];
            let (tr, ti) = (&self.theta.re[m * self.stride..][..self.stride], &self.theta.im[m * self.stride..][..self.stride]);
            u += self.x[at] * with_length!(self.stride, real_dot(phi, tr, ti));
        }
        u
    }

    /// The variance that the weights add to a prediction through the taps `h`; prepares the gain for [`correct`](Self::correct).
    #[inline(always)]
    pub(super) fn spread(&mut self, h: &Vector<T>, taps: usize) -> T {
        self.d.clear();
        for m in 0..=self.memory {
            let (dr, di) = (&mut self.d.re[m * self.stride..][..self.stride], &mut self.d.im[m * self.stride..][..self.stride]);
            for l in 0..taps {
                let at = self.start + l + m;
                let z = h.get(l) * self.x[at];
                with_length!(self.stride, accumulate(z, &self.phi[at * self.stride..], dr, di));
            }
        }
        with_length!(self.d.len(), gain(self));
        self.d.dot(&self.k).re.max(T::zero())
    }

    /// Learns from `error`, whose variance is `1 / weight`; `elapsed` samples have passed since the last time.
    #[inline(always)]
    pub(super) fn correct(&mut self, error: Complex<T>, weight: T, elapsed: usize) {
        let root = weight.sqrt();
        self.k.scale_real(root);
        self.theta.add(error * root, &self.k);
        with_length!(self.d.len(), update(self, elapsed));
    }

    /// The unit of the envelope grew by `ratio`. Returns the factor that the channel takes over, so that the mean gain stays 1.
    pub(super) fn rescale(&mut self, ratio: f64, basis: &Basis<T>) -> Complex<T> {
        for m in 0..=self.memory {
            let at = m * self.stride..(m + 1) * self.stride;
            basis.stretch(&mut self.theta.re[at.clone()], ratio, &mut self.k.re);
            basis.stretch(&mut self.theta.im[at], ratio, &mut self.k.re);
        }
        let mean = self.renormalise();
        let shrink = T::of(1.0 / ratio);
        for at in self.start..self.start + self.lags {
            self.x[at] *= shrink;
            basis.eval(self.x[at].norm_sqr().sqrt(), &mut self.phi[at * self.stride..][..self.stride]);
        }
        self.reopen();
        mean
    }

    /// Starts again where the weights or their covariance are no numbers any more.
    pub(super) fn bound(&mut self) {
        let n = self.d.len();
        if !self.theta.is_finite() {
            self.theta.clear();
            self.theta.re[0] = T::one();
            self.reopen();
        } else if (0..n).any(|i| !(self.cov.re[i * n + i] >= T::zero() && self.cov.re[i * n + i].is_finite())) {
            self.reopen();
        }
    }

    /// The lengths of all vectors, and what indices are computed from.
    pub(super) fn lengths(&self) -> Vec<usize> {
        let vectors = [&self.theta, &self.d, &self.k].into_iter().flat_map(|x| [x.re.len(), x.im.len()]);
        let others = [self.stride, self.memory, self.lags, self.x.len(), self.phi.len(), self.cov.re.len(), self.cov.im.len()];
        vectors.chain(others).chain([self.prior.len(), self.gauge.len(), self.lift.len()]).collect()
    }

    /// Whether the window lies inside its line.
    pub(super) fn is_placed(&self) -> bool {
        self.start <= SLACK
    }

    /// States that only a forger writes.
    #[cfg(test)]
    pub(super) fn forge(&mut self, which: usize) {
        match which {
            0 => self.start = SLACK + 1,
            1 => self.stride += 4,
            2 => self.phi.clear(),
            _ => self.cov.im.truncate(3),
        }
    }

    /// The complex gain `G(r)` of the part without memory.
    pub(super) fn curve(&self, basis: &Basis<T>, envelope: T) -> Complex<T> {
        let mut phi = vec![T::zero(); self.stride];
        basis.eval(envelope, &mut phi);
        phi.iter().enumerate().map(|(j, p)| self.theta.get(j) * *p).sum()
    }
}

#[inline(always)]
fn real_dot<T: Real>(n: usize, phi: &[T], re: &[T], im: &[T]) -> Complex<T> {
    let (mut a, mut b) = (Lane::splat(T::zero()), Lane::splat(T::zero()));
    for j in (0..n).step_by(LANES) {
        let phi = Lane::load(phi, j);
        a = a + phi * Lane::load(re, j);
        b = b + phi * Lane::load(im, j);
    }
    Complex::new(a.sum(), b.sum())
}

#[inline(always)]
fn accumulate<T: Real>(n: usize, z: Complex<T>, phi: &[T], re: &mut [T], im: &mut [T]) {
    let (zr, zi) = (Lane::splat(z.re), Lane::splat(z.im));
    for j in (0..n).step_by(LANES) {
        let phi = Lane::load(phi, j);
        let (a, b) = (Lane::load(re, j) + zr * phi, Lane::load(im, j) + zi * phi);
        a.store(re, j);
        b.store(im, j);
    }
}

#[inline(always)]
fn gain<T: Real>(n: usize, s: &mut Saturation<T>) {
    s.cov.adjoint_times_conj(n, &s.d, &mut s.k);
}

#[inline(always)]
fn update<T: Real>(n: usize, s: &mut Saturation<T>, elapsed: usize) {
    s.cov.downdate(n, &s.k, &s.k);
    // Diffusion back to the prior, which bounds the covariance from above.
    let keep = s.keep.powi(elapsed as i32);
    let fill = T::one() - keep;
    let (re, im, prior) = (&mut s.cov.re[..n * n], &mut s.cov.im[..n * n], &s.prior[..n * n]);
    for i in 0..n * n {
        re[i] = keep * re[i] + fill * prior[i];
        im[i] *= keep;
    }
}
