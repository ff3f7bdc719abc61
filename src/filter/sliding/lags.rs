//! The windows of a stream at a range of lags: exponents, coefficients, rows.

use num_complex::Complex;

use crate::Real;
use crate::simd::{Aligned, BLOCK, GROUP, History, LagFill, LagPass, Level};

/// The kernel values of a block's samples at the lags 1 to [`BLOCK`].
pub(super) type Triangle<T> = [[T; GROUP]; BLOCK];

/// The largest term, in units of the exponent, that may be carried as a part of a product: its rounding is relative to the power of the samples, not
/// to their distance, and this keeps the one near the other.
pub(super) const CALM: f64 = 16.0;

// The planes, written backwards, so that increasing lag is increasing address. See `History`.
const RE: usize = 0;
const IM: usize = 1;
const A_RE: usize = 2;
const A_IM: usize = 3;
const V_RE: usize = 4;
const V_IM: usize = 5;
const W_RE: usize = 6;
const W_IM: usize = 7;
const PLANES: usize = 8;

/// A page of `f32`.
const PAGE: usize = 1024;

/// The windows that lie `first` to `last` samples back, with their coefficients.
///
/// Samples come in blocks of [`BLOCK`], counted from the last [`fill`](Self::fill) or [`clear`](Self::clear). Everything that is not done for
/// each sample alike is done where a block begins, so results do not depend on how the samples are cut into calls.
#[derive(Clone, Debug)]
pub(super) struct Lags<T> {
    level: Level,
    taps: usize,
    /// How many samples are kept at least.
    reach: usize,
    first: usize,
    last: usize,
    /// `log₂e / 2σ²`.
    gamma: T,
    /// The planes, one after the other, so that together they fill the cache evenly.
    planes: Aligned<T>,
    /// From one plane to the next.
    stride: usize,
    /// Where the newest sample lies.
    start: usize,
    /// The exponents of the kernel values, with the decay in them, by lag; whole groups.
    exponent: Aligned<T>,
    /// The logarithm of the decay at each lag; far below the floor beyond the last one.
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

impl<T: Real> Lags<T> {
    /// Lags `first..=last` of windows of `taps` samples under the kernel `exp(−gamma d²)`, with the history of all lags up to `budget`.
    pub(super) fn new(taps: usize, first: usize, last: usize, budget: usize, gamma: T) -> Self {
        let lags = (last + 1 - first).next_multiple_of(GROUP);
        // The oldest sample of the window at the last lag, the one that left it, and a block on top.
        let reach = taps + 1 + budget.next_multiple_of(GROUP) + GROUP + BLOCK;
        let gamma = gamma * T::LOG2_E();
        // As much again as must be kept: the copy at the wrap then costs one number a sample and plane. Planes that begin a multiple of a page apart
        // would compete for the same few places of the cache.
        let stride = (2 * reach).next_multiple_of(PAGE) + PAGE / PLANES;
        Self {
            level: Level::current(),
            taps,
            first,
            last,
            gamma,
            reach,
            planes: Aligned::zeros(PLANES * stride),
            stride,
            start: reach,
            exponent: Aligned::zeros(lags),
            bias: vec![T::zero(); lags],
            // No term exceeds four times the greatest power.
            loud: T::of(CALM / (4.0 * gamma.wide())).min(T::max_value()),
            wild: 0,
            reached: 0,
            blocks: 0,
        }
    }

    /// How many samples are kept at least.
    pub(super) fn reach(&self) -> usize {
        self.reach
    }

    /// A plane from its newest sample on.
    fn plane(&self, plane: usize) -> &[T] {
        &self.planes[plane * self.stride + self.start..][..2 * self.reach - self.start]
    }

    /// How many lags there are.
    pub(super) fn len(&self) -> usize {
        self.last + 1 - self.first
    }

    /// How many of the exponents are in use: whole groups.
    fn active(&self) -> usize {
        (self.reached + 1).saturating_sub(self.first).next_multiple_of(GROUP).min(self.bias.len())
    }

    /// The decay by lag: `decay^(m + offset)` at lag `m`.
    pub(super) fn set_decay(&mut self, decay: T, offset: i64) {
        let log = decay.wide().log2();
        for (m, bias) in (self.first..).zip(&mut self.bias) {
            let age = m as i64 + offset;
            *bias = if m > self.last {
                T::of(-1e6)
            } else if age == 0 {
                T::zero()
            } else {
                T::of((age as f64 * log).max(-1e6))
            };
        }
        self.fill_lags(0..self.active());
    }

    /// Forgets all samples.
    pub(super) fn clear(&mut self) {
        self.planes.fill(T::zero());
        self.start = self.reach();
        (self.wild, self.reached, self.blocks) = (0, 0, 0);
    }

    /// Makes room for `count` samples.
    fn make_room(&mut self, count: usize) {
        if self.start < count {
            for plane in self.planes.chunks_exact_mut(self.stride) {
                plane.copy_within(self.start..self.start + self.reach, self.reach);
            }
            self.start = self.reach;
        }
    }

    /// Takes in one input, for which there is room, with coefficient zero, and no more. Returns whether a wild one is near.
    fn push(&mut self, input: Complex<T>) -> bool {
        self.start -= 1;
        let at = self.start;
        let then = Complex::new(self.plane(RE)[self.taps], self.plane(IM)[self.taps]);
        let (v, w) = ((input - then) * self.gamma, input + then);
        let values = [input.re, input.im, T::zero(), T::zero(), v.re, v.im, w.re, w.im];
        for (plane, value) in values.into_iter().enumerate() {
            self.planes[plane * self.stride + at] = value;
        }
        self.wild = if input.norm_sqr() > self.loud { self.reach() } else { self.wild.saturating_sub(1) };
        self.wild > 0
    }

    /// Takes in one sample without a row; exponents are stale until [`fill`](Self::fill).
    pub(super) fn note(&mut self, input: Complex<T>) {
        self.make_room(1);
        self.push(input);
    }

    /// Gives the sample `age` samples back its coefficient.
    pub(super) fn learn(&mut self, age: usize, coefficient: Complex<T>) {
        let at = self.start + age;
        self.planes[A_RE * self.stride + at] = coefficient.re;
        self.planes[A_IM * self.stride + at] = coefficient.im;
    }

    /// Takes back the last `count` samples; exponents are stale until [`fill`](Self::fill).
    pub(super) fn undo(&mut self, count: usize) {
        self.start += count;
    }

    /// The window that ends `age` samples back, newest first.
    pub(super) fn window(&self, age: usize, window: &mut [Complex<T>]) {
        for ((x, &re), &im) in window.iter_mut().zip(&self.plane(RE)[age..]).zip(&self.plane(IM)[age..]) {
            *x = Complex::new(re, im);
        }
    }

    /// Input and coefficient `age` samples back.
    pub(super) fn sample(&self, age: usize) -> (Complex<T>, Complex<T>) {
        let at = |plane: usize| self.plane(plane)[age];
        (Complex::new(at(RE), at(IM)), Complex::new(at(A_RE), at(A_IM)))
    }

    /// Takes over samples, the newest first, as many as are kept here; exponents are stale until [`fill`](Self::fill) or [`resume`](Self::resume).
    pub(super) fn take_over<I>(&mut self, samples: I)
    where
        I: Iterator<Item = (Complex<T>, Complex<T>)> + DoubleEndedIterator + ExactSizeIterator,
    {
        self.clear();
        let keep = self.reach();
        for (input, coefficient) in samples.take(keep).rev() {
            self.note(input);
            self.learn(0, coefficient);
        }
    }

    /// Computes the exponents of all lags from the samples.
    pub(super) fn fill(&mut self) {
        let reach = self.reach();
        (self.blocks, self.reached) = (0, reach);
        self.wild = (0..reach).find(|&age| self.sample(age).0.norm_sqr() > self.loud).map_or(0, |age| reach - age);
        self.fill_lags(0..self.active());
    }

    fn fill_lags(&mut self, lags: std::ops::Range<usize>) {
        let plane = |i: usize| &self.planes[i * self.stride + self.start..][..2 * self.reach - self.start];
        let fill = LagFill {
            input: [plane(RE), plane(IM)],
            taps: self.taps,
            first: self.first,
            gamma: self.gamma,
            bias: &self.bias,
            exponent: &mut self.exponent,
            lags,
        };
        T::dispatch(self.level, fill);
    }

    /// To be called before the first sample of every block, with the number of windows that exist.
    pub(super) fn begin_block(&mut self, windows: usize) {
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

    /// Takes in at most [`BLOCK`] samples of one block and gives for each the weighted sum over the windows whose coefficients are known, and
    /// its kernel values at the first lags.
    pub(super) fn rows(&mut self, inputs: &[Complex<T>], sums: &mut [Complex<T>], triangle: &mut Triangle<T>) {
        self.make_room(inputs.len());
        let mut wild = [false; BLOCK];
        for (&input, wild) in inputs.iter().zip(&mut wild) {
            *wild = self.push(input);
        }
        let active = self.active();
        let plane = |i: usize| &self.planes[i * self.stride + self.start..][..2 * self.reach - self.start];
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

    /// The exponents by lag, the last lag in use and the number of blocks: with the samples, what must be kept to go on bit for bit.
    pub(super) fn carried(&self) -> (&[T], usize, u64) {
        (&self.exponent[..self.len()], self.reached, self.blocks)
    }

    /// Goes on from what [`carried`](Self::carried) gave, after [`take_over`](Self::take_over).
    pub(super) fn resume(&mut self, exponents: &[T], reached: usize, blocks: u64) {
        let lags = self.len();
        self.exponent[..lags].copy_from_slice(exponents);
        self.exponent[lags..].copy_from_slice(&self.bias[lags..]);
        (self.reached, self.blocks) = (reached, blocks);
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

/// How many blocks pass until the next group of lags is computed anew: that takes a time proportional to the taps.
pub(super) fn refresh_blocks(taps: usize) -> usize {
    taps.div_ceil(2 * BLOCK)
}

/// `sum + Σ_m k[m] a_{−m}` over the samples of the block that came before: the part of a row that had to wait for their coefficients.
pub(super) fn correct<T: Real>(sum: Complex<T>, triangle: &[T; GROUP], before: &[Complex<T>]) -> Complex<T> {
    let mut sum = sum;
    // The youngest last: it is the one that has just been computed, and all others need not wait for it.
    for (&k, &a) in triangle[..before.len()].iter().rev().zip(before) {
        sum += a * k;
    }
    sum
}
