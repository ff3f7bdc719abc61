//! The paper's steady-state tracking error of KLMS against simulation: `E[ζ²] = (σ_q² + η² σ_n²) / (η (2 − η))`.
//!
//! The true function lives on points so far apart that their kernel matrix is the identity, and its values there walk at random with `E‖q‖² = σ_q²` a step.

use serde_json::json;

use super::Size;
use super::report::{Line, Report};
use crate::channel::random::{Draws, Random};
use crate::cli::{parallel, progress};
use crate::dsp::db;
use crate::filter::{Evict, Filter, qklms, steady_state_error};
use crate::kernel::Gaussian;
use crate::observation::Gain;
use crate::plot::{self, Axis, Mark, Panel};
use crate::{Complex64, Result};

const POINTS: usize = 10;
const NOISE: f64 = 0.1;
const DRIFTS: [f64; 4] = [0.0, 1e-3, 1e-2, 1e-1];
const ETAS: [f64; 12] = [0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99];

/// The mean squared model mismatch after settling.
fn simulate(eta: f64, drift: f64, seed: u64, steps: usize) -> Result<f64> {
    let mut random = Random::new(seed, Draws::Study);
    // Radius 0: a point that was seen before is the same centre again.
    let mut filter = qklms(Gaussian::new(0.05)?, Gain::Eta(eta), 0.0, Evict::default(), 1)?;
    let mut truth = [Complex64::new(0.0, 0.0); POINTS];
    let settle = (20.0 * POINTS as f64 / eta) as usize;
    let mut sum = 0.0;
    for i in 0..settle + steps {
        for w in &mut truth {
            *w += random.complex() * (drift / POINTS as f64).sqrt();
        }
        let k = ((random.uniform() * POINTS as f64) as usize).min(POINTS - 1);
        let p = Filter::adapt(&mut filter, &[Complex64::new(k as f64, 0.0)], truth[k] + random.complex() * NOISE.sqrt());
        if i >= settle {
            sum += (truth[k] - p).norm_sqr();
        }
    }
    Ok(sum / steps as f64)
}

pub(super) fn run(size: &Size, report: &mut Report) -> Result<()> {
    let steps = if size.quick { 20_000 } else { 200_000 };
    let cases: Vec<(f64, f64)> = DRIFTS.iter().flat_map(|&drift| ETAS.map(|eta| (eta, drift))).collect();
    let bar = progress::pieces(cases.len() as u64, "steady");
    let mut measured = Vec::new();
    parallel::each(
        cases.len(),
        &bar,
        |i| simulate(cases[i].0, cases[i].1, size.seed.wrapping_add(i as u64), steps),
        |_, r| measured.push(r),
    );
    bar.finish_and_clear();
    let measured = measured.into_iter().collect::<Result<Vec<f64>>>()?;
    if measured.len() < cases.len() {
        return Ok(());
    }

    let db = |v: f64| db(v, 1.0);
    let mut panel = Panel::new(Axis::new("gain η", ""), Axis::new("mean squared mismatch E[ζ²]", "dB"));
    for (i, &drift) in DRIFTS.iter().enumerate() {
        let style = plot::style_at(i);
        // Dense where the formula bends.
        let etas = (1..=200).map(|k| (f64::from(k) / 200.0).powi(2)).filter(|eta| (0.01..1.0).contains(eta));
        let points = etas.map(|eta| [eta, db(steady_state_error(eta, drift, NOISE))]).collect();
        panel.marks.push(Mark::Line { name: format!("σ_q² = {drift}"), note: String::new(), points, style });
        let points = cases.iter().zip(&measured).filter(|(c, _)| c.1 == drift).map(|(c, m)| [c.0, db(*m)]).collect();
        panel.marks.push(Mark::Dots { name: String::new(), points, style: style.width(6.5), ring: false });
    }
    let caption = "Lines: the paper's formula E[ζ²] = (σ_q² + η² σ_n²) / (η (2 − η)). Dots: simulation. Noise σ_n² = 0.1; the weights walk by σ_q² a step.";
    report.figure(&plot::Figure::new("Steady-state tracking error of KLMS").with(panel).captioned(caption));
    report.csv(
        &["eta", "drift", "simulated", "formula"].map(String::from),
        cases.iter().zip(&measured).map(|(&(eta, drift), &m)| vec![eta, drift, m, steady_state_error(eta, drift, NOISE)]),
    );
    let lines: Vec<Line> = DRIFTS
        .iter()
        .enumerate()
        .map(|(d, &drift)| {
            let rows = cases.iter().zip(&measured).skip(d * ETAS.len()).take(ETAS.len());
            let worst =
                rows.map(|(&(eta, drift), &m)| db(m / steady_state_error(eta, drift, NOISE))).max_by(|a, b| a.abs().total_cmp(&b.abs()));
            let name = format!("drift {drift}: largest deviation");
            Line {
                name,
                value: worst.unwrap_or(f64::NAN),
                error: None,
                reference: Some(0.0),
                note: format!("over {} values of eta", ETAS.len()),
            }
        })
        .collect();
    report.table(
        "Steady-state error of KLMS, simulation over formula",
        "dB",
        &lines,
        json!({"steps": steps, "seed": size.seed, "noise": NOISE}),
    )
}
