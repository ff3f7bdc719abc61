//! The windows of a stream at a range of lags under a kernel that is a sum over taps.

use num_complex::Complex;

use super::lags::{Lags, Triangle};
use super::planes::{A_IM, A_RE, IM, Planes, RE};
use crate::Real;
use crate::simd::{Aligned, BLOCK, GROUP, Level, PairFill, PairPass, PairRow, Samples, Terms};

/// `sqrt(gamma) |u|`.
const ENVELOPE: usize = 4;
const PLANES: usize = 5;

/// The terms of the kernel by lag. The term of tap `l` at time `k` and lag `m` is that of tap 0 at the same lag, `l` samples ago: only the pairs of the
/// newest sample are computed, whatever the taps. See [`Terms`] for how they are summed.
///
/// Lag 0, where it is there, gives `k(x,x)` and has no coefficient.
#[derive(Clone, Debug)]
pub(super) struct Pairs<T> {
    level: Level,
    taps: usize,
    first: usize,
    /// How many lags there are.
    lags: usize,
    /// `sqrt(log₂e / 2σ²)`.
    scale: T,
    planes: Planes<T>,
    terms: Aligned<T>,
    /// The place of the next sample in its run.
    phase: usize,
    /// The last lag in use, or beyond. A young filter has seen few windows, and needs no more lags than that.
    reached: usize,
}

impl<T: Real> Pairs<T> {
    /// How many of the lags are in use: whole groups, or all of them.
    fn active(&self) -> usize {
        (self.reached + 1).saturating_sub(self.first).next_multiple_of(GROUP).min(self.lags)
    }

    fn push(&mut self, input: Complex<T>) {
        // A square that overflows does so in `k(x,x)` as well, which no lag survives: there is nothing that a slower `norm` would save.
        let values: [T; PLANES] = [input.re, input.im, T::zero(), T::zero(), input.norm_sqr().sqrt() * self.scale];
        self.planes.push(values);
    }

    /// What is carried.
    #[cfg(test)]
    pub(super) fn terms(&self) -> &[T] {
        &self.terms
    }

    fn fill_lags(&mut self, lags: std::ops::Range<usize>) {
        let terms = Terms { rows: &mut self.terms, taps: self.taps, first: self.first, phase: self.phase };
        T::dispatch(self.level, PairFill { samples: samples(&self.planes), terms, lags });
    }
}

fn samples<T: Real>(planes: &Planes<T>) -> Samples<'_, T> {
    Samples {
        input: [planes.plane(RE), planes.plane(IM)],
        envelope: planes.plane(ENVELOPE),
        coefficient: [planes.plane(A_RE), planes.plane(A_IM)],
    }
}

impl<T: Real> Lags<T> for Pairs<T> {
    type Row = PairRow<T>;

    fn new(taps: usize, first: usize, last: usize, budget: usize, gamma: T) -> Self {
        let first = if first == 1 { 0 } else { first };
        let lags = last + 1 - first;
        // The oldest sample of the window at the last lag, whole groups beyond the budget, and a block on top.
        let reach = taps + budget + 2 * GROUP + BLOCK;
        Self {
            level: Level::current(),
            taps,
            first,
            lags,
            scale: (gamma * T::LOG2_E()).sqrt(),
            planes: Planes::new(PLANES, reach),
            terms: Aligned::zeros(lags.div_ceil(GROUP) * Terms::<T>::stride(taps)),
            phase: 0,
            reached: 0,
        }
    }

    fn planes(&self) -> &Planes<T> {
        &self.planes
    }

    fn planes_mut(&mut self) -> &mut Planes<T> {
        &mut self.planes
    }

    fn note(&mut self, input: Complex<T>) {
        self.planes.make_room(1);
        self.push(input);
    }

    fn fill(&mut self) {
        (self.phase, self.reached) = (0, self.planes.reach());
        self.fill_lags(0..self.lags);
    }

    fn clear(&mut self) {
        self.planes.clear();
        self.terms.fill(T::zero());
        (self.phase, self.reached) = (0, 0);
    }

    fn begin_block(&mut self, windows: usize) {
        let before = self.active();
        self.reached = self.reached.max(windows + BLOCK);
        if self.active() > before {
            self.fill_lags(before..self.active());
        }
    }

    fn rows(&mut self, inputs: &[Complex<T>], sums: &mut [Complex<T>], triangle: &mut Triangle<PairRow<T>>) {
        self.planes.make_room(inputs.len());
        for &input in inputs {
            self.push(input);
        }
        let lags = self.active();
        let pass = PairPass {
            samples: samples(&self.planes),
            terms: Terms { rows: &mut self.terms, taps: self.taps, first: self.first, phase: self.phase },
            lags,
            sums,
            triangle,
        };
        self.phase = T::dispatch(self.level, pass);
    }

    fn norm([re, _]: &PairRow<T>) -> T {
        re[0]
    }

    fn correct(mut sum: Complex<T>, [re, im]: &PairRow<T>, before: &[Complex<T>]) -> Complex<T> {
        // From lag 1 on. The youngest last: it is the one that has just been computed, and all others need not wait for it.
        let lags = 1..=before.len();
        for ((&re, &im), &a) in re[lags.clone()].iter().zip(&im[lags]).rev().zip(before) {
            sum += a * Complex::new(re, im);
        }
        sum
    }

    fn carried(&self) -> (&[T], usize, u64) {
        // The terms follow from the samples, given where the run began.
        (&[], self.reached, self.phase as u64)
    }

    fn resume(&mut self, _: &[T], reached: usize, count: u64) {
        (self.reached, self.phase) = (reached, (count % self.taps as u64) as usize);
        self.fill_lags(0..self.active());
    }
}
