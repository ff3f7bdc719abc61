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
    blocks::{Linearize, LoopConfig, OfdmTx, Predistort, Round, Rounds, Staged, Swap, SyncWatch},
    channel::{self, FadingConfig, Noise, Stage},
    dpd::Table,
    iq::{State, Status},
    metrics::power,
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
    let amplifier = channel::Amplifier::new(amplifier.model.clone(), amplifier.ibo_db)?;
    let mut noise = Noise::new(*snr_db, *seed)?;
    noise.set("signal_power", power_behind(&amplifier, &signal))?;

    let Loop { predistort, learn, rounds } = Loop::new(config, &signal)?;
    let output = VectorSink::<Complex32>::new(signal.len());
    let noise = Staged::new(noise);
    let amplifier = Staged::new(amplifier);
    let tx = OfdmTx::new(Transmitter::new(ofdm.clone(), Source::Continuous)?, Some(*samples));
    let mut fg = Flowgraph::new();
    if let Some(fading) = fading {
        let fading = Staged::new(channel::Fading::new(fading, *seed)?);
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
        let learn = Linearize::new(config, &signal[..STRETCH.min(signal.len())], predistort.swap.clone())?;
        Ok(Self { predistort, rounds: learn.rounds.clone(), learn })
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
        Fallback { swap: self.predistort.swap.clone(), rounds: self.rounds(), sync, last: Cell::new((0, Instant::now())) }
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
const SILENCE: Duration = Duration::from_secs(1);

impl Fallback {
    pub(super) fn look(&self) {
        self.judge(&self.sync.status(), Instant::now());
    }

    fn judge(&self, status: &Status, now: Instant) {
        if status.pairs != self.last.get().0 {
            self.last.set((status.pairs, now));
        }
        let silent = matches!(status.state, State::Searching | State::Lost) || now.saturating_duration_since(self.last.get().1) > SILENCE;
        if silent {
            self.rounds.silent(&self.swap);
        }
    }
}

/// Mean power that the amplifier makes of the signal.
fn power_behind(amplifier: &channel::Amplifier, signal: &[Complex32]) -> f64 {
    let mut output = signal.to_vec();
    amplifier.clone().process(&mut output);
    power(&output)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Anything that is not a bypass.
    fn weaker() -> Table {
        Table { rows: vec![vec![[0.5, 0.0]]; 2], ..Table::bypass(2.0) }
    }

    /// A fallback that has seen a pair at the time that it gives, and its predistorter.
    fn fallback() -> (Fallback, Predistort, Instant) {
        let predistort = Predistort::new(weaker()).unwrap();
        let (swap, began) = (predistort.swap.clone(), Instant::now());
        let fallback = Fallback { swap, rounds: Rounds::default(), sync: SyncWatch::default(), last: Cell::new((0, began)) };
        fallback.judge(&heard(1), began);
        (fallback, predistort, began)
    }

    fn heard(pairs: u64) -> Status {
        Status { state: State::Locked, pairs, ..Status::default() }
    }

    fn bypassed(fallback: &Fallback) -> bool {
        // It falls back once alone: a second time it is so already.
        !Rounds::default().silent(&fallback.swap)
    }

    #[test]
    fn after_a_second_without_pairs_the_plain_signal_is_sent() {
        let (fallback, _predistort, began) = fallback();
        let at = |ms: u64| began + Duration::from_millis(ms);
        // Pairs keep coming, if slowly.
        for second in 1..=5 {
            fallback.judge(&heard(second + 1), at(900 * second));
        }
        // The last came at 4.5 s: a second later to the millisecond is not too late.
        fallback.judge(&heard(6), at(5500));
        assert_eq!(fallback.rounds.get(), [], "pairs came every 0.9 s");
        fallback.judge(&heard(6), at(5501));
        let rounds = fallback.rounds.get();
        assert!(matches!(rounds[..], [Round { predistorted: true, linearity: None, applied: false, .. }]), "{rounds:?}");
        assert!(bypassed(&fallback));
        // It stays so, is noted once, and a clock that goes back does no harm.
        fallback.judge(&heard(6), at(9000));
        fallback.judge(&heard(6), began);
        assert_eq!(fallback.rounds.get().len(), 1);
        // Pairs come again, a new table is applied: from here on it takes a second again.
        fallback.judge(&heard(7), at(20_000));
        fallback.swap.set(weaker()).unwrap();
        fallback.judge(&heard(7), at(21_000));
        assert_eq!(fallback.rounds.get().len(), 1);
        fallback.judge(&heard(7), at(21_001));
        assert!(fallback.rounds.get().len() == 2 && bypassed(&fallback));
    }

    #[test]
    fn what_is_searched_for_or_lost_is_not_waited_for() {
        for state in [State::Searching, State::Lost] {
            let (fallback, _predistort, began) = fallback();
            fallback.judge(&Status { state, ..heard(2) }, began);
            assert!(fallback.rounds.get().len() == 1 && bypassed(&fallback), "{state:?}");
        }
        let (fallback, _predistort, began) = fallback();
        fallback.judge(&Status { state: State::Doubtful, ..heard(2) }, began);
        assert!(fallback.rounds.get().is_empty() && !bypassed(&fallback));
    }
}
