//! What the report shows.

use std::fmt::Write as _;

use super::{Subject, Tracked, constellation, learned, signal::spectrum};
use crate::{
    Complex32, Complex64, Result,
    metrics::{Evm, Row},
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

/// Points of a curve: of more, eight curves could not be told apart. The table has all.
const POINTS: usize = 200;

pub(super) fn all(subject: &Subject, best_first: &[Tracked<'_>]) -> Result<Vec<Picture>> {
    let mut pictures = vec![errors(subject, best_first)];
    pictures.extend(averages(best_first));
    if let Some(best) = best_first.first() {
        pictures.extend(spectra(subject, best)?);
        pictures.extend(symbols(subject, best));
    }
    pictures.extend(learned::amplifier(subject, best_first)?);
    pictures.extend(learned::taps(subject, best_first));
    pictures.extend(learned::weights(best_first));
    Ok(pictures)
}

/// Time on an axis, and how long a sample is on it.
pub(super) fn time(subject: &Subject, filters: &[Tracked<'_>]) -> (Axis, f64) {
    let samples = filters.iter().map(|f| f.summary.series.samples()).max().unwrap_or(0).max(1) as f64;
    match subject.sample_rate.filter(|rate| *rate > 0.0) {
        Some(rate) => (Axis::new("time", "s").range(0.0, samples / rate), 1.0 / rate),
        None => (Axis::new("sample", "").range(0.0, samples), 1.0),
    }
}

fn errors(subject: &Subject, filters: &[Tracked<'_>]) -> Picture {
    let (time, scale) = time(subject, filters);
    let mut csv = String::from("filter,end,samples,nmse_db\n");
    for f in filters {
        for row in f.summary.series.rows() {
            let _ = writeln!(csv, "{},{},{},{}", f.name, row.end, row.samples, row.nmse_db());
        }
    }
    let point = |rows: &[Row]| {
        let mut sum = Row::default();
        rows.iter().for_each(|row| sum.merge(row));
        [0.5 * (rows[0].end - rows[0].samples + sum.end) as f64 * scale, sum.nmse_db()]
    };
    let curve = |f: &Tracked| {
        let rows = f.summary.series.rows();
        let points = rows.chunks(rows.len().div_ceil(POINTS).max(1)).map(point).collect();
        NmseCurve { name: f.name.to_owned(), points, average_db: Some(f.total.nmse_db()) }
    };
    let curves: Vec<_> = filters.iter().map(curve).collect();
    Picture { name: "nmse", figure: nmse_over_time("Prediction error over time", time, &curves), csv }
}

fn averages(filters: &[Tracked<'_>]) -> Option<Picture> {
    let bar = |f: &Tracked| Bar { name: f.name.to_owned(), value: f.total.nmse_db(), error: None, reference: None };
    let averages: Vec<_> = filters.iter().map(bar).filter(|bar| bar.value.is_finite()).collect();
    let figure = bars("Prediction error, average", Axis::new("NMSE", "dB"), &averages);
    (!averages.is_empty()).then(|| Picture { name: "average", figure, csv: String::new() })
}

/// What the best filter explained over a stretch of the run, and what it left.
fn spectra(subject: &Subject, best: &Tracked<'_>) -> Result<Option<Picture>> {
    let Some(stretch) = best.stretch() else { return Ok(None) };
    let rate = subject.sample_rate.filter(|rate| *rate > 0.0);
    let frequency = if rate.is_some() { Axis::new("frequency", "Hz") } else { Axis::new("cycles a sample", "") };
    let line = |name: &str, samples: &[Complex32]| -> Result<Option<Series>> {
        let density = spectrum(samples, rate.unwrap_or(1.0))?;
        Ok(density.map(|psd| Series::new(name, psd.db().into_iter().enumerate().map(|(i, y)| [psd.frequency(i), y]).collect())))
    };
    let target = if subject.equalize { "tx" } else { "rx" };
    let lines = [line(target, &stretch.target)?, line("prediction", &stretch.prediction)?, line("error", &stretch.error())?];
    let [Some(received), Some(prediction), Some(error)] = lines else { return Ok(None) };
    let mut csv = format!("frequency,{target}_db,prediction_db,error_db\n");
    for (([f, y], p), e) in received.points.iter().zip(&prediction.points).zip(&error.points) {
        let _ = writeln!(csv, "{f},{y},{},{}", p[1], e[1]);
    }
    let level = if rate.is_some() { "dBFS/Hz" } else { "dBFS per cycle/sample" };
    let mut figure = psd(format!("Spectra, {}", best.name), frequency, level, &[received, prediction, error]);
    // Wider, to be seen behind a prediction that is nearly the same.
    if let Some(Mark::Line { style, .. }) = figure.panels.first_mut().and_then(|panel| panel.marks.first_mut()) {
        *style = style.width(3.5).opacity(0.5);
    }
    Ok(Some(Picture { name: "spectrum", figure, csv }))
}

/// The symbols that one tap for each carrier finds, and those that the best filter finds where it equalises.
fn symbols(subject: &Subject, best: &Tracked<'_>) -> Option<Picture> {
    let config = &subject.waveform.as_ref()?.config;
    let points = constellation::points(subject, best.stretch()?, constellation::MOST)?;
    let mut csv = String::from("equaliser,re,im\n");
    let mut cloud = |name: &str, found: &[Complex32], evm: Evm| {
        for z in found {
            let _ = writeln!(csv, "{name},{},{}", z.re, z.im);
        }
        let symbols = found.iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect();
        Constellation { title: format!("{name}, EVM {:.0} %", evm.percent()), symbols }
    };
    let mut clouds = vec![cloud("one tap a carrier", &points.one_tap, points.received_evm())];
    if subject.equalize {
        clouds.push(cloud(best.name, &points.equalised, points.equalised_evm()));
    }
    let title = if subject.equalize { "Constellation before and after the filter" } else { "Constellation as a receiver sees it" };
    let all: Vec<_> =
        ofdm::Constellation::new(config.modulation).points().iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect();
    Some(Picture { name: "constellation", figure: constellations(title, &clouds, &all), csv })
}
