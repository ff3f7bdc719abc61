//! The windows of a stream at a range of lags: distances, coefficients, rows.

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use crate::simd::{BLOCK, GROUP, LagFill, LagPass, LagRefresh, Level, Ring};
use crate::{Error, Real, Result};

/// The kernel values of a block's samples at the lags 1 to [`BLOCK`].
pub(super) type Triangle<T> = [[T; GROUP]; BLOCK];

/// The windows that lie `first` to `last` samples back, with their coefficients.
///
/// Samples come in blocks of [`BLOCK`], counted from the last [`fill`](Self::fill) or [`clear`](Self::clear). Everything that is not done for
/// each sample alike is done where a block begins, so results do not depend on how the samples are cut into calls.
#[derive(Clone, Debug)]
pub(super) struct Lags<T> {
    level: Level,
    taps: usize,
    first: usize,
    last: usize,
    /// `log₂e / 2σ²`.
    gamma: T,
    // Planes of inputs and coefficients, written backwards, so that increasing lag is increasing address; `start` is the newest sample.
    re: Vec<T>,
    im: Vec<T>,
    a_re: Vec<T>,
    a_im: Vec<T>,
    start: usize,
    /// What each of the last samples added to the distances, by lag.
    terms: Vec<T>,
    next: usize,
    distance: Vec<T>,
    /// The logarithm of the decay at each lag; far below the floor beyond the last one.
    bias: Vec<T>,
    /// Inputs up to this power cannot bring any distance or exponent up to last to where it is cut off.
    quiet: T,
    /// Samples until the last louder input has left the history.
    loud: usize,
    /// Lags in use. A young filter has seen few windows, and needs no more lags than that.
    active: usize,
    /// The group of lags whose turn it is to be refreshed.
    turn: usize,
}

/// What of [`Lags`] must be kept to go on bit for bit; the rest follows from it.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Kept<T: Real> {
    inputs: Vec<Complex<T>>,
    coefficients: Vec<Complex<T>>,
    distance: Vec<T>,
    next: u64,
    active: u64,
    turn: u64,
}

impl<T: Real> Lags<T> {
    /// Lags `first..=last` of windows of `taps` samples under the kernel `exp(−gamma d²)`, with the history of all lags up to `budget`.
    pub(super) fn new(taps: usize, first: usize, last: usize, budget: usize, gamma: T) -> Self {
        let lags = (last + 1 - first).next_multiple_of(GROUP);
        // The oldest sample of the window at the last lag, and a block on top.
        let reach = taps + 1 + budget.next_multiple_of(GROUP) + GROUP + BLOCK;
        // As much again as must be kept: the copy at the wrap then costs less than one number a sample and plane.
        let plane = vec![T::zero(); 2 * reach];
        Self {
            level: Level::current(),
            taps,
            first,
            last,
            gamma: gamma * T::LOG2_E(),
            re: plane.clone(),
            im: plane.clone(),
            a_re: plane.clone(),
            a_im: plane,
            start: reach,
            terms: vec![T::zero(); taps * lags],
            next: 0,
            distance: vec![T::zero(); lags],
            bias: vec![T::zero(); lags],
            quiet: T::zero(),
            loud: 0,
            active: 0,
            turn: 0,
        }
    }

    fn ring(&mut self) -> (Ring<'_, T>, &mut [T]) {
        let stride = self.bias.len();
        (Ring { rows: &mut self.terms, taps: self.taps, stride, next: self.next }, &mut self.distance)
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
        // No term exceeds four times the greatest power. A margin stays for the rounding of the sums.
        let lowest = T::FLOOR.wide() - (self.last as f64 * log).max(-1e6);
        let most = T::FAR.wide().min(-lowest / self.taps as f64);
        self.quiet = T::of(0.9 * most / (4.0 * self.gamma.wide()));
        self.loud = (0..self.re.len() / 2).find(|&age| self.is_loud(self.start + age)).map_or(0, |age| self.re.len() / 2 - age);
    }

    fn is_loud(&self, at: usize) -> bool {
        let power = self.re[at] * self.re[at] + self.im[at] * self.im[at];
        power.is_nan() || power > self.quiet
    }

    /// Forgets all samples.
    pub(super) fn clear(&mut self) {
        for plane in [&mut self.re, &mut self.im, &mut self.a_re, &mut self.a_im, &mut self.terms, &mut self.distance] {
            plane.fill(T::zero());
        }
        self.start = self.re.len() / 2;
        (self.next, self.active, self.turn, self.loud) = (0, 0, 0, 0);
    }

    /// Takes in `inputs`, the oldest first, with coefficients zero, and no more.
    fn push(&mut self, inputs: &[Complex<T>]) {
        if self.start < inputs.len() {
            let keep = self.re.len() / 2;
            let end = self.re.len() - keep;
            for plane in [&mut self.re, &mut self.im, &mut self.a_re, &mut self.a_im] {
                plane.copy_within(self.start..self.start + keep, end);
            }
            self.start = end;
        }
        for &u in inputs {
            self.start -= 1;
            self.re[self.start] = u.re;
            self.im[self.start] = u.im;
            self.a_re[self.start] = T::zero();
            self.a_im[self.start] = T::zero();
            self.loud = if self.is_loud(self.start) { self.re.len() / 2 } else { self.loud.saturating_sub(1) };
        }
    }

    /// Takes in one sample without a row; distances are stale until [`fill`](Self::fill).
    pub(super) fn note(&mut self, input: Complex<T>, coefficient: Complex<T>) {
        self.push(&[input]);
        self.learn(0, coefficient);
    }

    /// Gives the sample `age` samples back its coefficient.
    pub(super) fn learn(&mut self, age: usize, coefficient: Complex<T>) {
        self.a_re[self.start + age] = coefficient.re;
        self.a_im[self.start + age] = coefficient.im;
    }

    /// Takes back the last `count` samples; distances are stale until [`fill`](Self::fill).
    pub(super) fn undo(&mut self, count: usize) {
        self.start += count;
    }

    /// The window that ends `age` samples back, newest first, and its coefficient.
    pub(super) fn window(&self, age: usize, window: &mut [Complex<T>]) -> Complex<T> {
        let at = self.start + age;
        for (l, x) in window.iter_mut().enumerate() {
            *x = Complex::new(self.re[at + l], self.im[at + l]);
        }
        self.coefficient(age)
    }

    /// The coefficient of the window that ends `age` samples back.
    pub(super) fn coefficient(&self, age: usize) -> Complex<T> {
        let at = self.start + age;
        Complex::new(self.a_re[at], self.a_im[at])
    }

    /// Takes over the samples of `other`; distances are stale until [`fill`](Self::fill).
    pub(super) fn copy_history(&mut self, other: &Self) {
        self.re.copy_from_slice(&other.re);
        self.im.copy_from_slice(&other.im);
        self.a_re.copy_from_slice(&other.a_re);
        self.a_im.copy_from_slice(&other.a_im);
        self.start = other.start;
        // Loud until proved otherwise.
        self.loud = self.re.len() / 2;
    }

    /// Computes the terms and distances of all lags from the samples.
    pub(super) fn fill(&mut self) {
        (self.next, self.turn) = (0, 0);
        self.active = self.bias.len();
        self.fill_lags(0..self.active);
    }

    fn fill_lags(&mut self, lags: std::ops::Range<usize>) {
        let (level, first, gamma, start, stride) = (self.level, self.first, self.gamma, self.start, self.bias.len());
        let ring = Ring { rows: &mut self.terms, taps: self.taps, stride, next: self.next };
        let refresh = LagRefresh { distance: &mut self.distance, ring, lags };
        T::dispatch(level, LagFill { re: &self.re[start..], im: &self.im[start..], first, gamma, refresh });
    }

    /// To be called before the first sample of every block, with the number of windows that exist.
    pub(super) fn begin_block(&mut self, windows: usize) {
        let wanted = (windows + BLOCK + 1).saturating_sub(self.first).min(self.bias.len()).next_multiple_of(GROUP);
        if wanted > self.active {
            let new = self.active..wanted;
            self.active = wanted;
            self.fill_lags(new);
        }
        if self.active > 0 {
            // One group is computed anew at every block, so each lag's turn comes after at most M / 2 samples, give or take a block.
            let lags = self.turn * GROUP..(self.turn + 1) * GROUP;
            self.turn = if lags.end >= self.active { 0 } else { self.turn + 1 };
            let level = self.level;
            let (ring, distance) = self.ring();
            T::dispatch(level, LagRefresh { distance, ring, lags });
        }
    }

    /// Takes in at most [`BLOCK`] samples of one block and gives for each the weighted sum over the windows whose coefficients are known, and
    /// its kernel values at the first lags.
    pub(super) fn rows(&mut self, inputs: &[Complex<T>], sums: &mut [Complex<T>], triangle: &mut Triangle<T>) {
        self.push(inputs);
        let (start, active, stride) = (self.start, self.active, self.bias.len());
        let pass = LagPass {
            re: &self.re[start..],
            im: &self.im[start..],
            a_re: &self.a_re[start..],
            a_im: &self.a_im[start..],
            first: self.first,
            distance: &mut self.distance[..active],
            bias: &self.bias[..active],
            gamma: self.gamma,
            // The last group may hold lags beyond the last one, which are far below the floor.
            calm: if self.loud == 0 { (self.last + 1 - self.first) / GROUP * GROUP } else { 0 },
            ring: Ring { rows: &mut self.terms, taps: self.taps, stride, next: self.next },
            sums,
            triangle,
        };
        T::dispatch(self.level, pass);
        self.next = (self.next + inputs.len()) % self.taps;
    }

    /// The largest difference between a carried distance and the same computed from the samples, in units of the kernel's exponent.
    #[cfg(test)]
    pub(super) fn drift(&self) -> f64 {
        let mut exact = self.clone();
        exact.fill_lags(0..exact.active);
        let worst = self.distance[..self.active].iter().zip(&exact.distance).map(|(a, b)| (a.wide() - b.wide()).abs()).fold(0.0, f64::max);
        worst * self.gamma.wide()
    }

    pub(super) fn keep(&self) -> Kept<T> {
        let all = self.start..self.start + self.re.len() / 2;
        let join = |re: &[T], im: &[T]| re[all.clone()].iter().zip(&im[all.clone()]).map(|(&re, &im)| Complex::new(re, im)).collect();
        Kept {
            inputs: join(&self.re, &self.im),
            coefficients: join(&self.a_re, &self.a_im),
            distance: self.distance.clone(),
            next: self.next as u64,
            active: self.active as u64,
            turn: self.turn as u64,
        }
    }

    /// Whether `kept` can be [`resume`](Self::resume)d here.
    pub(super) fn check(&self, kept: &Kept<T>) -> Result<()> {
        let reach = self.re.len() / 2;
        let fits = kept.inputs.len() == reach && kept.coefficients.len() == reach && kept.distance.len() == self.distance.len();
        let active = usize::try_from(kept.active).is_ok_and(|n| n <= self.distance.len() && n % GROUP == 0);
        if fits && active && kept.next < self.taps as u64 && kept.turn * (GROUP as u64) < kept.active.max(1) {
            Ok(())
        } else {
            Err(Error::State("its history does not fit the budget and taps of this filter".into()))
        }
    }

    pub(super) fn resume(&mut self, kept: Kept<T>) {
        let end = self.re.len();
        self.start = end / 2;
        for (i, (u, a)) in (self.start..end).zip(kept.inputs.iter().zip(&kept.coefficients)) {
            (self.re[i], self.im[i], self.a_re[i], self.a_im[i]) = (u.re, u.im, a.re, a.im);
        }
        (self.next, self.active, self.turn) = (kept.next as usize, kept.active as usize, kept.turn as usize);
        self.loud = end / 2;
        self.fill_lags(0..self.active);
        self.distance = kept.distance;
    }
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
