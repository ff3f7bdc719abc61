//! Ratios of powers in decibels.

/// Where [`db`] stops, to either side: nothing that a radio does is further from 0 dB.
const LIMIT_DB: f64 = 300.0;

/// `10 log10(over / under)`, a power ratio in dB, kept within ±300 so that tables, files and plots never meet an infinity.
/// Nothing over nothing is 0 dB; what is not a number stays so.
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
