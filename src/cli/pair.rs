//! A pair of recordings as arguments, for commands that need both.

use std::path::{Path, PathBuf};

use super::recordings::RecordingArgs;
use super::run::input::{Align, Origin};
use super::typed::whole;

/// What was sent and what was received.
#[derive(clap::Args)]
pub(super) struct PairArgs {
    /// What was sent: SigMF, WAV, raw IQ; or a .sigmf-collection or folder that holds both
    pub(super) tx: PathBuf,
    /// What was received
    pub(super) rx: Option<PathBuf>,
    #[command(flatten)]
    pub(super) recordings: RecordingArgs,
    /// The channel of what was sent, from 0
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole::<usize>)]
    tx_channel: usize,
    /// auto finds the delay and the carrier offset, and follows them where they differ at the end, as follow always does; none takes the samples as they are; a number is the delay in samples
    #[arg(long, default_value = "auto", allow_hyphen_values = true)]
    pub(super) align: Align,
    /// Use the common part of recordings of different length
    #[arg(long)]
    trim: bool,
}

impl PairArgs {
    /// The recordings that are read.
    pub(super) fn files(&self) -> Vec<&Path> {
        std::iter::once(&self.tx).chain(&self.rx).map(PathBuf::as_path).collect()
    }

    pub(super) fn origin(&self) -> Origin {
        let (tx, rx, open) = (self.tx.clone(), self.rx.clone(), self.recordings.clone());
        Origin::Recordings { tx, rx, open, tx_channel: self.tx_channel, align: self.align, trim: self.trim }
    }
}
