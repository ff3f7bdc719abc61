//! The simulated test bed: amplifiers, fading, noise and offsets, pure and seeded.
//!
//! Every part is a small struct that works on a *stream*: it takes the samples in pieces of any length, gives the same output however
//! they are cut, draws its random numbers from its own seed, and starts over, bit for bit, after `reset`. Parts that keep the number of
//! samples implement [`Stage`]; `SampleOffset` and `Dropper` change it and therefore have calls of their own.
//! [`TestBed`] strings them together as a [`Scenario`] says:
//!
//! ```text
//! OFDM, clipped ─► amplifier ─► fading taps ─► delay, sampling offset ─► carrier offset ─► phase noise
//!       │                                       ─► noise ─► IQ imbalance ─► DC ─► ADC ─► dropped samples ─► rx
//!       └────────────────────────────────────────────────────────────────────────────────────────────────► tx
//! ```
//!
//! # Conventions
//!
//! - Samples are [`Complex32`]; all arithmetic inside is double precision.
//! - Frequencies are in cycles per sample, delays in samples, powers are means of `|x|²`.
//! - The same seed gives the same samples on every machine: transcendental functions come from the `libm` crate and nothing is fused
//!   or reordered.
//! - A sample that is not finite spoils the outputs that depend on it and nothing after them: no part keeps a running average of its input.
//!
//! ```
//! use kaflow::{Complex32, channel::{Amplifier, Model, Stage}};
//!
//! let mut amplifier = Amplifier::new(Model::Rapp { smoothness: 2.0 }, -6.0)?; // driven 6 dB into saturation
//! let mut samples = [Complex32::new(0.01, 0.0), Complex32::new(100.0, 0.0)];
//! amplifier.process(&mut samples);
//! assert!((samples[0].re - 0.02).abs() < 1e-4); // small signals see the drive
//! assert!((samples[1].re - 1.0).abs() < 1e-4); // large ones the saturation
//! # Ok::<(), kaflow::Error>(())
//! ```

mod adc;
mod amplifier;
mod carrier;
mod dropper;
mod fading;
mod front_end;
mod impairments;
mod jakes;
mod noise;
mod profile;
pub(crate) mod random;
mod resample;
mod scenario;
mod testbed;

pub use self::{
    amplifier::{Amplifier, AmplifierConfig, Model, Point, Term},
    dropper::Gap,
    fading::{Fading, FadingConfig},
    impairments::ImpairmentsConfig,
    noise::Noise,
    profile::{Doppler, Profile},
    scenario::Scenario,
    testbed::{Chunk, TestBed},
};

pub(crate) use self::{
    adc::Quantiser,
    carrier::{CarrierOffset, PhaseNoise},
    dropper::Dropper,
    front_end::{DcOffset, IqImbalance},
    impairments::Impairments,
    resample::SampleOffset,
};

use num_complex::Complex32;

use crate::dsp::{narrow, wide};
use crate::{Error, Result};

/// A part of the test bed that changes a stream in place.
pub trait Stage: Send {
    /// Changes the next samples of the stream. Output does not depend on how the stream is cut into calls.
    fn process(&mut self, samples: &mut [Complex32]);

    /// Back to the first sample, random numbers included; parameters stay as they were last set.
    fn reset(&mut self);

    /// Changes a parameter from the next sample on. An unknown name or an invalid value is an error and changes nothing.
    fn set(&mut self, name: &str, value: f64) -> Result<()>;
}

/// The error for a parameter that a part does not have.
fn no_such(part: &str, name: &str, known: &[&str]) -> Error {
    Error::NotApplicable { filter: part.into(), name: name.into(), known: known.iter().map(|&k| k.to_owned()).collect() }
}

/// A power ratio from decibels.
fn from_db(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

#[cfg(test)]
#[path = "../../tests/unit/channel/mod.rs"]
mod tests;
