//! `kaflow track`: any filters over a pair of recordings, or over the built-in test bed.

mod checkpoint;
mod constellation;
mod filters;
mod graph;
mod input;
mod learned;
#[cfg(feature = "soapy")]
pub(super) mod live;
mod pictures;
mod report;
mod streams;

use std::{net::SocketAddr, path::PathBuf, time::Instant};

use clap::Parser as _;

use super::parameters::Parameters;
use crate::{Error, Result, iq};
pub(crate) use input::Align;
use input::Input;
pub(crate) use streams::Source;

/// Track a channel: one-step-ahead predictions of what is received from what was sent.
///
/// With two recordings it aligns them, runs every filter side by side and reports how well each predicts. With none it runs the built-in test bed.
#[derive(clap::Args, Clone)]
pub(crate) struct Args {
    /// What was sent: SigMF, WAV, raw IQ; or a .sigmf-collection or folder that holds both
    tx: Option<PathBuf>,
    /// What was received
    rx: Option<PathBuf>,
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
    preset: Option<String>,
    /// Samples of the test bed
    #[arg(long, conflicts_with = "tx")]
    samples: Option<u64>,
    /// Seed of the test bed
    #[arg(long, conflicts_with = "tx")]
    seed: Option<u64>,
    /// A filter by name, any number of times, or all
    #[arg(long, value_name = "NAME")]
    filter: Vec<String>,
    /// Samples that the filters look at
    #[arg(long, default_value_t = 4)]
    taps: usize,
    /// How many of the taps reach ahead (default: what the alignment finds, half of them with --equalize)
    #[arg(long)]
    advance: Option<usize>,
    /// Parameters from a file, as tune writes it
    #[arg(long, value_name = "FILE.toml")]
    params: Option<PathBuf>,
    /// Leave the first N samples out of the average
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
    /// Predict what was sent from what was received
    #[arg(long)]
    equalize: bool,
    /// Threads (default: one for each core)
    #[arg(long)]
    threads: Option<usize>,
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write curves, pictures and a report into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write predictions and errors as SigMF into the folder of --out
    #[arg(long, requires = "out")]
    record: bool,
    /// Write the predictions of the one filter as raw cf32
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    /// Save the state of the run to this file, at intervals and at the end
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Samples between two savings
    #[arg(long, value_name = "N", default_value_t = 1 << 18, requires = "checkpoint")]
    checkpoint_every: u64,
    /// Go on from the checkpoint, as if never stopped
    #[arg(long, requires = "checkpoint")]
    resume: bool,
    /// A line a second: error, rate, dropped samples; and the control port
    #[arg(long)]
    watch: bool,
    /// Address of the control port (default with --watch: 127.0.0.1:1337)
    #[arg(long, value_name = "ADDRESS:PORT")]
    control: Option<SocketAddr>,
    /// Replace existing outputs
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    parameters: Parameters,
}

#[derive(clap::Parser)]
struct Bare {
    #[command(flatten)]
    args: Args,
}

impl Args {
    /// What they are when nothing is given.
    pub(crate) fn bare() -> Self {
        Bare::parse_from(["kaflow"]).args
    }
}

pub(crate) fn run(mut args: Args) -> Result<()> {
    if args.taps == 0 || args.taps > 4096 {
        return Err(Error::parameter("taps", "between 1 and 4096", args.taps));
    }
    // What can be refused is refused before anything is read or written.
    let choices = filters::choose(&args)?;
    choices.iter().try_for_each(|choice| choice.check())?;
    if args.predictions.is_some() && choices.len() != 1 {
        return Err(Error::parameter("predictions", "asked for with exactly one --filter", format!("{} filters", choices.len())));
    }
    if args.record && args.resume {
        return Err(Error::parameter("resume", "without --record: a SigMF recording is sealed when it is closed", "both"));
    }
    if let Some(threads) = args.threads.filter(|threads| !(1..=1024).contains(threads)) {
        return Err(Error::parameter("threads", "between 1 and 1024", threads));
    }
    if args.checkpoint_every == 0 {
        return Err(Error::parameter("checkpoint-every", "1 or more", 0));
    }
    default_folder(&mut args);
    check_outputs(&args)?;
    let mut input = Input::open(&args)?;
    let survey = input.survey(&args)?;
    if args.skip >= survey.total {
        return Err(Error::parameter("skip", format!("less than the {} samples there are", survey.total), args.skip));
    }
    let filters = filters::settle(&choices, &args, &survey)?;
    if let Some(out) = &args.out {
        std::fs::create_dir_all(out).map_err(|e| Error::io(out, e))?;
    }
    let started = Instant::now();
    let outcome = graph::run(&args, input, &survey, filters)?;
    report::write(&args, &survey, &outcome, started.elapsed())
}

/// Without files and without any wish for output there is still something to look at.
fn default_folder(args: &mut Args) {
    let wishes = [&args.json, &args.out, &args.predictions, &args.checkpoint];
    if args.tx.is_none() && wishes.iter().all(|wish| wish.is_none()) {
        let names = std::iter::once("kaflow-track".to_owned()).chain((2..).map(|n| format!("kaflow-track-{n}")));
        args.out = names.map(PathBuf::from).find(|path| args.force || !path.exists());
    }
}

fn check_outputs(args: &Args) -> Result<()> {
    let resumed = [&args.predictions, &args.checkpoint].into_iter().filter(|_| !args.resume);
    for path in resumed.chain([&args.json]).flatten() {
        // A run of hours must not end at a folder that is not there.
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
            return Err(Error::file(path, "output", format!("there is no folder {}", folder.display())));
        }
        crate::files::check_free(path, args.force)?;
    }
    if let Some(out) = &args.out {
        report::check_folder(out, args.force || args.resume)?;
    }
    Ok(())
}
