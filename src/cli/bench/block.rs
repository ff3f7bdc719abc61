//! A filter as a block in a flowgraph against the bare filter on the same samples.

use std::time::Instant;

use futuresdr::blocks::{NullSink, VectorSource};
use futuresdr::prelude::*;
use futuresdr::runtime::scheduler::SmolScheduler;

use super::measure::{Guarded, Signal};
use crate::blocks::{Track, check_buffer};

/// Seconds a sample, the fastest of some rounds taken in turn.
pub(super) struct Times {
    /// The filter alone, in one call.
    pub(super) bare: f64,
    /// Spent in the work calls of the [`Track`] block around it: buffers, tags, errors and metrics included.
    pub(super) block: f64,
    /// The whole flowgraph on one thread: two sources that copy, the block, two sinks.
    pub(super) graph: f64,
}

pub(super) fn against_bare(build: impl Fn() -> crate::Result<Guarded>, samples: usize, rounds: usize) -> Result<Times> {
    let mut signal = Signal::new(samples);
    let mut best = Times { bare: f64::INFINITY, block: f64::INFINITY, graph: f64::INFINITY };
    for _ in 0..rounds {
        let mut tracker = build()?;
        let start = Instant::now();
        tracker.track(&signal.tx, &signal.rx, &mut signal.p, None);
        best.bare = best.bare.min(start.elapsed().as_secs_f64() / samples as f64);

        let (tx, rx) = (VectorSource::<Complex32>::new(signal.tx.clone()), VectorSource::<Complex32>::new(signal.rx.clone()));
        let track = Track::new(build()?.into_inner());
        let (prediction, error) = (NullSink::<Complex32>::new(), NullSink::<Complex32>::new());
        check_buffer()?;
        let mut fg = Flowgraph::new();
        connect!(fg, tx > tx.track; rx > rx.track; track.prediction > prediction; track.error > error);
        let runtime = Runtime::with_scheduler(SmolScheduler::new(1, false));
        let start = Instant::now();
        let fg = runtime.run(fg)?;
        best.graph = best.graph.min(start.elapsed().as_secs_f64() / samples as f64);
        best.block = best.block.min(1.0 / track.get(&fg)?.latency().rate());
    }
    Ok(best)
}
