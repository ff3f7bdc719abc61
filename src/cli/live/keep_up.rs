//! Whether the filters are fast enough, and what to do when they are not.

use std::sync::atomic::Ordering;

use crate::blocks::{Command, Health};
use crate::flowgraphs::track::View;

/// Looks at what came and at what had to be dropped, once a second.
pub(super) struct KeepUp {
    adaptive: bool,
    /// The budget of each filter that has one, and the samples that it had tracked at the last look.
    budgets: Vec<(Option<f64>, u64)>,
    received: u64,
    dropped: u64,
    /// Times that the driver itself was too slow, in either direction.
    driver: u64,
    /// Times that a lost radio has come back.
    returns: u64,
}

impl KeepUp {
    pub(super) fn new(adaptive: bool, budgets: Vec<Option<f64>>) -> Self {
        Self { adaptive, budgets: budgets.into_iter().map(|budget| (budget, 0)).collect(), received: 0, dropped: 0, driver: 0, returns: 0 }
    }

    pub(super) fn look(&mut self, view: &View<'_>, health: &Health) {
        let (received, dropped) = (health.received.load(Ordering::Relaxed), health.dropped.load(Ordering::Relaxed));
        let (came, lost) = (received - self.received, dropped - self.dropped);
        (self.received, self.dropped) = (received, dropped);
        let driver = health.overflows.load(Ordering::Relaxed) + health.underflows.load(Ordering::Relaxed);
        let struggled = driver > std::mem::replace(&mut self.driver, driver);
        let returns = health.reconnects.load(Ordering::Relaxed);
        if returns > std::mem::replace(&mut self.returns, returns) {
            note!("the radio was lost and has come back: the gap is marked, and nobody knows how long it is");
        }
        if lost > 0 {
            note!("the filters do not keep up: {lost} samples were dropped in the last second, at marked places");
        } else if struggled {
            note!("the radio's driver does not keep up: samples were lost in the last second, at marked places");
        }
        if lost > 0 && !self.adaptive {
            note!("a lower --rate, fewer filters, a smaller --budget or --adaptive-budget would help");
        } else if struggled {
            note!("a lower --rate would help");
        }
        for (filter, (budget, before)) in view.filters.iter().zip(&mut self.budgets) {
            let tracked = filter.probe.read().samples;
            let share = (tracked - std::mem::replace(before, tracked)) as f64 / came.max(1) as f64;
            let Some(was) = budget.filter(|_| self.adaptive && lost > 0) else { continue };
            // A filter's work is in proportion to its budget; a little less than its share, or there would be no end to it.
            let smaller = (was * (0.9 * share).clamp(0.1, 0.8)).floor().max(1.0);
            if smaller < was && filter.controls.call(Command::Set("budget".into(), smaller)).is_ok() {
                *budget = Some(smaller);
                note!("{}: budget {was} -> {smaller}", filter.name);
            }
        }
    }
}
