//! A Gaussian process at some points: the matrices of KRLS-T.

use num_complex::{Complex, Complex64};
use num_traits::NumAssign;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::real::finite;
use crate::state::same_shape;
use crate::{Error, Real, Result};

/// In units of `k(x,x)`.
const JITTER: f64 = 1e-6;

/// A covariance: real, or complex for functions that turn with their input.
pub(super) trait Entry: NumAssign + Copy + Default + Serialize + DeserializeOwned + Send + 'static {
    fn of(k: Complex64) -> Self;
    fn conj(self) -> Self;
    fn re(self) -> f64;
    fn scaled(self, factor: f64) -> Self;
    fn times(self, z: Complex64) -> Complex64;
}

impl Entry for f64 {
    fn of(k: Complex64) -> Self {
        k.re
    }
    fn conj(self) -> Self {
        self
    }
    fn re(self) -> f64 {
        self
    }
    fn scaled(self, factor: f64) -> Self {
        self * factor
    }
    fn times(self, z: Complex64) -> Complex64 {
        z * self
    }
}

impl Entry for Complex64 {
    fn of(k: Complex64) -> Self {
        k
    }
    fn conj(self) -> Self {
        Complex::conj(&self)
    }
    fn re(self) -> f64 {
        self.re
    }
    fn scaled(self, factor: f64) -> Self {
        self * factor
    }
    fn times(self, z: Complex64) -> Complex64 {
        self * z
    }
}

/// Mean and covariance of `f` at the points `c_i`, and their prior. With `E f(x) f(c)* = k(c,x)`, the row of kernel values is the covariance of `f(x)`
/// with the points, and entry `(i, j)` of the matrices is `E f(c_i) f(c_j)*`. Matrices have room for one more point than the budget, and rows of that length.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Process<S: Entry> {
    mean: Vec<Complex64>,
    covariance: Vec<S>,
    gram: Vec<S>,
    inverse: Vec<S>,
    /// Scratch: kernel values `k`, `q = k Q`, and `h = Σ qᴴ`.
    #[serde(skip)]
    k: Vec<S>,
    #[serde(skip)]
    q: Vec<S>,
    #[serde(skip)]
    h: Vec<S>,
    stride: u64,
}

/// What a point is to the process.
#[derive(Clone, Copy)]
pub(super) struct Projection {
    /// `k(x,x)`.
    norm: f64,
    /// The mean of `f(x)`.
    pub(super) mean: Complex64,
    /// What of its prior variance the points do not explain.
    novelty: f64,
    /// The variance of `f(x)`.
    pub(super) variance: f64,
}

impl<S: Entry> Process<S> {
    pub(super) fn new(budget: usize) -> Self {
        let n = budget + 1;
        let (row, matrix) = (vec![S::zero(); n], vec![S::zero(); n * n]);
        Self {
            mean: Vec::with_capacity(n),
            covariance: matrix.clone(),
            gram: matrix.clone(),
            inverse: matrix,
            k: row.clone(),
            q: row.clone(),
            h: row,
            stride: n as u64,
        }
    }

    fn stride(&self) -> usize {
        self.stride as usize
    }

    pub(super) fn clear(&mut self) {
        self.mean.clear();
    }

    /// Takes the place of `self` where it fits.
    pub(super) fn check(mut self, other: &Self, points: usize) -> Result<Self> {
        let n = other.stride();
        for matrix in [&self.covariance, &self.gram, &self.inverse] {
            same_shape("entries in a matrix", matrix.len(), n * n)?;
        }
        same_shape("entries in a row", self.stride(), n)?;
        same_shape("means", self.mean.len(), points)?;
        if points >= n {
            return Err(Error::State(format!("it has {points} points, above this filter's budget of {}", n - 1)));
        }
        for row in [&mut self.k, &mut self.q, &mut self.h] {
            row.resize(n, S::zero());
        }
        self.mean.reserve(n);
        Ok(self)
    }

    /// Looks at `x` through its kernel values and `k(x,x)`.
    pub(super) fn project<T: Real>(&mut self, re: &[T], im: &[T], norm: f64) -> Projection {
        let (m, n) = (self.mean.len(), self.stride());
        for (k, (re, im)) in self.k.iter_mut().zip(re.iter().zip(im)) {
            *k = S::of(Complex::new(re.wide(), im.wide()));
        }
        times(&self.inverse, n, &self.k[..m], &mut self.q[..m]);
        let mean = self.q[..m].iter().zip(&self.mean).map(|(q, &mu)| q.times(mu)).sum();
        let explained: f64 = self.q[..m].iter().zip(&self.k).map(|(&q, &k)| (q * k.conj()).re()).sum();
        let novelty = (norm + JITTER * norm - explained).max(0.0);
        times(&self.covariance, n, &self.q[..m], &mut self.h[..m]);
        self.h[..m].iter_mut().for_each(|h| *h = h.conj());
        let known: f64 = self.q[..m].iter().zip(&self.h).map(|(&q, &h)| (q * h).re()).sum();
        Projection { norm, mean, novelty, variance: (novelty + known).max(0.0) }
    }

    /// Back to the prior.
    pub(super) fn forget(&mut self, lambda: f64) {
        let (m, n) = (self.mean.len(), self.stride());
        for i in 0..m {
            let gram = &self.gram[i * n..][..m];
            for (s, &k) in self.covariance[i * n..][..m].iter_mut().zip(gram) {
                *s = s.scaled(lambda) + k.scaled(1.0 - lambda);
            }
        }
        let root = lambda.sqrt();
        self.mean.iter_mut().for_each(|mu| *mu *= root);
    }

    /// Learns that `y` was observed in noise at the point that was just projected. Whether it became a point; nothing where the step overflows.
    pub(super) fn learn(&mut self, at: Projection, y: Complex64, noise: f64) -> Option<bool> {
        let total = at.variance + noise;
        let (m, n) = (self.mean.len(), self.stride());
        let step = (y - at.mean) / total;
        if !(finite(step) && total.is_finite()) {
            return None;
        }
        // Rounding can leave a new point without novelty; it is absorbed and not kept.
        let novel = at.novelty >= JITTER * at.norm && at.novelty > 0.0;
        if novel {
            for i in 0..m {
                self.gram[m * n + i] = self.k[i];
                self.gram[i * n + m] = self.k[i].conj();
                self.covariance[i * n + m] = self.h[i];
                self.covariance[m * n + i] = self.h[i].conj();
                self.inverse[i * n + m] = S::zero();
                self.inverse[m * n + i] = S::zero();
                self.q[i] = self.q[i].conj();
            }
            let real = |v: f64| S::of(Complex::new(v, 0.0));
            self.gram[m * n + m] = real(at.norm + JITTER * at.norm);
            self.covariance[m * n + m] = real(at.variance);
            self.inverse[m * n + m] = S::zero();
            self.mean.push(at.mean);
            (self.q[m], self.h[m]) = (real(-1.0), real(at.variance));
            rank_one(&mut self.inverse, n, &self.q[..=m], 1.0 / at.novelty);
        }
        let size = self.mean.len();
        self.mean.iter_mut().zip(&self.h).for_each(|(mu, h)| *mu += h.times(step));
        rank_one(&mut self.covariance, n, &self.h[..size], -1.0 / total);
        Some(novel)
    }

    /// Drops the point whose loss costs least, `|(Qμ)_i| / Q_ii`; the last one takes its place. Returns which.
    pub(super) fn drop_cheapest(&mut self) -> usize {
        let (size, n) = (self.mean.len(), self.stride());
        let mut least = (f64::INFINITY, 0);
        for i in 0..size {
            let cost = self.coefficient(i).norm() / self.inverse[i * n + i].re();
            if cost < least.0 {
                least = (cost, i);
            }
        }
        let r = least.1;
        let pivot = self.inverse[r * n + r].re();
        // The column, of which the row is the conjugate.
        for (q, entry) in self.q.iter_mut().zip(&self.inverse[r * n..][..size]) {
            *q = entry.conj();
        }
        rank_one(&mut self.inverse, n, &self.q[..size], -1.0 / pivot);
        let last = size - 1;
        for matrix in [&mut self.inverse, &mut self.covariance, &mut self.gram] {
            // The last point takes the place of the dropped one: first its row, then its column.
            matrix.copy_within(last * n..last * n + size, r * n);
            for i in 0..size {
                matrix[i * n + r] = matrix[i * n + last];
            }
        }
        self.mean.swap_remove(r);
        r
    }

    /// The function is `k(x) Qμ`: the coefficient of point `i` is `(Qμ)_i`.
    pub(super) fn coefficient(&self, i: usize) -> Complex64 {
        self.inverse[i * self.stride()..].iter().zip(&self.mean).map(|(q, &mu)| q.times(mu)).sum()
    }
}

/// `out = v A` for a matrix with rows of length `stride`.
fn times<S: Entry>(a: &[S], stride: usize, v: &[S], out: &mut [S]) {
    out.fill(S::zero());
    for (row, &v) in a.chunks_exact(stride).zip(v) {
        out.iter_mut().zip(row).for_each(|(o, &a)| *o += a * v);
    }
}

/// `A += factor · v vᴴ`.
fn rank_one<S: Entry>(a: &mut [S], stride: usize, v: &[S], factor: f64) {
    for (row, &p) in a.chunks_exact_mut(stride).zip(v) {
        row.iter_mut().zip(v).for_each(|(a, &q)| *a += (p * q.conj()).scaled(factor));
    }
}
