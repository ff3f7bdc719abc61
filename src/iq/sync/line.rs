//! A stream on a time line.

use std::collections::VecDeque;
use std::ops::Range;

use num_complex::Complex32;

/// Samples at the front that are dropped at once, so that moving the rest costs little.
const LUMP: usize = 1 << 16;

/// Samples as they came, and where some are missing. Times count missing samples, items do not; both begin at 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    samples: Vec<Complex32>,
    /// The item of the first sample that is kept.
    base: u64,
    segments: VecDeque<Segment>,
    /// The time of the next sample to come.
    next: i64,
    pub(super) ended: bool,
}

/// Samples without a gap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) time: i64,
    item: u64,
    /// How many samples were said to be missing before it (0: an unknown number); none at the beginning of the stream.
    pub(super) claim: Option<u64>,
}

/// What is at a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spot {
    /// A sample.
    Here {
        item: u64,
        /// Samples from here on without a gap, as far as they have come.
        run: usize,
        /// The segment that it is in.
        segment: Segment,
        /// Whether the run grows no longer: a gap follows, or the end of the stream.
        closed: bool,
        /// Whether it is the end of the stream that follows.
        last: bool,
    },
    /// None; the next one is at a later time.
    Gap { until: i64 },
    /// Nobody knows yet.
    Later,
}

impl Line {
    /// Takes in samples, before which `gap` are missing (0: an unknown number).
    pub(super) fn push(&mut self, samples: &[Complex32], gap: Option<u64>) {
        if samples.is_empty() {
            return;
        }
        if gap.is_some() || self.segments.is_empty() {
            let missing = i64::try_from(gap.unwrap_or(0)).unwrap_or(i64::MAX / 4);
            self.next = self.next.saturating_add(missing);
            self.segments.push_back(Segment { time: self.next, item: self.items(), claim: gap });
        }
        self.samples.extend_from_slice(samples);
        self.next += samples.len() as i64;
    }

    /// Samples that have come.
    pub(super) fn items(&self) -> u64 {
        self.base + self.samples.len() as u64
    }

    /// The time of the next sample to come.
    pub(super) fn next(&self) -> i64 {
        self.next
    }

    /// The number of samples that are kept.
    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    /// The time of the first sample that is kept.
    pub(super) fn first(&self) -> i64 {
        self.segments.front().map_or(self.next, |s| s.time + self.base.saturating_sub(s.item) as i64)
    }

    pub(super) fn locate(&self, time: i64) -> Spot {
        if time >= self.next {
            return Spot::Later;
        }
        // The last of those that begin at or before it: one behind a gap of unknown length begins where the one before it ends.
        let index = self.segments.partition_point(|s| s.time <= time);
        let Some(&segment) = index.checked_sub(1).and_then(|i| self.segments.get(i)) else { return Spot::Gap { until: self.first() } };
        let end = self.segments.get(index).map_or(self.items(), |s| s.item);
        let item = segment.item + (time - segment.time) as u64;
        if item < self.base {
            return Spot::Gap { until: self.first() };
        }
        if item >= end {
            return self.segments.get(index).map_or(Spot::Later, |s| Spot::Gap { until: s.time });
        }
        let last = index == self.segments.len() && self.ended;
        Spot::Here { item, run: (end - item) as usize, segment, closed: last || index < self.segments.len(), last }
    }

    /// `n` samples from `item` on, which must be kept.
    pub(super) fn items_from(&self, item: u64, n: usize) -> &[Complex32] {
        let at = (item - self.base) as usize;
        &self.samples[at..at + n]
    }

    /// Fills `out` with the samples from `time` on that belong to `segment`, zeros where it has none; gives where in `out` it has some.
    pub(super) fn fill_segment(&self, segment: &Segment, time: i64, out: &mut [Complex32]) -> Range<usize> {
        let next = self.segments.partition_point(|s| s.item <= segment.item);
        let end = self.segments.get(next).map_or(self.items(), |s| s.item) as i64;
        // Relative to the first item wanted, which may lie before the stream.
        let origin = segment.item as i64 + time - segment.time;
        let inside = |item: i64| (item - origin).clamp(0, out.len() as i64) as usize;
        let (from, to) = (inside(segment.item.max(self.base) as i64), inside(end));
        out[..from].fill(Complex32::ZERO);
        out[to..].fill(Complex32::ZERO);
        if from < to {
            out[from..to].copy_from_slice(self.items_from((origin + from as i64) as u64, to - from));
        }
        from..to
    }

    /// Fills `out` with what is at `time` and later, zeros where nothing is.
    pub(super) fn fill(&self, time: i64, out: &mut [Complex32]) {
        out.fill(Complex32::ZERO);
        let mut at = 0;
        while at < out.len() {
            match self.locate(time.saturating_add(at as i64)) {
                Spot::Here { item, run, .. } => {
                    let n = run.min(out.len() - at);
                    out[at..at + n].copy_from_slice(self.items_from(item, n));
                    at += n;
                }
                Spot::Gap { until } => at = usize::try_from(until - time).unwrap_or(usize::MAX).min(out.len()),
                Spot::Later => break,
            }
        }
    }

    /// Where the last segment that begins in `from..until` begins, of those behind a gap of unknown length or of at least `least` samples.
    pub(super) fn last_break(&self, from: i64, until: i64, least: u64) -> Option<i64> {
        self.segments
            .iter()
            .rev()
            .find(|s| s.time > from && s.time < until && s.claim.is_some_and(|n| n == 0 || n >= least))
            .map(|s| s.time)
    }

    /// How many samples have come for the times from one to another.
    pub(super) fn between(&self, from: i64, until: i64) -> u64 {
        let item = |time: i64| {
            let index = self.segments.partition_point(|s| s.time <= time);
            let Some(segment) = index.checked_sub(1).and_then(|i| self.segments.get(i)) else { return self.base };
            let end = self.segments.get(index).map_or(self.items(), |s| s.item);
            (segment.item + (time - segment.time) as u64).min(end)
        };
        item(until).saturating_sub(item(from).max(self.base))
    }

    /// What is before `time` is no longer needed.
    pub(super) fn forget(&mut self, time: i64) {
        while self.segments.len() > 1 && self.segments[1].time <= time {
            self.segments.pop_front();
        }
        let Some(front) = self.segments.front() else { return };
        // Not beyond the end of the segment: `time` may lie in the gap behind it.
        let end = self.segments.get(1).map_or(self.items(), |s| s.item);
        let item = (front.item + u64::try_from(time - front.time).unwrap_or(0)).min(end);
        let done = item.max(self.base) - self.base;
        if done as usize >= LUMP.min(self.samples.len().max(1)) {
            self.samples.drain(..done as usize);
            self.base += done;
        }
    }
}
