use num_complex::Complex;
use serde::{Deserialize, Serialize};

use super::Observation;
use crate::{Error, Real, Result};
use crate::{error::require, real::finite};

/// How large a step a Gaussian filter takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Gain {
    /// `α = eta · error`, the usual learning rate, `0 < eta ≤ 1`, and no more than `error / k(x,x)`: a larger step would make up for more
    /// than there is, and from twice that on the error grows.
    Eta(f64),
    /// `eta' = σ_d²/σ_n²`, the Bayesian diffusion-to-noise ratio: `α = eta' / (1 + eta' k(x,x)) · error`.
    DiffusionRatio(f64),
}

impl Gain {
    /// The coefficient gain where `k(x,x) = norm`.
    pub(crate) fn at(self, norm: f64) -> f64 {
        match self {
            Self::Eta(_) if self.is_bounded(norm) => 1.0 / norm,
            Self::Eta(eta) => eta,
            Self::DiffusionRatio(ratio) => ratio / (1.0 + ratio * norm),
        }
    }

    /// Whether the step is smaller than asked for where `k(x,x) = norm`.
    pub(crate) fn is_bounded(self, norm: f64) -> bool {
        matches!(self, Self::Eta(eta) if eta * norm > 1.0)
    }

    pub(crate) fn check(self) -> Result<Self> {
        match self {
            Self::Eta(eta) => require(eta > 0.0 && eta <= 1.0, "eta", "above 0 and at most 1", eta)?,
            Self::DiffusionRatio(ratio) => require(ratio > 0.0 && ratio.is_finite(), "diffusion-ratio", "positive", ratio)?,
        }
        Ok(self)
    }
}

/// A complex value in Gaussian noise: `P(y) = N(y; f, σ_n²)`, step `α = gain · (y − f)` (the KLMS equation of the paper).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Gaussian<T: Real> {
    gain: Gain,
    // The gain where it does not depend on the input, unless bounded.
    eta: Option<T>,
}

impl<T: Real> Gaussian<T> {
    /// Steps of the given size.
    pub(crate) fn new(gain: Gain) -> Result<Self> {
        gain.check()?;
        let eta = match gain {
            Gain::Eta(eta) => Some(T::of(eta)),
            Gain::DiffusionRatio(_) => None,
        };
        Ok(Self { gain, eta })
    }
}

impl<T: Real> Observation<T> for Gaussian<T> {
    type Target = Complex<T>;
    type Mean<'a> = Complex<T>;

    const NAME: &'static str = "gaussian";
    const COMPLEX: bool = true;
    const PARAMETERS: &'static [&'static str] = &["eta", "diffusion-ratio"];

    fn width(&self) -> usize {
        2
    }

    fn admissible(&self, y: Complex<T>) -> bool {
        finite(y)
    }

    fn prior(&self, latent: &mut [T]) {
        latent.fill(T::zero());
    }

    fn step(&self, f: &[T], y: Complex<T>, norm: T, alpha: &mut [T]) {
        let gain = self.gain(norm);
        alpha[0] = gain * (y.re - f[0]);
        alpha[1] = gain * (y.im - f[1]);
    }

    fn gain(&self, norm: T) -> T {
        self.eta.filter(|&eta| eta * norm <= T::one()).unwrap_or_else(|| T::of(self.gain.at(norm.wide())))
    }

    fn bounds(&self, norm: T) -> bool {
        self.eta.is_some_and(|eta| eta * norm > T::one())
    }

    fn mean<'a>(&'a self, f: &'a mut [T]) -> Complex<T> {
        Complex::new(f[0], f[1])
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        *self = match name {
            "eta" => Self::new(Gain::Eta(value))?,
            "diffusion-ratio" => Self::new(Gain::DiffusionRatio(value))?,
            _ => return Err(Error::unknown("parameter", name, Self::PARAMETERS)),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_at_a_norm() {
        assert_eq!(Gain::DiffusionRatio(2.5).at(1.0), 2.5 / 3.5);
        assert_eq!(Gain::Eta(0.5).at(1.0), 0.5);
        assert_eq!(Gain::Eta(0.5).at(8.0), 0.125); // bounded
    }
}
