//! What a tracker sees and says, kept for a look.

use std::sync::Arc;

use num_complex::{Complex32, Complex64};

use crate::filter::Portrait;

/// Samples of a whole stretch: enough for a smooth spectrum.
const WHOLE: usize = 1 << 14;
/// A stretch that ends early, at a gap or with the streams, is worth keeping from here on.
const LEAST: usize = 1 << 11;
/// Samples from one stretch to the next: often at first, then so seldom that looking costs a hundredth of the tracker's time.
const FIRST: u64 = 1 << 15;
const LAST: u64 = 1 << 20;
/// Samples of a stretch that somebody has asked for: short, so that it is of this moment.
const GLIMPSE: usize = 1 << 12;
/// No stretch is to begin.
const NEVER: u64 = u64::MAX;

/// Consecutive samples as a tracker saw them, what it predicted, and what it had learned just then. There is no gap inside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    /// Samples of the stream before it, those in gaps of known length included.
    pub start: u64,
    /// What the tracker saw.
    pub input: Vec<Complex32>,
    /// What it was to predict.
    pub target: Vec<Complex32>,
    /// What it predicted.
    pub prediction: Vec<Complex32>,
    /// The taps before every 32 samples; none of a filter that shows nothing.
    pub taps: Vec<Vec<Complex64>>,
    /// All that it shows, before every 256 samples.
    pub portraits: Vec<Portrait>,
}

impl Stretch {
    /// Samples from taps to taps: over so few hardly any channel moves.
    pub(crate) const PIECE: usize = 32;
    /// And from portrait to portrait: what is slower than taps.
    pub(crate) const SCENE: usize = 256;

    /// The nonlinearity that was learned by the end; empty of a filter without one.
    pub(crate) fn gain(&self) -> &[(f64, Complex64)] {
        self.portraits.last().map_or(&[], |portrait| &portrait.gain)
    }

    /// `target − prediction`.
    pub(crate) fn error(&self) -> Vec<Complex32> {
        self.target.iter().zip(&self.prediction).map(|(y, p)| y - p).collect()
    }
}

/// Takes a [`Stretch`] now and then and keeps the last one that is long enough.
pub(super) struct Scope {
    /// Samples of a whole stretch.
    whole: usize,
    now: Stretch,
    last: Option<Arc<Stretch>>,
    /// Samples until the next stretch begins.
    wait: u64,
    pause: u64,
    /// Whether the tracker has shown itself to have nothing to show.
    blank: bool,
}

impl Scope {
    /// Takes stretches by itself.
    pub(super) fn now_and_then() -> Self {
        Self { whole: WHOLE, now: Stretch::default(), last: None, wait: 0, pause: 0, blank: false }
    }

    /// Takes a short stretch when it is asked to.
    pub(super) fn on_demand() -> Self {
        Self { whole: GLIMPSE, wait: NEVER, ..Self::now_and_then() }
    }

    /// Begins a stretch, unless one has begun.
    pub(super) fn ask(&mut self) {
        if self.wait == NEVER {
            self.wait = 0;
        }
    }

    /// Samples that may be pushed at once, at least 1.
    pub(super) fn to_boundary(&self) -> u64 {
        if self.wait > 0 { self.wait } else { (Stretch::PIECE - self.now.target.len() % Stretch::PIECE) as u64 }
    }

    /// To be called before samples are tracked, `time` being the number of samples before them.
    pub(super) fn begin(&mut self, time: u64, portrait: impl FnOnce() -> Portrait, taps: impl FnOnce() -> Vec<Complex64>) {
        let length = self.now.target.len();
        if self.wait > 0 || !length.is_multiple_of(Stretch::PIECE) {
            return;
        }
        if length == 0 {
            self.now.start = time;
        }
        if !self.blank && length.is_multiple_of(Stretch::SCENE) {
            let portrait = Portrait { weights: Vec::new(), ..portrait() };
            self.blank = portrait == Portrait::default();
            self.now.portraits.push(portrait);
        }
        if !self.blank {
            self.now.taps.push(taps());
        }
    }

    /// Takes in what was tracked, at most [`to_boundary`](Self::to_boundary) samples.
    pub(super) fn push(&mut self, input: &[Complex32], target: &[Complex32], prediction: &[Complex32]) {
        if self.wait > 0 {
            if self.wait != NEVER {
                self.wait -= (target.len() as u64).min(self.wait);
            }
            return;
        }
        self.now.input.extend_from_slice(input);
        self.now.target.extend_from_slice(target);
        self.now.prediction.extend_from_slice(prediction);
        if self.now.target.len() >= self.whole {
            self.close();
        }
    }

    /// Ends the stretch: it is whole, or there is a gap, or the streams end.
    pub(super) fn close(&mut self) {
        let now = std::mem::take(&mut self.now);
        let length = now.target.len();
        if self.whole == GLIMPSE {
            // One that a gap has cut short begins anew.
            if length >= LEAST {
                self.wait = NEVER;
                self.last = Some(Arc::new(now));
            }
            return;
        }
        if length >= LEAST {
            self.pause = (2 * self.pause).clamp(FIRST, LAST);
            self.wait = self.pause - length as u64;
        }
        // At the end of the streams, or between gaps, a little of the present is worth less than much of what was just before.
        if length > 0 && self.last.as_ref().is_none_or(|last| 2 * length >= last.target.len()) {
            self.last = Some(Arc::new(now));
        }
    }

    pub(super) fn last(&self) -> Option<Arc<Stretch>> {
        self.last.clone()
    }
}

#[cfg(test)]
#[path = "../../tests/unit/blocks/scope.rs"]
mod tests;
