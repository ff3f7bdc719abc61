//! The complete parameters of one filter.

use super::{Preset, Recipe, Value, Values, shared};
use crate::{Error, Result};

/// The complete parameters of one filter.
#[derive(Clone)]
pub struct Settings {
    recipe: &'static Recipe,
    values: Values,
    spread: f64,
}

impl Recipe {
    /// Checks the values that a user gave against the parameters that this filter has, and fills in the others. `spread` is `sqrt(E‖x‖²)` of the
    /// input vectors, which scales the defaults of lengths.
    pub fn settle(&'static self, given: &Values, spread: f64) -> Result<Settings> {
        if let Some(name) = given.keys().find(|name| !self.has(name)) {
            let known = self.parameters.iter().map(|p| p.name.into()).collect();
            return Err(Error::NotApplicable { filter: self.name.into(), name: name.clone(), known });
        }
        let mut values = given.clone();
        for parameter in self.parameters {
            let value = match parameter.preset {
                Preset::Off | Preset::Unlimited => continue,
                Preset::Is(number) => Value::Number(number),
                Preset::Named(name) => Value::Name(name.into()),
                Preset::Spread(multiple) => Value::Number(multiple * if spread > 0.0 && spread.is_finite() { spread } else { 1.0 }),
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
        shared::agree(self, given, &mut values)?;
        Ok(Settings { recipe: self, values, spread })
    }
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

    /// `sqrt(E‖x‖²)` of the inputs that they were settled for.
    pub(crate) fn spread(&self) -> f64 {
        self.spread
    }

    /// The number `name`.
    pub fn number(&self, name: &str) -> Result<f64> {
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
