//! Running percentiles, in constant memory.

/// Running percentiles of positive values (latencies in seconds, powers) in constant memory, right to 1 %.
///
/// Values from 1e-12 to 1e12 fall into bins whose edges are 2 % apart; smaller and larger ones count in the first and last.
#[derive(Clone, Debug)]
pub(crate) struct Percentiles {
    bins: Vec<u64>,
    count: u64,
    min: f64,
    max: f64,
}

const SMALLEST: f64 = 1e-12;
const LARGEST: f64 = 1e12;
const RATIO: f64 = 1.02;

impl Percentiles {
    /// Nothing recorded.
    pub(crate) fn new() -> Self {
        let bins = ((LARGEST / SMALLEST).ln() / RATIO.ln()).ceil() as usize;
        Self { bins: vec![0; bins], count: 0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }

    /// Records one value; what is not a finite number is left out.
    pub(crate) fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        let place = (value.max(SMALLEST) / SMALLEST).ln() / RATIO.ln();
        let last = self.bins.len() - 1;
        self.bins[(place as usize).min(last)] += 1;
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The value that a fraction `q` of the recorded ones do not exceed, to 1 %.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let rank = (q.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bin = self.bins.iter().position(|&n| {
            seen += n;
            seen >= rank
        })?;
        // The middle of the bin, and never outside what was seen.
        Some((SMALLEST * ((bin as f64 + 0.5) * RATIO.ln()).exp()).clamp(self.min, self.max))
    }
}

impl Default for Percentiles {
    fn default() -> Self {
        Self::new()
    }
}
