//! Blocks that feed a filter on vectors with windows of a stream.

use futuresdr::runtime::{Pmt, dev::ItemTag};
use num_complex::Complex32;

use super::{fault::guarded, message, tags};
use crate::{
    Result,
    filter::{Adaptive, CleanWindow},
};

/// A filter on windows of a stream, and the messages that steer it.
pub(super) struct OnWindows<F> {
    pub(super) filter: F,
    window: CleanWindow<f32>,
    frozen: bool,
    gaps: Vec<(usize, u64)>,
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
                if gaps.next_if(|&(at, _)| at == i).is_some() {
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
