use serde::{Deserialize, Serialize};

use super::poisson::wright_omega;
use super::{Observation, check_diffusion, check_offset};
use crate::{Error, Real, Result};

/// One of K classes: `P(y=k) = softmax(f)_k`, with one latent function for each class.
///
/// Two classes are the Bernoulli model of the difference `f_1 − f_0` with twice the diffusion variance, since the difference diffuses with
/// the sum of both. `offsets` are the latent values where nothing was learned: forgetting pulls towards `softmax(offsets)`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Multinomial {
    diffusion: f64,
    offsets: Vec<f64>,
}

impl Multinomial {
    /// Diffusion variance `σ_d²` of the weights, and one offset a class: zeros where no class is to be preferred.
    pub fn new(diffusion: f64, offsets: Vec<f64>) -> Result<Self> {
        if offsets.len() < 2 {
            return Err(Error::parameter("classes", "at least 2", offsets.len()));
        }
        offsets.iter().try_for_each(|&o| check_offset(o).map(drop))?;
        Ok(Self { diffusion: check_diffusion(diffusion)?, offsets })
    }
}

impl<T: Real> Observation<T> for Multinomial {
    /// The class, counted from 0.
    type Target = usize;
    /// The probability of each class.
    type Mean<'a> = &'a [T];

    const NAME: &'static str = "multinomial";
    const COMPLEX: bool = false;
    const PARAMETERS: &'static [&'static str] = &["process-noise"];

    fn width(&self) -> usize {
        self.offsets.len()
    }

    fn admissible(&self, y: usize) -> bool {
        y < self.offsets.len()
    }

    fn prior(&self, latent: &mut [T]) {
        for (f, &o) in latent.iter_mut().zip(&self.offsets) {
            *f = T::of(o);
        }
    }

    fn step(&self, f: &[T], y: usize, norm: T, alpha: &mut [T]) {
        // As in the Poisson model, κ = k(x,x) acts like a larger diffusion on steps that are smaller by as much.
        let (norm, latent) = (norm.wide(), |k: usize| f[k].wide());
        let s = norm * self.diffusion;
        if !(s > 0.0 && s.is_finite()) {
            alpha.fill(T::zero());
            return;
        }
        let c = level(f.len(), latent, y, s);
        let mut others = 0.0;
        for k in (0..f.len()).filter(|&k| k != y) {
            let a = -wright_omega(s.ln() + latent(k) - c);
            others += a;
            alpha[k] = T::of(a / norm);
        }
        alpha[y] = T::of(-others / norm);
    }

    fn gain(&self, _: T) -> T {
        T::of(self.diffusion)
    }

    fn mean<'a>(&'a self, f: &'a mut [T]) -> &'a [T] {
        let top = f.iter().copied().fold(T::neg_infinity(), T::max);
        let mut total = T::zero();
        for f in f.iter_mut() {
            *f = (*f - top).exp();
            total += *f;
        }
        f.iter_mut().for_each(|f| *f /= total);
        f
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "process-noise" => self.diffusion = check_diffusion(value)?,
            _ => return Err(Error::unknown("parameter", name, <Self as Observation<T>>::PARAMETERS)),
        }
        Ok(())
    }
}

/// The level of the multinomial MAP step `α_k = s (y_k − softmax(f+α)_k)` for an observed class `y`: the `c` with `Σ_k ω(ln s + f_k − c + s y_k) = s`.
///
/// Given the level `c = log Σ exp(f_k+α_k)` each class is a Poisson step, `α_k = s y_k − W(s exp(f_k − c + s y_k))`; the level at which the
/// probabilities add up to 1 is the root of a convex, falling function of one variable.
fn level(classes: usize, f: impl Fn(usize) -> f64, y: usize, s: f64) -> f64 {
    let omega = |k: usize, c: f64| wright_omega(s.ln() + (f(k) - c) + if k == y { s } else { 0.0 });
    // No probability is above 1, which bounds c from below: f_y + α_y ≤ c with α_y ≥ 0, and f_k − s ≤ f_k + α_k ≤ c.
    let mut c = (0..classes).map(|k| f(k) - if k == y { 0.0 } else { s }).fold(f64::NEG_INFINITY, f64::max);
    for _ in 0..200 {
        let (mut excess, mut slope) = (-s, 0.0);
        for k in 0..classes {
            let u = omega(k, c);
            excess += u;
            slope += u / (1.0 + u);
        }
        // Convex and falling: Newton from the left goes right in every step until rounding.
        let step = excess / slope;
        if step <= 0.0 || !step.is_finite() {
            break;
        }
        c += step;
        if step <= 1e-15 * (1.0 + c.abs()) {
            break;
        }
    }
    c
}
