//! Signal processing that everything else stands on: decibels, oscillators, delays. It knows slices of samples and nothing else.

pub(crate) mod decibel;
#[cfg(feature = "radio")]
mod extent;
mod fourier;
mod interpolate;
mod nco;
#[cfg(feature = "radio")]
mod ratio;
mod solve;
mod window;

pub(crate) use decibel::db;
#[cfg(feature = "radio")]
pub(crate) use extent::Extent;
pub(crate) use fourier::Fourier;
pub(crate) use interpolate::{BEFORE, BEHIND, Place, interpolate};
pub(crate) use nco::{Nco, cis};
#[cfg(feature = "radio")]
pub(crate) use ratio::ratio;
pub(crate) use solve::{factor, solve, substitute};
pub(crate) use window::kaiser;

use num_complex::{Complex32, Complex64};

/// In double precision.
pub(crate) fn wide(z: Complex32) -> Complex64 {
    Complex64::new(f64::from(z.re), f64::from(z.im))
}

/// Rounded to single precision.
pub(crate) fn narrow(z: Complex64) -> Complex32 {
    Complex32::new(z.re as f32, z.im as f32)
}
