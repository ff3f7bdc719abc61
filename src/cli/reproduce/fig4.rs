//! Figure 4: Bernoulli observations of a moving disc.
//!
//! A point drawn uniformly from [−1.5, 1.5]² is labelled 1 inside a disc of radius 0.5 whose centre moves from (−1, −1) to (1, 1); kernel
//! `exp(−‖x−y‖²/0.1)`, diffusion 6, no forgetting. Accuracy is that of the estimate over a grid of the whole region.

use serde_json::json;

use super::Size;
use super::report::{Line, Report, mean_and_error};
use crate::channel::random::{Draws, Random};
use crate::cli::{parallel, progress};
use crate::filter::{Evict, KernelFilter, bayesian_klms};
use crate::kernel::Gaussian;
use crate::observation::Bernoulli;
use crate::plot::{self, Axis, Field, Figure, Grid};
use crate::{Complex64, Result};

const REGION: f64 = 1.5;
const RADIUS: f64 = 0.5;
const MOMENTS: [f64; 4] = [0.25, 0.5, 0.75, 1.0];
/// Samples along the path, and the accuracy over its second half that a float64 numpy implementation reached.
const LENGTHS: [(usize, f64); 2] = [(1000, 0.944), (4000, 0.973)];
/// The accuracy is measured at this many moments.
const LOOKS: usize = 40;
const SIDE: usize = 31;

fn centre(share: f64) -> f64 {
    2.0 * share - 1.0
}

fn inside(x: f64, y: f64, share: f64) -> bool {
    (x - centre(share)).hypot(y - centre(share)) < RADIUS
}

struct Repetition {
    accuracy: Vec<f64>,
    grids: Vec<Grid>,
}

fn repeat(seed: u64, samples: usize) -> Result<Repetition> {
    let mut random = Random::new(seed, Draws::Study);
    let mut filter: KernelFilter<f64, _, _> =
        bayesian_klms(Gaussian::new(0.05f64.sqrt())?, Bernoulli::new(6.0, 0.0)?, 1.0, Evict::default(), 2)?;
    let (mut accuracy, mut grids) = (Vec::new(), Vec::new());
    for i in 0..samples {
        let share = i as f64 / samples as f64;
        let point = [0; 2].map(|_| REGION * (2.0 * random.uniform() - 1.0));
        filter.adapt(&point.map(|v| Complex64::new(v, 0.0)), inside(point[0], point[1], share));
        if (i + 1) % (samples / LOOKS) == 0 {
            let side = [-REGION, REGION];
            let grid = Grid::of(side, side, SIDE, SIDE, |x, y| filter.predict(&[Complex64::new(x, 0.0), Complex64::new(y, 0.0)]));
            let right = |(k, p): (usize, &f64)| {
                let [x, y] = grid.place(k % SIDE, k / SIDE);
                (*p > 0.5) == inside(x, y, share)
            };
            let hits = grid.values.iter().enumerate().filter(|&(k, p)| right((k, p))).count();
            accuracy.push(hits as f64 / grid.values.len() as f64);
            if MOMENTS.iter().any(|m| ((i + 1) as f64 / samples as f64 - m).abs() < 1e-9) {
                grids.push(grid);
            }
        }
    }
    Ok(Repetition { accuracy, grids })
}

pub(super) fn run(size: &Size, report: &mut Report) -> Result<()> {
    let runs = size.runs(20);
    let bar = progress::pieces((runs * LENGTHS.len()) as u64, "fig4");
    let mut repetitions: Vec<Vec<Repetition>> = LENGTHS.iter().map(|_| Vec::new()).collect();
    let mut failed = None;
    parallel::each(
        runs * LENGTHS.len(),
        &bar,
        |i| repeat(size.seed.wrapping_mul(104_729).wrapping_add(i as u64), LENGTHS[i % LENGTHS.len()].0),
        |i, r| match r {
            Ok(r) => repetitions[i % LENGTHS.len()].push(r),
            Err(error) => failed = Some(error),
        },
    );
    bar.finish_and_clear();
    if let Some(error) = failed {
        return Err(error);
    }
    let [short, long] = &repetitions[..] else { return Ok(()) };
    let Some(first) = short.first() else { return Ok(()) };

    let (x, y) = (Axis::new("x", ""), Axis::new("y", ""));
    let circle = |share: f64| -> Vec<[f64; 2]> {
        (0..=72)
            .map(|k| f64::from(k) * 5f64.to_radians())
            .map(|a| [centre(share) + RADIUS * a.cos(), centre(share) + RADIUS * a.sin()])
            .collect()
    };
    let fields: Vec<Field> = MOMENTS
        .iter()
        .zip(&first.grids)
        .map(|(&share, grid)| Field {
            title: format!("after {} samples", share * LENGTHS[0].0 as f64),
            grid: grid.clone(),
            truth: circle(share),
            path: vec![[-1.0, -1.0], [1.0, 1.0]],
        })
        .collect();
    let over_time = |name: String, repetitions: &[Repetition]| {
        let n = repetitions.len().max(1) as f64;
        let mean = |k: usize| repetitions.iter().map(|r| r.accuracy[k]).sum::<f64>() / n;
        plot::Series::new(name, (0..LOOKS).map(|k| [(k + 1) as f64 / LOOKS as f64 * 100.0, mean(k)]).collect())
    };
    let series = [over_time("1000 samples".into(), short), over_time("4000 samples".into(), long)];
    let mut below = plot::lines("", Axis::new("way of the disc", "%"), Axis::new("accuracy over the region", ""), &series);
    below.panels.iter_mut().for_each(|panel| panel.span = 2);
    let caption = format!(
        "A disc of radius 0.5 moves from (−1, −1) to (1, 1); labels at points drawn evenly from the square; kernel exp(−|x − y|²/0.1), σ_d² = 6. Top: contours of \
         the estimated probability in a run of {} samples. Bottom: the share of the square where the estimate is on the right side of 0.5, mean of {} runs.",
        LENGTHS[0].0,
        short.len()
    );
    let page = Figure::compose("Bernoulli-KLMS tracks a moving disc", 2, [plot::fields("", 2, &x, &y, &fields), below]);
    report.figure(&page.captioned(caption));

    let header = ["share_of_the_way", "accuracy_1000", "accuracy_4000"].map(String::from);
    report.csv(&header, (0..LOOKS).map(|k| vec![(k + 1) as f64 / LOOKS as f64, series[0].points[k][1], series[1].points[k][1]]));
    let lines: Vec<Line> = LENGTHS
        .iter()
        .zip([short, long])
        .map(|(&(samples, reference), repetitions)| {
            let halves: Vec<f64> =
                repetitions.iter().map(|r| r.accuracy[LOOKS / 2..].iter().sum::<f64>() / (LOOKS - LOOKS / 2) as f64).collect();
            let (value, error) = mean_and_error(&halves);
            let name = format!("{samples} samples, second half");
            let (error, runs) = ((repetitions.len() > 1).then_some(error), repetitions.len());
            Line { name, value, error, reference: Some(reference), note: format!("{runs} {}", if runs == 1 { "run" } else { "runs" }) }
        })
        .collect();
    report.table(
        "Figure 4: accuracy of the Bernoulli estimate over the region",
        "share",
        &lines,
        json!({"runs": short.len().min(long.len()), "seed": size.seed, "grid": SIDE, "diffusion": 6.0, "kernel": "exp(-|x-y|^2/0.1)"}),
    )
}
