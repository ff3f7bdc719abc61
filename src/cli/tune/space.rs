//! Where to search: the parameters of a filter, in ranges that follow from the scale of the data.

use super::score::Data;
use crate::Result;
use crate::filter::registry::{Recipe, Settings, Spacing, Value, Values};
use crate::plot::Axis;

/// One parameter that is searched.
pub(crate) struct Dimension {
    pub(crate) name: &'static str,
    low: f64,
    high: f64,
    spacing: Spacing,
}

impl Dimension {
    /// The value at `unit` in [0, 1], to four digits: what is written down is what was tried.
    fn value(&self, unit: f64) -> f64 {
        let log = |u: f64| four_digits(self.low * (self.high / self.low).powf(u));
        match self.spacing {
            Spacing::Log => log(unit),
            Spacing::Complement => four_digits_below_one(log(unit)),
            Spacing::Odd => self.low + 2.0 * ((self.high - self.low) / 2.0 * unit).round(),
        }
    }

    /// Where a value lies in [0, 1].
    fn unit(&self, value: f64) -> f64 {
        let log = |v: f64| (v.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln();
        let unit = match self.spacing {
            Spacing::Log => log(value),
            Spacing::Complement => log(1.0 - value),
            Spacing::Odd => (value - self.low) / (self.high - self.low),
        };
        unit.clamp(0.0, 1.0)
    }

    /// A value as it is drawn on [`axis`](Self::axis).
    pub(crate) fn drawn(&self, value: f64) -> f64 {
        if self.spacing == Spacing::Complement { 1.0 - value } else { value }
    }

    pub(crate) fn axis(&self) -> Axis {
        match self.spacing {
            Spacing::Log => Axis::new(self.name, "").log(),
            Spacing::Complement => Axis::new(format!("1 − {}", self.name), "").log(),
            Spacing::Odd => Axis::new(self.name, ""),
        }
    }
}

fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// `1 − complement`, without the digits that the subtraction makes up.
fn four_digits_below_one(complement: f64) -> f64 {
    let digits = (4.0 - complement.log10().floor()).clamp(0.0, 15.0) as usize;
    format!("{:.digits$}", 1.0 - complement).parse().unwrap_or(1.0 - complement)
}

/// A filter, what is fixed about it, and what is searched.
pub(crate) struct Space {
    pub(crate) recipe: &'static Recipe,
    fixed: Values,
    pub(crate) dimensions: Vec<Dimension>,
    spread: f64,
    taps: usize,
}

impl Space {
    /// Everything that `given` does not fix. `budget` is for filters that would keep every centre.
    pub(crate) fn new(recipe: &'static Recipe, given: &Values, budget: Option<usize>, data: &Data) -> Result<Self> {
        let mut fixed = given.clone();
        if let Some(budget) = budget.filter(|_| recipe.grows()) {
            fixed.entry("budget".into()).or_insert(Value::Number(budget as f64));
        }
        let spread = data.spread();
        let settled = recipe.settle_stream(&fixed, spread, data.taps)?;
        let values = settled.values();
        // What settling has left out means nothing beside the rest.
        let searched = recipe.parameters.iter().filter(|p| !given.contains_key(p.name) && values.contains_key(p.name));
        let dimensions = searched.filter_map(|p| Some((p.name, p.search?))).map(|(name, search)| {
            let (low, high) = search.ends(&settled, data.taps, spread, data.target_power())?;
            Ok(Dimension { name, low, high, spacing: search.spacing })
        });
        Ok(Self { recipe, fixed, dimensions: dimensions.collect::<Result<_>>()?, spread, taps: data.taps })
    }

    /// The filter as it is when nobody tunes it.
    pub(crate) fn untuned(&self) -> Result<Settings> {
        self.recipe.settle_stream(&self.fixed, self.spread, self.taps)
    }

    /// The filter at a point of the unit cube.
    pub(crate) fn at(&self, point: &[f64]) -> Result<Settings> {
        let mut values = self.fixed.clone();
        values.extend(self.dimensions.iter().zip(point).map(|(d, &u)| (d.name.to_owned(), Value::Number(d.value(u)))));
        self.recipe.settle_stream(&values, self.spread, self.taps)
    }

    /// The point of the unit cube next to these settings.
    pub(crate) fn point(&self, settings: &Settings) -> Vec<f64> {
        self.dimensions.iter().map(|d| settings.number(d.name).map_or(0.5, |value| d.unit(value))).collect()
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/cli/tune/space.rs"]
mod tests;
