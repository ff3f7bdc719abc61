//! The delay line of blocks that feed a filter on vectors.

use num_complex::Complex32;
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use crate::{Result, filter::Window};

/// A window that knows whether it may be learned from: not while a hole or a sample that is no number is inside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CleanWindow {
    window: Window<f32>,
    unclean: u64,
}

impl CleanWindow {
    pub(super) fn new(taps: usize) -> Result<Self> {
        Ok(Self { window: Window::new(taps)?, unclean: 0 })
    }

    pub(super) fn taps(&self) -> usize {
        self.window.taps()
    }

    /// Takes in a sample; shows the window, newest first, and whether to learn from it.
    pub(super) fn push(&mut self, sample: Complex32) -> (&[Complex32], bool) {
        let finite = sample.re.is_finite() && sample.im.is_finite();
        if !finite {
            self.unclean = self.taps() as u64;
        }
        let clean = self.unclean == 0;
        self.unclean = self.unclean.saturating_sub(1);
        (self.window.push(if finite { sample } else { Complex32::zero() }), clean)
    }

    /// Samples are missing before the next one.
    pub(super) fn gap(&mut self) {
        self.unclean = self.unclean.max(self.taps() as u64 - 1);
    }

    pub(super) fn clear(&mut self) {
        self.window.clear();
        self.unclean = 0;
    }

    /// Whether a window that was read from a file can be pushed to in place of this one.
    pub(super) fn fits(&self, saved: &Self) -> Result<()> {
        crate::filter::state::same_shape("taps", saved.taps(), self.taps())
    }
}
