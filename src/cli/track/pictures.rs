//! What the report shows.

use num_complex::{Complex32, Complex64};

use super::{
    Args,
    graph::{Outcome, Tracked},
    input::Survey,
    report::by_error,
};
use crate::{
    Result,
    filter::registry,
    metrics::{AmCurve, welch},
    plot::{AmplifierCurve, Axis, Bar, Figure, NmseCurve, Series, am_am_pm, bars, nmse_over_time, psd},
};

/// The pictures by file name; the last two only where they say something.
pub(super) const NAMES: [&str; 4] = ["nmse", "average", "spectrum", "amplifier"];

/// Samples of the amplifier's scatter: more only hide one another.
const DOTS: usize = 4000;

/// Samples of the spectra, and of each of the windows that they average.
const SPECTRUM: usize = 1 << 14;
const WINDOW: usize = 512;

pub(super) fn all(args: &Args, survey: &Survey, outcome: &Outcome) -> Result<Vec<(&'static str, Figure)>> {
    let best_first = by_error(outcome);
    let mut pictures = vec![(NAMES[0], errors(survey, &best_first))];
    let averages: Vec<_> = best_first
        .iter()
        .filter(|f| f.total.nmse_db().is_finite())
        .map(|f| Bar { name: f.name.clone(), value: f.total.nmse_db(), error: None, reference: None })
        .collect();
    if !averages.is_empty() {
        pictures.push((NAMES[1], bars("Prediction error, average", Axis::new("NMSE", "dB"), &averages)));
    }
    if let Some(best) = best_first.first().filter(|_| survey.target.len() >= 4 * WINDOW) {
        pictures.push((NAMES[2], spectrum(args, survey, best)?));
    }
    if !args.equalize && coherent(&survey.input, &survey.target) {
        pictures.push((NAMES[3], amplifier(&survey.input, &survey.target)?));
    }
    Ok(pictures)
}

fn errors(survey: &Survey, filters: &[&Tracked]) -> Figure {
    let rate = survey.sample_rate.unwrap_or(0.0);
    let (time, scale) = if rate > 0.0 { (Axis::new("time", "ms"), 1e3 / rate) } else { (Axis::new("sample", ""), 1.0) };
    let curves: Vec<_> = filters
        .iter()
        .map(|f| NmseCurve {
            name: f.name.clone(),
            points: f.rows.iter().map(|r| [(r.end as f64 - 0.5 * r.samples as f64) * scale, r.nmse_db()]).collect(),
            average_db: Some(f.total.nmse_db()),
        })
        .collect();
    nmse_over_time("Prediction error over time", time, &curves)
}

/// What the best filter explains of the start of the streams, and what it leaves.
fn spectrum(args: &Args, survey: &Survey, best: &Tracked) -> Result<Figure> {
    let rate = survey.sample_rate.filter(|rate| *rate > 0.0);
    let (frequency, scale) = if rate.is_some() { (Axis::new("frequency", "MHz"), 1e-6) } else { (Axis::new("cycles a sample", ""), 1.0) };
    let input = &survey.input[survey.advance.min(survey.input.len())..];
    let n = input.len().min(survey.target.len()).min(SPECTRUM);
    let (input, target) = (&input[..n], &survey.target[..n]);
    let mut prediction = vec![Complex32::default(); n];
    registry::tracker::<f32>(&best.settings, args.taps)?.track(input, target, &mut prediction, None);
    let error: Vec<_> = target.iter().zip(&prediction).map(|(y, p)| y - p).collect();
    let line = |name: &str, samples: &[Complex32]| -> Result<Series> {
        let density = welch(samples, WINDOW, rate.unwrap_or(1.0))?;
        let points = (0..density.density.len()).map(|i| [density.frequency(i) * scale, 10.0 * density.density[i].max(1e-30).log10()]);
        Ok(Series::new(name, points.collect()))
    };
    let received = if args.equalize { "tx" } else { "rx" };
    let lines = [line(received, target)?, line("prediction", &prediction)?, line("error", &error)?];
    Ok(psd(format!("Spectra, {}", best.name), frequency, if rate.is_some() { "dB/Hz" } else { "dB" }, &lines))
}

/// Whether the received samples follow the sent ones closely enough to show what the amplifier does: not through echoes and fading.
fn coherent(tx: &[Complex32], rx: &[Complex32]) -> bool {
    let wide = |z: &Complex32| Complex64::new(z.re.into(), z.im.into());
    let pairs = || tx.iter().zip(rx).map(|(x, y)| (wide(x), wide(y))).filter(|(x, y)| (x * y).norm_sqr().is_finite());
    let cross: Complex64 = pairs().map(|(x, y)| y * x.conj()).sum();
    let (sent, received): (f64, f64) = (pairs().map(|(x, _)| x.norm_sqr()).sum(), pairs().map(|(_, y)| y.norm_sqr()).sum());
    cross.norm_sqr() > 0.8 * sent * received && sent > 0.0
}

fn amplifier(tx: &[Complex32], rx: &[Complex32]) -> Result<Figure> {
    let step = tx.len().div_ceil(DOTS).max(1);
    let mut measured = AmplifierCurve { name: "measured".into(), ..AmplifierCurve::default() };
    for (x, y) in tx.iter().zip(rx).step_by(step).filter(|(x, y)| x.norm() > 0.0 && (*x * *y).norm().is_finite()) {
        measured.input.push(x.norm().into());
        measured.output.push(y.norm().into());
        measured.phase_deg.push((y * x.conj()).arg().to_degrees().into());
    }
    let mean = AmCurve::measure(tx, rx, 40)?;
    let mean = AmplifierCurve {
        name: "mean".into(),
        input: mean.iter().map(|p| p.input).collect(),
        output: mean.iter().map(|p| p.output).collect(),
        phase_deg: mean.iter().map(|p| p.phase_deg).collect(),
    };
    Ok(am_am_pm("Received against sent amplitude", &measured, &[mean]))
}
