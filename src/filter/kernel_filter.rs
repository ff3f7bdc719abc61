//! The one loop of the family: decay, predict, step, learn.

mod adaptive;

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use super::{MOST_TAPS, check_budget, check_taps, finite, require, state};
use crate::kernel::{Centres, Kernel, Row, weigh_complex, weigh_real};
use crate::observation::Observation;
use crate::simd::Nearest;
use crate::{Error, Real, Result};

/// How the weights move between two observations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Dynamics {
    /// `w' ~ N(λw, σ_d² I)`: decay by `λ`, then predict. 1 is the random walk of KLMS.
    Forgetting(f64),
    /// NORMA's ridge: predict, then decay by `1 − gain·ridge`.
    Ridge(f64),
}

impl Dynamics {
    fn check(self) -> Result<Self> {
        match self {
            Self::Forgetting(lambda) => require(lambda > 0.0 && lambda <= 1.0, "lambda", "above 0 and at most 1", lambda)?,
            Self::Ridge(ridge) => require(ridge >= 0.0 && ridge.is_finite(), "ridge", "at least 0", ridge)?,
        }
        Ok(self)
    }
}

/// Which observations become centres.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Admit {
    /// Every one.
    Always,
    /// Those farther than `radius` from every centre; the nearest centre (the first one on ties) absorbs the others.
    Quantise {
        /// In units of the input's amplitude.
        radius: f64,
    },
}

/// Which centres are dropped. Both may apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evict {
    /// The oldest, where there would be more than this many.
    pub budget: Option<usize>,
    /// Those whose effective coefficient `|λ^(k−i) β_i|` is below this.
    pub floor: Option<f64>,
}

/// A kernel filter: a kernel, an observation model, dynamics, and the policy of its dictionary.
///
/// The named members of the family are functions that choose these: [`klms`](super::klms) and its neighbours. Cost per sample is one kernel row,
/// proportional to the number of centres times the number of taps.
pub struct KernelFilter<T: Real, K, O> {
    kernel: K,
    observation: O,
    dynamics: Dynamics,
    admit: Admit,
    evict: Evict,
    taps: usize,
    memory: Memory<T>,
    row: Row<T>,
    latent: Vec<T>,
    alpha: Vec<T>,
    /// How many steps had to be smaller than asked for.
    bounded: u64,
}

/// All that was learned.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
struct Memory<T: Real> {
    centres: Centres<T>,
    /// One plane for each real number of a latent value, in units of `scale`.
    coefficients: Vec<Vec<T>>,
    /// When each centre was admitted; orders them where a floor has removed some from the middle.
    born: Vec<u64>,
    admitted: u64,
    /// The common factor of all coefficients: decay is one multiplication.
    scale: T,
}

impl<T: Real, K: Kernel<T>, O: Observation<T>> KernelFilter<T, K, O> {
    /// A filter on vectors of `taps` complex numbers.
    pub(crate) fn new(kernel: K, observation: O, dynamics: Dynamics, admit: Admit, evict: Evict, taps: usize) -> Result<Self> {
        check_taps(taps, MOST_TAPS)?;
        if let Some(budget) = evict.budget {
            check_budget(budget, taps)?;
        }
        if let Some(floor) = evict.floor {
            require(floor >= 0.0 && floor.is_finite(), "floor", "at least 0", floor)?;
        }
        if let Admit::Quantise { radius } = admit {
            require(radius >= 0.0 && radius.is_finite(), "epsilon", "at least 0", radius)?;
        }
        let dynamics = dynamics.check()?;
        let width = observation.width();
        let mut filter = Self {
            memory: Memory {
                centres: Centres::new(taps),
                coefficients: vec![Vec::new(); width],
                born: Vec::new(),
                admitted: 0,
                scale: T::one(),
            },
            kernel,
            observation,
            dynamics,
            admit,
            evict,
            taps,
            row: Row::default(),
            latent: vec![T::zero(); width],
            alpha: vec![T::zero(); width],
            bounded: 0,
        };
        filter.check_ridge(filter.dynamics, &filter.observation)?;
        filter.check_step(&filter.observation)?;
        // A budget is room that will be used: take it now and never again.
        if let Some(budget) = evict.budget {
            filter.reserve(budget.min(1 << 20));
        }
        Ok(filter)
    }

    fn check_ridge(&self, dynamics: Dynamics, observation: &O) -> Result<()> {
        // Where k(x,x) depends on the data, a decay below nothing is cut at nothing when it comes.
        if let (Dynamics::Ridge(ridge), Some(norm)) = (dynamics, self.kernel.constant_norm()) {
            let gain = observation.gain(norm).wide();
            require(ridge * gain < 1.0, "ridge", &format!("below 1/eta = {}", 1.0 / gain), ridge)?;
        }
        Ok(())
    }

    /// Refuses a step that is known to diverge, whatever the data.
    fn check_step(&self, observation: &O) -> Result<()> {
        if let Some(norm) = self.kernel.constant_norm().filter(|&norm| observation.bounds(norm)) {
            let most = format!("at most 1/k(x,x) = {} with the kernel {}", T::one() / norm, self.kernel.describe());
            return Err(Error::parameter("eta", most, observation.gain(T::zero())));
        }
        Ok(())
    }

    fn reserve(&mut self, room: usize) {
        self.memory.centres.reserve(room);
        self.memory.born.reserve(room);
        self.memory.coefficients.iter_mut().for_each(|plane| plane.reserve(room));
        self.row.resize(room);
    }

    /// The expected observation at `x`.
    pub fn predict(&mut self, x: &[Complex<T>]) -> O::Mean<'_> {
        if x.iter().all(|&z| finite(z)) {
            self.evaluate(x);
        } else {
            self.observation.prior(&mut self.latent);
        }
        self.observation.mean(&mut self.latent)
    }

    /// Predicts from `x`, then learns that `y` was observed. Returns the prediction.
    pub fn adapt(&mut self, x: &[Complex<T>], y: O::Target) -> O::Mean<'_> {
        if !self.observation.admissible(y) || !x.iter().all(|&z| finite(z)) {
            return self.predict(x);
        }
        self.evaluate(x);
        let norm = self.kernel.norm(x);
        self.observation.step(&self.latent, y, norm, &mut self.alpha);
        // A step that overflows is not taken.
        if norm.is_finite() && self.alpha.iter().all(|a| a.is_finite()) {
            self.note_step(norm);
            self.decay(self.factors(norm).1);
            self.learn(x);
        }
        self.observation.mean(&mut self.latent)
    }

    /// Row and latent value at `x`, with the decay that the dynamics put before a prediction.
    fn evaluate(&mut self, x: &[Complex<T>]) {
        assert_eq!(x.len(), self.taps, "input length");
        let memory = &self.memory;
        self.kernel.row(&memory.centres, x, &mut self.row);
        let before = match self.dynamics {
            Dynamics::Forgetting(lambda) => memory.scale * T::of(lambda),
            Dynamics::Ridge(_) => memory.scale,
        };
        self.observation.prior(&mut self.latent);
        if O::COMPLEX {
            let f = weigh_complex(&memory.coefficients[0], &memory.coefficients[1], &self.row);
            self.latent[0] += before * f.re;
            self.latent[1] += before * f.im;
        } else {
            for (latent, plane) in self.latent.iter_mut().zip(&memory.coefficients) {
                *latent += before * weigh_real(plane, &self.row);
            }
        }
    }

    fn decay(&mut self, factor: T) {
        let memory = &mut self.memory;
        memory.scale *= factor;
        // Rebase before the scale leaves the range in which dividing by it is harmless. Coefficients too small to matter become exact zeros:
        // left alone they would end as denormal numbers, which cost a hundred times as much to add.
        if memory.scale < T::of(1e-6) {
            let negligible = T::min_positive_value() / T::epsilon();
            for a in memory.coefficients.iter_mut().flatten() {
                let value = *a * memory.scale;
                *a = if value.abs() < negligible { T::zero() } else { value };
            }
            memory.scale = T::one();
        }
    }

    fn learn(&mut self, x: &[Complex<T>]) {
        let scale = self.memory.scale;
        if let Some(i) = self.absorbing(x) {
            for (plane, &a) in self.memory.coefficients.iter_mut().zip(&self.alpha) {
                plane[i] += a / scale;
            }
        } else {
            let memory = &mut self.memory;
            let full = self.evict.budget.is_some_and(|budget| memory.centres.len() >= budget);
            if full {
                let i = self.oldest();
                let memory = &mut self.memory;
                memory.centres.replace(i, x);
                memory.born[i] = memory.admitted;
                for (plane, &a) in memory.coefficients.iter_mut().zip(&self.alpha) {
                    plane[i] = a / scale;
                }
            } else {
                memory.centres.push(x);
                memory.born.push(memory.admitted);
                for (plane, &a) in memory.coefficients.iter_mut().zip(&self.alpha) {
                    plane.push(a / scale);
                }
            }
            self.memory.admitted += 1;
        }
        if let Some(floor) = self.evict.floor {
            self.drop_below(T::of(floor));
        }
    }

    /// The centre that takes in `x`, under quantisation.
    fn absorbing(&mut self, x: &[Complex<T>]) -> Option<usize> {
        let Admit::Quantise { radius } = self.admit else { return None };
        if !self.row.has_distance {
            self.memory.centres.distances(x, &mut self.row.distance);
        }
        let (i, d) = T::dispatch(self.row.level, Nearest { distance: &self.row.distance[..self.memory.centres.len()] })?;
        (d <= T::of(radius * radius)).then_some(i)
    }

    fn oldest(&self) -> usize {
        let memory = &self.memory;
        if self.evict.floor.is_none() {
            // Nothing leaves from the middle, so places are taken in turn.
            (memory.admitted % memory.centres.len() as u64) as usize
        } else {
            (0..memory.born.len()).min_by_key(|&i| memory.born[i]).unwrap_or(0)
        }
    }

    fn drop_below(&mut self, floor: T) {
        let memory = &mut self.memory;
        let limit = floor / memory.scale;
        for i in (0..memory.centres.len()).rev() {
            let size: T = memory.coefficients.iter().map(|plane| plane[i] * plane[i]).sum();
            if size < limit * limit {
                memory.centres.swap_remove(i);
                memory.born.swap_remove(i);
                for plane in &mut memory.coefficients {
                    plane.swap_remove(i);
                }
            }
        }
    }

    /// Keeps the youngest `budget` centres, from now on.
    fn shrink(&mut self, budget: usize) {
        self.evict.budget = Some(budget);
        let memory = &mut self.memory;
        if memory.centres.len() <= budget {
            return;
        }
        let oldest_kept = memory.admitted - budget as u64;
        let mut kept: Vec<usize> = (0..memory.centres.len()).collect();
        kept.sort_by_key(|&i| std::cmp::Reverse(memory.born[i]));
        kept.truncate(budget);
        // Where places are taken in turn, the next one must be that of the oldest.
        let turn = if self.evict.floor.is_none() && kept.iter().all(|&i| memory.born[i] >= oldest_kept) { budget as u64 } else { u64::MAX };
        kept.sort_by_key(|&i| memory.born[i] % turn);
        let entries: Vec<_> = kept
            .iter()
            .map(|&i| {
                let mut centre = Vec::new();
                memory.centres.copy_to(i, &mut centre);
                (centre, memory.born[i], memory.coefficients.iter().map(|plane| plane[i]).collect::<Vec<_>>())
            })
            .collect();
        memory.centres.clear();
        memory.born.clear();
        memory.coefficients.iter_mut().for_each(Vec::clear);
        for (centre, born, coefficients) in entries {
            memory.centres.push(&centre);
            memory.born.push(born);
            memory.coefficients.iter_mut().zip(coefficients).for_each(|(plane, a)| plane.push(a));
        }
    }

    /// The centres with their effective coefficients (one number for each real number of a latent value) and when they were admitted.
    pub fn dictionary(&self) -> impl Iterator<Item = (Vec<Complex<T>>, Vec<T>, u64)> + '_ {
        let memory = &self.memory;
        (0..memory.centres.len()).map(move |i| {
            let mut centre = Vec::new();
            memory.centres.copy_to(i, &mut centre);
            (centre, memory.coefficients.iter().map(|plane| plane[i] * memory.scale).collect(), memory.born[i])
        })
    }

    /// The kernel.
    pub(super) fn kernel(&self) -> &K {
        &self.kernel
    }

    /// How many observations became centres since the start.
    pub(super) fn admitted(&self) -> u64 {
        self.memory.admitted
    }

    /// The budget, where the dictionary is the last so many inputs.
    pub(super) fn last_windows(&self) -> Option<usize> {
        if self.admit == Admit::Always && self.evict.floor.is_none() { self.evict.budget } else { None }
    }

    /// Where `k(x,x) = norm`: the factor between error and step, and what the coefficients are multiplied by.
    pub(super) fn factors(&self, norm: T) -> (T, T) {
        let gain = self.observation.gain(norm);
        match self.dynamics {
            Dynamics::Forgetting(lambda) => (gain, T::of(lambda)),
            Dynamics::Ridge(ridge) => (gain, (T::one() - gain * T::of(ridge)).max(T::zero())),
        }
    }

    /// Whether the decay comes before the prediction.
    pub(super) fn decays_first(&self) -> bool {
        matches!(self.dynamics, Dynamics::Forgetting(_))
    }

    /// The least that the coefficients can be multiplied by.
    pub(super) fn least_decay(&self) -> T {
        self.factors(T::zero()).1
    }

    /// Remembers that a step was taken where `k(x,x) = norm`.
    pub(super) fn note_step(&mut self, norm: T) {
        self.bounded += u64::from(self.observation.bounds(norm));
    }

    fn kind(&self) -> String {
        state::kind::<T>(&format!("kernel filter, {}, {}", O::NAME, self.kernel.describe()))
    }
}
