//! How long samples stay in a block.

use std::time::Duration;

use crate::metrics::Percentiles;

/// How long a block's work calls take, which is how long samples stay in it, and how fast it works.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    calls: Percentiles,
    samples: u64,
    busy: Duration,
}

impl Default for Latency {
    fn default() -> Self {
        Self { calls: Percentiles::new(), samples: 0, busy: Duration::ZERO }
    }
}

impl Latency {
    /// `samples` passed in one call that took `time`.
    pub(crate) fn add(&mut self, samples: u64, time: Duration) {
        self.calls.push(time.as_secs_f64());
        self.samples += samples;
        self.busy += time;
    }

    /// The time that the fraction `q` of the calls took at most.
    pub(crate) fn quantile(&self, q: f64) -> Duration {
        Duration::from_secs_f64(self.calls.quantile(q).unwrap_or(0.0))
    }

    /// Samples for each second of work.
    pub(crate) fn rate(&self) -> f64 {
        self.samples as f64 / self.busy.as_secs_f64().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_call_in_a_hundred() {
        use std::time::Duration;
        let mut latency = Latency::default();
        (0..99).for_each(|_| latency.add(100, Duration::from_micros(10)));
        latency.add(100, Duration::from_millis(5));
        assert!(latency.quantile(0.5) < Duration::from_micros(11));
        assert!(latency.quantile(1.0) > Duration::from_millis(4));
        assert!((latency.rate() / (10_000.0 / 5990e-6) - 1.0).abs() < 1e-9); // samples for each second of work
    }
}
