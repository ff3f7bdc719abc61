//! Small complex vectors and matrices, planar (real parts, then imaginary parts) and padded with zeros to whole SIMD lanes.

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use crate::Real;
use crate::simd::{Aligned, Halves};

/// Lengths are rounded up to a multiple of this.
pub(super) const LANES: usize = 4;

/// The padded length of a vector of `n`.
pub(super) fn padded(n: usize) -> usize {
    n.div_ceil(LANES) * LANES
}

/// `N` numbers from `at` on.
#[inline(always)]
pub(super) fn part<T, const N: usize>(x: &[T], at: usize) -> &[T; N] {
    x[at..at + N].try_into().expect("a slice of that length")
}

/// The same to write to.
#[inline(always)]
pub(super) fn part_mut<T, const N: usize>(x: &mut [T], at: usize) -> &mut [T; N] {
    (&mut x[at..at + N]).try_into().expect("a slice of that length")
}

/// Numbers that are worked on at once.
pub(super) trait Lanes<T>: Copy {
    /// How many.
    const WIDTH: usize;
    fn load(from: &[T], at: usize) -> Self;
    fn store(self, to: &mut [T], at: usize);
    fn splat(x: T) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// `self * b + c`.
    fn fma(self, b: Self, c: Self) -> Self;
    /// `c - self * b`.
    fn fnma(self, b: Self, c: Self) -> Self;
    fn sum(self) -> T;
}

/// Four numbers. Read and written as a whole, they do not alias: the compiler makes vector instructions of them.
#[derive(Clone, Copy)]
pub(super) struct Four<T>([T; 4]);

/// Eight numbers, in vector instructions of the level.
#[derive(Clone, Copy)]
pub(super) struct Eight<H>(H);

macro_rules! each {
    ($i:ident, $f:expr) => {
        // No closures: the compiler may leave them as calls without the level's instructions.
        Self([
            {
                let $i = 0;
                $f
            },
            {
                let $i = 1;
                $f
            },
            {
                let $i = 2;
                $f
            },
            {
                let $i = 3;
                $f
            },
        ])
    };
}

impl<T: Real> Lanes<T> for Four<T> {
    const WIDTH: usize = 4;
    #[inline(always)]
    fn load(from: &[T], at: usize) -> Self {
        Self(*part(from, at))
    }
    #[inline(always)]
    fn store(self, to: &mut [T], at: usize) {
        *part_mut(to, at) = self.0;
    }
    #[inline(always)]
    fn splat(x: T) -> Self {
        Self([x; 4])
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        each!(i, self.0[i] + other.0[i])
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        each!(i, self.0[i] - other.0[i])
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        each!(i, self.0[i] * other.0[i])
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        each!(i, self.0[i] * b.0[i] + c.0[i])
    }
    #[inline(always)]
    fn fnma(self, b: Self, c: Self) -> Self {
        each!(i, c.0[i] - self.0[i] * b.0[i])
    }
    #[inline(always)]
    fn sum(self) -> T {
        let [a, b, c, d] = self.0;
        (a + b) + (c + d)
    }
}

impl<T: Real, H: Halves<T>> Lanes<T> for Eight<H> {
    const WIDTH: usize = 8;
    #[inline(always)]
    fn load(from: &[T], at: usize) -> Self {
        Self(H::load(part(from, at)))
    }
    #[inline(always)]
    fn store(self, to: &mut [T], at: usize) {
        self.0.store(part_mut(to, at));
    }
    #[inline(always)]
    fn splat(x: T) -> Self {
        Self(H::splat(x))
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0.add(other.0))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(self.0.sub(other.0))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(self.0.mul(other.0))
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        Self(self.0.fma(b.0, c.0))
    }
    #[inline(always)]
    fn fnma(self, b: Self, c: Self) -> Self {
        Self(self.0.fnma(b.0, c.0))
    }
    #[inline(always)]
    fn sum(self) -> T {
        let (a, b) = self.0.sums();
        a + b
    }
}

/// Calls `$f` with lanes of eight where the length allows it, else of four. Where the length is a constant, so is the choice.
macro_rules! in_lanes {
    ($h:ident, $n:expr, $f:ident ( $($arg:expr),* )) => {
        if $n % 8 == 0 {
            $f::<T, crate::filter::two_speed::linear::Eight<$h>>($n, $($arg),*)
        } else {
            $f::<T, crate::filter::two_speed::linear::Four<T>>($n, $($arg),*)
        }
    };
}
pub(super) use in_lanes;

/// A complex vector; the padding stays zero.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Vector<T: Real> {
    pub(super) re: Aligned<T>,
    pub(super) im: Aligned<T>,
}

impl<T: Real> Vector<T> {
    /// Zeros; `n` is rounded up.
    pub(super) fn zeros(n: usize) -> Self {
        Self { re: vec![T::zero(); padded(n)].into(), im: vec![T::zero(); padded(n)].into() }
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

    pub(super) fn scale(&mut self, by: Complex<T>) {
        for (re, im) in self.re.iter_mut().zip(self.im.iter_mut()) {
            (*re, *im) = (*re * by.re - *im * by.im, *re * by.im + *im * by.re);
        }
    }

    pub(super) fn scale_real(&mut self, by: T) {
        self.re.iter_mut().for_each(|x| *x *= by);
        self.im.iter_mut().for_each(|x| *x *= by);
    }

    pub(super) fn is_finite(&self) -> bool {
        self.re.iter().chain(self.im.iter()).all(|x| x.is_finite())
    }
}

/// `sum a_i b_i`, no conjugate.
#[inline(always)]
pub(super) fn dot<T: Real, H: Halves<T>>(n: usize, a: &Vector<T>, b: &Vector<T>) -> Complex<T> {
    in_lanes!(H, n, dot_in(a, b))
}

#[inline(always)]
fn dot_in<T: Real, L: Lanes<T>>(n: usize, a: &Vector<T>, b: &Vector<T>) -> Complex<T> {
    let (ar, ai, br, bi) = (&a.re[..n], &a.im[..n], &b.re[..n], &b.im[..n]);
    let (mut re, mut im) = (L::splat(T::zero()), L::splat(T::zero()));
    for i in (0..n).step_by(L::WIDTH) {
        let (ar, ai, br, bi) = (L::load(ar, i), L::load(ai, i), L::load(br, i), L::load(bi, i));
        re = ai.fnma(bi, ar.fma(br, re));
        im = ai.fma(br, ar.fma(bi, im));
    }
    Complex::new(re.sum(), im.sum())
}

/// `a += step * b`.
#[inline(always)]
pub(super) fn add<T: Real, H: Halves<T>>(n: usize, a: &mut Vector<T>, step: Complex<T>, b: &Vector<T>) {
    in_lanes!(H, n, add_in(a, step, b))
}

#[inline(always)]
fn add_in<T: Real, L: Lanes<T>>(n: usize, a: &mut Vector<T>, step: Complex<T>, b: &Vector<T>) {
    let (ar, ai, br, bi) = (&mut a.re[..n], &mut a.im[..n], &b.re[..n], &b.im[..n]);
    let (sr, si) = (L::splat(step.re), L::splat(step.im));
    for i in (0..n).step_by(L::WIDTH) {
        let (br, bi) = (L::load(br, i), L::load(bi, i));
        si.fnma(bi, sr.fma(br, L::load(ar, i))).store(ar, i);
        si.fma(br, sr.fma(bi, L::load(ai, i))).store(ai, i);
    }
}

/// A square complex matrix, row by row; the padding stays zero.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Matrix<T: Real> {
    pub(super) re: Aligned<T>,
    pub(super) im: Aligned<T>,
}

impl<T: Real> Matrix<T> {
    /// Zeros; `n` is rounded up.
    pub(super) fn zeros(n: usize) -> Self {
        let size = padded(n) * padded(n);
        Self { re: vec![T::zero(); size].into(), im: vec![T::zero(); size].into() }
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
        self.re.iter_mut().for_each(|x| *x *= by);
        self.im.iter_mut().for_each(|x| *x *= by);
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

/// `out = M^H conj(u)`, that is `M conj(u)` where `M` is Hermitian: rows are summed, so no lane waits for another.
#[inline(always)]
pub(super) fn adjoint_times_conj<T: Real, H: Halves<T>>(n: usize, m: &Matrix<T>, u: &Vector<T>, out: &mut Vector<T>) {
    in_lanes!(H, n, adjoint_times_conj_in(m, u, out))
}

#[inline(always)]
fn adjoint_times_conj_in<T: Real, L: Lanes<T>>(n: usize, m: &Matrix<T>, u: &Vector<T>, out: &mut Vector<T>) {
    let (mr, mi, ur, ui) = (&m.re[..n * n], &m.im[..n * n], &u.re[..n], &u.im[..n]);
    let (kr, ki) = (&mut out.re[..n], &mut out.im[..n]);
    for c in (0..n).step_by(L::WIDTH) {
        let (mut re, mut im) = (L::splat(T::zero()), L::splat(T::zero()));
        for j in 0..n {
            let (r, i) = (L::load(mr, j * n + c), L::load(mi, j * n + c));
            let (a, b) = (L::splat(ur[j]), L::splat(ui[j]));
            re = i.fnma(b, r.fma(a, re));
            im = i.fnma(a, r.fnma(b, im));
        }
        re.store(kr, c);
        im.store(ki, c);
    }
}

/// `M -= weight a b^H`. With `a = b` a Hermitian matrix stays Hermitian to the last bit, its diagonal exactly real, and with `a` and `b` exchanged
/// the adjoint of a matrix stays its adjoint: both are made of the same products. Those of the imaginary parts are not fused for that reason.
#[inline(always)]
pub(super) fn downdate<T: Real, H: Halves<T>>(n: usize, m: &mut Matrix<T>, weight: T, a: &Vector<T>, b: &Vector<T>) {
    in_lanes!(H, n, downdate_in(m, weight, a, b))
}

#[inline(always)]
fn downdate_in<T: Real, L: Lanes<T>>(n: usize, m: &mut Matrix<T>, weight: T, a: &Vector<T>, b: &Vector<T>) {
    let (mr, mi) = (&mut m.re[..n * n], &mut m.im[..n * n]);
    let (ar, ai, br, bi) = (&a.re[..n], &a.im[..n], &b.re[..n], &b.im[..n]);
    let weight = L::splat(weight);
    for c in (0..n).step_by(L::WIDTH) {
        let (br, bi) = (L::load(br, c), L::load(bi, c));
        for i in 0..n {
            let ((ar, ai), at) = ((L::splat(ar[i]), L::splat(ai[i])), i * n + c);
            weight.fnma(ar.fma(br, ai.mul(bi)), L::load(mr, at)).store(mr, at);
            weight.fnma(ai.mul(br).sub(ar.mul(bi)), L::load(mi, at)).store(mi, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type H = crate::simd::PlainHalves<f64>;

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
            assert!((dot::<_, H>(p, &a, &b) - expected).norm() < 1e-12);
            adjoint_times_conj::<_, H>(p, &m, &a, &mut out);
            downdate::<_, H>(p, &mut m, 0.5, &a, &b);
            for i in 0..n {
                let expected: Complex<f64> = (0..n).map(|j| z(j * n + i).conj() * z(j).conj()).sum();
                assert!((out.get(i) - expected).norm() < 1e-12);
                for j in 0..n {
                    let expected = z(i * n + j) - z(i) * z(j + 50).conj() * 0.5;
                    assert!((Complex::new(m.re[i * p + j], m.im[i * p + j]) - expected).norm() < 1e-12);
                }
            }
            add::<_, H>(p, &mut a, z(7), &b);
            assert!((0..n).all(|i| (a.get(i) - z(i) - z(7) * z(i + 50)).norm() < 1e-12));
            assert!((n..p).all(|i| a.get(i) == Complex::new(0.0, 0.0) && out.get(i) == a.get(i)));
        }
    }
}
