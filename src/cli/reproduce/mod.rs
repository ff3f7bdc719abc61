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

use super::interrupt;
use crate::{Error, Result};
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
    /// Folder for pictures and numbers; made where it is missing
    #[arg(long)]
    out: PathBuf,
    /// Simulations to average (default: as many as the paper: 2000 for fig2, 11 for fig3; 20 for fig4 and 10 for fig5)
    #[arg(long)]
    runs: Option<usize>,
    /// Packets for each point of receiver (default: 200)
    #[arg(long, conflicts_with = "runs")]
    packets: Option<usize>,
    /// Seed of the simulations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A tenth of the simulations
    #[arg(long)]
    quick: bool,
    /// What was sent, for fig5 on recordings instead of the test bed
    #[arg(long, requires = "rx")]
    tx: Option<PathBuf>,
    /// What was received
    #[arg(long, requires = "tx")]
    rx: Option<PathBuf>,
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
    if args.runs == Some(0) {
        return Err(Error::parameter("runs", "at least 1", 0));
    }
    if args.packets == Some(0) {
        return Err(Error::parameter("packets", "at least 1", 0));
    }
    if args.packets.is_some() && args.figure != Which::Receiver {
        return Err(Error::parameter("packets", "left out: only receiver counts them", "a number"));
    }
    if args.tx.is_some() && !matches!(args.figure, Which::Fig5 | Which::All) {
        return Err(Error::parameter("tx", "left out: only fig5 takes recordings", "a recording"));
    }
    if args.out.exists() && !args.out.is_dir() {
        return Err(Error::file(&args.out, "output", "is a file; name a folder"));
    }
    std::fs::create_dir_all(&args.out).map_err(|e| Error::io(&args.out, e))?;
    let size =
        Size { runs: args.runs.or(args.packets), seed: args.seed, quick: args.quick, recordings: args.tx.clone().zip(args.rx.clone()) };
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
    for (_, name, _) in chosen() {
        Report::new(&args.out, name, args.force)?;
    }
    for (_, name, study) in chosen() {
        if interrupt::requested() {
            break;
        }
        study(&size, &mut Report::new(&args.out, name, args.force)?)?;
    }
    if interrupt::requested() {
        eprintln!("kaflow: interrupted; what was finished is in {}", args.out.display());
    }
    Ok(())
}
