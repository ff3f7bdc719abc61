//! Recordings as commands open them.

use std::path::{Path, PathBuf};

use super::typed::whole;
use crate::iq::{Format, Raw, Recording};
use crate::{Error, Result};

/// What a file of bare samples does not say of itself, and which of its channels is meant.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct RecordingArgs {
    /// What the recordings are: sigmf, archive, wav, or the datatype of raw samples: cf32_le, ci16_le, cu8, ... (default: by their ending)
    #[arg(long)]
    pub(crate) format: Option<Format>,
    /// Samples per second of raw samples
    #[arg(long, value_name = "HZ", alias = "sample-rate", allow_negative_numbers = true)]
    pub(crate) rate: Option<f64>,
    /// Interleaved channels of raw samples
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    pub(crate) channels: Option<usize>,
    /// The channel that is looked at, from 0: of what was received, where there are two recordings
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole::<usize>)]
    pub(crate) channel: usize,
}

impl RecordingArgs {
    /// Opens a recording and chooses one of its channels.
    pub(crate) fn open(&self, path: &Path, channel: usize) -> Result<Recording> {
        let format = match self.format.or_else(|| Format::of(path)) {
            Some(Format::Raw(raw)) => Some(Format::Raw(Raw {
                sample_rate: self.rate.or(raw.sample_rate),
                channels: self.channels.unwrap_or(raw.channels),
                ..raw
            })),
            other if self.rate.is_some() || self.channels.is_some() => {
                let name = if self.rate.is_some() { "rate" } else { "channels" };
                let format = other.map_or("this file".into(), |format| format.to_string());
                return Err(Error::parameter(name, format!("left out: {format} says so itself"), "a value"));
            }
            other => other,
        };
        let mut recording = Recording::open_as(path, format)?;
        recording.select(channel)?;
        detail!("{}: {}, {} samples, channel {channel} of {}", path.display(), recording.format(), recording.len(), recording.channels());
        Ok(recording)
    }
}

/// Refuses a recording that says of itself that it cannot be read without something that is not known here.
pub(crate) fn understood(recording: Recording) -> Result<Recording> {
    match recording.unknown_extension() {
        None => Ok(recording),
        Some(name) => {
            let problem = format!(
                "'{name}' is needed to understand the recording and not known here; where the samples can be read without it, make it optional"
            );
            let path: PathBuf = recording.data_path().into();
            Err(Error::file(path, "global core:extensions", problem))
        }
    }
}
