//! Variances from data: expectation-maximisation for the state-space model behind the Gaussian filters.
//!
//! The model is that of [`Kalman`](super::Kalman): `w' = λw + q`, `y = x·w + n`, with `q ~ N(0, σ_d² I)` and `n ~ N(0, σ_n²)`, circular where the data are
//! complex. [`estimate`] finds the `σ_d²`, `σ_n²` and, if asked, the `λ` under which the observations are most likely; the paper leaves this as future work.
//!
//! Each iteration smooths (what all observations say about the disturbances `q` and `n` of every step) and sets the variances to the smoothed
//! mean squares, which never makes the data less likely (Dempster, Laird, Rubin 1977; Shumway, Stoffer 1982). The smoother is that of disturbances
//! (Koopman 1993): it gives the same moments as the Rauch-Tung-Striebel recursion without inverting a covariance, so a step costs `O(d²)` and keeps
//! only its gain. Steps are extrapolated by SQUAREM (Varadhan, Roland 2008), because plain EM crawls where `σ_d²` is small.
//!
//! [`Features`] carries kernels there: with `φ(c)ᴴφ(x) ≈ k(c, x)` a kernel filter is this model on `φ(x)`.

mod features;
mod hermitian;

use std::cell::Cell;

use num_complex::Complex64;
use num_traits::Zero;

use super::covariance::{Covariance, Vector};
use super::finite;
use crate::{Error, Result};
pub(crate) use features::Features;
use hermitian::Hermitian;

/// The state-space model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Model {
    /// What remains of a weight after a sample, at most 1.
    pub lambda: f64,
    /// `σ_d²`, by which each weight diffuses in a sample.
    pub process_noise: f64,
    /// `σ_n²`, the variance of the observation noise.
    pub noise: f64,
}

/// What [`estimate`] may change besides the variances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Forgetting {
    /// `λ` as given.
    Fixed(f64),
    /// `λ` too, from this one; costs `O(d³)` a step and `d²` numbers of memory.
    Learned(f64),
}

/// What [`estimate`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// The most likely model.
    pub model: Model,
    /// Log likelihood of the observations under it, per sample; of a real-valued set it counts twice, and no constants are in it.
    pub log_likelihood: f64,
    /// The exact filter's variance of its prediction over the noise variance, `E[x P xᴴ] / σ_n²`, averaged over the second half.
    ///
    /// KLMS has no covariance: it believes its weights to be exact but for the last diffusion. So this, not `σ_d²/σ_n²`, is the diffusion ratio with
    /// which it steps as far as the exact filter does.
    pub gain_ratio: f64,
    /// Smoothings that it took.
    pub iterations: usize,
}

/// Smoothings at most.
const ITERATIONS: usize = 150;
/// Converged when no variance moves by more than this part.
const TOLERANCE: f64 = 1e-3;
/// No variance falls below this part of its scale.
const SMALLEST: f64 = 1e-14;

/// The most likely model of `targets`, given the inputs in `rows`, one after the other. Samples that are not finite are taken as missing.
pub(crate) fn estimate(rows: &[Complex64], targets: &[Complex64], forgetting: Forgetting) -> Result<Estimate> {
    let n = targets.len();
    if n < 10 || rows.is_empty() || !rows.len().is_multiple_of(n) {
        return Err(Error::parameter("samples", "at least 10, each with an input of the same length", n));
    }
    let smoother = Smoother::new(rows, targets)?;
    let (lambda, learn) = match forgetting {
        Forgetting::Fixed(lambda) => (lambda, false),
        Forgetting::Learned(lambda) => (lambda.min(1.0 - 1e-6), true),
    };
    if !(lambda > 0.0 && lambda <= 1.0) {
        return Err(Error::parameter("lambda", "above 0 and at most 1", lambda));
    }
    // The first guess errs on the fast side: from there the variances fall quickly, from below they rise slowly.
    let guess = Model { lambda, process_noise: 1e-2 * smoother.weight_scale, noise: 0.1 * smoother.target_scale };
    let mut at = smoother.point(guess);
    let iterations = Cell::new(0);
    let smooth = |at: Point| {
        iterations.set(iterations.get() + 1);
        smoother.step(at, learn)
    };
    let mut first = smooth(at);
    let mut best;
    loop {
        let second = smooth(first.next);
        best = second;
        let r = minus(first.next, at);
        let v = minus(minus(second.next, first.next), r);
        if norm(r) < TOLERANCE || iterations.get() >= ITERATIONS {
            break;
        }
        // SQUAREM, its third step length, on logarithms.
        let length = (norm(r) / norm(v)).min(50.0);
        if length > 1.0 {
            let far = [0, 1, 2].map(|i| at[i] + 2.0 * length * r[i] + length * length * v[i]);
            let tried = smooth(smoother.bounded(far));
            if tried.log_likelihood >= second.log_likelihood {
                best = tried;
            }
        }
        at = best.next;
        first = smooth(at);
    }
    Ok(Estimate {
        model: model(best.next),
        log_likelihood: best.log_likelihood / n as f64,
        gain_ratio: best.gain_ratio,
        iterations: iterations.get(),
    })
}

/// Logarithms of `1 − λ`, `σ_d²` and `σ_n²`.
type Point = [f64; 3];

fn minus(a: Point, b: Point) -> Point {
    [0, 1, 2].map(|i| a[i] - b[i])
}

fn norm(a: Point) -> f64 {
    a.iter().map(|a| a * a).sum::<f64>().sqrt()
}

/// Stands for `λ = 1`.
const NEVER: f64 = -60.0;

fn model(at: Point) -> Model {
    let lambda = if at[0] <= NEVER { 1.0 } else { 1.0 - at[0].exp() };
    Model { lambda, process_noise: at[1].exp(), noise: at[2].exp() }
}

/// One smoothing.
#[derive(Clone, Copy)]
struct Step {
    next: Point,
    log_likelihood: f64,
    gain_ratio: f64,
}

struct Smoother<'a> {
    rows: &'a [Complex64],
    targets: &'a [Complex64],
    d: usize,
    usable: Vec<bool>,
    /// Mean power of the targets, and the variance of weights that would give it.
    target_scale: f64,
    weight_scale: f64,
}

/// What the forward pass keeps of every sample: the error over its variance, one over that variance (0 where the sample is missing), and the gain.
struct Forward {
    scaled_error: Vec<Complex64>,
    precision: Vec<f64>,
    gain: Vec<Complex64>,
    /// Predicted mean and covariance, only where `λ` is learned.
    states: Vec<(Vec<Complex64>, Covariance)>,
    log_likelihood: f64,
    gain_ratio: f64,
}

impl<'a> Smoother<'a> {
    fn new(rows: &'a [Complex64], targets: &'a [Complex64]) -> Result<Self> {
        let d = rows.len() / targets.len();
        let usable: Vec<bool> = targets.iter().zip(rows.chunks(d)).map(|(&y, x)| finite(y) && x.iter().all(|&x| finite(x))).collect();
        let count = usable.iter().filter(|u| **u).count().max(1) as f64;
        let sum = |value: &dyn Fn(usize) -> f64| (0..targets.len()).filter(|&k| usable[k]).map(value).sum::<f64>() / count;
        let target_scale = sum(&|k| targets[k].norm_sqr());
        let input_scale = sum(&|k| rows[k * d..][..d].iter().map(Complex64::norm_sqr).sum());
        let weight_scale = target_scale / input_scale;
        if !(target_scale > 0.0 && input_scale > 0.0 && weight_scale.is_normal() && target_scale.is_normal()) {
            return Err(Error::Data("there is nothing to estimate variances from: input or target is silent or out of range".into()));
        }
        Ok(Self { rows, targets, d, usable, target_scale, weight_scale })
    }

    fn point(&self, model: Model) -> Point {
        let forgets = if model.lambda < 1.0 { (1.0 - model.lambda).ln() } else { NEVER };
        self.bounded([forgets, model.process_noise.ln(), model.noise.ln()])
    }

    fn bounded(&self, at: Point) -> Point {
        let floor = |scale: f64| (SMALLEST * scale).ln();
        let forgets = if at[0] <= NEVER { NEVER } else { at[0].clamp(-20.0, -0.1) };
        [
            forgets,
            at[1].clamp(floor(self.weight_scale), self.weight_scale.ln() + 10.0),
            at[2].clamp(floor(self.target_scale), self.target_scale.ln() + 10.0),
        ]
    }

    /// The exact filter.
    fn forward(&self, model: Model, keep: bool) -> Forward {
        let (n, d) = (self.targets.len(), self.d);
        let mut out = Forward {
            scaled_error: vec![Complex64::zero(); n],
            precision: vec![0.0; n],
            gain: vec![Complex64::zero(); n * d],
            states: Vec::new(),
            log_likelihood: 0.0,
            gain_ratio: 0.0,
        };
        let mut mean = vec![Complex64::zero(); d];
        let mut covariance = Covariance::new(d, self.weight_scale);
        let mut v = Vector::new(d);
        let mut late = 0.0;
        for k in 0..n {
            mean.iter_mut().for_each(|m| *m *= model.lambda);
            covariance.diffuse(model.lambda * model.lambda, model.process_noise);
            if keep {
                out.states.push((mean.clone(), covariance.clone()));
            }
            if !self.usable[k] {
                continue;
            }
            let x = &self.rows[k * d..][..d];
            let signal = covariance.times_conj(x, &mut v).max(0.0);
            let precision = 1.0 / (signal + model.noise);
            let error = self.targets[k] - mean.iter().zip(x).map(|(m, x)| m * x).sum::<Complex64>();
            out.log_likelihood += precision.ln() - error.norm_sqr() * precision;
            out.scaled_error[k] = error * precision;
            out.precision[k] = precision;
            for (i, (gain, m)) in out.gain[k * d..][..d].iter_mut().zip(&mut mean).enumerate() {
                *gain = Complex64::new(v.re[i], v.im[i]) * precision;
                *m += *gain * error;
            }
            covariance.downdate(&v, precision, 1.0);
            if k >= n / 2 {
                out.gain_ratio += signal / model.noise;
                late += 1.0;
            }
        }
        out.gain_ratio /= f64::max(late, 1.0);
        out
    }

    /// Smooths under the model at `at`: what EM makes of it, and how likely the observations are under it.
    ///
    /// Backwards, with `L = λ(1 − K x)`: `r ← xᴴ u + λ r` and `N ← xᴴ x D + λ²N − g x − xᴴ gᴴ`, where `g = λ²N K`, `u = e/F − λ Kᴴr`, `D = 1/F + Kᴴg`. Then
    /// `E[n|y] = σ_n² u`, `var = σ_n² − σ_n⁴ D`; `E[q|y] = σ_d² r`, `cov = σ_d² − σ_d⁴ N`.
    fn step(&self, at: Point, learn_lambda: bool) -> Step {
        let model = model(at);
        let (n, d) = (self.targets.len(), self.d);
        let forward = self.forward(model, learn_lambda);
        let Model { lambda, process_noise, noise } = model;
        let mut back = Backward { r: vec![Complex64::zero(); d], information: Hermitian::new(d) };
        let (mut diffusion, mut residue, mut observed) = (0.0, 0.0, 0.0);
        let mut moments = Moments::default();
        for k in (0..n).rev() {
            let (x, gain) = (&self.rows[k * d..][..d], &forward.gain[k * d..][..d]);
            if k + 1 < n {
                let power: f64 = back.r.iter().map(Complex64::norm_sqr).sum();
                diffusion += process_noise * process_noise * (power - back.information.trace()) + d as f64 * process_noise;
            }
            let after = (learn_lambda && k + 1 < n).then(|| back.clone());
            if self.usable[k] {
                let u = forward.scaled_error[k] - lambda * gain.iter().zip(&back.r).map(|(g, r)| g.conj() * r).sum::<Complex64>();
                back.information.scale(lambda * lambda);
                let g = back.information.times(gain);
                let precision = forward.precision[k] + gain.iter().zip(&g).map(|(k, g)| (k.conj() * g).re).sum::<f64>();
                residue += noise * noise * (u.norm_sqr() - precision) + noise;
                observed += 1.0;
                for (r, x) in back.r.iter_mut().zip(x) {
                    *r = x.conj() * u + *r * lambda;
                }
                back.information.observe(x, &g, precision);
            } else {
                back.r.iter_mut().for_each(|r| *r *= lambda);
                back.information.scale(lambda * lambda);
            }
            if let Some(after) = after {
                moments.add(model, &forward.states[k], &after, &back, gain, forward.precision[k]);
            }
        }
        let transitions = (n - 1) as f64;
        let mut next = [at[0], 0.0, (residue / f64::max(observed, 1.0)).max(f64::MIN_POSITIVE).ln()];
        if learn_lambda && moments.power > 0.0 {
            let moved = (lambda + moments.drift / moments.power).clamp(0.0, 1.0);
            // Σ E‖w' − λ'w‖² = Σ E‖q + (λ − λ')w‖².
            diffusion += 2.0 * (lambda - moved) * moments.drift + (lambda - moved).powi(2) * moments.power;
            next[0] = (1.0 - moved).max(1e-300).ln().max(NEVER + 1.0);
        }
        next[1] = (diffusion / (transitions * d as f64)).max(f64::MIN_POSITIVE).ln();
        Step { next: self.bounded(next), log_likelihood: forward.log_likelihood, gain_ratio: forward.gain_ratio }
    }
}

/// `Σ Re E[wᴴq]` and `Σ E‖w‖²`: what the closed form of `λ` needs.
#[derive(Default)]
struct Moments {
    drift: f64,
    power: f64,
}

impl Moments {
    /// Takes in one step, given the filter's state before its observation and the smoother's after and before it.
    fn add(
        &mut self,
        model: Model,
        state: &(Vec<Complex64>, Covariance),
        after: &Backward,
        now: &Backward,
        gain: &[Complex64],
        precision: f64,
    ) {
        let (mean, covariance) = state;
        let d = mean.len();
        let p = |i: usize, j: usize| covariance.at(i, j);
        // E[w|y] = m + P r, cov[w|y] = P − P N P.
        let smooth: Vec<Complex64> = (0..d).map(|i| mean[i] + (0..d).map(|j| p(i, j) * now.r[j]).sum::<Complex64>()).collect();
        let mut spread = 0.0;
        for i in 0..d {
            let row: Vec<Complex64> = (0..d).map(|j| (0..d).map(|l| p(i, l) * now.information.at(l, j)).sum()).collect();
            spread += p(i, i).re - (0..d).map(|j| (row[j] * p(j, i)).re).sum::<f64>();
        }
        self.power += smooth.iter().map(Complex64::norm_sqr).sum::<f64>() + spread.max(0.0);
        // cov[q, w|y] = −σ_d² N λ(P − K F Kᴴ).
        let trace: f64 = (0..d).map(|i| (0..d).map(|j| (after.information.at(i, j) * p(j, i)).re).sum::<f64>()).sum();
        let seen: f64 = if precision > 0.0 {
            let turned = after.information.times(gain);
            gain.iter().zip(&turned).map(|(k, t)| (k.conj() * t).re).sum::<f64>() / precision
        } else {
            0.0
        };
        let mean_part: f64 = smooth.iter().zip(&after.r).map(|(w, r)| (w.conj() * r).re).sum();
        self.drift += model.process_noise * (mean_part - model.lambda * (trace - seen));
    }
}

/// What the observations after a step say about it: `r` and `N` of the smoother.
#[derive(Clone)]
struct Backward {
    r: Vec<Complex64>,
    information: Hermitian,
}

#[cfg(test)]
#[path = "../../tests/unit/filter/em.rs"]
mod tests;
