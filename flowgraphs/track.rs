//! A source of pairs → one synchroniser → any number of filters → one result.
//!
//! This is the flowgraph that `kaflow track` and `kaflow live` run: what was sent and what was received, from recordings, the test bed or a radio, brought into
//! step, with every filter as a [`Track`] block beside the others. [`run`] builds it, watches it until it ends and gives what it has done.
//!
//! ```text
//! tx ─┐             ┌─► track ─► prediction, error
//!     ├─► in step ──┼─► track ─► prediction, error
//! rx ─┤             └─► ...
//!     └─► recorder
//! ```

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
    mpsc::channel,
};
use std::time::{Duration, Instant};

use futuresdr::{
    blocks::{NullSink, NullSource},
    prelude::*,
    runtime::{config, scheduler::SmolScheduler},
};

#[cfg(feature = "radio")]
use futuresdr::blocks::Apply;

use super::linearize::{Fallback, Loop};
use super::watch::Running;
pub use super::watch::{Seen, View, Watch};
#[cfg(feature = "radio")]
use crate::blocks::{Frame, Radio, Repeat, SoapySink, SoapySource};
use crate::{
    Error, Result,
    blocks::{BedSource, Fault, IqSink, IqSource, OfdmRx, Predistort, Summary, Sync, SyncWatch, Track, check_buffer, check_start},
    channel::TestBed,
    filter::Tracker,
    iq::{Recording, Status, Synchroniser},
};

/// Where what was sent and what was received come from.
#[expect(clippy::large_enum_variant, reason = "there is one of it")]
pub enum Source {
    /// Two recordings, and what brings them into step.
    Recordings(Recording, Recording, Synchroniser),
    /// What follows a frame that a transmitter repeats, and a recording of what was received meanwhile.
    Repeated(Synchroniser, Recording),
    /// The simulated test bed, in step by nature.
    Bed(Box<TestBed>),
    /// A radio that repeats a frame of an rms of about 1 with this amplitude; full scale is 1.
    #[cfg(feature = "radio")]
    Radio(Box<Radio>, Frame, f32),
}

impl Source {
    fn channels(&self) -> usize {
        match self {
            #[cfg(feature = "radio")]
            Self::Radio(radio, ..) => radio.rx_channels(),
            _ => 1,
        }
    }

    fn transmits(&self) -> bool {
        match self {
            #[cfg(feature = "radio")]
            Self::Radio(radio, ..) => radio.tx_channels() > 0,
            _ => false,
        }
    }

    /// Whether it receives one channel and does nothing else.
    fn listens(&self) -> bool {
        match self {
            #[cfg(feature = "radio")]
            Self::Radio(..) => self.channels() == 1 && !self.transmits(),
            _ => false,
        }
    }

    /// Cores that it keeps busy outside the flowgraph.
    fn busy(&self) -> usize {
        match self {
            #[cfg(feature = "radio")]
            Self::Radio(..) => 1,
            _ => 0,
        }
    }

    /// What brings a channel into step: the filters' input in advance by `most`, or what is sent and received by `advance`.
    fn synchroniser(&self, most: usize, advance: (u64, u64)) -> Result<Synchroniser> {
        Ok(match self {
            Self::Recordings(_, _, sync) => sync.clone().advance(advance.0, advance.1),
            Self::Bed(_) => Synchroniser::delay(0).advance(advance.0, advance.1),
            Self::Repeated(sync, _) => sync.clone().advance_up_to(most),
            #[cfg(feature = "radio")]
            Self::Radio(radio, frame, _) => {
                let sync = Synchroniser::repeated(frame.known.clone())?.advance_up_to(most);
                if radio.one_clock() { sync.one_clock() } else { sync }
            }
        })
    }
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
    /// The filters of each received channel; all sources but a radio have one. None at all where a radio of one channel only listens for packets.
    pub filters: Vec<Vec<Filter>>,
    /// Taps behind the predicted sample: the filters' input is that much in advance. Where a frame is repeated, as many of these as the channel calls for.
    pub advance: usize,
    /// Predict what was sent from what was received.
    pub equalize: bool,
    /// Pairs at the start that are left out, because an earlier run has tracked them.
    pub done: u64,
    /// Received samples after which a radio ends.
    pub samples: Option<u64>,
    /// Where the first channel goes as it was received, if anywhere.
    pub record: Option<IqSink>,
    /// What looks for packets in the first channel, as it was received, if anything does.
    pub receive: Option<OfdmRx>,
    /// What linearises a radio's transmitter by its first channel, if anything does.
    pub linearize: Option<Loop>,
}

/// What a run has done.
pub struct Outcome {
    /// By filter, one channel after the other.
    pub filters: Vec<(String, Summary)>,
    /// How each channel lay to what was sent, at the end.
    pub sync: Vec<Status>,
    /// Whether it was stopped.
    pub interrupted: bool,
    /// Why it ended, when nobody asked for it: a device has disappeared.
    pub fault: Option<Error>,
    /// From its start to its end.
    pub elapsed: Duration,
}

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
pub fn run(source: Source, plan: Plan, watch: &Watch<'_>, look: impl FnMut(&View<'_>)) -> Result<Outcome> {
    Graph::build(source, plan)?.run(watch, look)
}

/// The flowgraph, and what is needed to watch it.
struct Graph {
    fg: Flowgraph,
    filters: Vec<Seen>,
    sync: Vec<SyncWatch>,
    faults: Vec<Fault>,
    fallback: Option<Fallback>,
    /// Tells the sources to end.
    stop: Arc<AtomicBool>,
    /// Tells the filters after how many samples to end.
    end: Arc<AtomicU64>,
    /// Cores that the ends keep busy by themselves: that of a radio's driver.
    busy: usize,
    /// How many connections there are.
    streams: usize,
}

fn broken(error: futuresdr::runtime::Error) -> Error {
    Error::Data(format!("the flowgraph cannot be built: {error}"))
}

impl Graph {
    /// Adds the blocks against the direction of the streams: the runtime initialises them in this order, and a block that is initialised late has missed the word that its input has
    /// ended.
    fn build(source: Source, plan: Plan) -> Result<Self> {
        let mut graph = Self {
            fg: Flowgraph::new(),
            filters: Vec::new(),
            sync: Vec::new(),
            faults: Vec::new(),
            fallback: None,
            stop: Arc::default(),
            end: Arc::new(AtomicU64::new(u64::MAX)),
            busy: source.busy(),
            streams: 0,
        };
        let channels = source.channels();
        // Without a filter there is nothing to bring into step.
        let alone = plan.filters.is_empty() && plan.receive.is_some() && plan.linearize.is_none() && source.listens();
        if channels != plan.filters.len() && !alone {
            return Err(Error::parameter("filters", format!("a set for each of {channels} channels"), plan.filters.len()));
        }
        let advance = if plan.equalize { (0, plan.advance as u64) } else { (plan.advance as u64, 0) };
        let (input, target) = if plan.equalize { ("aligned_rx", "aligned_tx") } else { ("aligned_tx", "aligned_rx") };
        let mut syncs = Vec::new();
        for filters in plan.filters {
            let tracks = filters.into_iter().map(|filter| graph.filter(filter)).collect::<Result<Vec<_>>>()?;
            let sync = Sync::new(source.synchroniser(plan.advance, advance)?.skip(plan.done));
            graph.faults.push(sync.fault.clone());
            graph.sync.push(sync.watch.clone());
            let sync = graph.fg.add(sync).id();
            for track in tracks {
                graph.connect(sync, input, track, "tx")?;
                graph.connect(sync, target, track, "rx")?;
            }
            syncs.push(sync);
        }
        let predistort = plan.linearize.map(|closed| graph.linearize(closed, syncs[0])).transpose()?;
        let mut listeners: Vec<BlockId> = plan.record.map(|sink| graph.sink(Some(sink))).into_iter().collect();
        if let Some(receiver) = plan.receive {
            let points = graph.sink(None);
            let receiver = graph.fg.add(receiver).id();
            graph.connect(receiver, "points", points, "input")?;
            listeners.push(receiver);
        }
        graph.source(source, plan.samples, &syncs, &listeners, predistort)?;
        Ok(graph)
    }

    /// Adds what learns from the pairs behind `sync`; gives what goes in front of the transmitter.
    fn linearize(&mut self, closed: Loop, sync: BlockId) -> Result<Predistort> {
        self.fallback = self.sync.first().map(|sync| closed.fallback(sync.clone()));
        self.faults.extend([closed.learn.fault.clone(), closed.predistort.fault.clone()]);
        let learn = self.fg.add(closed.learn).id();
        self.connect(sync, "aligned_tx", learn, "signal")?;
        self.connect(sync, "aligned_rx", learn, "received")?;
        Ok(closed.predistort)
    }

    fn connect(&mut self, from: BlockId, output: &str, to: BlockId, input: &str) -> Result<()> {
        check_buffer()?;
        self.streams += 1;
        self.fg.stream_dyn(from, output, to, input).map_err(broken)
    }

    /// Adds the two ends and connects them; the listeners get the first channel as it was received.
    fn source(
        &mut self,
        source: Source,
        samples: Option<u64>,
        syncs: &[BlockId],
        listeners: &[BlockId],
        predistort: Option<Predistort>,
    ) -> Result<()> {
        let _ = samples;
        if predistort.is_some() && !source.transmits() {
            return Err(Error::parameter("linearize", "used with a radio that transmits", "another source"));
        }
        let (rx, port) = match source {
            Source::Recordings(tx, rx, _) => {
                let (tx, rx) = (self.recording(tx), self.recording(rx));
                self.connect(tx, "output", syncs[0], "tx")?;
                (rx, "output")
            }
            Source::Bed(bed) => {
                let bed = self.fg.add(BedSource::new(*bed).stop_when(self.stop.clone())).id();
                self.connect(bed, "tx", syncs[0], "tx")?;
                (bed, "rx")
            }
            Source::Repeated(_, rx) => {
                self.unread(syncs[0])?;
                (self.recording(rx), "output")
            }
            #[cfg(feature = "radio")]
            Source::Radio(mut radio, Frame { sent: frame, .. }, level) => {
                self.stop = radio.stop();
                if radio.tx_channels() > 0 {
                    let sink = SoapySink::new(&mut radio)?.lenient();
                    // Behind a predistorter the frame changes with its tables.
                    let sink = if predistort.is_none() { sink.repeats(frame.len()) } else { sink };
                    self.faults.push(sink.fault.clone());
                    let sink = self.fg.add(sink).id();
                    // Predistorted in units of the frame, so that a table holds at any drive.
                    let (drive, stop) = (radio.drive(), radio.stop());
                    let sent = match predistort {
                        None => self.fg.add(Repeat::new(frame.iter().map(|z| z * level).collect(), stop).scaled(drive)).id(),
                        Some(predistort) => {
                            let scale = move |z: &Complex32| z * (level * f32::from_bits(drive.load(Ordering::Relaxed)));
                            let (scale, predistort) = (self.fg.add(Apply::new(scale)).id(), self.fg.add(predistort).id());
                            let repeat = self.fg.add(Repeat::new(frame, stop)).id();
                            self.connect(repeat, "output", predistort, "input")?;
                            self.connect(predistort, "output", scale, "input")?;
                            scale
                        }
                    };
                    for channel in 0..radio.tx_channels() {
                        self.connect(sent, "output", sink, &format!("input[{channel}]"))?;
                    }
                }
                let source = SoapySource::new(&mut radio)?.lenient().limit(samples.unwrap_or(u64::MAX));
                self.faults.push(source.fault.clone());
                let source = self.fg.add(source).id();
                for (channel, &sync) in syncs.iter().enumerate() {
                    self.unread(sync)?;
                    if channel > 0 {
                        self.connect(source, &format!("output[{channel}]"), sync, "rx")?;
                    }
                }
                (source, "output[0]")
            }
        };
        syncs.first().map_or(Ok(()), |&sync| self.connect(rx, port, sync, "rx"))?;
        listeners.iter().try_for_each(|&listener| self.connect(rx, port, listener, "input"))
    }

    fn recording(&mut self, recording: Recording) -> BlockId {
        let source = IqSource::new(recording).stop_when(self.stop.clone());
        self.faults.push(source.fault.clone());
        self.fg.add(source).id()
    }

    /// Where the frame is known, what comes in as `tx` is not read.
    fn unread(&mut self, sync: BlockId) -> Result<()> {
        let source = self.fg.add(NullSource::<Complex32>::new()).id();
        self.connect(source, "output", sync, "tx")
    }

    fn filter(&mut self, filter: Filter) -> Result<BlockId> {
        let Filter { name, track, prediction, error } = filter;
        let sinks = [("prediction", self.sink(prediction)), ("error", self.sink(error))];
        let track = track.end_at(self.end.clone());
        self.faults.push(track.fault.clone());
        let (probe, controls) = (track.probe.clone(), track.controls.clone());
        let track = self.fg.add(track);
        self.fg.block_mut(&track).map_err(broken)?.set_instance_name(&name);
        for (port, sink) in sinks {
            self.connect(track.id(), port, sink, "input")?;
        }
        self.filters.push(Seen { name, probe, controls });
        Ok(track.id())
    }

    /// Ends a stream in a file, or nowhere.
    fn sink(&mut self, sink: Option<IqSink>) -> BlockId {
        let Some(sink) = sink else { return self.fg.add(NullSink::<Complex32>::new()).id() };
        self.faults.push(sink.fault.clone());
        self.fg.add(sink).id()
    }

    /// Runs until the source ends, somebody asks for it, the time is up or something fails.
    fn run(self, watch: &Watch<'_>, look: impl FnMut(&View<'_>)) -> Result<Outcome> {
        let Self { fg, filters, sync, faults, fallback, stop, end, busy, streams } = self;
        // Errors are reported once, by us; and the runtime's own control port lets in any page that a browser shows.
        config::set("log_level", "off");
        config::set("ctrlport_enable", false);
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = watch.threads.unwrap_or(cores.saturating_sub(busy).max(1));
        check_start(streams, threads)?;
        let runtime = Runtime::with_scheduler(SmolScheduler::new(threads, false));
        let explain = |error: futuresdr::runtime::Error| {
            let found = faults.iter().find_map(Fault::take);
            found.unwrap_or_else(|| Error::Device(format!("the flowgraph failed: {error}")))
        };
        let running = runtime.start(fg).map_err(explain)?;
        let (began, handle) = (Instant::now(), running.handle());
        let (tell, ended) = channel();
        std::thread::spawn(move || tell.send(running.wait().map(drop)));
        let running = Running { filters: &filters, sync: &sync, fallback: &fallback, stop: &stop, end: &end, handle, began };
        match running.watch(watch, &ended, look) {
            Some(result) => result.map_err(explain)?,
            // A driver that never comes back: the filters have ended, and the rest is left as it is.
            None => std::mem::forget(runtime),
        }
        let elapsed = began.elapsed();
        let done = |seen: &Seen| {
            let summary = seen.probe.summary().cloned();
            Ok((seen.name.clone(), summary.ok_or_else(|| Error::Device(format!("{} does not end", seen.name)))?))
        };
        Ok(Outcome {
            filters: filters.iter().map(done).collect::<Result<_>>()?,
            sync: sync.iter().map(SyncWatch::status).collect(),
            interrupted: watch.stop.load(Ordering::Relaxed),
            fault: faults.iter().find_map(Fault::take),
            elapsed,
        })
    }
}
