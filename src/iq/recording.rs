//! Reading a recording as a stream.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use num_complex::Complex32;

use super::hash::sha512;
use super::segment::segments;
use super::sigmf::{self, Meta, read_small};
use super::{Format, Segment, archive, spool, wav};
use crate::channel::Gap;
use crate::{Error, Result};

/// How many bytes are read at once, about.
const BLOCK: usize = 1 << 18;

/// A recording that is read as a stream, in constant memory.
///
/// ```no_run
/// # fn main() -> kaflow::Result<()> {
/// use kaflow::{Complex32, iq::Recording};
///
/// let mut recording = Recording::open("rx.sigmf-meta", None)?;
/// let mut samples = vec![Complex32::default(); 4096];
/// loop {
///     if let Some(gap) = recording.gap() {
///         println!("a gap of {} samples before sample {}", gap.length, gap.at);
///     }
///     let n = recording.read(&mut samples)?;
///     if n == 0 {
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Recording {
    meta: Meta,
    format: Format,
    segments: Vec<Segment>,
    len: u64,
    data: PathBuf,
    file: File,
    /// Where the samples lie in the file, headers between them included.
    range: (u64, u64),
    /// The file's own position, to seek only when it is another one than wanted.
    file_at: u64,
    position: u64,
    /// The segment that `position` lies in.
    segment: usize,
    channel: usize,
    bytes: Vec<u8>,
    frames: Vec<Complex32>,
    not_finite: Option<NotFinite>,
}

/// Samples that are NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct NotFinite {
    /// How many were read so far.
    pub count: u64,
    /// The place of the first one.
    pub first: u64,
}

impl Recording {
    /// Opens a recording; `-` is standard input, and what comes out of a pipe is kept in a temporary file. A format is `sigmf`, `archive`, `wav`, or a datatype such as
    /// `cf32_le` for bare samples of one channel. Without one the path's ending decides; a path without an ending is SigMF when there is metadata of that name.
    pub fn open(path: impl AsRef<Path>, format: Option<&str>) -> Result<Self> {
        Self::open_as(path.as_ref(), format.map(str::parse).transpose()?)
    }

    /// The same with a format that was read before.
    pub(crate) fn open_as(path: &Path, format: Option<Format>) -> Result<Self> {
        let format = match format.or_else(|| Format::of(path)) {
            Some(format) => format,
            None if sigmf::files(path).0.exists() => Format::Sigmf,
            None if !path.exists() && path.as_os_str() != "-" => {
                return Err(Error::io(path, io::Error::new(io::ErrorKind::NotFound, "no such file")));
            }
            None if path.extension().is_some_and(|e| e == "sigmf-collection") => {
                return Err(Error::file(path, "file name", "is a collection: name one of its recordings"));
            }
            None => return Err(Error::file(path, "file name", "does not tell the format: give one with --format, such as cf32_le")),
        };
        let whole = |path: &Path, file: &File| file.metadata().map(|m| m.len()).map_err(|e| Error::io(path, e));
        let (meta, (file, data), offset, bytes) = match format {
            Format::Sigmf if path.as_os_str() == "-" => {
                return Err(Error::file(
                    "standard input",
                    "format",
                    "a SigMF recording is two files: name one of them, or give an archive",
                ));
            }
            Format::Sigmf => {
                let (meta_path, data) = sigmf::files(path);
                let (file, _) = spool::open(&meta_path)?;
                let meta = Meta::parse(&meta_path, &read_small(&meta_path, file)?)?;
                let data = match &meta.global.dataset {
                    Some(name) => meta_path.with_file_name(name),
                    None => data,
                };
                if meta.global.metadata_only == Some(true) && !data.exists() {
                    return Err(Error::file(meta_path, "global core:metadata_only", "is true: there are no samples"));
                }
                let (file, data) = spool::open(&data)?;
                let bytes = whole(&data, &file)?;
                (meta, (file, data), 0, bytes)
            }
            Format::Archive => {
                let (file, name) = spool::open(path)?;
                let (meta, offset, bytes) = archive::locate(&name, &file)?;
                (meta, (file, name), offset, bytes)
            }
            Format::Wav => {
                let (file, name) = spool::open(path)?;
                let (meta, offset, bytes) = wav::locate(&name, &file)?;
                (meta, (file, name), offset, bytes)
            }
            Format::Raw(raw) => {
                if !(1..=4096).contains(&raw.channels) {
                    return Err(Error::parameter("channels", "between 1 and 4096", raw.channels));
                }
                if let Some(rate) = raw.sample_rate.filter(|rate| !(*rate > 0.0 && *rate <= 1e12)) {
                    return Err(Error::parameter("rate", "between 0 and 1e12 samples per second", rate));
                }
                let mut meta = Meta::new(raw.datatype, raw.sample_rate);
                meta.global.num_channels = (raw.channels > 1).then_some(raw.channels as u64);
                let (file, name) = spool::open(path)?;
                let bytes = whole(&name, &file)?;
                (meta, (file, name), 0, bytes)
            }
        };
        Self::new(meta, format, data, file, offset, bytes)
    }

    fn new(meta: Meta, format: Format, data: PathBuf, file: File, offset: u64, bytes: u64) -> Result<Self> {
        let frame = meta.global.datatype.bytes() * meta.channels();
        let segments = segments(&meta, frame as u64, offset, bytes).map_err(|(place, problem)| Error::file(&data, place, problem))?;
        let len = segments.last().map_or(0, |s| s.start + s.len);
        // Not larger than the data: a thousand small recordings can be open at once.
        let block = (BLOCK / frame).max(1).min(usize::try_from(len).unwrap_or(usize::MAX)).max(1);
        Ok(Self {
            bytes: vec![0; block * frame],
            frames: vec![Complex32::default(); if meta.channels() > 1 { block * meta.channels() } else { 0 }],
            meta,
            format,
            segments,
            len,
            data,
            file,
            range: (offset, bytes),
            // Whoever read its header has moved it.
            file_at: u64::MAX,
            position: 0,
            segment: 0,
            channel: 0,
            not_finite: None,
        })
    }

    /// The same recording from its start, to be read beside this one.
    pub fn reopen(&self) -> Result<Self> {
        let file = File::open(&self.data).map_err(|e| Error::io(&self.data, e))?;
        let mut again = Self::new(self.meta.clone(), self.format, self.data.clone(), file, self.range.0, self.range.1)?;
        again.channel = self.channel;
        Ok(again)
    }

    /// What the recording says of itself.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// What the specification forbids although the samples can be read, each named with its field.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut found = self.meta.violations();
        if let Some(name) = self.unknown_extension() {
            found.push(format!("global core:extensions: '{name}' is needed to understand the recording and not known here"));
        }
        let first = self.meta.global.offset.unwrap_or(0);
        for (i, annotation) in self.meta.annotations.iter().enumerate() {
            let end = annotation.sample_start.saturating_sub(first).saturating_add(annotation.sample_count.unwrap_or(0));
            if end > self.len {
                found.push(format!("annotations[{i}]: reaches up to sample {end}, past the end of the data at {}", self.len));
            }
        }
        found
    }

    /// An extension that the recording declares as needed and that is not known here.
    pub(crate) fn unknown_extension(&self) -> Option<&str> {
        self.meta.global.extensions.iter().find(|e| !e.optional && e.name != "kaflow").map(|e| e.name.as_str())
    }

    /// The kind of file.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// The file that holds the samples.
    pub(crate) fn data_path(&self) -> &Path {
        &self.data
    }

    /// Samples per second, where known.
    pub(crate) fn sample_rate(&self) -> Option<f64> {
        self.meta.global.sample_rate
    }

    /// The first capture's centre frequency in Hz, where known.
    pub(crate) fn frequency(&self) -> Option<f64> {
        self.meta.captures.first().and_then(|c| c.frequency)
    }

    /// How many channels are interleaved.
    pub fn channels(&self) -> usize {
        self.meta.channels()
    }

    /// How many samples there are for each channel, those in gaps not counted.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All gaps, in order.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> + '_ {
        self.segments.iter().filter(|s| s.gap > 0).map(|s| Gap { at: s.start, length: s.gap })
    }

    /// The gap just before the next sample to be read, if there is one.
    pub fn gap(&self) -> Option<Gap> {
        // Captures of no samples may pile up at one place.
        let first = self.segments.partition_point(|s| s.start < self.position);
        let length: u64 = self.segments[first..].iter().take_while(|s| s.start == self.position).map(|s| s.gap).sum();
        (length > 0).then_some(Gap { at: self.position, length })
    }

    /// The place of the next sample to be read.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Goes to a sample; the end, `len()`, is allowed.
    pub fn seek(&mut self, sample: u64) -> Result<()> {
        if sample > self.len {
            return Err(Error::parameter("sample", format!("at most {}, the length of {}", self.len, self.data.display()), sample));
        }
        self.position = sample;
        self.segment = self.segments.partition_point(|s| s.start + s.len <= sample).min(self.segments.len() - 1);
        Ok(())
    }

    /// Chooses the channel that [`read`](Self::read) delivers; the first is 0 and the default.
    pub fn select(&mut self, channel: usize) -> Result<()> {
        if channel >= self.channels() {
            let expected = format!("below {}, the number of channels of {}", self.channels(), self.data.display());
            return Err(Error::parameter("channel", expected, channel));
        }
        self.channel = channel;
        Ok(())
    }

    /// The NaN or infinite samples read so far.
    pub(crate) fn not_finite(&self) -> Option<NotFinite> {
        self.not_finite
    }

    /// Reads the selected channel's next samples and says how many: fewer than asked for at a gap, none at the end.
    ///
    /// A call never reads across a gap, so that [`gap`](Self::gap), asked before each, sees every one.
    pub fn read(&mut self, samples: &mut [Complex32]) -> Result<usize> {
        let channels = self.channels();
        let mut done = 0;
        while done < samples.len() {
            let n = self.load(samples.len() - done, done > 0)?;
            if n == 0 {
                break;
            }
            let out = &mut samples[done..done + n];
            let bytes = &self.bytes[..n * channels * self.meta.global.datatype.bytes()];
            if channels == 1 {
                self.meta.global.datatype.decode(bytes, out);
            } else {
                let frames = &mut self.frames[..n * channels];
                self.meta.global.datatype.decode(bytes, frames);
                for (z, frame) in out.iter_mut().zip(frames.chunks_exact(channels)) {
                    *z = frame[self.channel];
                }
            }
            self.note_not_finite(out, 1);
            self.position += n as u64;
            done += n;
        }
        Ok(done)
    }

    /// Reads the selected channel's remaining samples into memory, at most `limit` of them and across gaps.
    pub fn read_up_to(&mut self, limit: usize) -> Result<Vec<Complex32>> {
        let left = usize::try_from(self.len - self.position).unwrap_or(usize::MAX);
        let mut samples = vec![Complex32::default(); left.min(limit)];
        let mut done = 0;
        while done < samples.len() {
            match self.read(&mut samples[done..])? {
                0 => break,
                n => done += n,
            }
        }
        samples.truncate(done);
        Ok(samples)
    }

    /// Brings up to `wanted` samples of all channels into `bytes` and says how many. With `stop` a gap ends the stretch.
    fn load(&mut self, wanted: usize, stop: bool) -> Result<usize> {
        while self.position >= self.segments[self.segment].start + self.segments[self.segment].len {
            if self.segment + 1 == self.segments.len() {
                return Ok(0);
            }
            if stop && self.segments[self.segment + 1].gap > 0 {
                return Ok(0);
            }
            self.segment += 1;
        }
        let segment = self.segments[self.segment];
        let frame = self.channels() * self.meta.global.datatype.bytes();
        let into = self.position - segment.start;
        let n = wanted.min(self.bytes.len() / frame).min(usize::try_from(segment.len - into).unwrap_or(usize::MAX));
        let byte = segment.byte + into * frame as u64;
        if byte != self.file_at {
            self.file.seek(SeekFrom::Start(byte)).map_err(|e| Error::io(&self.data, e))?;
            self.file_at = byte;
        }
        let bytes = &mut self.bytes[..n * frame];
        if let Err(error) = self.file.read_exact(bytes) {
            // Where the file stands now is not known.
            self.file_at = u64::MAX;
            return Err(match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    Error::file(&self.data, format!("offset {byte}"), "the file became shorter while it was read")
                }
                _ => Error::io(&self.data, error),
            });
        }
        self.file_at += bytes.len() as u64;
        Ok(n)
    }

    fn note_not_finite(&mut self, samples: &[Complex32], channels: usize) {
        for (i, _) in samples.iter().enumerate().filter(|(_, z)| !z.re.is_finite() || !z.im.is_finite()) {
            let place = self.position + (i / channels) as u64;
            self.not_finite.get_or_insert(NotFinite { count: 0, first: place }).count += 1;
        }
    }

    /// Reads all the data and compares its SHA-512 with the metadata's. `Ok(false)` when there is none to compare with.
    pub(crate) fn verify(&mut self) -> Result<bool> {
        let Some(expected) = self.meta.global.sha512.clone() else { return Ok(false) };
        let (offset, bytes) = self.range;
        self.file_at = u64::MAX;
        self.file.seek(SeekFrom::Start(offset)).map_err(|e| Error::io(&self.data, e))?;
        let found = sha512(&self.data, (&self.file).take(bytes))?;
        if !found.eq_ignore_ascii_case(&expected) {
            let problem = format!("{}... is not that of the data, {}...: the file was changed or damaged", &expected[..16], &found[..16]);
            return Err(Error::file(&self.data, "core:sha512", problem));
        }
        Ok(true)
    }
}
