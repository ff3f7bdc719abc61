//! The named members of the family: each a choice of dynamics, observation model and dictionary policy over the one loop.

use super::registry::{Dash, Discrete, Hue, Likelihood, Make, Parameter, Preset, Recipe, Settings, Unit, scaled, shared::*};
use super::{Admit, Dynamics, Evict, Filter, KernelFilter};
use crate::kernel::Kernel;
use crate::observation::{Bernoulli, Gain, Gaussian, Multinomial, Observation, Poisson};
use crate::{Error, Real, Result};

/// A kernel filter for complex targets.
pub(crate) type GaussianKernelFilter<T, K> = KernelFilter<T, K, Gaussian<T>>;

pub(super) const KLMS: Recipe = Recipe {
    name: "klms",
    aliases: &[],
    about: "kernel least mean squares",
    reference: "Liu, Pokharel, Principe 2008",
    parameters: &[KERNEL, SIGMA, DEGREE, BUDGET, FLOOR, ETA, RATIO, WORKERS],
    likelihood: Some(Likelihood::Features),
    covariance: |_, _| 0.0,
    look: (Hue::Sky, Dash::Solid),
    make: Make::Filter(build_klms, build_klms),
};

fn build_klms<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    Ok(Box::new(klms(s.kernel()?, s.gain()?, s.evict()?, taps)?))
}

/// KLMS: Liu, Pokharel, Príncipe, *The kernel least-mean-square algorithm*, 2008; the paper's KLMS equation (with `e_{k+1} φ(x_{k+1})`).
///
/// Unlike KAFBOX's, it goes on learning when a budget is full.
pub fn klms<T: Real, K: Kernel<T>>(kernel: K, gain: Gain, evict: Evict, taps: usize) -> Result<KernelFilter<T, K, Gaussian<T>>> {
    fklms(kernel, gain, 1.0, evict, taps)
}

pub(super) const FKLMS: Recipe = Recipe {
    name: "fklms",
    aliases: &[],
    about: "KLMS that forgets",
    reference: "Park, Seth, Van Vaerenbergh 2013",
    parameters: &[KERNEL, SIGMA, DEGREE, BUDGET, FLOOR, ETA, RATIO, LAMBDA.hammerstein(Preset::Is(0.997)), WORKERS],
    likelihood: Some(Likelihood::Features),
    covariance: |_, _| 0.0,
    look: (Hue::Blue, Dash::Solid),
    make: Make::Filter(build_fklms, build_fklms),
};

fn build_fklms<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    Ok(Box::new(fklms(s.kernel()?, s.gain()?, s.number(LAMBDA.name)?, s.evict()?, taps)?))
}

/// fKLMS, KLMS with forgetting: Park, Seth, Van Vaerenbergh, *Bayesian extensions of kernel least mean squares*, the fKLMS equation, whose `eta` is
/// the diffusion-to-noise ratio: `p = λ f(x)`, decay all coefficients by `λ`, append `gain · (y − p)`.
pub fn fklms<T: Real, K: Kernel<T>>(
    kernel: K,
    gain: Gain,
    lambda: f64,
    evict: Evict,
    taps: usize,
) -> Result<KernelFilter<T, K, Gaussian<T>>> {
    KernelFilter::new(kernel, Gaussian::new(gain)?, Dynamics::Forgetting(lambda), Admit::Always, evict, taps)
}

const RIDGE: Parameter = Parameter::number(
    "ridge",
    "NORMA's regularisation: coefficients decay by 1 - eta*ridge",
    Preset::Is(0.02),
    scaled(1e-5, 0.5, Unit::Norm),
)
.hammerstein(Preset::Power(0.015));

// Often coincides with fKLMS, hence the dashes.
pub(super) const NORMA: Recipe = Recipe {
    name: "norma",
    aliases: &[],
    about: "stochastic gradient descent with a ridge",
    reference: "Kivinen, Smola, Williamson 2004",
    parameters: &[KERNEL, SIGMA, DEGREE, BUDGET, FLOOR, ETA, RATIO, RIDGE, WORKERS],
    likelihood: None,
    covariance: |_, _| 0.0,
    look: (Hue::Pink, Dash::Dashed),
    make: Make::Filter(build_norma, build_norma),
};

fn build_norma<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    Ok(Box::new(norma(s.kernel()?, s.gain()?, s.number(RIDGE.name)?, s.evict()?, taps)?))
}

/// NORMA: Kivinen, Smola, Williamson, *Online learning with kernels*, 2004: `p = f(x)`, decay by `1 − gain·ridge`, append `gain · (y − p)`.
///
/// The error is taken before the decay, as published; KAFBOX takes it after, which makes it fKLMS.
pub fn norma<T: Real, K: Kernel<T>>(
    kernel: K,
    gain: Gain,
    ridge: f64,
    evict: Evict,
    taps: usize,
) -> Result<KernelFilter<T, K, Gaussian<T>>> {
    KernelFilter::new(kernel, Gaussian::new(gain)?, Dynamics::Ridge(ridge), Admit::Always, evict, taps)
}

pub(super) const QKLMS: Recipe = Recipe {
    name: "qklms",
    aliases: &[],
    about: "KLMS whose centres absorb their neighbours",
    reference: "Chen, Zhao, Zhu, Principe 2012",
    parameters: &[KERNEL, SIGMA, DEGREE, BUDGET, FLOOR, ETA, RATIO, EPSILON],
    likelihood: None,
    covariance: |_, _| 0.0,
    look: (Hue::Orange, Dash::Solid),
    make: Make::Filter(build_qklms, build_qklms),
};

fn build_qklms<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    Ok(Box::new(qklms(s.kernel()?, s.gain()?, s.number(EPSILON.name)?, s.evict()?, taps)?))
}

/// QKLMS: Chen, Zhao, Zhu, Príncipe, *Quantized kernel least mean square algorithm*, 2012. The nearest centre within `radius` absorbs the step.
pub fn qklms<T: Real, K: Kernel<T>>(
    kernel: K,
    gain: Gain,
    radius: f64,
    evict: Evict,
    taps: usize,
) -> Result<KernelFilter<T, K, Gaussian<T>>> {
    KernelFilter::new(kernel, Gaussian::new(gain)?, Dynamics::Forgetting(1.0), Admit::Quantise { radius }, evict, taps)
}

pub(super) const POISSON: Recipe = Recipe {
    name: "poisson",
    aliases: &[],
    about: "KLMS for counts",
    reference: "Park, Seth, Van Vaerenbergh 2013",
    parameters: &[
        KERNEL,
        SIGMA,
        DEGREE,
        BUDGET,
        FLOOR,
        PROCESS_NOISE.preset(Preset::Is(0.1)),
        LAMBDA.preset(Preset::Is(1.0)),
        OFFSET.preset(Preset::Is(0.0)),
    ],
    likelihood: None,
    covariance: |_, _| 0.0,
    look: (Hue::Blue, Dash::Dashed),
    make: Make::Counts(build_poisson),
};

fn build_poisson(s: &Settings, taps: usize) -> Result<Discrete<Poisson>> {
    let model = Poisson::new(s.number(PROCESS_NOISE.name)?, s.number(OFFSET.name)?)?;
    bayesian_klms(s.kernel()?, model, s.number(LAMBDA.name)?, s.evict()?, taps)
}

pub(super) const BERNOULLI: Recipe = Recipe {
    name: "bernoulli",
    aliases: &[],
    about: "KLMS for bits",
    reference: "Park, Seth, Van Vaerenbergh 2013",
    parameters: &[
        KERNEL,
        SIGMA,
        DEGREE,
        BUDGET,
        FLOOR,
        PROCESS_NOISE.preset(Preset::Is(6.0)),
        LAMBDA.preset(Preset::Is(1.0)),
        OFFSET.preset(Preset::Is(0.0)),
    ],
    likelihood: None,
    covariance: |_, _| 0.0,
    look: (Hue::Orange, Dash::Dashed),
    make: Make::Bits(build_bernoulli),
};

fn build_bernoulli(s: &Settings, taps: usize) -> Result<Discrete<Bernoulli>> {
    let model = Bernoulli::new(s.number(PROCESS_NOISE.name)?, s.number(OFFSET.name)?)?;
    bayesian_klms(s.kernel()?, model, s.number(LAMBDA.name)?, s.evict()?, taps)
}

pub(super) const MULTINOMIAL: Recipe = Recipe {
    name: "multinomial",
    aliases: &[],
    about: "KLMS for classes",
    reference: "after Park, Seth, Van Vaerenbergh 2013",
    parameters: &[KERNEL, SIGMA, DEGREE, BUDGET, FLOOR, PROCESS_NOISE.preset(Preset::Is(6.0)), LAMBDA.preset(Preset::Is(1.0)), OFFSET],
    likelihood: None,
    covariance: |_, _| 0.0,
    look: (Hue::Pink, Dash::Dotted),
    make: Make::Classes(build_multinomial),
};

fn build_multinomial(s: &Settings, classes: usize, taps: usize) -> Result<Discrete<Multinomial>> {
    let mut offsets = s.list(OFFSET.name)?;
    if offsets.is_empty() {
        offsets = vec![0.0; classes];
    }
    if offsets.len() != classes {
        let expected = format!("one number for each of the {classes} classes");
        return Err(Error::parameter(OFFSET.name, expected, format!("{} of them", offsets.len())));
    }
    let model = Multinomial::new(s.number(PROCESS_NOISE.name)?, offsets)?;
    bayesian_klms(s.kernel()?, model, s.number(LAMBDA.name)?, s.evict()?, taps)
}

/// KLMS of the paper for counts ([`Poisson`]), bits ([`Bernoulli`]) or classes ([`Multinomial`], which it calls feasible), with forgetting.
pub fn bayesian_klms<T: Real, K: Kernel<T>, O: Observation<T>>(
    kernel: K,
    model: O,
    lambda: f64,
    evict: Evict,
    taps: usize,
) -> Result<KernelFilter<T, K, O>> {
    KernelFilter::new(kernel, model, Dynamics::Forgetting(lambda), Admit::Always, evict, taps)
}

/// The paper's steady-state tracking error of KLMS with a normalised kernel, `E[ζ²] = (σ_q² + η² σ_n²) / (η (2 − η))`: what remains between the true
/// function, whose weights walk with variance `drift` a step, and the filter's, in noise of variance `noise`.
pub(crate) fn steady_state_error(eta: f64, drift: f64, noise: f64) -> f64 {
    (drift + eta * eta * noise) / (eta * (2.0 - eta))
}
