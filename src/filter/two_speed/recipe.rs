//! Two-speed and its mixture by name.

use super::{Motion, TwoSpeed, TwoSpeedConfig};
use crate::filter::registry::{Dash, Hue, Make, Parameter, Preset, Recipe, Settings, log};
use crate::filter::{Mixture, MixtureConfig, Tracker};
use crate::{Real, Result};

const RBFS: Parameter = Parameter::number(
    "rbfs",
    "Gaussians over the envelope that make up two-speed's nonlinearity; 0 makes it linear",
    Preset::Is(8.0),
    None,
);
const WIDELY_LINEAR: Parameter =
    Parameter::choice("widely-linear", "whether there are taps for the conjugate too, against IQ imbalance", &["no", "yes"]);

pub(in crate::filter) const RECIPE: Recipe = Recipe {
    name: "two-speed",
    aliases: &[],
    about: "slow amplifier, fast channel: a Hammerstein pair of Kalman filters, with variance",
    reference: "kaflow, after Park, Seth, Van Vaerenbergh 2013",
    parameters: &[
        RBFS,
        Parameter::number("memory", "memory of two-speed's nonlinearity, in samples, beside that of the channel", Preset::Is(0.0), None),
        Parameter::choice("motion", "how two-speed's channel moves", &["velocity", "walk"]),
        Parameter::number("span", "samples over which two-speed's channel looks like a straight line", Preset::Is(30.0), log(5.0, 3000.0)),
        Parameter::number(
            "drift",
            "part of its uncertainty that two-speed's nonlinearity gets back every sample",
            Preset::Is(1e-6),
            log(1e-8, 1e-3),
        ),
        Parameter::choice("carrier", "whether two-speed estimates a carrier offset", &["no", "yes"]),
        WIDELY_LINEAR,
    ],
    likelihood: None,
    look: (Hue::Vermillion, Dash::Solid),
    make: Make::Tracker(build, build),
};

fn build<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Tracker<T>>> {
    Ok(Box::new(TwoSpeed::new(TwoSpeedConfig {
        taps,
        centres: s.whole("rbfs")?.unwrap_or(0),
        memory: s.whole("memory")?.unwrap_or(0),
        motion: if s.name("motion") == "walk" { Motion::Walk } else { Motion::Velocity },
        span: s.number("span")?,
        drift: s.number("drift")?,
        carrier: s.name("carrier") == "yes",
        widely_linear: s.name("widely-linear") == "yes",
        ..TwoSpeedConfig::default()
    })?))
}

pub(in crate::filter) const MIXTURE: Recipe = Recipe {
    name: "mixture",
    aliases: &[],
    about: "two-speed at several rates, averaged by their recent likelihood: nothing to tune",
    reference: "Raftery, Karny, Ettler 2010",
    parameters: &[
        RBFS,
        Parameter::number("still-taps", "taps of the mixture's member for still channels", Preset::Is(32.0), None),
        WIDELY_LINEAR,
        Parameter::number("evidence", "what remains of the mixture's evidence for a member after a sample", Preset::Is(0.99), None),
    ],
    likelihood: None,
    look: (Hue::Indigo, Dash::DashDot),
    make: Make::Tracker(build_mixture, build_mixture),
};

fn build_mixture<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Tracker<T>>> {
    Ok(Box::new(Mixture::standard(&MixtureConfig {
        taps,
        centres: s.whole("rbfs")?.unwrap_or(0),
        still_taps: s.whole("still-taps")?.unwrap_or(0),
        widely_linear: s.name("widely-linear") == "yes",
        forgetting: s.number("evidence")?,
        ..MixtureConfig::default()
    })?))
}
