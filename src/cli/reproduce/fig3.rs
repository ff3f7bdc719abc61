//! Figure 3: Poisson observations of a drifting tuning curve.
//!
//! Counts from the rate `exp(4 cos(x − μ) − 0.1)`, `x` uniform over 360 degrees, `μ` drifting by 100 degrees in 1000 steps; kernel `exp(−(x−y)²/100)` in degrees, diffusion 0.1, no
//! forgetting. The error is that of the whole estimated curve, normalised by the true one, and its mean over runs is taken in dB: early on, a single run that
//! overshoots would be all that a mean of powers shows.

use serde_json::json;

use super::Size;
use super::report::{Line, Report, mean_and_error};
use crate::channel::random::{Draws, Random};
use crate::cli::{parallel, progress};
use crate::dsp::db;
use crate::filter::{Evict, KernelFilter, bayesian_klms};
use crate::kernel::Gaussian;
use crate::observation::Poisson;
use crate::plot::{self, Axis, Mark, Panel};
use crate::{Complex64, Result};

const STEPS: usize = 1000;
const DRIFT_DEGREES: f64 = 100.0;
const MOMENTS: [usize; 4] = [25, 50, 100, 500];
/// From a float64 numpy implementation: after 25, 50, 100, 500 steps and at the end.
const REFERENCE: [f64; 5] = [-3.1, -4.8, -8.7, -15.5, -15.1];

fn rate(x: f64, step: usize) -> f64 {
    // The drift is centred, so that the curve stays away from the ends of the circle, where the kernel does not wrap.
    let mu = DRIFT_DEGREES * (step as f64 / STEPS as f64 - 0.5);
    libm::exp(4.0 * libm::cos((x - mu).to_radians()) - 0.1)
}

fn grid() -> impl Iterator<Item = f64> {
    (0..180).map(|i| -179.0 + 2.0 * f64::from(i))
}

/// A Poisson count, by counting exponential waiting times; rates here stay below 50.
fn count(random: &mut Random, rate: f64) -> f64 {
    let mut waited = -libm::log(1.0 - random.uniform());
    let mut n = 0.0;
    while waited < rate {
        waited -= libm::log(1.0 - random.uniform());
        n += 1.0;
    }
    n
}

const CAPTION: &str = "Counts from the rate exp(4 cos(x − μ) − 0.1), μ drifting by 100° in 1000 steps; kernel exp(−(x − y)²/100) in degrees, σ_d² = 0.1. \
    Grey: single runs; blue: their mean, taken in dB. The paper does not say how it averages; a mean of the powers would show little but the few runs that \
    overshoot early on (both means are in the CSV file). Insets: the curve of the first run after 25, 50, 100 and 500 steps.";

/// One repetition: the normalised error after each step in dB, and the estimated curve at the moments.
struct Repetition {
    error: Vec<f64>,
    curves: Vec<Vec<f64>>,
}

fn repeat(seed: u64) -> Result<Repetition> {
    let mut random = Random::new(seed, Draws::Study);
    let mut filter: KernelFilter<f64, _, _> =
        bayesian_klms(Gaussian::new(50f64.sqrt())?, Poisson::new(0.1, 0.0)?, 1.0, Evict::default(), 1)?;
    let (mut error, mut curves) = (Vec::with_capacity(STEPS), Vec::new());
    for step in 0..STEPS {
        let x = 360.0 * random.uniform() - 180.0;
        let y = count(&mut random, rate(x, step));
        filter.adapt(&[Complex64::new(x, 0.0)], y);
        let estimate: Vec<f64> = grid().map(|x| filter.predict(&[Complex64::new(x, 0.0)])).collect();
        let truth = || grid().map(|x| rate(x, step));
        let wrong: f64 = truth().zip(&estimate).map(|(t, e)| (t - e) * (t - e)).sum();
        error.push(db(wrong, truth().map(|t| t * t).sum::<f64>()));
        if MOMENTS.contains(&(step + 1)) {
            curves.push(estimate);
        }
    }
    Ok(Repetition { error, curves })
}

pub(super) fn run(size: &Size, report: &mut Report) -> Result<()> {
    let runs = if size.quick { size.runs(30) } else { size.runs(11) };
    let bar = progress::pieces(runs as u64, "fig3");
    let mut repetitions = Vec::new();
    parallel::each(runs, &bar, |i| repeat(size.seed.wrapping_mul(7919).wrapping_add(i as u64)), |_, r| repetitions.push(r));
    bar.finish_and_clear();
    let repetitions = repetitions.into_iter().collect::<Result<Vec<_>>>()?;
    let Some(first) = repetitions.first() else { return Ok(()) };

    let mean: Vec<f64> = (0..STEPS).map(|t| mean_and_error(&repetitions.iter().map(|r| r.error[t]).collect::<Vec<_>>()).0).collect();
    let powers = |t: usize| repetitions.iter().map(|r| 10f64.powf(r.error[t] / 10.0)).sum::<f64>() / repetitions.len() as f64;
    let curve = |error: &[f64]| error.iter().enumerate().map(|(t, &e)| [t as f64 + 1.0, e]).collect::<Vec<_>>();
    let runs_drawn: Vec<_> = repetitions.iter().map(|r| curve(&r.error)).collect();
    let mut figure = plot::repeats(
        "Poisson-KLMS tracks a drifting tuning curve",
        Axis::new("time step", ""),
        Axis::new("normalised error of the rate", "dB"),
        &runs_drawn,
        "mean of the dB values",
        curve(&mean),
    )
    .captioned(CAPTION);
    let highest = first.curves.iter().flatten().copied().fold(0.0, f64::max).min(100.0);
    let insets = MOMENTS.iter().zip(&first.curves).map(|(&step, estimate)| {
        let line = |name: &str, points| Mark::Line { name: String::new(), note: String::new(), points, style: plot::style_of(name) };
        let truth = line("true rate", grid().map(|x| [x, rate(x, step - 1)]).collect());
        let estimate = line("estimate", grid().zip(estimate).map(|(x, &e)| [x, e]).collect());
        let rate = Axis::new("rate", "").range(-0.04 * highest, 1.08 * highest);
        let panel = Panel::new(Axis::new("x", "°"), rate).titled(format!("after {step}")).with(truth).with(estimate);
        (panel, Some([step as f64, mean[step - 1]]))
    });
    let insets: Vec<_> = insets.collect();
    if let Some(panel) = figure.panels.pop() {
        // The legend of the insets.
        let named = ["true rate (insets)", "estimate (insets)"].map(|name| Mark::line(name, Vec::new()));
        figure.panels.push(named.into_iter().fold(panel.height(460.0).with_insets(0.45, insets), Panel::with));
    }
    report.figure(&figure);
    let header: Vec<String> = ["step".into(), "mean_db".into(), "mean_power_db".into()]
        .into_iter()
        .chain((1..=repetitions.len()).map(|i| format!("run{i}_db")))
        .collect();
    report.csv(
        &header,
        (0..STEPS)
            .map(|t| [t as f64 + 1.0, mean[t], db(powers(t), 1.0)].into_iter().chain(repetitions.iter().map(|r| r.error[t])).collect()),
    );
    let at = |step: usize| mean_and_error(&repetitions.iter().map(|r| r.error[step - 1]).collect::<Vec<_>>());
    let lines: Vec<Line> = MOMENTS
        .iter()
        .chain([&STEPS])
        .zip(REFERENCE)
        .map(|(&step, reference)| {
            let (value, error) = at(step);
            Line {
                name: format!("after {step} steps"),
                value,
                error: (repetitions.len() > 1).then_some(error),
                reference: Some(reference),
                note: String::new(),
            }
        })
        .collect();
    report.table(
        &format!(
            "Figure 3: normalised error of the Poisson rate, {} in dB",
            if repetitions.len() == 1 { "one run".into() } else { format!("mean of {} runs", repetitions.len()) }
        ),
        "dB",
        &lines,
        json!({"runs": repetitions.len(), "seed": size.seed, "steps": STEPS, "diffusion": 0.1, "kernel": "exp(-(x-y)^2/100), degrees"}),
    )
}
