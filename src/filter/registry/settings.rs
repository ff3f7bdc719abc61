//! The complete parameters of one filter.

use super::{Preset, Recipe, Value, Values, shared};
use crate::{Error, Result};

/// The complete parameters of one filter.
#[derive(Clone)]
pub struct Settings {
    recipe: &'static Recipe,
    values: Values,
    spread: f64,
    advance: usize,
}

/// What defaults depend on.
#[derive(Clone, Copy)]
pub(crate) struct Inputs {
    /// `sqrt(E‖x‖²)` of the input vectors.
    pub(crate) spread: f64,
    /// Numbers in a vector.
    pub(crate) taps: usize,
    /// Whether the vectors are the windows of a stream.
    pub(crate) stream: bool,
}

/// Centres that are kept on a stream, which has no end, when nobody says how many.
const BUDGET: f64 = 500.0;

impl Recipe {
    /// Checks the values that a user gave against the parameters that this filter has, and fills in the others, for single vectors. `spread` is `sqrt(E‖x‖²)` of
    /// the input vectors, which scales the defaults of lengths.
    pub fn settle(&'static self, given: &Values, spread: f64) -> Result<Settings> {
        self.settle_for(given, Inputs { spread, taps: 1, stream: false })
    }

    /// As [`settle`](Self::settle) for windows of `taps` samples of a stream, `spread = sqrt(taps · E|tx|²)`: the kernel is the
    /// [`Hammerstein`](crate::kernel::Hammerstein) one with the Bayesian gain, unless given, and a filter that would grow with every sample keeps 500 centres.
    /// Results with these defaults do not depend on the scale of either stream.
    pub fn settle_stream(&'static self, given: &Values, spread: f64, taps: usize) -> Result<Settings> {
        self.settle_for(given, Inputs { spread, taps, stream: true })
    }

    pub(crate) fn settle_for(&'static self, given: &Values, inputs: Inputs) -> Result<Settings> {
        if let Some(name) = given.keys().find(|name| !self.has(name)) {
            let known = self.parameters.iter().map(|p| p.name.into()).collect();
            return Err(Error::NotApplicable { filter: self.name.into(), name: name.clone(), known });
        }
        let spread = if inputs.spread > 0.0 && inputs.spread.is_finite() { inputs.spread } else { 1.0 };
        let power = spread * spread / inputs.taps.max(1) as f64;
        let kernel = shared::kernel(self, given, inputs.stream);
        let mut values = given.clone();
        for parameter in self.parameters {
            let preset = if kernel == shared::HAMMERSTEIN { parameter.hammerstein.unwrap_or(parameter.preset) } else { parameter.preset };
            let value = match preset {
                Preset::Unlimited if inputs.stream => Value::Number(BUDGET),
                Preset::Off | Preset::Unlimited => continue,
                Preset::Is(number) => Value::Number(number),
                Preset::Named(_) if parameter.name == shared::KERNEL.name => Value::Name(kernel.clone()),
                Preset::Named(name) => Value::Name(name.into()),
                Preset::Spread(multiple) => Value::Number(multiple * spread),
                Preset::Rms(multiple) => Value::Number(multiple * power.sqrt()),
                Preset::Power(multiple) => Value::Number(multiple * power),
                Preset::PerPower(multiple) => Value::Number(multiple / power),
            };
            values.entry(parameter.name.into()).or_insert(value);
        }
        for parameter in self.parameters.iter().filter(|p| !p.names.is_empty()) {
            if let Some(value) = values.get(parameter.name).map(Value::to_string)
                && !parameter.names.contains(&value.as_str())
            {
                return Err(Error::unknown(parameter.name, value, parameter.names));
            }
        }
        shared::agree(self, &kernel, given, &mut values)?;
        Ok(Settings { recipe: self, values, spread, advance: 0 })
    }
}

impl Settings {
    /// The filter that they belong to.
    pub(crate) fn recipe(&self) -> &'static Recipe {
        self.recipe
    }

    /// All values.
    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    /// For streams that are paired so that the taps reach so many samples past the predicted one.
    pub(crate) fn advanced(self, advance: usize) -> Self {
        Self { advance, ..self }
    }

    /// How many samples past the predicted one the taps reach.
    pub(crate) fn advance(&self) -> usize {
        self.advance
    }

    /// `sqrt(E‖x‖²)` of the inputs that they were settled for.
    pub(crate) fn spread(&self) -> f64 {
        self.spread
    }

    /// The number `name`.
    pub(crate) fn number(&self, name: &str) -> Result<f64> {
        self.optional(name)?.ok_or_else(|| Error::parameter(name, "given", "nothing"))
    }

    /// The number `name`, where it is set.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<f64>> {
        match self.values.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(*number)),
            Some(other) => Err(Error::parameter(name, "a number", other)),
        }
    }

    /// The whole number `name`, where it is set.
    pub(crate) fn whole(&self, name: &str) -> Result<Option<usize>> {
        match self.optional(name)? {
            None => Ok(None),
            Some(n) if (0.0..=1e9).contains(&n) && n.fract() == 0.0 => Ok(Some(n as usize)),
            Some(n) => Err(Error::parameter(name, "a whole number, at least 1", n)),
        }
    }

    /// The name that the choice `name` has, which [`Recipe::settle`] has checked; empty where there is no such choice.
    pub(crate) fn name(&self, name: &str) -> &str {
        match self.values.get(name) {
            Some(Value::Name(name)) => name,
            _ => "",
        }
    }

    /// The numbers `name`: none where it is not set.
    pub(crate) fn list(&self, name: &str) -> Result<Vec<f64>> {
        match self.values.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Number(number)) => Ok(vec![*number]),
            Some(Value::List(list)) => Ok(list.clone()),
            Some(Value::Name(other)) => Err(Error::parameter(name, "a number, or one for each class", other)),
        }
    }
}
