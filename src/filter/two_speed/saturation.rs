//! The slow part: the nonlinearity, a kernel expansion over the envelope.

use num_complex::Complex;
use num_traits::{One, Zero};
use serde::{Deserialize, Serialize};

use super::basis::Basis;
use super::linear::{Four, Lanes, Matrix, Vector, add, adjoint_times_conj, dot, downdate, padded, part};
use crate::Real;
use crate::simd::Halves;

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
    // The outputs of the nonlinearity for them, in two planes.
    u: (Vec<T>, Vec<T>),
    // Samples on the line that are yet to come, and of how many of them the outputs are there already.
    ahead: usize,
    fresh: usize,
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
            // What is read of it is padded as the taps are.
            u: (vec![T::zero(); padded(lags) + SLACK], vec![T::zero(); padded(lags) + SLACK]),
            ahead: 0,
            fresh: 0,
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
        self.u.0.fill(T::zero());
        self.u.1.fill(T::zero());
        (self.start, self.ahead, self.fresh) = (SLACK, 0, 0);
    }

    /// As uncertain as before the first sample, but keeps the estimate.
    pub(super) fn reopen(&mut self) {
        self.cov.re.copy_from_slice(&self.prior);
        self.cov.im.fill(T::zero());
    }

    /// Samples that can be put on the line now, at least one.
    pub(super) fn room(&mut self) -> usize {
        if self.start == 0 {
            let kept = self.lags - 1;
            self.x.copy_within(..kept, SLACK);
            self.phi.copy_within(..kept * self.stride, SLACK * self.stride);
            self.u.0.copy_within(..kept, SLACK);
            self.u.1.copy_within(..kept, SLACK);
            self.start = SLACK;
        }
        self.start - self.ahead
    }

    /// Puts a sample on the line. Here and below `stride` is that of the basis, a constant where it is usual.
    #[inline(always)]
    pub(super) fn put<H: Halves<T>>(&mut self, stride: usize, x: Complex<T>, basis: &Basis<T>) {
        self.ahead += 1;
        let at = self.start - self.ahead;
        self.x[at] = x;
        basis.eval::<H>(stride, x.norm_sqr().sqrt(), &mut self.phi[at * stride..][..stride]);
    }

    /// Goes on to the next sample of the line and returns it. `likely` outputs are wanted before the weights change.
    #[inline(always)]
    pub(super) fn next<H: Halves<T>>(&mut self, stride: usize, likely: usize) -> Complex<T> {
        if self.fresh == 0 {
            self.fresh = likely.clamp(1, self.ahead);
            self.outputs::<H>(stride, self.start - self.fresh, self.fresh);
        }
        self.start -= 1;
        self.ahead -= 1;
        self.fresh -= 1;
        self.x[self.start]
    }

    /// The outputs of the nonlinearity, newest first, from one of as many as there are taps on.
    #[inline(always)]
    pub(super) fn window(&self) -> (&[T], &[T]) {
        (&self.u.0[self.start..], &self.u.1[self.start..])
    }

    /// Whoever changes the weights calls this afterwards: the outputs in the window are those of the present weights.
    #[inline(always)]
    pub(super) fn refresh<H: Halves<T>>(&mut self, stride: usize, taps: usize) {
        self.fresh = 0;
        self.outputs::<H>(stride, self.start, taps);
    }

    /// Computes `n` outputs of the line.
    #[inline(always)]
    fn outputs<H: Halves<T>>(&mut self, stride: usize, from: usize, n: usize) {
        for at in from..from + n {
            let mut u = Complex::zero();
            for m in 0..=self.memory {
                let phi = &self.phi[(at + m) * stride..][..stride];
                let (re, im) = (&self.theta.re[m * stride..][..stride], &self.theta.im[m * stride..][..stride]);
                // Real and imaginary part of the gain side by side.
                let mut gain = H::splat(T::zero());
                for j in (0..stride).step_by(4) {
                    gain = H::twice(part(phi, j)).fma(H::pair(part(re, j), part(im, j)), gain);
                }
                let (re, im) = gain.sums();
                u += self.x[at + m] * Complex::new(re, im);
            }
            (self.u.0[at], self.u.1[at]) = (u.re, u.im);
        }
    }

    /// The variance that the weights add to a prediction through the taps `h`; prepares the gain for [`correct`](Self::correct).
    #[inline(always)]
    pub(super) fn spread<H: Halves<T>>(&mut self, stride: usize, h: &Vector<T>, taps: usize) -> T {
        for m in 0..=self.memory {
            let (dr, di) = (&mut self.d.re[m * stride..][..stride], &mut self.d.im[m * stride..][..stride]);
            dr.fill(T::zero());
            di.fill(T::zero());
            for l in 0..taps {
                let at = self.start + l + m;
                let z = h.get(l) * self.x[at];
                let (zr, zi, phi) = (Four::splat(z.re), Four::splat(z.im), &self.phi[at * stride..][..stride]);
                for j in (0..stride).step_by(4) {
                    let phi = Four::load(phi, j);
                    zr.fma(phi, Four::load(dr, j)).store(dr, j);
                    zi.fma(phi, Four::load(di, j)).store(di, j);
                }
            }
        }
        let n = self.order(stride);
        adjoint_times_conj::<T, H>(n, &self.cov, &self.d, &mut self.k);
        dot::<T, H>(n, &self.d, &self.k).re.max(T::zero())
    }

    /// Learns from `error`, whose variance is `1 / weight`; `elapsed` samples have passed since the last time.
    #[inline(always)]
    pub(super) fn correct<H: Halves<T>>(&mut self, stride: usize, error: Complex<T>, weight: T, elapsed: u64) {
        let n = self.order(stride);
        add::<T, H>(n, &mut self.theta, error * weight, &self.k);
        downdate::<T, H>(n, &mut self.cov, weight, &self.k, &self.k);
        // Diffusion back to the prior, which bounds the covariance from above.
        let keep = self.keep.powi(elapsed.min(1 << 20) as i32);
        let fill = T::one() - keep;
        let (re, im, prior) = (&mut self.cov.re[..n * n], &mut self.cov.im[..n * n], &self.prior[..n * n]);
        for i in 0..n * n {
            re[i] = keep * re[i] + fill * prior[i];
            im[i] *= keep;
        }
    }

    /// Weights, padding included; a constant where the stride is and there is no memory.
    #[inline(always)]
    fn order(&self, stride: usize) -> usize {
        if self.memory == 0 { stride } else { stride * (self.memory + 1) }
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
            basis.eval_plain(self.x[at].norm_sqr().sqrt(), &mut self.phi[at * self.stride..][..self.stride]);
        }
        self.reopen();
        mean
    }

    /// Starts again where the weights or their covariance are no numbers any more; whether the weights did.
    pub(super) fn bound(&mut self) -> bool {
        let n = self.d.len();
        if !self.theta.is_finite() {
            self.theta.clear();
            self.theta.re[0] = T::one();
            self.reopen();
            return true;
        }
        if (0..n).any(|i| !(self.cov.re[i * n + i] >= T::zero() && self.cov.re[i * n + i].is_finite())) {
            self.reopen();
        }
        false
    }

    /// The lengths of all vectors, and what indices are computed from.
    pub(super) fn lengths(&self) -> Vec<usize> {
        let vectors = [&self.theta, &self.d, &self.k].into_iter().flat_map(|x| [x.re.len(), x.im.len()]);
        let others = [
            self.stride,
            self.memory,
            self.lags,
            self.x.len(),
            self.phi.len(),
            self.u.0.len(),
            self.u.1.len(),
            self.cov.re.len(),
            self.cov.im.len(),
        ];
        vectors.chain(others).chain([self.prior.len(), self.gauge.len(), self.lift.len()]).collect()
    }

    /// Whether the window lies inside its line, and nothing is to come.
    pub(super) fn is_placed(&self) -> bool {
        self.start <= SLACK && self.ahead == 0 && self.fresh == 0
    }

    /// States that only a forger writes.
    #[cfg(test)]
    pub(super) fn forge(&mut self, which: usize) {
        match which {
            0 => self.start = SLACK + 1,
            1 => self.stride += 4,
            2 => self.phi.clear(),
            _ => self.cov.im = vec![T::zero(); 3].into(),
        }
    }

    /// The complex gain `G(r)` of the part without memory.
    pub(super) fn curve(&self, basis: &Basis<T>, envelope: T) -> Complex<T> {
        let mut phi = vec![T::zero(); self.stride];
        basis.eval_plain(envelope, &mut phi);
        phi.iter().enumerate().map(|(j, p)| self.theta.get(j) * *p).sum()
    }
}
