//! A source of pairs → one synchroniser → any number of filters → one result.
//!
//! This is the flowgraph that `kaflow track` and `kaflow live` run: what was sent and what was received, from recordings, the test bed or a radio, brought into
//! step, with every filter as a [`Track`] block beside the others. [`run`] builds it, watches it until it ends and gives what it has done.
//!
//! ```text
//! tx ─┐             ┌─► track ─► prediction, error
//!     ├─► in step ──┼─► track ─► prediction, error
//! rx ─┤             └─► ...
//!     └─► level, recorder
//! ```

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
    mpsc::{Receiver, RecvTimeoutError, channel},
};
use std::time::{Duration, Instant};

use futuresdr::{
    blocks::{NullSink, NullSource},
    prelude::*,
    runtime::{config, scheduler::SmolScheduler},
};

#[cfg(feature = "soapy")]
use crate::blocks::{Radio, Repeat, SoapySink, SoapySource};
use crate::{
    blocks::{BedSource, Controls, Fault, Gauge, IqSink, IqSource, Level, Levels, Probe, Summary, Sync, SyncStatus, SyncWatch, Track},
    channel::TestBed,
    filter::Tracker,
    iq::{Recording, Synchroniser},
};

/// Where what was sent and what was received come from.
pub enum Source {
    /// Two recordings, and what brings them into step.
    Recordings(Recording, Recording, Synchroniser),
    /// A recording of what was received while a transmitter repeated a frame.
    Repeated(Vec<Complex32>, Recording),
    /// The simulated test bed, in step by nature.
    Bed(Box<TestBed>),
    /// A radio that repeats a frame of an rms of about 1 with this amplitude; full scale is 1.
    #[cfg(feature = "soapy")]
    Radio(Box<Radio>, Vec<Complex32>, f32),
}

/// A filter of a run.
pub struct Filter {
    /// How its row is called.
    pub name: String,
    /// The block, set up as it is to run.
    pub track: Track,
    /// Where its predictions go, if anywhere.
    pub prediction: Option<IqSink>,
    /// Where its errors go, if anywhere.
    pub error: Option<IqSink>,
}

impl Filter {
    /// A filter whose predictions and errors go nowhere.
    pub fn new(name: impl Into<String>, tracker: Box<dyn Tracker<f32>>) -> Self {
        Self { name: name.into(), track: Track::new(tracker).observed(), prediction: None, error: None }
    }
}

/// What is run.
#[derive(Default)]
pub struct Plan {
    /// The filters of each received channel; all sources but a radio have one.
    pub filters: Vec<Vec<Filter>>,
    /// Taps that reach ahead: the filters' input is that much early. Where a frame is repeated, as many of these as the channel calls for.
    pub advance: usize,
    /// Predict what was sent from what was received.
    pub equalize: bool,
    /// Pairs at the start that are left out, because an earlier run has tracked them.
    pub done: u64,
    /// Received samples after which a radio ends.
    pub samples: Option<u64>,
    /// Where the first channel goes as it was received, if anywhere.
    pub record: Option<IqSink>,
}

/// When a run ends before its source does, and how often it is looked at.
pub struct Watch<'a> {
    /// Ends it when true.
    pub stop: &'a AtomicBool,
    /// Ends it after so long, whatever has come by then.
    pub time: Option<Duration>,
    /// Ends it with an error once this has one to tell: a radio that has gone silent, say.
    pub watchdog: &'a dyn Fn() -> Option<crate::Error>,
    /// Between two looks.
    pub every: Duration,
    /// All filters end at one sample, as a checkpoint needs it.
    pub together: bool,
    /// Threads; one for each core where not given.
    pub threads: Option<usize>,
}

impl<'a> Watch<'a> {
    /// Ends when the source does, or when `stop` is true; a look a second.
    pub fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, time: None, watchdog: &|| None, every: Duration::from_secs(1), together: false, threads: None }
    }
}

/// What can be seen of a run, and done to it, while it runs.
pub struct View<'a> {
    /// Since it began.
    pub elapsed: Duration,
    /// The filters, one channel after the other.
    pub filters: &'a [Seen],
    /// How each channel lies to what was sent.
    pub sync: Vec<SyncStatus>,
    /// How strong the first channel is, where full scale is known.
    pub levels: Option<Levels>,
}

/// A filter that runs.
#[derive(Clone)]
pub struct Seen {
    /// How its row is called.
    pub name: String,
    /// Its figures.
    pub probe: Probe,
    /// Calls it.
    pub controls: Controls,
}

/// What a run has done.
pub struct Outcome {
    /// By filter, one channel after the other.
    pub filters: Vec<(String, Summary)>,
    /// How each channel lay to what was sent, at the end.
    pub sync: Vec<SyncStatus>,
    /// How strong the first channel was, where full scale is known.
    pub levels: Option<Levels>,
    /// Whether it was stopped.
    pub interrupted: bool,
    /// Why it ended, when nobody asked for it: a device has disappeared.
    pub fault: Option<crate::Error>,
    /// From its start to its end.
    pub elapsed: Duration,
}

/// Samples that a filter may take while it is told where to end.
const AHEAD: u64 = 1 << 14;

/// How long what is under way may take to come to an end.
const GRACE: Duration = Duration::from_secs(1);

/// Tracks `source` to its end, as `plan` says; `look` is called at intervals.
///
/// ```
/// use kaflow::{channel::{Scenario, TestBed}, filter::{Filter as _, Nlms}};
/// use kaflow::flowgraphs::track::{self, Filter, Plan, Source, Watch};
///
/// let source = Source::Bed(Box::new(TestBed::new(&Scenario::preset("a")?)?));
/// let nlms = Nlms::new(4, 0.5, 1e-6)?.on_stream();
/// let plan = Plan { filters: vec![vec![Filter::new("nlms", nlms)]], ..Plan::default() };
/// let outcome = track::run(source, plan, &Watch::new(&false.into()), |_| ())?;
/// assert!(outcome.filters[0].1.series.total().nmse_db() < -9.0);
/// # Ok::<(), kaflow::Error>(())
/// ```
pub fn run(source: Source, plan: Plan, watch: &Watch<'_>, look: impl FnMut(&View<'_>)) -> crate::Result<Outcome> {
    let graph = Graph::build(source, plan).map_err(|e| match e {
        Built::Runtime(e) => crate::Error::Data(format!("the flowgraph cannot be built: {e}")),
        Built::Ours(e) => e,
    })?;
    graph.run(watch, look)
}

/// The flowgraph, and what is needed to watch it.
struct Graph {
    fg: Flowgraph,
    filters: Vec<Seen>,
    sync: Vec<SyncWatch>,
    gauge: Option<Gauge>,
    faults: Vec<Fault>,
    /// Tells the sources to end.
    stop: Arc<AtomicBool>,
    /// Tells the filters after how many samples to end.
    end: Arc<AtomicU64>,
}

enum Built {
    Runtime(futuresdr::runtime::Error),
    Ours(crate::Error),
}

impl From<futuresdr::runtime::Error> for Built {
    fn from(error: futuresdr::runtime::Error) -> Self {
        Self::Runtime(error)
    }
}

impl From<crate::Error> for Built {
    fn from(error: crate::Error) -> Self {
        Self::Ours(error)
    }
}

/// A block's output port.
type Port = (BlockId, String);

impl Graph {
    fn build(source: Source, mut plan: Plan) -> Result<Self, Built> {
        let mut graph = Self {
            fg: Flowgraph::new(),
            filters: Vec::new(),
            sync: Vec::new(),
            gauge: None,
            faults: Vec::new(),
            stop: Arc::default(),
            end: Arc::new(AtomicU64::new(u64::MAX)),
        };
        let (raw, pairs) = graph.source(&plan, source)?;
        if pairs.len() != plan.filters.len() {
            return Err(
                crate::Error::parameter("filters", format!("a set for each of {} channels", pairs.len()), plan.filters.len()).into()
            );
        }
        for ((tx, rx), filters) in pairs.into_iter().zip(std::mem::take(&mut plan.filters)) {
            let (input, target) = if plan.equalize { (rx, tx) } else { (tx, rx) };
            for filter in filters {
                graph.filter(filter, &input, &target)?;
            }
        }
        if let Some(sink) = plan.record {
            graph.sink(&raw, Some(sink))?;
        }
        Ok(graph)
    }

    fn connect(&mut self, (block, port): &Port, to: BlockId, input: &str) -> Result<(), Built> {
        Ok(self.fg.stream_dyn(*block, port.as_str(), to, input)?)
    }

    /// Adds the two ends and what brings them into step; gives the first channel as it was received, and what was sent and received of each channel.
    fn source(&mut self, plan: &Plan, source: Source) -> Result<(Port, Vec<(Port, Port)>), Built> {
        let early = if plan.equalize { (0, plan.advance as u64) } else { (plan.advance as u64, 0) };
        match source {
            Source::Recordings(tx, rx, sync) => {
                let (tx, rx) = (self.recording(tx), self.recording(rx));
                let pair = self.sync(&tx, &rx, sync.advance(early.0, early.1).skip(plan.done))?;
                Ok((rx, vec![pair]))
            }
            Source::Bed(bed) => {
                let bed = self.fg.add(BedSource::new(*bed).stop_when(self.stop.clone()));
                let (tx, rx) = ((bed.id(), "tx".to_owned()), (bed.id(), "rx".to_owned()));
                let pair = self.sync(&tx, &rx, Synchroniser::delay(0).advance(early.0, early.1).skip(plan.done))?;
                Ok((rx, vec![pair]))
            }
            Source::Repeated(frame, rx) => {
                let rx = self.recording(rx);
                let pair = self.follow(&rx, frame, plan)?;
                self.gauge(&rx)?;
                Ok((rx, vec![pair]))
            }
            #[cfg(feature = "soapy")]
            Source::Radio(mut radio, frame, level) => {
                self.stop = radio.stop();
                if radio.tx_channels() > 0 {
                    let repeat = self.fg.add(Repeat::new(frame.iter().map(|z| z * level).collect(), radio.stop()).scaled(radio.drive()));
                    let sink = SoapySink::new(&mut radio)?.lenient().repeats(frame.len());
                    self.faults.push(sink.fault());
                    let sink = self.fg.add(sink);
                    for channel in 0..radio.tx_channels() {
                        self.connect(&(repeat.id(), "output".into()), sink.id(), &format!("input[{channel}]"))?;
                    }
                }
                let source = SoapySource::new(&mut radio)?.lenient().limit(plan.samples.unwrap_or(u64::MAX));
                self.faults.push(source.fault());
                let source = self.fg.add(source);
                let port = |channel: usize| (source.id(), format!("output[{channel}]"));
                let pairs = (0..radio.rx_channels()).map(|channel| self.follow(&port(channel), frame.clone(), plan));
                let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
                self.gauge(&port(0))?;
                Ok((port(0), pairs))
            }
        }
    }

    fn recording(&mut self, recording: Recording) -> Port {
        let source = IqSource::new(recording).stop_when(self.stop.clone());
        self.faults.push(source.fault());
        (self.fg.add(source).id(), "output".into())
    }

    fn sync(&mut self, tx: &Port, rx: &Port, synchroniser: Synchroniser) -> Result<(Port, Port), Built> {
        let sync = Sync::new(synchroniser);
        self.faults.push(sync.fault());
        self.sync.push(sync.watch());
        let sync = self.fg.add(sync).id();
        self.connect(tx, sync, "tx")?;
        self.connect(rx, sync, "rx")?;
        Ok(((sync, "aligned_tx".into()), (sync, "aligned_rx".into())))
    }

    fn follow(&mut self, rx: &Port, frame: Vec<Complex32>, plan: &Plan) -> Result<(Port, Port), Built> {
        // The frame is known: what comes in as `tx` is not read.
        let unread = self.fg.add(NullSource::<Complex32>::new()).id();
        self.sync(&(unread, "output".into()), rx, Synchroniser::repeated(frame)?.advance_up_to(plan.advance).skip(plan.done))
    }

    /// Measures the level of a channel as it was received.
    fn gauge(&mut self, rx: &Port) -> Result<(), Built> {
        let level = Level::new();
        self.gauge = Some(level.gauge());
        let level = self.fg.add(level).id();
        self.connect(rx, level, "input")
    }

    fn filter(&mut self, filter: Filter, input: &Port, target: &Port) -> Result<(), Built> {
        let Filter { name, track, prediction, error } = filter;
        let track = track.end_at(self.end.clone());
        self.faults.push(track.fault());
        let (probe, controls) = (track.probe(), track.controls());
        let track = self.fg.add(track);
        self.fg.block_mut(&track)?.set_instance_name(&name);
        self.connect(input, track.id(), "tx")?;
        self.connect(target, track.id(), "rx")?;
        self.sink(&(track.id(), "prediction".into()), prediction)?;
        self.sink(&(track.id(), "error".into()), error)?;
        self.filters.push(Seen { name, probe, controls });
        Ok(())
    }

    /// Ends a stream in a file, or nowhere.
    fn sink(&mut self, port: &Port, sink: Option<IqSink>) -> Result<(), Built> {
        let sink = match sink {
            Some(sink) => {
                self.faults.push(sink.fault());
                self.fg.add(sink).id()
            }
            None => self.fg.add(NullSink::<Complex32>::new()).id(),
        };
        self.connect(port, sink, "input")
    }

    /// Runs until the source ends, somebody asks for it, the time is up or something fails.
    fn run(self, watch: &Watch<'_>, look: impl FnMut(&View<'_>)) -> crate::Result<Outcome> {
        let Self { fg, filters, sync, gauge, faults, stop, end } = self;
        // Errors are reported once, by us; and the runtime's own control port lets in any page that a browser shows.
        config::set("log_level", "off");
        config::set("ctrlport_enable", false);
        let threads = watch.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        let runtime = Runtime::with_scheduler(SmolScheduler::new(threads, false));
        let explain = |error: futuresdr::runtime::Error| {
            let found = faults.iter().find_map(Fault::take);
            found.unwrap_or_else(|| crate::Error::Data(format!("the flowgraph failed: {error}")))
        };
        let running = runtime.start(fg).map_err(explain)?;
        let (began, handle) = (Instant::now(), running.handle());
        let (tell, ended) = channel();
        std::thread::spawn(move || tell.send(running.wait().map(drop)));
        let state = State { filters: &filters, sync: &sync, gauge: gauge.as_ref(), stop: &stop, end: &end, handle, began };
        let (ended, mut fault) = state.watch(watch, &ended, look);
        match ended {
            Some(result) => result.map_err(explain)?,
            // A driver that never comes back: the filters have ended, and the rest is left as it is.
            None => std::mem::forget(runtime),
        }
        let elapsed = began.elapsed();
        let done = |seen: &Seen| {
            let summary = seen.probe.summary().cloned();
            Ok((seen.name.clone(), summary.ok_or_else(|| crate::Error::Data(format!("{} does not end", seen.name)))?))
        };
        fault = faults.iter().find_map(Fault::take).or(fault);
        Ok(Outcome {
            filters: filters.iter().map(done).collect::<crate::Result<_>>()?,
            sync: sync.iter().map(SyncWatch::status).collect(),
            levels: gauge.map(|gauge| gauge.read()),
            interrupted: watch.stop.load(Ordering::Relaxed),
            fault,
            elapsed,
        })
    }
}

/// A flowgraph that runs.
struct State<'a> {
    filters: &'a [Seen],
    sync: &'a [SyncWatch],
    gauge: Option<&'a Gauge>,
    stop: &'a AtomicBool,
    end: &'a AtomicU64,
    handle: FlowgraphHandle,
    began: Instant,
}

impl State<'_> {
    /// Looks at intervals and ends the run when it is time; gives the runtime's result, none when it does not end, and what the watchdog said.
    fn watch<R>(&self, watch: &Watch<'_>, ended: &Receiver<R>, mut look: impl FnMut(&View<'_>)) -> (Option<R>, Option<crate::Error>) {
        let tracked = || self.filters.iter().map(|f| f.probe.read().samples);
        let (mut last, mut fault) = (self.began, None);
        // Since when, and how far the filters had come then.
        let mut halted: Option<(Instant, u64)> = None;
        let mut forced = false;
        loop {
            match ended.recv_timeout(Duration::from_millis(5).min(watch.every)) {
                Ok(result) => return (Some(result), fault),
                Err(RecvTimeoutError::Disconnected) => return (None, fault),
                Err(RecvTimeoutError::Timeout) => {}
            }
            fault = fault.or_else(|| (watch.watchdog)().filter(|_| halted.is_none()));
            let over = self.filters.iter().all(|f| f.probe.summary().is_some());
            let asked = over || watch.stop.load(Ordering::Relaxed) || watch.time.is_some_and(|time| self.began.elapsed() >= time);
            let now: u64 = tracked().sum();
            match halted {
                None if asked || fault.is_some() => {
                    self.stop.store(true, Ordering::Relaxed);
                    // What is on the way to a slow filter can be minutes of work.
                    let fastest = tracked().max().unwrap_or(0);
                    self.end.store(if watch.together { fastest + AHEAD } else { 0 }, Ordering::Relaxed);
                    halted = Some((Instant::now(), now));
                }
                Some((_, before)) if now > before => halted = Some((Instant::now(), now)),
                Some((since, _)) if since.elapsed() >= GRACE && !forced => {
                    // A filter that waits for samples does not look at where it is to end, and a source that has nobody left to write to may sleep.
                    let _ = Runtime::block_on(self.handle.stop());
                    forced = true;
                    halted = Some((Instant::now(), now));
                }
                Some((since, _)) if forced && since.elapsed() >= if over { GRACE } else { 10 * GRACE } => return (None, fault),
                _ => {}
            }
            if halted.is_none() && last.elapsed() >= watch.every {
                last = Instant::now();
                let sync = self.sync.iter().map(SyncWatch::status).collect();
                look(&View { elapsed: self.began.elapsed(), filters: self.filters, sync, levels: self.gauge.map(Gauge::read) });
            }
        }
    }
}
