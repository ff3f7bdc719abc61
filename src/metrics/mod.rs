//! Numbers that judge a run: NMSE, EVM, BER, spectrum and ACPR, PAPR, AM/AM and AM/PM, interval coverage, percentiles.
//!
//! Sums are kept in f64 whatever the samples are. Pairs that are not finite are left out and counted. Ratios in dB are always
//! finite: see [`dsp::db`](crate::dsp::db).

mod amplifier;
mod coverage;
mod error;
mod nmse;
mod percentile;
mod spectrum;

pub use amplifier::{AmCurve, AmPoint, ccdf, papr_db, power};
pub use coverage::{Coverage, normal_quantile};
pub use error::{Ber, Evm};
pub use nmse::{Memory, Nmse, nmse_db, nmse_over_time};
pub use percentile::{Percentiles, percentile};
pub use spectrum::{Psd, welch};
