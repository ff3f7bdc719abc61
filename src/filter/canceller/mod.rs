//! A canceller: takes what a transmitter leaks into its own receiver out of it.
//!
//! ```text
//!   y[n] = g[n] Σ w_k F_k[n] + e[n],     g a random walk, w constant
//! ```
//!
//! - **Features.** The samples over many lags, products with smooth functions of their own envelope, with those of neighbours (both orders of the first-order terms
//!   of an amplifier behind a filter, of which a generalised memory polynomial has one: Morgan et al. 2006), conjugates, since mixers make images, and a constant.
//! - **Between samples.** An amplifier works on the waveform, not on its samples: products of samples alias where the waveform's would not. Where the window reaches at least seven
//!   samples ahead there are also products halfway between samples, on values interpolated from both sides, in place of some at higher lags. Behind an amplifier at four times the
//!   rate 11.3 dB above the noise are left with them, 15.9 dB with a window that reaches as far but for them, 21.6 dB without advance (`tests/cancel.rs`), at 1.1 times the cost.
//! - **Weights** `w` stand still: recursive least squares over blocks, with a prior that knows products to be small. Every sample counts by the inverse of the
//!   noise around it, and a wanted signal is noise here: while it is strong little is learned, by its evidence alone.
//! - **Gain** `g`. What drifts is the gain of everything together: amplifier, mixers, attenuators. That is process noise along the weights themselves, `P += q w wᴴ`,
//!   and takes one number instead of a forgetting of all weights. Nobody knows `q`: some gains with different ones are averaged by their likelihood.
//! - **Jumps.** What remains must not follow from what was sent. Where it does over a block, the weights are learned anew from the old ones.

mod features;
mod recipe;
mod weights;

use num_complex::{Complex, Complex64};
use serde::{Deserialize, Serialize};

pub(super) use recipe::RECIPE;

use self::features::Features;
use self::weights::{Belief, Sample, Weights};
use super::{Adaptive, Portrait, Tracker, check_lengths};
use crate::error::require;
use crate::simd::Level;
use crate::{Error, Result, state};

/// Variances by which the gain moves in a sample, over its square.
const DRIFTS: [f64; GAINS] = [1e-13, 1e-11, 1e-10, 1e-9, 1e-8, 1e-6];
const GAINS: usize = 6;
/// Samples after which the gains move: what a wanted signal leaves in neighbouring samples is alike, and must not look like a gain.
const BLOCK: u32 = 32;
/// What remains of the evidence for a gain after a block.
const EVIDENCE: f64 = 0.985;
/// Blocks over which it is averaged how much more errors vary from block to block than independent ones would.
const COLOUR_WINDOW: f64 = 200.0;
/// Samples over which the noise is averaged, and how many times its variance an error counts at most.
const NOISE_WINDOW: f64 = 300.0;
const OUTLIER: f64 = 12.0;
/// Samples at the start that tell the scale of the input; nothing is predicted yet. One whose rms grows beyond this factor begins anew.
const START: u64 = 48;
const GROWTH: f64 = 4.0;
/// Samples whose features are not quite what they will be, as the image is that of a poor prediction, and how much they count afterwards.
const POOR: u64 = 384;
const POORLY: f64 = 0.1;
/// Samples before the gains begin to move.
const STEADY: u64 = 512;
/// Samples of a block that is checked for what follows from what was sent, lags that are looked at, and how many times what chance would give is too much.
const CHECK: u64 = 512;
const LAGS: usize = 8;
const TOO_MUCH: f64 = 25.0;
/// How much is believed of what was learned before a jump, in samples.
const BELIEF: f64 = 64.0;

/// The canceller; the model is in the module's documentation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Canceller {
    taps: usize,
    advance: usize,
    window: f64,
    #[serde(skip)]
    level: Level,
    features: Features,
    weights: Weights,
    prior: Vec<f64>,
    gains: [Gain; GAINS],
    gain: Complex64,
    /// Samples learned from, and energy of the input and of the output while the scale is found.
    learned: u64,
    energy: (f64, f64),
    start: Vec<Complex64>,
    /// One over the rms of the input; power of the output; variance of errors now, and what it was when the weights began to stand.
    unit: f64,
    power: f64,
    recent: f64,
    noise: f64,
    reference: f64,
    block: Block,
    check: Check,
}

/// A gain with one speed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Gain {
    value: Complex64,
    variance: f64,
    evidence: f64,
    weight: f64,
}

/// What a block says of the gain: `Σ y p*` and `Σ |p|²`, and how much more its errors vary than independent ones.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Block {
    cross: Complex64,
    power: f64,
    count: u32,
    colour: f64,
}

/// Whether what remains follows from what was sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Check {
    recent: [Complex64; LAGS],
    sums: [Complex64; LAGS],
    error: f64,
    input: f64,
    count: u64,
    /// Blocks in a row in which it did.
    bad: u32,
}

impl Check {
    /// True where two blocks in a row leave what follows from the input.
    fn push(&mut self, x: Complex64, error: Complex64) -> bool {
        self.recent.rotate_right(1);
        self.recent[0] = x;
        self.sums.iter_mut().zip(&self.recent).for_each(|(sum, x)| *sum += error * x.conj());
        self.error += error.norm_sqr();
        self.input += x.norm_sqr();
        self.count = self.count.saturating_add(1);
        if self.count < CHECK {
            return false;
        }
        let chance = self.error * self.input / CHECK as f64;
        let found = self.sums.iter().map(Complex64::norm_sqr).sum::<f64>() / LAGS as f64;
        let bad = if found > TOO_MUCH * chance { self.bad + 1 } else { 0 };
        *self = Self { recent: self.recent, bad: bad % 2, ..Self::default() };
        bad == 2
    }
}

impl Canceller {
    /// Over windows of at least `taps` samples, of which `advance` are after the predicted one; weights are averaged over `window` samples.
    pub fn new(taps: usize, advance: usize, window: f64) -> Result<Self> {
        require((1..=128).contains(&taps), "taps", "between 1 and 128", taps as f64)?;
        require(advance < taps, "advance", "less than taps", advance as f64)?;
        require((1e3..=1e12).contains(&window), "average", "between 1e3 and 1e12 samples", window)?;
        let features = Features::new(taps, advance);
        let gain = Gain { value: Complex64::ONE, variance: 1e-6, evidence: 0.0, weight: 1.0 / GAINS as f64 };
        Ok(Self {
            taps,
            advance,
            window,
            level: Level::current(),
            weights: Weights::new(features.len()),
            prior: features.prior(),
            gains: [gain; GAINS],
            gain: Complex64::ONE,
            learned: 0,
            energy: (0.0, 0.0),
            start: vec![Complex64::ZERO; features.reach()],
            unit: 0.0,
            power: 0.0,
            recent: 0.0,
            noise: 0.0,
            reference: 0.0,
            block: Block { colour: 1.0, ..Block::default() },
            check: Check::default(),
            features,
        })
    }

    fn step(&mut self, x: Complex64, y: Complex64, learn: bool) -> Complex64 {
        if self.unit == 0.0 {
            self.begin(x, y, learn);
            return Complex64::ZERO;
        }
        let x = x * self.unit;
        self.recent += (x.norm_sqr() - self.recent) / NOISE_WINDOW;
        self.features.push(x);
        let (size, main) = (self.features.len(), self.features.len() - features::IMAGES);
        let sum = |features: &Features, part| self.weights.predict(self.level, (&features.re, &features.im), part);
        let plain = sum(&self.features, 0..main);
        self.features.image(plain / self.power.sqrt());
        let bare = plain + sum(&self.features, main..size);
        let prediction = self.gain * bare;
        if !prediction.is_finite() {
            self.reset();
            return Complex64::ZERO;
        }
        if learn {
            self.learn(x, y, bare, y - prediction);
        }
        prediction
    }

    /// Finds the scale of the input from its first samples.
    fn begin(&mut self, x: Complex64, y: Complex64, learn: bool) {
        self.start.rotate_left(1);
        if let Some(last) = self.start.last_mut() {
            *last = x;
        }
        if learn && x != Complex64::ZERO {
            self.energy = (self.energy.0 + x.norm_sqr(), self.energy.1 + y.norm_sqr());
            self.learned = self.learned.saturating_add(1);
        }
        if self.learned >= START && self.energy.0.is_normal() && self.energy.1.is_normal() {
            let n = self.learned as f64;
            self.unit = (n / self.energy.0).sqrt();
            self.power = self.energy.1 / n;
            (self.noise, self.recent, self.learned) = (self.power, 1.0, 0);
            let (start, scale) = (std::mem::take(&mut self.start), self.power);
            start.iter().for_each(|x| self.features.push(x * self.unit));
            self.prior = self.features.prior().into_iter().map(|size| 1.0 / (size * size * scale)).collect();
        }
    }

    fn learn(&mut self, x: Complex64, y: Complex64, bare: Complex64, error: Complex64) {
        if self.recent > GROWTH * GROWTH {
            self.reset();
            return;
        }
        self.learned = self.learned.saturating_add(1);
        if self.learned == POOR {
            self.weights.fade(POORLY);
        }
        let square = error.norm_sqr();
        let steady = self.learned > STEADY;
        // At first errors fall with every block.
        let window = NOISE_WINDOW.min(32.0 + self.learned as f64 / 8.0);
        let bounded = if steady { square.min(OUTLIER * self.noise) } else { square };
        self.noise += (bounded - self.noise) / window;
        if self.weights.is_eager() {
            self.reference = self.noise;
        } else {
            self.reference = self.reference.min(self.noise);
        }
        let weight = if self.weights.is_eager() { 1.0 } else { (self.reference / self.noise).min(1.0) };
        let bound = if square > OUTLIER * self.noise { (OUTLIER * self.noise / square).sqrt() } else { 1.0 };
        let features = (&self.features.re[..], &self.features.im[..]);
        let sample = Sample { gain: self.gain, target: y, error: error * bound, weight };
        self.weights.learn(self.level, features, &sample, &Belief { noise: self.noise, prior: &self.prior, window: self.window });
        if steady {
            self.follow(y, bare);
            if self.check.push(x, error) {
                self.weights.doubt(BELIEF);
                self.gains.iter_mut().for_each(|g| g.variance += 1e-4);
                self.learned = POOR;
            }
        }
    }

    /// Moves the gains at the end of a block, each by a Kalman filter for one number, and weighs them.
    fn follow(&mut self, y: Complex64, bare: Complex64) {
        self.block.cross += y * bare.conj();
        self.block.power += bare.norm_sqr();
        self.block.count = self.block.count.saturating_add(1);
        if self.block.count < BLOCK {
            return;
        }
        let Block { cross, power, colour, .. } = self.block;
        self.block = Block { colour, ..Block::default() };
        if power.is_nan() || power <= 0.0 {
            return;
        }
        let (seen, noise) = (cross / power, self.noise / power * colour);
        let mut most = f64::NEG_INFINITY;
        let mut heaviest = (0.0, 1.0);
        for (g, drift) in self.gains.iter_mut().zip(DRIFTS) {
            let variance = g.variance + noise;
            let error = seen - g.value;
            let surprise = error.norm_sqr() / variance;
            if g.weight > heaviest.0 {
                heaviest = (g.weight, surprise);
            }
            g.evidence = EVIDENCE * g.evidence - (variance / noise).ln() - surprise.min(2.0 * OUTLIER);
            let step = g.variance / variance * (OUTLIER / surprise).min(1.0);
            g.value += error * step;
            g.variance = (g.variance * noise / variance + drift * f64::from(BLOCK)).min(1.0);
            most = most.max(g.evidence);
        }
        self.block.colour = (colour * (1.0 + (heaviest.1.min(OUTLIER) - 1.0) / COLOUR_WINDOW)).clamp(1.0, 16.0);
        let total: f64 = self.gains.iter().map(|g| (g.evidence - most).exp()).sum();
        self.gain = Complex64::ZERO;
        for g in &mut self.gains {
            g.weight = (g.evidence - most).exp() / total;
            self.gain += g.value * g.weight;
        }
    }
}

impl Tracker<f32> for Canceller {
    fn taps(&self) -> usize {
        self.features.reach()
    }

    fn track(
        &mut self,
        tx: &[Complex<f32>],
        rx: &[Complex<f32>],
        learn: bool,
        prediction: &mut [Complex<f32>],
        variance: Option<&mut [f32]>,
    ) {
        check_lengths(tx, rx, prediction, variance.as_deref());
        let wide = |z: Complex<f32>| Complex64::new(z.re.into(), z.im.into());
        let mut variance = variance;
        for (n, (&x, &y)) in tx.iter().zip(rx).enumerate() {
            let p = self.step(wide(x), wide(y), learn);
            prediction[n] = Complex::new(p.re as f32, p.im as f32);
            if let Some(v) = variance.as_deref_mut() {
                v[n] = if self.noise > 0.0 { self.noise as f32 } else { f32::NAN };
            }
        }
    }

    fn portrait(&self) -> Portrait {
        let taps = (1..=self.features.linear()).map(|k| Complex64::new(self.weights.re[k], self.weights.im[k]) * self.gain * self.unit);
        let members = self.gains.iter().zip(DRIFTS).map(|(g, q)| (format!("drift {q:.0e}"), g.weight)).collect();
        Portrait { taps: taps.collect(), members, ..Portrait::default() }
    }
}

impl Adaptive for Canceller {
    fn size(&self) -> usize {
        self.features.len()
    }

    fn reset(&mut self) {
        let level = self.level;
        // The parameters were valid when this one was built.
        if let Ok(new) = Self::new(self.taps, self.advance, self.window) {
            *self = new;
            self.level = level;
        }
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        if name != "average" {
            return Err(Error::NotApplicable { filter: "canceller".into(), name: name.into(), known: vec!["average".into()] });
        }
        self.window = Self::new(self.taps, self.advance, value)?.window;
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode("canceller", self)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let mut saved: Self = state::decode("canceller", bytes)?;
        state::same_shape("taps", saved.taps, self.taps)?;
        state::same_shape("samples of advance", saved.advance, self.advance)?;
        let start = [0, self.features.reach()].contains(&saved.start.len());
        if !(saved.features.fits(&self.features) && saved.weights.fits(&self.weights) && saved.prior.len() == self.prior.len() && start) {
            return Err(Error::State("damaged: a length does not fit its parameters".into()));
        }
        saved.level = self.level;
        *self = saved;
        Ok(())
    }
}
