#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Parts that only the commands use stay where they belong.
#![cfg_attr(not(feature = "cli"), allow(dead_code, unused_imports))]

pub mod channel;
pub mod dpd;
mod dsp;
mod error;
pub mod filter;
pub mod kernel;
pub mod metrics;
pub mod observation;
pub mod ofdm;
mod real;
mod simd;
pub mod state;

#[cfg(feature = "blocks")]
pub mod blocks;
#[cfg(feature = "iq")]
mod files;
#[cfg(feature = "blocks")]
#[path = "../flowgraphs/mod.rs"]
pub mod flowgraphs;
#[cfg(feature = "iq")]
pub mod iq;

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
mod plot;
#[cfg(feature = "radio")]
pub mod radio;
#[cfg(feature = "cli")]
mod serve;

// Tests of private modules share their helpers with those of the public ones.
#[cfg(test)]
extern crate self as kaflow;

#[cfg(test)]
#[allow(unreachable_pub, reason = "tests outside of the crate share it")]
#[path = "../tests/common/mod.rs"]
mod common;
#[cfg(all(test, feature = "iq"))]
#[path = "../tests/unit/fuzz/mod.rs"]
mod fuzz;

#[cfg(feature = "soapy")]
pub(crate) use self::error::nearest;
pub use self::{
    error::{Error, Result},
    real::Real,
};
pub use num_complex::{Complex, Complex32, Complex64};
