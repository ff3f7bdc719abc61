//! How long samples stay in a block.

use std::time::Duration;

// Eight bins to a factor of two: 9 % wide. 2^40 ns is 18 minutes.
const PER_OCTAVE: usize = 8;
const BINS: usize = 40 * PER_OCTAVE;

/// A histogram of the time that samples spend in a block's work call, and the sum of the calls.
///
/// ```
/// use std::time::Duration;
/// let mut latency = kaflow::blocks::Latency::default();
/// latency.add(99, Duration::from_micros(10));
/// latency.add(1, Duration::from_millis(5));
/// assert!(latency.quantile(0.5) < Duration::from_micros(12));
/// assert!(latency.quantile(1.0) > Duration::from_millis(4));
/// assert_eq!(latency.busy(), Duration::from_micros(5010));
/// ```
#[derive(Clone, Debug)]
pub struct Latency {
    samples: [u64; BINS],
    busy: Duration,
}

impl Default for Latency {
    fn default() -> Self {
        Self { samples: [0; BINS], busy: Duration::ZERO }
    }
}

impl Latency {
    /// `samples` passed in one call that took `time`.
    pub fn add(&mut self, samples: u64, time: Duration) {
        let nanoseconds = time.as_nanos().max(1) as f64;
        let bin = (nanoseconds.log2() * PER_OCTAVE as f64) as usize;
        self.samples[bin.min(BINS - 1)] += samples;
        self.busy += time;
    }

    /// The time that the fraction `q` of all samples stayed below (the upper edge of its bin).
    pub fn quantile(&self, q: f64) -> Duration {
        let total: u64 = self.samples.iter().sum();
        let wanted = q * total as f64;
        let mut seen = 0;
        let bin = self.samples.iter().position(|&n| {
            seen += n;
            n > 0 && seen as f64 >= wanted
        });
        bin.map_or(Duration::ZERO, |bin| Duration::from_nanos(2f64.powf((bin + 1) as f64 / PER_OCTAVE as f64) as u64))
    }

    /// The time spent working.
    pub fn busy(&self) -> Duration {
        self.busy
    }

    /// Samples for each second of work.
    pub fn rate(&self) -> f64 {
        let total: u64 = self.samples.iter().sum();
        total as f64 / self.busy.as_secs_f64().max(1e-9)
    }
}
