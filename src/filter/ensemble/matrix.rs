//! Complex matrices in double precision: planes of real and imaginary parts, rows one after the other.

use num_complex::Complex64;
use serde::{Deserialize, Serialize};

use crate::Real;
use crate::simd::{Dispatch, Level, Op, Vector};

/// A square matrix. Of a Hermitian one that is added to and inverted only the upper triangle counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Matrix {
    n: usize,
    re: Vec<f64>,
    im: Vec<f64>,
    // Room for a row while it is swept.
    #[serde(skip)]
    line: (Vec<f64>, Vec<f64>),
}

impl Matrix {
    pub(super) fn zeros(n: usize) -> Self {
        Self { n, re: vec![0.0; n * n], im: vec![0.0; n * n], line: (vec![0.0; n], vec![0.0; n]) }
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

    pub(super) fn clear(&mut self) {
        self.re.fill(0.0);
        self.im.fill(0.0);
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.re.copy_from_slice(&other.re);
        self.im.copy_from_slice(&other.im);
    }

    /// Adds `count` numbers to row `i` from column `j` on: real and imaginary parts.
    #[inline(always)]
    pub(super) fn add<T: Real>(&mut self, i: usize, j: usize, count: usize, to_add: &[[T; 16]; 2]) {
        let at = i * self.n + j;
        for (plane, add) in [&mut self.re, &mut self.im].into_iter().zip(to_add) {
            plane[at..at + count].iter_mut().zip(add).for_each(|(x, add)| *x += add.wide());
        }
    }

    /// Sweeps pivots `from..to` of a Hermitian positive matrix. When all before `k` are swept, the leading block of `k` rows is minus its inverse
    /// (Goodnight 1979), to be read with [`swept`](Self::swept). Returns whether all pivots were positive.
    pub(super) fn sweep(&mut self, level: Level, from: usize, to: usize) -> bool {
        f64::dispatch(level, Sweep { matrix: self, from, to })
    }

    /// An entry of the inverse after [`sweep`](Self::sweep).
    #[inline(always)]
    pub(super) fn swept(&self, i: usize, j: usize) -> Complex64 {
        -if i <= j { self.at(i, j) } else { self.at(j, i).conj() }
    }

    /// `self = a · b`.
    pub(super) fn product(&mut self, level: Level, a: &Self, b: &Self) {
        self.clear();
        f64::dispatch(level, Product { a, b, to: self });
    }

    /// `self = C`, lower triangular, with `C Cᴴ = m`, a Hermitian positive matrix; returns whether there is one.
    pub(super) fn cholesky(&mut self, m: &Self) -> bool {
        self.clear();
        for j in 0..self.n {
            let square: f64 = (0..j).map(|k| self.at(j, k).norm_sqr()).sum();
            let pivot = m.at(j, j).re - square;
            if !(pivot > 0.0 && pivot.is_finite()) {
                return false;
            }
            self.set(j, j, pivot.sqrt().into());
            for i in j + 1..self.n {
                let sum: Complex64 = (0..j).map(|k| self.at(i, k) * self.at(j, k).conj()).sum();
                self.set(i, j, (m.at(i, j) - sum) / pivot.sqrt());
            }
        }
        true
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
        let (mut re, mut im) = std::mem::take(&mut m.line);
        re.resize(n, 0.0);
        im.resize(n, 0.0);
        for k in self.from..self.to {
            let pivot = m.re[k * n + k];
            if !(pivot > 0.0 && pivot.is_finite()) {
                m.line = (re, im);
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
        m.line = (re, im);
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
        let mut m = Matrix::identity(n);
        for s in 0..3 * n {
            let f =
                |i: usize| Complex64::new(((s * 31 + i * 17 + s * i) % 23) as f64 - 11.0, ((s * 13 + i * 7 + s * i * i) % 19) as f64 - 9.0);
            (0..n).for_each(|i| (0..n).for_each(|j| m.set(i, j, m.at(i, j) + f(i).conj() * f(j))));
        }
        m
    }

    fn is_identity(m: &Matrix) -> bool {
        (0..m.n()).all(|i| (0..m.n()).all(|j| (m.at(i, j) - f64::from(u8::from(i == j))).norm() < 1e-9))
    }

    fn leading(k: usize, entry: impl Fn(usize, usize) -> Complex64) -> Matrix {
        let mut block = Matrix::zeros(k);
        (0..k).for_each(|i| (0..k).for_each(|j| block.set(i, j, entry(i, j))));
        block
    }

    #[test]
    fn inverses_of_all_leading_blocks_and_factors_are_right_at_every_level() {
        for &level in Level::available() {
            for n in [1usize, 2, 5, 16, 33] {
                let m = positive(n);
                let (mut work, mut product, mut swept) = (m.clone(), Matrix::zeros(n), 0);
                for k in [n / 2, n] {
                    assert!(work.sweep(level, swept, k));
                    let (inverse, block, mut product) =
                        (leading(k, |i, j| work.swept(i, j)), leading(k, |i, j| m.at(i, j)), Matrix::zeros(k));
                    product.product(level, &inverse, &block);
                    assert!(is_identity(&product), "{level}, leading {k} of {n}");
                    swept = k;
                }
                let mut c = Matrix::zeros(n);
                assert!(c.cholesky(&m));
                let adjoint = leading(n, |i, j| c.at(j, i).conj());
                product.product(level, &c, &adjoint);
                let inverse = leading(n, |i, j| work.swept(i, j));
                work.product(level, &product, &inverse);
                assert!(is_identity(&work), "{level}, {n}");
            }
            let mut indefinite = positive(4);
            indefinite.set(3, 3, Complex64::new(-1.0, 0.0));
            assert!(!Matrix::zeros(4).cholesky(&indefinite) && !indefinite.sweep(level, 0, 4));
        }
    }
}
