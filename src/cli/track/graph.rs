//! The flowgraph: source, alignment, and every filter as its own `Track` block.

use std::{
    fs::OpenOptions,
    net::TcpListener,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::{Duration, Instant},
};

use futuresdr::{
    blocks::NullSink,
    prelude::*,
    runtime::{config, scheduler::SmolScheduler},
};

use super::{
    Args,
    checkpoint::{Checkpoint, Collector},
    filters::Ready,
    input::{Input, Survey},
};
use crate::{
    Error, Result,
    blocks::{BedSource, Fault, IqSink, IqSource, Probe, Row, Summary, Sync, SyncWatch, TapHistory, Track},
    cli::{interrupt, progress},
    filter::{Portrait, Tracker, registry::Settings},
    iq::{Datatype, Writer, sigmf::Meta},
};

/// What one filter has done.
pub(super) struct Tracked {
    pub(super) name: String,
    pub(super) settings: Settings,
    pub(super) total: Row,
    pub(super) samples: u64,
    pub(super) rows: Vec<Row>,
    pub(super) centres: usize,
    pub(super) rate: f64,
    pub(super) p99: Duration,
    /// Its taps over time, and what it had learned at the end.
    pub(super) taps: TapHistory,
    pub(super) portrait: Portrait,
}

impl Tracked {
    pub(super) fn of(name: &str, settings: Settings, summary: &Summary) -> Self {
        Self {
            name: name.to_owned(),
            settings,
            total: summary.series.total(),
            samples: summary.series.samples(),
            rows: summary.series.rows(),
            centres: summary.centres,
            rate: summary.latency.rate(),
            p99: summary.latency.quantile(0.99),
            taps: summary.taps.clone().unwrap_or_default(),
            portrait: summary.portrait.clone(),
        }
    }
}

/// What all of them have done.
pub(super) struct Outcome {
    pub(super) filters: Vec<Tracked>,
    pub(super) interrupted: bool,
    pub(super) lost: u64,
}

type Tracking = Track<Box<dyn Tracker<f32>>>;

/// How often a row of the error curve is closed: fine enough for a picture of short runs; long ones merge rows.
fn every(total: u64) -> u64 {
    (total / 400).clamp(16, 4096)
}

pub(super) fn run(args: &Args, input: Input, survey: &Survey, filters: Vec<Ready>) -> Result<Outcome> {
    let stop = Arc::new(AtomicBool::new(false));
    let (resumed, collector) = checkpoint(args, survey, &filters)?;
    let done = resumed.as_ref().map_or(0, |c| c.samples);

    let mut fg = Flowgraph::new();
    let mut faults = Vec::new();
    let lead = survey.advance as u64;
    let lead = if args.equalize { (0, lead) } else { (lead, 0) };
    let (align, lost) = source(&mut fg, input, lead, done, &stop, &mut faults)?;

    let end = Arc::new(AtomicU64::new(u64::MAX));
    let mut tracks = Vec::new();
    let mut settings = Vec::new();
    for (i, ready) in filters.into_iter().enumerate() {
        let mut track = Tracking::new(ready.tracker).metrics_every(every(survey.total), args.skip).tap_history();
        track = track.confined(".").end_at(end.clone());
        if let Some(checkpoint) = &resumed {
            track.resume(&checkpoint.states[i])?;
        }
        if let Some(collector) = collector.clone() {
            track = track.snapshots(args.checkpoint_every, move |snapshot| collector.filter(i, snapshot.samples, snapshot.state));
        }
        faults.push(track.fault());
        let probe = track.probe();
        let track = fg.add(track);
        fg.block_mut(&track).map_err(broken)?.set_instance_name(ready.name);
        let (tx, rx) = if args.equalize { ("rx", "tx") } else { ("tx", "rx") };
        fg.stream_dyn(align, "aligned_tx", track, tx).map_err(broken)?;
        fg.stream_dyn(align, "aligned_rx", track, rx).map_err(broken)?;
        for port in ["prediction", "error"] {
            let sink = sink(args, survey, ready.name, port, done, collector.as_ref())?;
            match sink {
                Some(sink) => {
                    faults.push(sink.fault());
                    let sink = fg.add(sink);
                    fg.stream_dyn(track, port, sink, "input").map_err(broken)?;
                }
                None => {
                    let sink = fg.add(NullSink::<Complex32>::new());
                    fg.stream_dyn(track, port, sink, "input").map_err(broken)?;
                }
            }
        }
        tracks.push((track, ready.name, probe));
        settings.push(ready.settings);
    }

    execute(args, survey, fg, &tracks, &End { stop: stop.clone(), samples: end }, &lost, &faults)?;
    let mut filters = Vec::new();
    for ((_, name, probe), settings) in tracks.iter().zip(settings) {
        let summary = probe.summary().ok_or_else(|| Error::Data(format!("{name} has not ended")))?;
        filters.push(Tracked::of(name, settings, summary));
    }
    Ok(Outcome { filters, interrupted: stop.load(Ordering::Relaxed), lost: lost.status().gap_samples })
}

fn broken(error: impl ToString) -> Error {
    Error::Data(format!("the flowgraph cannot be built: {}", error.to_string()))
}

/// The checkpoint to go on from, and the one to write.
fn checkpoint(args: &Args, survey: &Survey, filters: &[Ready]) -> Result<(Option<Checkpoint>, Option<Collector>)> {
    let Some(path) = &args.checkpoint else { return Ok((None, None)) };
    let mut run = format!(
        "{}\ndelay {} advance {} taps {} skip {} equalize {}",
        survey.source, survey.delay, survey.advance, args.taps, args.skip, args.equalize
    );
    for filter in filters {
        run += &format!("\n{}", filter.name);
        filter.settings.values().iter().for_each(|(name, value)| run += &format!(" {name}={value}"));
    }
    let resumed = if args.resume { Some(Checkpoint::read(path, &run, filters.len())?) } else { None };
    let files = usize::from(args.predictions.is_some());
    Ok((resumed, Some(Collector::new(path, run, filters.len(), files))))
}

/// Adds the two streams and brings them into step.
fn source(
    fg: &mut Flowgraph,
    input: Input,
    lead: (u64, u64),
    done: u64,
    stop: &Arc<AtomicBool>,
    faults: &mut Vec<Fault>,
) -> Result<(BlockRef<Sync>, SyncWatch)> {
    let align = match &input {
        Input::Recordings(recordings) => match recordings.step.correct {
            Some(alignment) => Sync::known(alignment),
            None => Sync::delay(recordings.step.whole),
        },
        Input::Bed(_) => Sync::delay(0),
    };
    let align = align.advance(lead.0, lead.1).skip(done);
    faults.push(align.fault());
    let lost = align.watch();
    let align = fg.add(align);
    match input {
        Input::Recordings(recordings) => {
            for (recording, port) in [(recordings.tx, "tx"), (recordings.rx, "rx")] {
                let source = IqSource::new(recording).stop_when(stop.clone());
                faults.push(source.fault());
                let source = fg.add(source);
                fg.stream_dyn(source, "output", align, port).map_err(broken)?;
            }
        }
        Input::Bed(bed) => {
            let bed = fg.add(BedSource::new(*bed).stop_when(stop.clone()));
            fg.stream_dyn(bed, "tx", align, "tx").map_err(broken)?;
            fg.stream_dyn(bed, "rx", align, "rx").map_err(broken)?;
        }
    }
    Ok((align, lost))
}

/// Where a filter's output goes, if anywhere.
fn sink(args: &Args, survey: &Survey, name: &str, port: &str, done: u64, collector: Option<&Collector>) -> Result<Option<IqSink>> {
    if let Some(path) = args.predictions.as_ref().filter(|_| port == "prediction") {
        let mut sink = raw(path, done)?;
        if let Some(collector) = collector.cloned() {
            sink = sink.flush_every(args.checkpoint_every, done, move |samples| collector.file(samples));
        }
        return Ok(Some(sink));
    }
    let Some(out) = args.out.as_ref().filter(|_| args.record) else { return Ok(None) };
    let mut meta = Meta::new(Datatype::CF32_LE, survey.sample_rate);
    meta.global.description = Some(format!("{port} of {name}, by kaflow track"));
    Ok(Some(IqSink::new(Writer::create(out.join(format!("{name}-{port}")), meta, args.force)?)))
}

/// The file of predictions, cut where the run goes on.
fn raw(path: &Path, done: u64) -> Result<IqSink> {
    let io = |e| Error::io(path, e);
    if done == 0 {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path).map_err(io)?;
        return Ok(IqSink::raw(file, path));
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

/// Runs the flowgraph to its end, with whatever there is to show meanwhile.
fn execute(
    args: &Args,
    survey: &Survey,
    fg: Flowgraph,
    tracks: &[(BlockRef<Tracking>, &'static str, Probe)],
    end: &End,
    lost: &SyncWatch,
    faults: &[Fault],
) -> Result<()> {
    // Errors are reported once, by us.
    config::set("log_level", "off");
    control_port(args)?;
    let threads = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    let runtime = Runtime::with_scheduler(SmolScheduler::new(threads, false));
    interrupt::watch();
    let explain = |error: &dyn ToString| {
        let found = faults.iter().find_map(Fault::take);
        found.unwrap_or_else(|| Error::Data(format!("the flowgraph failed: {}", error.to_string())))
    };
    let running = runtime.start(fg).map_err(|e| explain(&e))?;
    if args.watch || args.control.is_some() {
        announce(args, tracks);
    }
    let (tell, ended) = channel();
    std::thread::spawn(move || tell.send(running.wait().map(drop)));
    match watch(args, survey, tracks, end, lost, &ended) {
        Some(result) => result.map_err(|e| explain(&e)),
        None => {
            // Neither would the runtime end: it waits for the answer, too.
            std::mem::forget(runtime);
            faults.iter().try_for_each(Fault::check)
        }
    }
}

fn control_port(args: &Args) -> Result<()> {
    let address = args.control.or(args.watch.then_some(([127, 0, 0, 1], 1337).into()));
    config::set("ctrlport_enable", address.is_some());
    let Some(address) = address else { return Ok(()) };
    // The runtime would only log that it is taken.
    match TcpListener::bind(address) {
        Ok(_) => config::set("ctrlport_bind", address.to_string()),
        Err(error) if args.control.is_some() => return Err(Error::parameter("control", "a free address", format!("{address} ({error})"))),
        Err(error) => {
            config::set("ctrlport_enable", false);
            eprintln!("kaflow: no control port: {address}: {error}");
        }
    }
    if !address.ip().is_loopback() {
        eprintln!("kaflow: the control port is open to the network at {address}: whoever reaches it can change parameters");
    }
    Ok(())
}

fn announce(args: &Args, tracks: &[(BlockRef<Tracking>, &'static str, Probe)]) {
    if !config::config().ctrlport_enable {
        return;
    }
    let address = args.control.map_or("127.0.0.1:1337".into(), |a| a.to_string());
    for (track, name, _) in tracks {
        eprintln!("kaflow: {name}: http://{address}/api/fg/0/block/{}/call/set/", track.id().0);
    }
}

/// How the run is ended before its time.
struct End {
    /// Tells the sources.
    stop: Arc<AtomicBool>,
    /// Tells the filters after how many samples.
    samples: Arc<AtomicU64>,
}

/// Samples that a filter may take while it is told where to end.
const AHEAD: u64 = 1 << 14;

/// How long the runtime may take to end after all filters have.
const GRACE: Duration = Duration::from_secs(5);

/// A bar, or a line a second, until the run has ended; gives its result.
///
/// None when the runtime does not end although all filters have: a call over the control port that reaches a block behind its end is never answered, and
/// the runtime waits for that.
fn watch<R>(
    args: &Args,
    survey: &Survey,
    tracks: &[(BlockRef<Tracking>, &'static str, Probe)],
    end: &End,
    lost: &SyncWatch,
    ended: &Receiver<R>,
) -> Option<R> {
    let slowest = || tracks.iter().map(|(_, _, probe)| probe.read().samples).min().unwrap_or(0);
    let bar = progress::bar(if args.watch { 0 } else { survey.total }, "tracking");
    let (start, mut last, mut before) = (Instant::now(), Instant::now(), slowest());
    let mut overdue = None;
    bar.set_position(before);
    bar.reset_eta();
    let result = loop {
        match ended.recv_timeout(Duration::from_millis(100)) {
            Ok(result) => break Some(result),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if config::config().ctrlport_enable
            && tracks.iter().all(|(_, _, probe)| probe.summary().is_some())
            && overdue.get_or_insert_with(Instant::now).elapsed() > GRACE
        {
            break None;
        }
        if interrupt::requested() && !end.stop.swap(true, Ordering::Relaxed) {
            // What is on the way to a slow filter can be minutes of work. A checkpoint needs all filters at one sample: soon behind the fastest one.
            let fastest = tracks.iter().map(|(_, _, probe)| probe.read().samples).max().unwrap_or(0);
            end.samples.store(if args.checkpoint.is_some() { fastest + AHEAD } else { 0 }, Ordering::Relaxed);
        }
        bar.set_position(slowest());
        if args.watch && last.elapsed() >= Duration::from_secs(1) {
            let now = slowest();
            let rate = (now - before) as f64 / last.elapsed().as_secs_f64();
            let errors: Vec<_> = tracks.iter().map(|(_, name, probe)| format!("{name} {:.1}", probe.read().nmse_db)).collect();
            let lost = lost.status().gap_samples;
            let seconds = start.elapsed().as_secs();
            eprintln!("{seconds} s: {now} samples, {:.3} MS/s, {lost} dropped, NMSE dB: {}", rate / 1e6, errors.join(", "));
            (last, before) = (Instant::now(), now);
        }
    };
    bar.finish_and_clear();
    result
}
