//! Watching a run: how far it has come, and when it ends.

use std::sync::{
    atomic::{AtomicBool, AtomicU64, Ordering},
    mpsc::{Receiver, RecvTimeoutError},
};
use std::time::{Duration, Instant};

use futuresdr::prelude::*;

use super::linearize::Fallback;
use crate::blocks::{Controls, Probe, SyncWatch};
use crate::iq::Status;

/// When a run ends before its source does, and how often it is looked at.
pub struct Watch<'a> {
    /// Ends it when true.
    pub stop: &'a AtomicBool,
    /// Ends it after so long, whatever has come by then.
    pub time: Option<Duration>,
    /// Between two looks.
    pub every: Duration,
    /// All filters end at one sample, as a checkpoint needs it.
    pub together: bool,
    /// Threads; where not given, one for each core that a radio's driver leaves.
    pub threads: Option<usize>,
}

impl<'a> Watch<'a> {
    /// Ends when the source does, or when `stop` is true; a look a second.
    pub fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, time: None, every: Duration::from_secs(1), together: false, threads: None }
    }
}

/// What can be seen of a run, and done to it, while it runs.
pub struct View<'a> {
    /// Since it began.
    pub elapsed: Duration,
    /// The filters, one channel after the other.
    pub filters: &'a [Seen],
    /// How each channel lies to what was sent.
    pub sync: Vec<Status>,
}

/// A filter that runs.
#[derive(Clone)]
pub struct Seen {
    /// How its row is called.
    pub name: String,
    /// Its figures.
    pub probe: Probe,
    /// Calls it.
    pub controls: Controls,
}

/// Samples that a filter may take while it is told where to end.
const AHEAD: u64 = 1 << 14;

/// How long what is under way may take to come to an end.
const GRACE: Duration = Duration::from_secs(1);

/// A flowgraph that runs.
pub(super) struct Running<'a> {
    pub(super) filters: &'a [Seen],
    pub(super) sync: &'a [SyncWatch],
    pub(super) fallback: &'a Option<Fallback>,
    pub(super) stop: &'a AtomicBool,
    pub(super) end: &'a AtomicU64,
    pub(super) handle: FlowgraphHandle,
    pub(super) began: Instant,
}

impl Running<'_> {
    /// Looks at intervals and ends the run when it is time; gives the runtime's result, none when it does not end.
    pub(super) fn watch<R>(&self, watch: &Watch<'_>, ended: &Receiver<R>, mut look: impl FnMut(&View<'_>)) -> Option<R> {
        let tracked = || self.filters.iter().map(|f| f.probe.read().samples);
        let mut last = self.began;
        // Since when, and how far the filters had come then.
        let mut halted: Option<(Instant, u64)> = None;
        let mut forced = false;
        loop {
            match ended.recv_timeout(Duration::from_millis(5).min(watch.every)) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.fallback.iter().for_each(Fallback::look);
            let over = !self.filters.is_empty() && self.filters.iter().all(|f| f.probe.summary().is_some());
            let asked = over || watch.stop.load(Ordering::Relaxed) || watch.time.is_some_and(|time| self.began.elapsed() >= time);
            let now: u64 = tracked().sum();
            match halted {
                None if asked => {
                    self.stop.store(true, Ordering::Relaxed);
                    // What is on the way to a slow filter can be minutes of work.
                    let fastest = tracked().max().unwrap_or(0);
                    self.end.store(if watch.together { fastest + AHEAD } else { 0 }, Ordering::Relaxed);
                    halted = Some((Instant::now(), now));
                }
                Some((_, before)) if now > before => halted = Some((Instant::now(), now)),
                Some((since, _)) if since.elapsed() >= GRACE && !forced => {
                    // A filter that waits for samples does not look at where it is to end, and a source that has nobody left to write to may sleep.
                    let _ = Runtime::block_on(self.handle.stop());
                    forced = true;
                    halted = Some((Instant::now(), now));
                }
                Some((since, _)) if forced && since.elapsed() >= if over { GRACE } else { 10 * GRACE } => return None,
                _ => {}
            }
            if halted.is_none() && last.elapsed() >= watch.every {
                last = Instant::now();
                let sync = self.sync.iter().map(SyncWatch::status).collect();
                look(&View { elapsed: self.began.elapsed(), filters: self.filters, sync });
            }
        }
    }
}
