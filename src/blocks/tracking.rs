//! A tracker with its metrics: what a [`Track`](super::Track) block does between its ports.

use futuresdr::runtime::Pmt;
use num_complex::Complex32;

use super::{Command, Report, TapHistory, message, scope::Scope};
use crate::{
    filter::{Adaptive, Guard, Tracker},
    metrics::{Series, Spread},
};

/// Samples that are still in the nearest cache when their errors are summed.
const HOT: usize = 512;

/// The state of a [`Track`](super::Track) block at a sample, for [`Track::resume`](super::Track::resume).
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// Samples tracked up to here.
    pub samples: u64,
    /// The tracker and the metrics, sealed by [`state::encode`](crate::state::encode).
    pub state: Vec<u8>,
}

type Keep = Box<dyn FnMut(Snapshot) -> crate::Result<()> + Send>;

/// The block without its ports.
pub(super) struct Core<T> {
    pub(super) tracker: Guard<f32, T>,
    pub(super) series: Series,
    pub(super) spread: Spread,
    /// Samples in gaps of known length.
    pub(super) gap_samples: u64,
    pub(super) observed: Option<Observed>,
    pub(super) bypass: bool,
    /// Samples after which nothing more is learned.
    pub(super) freeze_at: Option<u64>,
    pub(super) keep: Option<(u64, Keep)>,
}

/// What is kept to look at.
pub(super) struct Observed {
    pub(super) taps: TapHistory,
    pub(super) scope: Scope,
    pub(super) glimpse: Scope,
}

impl Observed {
    pub(super) fn new() -> Self {
        Self { taps: TapHistory::default(), scope: Scope::now_and_then(), glimpse: Scope::on_demand() }
    }

    fn scopes(&mut self) -> [&mut Scope; 2] {
        [&mut self.scope, &mut self.glimpse]
    }
}

impl<T: Tracker<f32>> Core<T> {
    pub(super) fn obey(&mut self, command: &Command) -> crate::Result<()> {
        match command {
            Command::Adapt(learn) => self.tracker.freeze(!learn),
            Command::Bypass(bypass) => {
                if self.bypass && !bypass {
                    self.tracker.gap(0);
                }
                self.bypass = *bypass;
            }
            Command::Reset => self.tracker.reset(),
            Command::Set(name, value) => self.tracker.set(name, *value)?,
            Command::Restore(state) => self.tracker.restore(state)?,
        }
        Ok(())
    }

    pub(super) fn report(&self) -> Report {
        Report {
            samples: self.series.samples(),
            nmse_db: self.series.last().nmse_db(),
            nmse_total_db: self.series.total().nmse_db(),
            centres: self.tracker.size(),
            restarts: self.tracker.restarts(),
            adapts: !self.tracker.frozen(),
            bypass: self.bypass,
            spread: self.spread,
        }
    }

    pub(super) fn snapshot(&mut self) -> crate::Result<()> {
        if let Some((_, keep)) = &mut self.keep {
            let taps = self.observed.as_ref().map(|o| &o.taps);
            let state = crate::state::encode("track", &(self.tracker.save()?, &self.series, self.gap_samples, taps))?;
            keep(Snapshot { samples: self.series.samples(), state })?;
        }
        Ok(())
    }

    /// Tracks whole slices, cut only where something has to happen between two samples: at a gap, a row of metrics, a portrait, a snapshot.
    pub(super) fn run(
        &mut self,
        tx: &[Complex32],
        rx: &[Complex32],
        prediction: &mut [Complex32],
        error: &mut [Complex32],
        gaps: &[(usize, u64)],
        due: &mut Vec<Pmt>,
    ) -> crate::Result<()> {
        let (mut at, mut gaps) = (0, gaps.iter().copied().peekable());
        while at < rx.len() {
            if let Some((_, length)) = gaps.next_if(|&(gap, _)| gap == at) {
                self.tracker.gap(length);
                self.gap_samples += length;
                self.observed.iter_mut().flat_map(Observed::scopes).for_each(Scope::close);
            }
            let to_snapshot = self.keep.as_ref().map_or(u64::MAX, |(every, _)| every - self.series.samples() % every);
            let to_portrait = self.observed.as_ref().map_or(u64::MAX, |o| o.scope.to_boundary().min(o.glimpse.to_boundary()));
            let mut to_freeze = self.freeze_at.map_or(u64::MAX, |at| at.saturating_sub(self.series.samples()));
            if to_freeze == 0 {
                self.tracker.freeze(true);
                (self.freeze_at, to_freeze) = (None, u64::MAX);
            }
            let room = self.series.to_boundary().min(to_freeze).min(to_snapshot).min(to_portrait).min(HOT as u64) as usize;
            let span = at..gaps.peek().map_or(rx.len(), |gap| gap.0).min(rx.len()).min(at + room);
            for scope in self.observed.iter_mut().flat_map(Observed::scopes) {
                scope.begin(self.series.samples() + self.gap_samples, || self.tracker.portrait(), || self.tracker.response());
            }
            let p = &mut prediction[span.clone()];
            if self.bypass {
                p.copy_from_slice(&tx[span.clone()]);
            } else {
                self.tracker.track(&tx[span.clone()], &rx[span.clone()], p, None);
            }
            for scope in self.observed.iter_mut().flat_map(Observed::scopes) {
                scope.push(&tx[span.clone()], &rx[span.clone()], p);
            }
            at = span.end;
            let row = self.series.push(&rx[span.clone()], p, &mut error[span]);
            if row {
                self.spread.push(&self.series.last());
                if let Some(observed) = &mut self.observed {
                    observed.taps.offer(self.series.samples(), || self.tracker.response());
                }
                let r = self.report();
                due.push(message::map([
                    ("step", Pmt::U64(r.samples)),
                    ("nmse_db", Pmt::F64(r.nmse_db)),
                    ("nmse_total_db", Pmt::F64(r.nmse_total_db)),
                    ("centres", Pmt::Usize(r.centres)),
                ]));
            }
            if self.keep.as_ref().is_some_and(|(every, _)| self.series.samples().is_multiple_of(*every)) {
                self.snapshot()?;
            }
        }
        Ok(())
    }
}
