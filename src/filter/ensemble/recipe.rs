//! The ensemble by name.

use super::{Ensemble, EnsembleConfig};
use crate::Result;
use crate::filter::Tracker;
use crate::filter::registry::{Dash, Hue, Make, Parameter, Preset, Recipe, Settings};

pub(in crate::filter) const RECIPE: Recipe = Recipe {
    name: "ensemble",
    aliases: &["mixture", "two-speed"],
    about: "slow amplifier, channels at sixteen speeds and a bank for still ones, averaged by their likelihood: nothing to tune",
    reference: "kaflow, after Raftery, Karny, Ettler 2010",
    parameters: &[
        Parameter::number("still-taps", "samples that the ensemble's bank for still channels reaches back", Preset::Is(32.0), None),
        Parameter::number("evidence", "what remains of the ensemble's evidence for a member after a sample", Preset::Is(0.99), None),
    ],
    likelihood: None,
    covariance: |_, _| 0.0,
    look: (Hue::Vermillion, Dash::Solid),
    make: Make::Tracker(build),
};

fn build(s: &Settings, taps: usize) -> Result<Box<dyn Tracker<f32>>> {
    let config =
        EnsembleConfig { taps, advance: s.advance(), still_taps: s.whole("still-taps")?.unwrap_or(0), evidence: s.number("evidence")? };
    Ok(Box::new(Ensemble::new(config)?))
}
