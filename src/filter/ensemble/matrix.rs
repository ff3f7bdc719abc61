//! Complex matrices in double precision: planes of real and imaginary parts, rows one after the other.

use num_complex::Complex64;
use serde::{Deserialize, Serialize};

use crate::simd::{Dispatch, Level, Op, Vector};

/// A square matrix. Of a Hermitian one that is added to and inverted only the upper triangle counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Matrix {
    n: usize,
    re: Vec<f64>,
    im: Vec<f64>,
}

impl Matrix {
    pub(super) fn zeros(n: usize) -> Self {
        Self { n, re: vec![0.0; n * n], im: vec![0.0; n * n] }
    }

    pub(super) fn identity(n: usize) -> Self {
        let mut matrix = Self::zeros(n);
        matrix.re.iter_mut().step_by(n + 1).for_each(|d| *d = 1.0);
        matrix
    }

    pub(super) fn n(&self) -> usize {
        self.n
    }

    pub(super) fn fits(&self, n: usize) -> bool {
        self.n == n && self.re.len() == n * n && self.im.len() == n * n
    }

    pub(super) fn is_finite(&self) -> bool {
        self.re.iter().chain(&self.im).all(|x| x.is_finite())
    }

    #[inline(always)]
    pub(super) fn at(&self, i: usize, j: usize) -> Complex64 {
        Complex64::new(self.re[i * self.n + j], self.im[i * self.n + j])
    }

    #[inline(always)]
    pub(super) fn set(&mut self, i: usize, j: usize, z: Complex64) {
        (self.re[i * self.n + j], self.im[i * self.n + j]) = (z.re, z.im);
    }

    pub(super) fn row(&self, i: usize) -> (&[f64], &[f64]) {
        (&self.re[i * self.n..][..self.n], &self.im[i * self.n..][..self.n])
    }

    pub(super) fn trace(&self) -> f64 {
        self.re.iter().step_by(self.n + 1).sum()
    }

    pub(super) fn add_to_diagonal(&mut self, x: f64) {
        self.re.iter_mut().step_by(self.n + 1).for_each(|d| *d += x);
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.re.iter_mut().chain(&mut self.im).for_each(|x| *x *= factor);
    }

    /// Writes the lower triangle of a Hermitian matrix whose upper one counts.
    pub(super) fn mirror(&mut self) {
        for i in 0..self.n {
            for j in 0..i {
                self.set(i, j, self.at(j, i).conj());
            }
        }
    }

    /// `self ← keep · self + Σ_s conj(f_s) f_sᵀ`, the upper triangle; rows of `f` are one sample each, weights inside.
    pub(super) fn accumulate(&mut self, level: Level, keep: f64, f: &[(Vec<f64>, Vec<f64>)]) {
        f64::dispatch(level, Accumulate { matrix: self, keep, f });
    }

    /// The inverse of the leading `k` rows and columns of a Hermitian positive matrix for each `k` of `sizes`, which grow to all of them.
    ///
    /// By the symmetric sweep: when the first `k` pivots are swept, the leading block is minus its inverse (Goodnight 1979).
    pub(super) fn inverses(mut self, level: Level, sizes: &[usize]) -> Option<Vec<Matrix>> {
        let (mut from, mut inverses) = (0, Vec::new());
        for &to in sizes {
            f64::dispatch(level, Sweep { matrix: &mut self, from, to }).then_some(())?;
            let mut inverse = Self::zeros(to);
            for i in 0..to {
                for j in i..to {
                    inverse.set(i, j, -self.at(i, j));
                }
            }
            inverse.mirror();
            inverses.push(inverse);
            from = to;
        }
        inverses.iter().all(Matrix::is_finite).then_some(inverses)
    }

    /// `self · other`.
    pub(super) fn times(&self, level: Level, other: &Self) -> Self {
        let mut product = Self::zeros(self.n);
        f64::dispatch(level, Product { a: self, b: other, to: &mut product });
        product
    }

    /// The lower triangular `C` with `C Cᴴ = self`, a Hermitian positive matrix.
    pub(super) fn cholesky(&self) -> Option<Self> {
        let mut c = Self::zeros(self.n);
        for j in 0..self.n {
            let square: f64 = (0..j).map(|k| c.at(j, k).norm_sqr()).sum();
            let pivot = self.at(j, j).re - square;
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            c.set(j, j, pivot.sqrt().into());
            for i in j + 1..self.n {
                let sum: Complex64 = (0..j).map(|k| c.at(i, k) * c.at(j, k).conj()).sum();
                c.set(i, j, (self.at(i, j) - sum) / pivot.sqrt());
            }
        }
        Some(c)
    }
}

/// `y += (a_re + i a_im) x`, on planes of one length.
#[inline(always)]
fn axpy<V: Vector<f64>>(a: Complex64, x: (&[f64], &[f64]), y: (&mut [f64], &mut [f64])) {
    let n = y.0.len();
    let (x, y) = ((&x.0[..n], &x.1[..n]), (&mut y.0[..n], &mut y.1[..n]));
    let (re, im) = (V::splat(a.re), V::splat(a.im));
    let mut i = 0;
    while i + V::LANES <= n {
        let (p, q) = (V::read(x.0, i), V::read(x.1, i));
        im.fnma(q, re.fma(p, V::read(y.0, i))).write(y.0, i);
        im.fma(p, re.fma(q, V::read(y.1, i))).write(y.1, i);
        i += V::LANES;
    }
    while i < n {
        y.0[i] += a.re * x.0[i] - a.im * x.1[i];
        y.1[i] += a.re * x.1[i] + a.im * x.0[i];
        i += 1;
    }
}

/// `y += Σ_s a_s x_s`, on planes: the sum stays in registers.
#[inline(always)]
fn combine<'a, V: Vector<f64>>(terms: impl Fn(usize) -> (Complex64, &'a [f64], &'a [f64]), count: usize, y: (&mut [f64], &mut [f64])) {
    let n = y.0.len();
    let mut i = 0;
    while i + V::LANES <= n {
        let (mut p, mut q) = (V::read(y.0, i), V::read(y.1, i));
        for s in 0..count {
            let (a, x, z) = terms(s);
            let (re, im, x, z) = (V::splat(a.re), V::splat(a.im), V::read(x, i), V::read(z, i));
            p = im.fnma(z, re.fma(x, p));
            q = im.fma(x, re.fma(z, q));
        }
        p.write(y.0, i);
        q.write(y.1, i);
        i += V::LANES;
    }
    while i < n {
        for s in 0..count {
            let (a, x, z) = terms(s);
            y.0[i] += a.re * x[i] - a.im * z[i];
            y.1[i] += a.re * z[i] + a.im * x[i];
        }
        i += 1;
    }
}

struct Accumulate<'a> {
    matrix: &'a mut Matrix,
    keep: f64,
    f: &'a [(Vec<f64>, Vec<f64>)],
}

impl Op<f64> for Accumulate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let n = self.matrix.n;
        for i in 0..n {
            let (re, im) = (&mut self.matrix.re[i * n + i..(i + 1) * n], &mut self.matrix.im[i * n + i..(i + 1) * n]);
            if self.keep != 1.0 {
                re.iter_mut().zip(im.iter_mut()).for_each(|(re, im)| (*re, *im) = (*re * self.keep, *im * self.keep));
            }
            let term = |s: usize| {
                let f = &self.f[s];
                (Complex64::new(f.0[i], -f.1[i]), &f.0[i..n], &f.1[i..n])
            };
            combine::<V>(term, self.f.len(), (re, im));
        }
    }
}

struct Sweep<'a> {
    matrix: &'a mut Matrix,
    from: usize,
    to: usize,
}

impl Op<f64> for Sweep<'_> {
    /// Whether all pivots were positive.
    type Output = bool;

    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> bool {
        let m = self.matrix;
        let n = m.n;
        let (mut re, mut im) = (vec![0.0; n], vec![0.0; n]);
        for k in self.from..self.to {
            let pivot = m.re[k * n + k];
            if !(pivot > 0.0 && pivot.is_finite()) {
                return false;
            }
            // Row k of the whole matrix; left of the diagonal it is the conjugate of the column.
            for j in 0..n {
                (re[j], im[j]) = if j < k { (m.re[j * n + k], -m.im[j * n + k]) } else { (m.re[k * n + j], m.im[k * n + j]) };
            }
            (re[k], im[k]) = (0.0, 0.0);
            for i in 0..n {
                let a = Complex64::new(re[i], -im[i]) / -pivot;
                if i != k {
                    let to = (&mut m.re[i * n + i..(i + 1) * n], &mut m.im[i * n + i..(i + 1) * n]);
                    axpy::<V>(a, (&re[i..], &im[i..]), to);
                }
            }
            for j in 0..n {
                let (row, column) = (Complex64::new(re[j], im[j]) / pivot, Complex64::new(re[j], -im[j]) / pivot);
                match j.cmp(&k) {
                    std::cmp::Ordering::Less => m.set(j, k, column),
                    std::cmp::Ordering::Equal => m.set(k, k, (-1.0 / pivot).into()),
                    std::cmp::Ordering::Greater => m.set(k, j, row),
                }
            }
        }
        true
    }
}

struct Product<'a> {
    a: &'a Matrix,
    b: &'a Matrix,
    to: &'a mut Matrix,
}

impl Op<f64> for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let n = self.a.n;
        for i in 0..n {
            let (re, im) = (&mut self.to.re[i * n..][..n], &mut self.to.im[i * n..][..n]);
            let term = |k: usize| {
                let (x, z) = self.b.row(k);
                (self.a.at(i, k), x, z)
            };
            combine::<V>(term, n, (re, im));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positive(n: usize) -> Matrix {
        let mut m = Matrix::zeros(n);
        let sample = |s: usize| -> (Vec<f64>, Vec<f64>) {
            (0..n).map(|i| (((s * 31 + i * 17 + s * i) % 23) as f64 - 11.0, ((s * 13 + i * 7 + s * i * i) % 19) as f64 - 9.0)).unzip()
        };
        m.accumulate(Level::Plain, 0.0, &(0..3 * n).map(sample).collect::<Vec<_>>());
        m.add_to_diagonal(1.0);
        m.mirror();
        m
    }

    fn is_identity(m: &Matrix) -> bool {
        (0..m.n()).all(|i| (0..m.n()).all(|j| (m.at(i, j) - f64::from(u8::from(i == j))).norm() < 1e-9))
    }

    #[test]
    fn inverses_of_all_leading_blocks_and_factors_are_right_at_every_level() {
        for &level in Level::available() {
            for n in [1usize, 2, 5, 16, 33] {
                let m = positive(n);
                let sizes: Vec<usize> = if n > 2 { vec![n / 2, n] } else { vec![n] };
                let inverses = m.clone().inverses(level, &sizes).unwrap();
                assert!(is_identity(&inverses[sizes.len() - 1].times(level, &m)), "{level}, {n}");
                let mut block = Matrix::zeros(sizes[0]);
                (0..sizes[0]).for_each(|i| (0..sizes[0]).for_each(|j| block.set(i, j, m.at(i, j))));
                assert!(is_identity(&inverses[0].times(level, &block)), "{level}, leading {} of {n}", sizes[0]);
                let c = m.cholesky().unwrap();
                let mut adjoint = Matrix::zeros(n);
                (0..n).for_each(|i| (0..n).for_each(|j| adjoint.set(i, j, c.at(j, i).conj())));
                assert!(is_identity(&c.times(level, &adjoint).times(level, &inverses[sizes.len() - 1])), "{level}, {n}");
            }
            let mut indefinite = positive(4);
            indefinite.set(3, 3, Complex64::new(-1.0, 0.0));
            assert!(indefinite.cholesky().is_none() && indefinite.inverses(level, &[4]).is_none());
        }
    }
}
