//! Parameters.

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use crate::error::require;
use crate::{Real, Result};

/// Parameters of [`Ensemble`](super::Ensemble).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EnsembleConfig {
    /// Taps of the members for moving channels, those of the advance included.
    pub taps: usize,
    /// How many samples after the predicted one the taps reach. Whoever feeds the tracker pairs the streams with [`pair`].
    pub advance: usize,
    /// Samples before the predicted one that the bank for still channels reaches: an amplifier's output filter rings longer than a channel has echoes.
    pub still_taps: usize,
    /// What remains of the evidence for a member after a sample, between 0 and 1.
    pub evidence: f64,
}

impl Default for EnsembleConfig {
    fn default() -> Self {
        Self { taps: 4, advance: 0, still_taps: 32, evidence: 0.99 }
    }
}

impl EnsembleConfig {
    /// Names the first parameter that is out of range.
    pub(crate) fn validate(&self) -> Result<()> {
        require((1..=256).contains(&self.taps), "taps", "between 1 and 256", self.taps as f64)?;
        require(self.advance < self.taps, "advance", "less than taps", self.advance as f64)?;
        require((1..=256).contains(&self.still_taps), "still-taps", "between 1 and 256", self.still_taps as f64)?;
        require(self.evidence > 0.0 && self.evidence <= 1.0, "evidence", "above 0 and at most 1", self.evidence)
    }
}

/// Pairs two aligned streams so that the taps reach `advance` samples past the predicted one: sample `n` of the output goes with sample `n + advance` of
/// the input. After alignment on its strongest tap a real channel has precursors; they are taps of negative delay.
///
/// ```
/// use kaflow::{Complex, filter::ensemble::pair};
/// let stream: Vec<_> = (0..5).map(|n| Complex::new(n as f32, 0.0)).collect();
/// let (tx, rx) = pair(&stream, &stream, 2);
/// assert_eq!((tx.len(), rx.len()), (3, 3));
/// assert_eq!((tx[0].re, rx[0].re), (2.0, 0.0));
/// ```
pub fn pair<'a, T: Real>(tx: &'a [Complex<T>], rx: &'a [Complex<T>], advance: usize) -> (&'a [Complex<T>], &'a [Complex<T>]) {
    let tx = &tx[advance.min(tx.len())..];
    let n = tx.len().min(rx.len());
    (&tx[..n], &rx[..n])
}
