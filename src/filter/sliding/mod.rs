//! Kernel filters on streams, by lag.

mod distances;
mod far;
mod lags;
mod pairs;
mod planes;
#[cfg(test)]
#[path = "../../../tests/unit/filter/sliding.rs"]
mod tests;
mod threads;

use num_complex::Complex;
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use self::distances::Distances;
use self::far::{Far, LEAST};
use self::lags::{Lags, Triangle};
use self::pairs::Pairs;
use super::registry::shared::WORKERS;
use super::{Adaptive, Filter, GaussianKernelFilter, Portrait, Tracker, Weight, check_lengths, finite, require, state};
use crate::kernel::Kernel;
use crate::simd::BLOCK;
use crate::{Error, Real, Result};

/// `filter` on a stream by lag, or `filter` back where its dictionary is something other than the last inputs or its kernel has no form by lag.
#[expect(clippy::result_large_err, reason = "the filter is handed back, not lost")]
pub(super) fn by_lag<T: Real, K: Kernel<T>>(filter: GaussianKernelFilter<T, K>) -> Result<Box<dyn Tracker<T>>, GaussianKernelFilter<T, K>> {
    match (filter.last_windows(), filter.kernel().gaussian(), filter.kernel().hammerstein()) {
        (Some(budget), Some(gamma), _) => Ok(Box::new(Sliding::<T, K, Distances<T>>::new(filter, budget, gamma))),
        (Some(budget), _, Some(gamma)) => Ok(Box::new(Sliding::<T, K, Pairs<T>>::new(filter, budget, gamma))),
        _ => Err(filter),
    }
}

/// The scale of the coefficients below which they are rebased, and below which dividing by it is no longer harmless.
const SMALL: f64 = 1e-6;
const TOO_SMALL: f64 = 1e-20;

/// KLMS with a budget, fKLMS or NORMA on a stream: the same filter as behind a window, many times as fast, at a cost that does not depend on the
/// number of taps.
///
/// With "drop the oldest", the centres are exactly the last `M` windows of the stream. What the kernel makes of the window `m` samples back then
/// follows from the sample before by what enters and what leaves (O(1) for a centre, whatever the taps): the squared distance of the Gaussian
/// kernel, the sum over taps of the [`Hammerstein`](crate::kernel::Hammerstein) kernel. Forgetting is a common factor of all coefficients; and as kernel
/// values do not depend on coefficients, the rows of eight samples are computed together and only a triangle of
/// corrections between the eight is sequential. Nothing is approximated. Rounding differs: the documentation of
/// [`filter`](crate::filter) has the bound.
///
/// Where the dictionary is *not* the last windows (while frozen, where a corrupt sample was skipped), the filter goes on with direct rows over the centres
/// it has, until `M` windows in a row have been learned. Nothing is lost, only speed.
struct Sliding<T: Real, K, L> {
    /// Parameters always; the dictionary while `direct`.
    filter: GaussianKernelFilter<T, K>,
    gamma: T,
    /// The youngest lags, or all of them.
    lags: L,
    /// Further lags, each range on a thread of its own.
    far: Vec<Far<T, L>>,
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
    /// The common factor of all coefficients, those of the lags and of the block: decay is one multiplication.
    scale: T,
    /// A window.
    scratch: Vec<Complex<T>>,
}

/// What is saved besides the filter. How many threads there were is not part of it.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct Position<T: Real> {
    /// Inputs and coefficients, the newest first.
    samples: Vec<(Complex<T>, Complex<T>)>,
    /// What the lags carry.
    numbers: Vec<T>,
    /// The last lag in use.
    reached: u64,
    count: u64,
    direct: bool,
    streak: u64,
    place: u64,
    block: [Complex<T>; BLOCK],
    scale: T,
}

impl<T: Real, K: Kernel<T>, L: Lags<T>> Sliding<T, K, L> {
    /// `filter`, whose dictionary is the last `budget` inputs, with the `gamma` of its kernel, which the lags must be for.
    fn new(filter: GaussianKernelFilter<T, K>, budget: usize, gamma: T) -> Self {
        let taps = filter.taps();
        Self {
            // What it has learned so far were no windows of this stream.
            direct: filter.size() > 0,
            filter,
            gamma,
            lags: L::new(taps, 1, budget, budget, gamma),
            far: Vec::new(),
            untold: Vec::with_capacity(2 * LEAST),
            budget,
            streak: 0,
            place: 0,
            block: [Complex::zero(); BLOCK],
            scale: T::one(),
            scratch: vec![Complex::zero(); taps],
        }
    }

    /// Inputs and coefficients, the newest first. The youngest lags know them all.
    fn samples(&self) -> impl DoubleEndedIterator<Item = (Complex<T>, Complex<T>)> + ExactSizeIterator + '_ {
        (0..self.lags.planes().reach()).map(|age| self.lags.planes().sample(age))
    }

    /// Goes on with fewer lags, by direct rows until they have been filled.
    fn shrink(&mut self, budget: usize) {
        if !self.direct && self.streak > 0 {
            self.leave();
        }
        let mut lags = L::new(self.filter.taps(), 1, budget, budget, self.gamma);
        lags.take_over(self.samples());
        self.budget = budget;
        self.lags = lags;
        self.far.clear();
        self.untold.clear();
        self.streak = 0;
    }

    /// From lags to direct rows: hands the dictionary to the filter.
    fn leave(&mut self) {
        self.commit();
        self.filter.reset();
        for age in (0..self.streak).rev() {
            self.lags.planes().window(age, &mut self.scratch);
            let (_, coefficient) = self.lags.planes().sample(age);
            self.filter.append(&self.scratch, coefficient * self.scale);
        }
        self.direct = true;
        (self.streak, self.scale) = (0, T::one());
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
            self.lags.planes_mut().learn(age, a);
        }
        self.place = 0;
    }

    /// Takes a small scale into the coefficients. By a power of two, which rounds nothing: it does not matter when.
    fn rebase(&mut self) {
        if self.scale.wide() >= SMALL {
            return;
        }
        let forgotten = self.scale.wide() < TOO_SMALL;
        let factor = if forgotten { T::zero() } else { T::of(self.scale.wide().log2().floor().exp2()) };
        self.scale = if forgotten { T::one() } else { self.scale / factor };
        self.lags.planes_mut().rescale(factor);
        for far in &self.far {
            far.lags().planes_mut().rescale(factor);
        }
        self.block.iter_mut().chain(&mut self.untold).for_each(|a| *a *= factor);
    }

    /// One sample by direct rows, as behind a window.
    fn step(&mut self, u: Complex<T>, y: Complex<T>, learn: bool) -> Complex<T> {
        self.lags.note(u);
        self.lags.planes().window(0, &mut self.scratch);
        let admitted = self.filter.admitted();
        let p = if learn { self.filter.adapt(&self.scratch, y) } else { self.filter.predict(&self.scratch) };
        if self.filter.admitted() > admitted {
            let (gain, decay) = self.filter.factors(self.filter.kernel().norm(&self.scratch));
            self.scale *= decay;
            self.rebase();
            let coefficient = (y - p) * gain / self.scale;
            // One that overflows stays with the filter: the lags begin behind it.
            self.streak = if finite(coefficient) { self.streak + 1 } else { 0 };
            if finite(coefficient) {
                self.lags.planes_mut().learn(0, coefficient);
            }
        } else {
            self.streak = 0;
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
        let mut triangle: Triangle<L::Row> = [L::Row::default(); BLOCK];
        self.lags.rows(tx, &mut sums[..tx.len()], &mut triangle);
        further(self, &mut sums[..tx.len()]);
        let before = self.filter.decays_first();
        for s in 0..tx.len() {
            let norm = L::norm(&triangle[s]);
            let (gain, decay) = self.filter.factors(norm);
            let scale = self.scale * decay;
            // Divided before the error is known: the next sample waits for this one.
            let rate = gain / scale;
            p[s] = L::correct(sums[s], &triangle[s], &self.block[..self.place]) * if before { scale } else { self.scale };
            let step = (rx[s] - p[s]) * rate;
            if !(finite(step) && norm.is_finite() && scale.wide() >= TOO_SMALL) {
                self.lags.planes_mut().undo(tx.len() - s);
                self.leave();
                return s;
            }
            self.filter.note_step(norm);
            self.block[self.place] = step;
            self.scale = scale;
            self.place += 1;
            self.streak = self.budget.min(self.streak + 1);
        }
        if self.place == BLOCK {
            self.commit();
        }
        tx.len()
    }

    /// How many samples the scale lasts, from where it is rebased.
    fn lasting(&self) -> usize {
        let least = self.filter.least_decay().wide();
        if least < 1.0 { ((0.5 * (TOO_SMALL / SMALL).ln() / least.max(0.0).ln()) as usize).max(1) } else { usize::MAX }
    }
}

impl<T: Real, K: Kernel<T>, L: Lags<T>> Adaptive for Sliding<T, K, L> {
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
        (self.direct, self.streak, self.place, self.scale) = (false, 0, 0, T::one());
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        if name == WORKERS.name {
            require(value >= 1.0 && value.fract() == 0.0, name, "a whole number, at least 1", value)?;
            return self.set_workers(value as usize);
        }
        self.filter.set(name, value).map_err(|error| match error {
            Error::NotApplicable { filter, name, mut known } => {
                known.push(WORKERS.name.into());
                Error::NotApplicable { filter, name, known }
            }
            other => other,
        })?;
        if name == "budget" {
            self.shrink(value as usize);
        }
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        let (numbers, reached, count) = self.carried();
        let position = Position {
            samples: self.samples().collect(),
            numbers,
            reached: reached as u64,
            count,
            direct: self.direct,
            streak: self.streak as u64,
            place: self.place as u64,
            block: self.block,
            scale: self.scale,
        };
        state::encode(&state::kind::<T>("sliding"), &(self.filter.save()?, position))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (filter, position): (Vec<u8>, Position<T>) = state::decode(&state::kind::<T>("sliding"), bytes)?;
        let reach = self.lags.planes().reach();
        state::same_shape("samples in its history", position.samples.len(), reach)?;
        state::same_shape("lags", position.numbers.len(), self.carried().0.len())?;
        if position.streak > self.budget as u64 || position.place >= BLOCK as u64 || position.reached > (reach + BLOCK) as u64 {
            return Err(Error::State("its position is beyond its budget or block".into()));
        }
        if !(position.scale.wide() >= TOO_SMALL && position.scale <= T::one() + T::one()) {
            return Err(Error::State("its coefficients have no scale".into()));
        }
        self.filter.restore(&filter)?;
        (self.direct, self.block, self.scale) = (position.direct, position.block, position.scale);
        (self.streak, self.place) = (position.streak as usize, position.place as usize);
        self.resume(&position.samples, &position.numbers, position.reached as usize, position.count);
        Ok(())
    }
}

impl<T: Real, K: Kernel<T>, L: Lags<T>> Tracker<T> for Sliding<T, K, L> {
    fn taps(&self) -> usize {
        self.filter.taps()
    }

    fn track(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], learn: bool, prediction: &mut [Complex<T>], variance: Option<&mut [T]>) {
        check_lengths(tx, rx, prediction, variance.as_deref());
        if let Some(variance) = variance {
            variance.fill(T::nan());
        }
        let mut i = 0;
        if !learn && !self.direct && !tx.is_empty() {
            self.leave();
        }
        while i < tx.len() {
            if self.direct {
                prediction[i] = self.step(tx[i], rx[i], learn);
                i += 1;
                continue;
            }
            self.rebase();
            if self.far.is_empty() {
                let span = i..tx.len().min(i + BLOCK - self.place);
                i += self.block(&tx[span.clone()], &rx[span.clone()], |_, _| {}, &mut prediction[span]);
            } else {
                let span = i..tx.len().min(i.saturating_add(self.lasting()));
                i += self.spread(&tx[span.clone()], &rx[span.clone()], &mut prediction[span]);
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
        let weight = |age: usize| {
            // The coefficients of this block are not with the lags yet.
            let coefficient = if age < self.place { self.block[self.place - 1 - age] } else { self.lags.planes().sample(age).1 };
            Weight { age: age as u64, size: coefficient.norm().wide() * self.scale.wide() }
        };
        Portrait { weights: (0..self.streak).map(weight).collect(), ..self.filter.portrait() }
    }
}
