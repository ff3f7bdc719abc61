//! A filter as a block in a flowgraph against the bare filter on the same samples.

use std::time::Instant;

use futuresdr::blocks::{NullSink, VectorSource};
use futuresdr::prelude::*;
use futuresdr::runtime::scheduler::SmolScheduler;

use super::measure::Signal;
use crate::blocks::Track;
use crate::filter::Tracker;

/// Seconds a sample, bare and as a [`Track`] block between two sources and two sinks on one thread: the fastest of `rounds`, taken in turn.
pub(super) fn against_bare(build: impl Fn() -> crate::Result<Box<dyn Tracker<f32>>>, samples: usize, rounds: usize) -> Result<(f64, f64)> {
    let mut signal = Signal::new(samples);
    let (mut bare, mut block) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        let mut tracker = build()?;
        let start = Instant::now();
        tracker.track(&signal.tx, &signal.rx, &mut signal.p, None);
        bare = bare.min(start.elapsed().as_secs_f64());

        let (tx, rx) = (VectorSource::<Complex32>::new(signal.tx.clone()), VectorSource::<Complex32>::new(signal.rx.clone()));
        let track = Track::new(build()?);
        let (prediction, error) = (NullSink::<Complex32>::new(), NullSink::<Complex32>::new());
        let mut fg = Flowgraph::new();
        connect!(fg, tx > tx.track; rx > rx.track; track.prediction > prediction; track.error > error);
        let runtime = Runtime::with_scheduler(SmolScheduler::new(1, false));
        let start = Instant::now();
        runtime.run(fg)?;
        block = block.min(start.elapsed().as_secs_f64());
    }
    Ok((bare / samples as f64, block / samples as f64))
}
