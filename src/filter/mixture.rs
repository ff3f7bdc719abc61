//! Several trackers side by side, combined by how well they have predicted lately.
//!
//! Bayesian model averaging with forgetting: which member describes the channel may change with time, so the evidence for each fades,
//!
//! ```text
//!   log w_i(t+1) = forgetting * log w_i(t) + log N(y_t; p_i(t), v_i(t)) + const
//! ```
//!
//! (Raftery, Karny and Ettler, *Online prediction under model uncertainty via dynamic model averaging*, 2010). Prediction and variance are
//! those of the mixture: `p = sum w_i p_i`, `v = sum w_i (v_i + |p_i - p|^2)`. A member that does not know its variance gets the
//! average of its recent squared errors. Errors beyond 25 times the variance count as 25: one corrupt sample does not decide.
//!
//! With members that differ only in their rate ([`Mixture::standard`]) nothing is left to tune. The cost is the sum of the members'.

use num_complex::Complex;
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use super::two_speed::{Motion, TwoSpeed, TwoSpeedConfig};
use super::{Adaptive, Portrait, Tracker, finite, require, state};
use crate::{Error, Real, Result};

/// Samples that the members are run over at a time; results do not depend on it.
const BLOCK: usize = 64;
/// Samples over which the squared errors of a member without variance are averaged.
const ERROR_WINDOW: f64 = 100.0;
/// Largest squared error in units of its variance that counts.
const SURPRISE: f64 = 25.0;

/// Parameters of [`Mixture::standard`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MixtureConfig {
    /// Taps of the members for moving channels. Those that reach beyond the predicted sample are among them: pair the streams with
    /// [`pair`](super::two_speed::pair).
    pub taps: usize,
    /// Gaussians over the envelope.
    pub centres: usize,
    /// Taps of the member for still channels: an amplifier's output filter rings longer than a channel has echoes.
    pub still_taps: usize,
    /// Memory of the nonlinearity in samples, as far as there are taps, for the members that are amplifiers with memory; 0 leaves them out.
    pub memory: usize,
    /// Spans of the members for moving channels, see [`TwoSpeedConfig::span`].
    pub spans: Vec<f64>,
    /// Whether all members have conjugate taps too.
    pub widely_linear: bool,
    /// What remains of the evidence after a sample, between 0 and 1.
    pub forgetting: f64,
}

impl Default for MixtureConfig {
    fn default() -> Self {
        Self {
            taps: 4,
            centres: 8,
            still_taps: 32,
            memory: 3,
            spans: vec![10.0, 18.0, 32.0, 60.0, 150.0],
            widely_linear: false,
            forgetting: 0.99,
        }
    }
}

impl MixtureConfig {
    /// The members that [`Mixture::standard`] builds, with their names.
    pub fn members(&self) -> Vec<(String, TwoSpeedConfig)> {
        let base =
            TwoSpeedConfig { taps: self.taps, centres: self.centres, widely_linear: self.widely_linear, ..TwoSpeedConfig::default() };
        let mut members: Vec<_> =
            self.spans.iter().map(|&span| (format!("two-speed {span}"), TwoSpeedConfig { span, ..base.clone() })).collect();
        for span in [30.0, 150.0] {
            members.push((format!("two-speed {span}, carrier"), TwoSpeedConfig { span, carrier: true, ..base.clone() }));
        }
        // An amplifier that saturates each of its echoes in another way, in front of a flat, a still or a moving channel.
        let memory = self.memory.min(self.taps.saturating_sub(1));
        if memory > 0 && self.centres > 0 {
            let amplifier = TwoSpeedConfig { memory, ..base.clone() };
            members.push(("two-speed memory, flat".into(), TwoSpeedConfig { taps: 1, span: 60.0, ..amplifier.clone() }));
            members.push((
                "two-speed memory, still".into(),
                TwoSpeedConfig { taps: 2, motion: Motion::Walk, span: 300.0, ..amplifier.clone() },
            ));
            members.push(("two-speed memory".into(), TwoSpeedConfig { taps: self.taps, span: 100.0, ..amplifier }));
        }
        if self.still_taps > 0 {
            let still = TwoSpeedConfig { taps: self.still_taps.max(self.taps), motion: Motion::Walk, span: 1000.0, ..base };
            members.push(("two-speed still".into(), still));
        }
        members
    }
}

struct Member<T: Real> {
    name: String,
    tracker: Box<dyn Tracker<T>>,
    log_weight: f64,
    // Average squared error, for where the tracker does not know its variance; zero before the first error.
    error: f64,
    prediction: Vec<Complex<T>>,
    variance: Vec<T>,
}

/// Trackers combined by their recent predictive likelihood.
pub struct Mixture<T: Real> {
    members: Vec<Member<T>>,
    forgetting: f64,
    weights: Vec<f64>,
    real: bool,
}

/// What [`Mixture::save`] writes of itself.
#[derive(Serialize, Deserialize)]
struct Saved {
    members: Vec<(String, Vec<u8>)>,
    log_weights: Vec<f64>,
    errors: Vec<f64>,
    forgetting: f64,
    real: bool,
}

impl<T: Real> Mixture<T> {
    /// Any trackers with their names, equally likely at first. `forgetting` is what remains of the evidence after a sample.
    pub fn new(members: impl IntoIterator<Item = (String, Box<dyn Tracker<T>>)>, forgetting: f64) -> Result<Self> {
        let members: Vec<_> = members
            .into_iter()
            .map(|(name, tracker)| Member {
                name,
                tracker,
                log_weight: 0.0,
                error: 0.0,
                prediction: vec![Complex::zero(); BLOCK],
                variance: vec![T::zero(); BLOCK],
            })
            .collect();
        require(!members.is_empty(), "members", "at least 1", 0.0)?;
        let weights = vec![0.0; members.len()];
        let mut mixture = Self { members, forgetting: 1.0, weights, real: true };
        mixture.set("forgetting", forgetting)?;
        mixture.normalise();
        Ok(mixture)
    }

    /// [`TwoSpeed`] trackers of several rates, some with a carrier, some whose nonlinearity has memory, and one with a long window for still channels.
    pub fn standard(config: &MixtureConfig) -> Result<Self> {
        let mut members: Vec<(String, Box<dyn Tracker<T>>)> = Vec::new();
        for (name, config) in config.members() {
            members.push((name, Box::new(TwoSpeed::new(config)?)));
        }
        Self::new(members, config.forgetting)
    }

    /// Names of the members and their present weights, which sum to 1.
    pub fn weights(&self) -> impl Iterator<Item = (&str, f64)> {
        self.members.iter().zip(&self.weights).map(|(m, w)| (m.name.as_str(), *w))
    }

    fn normalise(&mut self) {
        let most = self.members.iter().map(|m| m.log_weight).fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for (w, m) in self.weights.iter_mut().zip(&mut self.members) {
            // Only differences count; this also keeps the sums of logarithms in range.
            m.log_weight -= most;
            *w = m.log_weight.exp();
            sum += *w;
        }
        self.weights.iter_mut().for_each(|w| *w /= sum);
    }

    /// Combines the members' predictions of sample `i` of the block, then weighs them by `y`.
    fn combine(&mut self, i: usize, y: Complex<T>, learn: bool) -> (Complex<T>, T) {
        let (mut re, mut im, mut variance) = (0.0, 0.0, 0.0);
        for (m, w) in self.members.iter().zip(&self.weights) {
            let p = m.prediction[i];
            if finite(p) {
                re += w * p.re.wide();
                im += w * p.im.wide();
            }
        }
        for (m, w) in self.members.iter().zip(&self.weights) {
            let (p, v) = (m.prediction[i], m.spread(i));
            if finite(p) {
                variance += w * (v + (p.re.wide() - re).powi(2) + (p.im.wide() - im).powi(2));
            }
        }
        if learn {
            self.weigh(i, y);
        }
        (Complex::new(T::of(re), T::of(im)), T::of(variance))
    }

    fn weigh(&mut self, i: usize, y: Complex<T>) {
        self.real &= y.im == T::zero();
        // A real error has one degree of freedom, a complex one two.
        let freedom = if self.real { 0.5 } else { 1.0 };
        for m in &mut self.members {
            let (p, v) = (m.prediction[i], m.spread(i));
            let squared = (y.re.wide() - p.re.wide()).powi(2) + (y.im.wide() - p.im.wide()).powi(2);
            let evidence = if v > 0.0 && v.is_finite() && squared.is_finite() {
                -freedom * (v.ln() + (squared / v).min(SURPRISE))
            } else if squared == 0.0 {
                0.0
            } else {
                // A member without a usable prediction is as bad as one that is surprised every time.
                -freedom * ((y.norm_sqr().wide() + f64::MIN_POSITIVE).ln() + SURPRISE)
            };
            m.log_weight = self.forgetting * m.log_weight + evidence;
            if squared.is_finite() {
                m.error += if m.error > 0.0 { (squared.min(SURPRISE * m.error) - m.error) / ERROR_WINDOW } else { squared };
            }
        }
        self.normalise();
    }
}

impl<T: Real> Member<T> {
    fn spread(&self, i: usize) -> f64 {
        let v = self.variance[i].wide();
        if v.is_nan() { self.error } else { v }
    }
}

impl<T: Real> Adaptive for Mixture<T> {
    fn size(&self) -> usize {
        self.members.iter().map(|m| m.tracker.size()).sum()
    }

    fn reset(&mut self) {
        for m in &mut self.members {
            m.tracker.reset();
            (m.log_weight, m.error) = (0.0, 0.0);
        }
        self.real = true;
        self.normalise();
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        if !["evidence", "forgetting"].contains(&name) {
            return Err(Error::NotApplicable { filter: "mixture".into(), name: name.into(), known: vec!["evidence".into()] });
        }
        require(value > 0.0 && value <= 1.0, name, "above 0 and at most 1", value)?;
        self.forgetting = value;
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        let members = self.members.iter().map(|m| Ok((m.name.clone(), m.tracker.save()?))).collect::<Result<_>>()?;
        let saved = Saved {
            members,
            log_weights: self.members.iter().map(|m| m.log_weight).collect(),
            errors: self.members.iter().map(|m| m.error).collect(),
            forgetting: self.forgetting,
            real: self.real,
        };
        state::encode(&state::kind::<T>("mixture"), &saved)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let saved: Saved = state::decode(&state::kind::<T>("mixture"), bytes)?;
        state::same_shape("members", saved.members.len(), self.members.len())?;
        state::same_shape("weights", saved.log_weights.len(), self.members.len())?;
        state::same_shape("errors", saved.errors.len(), self.members.len())?;
        let sound = saved.log_weights.iter().chain(&saved.errors).all(|x| x.is_finite());
        if !(sound && saved.forgetting > 0.0 && saved.forgetting <= 1.0) {
            return Err(Error::State("damaged: a weight is not finite, or it forgets what no mixture forgets".into()));
        }
        for (m, (name, _)) in self.members.iter().zip(&saved.members) {
            if m.name != *name {
                return Err(Error::State(format!("it has a member '{name}' where this mixture has '{}'", m.name)));
            }
        }
        // A member that refuses its state must not leave the others changed.
        let before = self.members.iter().map(|m| m.tracker.save()).collect::<Result<Vec<_>>>()?;
        for i in 0..self.members.len() {
            if let Err(error) = self.members[i].tracker.restore(&saved.members[i].1) {
                for (m, bytes) in self.members.iter_mut().zip(&before).take(i) {
                    m.tracker.restore(bytes)?;
                }
                return Err(error);
            }
        }
        for (i, m) in self.members.iter_mut().enumerate() {
            (m.log_weight, m.error) = (saved.log_weights[i], saved.errors[i]);
        }
        (self.forgetting, self.real) = (saved.forgetting, saved.real);
        self.normalise();
        Ok(())
    }
}

impl<T: Real> Tracker<T> for Mixture<T> {
    fn taps(&self) -> usize {
        self.members.iter().map(|m| m.tracker.taps()).max().unwrap_or(1)
    }

    fn track(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], learn: bool, prediction: &mut [Complex<T>], mut variance: Option<&mut [T]>) {
        let mut at = 0;
        for (tx, rx) in tx.chunks(BLOCK).zip(rx.chunks(BLOCK)) {
            let n = rx.len();
            for m in &mut self.members {
                m.tracker.track(tx, rx, learn, &mut m.prediction[..n], Some(&mut m.variance[..n]));
            }
            for (i, y) in rx.iter().enumerate() {
                let (p, v) = self.combine(i, *y, learn);
                prediction[at + i] = p;
                if let Some(variance) = variance.as_deref_mut() {
                    variance[at + i] = v;
                }
            }
            at += n;
        }
    }

    fn gap(&mut self, missing: u64) {
        self.members.iter_mut().for_each(|m| m.tracker.gap(missing));
    }

    /// That of the member with the greatest weight, and all weights.
    fn portrait(&self) -> Portrait {
        let best = self.members.iter().zip(&self.weights).max_by(|a, b| a.1.total_cmp(b.1));
        let best = best.map_or_else(Portrait::default, |(m, _)| m.tracker.portrait());
        Portrait { members: self.weights().map(|(name, weight)| (name.to_owned(), weight)).collect(), ..best }
    }
}
