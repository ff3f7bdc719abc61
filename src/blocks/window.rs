//! Blocks that feed a filter on vectors with windows of a stream.

use futuresdr::runtime::{Pmt, dev::ItemTag};
use num_complex::Complex32;
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use super::{fault::guarded, message, tags};
use crate::{
    Result,
    filter::{Adaptive, Window},
};

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
        crate::state::same_shape("taps", saved.taps(), self.taps())
    }
}

/// A filter on windows of a stream, and the messages that steer it.
pub(super) struct OnWindows<F> {
    pub(super) filter: F,
    window: CleanWindow,
    frozen: bool,
    gaps: Vec<usize>,
}

impl<F: Adaptive> OnWindows<F> {
    pub(super) fn new(filter: F, taps: usize) -> Result<Self> {
        Ok(Self { filter, window: CleanWindow::new(taps)?, frozen: false, gaps: Vec::new() })
    }

    /// Calls `step` for each sample of `input` with its number, its window, and whether to learn from it. A panic in there is an error.
    pub(super) fn run<'a>(
        &mut self,
        input: &[Complex32],
        tags: impl IntoIterator<Item = &'a ItemTag>,
        mut step: impl FnMut(&mut F, usize, &[Complex32], bool),
    ) -> Result<()> {
        tags::gaps(tags, input.len(), &mut self.gaps);
        guarded("the filter", || {
            let mut gaps = self.gaps.iter().copied().peekable();
            for (i, &sample) in input.iter().enumerate() {
                if gaps.next_if_eq(&i).is_some() {
                    self.window.gap();
                }
                let (x, clean) = self.window.push(sample);
                step(&mut self.filter, i, x, clean && !self.frozen);
            }
        })
    }

    /// `adapt`: whether to learn.
    pub(super) fn adapt(&mut self, p: &Pmt) -> futuresdr::runtime::Result<Pmt> {
        message::answer("adapt", p, |p| {
            self.frozen = !message::switch(p)?;
            Ok(())
        })
    }

    /// `reset`: forgets everything.
    pub(super) fn reset(&mut self, p: &Pmt) -> futuresdr::runtime::Result<Pmt> {
        message::answer("reset", p, |_| {
            self.filter.reset();
            self.window.clear();
            Ok(())
        })
    }

    /// `set`: a parameter by name.
    pub(super) fn set(&mut self, p: &Pmt) -> futuresdr::runtime::Result<Pmt> {
        message::answer("set", p, |p| {
            let (name, value) = message::assignment(p)?;
            self.filter.set(&name, value)
        })
    }
}
