//! Filters by name, with their parameters by name: what the command line, parameter files and running blocks speak.
//!
//! [`RECIPES`] is the one list of what there is. A [`Recipe`] brings all that the rest of the program knows of a filter: its parameters with defaults, help and
//! range of search, its citation, how it is drawn and how it is built. [`Recipe::settle`] turns what a user gave into [`Settings`]; [`filter`] and [`tracker`]
//! build from them.
//!
//! # A new filter
//!
//! 1. In a file of its own, implement [`Adaptive`](super::Adaptive) and [`Filter`] (or [`Tracker`], where it needs consecutive samples). Set, save and restore are
//!    part of it: a parameter that cannot be changed while running is named as unknown.
//! 2. In the same file write its `RECIPE`: name, one line of help, citation, parameters, a function that builds it from [`Settings`]. Parameters that other
//!    filters have too are in `registry/shared.rs`, with `.preset(..)` and `.within(..)` for other defaults and ranges.
//! 3. Add that recipe to [`RECIPES`]. Commands, help, tuning, pictures and the tests of all filters find it there; `tests/unit/filter/registry.rs` says what is missing.

#![cfg_attr(not(feature = "cli"), allow(dead_code, reason = "ranges, looks and likelihoods are what commands ask for"))]

mod look;
mod parameter;
mod settings;
pub(super) mod shared;
#[cfg(test)]
#[path = "../../../tests/unit/filter/registry.rs"]
mod tests;
mod values;

use std::any::{Any, TypeId};

pub(crate) use look::{Dash, Hue};
#[cfg(any(feature = "cli", test))]
pub(crate) use parameter::Spacing;
pub(crate) use parameter::{Parameter, Preset, Unit};
pub(super) use parameter::{below_one, log, odd, scaled};
#[cfg(feature = "cli")]
pub(crate) use settings::Inputs;
pub use settings::Settings;
pub use values::{Value, Values};

use super::{Filter, KernelFilter, Tracker, canceller, ensemble, krlst, linear, lms, memory_polynomial, nlms, recipes, residual};
use crate::kernel::Kernel;
use crate::observation::{Bernoulli, Multinomial, Poisson};
use crate::{Error, Real, Result};

/// Every filter that can be asked for by name.
pub static RECIPES: &[Recipe] = &[
    lms::RECIPE,
    recipes::KLMS,
    recipes::FKLMS,
    recipes::NORMA,
    recipes::QKLMS,
    nlms::RECIPE,
    linear::RLS,
    linear::KALMAN,
    memory_polynomial::RECIPE,
    krlst::RECIPE,
    ensemble::RECIPE,
    canceller::RECIPE,
    residual::RECIPE,
    recipes::POISSON,
    recipes::BERNOULLI,
    recipes::MULTINOMIAL,
];

/// A filter that can be asked for by name.
pub struct Recipe {
    /// Its name.
    pub name: &'static str,
    /// Other names that mean the same.
    pub aliases: &'static [&'static str],
    /// One line for tables and help.
    pub about: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
    /// The parameters that it has.
    pub(crate) parameters: &'static [Parameter],
    /// How its variances follow from the likelihood of the state-space model, where they do.
    pub(crate) likelihood: Option<Likelihood>,
    /// About how many weights share one covariance matrix, of so many complex numbers: what it takes of memory besides its centres.
    pub(crate) covariance: fn(&Settings, usize) -> f64,
    /// How it is drawn: alike in every picture, and unlike the others.
    pub(crate) look: (Hue, Dash),
    /// How it is built.
    pub(crate) make: Make,
}

/// What a filter has to do with the state-space model of [`em`](super::em).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Likelihood {
    /// It is the exact filter of that model, linear in its inputs.
    Exact,
    /// It is nearly the filter of that model on features of its kernel: the diffusion ratio follows.
    Features,
}

/// What a filter predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A complex number.
    Regression,
    /// The rate of a count.
    Counts,
    /// The probability of a bit.
    Bits,
    /// The probability of each class.
    Classes,
    /// A complex number from a stream: these filters keep state that belongs to consecutive samples, so they take no single vectors.
    Stream,
}

/// Builds from settings, on so many complex numbers.
pub(crate) type Build<F> = fn(&Settings, usize) -> Result<F>;
/// A kernel filter with an observation model of its own.
pub(crate) type Discrete<O> = KernelFilter<f64, Box<dyn Kernel<f64>>, O>;

/// How a filter is built: on vectors in single and in double precision, on streams in single precision, which is what radios deliver, the discrete ones in
/// double precision. Each is compiled for every level of vector instructions, so what no command asks for is left to who names the type.
#[derive(Clone, Copy)]
pub(crate) enum Make {
    /// A filter on vectors.
    Filter(Build<Box<dyn Filter<f32>>>, Build<Box<dyn Filter<f64>>>),
    /// A filter on streams alone.
    Tracker(Build<Box<dyn Tracker<f32>>>),
    /// A filter for counts.
    Counts(Build<Discrete<Poisson>>),
    /// A filter for bits.
    Bits(Build<Discrete<Bernoulli>>),
    /// A filter for so many classes.
    Classes(fn(&Settings, usize, usize) -> Result<Discrete<Multinomial>>),
}

impl Recipe {
    /// What it predicts.
    pub fn task(&self) -> Task {
        match self.make {
            Make::Filter(..) => Task::Regression,
            Make::Tracker(..) => Task::Stream,
            Make::Counts(_) => Task::Counts,
            Make::Bits(_) => Task::Bits,
            Make::Classes(_) => Task::Classes,
        }
    }

    /// Whether it predicts a complex stream.
    pub(crate) fn tracks(&self) -> bool {
        matches!(self.task(), Task::Regression | Task::Stream)
    }

    /// Its parameter of that name.
    pub(crate) fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|p| p.name == name)
    }

    /// Whether it has a parameter of that name.
    pub fn has(&self, name: &str) -> bool {
        self.parameter(name).is_some()
    }

    /// Whether it keeps more and more samples when nobody sets its budget.
    pub(crate) fn grows(&self) -> bool {
        self.parameters.iter().any(|p| p.preset == Preset::Unlimited)
    }

    /// Whether it is called that.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// The recipe of that name.
pub fn recipe(name: &str) -> Result<&'static Recipe> {
    RECIPES.iter().find(|r| r.is_called(name)).ok_or_else(|| Error::unknown("filter", name, RECIPES.iter().map(|r| r.name)))
}

/// The names of all filters for a task.
pub(crate) fn of_task(task: Task) -> impl Iterator<Item = &'static str> {
    RECIPES.iter().filter(move |r| r.task() == task).map(|r| r.name)
}

/// The parameters of all filters, each name once.
pub(crate) fn parameters() -> Vec<&'static Parameter> {
    let mut all: Vec<&Parameter> = Vec::new();
    for parameter in RECIPES.iter().flat_map(|r| r.parameters) {
        if !all.iter().any(|p| p.name == parameter.name) {
            all.push(parameter);
        }
    }
    all
}

/// Builds a regression filter on vectors of `taps` complex numbers.
pub fn filter<T: Real>(settings: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    match settings.recipe().make {
        Make::Filter(single, double) => {
            let built =
                if TypeId::of::<T>() == TypeId::of::<f32>() { same(single(settings, taps)?) } else { same(double(settings, taps)?) };
            built.ok_or_else(|| precision(settings))
        }
        _ => Err(Error::unknown("filter for complex targets", settings.recipe().name, of_task(Task::Regression))),
    }
}

/// Builds a filter on a pair of streams, with a window of `taps` samples over `tx`, in its fastest form. [`Recipe::settle_stream`] has the defaults.
pub fn tracker<T: Real>(settings: &Settings, taps: usize) -> Result<Box<dyn Tracker<T>>> {
    let mut tracker = match settings.recipe().make {
        Make::Tracker(single) => same(single(settings, taps)?).ok_or_else(|| precision(settings))?,
        _ => filter(settings, taps)?.on_stream(),
    };
    // Workers are a matter of the stream: the filter on vectors knows none.
    if let Some(workers) = settings.optional(shared::WORKERS.name)? {
        tracker.set(shared::WORKERS.name, workers)?;
    }
    Ok(tracker)
}

/// What was built, where its type is the one that the caller's scalar asks for.
fn same<A: 'static, R: 'static>(built: A) -> Option<R> {
    (&mut Some(built) as &mut dyn Any).downcast_mut::<Option<R>>()?.take()
}

fn precision(settings: &Settings) -> Error {
    Error::Data(format!("{} by name computes in f32: for f64 build it by its type", settings.recipe().name))
}
