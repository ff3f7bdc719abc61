//! The functions over the envelope that the nonlinearity is expanded in.

use crate::Real;

use super::linear::{padded, part, part_mut};
use crate::simd::Halves;

/// Largest envelope that the centres cover, in units of the input's RMS. Above it the gain stays what it is there.
const REACH: f64 = 3.2;
/// Pieces of the table. Inside them values are interpolated: the functions are piecewise linear, and exactly the same everywhere.
const STEPS: usize = 256;
/// Envelopes at which a function is sampled when the unit of the envelope changes.
const GRID: usize = 33;

/// The constant 1 (the linear term), then `centres` Gaussians `exp(-(r - c)^2 / 2 w^2)` whose width `w` is the spacing of the centres.
#[derive(Clone, Debug, Default)]
pub(super) struct Basis<T: Real> {
    centres: usize,
    stride: usize,
    // For each piece the values at its beginning, then their slopes over it.
    table: Vec<T>,
    gauge: Vec<f64>,
    fit: Vec<f64>,
}

impl<T: Real> Basis<T> {
    pub(super) fn new(centres: usize) -> Self {
        let stride = padded(centres + 1);
        let mut table = vec![T::zero(); (STEPS + 1) * 2 * stride];
        let at = |j: usize, step: usize| Self::function(centres, j, REACH * step.min(STEPS) as f64 / STEPS as f64);
        for (step, row) in table.chunks_exact_mut(2 * stride).enumerate() {
            for j in 0..=centres {
                row[j] = T::of(at(j, step));
                row[stride + j] = T::of(at(j, step + 1) - at(j, step));
            }
        }
        let mut basis = Self { centres, stride, table, gauge: Vec::new(), fit: Vec::new() };
        basis.gauge = basis.rayleigh_mean();
        basis.fit = basis.least_squares();
        basis
    }

    /// Functions, the linear term included.
    pub(super) fn len(&self) -> usize {
        self.centres + 1
    }

    /// Places that a row of values takes, padding included.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Position of the centre of function `j`, from 1.
    pub(super) fn centre(&self, j: usize) -> f64 {
        REACH * (j - 1) as f64 / (self.centres.max(2) - 1) as f64
    }

    fn function(centres: usize, j: usize, r: f64) -> f64 {
        if j == 0 {
            return 1.0;
        }
        let spacing = REACH / (centres.max(2) - 1) as f64;
        let d = r / spacing - (j - 1) as f64;
        (-0.5 * d * d).exp()
    }

    /// All functions at `envelope`. `stride` is [`stride`](Self::stride), a constant where it is usual.
    #[inline(always)]
    pub(super) fn eval<H: Halves<T>>(&self, stride: usize, envelope: T, out: &mut [T]) {
        let (piece, f) = self.find(stride, envelope);
        let ((values, slopes), f) = (piece.split_at(stride), H::splat(f));
        for j in (0..stride).step_by(4) {
            f.fma(H::twice(part(slopes, j)), H::twice(part(values, j))).store_first(part_mut(out, j));
        }
    }

    /// The same where time does not count.
    pub(super) fn eval_plain(&self, envelope: T, out: &mut [T]) {
        let (piece, f) = self.find(self.stride, envelope);
        let (values, slopes) = piece.split_at(self.stride);
        for (o, (v, s)) in out.iter_mut().zip(values.iter().zip(slopes)) {
            *o = *v + f * *s;
        }
    }

    /// The piece of the table that an envelope lies in, and where in it.
    #[inline(always)]
    fn find(&self, stride: usize, envelope: T) -> (&[T], T) {
        let x = (envelope * T::of(STEPS as f64 / REACH)).min(T::of(STEPS as f64));
        let k = (x.wide() as i32).max(0) as usize;
        (&self.table[2 * k * stride..][..2 * stride], x - T::of(k as f64))
    }

    /// The power-weighted mean of each function over a Rayleigh envelope: the direction along which the scale is fixed.
    pub(super) fn gauge(&self) -> &[f64] {
        &self.gauge
    }

    fn rayleigh_mean(&self) -> Vec<f64> {
        let mut mean = vec![0.0; self.len()];
        let mut total = 0.0;
        for (step, row) in self.table.chunks_exact(2 * self.stride).enumerate() {
            let r = REACH * step as f64 / STEPS as f64;
            let weight = r.powi(3) * (-r * r).exp();
            total += weight;
            for (m, v) in mean.iter_mut().zip(row) {
                *m += weight * v.wide();
            }
        }
        mean.iter().map(|m| m / total).collect()
    }

    /// Weights of the function whose values at the grid are given: `fit * values`, least squares with a small ridge.
    fn least_squares(&self) -> Vec<f64> {
        let n = self.len();
        let rows: Vec<Vec<f64>> = (0..GRID).map(|g| (0..n).map(|j| Self::function(self.centres, j, self.grid(g))).collect()).collect();
        let mut normal = vec![vec![0.0; n + GRID]; n];
        for i in 0..n {
            for j in 0..n {
                normal[i][j] = rows.iter().map(|r| r[i] * r[j]).sum::<f64>() + if i == j { 1e-4 } else { 0.0 };
            }
            for g in 0..GRID {
                normal[i][n + g] = rows[g][i];
            }
        }
        // Gauss-Jordan without pivoting: the matrix is positive definite.
        for i in 0..n {
            let pivot = normal[i][i];
            normal[i].iter_mut().for_each(|v| *v /= pivot);
            let row = normal[i].clone();
            for (_, other) in normal.iter_mut().enumerate().filter(|(k, _)| *k != i) {
                let f = other[i];
                other.iter_mut().zip(&row).for_each(|(o, r)| *o -= f * r);
            }
        }
        normal.into_iter().flat_map(|row| row[n..].to_vec()).collect()
    }

    fn grid(&self, g: usize) -> f64 {
        REACH * g as f64 / (GRID - 1) as f64
    }

    /// The weights that give at `r` what `weights` gave at `ratio * r`: the same nonlinearity in another unit of the envelope.
    pub(super) fn stretch(&self, weights: &mut [T], ratio: f64, scratch: &mut [T]) {
        let n = self.len();
        let old = &mut scratch[..self.stride];
        let mut fitted = [0.0f64; GRID];
        for (g, f) in fitted.iter_mut().enumerate() {
            self.eval_plain(T::of(ratio * self.grid(g)), old);
            *f = weights[..n].iter().zip(&*old).map(|(w, v)| w.wide() * v.wide()).sum();
        }
        for (j, w) in weights[..n].iter_mut().enumerate() {
            *w = T::of(self.fit[j * GRID..][..GRID].iter().zip(&fitted).map(|(f, v)| f * v).sum());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretching_keeps_the_curve() {
        let basis = Basis::<f64>::new(8);
        let curve = |w: &[f64], r: f64| {
            let mut phi = vec![0.0; basis.stride()];
            basis.eval_plain(r, &mut phi);
            w.iter().zip(&phi).map(|(w, p)| w * p).sum::<f64>()
        };
        let old = [0.4, 0.5, 0.3, 0.2, 0.1, 0.0, -0.05, -0.1, -0.1, 0.0, 0.0, 0.0];
        for ratio in [0.25, 0.7, 1.0, 1.3] {
            let mut new = old;
            basis.stretch(&mut new, ratio, &mut vec![0.0; basis.stride()]);
            for r in [0.1, 0.5, 1.0, 1.7, 2.3] {
                assert!(
                    (curve(&new, r) - curve(&old, ratio * r)).abs() < 0.02,
                    "{ratio} {r}: {} {}",
                    curve(&new, r),
                    curve(&old, ratio * r)
                );
            }
        }
    }

    #[test]
    fn the_table_is_the_gaussian_and_constant_beyond_the_reach() {
        let basis = Basis::<f64>::new(8);
        let (mut a, mut b) = (vec![0.0; 12], vec![0.0; 12]);
        for k in 0..100 {
            let r = 0.0317 * f64::from(k);
            basis.eval_plain(r, &mut a);
            for (j, v) in a.iter().enumerate().take(9) {
                assert!((v - Basis::<f64>::function(8, j, r.min(REACH))).abs() < 1e-4);
            }
        }
        basis.eval_plain(REACH, &mut a);
        basis.eval_plain(1e30, &mut b);
        assert_eq!(a, b);
    }
}
