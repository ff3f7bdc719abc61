//! Kernel filters on streams, by lag.

mod far;
mod lags;
#[cfg(test)]
mod tests;

use num_complex::Complex;
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use self::far::{DEPTH, Far, JOB, LEAST};
use self::lags::{Lags, Triangle, correct};
use super::{Adaptive, Filter, GaussianKernelFilter, Portrait, Tracker, Weight, finite, require, state};
use crate::kernel::Kernel;
use crate::simd::{BLOCK, GROUP};
use crate::{Error, Real, Result};

/// KLMS with a budget, fKLMS or NORMA with the Gaussian kernel on a stream: the same filter as behind a window, many times as fast, at a cost
/// that does not depend on the number of taps.
///
/// With "drop the oldest", the centres are exactly the last `M` windows of the stream. The squared distance to the window `m` samples back
/// then follows from that of the sample before by what enters and what leaves (O(1) for a centre, whatever the taps); forgetting is part of
/// the exponent; and as kernel values do not depend on coefficients, the rows of eight samples are computed together and only a triangle of
/// corrections between the eight is sequential. Nothing is approximated. Rounding differs: the documentation of [`filter`](crate::filter) has the bound.
///
/// Where the dictionary is *not* the last windows (while frozen, where a corrupt sample was skipped, after the decay was changed), the filter goes on
/// with direct rows over the centres it has, until `M` windows in a row have been learned. Nothing is lost, only speed.
pub(super) struct Sliding<T: Real, K> {
    /// Parameters always; the dictionary while `direct`.
    filter: GaussianKernelFilter<T, K>,
    /// The youngest lags, or all of them.
    lags: Lags<T>,
    /// Further lags, each range on a thread of its own.
    far: Vec<Far<T>>,
    /// Coefficients that the further lags have not been told.
    untold: Vec<Complex<T>>,
    budget: usize,
    direct: bool,
    /// How many windows were learned in a row up to now, at most the budget.
    streak: usize,
    /// Place in the block.
    place: usize,
    /// The coefficients of this block's samples so far; the lags learn them when it is full.
    block: [Complex<T>; BLOCK],
    /// A window.
    scratch: Vec<Complex<T>>,
}

/// What is saved besides the filter. How many threads there were is not part of it.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct Position<T: Real> {
    /// Inputs and coefficients, the newest first.
    samples: Vec<(Complex<T>, Complex<T>)>,
    /// The exponents of all lags.
    exponents: Vec<T>,
    /// The last lag in use.
    reached: u64,
    blocks: u64,
    direct: bool,
    streak: u64,
    place: u64,
    block: [Complex<T>; BLOCK],
}

impl<T: Real, K: Kernel<T>> Sliding<T, K> {
    /// `filter` on a stream, or `filter` back where its dictionary is something other than the last inputs or its kernel is not Gaussian.
    #[expect(clippy::result_large_err, reason = "the filter is handed back, not lost")]
    pub(super) fn new(filter: GaussianKernelFilter<T, K>) -> Result<Self, GaussianKernelFilter<T, K>> {
        let (Some(budget), Some(gamma)) = (filter.last_windows(), filter.kernel().gaussian()) else {
            return Err(filter);
        };
        let taps = filter.taps();
        let mut sliding = Self {
            // What it has learned so far were no windows of this stream.
            direct: filter.size() > 0,
            filter,
            lags: Lags::new(taps, 1, budget, budget, gamma),
            far: Vec::new(),
            untold: Vec::with_capacity(2 * LEAST),
            budget,
            streak: 0,
            place: 0,
            block: [Complex::zero(); BLOCK],
            scratch: vec![Complex::zero(); taps],
        };
        sliding.set_decay();
        Ok(sliding)
    }

    /// Spreads the lags over `threads` threads, this one included. Results stay the same to rounding; it pays from some thousand centres on.
    ///
    /// An error where the budget is too small to be spread, or the system has no thread left.
    fn set_threads(&mut self, threads: usize) -> Result<()> {
        let most = self.budget / LEAST;
        if threads == 0 || (threads > 1 && threads > most) {
            let expected = format!("1 or, with this budget, at most {}", most.max(1));
            return Err(Error::parameter("threads", expected, threads));
        }
        let (taps, budget, gamma) = (self.filter.taps(), self.budget, self.filter.kernel().gaussian().unwrap_or(T::one()));
        // Whole groups, so that the ranges meet without a gap.
        let near = if threads == 1 { budget } else { (budget / threads).next_multiple_of(GROUP) };
        let share = ((budget - near) / threads.saturating_sub(1).max(1)).next_multiple_of(GROUP).max(GROUP);
        let lags = Lags::new(taps, 1, near, budget, gamma);
        let far = (near + 1..=budget).step_by(share);
        let far = far.map(|first| Far::new(Lags::new(taps, first, budget.min(first + share - 1), budget, gamma)));
        let far = far
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(|e| Error::parameter("threads", "as many as the system can start", format!("{threads} ({e})")))?;
        let samples: Vec<_> = self.samples().collect();
        let (exponents, reached, blocks) = self.carried();
        self.lags = lags;
        self.far = far;
        self.set_decay();
        self.resume(&samples, &exponents, reached, blocks);
        Ok(())
    }

    /// Inputs and coefficients, the newest first. The youngest lags know them all.
    fn samples(&self) -> impl DoubleEndedIterator<Item = (Complex<T>, Complex<T>)> + ExactSizeIterator + '_ {
        (0..self.lags.reach()).map(|age| self.lags.sample(age))
    }

    /// The exponents of all lags, the last one in use, and the number of blocks.
    fn carried(&self) -> (Vec<T>, usize, u64) {
        let (exponents, reached, blocks) = self.lags.carried();
        let mut exponents = exponents.to_vec();
        for far in &self.far {
            exponents.extend_from_slice(far.lags().carried().0);
        }
        (exponents, reached, blocks)
    }

    /// Goes on from there, whatever the number of threads. The block that has begun stays as it is.
    fn resume(&mut self, samples: &[(Complex<T>, Complex<T>)], exponents: &[T], reached: usize, blocks: u64) {
        let (near, mut further) = exponents.split_at(self.lags.len());
        self.lags.take_over(samples.iter().copied());
        self.lags.resume(near, reached, blocks);
        for far in &self.far {
            let mut lags = far.lags();
            let (these, rest) = further.split_at(lags.len());
            lags.take_over(samples.iter().copied());
            lags.resume(these, reached, blocks);
            further = rest;
        }
        self.untold.clear();
        if !self.far.is_empty() {
            self.untold.extend_from_slice(&self.block[..self.place]);
        }
    }

    fn set_decay(&mut self) {
        let (decay, before) = self.filter.decay_factor();
        let offset = if before { 0 } else { -1 };
        self.lags.set_decay(decay, offset);
        for far in &self.far {
            far.lags().set_decay(decay, offset);
        }
    }

    /// Goes on with fewer lags, by direct rows until they have been filled.
    fn shrink(&mut self, budget: usize, decay: T) {
        if !self.direct && self.streak > 0 {
            self.leave(decay);
        }
        let (taps, gamma) = (self.filter.taps(), self.filter.kernel().gaussian().unwrap_or(T::one()));
        let mut lags = Lags::new(taps, 1, budget, budget, gamma);
        lags.take_over(self.samples());
        self.budget = budget;
        self.lags = lags;
        self.far.clear();
        self.untold.clear();
        self.streak = 0;
        self.set_decay();
    }

    /// From lags to direct rows: hands the dictionary to the filter.
    fn leave(&mut self, decay: T) {
        self.commit();
        self.filter.reset();
        for age in (0..self.streak).rev() {
            self.lags.window(age, &mut self.scratch);
            let (_, coefficient) = self.lags.sample(age);
            let power = decay.powi(i32::try_from(age).unwrap_or(i32::MAX));
            self.filter.append(&self.scratch, coefficient * power);
        }
        self.direct = true;
        self.streak = 0;
    }

    /// From direct rows to lags, once the dictionary is the last windows again.
    fn enter(&mut self) {
        self.filter.reset();
        self.lags.fill();
        for far in &self.far {
            let mut lags = far.lags();
            lags.take_over(self.samples());
            lags.fill();
        }
        self.untold.clear();
        self.direct = false;
        self.place = 0;
    }

    /// Gives the lags the coefficients of the block so far.
    fn commit(&mut self) {
        for (age, &a) in self.block[..self.place].iter().rev().enumerate() {
            self.lags.learn(age, a);
        }
        self.place = 0;
    }

    /// One sample by direct rows.
    fn step(&mut self, u: Complex<T>, y: Complex<T>, learn: bool) -> Complex<T> {
        self.lags.note(u);
        self.lags.window(0, &mut self.scratch);
        let admitted = self.filter.admitted();
        let p = if learn { self.filter.adapt(&self.scratch, y) } else { self.filter.predict(&self.scratch) };
        let learned = self.filter.admitted() > admitted;
        self.streak = if learned { self.streak + 1 } else { 0 };
        if learned {
            self.lags.learn(0, (y - p) * self.filter.unit_gain());
        }
        if self.streak >= self.budget {
            self.enter();
        }
        p
    }

    /// Samples of one block by lag, learned; `further` is what the further lags contribute. Returns how many were done: less than all where a
    /// step overflowed.
    fn block(
        &mut self,
        tx: &[Complex<T>],
        rx: &[Complex<T>],
        further: impl FnOnce(&mut Self, &mut [Complex<T>]),
        p: &mut [Complex<T>],
    ) -> usize {
        if self.place == 0 {
            self.lags.begin_block(self.streak);
        }
        let mut sums = [Complex::zero(); BLOCK];
        let mut triangle: Triangle<T> = [[T::zero(); GROUP]; BLOCK];
        self.lags.rows(tx, &mut sums[..tx.len()], &mut triangle);
        further(self, &mut sums[..tx.len()]);
        let gain = self.filter.unit_gain();
        for s in 0..tx.len() {
            p[s] = correct(sums[s], &triangle[s], &self.block[..self.place]);
            let step = (rx[s] - p[s]) * gain;
            if !finite(step) {
                self.lags.undo(tx.len() - s);
                self.leave(self.filter.decay_factor().0);
                return s;
            }
            self.block[self.place] = step;
            self.place += 1;
            self.streak = self.budget.min(self.streak + 1);
        }
        if self.place == BLOCK {
            self.commit();
        }
        tx.len()
    }

    /// Any number of samples by lag, learned, with the help of other threads. Returns how many were done, as [`block`](Self::block) does.
    fn spread(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], p: &mut [Complex<T>]) -> usize {
        // Handing over less than this costs more than it saves.
        let wake = tx.len() >= 4 * JOB;
        let (mut given, mut done, mut under_way) = (0, 0, 0);
        while done < tx.len() {
            while given < tx.len() && under_way < DEPTH {
                let place = (self.place + given - done) % BLOCK;
                // Jobs end with a block.
                let n = (JOB - place).min(tx.len() - given);
                let windows = self.budget.min(self.streak + given - done);
                // The oldest untold coefficient lies behind all samples given but not done, and those younger than itself.
                let age = (given - done + self.untold.len()).saturating_sub(1);
                for far in &mut self.far {
                    far.give(wake, |job| {
                        job.inputs.extend_from_slice(&tx[given..given + n]);
                        job.coefficients.extend_from_slice(&self.untold);
                        (job.place, job.windows, job.age) = (place, windows, age);
                    });
                }
                self.untold.clear();
                given += n;
                under_way += 1;
            }
            let mut jobs_sum = [Complex::zero(); JOB];
            let n = (JOB - self.place).min(tx.len() - done);
            let (mut fetched, mut at) = (false, 0);
            while at < n {
                let m = (BLOCK - self.place).min(n - at);
                let span = done + at..done + at + m;
                let further = |this: &mut Self, sums: &mut [Complex<T>]| {
                    if !fetched {
                        for far in &mut this.far {
                            let job = far.fetch();
                            jobs_sum.iter_mut().zip(&job.sums).for_each(|(sum, &s)| *sum += s);
                            far.recycle(job);
                        }
                        fetched = true;
                    }
                    sums.iter_mut().zip(&jobs_sum[at..]).for_each(|(sum, &s)| *sum += s);
                };
                let first = self.place;
                let learned = self.block(&tx[span.clone()], &rx[span.clone()], further, &mut p[span]);
                if learned < m {
                    for far in &mut self.far {
                        for _ in 1..under_way {
                            let job = far.fetch();
                            far.recycle(job);
                        }
                    }
                    return done + at + learned;
                }
                self.untold.extend_from_slice(&self.block[first..first + m]);
                at += m;
            }
            done += n;
            under_way -= 1;
        }
        done
    }
}

impl<T: Real, K: Kernel<T>> Adaptive for Sliding<T, K> {
    fn size(&self) -> usize {
        if self.direct { self.filter.size() } else { self.streak }
    }

    fn reset(&mut self) {
        self.filter.reset();
        self.lags.clear();
        for far in &self.far {
            far.lags().clear();
        }
        self.untold.clear();
        (self.direct, self.streak, self.place) = (false, 0, 0);
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        if name == "threads" {
            require(value >= 1.0 && value.fract() == 0.0, name, "a whole number, at least 1", value)?;
            return self.set_threads(value as usize);
        }
        let (before, _) = self.filter.decay_factor();
        self.filter.set(name, value)?;
        if name == "budget" {
            self.shrink(value as usize, before);
            return Ok(());
        }
        if self.filter.decay_factor().0 != before {
            // The past has decayed by the old factor, the lags would apply the new one to all of it.
            if !self.direct && self.streak > 0 {
                self.leave(before);
            }
            self.streak = 0;
            self.set_decay();
        }
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        let (exponents, reached, blocks) = self.carried();
        let position = Position {
            samples: self.samples().collect(),
            exponents,
            reached: reached as u64,
            blocks,
            direct: self.direct,
            streak: self.streak as u64,
            place: self.place as u64,
            block: self.block,
        };
        state::encode(&state::kind::<T>("sliding"), &(self.filter.save()?, position))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (filter, position): (Vec<u8>, Position<T>) = state::decode(&state::kind::<T>("sliding"), bytes)?;
        state::same_shape("samples in its history", position.samples.len(), self.lags.reach())?;
        state::same_shape("lags", position.exponents.len(), self.budget)?;
        if position.streak > self.budget as u64 || position.place >= BLOCK as u64 || position.reached > (self.lags.reach() + BLOCK) as u64 {
            return Err(Error::State("its position is beyond its budget or block".into()));
        }
        self.filter.restore(&filter)?;
        self.set_decay();
        (self.direct, self.block) = (position.direct, position.block);
        (self.streak, self.place) = (position.streak as usize, position.place as usize);
        self.resume(&position.samples, &position.exponents, position.reached as usize, position.blocks);
        Ok(())
    }
}

impl<T: Real, K: Kernel<T>> Tracker<T> for Sliding<T, K> {
    fn taps(&self) -> usize {
        self.filter.taps()
    }

    fn track(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], learn: bool, prediction: &mut [Complex<T>], variance: Option<&mut [T]>) {
        if let Some(variance) = variance {
            variance.fill(T::nan());
        }
        let mut i = 0;
        if !learn && !self.direct && !tx.is_empty() {
            self.leave(self.filter.decay_factor().0);
        }
        while i < tx.len() {
            if self.direct {
                prediction[i] = self.step(tx[i], rx[i], learn);
                i += 1;
            } else if self.far.is_empty() {
                let span = i..tx.len().min(i + BLOCK - self.place);
                i += self.block(&tx[span.clone()], &rx[span.clone()], |_, _| {}, &mut prediction[span]);
            } else {
                i += self.spread(&tx[i..], &rx[i..], &mut prediction[i..]);
            }
        }
    }

    fn form(&self) -> &'static str {
        "sliding"
    }

    fn portrait(&self) -> Portrait {
        if self.direct {
            return self.filter.portrait();
        }
        let (decay, _) = self.filter.decay_factor();
        let weight = |age: usize| {
            // The coefficients of this block are not with the lags yet.
            let coefficient = if age < self.place { self.block[self.place - 1 - age] } else { self.lags.sample(age).1 };
            Weight { age: age as u64, size: coefficient.norm().wide() * decay.wide().powi(i32::try_from(age).unwrap_or(i32::MAX)) }
        };
        Portrait { weights: (0..self.streak).map(weight).collect(), ..Portrait::default() }
    }
}
