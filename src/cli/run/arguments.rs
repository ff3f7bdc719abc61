//! Groups of arguments that several commands have, and the plain configurations that they stand for.

use std::path::{Path, PathBuf};

use super::filters::Wanted;
use super::input::{Align, Origin, Sight, TAPS};
use crate::channel::Scenario;
use crate::cli::{parameters::Parameters, recordings::RecordingArgs, typed::whole};
use crate::{Error, Result};

/// Where the streams come from.
#[derive(clap::Args)]
pub(in crate::cli) struct InputArgs {
    /// What was sent: SigMF, WAV, raw IQ; or a .sigmf-collection or folder that holds both
    pub(in crate::cli) tx: Option<PathBuf>,
    /// What was received
    pub(in crate::cli) rx: Option<PathBuf>,
    #[command(flatten)]
    recordings: RecordingArgs,
    /// The channel of what was sent, from 0
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole::<usize>)]
    tx_channel: usize,
    /// auto finds the delay and the carrier offset, and follows them where they differ at the end; follow always follows, two clocks and lost samples too; none takes the samples as they are; a
    /// number is the delay in samples
    #[arg(long, default_value = "auto", allow_hyphen_values = true)]
    align: Align,
    /// Use the common part of recordings of different length
    #[arg(long)]
    trim: bool,
    /// Preset of the test bed: paper, wifi, a, b, d, e
    #[arg(long, conflicts_with = "tx")]
    pub(in crate::cli) preset: Option<String>,
    /// Predict what was sent from what was received
    #[arg(long)]
    pub(in crate::cli) equalize: bool,
}

impl InputArgs {
    /// The recordings that are read.
    pub(in crate::cli) fn files(&self) -> Vec<&Path> {
        self.tx.iter().chain(&self.rx).map(PathBuf::as_path).collect()
    }

    /// The recordings, or the test bed as `adjust` wants it.
    pub(in crate::cli) fn origin(&self, adjust: impl FnOnce(&mut Scenario)) -> Result<Origin> {
        let (align, trim, open, tx_channel) = (self.align, self.trim, self.recordings.clone(), self.tx_channel);
        Ok(match (&self.tx, &self.rx) {
            (None, _) => {
                let mut scenario = Scenario::preset(self.preset.as_deref().unwrap_or("paper"))?;
                adjust(&mut scenario);
                Origin::Bed(Box::new(scenario))
            }
            (Some(tx), rx) => Origin::Recordings { tx: tx.clone(), rx: rx.clone(), open, tx_channel, align, trim },
        })
    }
}

/// Which filters run.
#[derive(clap::Args)]
pub(in crate::cli) struct FilterArgs {
    /// Filters by name with commas between, or all
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(in crate::cli) filter: Vec<String>,
    /// Samples that the filters look at (default: 4, more where the alignment of two recordings finds more echoes)
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    pub(in crate::cli) taps: Option<usize>,
    /// How many samples past the predicted one the taps reach (default: what the alignment finds, half of the taps with --equalize)
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    pub(in crate::cli) advance: Option<usize>,
    #[command(flatten)]
    pub(in crate::cli) parameters: Parameters,
}

impl FilterArgs {
    /// What is asked for, `default` where nothing is; with the parameters of a file.
    pub(in crate::cli) fn wanted<'a>(&'a self, default: &'a [&'static str], file: Option<&'a PathBuf>) -> Result<Wanted<'a>> {
        let taps = self.sight(false)?.taps.unwrap_or(TAPS);
        let names = if self.filter.is_empty() { default.to_vec() } else { self.filter.iter().map(String::as_str).collect() };
        Ok(Wanted { names, given: &self.parameters.0, file: file.map(PathBuf::as_path), taps })
    }

    /// What they see of the streams.
    pub(in crate::cli) fn sight(&self, equalize: bool) -> Result<Sight> {
        Sight::new(self.taps, self.advance, equalize)
    }
}

/// How many cores a run may have.
#[derive(clap::Args)]
pub(in crate::cli) struct ThreadArgs {
    /// Threads (default: one for each core, less what a radio's driver needs)
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(in crate::cli) threads: Option<usize>,
}

fn threads(text: &str) -> Result<usize> {
    whole::<usize>(text)
        .ok()
        .filter(|threads| (1..=1024).contains(threads))
        .ok_or_else(|| Error::parameter("threads", "between 1 and 1024", text))
}

/// Where the results go.
#[derive(clap::Args, Clone)]
pub(in crate::cli) struct OutputArgs {
    /// Leave the first N samples out of the average
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole::<u64>)]
    pub(in crate::cli) skip: u64,
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) json: Option<PathBuf>,
    /// Write curves, pictures and a report into this folder
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Replace existing outputs
    #[arg(long)]
    pub(in crate::cli) force: bool,
}
