//! Normalised least mean squares.

use num_complex::Complex;
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use super::nlms_stream::NlmsStream;
use super::registry::{Dash, Hue, Make, Parameter, Preset, Recipe, Settings, Unit, log, scaled, shared::*};
use super::{Adaptive, Filter, MOST_TAPS, Portrait, Tracker, check_taps, finite, lms, set_in_range, state};
use crate::{Error, Real, Result};

pub(super) const RECIPE: Recipe = Recipe {
    name: "nlms",
    aliases: &[],
    about: "normalised least mean squares, linear",
    reference: "Nagumo, Noda 1967",
    parameters: &[
        Parameter::number("mu", "NLMS's step, between 0 and 2", Preset::Is(0.5), log(5e-3, 1.5)),
        REGULARIZATION.preset(Preset::Power(1e-6)).within(scaled(1e-6, 10.0, Unit::InputPower)),
    ],
    likelihood: None,
    covariance: |_, _| 0.0,
    look: (Hue::Grey, Dash::Solid),
    make: Make::Filter(build, build),
};

fn build<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    Ok(Box::new(Nlms::new(taps, s.number("mu")?, s.number(REGULARIZATION.name)?)?))
}

/// NLMS: `p = w·x` (no conjugate), then `w += mu / (regularization + xᴴx) · conj(x) · (y − p)`.
///
/// Nagumo and Noda, *A learning method for system identification*, 1967.
///
/// ```
/// use kaflow::{Complex, filter::{Filter, Nlms}};
/// let mut nlms = Nlms::new(1, 1.0, 1e-9).unwrap();
/// let (x, h) = (Complex::new(0.5, -1.0), Complex::new(2.0, 3.0));
/// nlms.adapt(&[x], h * x);
/// assert!((nlms.predict(&[x]) - h * x).norm() < 1e-6); // mu = 1 corrects a repeated input in one step
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Nlms<T: Real> {
    mu: T,
    regularization: T,
    weights: Vec<Complex<T>>,
}

impl<T: Real> Nlms<T> {
    /// `taps` weights, step `mu` in (0, 2), `regularization` in units of input power (it keeps silence from dividing by zero).
    pub fn new(taps: usize, mu: f64, regularization: f64) -> Result<Self> {
        check_taps(taps, MOST_TAPS)?;
        let mut nlms = Self { mu: T::zero(), regularization: T::zero(), weights: vec![Complex::zero(); taps] };
        nlms.set("mu", mu)?;
        nlms.set("regularization", regularization)?;
        Ok(nlms)
    }

    /// The weights, that of the newest sample first.
    pub fn weights(&self) -> &[Complex<T>] {
        &self.weights
    }
}

impl<T: Real> Nlms<T> {
    /// `mu` and `regularization`.
    pub(super) fn steps(&self) -> (T, T) {
        (self.mu, self.regularization)
    }
}

impl<T: Real> Adaptive for Nlms<T> {
    fn size(&self) -> usize {
        self.weights.len()
    }

    fn reset(&mut self) {
        self.weights.fill(Complex::zero());
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "mu" => set_in_range(&mut self.mu, value > 0.0 && value < 2.0, name, "between 0 and 2", value),
            "regularization" => set_in_range(&mut self.regularization, value > 0.0 && value.is_finite(), name, "positive", value),
            _ => Err(Error::NotApplicable { filter: "nlms".into(), name: name.into(), known: vec!["mu".into(), "regularization".into()] }),
        }
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode(&state::kind::<T>("nlms"), self)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let saved: Self = state::decode(&state::kind::<T>("nlms"), bytes)?;
        state::same_shape("weights", saved.weights.len(), self.weights.len())?;
        *self = saved;
        Ok(())
    }
}

impl<T: Real> Filter<T> for Nlms<T> {
    fn taps(&self) -> usize {
        self.weights.len()
    }

    fn predict(&mut self, x: &[Complex<T>]) -> Complex<T> {
        lms::predict(&self.weights, x)
    }

    fn adapt(&mut self, x: &[Complex<T>], y: Complex<T>) -> Complex<T> {
        let p = self.predict(x);
        let power: T = x.iter().map(|x| x.norm_sqr()).sum();
        let step = (y - p) * (self.mu / (self.regularization + power));
        if finite(step) && power.is_finite() {
            lms::learn(&mut self.weights, x, step);
        }
        p
    }

    fn into_tracker(self: Box<Self>) -> Box<dyn Tracker<T>> {
        Box::new(NlmsStream::new(*self))
    }

    fn portrait(&self) -> Portrait {
        Portrait::of_taps(&self.weights)
    }
}
