//! Any tracker as a block.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::Receiver,
    },
    time::{Duration, Instant},
};

use futuresdr::runtime::dev::prelude::*;

use super::{
    Command, Controls, Fault, Latency, Probe, Snapshot, Summary, TapHistory, controls,
    fault::guarded,
    message, tags,
    tracking::{Core, Observed},
};
use crate::{
    files,
    filter::{Adaptive, Guard, Tracker},
    metrics::{Series, Spread},
};

/// Predicts each sample of `rx` from the samples of `tx` up to it, and learns.
///
/// Swap the inputs and it equalises: `rx.track.tx` with the known signal on `rx` makes `prediction` the equalised stream.
///
/// Any [`Tracker`] fits, boxed or by its type, one of this library or your own. Predictions are those of the tracker behind a [`Guard`], bit for
/// bit, however the runtime cuts the streams.
///
/// # Stream Inputs
///
/// `tx`: what the filter sees. `rx`: what it is to predict.
///
/// # Stream Outputs
///
/// `prediction`: one step ahead. `error`: `rx − prediction`. Tags of both inputs go to both; a tag `gap` makes the tracker
/// learn nothing until its window lies behind it.
///
/// # Message Inputs
///
/// `adapt`: `Bool` (or "on", "off"), learn or only predict. `bypass`: `Bool`, `prediction` is `tx` and the tracker rests. `reset`:
/// anything, forgets what was learned. `set`: one parameter, `MapStrPmt {"mu": F64(0.1)}` or `String("mu=0.1")`. `save`, `load`: `String`,
/// a file for the tracker's state.
///
/// # Message Outputs
///
/// `metrics`: a map every N samples: `step` (samples so far), `nmse_db` (over the last N), `nmse_total_db`, `centres`.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::{NullSink, VectorSink, VectorSource}, prelude::*};
/// use kaflow::{blocks::Track, filter::{Filter, Nlms}};
///
/// # fn main() -> Result<()> {
/// let tx: Vec<_> = (0..1000).map(|i| Complex32::from_polar(1.0, (i * i) as f32)).collect();
/// let rx: Vec<_> = tx.iter().map(|x| x * Complex32::new(0.3, -0.4)).collect();
///
/// let mut fg = Flowgraph::new();
/// let (tx, rx) = (VectorSource::<Complex32>::new(tx), VectorSource::<Complex32>::new(rx));
/// let track = Track::new(Nlms::new(4, 0.5, 1e-6)?.on_stream());
/// let (error, prediction) = (VectorSink::<Complex32>::new(1000), NullSink::<Complex32>::new());
/// connect!(fg, tx > tx.track; rx > rx.track; track.prediction > prediction; track.error > error);
/// let fg = Runtime::new().run(fg)?;
/// assert!(error.get(&fg)?.items()[999].norm() < 1e-3);
/// # Ok(()) }
/// ```
#[derive(Block)]
#[message_inputs(adapt, bypass, reset, set, save, load)]
#[message_outputs(metrics)]
pub struct Track<T = Box<dyn Tracker<f32>>, I = DefaultCpuReader<Complex32>, O = DefaultCpuWriter<Complex32>>
where
    T: Tracker<f32> + 'static,
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    #[input]
    tx: I,
    #[input]
    rx: I,
    #[output]
    prediction: O,
    #[output]
    error: O,
    core: Core<T>,
    gaps: Vec<(usize, u64)>,
    due: Vec<Pmt>,
    /// Samples of one work call.
    most: usize,
    end: Arc<AtomicU64>,
    latency: Latency,
    /// Reads the figures of the block while it runs.
    pub probe: Probe,
    /// Says why the block failed, if it did.
    pub fault: Fault,
    confined: Option<PathBuf>,
    calls: Option<Receiver<controls::Call>>,
    /// Calls the block while it runs.
    pub controls: Controls,
}

/// A work call that takes longer is the last one of its length.
const SLOW: Duration = Duration::from_millis(5);
/// Samples that a work call takes however slow they are.
const LEAST: usize = 64;

impl<T: Tracker<f32> + 'static> Track<T> {
    /// A block around `tracker`.
    pub fn new(tracker: T) -> Self {
        Self::with_buffers(tracker)
    }
}

impl<T, I, O> Track<T, I, O>
where
    T: Tracker<f32> + 'static,
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    /// A block around `tracker` with buffers of another kind than the default.
    pub(crate) fn with_buffers(tracker: T) -> Self {
        let (tracker, series, spread) = (Guard::new(tracker), Series::new(4096, 0), Spread::default());
        let core = Core { tracker, series, spread, gap_samples: 0, observed: None, bypass: false, freeze_at: None, keep: None };
        let (controls, calls) = Controls::new();
        let (mut tx, mut rx, mut prediction, mut error) = (I::default(), I::default(), O::default(), O::default());
        for input in [&mut tx, &mut rx] {
            input.set_min_buffer_size_in_items(super::BUFFER);
        }
        for output in [&mut prediction, &mut error] {
            output.set_min_buffer_size_in_items(super::BUFFER);
        }
        Self {
            tx,
            rx,
            prediction,
            error,
            core,
            gaps: Vec::new(),
            due: Vec::new(),
            most: 1024,
            end: Arc::new(AtomicU64::new(u64::MAX)),
            latency: Latency::default(),
            probe: Probe::default(),
            fault: Fault::default(),
            confined: None,
            calls: Some(calls),
            controls,
        }
    }

    /// Metrics every `every` samples (4096 if not set); the first `skip` samples are left out of the overall figure.
    pub fn metrics_every(mut self, every: u64, skip: u64) -> Self {
        self.core.series = Series::new(every, skip);
        self
    }

    /// Learns from so many samples and from none after them.
    pub fn frozen_after(mut self, samples: u64) -> Self {
        self.core.freeze_at = Some(samples);
        self
    }

    /// Keeps something to look at, in bounded memory: the tracker's taps at the end of each row of metrics, and now and then a
    /// `Stretch` of the streams.
    pub fn observed(mut self) -> Self {
        self.core.observed = Some(Observed::new());
        self
    }

    /// Hands a [`Snapshot`] to `keep` at every multiple of `every` samples, and at the end of the streams.
    ///
    /// An error from `keep` ends the flowgraph.
    pub(crate) fn snapshots(mut self, every: u64, keep: impl FnMut(Snapshot) -> crate::Result<()> + Send + 'static) -> Self {
        self.core.keep = Some((every.max(1), Box::new(keep)));
        self
    }

    /// Ends as at the end of the streams when so many samples have been tracked, those before a resumption included. The number may be lowered while
    /// the block runs; 0 is now.
    pub fn end_at(mut self, samples: Arc<AtomicU64>) -> Self {
        self.end = samples;
        self
    }

    /// `save` and `load` take plain file names in `directory` only: for a flowgraph whose control port others can reach.
    pub fn confined(mut self, directory: impl Into<PathBuf>) -> Self {
        self.confined = Some(directory.into());
        self
    }

    /// Continues from a snapshot, to the bit. On an error nothing has changed.
    pub(crate) fn resume(&mut self, snapshot: &[u8]) -> crate::Result<()> {
        let (tracker, series, gap_samples, taps): (Vec<u8>, Series, u64, Option<TapHistory>) = crate::state::decode("track", snapshot)?;
        self.core.tracker.restore(&tracker)?;
        (self.core.series, self.core.gap_samples) = (series, gap_samples);
        if let (Some(observed), Some(taps)) = (&mut self.core.observed, taps) {
            observed.taps = taps;
        }
        self.probe.write(self.core.report());
        Ok(())
    }

    /// The tracker inside.
    pub fn tracker(&self) -> &T {
        self.core.tracker.tracker()
    }

    /// The errors over time.
    pub fn series(&self) -> &Series {
        &self.core.series
    }

    /// How long samples stayed in the block, and how busy it was.
    pub(crate) fn latency(&self) -> &Latency {
        &self.latency
    }

    /// All of this together.
    pub(crate) fn summary(&self) -> Summary {
        Summary {
            series: self.core.series.clone(),
            centres: self.core.tracker.size(),
            restarts: self.core.tracker.restarts(),
            latency: self.latency.clone(),
            taps: self.core.observed.as_ref().map(|o| o.taps.clone()).unwrap_or_default(),
            stretch: self.core.observed.as_ref().and_then(|o| o.scope.last()),
            portrait: self.core.tracker.portrait(),
        }
    }

    async fn adapt(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("adapt", &p, |p| self.core.obey(&Command::Adapt(message::switch(p)?)))
    }

    async fn bypass(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("bypass", &p, |p| self.core.obey(&Command::Bypass(message::switch(p)?)))
    }

    async fn reset(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("reset", &p, |_| self.core.obey(&Command::Reset))
    }

    async fn set(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("set", &p, |p| {
            let (name, value) = message::assignment(p)?;
            self.core.obey(&Command::Set(name, value))
        })
    }

    async fn save(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("save", &p, |p| {
            let path = files::within(self.confined.as_deref(), message::text(p)?)?;
            files::write(&path, &self.core.tracker.save()?)
        })
    }

    async fn load(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("load", &p, |p| {
            let path = files::within(self.confined.as_deref(), message::text(p)?)?;
            self.core.tracker.restore(&files::read(&path, files::SAVED)?)
        })
    }
}

impl<T, I, O> Kernel for Track<T, I, O>
where
    T: Tracker<f32> + 'static,
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    async fn work(&mut self, io: &mut WorkIo, mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let start = Instant::now();
        controls::answer(&self.calls, |command| match command {
            Some(command) => self.core.obey(command).map(|()| Vec::new()),
            None => self.core.tracker.save(),
        });
        if let Some(observed) = self.core.observed.as_mut().filter(|_| self.probe.asked()) {
            observed.glimpse.ask();
        }
        let (tx, tx_tags) = self.tx.slice_with_tags();
        let (rx, rx_tags) = self.rx.slice_with_tags();
        let (tx_len, rx_len) = (tx.len(), rx.len());
        let (prediction, mut prediction_tags) = self.prediction.slice_with_tags();
        let (error, mut error_tags) = self.error.slice_with_tags();
        let available = tx_len.min(rx_len).min(prediction.len()).min(error.len());
        let left = self.end.load(Ordering::Relaxed).saturating_sub(self.core.series.samples());
        let n = available.min(self.most).min(left.try_into().unwrap_or(usize::MAX));
        io.call_again = n < available;
        if n > 0 {
            tags::copy(&[tx_tags, rx_tags], n, &mut prediction_tags);
            tags::copy(&[tx_tags, rx_tags], n, &mut error_tags);
            tags::gaps(tx_tags.iter().chain(rx_tags), n, &mut self.gaps);
            let (core, due) = (&mut self.core, &mut self.due);
            guarded("the tracker", || core.run(&tx[..n], &rx[..n], &mut prediction[..n], &mut error[..n], &self.gaps, due))
                .flatten()
                .map_err(|e| self.fault.raise(e))?;
            self.tx.consume(n);
            self.rx.consume(n);
            self.prediction.produce(n);
            self.error.produce(n);
            let time = start.elapsed();
            // A part of the buffer at a time, so that the blocks around work meanwhile, and a slow tracker hears of messages soon.
            self.most = match time {
                _ if n < self.most => self.most,
                time if time > SLOW => (self.most / 2).max(LEAST),
                time if time < SLOW / 4 => (self.most * 2).min(super::BUFFER / 4),
                _ => self.most,
            };
            self.latency.add(n as u64, time);
            self.probe.write(self.core.report());
            if let Some(observed) = &self.core.observed {
                self.probe.show(observed.scope.last(), observed.glimpse.last());
            }
            for metrics in self.due.drain(..) {
                mo.post("metrics", metrics).await?;
            }
        }
        if (self.tx.finished() && n == tx_len) || (self.rx.finished() && n == rx_len) || n as u64 == left {
            self.core.snapshot().map_err(|e| self.fault.raise(e))?;
            io.finished = true;
        }
        Ok(())
    }
    async fn deinit(&mut self, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        self.calls = None;
        self.core.observed.iter_mut().for_each(|o| o.scope.close());
        self.probe.end(self.summary());
        Ok(())
    }
}
