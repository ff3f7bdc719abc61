//! A frame → radio → channel → radio → follow → track, and the recordings of both.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futuresdr::{
    blocks::{NullSink, NullSource},
    prelude::*,
};

use crate::{
    blocks::{Fault, Health, IqSink, Probe, Radio, Repeat, SoapySink, SoapySource, Sync, SyncWatch, Track},
    filter::Tracker,
    iq::{
        Datatype, Pair, Synchroniser, Writer,
        sigmf::{Capture, Meta},
    },
};

/// How long blocks may go on with what is in their buffers once the flowgraph is to stop.
const GRACE: Duration = Duration::from_millis(500);

/// Filters by name.
pub type Filters = Vec<(String, Box<dyn Tracker<f32>>)>;

/// What a live flowgraph is made of.
pub struct Parts {
    /// The radio, with its streams set up.
    pub radio: Radio,
    /// The frame that is repeated, with an rms of about 1.
    pub frame: Vec<Complex32>,
    /// The amplitude that it is transmitted with; full scale is 1.
    pub level: f32,
    /// The filters by name, a set of them for each receive channel.
    pub trackers: Vec<Filters>,
    /// Taps that may reach ahead.
    pub lead: usize,
    /// Samples in a row of metrics, and samples that are left out of the average.
    pub every: u64,
    /// Samples that are left out of the average.
    pub skip: u64,
    /// Ends after so many received samples.
    pub samples: Option<u64>,
    /// Ends after so long, whatever has come by then: for a radio that does not wait for its reader.
    pub time: Option<Duration>,
    /// First pairs of each channel that are kept for a look.
    pub keep: usize,
}

/// A live flowgraph that is ready to run.
pub struct Live {
    fg: Flowgraph,
    tracks: Vec<(BlockRef<Track>, String, Probe)>,
    follows: Vec<BlockRef<Sync>>,
    watchers: Vec<SyncWatch>,
    faults: Vec<Fault>,
    radio: Radio,
    time: Option<Duration>,
}

/// What can be seen while it runs.
pub struct View<'a> {
    /// What has happened to the streams.
    pub health: Arc<Health>,
    /// How the stream of each receive channel lies to the frame.
    pub watchers: &'a [SyncWatch],
    /// The filters' figures by name, one channel after the other.
    pub tracks: Vec<(&'a str, Probe)>,
    handle: &'a dyn Fn(usize, &str) -> bool,
}

impl View<'_> {
    /// Changes a parameter of the n-th filter, `name=number`; false when it does not have it or does not take it.
    pub fn set(&self, filter: usize, assignment: &str) -> bool {
        (self.handle)(filter, assignment)
    }
}

/// What is left of a live flowgraph that has run.
pub struct Finished {
    fg: Flowgraph,
    tracks: Vec<(BlockRef<Track>, String, Probe)>,
    follows: Vec<BlockRef<Sync>>,
    /// What has happened to the streams.
    pub health: Arc<Health>,
    /// Why it ended, when nobody asked for it: a device has disappeared.
    pub fault: Option<crate::Error>,
}

/// Where the recordings go, and at which centre frequency they were made.
pub struct Record<'a> {
    /// The folder.
    pub folder: &'a Path,
    /// In Hz.
    pub frequency: f64,
    /// Whether existing recordings may be replaced.
    pub force: bool,
}

/// Builds the flowgraph. With `record` the pairs that the filters of the first channel see are written as SigMF `tx` and `rx`, brought to disk twice a second.
pub fn build(parts: Parts, record: Option<&Record<'_>>) -> crate::Result<Live> {
    let Parts { mut radio, frame, level, trackers, lead, every, skip, samples, time, keep } = parts;
    let broken = |e: futuresdr::runtime::Error| crate::Error::Data(format!("the flowgraph cannot be built: {e}"));
    let mut fg = Flowgraph::new();
    let mut faults = Vec::new();
    if radio.tx_channels() > 0 {
        let scaled: Vec<Complex32> = frame.iter().map(|z| z * level).collect();
        let (repeat, sink) = (Repeat::new(scaled, radio.stop()), SoapySink::new(&mut radio)?.lenient().repeats(frame.len()));
        faults.push(sink.fault());
        let repeat = fg.add(repeat);
        let sink = fg.add(sink);
        for channel in 0..radio.tx_channels() {
            fg.stream_dyn(repeat, "output", sink, format!("input[{channel}]")).map_err(broken)?;
        }
    }
    let source = SoapySource::new(&mut radio)?.lenient().limit(samples.unwrap_or(u64::MAX));
    faults.push(source.fault());
    let source = fg.add(source);
    if trackers.len() != radio.rx_channels() {
        return Err(crate::Error::parameter("trackers", format!("a set for each of {} channels", radio.rx_channels()), trackers.len()));
    }
    let (mut tracks, mut follows, mut watchers) = (Vec::new(), Vec::new(), Vec::new());
    for (channel, set) in trackers.into_iter().enumerate() {
        let follow = Sync::new(Synchroniser::repeated(frame.clone())?.advance_up_to(lead)).keep(keep);
        watchers.push(follow.watch());
        let follow = fg.add(follow);
        follows.push(follow);
        // The frame is known: what comes in as `tx` is not read.
        let unread = fg.add(NullSource::<Complex32>::new());
        fg.stream_dyn(unread, "output", follow, "tx").map_err(broken)?;
        fg.stream_dyn(source, format!("output[{channel}]"), follow, "rx").map_err(broken)?;
        for (name, tracker) in set {
            let track = Track::new(tracker).metrics_every(every, skip).tap_history();
            faults.push(track.fault());
            let probe = track.probe();
            let track = fg.add(track);
            fg.block_mut(&track).map_err(broken)?.set_instance_name(&name);
            fg.stream_dyn(follow, "aligned_tx", track, "tx").map_err(broken)?;
            fg.stream_dyn(follow, "aligned_rx", track, "rx").map_err(broken)?;
            for port in ["prediction", "error"] {
                let sink = fg.add(NullSink::<Complex32>::new());
                fg.stream_dyn(track, port, sink, "input").map_err(broken)?;
            }
            tracks.push((track, name, probe));
        }
    }
    if let Some(record) = record {
        for port in ["tx", "rx"] {
            let mut meta = Meta::new(Datatype::CF32_LE, Some(radio.rate()));
            meta.global.extra.insert("kaflow:aligned".into(), true.into());
            meta.captures.push(Capture { frequency: Some(record.frequency), ..Capture::default() });
            let writer = Writer::create(record.folder.join(port), meta, record.force)?;
            let sink = IqSink::new(writer).flush_every((radio.rate() / 2.0).max(1.0) as u64, 0, |_| Ok(()));
            faults.push(sink.fault());
            let sink = fg.add(sink);
            fg.stream_dyn(follows[0], format!("aligned_{port}"), sink, "input").map_err(broken)?;
        }
    }
    Ok(Live { fg, tracks, follows, watchers, faults, radio, time })
}

/// Ties the recordings of a run that ended in order together.
pub fn tie(record: &Record<'_>) -> crate::Result<()> {
    let path = |name: &str| record.folder.join(name);
    Pair::tie(path("pair"), path("tx"), path("rx"), Some(0.0), serde_json::Map::new(), record.force).map(drop)
}

impl Live {
    /// Runs until the radio ends, `stop` is true, the time is up or something fails; calls `look` every `every`. What is under way then has half a second to come to an end.
    pub fn run(self, stop: &AtomicBool, every: Duration, mut look: impl FnMut(&View<'_>)) -> crate::Result<Finished> {
        let Self { fg, tracks, follows, watchers, faults, radio, time } = self;
        let (health, halt) = (radio.health(), radio.stop());
        let explain = |error: futuresdr::runtime::Error| {
            let found = faults.iter().find_map(Fault::take);
            found.unwrap_or_else(|| crate::Error::Data(format!("the flowgraph failed: {error}")))
        };
        let runtime = Runtime::new();
        let running = runtime.start(fg).map_err(explain)?;
        let handle = running.handle();
        let ids: Vec<_> = tracks.iter().map(|(track, ..)| track.id()).collect();
        let set = |filter: usize, assignment: &str| {
            let Some(id) = ids.get(filter) else { return false };
            let answer = Runtime::block_on(handle.call(*id, "set", Pmt::String(assignment.into())));
            matches!(answer, Ok(Pmt::Ok))
        };
        let done = AtomicBool::new(false);
        let result = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let result = running.wait();
                done.store(true, Ordering::Relaxed);
                result
            });
            let began = Instant::now();
            let mut last = began;
            let mut halted: Option<Instant> = None;
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5).min(every));
                if stop.load(Ordering::Relaxed) || time.is_some_and(|time| began.elapsed() >= time) {
                    halt.store(true, Ordering::Relaxed);
                    if halted.get_or_insert_with(Instant::now).elapsed() >= GRACE {
                        // A slow filter could go on for long with what is in its buffers.
                        let _ = Runtime::block_on(handle.stop());
                        halted = Some(Instant::now());
                    }
                } else if last.elapsed() >= every {
                    last = Instant::now();
                    let tracks = tracks.iter().map(|(_, name, probe)| (name.as_str(), probe.clone())).collect();
                    look(&View { health: health.clone(), watchers: &watchers, tracks, handle: &set });
                }
            }
            waiter.join()
        });
        let fg = result.map_err(|_| crate::Error::Data("the flowgraph panicked".into()))?.map_err(explain)?;
        Ok(Finished { fg, tracks, follows, health, fault: faults.iter().find_map(Fault::take) })
    }
}

impl Finished {
    /// The filters by name, one channel after the other.
    pub fn tracks(&self) -> crate::Result<Vec<(&str, impl std::ops::Deref<Target = Track>)>> {
        let broken = |e: futuresdr::runtime::Error| crate::Error::Data(e.to_string());
        self.tracks.iter().map(|(track, name, _)| Ok((name.as_str(), track.get(&self.fg).map_err(broken)?))).collect()
    }

    /// The first pairs of the n-th channel, as many as were to be kept; none of a channel that there is not.
    pub fn kept(&self, channel: usize) -> crate::Result<(Vec<Complex32>, Vec<Complex32>)> {
        let Some(follow) = self.follows.get(channel) else { return Ok(Default::default()) };
        let follow = follow.get(&self.fg).map_err(|e| crate::Error::Data(e.to_string()))?;
        Ok(follow.kept())
    }
}
