//! The clock of an air.

use std::time::Instant;

/// Which sample is due when: counted from the last time that the rate was set.
pub(super) struct Clock {
    pub(super) rate: f64,
    pub(super) sample: u64,
    pub(super) time_ns: i64,
    /// When that sample was due; none runs as fast as possible.
    pub(super) due: Option<Instant>,
}

impl Clock {
    pub(super) fn time_ns(&self, sample: u64) -> i64 {
        self.time_ns + ((sample as f64 - self.sample as f64) * 1e9 / self.rate).round() as i64
    }

    pub(super) fn sample_at(&self, time_ns: i64) -> u64 {
        (self.sample as f64 + (time_ns - self.time_ns) as f64 * self.rate / 1e9).round().max(0.0) as u64
    }
}
