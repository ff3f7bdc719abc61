//! Moments of a run, evenly spaced and in constant memory.

/// How many moments are kept before every second one is dropped.
const MOST: usize = 256;

/// What something was at moments of the run: all of them at first, later every second, every fourth...
pub(super) struct History<T> {
    moments: Vec<(u64, T)>,
    stride: u64,
    offered: u64,
    /// Samples at the last offer.
    last: u64,
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self { moments: Vec::new(), stride: 1, offered: 0, last: 0 }
    }
}

impl<T> History<T> {
    /// What was kept, each with the number of samples at that moment.
    pub(super) fn moments(&self) -> &[(u64, T)] {
        &self.moments
    }

    /// Takes in a moment after `samples`, if it is one to be kept. Nothing happens where no sample has come since the last.
    pub(super) fn offer(&mut self, samples: u64, value: T) {
        if samples <= self.last {
            return;
        }
        self.last = samples;
        self.offered += 1;
        if !self.offered.is_multiple_of(self.stride) {
            return;
        }
        self.moments.push((samples, value));
        if self.moments.len() == MOST {
            // Those that the next stride would have kept.
            let mut n = 0;
            self.moments.retain(|_| {
                n += 1;
                n % 2 == 0
            });
            self.stride *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_stay_even_and_few() {
        let mut history = History::default();
        for n in 1..=100_000u64 {
            history.offer(10 * n, n);
            history.offer(10 * n, 0);
        }
        let moments = history.moments();
        assert!((MOST / 2 - 1..MOST).contains(&moments.len()));
        assert!(moments.iter().all(|(at, n)| *at == 10 * n));
        let step = moments[1].0 - moments[0].0;
        assert!(moments.windows(2).all(|w| w[1].0 - w[0].0 == step) && moments[0].0 == step);
    }
}
