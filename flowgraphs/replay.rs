//! Two recordings → align → track → a recording of the error, and metrics.

use std::path::Path;

use futuresdr::prelude::*;

use crate::{
    blocks::{IqSink, IqSource, Meter, Series, Sync, Track},
    filter::Tracker,
    iq::{Datatype, Recording, Writer, align, sigmf::Meta},
};

/// What a replay found.
pub struct Replay {
    /// How the recordings lay to each other.
    pub alignment: align::Alignment,
    /// The error over time.
    pub series: Series,
}

/// Tracks the recording `rx` from the recording `tx` and writes the error as SigMF to `error`.
///
/// With `equalize` the inputs of the tracker change places: the same graph then predicts what was sent from what was received.
pub fn run(tx: Recording, rx: Recording, tracker: Box<dyn Tracker<f32>>, equalize: bool, error: &Path) -> Result<Replay> {
    let writer = Writer::create(error, Meta::new(Datatype::CF32_LE, rx.sample_rate()), false)?;
    let (tx, rx) = (IqSource::new(tx), IqSource::new(rx));
    let sync = Sync::search(align::Options::default());
    let watch = sync.watch();
    let faults = [tx.fault(), rx.fault(), sync.fault()];
    let track = Track::new(tracker);
    let error = IqSink::new(writer);
    let meter = Meter::new(4096);

    let mut fg = Flowgraph::new();
    connect!(fg,
        tx > tx.sync;
        rx > rx.sync;
        track.prediction > estimate.meter;
        track.error > error;
    );
    if equalize {
        connect!(fg, sync.aligned_rx > tx.track; sync.aligned_tx > rx.track; sync.aligned_tx > reference.meter);
    } else {
        connect!(fg, sync.aligned_tx > tx.track; sync.aligned_rx > rx.track; sync.aligned_rx > reference.meter);
    }

    let fg = Runtime::new().run(fg).map_err(|e| faults.iter().find_map(|f| f.take()).unwrap_or(crate::Error::Data(e.to_string())))?;
    let alignment = watch.status().alignment.ok_or(crate::Error::Data("the recordings are empty".into()))?;
    Ok(Replay { alignment, series: track.get(&fg)?.series().clone() })
}
