//! Small complex vectors and matrices, planar (real parts, then imaginary parts) and padded with zeros to whole SIMD lanes.

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use crate::Real;

/// Lengths are rounded up to a multiple of this.
pub(super) const LANES: usize = 4;

/// The padded length of a vector of `n`.
pub(super) fn padded(n: usize) -> usize {
    n.div_ceil(LANES) * LANES
}

/// Numbers that are worked on at once. Read and written as a whole, they do not alias: the compiler makes vector instructions of them.
#[derive(Clone, Copy)]
pub(super) struct Lane<T>(pub(super) [T; LANES]);

impl<T: Real> Lane<T> {
    #[inline(always)]
    pub(super) fn splat(x: T) -> Self {
        Self([x; LANES])
    }

    #[inline(always)]
    pub(super) fn load(from: &[T], at: usize) -> Self {
        let s = &from[at..at + LANES];
        Self([s[0], s[1], s[2], s[3]])
    }

    #[inline(always)]
    pub(super) fn store(self, to: &mut [T], at: usize) {
        to[at..at + LANES].copy_from_slice(&self.0);
    }

    #[inline(always)]
    pub(super) fn sum(self) -> T {
        let [a, b, c, d] = self.0;
        (a + b) + (c + d)
    }
}

macro_rules! lane_operator {
    ($trait:ident, $method:ident, $op:tt) => {
        impl<T: Real> std::ops::$trait for Lane<T> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let (a, b) = (self.0, other.0);
                Self([a[0] $op b[0], a[1] $op b[1], a[2] $op b[2], a[3] $op b[3]])
            }
        }
    };
}
lane_operator!(Add, add, +);
lane_operator!(Sub, sub, -);
lane_operator!(Mul, mul, *);

/// Calls `$f` with the length as a constant for the usual lengths, so that the compiler unrolls and vectorises it.
macro_rules! with_length {
    ($n:expr, $f:ident ( $($arg:expr),* )) => {
        match $n {
            4 => $f(4, $($arg),*),
            8 => $f(8, $($arg),*),
            12 => $f(12, $($arg),*),
            16 => $f(16, $($arg),*),
            n => $f(n, $($arg),*),
        }
    };
}
pub(super) use with_length;

/// A complex vector; the padding stays zero.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Vector<T: Real> {
    pub(super) re: Vec<T>,
    pub(super) im: Vec<T>,
}

impl<T: Real> Vector<T> {
    /// Zeros; `n` is rounded up.
    pub(super) fn zeros(n: usize) -> Self {
        Self { re: vec![T::zero(); padded(n)], im: vec![T::zero(); padded(n)] }
    }

    pub(super) fn len(&self) -> usize {
        self.re.len()
    }

    pub(super) fn clear(&mut self) {
        self.re.fill(T::zero());
        self.im.fill(T::zero());
    }

    #[inline(always)]
    pub(super) fn set(&mut self, i: usize, z: Complex<T>) {
        self.re[i] = z.re;
        self.im[i] = z.im;
    }

    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> Complex<T> {
        Complex::new(self.re[i], self.im[i])
    }

    /// `sum a_i b_i`, no conjugate.
    #[inline(always)]
    pub(super) fn dot(&self, other: &Self) -> Complex<T> {
        with_length!(self.len(), dot(self, other))
    }

    /// `self += step * other`.
    #[inline(always)]
    pub(super) fn add(&mut self, step: Complex<T>, other: &Self) {
        with_length!(self.len(), add(self, step, other));
    }

    #[inline(always)]
    pub(super) fn scale(&mut self, by: Complex<T>) {
        for (re, im) in self.re.iter_mut().zip(&mut self.im) {
            (*re, *im) = (*re * by.re - *im * by.im, *re * by.im + *im * by.re);
        }
    }

    #[inline(always)]
    pub(super) fn scale_real(&mut self, by: T) {
        scale_real(self.len(), self, by);
    }

    /// Moves the first `n` elements one place on, the last of them falling off.
    #[inline(always)]
    pub(super) fn shift(&mut self, from: usize, n: usize) {
        for i in (from + 1..from + n).rev() {
            self.re[i] = self.re[i - 1];
            self.im[i] = self.im[i - 1];
        }
    }

    pub(super) fn is_finite(&self) -> bool {
        self.re.iter().chain(&self.im).all(|x| x.is_finite())
    }
}

#[inline(always)]
pub(super) fn dot<T: Real>(n: usize, a: &Vector<T>, b: &Vector<T>) -> Complex<T> {
    let (ar, ai, br, bi) = (&a.re[..n], &a.im[..n], &b.re[..n], &b.im[..n]);
    let (mut re, mut im) = (Lane::splat(T::zero()), Lane::splat(T::zero()));
    for i in (0..n).step_by(LANES) {
        let (ar, ai, br, bi) = (Lane::load(ar, i), Lane::load(ai, i), Lane::load(br, i), Lane::load(bi, i));
        re = re + (ar * br - ai * bi);
        im = im + (ar * bi + ai * br);
    }
    Complex::new(re.sum(), im.sum())
}

#[inline(always)]
pub(super) fn add<T: Real>(n: usize, a: &mut Vector<T>, step: Complex<T>, b: &Vector<T>) {
    let (ar, ai, br, bi) = (&mut a.re[..n], &mut a.im[..n], &b.re[..n], &b.im[..n]);
    let (sr, si) = (Lane::splat(step.re), Lane::splat(step.im));
    for i in (0..n).step_by(LANES) {
        let (br, bi) = (Lane::load(br, i), Lane::load(bi, i));
        let (re, im) = (Lane::load(ar, i) + (sr * br - si * bi), Lane::load(ai, i) + (sr * bi + si * br));
        re.store(ar, i);
        im.store(ai, i);
    }
}

/// `a *= by`.
#[inline(always)]
pub(super) fn scale_real<T: Real>(n: usize, a: &mut Vector<T>, by: T) {
    let (ar, ai) = (&mut a.re[..n], &mut a.im[..n]);
    let by = Lane::splat(by);
    for i in (0..n).step_by(LANES) {
        (Lane::load(ar, i) * by).store(ar, i);
        (Lane::load(ai, i) * by).store(ai, i);
    }
}

/// A square complex matrix, row by row; the padding stays zero.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Matrix<T: Real> {
    pub(super) re: Vec<T>,
    pub(super) im: Vec<T>,
}

impl<T: Real> Matrix<T> {
    /// Zeros; `n` is rounded up.
    pub(super) fn zeros(n: usize) -> Self {
        let size = padded(n) * padded(n);
        Self { re: vec![T::zero(); size], im: vec![T::zero(); size] }
    }

    /// `diagonal` in the first `used` places, zeros elsewhere.
    pub(super) fn set_diagonal(&mut self, n: usize, used: usize, diagonal: T) {
        self.re.fill(T::zero());
        self.im.fill(T::zero());
        for i in 0..used {
            self.re[i * n + i] = diagonal;
        }
    }

    pub(super) fn scale(&mut self, by: T) {
        for x in self.re.iter_mut().chain(&mut self.im) {
            *x *= by;
        }
    }

    /// `out = M^H conj(u)`, that is `M conj(u)` where `M` is Hermitian: rows are summed, so no lane waits for another.
    #[inline(always)]
    pub(super) fn adjoint_times_conj(&self, n: usize, u: &Vector<T>, out: &mut Vector<T>) {
        let (mr, mi, ur, ui) = (&self.re[..n * n], &self.im[..n * n], &u.re[..n], &u.im[..n]);
        for c in (0..n).step_by(LANES) {
            let (mut re, mut im) = (Lane::splat(T::zero()), Lane::splat(T::zero()));
            for j in 0..n {
                let (r, i) = (Lane::load(mr, j * n + c), Lane::load(mi, j * n + c));
                let (a, b) = (Lane::splat(ur[j]), Lane::splat(ui[j]));
                re = re + (r * a - i * b);
                im = im - (r * b + i * a);
            }
            re.store(&mut out.re, c);
            im.store(&mut out.im, c);
        }
    }

    /// `M -= a b^H`. With `a = b` a Hermitian matrix stays Hermitian to the last bit, its diagonal exactly real: both halves are made of the
    /// same products.
    #[inline(always)]
    pub(super) fn downdate(&mut self, n: usize, a: &Vector<T>, b: &Vector<T>) {
        let (mr, mi) = (&mut self.re[..n * n], &mut self.im[..n * n]);
        let (ar, ai, br, bi) = (&a.re[..n], &a.im[..n], &b.re[..n], &b.im[..n]);
        for c in (0..n).step_by(LANES) {
            let (br, bi) = (Lane::load(br, c), Lane::load(bi, c));
            for i in 0..n {
                let (ar, ai) = (Lane::splat(ar[i]), Lane::splat(ai[i]));
                let re = Lane::load(mr, i * n + c) - (ar * br + ai * bi);
                let im = Lane::load(mi, i * n + c) - (ai * br - ar * bi);
                re.store(mr, i * n + c);
                im.store(mi, i * n + c);
            }
        }
    }

    /// Multiplies row `i` by `row` and column `i` by `column`.
    pub(super) fn scale_cross(&mut self, n: usize, i: usize, row: T, column: T) {
        for j in 0..n {
            self.re[i * n + j] *= row;
            self.im[i * n + j] *= row;
            self.re[j * n + i] *= column;
            self.im[j * n + i] *= column;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_match_plain_complex_arithmetic_for_every_length() {
        for n in [1usize, 3, 4, 5, 8, 11, 16, 23] {
            let z = |k: usize| Complex::new((k as f64 * 0.7).sin(), (k as f64 * 1.3 + 0.2).cos());
            let (mut a, mut b, mut out, mut m) = (Vector::zeros(n), Vector::zeros(n), Vector::zeros(n), Matrix::<f64>::zeros(n));
            let p = padded(n);
            for i in 0..n {
                a.set(i, z(i));
                b.set(i, z(i + 50));
                for j in 0..n {
                    (m.re[i * p + j], m.im[i * p + j]) = (z(i * n + j).re, z(i * n + j).im);
                }
            }
            let expected: Complex<f64> = (0..n).map(|i| z(i) * z(i + 50)).sum();
            assert!((a.dot(&b) - expected).norm() < 1e-12);
            m.adjoint_times_conj(p, &a, &mut out);
            m.downdate(p, &a, &b);
            for i in 0..n {
                let expected: Complex<f64> = (0..n).map(|j| z(j * n + i).conj() * z(j).conj()).sum();
                assert!((out.get(i) - expected).norm() < 1e-12);
                for j in 0..n {
                    let expected = z(i * n + j) - z(i) * z(j + 50).conj();
                    assert!((Complex::new(m.re[i * p + j], m.im[i * p + j]) - expected).norm() < 1e-12);
                }
            }
            a.add(z(7), &b);
            assert!((0..n).all(|i| (a.get(i) - z(i) - z(7) * z(i + 50)).norm() < 1e-12));
            assert!((n..p).all(|i| a.get(i) == Complex::new(0.0, 0.0) && out.get(i) == a.get(i)));
        }
    }
}
