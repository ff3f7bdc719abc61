//! The bank's loops over features, compiled for every level of vector instructions.

use num_complex::Complex;

use super::super::constants::{BLOCK, OUTLIER};
use super::super::evidence::LEAST;
use super::super::features::{Feature, Streams, lanes};
use super::super::planes::Planes;
use super::gram::Inverse;
use super::{Bank, Member, SLOTS};
use crate::Real;
use crate::simd::{Op, Vector};

/// `sum + w x`.
#[inline(always)]
fn add<T: Real, V: Vector<T>>(w: Complex<T>, x: (V, V), sum: (V, V)) -> (V, V) {
    let (re, im) = (V::splat(w.re), V::splat(w.im));
    (im.fnma(x.1, re.fma(x.0, sum.0)), im.fma(x.0, re.fma(x.1, sum.1)))
}

/// Predictions of some members for some samples of the block.
pub(super) struct Predict<'a, T: Real, const M: usize> {
    pub(super) bank: &'a mut Bank<T>,
    pub(super) of: [usize; M],
    pub(super) streams: &'a Streams<T>,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl<T: Real, const M: usize> Op<T> for Predict<'_, T, M> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let (bank, zero) = (self.bank, V::splat(T::zero()));
        let weights = self.of.map(|m| &bank.members[m].narrow[..]);
        let most = self.of.iter().fold(0, |most, &m| bank.members[m].narrow.len().max(most));
        // Two vectors at a time: each sum waits for its last addition.
        let step = 2 * V::LANES;
        let mut t = self.from / step * step;
        while t < self.to {
            let mut sums = [[(zero, zero); 2]; M];
            for k in 0..most {
                let samples = self.streams.samples(&bank.features[k], t, step);
                let x = [lanes::<T, V>(samples, 0), lanes::<T, V>(samples, V::LANES)];
                for i in 0..M {
                    if k < weights[i].len() {
                        let w = weights[i][k];
                        sums[i] = [add(w, x[0], sums[i][0]), add(w, x[1], sums[i][1])];
                    }
                }
            }
            for i in 0..M {
                let to = &mut bank.predictions[self.of[i]];
                for h in 0..2 {
                    sums[i][h].0.write(&mut to.re, t + h * V::LANES);
                    sums[i][h].1.write(&mut to.im, t + h * V::LANES);
                }
            }
            t += step;
        }
    }
}

/// Errors of the members that are awake over the block, outliers cut; zero where nothing is to be learned.
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
        for (i, m) in self.bank.members.iter_mut().enumerate().filter(|(i, _)| self.bank.only.is_none_or(|only| only == *i)) {
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

/// Adds `sum over the block of conj(F) e` for some members.
pub(super) struct Gradient<'a, T: Real, const M: usize> {
    pub(super) features: &'a [Feature],
    pub(super) streams: &'a Streams<T>,
    pub(super) of: [usize; M],
    /// Of all members.
    pub(super) members: &'a [Member<T>],
    pub(super) to: &'a mut [(Vec<T>, Vec<T>); SLOTS],
}

impl<T: Real, const M: usize> Op<T> for Gradient<'_, T, M> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let zero = V::splat(T::zero());
        let members = self.of.map(|m| &self.members[m]);
        let errors = members.map(|m| (&m.error.re[..BLOCK], &m.error.im[..BLOCK]));
        let sizes = members.map(|m| m.w.len());
        let most = sizes.iter().fold(0, |most, &size| size.max(most));
        for (k, f) in self.features[..most].iter().enumerate() {
            let mut sums = [(zero, zero); M];
            let samples = self.streams.samples(f, 0, BLOCK);
            let mut t = 0;
            while t < BLOCK {
                let (x, y) = lanes::<T, V>(samples, t);
                for i in 0..M {
                    if k < sizes[i] {
                        let (re, im) = (V::read(errors[i].0, t), V::read(errors[i].1, t));
                        sums[i] = (y.fma(im, x.fma(re, sums[i].0)), y.fnma(re, x.fma(im, sums[i].1)));
                    }
                }
                t += V::LANES;
            }
            for i in 0..M {
                let to = &mut self.to[self.of[i]];
                to.0[k] += sums[i].0.sum();
                to.1[k] += sums[i].1.sum();
            }
        }
    }
}

/// `to = H gradient` for some members, `H` Hermitian.
pub(super) struct Apply<'a, T: Real, const M: usize> {
    pub(super) inverse: &'a Inverse<T>,
    pub(super) gradients: [&'a (Vec<T>, Vec<T>); M],
    pub(super) size: usize,
    pub(super) to: [&'a mut (Vec<T>, Vec<T>); M],
}

impl<T: Real, const M: usize> Op<T> for Apply<'_, T, M> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        const WIDE: usize = 4;
        let (n, zero) = (self.size, V::splat(T::zero()));
        let padded = Inverse::<T>::padded(n);
        let mut j = 0;
        // Long stretches of the rows at a time, which lie one behind the other in memory.
        while j < n {
            let mut sums = [[(zero, zero); WIDE]; M];
            for k in 0..n {
                // Column k is the conjugate of row k.
                let at = k * padded + j;
                let row = (&self.inverse.re[at..at + WIDE * V::LANES], &self.inverse.im[at..at + WIDE * V::LANES]);
                for c in 0..WIDE {
                    let (x, y) = (V::read(row.0, c * V::LANES), V::read(row.1, c * V::LANES));
                    for m in 0..M {
                        let (re, im) = (V::splat(self.gradients[m].0[k]), V::splat(self.gradients[m].1[k]));
                        let (p, q) = sums[m][c];
                        sums[m][c] = (im.fma(y, re.fma(x, p)), re.fnma(y, im.fma(x, q)));
                    }
                }
            }
            for m in 0..M {
                for c in 0..WIDE {
                    sums[m][c].0.write(&mut self.to[m].0, j + c * V::LANES);
                    sums[m][c].1.write(&mut self.to[m].1, j + c * V::LANES);
                }
            }
            j += WIDE * V::LANES;
        }
    }
}
