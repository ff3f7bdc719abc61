//! Least mean squares with explicit weights.

use num_complex::Complex;
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use super::registry::{Dash, Hue, Likelihood, Make, Preset, Recipe, Settings, shared::*};
use super::{Adaptive, Evict, Filter, MOST_TAPS, Portrait, check_taps, finite, klms, state};
use crate::kernel::Linear;
use crate::observation::Gain;
use crate::{Error, Real, Result};

pub(super) const RECIPE: Recipe = Recipe {
    name: "lms",
    aliases: &[],
    about: "least mean squares: KLMS with the linear kernel",
    reference: "Widrow, Hoff 1960",
    // Weights do not grow, so nothing needs a budget; the ratio normalises itself, a fixed eta would diverge on large inputs.
    parameters: &[ETA.preset(Preset::Off), RATIO.preset(Preset::PerPower(1.0)), BUDGET.preset(Preset::Off), FLOOR],
    likelihood: Some(Likelihood::Features),
    covariance: |_, _| 0.0,
    look: (Hue::Grey, Dash::Dotted),
    make: Make::Filter(build, build),
};

fn build<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    Ok(match s.evict()? {
        Evict { budget: None, floor: None } => Box::new(Lms::new(taps, s.gain()?)?),
        // Pruning needs the dictionary that LMS does without.
        evict => Box::new(klms(Linear, s.gain()?, evict, taps)?),
    })
}

/// LMS: `p = w·x`, then `w += gain · conj(x) · (y − p)`. Widrow and Hoff, *Adaptive switching circuits*, 1960.
///
/// The same filter as KLMS with the [`Linear`](crate::kernel::Linear) kernel, whose functions need no dictionary: cost is proportional to the taps alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Lms<T: Real> {
    gain: Gain,
    weights: Vec<Complex<T>>,
    /// How many steps had to be smaller than asked for.
    bounded: u64,
}

impl<T: Real> Lms<T> {
    /// `taps` weights. A fixed `eta` is bounded by `1 / xᴴx`; the diffusion ratio normalises itself.
    pub fn new(taps: usize, gain: Gain) -> Result<Self> {
        check_taps(taps, MOST_TAPS)?;
        Ok(Self { gain: gain.check()?, weights: vec![Complex::zero(); taps], bounded: 0 })
    }
}

impl<T: Real> Adaptive for Lms<T> {
    fn size(&self) -> usize {
        self.weights.len()
    }

    fn reset(&mut self) {
        self.weights.fill(Complex::zero());
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        self.gain = match name {
            "eta" => Gain::Eta(value).check()?,
            "diffusion-ratio" => Gain::DiffusionRatio(value).check()?,
            _ => {
                let known = vec!["eta".into(), "diffusion-ratio".into()];
                return Err(Error::NotApplicable { filter: "lms".into(), name: name.into(), known });
            }
        };
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode(&state::kind::<T>("lms"), self)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let saved: Self = state::decode(&state::kind::<T>("lms"), bytes)?;
        state::same_shape("weights", saved.weights.len(), self.weights.len())?;
        *self = saved;
        Ok(())
    }
}

impl<T: Real> Filter<T> for Lms<T> {
    fn taps(&self) -> usize {
        self.weights.len()
    }

    fn predict(&mut self, x: &[Complex<T>]) -> Complex<T> {
        predict(&self.weights, x)
    }

    fn adapt(&mut self, x: &[Complex<T>], y: Complex<T>) -> Complex<T> {
        let p = self.predict(x);
        let power: T = x.iter().map(|x| x.norm_sqr()).sum();
        let step = (y - p) * T::of(self.gain.at(power.wide()));
        if finite(step) && finite(step * power) {
            learn(&mut self.weights, x, step);
            self.bounded += u64::from(self.gain.is_bounded(power.wide()));
        }
        p
    }

    fn portrait(&self) -> Portrait {
        Portrait { bounded_steps: self.bounded, ..Portrait::of_taps(&self.weights) }
    }
}

/// `w·x`, without a conjugate.
pub(super) fn predict<T: Real>(weights: &[Complex<T>], x: &[Complex<T>]) -> Complex<T> {
    assert_eq!(x.len(), weights.len(), "input length");
    weights.iter().zip(x).map(|(w, x)| w * x).sum()
}

/// `w += conj(x) · step`.
pub(super) fn learn<T: Real>(weights: &mut [Complex<T>], x: &[Complex<T>], step: Complex<T>) {
    for (w, x) in weights.iter_mut().zip(x) {
        *w += x.conj() * step;
    }
}
