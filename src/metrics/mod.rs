//! Numbers that judge a run: NMSE over all and over time, EVM, BER, spectrum and ACPR, PAPR, AM/AM and AM/PM, percentiles.
//!
//! Sums are kept in f64 whatever the samples are. Pairs that are not finite are left out. Ratios in dB are those of [`dsp::db`](crate::dsp::db).

mod amplifier;
mod error;
mod linearity;
mod percentile;
mod series;
mod spectrum;
mod spread;

use num_complex::{Complex, Complex64};

use crate::Real;

pub use amplifier::AmPoint;
pub use amplifier::{AmCurve, papr_db, power};
pub use error::{Ber, Evm};
pub use linearity::{Band, LEAST_OVERSAMPLING, Linearity, linearity};
pub use percentile::Percentiles;
pub use series::{Row, Series, nmse_db};
pub(crate) use spectrum::Psd;
pub use spectrum::welch;
pub(crate) use spread::Spread;

fn wide<T: Real>(z: Complex<T>) -> Complex64 {
    Complex64::new(z.re.wide(), z.im.wide())
}

#[cfg(test)]
#[path = "../../tests/unit/metrics.rs"]
mod tests;
