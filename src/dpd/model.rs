//! The amplifier, learned from what was sent and what came back.

use num_complex::Complex64;

use super::basis::Basis;
use super::channel::{self, Path};
use super::fit::Equations;
use crate::error::require;
use crate::{Error, Result};

/// How an amplifier is modelled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Samples before the present one that the amplifier remembers.
    pub memory: usize,
    /// Control points of each function of the envelope.
    pub points: usize,
    /// How the amplifier's output came back.
    pub path: Path,
}

impl Default for Options {
    /// Memory of 3 samples, behind a coupler.
    fn default() -> Self {
        Self { memory: 3, points: 12, path: Path::Coupler }
    }
}

/// What an amplifier does to the envelope: `u[n] = Σ z[n − a] G(|z[n − b]|)` over own and neighbouring envelopes, in units of its input, with a mean gain of 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub(super) basis: Basis,
    pub(super) weights: Vec<Complex64>,
    gain: Complex64,
}

impl Model {
    /// The amplifier's output for a whole signal, silent before it begins.
    pub(crate) fn apply(&self, sent: &[Complex64]) -> Vec<Complex64> {
        self.basis.apply(&self.weights, sent)
    }

    /// The gain that a steady envelope sees.
    pub fn gain(&self, envelope: f64) -> Complex64 {
        self.basis.gains(&self.weights, envelope).iter().sum()
    }

    /// The mean gain from the signal to what came back, which the model leaves out; over the air it is that of the channel, and 1 here.
    pub(crate) fn mean_gain(&self) -> Complex64 {
        self.gain
    }

    /// Makes the mean gain over `signal` 1.
    fn level(&mut self, signal: &[Complex64]) {
        let gain = mean_gain(signal, &self.apply(signal));
        if gain.norm_sqr().is_normal() {
            self.weights.iter_mut().for_each(|w| *w /= gain);
            self.gain = gain;
        }
    }
}

/// The least-squares gain from `x` to `y`.
pub(crate) fn mean_gain(x: &[Complex64], y: &[Complex64]) -> Complex64 {
    let power: f64 = x.iter().map(Complex64::norm_sqr).sum();
    x.iter().zip(y).map(|(x, y)| x.conj() * y).sum::<Complex64>() / power
}

/// Learns an amplifier from pairs that are in step, piece by piece, in bounded memory: all pieces of a recording, or those of a stream as they come.
#[derive(Clone, Debug)]
pub struct Learner {
    options: Options,
    /// The signal that is to come out undistorted: the gain of 1 is its.
    signal: Vec<Complex64>,
    equations: Equations,
    model: Model,
    /// Pairs that wait for a block to be full: sent, received, and how many of them are only history.
    sent: Vec<Complex64>,
    received: Vec<Complex64>,
    history: usize,
}

impl Learner {
    /// Learns the amplifier up to the envelope `reach`; `signal` is what is to come out of it undistorted, some thousand samples of it.
    pub fn new(options: Options, signal: &[Complex64], reach: f64) -> Result<Self> {
        require(options.memory <= 16, "memory", "at most 16 samples", options.memory as f64)?;
        require((6..=64).contains(&options.points), "points", "between 6 and 64", options.points as f64)?;
        require(reach > 0.0 && reach.is_finite(), "peak", "positive", reach)?;
        if !signal.iter().any(|z| z.norm_sqr() > 0.0) {
            return Err(Error::Data("the signal is silent: there is no amplifier to learn".into()));
        }
        options.path.validate()?;
        let basis = Basis::new(options.memory, options.points, reach);
        let model = Model { weights: basis.identity(), basis, gain: Complex64::ONE };
        Ok(Self {
            options,
            signal: signal.to_vec(),
            equations: Equations::new(model.basis.len()),
            model,
            sent: Vec::new(),
            received: Vec::new(),
            history: 0,
        })
    }

    /// What was learned before counts `keep` times as much from now on, between 0 and 1: the amplifier has warmed up, or is driven by another signal.
    pub fn forget(&mut self, keep: f64) {
        self.equations.age(keep.clamp(0.0, 1.0));
        self.broken();
    }

    /// The next pair does not follow the last one.
    pub(crate) fn broken(&mut self) {
        self.sent.clear();
        self.received.clear();
        self.history = 0;
    }

    /// Takes in pairs. Those that are not finite break the stream.
    pub fn push(&mut self, sent: &[Complex64], received: &[Complex64]) -> Result<()> {
        for (&x, &y) in sent.iter().zip(received) {
            if !(x.is_finite() && y.is_finite()) {
                self.broken();
                continue;
            }
            self.sent.push(x);
            self.received.push(y);
            if self.sent.len() - self.history >= self.options.path.block() {
                self.learn()?;
                let keep = self.reach_back().min(self.sent.len());
                self.sent.drain(..self.sent.len() - keep);
                self.received.drain(..self.received.len() - keep);
                self.history = keep;
            }
        }
        Ok(())
    }

    /// Pairs before a block that its products need, and after it.
    fn reach_back(&self) -> usize {
        self.model.basis.longest() + self.options.path.taps()
    }

    /// Adds the block that is full to the equations.
    fn learn(&mut self) -> Result<()> {
        let basis = &self.model.basis;
        // Without history the first products are not complete.
        let from = if self.history == 0 { self.reach_back() } else { self.history };
        if let Path::Air { taps, advance, .. } = self.options.path {
            let bent = self.model.apply(&self.sent);
            let Some(response) = channel::fit(&bent, &self.received, from, taps, advance, true) else { return Ok(()) };
            channel::add(&mut self.equations, basis, &self.sent, &self.received, &response, from);
            self.solve()?;
        } else {
            let mut products = Vec::new();
            for n in from..self.sent.len() {
                basis.products(&self.sent, n, &mut products);
                self.equations.add(&products, self.received[n], self.sent[n].norm_sqr());
            }
        }
        Ok(())
    }

    fn solve(&mut self) -> Result<()> {
        self.model.weights = self.equations.solve(&self.model.basis)?;
        self.model.level(&self.signal);
        Ok(())
    }

    /// How much of what came back the model of [`model`](Self::model) leaves unexplained, in dB.
    pub(crate) fn nmse_db(&self) -> f64 {
        let weights: Vec<Complex64> = self.model.weights.iter().map(|w| w * self.model.gain).collect();
        self.equations.nmse_db(&weights)
    }

    /// Energy of what came back that the amplifier as it is known leaves unexplained, had `sent` been sent.
    #[cfg(feature = "blocks")]
    pub(crate) fn left(&self, sent: &[Complex64], received: &[Complex64]) -> f64 {
        let (taps, advance, moving) = match self.options.path {
            Path::Coupler => (1, 0, false),
            Path::Air { taps, advance, .. } => (taps, advance, true),
        };
        let from = self.reach_back();
        if received.len() <= from + advance {
            return f64::INFINITY;
        }
        let bent = self.model.apply(sent);
        channel::fit(&bent, received, from, taps, advance, moving).map_or(f64::INFINITY, |response| response.left(&bent, received, from))
    }

    /// The amplifier as far as it is known.
    pub fn model(&mut self) -> Result<Model> {
        self.solve()?;
        Ok(self.model.clone())
    }
}
