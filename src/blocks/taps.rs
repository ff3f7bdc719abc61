//! A filter's taps over time, in constant memory.

use num_complex::Complex64;
use serde::{Deserialize, Serialize};

/// How many numbers a history holds before it halves its resolution.
const CAPACITY: usize = 1 << 14;

/// What taps were, at evenly spaced moments.
///
/// The history holds at most 1024 moments, fewer of a long impulse response: when it is full, every second one is dropped and from then on moments
/// are twice as far apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TapHistory {
    moments: Vec<(u64, Vec<Complex64>)>,
    /// Of this many moments offered, one is kept.
    stride: u64,
    offered: u64,
    /// Whether the filter has shown itself to have no taps.
    none: bool,
}

impl TapHistory {
    /// The moments so far: how many samples had been seen, and the taps then.
    pub(crate) fn moments(&self) -> &[(u64, Vec<Complex64>)] {
        &self.moments
    }

    /// Takes in the taps after `samples` samples, if this moment is one to be kept.
    pub(super) fn offer(&mut self, samples: u64, taps: impl FnOnce() -> Vec<Complex64>) {
        self.offered += 1;
        if self.none || !self.offered.is_multiple_of(self.stride.max(1)) {
            return;
        }
        let taps = taps();
        self.none = taps.is_empty() && self.moments.is_empty();
        if self.none {
            return;
        }
        let most = (CAPACITY / taps.len().max(1)).clamp(16, 1024);
        self.moments.push((samples, taps));
        if self.moments.len() >= most {
            // Those that the next stride would have kept: the even ones in the order of offers.
            let mut even = true;
            self.moments.retain(|_| {
                even = !even;
                even
            });
            self.stride = 2 * self.stride.max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_evenly_spaced_in_bounded_memory() {
        for taps in [1, 4, 100, 5000] {
            let mut history = TapHistory::default();
            for i in 1..=10_000_u64 {
                history.offer(i * 16, || vec![Complex64::new(i as f64, 0.0); taps]);
            }
            let moments = history.moments();
            assert!(moments.len() <= 1024 && moments.len() * taps <= CAPACITY.max(16 * taps) && moments.len() >= 8, "{}", moments.len());
            let step = moments[1].0 - moments[0].0;
            assert!(moments.windows(2).all(|w| w[1].0 - w[0].0 == step) && moments[0].0 == step, "{taps} taps");
            assert!(moments.last().is_some_and(|m| m.0 > 160_000 - step));
            assert!(moments.iter().all(|(at, h)| h[0].re * 16.0 == *at as f64 && h.len() == taps));
        }
    }

    #[test]
    fn a_filter_without_taps_is_asked_once() {
        let (mut history, mut asked) = (TapHistory::default(), 0);
        for i in 0..100 {
            history.offer(i, || {
                asked += 1;
                Vec::new()
            });
        }
        assert_eq!((asked, history.moments().len()), (1, 0));
    }
}
