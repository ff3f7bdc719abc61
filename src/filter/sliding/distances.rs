//! The windows of a stream at a range of lags under the Gaussian kernel.

use num_complex::Complex;

use super::lags::{Lags, Triangle};
use super::planes::{A_IM, A_RE, IM, Planes, RE};
use crate::Real;
use crate::simd::{Aligned, BLOCK, GROUP, History, LagFill, LagPass, Level};

/// The largest term, in units of the exponent, that may be carried as a part of a product: its rounding is relative to the power of the samples, not
/// to their distance, and this keeps the one near the other.
pub(super) const CALM: f64 = 16.0;

// Further planes. See `History`.
const V_RE: usize = 4;
const V_IM: usize = 5;
const W_RE: usize = 6;
const W_IM: usize = 7;
const PLANES: usize = 8;

/// The exponents of the kernel values by lag, carried from one sample to the next.
#[derive(Clone, Debug)]
pub(super) struct Distances<T> {
    level: Level,
    taps: usize,
    first: usize,
    last: usize,
    /// `log₂e / 2σ²`.
    gamma: T,
    planes: Planes<T>,
    /// The exponents by lag; whole groups.
    exponent: Aligned<T>,
    /// The exponent at distance zero: 0, and far below the floor beyond the last lag.
    bias: Vec<T>,
    /// The power from which on an input is wild.
    loud: T,
    /// Samples until the last wild input has left the history.
    wild: usize,
    /// The last lag in use, or beyond. A young filter has seen few windows, and needs no more lags than that.
    reached: usize,
    /// Blocks since the last `fill` or `clear`.
    blocks: u64,
}

impl<T: Real> Distances<T> {
    /// How many lags there are.
    fn len(&self) -> usize {
        self.last + 1 - self.first
    }

    /// How many of the exponents are in use: whole groups.
    fn active(&self) -> usize {
        (self.reached + 1).saturating_sub(self.first).next_multiple_of(GROUP).min(self.bias.len())
    }

    /// Takes in one input, for which there is room, with coefficient zero, and no more. Returns whether a wild one is near.
    fn push(&mut self, input: Complex<T>) -> bool {
        // The sample that leaves the window, one step before it is one further back.
        let then = self.planes.input(self.taps - 1);
        let (v, w) = ((input - then) * self.gamma, input + then);
        let values: [T; PLANES] = [input.re, input.im, T::zero(), T::zero(), v.re, v.im, w.re, w.im];
        self.planes.push(values);
        self.wild = if input.norm_sqr() > self.loud { self.planes.reach() } else { self.wild.saturating_sub(1) };
        self.wild > 0
    }

    fn fill_lags(&mut self, lags: std::ops::Range<usize>) {
        let fill = LagFill {
            input: [self.planes.plane(RE), self.planes.plane(IM)],
            taps: self.taps,
            first: self.first,
            gamma: self.gamma,
            bias: &self.bias,
            exponent: &mut self.exponent,
            lags,
        };
        T::dispatch(self.level, fill);
    }

    /// The largest difference between a carried exponent and the same computed from the samples.
    #[cfg(test)]
    pub(super) fn drift(&self) -> f64 {
        let mut exact = self.clone();
        exact.fill_lags(0..exact.active());
        let used = self.active().min(self.len());
        self.exponent[..used].iter().zip(exact.exponent.iter()).map(|(a, b)| (a.wide() - b.wide()).abs()).fold(0.0, f64::max)
    }
}

impl<T: Real> Lags<T> for Distances<T> {
    type Row = [T; GROUP];

    fn new(taps: usize, first: usize, last: usize, budget: usize, gamma: T) -> Self {
        let lags = (last + 1 - first).next_multiple_of(GROUP);
        // The oldest sample of the window at the last lag, the one that left it, and a block on top.
        let reach = taps + 1 + budget.next_multiple_of(GROUP) + GROUP + BLOCK;
        let gamma = gamma * T::LOG2_E();
        let bias = (first..).take(lags).map(|m| if m > last { T::of(-1e6) } else { T::zero() });
        Self {
            level: Level::current(),
            taps,
            first,
            last,
            gamma,
            planes: Planes::new(PLANES, reach),
            exponent: Aligned::zeros(lags),
            bias: bias.collect(),
            // No term exceeds four times the greatest power.
            loud: T::of(CALM / (4.0 * gamma.wide())).min(T::max_value()),
            wild: 0,
            reached: 0,
            blocks: 0,
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
        let reach = self.planes.reach();
        (self.blocks, self.reached) = (0, reach);
        self.wild = (0..reach).find(|&age| self.planes.input(age).norm_sqr() > self.loud).map_or(0, |age| reach - age);
        self.fill_lags(0..self.active());
    }

    fn clear(&mut self) {
        self.planes.clear();
        (self.wild, self.reached, self.blocks) = (0, 0, 0);
    }

    fn begin_block(&mut self, windows: usize) {
        let before = self.active();
        self.reached = self.reached.max(windows + BLOCK);
        let active = self.active();
        if active > before {
            self.fill_lags(before..active);
        }
        // One group of lags in turn is computed anew, so seldom that the cost for a sample does not grow with the taps.
        let every = refresh_blocks(self.taps) as u64;
        if self.blocks.is_multiple_of(every) {
            let groups = (self.bias.len() / GROUP) as u64;
            let group = (self.blocks / every % groups) as usize * GROUP;
            if group < active {
                self.fill_lags(group..group + GROUP);
            }
        }
        self.blocks = self.blocks.wrapping_add(1);
    }

    fn rows(&mut self, inputs: &[Complex<T>], sums: &mut [Complex<T>], triangle: &mut Triangle<[T; GROUP]>) {
        self.planes.make_room(inputs.len());
        let mut wild = [false; BLOCK];
        for (&input, wild) in inputs.iter().zip(&mut wild) {
            *wild = self.push(input);
        }
        let active = self.active();
        let plane = |i: usize| self.planes.plane(i);
        let pass = LagPass {
            history: History {
                input: [plane(RE), plane(IM)],
                difference: [plane(V_RE), plane(V_IM)],
                sum: [plane(W_RE), plane(W_IM)],
                coefficient: [plane(A_RE), plane(A_IM)],
            },
            taps: self.taps,
            first: self.first,
            exponent: &mut self.exponent[..active],
            gamma: self.gamma,
            wild: &wild,
            sums,
            triangle,
        };
        T::dispatch(self.level, pass);
    }

    fn norm(_: &[T; GROUP]) -> T {
        T::one()
    }

    fn correct(mut sum: Complex<T>, row: &[T; GROUP], before: &[Complex<T>]) -> Complex<T> {
        // The youngest last: it is the one that has just been computed, and all others need not wait for it.
        for (&k, &a) in row[..before.len()].iter().rev().zip(before) {
            sum += a * k;
        }
        sum
    }

    fn carried(&self) -> (&[T], usize, u64) {
        (&self.exponent[..self.len()], self.reached, self.blocks)
    }

    fn resume(&mut self, exponents: &[T], reached: usize, blocks: u64) {
        let lags = self.len();
        self.exponent[..lags].copy_from_slice(exponents);
        self.exponent[lags..].copy_from_slice(&self.bias[lags..]);
        (self.reached, self.blocks) = (reached, blocks);
    }
}

/// How many blocks pass until the next group of lags is computed anew: that takes a time proportional to the taps.
pub(super) fn refresh_blocks(taps: usize) -> usize {
    taps.div_ceil(2 * BLOCK)
}
