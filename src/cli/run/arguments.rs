//! Groups of arguments that several commands have, and the plain configurations that they stand for.

use std::path::PathBuf;

use super::filters::Wanted;
use super::input::{Align, Origin};
use crate::channel::Scenario;
use crate::cli::parameters::Parameters;
use crate::{Error, Result, iq};

/// Where the streams come from.
#[derive(clap::Args)]
pub(in crate::cli) struct InputArgs {
    /// What was sent: SigMF, WAV, raw IQ; or a .sigmf-collection or folder that holds both
    pub(in crate::cli) tx: Option<PathBuf>,
    /// What was received
    pub(in crate::cli) rx: Option<PathBuf>,
    /// Format of raw recordings: cf32_le, ci16_le, cu8, ...
    #[arg(long)]
    format: Option<iq::Format>,
    /// auto finds the delay and the carrier offset; none takes the samples as they are; a number is the delay in samples
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
    /// The files that are read: of a SigMF recording both.
    pub(in crate::cli) fn files(&self) -> Vec<PathBuf> {
        let named = self.tx.iter().chain(&self.rx);
        named.flat_map(|path| [path.clone(), path.with_extension("sigmf-meta"), path.with_extension("sigmf-data")]).collect()
    }

    /// The recordings, or the test bed as `adjust` wants it.
    pub(in crate::cli) fn origin(&self, adjust: impl FnOnce(&mut Scenario)) -> Result<Origin> {
        let (align, trim, format) = (self.align, self.trim, self.format);
        Ok(match (&self.tx, &self.rx) {
            (None, _) => {
                let mut scenario = Scenario::preset(self.preset.as_deref().unwrap_or("paper"))?;
                adjust(&mut scenario);
                Origin::Bed(Box::new(scenario))
            }
            (Some(tx), rx) => Origin::Recordings { tx: tx.clone(), rx: rx.clone(), format, align, trim },
        })
    }
}

/// Which filters run.
#[derive(clap::Args)]
pub(in crate::cli) struct FilterArgs {
    /// A filter by name, any number of times, or all
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) filter: Vec<String>,
    /// Samples that the filters look at
    #[arg(long, default_value_t = 4)]
    pub(in crate::cli) taps: usize,
    /// How many of the taps reach ahead (default: what the alignment finds, half of them with --equalize)
    #[arg(long)]
    pub(in crate::cli) advance: Option<usize>,
    #[command(flatten)]
    pub(in crate::cli) parameters: Parameters,
}

impl FilterArgs {
    /// What is asked for, `default` where nothing is; with the parameters of a file.
    pub(in crate::cli) fn wanted<'a>(&'a self, default: &'a [&'static str], file: Option<&'a PathBuf>) -> Result<Wanted<'a>> {
        if self.taps == 0 || self.taps > 4096 {
            return Err(Error::parameter("taps", "between 1 and 4096", self.taps));
        }
        if let Some(advance) = self.advance.filter(|&advance| advance >= self.taps) {
            return Err(Error::parameter("advance", format!("less than the {} taps", self.taps), advance));
        }
        let names = if self.filter.is_empty() { default.to_vec() } else { self.filter.iter().map(String::as_str).collect() };
        Ok(Wanted { names, given: &self.parameters.0, file: file.map(PathBuf::as_path), taps: self.taps })
    }
}

/// Where the results go.
#[derive(clap::Args, Clone)]
pub(in crate::cli) struct OutputArgs {
    /// Leave the first N samples out of the average
    #[arg(long, value_name = "N", default_value_t = 0)]
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
