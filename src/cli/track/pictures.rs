//! What the report shows.

use super::{Args, graph::Outcome, input::Survey, report::by_error};
use crate::{
    Result,
    metrics::AmCurve,
    plot::{AmplifierCurve, Axis, Bar, Figure, NmseCurve, am_am_pm, bars, nmse_over_time},
};

/// Samples of the amplifier's scatter: more only hide one another.
const DOTS: usize = 4000;

/// The pictures by file name.
pub(super) fn all(args: &Args, survey: &Survey, outcome: &Outcome) -> Result<Vec<(&'static str, Figure)>> {
    let best_first = by_error(outcome);
    let rate = survey.sample_rate.unwrap_or(0.0);
    let (time, scale) = if rate > 0.0 { (Axis::new("time", "ms"), 1e3 / rate) } else { (Axis::new("sample", ""), 1.0) };
    let curves: Vec<_> = best_first
        .iter()
        .map(|f| NmseCurve {
            name: f.name.into(),
            points: f.rows.iter().map(|r| [(r.end as f64 - 0.5 * r.samples as f64) * scale, r.nmse_db()]).collect(),
            average_db: Some(f.total.nmse_db()),
        })
        .collect();
    let mut pictures = vec![("nmse", nmse_over_time("Prediction error over time", time, &curves))];
    let averages: Vec<_> = best_first
        .iter()
        .filter(|f| f.total.nmse_db().is_finite())
        .map(|f| Bar { name: f.name.into(), value: f.total.nmse_db(), error: None, reference: None })
        .collect();
    if !averages.is_empty() {
        pictures.push(("average", bars("Prediction error, average", Axis::new("NMSE", "dB"), &averages)));
    }
    if !args.equalize {
        let (tx, rx) = (&survey.input, &survey.target);
        let step = tx.len().div_ceil(DOTS).max(1);
        let mut measured = AmplifierCurve { name: "measured".into(), ..AmplifierCurve::default() };
        for (x, y) in tx.iter().zip(rx).step_by(step).filter(|(x, y)| x.norm() > 0.0 && y.norm().is_finite() && x.norm().is_finite()) {
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
        pictures.push(("amplifier", am_am_pm("Received against sent amplitude", &measured, &[mean])));
    }
    Ok(pictures)
}
