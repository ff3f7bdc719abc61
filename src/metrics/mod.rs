//! Numbers that judge a run: NMSE over all and over time, EVM, BER, spectrum and ACPR, PAPR, AM/AM and AM/PM, percentiles.
//!
//! Sums are kept in f64 whatever the samples are. Pairs that are not finite are left out. Ratios in dB are those of [`db`].

mod amplifier;
mod error;
mod linearity;
mod percentile;
mod series;
mod spectrum;
mod spread;

use num_complex::{Complex, Complex64};

use crate::Real;

pub use self::{
    amplifier::{papr_db, power},
    error::{Ber, Evm},
    linearity::{Band, Linearity, linearity},
    series::{Row, Series, nmse_db},
};
pub use crate::dsp::decibel::db;

#[cfg(feature = "radio")]
pub(crate) use self::{amplifier::AmPoint, linearity::LEAST_OVERSAMPLING};
pub(crate) use self::{
    amplifier::am_curve,
    percentile::Percentiles,
    spectrum::{Psd, welch},
    spread::Spread,
};

fn wide<T: Real>(z: Complex<T>) -> Complex64 {
    Complex64::new(z.re.wide(), z.im.wide())
}

#[cfg(test)]
#[path = "../../tests/unit/metrics.rs"]
mod tests;
