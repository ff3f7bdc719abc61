//! One stream on several threads.

use num_complex::Complex;
use num_traits::Zero;

use super::Sliding;
use super::far::{DEPTH, Far, JOB, LEAST};
use super::lags::Lags;
use crate::filter::Filter;
use crate::filter::registry::shared::WORKERS;
use crate::kernel::Kernel;
use crate::simd::{BLOCK, GROUP};
use crate::{Error, Real, Result};

impl<T: Real, K: Kernel<T>, L: Lags<T>> Sliding<T, K, L> {
    /// Spreads the lags over `workers` threads, this one included. Results stay the same to rounding; it pays from some thousand centres on.
    ///
    /// An error where the budget is too small to be spread, or the system has no thread left.
    pub(super) fn set_workers(&mut self, workers: usize) -> Result<()> {
        let most = self.budget / LEAST;
        if workers == 0 || (workers > 1 && workers > most) {
            let expected = format!("1 or, with this budget, at most {}", most.max(1));
            return Err(Error::parameter(WORKERS.name, expected, workers));
        }
        let (taps, budget, gamma) = (self.filter.taps(), self.budget, self.gamma);
        // Whole groups, so that the ranges meet without a gap.
        let near = if workers == 1 { budget } else { (budget / workers).next_multiple_of(GROUP) };
        let share = ((budget - near) / workers.saturating_sub(1).max(1)).next_multiple_of(GROUP).max(GROUP);
        let lags = L::new(taps, 1, near, budget, gamma);
        let far = (near + 1..=budget).step_by(share);
        let far = far.map(|first| Far::new(L::new(taps, first, budget.min(first + share - 1), budget, gamma)));
        let far = far
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(|e| Error::parameter(WORKERS.name, "as many as the system can start", format!("{workers} ({e})")))?;
        let samples: Vec<_> = self.samples().collect();
        let (numbers, reached, count) = self.carried();
        self.lags = lags;
        self.far = far;
        self.resume(&samples, &numbers, reached, count);
        Ok(())
    }

    /// What all lags carry, the last one in use, and their count.
    pub(super) fn carried(&self) -> (Vec<T>, usize, u64) {
        let (numbers, reached, count) = self.lags.carried();
        let mut numbers = numbers.to_vec();
        for far in &self.far {
            numbers.extend_from_slice(far.lags().carried().0);
        }
        (numbers, reached, count)
    }

    /// Goes on from there, whatever the number of threads. The block that has begun stays as it is.
    pub(super) fn resume(&mut self, samples: &[(Complex<T>, Complex<T>)], numbers: &[T], reached: usize, count: u64) {
        let (near, mut further) = numbers.split_at(self.lags.carried().0.len());
        self.lags.take_over(samples.iter().copied());
        self.lags.resume(near, reached, count);
        for far in &self.far {
            let mut lags = far.lags();
            let (these, rest) = further.split_at(lags.carried().0.len());
            lags.take_over(samples.iter().copied());
            lags.resume(these, reached, count);
            further = rest;
        }
        self.untold.clear();
        if !self.far.is_empty() {
            self.untold.extend_from_slice(&self.block[..self.place]);
        }
    }

    /// Any number of samples by lag, learned, with the help of other threads. Returns how many were done, as [`block`](Self::block) does.
    pub(super) fn spread(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], p: &mut [Complex<T>]) -> usize {
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
