//! What a study shows: filters side by side, curves with confidence bands, heat maps.

use serde_json::Value;

use super::plan::{Axis, Family, Place, Plan, indices};
use crate::cli::reproduce::mean_and_error;
use crate::plot::{self, Bar, Candidate, Figure, Grid, Mark, Panel, bars, landscape, style_of};

/// The pictures by file name; all but the first only where they say something.
pub(super) const NAMES: [&str; 4] = ["filters", "curves", "maps", "draws"];

/// Panels of a picture, at most.
const PANELS: usize = 8;
/// Draws that are shown, at most.
const DRAWS: u64 = 5000;
/// Cells of a map along an axis, at most.
const CELLS: usize = 200;

/// The error of every task, NaN where there is none, and which parameters of each filter are the best.
pub(super) struct Numbers<'a> {
    pub(super) plan: &'a Plan,
    nmse_db: Vec<f64>,
    /// By filter: its best point, in the mean over all inputs.
    pub(super) best: Vec<(usize, u64)>,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(plan: &'a Plan, nmse_db: Vec<f64>) -> Self {
        let mut numbers = Self { plan, nmse_db, best: Vec::new() };
        let mut best = Vec::new();
        for (f, family) in plan.families.iter().enumerate() {
            let point = (0..family.points())
                .map(|point| (numbers.score(f, point), point))
                .min_by(|a, b| a.0.0.cmp(&b.0.0).then(a.0.1.total_cmp(&b.0.1)));
            best.push((f, point.map_or(0, |(_, point)| point)));
        }
        numbers.best = best;
        numbers
    }

    /// Runs without a result count first, then the mean.
    fn score(&self, family: usize, point: u64) -> (usize, f64) {
        let (mut sum, mut count, mut without) = (0.0, 0usize, 0);
        for value in self.column(family, point) {
            match value.is_finite() {
                true => (sum, count) = (sum + value, count + 1),
                false => without += 1,
            }
        }
        (without, if count > 0 { sum / count as f64 } else { f64::INFINITY })
    }

    /// The results of a filter at a point, case after case.
    fn column(&self, family: usize, point: u64) -> impl Iterator<Item = f64> + '_ {
        let before: u64 = self.plan.families[..family].iter().map(Family::points).sum();
        self.nmse_db.iter().skip((before + point) as usize).step_by(self.plan.tasks_of_a_case() as usize).copied()
    }

    /// Finite results of a filter at a point, and how many others there are.
    pub(super) fn runs(&self, family: usize, point: u64) -> (Vec<f64>, usize) {
        let all: Vec<f64> = self.column(family, point).collect();
        let finite: Vec<f64> = all.iter().copied().filter(|v| v.is_finite()).collect();
        let without = all.len() - finite.len();
        (finite, without)
    }

    /// Results of a filter at a point, sorted by where their case lies: `cell` gives the number of the cell, none for other inputs.
    fn cells(&self, (family, point): (usize, u64), cells: usize, cell: impl Fn(&Place) -> Option<usize>) -> Vec<Vec<f64>> {
        let mut sorted = vec![Vec::new(); cells];
        for (case, value) in (0..).zip(self.column(family, point)).filter(|(_, value)| value.is_finite()) {
            if let Some(cell) = cell(&self.plan.place(case * self.plan.tasks_of_a_case())) {
                sorted[cell].push(value);
            }
        }
        sorted
    }

    /// The point that differs from the best one of its filter in these indices of its grid.
    fn beside_best(&self, family: usize, changes: &[(usize, usize)]) -> u64 {
        let Family { axes, .. } = &self.plan.families[family];
        let (best, draws) = (self.best[family].1, self.plan.families[family].draws());
        let mut at = indices(axes, best / draws);
        changes.iter().for_each(|&(axis, index)| at[axis] = index);
        axes.iter().zip(at).fold(0, |point, (axis, i)| point * axis.values.len() as u64 + i as u64) * draws + best % draws
    }
}

pub(super) fn all(numbers: &Numbers<'_>) -> Vec<(&'static str, Figure)> {
    let figures = [Some(filters(numbers)), curves(numbers), maps(numbers), draws(numbers)];
    NAMES.into_iter().zip(figures).filter_map(|(name, figure)| Some((name, figure?))).collect()
}

fn level() -> plot::Axis {
    plot::Axis::new("NMSE", "dB")
}

fn filters(numbers: &Numbers<'_>) -> Figure {
    let bar = |&(family, point): &(usize, u64)| {
        let (values, _) = numbers.runs(family, point);
        let (mean, error) = mean_and_error(&values);
        let bar = Bar { name: numbers.plan.families[family].recipe.name.into(), value: mean, error: Some(error), reference: None };
        (!values.is_empty()).then_some(bar)
    };
    let mut all: Vec<Bar> = numbers.best.iter().filter_map(bar).collect();
    all.sort_by(|a, b| a.value.total_cmp(&b.value));
    bars("Prediction error, mean of all inputs and seeds", level(), &all)
}

/// An axis of a grid as it is drawn: numbers evenly spaced, in their logarithm where they are then, else one after the other.
struct Drawn {
    axis: plot::Axis,
    at: Vec<f64>,
}

/// An axis for these numbers: logarithmic where they span more than a decade.
fn spanning(name: &str, numbers: &[f64]) -> plot::Axis {
    let (low, high) = numbers.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)));
    let axis = plot::Axis::new(name, "");
    if low > 0.0 && high > 10.0 * low { axis.log() } else { axis }
}

impl Drawn {
    /// For a curve, whose numbers may be spaced as they like.
    fn for_curve(axis: &Axis) -> Option<Self> {
        let numbers: Option<Vec<f64>> = axis.values.iter().map(Value::as_f64).collect();
        let rising = |numbers: &Vec<f64>| numbers.len() > 1 && numbers.windows(2).all(|pair| pair[0] < pair[1]);
        numbers.filter(rising).map(|at| Self { axis: spanning(&axis.name, &at), at }).or_else(|| Self::new(axis))
    }

    /// None where there is nothing to see along it.
    fn new(axis: &Axis) -> Option<Self> {
        let label = |name: String| plot::Axis::new(name, "");
        let numbers: Option<Vec<f64>> = axis.values.iter().map(Value::as_f64).collect();
        if axis.values.len() < 2 {
            return None;
        }
        let even = |at: &[f64]| {
            let step = (at[at.len() - 1] - at[0]) / (at.len() - 1) as f64;
            step > 0.0 && at.iter().enumerate().all(|(i, x)| (x - at[0] - i as f64 * step).abs() < 0.02 * step)
        };
        if let Some(numbers) = numbers {
            if even(&numbers) {
                return Some(Self { axis: label(axis.name.clone()), at: numbers });
            }
            let logarithms: Vec<f64> = numbers.iter().map(|x| x.log10()).collect();
            if even(&logarithms) {
                return Some(Self { axis: label(format!("log10 {}", axis.name)), at: logarithms });
            }
        }
        let words: Vec<String> = axis.values.iter().take(12).map(|value| value.to_string().replace('"', "")).collect();
        let at = (0..axis.values.len()).map(|i| i as f64).collect();
        Some(Self { axis: label(format!("{}: {}", axis.name, words.join(", "))), at })
    }
}

/// A line with a band of two standard errors.
fn curve(panel: &mut Panel, name: &str, at: &[f64], cells: &[Vec<f64>]) {
    let points: Vec<(f64, (f64, f64))> =
        at.iter().zip(cells).filter(|(_, values)| !values.is_empty()).map(|(x, values)| (*x, mean_and_error(values))).collect();
    let band = points.iter().map(|&(x, (mean, error))| [x, mean - error, mean + error]).collect();
    panel.marks.insert(0, Mark::Band { name: String::new(), points: band, style: style_of(name).opacity(0.18) });
    panel.marks.push(Mark::line(name, points.iter().map(|&(x, (mean, _))| [x, mean]).collect()));
}

/// Error over each thing that was varied.
fn curves(numbers: &Numbers<'_>) -> Option<Figure> {
    let plan = numbers.plan;
    let mut panels = Vec::new();
    for (i, input) in plan.inputs.iter().enumerate() {
        for (a, axis) in input.axes.iter().enumerate() {
            let Some(drawn) = Drawn::for_curve(axis) else { continue };
            let mut panel = Panel::new(drawn.axis, level()).titled(&input.name);
            for &best in &numbers.best {
                let index = |place: &Place| (place.input == i).then(|| indices(&input.axes, input.point(place.case))[a]);
                curve(&mut panel, plan.families[best.0].recipe.name, &drawn.at, &numbers.cells(best, drawn.at.len(), index));
            }
            panels.push(panel);
        }
    }
    for (f, family) in plan.families.iter().enumerate() {
        for (a, axis) in family.axes.iter().enumerate() {
            let Some(drawn) = Drawn::for_curve(axis) else { continue };
            let cells: Vec<Vec<f64>> = (0..drawn.at.len()).map(|i| numbers.runs(f, numbers.beside_best(f, &[(a, i)])).0).collect();
            let mut panel = Panel::new(drawn.axis, level()).titled(format!("{}, all inputs", family.recipe.name));
            curve(&mut panel, family.recipe.name, &drawn.at, &cells);
            panels.push(panel);
        }
    }
    page("Prediction error, mean and two standard errors", panels)
}

fn page(title: &str, mut panels: Vec<Panel>) -> Option<Figure> {
    let left_out = panels.len().saturating_sub(PANELS);
    panels.truncate(PANELS);
    let mut figure = Figure::new(title).columns(panels.len().clamp(1, 2));
    if left_out > 0 {
        figure = figure.captioned(format!("{left_out} more panels are left out; the table has their numbers."));
    }
    (!panels.is_empty()).then_some(Figure { panels, ..figure })
}

/// The mean error over two things at a time.
fn maps(numbers: &Numbers<'_>) -> Option<Figure> {
    let plan = numbers.plan;
    let mut panels = Vec::new();
    let pair = |axes: &[Axis]| {
        let drawn: Vec<(usize, Drawn)> = axes.iter().enumerate().filter_map(|(a, axis)| Some((a, Drawn::new(axis)?))).collect();
        let mut drawn = drawn.into_iter().filter(|(_, drawn)| drawn.at.len() <= CELLS);
        drawn.next().zip(drawn.next())
    };
    let ends = |at: &[f64]| [at[0], at[at.len() - 1]];
    let mut map = |title: String, x: Drawn, y: Drawn, cells: &[Vec<f64>]| {
        let values = cells.iter().map(|values| if values.is_empty() { f64::NAN } else { mean_and_error(values).0 }).collect();
        let grid = Grid { x: ends(&x.at), y: ends(&y.at), columns: x.at.len(), values };
        panels.push(Panel::new(x.axis, y.axis).titled(title).with(Mark::Heat { grid, level: level() }));
    };
    for (f, family) in plan.families.iter().enumerate() {
        let Some(((a, x), (b, y))) = pair(&family.axes) else { continue };
        let (columns, rows) = (x.at.len(), y.at.len());
        let cell = |n: usize| numbers.runs(f, numbers.beside_best(f, &[(a, n % columns), (b, n / columns)])).0;
        map(format!("{}, all inputs", family.recipe.name), x, y, &(0..columns * rows).map(cell).collect::<Vec<_>>());
    }
    for (i, input) in plan.inputs.iter().enumerate() {
        for &best in &numbers.best {
            let Some(((a, x), (b, y))) = pair(&input.axes) else { continue };
            let columns = x.at.len();
            let index = |place: &Place| {
                let at = (place.input == i).then(|| indices(&input.axes, input.point(place.case)))?;
                Some(at[b] * columns + at[a])
            };
            let cells = numbers.cells(best, columns * y.at.len(), index);
            map(format!("{}, {}", plan.families[best.0].recipe.name, input.name), x, y, &cells);
        }
    }
    page("Prediction error, mean", panels)
}

/// What was drawn at random, against what it gave.
fn draws(numbers: &Numbers<'_>) -> Option<Figure> {
    let families = numbers.plan.families.iter().enumerate().filter(|(_, family)| !family.drawn.is_empty());
    let mut panels = Vec::new();
    for (f, family) in families {
        let candidate = |point: u64| {
            let named = family.named(point).0;
            let values = named[family.axes.len()..].iter().map(|(_, value)| value.as_f64().unwrap_or(f64::NAN)).collect();
            Candidate { values, score: Some(numbers.score(f, point).1).filter(|s| s.is_finite()).unwrap_or(f64::NAN) }
        };
        let first = numbers.best[f].1 / family.draws() * family.draws();
        let candidates: Vec<Candidate> = (first..first + family.draws().min(DRAWS)).map(candidate).collect();
        let along = |i: usize| candidates.iter().map(|c| c.values[i]).collect::<Vec<_>>();
        let axes: Vec<plot::Axis> = family.drawn.iter().enumerate().map(|(i, name)| spanning(name, &along(i))).collect();
        let name = family.recipe.name;
        panels.extend(landscape("", &axes, level(), &candidates).panels.into_iter().map(|panel| {
            let title = format!("{name}, {}", panel.title);
            Panel { span: 1, ..panel.titled(title) }
        }));
    }
    page("Prediction error of what was drawn, mean", panels)
}
