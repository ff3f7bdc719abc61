//! The Gram matrix of the features.

use num_complex::Complex64;
use serde::{Deserialize, Serialize};

use super::super::matrix::Matrix;
use crate::Real;
use crate::simd::{Level, Op, Vector};

/// Samples that are added at once: their products are summed in the precision of the samples, these sums in double precision.
const BATCH: usize = 16;
/// Rows of the matrix that are added to at once, so that a feature is loaded once for all of them.
const ROWS: usize = 4;

/// `sum of F* F^T` and the samples that wait to be added.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Gram<T: Real> {
    matrix: Matrix,
    padded: usize,
    // A row of features for each sample that waits, in planes.
    re: Vec<T>,
    im: Vec<T>,
    held: usize,
}

impl<T: Real> Gram<T> {
    pub(super) fn new(n: usize) -> Self {
        let padded = n.next_multiple_of(16);
        let zeros = vec![T::zero(); BATCH * padded];
        Self { matrix: Matrix::zeros(n), padded, re: zeros.clone(), im: zeros, held: 0 }
    }

    pub(super) fn is_sound(&self, n: usize) -> bool {
        let rows = [&self.re, &self.im].iter().all(|r| r.len() == BATCH * self.padded && r.iter().all(|x| x.is_finite()));
        self.padded == n.next_multiple_of(16) && rows && self.held < BATCH && self.matrix.fits(n) && self.matrix.is_finite()
    }

    pub(super) fn clear(&mut self) {
        self.matrix.clear();
        self.held = 0;
    }

    /// How many samples it can hold before they are added.
    pub(super) fn room(&self) -> usize {
        BATCH - self.held
    }

    /// Sets feature `k` of the `s`-th sample that comes next.
    #[inline(always)]
    pub(super) fn set(&mut self, s: usize, k: usize, (re, im): (T, T)) {
        let at = (self.held + s) * self.padded + k;
        (self.re[at], self.im[at]) = (re, im);
    }

    /// So many samples were set.
    pub(super) fn advance(&mut self, level: Level, samples: usize) {
        self.held += samples;
        if self.held == BATCH {
            self.flush(level);
        }
    }

    /// The sum over all samples; its upper triangle counts.
    pub(super) fn sum(&mut self, level: Level) -> &Matrix {
        self.flush(level);
        &self.matrix
    }

    fn flush(&mut self, level: Level) {
        if self.held > 0 {
            T::dispatch(level, Accumulate(self));
            self.held = 0;
        }
    }
}

struct Accumulate<'a, T: Real>(&'a mut Gram<T>);

impl<T: Real> Op<T> for Accumulate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Gram { matrix, padded, re, im, held } = self.0;
        let (n, zero) = (matrix.n(), V::splat(T::zero()));
        let mut sums = [[T::zero(); 16]; 2];
        for i in (0..n).step_by(ROWS) {
            let mut j = i / V::LANES * V::LANES;
            while j < n {
                let (mut a, mut b) = ([zero; ROWS], [zero; ROWS]);
                for s in 0..*held {
                    let at = s * *padded;
                    let (x, y) = (V::read(re, at + j), V::read(im, at + j));
                    // The rows are padded beyond the last feature.
                    let (left, below) = (&re[at + i..at + i + ROWS], &im[at + i..at + i + ROWS]);
                    for r in 0..ROWS {
                        let (p, q) = (V::splat(left[r]), V::splat(below[r]));
                        a[r] = q.fma(y, p.fma(x, a[r]));
                        b[r] = q.fnma(x, p.fma(y, b[r]));
                    }
                }
                for r in 0..ROWS.min(n - i) {
                    a[r].write(&mut sums[0], 0);
                    b[r].write(&mut sums[1], 0);
                    matrix.add(i + r, j, V::LANES.min(n - j), &sums);
                }
                j += V::LANES;
            }
        }
    }
}

/// The inverse of a Gram matrix in the precision of the samples, rows padded to whole groups of vectors.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Inverse<T: Real> {
    pub(super) re: Vec<T>,
    pub(super) im: Vec<T>,
}

impl<T: Real> Inverse<T> {
    /// Numbers in a row of a matrix of `n` columns.
    pub(super) fn padded(n: usize) -> usize {
        n.next_multiple_of(64)
    }

    pub(super) fn new(n: usize) -> Self {
        let zeros = vec![T::zero(); n * Self::padded(n)];
        Self { re: zeros.clone(), im: zeros }
    }

    pub(super) fn is_sound(&self, n: usize) -> bool {
        [&self.re, &self.im].iter().all(|p| p.len() == n * Self::padded(n) && p.iter().all(|x| x.is_finite()))
    }

    /// Takes over the inverse of the leading `n` rows and columns of a matrix that was [swept](Matrix::sweep) so far.
    pub(super) fn fill(&mut self, swept: &Matrix, n: usize) {
        for i in 0..n {
            for (j, z) in (0..n).map(|j| (j, swept.swept(i, j))) {
                let at = i * Self::padded(n) + j;
                (self.re[at], self.im[at]) = (T::of(z.re), T::of(z.im));
            }
        }
    }
}

/// `w = H c` with the inverse `H` of the leading rows and columns of a matrix that was swept so far.
pub(super) fn solve(swept: &Matrix, c: &[Complex64], scale: f64, w: &mut [Complex64]) {
    let n = w.len();
    w.fill(Complex64::default());
    // Row by row of the upper triangle, which also is the conjugate of a column.
    for i in 0..n {
        let mut sum = Complex64::default();
        for j in i..n {
            let h = swept.swept(i, j) * scale;
            sum += h * c[j];
            if j > i {
                w[j] += h.conj() * c[i];
            }
        }
        w[i] += sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_and_inverse_are_those_of_the_samples_at_every_level() {
        let n = 21;
        let feature = |s: usize, k: usize| Complex64::cis((s * s * (k + 3) + k * k) as f64 * 0.37) * (1.0 + (k % 3) as f64);
        for &level in Level::available() {
            let mut gram = Gram::<f32>::new(n);
            // More than two batches, in portions that do not fill them.
            for s in 0..41 {
                (0..n).for_each(|k| gram.set(0, k, (feature(s, k).re as f32, feature(s, k).im as f32)));
                gram.advance(level, 1);
            }
            let mut sum = gram.sum(level).clone();
            for i in 0..n {
                for j in i..n {
                    let expected: Complex64 = (0..41).map(|s| feature(s, i).conj() * feature(s, j)).sum();
                    assert!((sum.at(i, j) - expected).norm() < 1e-3, "{level}, {i}, {j}: {} instead of {expected}", sum.at(i, j));
                }
            }
            sum.add_to_diagonal(10.0);
            let whole = sum.clone();
            assert!(sum.sweep(level, 0, n));
            let c: Vec<Complex64> = (0..n).map(|k| Complex64::new(k as f64, 1.0)).collect();
            let (mut w, mut inverse) = (vec![Complex64::default(); n], Inverse::<f64>::new(n));
            solve(&sum, &c, 2.0, &mut w);
            inverse.fill(&sum, n);
            for i in 0..n {
                let entry = |j: usize| if i <= j { whole.at(i, j) } else { whole.at(j, i).conj() };
                let back: Complex64 = (0..n).map(|j| entry(j) * w[j]).sum();
                assert!((back - c[i] * 2.0).norm() < 1e-6, "{level}, {i}: {back} instead of {}", c[i] * 2.0);
                let row = i * Inverse::<f64>::padded(n);
                let same: Complex64 = (0..n).map(|j| Complex64::new(inverse.re[row + j], inverse.im[row + j]) * c[j] * 2.0).sum();
                assert!((same - w[i]).norm() < 1e-6 * (1.0 + w[i].norm()), "{level}, {i}");
            }
        }
    }
}
