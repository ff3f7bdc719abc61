//! The bank for still channels: one linear model of many features, learned by Newton's method over blocks.
//!
//! Features are the samples, the outputs of the curve and their conjugates over many lags, the functions of the envelope at a few lags, those of the
//! neighbours' envelopes (the cross terms of a generalised memory polynomial, Morgan et al. 2006), and a constant. With `G` the mean of `F* F^T`,
//!
//! ```text
//!   w += (G + ridge)^-1 sum over a block of F* e / min(n, W)
//! ```
//!
//! for windows `W` of 1500 samples and without end. At first, while every sample goes into `G`, `w = (G + ridge)^-1 mean(F* y)` whenever `G` is inverted.

mod gram;
mod ops;
mod rest;
mod turn;

use num_complex::{Complex, Complex64};
use serde::{Deserialize, Serialize};

use super::average::Sums;
use super::constants::*;
use super::evidence::{Evidence, LEAST, NOTHING};
use super::features::{Feature, Streams, roughness};
use super::matrix::Matrix;
use super::planes::Planes;
use crate::Real;
use crate::real::finite;
use crate::simd::Level;

use self::gram::{Gram, Inverse, solve};
use self::ops::{Apply, Errors, Gradient, Predict};

/// Members of the bank: windows in samples and how many features they use, of a short model or of all.
const WINDOWS: [(f64, bool); SLOTS] = [(1500.0, true), (f64::INFINITY, true), (f64::INFINITY, false)];
const SLOTS: usize = 3;
const ALL: [usize; SLOTS] = [0, 1, 2];
/// What they are called.
pub(super) const NAMES: [&str; SLOTS] = ["still, 1500 samples", "still", "still, few terms"];

/// Weights of one member.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
struct Member<T: Real> {
    w: Vec<Complex64>,
    /// The same in the precision of the samples.
    narrow: Vec<Complex<T>>,
    error: Planes<T>,
    // Samples since it began.
    n: f64,
}

impl<T: Real> Member<T> {
    fn new(size: usize) -> Self {
        Self { w: vec![Complex64::default(); size], narrow: vec![Complex::default(); size], error: Planes::new(0), n: 0.0 }
    }

    fn fill(&mut self) {
        self.narrow.iter_mut().zip(&self.w).for_each(|(to, w)| *to = Complex::new(T::of(w.re), T::of(w.im)));
    }
}

/// The bank.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Bank<T: Real> {
    #[serde(skip)]
    features: Vec<Feature>,
    #[serde(skip)]
    roughness: Vec<(usize, usize, f64)>,
    sizes: [usize; 2],
    members: Vec<Member<T>>,
    pub(super) evidence: Evidence<T>,
    /// The one that is awake while the others rest, and the logarithms of all weights from before that.
    only: Option<usize>,
    kept: [T; SLOTS],
    gram: Gram<T>,
    // Sum of F* y over the same samples as the Gram matrix, and of their weights.
    cross: Vec<Complex64>,
    used: f64,
    inverses: Vec<Inverse<T>>,
    ready: bool,
    /// Samples learned since it began, and whether all of them are in the Gram matrix.
    n: u64,
    eager: bool,
    // Whether it is far behind the lanes.
    hopeless: bool,
    // For how many blocks all weight was its own, for how many it has had none, and how many samples it must have learned before it may begin again for that.
    ahead: u32,
    behind: u32,
    patience: u64,
    next: u64,
    // Of the present block.
    predictions: Vec<Planes<T>>,
    // Sums over the blocks since the last step: of gradients, squared errors and samples learned, and how many blocks these are.
    gradients: [(Vec<T>, Vec<T>); SLOTS],
    squares: [f64; SLOTS],
    waiting: [u64; SLOTS],
    blocks: u64,
    #[serde(skip)]
    steps: [(Vec<T>, Vec<T>); SLOTS],
    // The Gram matrix while it is inverted.
    #[serde(skip)]
    work: Option<Matrix>,
}

impl<T: Real> Bank<T> {
    pub(super) fn new(features: Vec<Feature>, short: usize) -> Self {
        let sizes = [short.min(features.len()), features.len()];
        let members = WINDOWS.map(|(_, full)| Member::new(sizes[usize::from(full)])).to_vec();
        let zeros = vec![T::zero(); Inverse::<T>::padded(features.len())];
        let mut bank = Self {
            sizes,
            members,
            evidence: Evidence::new(0),
            only: None,
            kept: [T::zero(); SLOTS],
            gram: Gram::new(features.len()),
            cross: vec![Complex64::default(); features.len()],
            used: 0.0,
            inverses: sizes.map(Inverse::new).to_vec(),
            ready: false,
            n: 0,
            eager: true,
            hopeless: false,
            ahead: 0,
            behind: 0,
            patience: BANK_EAGER,
            next: 0,
            predictions: vec![Planes::new(0); SLOTS],
            gradients: std::array::from_fn(|_| (zeros.clone(), zeros.clone())),
            squares: [0.0; SLOTS],
            waiting: [0; SLOTS],
            blocks: 0,
            steps: Default::default(),
            work: None,
            roughness: Vec::new(),
            features,
        };
        bank.restore_scratch(None);
        bank
    }

    /// What is not saved.
    pub(super) fn restore_scratch(&mut self, features: Option<Vec<Feature>>) {
        if let Some(features) = features {
            self.features = features;
        }
        self.steps = self.gradients.clone();
        self.roughness = roughness(&self.features);
        self.work = Some(Matrix::zeros(self.features.len()));
    }

    pub(super) fn features(&self) -> Vec<Feature> {
        self.features.clone()
    }

    pub(super) fn is_sound(&self, other: &Self) -> bool {
        let n = other.features.len();
        let members = self.members.len() == SLOTS
            && self
                .members
                .iter()
                .zip(&other.members)
                .all(|(a, b)| a.w.len() == b.w.len() && a.narrow.len() == b.w.len() && a.error.fits(0) && a.n.is_finite());
        let inverses = self.inverses.len() == 2 && self.inverses.iter().zip(&self.sizes).all(|(i, &s)| i.is_sound(s));
        let gradients = self
            .gradients
            .iter()
            .zip(&other.gradients)
            .all(|(a, b)| [(&a.0, &b.0), (&a.1, &b.1)].iter().all(|(a, b)| a.len() == b.len() && a.iter().all(|x| x.is_finite())));
        let predictions = self.predictions.len() == SLOTS && self.predictions.iter().all(|p| p.fits(0));
        members
            && inverses
            && gradients
            && self.squares.iter().all(|x| x.is_finite())
            && predictions
            && self.sizes == other.sizes
            && self.gram.is_sound(n)
            && self.cross.len() == n
            && self.used.is_finite()
            && self.evidence.is_sound()
            && self.only.is_none_or(|only| only < SLOTS)
            && self.kept.iter().all(|x| x.is_finite())
    }

    /// Whether it predicts yet.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// The least noise that a member sees.
    pub(super) fn least_noise(&self) -> T {
        if !self.ready {
            return T::infinity();
        }
        self.evidence.noise.0.iter().take(SLOTS).fold(T::infinity(), |a, &b| a.min(b))
    }

    pub(super) fn is_hopeless(&self) -> bool {
        self.hopeless
    }

    pub(super) fn learned(&self) -> u64 {
        self.n
    }

    pub(super) fn size(&self) -> usize {
        self.members.iter().map(|m| m.w.len()).sum()
    }

    /// Begins again: the unit of the input has changed.
    pub(super) fn restart(&mut self) {
        for member in &mut self.members {
            member.w.fill(Complex64::default());
            member.fill();
            member.n = 0.0;
        }
        (self.evidence, self.only) = (Evidence::new(0), None);
        self.gram.clear();
        self.cross.fill(Complex64::default());
        (self.used, self.n, self.next) = (0.0, 0, 0);
        (self.ready, self.eager, self.hopeless) = (false, true, false);
        (self.ahead, self.behind) = (0, 0);
        self.forget_gradients();
    }

    /// Predicts samples `from..to` of the block.
    pub(super) fn predict(&mut self, level: Level, streams: &Streams<T>, from: usize, to: usize) {
        match self.only {
            _ if !self.is_ready() => {}
            Some(only) => T::dispatch(level, Predict { bank: self, of: [only], streams, from, to }),
            None => T::dispatch(level, Predict { bank: self, of: ALL, streams, from, to }),
        }
    }

    /// Sums over the members for `n` samples from `at` of the block on, and evidence for them where `learn`.
    #[inline(always)]
    pub(super) fn judge(&mut self, y: &Planes<T>, at: usize, n: usize, relative: T, learn: bool) -> Sums<T> {
        let members = self.only.map_or(0..SLOTS, |only| only..only + 1);
        self.evidence.judge(&self.predictions, members, y, at, n, relative, learn)
    }

    #[expect(clippy::too_many_arguments, reason = "what a block is made of")]
    /// Learns from a block: `y` its outputs, `weight` how much each counts, `noise` the best that the other members reach, `power` that of `y`.
    pub(super) fn learn(&mut self, level: Level, streams: &Streams<T>, y: &Planes<T>, weight: &[T], time: u64, noise: f64, power: f64) {
        let learned = weight.iter().filter(|w| **w > T::zero()).count() as u64;
        if learned == 0 || self.only.is_some_and(|only| WINDOWS[only].0.is_infinite()) {
            return;
        }
        self.n += learned;
        self.hopeless = self.n > 512 && self.is_ready() && self.evidence.noise.0[1].wide() > HOPELESS * noise;
        let hopeless = self.hopeless;
        self.eager &= self.n <= BANK_EAGER && !hopeless;
        let eager = self.eager;
        self.gather(level, streams, y, weight, time, hopeless);
        if self.is_ready() {
            T::dispatch(level, Errors { bank: self, y, weight });
            for i in (0..SLOTS).filter(|i| self.only.is_none_or(|only| only == *i)) {
                let error = &self.members[i].error;
                self.squares[i] += error.re.iter().zip(&error.im).take(BLOCK).map(|(a, b)| (*a * *a + *b * *b).wide()).sum::<f64>();
                self.waiting[i] += learned;
            }
            let (features, members, to) = (&self.features, &self.members, &mut self.gradients);
            match self.only {
                Some(only) => T::dispatch(level, Gradient { features, streams, of: [only], members, to }),
                None => T::dispatch(level, Gradient { features, streams, of: ALL, members, to }),
            }
            self.blocks += 1;
            if self.blocks >= if self.n < BANK_SWIFT { 1 } else { 2 } {
                self.step(level);
            }
            self.guard(power);
        }
        if self.n >= self.next && !(hopeless && self.n < 4 * self.next) {
            self.solve(level, eager, noise, power);
        }
    }

    /// A step of all members for which something waits, after which nothing does.
    fn step(&mut self, level: Level) {
        let [short, all] = [(&self.inverses[0], self.sizes[0]), (&self.inverses[1], self.sizes[1])];
        let ([a, b, c], [p, q, r]) = (&self.gradients, &mut self.steps);
        match self.waiting.map(|waiting| waiting > 0) {
            [true, true, _] => T::dispatch(level, Apply { inverse: all.0, gradients: [a, b], size: all.1, to: [p, q] }),
            [true, false, _] => T::dispatch(level, Apply { inverse: all.0, gradients: [a], size: all.1, to: [p] }),
            [false, true, _] => T::dispatch(level, Apply { inverse: all.0, gradients: [b], size: all.1, to: [q] }),
            [false, false, _] => {}
        }
        if self.waiting[2] > 0 {
            T::dispatch(level, Apply { inverse: short.0, gradients: [c], size: short.1, to: [r] });
        }
        for (i, member) in self.members.iter_mut().enumerate().filter(|(i, _)| self.waiting[*i] > 0) {
            member.n += self.waiting[i] as f64;
            let (gradient, step) = (&self.gradients[i], &self.steps[i]);
            let usual = member.n.min(WINDOWS[i].0).max(4.0 * BLOCK as f64).recip();
            let gain = usual.min(longest(self.squares[i], gradient, step, member.w.len()));
            for (j, w) in member.w.iter_mut().enumerate() {
                *w += Complex64::new(step.0[j].wide(), step.1[j].wide()) * gain;
            }
            member.fill();
        }
        self.forget_gradients();
    }

    fn forget_gradients(&mut self) {
        for (re, im) in &mut self.gradients {
            re.fill(T::zero());
            im.fill(T::zero());
        }
        (self.squares, self.waiting, self.blocks) = ([0.0; SLOTS], [0; SLOTS], 0);
    }

    /// The Gram matrix and, while eager, the cross correlation with the output.
    fn gather(&mut self, level: Level, streams: &Streams<T>, y: &Planes<T>, weight: &[T], time: u64, hopeless: bool) {
        let eager = self.eager;
        // As many of each doubling of the samples.
        let thin = (8 * self.n / BANK_EAGER).next_power_of_two().min(BANK_LAZY);
        let thin = if hopeless { thin.clamp(BANK_HOPELESS, BANK_LAZY) } else { thin };
        let (mut list, mut count) = ([(0, T::zero()); BLOCK], 0);
        for (t, w) in weight.iter().enumerate() {
            if *w > T::zero() && (eager || spread(time + t as u64).is_multiple_of(thin)) {
                list[count] = (t, w.sqrt());
                count += 1;
                self.used += w.wide();
            }
        }
        let mut done = 0;
        while done < count {
            let part = &list[done..count.min(done + self.gram.room())];
            for (k, f) in self.features.iter().enumerate() {
                let (re, im, factors) = streams.samples(f, 0, BLOCK);
                let (a, b) = factors.unwrap_or((T::one(), T::one()));
                let mut sum = Complex64::default();
                for (s, &(t, root)) in part.iter().enumerate() {
                    let z = (re[t] * a * root, im[t] * b * root);
                    self.gram.set(s, k, z);
                    if eager {
                        sum += Complex64::new(z.0.wide(), -z.1.wide()) * Complex64::new((y.re[t] * root).wide(), (y.im[t] * root).wide());
                    }
                }
                self.cross[k] += sum;
            }
            self.gram.advance(level, part.len());
            done += part.len();
        }
    }

    /// Inverts the Gram matrix.
    fn solve(&mut self, level: Level, eager: bool, noise: f64, power: f64) {
        self.next = self.n + if eager { self.n.max(BLOCK as u64) } else { self.n.min(BANK_REFRESH) };
        let n = self.used.max(1.0);
        let own = if self.ready { self.evidence.noise.0[1].wide() } else { power };
        let Some(work) = &mut self.work else { return };
        work.copy_from(self.gram.sum(level));
        work.scale(1.0 / n);
        let relative = own / power.max(f64::MIN_POSITIVE);
        let ridge = if eager { (10.0 * relative).min(1e-2) } else { (1e3 * relative).min(1.0) } / n;
        work.add_to_diagonal(1e-7 * work.trace() / work.n() as f64 + ridge);
        let smooth = (SMOOTH * relative).min(SMOOTH_MOST) / n;
        for &(i, j, x) in &self.roughness {
            work.set(i, j, work.at(i, j) + smooth * x);
        }
        let mut swept = 0;
        for (model, &size) in self.sizes.iter().enumerate() {
            if !work.sweep(level, swept, size) {
                return;
            }
            swept = size;
            self.inverses[model].fill(work, size);
            for (member, _) in self.members.iter_mut().zip(WINDOWS).filter(|(_, (_, full))| eager && usize::from(*full) == model) {
                solve(work, &self.cross, 1.0 / n, &mut member.w);
                member.n = self.n as f64;
                member.fill();
            }
        }
        if eager {
            self.evidence.seen = T::zero();
        }
        if !std::mem::replace(&mut self.ready, true) {
            (self.evidence, self.only) = (Evidence::new(SLOTS), None);
            self.evidence.level = T::of(FIRST_EVIDENCE);
            self.evidence.noise.0.fill(T::of((2.0 * noise).max(LEAST)));
        }
    }

    /// A member that is worse than none begins again; one without end that has fallen far behind the one with a window goes on from there.
    fn guard(&mut self, power: f64) {
        let noise = &mut self.evidence.noise.0;
        for (member, noise) in self.members.iter_mut().zip(noise.iter_mut()) {
            let sound = member.narrow.iter().all(|w| finite(*w)) && noise.is_finite();
            if !sound || noise.wide() > 2.0 * power.max(LEAST) {
                member.w.fill(Complex64::default());
                member.fill();
                *noise = T::of(power.max(LEAST));
            }
        }
        if noise[1] > T::of(2.0) * noise[0] {
            noise[1] = noise[0];
            let [first, second, ..] = &mut self.members[..] else { return };
            second.w.copy_from_slice(&first.w);
            second.n = WINDOWS[0].0;
            second.fill();
        }
    }
}

/// The longest step that is sure not to overshoot: half of `|e|^2 / g^H H g`. Where a block excites what the Gram matrix has hardly seen, or the inverse has
/// lost its positive sign to rounding, the usual one would.
fn longest<T: Real>(square: f64, gradient: &(Vec<T>, Vec<T>), step: &(Vec<T>, Vec<T>), n: usize) -> f64 {
    let along: f64 = (0..n).map(|k| (gradient.0[k] * step.0[k] + gradient.1[k] * step.1[k]).wide()).sum();
    if along > 0.0 { 0.5 * square / along } else { 0.0 }
}

/// As good as random, and the same wherever the stream is cut.
pub(super) fn spread(time: u64) -> u64 {
    time.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

const _: () = assert!(NOTHING < FIRST_EVIDENCE);
