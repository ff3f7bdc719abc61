//! Filters by name, with their parameters by name: what the command line, parameter files and running blocks speak.
//!
//! [`RECIPES`] is the one table of what there is. A [`Recipe`] says which parameters it has and what they are when nobody sets them;
//! [`Recipe::settle`] turns what a user gave into [`Settings`]; [`filter`] builds from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::two_speed::{Motion, TwoSpeed, TwoSpeedConfig};
use super::{Evict, Filter, Kalman, KrlsT, Lms, MemoryPolynomial, Nlms, Rls, fklms, klms, norma, qklms};
use super::{KernelFilter, Mixture, MixtureConfig, Residual, Tracker, Windowed, bernoulli_klms, multinomial_klms, poisson_klms};
use crate::kernel::{Equivariant, Gaussian, Kernel, Linear, Polynomial, Sum};
use crate::observation::{Bernoulli, Gain, Multinomial, Poisson};
use crate::{Error, Real, Result};

/// A parameter that some filter has.
pub struct Parameter {
    /// As options and files spell it.
    pub name: &'static str,
    /// What it does, with its unit.
    pub about: &'static str,
    /// The names that it can take; none for a number.
    pub names: &'static [&'static str],
}

const fn number(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, names: &[] }
}

/// All parameters, each explained once.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "kernel",
        about: "similarity of two inputs",
        names: &["gaussian", "linear", "polynomial", "equivariant", "gaussian+linear"],
    },
    number("sigma", "width of the Gaussian and equivariant kernels, in units of the input's amplitude"),
    number("degree", "degree of the polynomial kernel"),
    number("eta", "learning rate: a new coefficient is eta times the error"),
    number("diffusion-ratio", "instead of eta: diffusion variance over noise variance, eta = r / (1 + r k(x,x))"),
    number("lambda", "forgetting factor, 1 forgets nothing"),
    number("ridge", "NORMA's regularisation: coefficients decay by 1 - eta*ridge"),
    number("epsilon", "QKLMS's quantisation radius, in units of the input's amplitude"),
    number("budget", "most centres that are kept; the oldest one goes"),
    number("workers", "threads for one stream through klms, fklms or norma with a large budget"),
    number("floor", "centres whose effective coefficient falls below this go"),
    number("mu", "NLMS's step, between 0 and 2"),
    number("regularization", "NLMS's eps and RLS's c, in units of input power"),
    number("process-noise", "variance by which weights diffuse in a sample, sigma_d^2"),
    number("noise", "variance of the observation noise, sigma_n^2"),
    number("order", "highest power of the memory polynomial, odd"),
    number("rbfs", "Gaussians over the envelope that make up two-speed's nonlinearity; 0 makes it linear"),
    number("memory", "memory of two-speed's nonlinearity, in samples, beside that of the channel"),
    Parameter { name: "motion", about: "how two-speed's channel moves", names: &["velocity", "walk"] },
    number("span", "samples over which two-speed's channel looks like a straight line"),
    number("drift", "part of its uncertainty that two-speed's nonlinearity gets back every sample"),
    Parameter { name: "carrier", about: "whether two-speed estimates a carrier offset", names: &["no", "yes"] },
    Parameter { name: "widely-linear", about: "whether there are taps for the conjugate too, against IQ imbalance", names: &["no", "yes"] },
    number("still-taps", "taps of the mixture's member for still channels"),
    number("evidence", "what remains of the mixture's evidence for a member after a sample"),
    Parameter {
        name: "first",
        about: "the filter whose error residual goes on with",
        names: &["two-speed", "mixture", "mp-rls", "rls", "nlms", "kalman", "krlst"],
    },
    Parameter { name: "second", about: "the filter that residual puts on that error", names: &["qklms", "fklms"] },
    number("offset", "latent value where nothing was learned: log rate, log odds, or one number a class"),
];

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

/// What a parameter is when nobody sets it.
#[derive(Clone, Copy, Debug)]
pub enum Preset {
    /// Not set: the feature that it controls is off.
    Off,
    /// A number.
    Is(f64),
    /// A name.
    Named(&'static str),
    /// A multiple of the spread of the data, `sqrt(E‖x‖²)`.
    Spread(f64),
}

/// A filter that can be asked for by name.
pub struct Recipe {
    /// Its name.
    pub name: &'static str,
    /// One line for tables and help.
    pub about: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
    /// What it predicts.
    pub task: Task,
    /// The parameters that it has, and what they are when nobody sets them.
    pub parameters: &'static [(&'static str, Preset)],
}

use Preset::{Is, Named, Off, Spread};

const KERNEL: [(&str, Preset); 3] = [("kernel", Named("gaussian")), ("sigma", Spread(1.0)), ("degree", Is(3.0))];
const GAIN: [(&str, Preset); 2] = [("eta", Is(0.5)), ("diffusion-ratio", Off)];
const THREADS: (&str, Preset) = ("workers", Off);
const PRUNE: [(&str, Preset); 2] = [("budget", Off), ("floor", Off)];

/// Joins parameter lists at compile time.
macro_rules! parameters {
    ($($entry:expr),* $(,)?) => { &[KERNEL[0], KERNEL[1], KERNEL[2], PRUNE[0], PRUNE[1], $($entry),*] };
}

/// Every filter that can be asked for by name.
pub const RECIPES: &[Recipe] = &[
    Recipe {
        name: "lms",
        about: "least mean squares: KLMS with the linear kernel",
        reference: "Widrow, Hoff 1960",
        task: Task::Regression,
        parameters: &[("eta", Off), ("diffusion-ratio", Off), PRUNE[0], PRUNE[1]],
    },
    Recipe {
        name: "klms",
        about: "kernel least mean squares",
        reference: "Liu, Pokharel, Principe 2008",
        task: Task::Regression,
        parameters: parameters![GAIN[0], GAIN[1], THREADS],
    },
    Recipe {
        name: "fklms",
        about: "KLMS that forgets",
        reference: "Park, Seth, Van Vaerenbergh 2013",
        task: Task::Regression,
        parameters: parameters![GAIN[0], GAIN[1], ("lambda", Is(0.99)), THREADS],
    },
    Recipe {
        name: "norma",
        about: "stochastic gradient descent with a ridge",
        reference: "Kivinen, Smola, Williamson 2004",
        task: Task::Regression,
        parameters: parameters![GAIN[0], GAIN[1], ("ridge", Is(0.02)), THREADS],
    },
    Recipe {
        name: "qklms",
        about: "KLMS whose centres absorb their neighbours",
        reference: "Chen, Zhao, Zhu, Principe 2012",
        task: Task::Regression,
        parameters: parameters![GAIN[0], GAIN[1], ("epsilon", Spread(0.25))],
    },
    Recipe {
        name: "nlms",
        about: "normalised least mean squares, linear",
        reference: "Nagumo, Noda 1967",
        task: Task::Regression,
        parameters: &[("mu", Is(0.5)), ("regularization", Is(1e-6))],
    },
    Recipe {
        name: "rls",
        about: "recursive least squares, linear",
        reference: "Plackett 1950",
        task: Task::Regression,
        parameters: &[("lambda", Is(0.98)), ("regularization", Is(0.01))],
    },
    Recipe {
        name: "kalman",
        about: "exact Kalman filter of the state-space model, linear",
        reference: "Kalman 1960",
        task: Task::Regression,
        parameters: &[("lambda", Is(0.9999)), ("process-noise", Is(1e-4)), ("noise", Is(0.05))],
    },
    Recipe {
        name: "mp-rls",
        about: "memory polynomial tracked by RLS",
        reference: "Kim, Konstantinou 2001",
        task: Task::Regression,
        parameters: &[("order", Is(5.0)), ("lambda", Is(0.97)), ("regularization", Is(0.01))],
    },
    Recipe {
        name: "krlst",
        about: "kernel recursive least squares tracker, with variance",
        reference: "Van Vaerenbergh, Lazaro-Gredilla, Santamaria 2012",
        task: Task::Regression,
        parameters: &[KERNEL[0], KERNEL[1], KERNEL[2], ("lambda", Is(0.99)), ("noise", Is(0.05)), ("budget", Is(100.0))],
    },
    Recipe {
        name: "two-speed",
        about: "slow amplifier, fast channel: a Hammerstein pair of Kalman filters, with variance",
        reference: "kaflow, after Park, Seth, Van Vaerenbergh 2013",
        task: Task::Stream,
        parameters: &[
            ("rbfs", Is(8.0)),
            ("memory", Is(0.0)),
            ("motion", Named("velocity")),
            ("span", Is(30.0)),
            ("drift", Is(1e-6)),
            ("carrier", Named("no")),
            ("widely-linear", Named("no")),
        ],
    },
    Recipe {
        name: "mixture",
        about: "two-speed at several rates, averaged by their recent likelihood: nothing to tune",
        reference: "Raftery, Karny, Ettler 2010",
        task: Task::Stream,
        parameters: &[("rbfs", Is(8.0)), ("still-taps", Is(32.0)), ("widely-linear", Named("no")), ("evidence", Is(0.99))],
    },
    Recipe {
        name: "residual",
        about: "a kernel filter on the error of another filter",
        reference: "kaflow",
        task: Task::Stream,
        parameters: &[
            ("first", Named("mixture")),
            ("second", Named("qklms")),
            ("sigma", Spread(0.5)),
            ("eta", Is(0.1)),
            ("epsilon", Spread(0.25)),
            ("lambda", Is(0.999)),
            ("budget", Is(500.0)),
        ],
    },
    Recipe {
        name: "poisson",
        about: "KLMS for counts",
        reference: "Park, Seth, Van Vaerenbergh 2013",
        task: Task::Counts,
        parameters: parameters![("process-noise", Is(0.1)), ("lambda", Is(1.0)), ("offset", Is(0.0))],
    },
    Recipe {
        name: "bernoulli",
        about: "KLMS for bits",
        reference: "Park, Seth, Van Vaerenbergh 2013",
        task: Task::Bits,
        parameters: parameters![("process-noise", Is(6.0)), ("lambda", Is(1.0)), ("offset", Is(0.0))],
    },
    Recipe {
        name: "multinomial",
        about: "KLMS for classes",
        reference: "after Park, Seth, Van Vaerenbergh 2013",
        task: Task::Classes,
        parameters: parameters![("process-noise", Is(6.0)), ("lambda", Is(1.0)), ("offset", Off)],
    },
];

/// A parameter's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A name.
    Name(String),
    /// One number for each class.
    List(Vec<f64>),
}

impl Value {
    /// Reads a value as an option gives it: a number, numbers with commas between, or a name.
    pub fn parse(text: &str) -> Self {
        if let Ok(number) = text.parse() {
            return Self::Number(number);
        }
        match text.split(',').map(|part| part.trim().parse()).collect::<Result<Vec<f64>, _>>() {
            Ok(list) => Self::List(list),
            Err(_) => Self::Name(text.into()),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
            Self::List(list) => f.write_str(&list.iter().map(f64::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

/// Values by parameter name, as a user gives them and as a built filter reports them.
pub type Values = BTreeMap<String, Value>;

/// The recipe of that name.
pub fn recipe(name: &str) -> Result<&'static Recipe> {
    RECIPES.iter().find(|r| r.name == name).ok_or_else(|| Error::unknown("filter", name, RECIPES.iter().map(|r| r.name)))
}

impl Recipe {
    /// Checks the values that a user gave against the parameters that this filter has, and fills in the others. `spread` is `sqrt(E‖x‖²)` of the
    /// input vectors, which scales the defaults of lengths.
    pub fn settle(&'static self, given: &Values, spread: f64) -> Result<Settings> {
        let known = || self.parameters.iter().map(|(name, _)| (*name).into()).collect();
        if let Some(name) = given.keys().find(|name| !self.parameters.iter().any(|(p, _)| p == name)) {
            return Err(Error::NotApplicable { filter: self.name.into(), name: name.clone(), known: known() });
        }
        if given.contains_key("eta") && given.contains_key("diffusion-ratio") {
            return Err(Error::parameter("diffusion-ratio", "left out where eta is given: each determines the other", "both"));
        }
        let mut values = given.clone();
        for (name, preset) in self.parameters {
            let value = match preset {
                Off => continue,
                Is(number) => Value::Number(*number),
                Named(name) => Value::Name((*name).into()),
                Spread(multiple) => Value::Number(multiple * if spread > 0.0 && spread.is_finite() { spread } else { 1.0 }),
            };
            values.entry((*name).into()).or_insert(value);
        }
        let settings = Settings { recipe: self, values, spread };
        for parameter in PARAMETERS.iter().filter(|p| !p.names.is_empty()) {
            if let Some(value) = settings.values.get(parameter.name).map(Value::to_string)
                && !parameter.names.contains(&value.as_str())
            {
                return Err(Error::unknown(parameter.name, value, parameter.names));
            }
        }
        Ok(settings.consistent(given))
    }
}

/// The complete parameters of one filter.
#[derive(Clone)]
pub struct Settings {
    recipe: &'static Recipe,
    values: Values,
    spread: f64,
}

impl Settings {
    /// The filter that they belong to.
    pub fn recipe(&self) -> &'static Recipe {
        self.recipe
    }

    /// All values.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Drops what has no meaning beside the rest, so that reports show only what counts.
    fn consistent(mut self, given: &Values) -> Self {
        let kernel = self.name("kernel").to_owned();
        if !given.contains_key("sigma") && ["linear", "polynomial"].contains(&kernel.as_str()) {
            self.values.remove("sigma");
        }
        if !given.contains_key("degree") && kernel != "polynomial" {
            self.values.remove("degree");
        }
        if given.contains_key("diffusion-ratio") {
            self.values.remove("eta");
        } else if !given.contains_key("eta") && (self.recipe.name == "lms" || !["", "gaussian"].contains(&kernel.as_str())) {
            // These kernels are not normalised: a fixed eta would diverge on large inputs, the ratio normalises itself.
            self.values.remove("eta");
            if self.recipe.parameters.iter().any(|(name, _)| *name == "diffusion-ratio") {
                self.values.insert("diffusion-ratio".into(), Value::Number(1.0));
            }
        }
        self
    }

    fn optional(&self, name: &str) -> Result<Option<f64>> {
        match self.values.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(*number)),
            Some(other) => Err(Error::parameter(name, "a number", other)),
        }
    }

    /// The number `name`.
    pub fn number(&self, name: &str) -> Result<f64> {
        self.optional(name)?.ok_or_else(|| Error::parameter(name, "given", "nothing"))
    }

    /// The name that `name` has, which [`Recipe::settle`] has checked.
    fn name(&self, name: &str) -> &str {
        match self.values.get(name) {
            Some(Value::Name(name)) => name,
            _ => "",
        }
    }

    fn whole(&self, name: &str) -> Result<Option<usize>> {
        match self.optional(name)? {
            None => Ok(None),
            Some(n) if (0.0..=1e9).contains(&n) && n.fract() == 0.0 => Ok(Some(n as usize)),
            Some(n) => Err(Error::parameter(name, "a whole number, at least 1", n)),
        }
    }

    fn gain(&self) -> Result<Gain> {
        Ok(match self.optional("diffusion-ratio")? {
            Some(ratio) => Gain::DiffusionRatio(ratio),
            None => Gain::Eta(self.number("eta")?),
        })
    }

    fn evict(&self) -> Result<Evict> {
        Ok(Evict { budget: self.whole("budget")?, floor: self.optional("floor")? })
    }

    /// A stream's filter on as many threads as were asked for.
    fn threaded<T: Real>(&self, mut tracker: Box<dyn Tracker<T>>) -> Result<Box<dyn Tracker<T>>> {
        if let Some(threads) = self.optional("workers")? {
            tracker.set("threads", threads)?;
        }
        Ok(tracker)
    }

    fn offsets(&self) -> Result<Vec<f64>> {
        match self.values.get("offset") {
            None => Ok(Vec::new()),
            Some(Value::Number(number)) => Ok(vec![*number]),
            Some(Value::List(list)) => Ok(list.clone()),
            Some(Value::Name(name)) => Err(Error::parameter("offset", "a number, or one for each class", name)),
        }
    }

    /// The kernel that they name.
    pub fn kernel<T: Real>(&self) -> Result<Box<dyn Kernel<T>>> {
        Ok(match self.name("kernel") {
            "linear" => Box::new(Linear),
            "polynomial" => Box::new(Polynomial::new(self.whole("degree")?.unwrap_or(3) as u32, 1.0)?),
            "equivariant" => Box::new(Equivariant::new(self.number("sigma")?)?),
            "gaussian+linear" => {
                Box::new(Sum::new(vec![(1.0, Box::new(Gaussian::new(self.number("sigma")?)?) as _), (1.0, Box::new(Linear) as _)])?)
            }
            _ => Box::new(Gaussian::new(self.number("sigma")?)?),
        })
    }
}

/// Builds a regression filter on vectors of `taps` complex numbers.
pub fn filter<T: Real>(settings: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    let s = settings;
    Ok(match s.recipe.name {
        "lms" => match s.evict()? {
            Evict { budget: None, floor: None } => Box::new(Lms::new(taps, s.gain()?)?),
            // Pruning needs the dictionary that LMS does without.
            evict => Box::new(klms(Linear, s.gain()?, evict, taps)?),
        },
        "klms" => Box::new(klms(s.kernel()?, s.gain()?, s.evict()?, taps)?),
        "fklms" => Box::new(fklms(s.kernel()?, s.gain()?, s.number("lambda")?, s.evict()?, taps)?),
        "norma" => Box::new(norma(s.kernel()?, s.gain()?, s.number("ridge")?, s.evict()?, taps)?),
        "qklms" => Box::new(qklms(s.kernel()?, s.gain()?, s.number("epsilon")?, s.evict()?, taps)?),
        "nlms" => Box::new(Nlms::new(taps, s.number("mu")?, s.number("regularization")?)?),
        "rls" => Box::new(Rls::new(taps, s.number("lambda")?, s.number("regularization")?)?),
        "kalman" => Box::new(Kalman::new(taps, s.number("lambda")?, s.number("process-noise")?, s.number("noise")?)?),
        "mp-rls" => {
            let order = s.whole("order")?.unwrap_or(5);
            if order % 2 == 0 {
                return Err(Error::parameter("order", "an odd number from 1 to 15", order));
            }
            Box::new(MemoryPolynomial::new(taps, order.div_ceil(2), s.number("lambda")?, s.number("regularization")?)?)
        }
        "krlst" => Box::new(KrlsT::new(s.kernel()?, s.number("lambda")?, s.number("noise")?, s.whole("budget")?.unwrap_or(100), taps)?),
        name => return Err(Error::unknown("filter for complex targets", name, of_task(Task::Regression))),
    })
}

/// Builds a filter on a pair of streams, with a window of `taps` samples over `tx`. `settings` want a `spread` of `sqrt(taps · E|tx|²)`.
///
/// It comes in its fastest form: by lag where the dictionary is the last windows of the stream
/// ([`Sliding`](super::Sliding)), in planes for NLMS ([`NlmsStream`](super::NlmsStream)), else [`Windowed`].
pub fn tracker<T: Real>(settings: &Settings, taps: usize) -> Result<Box<dyn Tracker<T>>> {
    let s = settings;
    let count = |name: &str| Ok::<_, Error>(s.whole(name)?.unwrap_or(0));
    Ok(match s.recipe.name {
        "two-speed" => Box::new(TwoSpeed::new(TwoSpeedConfig {
            taps,
            centres: count("rbfs")?,
            memory: count("memory")?,
            motion: if s.name("motion") == "walk" { Motion::Walk } else { Motion::Velocity },
            span: s.number("span")?,
            drift: s.number("drift")?,
            carrier: s.name("carrier") == "yes",
            widely_linear: s.name("widely-linear") == "yes",
            ..TwoSpeedConfig::default()
        })?),
        "mixture" => Box::new(Mixture::standard(&MixtureConfig {
            taps,
            centres: count("rbfs")?,
            still_taps: count("still-taps")?,
            widely_linear: s.name("widely-linear") == "yes",
            forgetting: s.number("evidence")?,
            ..MixtureConfig::default()
        })?),
        "residual" => {
            let first = tracker(&recipe(s.name("first"))?.settle(&Values::new(), s.spread)?, taps)?;
            let second = recipe(s.name("second"))?;
            let shared = s.values.iter().filter(|(name, _)| second.parameters.iter().any(|(p, _)| p == name));
            let second = second.settle(&shared.map(|(name, value)| (name.clone(), value.clone())).collect(), s.spread)?;
            Box::new(Residual::new(first, tracker(&second, taps)?))
        }
        "klms" => s.threaded(klms(s.kernel()?, s.gain()?, s.evict()?, taps)?.into_tracker()?)?,
        "fklms" => s.threaded(fklms(s.kernel()?, s.gain()?, s.number("lambda")?, s.evict()?, taps)?.into_tracker()?)?,
        "norma" => s.threaded(norma(s.kernel()?, s.gain()?, s.number("ridge")?, s.evict()?, taps)?.into_tracker()?)?,
        "nlms" => Box::new(Nlms::new(taps, s.number("mu")?, s.number("regularization")?)?.into_tracker()),
        _ => Box::new(Windowed::new(filter(settings, taps)?, taps)?),
    })
}

/// The names of all filters for a task.
pub fn of_task(task: Task) -> impl Iterator<Item = &'static str> {
    RECIPES.iter().filter(move |r| r.task == task).map(|r| r.name)
}

/// Builds the Poisson filter on vectors of `taps` complex numbers.
pub fn counts<T: Real>(settings: &Settings, taps: usize) -> Result<KernelFilter<T, Box<dyn Kernel<T>>, Poisson>> {
    let s = settings;
    poisson_klms(s.kernel()?, Poisson::new(s.number("process-noise")?, s.number("offset")?)?, s.number("lambda")?, s.evict()?, taps)
}

/// Builds the Bernoulli filter on vectors of `taps` complex numbers.
pub fn bits<T: Real>(settings: &Settings, taps: usize) -> Result<KernelFilter<T, Box<dyn Kernel<T>>, Bernoulli>> {
    let s = settings;
    bernoulli_klms(s.kernel()?, Bernoulli::new(s.number("process-noise")?, s.number("offset")?)?, s.number("lambda")?, s.evict()?, taps)
}

/// Builds the multinomial filter for `classes` classes on vectors of `taps` complex numbers.
pub fn classes<T: Real>(settings: &Settings, classes: usize, taps: usize) -> Result<KernelFilter<T, Box<dyn Kernel<T>>, Multinomial>> {
    let s = settings;
    let mut offsets = s.offsets()?;
    if offsets.is_empty() {
        offsets = vec![0.0; classes];
    }
    if offsets.len() != classes {
        return Err(Error::parameter(
            "offset",
            format!("one number for each of the {classes} classes"),
            format!("{} of them", offsets.len()),
        ));
    }
    multinomial_klms(s.kernel()?, Multinomial::new(s.number("process-noise")?, offsets)?, s.number("lambda")?, s.evict()?, taps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_explained_and_every_recipe_builds_from_its_defaults() {
        for recipe in RECIPES {
            for (name, _) in recipe.parameters {
                assert!(PARAMETERS.iter().any(|p| p.name == *name), "{}: {name}", recipe.name);
            }
            let settings = recipe.settle(&Values::new(), 2.0).unwrap();
            match recipe.task {
                Task::Regression => drop(filter::<f32>(&settings, 4).unwrap()),
                Task::Stream => drop(tracker::<f32>(&settings, 4).unwrap()),
                Task::Counts => drop(counts::<f32>(&settings, 4).unwrap()),
                Task::Bits => drop(bits::<f32>(&settings, 4).unwrap()),
                Task::Classes => drop(classes::<f32>(&settings, 3, 4).unwrap()),
            }
        }
    }

    #[test]
    fn a_parameter_that_the_filter_does_not_have_is_refused_by_name() {
        let given = Values::from([("ridge".into(), Value::Number(1.0))]);
        let error = recipe("fklms").unwrap().settle(&given, 1.0).err().unwrap().to_string();
        assert!(error.contains("fklms has no parameter 'ridge'") && error.contains("lambda"), "{error}");
        assert!(recipe("fklm").err().unwrap().to_string().contains("did you mean 'fklms'"));
    }

    #[test]
    fn kernels_that_are_not_normalised_default_to_the_diffusion_ratio() {
        let given = Values::from([("kernel".into(), Value::Name("linear".into()))]);
        let settings = recipe("klms").unwrap().settle(&given, 1.0).unwrap();
        assert_eq!(settings.values().get("diffusion-ratio"), Some(&Value::Number(1.0)));
        assert!(!settings.values().contains_key("eta") && !settings.values().contains_key("sigma"));
    }
}
