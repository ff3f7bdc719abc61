//! The windows of a stream at a range of lags under a kernel that is a sum over taps.

use num_complex::Complex;

use super::lags::{Lags, Triangle};
use super::planes::{A_IM, A_RE, IM, Planes, RE};
use crate::Real;
use crate::simd::{Aligned, BLOCK, GROUP, Level, PairFill, PairPass, Samples, Terms};

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
    groups: usize,
    /// `sqrt(log₂e / 2σ²)`.
    scale: T,
    planes: Planes<T>,
    terms: Aligned<T>,
    /// Which lags of the last group exist.
    mask: [T; GROUP],
    /// The place of the next sample in its run.
    phase: usize,
    /// The last lag in use, or beyond. A young filter has seen few windows, and needs no more lags than that.
    reached: usize,
}

impl<T: Real> Pairs<T> {
    /// How many of the groups are in use.
    fn active(&self) -> usize {
        (self.reached + 1).saturating_sub(self.first).div_ceil(GROUP).min(self.groups)
    }

    fn push(&mut self, input: Complex<T>) {
        let values: [T; PLANES] = [input.re, input.im, T::zero(), T::zero(), input.norm() * self.scale];
        self.planes.push(values);
    }

    /// What is carried.
    #[cfg(test)]
    pub(super) fn terms(&self) -> &[T] {
        &self.terms
    }

    fn fill_groups(&mut self, groups: std::ops::Range<usize>) {
        let terms = Terms { rows: &mut self.terms, taps: self.taps, first: self.first, phase: self.phase };
        T::dispatch(self.level, PairFill { samples: samples(&self.planes), terms, groups });
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
    type Value = Complex<T>;

    fn new(taps: usize, first: usize, last: usize, budget: usize, gamma: T) -> Self {
        let first = if first == 1 { 0 } else { first };
        let lags = last + 1 - first;
        let groups = lags.div_ceil(GROUP);
        let rest = lags - (groups - 1) * GROUP;
        // The oldest sample of the window at the last lag, whole groups beyond the budget, and a block on top.
        let reach = taps + budget + 2 * GROUP + BLOCK;
        Self {
            level: Level::current(),
            taps,
            first,
            groups,
            scale: (gamma * T::LOG2_E()).sqrt(),
            planes: Planes::new(PLANES, reach),
            terms: Aligned::zeros(groups * Terms::<T>::stride(taps)),
            mask: std::array::from_fn(|lane| if lane < rest { T::one() } else { T::zero() }),
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
        self.fill_groups(0..self.groups);
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
            self.fill_groups(before..self.active());
        }
    }

    fn rows(&mut self, inputs: &[Complex<T>], sums: &mut [Complex<T>], triangle: &mut Triangle<Complex<T>>) {
        self.planes.make_room(inputs.len());
        for &input in inputs {
            self.push(input);
        }
        let (active, all) = (self.active(), [T::one(); GROUP]);
        let rows = &mut self.terms[..active * Terms::<T>::stride(self.taps)];
        let pass = PairPass {
            samples: samples(&self.planes),
            terms: Terms { rows, taps: self.taps, first: self.first, phase: self.phase },
            mask: if active == self.groups { &self.mask } else { &all },
            sums,
            triangle,
        };
        self.phase = T::dispatch(self.level, pass);
    }

    fn values(row: &[Complex<T>; GROUP]) -> (T, &[Complex<T>]) {
        (row[0].re, &row[1..])
    }

    fn weigh(a: Complex<T>, k: Complex<T>) -> Complex<T> {
        a * k
    }

    fn carried(&self) -> (&[T], usize, u64) {
        // The terms follow from the samples, given where the run began.
        (&[], self.reached, self.phase as u64)
    }

    fn resume(&mut self, _: &[T], reached: usize, count: u64) {
        (self.reached, self.phase) = (reached, (count % self.taps as u64) as usize);
        self.fill_groups(0..self.active());
    }
}
