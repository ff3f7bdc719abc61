//! What `kaflow linearize` prints and writes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Args, Learned, Pair};
use crate::dpd;
use crate::dsp::narrow;
use crate::iq::{Datatype, Writer, sigmf::Meta};
use crate::metrics::{Band, Linearity, am_curve, welch};
use crate::plot::{self, AmplifierCurve, Axis, Figure, Mark, Series};
use crate::{Complex64, Error, Result};

const TABLE: &str = "predistorter";
const SIGNAL: &str = "predistorted";
const CURVES: &str = "amplifier";
const SPECTRUM: &str = "spectrum";
/// Points of an AM/AM curve.
const POINTS: usize = 60;
/// The smallest envelope of a curve, over the largest.
const SMALLEST: f64 = 0.05;
/// Windows of the spectra in the picture.
const WINDOW: usize = 1024;

/// All files that are written into `folder`.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let own = [format!("{TABLE}.toml"), format!("{TABLE}.csv"), format!("{SIGNAL}.sigmf-meta"), format!("{SIGNAL}.sigmf-data")];
    let drawn = [CURVES, SPECTRUM].map(|name| plot::files(&folder.join(name)));
    own.into_iter().map(|name| folder.join(name)).chain(drawn.into_iter().flatten()).collect()
}

pub(in crate::cli) fn row(name: &str, found: &Linearity) {
    let (lower, upper) = found.aclr_dbc;
    say!("{name:<28} {lower:>8.1} {upper:>8.1} {:>8.1} {:>8.1}", found.evm_db, found.nmse_db);
}

pub(in crate::cli) fn head() {
    say!("{:<28} {:>8} {:>8} {:>8} {:>8}", "", "ACLR dBc", "upper", "EVM dB", "NMSE dB");
}

/// The lower and the upper side.
pub(in crate::cli) fn sides(found: &Linearity) -> [f64; 2] {
    [found.aclr_dbc.0, found.aclr_dbc.1]
}

fn write_json(args: &Args, value: serde_json::Value) -> Result<()> {
    args.json.as_deref().map_or(Ok(()), |path| crate::cli::json::write(path, "linearize", value))
}

fn hertz(band: Band, pair: &Pair) -> (f64, f64) {
    let scale = pair.rate.unwrap_or(1.0);
    (band.width * scale, band.spacing * scale)
}

/// What a pair is like.
pub(super) fn check(args: &Args, found: &Linearity, band: Band, pair: &Pair) -> Result<()> {
    let (bandwidth, spacing) = hertz(band, pair);
    head();
    row("what came back", found);
    write_json(
        args,
        json!({ "samples": pair.sent.len(), "bandwidth": bandwidth, "spacing": spacing, "aclr_dbc": [found.aclr_dbc.0, found.aclr_dbc.1],
            "evm_db": found.evm_db, "nmse_db": found.nmse_db }),
    )
}

pub(super) fn write(args: &Args, learned: &Learned, band: Band, pair: &Pair) -> Result<()> {
    let (bandwidth, spacing) = hertz(band, pair);
    let path = match learned.path {
        dpd::Path::Coupler => "coupler".to_owned(),
        dpd::Path::Air { block, .. } => format!("air, taps straight over {block} samples"),
    };
    head();
    row("what came back", &learned.pair);
    row("model of the PA", &learned.before);
    row("the same with predistortion", &learned.after);
    say!("\n{} samples by {path}; the model explains {:.1} dB of what came back", pair.sent.len(), -learned.model_db);
    say!(
        "predistortion: peaks {:+.2} dB (at most {:+.2}), power sent {:+.2} dB, power that comes out {:+.2} dB",
        learned.peak_growth_db,
        args.dpd.peak_growth,
        learned.power_db,
        learned.output_db
    );
    say!(
        "expected, not measured: with predistortion the figures are the model's, which leaves {:.1} dB of what came back unexplained. That it undoes what the model knows they do show;\n\
         what the PA does they do not, where they are better than that. Send {SIGNAL}.sigmf-meta, record it, and measure with --check",
        learned.model_db
    );
    if learned.after.nmse_db > learned.before.nmse_db - 1.0
        || learned.after.aclr_dbc.0.max(learned.after.aclr_dbc.1) > learned.before.aclr_dbc.0.max(learned.before.aclr_dbc.1)
    {
        note!("predistortion would not make this better: give the way back with --path, more or less --memory, or a cleaner recording");
    }
    write_json(
        args,
        json!({
            "samples": pair.sent.len(), "bandwidth": bandwidth, "spacing": spacing,
            "path": if learned.path == dpd::Path::Coupler { "coupler" } else { "air" }, "memory": args.dpd.memory,
            "aclr_measured_dbc": sides(&learned.pair), "aclr_before_dbc": sides(&learned.before), "aclr_after_dbc": sides(&learned.after),
            "evm_before_db": learned.before.evm_db, "evm_db": learned.after.evm_db,
            "nmse_before_db": learned.before.nmse_db, "nmse_db": learned.after.nmse_db, "model_nmse_db": learned.model_db,
            "peak_growth_db": learned.peak_growth_db, "power_change_db": learned.power_db, "output_change_db": learned.output_db,
        }),
    )?;
    let Some(out) = &args.out else { return Ok(()) };
    table(&learned.table, out)?;
    signal(args, learned, pair, out)?;
    curves(learned)?.save(out.join(CURVES))?;
    spectra(learned, pair)?.save(out.join(SPECTRUM))?;
    say!("{}", out.join(format!("{TABLE}.toml")).display());
    Ok(())
}

fn table(table: &dpd::Table, out: &Path) -> Result<()> {
    let path = out.join(format!("{TABLE}.toml"));
    let text = toml::to_string(table).map_err(|e| Error::file(&path, "predistorter", e.to_string()))?;
    let about = "# z[n] = sum over terms of x[n - sample] gain(|x[n - envelope]|), held to level; rows are equal steps of the envelope from 0 to reach,\n\
                 # real and imaginary part of each term's gain.\n";
    crate::files::write(&path, (about.to_owned() + &text).as_bytes())?;
    let mut csv = String::from("envelope");
    for t in &table.terms {
        let name = format!("x{}_r{}", t.sample, t.envelope);
        let _ = write!(csv, ",{name}_re,{name}_im");
    }
    for (i, row) in table.rows.iter().enumerate() {
        let _ = write!(csv, "\n{}", table.reach * i as f64 / (table.rows.len() - 1) as f64);
        row.iter().flatten().for_each(|x| csv += &format!(",{x}"));
    }
    crate::files::write(&out.join(format!("{TABLE}.csv")), (csv + "\n").as_bytes())
}

fn signal(args: &Args, learned: &Learned, pair: &Pair, out: &Path) -> Result<()> {
    let mut meta = Meta::new(Datatype::CF32_LE, pair.rate);
    meta.global.description = Some("predistorted by kaflow linearize".into());
    let mut writer = Writer::create(out.join(SIGNAL), meta, args.force)?;
    let samples: Vec<_> = learned.predistorted.iter().map(|&z| narrow(z)).collect();
    writer.write(&samples)?;
    writer.finish().map(drop)
}

/// AM/AM and AM/PM of the model, of what is sent and of both together.
fn curves(learned: &Learned) -> Result<Figure> {
    let curve = |name: &str, output: &[Complex64]| -> Result<AmplifierCurve> {
        let mut points = am_curve(&learned.signal, output, POINTS)?;
        // What is put out for the smallest envelopes is the memory of larger ones.
        let largest = points.iter().map(|p| p.input).fold(0.0, f64::max);
        points.retain(|p| p.input > SMALLEST * largest);
        Ok(AmplifierCurve {
            name: name.into(),
            input: points.iter().map(|p| p.input).collect(),
            output: points.iter().map(|p| p.output).collect(),
            phase_deg: points.iter().map(|p| p.phase_deg).collect(),
        })
    };
    let (without, with) = (learned.model.apply(&learned.signal), learned.model.apply(&learned.predistorted));
    let lines = [curve("predistorter", &learned.predistorted)?, curve("with predistortion", &with)?];
    Ok(told_apart(plot::am_am_pm("The amplifier, its predistorter, and both", &curve("amplifier", &without)?, &lines)))
}

fn spectra(learned: &Learned, pair: &Pair) -> Result<Figure> {
    let (without, with) = (learned.model.apply(&learned.signal), learned.model.apply(&learned.predistorted));
    let lines: [(&str, &[Complex64]); 3] =
        [("without predistortion", &without), ("with predistortion", &with), ("signal", &learned.signal)];
    spectrum("Spectrum of the amplifier's model", pair.rate, &lines)
}

/// Spectra of some signals.
pub(in crate::cli) fn spectrum(title: &str, rate: Option<f64>, signals: &[(&str, &[Complex64])]) -> Result<Figure> {
    let line = |&(name, samples): &(&str, &[Complex64])| -> Result<Series> {
        let psd = welch(samples, WINDOW.min(samples.len()), rate.unwrap_or(1.0))?;
        Ok(Series::new(name, psd.db().into_iter().enumerate().map(|(i, y)| [psd.frequency(i), y]).collect()))
    };
    let (axis, level) = match rate {
        Some(_) => (Axis::new("frequency", "Hz"), "dBFS/Hz"),
        None => (Axis::new("cycles a sample", ""), "dBFS per cycle/sample"),
    };
    Ok(told_apart(plot::psd(title, axis, level, &signals.iter().map(line).collect::<Result<Vec<_>>>()?)))
}

/// Gives each mark of a panel a colour of its own, the same in every picture.
pub(in crate::cli) fn told_apart(mut figure: Figure) -> Figure {
    for panel in &mut figure.panels {
        for (n, mark) in panel.marks.iter_mut().enumerate() {
            match mark {
                Mark::Line { style, .. } => *style = plot::style_at(n).width(style.width),
                Mark::Dots { style, .. } => *style = plot::style_at(n).width(4.0),
                _ => {}
            }
        }
    }
    figure
}
