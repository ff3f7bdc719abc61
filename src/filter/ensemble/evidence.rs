//! Which member describes the channel: predictive likelihood with forgetting.
//!
//! `log w ← forgetting · log w − ln V − min(|e|²/V, 25)` (Raftery, Karny and Ettler 2010), in powers of two and for four samples at once: the variances
//! are multiplied before their logarithm is taken, each in units of the last variance of the whole, so that no product leaves the range of the numbers.

use serde::{Deserialize, Serialize};

use super::constants::{MEMBERS, NOISE_WINDOW, OUTLIER, SURPRISE};
use crate::Real;
use crate::simd::{Op, Row, Vector};

/// What is known of how well sixteen members predict.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Evidence<T: Real> {
    /// Logarithm to base 2 of the greatest weight; that of the better half is 0.
    pub(super) level: T,
    /// Logarithms of the others' weights relative to it.
    pub(super) log: Row<T>,
    /// `2^log`, normalised to a sum of 1.
    pub(super) weight: Row<T>,
    /// Variance of the noise that each member sees.
    pub(super) noise: Row<T>,
    /// The most that `log` may be: 0, or `NOTHING` for a member that does not take part.
    pub(super) bound: Row<T>,
    product: Row<T>,
    surprise: Row<T>,
    // Sum of the weights before they were normalised.
    total: T,
}

/// The logarithm of no weight at all.
pub(super) const NOTHING: f64 = -100.0;
/// The least variance that is computed with.
pub(super) const LEAST: f64 = 1e-30;

impl<T: Real> Evidence<T> {
    /// `members` that take part, equally likely.
    pub(super) fn new(members: usize) -> Self {
        let bound = Row(std::array::from_fn(|i| if i < members { T::zero() } else { T::of(NOTHING) }));
        Self {
            level: T::zero(),
            log: bound,
            weight: Row(std::array::from_fn(|i| if i < members { T::of(1.0 / members as f64) } else { T::zero() })),
            noise: Row([T::one(); MEMBERS]),
            bound,
            product: Row([T::one(); MEMBERS]),
            surprise: Row::default(),
            total: T::one(),
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        [&self.log, &self.weight, &self.noise, &self.product, &self.surprise, &self.bound].iter().all(|r| r.0.iter().all(|x| x.is_finite()))
            && self.noise.0.iter().all(|&x| x > T::zero())
            && self.level.is_finite()
    }

    /// The member with the greatest weight.
    pub(super) fn best(&self) -> usize {
        let log = |i: usize| if self.log.0[i].is_finite() { self.log.0[i] } else { T::neg_infinity() };
        (1..MEMBERS).fold(0, |best, i| if log(i) > log(best) { i } else { best })
    }

    /// As [`Judge::take`], for one member.
    #[inline(always)]
    pub(super) fn take(&mut self, i: usize, square: T, variance: T, relative: T) {
        let z = square / variance;
        self.surprise.0[i] += if z < T::of(SURPRISE) { z } else { T::of(SURPRISE) };
        self.product.0[i] *= variance * relative;
        let z = if z < T::of(OUTLIER) { z } else { T::of(OUTLIER) };
        self.noise.0[i] = (self.noise.0[i] * (T::one() + (z - T::one()) * T::of(1.0 / NOISE_WINDOW))).max(T::of(LEAST));
    }

    pub(super) fn load<V: Vector<T>>(&self, group: usize) -> Judge<T, V> {
        Judge {
            weight: self.weight.get(group),
            noise: self.noise.get(group),
            product: self.product.get(group),
            surprise: self.surprise.get(group),
            scalar: std::marker::PhantomData,
        }
    }
}

/// Some members while they run.
pub(super) struct Judge<T, V> {
    pub(super) weight: V,
    pub(super) noise: V,
    product: V,
    surprise: V,
    scalar: std::marker::PhantomData<T>,
}

impl<T: Real, V: Vector<T>> Judge<T, V> {
    /// Takes in the squared error of a prediction of that variance; `relative` is one over the unit of variances. `pace` is that of the noise.
    #[inline(always)]
    pub(super) fn take(&mut self, square: V, variance: V, relative: V, pace: V) {
        let z = square.mul(variance.recip());
        self.surprise = z.min(V::splat(T::of(SURPRISE))).add(self.surprise);
        self.product = variance.mul(relative).mul(self.product);
        let one = V::splat(T::one());
        self.noise = z.min(V::splat(T::of(OUTLIER))).sub(one).fma(pace, one).mul(self.noise).max(V::splat(T::of(LEAST)));
    }

    #[inline(always)]
    pub(super) fn store(self, to: &mut Evidence<T>, group: usize) {
        to.noise.put(group, self.noise);
        to.product.put(group, self.product);
        to.surprise.put(group, self.surprise);
    }
}

/// The pace of the noise variance after so many samples.
pub(super) fn noise_pace<T: Real>(learned: u64) -> T {
    T::of(1.0 / NOISE_WINDOW.min(learned as f64 + 1.0))
}

/// Turns the evidence of four samples into weights, and returns the share that each half has; members that do not run keep their place behind those that
/// do.
pub(super) struct Weigh<'a, T: Real> {
    pub(super) running: [Option<&'a mut Evidence<T>>; 2],
    /// What remains of the evidence after those samples.
    pub(super) forgetting: T,
}

impl<T: Real> Op<T> for Weigh<'_, T> {
    type Output = [T; 2];

    #[inline(always)]
    fn run<V: Vector<T>>(self) -> [T; 2] {
        let nothing = V::splat(T::of(NOTHING));
        let (least, greatest) = (V::splat(T::of(LEAST)), V::splat(T::of(1e30)));
        let constants = V::exp2_constants();
        let mut running = self.running;
        for e in running.iter_mut().flatten() {
            let mut most = T::neg_infinity();
            for g in 0..Row::<T>::groups::<V>() {
                let likely = e.surprise.get::<V>(g).fma(V::splat(T::LOG2_E()), e.product.get::<V>(g).max(least).min(greatest).log2());
                let log = e.log.get::<V>(g).fma(V::splat(self.forgetting), e.bound.get::<V>(g).sub(likely));
                most = most.max(log.greatest());
                e.log.put(g, log);
                e.product.put(g, V::splat(T::one()));
                e.surprise.put(g, V::splat(T::zero()));
            }
            let mut sum = T::zero();
            for g in 0..Row::<T>::groups::<V>() {
                let log = e.log.get::<V>(g).sub(V::splat(most)).max(nothing);
                let weight = log.exp2(&constants);
                e.log.put(g, log);
                e.weight.put(g, weight);
                sum += weight.sum();
            }
            let share = V::splat(sum.recip());
            for g in 0..Row::<T>::groups::<V>() {
                e.weight.put(g, e.weight.get::<V>(g).mul(share));
            }
            e.level = self.forgetting * e.level + most;
            e.total = sum;
        }
        // Only differences count.
        let most = running.iter().flatten().fold(T::neg_infinity(), |most, e| most.max(e.level));
        let shares = running.map(|e| {
            e.map_or(T::zero(), |e| {
                e.level = (e.level - most).max(T::of(NOTHING));
                e.level.exp2() * e.total
            })
        });
        shares.map(|share| share / (shares[0] + shares[1]))
    }
}
