//! The shape that the covariances of all members share, and the coordinates in which it is the identity.
//!
//! With `R` the covariance of the curve's outputs and `D` the power of the taps, the covariance of a member in its steady state is a multiple of
//!
//! ```text
//!   X = D^1/2 (D^1/2 R D^1/2)^-1/2 D^1/2
//! ```
//!
//! whatever its span. `X = C C^H` with `C` lower triangular: taps are `h = C h~`, inputs `u~ = C^T u`, half the multiplications of a Hermitian root.

use num_complex::{Complex, Complex64};
use serde::{Deserialize, Serialize};

use super::constants::{SHAPE_FLOOR, SHAPE_RIDGE, TAP_FLOOR};
use super::lanes::White;
use super::matrix::Matrix;
use super::planes::Planes;
use crate::Real;
use crate::simd::{Level, Op, Vector};

/// Windows that the covariance of the input remembers.
const WINDOW: f64 = 4000.0;

/// Covariance of the input, power of the taps, and what follows from them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Shape<T: Real> {
    covariance: Matrix,
    count: f64,
    /// Running power of each tap.
    pub(super) power: Vec<f64>,
    /// `C`.
    factor: Matrix,
    /// `tr(R X)`.
    pub(super) tau: f64,
    // Columns of `C`, each from its diagonal on.
    columns: Vec<Vec<Complex<T>>>,
    // The factor before the last refresh, and room to compute.
    #[serde(skip)]
    work: Vec<Matrix>,
}

/// Matrices that a refresh takes.
const ROOM: usize = 6;

impl<T: Real> Shape<T> {
    pub(super) fn new(taps: usize) -> Self {
        let mut shape = Self {
            covariance: Matrix::zeros(taps),
            count: 0.0,
            power: vec![0.0; taps],
            factor: Matrix::identity(taps),
            tau: taps as f64,
            columns: (0..taps).map(|i| vec![Complex::default(); taps - i]).collect(),
            work: vec![Matrix::zeros(taps); ROOM],
        };
        shape.fill();
        shape
    }

    pub(super) fn is_sound(&self, taps: usize) -> bool {
        let columns = self.columns.len() == taps && self.columns.iter().enumerate().all(|(i, c)| c.len() == taps - i);
        let matrices = [&self.covariance, &self.factor].iter().all(|m| m.fits(taps) && m.is_finite());
        columns && matrices && self.power.len() == taps && self.tau.is_finite() && self.count.is_finite()
    }

    fn fill(&mut self) {
        let n = self.factor.n();
        let narrow = |z: Complex64| Complex::new(T::of(z.re), T::of(z.im));
        for (i, column) in self.columns.iter_mut().enumerate() {
            (i..n).for_each(|j| column[j - i] = narrow(self.factor.at(j, i)));
        }
    }

    /// Takes in a window of the curve's outputs, newest first.
    pub(super) fn observe(&mut self, u: &[Complex64]) {
        self.count = (self.count + 1.0).min(WINDOW);
        let pace = 1.0 / self.count;
        for (i, a) in u.iter().enumerate() {
            for (j, b) in u.iter().enumerate().skip(i) {
                let r = self.covariance.at(i, j);
                self.covariance.set(i, j, r + (a.conj() * b - r) * pace);
            }
        }
    }

    /// Follows the power of the taps `h`.
    pub(super) fn follow(&mut self, h: impl Iterator<Item = Complex64>, pace: f64) {
        self.power.iter_mut().zip(h).for_each(|(p, h)| *p += pace.min(1.0) * (h.norm_sqr() - *p));
    }

    /// An entry of the input's covariance with its ridge.
    pub(super) fn input(&self, i: usize, j: usize) -> Complex64 {
        let ridge = if i == j { (SHAPE_RIDGE * self.covariance.trace() / self.factor.n() as f64).max(f64::MIN_POSITIVE) } else { 0.0 };
        ridge + if i <= j { self.covariance.at(i, j) } else { self.covariance.at(j, i).conj() }
    }

    /// `tr(P R)` for a covariance given by its upper triangle.
    pub(super) fn excess(&self, p: impl Fn(usize, usize) -> Complex64) -> f64 {
        let n = self.factor.n();
        (0..n)
            .map(|i| (i..n).map(|j| (p(i, j) * self.covariance.at(i, j).conj()).re * if i == j { 1.0 } else { 2.0 }).sum::<f64>())
            .sum::<f64>()
            + (0..n).map(|i| (p(i, i) * (self.input(i, i) - self.covariance.at(i, i))).re).sum::<f64>()
    }

    /// Computes the shape anew; returns whether that worked.
    pub(super) fn refresh(&mut self, level: Level) -> bool {
        let n = self.factor.n();
        // After a saved state was read there is none.
        self.work.resize_with(ROOM, || Matrix::zeros(n));
        let mut work = std::mem::take(&mut self.work);
        let worked = self.compute(level, &mut work);
        self.work = work;
        worked
    }

    fn compute(&mut self, level: Level, work: &mut [Matrix]) -> bool {
        let n = self.factor.n();
        let most = self.power.iter().fold(f64::MIN_POSITIVE, |a, &b| a.max(b));
        let root = |p: f64| (p / most).max(TAP_FLOOR).sqrt();
        let [old, r, y, rest @ ..] = work else { return false };
        for i in 0..n {
            for j in 0..n {
                r.set(i, j, self.input(i, j));
                y.set(i, j, r.at(i, j) * root(self.power[i]) * root(self.power[j]));
            }
        }
        if !inverse_root(y, rest, level) {
            return false;
        }
        let [x, factor, ..] = rest else { return false };
        for i in 0..n {
            for j in 0..n {
                x.set(i, j, x.at(i, j) * root(self.power[i]) * root(self.power[j]));
            }
        }
        if !factor.cholesky(x) {
            return false;
        }
        self.tau = (0..n).map(|i| (0..n).map(|j| (r.at(i, j) * x.at(j, i)).re).sum::<f64>()).sum();
        old.copy_from(&self.factor);
        self.factor.copy_from(factor);
        self.fill();
        true
    }

    /// From the coordinates before the last refresh to the present ones, in place.
    pub(super) fn convert(&self, h: &mut [Complex64]) {
        if let Some(old) = self.work.first() {
            colour(old, h);
            self.whiten(h);
        }
    }

    /// `C h~`, in place.
    pub(super) fn colour(&self, h: &mut [Complex64]) {
        colour(&self.factor, h);
    }

    /// `C h~` into `to`, without a detour through double precision.
    pub(super) fn colour_into(&self, white: impl Iterator<Item = Complex<T>>, to: &mut [Complex<T>]) {
        to.fill(Complex::default());
        for (i, (w, column)) in white.zip(&self.columns).enumerate() {
            to[i..].iter_mut().zip(column).for_each(|(to, c)| *to += c * w);
        }
    }

    /// `C⁻¹ h`, in place.
    pub(super) fn whiten(&self, h: &mut [Complex64]) {
        for i in 0..h.len() {
            let sum: Complex64 = (0..i).map(|j| self.factor.at(i, j) * h[j]).sum();
            h[i] = (h[i] - sum) / self.factor.at(i, i);
        }
    }

    /// An entry of `X`.
    pub(super) fn entry(&self, i: usize, j: usize) -> Complex64 {
        (0..=i.min(j)).map(|k| self.factor.at(i, k) * self.factor.at(j, k).conj()).sum()
    }
}

/// `C h~` for any factor, in place.
fn colour(factor: &Matrix, h: &mut [Complex64]) {
    for i in (0..h.len()).rev() {
        h[i] = (0..=i).map(|j| factor.at(i, j) * h[j]).sum();
    }
}

/// `M^-1/2` of a Hermitian positive matrix `y`, its eigenvalues raised by the floor, by the coupled Newton-Schulz iteration (Higham 2008, eq. 6.35).
/// The first matrix of `work` receives it.
fn inverse_root(y: &mut Matrix, work: &mut [Matrix], level: Level) -> bool {
    let [z, t, next, ..] = work else { return false };
    let n = y.n();
    let norm = |m: &Matrix| (0..n).map(|i| (0..n).map(|j| m.at(i, j).norm()).sum::<f64>()).fold(0.0, f64::max);
    y.add_to_diagonal(SHAPE_FLOOR * norm(y));
    let scale = norm(y);
    if !(scale > 0.0 && scale.is_finite()) {
        return false;
    }
    y.scale(1.0 / scale);
    z.clear();
    z.add_to_diagonal(1.0);
    for _ in 0..60 {
        t.product(level, z, y);
        let distance: f64 = (0..n).map(|i| (0..n).map(|j| (t.at(i, j) - f64::from(u8::from(i == j))).norm_sqr()).sum::<f64>()).sum();
        if distance < 1e-12 * n as f64 {
            break;
        }
        t.scale(-0.5);
        t.add_to_diagonal(1.5);
        next.product(level, y, t);
        std::mem::swap(y, next);
        next.product(level, t, z);
        std::mem::swap(z, next);
    }
    z.scale(scale.sqrt().recip());
    z.is_finite()
}

/// `u~ = C^T u` for some samples of a cell.
pub(super) struct Whiten<'a, T: Real> {
    pub(super) shape: &'a Shape<T>,
    pub(super) u: &'a Planes<T>,
    /// Where the cell begins in the planes, and the first and last samples in it.
    pub(super) start: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) white: &'a mut White<T>,
}

impl<T: Real> Op<T> for Whiten<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let n = self.shape.columns.len();
        let mut t = self.from;
        while t < self.to {
            // Aligned to the cell, so that a vector never leaves it.
            let at = t / V::LANES * V::LANES;
            let (newest, place, zero) = (self.start + at, White::<T>::place(at), V::splat(T::zero()));
            let mut norm = zero;
            let mut i = 0;
            // Four taps at a time, as they look at the same samples.
            while i < n {
                let (mut a, mut b) = ([zero; 4], [zero; 4]);
                let columns = &self.shape.columns[i..(i + 4).min(n)];
                for lag in i..n {
                    let (x, y) = (V::read(&self.u.re, newest - lag), V::read(&self.u.im, newest - lag));
                    for (k, column) in columns.iter().enumerate().take(lag - i + 1) {
                        let c = column[lag - i - k];
                        let (re, im) = (V::splat(c.re), V::splat(c.im));
                        a[k] = im.fnma(y, re.fma(x, a[k]));
                        b[k] = im.fma(x, re.fma(y, b[k]));
                    }
                }
                for k in 0..4.min(n - i) {
                    let to = &mut self.white.taps[i + k];
                    a[k].write(&mut to.re, place);
                    b[k].write(&mut to.im, place);
                    norm = a[k].fma(a[k], b[k].fma(b[k], norm));
                }
                i += 4;
            }
            norm.write(&mut self.white.norm, place);
            let (mut re, mut im) = (zero, zero);
            for i in 0..n {
                let w = &self.white.taps[i];
                let (a, b) = (V::read(&w.re, place - 1), V::read(&w.im, place - 1));
                let (x, y) = (V::read(&w.re, place), V::read(&w.im, place));
                re = a.fma(x, b.fma(y, re));
                im = b.fnma(x, a.fma(y, im));
            }
            re.write(&mut self.white.link.0, place);
            im.write(&mut self.white.link.1, place);
            t = at + V::LANES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_solves_its_equation_and_the_filter_whitens() {
        // X R X = D where all eigenvalues are above the floor.
        let n = 6;
        let mut shape = Shape::<f64>::new(n);
        for t in 0..4000u32 {
            let sample = |k: u32| Complex64::cis(f64::from(k) * f64::from(k) * 0.37);
            let u: Vec<Complex64> = (0..n as u32).map(|l| sample(t + 9 - l) + sample(t + 8 - l) * 0.5).collect();
            shape.observe(&u);
        }
        shape.power = (0..n).map(|l| 0.5f64.powi(l as i32)).collect();
        assert!(shape.refresh(Level::Plain));
        let [mut x, mut r, mut half, mut product] = std::array::from_fn(|_| Matrix::zeros(n));
        (0..n).for_each(|i| (0..n).for_each(|j| x.set(i, j, shape.entry(i, j))));
        (0..n).for_each(|i| (0..n).for_each(|j| r.set(i, j, shape.input(i, j))));
        half.product(Level::Plain, &x, &r);
        product.product(Level::Plain, &half, &x);
        for i in 0..n {
            for j in 0..n {
                let d = if i == j { shape.power[i] } else { 0.0 };
                assert!((product.at(i, j) - d).norm() < 5e-3, "{i}, {j}: {}", product.at(i, j));
            }
        }
        let h: Vec<Complex64> = (0..n).map(|l| Complex64::cis(l as f64)).collect();
        let mut coloured = h.clone();
        shape.colour(&mut coloured);
        let mut back = coloured.clone();
        shape.whiten(&mut back);
        h.iter().zip(&back).for_each(|(a, b)| assert!((a - b).norm() < 1e-9));
        // h.u does not depend on the coordinates, at any level.
        let mut u = Planes::<f64>::new(16);
        (0..160).for_each(|i| u.set(i, Complex64::cis((i * i) as f64 * 0.1)));
        for &level in Level::available() {
            use crate::simd::Dispatch;
            let mut white = White::new(n);
            f64::dispatch(level, Whiten { shape: &shape, u: &u, start: 16, from: 3, to: 9, white: &mut white });
            for t in 3..9 {
                let plain: Complex64 = (0..n).map(|l| coloured[l] * u.at(16 + t - l)).sum();
                let whitened: Complex64 = (0..n).map(|l| h[l] * Complex64::new(white.taps[l].re[16 + t], white.taps[l].im[16 + t])).sum();
                assert!((plain - whitened).norm() < 1e-9, "{level}");
            }
        }
    }
}
