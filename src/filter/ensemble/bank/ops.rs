//! The bank's loops over features, compiled for every level of vector instructions.

use num_complex::Complex64;

use super::super::constants::{BLOCK, OUTLIER};
use super::super::evidence::LEAST;
use super::super::features::{Feature, Streams};
use super::super::matrix::Matrix;
use super::super::planes::Planes;
use super::{Bank, Inverse, Member};
use crate::Real;
use crate::simd::{Op, Vector};

impl<T: Real> Member<T> {
    /// `sum + w_k x`.
    #[inline(always)]
    fn add<V: Vector<T>>(&self, k: usize, x: (V, V), sum: (V, V)) -> (V, V) {
        let (re, im) = (V::splat(self.re[k]), V::splat(self.im[k]));
        (im.fnma(x.1, re.fma(x.0, sum.0)), im.fma(x.0, re.fma(x.1, sum.1)))
    }
}

impl<T: Real> Inverse<T> {
    pub(super) fn new(m: &Matrix) -> Self {
        let padded = m.n().next_multiple_of(16);
        let plane = |part: &dyn Fn(Complex64) -> f64| {
            (0..m.n())
                .flat_map(|i| (0..padded).map(move |j| (i, j)))
                .map(|(i, j)| if j < m.n() { T::of(part(m.at(i, j))) } else { T::zero() })
                .collect()
        };
        Self { re: plane(&|z| z.re), im: plane(&|z| z.im) }
    }
}

/// Predictions of all members for some samples of the block.
pub(super) struct Predict<'a, T: Real> {
    pub(super) bank: &'a mut Bank<T>,
    pub(super) streams: &'a Streams<T>,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl<T: Real> Op<T> for Predict<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let bank = self.bank;
        let mut t = self.from / V::LANES * V::LANES;
        while t < self.to {
            let zero = V::splat(T::zero());
            let short = bank.sizes[0];
            let [first, second, third] = &bank.members[..] else { return };
            let (mut a, mut b, mut c) = ((zero, zero), (zero, zero), (zero, zero));
            for k in 0..short {
                let x = self.streams.vector::<V>(&bank.features[k], t);
                a = first.add(k, x, a);
                b = second.add(k, x, b);
                c = third.add(k, x, c);
            }
            for k in short..bank.features.len() {
                let x = self.streams.vector::<V>(&bank.features[k], t);
                a = first.add(k, x, a);
                b = second.add(k, x, b);
            }
            let sums = [a, b, c];
            for (p, sum) in bank.predictions.iter_mut().zip(sums) {
                sum.0.write(&mut p.re, t);
                sum.1.write(&mut p.im, t);
            }
            t += V::LANES;
        }
    }
}

/// Errors of all members over the block, outliers cut; zero where nothing is to be learned.
pub(super) struct Errors<'a, T: Real> {
    pub(super) bank: &'a mut Bank<T>,
    pub(super) y: &'a Planes<T>,
    pub(super) weight: &'a [T],
}

impl<T: Real> Op<T> for Errors<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let (zero, one) = (V::splat(T::zero()), V::splat(T::one()));
        for (i, m) in self.bank.members.iter_mut().enumerate() {
            let (p, cut) = (&self.bank.predictions[i], V::splat(T::of(OUTLIER) * self.bank.evidence.noise.0[i]));
            let mut t = 0;
            while t < BLOCK {
                let (a, b) = (V::read(&self.y.re, t).sub(V::read(&p.re, t)), V::read(&self.y.im, t).sub(V::read(&p.im, t)));
                let square = a.fma(a, b.mul(b)).max(V::splat(T::of(LEAST)));
                let keep = zero.select_less(V::read(self.weight, t), cut.mul(square.rough_recip()).min(one), zero);
                a.mul(keep).write(&mut m.error.re, t);
                b.mul(keep).write(&mut m.error.im, t);
                t += V::LANES;
            }
        }
    }
}

/// `sum over the block of conj(F) e` for two members.
pub(super) struct Gradient<'a, T: Real> {
    pub(super) features: &'a [Feature],
    pub(super) streams: &'a Streams<T>,
    pub(super) errors: [&'a Planes<T>; 2],
    pub(super) to: &'a mut [(Vec<T>, Vec<T>); 2],
}

impl<T: Real> Op<T> for Gradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let zero = V::splat(T::zero());
        let [first, second] = self.errors;
        let [a, b] = self.to;
        for (k, f) in self.features.iter().enumerate() {
            let (mut p, mut q) = ((zero, zero), (zero, zero));
            let mut t = 0;
            while t < BLOCK {
                let (x, y) = self.streams.vector::<V>(f, t);
                let (re, im) = (V::read(&first.re, t), V::read(&first.im, t));
                p = (y.fma(im, x.fma(re, p.0)), y.fnma(re, x.fma(im, p.1)));
                let (re, im) = (V::read(&second.re, t), V::read(&second.im, t));
                q = (y.fma(im, x.fma(re, q.0)), y.fnma(re, x.fma(im, q.1)));
                t += V::LANES;
            }
            (a.0[k], a.1[k]) = (p.0.sum(), p.1.sum());
            (b.0[k], b.1[k]) = (q.0.sum(), q.1.sum());
        }
    }
}

/// `to = H gradient` for two members, `H` Hermitian.
pub(super) struct Apply<'a, T: Real> {
    pub(super) inverse: &'a Inverse<T>,
    pub(super) gradients: &'a [(Vec<T>, Vec<T>); 2],
    pub(super) size: usize,
    pub(super) to: &'a mut [(Vec<T>, Vec<T>); 2],
}

impl<T: Real> Op<T> for Apply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let (n, zero) = (self.size, V::splat(T::zero()));
        let padded = n.next_multiple_of(16);
        let [first, second] = self.gradients;
        let [a, b] = self.to;
        let mut j = 0;
        while j < n {
            let (mut p, mut q) = ((zero, zero), (zero, zero));
            for k in 0..n {
                // Column k is the conjugate of row k.
                let (x, y) = (V::read(&self.inverse.re, k * padded + j), V::read(&self.inverse.im, k * padded + j));
                let (re, im) = (V::splat(first.0[k]), V::splat(first.1[k]));
                p = (im.fma(y, re.fma(x, p.0)), re.fnma(y, im.fma(x, p.1)));
                let (re, im) = (V::splat(second.0[k]), V::splat(second.1[k]));
                q = (im.fma(y, re.fma(x, q.0)), re.fnma(y, im.fma(x, q.1)));
            }
            p.0.write(&mut a.0, j);
            p.1.write(&mut a.1, j);
            q.0.write(&mut b.0, j);
            q.1.write(&mut b.1, j);
            j += V::LANES;
        }
    }
}
