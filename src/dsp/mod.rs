//! Signal processing that everything else stands on: decibels, oscillators, delays. It knows slices of samples and nothing else.

mod decibel;

pub use decibel::{LIMIT_DB, db};
