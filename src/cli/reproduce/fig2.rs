//! Figure 2: tracking a spatio-temporal Gaussian process.
//!
//! `f ~ GP(exp(−(t−s)²/(2·10²)) exp(−(x−y)²/(2·0.2²)))`, `x` uniform on [0, 1], observed in noise at 10 dB; kernel width 0.2; budgets of 20 centres for NORMA, fKLMS and
//! KRLS-T, radius 0.05 for QKLMS, none for KLMS. NMSE is that of the one-step prediction against the observation.

use serde_json::json;

use super::Size;
use super::report::{Line, Report, db, mean_and_error};
use crate::Complex64;
use crate::Result;
use crate::channel::random::{Draws, Random};
use crate::cli::{parallel, progress};
use crate::filter::{Evict, Filter, KrlsT, fklms, klms, norma, qklms};
use crate::kernel::Gaussian;
use crate::observation::Gain;
use crate::plot::{self, Axis, Bar, Figure, NmseCurve};

const STEPS: usize = 1000;
/// Asymptotic: after this step.
const SETTLED: usize = 200;
const NOISE: f64 = 0.1;
const WIDTH: f64 = 0.2;
/// Beyond this lag the temporal covariance is below 1e-13.
const BAND: usize = 80;

/// Positions and observations of one simulation, and the exact one-step predictions of the process that made them.
struct Process {
    x: Vec<f64>,
    y: Vec<f64>,
    exact: Vec<f64>,
}

impl Process {
    fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed, Draws::Study);
        let x: Vec<f64> = (0..STEPS).map(|_| random.uniform()).collect();
        let covariance = |i: usize, j: usize| {
            let (t, d) = ((i as f64 - j as f64) / 10.0, (x[i] - x[j]) / WIDTH);
            libm::exp(-0.5 * (t * t + d * d)) + if i == j { NOISE } else { 0.0 }
        };
        // y = L z with L Lᵀ the covariance of the observations. Row n of L without its diagonal then predicts y_n from all that came before it.
        let factor = BandedCholesky::new(STEPS, covariance);
        let z: Vec<f64> = (0..STEPS).map(|_| random.real()).collect();
        let exact: Vec<f64> = (0..STEPS).map(|n| factor.below_diagonal(n, &z)).collect();
        let y = (0..STEPS).map(|n| exact[n] + factor.diagonal(n) * z[n]).collect();
        Self { x, y, exact }
    }

    /// Squared errors of one-step predictions.
    fn errors(&self, filter: &mut dyn Filter<f64>) -> Vec<f64> {
        let step = |(&x, &y): (&f64, &f64)| {
            let p = filter.adapt(&[Complex64::new(x, 0.0)], Complex64::new(y, 0.0));
            (y - p.re) * (y - p.re)
        };
        self.x.iter().zip(&self.y).map(step).collect()
    }
}

/// The Cholesky factor of a matrix with `BAND` diagonals below its main one.
struct BandedCholesky {
    rows: Vec<f64>,
}

impl BandedCholesky {
    fn new(n: usize, a: impl Fn(usize, usize) -> f64) -> Self {
        // Row i holds columns i−BAND ..= i.
        let width = BAND + 1;
        let mut rows = vec![0.0; n * width];
        for i in 0..n {
            let first = i.saturating_sub(BAND);
            for j in first..=i {
                let start = first.max(j.saturating_sub(BAND));
                let (ri, rj) = (&rows[i * width + start + BAND - i..], &rows[j * width + start + BAND - j..]);
                let dot: f64 = ri[..j - start].iter().zip(&rj[..j - start]).map(|(a, b)| a * b).sum();
                let value = a(i, j) - dot;
                rows[i * width + j + BAND - i] = if i == j { value.max(1e-12).sqrt() } else { value / rows[j * width + BAND] };
            }
        }
        Self { rows }
    }

    fn diagonal(&self, i: usize) -> f64 {
        self.rows[i * (BAND + 1) + BAND]
    }

    fn below_diagonal(&self, i: usize, z: &[f64]) -> f64 {
        let first = i.saturating_sub(BAND);
        let row = &self.rows[i * (BAND + 1) + first + BAND - i..i * (BAND + 1) + BAND];
        row.iter().zip(&z[first..i]).map(|(l, z)| l * z).sum()
    }
}

type Build = fn(f64, f64) -> Result<Box<dyn Filter<f64>>>;

/// A filter, the parameters that the scan tries, and what a float64 numpy implementation found in 300 simulations.
struct Contender {
    name: &'static str,
    parameters: [&'static str; 2],
    grid: fn() -> Vec<(f64, f64)>,
    build: Build,
    reference: f64,
}

const BUDGET: Evict = Evict { budget: Some(20), floor: None };

fn kernel() -> Result<Gaussian<f64>> {
    Gaussian::new(WIDTH)
}

fn etas() -> Vec<(f64, f64)> {
    (6..=20).map(|i| (f64::from(i) * 0.05, 0.0)).collect()
}

fn etas_and_decays() -> Vec<(f64, f64)> {
    (10..=19).flat_map(|i| (0..8).map(move |j| (f64::from(i) * 0.05, 0.86 + 0.02 * f64::from(j)))).collect()
}

const CONTENDERS: [Contender; 5] = [
    Contender {
        name: "klms",
        parameters: ["eta", ""],
        grid: etas,
        build: |eta, _| Ok(Box::new(klms(kernel()?, Gain::Eta(eta), Evict::default(), 1)?)),
        reference: -3.91,
    },
    Contender {
        name: "qklms",
        parameters: ["eta", ""],
        grid: etas,
        build: |eta, _| Ok(Box::new(qklms(kernel()?, Gain::Eta(eta), 0.05, Evict::default(), 1)?)),
        reference: -3.88,
    },
    Contender {
        name: "norma",
        parameters: ["eta", "decay"],
        grid: etas_and_decays,
        build: |eta, decay| Ok(Box::new(norma(kernel()?, Gain::Eta(eta), (1.0 - decay) / eta, BUDGET, 1)?)),
        reference: -4.58,
    },
    Contender {
        name: "fklms",
        parameters: ["eta", "lambda"],
        grid: etas_and_decays,
        build: |eta, lambda| Ok(Box::new(fklms(kernel()?, Gain::Eta(eta), lambda, BUDGET, 1)?)),
        reference: -4.58,
    },
    Contender {
        name: "krlst",
        parameters: ["lambda", "noise"],
        grid: || [0.83, 0.85, 0.87, 0.89, 0.91].into_iter().flat_map(|l| [0.02, 0.05, 0.1].map(|n| (l, n))).collect(),
        build: |lambda, noise| Ok(Box::new(KrlsT::new(kernel()?, lambda, noise, 20, 1)?)),
        reference: -4.96,
    },
];
const EXACT_REFERENCE: f64 = -5.39;

pub(super) fn run(size: &Size, report: &mut Report) -> Result<()> {
    let runs = size.runs(2000);
    let scan = runs.div_ceil(20).clamp(1, 100);
    let seed = |i: usize| size.seed.wrapping_mul(1_000_003).wrapping_add(i as u64);

    // The scan: average error of every candidate over the first simulations.
    let grids: Vec<Vec<(f64, f64)>> = CONTENDERS.iter().map(|c| (c.grid)()).collect();
    let bar = progress::pieces(scan as u64, "fig2, parameters");
    let mut sums: Vec<Vec<f64>> = grids.iter().map(|grid| vec![0.0; grid.len()]).collect();
    let scanned = parallel::each(
        scan,
        &bar,
        |i| -> Result<Vec<Vec<f64>>> {
            let process = Process::draw(seed(i));
            let score = |c: &Contender, &(a, b): &(f64, f64)| Ok(process.errors(&mut *(c.build)(a, b)?).iter().sum::<f64>());
            CONTENDERS.iter().zip(&grids).map(|(c, grid)| grid.iter().map(|p| score(c, p)).collect()).collect()
        },
        |_, scores| {
            for (sums, scores) in sums.iter_mut().zip(scores.into_iter().flatten()) {
                sums.iter_mut().zip(scores).for_each(|(sum, score)| *sum += score);
            }
        },
    );
    bar.finish_and_clear();
    if scanned < scan {
        return Ok(());
    }
    let best: Vec<(f64, f64)> = grids
        .iter()
        .zip(&sums)
        .map(|(grid, sums)| {
            let least = sums.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(i, _)| i);
            grid[least]
        })
        .collect();

    // The simulations: learning curves and asymptotic errors with the best parameters.
    let bar = progress::pieces(runs as u64, "fig2, simulations");
    let names: Vec<&str> = CONTENDERS.iter().map(|c| c.name).chain(["gp"]).collect();
    let mut curves = vec![vec![0.0; STEPS]; names.len()];
    let mut power = vec![0.0; STEPS];
    let (mut tails, mut tail_powers) = (vec![Vec::new(); names.len()], Vec::new());
    let done = parallel::each(
        runs,
        &bar,
        |i| -> Result<(Vec<f64>, Vec<Vec<f64>>)> {
            let process = Process::draw(seed(i));
            let mut errors: Vec<Vec<f64>> =
                CONTENDERS.iter().zip(&best).map(|(c, &(a, b))| Ok(process.errors(&mut *(c.build)(a, b)?))).collect::<Result<_>>()?;
            errors.push(process.y.iter().zip(&process.exact).map(|(y, p)| (y - p) * (y - p)).collect());
            Ok((process.y.iter().map(|y| y * y).collect(), errors))
        },
        |_, result| {
            // The parameters were built once in the scan, so nothing is refused here.
            let Ok((squares, errors)) = result else { return };
            power.iter_mut().zip(&squares).for_each(|(p, s)| *p += s);
            tail_powers.push(squares[SETTLED..].iter().sum::<f64>());
            for ((curve, tail), errors) in curves.iter_mut().zip(&mut tails).zip(&errors) {
                curve.iter_mut().zip(errors).for_each(|(c, e)| *c += e);
                tail.push(errors[SETTLED..].iter().sum::<f64>());
            }
        },
    );
    bar.finish_and_clear();
    if done == 0 {
        return Ok(());
    }

    let mean_power = tail_powers.iter().sum::<f64>() / done as f64;
    let mut lines = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let ratios: Vec<f64> = tails[i].iter().map(|t| t / mean_power).collect();
        let (mean, error) = mean_and_error(&ratios);
        let (value, error) = db(mean, error);
        let (reference, note) = match CONTENDERS.get(i) {
            Some(c) => {
                let values = [best[i].0, best[i].1];
                let chosen = c.parameters.iter().zip(values).filter(|(n, _)| !n.is_empty()).map(|(n, v)| format!("{n} {v:.2}"));
                (c.reference, chosen.collect::<Vec<_>>().join(", "))
            }
            None => (EXACT_REFERENCE, "all that came before, true kernel: the limit".into()),
        };
        lines.push(Line { name: (*name).into(), value, error: (done > 1).then_some(error), reference: Some(reference), note });
    }

    let total_power = power.iter().sum::<f64>() / STEPS as f64;
    // Over ten steps, so that the curves can be told apart.
    let smooth = |curve: &[f64]| -> Vec<[f64; 2]> {
        let point = |(i, w): (usize, &[f64])| [i as f64 * 10.0 + 5.0, crate::dsp::db(w.iter().sum::<f64>() / w.len() as f64, total_power)];
        curve.chunks(10).enumerate().map(point).collect()
    };
    let curves_of: Vec<NmseCurve> = names
        .iter()
        .zip(&curves)
        .zip(&lines)
        .map(|((name, curve), line)| NmseCurve { name: (*name).into(), points: smooth(curve), average_db: Some(line.value) })
        .collect();
    let chart: Vec<Bar> =
        lines.iter().map(|l| Bar { name: l.name.clone(), value: l.value, error: l.error, reference: l.reference }).collect();
    let caption = "One-step predictions of a Gaussian process with covariance exp(−(t − s)²/(2·10²)) exp(−(x − y)²/(2·0.2²)) and noise at 10 dB. Top: squared error over \
                   the mean power, averaged over simulations and ten steps. Bottom: samples 201 to 1000, bars of two standard errors; rings: an independent \
                   implementation, 300 simulations. Budgets: NORMA, fKLMS and KRLS-T 20 centres, QKLMS ε = 0.05, KLMS none; gp is the limit that the true kernel \
                   sets. Parameters are those with the least error on a scan, as in the paper.";
    let page = Figure::compose(
        format!("Tracking a spatio-temporal Gaussian process, {done} simulations"),
        1,
        [plot::nmse_over_time("", Axis::new("time step", ""), &curves_of), plot::bars("", Axis::new("asymptotic NMSE", "dB"), &chart)],
    );
    report.figure(&page.captioned(caption));
    let header: Vec<String> = std::iter::once("step".to_owned()).chain(names.iter().map(|n| format!("{n}_nmse"))).collect();
    report.csv(&header, (0..STEPS).map(|t| std::iter::once(t as f64).chain(curves.iter().map(|c| c[t] / total_power)).collect()));
    report.table(
        &format!("Figure 2: asymptotic one-step NMSE over {done} simulations, parameters scanned on {scan}"),
        "dB",
        &lines,
        json!({"simulations": done, "scanned": scan, "seed": size.seed, "steps": STEPS, "settled_after": SETTLED, "noise_variance": NOISE}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_its_covariance_and_its_predictions_are_exact() {
        let (mut power, mut near, mut exact, n) = (0.0, 0.0, 0.0, 40);
        for seed in 0..n {
            let p = Process::draw(seed);
            power += p.y.iter().map(|y| y * y).sum::<f64>() / STEPS as f64 / n as f64;
            exact += p.y.iter().zip(&p.exact).map(|(y, e)| (y - e) * (y - e)).sum::<f64>() / STEPS as f64 / n as f64;
            let product = |t: usize| p.y[t] * p.y[t + 10] / libm::exp(-0.5 * ((p.x[t] - p.x[t + 10]) / WIDTH).powi(2)).max(0.5);
            let close: Vec<f64> = (0..STEPS - 10).filter(|&t| (p.x[t] - p.x[t + 10]).abs() < 0.2).map(product).collect();
            near += close.iter().sum::<f64>() / close.len() as f64 / n as f64;
        }
        assert!((power - 1.1).abs() < 0.05, "power {power}");
        assert!((near - (-0.5f64).exp()).abs() < 0.05, "covariance at lag 10: {near}");
        let limit = crate::dsp::db(exact, power);
        assert!((limit - EXACT_REFERENCE).abs() < 0.2, "the exact predictions reach {limit} dB");
    }
}
