//! `kaflow live`: track with radios at both ends.

mod frame;
mod keep_up;
mod linearize;
mod listen;
mod options;
mod radio;
mod rate;
mod read_back;
mod recorder;
mod sweep;
mod tuner;

pub(super) use options::Args;

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::interrupt;
use super::json::number;
use super::receive::Listener;
use super::run::{
    Sent, Subject, Waveform,
    dashboard::{self, Dashboard, Ends},
    filters::{self, Choice},
    input, report,
};
use crate::blocks::{Drive, Frame, Health, IqSink, Radio, RadioConfig, Track};
use crate::filter::registry::Settings;
use crate::flowgraphs::track::{self as graph, Filter, Outcome, Plan, Source, View, Watch};
use crate::iq::{State, Status};
use crate::{Error, Result, files, ofdm};
use keep_up::KeepUp;
use linearize::Linearizing;
use rate::Cost;

/// What runs when nobody says: a linear filter, and one that knows that amplifiers saturate.
const DEFAULT: [&str; 2] = ["nlms", "ensemble"];
/// And what cancels, and what runs beside a predistorter.
const CANCEL: [&str; 1] = ["canceller"];
const LINEARIZE: [&str; 1] = ["nlms"];

/// Between two lines.
const SECOND: Duration = Duration::from_secs(1);

/// The folder in that of the report for what packets say.
const PACKETS: &str = "packets";
/// And their title.
const RECEIVED: &str = "packets received";

/// The time that a radio may take to begin.
const START: Duration = Duration::from_millis(500);

pub(super) fn run(args: Args) -> Result<()> {
    if args.alone() {
        return listen::run(&args);
    }
    let default: &[&str] = match (args.cancel.is_some(), args.linearize.wanted()) {
        (true, _) => &CANCEL,
        (_, true) => &LINEARIZE,
        _ => &DEFAULT,
    };
    let choices = filters::choose(&args.filters.wanted(default, args.params.as_ref())?, "filter", &filters::streams())?;
    let sweep = args.sweep()?;
    args.check_outputs(sweep.is_some())?;
    // What is wrong with the rest shows at any rate.
    args.config(args.rate.unwrap_or(1e6))?;
    let taps = args.filters.taps.unwrap_or(input::TAPS);
    let cost = Cost::measure(&choices, &frame::make(&args, 1e6, 1e6)?.0.known, taps, args.radio.channel.len())?;
    let rate = args.rate.or(args.radio.rx_rate).unwrap_or_else(|| cost.sustained(&choices));
    let config = args.config(rate)?;
    let (frame, waveform) = frame::make(&args, args.radio.tx_rate.unwrap_or(rate), args.radio.rx_rate.unwrap_or(rate))?;
    if config.tx.is_some() && !args.allow_clipping {
        Drive::of(&frame.sent, args.amplitude())?.check()?;
    }
    let linearizing = args.linearize.start(&frame.sent, args.amplitude(), taps, &config)?;
    allow(&args, &config)?;
    args.output.out.as_deref().map_or(Ok(()), files::make_folder)?;
    let listener = args.listener(waveform.as_ref())?;
    let session = Session { args: &args, choices: &choices, frame: &frame, waveform, listener, linearizing, cost };
    match sweep {
        Some(gains) => sweep::run(&session, &config, &gains),
        None => {
            let (subject, outcome) = session.run(&config, args.seconds)?;
            report::write(&args.output, &subject, &outcome)?;
            if let Some(linearizing) = &session.linearizing {
                linearizing.report(&subject.facts, args.output.out.as_deref())?;
            }
            if let Some(listener) = &session.listener {
                let samples = outcome.sync.first().map_or(0, |sync| sync.pairs);
                listener.report(RECEIVED, samples, None, args.output.out.as_deref().map(|out| out.join(PACKETS)).as_deref())?;
            }
            outcome.fault.map_or(Ok(()), Err)
        }
    }
}

/// Asks before anything is transmitted by a real device on a frequency that nobody named.
fn allow(args: &Args, config: &RadioConfig) -> Result<()> {
    let Some(tx) = config.tx.as_ref().filter(|tx| !simulated(&tx.device)) else { return Ok(()) };
    note!(
        "{} is going to transmit at {} MHz, {} MHz wide: you need the right to transmit there",
        tx.device,
        tx.frequency.unwrap_or(config.frequency) / 1e6,
        tx.rate.unwrap_or(config.rate) / 1e6
    );
    if args.freq.or(args.radio.tx_freq).is_some() || args.yes {
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

/// An argument of a device, here or, as SoapyRemote passes it on, at another host.
fn argument(device: &str, name: &str) -> Option<String> {
    let args = soapysdr::Args::from(device);
    let there = args.get("driver") == Some("remote");
    args.get(if there { format!("remote:{name}") } else { name.into() }.as_str()).map(str::to_owned)
}

/// Whether nothing leaves the computer.
fn simulated(device: &str) -> bool {
    argument(device, "driver").as_deref() == Some(crate::radio::DRIVER)
}

/// Whether a device can wait for a slow reader: a simulated one that is not paced.
fn patient(device: &str) -> bool {
    simulated(device) && argument(device, "pace").as_deref() == Some("fast")
}

/// What all runs of a command have in common.
struct Session<'a> {
    args: &'a Args,
    choices: &'a [Choice],
    frame: &'a Frame,
    waveform: Option<ofdm::Config>,
    listener: Option<Listener>,
    linearizing: Option<Linearizing>,
    cost: Cost,
}

impl Session<'_> {
    /// Runs the flowgraph once, for so many seconds of samples.
    fn run(&self, config: &RadioConfig, seconds: Option<f64>) -> Result<(Subject, Outcome)> {
        let advance = self.args.filters.advance.or(self.args.linearize.advance());
        let sight = input::Sight { advance, ..self.args.filters.sight(false)? };
        let survey = input::of_frame(&self.frame.known, sight)?;
        filters::fit(self.choices, self.args.radio.channel.len(), (&survey).into())?;
        let radio = Radio::open(config)?;
        let (rate, health, devices) = (radio.rate(), radio.health(), radio.devices());
        let centre = config.rx.as_ref().and_then(|rx| rx.frequency).unwrap_or(config.frequency);
        read_back::warn(config, &devices);
        let samples = seconds.map(|seconds| (seconds * rate) as u64);
        let every = samples.map_or(4096, |n| (n / 400).clamp(16, 4096));
        let (mut settings, mut channels) = (Vec::<Settings>::new(), Vec::new());
        for channel in &self.args.radio.channel {
            let mut filters = Vec::new();
            settings.clear();
            for choice in self.choices {
                let (settled, tracker) = choice.settle((&survey).into())?;
                settings.push(settled);
                let name = choice.recipe.name;
                let name = if self.args.radio.channel.len() > 1 { format!("{name} rx{channel}") } else { name.to_owned() };
                let track = Track::new(tracker).metrics_every(every, self.args.output.skip).observed();
                let first = channels.is_empty() && filters.is_empty();
                let error = self
                    .args
                    .cancel
                    .as_deref()
                    .filter(|_| first)
                    .map(|path| recorder::cancelled(path, rate, centre, self.args.output.force));
                filters.push(Filter { name, track, prediction: None, error: error.transpose()? });
            }
            channels.push(filters);
        }
        let budgets = self.args.radio.channel.iter().flat_map(|_| settings.iter().map(|s| s.number("budget").ok())).collect();
        let mut subject = Subject {
            source: read_back::ends(config),
            facts: read_back::facts(config, &radio),
            sample_rate: Some(rate),
            real: false,
            waveform: self.waveform.clone().map(|config| Waveform { config, sent: Sent::Repeated(self.frame.known.clone()) }),
            ..Subject::new(survey, false, self.args.output.skip, settings)
        };
        let record = self.args.record.as_deref();
        let record = record.map(|folder| recorder::Recorder {
            folder,
            facts: &subject.facts,
            frequency: centre,
            rate,
            force: self.args.output.force,
        });
        // A viewer cannot stop what the command line wants recorded.
        let recorder = self.args.serve.recorder().filter(|_| record.is_none());
        let ends = Ends {
            recorder: recorder.clone(),
            tuner: Some(Box::new(tuner::Dials::new(&radio, config, self.args.backoff))),
            centre_hz: Some(centre),
            channels: self.args.radio.channel.clone(),
        };
        let mut dashboard = Dashboard::start(&self.args.serve, &subject, ends)?;
        let plan = Plan {
            record: record.as_ref().map(|record| record.received()).transpose()?.or_else(|| recorder.map(IqSink::switched)),
            filters: channels,
            advance: subject.advance,
            samples,
            receive: self.listener.as_ref().map(|listener| listener.block(rate)).transpose()?,
            linearize: self.linearizing.as_ref().and_then(|linearizing| linearizing.closed.take()),
            ..Plan::default()
        };
        if let Some(record) = &record {
            record.sent(&self.frame.known, self.waveform.as_ref())?;
        }
        let time = seconds.filter(|_| !config.patient).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let every = if dashboard.is_some() { dashboard::EVERY } else { SECOND };
        let threads = self.args.threads.threads.or_else(|| self.cost.threads(rate));
        let watch = Watch { every, time: time.map(|time| time.saturating_add(START)), threads, ..Watch::new(interrupt::watch()) };
        let mut keep_up = KeepUp::new(self.args.adaptive_budget, budgets);
        let mut last = (Instant::now(), 0);
        let source = Source::Radio(Box::new(radio), self.frame.clone(), self.args.amplitude());
        let mut outcome = graph::run(source, plan, &watch, |view| {
            if last.0.elapsed() >= SECOND || dashboard.is_none() {
                let told = self.listener.as_ref().map(Listener::words).into_iter().chain(self.linearizing.as_ref().map(Linearizing::words));
                last = show(view, &health, last, config.queue, rate, told);
                keep_up.look(view, &health);
            }
            dashboard.iter_mut().for_each(|dashboard| dashboard.look(&subject, view));
        })?;
        drop(dashboard);
        if let Some(record) = &record {
            record.tie()?;
        }
        note!("{health}");
        read_back::renew(&mut subject.facts, config, &devices);
        subject.level = Some((health.rx.mean_dbfs(), health.rx.peak_dbfs(), health.rx.clipped()));
        subject.facts.extend(self.listener.iter().map(|listener| ("packets", listener.figures())));
        subject.facts.extend(self.linearizing.iter().map(|linearizing| (linearize::FACT, linearizing.figures(&health))));
        subject.facts.push(("radio", health.figures().into_iter().map(|(name, value)| (name.to_owned(), number(value))).collect()));
        // What the synchroniser never saw: the last gap. A device that waits for its reader has read on behind the last sample that was asked for.
        if !config.patient {
            let lost = health.gap_samples.load(Ordering::Relaxed);
            outcome.sync.iter_mut().for_each(|sync| sync.gap_samples = sync.gap_samples.max(lost));
        }
        if outcome.filters.iter().all(|(_, summary)| summary.series.samples() == 0) {
            return Err(outcome.fault.take().unwrap_or_else(|| not_found(&health)));
        }
        Ok((subject, outcome))
    }
}

/// What to say when there is nothing to report.
fn not_found(health: &Health) -> Error {
    Error::Device(match health.received.load(Ordering::Relaxed) {
        0 => "nothing was received: the stream has not begun, or it has stalled".into(),
        received => format!(
            "the frame was not found in the {received} samples that were received: is the transmitter on, on the same frequency, and strong enough?"
        ),
    })
}

/// A line a second.
fn show(
    view: &View<'_>,
    health: &Arc<Health>,
    last: (Instant, u64),
    queue: usize,
    radio_rate: f64,
    told: impl Iterator<Item = String>,
) -> (Instant, u64) {
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let now = of(&health.received);
    let rate = (now - last.1) as f64 / last.0.elapsed().as_secs_f64();
    let figures: Vec<_> = view.filters.iter().map(|f| format!("{} {:.1}", f.name, f.probe.read().nmse_db)).collect();
    let lock = |sync: &Status| match (sync.state, &sync.failure) {
        (State::Locked | State::Doubtful, _) => {
            format!("delay {:.2}, carrier {:.1} Hz, clock {:.1} ppm", sync.delay_samples, sync.cfo * radio_rate, sync.clock_ppm)
        }
        (_, Some(failure)) => format!("searching: {failure}"),
        (_, None) => "searching".into(),
    };
    let locks: Vec<_> = view.sync.iter().map(lock).collect();
    let tracked = if figures.is_empty() { String::new() } else { format!(", NMSE dB: {}; {}", figures.join(", "), locks.join("; ")) };
    let level = match health.rx.clipped() {
        0 => format!("{:.0} dBFS", health.rx.mean_dbfs()),
        clipped => format!("{:.0} dBFS, {clipped} clipped", health.rx.mean_dbfs()),
    };
    tell!(
        "{} s: {:.2} MS/s, {level}{tracked}; queue {}/{queue}, {} overflows, {} underflows, {} in gaps{}",
        view.elapsed.as_secs(),
        rate / 1e6,
        health.depth.load(Ordering::Relaxed),
        of(&health.overflows),
        of(&health.underflows),
        of(&health.gap_samples),
        told.map(|words| format!("; {words}")).collect::<String>()
    );
    (Instant::now(), now)
}
