//! Observation models: how the latent function `f(x) = Σ a_i k(c_i, x)` becomes a measurement, and what a measurement teaches.
//!
//! All of them learn in the same way. With `w` the weights after decay, the new weights maximise the log posterior
//! `log P(y | w'ᵀφ) − ‖w' − w‖² / 2σ_d²`, whose maximum has the form `w' = w + α φ(x)`. The model's part is to find the scalar `α` (a
//! vector with one entry for each class in the multinomial model).

mod bernoulli;
mod gaussian;
mod multinomial;
mod poisson;

pub use self::{
    bernoulli::Bernoulli,
    gaussian::{Gain, Gaussian},
    multinomial::Multinomial,
    poisson::Poisson,
};

#[cfg(test)]
pub(crate) use self::{bernoulli::bernoulli_step, poisson::poisson_step};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::error::require;
use crate::{Error, Real, Result};

/// An observation model. Latent values and steps are slices of `width` real numbers: two for a complex value, one for a real one,
/// one a class for the multinomial.
pub trait Observation<T: Real>: Clone + Serialize + DeserializeOwned + Send + 'static {
    /// What is observed.
    type Target: Copy;
    /// The expected observation.
    type Mean<'a>
    where
        Self: 'a;

    /// The model's name.
    const NAME: &'static str;
    /// Whether the latent value is one complex number rather than real ones.
    const COMPLEX: bool;
    /// The parameters that [`set`](Self::set) knows.
    const PARAMETERS: &'static [&'static str];

    /// Real numbers in a latent value.
    fn width(&self) -> usize;

    /// Whether `y` is a possible observation; any other is not learned from.
    fn admissible(&self, y: Self::Target) -> bool;

    /// The latent value where nothing has been learned.
    fn prior(&self, latent: &mut [T]);

    /// The MAP step `α` for the observation `y` at latent value `f`, where `norm = k(x,x)`.
    fn step(&self, f: &[T], y: Self::Target, norm: T, alpha: &mut [T]);

    /// The factor between error and step, as far as there is one: what NORMA's ridge is multiplied by.
    fn gain(&self, norm: T) -> T;

    /// Whether the step that was asked for would overshoot where `k(x,x) = norm`, and so is made smaller.
    fn bounds(&self, norm: T) -> bool {
        let _ = norm;
        false
    }

    /// The expected observation at the latent value `f`, which may be overwritten.
    fn mean<'a>(&'a self, f: &'a mut [T]) -> Self::Mean<'a>;

    /// Changes a parameter of [`PARAMETERS`](Self::PARAMETERS).
    fn set(&mut self, name: &str, value: f64) -> Result<()>;
}

/// The parameters of the models of one real latent value.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Scalar {
    /// `σ_d²` of the weights.
    diffusion: f64,
    /// The latent value where nothing was learned.
    offset: f64,
}

impl Scalar {
    const PARAMETERS: &'static [&'static str] = &["process-noise", "offset"];

    fn new(diffusion: f64, offset: f64) -> Result<Self> {
        Ok(Self { diffusion: check_diffusion(diffusion)?, offset: check_offset(offset)? })
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "process-noise" => self.diffusion = check_diffusion(value)?,
            "offset" => self.offset = check_offset(value)?,
            _ => return Err(Error::unknown("parameter", name, Self::PARAMETERS)),
        }
        Ok(())
    }
}

/// The range of a diffusion variance `σ_d²`.
pub(crate) fn check_diffusion(value: f64) -> Result<f64> {
    require(value > 0.0 && value.is_finite(), "process-noise", "positive", value)?;
    Ok(value)
}

/// The range of a latent offset.
pub(crate) fn check_offset(value: f64) -> Result<f64> {
    require(value.is_finite(), "offset", "finite", value)?;
    Ok(value)
}
