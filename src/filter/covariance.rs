//! The Hermitian covariance that RLS and Kalman filters carry.

use num_complex::Complex64;
use serde::{Deserialize, Serialize};

/// A Hermitian positive definite matrix in double precision, real and imaginary planes, rows contiguous.
///
/// Always double: its condition is the square of the input's, which single precision cannot hold on oversampled signals. Every change is a rank-one
/// update whose entries `(i,j)` and `(j,i)` are the same products, so the matrix stays exactly Hermitian with an exactly real diagonal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Covariance {
    n: usize,
    re: Vec<f64>,
    im: Vec<f64>,
}

impl Covariance {
    /// `variance · I`.
    pub(super) fn new(n: usize, variance: f64) -> Self {
        let mut covariance = Self { n, re: vec![0.0; n * n], im: vec![0.0; n * n] };
        covariance.reset(variance);
        covariance
    }

    pub(super) fn reset(&mut self, variance: f64) {
        self.re.fill(0.0);
        self.im.fill(0.0);
        self.re.iter_mut().step_by(self.n + 1).for_each(|d| *d = variance);
    }

    /// An entry.
    pub(super) fn at(&self, i: usize, j: usize) -> Complex64 {
        Complex64::new(self.re[i * self.n + j], self.im[i * self.n + j])
    }

    /// Whether restored planes have the size that belongs to `n`.
    pub(super) fn fits(&self, n: usize) -> bool {
        self.n == n && self.re.len() == n * n && self.im.len() == n * n
    }

    /// `v = P conj(x)`, and returns `xᵀ P conj(x)`, which is real.
    pub(super) fn times_conj(&self, x: &[Complex64], v: &mut Vector) -> f64 {
        v.re.fill(0.0);
        v.im.fill(0.0);
        for (j, x) in x.iter().enumerate() {
            // Column j is the conjugate of row j: P_ij conj(x_j) = conj(P_ji x_j).
            let rows = self.re[j * self.n..][..self.n].iter().zip(&self.im[j * self.n..][..self.n]);
            for ((re, im), (&a, &b)) in v.re.iter_mut().zip(&mut v.im).zip(rows) {
                *re += a * x.re - b * x.im;
                *im -= a * x.im + b * x.re;
            }
        }
        x.iter().zip(v.re.iter().zip(&v.im)).map(|(x, (&re, &im))| x.re * re - x.im * im).sum()
    }

    /// `P ← scale · (P − factor · v vᴴ)`.
    pub(super) fn downdate(&mut self, v: &Vector, factor: f64, scale: f64) {
        for i in 0..self.n {
            let (a, b) = (v.re[i], v.im[i]);
            let rows = self.re[i * self.n..][..self.n].iter_mut().zip(&mut self.im[i * self.n..][..self.n]);
            for ((re, im), (&c, &d)) in rows.zip(v.re.iter().zip(&v.im)) {
                *re = scale * (*re - factor * (a * c + b * d));
                *im = scale * (*im - factor * (b * c - a * d));
            }
        }
    }

    /// `P ← scale · P + add · I`.
    pub(super) fn diffuse(&mut self, scale: f64, add: f64) {
        if scale != 1.0 {
            self.re.iter_mut().chain(&mut self.im).for_each(|p| *p *= scale);
        }
        self.re.iter_mut().step_by(self.n + 1).for_each(|d| *d += add);
    }

    /// Where the largest variance exceeds `limit`, learns as much about that coordinate as brings it back there.
    ///
    /// Forgetting inflates the directions that the input does not excite (out of band, for an oversampled signal) without end. This
    /// bounds them, one rank-one update a sample, and leaves the others alone.
    pub(super) fn limit(&mut self, limit: f64, scratch: &mut Vector) {
        let diagonal = self.re.iter().step_by(self.n + 1);
        let Some((j, &top)) = diagonal.enumerate().max_by(|a, b| a.1.total_cmp(b.1)) else { return };
        if top > limit {
            let row = j * self.n..(j + 1) * self.n;
            scratch.re.copy_from_slice(&self.re[row.clone()]);
            scratch.im.iter_mut().zip(&self.im[row]).for_each(|(s, &p)| *s = -p);
            self.downdate(scratch, (top - limit) / (top * top), 1.0);
        }
    }
}

/// A complex vector in two planes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Vector {
    pub(super) re: Vec<f64>,
    pub(super) im: Vec<f64>,
}

impl Vector {
    pub(super) fn new(n: usize) -> Self {
        Self { re: vec![0.0; n], im: vec![0.0; n] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_exactly_hermitian_and_its_limit_holds() {
        let n = 5;
        let mut p = Covariance::new(n, 1.0);
        let (mut v, mut scratch) = (Vector::new(n), Vector::new(n));
        for step in 0..2000u32 {
            let t = f64::from(step);
            // Two directions of five are excited.
            let x: Vec<_> =
                (0..n).map(|i| Complex64::from_polar((t * 0.7).sin() + 1.5, 0.3 * i as f64 * (1.0 + f64::from(step % 2)))).collect();
            let s = p.times_conj(&x, &mut v);
            assert!(s >= 0.0);
            p.downdate(&v, 1.0 / (0.9 + s), 1.0 / 0.9);
            p.limit(50.0, &mut scratch);
        }
        for i in 0..n {
            assert_eq!(p.im[i * n + i], 0.0);
            assert!(p.re[i * n + i] > 0.0 && p.re[i * n + i] < 50.0 / 0.9f64.powi(5));
            for j in 0..n {
                assert_eq!((p.re[i * n + j], p.im[i * n + j]), (p.re[j * n + i], -p.im[j * n + i]));
            }
        }
    }
}
