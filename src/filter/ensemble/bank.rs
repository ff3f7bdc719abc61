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

use num_complex::{Complex, Complex64};
use serde::{Deserialize, Serialize};

use super::constants::*;
use super::evidence::{Evidence, LEAST, NOTHING};
use super::features::{Feature, Streams, seconds};
use super::matrix::Matrix;
use super::planes::Planes;
use crate::Real;
use crate::simd::{Level, Op, Row, Vector};

/// Members of the bank: windows in samples and how many features they use, of a short model or of all.
const WINDOWS: [(f64, bool); SLOTS] = [(1500.0, true), (f64::INFINITY, true), (f64::INFINITY, false)];
const SLOTS: usize = 3;

/// Weights of one member, in planes padded to whole vectors.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
struct Member<T: Real> {
    w: Vec<Complex64>,
    re: Vec<T>,
    im: Vec<T>,
    error: Planes<T>,
    // Samples since it began.
    n: f64,
}

impl<T: Real> Member<T> {
    fn new(size: usize) -> Self {
        let zeros = vec![T::zero(); size.next_multiple_of(16)];
        Self { w: vec![Complex64::default(); size], re: zeros.clone(), im: zeros, error: Planes::new(0), n: 0.0 }
    }

    fn fill(&mut self) {
        for (k, w) in self.w.iter().enumerate() {
            (self.re[k], self.im[k]) = (T::of(w.re), T::of(w.im));
        }
    }
}

/// The inverse of a Gram matrix in the precision of the samples, rows padded to whole vectors.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
struct Inverse<T: Real> {
    re: Vec<T>,
    im: Vec<T>,
}

/// The bank.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Bank<T: Real> {
    #[serde(skip)]
    features: Vec<Feature>,
    sizes: [usize; 2],
    members: Vec<Member<T>>,
    pub(super) evidence: Evidence<T>,
    gram: Matrix,
    // Sum of F* y over the same samples as the Gram matrix, and of their weights.
    cross: Vec<Complex64>,
    used: f64,
    inverses: Vec<Inverse<T>>,
    /// Samples learned since it began.
    n: u64,
    next: u64,
    #[serde(skip)]
    predictions: Vec<Planes<T>>,
    #[serde(skip)]
    gradient: Vec<Complex64>,
}

impl<T: Real> Bank<T> {
    pub(super) fn new(features: Vec<Feature>, short: usize) -> Self {
        let sizes = [short.min(features.len()), features.len()];
        let members = WINDOWS.map(|(_, full)| Member::new(sizes[usize::from(full)])).to_vec();
        let mut bank = Self {
            sizes,
            members,
            evidence: Evidence::new(0),
            gram: Matrix::zeros(features.len()),
            cross: vec![Complex64::default(); features.len()],
            used: 0.0,
            inverses: Vec::new(),
            n: 0,
            next: 0,
            predictions: Vec::new(),
            gradient: Vec::new(),
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
        self.predictions = vec![Planes::new(0); SLOTS];
        self.gradient = vec![Complex64::default(); self.features.len()];
    }

    pub(super) fn features(&self) -> Vec<Feature> {
        self.features.clone()
    }

    pub(super) fn is_sound(&self, other: &Self) -> bool {
        let n = other.features.len();
        let members = self.members.len() == SLOTS && self.members.iter().zip(&other.members).all(|(a, b)| {
            a.w.len() == b.w.len() && a.re.len() == b.re.len() && a.im.len() == b.im.len() && a.error.fits(0) && a.n.is_finite()
        });
        let inverses = self.inverses.iter().zip(&self.sizes).all(|(i, &s)| {
            i.re.len() == s * s.next_multiple_of(16) && i.im.len() == i.re.len()
        });
        members && inverses && (self.inverses.is_empty() || self.inverses.len() == 2) && self.sizes == other.sizes && self.gram.fits(n)
            && self.gram.is_finite() && self.cross.len() == n && self.used.is_finite() && self.evidence.is_sound()
    }

    /// Whether it predicts yet.
    pub(super) fn is_ready(&self) -> bool {
        !self.inverses.is_empty()
    }

    pub(super) fn size(&self) -> usize {
        self.members.iter().map(|m| m.w.len()).sum()
    }

    /// Begins again: the unit of the input has changed.
    pub(super) fn restart(&mut self) {
        *self = Self::new(std::mem::take(&mut self.features), self.sizes[0]);
    }

    /// Predicts samples `from..to` of the block.
    pub(super) fn predict(&mut self, level: Level, streams: &Streams<T>, from: usize, to: usize) {
        if self.is_ready() {
            T::dispatch(level, Predict { bank: self, streams, from, to });
        }
    }

    /// The predictions of sample `at` of the block, one for each slot.
    #[inline(always)]
    pub(super) fn prediction(&self, at: usize) -> (Row<T>, Row<T>) {
        let (mut re, mut im) = (Row::default(), Row::default());
        for (i, p) in self.predictions.iter().enumerate() {
            (re.0[i], im.0[i]) = (p.re[at], p.im[at]);
        }
        (re, im)
    }

    /// Notes the errors of sample `at`, outliers cut; zero where nothing is to be learned.
    #[inline(always)]
    pub(super) fn note(&mut self, at: usize, y: Option<Complex<T>>) {
        for (i, m) in self.members.iter_mut().enumerate() {
            let error = y.map_or(Complex::default(), |y| {
                let e = y - self.predictions[i].at(at);
                let cut = T::of(OUTLIER) * self.evidence.noise.0[i] / e.norm_sqr().max(T::of(LEAST));
                e * cut.min(T::one())
            });
            m.error.set(at, error);
        }
    }

    /// Learns from a block: `y` its outputs, `weight` how much each counts, `noise` the best that the other members reach, `power` that of `y`.
    pub(super) fn learn(&mut self, level: Level, streams: &Streams<T>, y: &Planes<T>, weight: &[T], time: u64, noise: f64, power: f64) {
        let learned = weight.iter().filter(|w| **w > T::zero()).count() as u64;
        if learned == 0 {
            return;
        }
        self.n += learned;
        let eager = self.n <= BANK_EAGER;
        self.gather(level, streams, y, weight, time, eager);
        if self.is_ready() {
            for i in 0..SLOTS {
                self.members[i].n += learned as f64;
                let (window, full) = WINDOWS[i];
                let member = &self.members[i];
                let size = member.w.len();
                T::dispatch(level, Gradient { features: &self.features[..size], streams, error: &member.error, to: &mut self.gradient });
                let gain = 1.0 / member.n.min(window).max(4.0 * BLOCK as f64);
                let member = &mut self.members[i];
                let (inverse, to) = (&self.inverses[usize::from(full)], &mut member.w);
                T::dispatch(level, Apply { inverse, gradient: &self.gradient[..size], gain, to });
                member.fill();
            }
            self.guard();
        }
        if self.n >= self.next {
            self.solve(level, eager, noise, power);
        }
    }

    /// The Gram matrix and, while eager, the cross correlation with the output.
    fn gather(&mut self, level: Level, streams: &Streams<T>, y: &Planes<T>, weight: &[T], time: u64, eager: bool) {
        let mut samples = Vec::new();
        for (t, w) in weight.iter().enumerate() {
            let turn = eager || t as u64 == spread(time) % BANK_LAZY || t as u64 == BANK_LAZY + spread(time + 1) % BANK_LAZY;
            if *w > T::zero() && turn {
                let root = w.wide().sqrt();
                let features: (Vec<f64>, Vec<f64>) = self.features.iter().map(|f| {
                    let z = streams.feature(f, t);
                    (z.re.wide() * root, z.im.wide() * root)
                }).unzip();
                if eager {
                    let y = Complex64::new(y.re[t].wide(), y.im[t].wide()) * root;
                    self.cross.iter_mut().zip(features.0.iter().zip(&features.1)).for_each(|(c, (&re, &im))| *c += Complex64::new(re, -im) * y);
                }
                samples.push(features);
                self.used += w.wide();
            }
        }
        for chunk in samples.chunks(8) {
            self.gram.accumulate(level, 1.0, chunk);
        }
    }

    /// Inverts the Gram matrix.
    fn solve(&mut self, level: Level, eager: bool, noise: f64, power: f64) {
        self.next = (self.n + self.n / 4).max(self.n + BLOCK as u64);
        let n = self.used.max(1.0);
        let mut g = self.gram.clone();
        g.scale(1.0 / n);
        let own = if self.is_ready() { self.evidence.noise.0[1].wide() } else { power };
        let relative = own / power.max(f64::MIN_POSITIVE);
        let ridge = if eager { (10.0 * relative).min(1e-2) } else { (1e3 * relative).min(1.0) } / n;
        g.add_to_diagonal(1e-7 * g.trace() / g.n() as f64 + ridge);
        let smooth = (SMOOTH * relative).min(SMOOTH_MOST) / n;
        for second in seconds(&self.features) {
            for &(i, a) in &second {
                for &(j, b) in &second {
                    g.set(i, j, g.at(i, j) + smooth * a * b);
                }
            }
        }
        let Some(inverses) = g.inverses(level, &self.sizes) else { return };
        let first = !self.is_ready();
        if eager {
            for (member, (_, full)) in self.members.iter_mut().zip(WINDOWS) {
                let inverse = &inverses[usize::from(full)];
                for (i, w) in member.w.iter_mut().enumerate() {
                    *w = (0..inverse.n()).map(|j| inverse.at(i, j) * self.cross[j] / n).sum();
                }
                member.n = self.n as f64;
                member.fill();
            }
        }
        self.inverses = inverses.iter().map(Inverse::new).collect();
        if first {
            self.evidence = Evidence::new(SLOTS);
            self.evidence.level = T::of(FIRST_EVIDENCE);
            self.evidence.noise.0.fill(T::of((2.0 * noise).max(LEAST)));
        }
    }

    /// A member without end that has fallen far behind the one with a window goes on from there.
    fn guard(&mut self) {
        let sound = |m: &Member<T>| m.re.iter().chain(&m.im).all(|w| w.is_finite());
        if !self.members.iter().all(sound) {
            self.restart();
            return;
        }
        let noise = &mut self.evidence.noise.0;
        if noise[1] > T::of(2.0) * noise[0] {
            noise[1] = noise[0];
            self.members[1].w = self.members[0].w.clone();
            self.members[1].n = WINDOWS[0].0;
            self.members[1].fill();
        }
    }
}

/// As good as random, and the same wherever the stream is cut.
pub(super) fn spread(time: u64) -> u64 {
    time.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

impl<T: Real> Inverse<T> {
    fn new(m: &Matrix) -> Self {
        let padded = m.n().next_multiple_of(16);
        let plane = |part: &dyn Fn(Complex64) -> f64| {
            (0..m.n()).flat_map(|i| (0..padded).map(move |j| (i, j))).map(|(i, j)| if j < m.n() { T::of(part(m.at(i, j))) } else { T::zero() }).collect()
        };
        Self { re: plane(&|z| z.re), im: plane(&|z| z.im) }
    }
}

/// Predictions of all members for some samples of the block.
struct Predict<'a, T: Real> {
    bank: &'a mut Bank<T>,
    streams: &'a Streams<T>,
    from: usize,
    to: usize,
}

impl<T: Real> Op<T> for Predict<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let bank = self.bank;
        let mut t = self.from / V::LANES * V::LANES;
        while t < self.to {
            let zero = V::splat(T::zero());
            let mut sums = [(zero, zero); SLOTS];
            let short = bank.sizes[0];
            for (k, f) in bank.features.iter().enumerate() {
                let (x, y) = self.streams.vector::<V>(f, t);
                let members = if k < short { SLOTS } else { 2 };
                for i in 0..members {
                    let m = &bank.members[i];
                    let (re, im) = (V::splat(m.re[k]), V::splat(m.im[k]));
                    sums[i].0 = im.fnma(y, re.fma(x, sums[i].0));
                    sums[i].1 = im.fma(x, re.fma(y, sums[i].1));
                }
            }
            for (p, sum) in bank.predictions.iter_mut().zip(sums) {
                sum.0.write(&mut p.re, t);
                sum.1.write(&mut p.im, t);
            }
            t += V::LANES;
        }
    }
}

/// `sum over the block of conj(F) e`.
struct Gradient<'a, T: Real> {
    features: &'a [Feature],
    streams: &'a Streams<T>,
    error: &'a Planes<T>,
    to: &'a mut [Complex64],
}

impl<T: Real> Op<T> for Gradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        for (f, to) in self.features.iter().zip(self.to) {
            let (mut re, mut im) = (V::splat(T::zero()), V::splat(T::zero()));
            let mut t = 0;
            while t < BLOCK {
                let ((x, y), (a, b)) = (self.streams.vector::<V>(f, t), (V::read(&self.error.re, t), V::read(&self.error.im, t)));
                re = y.fma(b, x.fma(a, re));
                im = y.fnma(a, x.fma(b, im));
                t += V::LANES;
            }
            *to = Complex64::new(re.sum().wide(), im.sum().wide());
        }
    }
}

/// `to += gain · H gradient`, `H` Hermitian.
struct Apply<'a, T: Real> {
    inverse: &'a Inverse<T>,
    gradient: &'a [Complex64],
    gain: f64,
    to: &'a mut [Complex64],
}

impl<T: Real> Op<T> for Apply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let n = self.to.len();
        let padded = n.next_multiple_of(16);
        let mut buffer = [T::zero(); 16];
        let mut j = 0;
        while j < n {
            let (mut a, mut b) = (V::splat(T::zero()), V::splat(T::zero()));
            for (k, g) in self.gradient.iter().enumerate() {
                // Column k is the conjugate of row k.
                let (x, y) = (V::read(&self.inverse.re, k * padded + j), V::read(&self.inverse.im, k * padded + j));
                let (re, im) = (V::splat(T::of(g.re)), V::splat(T::of(g.im)));
                a = im.fma(y, re.fma(x, a));
                b = re.fnma(y, im.fma(x, b));
            }
            let mut add = |lanes: V, part: &dyn Fn(&mut Complex64, f64)| {
                lanes.write(&mut buffer, 0);
                self.to[j..].iter_mut().zip(&buffer[..V::LANES]).for_each(|(w, x)| part(w, x.wide() * self.gain));
            };
            add(a, &|w, x| w.re += x);
            add(b, &|w, x| w.im += x);
            j += V::LANES;
        }
    }
}

const _: () = assert!(NOTHING < FIRST_EVIDENCE);
impl<T: Real> Bank<T> {
    pub(super) fn debug(&self) -> String {
        format!("n {} noise {:?} level {:.1} log {:?}", self.n, &self.evidence.noise.0[..SLOTS], self.evidence.level, &self.evidence.log.0[..SLOTS])
    }
}
