//! What the report shows.

use std::fmt::Write as _;

use num_complex::Complex32;

use super::{
    Args, constellation,
    graph::{Outcome, Tracked},
    input::Survey,
    learned,
    report::by_error,
};
use crate::{
    Complex64, Result,
    blocks::Row,
    filter::{Guard, registry},
    metrics::{Evm, welch},
    ofdm,
    plot::{Axis, Bar, Constellation, Figure, Mark, NmseCurve, Series, bars, constellations, nmse_over_time, psd},
};

/// A picture and the numbers behind it, under one name.
pub(super) struct Picture {
    pub(super) name: &'static str,
    pub(super) figure: Figure,
    /// A table; empty where another file has the numbers.
    pub(super) csv: String,
}

/// The pictures by file name; all but the first two only where they say something.
pub(super) const NAMES: [&str; 7] = ["nmse", "average", "spectrum", "constellation", "amplifier", "taps", "weights"];

/// Samples of the spectra, and of each of the windows that they average.
pub(super) const START: usize = 1 << 14;
const WINDOW: usize = 512;

/// Points of a curve: of more, eight curves could not be told apart. The table has all.
const POINTS: usize = 200;

pub(super) fn all(args: &Args, survey: &Survey, outcome: &Outcome) -> Result<Vec<Picture>> {
    let best_first = by_error(outcome);
    let mut pictures = vec![errors(survey, &best_first)];
    pictures.extend(averages(&best_first));
    if let Some(best) = best_first.first() {
        if survey.target.len() >= 4 * WINDOW {
            pictures.push(spectrum(args, survey, best)?);
        }
        pictures.extend(constellation(args, survey, best)?);
    }
    pictures.extend(learned::amplifier(args, survey, &best_first)?);
    pictures.extend(learned::taps(survey, &best_first));
    pictures.extend(learned::weights(&best_first));
    Ok(pictures)
}

/// Time on an axis, and how long a sample is on it.
pub(super) fn time(survey: &Survey, filters: &[&Tracked]) -> (Axis, f64) {
    let samples = filters.iter().map(|f| f.samples).max().unwrap_or(0).max(1) as f64;
    match survey.sample_rate.filter(|rate| *rate > 0.0) {
        Some(rate) => (Axis::new("time", "s").range(0.0, samples / rate), 1.0 / rate),
        None => (Axis::new("sample", "").range(0.0, samples), 1.0),
    }
}

fn errors(survey: &Survey, filters: &[&Tracked]) -> Picture {
    let (time, scale) = time(survey, filters);
    let mut csv = String::from("filter,end,samples,nmse_db\n");
    for f in filters {
        for row in &f.rows {
            let _ = writeln!(csv, "{},{},{},{}", f.name, row.end, row.samples, row.nmse_db());
        }
    }
    let point = |rows: &[Row]| {
        let sum = |pick: fn(&Row) -> f64| rows.iter().map(pick).sum::<f64>();
        let (first, last) = (rows[0].end - rows[0].samples, rows[rows.len() - 1].end);
        [0.5 * (first + last) as f64 * scale, 10.0 * (sum(|r| r.error) / sum(|r| r.reference)).log10()]
    };
    let curve = |f: &&Tracked| NmseCurve {
        name: f.name.clone(),
        points: f.rows.chunks(f.rows.len().div_ceil(POINTS).max(1)).map(point).collect(),
        average_db: Some(f.total.nmse_db()),
    };
    let curves: Vec<_> = filters.iter().map(curve).collect();
    Picture { name: "nmse", figure: nmse_over_time("Prediction error over time", time, &curves), csv }
}

fn averages(filters: &[&Tracked]) -> Option<Picture> {
    let bar = |f: &&Tracked| Bar { name: f.name.clone(), value: f.total.nmse_db(), error: None, reference: None };
    let averages: Vec<_> = filters.iter().map(bar).filter(|bar| bar.value.is_finite()).collect();
    let figure = bars("Prediction error, average", Axis::new("NMSE", "dB"), &averages);
    (!averages.is_empty()).then(|| Picture { name: "average", figure, csv: String::new() })
}

/// The start of what a filter is fed and of what it predicts, at most [`START`] samples.
pub(super) fn start(survey: &Survey) -> (&[Complex32], &[Complex32]) {
    let input = &survey.input[survey.advance.min(survey.input.len())..];
    let n = input.len().min(survey.target.len()).min(START);
    (&input[..n], &survey.target[..n])
}

/// What the best filter explains of the start of the streams, and what it leaves.
fn spectrum(args: &Args, survey: &Survey, best: &Tracked) -> Result<Picture> {
    let rate = survey.sample_rate.filter(|rate| *rate > 0.0);
    let frequency = if rate.is_some() { Axis::new("frequency", "Hz") } else { Axis::new("cycles a sample", "") };
    let (input, target) = start(survey);
    let mut prediction = vec![Complex32::default(); target.len()];
    Guard::new(registry::tracker::<f32>(&best.settings, args.taps)?).track(input, target, &mut prediction, None);
    let error: Vec<_> = target.iter().zip(&prediction).map(|(y, p)| y - p).collect();
    let line = |name: &str, samples: &[Complex32]| -> Result<Series> {
        let density = welch(samples, WINDOW, rate.unwrap_or(1.0))?;
        let points = (0..density.density.len()).map(|i| [density.frequency(i), 10.0 * density.density[i].max(1e-30).log10()]);
        Ok(Series::new(name, points.collect()))
    };
    let received = if args.equalize { "tx" } else { "rx" };
    let lines = [line(received, target)?, line("prediction", &prediction)?, line("error", &error)?];
    let mut csv = format!("frequency,{received}_db,prediction_db,error_db\n");
    for (i, [f, y]) in lines[0].points.iter().enumerate() {
        let _ = writeln!(csv, "{f},{y},{},{}", lines[1].points[i][1], lines[2].points[i][1]);
    }
    let level = if rate.is_some() { "dBFS/Hz" } else { "dBFS per cycle/sample" };
    let mut figure = psd(format!("Spectra, {}", best.name), frequency, level, &lines);
    // Wider, to be seen behind a prediction that is nearly the same.
    if let Some(Mark::Line { style, .. }) = figure.panels.first_mut().and_then(|panel| panel.marks.first_mut()) {
        *style = style.width(3.5).opacity(0.5);
    }
    Ok(Picture { name: "spectrum", figure, csv })
}

/// The symbols that one tap for each carrier finds, and those that the best filter finds.
fn constellation(args: &Args, survey: &Survey, best: &Tracked) -> Result<Option<Picture>> {
    let Some((config, _)) = &survey.waveform else { return Ok(None) };
    let Some(points) = constellation::points(args, survey, best)? else { return Ok(None) };
    let ideal = ofdm::Constellation::new(config.modulation);
    let mut csv = String::from("equaliser,re,im\n");
    let mut cloud = |name: &str, found: &[Complex32]| {
        let mut evm = Evm::default();
        for (&z, &sent) in found.iter().zip(&points.sent) {
            evm.push(z, ideal.point(ideal.decide(sent)));
            let _ = writeln!(csv, "{name},{},{}", z.re, z.im);
        }
        let symbols = found.iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect();
        Constellation { title: format!("{name}, EVM {:.0} %", evm.percent()), symbols }
    };
    let clouds = [cloud("one tap a carrier", &points.one_tap), cloud(&best.name, &points.equalised)];
    let all: Vec<_> = ideal.points().iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect();
    Ok(Some(Picture { name: "constellation", figure: constellations("Constellation before and after the filter", &clouds, &all), csv }))
}
