//! Which members run.
//!
//! The weight lies with neighbours: of sixteen spans, each 1.45 times the one before, those that describe a channel about as well as the best are within a factor of ten. So
//! eight in a row run, one vector of single precision, and the others rest; where the weight wanders to the end of these, the next four take up the taps of
//! the member there, and four at the other end rest. All run in one block of 32, while the channel is acquired, and while predictions are worse than expected.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Ensemble;
use super::constants::{BEHIND, MEMBERS, NARROW_WEIGHT};
use super::evidence::NOTHING;
use super::lanes::Lanes;
use crate::Real;
use crate::simd::Level;

/// Members that run where not all do, and by how many they move.
pub(super) const HALF: usize = MEMBERS / 2;
const STEP: usize = MEMBERS / 4;

/// Neighbours that run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Window {
    pub(super) first: usize,
    pub(super) end: usize,
}

impl Window {
    pub(super) const ALL: Self = Self { first: 0, end: MEMBERS };

    fn from(first: usize) -> Self {
        Self { first, end: first + HALF }
    }

    pub(super) fn members(self) -> Range<usize> {
        self.first..self.end
    }

    pub(super) fn is_sound(self) -> bool {
        self == Self::ALL || (self.first.is_multiple_of(STEP) && self.first <= HALF && self.end == self.first + HALF)
    }

    /// Those that are to run next where `mean` is the middle of the weight; `beside` tells the weight beside some.
    fn next(self, mean: f64, beside: impl Fn(Self) -> f64) -> Self {
        if self == Self::ALL {
            let first = ((mean - (HALF - 1) as f64 / 2.0) / STEP as f64).round().clamp(0.0, 2.0) as usize * STEP;
            return if beside(Self::from(first)) < NARROW_WEIGHT { Self::from(first) } else { self };
        }
        // One beyond the middle of the way to the next: they do not move to and fro.
        let off = mean - self.first as f64;
        match self.first {
            first if off < 1.0 && first > 0 => Self::from(first - STEP),
            first if off > (HALF - 2) as f64 && first < HALF => Self::from(first + STEP),
            _ => self,
        }
    }
}

impl<T: Real> Lanes<T> {
    /// Decides which members run: all, or where it is `calm` those that carry the weight.
    pub(super) fn choose(&mut self, calm: bool) {
        let (before, weight) = (self.evidence.window, self.evidence.weight.0);
        let within = |window: Window| window.members().map(|m| weight[m].wide()).sum::<f64>();
        let mean: f64 = weight.iter().enumerate().map(|(m, w)| m as f64 * w.wide()).sum();
        let next = if calm { before.next(mean, |window| 1.0 - within(window)) } else { Window::ALL };
        let best = self.evidence.best();
        for m in next.members().filter(|m| !before.members().contains(m)) {
            let from = if calm { m.clamp(before.first, before.end - 1) } else { best };
            self.wake(m, from, if calm { 0.0 } else { BEHIND });
        }
        for m in before.members().filter(|m| !next.members().contains(m)) {
            (self.evidence.log.0[m], self.evidence.weight.0[m]) = (T::of(NOTHING), T::zero());
        }
        self.evidence.window = next;
    }
}

impl<T: Real> Ensemble<T> {
    /// Vectors that are not wider than the lanes that run.
    pub(super) fn lanes_level(&self) -> Level {
        if self.lanes.evidence.window == Window::ALL { self.level } else { self.level.min(Level::Avx2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_members_follow_the_weight_and_do_not_move_to_and_fro() {
        let at = |first: usize| Window::from(first);
        let next = |window: Window, mean: f64| window.next(mean, |_| 0.01);
        for (mean, first) in [(0.0, 0), (5.0, 0), (6.0, 4), (9.0, 4), (10.0, 8), (15.0, 8)] {
            assert_eq!(next(Window::ALL, mean), at(first), "{mean}");
            assert_eq!(next(at(first), mean), at(first), "{mean}");
        }
        assert_eq!((next(at(0), 6.5), next(at(4), 4.5), next(at(4), 10.5), next(at(8), 8.5)), (at(4), at(0), at(8), at(4)));
        assert_eq!((next(at(0), 0.0), next(at(8), 15.0)), (at(0), at(8)));
        // Weight at both ends.
        assert_eq!(Window::ALL.next(5.0, |_| 0.4), Window::ALL);
    }
}
