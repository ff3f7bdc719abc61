use super::no_such;
use super::random::{Draws, Random};
use crate::Result;
use crate::error::require;

/// A gap in a stream: `length` samples never arrived before the sample with index `at`, counted over the samples that remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Gap {
    /// Index of the first sample after the gap, among those that remain.
    pub at: u64,
    /// Samples that never arrived.
    pub length: u64,
}

/// A receiver that overflows: gaps start at random and last a random while.
///
/// After each sample a gap begins with probability `rate`; its length is geometric with mean `length`. A fraction
/// `rate·length / (1 + rate·length)` of all samples falls into gaps.
#[derive(Clone, Debug)]
pub(crate) struct Dropper {
    random: Random,
    rate: f64,
    length: f64,
    kept: u64,
    /// Samples so far in the gap that the last sample was in; 0 outside of one.
    gap: u64,
}

impl Dropper {
    /// `rate` gaps per sample, 0 for none, with a mean of `length` samples, at least 1.
    pub(crate) fn new(rate: f64, length: f64, seed: u64) -> Result<Self> {
        let mut dropper = Self { random: Random::new(seed, Draws::Dropper), rate: 0.0, length: 1.0, kept: 0, gap: 0 };
        dropper.set("drop_rate", rate)?;
        dropper.set("drop_length", length)?;
        Ok(dropper)
    }

    /// Whether the next sample survives; a gap that ends with it is pushed to `gaps`.
    pub(crate) fn keep(&mut self, gaps: &mut Vec<Gap>) -> bool {
        if self.rate == 0.0 && self.gap == 0 {
            self.kept += 1;
            return true;
        }
        let drop = if self.gap > 0 { self.random.uniform() >= 1.0 / self.length } else { self.random.uniform() < self.rate };
        if drop {
            self.gap += 1;
        } else {
            if self.gap > 0 {
                gaps.push(Gap { at: self.kept, length: self.gap });
            }
            self.gap = 0;
            self.kept += 1;
        }
        !drop
    }

    /// Back to the first sample.
    pub(crate) fn reset(&mut self) {
        self.random.reset();
        self.kept = 0;
        self.gap = 0;
    }

    /// Changes `drop_rate` or `drop_length` from the next sample on.
    pub(crate) fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "drop_rate" => {
                require((0.0..1.0).contains(&value), name, "at least 0 and less than 1 gap per sample", value)?;
                self.rate = value;
            }
            "drop_length" => {
                require(value.is_finite() && value >= 1.0, name, "1 sample or more", value)?;
                self.length = value;
            }
            _ => return Err(no_such("dropper", name, &["drop_rate", "drop_length"])),
        }
        Ok(())
    }
}
