use serde::{Deserialize, Serialize};

use super::poisson::unnormalised;
use super::{Observation, Scalar};
use crate::{Real, Result};

/// Yes or no: `P(y=1) = logistic(f)`.
///
/// `offset` is the latent value where nothing was learned: forgetting pulls the probability towards `logistic(offset)`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bernoulli(Scalar);

impl Bernoulli {
    /// Diffusion variance `σ_d²` of the weights, and the offset of the log odds.
    pub fn new(diffusion: f64, offset: f64) -> Result<Self> {
        Ok(Self(Scalar::new(diffusion, offset)?))
    }
}

impl<T: Real> Observation<T> for Bernoulli {
    type Target = bool;
    /// `P(y=1)`.
    type Mean<'a> = T;

    const NAME: &'static str = "bernoulli";
    const COMPLEX: bool = false;
    const PARAMETERS: &'static [&'static str] = Scalar::PARAMETERS;

    fn width(&self) -> usize {
        1
    }

    fn admissible(&self, _: bool) -> bool {
        true
    }

    fn prior(&self, latent: &mut [T]) {
        latent[0] = T::of(self.0.offset);
    }

    fn step(&self, f: &[T], y: bool, norm: T, alpha: &mut [T]) {
        alpha[0] = T::of(unnormalised(norm.wide(), self.0.diffusion, |s| bernoulli_step(y, f[0].wide(), s)));
    }

    fn gain(&self, _: T) -> T {
        T::of(self.0.diffusion)
    }

    fn mean<'a>(&'a self, f: &'a mut [T]) -> T {
        T::of(logistic(f[0].wide()))
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        self.0.set(name, value)
    }
}

/// `1 / (1 + e⁻ᶠ)`, with full relative precision in both tails.
pub(crate) fn logistic(f: f64) -> f64 {
    if f >= 0.0 {
        1.0 / (1.0 + (-f).exp())
    } else {
        let e = f.exp();
        e / (1.0 + e)
    }
}

/// The Bernoulli MAP step: the `α` that maximises `log P(y | logistic(f+α)) − α²/2s`, that is `α = s (y − logistic(f+α))`.
///
/// Newton's method alone cycles for ever for some inputs (y = 0, f = 5.9, s = 476); here the root stays bracketed, and the bracket is
/// halved whenever Newton leaves it or does not halve its step. Finite for every finite input with `s > 0`.
pub(crate) fn bernoulli_step(y: bool, f: f64, s: f64) -> f64 {
    if !y {
        return -bernoulli_step(true, -f, s);
    }
    let map = |a: f64| s * logistic(-(f + a));
    // α = map(α) with map falling: map(0) is too much, map(map(0)) too little.
    let mut high = map(0.0);
    let mut low = map(high);
    let mut a = 0.5 * (low + high);
    let mut last_step = f64::INFINITY;
    for _ in 0..2000 {
        let p = logistic(-(f + a));
        let value = a - s * p;
        if value > 0.0 {
            high = a;
        } else {
            low = a;
        }
        let newton = a - value / (1.0 + s * p * (1.0 - p));
        let step = (newton - a).abs();
        let next = if newton > low && newton < high && step < 0.5 * last_step {
            last_step = step;
            newton
        } else {
            last_step = f64::INFINITY;
            low + 0.5 * (high - low)
        };
        if (next - a).abs() <= f64::EPSILON * a.abs() || next <= low || next >= high {
            return next.clamp(low, high);
        }
        a = next;
    }
    a
}
