//! A transmitter that linearises itself: what its amplifier puts out comes back through a coupler or over the air, and teaches the predistorter.
//!
//! ```text
//! OFDM ─┬─► predistort ─► amplifier ─┬─► [fading] ─► noise ─► linearize
//!       │       ▲                    └─► what is sent over the air  │
//!       └───────┼───────────────────────────────────────► linearize │
//!               └─────────────── tables ────────────────────────────┘
//! ```
//!
//! [`run`] closes the loop with a simulated channel, a [`Loop`] in the [`Plan`](super::track::Plan) of a tracking run with a radio.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use futuresdr::{blocks::VectorSink, prelude::*};

use crate::{
    blocks::{Amplifier, Fading, Linearize, LoopConfig, OfdmTx, Predistort, Round, Rounds, Staged, Swap, SyncWatch},
    channel::{self, FadingConfig, Noise, Stage},
    dpd::Table,
    iq::State,
    ofdm::{Config, Source, Transmitter},
};

/// The transmitter and its feedback.
#[derive(Clone, Debug)]
pub struct Transmission {
    /// What is sent; oversampled four times or so.
    pub ofdm: Config,
    /// The amplifier.
    pub amplifier: channel::AmplifierConfig,
    /// The channel on the way back; none is a coupler.
    pub fading: Option<FadingConfig>,
    /// What came back over the noise in it, in dB.
    pub snr_db: f64,
    /// Samples that are sent.
    pub samples: u64,
    /// Seed of channel and noise.
    pub seed: u64,
}

/// What came of it.
pub struct Outcome {
    /// What each round learned.
    pub rounds: Vec<Round>,
    /// The signal, as it was to come out.
    pub signal: Vec<Complex32>,
    /// What the amplifier put out.
    pub output: Vec<Complex32>,
}

/// Samples of the signal that tables are made from.
const STRETCH: usize = 16_384;

/// Runs the loop.
///
/// ```
/// use kaflow::{blocks::LoopConfig, channel::{AmplifierConfig, Model}, dpd::Options, flowgraphs::linearize::{self, Transmission}};
/// use kaflow::{metrics::{Band, linearity}, ofdm::{Clip, Config}};
///
/// # fn main() -> futuresdr::runtime::Result<()> {
/// let clip = Clip { level_db: 8.0, filter: true, iterations: 3 };
/// let ofdm = Config { oversampling: 4, window: 4, clip: Some(clip), ..Config::default() };
/// let amplifier = AmplifierConfig { ibo_db: 9.0, model: Model::Rapp { smoothness: 1.6 } };
/// let transmission = Transmission { ofdm, amplifier, fading: None, snr_db: 40.0, samples: 600_000, seed: 1 };
/// let options = Options { memory: 0, ..Options::default() };
/// let config = LoopConfig { options, level: 3.4, back_off_db: 0.1, power_db: 1.0, pairs: 10_000, latency: None };
/// let done = linearize::run(&transmission, config)?;
/// let at = |part: std::ops::Range<usize>| linearity(&done.signal[part.clone()], &done.output[part], Band { width: 0.21, spacing: 0.23 });
/// let (before, after) = (at(0..10_000)?, at(590_000..600_000)?);
/// assert!(after.nmse_db < before.nmse_db - 12.0, "{before:?} {after:?}");
/// # Ok(()) }
/// ```
pub fn run(transmission: &Transmission, config: LoopConfig) -> Result<Outcome> {
    let Transmission { ofdm, amplifier, fading, snr_db, samples, seed } = transmission;
    let mut signal = vec![Complex32::default(); *samples as usize];
    Transmitter::new(ofdm.clone(), Source::Continuous)?.fill(&mut signal);
    let amplifier = channel::Amplifier::from_config(amplifier)?;
    let mut noise = Noise::new(*snr_db, *seed)?;
    noise.set_signal_power(power_behind(&amplifier, &signal))?;

    let Loop { predistort, learn, rounds } = Loop::new(config, &signal)?;
    let output = VectorSink::<Complex32>::new(signal.len());
    let noise = Staged::new(noise);
    let amplifier = Amplifier::new(amplifier);
    let tx = OfdmTx::new(Transmitter::new(ofdm.clone(), Source::Continuous)?, Some(*samples));
    let mut fg = Flowgraph::new();
    if let Some(fading) = fading {
        let fading = Fading::new(channel::Fading::new(fading, *seed)?);
        connect!(fg, noise > received.learn; fading > noise; amplifier > fading; amplifier > output; predistort > amplifier; tx > signal.learn; tx > predistort;);
        let fg = Runtime::new().run(fg)?;
        return Ok(Outcome { rounds: rounds.get(), signal, output: output.get(&fg)?.items().clone() });
    }
    connect!(fg, noise > received.learn; amplifier > noise; amplifier > output; predistort > amplifier; tx > signal.learn; tx > predistort;);
    let fg = Runtime::new().run(fg)?;
    Ok(Outcome { rounds: rounds.get(), signal, output: output.get(&fg)?.items().clone() })
}

/// The blocks of the loop: one in front of the transmitter, one behind the receiver.
pub struct Loop {
    pub(super) predistort: Predistort,
    pub(super) learn: Linearize,
    rounds: Rounds,
}

impl Loop {
    /// Begins with the signal as it is, of which `signal` is a stretch, or the frame that is repeated.
    pub fn new(config: LoopConfig, signal: &[Complex32]) -> crate::Result<Self> {
        let predistort = Predistort::new(Table::bypass(config.level))?;
        let learn = Linearize::new(config, &signal[..STRETCH.min(signal.len())], predistort.swap())?;
        Ok(Self { predistort, rounds: learn.rounds(), learn })
    }

    /// Learns in a thread of its own: for a radio, which does not wait.
    pub fn aside(mut self) -> Self {
        self.learn = self.learn.aside();
        self
    }

    /// A handle on what the rounds have done.
    pub fn rounds(&self) -> Rounds {
        self.rounds.clone()
    }

    /// Sends the plain signal when what comes back is lost.
    pub(super) fn fallback(&self, sync: SyncWatch) -> Fallback {
        Fallback { swap: self.predistort.swap(), rounds: self.rounds(), sync, last: Cell::new((0, Instant::now())) }
    }
}

/// Looks whether there is anything to learn from: without pairs the learner itself is never asked.
pub(super) struct Fallback {
    swap: Swap,
    rounds: Rounds,
    sync: SyncWatch,
    /// Pairs when there were last more of them, and when that was.
    last: Cell<(u64, Instant)>,
}

/// A search can take longer: after so long without a pair nothing is heard.
const STARVED: Duration = Duration::from_secs(1);

impl Fallback {
    pub(super) fn look(&self) {
        let status = self.sync.status();
        if status.pairs != self.last.get().0 {
            self.last.set((status.pairs, Instant::now()));
        }
        let lost = matches!(status.state, State::Searching | State::Lost) || self.last.get().1.elapsed() > STARVED;
        if lost && self.swap.fall_back() {
            self.rounds.silent();
        }
    }
}

/// Mean power that the amplifier makes of the signal.
fn power_behind(amplifier: &channel::Amplifier, signal: &[Complex32]) -> f64 {
    let mut output = signal.to_vec();
    amplifier.clone().process(&mut output);
    crate::metrics::power(&output)
}
