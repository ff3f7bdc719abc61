//! `kaflow live`: track with radios at both ends.

mod keep_up;
mod options;
mod sweep;

pub(in crate::cli) use options::Args;

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use num_complex::Complex32;

use super::{
    Args as TrackArgs, check_outputs,
    filters::{self, Choice},
    graph::{Outcome, Tracked},
    input::Survey,
    report,
};
use crate::blocks::{End, Radio, RadioConfig};
use crate::cli::interrupt;
use crate::flowgraphs::live::{self, Finished, Parts, Record, View};
use crate::iq::Recording;
use crate::ofdm::{RandomBits, Source, Transmitter};
use crate::{Error, Result, metrics, radio};
use keep_up::KeepUp;

/// The time that a radio may take to begin.
const START: Duration = Duration::from_millis(500);

/// Pairs that the report looks at.
const LOOK: usize = 1 << 16;

pub(in crate::cli) fn run(args: Args) -> Result<()> {
    let track = args.track()?;
    let choices = filters::choose(&track)?;
    choices.iter().try_for_each(Choice::check)?;
    check_outputs(&track)?;
    let config = args.config()?;
    let sweep = args.sweep()?;
    let frame = frame(&args)?;
    allow(&args, &config)?;
    if let Some(out) = &track.out {
        std::fs::create_dir_all(out).map_err(|e| Error::io(out, e))?;
    }

    let stop = interrupt::watch();
    // Errors are reported once, by us.
    futuresdr::runtime::config::set("log_level", "off");
    futuresdr::runtime::config::set("ctrlport_enable", false);
    let session = Session { args: &args, track: &track, choices: &choices, frame: &frame, stop };
    match sweep {
        Some(gains) => sweep::run(&session, &config, &gains),
        None => {
            let started = Instant::now();
            let (survey, outcome, finished) = session.run(&config, args.seconds)?;
            report::write(&track, &survey, &outcome, started.elapsed())?;
            finished.fault.map_or(Ok(()), Err)
        }
    }
}

/// One frame, with an rms of about 1: ours, or what another box repeats.
fn frame(args: &Args) -> Result<Vec<Complex32>> {
    if let Some(path) = &args.tx {
        let mut recording = Recording::open(path, args.format)?;
        let frame = recording.read_up_to(1 << 20)?;
        let power = metrics::power(&frame);
        if power == 0.0 || recording.len() > 1 << 20 {
            return Err(Error::file(
                path,
                "samples",
                "must be one frame that the transmitter repeats: at most 1048576 samples, not silent",
            ));
        }
        return Ok(frame.iter().map(|z| z * power.sqrt().recip() as f32).collect());
    }
    let config = args.waveform()?;
    let mut bits = vec![0; config.payload_bits()];
    RandomBits::new(config.seed).fill(&mut bits);
    let mut frame = vec![Complex32::ZERO; config.frame_samples()];
    Transmitter::new(config, Source::Repeat(bits))?.fill(&mut frame);
    Ok(frame)
}

/// Asks before anything is transmitted by a real device on a frequency that nobody named.
fn allow(args: &Args, config: &RadioConfig) -> Result<()> {
    let Some(tx) = config.tx.as_ref().filter(|tx| !simulated(&tx.device)) else { return Ok(()) };
    eprintln!(
        "kaflow: {} is going to transmit at {} MHz, {} MHz wide: you need the right to transmit there",
        tx.device,
        config.frequency / 1e6,
        config.rate / 1e6
    );
    if args.freq.is_some() || args.yes {
        return Ok(());
    }
    let refused = || Error::parameter("freq", "given, or --yes, before a real device transmits", "neither");
    if !std::io::stdin().is_terminal() {
        return Err(refused());
    }
    eprint!("Transmit? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|e| Error::io("standard input", e))?;
    if answer.trim().eq_ignore_ascii_case("y") { Ok(()) } else { Err(refused()) }
}

/// Whether nothing leaves the computer.
fn simulated(device: &str) -> bool {
    soapysdr::Args::from(device).get("driver") == Some(radio::DRIVER)
}

/// Whether a device can wait for a slow reader: a simulated one that is not paced.
fn patient(device: &str) -> bool {
    simulated(device) && soapysdr::Args::from(device).get("pace") == Some("fast")
}

/// What all runs of a command have in common.
struct Session<'a> {
    args: &'a Args,
    track: &'a TrackArgs,
    choices: &'a [Choice],
    frame: &'a [Complex32],
    stop: &'a AtomicBool,
}

impl Session<'_> {
    /// Runs the flowgraph once, for so many seconds of samples.
    fn run(&self, config: &RadioConfig, seconds: Option<f64>) -> Result<(Survey, Outcome, Finished)> {
        let mut survey = self.survey(config);
        let (mut budgets, mut settings, mut trackers) = (Vec::new(), Vec::new(), Vec::new());
        for channel in &self.args.channel {
            let mut set = Vec::new();
            for filter in filters::settle(self.choices, self.track, &survey)? {
                budgets.push(filter.settings.number("budget").ok());
                settings.push(filter.settings);
                let name = if self.args.channel.len() > 1 { format!("{} rx{channel}", filter.name) } else { filter.name.to_owned() };
                set.push((name, filter.tracker));
            }
            trackers.push(set);
        }
        let radio = Radio::open(config)?;
        let samples = seconds.map(|seconds| (seconds * radio.rate()) as u64);
        let record = self.args.record.as_deref();
        let record = record.map(|folder| Record { folder, frequency: config.frequency, force: self.args.force });
        let parts = Parts {
            radio,
            frame: self.frame.to_vec(),
            level: self.args.amplitude(),
            trackers,
            lead: self.track.advance.unwrap_or(self.track.taps / 2),
            every: samples.map_or(4096, |n| (n / 400).clamp(16, 4096)),
            skip: self.track.skip,
            samples,
            time: seconds
                .filter(|_| !config.patient)
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .map(|time| time.saturating_add(START)),
            keep: LOOK,
        };
        let graph = live::build(parts, record.as_ref())?;
        let mut keep_up = KeepUp::new(self.args.adaptive_budget, budgets);
        let began = Instant::now();
        let mut last = (Instant::now(), 0);
        let mut finished = graph.run(self.stop, Duration::from_secs(1), |view| {
            last = show(view, began, last, config.queue);
            keep_up.look(view);
        })?;
        if let Some(record) = &record {
            live::tie(record)?;
        }
        eprintln!("kaflow: {}", finished.health);
        let outcome = self.outcome(&finished, settings)?;
        // The pictures look at the best filter, and so at its channel.
        let error = |n: &usize| Some(outcome.filters[*n].total.nmse_db()).filter(|e| !e.is_nan()).unwrap_or(f64::INFINITY);
        let best = (0..outcome.filters.len()).min_by(|a, b| error(a).total_cmp(&error(b))).unwrap_or(0);
        (survey.input, survey.target) = finished.kept(best / self.choices.len().max(1))?;
        if survey.input.is_empty() {
            return Err(finished.fault.take().unwrap_or_else(|| not_found(&finished)));
        }
        Ok((survey, outcome, finished))
    }

    fn survey(&self, config: &RadioConfig) -> Survey {
        let device = |end: &Option<End>| end.as_ref().map(|end| end.device.clone()).unwrap_or_default();
        let (tx, rx) = (device(&config.tx), device(&config.rx));
        let ends = match tx.as_str() {
            "" => format!("to {rx}"),
            _ if tx == rx => rx,
            _ => format!("from {tx} to {rx}"),
        };
        Survey {
            input: Vec::new(),
            target: Vec::new(),
            power: metrics::power(self.frame),
            real: false,
            sample_rate: Some(config.rate),
            alignment: None,
            delay: 0.0,
            advance: 0,
            total: 0,
            source: format!("{ends} at {} MHz, {} MS/s", config.frequency / 1e6, config.rate / 1e6),
            waveform: None,
        }
    }

    fn outcome(&self, finished: &Finished, settings: Vec<crate::filter::registry::Settings>) -> Result<Outcome> {
        let mut filters = Vec::new();
        for ((name, track), settings) in finished.tracks()?.into_iter().zip(settings) {
            filters.push(Tracked::of(name, settings, &track.summary()));
        }
        let lost = finished.health.gap_samples.load(Ordering::Relaxed);
        Ok(Outcome { filters, interrupted: self.stop.load(Ordering::Relaxed), lost })
    }
}

/// What to say when there is nothing to report.
fn not_found(finished: &Finished) -> Error {
    let received = finished.health.received.load(Ordering::Relaxed);
    Error::Data(match received {
        0 => "nothing was received: the stream has not begun, or it has stalled".into(),
        _ => format!(
            "the frame was not found in the {received} samples that were received: is the transmitter on, on the same frequency, and strong enough?"
        ),
    })
}

/// A line a second.
fn show(view: &View<'_>, began: Instant, last: (Instant, u64), queue: usize) -> (Instant, u64) {
    let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let health = &view.health;
    let now = of(&health.received);
    let rate = (now - last.1) as f64 / last.0.elapsed().as_secs_f64();
    let figures: Vec<_> = view
        .tracks
        .iter()
        .map(|(name, probe)| {
            let nmse = probe.read().nmse_db;
            format!("{name} {nmse:.1} ({:.0} %)", 100.0 * 10f64.powf(nmse / 20.0))
        })
        .collect();
    let locks: Vec<_> = view
        .watchers
        .iter()
        .map(|watcher| match (watcher.lock(), watcher.failure()) {
            (Some(lock), _) => format!("offset {:.2e}, drift {:.1} ppm", lock.cfo, lock.drift_ppm),
            (None, Some(failure)) => format!("searching: {failure}"),
            (None, None) => "searching".into(),
        })
        .collect();
    eprintln!(
        "{} s: {:.2} MS/s, NMSE dB (EVM): {}; {}; queue {}/{queue}, {} overflows, {} underflows, {} missing",
        began.elapsed().as_secs(),
        rate / 1e6,
        figures.join(", "),
        locks.join("; "),
        health.depth.load(Ordering::Relaxed),
        of(&health.overflows),
        of(&health.underflows),
        of(&health.gap_samples)
    );
    (Instant::now(), now)
}
