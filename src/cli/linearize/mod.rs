//! `kaflow linearize`: digital predistortion from a recorded pair.

pub(super) mod report;

use std::path::PathBuf;
use std::str::FromStr;

use super::outputs::Outputs;
use super::pair::PairArgs;
use super::run::input::{self, Sight};
use super::typed::whole;
use crate::dpd::{Learner, Model, Options, Path, Table, predistort};
use crate::dsp::{db, wide};
use crate::flowgraphs::track::Source;
use crate::iq::{Pairs, Recording};
use crate::metrics::{Band, Linearity, linearity};
use crate::{Complex64, Error, Result, files};

/// Linearise a power amplifier: learn it from a recorded pair and write the digital predistorter (DPD).
///
/// TX is what was sent to the PA, RX what came back: through a coupler, or over the air, where the PA is learned behind a fading channel. Writes the predistorter as
/// predistorter.toml and predistorter.csv (a table of complex gains over the envelope for each memory term), TX predistorted as SigMF, and pictures of AM/AM, AM/PM
/// and spectra. ACLR, EVM and NMSE after predistortion are those expected by the learned model: send the predistorted copy, record again, and measure with --check.
/// Then learn again from what was sent, with --signal for the undistorted signal: the second round knows the PA at the higher peaks.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pair: PairArgs,
    /// Only measure ACLR, EVM and NMSE of the pair
    #[arg(long)]
    check: bool,
    /// Write the predistorter, the predistorted signal and pictures into this folder
    #[arg(long, value_name = "DIR", required_unless_present = "check", conflicts_with = "check")]
    out: Option<PathBuf>,
    /// Write the numbers as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace existing outputs
    #[arg(long)]
    force: bool,
    /// The signal to come out undistorted, where TX was predistorted already (default: TX)
    #[arg(long, value_name = "FILE")]
    signal: Option<PathBuf>,
    /// Use at most so many samples
    #[arg(long, value_name = "N", default_value = "200000", value_parser = whole::<usize>)]
    samples: usize,
    #[command(flatten, next_help_heading = "Predistorter")]
    dpd: Dpd,
    #[command(flatten, next_help_heading = "ACLR")]
    channel: Channel,
}

#[derive(clap::Args)]
struct Dpd {
    /// How it came back: coupler, air (over a fading channel), or auto
    #[arg(long, default_value = "auto")]
    path: Way,
    /// forward inverts a model of the PA; indirect fits the inverse itself (ILA), for good couplers
    #[arg(long, default_value = "forward")]
    method: Method,
    /// Samples that the PA remembers
    #[arg(long, value_name = "N", default_value = "3", value_parser = whole::<usize>)]
    memory: usize,
    /// How far the predistorter may raise the peaks of the signal, in dB
    #[arg(long, value_name = "DB", default_value_t = 2.0)]
    peak_growth: f64,
    /// How much weaker than without the signal comes out, in dB: room for peaks
    #[arg(long, value_name = "DB", default_value_t = 0.1)]
    back_off: f64,
    /// Taps of the channel over the air
    #[arg(long, value_name = "N", default_value = "8", value_parser = whole::<usize>)]
    taps: usize,
}

#[derive(clap::Args)]
struct Channel {
    /// Integration bandwidth in Hz, or in cycles a sample where the recordings have no rate (default: what the signal occupies)
    #[arg(long)]
    bandwidth: Option<f64>,
    /// Distance of the adjacent channels in the same unit (default: 1.02 times the bandwidth)
    #[arg(long)]
    spacing: Option<f64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Auto,
    Coupler,
    Air,
}

impl FromStr for Way {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "coupler" => Ok(Self::Coupler),
            "air" => Ok(Self::Air),
            _ => Err(Error::unknown("path", text, ["auto", "coupler", "air"])),
        }
    }
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Method {
    Forward,
    Indirect,
}

/// A recorded pair in step.
struct Pair {
    sent: Vec<Complex64>,
    received: Vec<Complex64>,
    /// Before which pairs there is a gap.
    breaks: Vec<usize>,
    rate: Option<f64>,
    advance: usize,
}

/// What was learned, and what is expected of it.
struct Learned {
    pair: Linearity,
    before: Linearity,
    after: Linearity,
    /// How much of what came back the model explains.
    model_db: f64,
    path: Path,
    /// Peak and mean power of what is sent over those of the signal, in dB.
    peak_growth_db: f64,
    power_db: f64,
    /// Mean power that comes out, over that without predistortion.
    output_db: f64,
    table: Table,
    model: Model,
    signal: Vec<Complex64>,
    predistorted: Vec<Complex64>,
}

/// Pairs that are enough to learn from.
const LEAST: usize = 2048;

pub(crate) fn run(args: Args) -> Result<()> {
    let files = args.out.iter().flat_map(|out| report::files(out)).chain(args.json.clone()).collect();
    let recordings = args.pair.files().into_iter().chain(args.signal.as_deref()).collect();
    Outputs { recordings, files, folder: args.out.as_deref(), force: args.force, ..Outputs::default() }.check()?;
    let pair = read(&args)?;
    let scale = pair.rate.unwrap_or(1.0);
    let band = |signal: &[Complex64]| Band::of(signal, args.channel.bandwidth.map(|w| w / scale), args.channel.spacing.map(|s| s / scale));
    if args.check {
        let band = band(&pair.sent)?;
        return report::check(&args, &linearity(&pair.sent, &pair.received, band)?, band, &pair);
    }
    let signal = match &args.signal {
        Some(path) => args.pair.recordings.open(path, 0)?.read_up_to(args.samples)?.into_iter().map(wide).collect(),
        None => pair.sent.clone(),
    };
    let band = band(&signal)?;
    let learned = learn(&args.dpd, &pair, signal, band)?;
    args.out.as_deref().map_or(Ok(()), files::make_folder)?;
    report::write(&args, &learned, band, &pair)
}

/// The pair in step, at most as many samples as asked for.
fn read(args: &Args) -> Result<Pair> {
    let sight = Sight { taps: Some(args.dpd.taps.clamp(1, 64)), advance: None, equalize: false };
    let (source, survey) = input::open(&args.pair.origin(), sight)?;
    let (tx, mut rx, mut sync) = match source {
        Source::Recordings(tx, rx, sync) => (Some(tx), rx, sync),
        Source::Repeated(sync, rx) => (None, rx, sync),
        _ => return Err(Error::Data("a pair of recordings is needed".into())),
    };
    if let Some(mut tx) = tx {
        feed(&mut tx, args.samples, |samples, gap| sync.send(samples, gap))?;
    }
    feed(&mut rx, args.samples, |samples, gap| sync.receive(samples, gap))?;
    let mut pairs = Pairs::default();
    sync.finish(&mut pairs)?;
    if pairs.tx.len() < LEAST {
        return Err(Error::Data(format!("{} pairs of samples are too short to learn a PA: at least {LEAST} are needed", pairs.tx.len())));
    }
    let wide = |samples: Vec<_>| samples.into_iter().map(wide).collect::<Vec<_>>();
    Ok(Pair {
        sent: wide(pairs.tx),
        received: wide(pairs.rx),
        breaks: pairs.gaps.iter().map(|gap| gap.0).collect(),
        rate: survey.sample_rate,
        advance: survey.advance,
    })
}

/// Reads up to `most` samples, piece by piece, with the gaps before them.
fn feed(recording: &mut Recording, most: usize, mut take: impl FnMut(&[crate::Complex32], Option<u64>)) -> Result<()> {
    let mut left = most;
    let mut piece = vec![crate::Complex32::default(); 1 << 16];
    while left > 0 {
        let gap = recording.gap().map(|gap| gap.length);
        let n = left.min(piece.len());
        let n = recording.read(&mut piece[..n])?;
        if n == 0 {
            break;
        }
        take(&piece[..n], gap);
        left -= n;
    }
    Ok(())
}

fn learn(dpd: &Dpd, pair: &Pair, signal: Vec<Complex64>, band: Band) -> Result<Learned> {
    let path = match dpd.path {
        Way::Coupler => Path::Coupler,
        found => match Path::find(&pair.sent, &pair.received, dpd.taps, pair.advance) {
            Path::Coupler if found == Way::Air => Path::Air { taps: dpd.taps, advance: pair.advance, block: 8000.max(16 * dpd.taps) },
            path => path,
        },
    };
    if dpd.method == Method::Indirect && path != Path::Coupler {
        return Err(Error::parameter(
            "method",
            "forward over the air: indirect learning would take the channel for a part of the PA",
            "indirect",
        ));
    }
    let peak = signal.iter().map(|z| z.norm()).filter(|r| r.is_finite()).fold(0.0, f64::max);
    if !(0.0..=20.0).contains(&dpd.peak_growth) {
        return Err(Error::parameter("peak-growth", "between 0 and 20 dB", dpd.peak_growth));
    }
    let level = peak * 10f64.powf(dpd.peak_growth / 20.0);
    let mut learner = Learner::new(Options { memory: dpd.memory, path, ..Options::default() }, &signal, level)?;
    // Over the air the channel is found with the amplifier as it is known: better the second time.
    for _ in 0..if path == Path::Coupler { 1 } else { 3 } {
        learner.forget(0.0);
        let ends = pair.breaks.iter().copied().chain([pair.sent.len()]);
        let mut from = 0;
        for end in ends {
            learner.broken();
            learner.push(&pair.sent[from..end], &pair.received[from..end])?;
            from = end;
        }
    }
    let model = learner.model()?;
    let model_db = learner.nmse_db();
    if model_db > -6.0 {
        return Err(Error::Data(format!(
            "what came back does not follow from what was sent (NMSE of the model {model_db:.1} dB): is it the same signal, in step?"
        )));
    }
    let table = match dpd.method {
        Method::Forward => Table::invert(&model, &signal, level, dpd.back_off)?,
        Method::Indirect => {
            let gain = model.mean_gain() * 10f64.powf(-dpd.back_off / 20.0);
            let output: Vec<Complex64> = pair.received.iter().map(|y| y / gain).collect();
            Table::fitted(dpd.memory, &output, &pair.sent, level)?
        }
    };
    let predistorted = predistort(&table, &signal)?;
    let (without, with) = (model.apply(&signal), model.apply(&predistorted));
    let power = |x: &[Complex64]| x.iter().map(Complex64::norm_sqr).sum::<f64>() / x.len() as f64;
    let highest = predistorted.iter().map(|z| z.norm_sqr()).fold(0.0, f64::max);
    Ok(Learned {
        pair: linearity(&pair.sent, &pair.received, band)?,
        before: linearity(&signal, &without, band)?,
        after: linearity(&signal, &with, band)?,
        model_db,
        path,
        peak_growth_db: db(highest, peak * peak),
        power_db: db(power(&predistorted), power(&signal)),
        output_db: db(power(&with), power(&without)),
        table,
        model,
        signal,
        predistorted,
    })
}
