//! Clipped OFDM → amplifier → fading → receiver → track.

use futuresdr::{blocks::NullSink, prelude::*};

use crate::{
    blocks::{Impair, OfdmTx, Staged, Track},
    channel::{self, FadingConfig, ImpairmentsConfig, Model, Profile},
    filter::Tracker,
    metrics::Series,
    ofdm::{Config, Source, Transmitter},
};

/// Tracks `samples` of a saturated, fading channel and gives the error over time.
///
/// The OFDM signal is clipped 6 dB above rms, the amplifier driven `ibo_db` below saturation, the channel has four taps that fade with `f_d T = doppler`, the
/// noise is 20 dB down.
///
/// ```
/// use kaflow::{filter::{Filter, Nlms}, flowgraphs::loopback};
/// let nlms = Nlms::new(4, 0.5, 1e-6)?.on_stream();
/// let series = loopback::run(Box::new(nlms), 20_000, 0.0, 1e-4, 1).unwrap();
/// assert!(series.last().nmse_db() < -10.0);
/// # Ok::<(), kaflow::Error>(())
/// ```
pub fn run(tracker: Box<dyn Tracker<f32>>, samples: u64, ibo_db: f64, doppler: f64, seed: u64) -> Result<Series> {
    let paper = Config { seed, ..Config::preset("paper")? };
    let tx = OfdmTx::new(Transmitter::new(paper, Source::Continuous)?, Some(samples));
    let amplifier = Staged::new(channel::Amplifier::new(Model::Rapp { smoothness: 2.0 }, ibo_db)?);
    let fading = FadingConfig::new(Profile::exponential(4, 3.0), doppler);
    let fading = Staged::new(channel::Fading::new(&fading, seed)?);
    let receiver = Impair::new(&ImpairmentsConfig::default(), 20.0, seed)?;
    let track = Track::new(tracker).metrics_every(1000, 0);
    let (prediction, error) = (NullSink::<Complex32>::new(), NullSink::<Complex32>::new());

    let mut fg = Flowgraph::new();
    connect!(fg,
        tx > amplifier > fading > receiver > rx.track;
        tx > tx.track;
        track.prediction > prediction;
        track.error > error;
    );
    let fg = Runtime::new().run(fg)?;
    Ok(track.get(&fg)?.series().clone())
}
