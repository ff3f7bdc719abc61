//! While nothing happens, the best member alone: the others cost as much, and carry next to no weight.

use super::super::constants::{BANK_BEHIND, BANK_LONG_BEHIND, BANK_PATIENCE, BANK_SETTLED, CLEAR, LIGHT};
use super::super::evidence::NOTHING;
use super::{Bank, SLOTS};
use crate::Real;

impl<T: Real> Bank<T> {
    /// Decides who is awake in the next block: the best member alone where that `may` be, else all. A best member without an end to its window learns nothing meanwhile, as it hardly would.
    pub(in crate::filter::ensemble) fn rest(&mut self, may: bool) {
        let rests = may && self.ready && self.n >= BANK_SETTLED;
        match self.only {
            None if rests => self.leave_alone(self.evidence.best()),
            Some(_) if !rests => self.wake(),
            _ => {}
        }
    }

    /// Begins again where all weight was its own for long, and then none was: the channel has changed, and what stands still is learned sooner from nothing. To begin is
    /// dear: each time only after more samples. `lanes` is the logarithm of their weight.
    pub(in crate::filter::ensemble) fn begin_again(&mut self, lanes: T) {
        if lanes <= T::of(CLEAR) {
            self.ahead += 1;
        }
        self.behind = if self.evidence.level <= T::of(LIGHT) { self.behind + 1 } else { 0 };
        if self.ahead > BANK_BEHIND && self.behind > BANK_BEHIND && self.n >= self.patience {
            self.patience = (2 * self.patience).min(BANK_PATIENCE);
            self.restart();
        }
    }

    /// Whether it has had no weight for so long that it hardly will have any soon.
    pub(in crate::filter::ensemble) fn is_long_behind(&self) -> bool {
        self.behind >= BANK_LONG_BEHIND
    }

    /// Whether all members have predicted the block.
    pub(in crate::filter::ensemble) fn is_awake(&self) -> bool {
        self.only.is_none()
    }

    fn leave_alone(&mut self, best: usize) {
        let evidence = &mut self.evidence;
        for i in 0..SLOTS {
            self.kept[i] = evidence.log.0[i];
            let (bound, weight) = if i == best { (T::zero(), T::one()) } else { (T::of(NOTHING), T::zero()) };
            (evidence.bound.0[i], evidence.log.0[i], evidence.weight.0[i]) = (bound, bound, weight);
        }
        self.only = Some(best);
    }

    /// Goes on with the weights from before.
    fn wake(&mut self) {
        self.only = None;
        let evidence = &mut self.evidence;
        let most = self.kept.iter().fold(T::of(NOTHING), |a, &b| a.max(b));
        let mut total = T::zero();
        for i in 0..SLOTS {
            (evidence.bound.0[i], evidence.log.0[i]) = (T::zero(), self.kept[i]);
            evidence.weight.0[i] = (self.kept[i] - most).exp2();
            total += evidence.weight.0[i];
        }
        evidence.weight.0[..SLOTS].iter_mut().for_each(|w| *w /= total);
    }
}
