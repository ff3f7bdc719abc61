//! `kaflow cancel`: takes what is known out of a recording.

mod report;

use std::path::PathBuf;
use std::time::Duration;

use super::outputs::Outputs;
use super::pair::PairArgs;
use super::run::arguments::FilterArgs;
use super::run::filters;
use super::run::input::{self, Align};
use super::typed::whole;
use super::{interrupt, progress};
use crate::blocks::Track;
use crate::flowgraphs::cancel::{self as graph, Job};
use crate::flowgraphs::track::{Source, Watch};
use crate::iq::{Datatype, Recording, Writer};
use crate::{Error, Result, files};

/// Cancel what is known of a recording: self-interference (SIC) of a full-duplex radio, the leakage of a transmitter or of a converter next door.
///
/// TX is the known signal, RX what was received with it; both from one clock. Writes what remains as SigMF, with RX's rate, captures and annotations, sample by sample
/// in its place; dB of cancellation in total and in the band of TX, over all samples and over the last half of them, when it has learned; of these also over frequency, with spectra
/// before and after. What else RX holds, a wanted signal, stays: it is noise to the canceller, which learns the less the stronger it is.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pair: PairArgs,
    /// Write what remains, spectra and a picture into this folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write the numbers as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace existing outputs
    #[arg(long)]
    force: bool,
    /// Leave the first N samples out of the figures: the canceller learns there
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole::<u64>)]
    skip: u64,
    /// Learn from the first N samples alone
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    frozen_after: Option<u64>,
    /// The wanted signal in RX, sample by sample, where it is known, as in a simulation: measures SINR
    #[arg(long, value_name = "FILE")]
    wanted: Option<PathBuf>,
    #[command(flatten)]
    filters: FilterArgs,
}

/// What cancels when nobody says.
const DEFAULT: [&str; 1] = ["canceller"];
/// How far ahead its window reaches then: a receiver's filters ring before and after, and what lies halfway between samples is found from both sides.
const ADVANCE: usize = 8;
/// The name of what remains.
const CLEANED: &str = "cleaned";

pub(crate) fn run(mut args: Args) -> Result<()> {
    if args.filters.advance.is_none() && args.filters.filter.iter().all(|name| DEFAULT.contains(&name.as_str())) {
        (args.filters.advance, args.filters.taps) = (Some(ADVANCE), args.filters.taps.max(Some(ADVANCE + 1)));
    }
    let choices = filters::choose(&args.filters.wanted(&DEFAULT, None)?, "filter", &filters::streams())?;
    let [choice] = &choices[..] else {
        return Err(Error::parameter("filter", "one filter", format!("{} filters", choices.len())));
    };
    let written = report::files(&args.out).into_iter().chain(args.json.clone()).collect();
    let recordings = args.pair.files().into_iter().chain(args.wanted.as_deref()).collect();
    Outputs { recordings, files: written, folder: Some(&args.out), force: args.force, ..Outputs::default() }.check()?;
    if args.pair.align == Align::Follow {
        return Err(Error::parameter("align", "auto, none or a delay: what remains stands sample by sample where RX was", "follow"));
    }
    let (source, survey) = input::open(&args.pair.origin(), args.filters.sight(false)?)?;
    let Source::Recordings(tx, rx, _) = source else {
        return Err(Error::Data("TX is one frame that was repeated: cancel needs all that was sent, as long as RX".into()));
    };
    // The streams keep their samples: a fraction of a delay is the canceller's business.
    let delay = survey.late;
    survey.row(args.skip)?;
    if let Some(cfo) = survey.alignment.map(|a| a.cfo).filter(|cfo| cfo.abs() * survey.total as f64 > 0.5) {
        note!("a carrier offset of {cfo:.2e} cycles a sample stays in: cancelling works best where both have one clock");
    }
    let wanted = args.wanted.as_ref().map(|path| args.pair.recordings.open(path, 0)).transpose()?;
    if let Some(wanted) = wanted.as_ref().filter(|wanted| wanted.len() != rx.len()) {
        let problem = format!("has {} samples and RX has {}: it must be what of RX is wanted, sample by sample", wanted.len(), rx.len());
        return Err(Error::file(wanted.data_path(), "samples", problem));
    }
    let (settings, tracker) = choice.settle((&survey).into())?;
    files::make_folder(&args.out)?;
    let mut meta = rx.meta().clone();
    meta.global.datatype = Datatype::CF32_LE;
    meta.global.num_channels = None;
    let cleaned = Writer::create(args.out.join(CLEANED), meta, args.force)?;
    let mut canceller = Track::new(tracker).metrics_every((survey.total / 400).clamp(16, 4096), args.skip);
    if let Some(samples) = args.frozen_after {
        canceller = canceller.frozen_after(samples);
    }
    let originals = (tx.reopen()?, rx.reopen()?);
    let bar = progress::bar(survey.total, "cancelling");
    let watch = Watch { every: Duration::from_millis(100), ..Watch::new(interrupt::watch()) };
    let outcome = graph::run(Job { tx, rx, delay, advance: survey.advance, canceller, cleaned }, &watch, |view| {
        view.filters.iter().for_each(|f| bar.set_position(f.probe.read().samples));
    })?;
    bar.finish_and_clear();
    if let Some(fault) = outcome.fault {
        return Err(fault);
    }
    let cleaned = Recording::open(args.out.join(CLEANED).with_extension("sigmf-meta"), None)?;
    let head = delay.max(0).unsigned_abs();
    let summary = &outcome.filters[0].1;
    let streams = report::Streams {
        tx: originals.0,
        rx: originals.1,
        cleaned,
        wanted,
        from: head + args.skip,
        until: head + summary.series.samples(),
    };
    let facts = report::Facts {
        filter: settings.recipe().name,
        delay,
        advance: survey.advance,
        sample_rate: survey.sample_rate,
        interrupted: outcome.interrupted,
    };
    report::write(&args, &facts, summary, streams)
}
