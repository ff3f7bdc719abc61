//! What a filter says about one of its parameters.

use num_complex::Complex64;

use super::Settings;
use crate::Result;

/// A parameter of a filter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// As options and files spell it.
    pub name: &'static str,
    /// What it does, with its unit: the same words at every filter that has it.
    pub about: &'static str,
    /// The names that it can take; none for a number.
    pub names: &'static [&'static str],
    /// What it is when nobody sets it.
    pub preset: Preset,
    /// Where it is searched; none for what says what a filter is or costs rather than how it fits the data.
    pub search: Option<Search>,
}

/// What a parameter is when nobody sets it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preset {
    /// Not set: the feature that it controls is off.
    Off,
    /// Not set, and without it the filter grows with every sample: whoever runs it for long sets it.
    Unlimited,
    /// A number.
    Is(f64),
    /// A name.
    Named(&'static str),
    /// A multiple of the spread of the data, `sqrt(E‖x‖²)`.
    Spread(f64),
}

/// A range to search, in units of the data.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Its ends; for [`Spacing::Complement`] those of `1 − value`.
    pub from: f64,
    /// The greater one.
    pub to: f64,
    /// What they are multiplied by.
    pub unit: Unit,
    /// How values are spread over it.
    pub spacing: Spacing,
}

/// How a parameter is spread over its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Evenly in its logarithm.
    Log,
    /// `1 − value` evenly in its logarithm: forgetting factors.
    Complement,
    /// Odd numbers.
    Odd,
}

/// What the ends of a range are multiplied by, so that it follows the scale of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 1.
    One,
    /// `sqrt(E‖x‖²)` of the inputs.
    Spread,
    /// `E‖x‖²` of the inputs.
    InputPower,
    /// `E|y|²` of the targets.
    TargetPower,
    /// That of the targets over that of the inputs.
    PowerRatio,
    /// `1 / k(x,x)` of a typical input.
    PerNorm,
}

impl Parameter {
    /// A number. Both what it is by default and where it is searched are part of it.
    pub(crate) const fn number(name: &'static str, about: &'static str, preset: Preset, search: Option<Search>) -> Self {
        Self { name, about, names: &[], preset, search }
    }

    /// One of some names, the first if nobody chooses.
    pub(crate) const fn choice(name: &'static str, about: &'static str, names: &'static [&'static str]) -> Self {
        Self { name, about, names, preset: Preset::Named(names[0]), search: None }
    }

    /// The same with another default.
    pub(crate) const fn preset(self, preset: Preset) -> Self {
        Self { preset, ..self }
    }

    /// The same with another range.
    pub(crate) const fn within(self, search: Option<Search>) -> Self {
        Self { search, ..self }
    }
}

/// Evenly in the logarithm, in units of 1.
pub(crate) const fn log(from: f64, to: f64) -> Option<Search> {
    scaled(from, to, Unit::One)
}

/// Evenly in the logarithm, in some unit.
pub(crate) const fn scaled(from: f64, to: f64, unit: Unit) -> Option<Search> {
    Some(Search { from, to, unit, spacing: Spacing::Log })
}

/// Forgetting factors from `1 − to` to `1 − from`.
pub(crate) const fn below_one(from: f64, to: f64) -> Option<Search> {
    Some(Search { from, to, unit: Unit::One, spacing: Spacing::Complement })
}

/// Odd numbers.
pub(crate) const fn odd(from: f64, to: f64) -> Option<Search> {
    Some(Search { from, to, unit: Unit::One, spacing: Spacing::Odd })
}

impl Search {
    /// Its ends for inputs of `taps` numbers with this `spread`, and targets of this power.
    pub fn ends(&self, settings: &Settings, taps: usize, spread: f64, target_power: f64) -> Result<(f64, f64)> {
        let unit = match self.unit {
            Unit::One => 1.0,
            Unit::Spread => spread,
            Unit::InputPower => spread * spread,
            Unit::TargetPower => target_power,
            Unit::PowerRatio => target_power / (spread * spread),
            Unit::PerNorm => {
                let typical = vec![Complex64::new(spread / (taps as f64).sqrt(), 0.0); taps];
                settings.kernel::<f64>()?.norm(&typical).recip()
            }
        };
        Ok((self.from * unit, self.to * unit))
    }
}
