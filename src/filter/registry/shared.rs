//! Parameters that several filters have: what they are, how they are read, and which of them mean something beside each other.

use super::parameter::{Parameter, Preset, Unit, below_one, log, scaled};
use super::{Recipe, Settings, Value, Values};
use crate::filter::Evict;
use crate::kernel::{Equivariant, Gaussian, Hammerstein, Kernel, Linear, Polynomial, Sum};
use crate::observation::Gain;
use crate::{Error, Real, Result};

pub(crate) const KERNEL: Parameter = Parameter::choice("kernel", "similarity of two inputs (on streams hammerstein unless given)", KERNELS);
/// The first one is the default for single vectors.
const KERNELS: &[&str] = &["gaussian", "linear", "polynomial", "equivariant", HAMMERSTEIN, "gaussian+linear"];
/// The default on streams.
pub(crate) const HAMMERSTEIN: &str = "hammerstein";
pub(crate) const SIGMA: Parameter = Parameter::number(
    "sigma",
    "width of the Gaussian, equivariant and Hammerstein kernels, in units of the input's amplitude",
    Preset::Spread(1.0),
    scaled(0.15, 8.0, Unit::Spread),
)
.hammerstein(Preset::Rms(0.7));
pub(crate) const DEGREE: Parameter = Parameter::number("degree", "degree of the polynomial kernel", Preset::Is(3.0), None);
pub(crate) const ETA: Parameter =
    Parameter::number("eta", "learning rate: a new coefficient is eta times the error", Preset::Is(0.5), log(0.005, 1.0));
pub(crate) const RATIO: Parameter = Parameter::number(
    "diffusion-ratio",
    "instead of eta: diffusion variance over noise variance, eta = r / (1 + r k(x,x))",
    Preset::Off,
    scaled(1e-3, 1e3, Unit::PerNorm),
)
.hammerstein(Preset::PerPower(0.8));
pub(crate) const LAMBDA: Parameter =
    Parameter::number("lambda", "forgetting factor, 1 forgets nothing", Preset::Is(0.99), below_one(1e-5, 0.2));
pub(crate) const EPSILON: Parameter = Parameter::number(
    "epsilon",
    "QKLMS's quantisation radius, in units of the input's amplitude",
    Preset::Spread(0.25),
    scaled(0.01, 0.8, Unit::Spread),
);
pub(crate) const BUDGET: Parameter =
    Parameter::number("budget", "most centres that are kept; the oldest one goes", Preset::Unlimited, None);
pub(crate) const FLOOR: Parameter =
    Parameter::number("floor", "centres whose effective coefficient falls below this go", Preset::Off, None);
pub(crate) const WORKERS: Parameter =
    Parameter::number("workers", "threads for one stream through klms, fklms or norma with a large budget", Preset::Off, None);
pub(crate) const REGULARIZATION: Parameter = Parameter::number(
    "regularization",
    "NLMS's eps and RLS's c, in units of input power",
    Preset::Power(0.01),
    scaled(1e-4, 100.0, Unit::InputPower),
);
pub(crate) const PROCESS_NOISE: Parameter = Parameter::number(
    "process-noise",
    "variance by which weights diffuse in a sample, sigma_d^2",
    Preset::Is(1e-4),
    scaled(1e-8, 0.1, Unit::PowerRatio),
);
pub(crate) const NOISE: Parameter =
    Parameter::number("noise", "variance of the observation noise, sigma_n^2", Preset::Is(0.05), scaled(1e-4, 1.0, Unit::TargetPower));
pub(crate) const OFFSET: Parameter =
    Parameter::number("offset", "latent value where nothing was learned: log rate, log odds, or one number a class", Preset::Off, None);

/// The kernel of a filter that has one; else an empty name.
pub(super) fn kernel(recipe: &Recipe, given: &Values, stream: bool) -> String {
    match given.get(KERNEL.name) {
        Some(kernel) => kernel.to_string(),
        None if !recipe.has(KERNEL.name) => String::new(),
        None if stream => HAMMERSTEIN.into(),
        None => KERNELS[0].into(),
    }
}

/// Drops what has no meaning beside the rest, so that reports show only what counts.
pub(super) fn agree(recipe: &Recipe, kernel: &str, given: &Values, values: &mut Values) -> Result<()> {
    let is_given = |parameter: Parameter| given.contains_key(parameter.name);
    let mut drop = |parameter: Parameter| drop(values.remove(parameter.name));
    if !is_given(SIGMA) && ["linear", "polynomial"].contains(&kernel) {
        drop(SIGMA);
    }
    if !is_given(DEGREE) && kernel != "polynomial" {
        drop(DEGREE);
    }
    match (is_given(ETA), is_given(RATIO)) {
        (true, true) => return Err(Error::parameter(RATIO.name, "left out where eta is given: each determines the other", "both")),
        (true, false) => drop(RATIO),
        (false, true) => drop(ETA),
        // These kernels are not normalised: a fixed eta would diverge on large inputs, the ratio normalises itself.
        (false, false) if !["", "gaussian"].contains(&kernel) => {
            drop(ETA);
            if recipe.has(RATIO.name) {
                values.entry(RATIO.name.into()).or_insert(Value::Number(1.0));
            }
        }
        (false, false) => {}
    }
    Ok(())
}

impl Settings {
    /// The kernel that they name; the linear one for a filter that has no choice.
    pub(crate) fn kernel<T: Real>(&self) -> Result<Box<dyn Kernel<T>>> {
        let gaussian = || Gaussian::new(self.number(SIGMA.name)?);
        Ok(match self.name(KERNEL.name) {
            "gaussian" => Box::new(gaussian()?),
            "polynomial" => Box::new(Polynomial::new(self.whole(DEGREE.name)?.unwrap_or(3) as u32, 1.0)?),
            "equivariant" => Box::new(Equivariant::new(self.number(SIGMA.name)?)?),
            HAMMERSTEIN => Box::new(Hammerstein::new(self.number(SIGMA.name)?)?),
            "gaussian+linear" => Box::new(Sum::new(vec![(1.0, Box::new(gaussian()?) as _), (1.0, Box::new(Linear) as _)])?),
            _ => Box::new(Linear),
        })
    }

    /// Learning rate or diffusion ratio.
    pub(crate) fn gain(&self) -> Result<Gain> {
        Ok(match self.optional(RATIO.name)? {
            Some(ratio) => Gain::DiffusionRatio(ratio),
            None => Gain::Eta(self.number(ETA.name)?),
        })
    }

    /// Which centres go.
    pub(crate) fn evict(&self) -> Result<Evict> {
        Ok(Evict { budget: self.whole(BUDGET.name)?, floor: self.optional(FLOOR.name)? })
    }
}
