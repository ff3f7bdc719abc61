//! `kaflow reproduce`: the figures of the paper, out of this program.

mod fig2;
mod fig3;
mod fig4;
mod fig5;
mod receiver;
mod report;
mod steady;

use std::path::PathBuf;

use clap::ValueEnum;

use serde_json::{Map, json};

use super::outputs::{self, Outputs};
use super::{interrupt, typed::whole};
use crate::{Error, Result, files};
use report::Report;
pub(super) use report::mean_and_error;

/// Reproduce the figures of Park, Seth, Van Vaerenbergh, "Bayesian Extensions of Kernel Least Mean Squares".
///
/// Each figure becomes a picture (SVG and PNG), its numbers (CSV and JSON), and a table beside the reference values. Ctrl-C keeps what is finished.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which figure
    #[arg(value_enum)]
    figure: Which,
    /// What was sent, for fig5 on recordings instead of the test bed
    #[arg(requires = "rx")]
    tx: Option<PathBuf>,
    /// What was received
    rx: Option<PathBuf>,
    /// Folder for pictures and numbers; made where it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write the tables of all figures as one JSON file too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Simulations to average (default: as many as the paper: 2000 for fig2, 11 for fig3; 20 for fig4 and 10 for fig5)
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    runs: Option<usize>,
    /// Packets for each point of receiver (default: 200)
    #[arg(long, value_name = "N", value_parser = whole::<usize>, conflicts_with = "runs")]
    packets: Option<usize>,
    /// Seed of the simulations
    #[arg(long, default_value = "1", value_parser = whole::<u64>)]
    seed: u64,
    /// A tenth of the simulations
    #[arg(long)]
    quick: bool,
    #[arg(long = "tx", hide = true, conflicts_with = "tx", requires = "rx_option")]
    tx_option: Option<PathBuf>,
    #[arg(long = "rx", hide = true, requires = "tx_option")]
    rx_option: Option<PathBuf>,
    /// Replace results that are there already
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Tracking a spatio-temporal Gaussian process: KLMS, QKLMS, NORMA, fKLMS and their bounds
    Fig2,
    /// Poisson observations of a drifting tuning curve
    Fig3,
    /// Bernoulli observations of a moving disc
    Fig4,
    /// Tracking a saturated fading channel, and the taps of a MIMO system
    Fig5,
    /// The steady-state tracking error against its formula
    Steady,
    /// Packets through a saturated amplifier: one tap a carrier against detectors that know its curve; not of the paper
    Receiver,
    /// All figures of the paper
    All,
}

/// How large a study is.
struct Size {
    runs: Option<usize>,
    seed: u64,
    quick: bool,
    /// Sent and received, in place of the test bed.
    recordings: Option<(PathBuf, PathBuf)>,
}

impl Size {
    fn runs(&self, full: usize) -> usize {
        self.runs.unwrap_or(if self.quick { full.div_ceil(10).max(3) } else { full })
    }
}

/// Does the work of one figure.
type Study = fn(&Size, &mut Report) -> Result<()>;

pub(crate) fn run(args: Args) -> Result<()> {
    let most = 10_000_000;
    for (name, number) in [("runs", args.runs), ("packets", args.packets)] {
        if let Some(number) = number.filter(|n| !(1..=most).contains(n)) {
            return Err(Error::parameter(name, format!("between 1 and {most}"), number));
        }
    }
    let recordings = args.tx.clone().zip(args.rx.clone()).or(args.tx_option.clone().zip(args.rx_option.clone()));
    if args.packets.is_some() && args.figure != Which::Receiver {
        return Err(Error::parameter("packets", "left out: only receiver counts them", "a number"));
    }
    if recordings.is_some() && !matches!(args.figure, Which::Fig5 | Which::All) {
        return Err(Error::parameter("tx", "left out: only fig5 takes recordings", "a recording"));
    }
    let size = Size { runs: args.runs.or(args.packets), seed: args.seed, quick: args.quick, recordings };
    let studies: [(Which, &str, Study); 6] = [
        (Which::Fig2, "fig2", fig2::run),
        (Which::Fig3, "fig3", fig3::run),
        (Which::Fig4, "fig4", fig4::run),
        (Which::Fig5, "fig5", fig5::run),
        (Which::Steady, "steady", steady::run),
        (Which::Receiver, "receiver", receiver::run),
    ];
    let chosen = || studies.iter().filter(|(which, ..)| args.figure == *which || args.figure == Which::All && *which != Which::Receiver);
    // All refusals come before the first minute of work.
    let files = chosen().flat_map(|(_, name, _)| Report::new(&args.out, name).files()).chain(args.json.clone()).collect();
    let inputs = size.recordings.iter().flat_map(|(tx, rx)| [tx.as_path(), rx.as_path()]).collect();
    Outputs { recordings: inputs, files, folder: Some(&args.out), force: args.force, ..Outputs::default() }.check()?;
    files::make_folder(&args.out)?;
    let (mut tables, mut results) = (Map::new(), Vec::new());
    for (_, name, study) in chosen() {
        if interrupt::requested() {
            break;
        }
        let mut report = Report::new(&args.out, name);
        // What one figure cannot be made or written of does not stop the others.
        results.push(study(&size, &mut report));
        results.extend(report.failures.into_iter().map(Err));
        tables.insert((*name).to_owned(), report.table);
    }
    if let Some(path) = &args.json {
        results.push(super::json::write(path, "reproduce", json!({ "studies": tables })));
    }
    if interrupt::requested() {
        note!("interrupted; what was finished is in {}", args.out.display());
    }
    outputs::all(results)
}
