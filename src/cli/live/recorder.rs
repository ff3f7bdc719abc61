//! What a live run records: what was received, as it was received, and the frame that was sent.

use std::path::Path;
use std::time::SystemTime;

use num_complex::Complex32;
use serde_json::{Map, Value};

use crate::blocks::IqSink;
use crate::cli::run::input::{REPEATED, WAVEFORM};
use crate::iq::{
    Datatype, Pair, Writer,
    sigmf::{Meta, datetime},
};
use crate::{Result, ofdm};

/// Where the recordings go, and what they say of themselves.
pub(super) struct Recorder<'a> {
    pub(super) folder: &'a Path,
    pub(super) facts: &'a [(&'static str, Value)],
    pub(super) frequency: f64,
    pub(super) rate: f64,
    pub(super) force: bool,
}

impl Recorder<'_> {
    fn meta(&self) -> Meta {
        let mut meta = Meta::new(Datatype::CF32_LE, Some(self.rate));
        let extra = &mut meta.global.extra;
        extra.insert("core:recorder".into(), format!("kaflow {}", env!("CARGO_PKG_VERSION")).into());
        for (name, fact) in self.facts {
            let key = if *name == "device" { "core:hw".into() } else { format!("kaflow:{name}") };
            extra.insert(key, fact.clone());
        }
        meta.captures.iter_mut().for_each(|capture| capture.frequency = Some(self.frequency));
        meta
    }

    /// Writes the received stream: a capture for each stretch without a gap, each with its time; brought to disk twice a second.
    pub(super) fn received(&self) -> Result<IqSink> {
        let writer = Writer::create(self.folder.join("rx"), self.meta(), self.force)?;
        Ok(IqSink::new(writer).dated(SystemTime::now()).flush_every((self.rate / 2.0).max(1.0) as u64, 0, |_| Ok(())))
    }

    /// Writes the frame, which says that it is repeated.
    pub(super) fn sent(&self, frame: &[Complex32], waveform: Option<&ofdm::Config>) -> Result<()> {
        let mut meta = self.meta();
        meta.global.extra.insert(REPEATED.into(), true.into());
        if let Some(waveform) = waveform.and_then(|config| serde_json::to_value(config).ok()) {
            meta.global.extra.insert(WAVEFORM.into(), waveform);
        }
        let mut writer = Writer::create(self.folder.join("tx"), meta, self.force)?;
        writer.write(frame)?;
        writer.finish().map(drop)
    }

    /// Ties the recordings of a run that ended in order together.
    pub(super) fn tie(&self) -> Result<()> {
        let path = |name: &str| self.folder.join(name);
        Pair::tie(path("pair"), path("tx"), path("rx"), None, Map::new(), self.force).map(drop)
    }
}

/// Writes what is left of the received stream without our own signal.
pub(super) fn cancelled(path: &Path, rate: f64, frequency: f64, force: bool) -> Result<IqSink> {
    let mut meta = Meta::new(Datatype::CF32_LE, Some(rate));
    meta.global.description = Some("what is received, without what was sent: by kaflow live --cancel".into());
    meta.captures.iter_mut().for_each(|capture| capture.frequency = Some(frequency));
    Ok(IqSink::new(Writer::create(path, meta, force)?).flush_every((rate / 2.0).max(1.0) as u64, 0, |_| Ok(())))
}

/// Now, in ISO 8601 and UTC.
pub(super) fn now() -> String {
    datetime(SystemTime::now())
}
