//! What happens to a radio's streams while they run.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use super::soapy::LEAD_NS;

/// What has happened to the streams so far; counts only ever grow.
#[derive(Debug, Default)]
pub struct Health {
    /// Samples received, of each channel.
    pub received: AtomicU64,
    /// Samples handed to the transmitter.
    pub sent: AtomicU64,
    /// Times that the receiver said that it lost samples.
    pub overflows: AtomicU64,
    /// Times that the transmitter ran dry.
    pub underflows: AtomicU64,
    /// Times that a stream was late, or that its clock went backwards.
    pub time_errors: AtomicU64,
    /// Calls in which nothing came or went for a tenth of a second.
    pub timeouts: AtomicU64,
    /// Packets that the driver called corrupt.
    pub corrupt: AtomicU64,
    /// Holes in what the source puts out.
    pub gaps: AtomicU64,
    /// Samples missing in those holes, as far as the timestamps tell.
    pub missing: AtomicU64,
    /// Samples dropped because the flowgraph did not keep up; a part of `missing`.
    pub dropped: AtomicU64,
    /// Packets waiting in the receive queue now, and the most there were.
    pub depth: AtomicUsize,
    /// The most packets that ever waited.
    pub deepest: AtomicUsize,
}

impl Health {
    pub(super) fn count(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} overflows, {} underflows, {} time errors, {} timeouts, {} gaps of {} samples ({} dropped by us), queue {} (most {})",
            of(&self.overflows),
            of(&self.underflows),
            of(&self.time_errors),
            of(&self.timeouts),
            of(&self.gaps),
            of(&self.missing),
            of(&self.dropped),
            self.depth.load(Ordering::Relaxed),
            self.deepest.load(Ordering::Relaxed)
        )
    }
}

/// A transmitter that has fallen behind.
pub(super) struct Relapse {
    /// One device at both ends: its clock is that of both.
    one_clock: bool,
    /// When the transmitter is back in its place, in nanoseconds of its clock.
    silent_until_ns: AtomicI64,
    /// It is back, and nobody knows where.
    displaced: AtomicBool,
}

impl Relapse {
    pub(super) fn new(one_clock: bool) -> Self {
        Self { one_clock, silent_until_ns: AtomicI64::new(i64::MIN), displaced: AtomicBool::new(false) }
    }

    /// The transmitter goes on at a time, where it would be had it not fallen behind; none when the device has no time.
    pub(super) fn note(&self, back_at_ns: Option<i64>) {
        match back_at_ns {
            Some(at) => self.silent_until_ns.store(at, Ordering::Relaxed),
            None => self.displaced.store(true, Ordering::Relaxed),
        }
    }

    /// Whether what was received at a time is nothing but silence, because the transmitter has fallen behind.
    pub(super) fn silent(&self, time_ns: Option<i64>) -> bool {
        let left = |time: i64| self.silent_until_ns.load(Ordering::Relaxed).saturating_sub(time);
        // Much longer than it ever takes, it is the clock that has been set.
        self.one_clock && time_ns.is_some_and(|time| (1..=10 * LEAD_NS).contains(&left(time)))
    }

    /// Whether the transmitter has lost its place; once.
    pub(super) fn displaced(&self) -> bool {
        self.displaced.load(Ordering::Relaxed) && self.displaced.swap(false, Ordering::Relaxed)
    }
}
