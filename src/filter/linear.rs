//! The two linear filters with a covariance: recursive least squares and the exact Kalman filter of the paper's state-space model.

use num_complex::{Complex, Complex64};
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use super::covariance::{Covariance, Vector};
use super::registry::{Dash, Hue, Likelihood, Make, Preset, Recipe, Settings, below_one, shared::*};
use super::{Adaptive, Filter, MOST_SQUARED, Portrait, check_taps, require, state};
use crate::{Error, Real, Result};

/// What RLS and Kalman filters share: weights, covariance and scratch space, in double precision whatever `T` is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Linear {
    weights: Vec<Complex64>,
    covariance: Covariance,
    v: Vector,
    scratch: Vector,
    x: Vec<Complex64>,
    variance: f64,
}

impl Linear {
    fn new(taps: usize, prior: f64) -> Result<Self> {
        check_taps(taps, MOST_SQUARED)?;
        Ok(Self {
            weights: vec![Complex64::zero(); taps],
            covariance: Covariance::new(taps, prior),
            v: Vector::new(taps),
            scratch: Vector::new(taps),
            x: vec![Complex64::zero(); taps],
            variance: f64::NAN,
        })
    }

    fn reset(&mut self, prior: f64) {
        self.weights.fill(Complex64::zero());
        self.covariance.reset(prior);
        self.variance = f64::NAN;
    }

    /// `w·x`, with `x` kept for the update.
    fn predict<T: Real>(&mut self, x: &[Complex<T>]) -> Complex64 {
        assert_eq!(x.len(), self.weights.len(), "input length");
        self.x.iter_mut().zip(x).for_each(|(wide, x)| *wide = Complex64::new(x.re.wide(), x.im.wide()));
        self.weights.iter().zip(&self.x).map(|(w, x)| w * x).sum()
    }

    /// One observation with error `e` and noise `noise`; then the covariance is multiplied by `inflate` and kept below `limit`. Observations that would
    /// overflow are skipped; a covariance that rounding has made indefinite starts again from `prior`.
    fn update(&mut self, e: Complex64, noise: f64, inflate: f64, limit: f64, prior: f64) {
        let s = self.covariance.times_conj(&self.x, &mut self.v);
        let factor = 1.0 / (noise + s);
        if s < 0.0 {
            self.covariance.reset(prior);
            return;
        }
        let step = e * factor;
        if !(s.is_finite() && step.re.is_finite() && step.im.is_finite()) {
            return;
        }
        for (w, (&re, &im)) in self.weights.iter_mut().zip(self.v.re.iter().zip(&self.v.im)) {
            *w += Complex64::new(re, im) * step;
        }
        self.covariance.downdate(&self.v, factor, inflate);
        self.covariance.limit(limit, &mut self.scratch);
    }

    fn check(&self, taps: usize) -> Result<()> {
        state::same_shape("weights", self.weights.len(), taps)?;
        let vectors = [&self.v.re, &self.v.im, &self.scratch.re, &self.scratch.im];
        if self.covariance.fits(taps) && self.x.len() == taps && vectors.iter().all(|v| v.len() == taps) {
            Ok(())
        } else {
            Err(Error::State("its covariance does not fit its weights".into()))
        }
    }
}

fn narrow<T: Real>(z: Complex64) -> Complex<T> {
    Complex::new(T::of(z.re), T::of(z.im))
}

pub(super) const RLS: Recipe = Recipe {
    name: "rls",
    aliases: &[],
    about: "recursive least squares, linear",
    reference: "Plackett 1950",
    parameters: &[LAMBDA.preset(Preset::Is(0.98)), REGULARIZATION],
    likelihood: None,
    covariance: |_, taps| taps as f64,
    look: (Hue::Grey, Dash::Dashed),
    make: Make::Filter(build_rls, build_rls),
};

fn build_rls<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    Ok(Box::new(Rls::new(taps, s.number(LAMBDA.name)?, s.number(REGULARIZATION.name)?)?))
}

/// RLS with forgetting `lambda` and `P₀ = I / regularization`: `g = P conj(x) / (lambda + x P conj(x))`, `w += g (y − p)`.
///
/// Plackett 1950; Haykin, *Adaptive Filter Theory*. Deviates in one thing: no variance grows beyond a hundred times its prior, so that directions
/// that the input does not excite stay bounded. Cost is quadratic in the taps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rls {
    lambda: f64,
    regularization: f64,
    linear: Linear,
}

impl Rls {
    /// `taps` weights, forgetting `lambda` in (0, 1], `regularization` in units of input power.
    pub fn new(taps: usize, lambda: f64, regularization: f64) -> Result<Self> {
        require(regularization > 0.0 && (1.0 / regularization).is_finite(), "regularization", "positive", regularization)?;
        let mut rls = Self { lambda, regularization, linear: Linear::new(taps, 1.0 / regularization)? };
        rls.set("lambda", lambda)?;
        Ok(rls)
    }

    /// The weights, that of the newest sample first.
    pub fn weights(&self) -> &[Complex64] {
        &self.linear.weights
    }

    fn prior(&self) -> f64 {
        1.0 / self.regularization
    }

    /// Whether all that was read back has the sizes of `other`.
    pub(super) fn fits(&self, other: &Self) -> bool {
        self.linear.check(other.linear.weights.len()).is_ok()
    }
}

impl Adaptive for Rls {
    fn size(&self) -> usize {
        self.linear.weights.len()
    }

    fn reset(&mut self) {
        self.linear.reset(self.prior());
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        if name != "lambda" {
            return Err(Error::NotApplicable { filter: "rls".into(), name: name.into(), known: vec!["lambda".into()] });
        }
        require(value > 0.0 && value <= 1.0, name, "above 0 and at most 1", value)?;
        self.lambda = value;
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode("rls", self)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let saved: Self = state::decode("rls", bytes)?;
        saved.linear.check(self.size())?;
        *self = saved;
        Ok(())
    }
}

impl<T: Real> Filter<T> for Rls {
    fn taps(&self) -> usize {
        self.linear.weights.len()
    }

    fn predict(&mut self, x: &[Complex<T>]) -> Complex<T> {
        narrow(self.linear.predict(x))
    }

    fn adapt(&mut self, x: &[Complex<T>], y: Complex<T>) -> Complex<T> {
        let p = self.linear.predict(x);
        let e = Complex64::new(y.re.wide(), y.im.wide()) - p;
        let prior = self.prior();
        self.linear.update(e, self.lambda, 1.0 / self.lambda, 100.0 * prior, prior);
        narrow(p)
    }

    fn portrait(&self) -> Portrait {
        Portrait::of_taps(self.weights())
    }
}

pub(super) const KALMAN: Recipe = Recipe {
    name: "kalman",
    aliases: &[],
    about: "exact Kalman filter of the state-space model, linear",
    reference: "Kalman 1960",
    parameters: &[LAMBDA.preset(Preset::Is(0.9999)).within(below_one(1e-7, 1e-2)), PROCESS_NOISE, NOISE.preset(Preset::Power(0.05))],
    likelihood: Some(Likelihood::Exact),
    covariance: |_, taps| taps as f64,
    look: (Hue::Olive, Dash::Mixed),
    make: Make::Filter(build_kalman, build_kalman),
};

fn build_kalman<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    Ok(Box::new(Kalman::new(taps, s.number(LAMBDA.name)?, s.number(PROCESS_NOISE.name)?, s.number(NOISE.name)?)?))
}

/// The exact Kalman filter of `w' = λw + q`, `y = x·w + n` with `q ~ N(0, process_noise · I)`, `n ~ N(0, noise)`, starting from `P = I`.
///
/// The paper's exact recursion with its covariance (`Σ + σ_d² I` in both lines), also known as extended RLS. It knows the variance of its predictions.
/// Deviates in one thing: no variance grows beyond a million, which only the random walk (`λ = 1`) without excitation would reach.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kalman {
    lambda: f64,
    process_noise: f64,
    noise: f64,
    linear: Linear,
}

impl Kalman {
    const PRIOR: f64 = 1.0;
    const LIMIT: f64 = 1e6;

    /// `taps` weights; `lambda` in (0, 1]; variances of the weights' diffusion a sample and of the observation noise.
    pub fn new(taps: usize, lambda: f64, process_noise: f64, noise: f64) -> Result<Self> {
        let mut kalman = Self { lambda, process_noise, noise, linear: Linear::new(taps, Self::PRIOR)? };
        kalman.set("lambda", lambda)?;
        kalman.set("process-noise", process_noise)?;
        kalman.set("noise", noise)?;
        Ok(kalman)
    }

    /// The weights, that of the newest sample first.
    pub fn weights(&self) -> &[Complex64] {
        &self.linear.weights
    }
}

impl Adaptive for Kalman {
    fn size(&self) -> usize {
        self.linear.weights.len()
    }

    fn reset(&mut self) {
        self.linear.reset(Self::PRIOR);
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        let (slot, ok, expected) = match name {
            "lambda" => (&mut self.lambda, value > 0.0 && value <= 1.0, "above 0 and at most 1"),
            "process-noise" => (&mut self.process_noise, value >= 0.0 && value.is_finite(), "at least 0"),
            "noise" => (&mut self.noise, value > 0.0 && value.is_finite(), "positive"),
            _ => {
                let known = vec!["lambda".into(), "process-noise".into(), "noise".into()];
                return Err(Error::NotApplicable { filter: "kalman".into(), name: name.into(), known });
            }
        };
        require(ok, name, expected, value)?;
        *slot = value;
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode("kalman", self)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let saved: Self = state::decode("kalman", bytes)?;
        saved.linear.check(self.size())?;
        *self = saved;
        Ok(())
    }
}

impl<T: Real> Filter<T> for Kalman {
    fn taps(&self) -> usize {
        self.linear.weights.len()
    }

    fn predict(&mut self, x: &[Complex<T>]) -> Complex<T> {
        let p = self.linear.predict(x) * self.lambda;
        let power: f64 = self.linear.x.iter().map(|x| x.norm_sqr()).sum();
        let s = self.linear.covariance.times_conj(&self.linear.x, &mut self.linear.v);
        self.linear.variance = self.lambda * self.lambda * s + self.process_noise * power + self.noise;
        narrow(p)
    }

    fn adapt(&mut self, x: &[Complex<T>], y: Complex<T>) -> Complex<T> {
        let p: Complex<T> = self.predict(x);
        let y = Complex64::new(y.re.wide(), y.im.wide());
        // Time passes whether or not the sample is usable.
        if self.lambda != 1.0 {
            let lambda = self.lambda;
            self.linear.weights.iter_mut().for_each(|w| *w *= lambda);
        }
        self.linear.covariance.diffuse(self.lambda * self.lambda, self.process_noise);
        let e = y - self.linear.weights.iter().zip(&self.linear.x).map(|(w, x)| w * x).sum::<Complex64>();
        self.linear.update(e, self.noise, 1.0, Self::LIMIT, Self::PRIOR);
        p
    }

    fn variance(&self) -> Option<T> {
        Some(T::of(self.linear.variance))
    }

    fn portrait(&self) -> Portrait {
        Portrait::of_taps(self.weights())
    }
}
