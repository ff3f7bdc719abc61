//! Pictures of experiments: averages over runs, fields in the plane, parameter searches.

use super::axis::{Axis, Scale, number, short};
use super::colour::{BLUE, Dash, FRAME, INK, PALE, Style, VERMILLION, style_of};
use super::draw;
use super::figure::{Figure, Grid, Inset, Mark, Panel};

/// One bar of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    /// The filter's name, which gives the bar its colour.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// Half the length of its error bar: two standard errors.
    pub error: Option<f64>,
    /// What it should be: drawn as a ring.
    pub reference: Option<f64>,
}

/// A bar for each filter, from 0 to its value, with error bars and reference values; the numbers stand beside the names.
pub(crate) fn bars(title: impl Into<String>, value: Axis, bars: &[Bar]) -> Figure {
    let decimals = 2;
    let label = |bar: &Bar| {
        let value = number(bar.value, decimals);
        bar.error.map_or_else(|| format!("{}  {value}", bar.name), |e| format!("{}  {value} ± {}", bar.name, number(e, decimals)))
    };
    // Room at the ends of the bars.
    let ends =
        bars.iter().flat_map(|b| [0.0, b.value - b.error.unwrap_or(0.0), b.value + b.error.unwrap_or(0.0), b.reference.unwrap_or(0.0)]);
    let Scale { lo, hi, .. } = Scale::around(&value, ends, 0.03);
    let value = if value.range.is_none() && !bars.is_empty() { value.range(lo, hi) } else { value };
    let mut panel = Panel::new(value, Axis::default().names(bars.iter().map(label))).height(70.0 + 34.0 * bars.len() as f64);
    let (mut intervals, mut references) = (Vec::new(), Vec::new());
    for (i, bar) in bars.iter().enumerate() {
        let at = i as f64;
        let style = style_of(&bar.name).opacity(0.85);
        panel.marks.push(Mark::Boxes { name: String::new(), boxes: vec![[0.0, bar.value, at - 0.34, at + 0.34]], style });
        intervals.extend(bar.error.map(|e| [[bar.value - e, at], [bar.value + e, at]]));
        // Below the middle, where the error bar is.
        references.extend(bar.reference.map(|r| [r, at + 0.24]));
    }
    if !intervals.is_empty() {
        panel.marks.push(Mark::Whiskers { intervals, style: Style::solid(INK, 1.5) });
    }
    if !references.is_empty() {
        panel.height += 24.0;
        panel.marks.push(Mark::Dots { name: "reference".into(), points: references, style: Style::solid(INK, 8.5), ring: true });
    }
    Figure::new(title).with(panel)
}

/// Each run in grey and their mean above them, in the colour of `name`.
pub(crate) fn repeats(title: impl Into<String>, x: Axis, y: Axis, runs: &[Vec<[f64; 2]>], name: &str, mean: Vec<[f64; 2]>) -> Figure {
    let mut panel = Panel::new(x, y);
    for (i, run) in runs.iter().enumerate() {
        let name = if i == 0 { format!("{} runs", runs.len()) } else { String::new() };
        panel.marks.push(Mark::Line { name, note: String::new(), points: run.clone(), style: Style::solid(PALE, 1.0).opacity(0.8) });
    }
    // In a colour, whatever the name: the runs are grey.
    let style = Style::solid(BLUE, 2.6);
    panel.marks.push(Mark::Line { name: name.to_owned(), note: String::new(), points: mean, style });
    Figure::new(title).with(panel)
}

impl Panel {
    /// The same with a row of insets at the top, each with a line to its anchor. The panel's vertical range grows, so that they cover no data: `share` of
    /// the height is theirs.
    pub(crate) fn with_insets(mut self, share: f64, insets: Vec<(Panel, Option<[f64; 2]>)>) -> Self {
        let share = share.clamp(0.1, 0.8);
        let (_, Scale { lo, hi, log }) = draw::scales(&self);
        let stretch = 1.0 / (1.0 - share);
        let top = if log { lo * (hi / lo).powf(stretch) } else { lo + (hi - lo) * stretch };
        self.y = Axis { ticks_up_to: Some(hi), ..self.y.range(lo, top) };
        let wide = 1.0 / insets.len().max(1) as f64;
        self.insets.extend(insets.into_iter().enumerate().map(|(i, (panel, anchor))| {
            let place = [(i as f64 + 0.03) * wide, 0.02, 0.94 * wide, share - 0.03];
            Inset { panel, place, anchor }
        }));
        self
    }
}

/// A probability over the plane at one moment, and what it should be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// Above its panel: "t = 250".
    pub title: String,
    /// The estimate.
    pub grid: Grid,
    /// The true boundary; empty for none.
    pub truth: Vec<[f64; 2]>,
    /// Where its centre moves along; empty for none.
    pub path: Vec<[f64; 2]>,
}

impl Field {
    /// Contours at .25, .5 and .75, the boundary dashed, the path grey.
    pub(crate) fn panel(&self, x: Axis, y: Axis) -> Panel {
        let mut panel = Panel::new(x, y).titled(&self.title).height(300.0);
        panel.equal = true;
        let line =
            |name: &str, points: &[[f64; 2]], style| Mark::Line { name: name.into(), note: String::new(), points: points.to_vec(), style };
        if !self.path.is_empty() {
            panel.marks.push(line("path", &self.path, Style::solid(PALE, 2.0)));
        }
        if !self.truth.is_empty() {
            panel.marks.push(line("truth", &self.truth, Style::solid(INK, 1.4).dash(Dash::Dashed)));
        }
        for (height, style) in
            [(0.25, Style::solid(BLUE, 1.3).dash(Dash::Dotted)), (0.5, Style::solid(BLUE, 2.2)), (0.75, Style::solid(VERMILLION, 1.5))]
        {
            panel.marks.push(Mark::Contours { name: format!("p = {height}"), grid: self.grid.clone(), levels: vec![(height, style)] });
        }
        panel
    }
}

/// Contours over the plane at several moments, `columns` in a row.
pub(crate) fn fields(title: impl Into<String>, columns: usize, x: &Axis, y: &Axis, fields: &[Field]) -> Figure {
    let panels = fields.iter().map(|field| field.panel(x.clone(), y.clone())).collect();
    Figure { panels, ..Figure::new(title).columns(columns) }
}

/// One set of parameters that a search has tried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// In the order of the axes.
    pub values: Vec<f64>,
    /// The smaller the better.
    pub score: f64,
}

/// What a search saw: two parameters as a map whose colour is the score, any other number with a panel for each, score over parameter. The best is
/// ringed.
pub(crate) fn landscape(title: impl Into<String>, parameters: &[Axis], score: Axis, candidates: &[Candidate]) -> Figure {
    let best = candidates.iter().filter(|c| c.score.is_finite()).min_by(|a, b| a.score.total_cmp(&b.score));
    let value = |c: &Candidate, i: usize| c.values.get(i).copied().unwrap_or(f64::NAN);
    let ring = |point: [f64; 2], size: f64| Mark::Dots {
        name: String::new(),
        points: vec![point],
        style: Style::solid(VERMILLION, size),
        ring: true,
    };
    if let [x, y] = parameters {
        let points = candidates.iter().map(|c| [value(c, 0), value(c, 1), c.score]).collect();
        let mut panel = Panel::new(x.clone(), y.clone()).height(420.0);
        if let Some(c) = best {
            let place = format!("{} {} and {} {}", x.label, short(value(c, 0)), y.label, short(value(c, 1)));
            panel.title = format!("best {} {} at {place}", number(c.score, 2), score.unit);
        }
        panel.marks.push(Mark::Scores { points, level: score.clone(), size: 9.0 });
        // Above the others, which crowd around it.
        if let Some(c) = best {
            let at = [value(c, 0), value(c, 1)];
            panel.marks.extend([ring(at, 18.0), Mark::Scores { points: vec![[at[0], at[1], c.score]], level: score, size: 9.0 }]);
        }
        return Figure::new(title).with(panel);
    }
    let mut title = title.into();
    if let Some(c) = best {
        title += &format!(": best {} {}", number(c.score, 2), score.unit);
    }
    let mut figure = Figure::new(title).columns(parameters.len().clamp(1, 2));
    for (i, axis) in parameters.iter().enumerate() {
        let points = candidates.iter().map(|c| [value(c, i), c.score]).collect();
        let style = Style::solid(FRAME, 4.5).opacity(0.6);
        let mut panel =
            Panel::new(axis.clone(), score.clone()).height(270.0).with(Mark::Dots { name: String::new(), points, style, ring: false });
        if let Some(c) = best {
            panel.title = format!("best at {}", short(value(c, i)));
            panel.marks.push(ring([value(c, i), c.score], 10.0));
        }
        figure.panels.push(panel);
    }
    // No gap in the last row.
    if figure.panels.len() % figure.columns == 1
        && let Some(last) = figure.panels.last_mut()
    {
        last.span = figure.columns;
    }
    figure
}
