//! The canceller by name.

use super::Canceller;
use crate::Result;
use crate::filter::Tracker;
use crate::filter::registry::{Dash, Hue, Make, Parameter, Preset, Recipe, Settings, log};

pub(in crate::filter) const RECIPE: Recipe = Recipe {
    name: "canceller",
    aliases: &[],
    about: "amplifier with memory, images and DC that stand still behind one gain that drifts: for self-interference",
    reference: "kaflow, after Morgan et al. 2006",
    parameters: &[Parameter::number(
        "average",
        "samples that the canceller's weights are averaged over",
        Preset::Is(262_144.0),
        log(1e4, 1e8),
    )],
    likelihood: None,
    covariance: |_, _| 0.0,
    look: (Hue::Olive, Dash::Solid),
    make: Make::Tracker(build),
};

fn build(s: &Settings, taps: usize) -> Result<Box<dyn Tracker<f32>>> {
    Ok(Box::new(Canceller::new(taps, s.advance(), s.number("average")?)?))
}
