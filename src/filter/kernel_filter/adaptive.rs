//! What a kernel filter has in common with every other one: parameters, saved state, the way onto a stream.

use num_complex::Complex;

use super::{Admit, Dynamics, Evict, KernelFilter, Memory};
use crate::filter::sliding::by_lag;
use crate::filter::{Adaptive, Filter, Portrait, ToWindowed, Tracker, Weight, require, state};
use crate::kernel::Kernel;
use crate::observation::{Gaussian, Observation};
use crate::{Error, Real, Result};

impl<T: Real, K: Kernel<T>, O: Observation<T>> Adaptive for KernelFilter<T, K, O> {
    fn size(&self) -> usize {
        self.memory.centres.len()
    }

    fn reset(&mut self) {
        self.memory.centres.clear();
        self.memory.born.clear();
        self.memory.coefficients.iter_mut().for_each(Vec::clear);
        self.memory.admitted = 0;
        self.memory.scale = T::one();
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match (name, &mut self.dynamics, &mut self.admit) {
            ("lambda", Dynamics::Forgetting(lambda), _) => {
                Dynamics::Forgetting(value).check()?;
                *lambda = value;
            }
            ("ridge", Dynamics::Ridge(_), _) => {
                let changed = Dynamics::Ridge(value).check()?;
                self.check_ridge(changed, &self.observation)?;
                self.dynamics = changed;
            }
            // Never up: room is taken once, and never again per sample.
            ("budget", ..) => {
                let most = self.evict.budget.unwrap_or(usize::MAX >> 12);
                require(
                    value.fract() == 0.0 && value >= 1.0 && value <= most as f64,
                    name,
                    "a whole number from 1 to what it is now",
                    value,
                )?;
                self.shrink(value as usize);
            }
            ("epsilon", _, Admit::Quantise { radius }) => {
                require(value >= 0.0 && value.is_finite(), name, "at least 0", value)?;
                *radius = value;
            }
            (_, dynamics, admit) if !O::PARAMETERS.contains(&name) => {
                let mut known: Vec<String> = O::PARAMETERS.iter().map(|&p| p.into()).collect();
                known.push(if matches!(dynamics, Dynamics::Ridge(_)) { "ridge" } else { "lambda" }.into());
                known.push("budget".into());
                known.extend(matches!(admit, Admit::Quantise { .. }).then(|| "epsilon".into()));
                return Err(Error::NotApplicable { filter: format!("this {} kernel filter", O::NAME), name: name.into(), known });
            }
            _ => {
                let mut changed = self.observation.clone();
                changed.set(name, value)?;
                self.check_ridge(self.dynamics, &changed)?;
                self.check_step(&changed)?;
                self.observation = changed;
            }
        }
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode(&self.kind(), &(&self.observation, self.dynamics, self.admit, self.evict, &self.memory))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (observation, dynamics, admit, evict, memory): (O, Dynamics, Admit, Evict, Memory<T>) = state::decode(&self.kind(), bytes)?;
        if evict != self.evict {
            return Err(Error::State(format!("it prunes by {evict:?}, this filter by {:?}", self.evict)));
        }
        memory.centres.check(self.taps)?;
        state::same_shape("latent planes", memory.coefficients.len(), self.latent.len())?;
        state::same_shape("latent planes", observation.width(), self.latent.len())?;
        for plane in &memory.coefficients {
            state::same_shape("coefficients", plane.len(), memory.centres.len())?;
        }
        state::same_shape("ages", memory.born.len(), memory.centres.len())?;
        if self.evict.budget.is_some_and(|budget| memory.centres.len() > budget) || memory.scale.is_nan() || memory.scale <= T::zero() {
            return Err(Error::State("its dictionary is larger than its budget or has no scale".into()));
        }
        dynamics.check()?;
        self.check_ridge(dynamics, &observation)?;
        (self.observation, self.dynamics, self.admit, self.memory) = (observation, dynamics, admit, memory);
        if let Some(budget) = self.evict.budget {
            self.reserve(budget.min(1 << 20));
        }
        Ok(())
    }
}

impl<T: Real, K: Kernel<T>> KernelFilter<T, K, Gaussian<T>> {
    /// Appends a centre with its effective coefficient, as if it had just been admitted.
    pub(in crate::filter) fn append(&mut self, centre: &[Complex<T>], coefficient: Complex<T>) {
        self.alpha.copy_from_slice(&[coefficient.re, coefficient.im]);
        self.learn(centre);
    }
}

impl<T: Real, K: Kernel<T>> Filter<T> for KernelFilter<T, K, Gaussian<T>> {
    fn taps(&self) -> usize {
        self.taps
    }

    fn predict(&mut self, x: &[Complex<T>]) -> Complex<T> {
        self.predict(x)
    }

    fn adapt(&mut self, x: &[Complex<T>], y: Complex<T>) -> Complex<T> {
        self.adapt(x, y)
    }

    fn into_tracker(self: Box<Self>) -> Box<dyn Tracker<T>> {
        by_lag(*self).unwrap_or_else(|filter| Box::new(filter).windowed())
    }

    fn portrait(&self) -> Portrait {
        let memory = &self.memory;
        let weight = |(i, born): (usize, &u64)| {
            let (re, im) = (memory.coefficients[0][i].wide(), memory.coefficients[1][i].wide());
            Weight { age: memory.admitted.saturating_sub(born + 1), size: re.hypot(im) * memory.scale.wide() }
        };
        Portrait { weights: memory.born.iter().enumerate().map(weight).collect(), bounded_steps: self.bounded, ..Portrait::default() }
    }
}
