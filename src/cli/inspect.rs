//! `kaflow inspect`: what a recording is.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::outputs::{self, Outputs};
use super::{progress, recordings::RecordingArgs};
use crate::dsp::db;
use crate::error::short;
use crate::iq::align::{Alignment, Options, align_recordings};
use crate::iq::{Pair, Recording, Survey, survey};
use crate::plot::{self, Axis, Constellation, Figure, Grid, Histogram, Series};
use crate::{Complex64, Error, Result};

/// Say what a recording is: format, rate, duration, captures, gaps, level, clipping, DC, bandwidth.
///
/// Reads SigMF (either file, or the name without an ending), .sigmf archives, WAV and raw IQ. A .sigmf-collection, or a folder with a pair of recordings, is
/// inspected as a pair: both recordings, and how they lie to each other.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The recording, a collection, or a folder that holds a pair
    file: PathBuf,
    #[command(flatten)]
    recording: RecordingArgs,
    /// Compare the data with its hash
    #[arg(long)]
    verify: bool,
    /// Write the numbers as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw a picture: FILE.svg, FILE.png, or both when FILE has no such ending
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// What the picture shows
    #[arg(long, value_delimiter = ',', requires = "plot", default_value = "spectrogram,psd,constellation,envelope")]
    show: Vec<Picture>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Picture {
    Spectrogram,
    Psd,
    Constellation,
    Envelope,
}

pub(crate) fn run(args: Args) -> Result<()> {
    // What can be refused is refused before a long recording is read.
    let files = args.json.iter().cloned().chain(args.plot.iter().flat_map(|path| plot::files(path))).collect();
    Outputs { recordings: vec![&args.file], files, force: args.force, ..Outputs::default() }.check()?;
    let mut figures = Vec::new();
    let numbers = if args.file.is_dir() || args.file.extension().is_some_and(|e| e == "sigmf-collection") {
        let mut pair = Pair::open(&args.file)?;
        let tx = inspect(&mut pair.tx, &args, &mut figures)?;
        say!();
        let rx = inspect(&mut pair.rx, &args, &mut figures)?;
        say!("\npair");
        pair.tx.seek(0)?;
        pair.rx.seek(0)?;
        if let Some(delay) = pair.delay {
            line("known delay", format!("{delay} samples"));
        }
        let alignment = match align_recordings(&mut pair.tx, &mut pair.rx, Options::default()) {
            Ok(alignment) => {
                print_alignment(&alignment, pair.rx.sample_rate());
                json!(alignment)
            }
            Err(Error::Data(problem)) => {
                line("alignment", problem);
                Value::Null
            }
            Err(error) => return Err(error),
        };
        json!({ "tx": tx, "rx": rx, "known_delay": pair.delay, "alignment": alignment })
    } else {
        inspect(&mut args.recording.open(&args.file, args.recording.channel)?, &args, &mut figures)?
    };
    let json = args.json.as_ref().map(|path| super::json::write(path, "inspect", numbers));
    let plot = args.plot.as_ref().map(|path| {
        let name = args.file.file_name().unwrap_or(args.file.as_os_str()).to_string_lossy().into_owned();
        let columns = figures.len().clamp(1, 2);
        for file in Figure::compose(name, columns, figures).save(path)? {
            tell!("wrote {}", file.display());
        }
        Ok(())
    });
    outputs::all(json.into_iter().chain(plot))
}

fn line(name: &str, text: impl std::fmt::Display) {
    say!("  {name:<12} {text}");
}

/// Prints what a recording is and returns the same as JSON.
fn inspect(recording: &mut Recording, args: &Args, figures: &mut Vec<Figure>) -> Result<Value> {
    recording.select(args.recording.channel)?;
    let bar = progress::bar(recording.len(), "reading");
    let survey = survey(recording, |done| bar.set_position(done))?;
    bar.finish_and_clear();
    let verified = if args.verify { Some(recording.verify()?) } else { None };

    let meta = recording.meta();
    let rate = recording.sample_rate();
    let (len, channels) = (recording.len(), recording.channels());
    let missing: u64 = recording.gaps().map(|gap| gap.length).sum();
    let gaps: Vec<_> = recording.gaps().collect();
    let plural = |n: u64, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    say!("{}: {}, {}, {}", recording.data_path().display(), recording.format(), meta.global.datatype, plural(channels as u64, "channel"));
    if channels > 1 {
        line("channel", args.recording.channel);
    }
    line("rate", rate.map_or("unknown".into(), |rate| si(rate, "S/s")));
    let duration = rate.map(|rate| len as f64 / rate);
    line("duration", duration.map_or(String::new(), |seconds| si(seconds, "s") + ", ") + &plural(len, "sample"));
    if let Some(hz) = recording.frequency() {
        line("frequency", si(hz, "Hz"));
    }
    let words = match gaps.as_slice() {
        [] => "no gap".to_owned(),
        [gap] => format!("1 gap: {} missing before sample {}", plural(gap.length, "sample"), gap.at),
        [first, ..] => format!("{} gaps: {} missing, the first before sample {}", gaps.len(), plural(missing, "sample"), first.at),
    };
    line("captures", format!("{}, {words}", meta.captures.len()));
    if !meta.annotations.is_empty() {
        line("annotations", meta.annotations.len());
    }
    if let Some(text) = &meta.global.description {
        line("description", short(text));
    }
    line("power", format!("{:.2} dBFS, rms {:.4e}", db(survey.power, 1.0), survey.power.sqrt()));
    line("peak", format!("{:.2} dBFS, {:.4e}", db(survey.peak.powi(2), 1.0), survey.peak));
    line("PAPR", format!("{:.2} dB", survey.papr_db()));
    line("clipping", clipping(&survey));
    let dc_db = db(survey.dc.norm_sqr(), survey.power);
    line("DC", format!("{dc_db:.1} dBc, {:.3e}{:+.3e}j", survey.dc.re, survey.dc.im));
    let occupied = survey.psd.as_ref().filter(|_| survey.power > 0.0).map(|psd| psd.occupied(0.99));
    if let Some((low, high)) = occupied {
        let text = match rate {
            Some(_) => format!("{}, 99 % of the power from {} to {}", si(high - low, "Hz"), si(low, "Hz"), si(high, "Hz")),
            None => format!("{:.4} of the rate, 99 % of the power from {low:.4} to {high:.4}", high - low),
        };
        line("bandwidth", text);
    }
    if survey.real && survey.samples > 0 {
        line("real", "every imaginary part is zero");
    }
    if let Some(found) = survey.not_finite {
        line("not finite", format!("{}, the first at {}", plural(found.count, "sample"), found.first));
    }
    let hash = match (verified, &meta.global.sha512) {
        (_, None) => "none",
        (Some(_), Some(_)) => "right",
        (None, Some(_)) => "not checked (--verify does)",
    };
    line("hash", hash);
    let warnings = recording.warnings();
    for warning in &warnings {
        line("warning", short(warning));
    }
    figures.extend(pictures(&survey, recording, &args.show).into_iter().filter(|_| args.plot.is_some()));

    Ok(json!({
        "file": recording.data_path().display().to_string(),
        "format": recording.format().to_string(),
        "datatype": meta.global.datatype.to_string(),
        "channels": channels,
        "channel": args.recording.channel,
        "sample_rate": rate,
        "samples": len,
        "duration": duration,
        "frequency": recording.frequency(),
        "captures": meta.captures.len(),
        "annotations": meta.annotations.len(),
        "gaps": gaps,
        "missing": missing,
        "power": survey.power,
        "power_dbfs": db(survey.power, 1.0),
        "peak": survey.peak,
        "papr_db": survey.papr_db(),
        "clipping": survey.clipping,
        "dc": [survey.dc.re, survey.dc.im],
        "dc_dbc": dc_db,
        "occupied": occupied.map(|(low, high)| [low, high]),
        "occupied_bandwidth": occupied.map(|(low, high)| high - low),
        "real": survey.real,
        "not_finite": survey.not_finite,
        "hash": hash,
        "warnings": warnings,
    }))
}

fn clipping(survey: &Survey) -> String {
    let share = |count: u64| format!("{count} samples ({:.3} %)", 100.0 * count as f64 / survey.samples.max(1) as f64);
    match (survey.clipping.rails, survey.clipping.envelope) {
        (0, 0) => "none".into(),
        (rails, 0) => format!("{} at the converter's limits", share(rails)),
        (0, envelope) => format!("{} at the largest envelope", share(envelope)),
        (rails, envelope) => format!("{} at the converter's limits, {} at the largest envelope", share(rails), share(envelope)),
    }
}

fn print_alignment(found: &Alignment, rate: Option<f64>) {
    let paths = if found.peak > 0.0 { format!("; the strongest path comes {} later", found.peak) } else { String::new() };
    let advance = if found.advance > 0 { format!("; advance {}", found.advance) } else { String::new() };
    line("delay", format!("{:.3} samples{paths}{advance}", found.delay));
    let hertz = rate.map_or(String::new(), |rate| format!(", {}", si(found.cfo_hz(rate), "Hz")));
    line("carrier", format!("{:.4e} cycles per sample{hertz}", found.cfo));
    line("gain", format!("{:.2} dB", db(found.gain.powi(2), 1.0)));
    line("DC", format!("{:.3e}{:+.3e}j", found.dc.re, found.dc.im));
    line("spectrum", if found.inverted { "inverted" } else { "not inverted" });
    line("explained", format!("{:.2} % of the received power", 100.0 * found.explained));
    line("coherence", format!("at least {} samples", found.coherence));
    line("confidence", format!("{:.3}", found.confidence));
}

/// A number with three to five digits and a prefix of the SI.
fn si(value: f64, unit: &str) -> String {
    let exponent = if value == 0.0 { 0.0 } else { (value.abs().log10() / 3.0).floor().clamp(-4.0, 4.0) };
    let prefix = ["p", "n", "µ", "m", "", "k", "M", "G", "T"][(exponent + 4.0) as usize];
    let text = format!("{:.3}", value / 1000_f64.powf(exponent));
    format!("{} {prefix}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The survey's numbers as figures.
fn pictures(survey: &Survey, recording: &Recording, show: &[Picture]) -> Vec<Figure> {
    let rate = recording.sample_rate();
    let name = recording.data_path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let frequency = || rate.map_or_else(|| Axis::new("frequency", "cycles/sample"), |_| Axis::new("frequency", "Hz"));
    let level = if rate.is_some() { "dBFS/Hz" } else { "dBFS per cycle/sample" };
    let mut figures = Vec::new();
    for picture in show {
        match (picture, &survey.psd) {
            (Picture::Spectrogram, Some(psd)) => {
                let end = recording.len() as f64 / rate.unwrap_or(1.0);
                let time = rate.map_or_else(|| Axis::new("time", "samples"), |_| Axis::new("time", "s"));
                let rows = survey.spectrogram.len() / survey.columns.max(1);
                let half = |width: f64, n: usize| width / n.max(1) as f64 / 2.0;
                let (dx, dy) = (half(end, survey.columns), half(psd.sample_rate, rows));
                let edge = psd.sample_rate / 2.0;
                let values: Vec<f64> = survey.spectrogram.iter().map(|&p| if p.is_nan() { p } else { db(p, 1.0) }).collect();
                let top = values.iter().copied().filter(|v| v.is_finite()).fold(f64::NEG_INFINITY, f64::max);
                let levels = Axis::new("power density", level);
                // 80 dB below the top there is nothing to see but rounding.
                let levels = if top.is_finite() { levels.range((top - 80.0).max(lowest(&values)), top) } else { levels };
                let mut grid = Grid { x: [dx, end - dx], y: [dy - edge, edge - dy], columns: survey.columns, values };
                without_empty_end(&mut grid);
                figures.push(plot::spectrogram(format!("{name}: spectrogram"), time, frequency(), levels, grid));
            }
            (Picture::Psd, Some(psd)) => {
                let points = psd.db().into_iter().enumerate().map(|(i, level)| [psd.frequency(i), level]).collect();
                figures.push(plot::psd(format!("{name}: power density"), frequency(), level, &[Series::new(name.clone(), points)]));
            }
            (Picture::Spectrogram | Picture::Psd, None) => {}
            // Real samples all lie on one line.
            (Picture::Constellation, _) if survey.real => {}
            (Picture::Constellation, _) => {
                let symbols = survey.points.iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect();
                let cloud = Constellation { title: format!("{name}: samples"), symbols };
                figures.push(plot::constellations("", &[cloud], &[]));
            }
            (Picture::Envelope, _) => {
                let (edges, density) = survey.envelope_density();
                let (edges, density) = even(&edges, &density);
                let top = edges.last().copied().unwrap_or(1.0);
                // |x|/rms of a Gaussian signal, which OFDM is nearly: complex or real.
                let (model, law): (_, fn(f64) -> f64) = if survey.real {
                    ("half-normal", |r| (2.0 / std::f64::consts::PI).sqrt() * (-0.5 * r * r).exp())
                } else {
                    ("Rayleigh", |r| 2.0 * r * (-r * r).exp())
                };
                let model = Series::new(model, (0..=200).map(|i| top * f64::from(i) / 200.0).map(|r| [r, law(r)]).collect());
                let histogram = Histogram { name: name.clone(), edges, density };
                let axis = Axis::new("envelope over rms", "").range(0.0, top);
                let mut figure = plot::envelope_histogram(format!("{name}: envelope"), axis, &[histogram], &[model]);
                // In the place of the constellation, too.
                figure.panels.iter_mut().filter(|_| survey.real).for_each(|panel| panel.span = 2);
                figures.push(figure);
            }
        }
    }
    figures
}

/// Drops the columns at the end that hold nothing: the rest of a recording may be too short for a window.
fn without_empty_end(grid: &mut Grid) {
    let rows = grid.rows();
    let empty = |column: usize| (0..rows).all(|row| grid.values[row * grid.columns + column].is_nan());
    let kept = (0..grid.columns).rev().find(|&column| !empty(column)).map_or(0, |last| last + 1);
    if kept > 0 && kept < grid.columns {
        grid.x[1] = grid.place(kept - 1, 0)[0];
        grid.values = grid.values.chunks_exact(grid.columns).flat_map(|row| &row[..kept]).copied().collect();
        grid.columns = kept;
    }
}

/// Joins bins that are narrower than a sixtieth of the whole: few samples fall into them, and they would be noise.
fn even(edges: &[f64], density: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let least = edges.last().copied().unwrap_or(0.0) / 60.0;
    let (mut joined, mut heights) = (edges.first().copied().into_iter().collect::<Vec<f64>>(), Vec::new());
    let (mut from, mut area) = (joined.first().copied().unwrap_or(0.0), 0.0);
    for (i, (edge, d)) in edges.windows(2).zip(density).enumerate() {
        area += d * (edge[1] - edge[0]);
        if edge[1] - from >= least || i + 1 == density.len() {
            heights.push(area / (edge[1] - from));
            joined.push(edge[1]);
            (from, area) = (edge[1], 0.0);
        }
    }
    (joined, heights)
}

fn lowest(values: &[f64]) -> f64 {
    values.iter().copied().filter(|v| v.is_finite()).fold(f64::INFINITY, f64::min)
}
