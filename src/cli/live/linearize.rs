//! `kaflow live --linearize`: predistortion that is learned while a radio transmits.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use num_complex::{Complex32, Complex64};
use serde_json::{Value, json};

use crate::blocks::{Health, LoopConfig, RadioConfig, Round, Rounds};
use crate::cli::linearize::report::{head, row, sides, spectrum};
use crate::cli::typed::whole;
use crate::dpd::{self, Options};
use crate::dsp::{Fourier, db, wide};
use crate::flowgraphs::linearize::Loop;
use crate::metrics::{Band, LEAST_OVERSAMPLING};
use crate::ofdm::Clip;
use crate::{Error, Result, ofdm, plot};

/// The name of its figures among the facts.
pub(super) const FACT: &str = "linearize";
/// The picture.
const PICTURE: &str = "linearize";
/// Samples of our own waveform for each of its grid, and how its peaks are kept down: what a transmitter that is to be linearised does first.
const OVERSAMPLING: usize = 4;
const CLIP: Clip = Clip { level_db: 8.0, filter: true, iterations: 3 };
/// Pairs of a round.
const PAIRS: usize = 20_000;
/// Samples that may wait at either end of the radio: a table has to pass both queues.
const QUEUE: usize = 1 << 16;
/// Samples that wait elsewhere: in the flowgraph's buffers, in the synchroniser and in a simulated radio.
const BUFFERS: usize = 1 << 20;
/// The longest that a driver keeps samples, in seconds.
const DRIVER: f64 = 0.25;
/// How much weaker than without the signal comes out, in dB.
const BACK_OFF_DB: f64 = 0.1;
/// Taps of a channel over the air, at least.
const TAPS: usize = 8;

#[derive(clap::Args)]
pub(in crate::cli) struct LinearizeArgs {
    /// Linearise the transmitter while it runs (DPD): learn the PA from what comes back, predistort, again. What comes back goes through a coupler, or over the air
    ///
    /// Four times oversampled OFDM is sent, or the frame in --tx, which must be oversampled at least 3 times: so must the radio's rate and its filters. The plain signal is sent until the PA is
    /// known, and again where what comes back no longer fits.
    #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = "coupler",
          conflicts_with_all = ["sweep_tx_gain", "receive", "cancel", "rx_only"])]
    linearize: Option<Way>,
    /// With --linearize, how far peaks may be raised above those of the signal, in dB; never beyond full scale. The mean power is never raised
    #[arg(long, value_name = "DB", default_value_t = 2.0, requires = "linearize")]
    peak_growth: f64,
    /// With --linearize, samples that the PA remembers
    #[arg(long, value_name = "N", default_value = "3", value_parser = whole::<usize>, requires = "linearize")]
    memory: usize,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Way {
    Coupler,
    Air,
}

impl LinearizeArgs {
    pub(super) fn wanted(&self) -> bool {
        self.linearize.is_some()
    }

    /// The files that it leaves in `folder`.
    pub(super) fn files(&self, folder: &Path) -> Vec<PathBuf> {
        if self.wanted() { plot::files(&folder.join(PICTURE)) } else { Vec::new() }
    }

    /// The waveform with room beside it, at so many samples a second.
    pub(super) fn waveform(&self, plain: ofdm::Config) -> ofdm::Config {
        if !self.wanted() {
            return plain;
        }
        let sample_rate = plain.sample_rate / OVERSAMPLING as f64;
        ofdm::Config { oversampling: OVERSAMPLING, clip: Some(CLIP), sample_rate, window: plain.cyclic_prefix / 2, ..plain }
    }

    /// Takes what the edges of symbols put beside the channel out of a frame: around, as it is repeated. What is left beside it is the amplifier's.
    pub(super) fn filter(&self, frame: &mut [Complex32], config: &ofdm::Config) {
        if !self.wanted() {
            return;
        }
        let n = frame.len();
        let mut fourier = Fourier::new(n);
        let edge = (config.active / 2 + 1) as f32 / (config.fft * config.oversampling) as f32;
        fourier.forward(frame);
        for (k, z) in frame.iter_mut().enumerate() {
            *z = if k.min(n - k) as f32 <= edge * n as f32 { *z / n as f32 } else { Complex32::ZERO };
        }
        fourier.inverse(frame);
    }

    /// Samples that may wait at either end.
    pub(super) fn queue(&self, asked: usize) -> usize {
        if self.wanted() { asked.min(QUEUE) } else { asked }
    }

    /// How many samples past the predicted one the taps reach: a coupler's answer begins with the sample itself.
    pub(super) fn advance(&self) -> Option<usize> {
        (self.linearize == Some(Way::Coupler)).then_some(0)
    }

    /// The loop around a radio that repeats `frame`, if there is to be one.
    pub(super) fn start(&self, frame: &[Complex32], amplitude: f32, taps: usize, radio: &RadioConfig) -> Result<Option<Linearizing>> {
        let Some(way) = self.linearize else { return Ok(None) };
        if !(0.0..=20.0).contains(&self.peak_growth) {
            return Err(Error::parameter("peak-growth", "between 0 and 20 dB", self.peak_growth));
        }
        let signal: Vec<Complex64> = frame.iter().map(|&z| wide(z)).collect();
        let band = Band::of(&signal, None, None)?;
        let needed = LEAST_OVERSAMPLING * band.width * radio.rate;
        if let Some(bandwidth) = radio.rx.as_ref().and_then(|rx| rx.bandwidth).filter(|&bandwidth| bandwidth < needed) {
            let expected = format!("at least {needed:.4e} Hz with --linearize, {LEAST_OVERSAMPLING} times that of the signal");
            return Err(Error::parameter("bandwidth", expected, bandwidth));
        }
        let peak = signal.iter().map(|z| z.norm()).fold(0.0, f64::max);
        let full_scale = 1.0 / f64::from(amplitude);
        let level = (peak * 10f64.powf(self.peak_growth / 20.0)).min(full_scale);
        let path = match way {
            Way::Coupler => dpd::Path::Coupler,
            // The frame runs ahead by as much as the channel asks for.
            Way::Air => dpd::Path::Air { taps: taps.max(TAPS), advance: 0, block: 1000.max(16 * taps) },
        };
        let driver = if radio.patient { 0 } else { (DRIVER * radio.rate) as usize };
        let config = LoopConfig {
            options: Options { memory: self.memory, path, ..Options::default() },
            level,
            back_off_db: BACK_OFF_DB,
            power_db: 0.0,
            pairs: PAIRS,
            latency: Some(2 * QUEUE + BUFFERS + driver),
        };
        let closed = Loop::new(config, frame)?;
        let closed = if radio.patient { closed } else { closed.aside() };
        let level_dbfs = db(level * level, full_scale * full_scale);
        Ok(Some(Linearizing { rounds: closed.rounds(), closed: Cell::new(Some(closed)), level_dbfs, rate: radio.rate, way }))
    }
}

/// A loop that runs, or has run.
pub(super) struct Linearizing {
    /// Until it runs.
    pub(super) closed: Cell<Option<Loop>>,
    rounds: Rounds,
    level_dbfs: f64,
    rate: f64,
    way: Way,
}

/// The first round without predistortion, and the last with it.
fn ends(rounds: &[Round]) -> [Option<&Round>; 2] {
    let of = |predistorted: bool| move |round: &&Round| round.predistorted == predistorted && round.linearity.is_some();
    [rounds.iter().find(of(false)), rounds.iter().rfind(of(true))]
}

impl Linearizing {
    /// One part of the line a second.
    pub(super) fn words(&self) -> String {
        let rounds = self.rounds.get();
        let Some(last) = rounds.last() else { return "DPD: learning".into() };
        let aclr = last.linearity.map(|found| format!(", ACLR {:.1} dBc", found.aclr_dbc.0.max(found.aclr_dbc.1))).unwrap_or_default();
        format!("DPD: {} rounds, model {:.1} dB{aclr}, {}", rounds.len(), last.model_db, if last.applied { "on" } else { "bypass" })
    }

    /// The figures for JSON and the report.
    pub(super) fn figures(&self, health: &Health) -> Value {
        let rounds = self.rounds.get();
        let [before, after] = ends(&rounds).map(|round| round.and_then(|round| round.linearity));
        let last = rounds.last();
        json!({
            "path": if self.way == Way::Coupler { "coupler" } else { "air" },
            "rounds": rounds.len(), "applied": last.is_some_and(|round| round.applied),
            "bypasses": rounds.iter().filter(|round| !round.applied).count(),
            "aclr_before_dbc": before.as_ref().map(sides), "aclr_after_dbc": after.as_ref().map(sides),
            "evm_before_db": before.map(|found| found.evm_db), "evm_db": after.map(|found| found.evm_db),
            "nmse_before_db": before.map(|found| found.nmse_db), "nmse_db": after.map(|found| found.nmse_db),
            "model_nmse_db": last.map(|round| round.model_db),
            "level_dbfs": self.level_dbfs, "tx_peak_dbfs": health.tx.peak_dbfs(), "tx_mean_dbfs": health.tx.mean_dbfs(),
        })
    }

    /// Prints before and after, and draws them into `folder`.
    pub(super) fn report(&self, facts: &[(&str, Value)], folder: Option<&Path>) -> Result<()> {
        let rounds = self.rounds.get();
        say!();
        head();
        for (name, round) in ["without predistortion", "with predistortion"].into_iter().zip(ends(&rounds)) {
            if let Some(found) = round.and_then(|round| round.linearity) {
                row(name, &found);
            }
        }
        let now = match rounds.last() {
            Some(round) if round.applied => format!("the model explains {:.1} dB of what came back", -round.model_db),
            Some(_) => "the plain signal in the end: what came back no longer told of the PA".into(),
            None => "too short for one".into(),
        };
        say!("{} rounds, {now}", rounds.len());
        let fact = |name: &str| facts.iter().find(|fact| fact.0 == FACT).and_then(|fact| fact.1[name].as_f64()).unwrap_or(f64::NAN);
        let (peak, mean) = (fact("tx_peak_dbfs"), fact("tx_mean_dbfs"));
        say!("transmitted: peak {peak:.2} dBFS (at most {:.2}), mean {mean:.2} dBFS", self.level_dbfs);
        let (Some(folder), (Some(before), after)) = (folder, self.rounds.received()) else { return Ok(()) };
        let mut lines = vec![("without predistortion", before)];
        lines.extend(after.map(|after| ("with predistortion", after)));
        let lines: Vec<_> = lines.iter().map(|(name, samples)| (*name, samples.as_slice())).collect();
        spectrum("What came back from the transmitter", Some(self.rate), &lines)?.save(folder.join(PICTURE)).map(drop)
    }
}
