//! The command line of `kaflow live`.

use std::path::{Path, PathBuf};

use super::linearize::LinearizeArgs;
use super::radio::{RadioArgs, Wish};
use crate::blocks::{RadioConfig, check_device};
use crate::cli::outputs::Outputs;
use crate::cli::receive::Listener;
use crate::cli::run::arguments::{FilterArgs, OutputArgs, ThreadArgs};
use crate::cli::run::dashboard::ServeArgs;
use crate::cli::run::report;
use crate::cli::typed::whole;
use crate::{Error, Result, files, iq, ofdm};

/// Track a channel live: transmit clipped OFDM, receive it, and predict what is received, with any SoapySDR radio.
///
/// A full-duplex radio with --device, two radios with --tx-device and --rx-device, or --rx-only with the frame that another box repeats. driver=kaflow-testbed is a simulated radio: nothing is
/// transmitted. `kaflow devices --probe` lists what a radio has.
///
/// The delay in the report and its JSON is that from transmitter to receiver where the radio has time stamps: through a cable of known length it calibrates what the radio itself adds.
///
/// Before the stream has started the transmit gain is as low as it can be; at any end the transmitter stops first.
#[derive(clap::Args)]
pub(in crate::cli) struct Args {
    /// Device arguments of a full-duplex radio, with driver=..., as `kaflow devices` lists them
    #[arg(long, value_name = "ARGS", conflicts_with_all = ["rx_device", "tx_device"])]
    device: Option<String>,
    /// The radio that receives
    #[arg(long, value_name = "ARGS")]
    rx_device: Option<String>,
    /// The radio that transmits
    #[arg(long, value_name = "ARGS", conflicts_with = "rx_only")]
    tx_device: Option<String>,
    /// Transmit nothing: another box repeats the frame in --tx, or sends the packets that --receive names; without --tx they are received and nothing is tracked
    #[arg(long)]
    rx_only: bool,
    /// One frame that is repeated (SigMF, WAV, raw), of up to 8,388,608 samples, instead of our own OFDM
    #[arg(long, value_name = "FILE")]
    pub(super) tx: Option<PathBuf>,
    /// Format of a raw --tx file: cf32_le, ci16_le, ...
    #[arg(long)]
    pub(super) format: Option<iq::Format>,
    /// Centre frequency in Hz (default: 5.4e9); without it a real device transmits only after a confirmation
    #[arg(long, value_name = "HZ", alias = "frequency", allow_negative_numbers = true)]
    pub(super) freq: Option<f64>,
    /// Samples a second (default: what this machine sustains with these filters)
    #[arg(long, value_name = "HZ", alias = "sample-rate", allow_negative_numbers = true)]
    pub(super) rate: Option<f64>,
    /// Transmit gain in dB; or of one element, NAME=DB, any number of times
    #[arg(long, value_name = "DB", allow_negative_numbers = true)]
    tx_gain: Vec<String>,
    /// Receive gain in dB; or of one element, NAME=DB, any number of times
    #[arg(long, value_name = "DB", allow_negative_numbers = true)]
    rx_gain: Vec<String>,
    /// Stop after so many seconds
    #[arg(long, allow_negative_numbers = true)]
    pub(super) seconds: Option<f64>,
    /// Mean power of what is transmitted, in dB below full scale
    #[arg(long, default_value_t = 9.0, value_name = "DB", allow_negative_numbers = true)]
    pub(super) backoff: f64,
    /// Transmit a frame that the converter clips
    #[arg(long)]
    pub(super) allow_clipping: bool,
    /// Waveform: paper or wifi
    #[arg(long, default_value = "paper")]
    preset: String,
    /// OFDM symbols in the frame that is repeated
    #[arg(long, value_name = "N", default_value = "50", value_parser = whole::<usize>)]
    symbols: usize,
    /// Shrink the filters' budget when they do not keep up
    #[arg(long)]
    pub(super) adaptive_budget: bool,
    #[command(flatten)]
    pub(super) threads: ThreadArgs,
    /// Measure at each transmit gain from A to B dB
    #[arg(long, value_name = "A:B:STEP", allow_hyphen_values = true, conflicts_with = "serve")]
    sweep_tx_gain: Option<String>,
    /// Write what is received, as it is received, and the frame that is sent: a pair of SigMF recordings for track
    #[arg(long, value_name = "DIR", conflicts_with = "sweep_tx_gain")]
    pub(super) record: Option<PathBuf>,
    /// Decode the packets that are received as well, as `kaflow receive` does: of what is sent, then with a code of rate 1/2, or of a preset or TOML file
    #[arg(long, value_name = "NAME|FILE", num_args = 0..=1, conflicts_with = "sweep_tx_gain")]
    receive: Option<Option<String>>,
    /// How symbols are read with --receive: one-tap, dar, bdar or ep
    #[arg(long, default_value_t = ofdm::Method::Bdar, requires = "receive")]
    pub(super) detector: ofdm::Method,
    /// Cancel our own signal: write what the first filter leaves of what is received, as SigMF, NAME.sigmf-meta and NAME.sigmf-data; its delay and carrier offset are taken out
    #[arg(long, value_name = "NAME", conflicts_with = "sweep_tx_gain")]
    pub(super) cancel: Option<PathBuf>,
    #[command(flatten)]
    pub(super) linearize: LinearizeArgs,
    /// Transmit without asking
    #[arg(long)]
    pub(super) yes: bool,
    /// Parameters from a file, as tune writes it
    #[arg(long, value_name = "FILE.toml")]
    pub(super) params: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Radio")]
    pub(super) radio: RadioArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) serve: ServeArgs,
    #[command(flatten)]
    pub(super) filters: FilterArgs,
}

impl Args {
    /// Refuses outputs that could not be written in the end, or that are in the way.
    pub(super) fn check_outputs(&self, sweep: bool) -> Result<()> {
        if let Some(name) = self.cancel.as_ref().filter(|name| files::flows(name)) {
            return Err(Error::file(name, "cancel", "must be the name of a recording, which is two files"));
        }
        let mut files = report::files_of(&self.output);
        let names: &[&str] = if sweep { &["sweep.csv", "am-am.csv", "am-am.svg", "am-am.png"] } else { &[] };
        files.extend(self.output.out.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))));
        files.extend(self.output.out.iter().flat_map(|folder| self.linearize.files(folder)));
        files.extend(self.cancel.iter().flat_map(|name| <[PathBuf; 2]>::from(iq::sigmf::files(name))));
        let names = ["tx.sigmf-meta", "tx.sigmf-data", "rx.sigmf-meta", "rx.sigmf-data", "pair.sigmf-collection"];
        let recorded: Vec<PathBuf> = self.record.iter().flat_map(|folder| names.map(|name| folder.join(name))).collect();
        let heard = self.output.out.as_ref().filter(|_| self.receive.is_some()).map(|out| out.join(super::PACKETS));
        let packets: Vec<PathBuf> = heard.iter().flat_map(|folder| Listener::files(folder)).collect();
        let all: Vec<&Path> = files.iter().chain(&recorded).chain(&packets).map(PathBuf::as_path).collect();
        files::check_apart([], &all)?;
        let folders = [(files, self.output.out.as_deref()), (recorded, self.record.as_deref()), (packets, heard.as_deref())];
        folders.into_iter().try_for_each(|(files, folder)| {
            let (recordings, inputs) = (self.tx.iter().map(PathBuf::as_path), self.params.iter().map(PathBuf::as_path));
            Outputs { recordings: recordings.collect(), inputs: inputs.collect(), files, folder, force: self.output.force }.check()
        })
    }

    /// Whether there is nothing to track, as no frame is known.
    pub(super) fn alone(&self) -> bool {
        self.rx_only && self.tx.is_none()
    }

    /// Refuses what needs a frame that is known.
    pub(super) fn tracks_nothing(&self) -> Result<()> {
        if !matches!(self.receive, Some(Some(_))) {
            let problem =
                "given with --rx-only: the frame that the other box repeats; or --receive NAME|FILE, to receive its packets alone";
            return Err(Error::parameter("tx", problem, "nothing"));
        }
        let given = [
            ("cancel", self.cancel.is_some()),
            ("record", self.record.is_some()),
            ("linearize", self.linearize.wanted()),
            ("sweep-tx-gain", self.sweep_tx_gain.is_some()),
            ("filter", !self.filters.filter.is_empty()),
            ("params", self.params.is_some()),
            ("serve", self.serve.serve.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(Error::parameter(name, "left out where nothing is tracked, or the frame given with --tx FILE", "both")),
            None if self.radio.channel.len() > 1 => {
                Err(Error::parameter("channel", "one alone where nothing is tracked", self.radio.channel.len()))
            }
            None => Ok(()),
        }
    }

    /// What is opened, and how.
    pub(super) fn config(&self, rate: f64) -> Result<RadioConfig> {
        for (name, value) in [("freq", self.freq), ("rate", Some(rate)), ("seconds", self.seconds)] {
            if let Some(value) = value.filter(|v| !(v.is_finite() && *v > 0.0)) {
                return Err(Error::parameter(name, "more than 0", value));
            }
        }
        if !self.backoff.is_finite() {
            return Err(Error::parameter("backoff", "a number of dB", self.backoff));
        }
        let missing = |name: &str| {
            let problem = "given, with an explicit driver=..., such as driver=kaflow-testbed or what `kaflow devices` lists";
            Error::parameter(name, problem, "nothing")
        };
        let rx = self.device.as_ref().or(self.rx_device.as_ref()).ok_or_else(|| missing("device"))?;
        let tx = match self.device.as_ref().or(self.tx_device.as_ref()) {
            _ if self.rx_only => None,
            Some(tx) => Some(tx),
            None => return Err(missing("tx-device")),
        };
        if self.radio.channel.len() > 1 && (self.record.is_some() || self.sweep_tx_gain.is_some()) {
            return Err(Error::parameter("channel", "one alone with --record and --sweep-tx-gain", self.radio.channel.len()));
        }
        [Some(rx), tx].into_iter().flatten().try_for_each(|device| check_device(device))?;
        let wish = |device, gains| Wish { device, gains };
        let frequency = self.freq.unwrap_or(5.4e9);
        let config = self.radio.config(wish(rx, &self.rx_gain), tx.map(|tx| wish(tx, &self.tx_gain)), frequency, rate)?;
        let mut tx = config.tx;
        if let Some(tx) = tx.as_mut().filter(|tx| super::simulated(&tx.device) && tx.gain.is_none() && tx.gains.is_empty()) {
            // Without a wish the simulated amplifier is driven into saturation, or up to it: what this is about should show.
            let at = if self.linearize.wanted() { LINEARIZED } else { SATURATED };
            tx.gain = Some((at + self.backoff).clamp(0.0, 60.0));
        }
        let patient = super::patient(rx) && tx.as_ref().is_none_or(|tx| super::patient(&tx.device));
        Ok(RadioConfig { tx, patient, queue: self.linearize.queue(config.queue), ..config })
    }

    /// What listens for packets, if anything is to.
    pub(super) fn listener(&self, ours: Option<&ofdm::Config>) -> Result<Option<Listener>> {
        self.receive.as_ref().map(|name| Listener::new(name.as_deref(), ours, self.detector)).transpose()
    }

    /// The waveform that is transmitted.
    pub(super) fn waveform(&self, rate: f64) -> Result<ofdm::Config> {
        // A checksum tells whether a packet was read.
        let code = self.receive.is_some().then_some(ofdm::Rate::Half);
        let config = ofdm::Config { symbols: self.symbols, gap: 0, sample_rate: rate, code, ..ofdm::Config::preset(&self.preset)? };
        let config = self.linearize.waveform(config);
        config.validate()?;
        Ok(config)
    }

    /// The amplitude that a signal of rms 1 is transmitted with.
    pub(super) fn amplitude(&self) -> f32 {
        10f32.powf(-self.backoff as f32 / 20.0)
    }

    /// The gains of a sweep.
    pub(super) fn sweep(&self) -> Result<Option<Vec<f64>>> {
        let Some(text) = &self.sweep_tx_gain else { return Ok(None) };
        let bad = || {
            Error::parameter(
                "sweep-tx-gain",
                "A:B:STEP in dB, with a STEP that leads from A to B in at most 1000 steps, such as 30:60:5",
                text,
            )
        };
        let numbers: Vec<f64> = text.split(':').map(|part| part.trim().parse().map_err(|_| bad())).collect::<Result<_>>()?;
        let [from, to, step] = numbers[..] else { return Err(bad()) };
        let steps = ((to - from) / step + 1e-9).floor();
        if !(0.0..=1000.0).contains(&steps) || !from.is_finite() || step == 0.0 {
            return Err(bad());
        }
        Ok(Some((0..=steps as usize).map(|k| from + k as f64 * step).collect()))
    }
}

/// The TX gain in dB at which a signal of mean power 1 drives the simulated amplifier 6 dB into saturation.
const SATURATED: f64 = 46.0;
/// And the one at which it works 9 dB below saturation, where predistortion helps.
const LINEARIZED: f64 = 31.0;
