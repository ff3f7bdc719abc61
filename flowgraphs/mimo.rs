//! Four transmitters → amplifiers → a fading channel → four receivers, tracked together.

use futuresdr::{blocks::NullSink, prelude::*};

use crate::{
    blocks::{FadingMimo, OfdmTx, Staged, TrackMimo},
    channel::{self, FadingConfig, Model, Noise, Profile},
    filter::Filter,
    metrics::Series,
    ofdm::{Config, Source, Transmitter},
};

/// Antennas at each end.
pub const ANTENNAS: usize = 4;

/// Tracks `samples` of a 4 x 4 channel with `taps` taps for each pair of antennas; `filter` makes the filter of each receiver, on `4 · taps` numbers.
///
/// ```
/// use kaflow::{filter::{Filter, Rls}, flowgraphs::mimo};
/// let filter = |length| Ok(Box::new(Rls::new(length, 0.999, 0.01)?) as Box<dyn Filter<f32>>);
/// let series = mimo::run(filter, 2, 10_000, 1e-5, 1).unwrap();
/// assert!(series.iter().all(|s| s.last().nmse_db() < -10.0));
/// ```
pub fn run(
    filter: impl Fn(usize) -> crate::Result<Box<dyn Filter<f32>>>,
    taps: usize,
    samples: u64,
    doppler: f64,
    seed: u64,
) -> Result<Vec<Series>> {
    let fading =
        FadingConfig { tx_antennas: ANTENNAS, rx_antennas: ANTENNAS, ..FadingConfig::new(Profile::exponential(taps as u32, 3.0), doppler) };
    let filters = (0..ANTENNAS).map(|_| filter(ANTENNAS * taps)).collect::<crate::Result<Vec<_>>>()?;

    let mut fg = Flowgraph::new();
    let fading = fg.add(FadingMimo::new(channel::Fading::new(&fading, seed)?));
    let track = fg.add(TrackMimo::new(ANTENNAS, taps, filters)?.metrics_every(1000, 0));
    for antenna in 0..ANTENNAS {
        // Each antenna sends its own data through its own amplifier and hears its own noise.
        let paper = Config { seed: seed + antenna as u64, ..Config::preset("paper")? };
        // The source last: blocks are initialised in this order, and one that is initialised late misses the word that its input has ended.
        let (prediction, error) = (fg.add(NullSink::<Complex32>::new()), fg.add(NullSink::<Complex32>::new()));
        let noise = fg.add(Staged::new(Noise::new(20.0, seed + antenna as u64)?));
        let amplifier = fg.add(Staged::new(channel::Amplifier::new(Model::Rapp { smoothness: 2.0 }, 6.0)?));
        let tx = fg.add(OfdmTx::new(Transmitter::new(paper, Source::Continuous)?, Some(samples)));
        fg.stream(&tx, |b| b.output(), &amplifier, |b| b.input())?;
        fg.stream(&tx, |b| b.output(), &track, |b| &mut b.tx()[antenna])?;
        fg.stream(&amplifier, |b| b.output(), &fading, |b| &mut b.tx()[antenna])?;
        fg.stream(&fading, |b| &mut b.rx()[antenna], &noise, |b| b.input())?;
        fg.stream(&noise, |b| b.output(), &track, |b| &mut b.rx()[antenna])?;
        fg.stream(&track, |b| &mut b.prediction()[antenna], &prediction, |b| b.input())?;
        fg.stream(&track, |b| &mut b.error()[antenna], &error, |b| b.input())?;
    }
    let fg = Runtime::new().run(fg)?;
    Ok(track.get(&fg)?.series().to_vec())
}
