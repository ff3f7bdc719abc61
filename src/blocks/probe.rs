//! What can be seen of a tracking block from outside.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use super::{Latency, Stretch, TapHistory};
use crate::{
    filter::Portrait,
    metrics::{Series, Spread},
};

/// What a [`Track`](super::Track) block has done so far.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Samples tracked, those before a resumption included.
    pub samples: u64,
    /// NMSE of the last row, in dB.
    pub nmse_db: f64,
    /// NMSE of all samples that were not skipped, in dB.
    pub nmse_total_db: f64,
    /// Centres or weights that the tracker holds.
    pub centres: usize,
    /// How often it had to start again from nothing, because its predictions were worse than none.
    pub restarts: u64,
    /// Whether it learns; else it only predicts.
    pub adapts: bool,
    /// Whether the tracker rests and its input is passed on.
    pub bypass: bool,
    /// What the errors so far add up to: two reports differ by what came in between. Starts anew at a resumption.
    pub(crate) spread: Spread,
}

/// What a [`Track`](super::Track) block has done in all.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The errors over time.
    pub series: Series,
    /// Centres or weights that the tracker holds.
    pub centres: usize,
    /// How often it had to start again from nothing, because its predictions were worse than none.
    pub restarts: u64,
    /// How long samples stayed in the block, and how busy it was.
    pub(crate) latency: Latency,
    /// The taps over time, where [`Track::observed`](super::Track::observed) was asked for.
    pub(crate) taps: TapHistory,
    /// The last stretch of the streams that was kept, likewise.
    pub stretch: Option<Arc<Stretch>>,
    /// What the tracker had learned.
    pub portrait: Portrait,
}

/// Reads a [`Track`](super::Track) block's `Report` while it runs, and its [`Summary`] once it has ended.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    report: Arc<Mutex<Report>>,
    stretch: Arc<Mutex<Option<Arc<Stretch>>>>,
    glimpse: Arc<Mutex<Option<Arc<Stretch>>>>,
    asked: Arc<AtomicBool>,
    summary: Arc<OnceLock<Summary>>,
}

impl Probe {
    /// The report as of the last work call.
    pub fn read(&self) -> Report {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The summary, once the block has ended: also when the flowgraph around it has not, or has failed.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.get()
    }

    /// Asks for a short stretch of this moment, and gives the one that the last question has brought, where [`Track::observed`](super::Track::observed) was asked for.
    pub(crate) fn glimpse(&self) -> Option<Arc<Stretch>> {
        self.asked.store(true, Ordering::Relaxed);
        self.glimpse.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a glimpse was asked for since the last time.
    pub(super) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) && self.asked.swap(false, Ordering::Relaxed)
    }

    pub(super) fn show(&self, stretch: Option<Arc<Stretch>>, glimpse: Option<Arc<Stretch>>) {
        *self.stretch.lock().unwrap_or_else(PoisonError::into_inner) = stretch;
        *self.glimpse.lock().unwrap_or_else(PoisonError::into_inner) = glimpse;
    }

    pub(super) fn write(&self, report: Report) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    pub(super) fn end(&self, summary: Summary) {
        self.summary.get_or_init(|| summary);
    }
}
