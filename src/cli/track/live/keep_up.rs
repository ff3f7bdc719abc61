//! Whether the filters are fast enough, and what to do when they are not.

use std::sync::atomic::Ordering;

use crate::flowgraphs::live::View;

/// What a budget is multiplied with when it is too much.
const STEP: f64 = 0.7;

/// Looks at the queue and at what had to be dropped, once a second.
pub(super) struct KeepUp {
    adaptive: bool,
    queue: usize,
    /// The budget of each filter that has one.
    budgets: Vec<Option<f64>>,
    dropped: u64,
    overflows: u64,
}

impl KeepUp {
    pub(super) fn new(adaptive: bool, queue: usize, budgets: Vec<Option<f64>>) -> Self {
        Self { adaptive, queue, budgets, dropped: 0, overflows: 0 }
    }

    pub(super) fn look(&mut self, view: &View<'_>) {
        let health = &view.health;
        let dropped = health.dropped.load(Ordering::Relaxed);
        let overflows = health.overflows.load(Ordering::Relaxed);
        let fresh = dropped - self.dropped;
        let behind = fresh > 0 || (health.depth.load(Ordering::Relaxed) > self.queue / 2 && overflows > self.overflows);
        (self.dropped, self.overflows) = (dropped, overflows);
        if !behind {
            return;
        }
        eprintln!("kaflow: the filters do not keep up: {fresh} samples were dropped in the last second");
        if !self.adaptive {
            eprintln!("kaflow: a lower --rate, fewer filters, a smaller --budget or --adaptive-budget would help");
            return;
        }
        for (filter, budget) in self.budgets.iter_mut().enumerate() {
            let Some(before) = *budget else { continue };
            let smaller = (before * STEP).floor().max(1.0);
            if smaller < before && view.set(filter, &format!("budget={smaller}")) {
                *budget = Some(smaller);
                eprintln!("kaflow: {}: budget {before} -> {smaller}", view.tracks[filter].0);
            }
        }
    }
}
