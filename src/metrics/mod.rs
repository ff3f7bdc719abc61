//! Numbers that judge a run: NMSE, EVM, BER, spectrum and ACPR, PAPR, AM/AM and AM/PM, interval coverage, percentiles.
//!
//! Sums are kept in f64 whatever the samples are. Pairs that are not finite are left out and counted. Ratios in dB are always
//! finite: see [`db`].

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

/// Where [`db`] stops, to either side: nothing that a radio does is further from 0 dB.
pub const LIMIT_DB: f64 = 300.0;

/// `10 log10(over / under)`, a power ratio in dB, kept within ±[`LIMIT_DB`] so that tables, files and plots never meet an infinity.
/// Nothing over nothing is 0 dB.
///
/// ```
/// use kaflow::metrics::db;
/// assert_eq!(db(1.0, 100.0), -20.0);
/// assert_eq!((db(0.0, 1.0), db(1.0, 0.0), db(0.0, 0.0)), (-300.0, 300.0, 0.0));
/// ```
pub fn db(over: f64, under: f64) -> f64 {
    if over == 0.0 && under == 0.0 {
        return 0.0;
    }
    (10.0 * (over / under).log10()).clamp(-LIMIT_DB, LIMIT_DB)
}
