//! The average over the members of all parts: predictions, and what their errors say of the whole.

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use super::constants::*;
use super::evidence::LEAST;
use super::planes::Planes;
use crate::Real;

/// What the members of one part predict for at most four samples: the mean of their predictions, `Σ w·p`, and the variance around it, `Σ w·(V + |p|²)` less the square of the mean.
///
/// Sums are taken over differences from one of the predictions: the error of a good prediction is far below the rounding of its square.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums<T> {
    pub(super) re: [T; QUAD],
    pub(super) im: [T; QUAD],
    pub(super) variance: [T; QUAD],
}

impl<T: Real> Sums<T> {
    /// Takes in another part that has this share of both.
    #[inline(always)]
    fn mix(&mut self, other: &Self, share: T) {
        let rest = T::one() - share;
        for s in 0..QUAD {
            let (re, im) = (other.re[s] - self.re[s], other.im[s] - self.im[s]);
            self.re[s] += share * re;
            self.im[s] += share * im;
            self.variance[s] = rest * self.variance[s] + share * other.variance[s] + rest * share * (re * re + im * im);
        }
    }

    /// The parts that run, which have these shares; nothing where none runs.
    // Mostly one part runs alone.
    #[inline(never)]
    fn mixed(parts: &[Option<Self>; PARTS], shares: [T; PARTS]) -> Option<Self> {
        let (mut mixed, mut total): (Option<Self>, _) = (None, T::zero());
        for (part, share) in parts.iter().zip(shares) {
            let Some(part) = part else { continue };
            match &mut mixed {
                Some(mixed) if total > T::zero() => {
                    // What has no share may be anything.
                    if share > T::zero() {
                        mixed.mix(part, share / (total + share));
                    }
                }
                Some(_) if share == T::zero() => {}
                _ => mixed = Some(*part),
            }
            total += share;
        }
        mixed
    }
}

/// Predictions of four samples, the variances of their errors, and these errors.
struct Quad<T> {
    re: [T; QUAD],
    im: [T; QUAD],
    variance: [T; QUAD],
    error: ([T; QUAD], [T; QUAD]),
    square: [T; QUAD],
    /// Squared errors in units of the variance.
    z: [T; QUAD],
}

impl<T: Real> Quad<T> {
    #[inline(always)]
    fn new(sums: &Sums<T>, y: &([T; QUAD], [T; QUAD])) -> Self {
        let zero = [T::zero(); QUAD];
        let mut q = Self { re: sums.re, im: sums.im, variance: zero, error: (zero, zero), square: zero, z: zero };
        for s in 0..QUAD {
            let power = q.re[s] * q.re[s] + q.im[s] * q.im[s];
            let (variance, least) = (sums.variance[s], power * T::of(1e-12) + T::of(LEAST));
            q.variance[s] = if variance > least { variance } else { least };
            (q.error.0[s], q.error.1[s]) = (y.0[s] - q.re[s], y.1[s] - q.im[s]);
            q.square[s] = q.error.0[s] * q.error.0[s] + q.error.1[s] * q.error.1[s];
            q.z[s] = q.square[s] / q.variance[s];
        }
        q
    }

    /// `z`, but not more than `most`.
    #[inline(always)]
    fn cut(&self, most: T) -> [T; QUAD] {
        let mut cut = self.z;
        (0..QUAD).for_each(|s| cut[s] = if cut[s] < most { cut[s] } else { most });
        cut
    }
}

/// Four numbers from `at` on.
#[inline(always)]
fn four<T: Real>(from: &[T], at: usize) -> [T; QUAD] {
    let mut four = [T::zero(); QUAD];
    four.copy_from_slice(&from[at..at + QUAD]);
    four
}

/// A sum after the first `n` of four more. One after the other: it must not matter where calls cut the four.
#[inline(always)]
fn summed<T: Real>(sum: T, more: &[T; QUAD], n: usize) -> T {
    if n == QUAD { sum + more[0] + more[1] + more[2] + more[3] } else { more[..n].iter().fold(sum, |sum, &x| sum + x) }
}

/// An average over `JUMP_WINDOW` samples after each of four more.
#[inline(always)]
fn followed<T: Real>(mut average: T, by: &[T; QUAD]) -> [T; QUAD] {
    let mut after = *by;
    for s in 0..QUAD {
        average = average * T::of(1.0 - 1.0 / JUMP_WINDOW) + by[s] * T::of(1.0 / JUMP_WINDOW);
        after[s] = average;
    }
    after
}

/// What comes out of a block, and the state of the parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Average<T: Real> {
    /// Predictions of the block, their variances, and how much each sample counts for what is learned at the end of the block.
    pub(super) p: Planes<T>,
    pub(super) v: Vec<T>,
    pub(super) weight: Vec<T>,
    // Squared errors of the lanes alone, their variances, and how much surprised the lanes were on average.
    own: [Vec<T>; 3],
    /// Weights of lanes, bank and simple filters.
    pub(super) shares: [T; PARTS],
    /// Average squared error in units of its variance: of the lanes, and of the whole.
    pub(super) surprise: T,
    pub(super) alarm: T,
    /// Its sum over the block, for the whole.
    pub(super) block: T,
    /// Sum of the weights of the present cell's samples, and of their weighted errors.
    pub(super) offset: (T, Complex<T>),
    /// Samples learned since the weights were last computed, after how many they will be, and after how many where no error is large.
    pub(super) phase: usize,
    pub(super) quad: usize,
    pub(super) usual: usize,
    // Whether one of them was a surprise.
    alert: bool,
    /// What remains of the evidence, where the weights are to be computed before they are used.
    pub(super) due: Option<T>,
    /// One over the unit of variances.
    pub(super) relative: T,
    /// What the likelihood of a sample counts: half that of a complex number while all samples are real.
    pub(super) counts: T,
    /// The surprise from which on the taps are to blame for errors, and nothing else can be learned from them.
    pub(super) doubt: T,
}

impl<T: Real> Average<T> {
    pub(super) fn new() -> Self {
        Self {
            p: Planes::new(0),
            v: vec![T::zero(); BLOCK + QUAD],
            weight: vec![T::zero(); BLOCK + QUAD],
            own: std::array::from_fn(|_| vec![T::zero(); BLOCK + QUAD]),
            shares: [T::one(), T::zero(), T::zero()],
            surprise: T::one(),
            alarm: T::one(),
            block: T::zero(),
            offset: (T::zero(), Complex::default()),
            phase: 0,
            quad: 1,
            usual: QUAD,
            alert: false,
            due: None,
            relative: T::one(),
            counts: T::of(0.5),
            doubt: T::max_value(),
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        let block = |v: &Vec<T>| v.len() == BLOCK + QUAD && v.iter().all(|x| x.is_finite());
        let numbers =
            [self.surprise, self.alarm, self.block, self.offset.0, self.offset.1.re, self.offset.1.im, self.relative, self.counts];
        self.p.fits(0)
            && block(&self.v)
            && block(&self.weight)
            && self.own.iter().all(block)
            && numbers.iter().chain(&self.shares).all(|x| x.is_finite())
            && self.phase < self.quad
            && self.quad.max(self.usual) <= CALM_QUADS
            && self.usual >= QUAD
    }

    /// Makes the predictions of `n` samples from `at` on out of the sums over the members of the parts that run, and takes in their errors.
    #[inline(always)]
    pub(super) fn conclude(&mut self, y: &Planes<T>, at: usize, n: usize, parts: [Option<Sums<T>>; PARTS], learn: bool) {
        // Always four, whatever is beyond the last: loops of one length become vectors.
        let outputs = (four(&y.re, at), four(&y.im, at));
        let whole = match &parts {
            [Some(one), None, None] | [None, Some(one), None] => Quad::new(one, &outputs),
            _ => match Sums::mixed(&parts, self.shares) {
                Some(sums) => Quad::new(&sums, &outputs),
                None => return,
            },
        };
        let (surprise, outlier) = (T::of(SURPRISE), T::of(OUTLIER));
        let mut weight = [if learn { T::one() } else { T::zero() }; QUAD];
        for s in 0..QUAD {
            let cut = surprise / whole.z[s];
            weight[s] = if cut < weight[s] { cut } else { weight[s] };
        }
        self.p.re[at..at + QUAD].copy_from_slice(&whole.re);
        self.p.im[at..at + QUAD].copy_from_slice(&whole.im);
        self.v[at..at + QUAD].copy_from_slice(&whole.variance);
        self.weight[at..at + QUAD].copy_from_slice(&weight);
        if !learn {
            return;
        }
        let alone = matches!(&parts, [Some(_), None, None]);
        self.alert |= whole.z[..n].iter().fold(false, |any, &z| any | (z > T::of(ALERT)));
        let cut = whole.cut(outlier);
        self.block = summed(self.block, &cut, n);
        self.alarm = followed(self.alarm, &cut)[n - 1];
        let lanes = match &parts {
            _ if alone => whole,
            [Some(lanes), ..] => Quad::new(lanes, &outputs),
            _ => return,
        };
        let surprises = followed(self.surprise, &lanes.cut(outlier));
        self.surprise = surprises[n - 1];
        let (mut kept, mut weight, mut errors) = (lanes.square, [T::zero(); QUAD], ([T::zero(); QUAD], [T::zero(); QUAD]));
        for s in 0..QUAD {
            kept[s] = if kept[s] < T::of(1e30) { kept[s] } else { T::of(1e30) };
            let cut = outlier / if lanes.z[s] > outlier { lanes.z[s] } else { outlier };
            weight[s] = cut / lanes.variance[s];
            (errors.0[s], errors.1[s]) = (lanes.error.0[s] * weight[s], lanes.error.1[s] * weight[s]);
        }
        for (own, new) in self.own.iter_mut().zip([&kept, &lanes.variance, &surprises]) {
            own[at..at + QUAD].copy_from_slice(new);
        }
        self.offset.0 = summed(self.offset.0, &weight, n);
        (self.offset.1.re, self.offset.1.im) = (summed(self.offset.1.re, &errors.0, n), summed(self.offset.1.im, &errors.1, n));
    }

    /// The power of a block of outputs, without what was a surprise.
    pub(super) fn power(&self, y: &Planes<T>) -> f64 {
        let mut sums = [T::zero(); 4];
        let rows = y.re[..BLOCK].chunks_exact(4).zip(y.im[..BLOCK].chunks_exact(4)).zip(self.weight[..BLOCK].chunks_exact(4));
        for ((re, im), weight) in rows {
            (0..4).for_each(|k| sums[k] += (re[k] * re[k] + im[k] * im[k]) * weight[k]);
        }
        sums.iter().map(|x| x.wide()).sum()
    }

    /// The squared error of the lanes at sample `i`, and its variance, where they were so little surprised that something else may be learned from it.
    pub(super) fn errors_at(&self, i: usize) -> Option<(f64, f64)> {
        let [square, variance, surprise] = [0, 1, 2].map(|k| self.own[k][i]);
        (surprise < self.doubt).then(|| (square.wide(), variance.wide()))
    }

    /// Parts that rest from now on leave their shares to the others.
    pub(super) fn share(&mut self, running: [bool; PARTS]) {
        if (0..PARTS).all(|i| running[i] || self.shares[i] == T::zero()) {
            return;
        }
        let kept = |i: usize| if running[i] { self.shares[i] } else { T::zero() };
        let total = (0..PARTS).fold(T::zero(), |total, i| total + kept(i));
        let alone = running.iter().position(|on| *on).unwrap_or(0);
        self.shares = std::array::from_fn(|i| match total > T::zero() {
            true => kept(i) / total,
            false if i == alone => T::one(),
            false => T::zero(),
        });
    }

    /// As many samples were learned as it takes to compute weights anew; `evidence` is what remains of it after a sample. `always` where that is to be
    /// done after each.
    #[inline(always)]
    pub(super) fn complete(&mut self, evidence: T, always: bool) {
        let mut forgetting = T::one();
        for _ in 0..self.phase {
            forgetting *= evidence;
        }
        self.due = Some(forgetting);
        self.phase = 0;
        // After a bad error the weights are looked at after every sample.
        self.quad = if std::mem::take(&mut self.alert) || always { 1 } else { self.usual };
    }

    /// How many of at most `left` samples the members take next: never beyond the place where weights are computed.
    #[inline(always)]
    pub(super) fn next(&self, left: usize) -> usize {
        (self.quad - self.phase).min(QUAD - self.phase % QUAD).min(left)
    }

    /// Whether weights are to be computed now. A large error does not wait.
    #[inline(always)]
    pub(super) fn is_complete(&self) -> bool {
        self.phase == self.quad || (self.alert && self.phase.is_multiple_of(QUAD))
    }

    /// Variances are compared in units of that of sample `last` from now on.
    pub(super) fn follow(&mut self, last: usize) {
        self.relative = self.v[last].recip();
    }
}
