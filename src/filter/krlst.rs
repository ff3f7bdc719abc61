//! Kernel recursive least squares with a tracker's forgetting.

mod process;

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use self::process::{Process, Projection};
use super::registry::{Dash, Hue, Make, Preset, Recipe, Settings, Unit, scaled, shared::*};
use super::{Adaptive, Filter, MOST_SQUARED, MOST_TAPS, Portrait, Weight, check_budget, check_taps, finite, require, state};
use crate::kernel::{Centres, Kernel, Row};
use crate::{Error, Real, Result};

pub(super) const RECIPE: Recipe = Recipe {
    name: "krlst",
    aliases: &[],
    about: "kernel recursive least squares tracker, with variance",
    reference: "Van Vaerenbergh, Lazaro-Gredilla, Santamaria 2012",
    // Its noise is in units of the prior variance `k(x,x)`, whatever the power of the targets.
    parameters: &[
        KERNEL,
        SIGMA,
        DEGREE,
        LAMBDA.hammerstein(Preset::Is(0.995)),
        NOISE.within(scaled(1e-4, 1.0, Unit::Norm)).hammerstein(Preset::Power(0.2)),
        BUDGET.preset(Preset::Is(100.0)),
    ],
    likelihood: None,
    covariance: |s, _| s.number(BUDGET.name).unwrap_or(0.0),
    look: (Hue::Green, Dash::Solid),
    make: Make::Filter(build, build),
};

fn build<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    let budget = s.whole(BUDGET.name)?.unwrap_or(100);
    Ok(Box::new(KrlsT::new(s.kernel()?, s.number(LAMBDA.name)?, s.number(NOISE.name)?, budget, taps)?))
}

/// KRLS-T: a Gaussian process over at most `budget` basis points with back-to-the-prior forgetting, and its predictive variance.
///
/// Van Vaerenbergh, Lázaro-Gredilla, Santamaría, *Kernel recursive least-squares tracker for time-varying regression*, 2012. As in KAFBOX, the reported prediction
/// uses the state before forgetting; the jitter is 1e-6; when full, the point whose loss costs least, `|(Qμ)_i| / Q_ii`, is dropped. The real part of the
/// kernel is used, so that with a complex target a linear kernel gives widely linear functions; but a kernel whose functions [turn](Kernel::turns) with their input
/// has its complex covariance. The variance is scaled by the power that the data show.
/// Jitter and novelty are relative to `k(x,x)`. Matrices are in double precision. Cost is quadratic in the budget.
pub struct KrlsT<T: Real, K> {
    kernel: K,
    lambda: f64,
    noise: f64,
    budget: usize,
    taps: usize,
    memory: Memory<T>,
    process: Either,
    row: Row<T>,
    variance: f64,
}

/// The process with a covariance of the kernel's kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Either {
    Real(Process<f64>),
    Complex(Process<Complex<f64>>),
}

/// Does the same to either.
macro_rules! either {
    ($either:expr, $process:ident => $do:expr) => {
        match $either {
            Either::Real($process) => $do,
            Either::Complex($process) => $do,
        }
    };
}

/// What was learned beside the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
struct Memory<T: Real> {
    centres: Centres<T>,
    /// When each centre was admitted, counted in centres.
    born: Vec<u64>,
    admitted: u64,
    /// Power of the data against the prior's: squared errors over their expected size, and how many.
    power: (f64, f64),
}

impl<T: Real, K: Kernel<T>> KrlsT<T, K> {
    /// Forgetting `lambda` in (0, 1], noise variance in units of the kernel's values, at most `budget` points (cost grows with its square), vectors of `taps`.
    pub fn new(kernel: K, lambda: f64, noise: f64, budget: usize, taps: usize) -> Result<Self> {
        check_taps(taps, MOST_TAPS)?;
        require((1..=MOST_SQUARED).contains(&budget), "budget", &format!("from 1 to {MOST_SQUARED}"), budget as f64)?;
        check_budget(budget, taps)?;
        let n = budget + 1;
        let mut centres = Centres::new(taps);
        centres.reserve(n);
        let mut filter = Self {
            process: if kernel.turns() { Either::Complex(Process::new(budget)) } else { Either::Real(Process::new(budget)) },
            kernel,
            lambda,
            noise,
            budget,
            taps,
            memory: Memory { centres, born: Vec::with_capacity(n), admitted: 0, power: (0.0, 0.0) },
            row: Row::default(),
            variance: f64::NAN,
        };
        filter.row.resize(n);
        filter.set("lambda", lambda)?;
        filter.set("noise", noise)?;
        Ok(filter)
    }

    fn project(&mut self, x: &[Complex<T>]) -> Projection {
        assert_eq!(x.len(), self.taps, "input length");
        self.kernel.row(&self.memory.centres, x, &mut self.row);
        let norm = self.kernel.norm(x).wide();
        either!(&mut self.process, process => process.project(&self.row.re, &self.row.im, norm))
    }

    fn learn(&mut self, x: &[Complex<T>], y: Complex<f64>) {
        if self.lambda < 1.0 {
            either!(&mut self.process, process => process.forget(self.lambda));
        }
        let at = self.project(x);
        let Some(novel) = either!(&mut self.process, process => process.learn(at, y, self.noise)) else { return };
        let memory = &mut self.memory;
        memory.power.0 = self.lambda * memory.power.0 + 0.5 * (y - at.mean).norm_sqr() / (at.variance + self.noise);
        memory.power.1 = self.lambda * memory.power.1 + 0.5;
        if novel {
            memory.centres.push(x);
            memory.born.push(memory.admitted);
            memory.admitted += 1;
        }
        if memory.centres.len() > self.budget {
            let dropped = either!(&mut self.process, process => process.drop_cheapest());
            memory.centres.swap_remove(dropped);
            memory.born.swap_remove(dropped);
        }
    }

    fn kind(&self) -> String {
        state::kind::<T>(&format!("krls-t, {}", self.kernel.describe()))
    }
}

impl<T: Real, K: Kernel<T>> Adaptive for KrlsT<T, K> {
    fn size(&self) -> usize {
        self.memory.centres.len()
    }

    fn reset(&mut self) {
        self.memory.centres.clear();
        self.memory.born.clear();
        self.memory.admitted = 0;
        either!(&mut self.process, process => process.clear());
        self.memory.power = (0.0, 0.0);
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "lambda" => {
                require(value > 0.0 && value <= 1.0, name, "above 0 and at most 1", value)?;
                self.lambda = value;
            }
            "noise" => {
                require(value > 0.0 && value.is_finite(), name, "positive", value)?;
                self.noise = value;
            }
            _ => {
                let known = vec!["lambda".into(), "noise".into()];
                return Err(Error::NotApplicable { filter: "krlst".into(), name: name.into(), known });
            }
        }
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode(&self.kind(), &(self.lambda, self.noise, &self.memory, &self.process))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (lambda, noise, mut memory, process): (f64, f64, Memory<T>, Either) = state::decode(&self.kind(), bytes)?;
        memory.centres.check(self.taps)?;
        let points = memory.centres.len();
        state::same_shape("ages", memory.born.len(), points)?;
        let process = match (process, &self.process) {
            (Either::Real(process), Either::Real(own)) => Either::Real(process.check(own, points)?),
            (Either::Complex(process), Either::Complex(own)) => Either::Complex(process.check(own, points)?),
            _ => return Err(Error::State("its covariance is of another kind".into())),
        };
        memory.centres.reserve(self.budget + 1);
        let before = (self.lambda, self.noise);
        if let Err(error) = self.set("lambda", lambda).and_then(|()| self.set("noise", noise)) {
            (self.lambda, self.noise) = before;
            return Err(error);
        }
        memory.born.reserve(self.budget + 1);
        (self.memory, self.process) = (memory, process);
        Ok(())
    }
}

impl<T: Real, K: Kernel<T>> Filter<T> for KrlsT<T, K> {
    fn taps(&self) -> usize {
        self.taps
    }

    fn predict(&mut self, x: &[Complex<T>]) -> Complex<T> {
        if !x.iter().all(|&z| finite(z)) {
            self.variance = f64::NAN;
            return Complex::new(T::zero(), T::zero());
        }
        let Projection { mean, variance, .. } = self.project(x);
        let (errors, count) = self.memory.power;
        let power = if count > 0.0 { errors / count } else { 1.0 };
        self.variance = power * (variance + self.noise);
        Complex::new(T::of(mean.re), T::of(mean.im))
    }

    fn adapt(&mut self, x: &[Complex<T>], y: Complex<T>) -> Complex<T> {
        let p = self.predict(x);
        if finite(y) && x.iter().all(|&z| finite(z)) {
            self.learn(x, Complex::new(y.re.wide(), y.im.wide()));
        }
        p
    }

    fn variance(&self) -> Option<T> {
        Some(T::of(self.variance))
    }

    fn portrait(&self) -> Portrait {
        let memory = &self.memory;
        let weight = |(i, born): (usize, &u64)| {
            let size = either!(&self.process, process => process.coefficient(i)).norm();
            Weight { age: memory.admitted.saturating_sub(born + 1), size }
        };
        Portrait { weights: memory.born.iter().enumerate().map(weight).collect(), ..Portrait::default() }
    }
}
