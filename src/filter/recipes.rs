//! The named members of the family: each a choice of dynamics, observation model and dictionary policy over the one loop.

use super::{Admit, Dynamics, Evict, KernelFilter};
use crate::kernel::Kernel;
use crate::observation::{Bernoulli, Gain, Gaussian, Multinomial, Poisson};
use crate::{Real, Result};

/// A filter of the family with Gaussian observations.
pub type GaussianKernelFilter<T, K> = KernelFilter<T, K, Gaussian<T>>;

/// KLMS: Liu, Pokharel, Príncipe, *The kernel least-mean-square algorithm*, 2008; the paper's KLMS equation (with `e_{k+1} φ(x_{k+1})`).
///
/// Unlike KAFBOX's, it goes on learning when a budget is full.
pub fn klms<T: Real, K: Kernel<T>>(kernel: K, gain: Gain, evict: Evict, taps: usize) -> Result<GaussianKernelFilter<T, K>> {
    fklms(kernel, gain, 1.0, evict, taps)
}

/// fKLMS, KLMS with forgetting: Park, Seth, Van Vaerenbergh, *Bayesian extensions of kernel least mean squares*, the fKLMS equation, whose `eta` is
/// the diffusion-to-noise ratio: `p = λ f(x)`, decay all coefficients by `λ`, append `gain · (y − p)`.
pub fn fklms<T: Real, K: Kernel<T>>(kernel: K, gain: Gain, lambda: f64, evict: Evict, taps: usize) -> Result<GaussianKernelFilter<T, K>> {
    KernelFilter::new(kernel, Gaussian::new(gain)?, Dynamics::Forgetting(lambda), Admit::Always, evict, taps)
}

/// NORMA: Kivinen, Smola, Williamson, *Online learning with kernels*, 2004: `p = f(x)`, decay by `1 − gain·ridge`, append `gain · (y − p)`.
///
/// The error is taken before the decay, as published; KAFBOX takes it after, which makes it fKLMS.
pub fn norma<T: Real, K: Kernel<T>>(kernel: K, gain: Gain, ridge: f64, evict: Evict, taps: usize) -> Result<GaussianKernelFilter<T, K>> {
    KernelFilter::new(kernel, Gaussian::new(gain)?, Dynamics::Ridge(ridge), Admit::Always, evict, taps)
}

/// QKLMS: Chen, Zhao, Zhu, Príncipe, *Quantized kernel least mean square algorithm*, 2012. The nearest centre within `radius` absorbs the step.
pub fn qklms<T: Real, K: Kernel<T>>(kernel: K, gain: Gain, radius: f64, evict: Evict, taps: usize) -> Result<GaussianKernelFilter<T, K>> {
    KernelFilter::new(kernel, Gaussian::new(gain)?, Dynamics::Forgetting(1.0), Admit::Quantise { radius }, evict, taps)
}

/// Poisson-KLMS of the paper, for counts, with forgetting.
pub fn poisson_klms<T: Real, K: Kernel<T>>(
    kernel: K,
    model: Poisson,
    lambda: f64,
    evict: Evict,
    taps: usize,
) -> Result<KernelFilter<T, K, Poisson>> {
    KernelFilter::new(kernel, model, Dynamics::Forgetting(lambda), Admit::Always, evict, taps)
}

/// Bernoulli-KLMS of the paper, for bits, with forgetting.
pub fn bernoulli_klms<T: Real, K: Kernel<T>>(
    kernel: K,
    model: Bernoulli,
    lambda: f64,
    evict: Evict,
    taps: usize,
) -> Result<KernelFilter<T, K, Bernoulli>> {
    KernelFilter::new(kernel, model, Dynamics::Forgetting(lambda), Admit::Always, evict, taps)
}

/// Multinomial-KLMS, which the paper calls feasible, for classes, with forgetting.
pub fn multinomial_klms<T: Real, K: Kernel<T>>(
    kernel: K,
    model: Multinomial,
    lambda: f64,
    evict: Evict,
    taps: usize,
) -> Result<KernelFilter<T, K, Multinomial>> {
    KernelFilter::new(kernel, model, Dynamics::Forgetting(lambda), Admit::Always, evict, taps)
}

/// The paper's steady-state tracking error of KLMS with a normalised kernel, `E[ζ²] = (σ_q² + η² σ_n²) / (η (2 − η))`: what remains between the true
/// function, whose weights walk with variance `drift` a step, and the filter's, in noise of variance `noise`.
///
/// ```
/// use kaflow::filter::steady_state_error;
/// // Standing still, the error vanishes with eta; moving, there is a best eta in between.
/// assert!(steady_state_error(1e-6, 0.0, 0.1) < 1e-7);
/// assert!(steady_state_error(0.1, 1e-3, 0.1) < steady_state_error(0.01, 1e-3, 0.1));
/// assert!(steady_state_error(0.1, 1e-3, 0.1) < steady_state_error(0.9, 1e-3, 0.1));
/// ```
pub fn steady_state_error(eta: f64, drift: f64, noise: f64) -> f64 {
    (drift + eta * eta * noise) / (eta * (2.0 - eta))
}
