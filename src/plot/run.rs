//! Pictures of filters at work: error, taps and weights over time.

use num_complex::Complex64;

use super::axis::{Axis, Scale, number};
use super::colour::{style_at, styles_of};
use super::figure::{Figure, Grid, Mark, Panel};

/// A named line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Series {
    /// In the legend; a filter's name gives the line its colour.
    pub name: String,
    /// x and y.
    pub points: Vec<[f64; 2]>,
    /// Follows the name in the legend.
    pub note: String,
}

impl Series {
    /// A line through `points`.
    pub(crate) fn new(name: impl Into<String>, points: Vec<[f64; 2]>) -> Self {
        Self { name: name.into(), points, note: String::new() }
    }

    /// A line through `values` at `start`, `start + step`, ...
    #[cfg(test)]
    pub(crate) fn evenly(name: impl Into<String>, start: f64, step: f64, values: &[f64]) -> Self {
        Self::new(name, values.iter().enumerate().map(|(i, &v)| [start + step * i as f64, v]).collect())
    }

    /// The same with a note in the legend.
    pub(crate) fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }
}

/// Several lines between two axes, each in the colour of its name.
pub(crate) fn lines(title: impl Into<String>, x: Axis, y: Axis, series: &[Series]) -> Figure {
    let names: Vec<&str> = series.iter().map(|s| s.name.as_str()).collect();
    let marks = series.iter().zip(styles_of(&names)).map(|(s, style)| Mark::Line {
        name: s.name.clone(),
        note: s.note.clone(),
        points: s.points.clone(),
        style,
    });
    Figure::new(title).with(Panel { marks: marks.collect(), ..Panel::new(x, y) })
}

/// The error of one filter over time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NmseCurve {
    /// The filter's name.
    pub name: String,
    /// Time, in the unit of the axis, and normalised mean squared error in dB.
    pub points: Vec<[f64; 2]>,
    /// Over the whole run, in dB; written into the legend.
    pub average_db: Option<f64>,
}

/// Above this, in dB, a filter has diverged and more of it would only press the others flat.
const DIVERGED_DB: f64 = 10.0;

/// NMSE over time, the averages in the legend. A filter that diverges leaves the picture through the top.
pub(crate) fn nmse_over_time(title: impl Into<String>, time: Axis, curves: &[NmseCurve]) -> Figure {
    let note = |db: f64| if db.is_finite() { format!("{} dB", number(db, 1)) } else { "diverged".to_owned() };
    let series: Vec<Series> =
        curves.iter().map(|c| Series::new(c.name.as_str(), c.points.clone()).note(c.average_db.map_or(String::new(), note))).collect();
    let values = || curves.iter().flat_map(|c| &c.points).map(|p| p[1]).filter(|v| v.is_finite());
    let (lo, hi) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let mut y = Axis::new("NMSE", "dB");
    if hi > DIVERGED_DB && lo < DIVERGED_DB {
        y = y.range(lo - 0.05 * (DIVERGED_DB - lo), DIVERGED_DB);
    }
    lines(title, time, y, &series)
}

/// Which part of a complex tap is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Absolute value.
    Magnitude,
    /// Real part, as in the paper's figure 5.
    Real,
    /// Angle in degrees, from −180 to 180; a line that would jump from one end to the other is broken.
    Phase,
}

/// The impulse response of one channel over time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Taps {
    /// The channel's name, above its panel.
    pub name: String,
    /// When.
    pub times: Vec<f64>,
    /// For each delay, the tap at those times.
    pub taps: Vec<Vec<Complex64>>,
}

/// Lines that can be told apart in one panel.
const LINES: usize = 8;

/// Taps over time, a panel for each channel, two of them in a row where there are several. More than eight taps are drawn as a map, delay over time.
pub(crate) fn taps_over_time(title: impl Into<String>, time: Axis, channels: &[Taps], part: Part) -> Figure {
    let (label, unit, pick): (_, _, fn(Complex64) -> f64) = match part {
        Part::Magnitude => ("|h|", "", |h| h.norm()),
        Part::Real => ("Re h", "", |h| h.re),
        Part::Phase => ("arg h", "°", |h| h.arg().to_degrees()),
    };
    let several = channels.len() > 1;
    // One scale for all channels, so that they can be compared.
    let heights = channels.iter().flat_map(|c| &c.taps).flatten().map(|&h| pick(h));
    let Scale { lo, hi, .. } = Scale::around(&Axis::default(), heights, 0.05);
    let (lo, hi) = match part {
        Part::Magnitude => (0.0, hi),
        Part::Phase => (-180.0, 180.0),
        Part::Real => (lo, hi),
    };
    let mut figure = Figure::new(title).columns(if several { 2 } else { 1 });
    for channel in channels {
        let level = Axis::new(label, unit).range(lo, hi);
        let height = if several { 250.0 } else { 340.0 };
        if channel.taps.len() > LINES
            && let [first, .., last] = channel.times[..]
        {
            // In dB, where an impulse response is long: most of it is small.
            let db = part == Part::Magnitude;
            let pick = |&h: &Complex64| if db { crate::dsp::db(h.norm_sqr(), 1.0) } else { pick(h) };
            let values: Vec<f64> = channel.taps.iter().flatten().map(pick).collect();
            let top = values.iter().copied().filter(|v| v.is_finite()).fold(f64::NEG_INFINITY, f64::max);
            let level = if db && top.is_finite() { Axis::new(label, "dB").range(top - 50.0, top) } else { level };
            let grid = Grid { x: [first, last], y: [0.0, channel.taps.len() as f64 - 1.0], columns: channel.times.len(), values };
            let panel = Panel::new(time.clone(), Axis::new("tap", "")).titled(&channel.name).height(height);
            figure.panels.push(panel.with(Mark::Heat { grid, level }));
            continue;
        }
        let mut panel = Panel::new(time.clone(), level).titled(&channel.name).height(height);
        for (delay, tap) in channel.taps.iter().enumerate() {
            let mut points: Vec<[f64; 2]> = channel.times.iter().zip(tap).map(|(&t, &h)| [t, pick(h)]).collect();
            if part == Part::Phase {
                unjoin(&mut points);
            }
            panel.marks.push(Mark::Line { name: format!("tap {delay}"), note: String::new(), points, style: style_at(delay) });
        }
        figure.panels.push(panel);
    }
    figure
}

/// Breaks a line of angles where it runs over the edge.
fn unjoin(points: &mut Vec<[f64; 2]>) {
    for i in (1..points.len()).rev() {
        if (points[i][1] - points[i - 1][1]).abs() > 180.0 {
            points.insert(i, [points[i][0], f64::NAN]);
        }
    }
}

/// The weights in a filter's dictionary.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights {
    /// The filter's name.
    pub name: String,
    /// How many centres were admitted after each one; samples, where every sample becomes a centre.
    pub ages: Vec<f64>,
    /// The absolute value of its coefficient.
    pub sizes: Vec<f64>,
}

/// Size of each weight over its age, a panel for each filter, and how much of the total size is younger than that.
pub(crate) fn weights(title: impl Into<String>, filters: &[Weights]) -> Figure {
    let oldest = filters.iter().flat_map(|f| &f.ages).copied().filter(|a| a.is_finite()).fold(0.0, f64::max);
    let age = || Axis::new("age", "centres admitted since").range(0.0, oldest);
    // One scale for all, so that they can be compared.
    let size = Axis::new("size |α|", "").log();
    let Scale { lo, hi, .. } = Scale::around(&size, filters.iter().flat_map(|f| &f.sizes).copied(), 0.05);
    let columns = filters.len().clamp(1, 2);
    let mut figure = Figure::new(title).columns(columns);
    let mut share = Panel::new(age(), Axis::new("share of size up to age", "%").range(0.0, 100.0)).height(260.0);
    share.span = columns;
    let names: Vec<&str> = filters.iter().map(|f| f.name.as_str()).collect();
    for (filter, style) in filters.iter().zip(styles_of(&names)) {
        let mut pairs: Vec<[f64; 2]> =
            filter.ages.iter().zip(&filter.sizes).map(|(&a, &s)| [a, s]).filter(|p| p[0].is_finite() && p[1].is_finite()).collect();
        let dots = Mark::Dots { name: filter.name.clone(), points: pairs.clone(), style: style.width(4.0).opacity(0.7), ring: false };
        let height = if columns == 1 { 300.0 } else { 220.0 };
        figure.panels.push(Panel::new(age(), size.clone().range(lo, hi)).height(height).with(dots));
        pairs.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let total: f64 = pairs.iter().map(|p| p[1]).sum();
        let cumulated = pairs.iter().scan(0.0, |sum, p| {
            *sum += p[1];
            Some([p[0], 100.0 * *sum / total])
        });
        share.marks.push(Mark::Line { name: filter.name.clone(), note: String::new(), points: cumulated.collect(), style });
    }
    if figure.panels.len() > 1
        && figure.panels.len() % 2 == 1
        && let Some(last) = figure.panels.last_mut()
    {
        last.span = 2;
    }
    figure.with(share)
}
