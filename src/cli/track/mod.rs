//! `kaflow track`: any filters over a pair of recordings, or over the built-in test bed.

mod checkpoint;

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::run::{
    Subject,
    arguments::{FilterArgs, InputArgs, OutputArgs, ThreadArgs},
    dashboard::{self, Dashboard, Ends, ServeArgs},
    filters::{self, Choice},
    input, report,
};
use super::{interrupt, outputs::Outputs, progress, typed::whole};
use crate::blocks::{IqSink, Track};
use crate::filter::registry::Settings;
use crate::flowgraphs::track::{self as graph, Filter, Plan, View, Watch};
use crate::iq::{Datatype, Writer, sigmf::Meta};
use crate::{Error, Result, files};
use checkpoint::{Checkpoint, Collector};

/// What runs when nobody says.
const DEFAULT: [&str; 7] = ["nlms", "fklms", "qklms", "norma", "krlst", "mp-rls", "ensemble"];

/// Track a channel: one-step-ahead predictions of what is received from what was sent.
///
/// With two recordings it aligns them, runs every filter side by side and reports how well each predicts. With none it runs the built-in test bed.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,
    /// Samples of the test bed
    #[arg(long, value_name = "N", conflicts_with = "tx", value_parser = whole::<u64>)]
    samples: Option<u64>,
    /// Seed of the test bed
    #[arg(long, conflicts_with = "tx", value_parser = whole::<u64>)]
    seed: Option<u64>,
    /// Parameters from a file, as tune writes it
    #[arg(long, value_name = "FILE.toml")]
    params: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    files: Files,
    /// A line a second: error, rate, samples in gaps
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    filters: FilterArgs,
}

/// What is written while it runs.
#[derive(clap::Args)]
struct Files {
    /// Write predictions and errors as SigMF into the folder of --out
    #[arg(long, requires = "out")]
    record: bool,
    /// Write the predictions of the one filter as raw cf32
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    /// Save the state of the run to this file, at intervals and at the end
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Samples between two savings
    #[arg(long, value_name = "N", default_value = "262144", value_parser = whole::<u64>, requires = "checkpoint")]
    checkpoint_every: u64,
    /// Go on from the checkpoint, as if never stopped; where there is none yet, begin
    #[arg(long, requires = "checkpoint")]
    resume: bool,
}

pub(crate) fn run(args: Args) -> Result<()> {
    // What can be refused is refused before anything is read or written.
    let choices = filters::choose(&args.filters.wanted(&DEFAULT, args.params.as_ref())?, "filter", &filters::streams())?;
    args.files.check(choices.len())?;
    let mut output = args.output.clone();
    if args.input.tx.is_none() && args.files.none() {
        default_folder(&mut output);
    }
    let resumed = args.files.resumed()?;
    let written = args.files.written(&output, &choices);
    // A run that goes on may replace what it has written itself.
    let (own, new): (Vec<PathBuf>, Vec<PathBuf>) = written
        .iter()
        .cloned()
        .partition(|path| resumed.as_ref().is_some_and(|c| c.owns(path) || Some(path) == args.files.checkpoint.as_ref()));
    let inputs = args.params.iter().map(PathBuf::as_path).collect();
    let mut check = Outputs { recordings: args.input.files(), inputs, files: new, folder: output.out.as_deref(), force: output.force };
    check.check()?;
    check = Outputs { files: written.clone(), force: output.force || !own.is_empty(), ..check };
    check.check()?;
    let origin = args.input.origin(|scenario| {
        scenario.samples = args.samples.unwrap_or(scenario.samples);
        scenario.seed = args.seed.unwrap_or(scenario.seed);
    })?;
    let sight = args.filters.sight(args.input.equalize)?;
    let (source, survey) = input::open(&origin, sight)?;
    let row = survey.row(output.skip)?;
    filters::fit(&choices, 1, (&survey).into())?;
    output.out.as_deref().map_or(Ok(()), files::make_folder)?;
    let settle = |choice: &Choice| choice.settle((&survey).into());
    let (settings, trackers): (Vec<Settings>, Vec<_>) = choices.iter().map(settle).collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let total = survey.total;
    let subject = Subject { facts: facts(&survey.channels), ..Subject::new(survey, args.input.equalize, output.skip, settings) };
    for settings in &subject.settings {
        let values: Vec<_> = settings.values().iter().map(|(name, value)| format!("{name} {value}")).collect();
        detail!("{}: {}", settings.recipe().name, values.join(", "));
    }
    let collector = args.files.checkpoint(&subject, resumed.as_ref(), written)?;
    let done = resumed.as_ref().map_or(0, |c| c.samples);
    let mut filters = Vec::new();
    for (i, (choice, tracker)) in choices.iter().zip(trackers).enumerate() {
        let name = choice.recipe.name;
        let mut track = Track::new(tracker).metrics_every(row, output.skip).observed();
        if let Some(checkpoint) = &resumed {
            track.resume(&checkpoint.states[i])?;
        }
        if let Some(collector) = collector.clone() {
            track = track.snapshots(args.files.checkpoint_every, move |snapshot| collector.filter(i, snapshot.samples, snapshot.state));
        }
        let sink = |port| args.files.sink(&output, subject.sample_rate, name, port, done, collector.as_ref());
        filters.push(Filter { name: name.into(), track, prediction: sink("prediction")?, error: sink("error")? });
    }
    let recorder = args.serve.recorder();
    let record = recorder.clone().map(IqSink::switched);
    let mut dashboard = Dashboard::start(&args.serve, &subject, Ends { recorder, ..Ends::default() })?;
    let plan = Plan { filters: vec![filters], advance: subject.advance, equalize: sight.equalize, done, record, ..Plan::default() };
    let together = args.files.checkpoint.is_some();
    let every = if dashboard.is_some() { dashboard::EVERY } else { Duration::from_millis(100) };
    let watch = Watch { every, together, threads: args.threads.threads, ..Watch::new(interrupt::watch()) };
    let mut progress = Progress::new(args.watch, total, done);
    let outcome = graph::run(source, plan, &watch, |view| {
        progress.show(view);
        dashboard.iter_mut().for_each(|dashboard| dashboard.look(&subject, view));
    })?;
    drop(dashboard);
    progress.bar.finish_and_clear();
    report::write(&output, &subject, &outcome)?;
    outcome.fault.map_or(Ok(()), Err)
}

/// Which channels are tracked, where there are several.
fn facts([tx, rx]: &[(usize, usize); 2]) -> Vec<(&'static str, Value)> {
    let end = |(channel, channels): &(usize, usize)| json!({ "channel": channel, "channels": channels });
    if tx.1.max(rx.1) > 1 { vec![(report::CHANNELS, json!({ "tx": end(tx), "rx": end(rx) }))] } else { Vec::new() }
}

/// Without files and without any wish for output there is still something to look at.
fn default_folder(output: &mut OutputArgs) {
    if output.json.is_none() && output.out.is_none() {
        let names = std::iter::once("kaflow-track".to_owned()).chain((2..).map(|n| format!("kaflow-track-{n}")));
        output.out = names.map(PathBuf::from).find(|path| output.force || !path.exists());
    }
}

impl Files {
    fn none(&self) -> bool {
        self.predictions.is_none() && self.checkpoint.is_none()
    }

    fn check(&self, filters: usize) -> Result<()> {
        if self.predictions.is_some() && filters != 1 {
            return Err(Error::parameter("predictions", "asked for with exactly one --filter", format!("{filters} filters")));
        }
        if self.record && self.resume {
            return Err(Error::parameter("resume", "without --record: a SigMF recording is sealed when it is closed", "both"));
        }
        if self.checkpoint_every == 0 {
            return Err(Error::parameter("checkpoint-every", "1 or more", 0));
        }
        if let Some(path) = self.checkpoint.as_ref().filter(|path| files::flows(path)) {
            return Err(Error::file(path, "checkpoint", "must be a file: it is written again and again"));
        }
        if self.resume && self.predictions.as_ref().is_some_and(|path| files::flows(path)) {
            return Err(Error::parameter("predictions", "a file where a run goes on: what was written is cut and continued", "none"));
        }
        Ok(())
    }

    /// The checkpoint to go on from, if it is wanted and there.
    fn resumed(&self) -> Result<Option<Checkpoint>> {
        self.checkpoint.as_ref().filter(|_| self.resume).map_or(Ok(None), |path| Checkpoint::read(path))
    }

    /// All files that the run leaves behind.
    fn written(&self, output: &OutputArgs, choices: &[Choice]) -> Vec<PathBuf> {
        let mut all = report::files_of(output);
        all.extend(self.predictions.iter().chain(&self.checkpoint).cloned());
        for folder in output.out.iter().filter(|_| self.record) {
            let ports =
                ["prediction", "error"].into_iter().flat_map(|port| choices.iter().map(move |c| format!("{}-{port}", c.recipe.name)));
            all.extend(ports.flat_map(|name| [".sigmf-meta", ".sigmf-data"].map(|ending| folder.join(format!("{name}{ending}")))));
        }
        all
    }

    /// Checks that `resumed` belongs to this run, and begins to write checkpoints where that is wanted.
    fn checkpoint(&self, subject: &Subject, resumed: Option<&Checkpoint>, outputs: Vec<PathBuf>) -> Result<Option<Collector>> {
        let Some(path) = &self.checkpoint else { return Ok(None) };
        let Subject { source, align, advance, taps, skip, equalize, settings, .. } = subject;
        let mut run = format!("{source}\nalign {align} advance {advance} taps {taps} skip {skip} equalize {equalize}");
        for settings in settings {
            run += &format!("\n{}", settings.recipe().name);
            settings.values().iter().for_each(|(name, value)| run += &format!(" {name}={value}"));
        }
        resumed.map_or(Ok(()), |found| found.check(path, &run, settings.len()))?;
        Ok(Some(Collector::new(path, run, settings.len(), usize::from(self.predictions.is_some()), outputs)))
    }

    /// Where a filter's output goes, if anywhere.
    fn sink(
        &self,
        output: &OutputArgs,
        rate: Option<f64>,
        name: &str,
        port: &str,
        done: u64,
        collector: Option<&Collector>,
    ) -> Result<Option<IqSink>> {
        if let Some(path) = self.predictions.as_ref().filter(|_| port == "prediction") {
            let mut sink = raw(path, done)?;
            if let Some(collector) = collector.cloned() {
                sink = sink.flush_every(self.checkpoint_every, done, move |samples| collector.file(samples));
            }
            return Ok(Some(sink));
        }
        let Some(out) = output.out.as_ref().filter(|_| self.record) else { return Ok(None) };
        let mut meta = Meta::new(Datatype::CF32_LE, rate);
        meta.global.description = Some(format!("{port} of {name}, by kaflow track"));
        Ok(Some(IqSink::new(Writer::create(out.join(format!("{name}-{port}")), meta, output.force)?)))
    }
}

/// The file of predictions, cut where the run goes on.
fn raw(path: &Path, done: u64) -> Result<IqSink> {
    let io = |e| Error::io(path, e);
    if done == 0 {
        return Ok(IqSink::raw(files::stream(path)?, path));
    }
    let file = OpenOptions::new().append(true).open(path).map_err(io)?;
    let found = file.metadata().map_err(io)?.len();
    if found < 8 * done {
        let problem = format!("holds {} samples, the checkpoint is at {done}: it is not the file that was written", found / 8);
        return Err(Error::file(path, "predictions", problem));
    }
    file.set_len(8 * done).map_err(io)?;
    Ok(IqSink::raw(file, path))
}

/// A bar, or a line a second.
struct Progress {
    bar: indicatif::ProgressBar,
    lines: bool,
    last: (Instant, u64),
}

impl Progress {
    fn new(lines: bool, total: u64, done: u64) -> Self {
        let bar = progress::bar(if lines { 0 } else { total }, "tracking");
        bar.set_position(done);
        bar.reset_eta();
        Self { bar, lines, last: (Instant::now(), done) }
    }

    fn show(&mut self, view: &View<'_>) {
        let now = view.filters.iter().map(|f| f.probe.read().samples).min().unwrap_or(0);
        self.bar.set_position(now);
        let (since, before) = self.last;
        if self.lines && since.elapsed() >= Duration::from_secs(1) {
            let rate = now.saturating_sub(before) as f64 / since.elapsed().as_secs_f64();
            let errors: Vec<_> = view.filters.iter().map(|f| format!("{} {:.1}", f.name, f.probe.read().nmse_db)).collect();
            let gaps = view.sync.first().map_or(0, |sync| sync.gap_samples);
            let seconds = view.elapsed.as_secs();
            tell!("{seconds} s: {now} samples, {:.3} MS/s, {gaps} in gaps, NMSE dB: {}", rate / 1e6, errors.join(", "));
            self.last = (Instant::now(), now);
        }
    }
}
