//! Streams as recordings.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use futuresdr::runtime::dev::prelude::*;

use super::{Fault, TIME, gap_length};
use crate::{
    Error,
    iq::{
        Writer,
        sigmf::{Meta, datetime},
    },
};

/// Writes a stream to a file: SigMF, or raw `cf32_le`.
///
/// # Stream Inputs
///
/// `input`. A tag `gap` starts a new capture in SigMF, whose index jumps over it; a raw file cannot say it.
///
/// # Stream Outputs
///
/// No stream outputs.
///
/// # Message Inputs
///
/// No message inputs.
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::VectorSource, prelude::*};
/// use kaflow::{blocks::IqSink, iq::{Datatype, Recording, Writer, sigmf::Meta}};
///
/// # fn main() -> Result<()> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("capture");
/// let writer = Writer::create(&path, Meta::new(Datatype::CF32_LE, Some(20e6)), false)?;
/// let (source, sink) = (VectorSource::<Complex32>::new(vec![Complex32::new(0.5, -0.5); 1000]), IqSink::new(writer));
/// let mut fg = Flowgraph::new();
/// connect!(fg, source > sink);
/// Runtime::new().run(fg)?;
/// assert_eq!(Recording::open(path.with_extension("sigmf-meta"), None)?.len(), 1000);
/// # Ok(()) }
/// ```
#[derive(Block)]
pub struct IqSink<I = DefaultCpuReader<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
{
    #[input]
    input: I,
    file: Option<Target>,
    written: u64,
    flush: Option<Flush>,
    date: Option<Date>,
    recorder: Option<Recorder>,
    rest: Option<Rest>,
    /// Says why the block failed, if it did.
    pub fault: Fault,
}

/// What follows behind the stream, given how many samples it had.
type Rest = Box<dyn FnMut(u64) -> crate::Result<Vec<Complex32>> + Send>;

/// Starts and stops what an [`IqSink::switched`] writes, from any thread. What goes wrong ends the recording and nothing else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Orders>>);

#[derive(Debug, Default)]
struct Orders {
    /// What is being written.
    running: Option<String>,
    /// What to do at the next samples, in order: write here, or end what is written.
    next: Vec<Option<Box<Writer>>>,
    failure: Option<String>,
}

impl Recorder {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes from the next sample on; `name` is what [`running`](Self::running) says.
    pub(crate) fn start(&self, name: &str, writer: Writer) {
        let mut orders = self.orders();
        (orders.running, orders.failure) = (Some(name.into()), None);
        orders.next.push(Some(Box::new(writer)));
    }

    /// Ends the recording at the next sample.
    pub(crate) fn stop(&self) {
        self.orders().next.push(None);
    }

    /// What is being written, until it is complete.
    pub(crate) fn running(&self) -> Option<String> {
        self.orders().running.clone()
    }

    /// Why the last recording ended before it was to.
    pub(crate) fn failure(&self) -> Option<String> {
        self.orders().failure.clone()
    }

    fn ended(&self, result: crate::Result<()>) {
        let mut orders = self.orders();
        (orders.running, orders.failure) = (None, result.err().map(|e| e.to_string()));
    }
}

/// When the stream began: by the clock of the computer, by that of the radio in nanoseconds, and samples in gaps since.
struct Date {
    began: SystemTime,
    first_ns: Option<u64>,
    gap_samples: u64,
}

/// How often to flush, and whom to tell.
type Flush = (u64, Box<dyn FnMut(u64) -> crate::Result<()> + Send>);

enum Target {
    Sigmf(Box<Writer>),
    Raw(BufWriter<File>, PathBuf),
}

impl IqSink {
    /// Writes SigMF through `writer`.
    pub fn new(writer: Writer) -> Self {
        Self::with_buffers(Some(Target::Sigmf(Box::new(writer))))
    }

    /// Writes what `recorder` says, while it says so.
    pub(crate) fn switched(recorder: Recorder) -> Self {
        Self { recorder: Some(recorder), ..Self::with_buffers(None) }
    }

    /// Writes raw `cf32_le` to the end of an open `file`; `path` names it in errors.
    pub(crate) fn raw(file: File, path: impl AsRef<Path>) -> Self {
        Self::with_buffers(Some(Target::Raw(BufWriter::with_capacity(1 << 20, file), path.as_ref().into())))
    }
}

impl<I: CpuBufferReader<Item = Complex32>> IqSink<I> {
    fn with_buffers(file: Option<Target>) -> Self {
        let mut input = I::default();
        input.set_min_buffer_size_in_items(super::BUFFER);
        Self { input, file, written: 0, flush: None, date: None, recorder: None, rest: None, fault: Fault::default() }
    }

    /// For a recording whose captures are known already: gaps are not marked again, and behind the stream comes what `rest` says of its number of samples.
    pub fn within(mut self, rest: impl FnMut(u64) -> crate::Result<Vec<Complex32>> + Send + 'static) -> Self {
        self.rest = Some(Box::new(rest));
        self
    }

    /// Writes SigMF through `writer`; buffers of any kind.
    #[cfg(test)]
    pub(crate) fn sigmf_with_buffers(writer: Writer) -> Self {
        Self::with_buffers(Some(Target::Sigmf(Box::new(writer))))
    }

    /// Brings everything to the file at every multiple of `every` samples and at the end, and then calls `told` with the number of samples in it; `already`
    /// counts those that were there before.
    pub(crate) fn flush_every(mut self, every: u64, already: u64, told: impl FnMut(u64) -> crate::Result<()> + Send + 'static) -> Self {
        self.written = already;
        self.flush = Some((every.max(1), Box::new(told)));
        self
    }

    /// Writes into each capture of a SigMF recording when it began, the first one being taken at `began`; by tags [`TIME`] where there are some, else by counting samples.
    #[cfg_attr(not(feature = "radio"), allow(dead_code))]
    pub(crate) fn dated(mut self, began: SystemTime) -> Self {
        self.date = Some(Date { began, first_ns: None, gap_samples: 0 });
        self
    }
}

/// The radio's time, when `tag` tells it.
fn time_ns(tag: &Tag) -> Option<u64> {
    match tag {
        Tag::NamedUsize(name, time) if name == TIME => Some(*time as u64),
        _ => None,
    }
}

impl Target {
    fn write(&mut self, samples: &[Complex32]) -> crate::Result<()> {
        match self {
            Self::Sigmf(writer) => writer.write(samples),
            Self::Raw(file, path) => samples.iter().try_for_each(|z| {
                let [a, b] = [z.re.to_le_bytes(), z.im.to_le_bytes()];
                file.write_all(&[a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]]).map_err(|e| Error::io(&*path, e))
            }),
        }
    }

    fn gap(&mut self, length: usize) -> crate::Result<()> {
        match self {
            Self::Sigmf(writer) => writer.gap(length as u64),
            Self::Raw(..) => Ok(()),
        }
    }

    /// Says when the capture that is about to begin does.
    fn date(&mut self, date: &mut Date, gap: usize, time_ns: Option<u64>) {
        let Self::Sigmf(writer) = self else { return };
        date.gap_samples += gap as u64;
        date.first_ns = date.first_ns.or(time_ns);
        let counted = (writer.len() + date.gap_samples) as f64 / writer.meta_mut().global.sample_rate.unwrap_or(f64::INFINITY);
        let told = time_ns.zip(date.first_ns).map(|(now, first)| Duration::from_nanos(now.saturating_sub(first)));
        let since = told.unwrap_or(Duration::try_from_secs_f64(counted).unwrap_or_default());
        let length = writer.len();
        if let Some(capture) = writer.meta_mut().captures.iter_mut().find(|c| c.sample_start == length) {
            capture.datetime = Some(datetime(date.began + since));
            if let Some(time) = time_ns {
                capture.extra.insert("kaflow:time_ns".into(), time.into());
            }
        }
    }

    fn flush(&mut self) -> crate::Result<()> {
        match self {
            Self::Sigmf(writer) => writer.flush(),
            Self::Raw(file, path) => file.flush().map_err(|e| Error::io(&*path, e)),
        }
    }

    fn finish(mut self) -> crate::Result<Option<Meta>> {
        match self {
            Self::Sigmf(writer) => writer.finish().map(Some),
            Self::Raw(..) => self.flush().map(|()| None),
        }
    }
}

impl<I: CpuBufferReader<Item = Complex32>> IqSink<I> {
    /// Writes what there is, cut at gaps and where a flush is due.
    fn store(&mut self) -> crate::Result<usize> {
        let (input, tags) = self.input.slice_with_tags();
        let marked = self.rest.is_some();
        let mut gaps: Vec<_> = tags.iter().filter(|_| !marked).filter_map(|t| gap_length(&t.tag).map(|length| (t.index, length))).collect();
        gaps.sort_unstable();
        let time_at = |at: usize| tags.iter().filter(|t| t.index == at).find_map(|t| time_ns(&t.tag));
        let Some(target) = &mut self.file else { return Ok(input.len()) };
        let (mut at, mut gaps) = (0, gaps.into_iter().filter(|gap| gap.0 < input.len()).peekable());
        if let Some(date) = self.date.as_mut().filter(|_| self.written == 0 && !input.is_empty()) {
            target.date(date, 0, time_at(0));
        }
        while at < input.len() {
            while let Some((_, length)) = gaps.next_if(|gap| gap.0 == at) {
                target.gap(length)?;
                self.date.iter_mut().for_each(|date| target.date(date, length, time_at(at)));
            }
            let mut end = gaps.peek().map_or(input.len(), |gap| gap.0);
            if let Some((every, _)) = &self.flush {
                end = end.min(at.saturating_add((every - self.written % every) as usize));
            }
            target.write(&input[at..end])?;
            self.written += (end - at) as u64;
            at = end;
            if let Some((every, told)) = &mut self.flush
                && self.written.is_multiple_of(*every)
            {
                target.flush()?;
                told(self.written)?;
            }
        }
        Ok(at)
    }

    /// Does what the recorder says, and then as always.
    fn step(&mut self) -> crate::Result<usize> {
        let Some(recorder) = self.recorder.clone() else { return self.store() };
        let next = std::mem::take(&mut recorder.orders().next);
        for next in next {
            let ended = self.end();
            match next {
                Some(writer) => {
                    (self.file, self.written) = (Some(Target::Sigmf(writer)), 0);
                    self.date = Some(Date { began: SystemTime::now(), first_ns: None, gap_samples: 0 });
                }
                None => recorder.ended(ended),
            }
        }
        self.store().or_else(|error| {
            // What is left of it stays readable.
            self.file = None;
            recorder.ended(Err(error));
            self.store()
        })
    }

    fn end(&mut self) -> crate::Result<()> {
        if let Some(mut target) = self.file.take() {
            if let Some(rest) = &mut self.rest {
                target.write(&rest(self.written)?)?;
            }
            target.finish()?;
            if let Some((_, told)) = &mut self.flush {
                told(self.written)?;
            }
        }
        Ok(())
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Kernel for IqSink<I> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let n = self.step().map_err(|e| self.fault.raise(e))?;
        self.input.consume(n);
        if self.input.finished() {
            io.finished = true;
        }
        Ok(())
    }

    async fn deinit(&mut self, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let ended = self.end();
        match &self.recorder {
            Some(recorder) => recorder.ended(ended),
            None => ended.map_err(|e| self.fault.raise(e))?,
        }
        Ok(())
    }
}
