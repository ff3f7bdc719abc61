//! Writing SigMF as a stream.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use num_complex::Complex32;
use sha2::{Digest, Sha512};

use super::hash::hex;
use super::sigmf::{self, Capture, Meta};
use crate::{Error, Result, files};

/// How many bytes are gathered before they are written.
const BLOCK: usize = 1 << 20;

/// With more captures than this the metadata is no longer rewritten at once for each: thousands of gaps would cost quadratic time.
const MANY_CAPTURES: usize = 256;

/// Writes a SigMF recording whose files are valid at any time: data first, then metadata that speaks of no more than the data, replaced in one step.
/// A process that is killed leaves a recording that can be read, without its hash and without what was not flushed.
///
/// ```no_run
/// # fn main() -> kaflow::Result<()> {
/// use kaflow::{Complex32, iq::{Datatype, Writer, sigmf::Meta}};
///
/// let mut writer = Writer::create("rx", Meta::new(Datatype::CF32_LE, Some(20e6)), false)?;
/// writer.write(&[Complex32::new(1.0, 0.0)])?;
/// writer.gap(100)?; // a hundred samples never arrived
/// writer.write(&[Complex32::new(0.0, 1.0)])?;
/// writer.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Writer {
    meta: Meta,
    meta_path: PathBuf,
    data_path: PathBuf,
    data: File,
    hash: Sha512,
    block: Vec<u8>,
    /// Samples of all channels taken in so far.
    len: u64,
    saturated: u64,
    meta_changed: bool,
    finished: bool,
}

impl Writer {
    /// Creates `path.sigmf-meta` and `path.sigmf-data`; `path` may have either ending. Existing files are refused unless `force`.
    ///
    /// The metadata's captures and annotations are kept: their places must count from sample 0 of what is going to be written, and those beyond it at the end are
    /// dropped. A data file's name, header bytes and hash in it are not. Extensions that are used and not declared are declared.
    pub fn create(path: impl AsRef<Path>, mut meta: Meta, force: bool) -> Result<Self> {
        let (meta_path, data_path) = sigmf::files(path.as_ref());
        if let Some(directory) = meta_path.parent().filter(|d| !d.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory).map_err(|e| Error::io(directory, e))?;
        }
        if !force && let Some(taken) = [&meta_path, &data_path].into_iter().find(|p| p.exists()) {
            return Err(Error::file(taken, "file", "exists already; overwrite it with --force or choose another name"));
        }
        meta.global.sha512 = None;
        meta.global.dataset = None;
        meta.global.trailing_bytes = None;
        meta.global.metadata_only = None;
        meta.global.offset = None;
        if meta.captures.is_empty() {
            meta.captures.push(Capture::default());
        }
        for capture in &mut meta.captures {
            capture.header_bytes = None;
        }
        meta.captures.sort_by_key(|c| c.sample_start);
        meta.annotations.sort_by_key(|a| a.sample_start);
        if !(1..=4096).contains(&meta.channels()) {
            return Err(Error::parameter("channels", "between 1 and 4096", meta.channels()));
        }
        if meta.global.datatype.number == super::datatype::Number::I24 {
            return Err(Error::parameter("datatype", "one that SigMF knows, such as ci32_le", meta.global.datatype));
        }
        meta.declare_used();
        if let Some(problem) = meta.violations().into_iter().next() {
            return Err(Error::file(meta_path, "metadata to write", problem));
        }
        // Old metadata must not describe new data, not for a moment.
        if meta_path.exists() {
            std::fs::remove_file(&meta_path).map_err(|e| Error::io(&meta_path, e))?;
        }
        let data = OpenOptions::new().write(true).create(true).truncate(true).open(&data_path).map_err(|e| Error::io(&data_path, e))?;
        let mut writer = Self {
            meta,
            meta_path,
            data_path,
            data,
            hash: Sha512::new(),
            block: Vec::with_capacity(BLOCK + (1 << 16)),
            len: 0,
            saturated: 0,
            meta_changed: true,
            finished: false,
        };
        writer.flush()?;
        Ok(writer)
    }

    /// What is going to be written; keys may be added until the end.
    pub(crate) fn meta_mut(&mut self) -> &mut Meta {
        self.meta_changed = true;
        &mut self.meta
    }

    /// How many samples (of all channels) were taken in.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Takes in samples; with several channels they are interleaved, and only whole ones are allowed.
    pub fn write(&mut self, samples: &[Complex32]) -> Result<()> {
        let channels = self.meta.channels();
        if !samples.len().is_multiple_of(channels) {
            return Err(Error::parameter("samples", format!("a multiple of the {channels} channels"), samples.len()));
        }
        for chunk in samples.chunks(channels * (8192 / channels).max(1)) {
            self.saturated += self.meta.global.datatype.encode(chunk, &mut self.block);
            self.len += (chunk.len() / channels) as u64;
            if self.block.len() >= BLOCK {
                self.write_block()?;
                if self.meta_changed {
                    self.write_meta()?;
                }
            }
        }
        Ok(())
    }

    /// `length` samples between the last one and the next never arrived: starts a new capture.
    pub fn gap(&mut self, length: u64) -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        let captures = &mut self.meta.captures;
        let next = captures.partition_point(|c| c.sample_start <= self.len);
        // An index is counted on from the last capture that states one; without any it is the sample's own number.
        let counted = captures[..next].iter().rev().find_map(|c| c.global_index.map(|index| index + (self.len - c.sample_start)));
        let global_index = Some(counted.unwrap_or(self.len).saturating_add(length));
        match captures[..next].last_mut() {
            // Two gaps with nothing between are one.
            Some(last) if last.sample_start == self.len => last.global_index = global_index,
            last => {
                let frequency = last.and_then(|c| c.frequency);
                captures.insert(next, Capture { sample_start: self.len, global_index, frequency, ..Capture::default() });
            }
        }
        self.meta_changed = true;
        if self.meta.captures.len() <= MANY_CAPTURES { self.flush() } else { Ok(()) }
    }

    /// Brings everything so far to the files.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.write_block()?;
        if self.meta_changed { self.write_meta() } else { Ok(()) }
    }

    /// Completes the recording with the hash of its data and returns the final metadata.
    pub fn finish(mut self) -> Result<Meta> {
        self.write_block()?;
        self.meta.global.sha512 = Some(hex(self.hash.clone()));
        self.write_meta()?;
        self.finished = true;
        Ok(self.within_data())
    }

    fn write_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.data.write_all(&self.block) {
            // A full disk may have taken part of a sample: cut back to what was whole before.
            let frame = (self.meta.channels() * self.meta.global.datatype.bytes()) as u64;
            let lost = self.block.len() as u64 / frame;
            self.len -= lost;
            let _ = self.data.set_len(self.len * frame);
            self.block.clear();
            return Err(Error::io(&self.data_path, error));
        }
        self.hash.update(&self.block);
        self.block.clear();
        Ok(())
    }

    /// The metadata without what lies past the data written so far.
    fn within_data(&self) -> Meta {
        let mut meta = self.meta.clone();
        meta.captures.retain(|c| c.sample_start == 0 || c.sample_start <= self.len);
        meta.annotations.retain(|a| a.sample_start <= self.len);
        for annotation in &mut meta.annotations {
            annotation.sample_count = annotation.sample_count.map(|count| count.min(self.len - annotation.sample_start));
        }
        meta
    }

    fn write_meta(&mut self) -> Result<()> {
        files::write(&self.meta_path, self.within_data().to_json().as_bytes())?;
        self.meta_changed = false;
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.finished {
            // Whoever wants to hear of errors calls `finish`.
            let _ = self.flush();
        }
    }
}
