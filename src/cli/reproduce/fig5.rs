//! Figure 5: tracking a saturated, fading channel, and the taps of a MIMO system.
//!
//! The paper's four filters, with the kernel that is the default on streams and parameters tuned on the first 500 samples, and beside them what an engineer would compare with: KRLS-T, the memory polynomial
//! and the trackers that keep amplifier and channel apart. On the simulated test bed (clipped OFDM, amplifier in saturation, `f_d T = 1e-3`), or on recordings.

use serde_json::{Map, json};

use super::Size;
use super::report::{Line, Report, db, mean_and_error};
use crate::channel::{Scenario, TestBed};
use crate::cli::recordings::RecordingArgs;
use crate::cli::run::input::{self, Align, Origin, Sight};
use crate::cli::tune::score::Data;
use crate::cli::tune::search::{Plan, search};
use crate::cli::tune::space::Space;
use crate::cli::{interrupt, parallel, progress};
use crate::filter::em::{Forgetting, estimate};
use crate::filter::registry::{self, Recipe, Settings, Value, Values};
use crate::filter::{Filter, Guard, Kalman, Window};
use crate::metrics::Row;
use crate::plot::{self, Axis, Bar, Figure, NmseCurve, Part, Taps};
use crate::{Complex32, Complex64, Result};

const TAPS: usize = 4;
/// Samples of a simulated transmission, as many as the tracking set of the paper's field has.
const SAMPLES: u64 = 8000;
/// The parameters are tuned on so many samples, the first of them not scored.
const TUNED_ON: usize = 500;
const BURN_IN: usize = 100;
const CANDIDATES: usize = 200;
/// NORMA and fKLMS; QKLMS keeps its dictionary small by itself.
const BUDGET: usize = 500;
/// Points of the curves, and over how many of them the error is averaged.
const POINTS: usize = 160;
const AVERAGED: usize = 5;

/// The filters, and the averages that the paper gives for its own recording.
const FILTERS: [(&str, Option<f64>); 7] = [
    ("nlms", Some(-4.04)),
    ("norma", Some(-6.44)),
    ("qklms", Some(-6.91)),
    ("fklms", Some(-6.86)),
    ("krlst", None),
    ("mp-rls", None),
    ("ensemble", None),
];

struct Transmission {
    tx: Vec<Complex32>,
    rx: Vec<Complex32>,
}

pub(super) fn run(size: &Size, report: &mut Report) -> Result<()> {
    let recorded = size.recordings.clone().map(|(tx, rx)| {
        let origin = Origin::Recordings { tx, rx: Some(rx), open: RecordingArgs::default(), tx_channel: 0, align: Align::Auto, trim: true };
        input::open(&origin, Sight { taps: Some(TAPS), advance: None, equalize: false }).map(|(_, survey)| survey)
    });
    let recorded = recorded.transpose()?;
    let runs = if recorded.is_some() { 1 } else { size.runs(10) };
    let transmission = |run: usize| -> Result<Transmission> {
        if let Some(streams) = &recorded {
            return Ok(Transmission { tx: streams.start.0.clone(), rx: streams.start.1.clone() });
        }
        let seed = size.seed.wrapping_mul(1_000_003).wrapping_add(run as u64) & (i64::MAX as u64);
        let mut chunk = TestBed::run(&Scenario { samples: SAMPLES, seed, ..Scenario::preset("paper")? })?;
        Ok(Transmission { tx: chunk.tx.swap_remove(0), rx: chunk.rx.swap_remove(0) })
    };

    let first = transmission(0)?;
    let n = first.rx.len();
    let filters = FILTERS.iter().map(|(name, reference)| Ok((registry::recipe(name)?, *reference))).collect::<Result<Vec<_>>>()?;
    let settings = tune(&filters, &first, size.seed)?;
    if interrupt::requested() {
        return Ok(());
    }

    let block = n.div_ceil(POINTS).max(1);
    let bar = progress::pieces((runs * filters.len()) as u64, "fig5");
    // Squared errors of every filter in every run, by block; powers likewise, the same for all filters.
    let mut errors = vec![Vec::new(); filters.len()];
    let mut powers = Vec::new();
    let done = parallel::each(
        runs * filters.len(),
        &bar,
        |piece| -> Result<(Vec<f64>, Vec<f64>)> {
            let data = transmission(piece / filters.len())?;
            let mut tracker = Guard::new(registry::tracker::<f32>(&settings[piece % filters.len()], TAPS)?);
            let mut prediction = vec![Complex32::default(); data.rx.len()];
            tracker.track(&data.tx, &data.rx, &mut prediction, None);
            let rows = data.rx.chunks(block).zip(prediction.chunks(block)).map(|(y, p)| Row::measure(y, p));
            Ok(rows.map(|row| (row.error, row.reference)).unzip())
        },
        |piece, result| {
            // The parameters were built by the search, so nothing is refused here.
            let Ok((error, power)) = result else { return };
            errors[piece % filters.len()].push(error);
            if piece % filters.len() == 0 {
                powers.push(power);
            }
        },
    );
    bar.finish_and_clear();
    let done = done / filters.len();
    if done == 0 {
        return Ok(());
    }
    powers.truncate(done);

    let energy = powers.iter().flatten().sum::<f64>() / done as f64;
    let blocks = powers[0].len();
    let smooth = |runs: &[Vec<f64>], i: usize| -> f64 {
        let near = i.saturating_sub(AVERAGED / 2)..(i + AVERAGED / 2 + 1).min(blocks);
        runs[..done].iter().map(|run| run[near.clone()].iter().sum::<f64>()).sum()
    };
    let time = |i: usize| (i as f64 + 0.5) * block as f64;
    let (mut lines, mut curves) = (Vec::new(), Vec::new());
    for (((recipe, reference), settings), errors) in filters.iter().zip(&settings).zip(&errors) {
        let ratios: Vec<f64> = errors[..done].iter().map(|run| run.iter().sum::<f64>() / energy).collect();
        let (mean, error) = mean_and_error(&ratios);
        let (value, error) = db(mean, error);
        let points = (0..blocks).map(|i| [time(i), crate::dsp::db(smooth(errors, i), smooth(&powers, i))]).collect();
        curves.push(NmseCurve { name: recipe.name.into(), points, average_db: Some(value) });
        let error = (done > 1).then_some(error);
        lines.push(Line { name: recipe.name.into(), value, error, reference: *reference, note: describe(settings) });
    }

    let channels = match &recorded {
        Some(streams) => vec![estimated(&streams.start.0, &streams.start.1, block)?],
        None => simulated(size.seed, block)?,
    };
    let (what, title) = match &recorded {
        Some(_) => ("a recorded channel".to_owned(), "One-step prediction error"),
        None => {
            (format!("a saturated fading channel, {done} simulations"), "One-step prediction error; the dips are the frames' preambles")
        }
    };
    let samples = || Axis::new("sample", "");
    let bars: Vec<Bar> =
        lines.iter().map(|l| Bar { name: l.name.clone(), value: l.value, error: l.error, reference: l.reference }).collect();
    let mut top = plot::nmse_over_time(title, samples(), &curves);
    let mut averages = plot::bars("Average; rings: the paper's recording", Axis::new("NMSE", "dB"), &bars);
    let mut bottom = plot::taps_over_time("", samples(), &channels, Part::Real);
    top.panels.iter_mut().chain(&mut averages.panels).for_each(|p| p.span = 2);
    if let [only] = bottom.panels.as_mut_slice() {
        only.span = 2;
    }
    let below = match &recorded {
        Some(_) => "Bottom: real part of the taps that a Kalman filter sees, its variances estimated from the recording.",
        None => {
            "Bottom: real part of the true taps between two transmit and two receive antennas of the test bed: the four channels of a 2 × 2 MIMO system, which is \
             how we read the paper's \"4-channel MIMO system\"."
        }
    };
    let caption = format!(
        "Top: one-step NMSE over {} samples at a time{}, parameters tuned on the first {TUNED_ON} samples; NORMA and fKLMS keep {BUDGET} centres. Middle: the \
         average over all samples{}; rings: what the paper reports for its own recording. {below}",
        block * AVERAGED,
        if done > 1 { ", powers averaged over the simulations" } else { "" },
        if done > 1 { ", bars of two standard errors" } else { "" },
    );
    let page = Figure::compose(format!("Tracking {what}"), 2, [top, averages, bottom]);
    report.figure(&page.captioned(caption));

    let tap_name = |channel: usize, tap: usize| match channels.len() {
        1 => format!("tap{tap}_re"),
        _ => format!("tx{}_rx{}_tap{tap}_re", channel / 2 + 1, channel % 2 + 1),
    };
    let header = std::iter::once("sample".to_owned())
        .chain(curves.iter().map(|c| format!("{}_nmse_db", c.name)))
        .chain((0..channels.len()).flat_map(|c| (0..channels[c].taps.len()).map(move |tap| tap_name(c, tap))))
        .collect::<Vec<_>>();
    let row = |i: usize| {
        let taps = channels.iter().flat_map(|c| c.taps.iter().map(move |tap| tap.get(i).map_or(f64::NAN, |h| h.re)));
        std::iter::once(time(i)).chain(curves.iter().map(|c| c.points[i][1])).chain(taps).collect()
    };
    report.csv(&header, (0..blocks).map(row));

    let parameters: Map<String, serde_json::Value> =
        filters.iter().zip(&settings).map(|((recipe, _), settings)| (recipe.name.to_owned(), json!(settings.values()))).collect();
    say!(
        "Parameters are tuned on the first {TUNED_ON} samples, as in the paper. A budget of {BUDGET} never binds there, so that forgetting is chosen as if no centre \
         ever had to go: kaflow tune on more samples does better."
    );
    if let Some(streams) = recorded.as_ref().filter(|s| s.total > n as u64) {
        say!("The first {n} of {} samples are shown.", streams.total);
    }
    report.table(
        &format!(
            "Figure 5: one-step NMSE over {n} samples, {done} {}; reference: the paper's own recording",
            if done == 1 { "run" } else { "runs" }
        ),
        "dB",
        &lines,
        json!({"runs": done, "samples": n, "seed": size.seed, "tuned_on": TUNED_ON, "taps": TAPS, "parameters": parameters}),
    )
}

fn describe(settings: &Settings) -> String {
    let shown = settings.values().iter().filter(|(name, _)| *name != "kernel");
    shown.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

/// The best parameters on the start.
fn tune(filters: &[(&'static Recipe, Option<f64>)], data: &Transmission, seed: u64) -> Result<Vec<Settings>> {
    let samples = TUNED_ON.min(data.rx.len());
    let data = Data::new(data.tx[..samples].to_vec(), data.rx[..samples].to_vec(), TAPS, BURN_IN.min(samples / 4))?;
    let space = |(recipe, _): &(&'static Recipe, Option<f64>)| {
        let mut given = Values::new();
        if recipe.name == "mp-rls" {
            // On so few samples a search would take higher orders, which diverge later.
            given.insert("order".into(), Value::Number(3.0));
        }
        Space::new(recipe, &given, Some(BUDGET).filter(|_| recipe.name != "qklms"), &data)
    };
    let spaces = filters.iter().map(space).collect::<Result<Vec<_>>>()?;
    let found = search(&spaces, &data, Plan { candidates: CANDIDATES, seed })?;
    Ok(found.iter().map(|found| found.best().settings.clone()).collect())
}

/// The true taps between two transmit and two receive antennas.
fn simulated(seed: u64, every: usize) -> Result<Vec<Taps>> {
    let mut scenario =
        Scenario { samples: SAMPLES, seed: seed & (i64::MAX as u64), taps_every: every as u64, ..Scenario::preset("paper")? };
    if let Some(fading) = &mut scenario.fading {
        (fading.tx_antennas, fading.rx_antennas) = (2, 2);
    }
    let bed = TestBed::new(&scenario)?;
    let (frame, paths) = (bed.coefficients(), bed.delays().len());
    let taps = TestBed::run(&scenario)?.taps;
    let times: Vec<f64> = (0..taps.len() / frame).map(|i| (i * every) as f64).collect();
    let channel = |rx: usize, tx: usize| Taps {
        name: format!("MIMO, tx {} → rx {}", tx + 1, rx + 1),
        times: times.clone(),
        taps: (0..paths)
            .map(|path| {
                taps.iter().skip((rx * 2 + tx) * paths + path).step_by(frame).map(|h| Complex64::new(h.re.into(), h.im.into())).collect()
            })
            .collect(),
    };
    Ok([(0, 0), (1, 0), (0, 1), (1, 1)].map(|(rx, tx)| channel(rx, tx)).into())
}

/// The taps that a Kalman filter sees, its variances from the recording itself.
fn estimated(tx: &[Complex32], rx: &[Complex32], every: usize) -> Result<Taps> {
    const ENOUGH: usize = 4000;
    let wide = |z: &Complex32| Complex64::new(z.re.into(), z.im.into());
    let mut window = Window::new(TAPS)?;
    let rows: Vec<Complex64> = tx.iter().flat_map(|x| window.push(wide(x)).to_vec()).collect();
    let targets: Vec<Complex64> = rx.iter().map(wide).collect();
    let enough = ENOUGH.min(targets.len());
    let model = estimate(&rows[..enough * TAPS], &targets[..enough], Forgetting::Learned(0.999))?.model;
    let mut kalman = Kalman::new(TAPS, model.lambda, model.process_noise, model.noise)?;
    let mut taps = Taps { name: "Taps as a Kalman filter sees them".into(), times: Vec::new(), taps: vec![Vec::new(); TAPS] };
    for (k, (x, &y)) in rows.chunks(TAPS).zip(&targets).enumerate() {
        kalman.adapt(x, y);
        if k % every == 0 {
            taps.times.push(k as f64);
            taps.taps.iter_mut().zip(kalman.weights()).for_each(|(tap, &w)| tap.push(w));
        }
    }
    Ok(taps)
}
