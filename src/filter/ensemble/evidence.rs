//! Which member describes the channel: predictive likelihood with forgetting.
//!
//! `log w ← forgetting · log w − ln V − min(|e|²/V, 25)` (Raftery, Karny and Ettler 2010; half of it where all samples are real), in powers of two and for four samples at once: the variances
//! are multiplied before their logarithm is taken, each in units of the last variance of the whole, so that no product leaves the range of the numbers.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::average::Sums;
use super::constants::{MEMBERS, NOISE_FIRST, NOISE_PART, NOISE_WINDOW, OUTLIER, PARTS, SURPRISE};
use super::planes::Planes;
use super::window::{HALF, Window};
use crate::Real;
use crate::simd::{Op, Row, Vector};

/// What is known of how well sixteen members predict.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Evidence<T: Real> {
    /// Logarithm to base 2 of the greatest weight; that of the best part is 0.
    pub(super) level: T,
    /// Logarithms of the others' weights relative to it.
    pub(super) log: Row<T>,
    /// `2^log`, normalised to a sum of 1.
    pub(super) weight: Row<T>,
    /// Variance of the noise that each member sees.
    pub(super) noise: Row<T>,
    /// The most that `log` may be: 0, or `NOTHING` for a member that does not take part.
    pub(super) bound: Row<T>,
    /// Which of them run.
    pub(super) window: Window,
    // Of the samples since the weights were last computed: the product of the variances, and the sums of squared errors over them, cut.
    product: Row<T>,
    surprise: Row<T>,
    pub(super) excess: Row<T>,
    /// Samples since members began or changed much.
    pub(super) seen: T,
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
            window: if members > HALF { Window::ALL } else { Window { first: 0, end: HALF } },
            product: Row([T::one(); MEMBERS]),
            surprise: Row::default(),
            excess: Row::default(),
            seen: T::zero(),
            total: T::one(),
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        [&self.log, &self.weight, &self.noise, &self.product, &self.surprise, &self.excess, &self.bound]
            .iter()
            .all(|r| r.0.iter().all(|x| x.is_finite()))
            && self.noise.0.iter().all(|&x| x > T::zero())
            && self.level.is_finite()
            && self.window.is_sound()
    }

    /// The member with the greatest weight of those that run.
    pub(super) fn best(&self) -> usize {
        let (mut best, mut most) = (self.window.first, T::neg_infinity());
        for (i, &log) in self.log.0.iter().enumerate().take(self.window.end).skip(self.window.first) {
            // Never true of what is not a number.
            if log > most && log < T::infinity() {
                (best, most) = (i, log);
            }
        }
        best
    }

    /// Member `m` begins with the noise of member `from`, and with `less` of its weight, as a logarithm to base 2.
    pub(super) fn wake(&mut self, m: usize, from: usize, less: f64) {
        self.noise.0[m] = self.noise.0[from];
        self.log.0[m] = (self.log.0[from] - T::of(less)).max(T::of(NOTHING));
        (self.product.0[m], self.surprise.0[m], self.excess.0[m]) = (T::one(), T::zero(), T::zero());
    }

    /// As [`Judge::take`], for one member.
    #[inline(always)]
    pub(super) fn take(&mut self, i: usize, z: T, variance: T) {
        self.surprise.0[i] += if z < T::of(SURPRISE) { z } else { T::of(SURPRISE) };
        self.product.0[i] *= variance;
        self.excess.0[i] += if z < T::of(OUTLIER) { z - T::one() } else { T::of(OUTLIER - 1.0) };
    }

    /// Sums over some members for `n` samples from `at` of the block on, and evidence for them where `learn`: of each there are predictions, and the variance is its noise.
    #[expect(clippy::too_many_arguments, reason = "an inner loop")]
    #[inline(always)]
    pub(super) fn judge(
        &mut self,
        predictions: &[Planes<T>],
        members: Range<usize>,
        y: &Planes<T>,
        at: usize,
        n: usize,
        relative: T,
        learn: bool,
    ) -> Sums<T> {
        let mut sums = Sums::default();
        let first = &predictions[members.start];
        for i in members {
            let (w, variance) = (self.weight.0[i], self.noise.0[i]);
            let inverse = variance.recip();
            for s in 0..n {
                let p = predictions[i].at(at + s);
                let d = p - first.at(at + s);
                sums.re[s] += w * d.re;
                sums.im[s] += w * d.im;
                sums.variance[s] += w * (variance + d.norm_sqr());
                if learn {
                    self.take(i, (y.at(at + s) - p).norm_sqr() * inverse, variance * relative);
                }
            }
        }
        for s in 0..n {
            let p = first.at(at + s);
            sums.variance[s] -= sums.re[s] * sums.re[s] + sums.im[s] * sums.im[s];
            (sums.re[s], sums.im[s]) = (p.re + sums.re[s], p.im + sums.im[s]);
        }
        sums
    }

    /// Some members; `new` where what was gathered before belongs to weights that are yet to be computed.
    #[inline(always)]
    pub(super) fn load<V: Vector<T>>(&self, lane: usize, new: bool) -> Judge<T, V> {
        let (product, surprise) =
            if new { (V::splat(T::one()), V::splat(T::zero())) } else { (self.product.get(lane), self.surprise.get(lane)) };
        Judge { noise: self.noise.get(lane), product, surprise, excess: self.excess.get(lane), scalar: std::marker::PhantomData }
    }

    /// Puts back the product of variances and the sum of squared errors that a group of members has gathered.
    #[inline(always)]
    pub(super) fn put<V: Vector<T>>(&mut self, lane: usize, product: V, surprise: V) {
        self.product.put(lane, product);
        self.surprise.put(lane, surprise);
    }

    /// Lets the noise follow what was seen in so many samples: its window is a part of all that were seen, as errors fall at first.
    #[inline(always)]
    pub(super) fn renew<V: Vector<T>>(&mut self, samples: usize) {
        self.seen += T::of(samples as f64);
        let window = self.seen * T::of(NOISE_PART);
        let long = window >= T::of(NOISE_WINDOW);
        let pace = if long { T::of(1.0 / NOISE_WINDOW) } else { window.max(T::of(NOISE_FIRST)).recip() };
        // It falls sooner, but rises no sooner than with the whole window: garbage would take it out of the range of the numbers.
        self.renew_at::<V>(pace, T::of(1.0 + samples as f64 * (OUTLIER - 1.0) / NOISE_WINDOW));
    }

    /// The same at some pace, by at most a factor of `most`.
    #[inline(always)]
    pub(super) fn renew_at<V: Vector<T>>(&mut self, pace: T, most: T) {
        let mut at = self.window.first;
        while at < self.window.end {
            let factor = self.excess.get::<V>(at).fma(V::splat(pace), V::splat(T::one())).min(V::splat(most));
            let noise = factor.mul(self.noise.get(at));
            self.noise.put(at, noise.max(V::splat(T::of(LEAST))));
            self.excess.put(at, V::splat(T::zero()));
            at += V::LANES;
        }
    }
}

/// Some members while they run.
#[derive(Clone, Copy)]
pub(super) struct Judge<T, V> {
    pub(super) noise: V,
    pub(super) product: V,
    pub(super) surprise: V,
    pub(super) excess: V,
    scalar: std::marker::PhantomData<T>,
}

impl<T: Real, V: Vector<T>> Judge<T, V> {
    /// Takes in the squared error of a prediction in units of its variance, and that variance in the unit of variances.
    #[inline(always)]
    pub(super) fn take(&mut self, z: V, variance: V) {
        self.surprise = z.min(V::splat(T::of(SURPRISE))).add(self.surprise);
        self.product = variance.mul(self.product);
        self.excess = z.min(V::splat(T::of(OUTLIER))).sub(V::splat(T::one())).add(self.excess);
    }
}

/// The pace of the noise variance after so many samples.
pub(super) fn noise_pace<T: Real>(learned: u64) -> T {
    T::of(1.0 / NOISE_WINDOW.min(learned as f64 + 1.0))
}

/// Turns the evidence of four samples into weights, and returns the share that each part has; members that do not run keep their place behind those that
/// do.
pub(super) struct Weigh<'a, T: Real> {
    pub(super) running: [Option<&'a mut Evidence<T>>; PARTS],
    /// What remains of the evidence after those samples.
    pub(super) forgetting: T,
    /// What the likelihood of a complex number counts: half where all are real.
    pub(super) counts: T,
}

impl<T: Real> Op<T> for Weigh<'_, T> {
    type Output = [T; PARTS];

    #[inline(always)]
    fn run<V: Vector<T>>(self) -> [T; PARTS] {
        let nothing_at_all = T::of(NOTHING);
        let nothing = V::splat(nothing_at_all);
        let (least, greatest) = (V::splat(T::of(LEAST)), V::splat(T::of(1e30)));
        let constants = V::exp2_constants();
        let mut running = self.running;
        for e in running.iter_mut().flatten() {
            let mut most = T::neg_infinity();
            let Window { first, end } = e.window;
            let mut at = first;
            while at < end {
                let likely = e.surprise.get::<V>(at).fma(V::splat(T::LOG2_E()), e.product.get::<V>(at).max(least).min(greatest).log2());
                let log = e.log.get::<V>(at).fma(V::splat(self.forgetting), likely.fnma(V::splat(self.counts), e.bound.get::<V>(at)));
                most = most.max(log.greatest());
                e.log.put(at, log);
                e.product.put(at, V::splat(T::one()));
                e.surprise.put(at, V::splat(T::zero()));
                at += V::LANES;
            }
            let mut sum = T::zero();
            at = first;
            while at < end {
                let log = e.log.get::<V>(at).sub(V::splat(most)).max(nothing);
                let weight = log.exp2(&constants);
                e.log.put(at, log);
                e.weight.put(at, weight);
                sum += weight.sum();
                at += V::LANES;
            }
            let share = V::splat(sum.recip());
            at = first;
            while at < end {
                e.weight.put(at, e.weight.get::<V>(at).mul(share));
                at += V::LANES;
            }
            e.level = self.forgetting * e.level + most;
            e.total = sum;
        }
        if let [Some(one), None, None] = &mut running {
            one.level = T::zero();
            return [T::one(), T::zero(), T::zero()];
        }
        // Only differences count.
        let most = running.iter().flatten().fold(T::neg_infinity(), |most, e| most.max(e.level));
        let mut shares = Row([T::of(NOTHING); MEMBERS]);
        for (share, e) in shares.0.iter_mut().zip(&mut running) {
            if let Some(e) = e {
                e.level = (e.level - most).max(nothing_at_all);
                *share = e.level;
            }
        }
        // Not in a closure: the compiler would leave it as a call, compiled without the level's instructions.
        let mut at = 0;
        while at < PARTS {
            shares.put(at, shares.get::<V>(at).exp2(&constants));
            at += V::LANES;
        }
        let mut total = T::zero();
        for (share, e) in shares.0.iter_mut().zip(&running) {
            *share = e.as_ref().map_or(T::zero(), |e| *share * e.total);
            total += *share;
        }
        std::array::from_fn(|i| shares.0[i] / total)
    }
}
