//! Where everything goes: from a [`Figure`] to a scene. Margins are as wide as the labels in them, legends stand above the frames, so that
//! nothing covers the data and no two labels meet.

use super::axis::{Axis, Scale, Tick};
use super::colour::{FRAME, GRID, INK, Style, VERMILLION, WHITE};
use super::draw;
use super::figure::{Figure, Mark, Panel};
use super::legend::{self, Entry};
use super::scene::{Anchor, Rect, Scene, Shape};
use super::{svg, text};

/// Text sizes in px.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) tick: f64,
    pub(crate) label: f64,
    pub(crate) title: f64,
}

const FULL: Sizes = Sizes { tick: 13.0, label: 14.0, title: 15.0 };
const SMALL: Sizes = Sizes { tick: 10.5, label: 11.0, title: 11.5 };
const HEADLINE: f64 = 18.0;
const EDGE: f64 = 10.0;
/// Width of a colour scale, and its distance from the frame.
const BAR: f64 = 13.0;

/// Space around a frame for titles, ticks and labels.
#[derive(Clone, Copy, Debug, Default)]
struct Margins {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Margins {
    fn frame(&self, cell: Rect) -> Rect {
        let (w, h) = (cell.w - self.left - self.right, cell.h - self.top - self.bottom);
        Rect { x: cell.x + self.left, y: cell.y + self.top, w: w.max(10.0), h: h.max(10.0) }
    }
}

/// A panel with its ranges settled.
struct Measured<'a> {
    panel: &'a Panel,
    x: Scale,
    y: Scale,
    level: Option<(&'a Axis, Scale)>,
    legend: Vec<Entry>,
    sizes: Sizes,
}

/// The whole figure.
pub(crate) fn scene(figure: &Figure) -> Scene {
    let columns = figure.columns.max(1);
    let width = if figure.width.is_finite() { figure.width.clamp(120.0, 10_000.0) } else { 800.0 };
    let mut panels: Vec<Measured> = figure.panels.iter().map(|panel| Measured::new(panel, FULL)).collect();

    let mut scene = Scene { title: figure.title.clone(), width, height: 0.0, shapes: Vec::new() };
    let mut y = EDGE;
    if !figure.title.is_empty() {
        y += HEADLINE;
        scene.text((width / 2.0, y), text::fit(&figure.title, HEADLINE, width - 2.0 * EDGE), HEADLINE, Anchor::Middle, INK);
        y += 10.0;
    }
    let shared = share_legends(&mut panels, columns, width);
    let mut heights: Vec<f64> = panels.iter().map(|p| p.height(width / columns as f64)).collect();
    let mut cells = cells(&panels, &heights, &shared, columns, width, y).0;
    // Panels whose two axes share a scale are no taller than their width lets them be.
    for ((height, measured), (cell, margins)) in heights.iter_mut().zip(&panels).zip(cells.iter().zip(align(&panels, &cells))) {
        if measured.panel.equal {
            let frame = fit_equal(margins.frame(cell.rect), &measured.x, &measured.y);
            *height = height.min(frame.h + margins.top + margins.bottom);
        }
    }
    (cells, y) = self::cells(&panels, &heights, &shared, columns, width, y);
    for legend in &shared {
        let top = cells[legend.first].rect.y - legend.height(width);
        legend::draw(&mut scene, &legend.entries, (EDGE + 20.0, top), SharedLegend::room(width), FULL.tick);
    }
    for line in text::wrap(&figure.caption, FULL.tick, width - 4.0 * EDGE) {
        y += FULL.tick + 5.0;
        scene.text((2.0 * EDGE, y + 4.0), line, FULL.tick, Anchor::Start, INK);
    }
    scene.height = y + if figure.caption.is_empty() { EDGE } else { EDGE + 6.0 };

    let margins = align(&panels, &cells);
    for ((measured, cell), margins) in panels.iter().zip(&cells).zip(&margins) {
        measured.draw(&mut scene, cell.rect, margins);
    }
    scene
}

/// A legend above whole rows of panels, in place of each one's own.
struct SharedLegend {
    /// The first panel of the first row.
    first: usize,
    entries: Vec<Entry>,
}

impl SharedLegend {
    fn room(width: f64) -> f64 {
        width - 2.0 * EDGE - 40.0
    }

    fn height(&self, width: f64) -> f64 {
        legend::height(&self.entries, Self::room(width), FULL.tick) + 4.0
    }
}

/// Takes the legends of neighbours that fill whole rows and would all have the same.
fn share_legends(panels: &mut [Measured], columns: usize, width: f64) -> Vec<SharedLegend> {
    let rows: Vec<usize> = cells(panels, &vec![1.0; panels.len()], &[], columns, width, 0.0).0.iter().map(|cell| cell.row).collect();
    let ends = |i: usize| i == rows.len() || i == 0 || rows[i] != rows[i - 1];
    let mut shared = Vec::new();
    let mut first = 0;
    while first < panels.len() {
        let alike = panels[first..].iter().take_while(|p| !p.legend.is_empty() && p.legend == panels[first].legend).count();
        let end = (first..=first + alike).rev().find(|&i| ends(i)).unwrap_or(first);
        if ends(first) && end > first + 1 {
            let entries = std::mem::take(&mut panels[first].legend);
            panels[first..end].iter_mut().for_each(|p| p.legend.clear());
            shared.push(SharedLegend { first, entries });
        }
        first = end.max(first + 1);
    }
    shared
}

struct Cell {
    rect: Rect,
    row: usize,
    column: usize,
    span: usize,
}

/// Where each panel goes, and where the last row ends.
fn cells(panels: &[Measured], heights: &[f64], shared: &[SharedLegend], columns: usize, width: f64, top: f64) -> (Vec<Cell>, f64) {
    const GAP: f64 = 14.0;
    let column_width = (width - 2.0 * EDGE - GAP * (columns - 1) as f64) / columns as f64;
    let mut cells: Vec<Cell> = Vec::new();
    let (mut y, mut row, mut column, mut row_height) = (top, 0, 0, 0.0_f64);
    for (i, (measured, height)) in panels.iter().zip(heights).enumerate() {
        let span = measured.panel.span.clamp(1, columns);
        if column + span > columns {
            y += row_height + GAP;
            (row, column, row_height) = (row + 1, 0, 0.0);
        }
        y += shared.iter().find(|legend| legend.first == i).map_or(0.0, |legend| legend.height(width));
        let x = EDGE + column as f64 * (column_width + GAP);
        let rect = Rect { x, y, w: span as f64 * (column_width + GAP) - GAP, h: *height };
        cells.push(Cell { rect, row, column, span });
        row_height = row_height.max(*height);
        column += span;
        // A row is as tall as its tallest panel.
        cells.iter_mut().filter(|cell| cell.row == row).for_each(|cell| cell.rect.h = row_height);
    }
    (cells, y + row_height)
}

/// Margins of each panel, so that frames in one column share their left and right edges and frames in one row their top and bottom. Names and colour
/// scales take so much room that their panels stay out of it.
fn align(panels: &[Measured], cells: &[Cell]) -> Vec<Margins> {
    let mut margins = vec![Margins { left: 70.0, right: 15.0, top: 30.0, bottom: 50.0 }; panels.len()];
    // Ticks depend on the frame and the frame on the ticks: the second pass settles it.
    for _ in 0..3 {
        let own: Vec<Margins> = panels.iter().zip(cells).zip(&margins).map(|((p, c), m)| p.margins(c.rect, m)).collect();
        let most = |pick: &dyn Fn(usize) -> Option<f64>| (0..cells.len()).filter_map(pick).fold(0.0, f64::max);
        for (i, (margin, cell)) in margins.iter_mut().zip(cells).enumerate() {
            let last = |c: &Cell| c.column + c.span;
            let (named, scaled) = (|p: &Measured| !p.panel.y.names.is_empty(), |p: &Measured| p.level.is_some());
            let left = most(&|j| (cells[j].column == cell.column && !named(&panels[j])).then_some(own[j].left));
            let right = most(&|j| (last(&cells[j]) == last(cell) && !scaled(&panels[j])).then_some(own[j].right));
            *margin = Margins {
                left: if named(&panels[i]) { own[i].left } else { left },
                right: if scaled(&panels[i]) { own[i].right } else { right },
                top: most(&|j| (cells[j].row == cell.row).then_some(own[j].top)),
                bottom: most(&|j| (cells[j].row == cell.row).then_some(own[j].bottom)),
            };
        }
    }
    margins
}

impl<'a> Measured<'a> {
    fn new(panel: &'a Panel, sizes: Sizes) -> Self {
        let (x, y) = draw::scales(panel);
        Self { panel, x, y, level: draw::level(panel), legend: legend::entries(panel), sizes }
    }

    /// As asked for, and the legend's rows on top of it.
    fn height(&self, width: f64) -> f64 {
        let height = if self.panel.height.is_finite() { self.panel.height.clamp(80.0, 4000.0) } else { 360.0 };
        height + legend::height(&self.legend, width * self.panel.span as f64 - 90.0, self.sizes.tick)
    }

    fn y_ticks(&self, frame: Rect) -> (Vec<Tick>, String) {
        let most = match self.panel {
            panel if !panel.y.names.is_empty() => frame.h / self.sizes.tick,
            // As many as would fit along x, so that the grid is square.
            panel if panel.equal => (frame.h / (4.0 * self.sizes.tick)).clamp(2.0, 8.0),
            _ => (frame.h / (2.2 * self.sizes.tick)).clamp(2.0, 8.0),
        };
        self.y.ticks(&self.panel.y, most as usize)
    }

    /// As many as fit side by side.
    fn x_ticks(&self, frame: Rect) -> (Vec<Tick>, String) {
        let most = (frame.w / (2.5 * self.sizes.tick)).clamp(1.0, 10.0) as usize;
        for most in (2..=most).rev() {
            let (ticks, title) = self.x.ticks(&self.panel.x, most);
            let spans: Vec<(f64, f64)> = ticks
                .iter()
                .filter(|t| !t.text.is_empty())
                .map(|t| (self.x.at(t.value) * frame.w, text::width(&t.text, self.sizes.tick)))
                .collect();
            if spans.windows(2).all(|pair| pair[1].0 - pair[0].0 >= (pair[0].1 + pair[1].1) / 2.0 + 1.2 * self.sizes.tick) {
                return (ticks, title);
            }
        }
        let (ticks, title) = self.x.ticks(&self.panel.x, 2);
        (ticks.into_iter().take(1).collect(), title)
    }

    fn margins(&self, cell: Rect, now: &Margins) -> Margins {
        let Sizes { tick, label, title } = self.sizes;
        let frame = now.frame(cell);
        let (y_ticks, y_title) = self.y_ticks(frame);
        let (x_ticks, x_title) = self.x_ticks(frame);
        let widest = |ticks: &[Tick]| ticks.iter().map(|t| text::width(&t.text, tick)).fold(0.0, f64::max);
        let left = widest(&y_ticks).min(0.4 * cell.w) + 7.0 + if y_title.is_empty() { 4.0 } else { label + 10.0 };
        let overhang = x_ticks.last().map_or(0.0, |t| text::width(&t.text, tick) / 2.0 - (1.0 - self.x.at(t.value)) * frame.w);
        let level = self.level.as_ref().map_or(0.0, |(axis, scale)| {
            let (ticks, title) = scale.ticks(axis, level_ticks(frame));
            2.0 * BAR + 6.0 + widest(&ticks) + if title.is_empty() { 4.0 } else { label + 10.0 }
        });
        let legend = legend::height(&self.legend, frame.w, tick);
        Margins {
            left,
            right: overhang.max(level).max(6.0) + 2.0,
            top: if self.panel.title.is_empty() { 4.0 } else { title + 8.0 } + legend,
            bottom: tick + 8.0 + if x_title.is_empty() { 0.0 } else { label + 6.0 } + 2.0,
        }
    }

    fn draw(&self, scene: &mut Scene, cell: Rect, margins: &Margins) {
        let Sizes { tick, label, title } = self.sizes;
        let full = margins.frame(cell);
        let frame = if self.panel.equal { fit_equal(full, &self.x, &self.y) } else { full };
        let (y_ticks, y_title) = self.y_ticks(frame);
        let (x_ticks, x_title) = self.x_ticks(frame);
        let place = draw::Place { frame, x: self.x, y: self.y, down: !self.panel.y.names.is_empty() };

        let mut top = frame.y - legend::height(&self.legend, full.w, tick);
        if !self.legend.is_empty() {
            legend::draw(scene, &self.legend, (full.x, top), full.w, tick);
        }
        top -= 7.0;
        let room = (cell.w - 8.0).max(0.0);
        let heading = text::fit(&self.panel.title, title, room);
        let centre = (frame.x + frame.w / 2.0)
            .clamp(cell.x + text::width(&heading, title) / 2.0, (cell.right() - text::width(&heading, title) / 2.0).max(cell.x));
        scene.text((centre, top), heading, title, Anchor::Middle, INK);

        let kind = |scale: &Scale| if scale.log { "log" } else { "linear" };
        scene.shapes.push(Shape::Open(format!(
            "class=\"panel\" data-title=\"{}\" data-frame=\"{} {} {} {}\" data-x=\"{} {} {}\" data-y=\"{} {} {}\"",
            svg::escape(&self.panel.title),
            frame.x,
            frame.y,
            frame.w,
            frame.h,
            self.x.lo,
            self.x.hi,
            kind(&self.x),
            self.y.lo,
            self.y.hi,
            kind(&self.y)
        )));
        let covered = self.panel.marks.iter().any(|mark| matches!(mark, Mark::Heat { .. }));
        let grid = Style::solid(GRID, 1.0);
        for t in x_ticks.iter().filter(|t| !covered && !t.text.is_empty()) {
            let x = place.across(t.value);
            scene.line(&[(x, frame.y), (x, frame.bottom())], grid);
        }
        for t in y_ticks.iter().filter(|t| !covered && !t.text.is_empty() && self.panel.y.names.is_empty()) {
            let y = place.up(t.value);
            scene.line(&[(frame.x, y), (frame.right(), y)], grid);
        }
        draw::marks(scene, self.panel, &place, tick);
        scene.shapes.push(Shape::Close);

        let edge = Style::solid(FRAME, 1.0);
        scene.line(&[frame.corners(), frame.corners()[..1].to_vec()].concat(), edge);
        for t in &x_ticks {
            let x = place.across(t.value);
            let length = if t.text.is_empty() { 2.5 } else { 4.5 };
            scene.line(&[(x, frame.bottom()), (x, frame.bottom() + length)], edge);
            scene.text((x, frame.bottom() + tick + 6.0), t.text.as_str(), tick, Anchor::Middle, INK);
        }
        for t in &y_ticks {
            let y = place.up(t.value);
            let length = if t.text.is_empty() { 2.5 } else { 4.5 };
            scene.line(&[(frame.x - length, y), (frame.x, y)], edge);
            scene.text((frame.x - 7.0, y + 0.36 * tick), text::fit(&t.text, tick, 0.4 * cell.w), tick, Anchor::End, INK);
        }
        let below = frame.bottom() + tick + 8.0 + label + 1.0;
        scene.text((frame.x + frame.w / 2.0, below), text::fit(&x_title, label, cell.w), label, Anchor::Middle, INK);
        let widest = y_ticks.iter().map(|t| text::width(&t.text, tick)).fold(0.0, f64::max).min(0.4 * cell.w);
        upright(scene, (frame.x - widest - 7.0 - 8.0, frame.y + frame.h / 2.0), &y_title, label, cell.h);
        if let Some((axis, scale)) = &self.level {
            self.colour_bar(scene, frame, axis, scale);
        }
        for inset in &self.panel.insets {
            let [left, top, w, h] = inset.place;
            let outer = Rect { x: frame.x + left * frame.w, y: frame.y + top * frame.h, w: w * frame.w, h: h * frame.h };
            if let Some([x, y]) = inset.anchor
                && let Some(point) = place.point(&self.panel.x, &self.panel.y, [x, y])
            {
                let near = (point.0.clamp(outer.x, outer.right()), point.1.clamp(outer.y, outer.bottom()));
                scene.line(&[near, point], Style::solid(FRAME, 1.0));
                scene.shapes.push(Shape::Dots { points: vec![point], style: Style::solid(VERMILLION, 6.0), name: String::new() });
            }
            let small = Measured::new(&inset.panel, SMALL);
            scene.rect(outer, WHITE, 1.0, Some(Style::solid(GRID, 1.0)));
            let inner = Rect { x: outer.x + 4.0, y: outer.y + 3.0, w: outer.w - 8.0, h: outer.h - 6.0 };
            let mut margins = Margins { left: 30.0, right: 8.0, top: 16.0, bottom: 20.0 };
            for _ in 0..2 {
                margins = small.margins(inner, &margins);
            }
            small.draw(scene, inner, &margins);
        }
    }

    fn colour_bar(&self, scene: &mut Scene, frame: Rect, axis: &Axis, scale: &Scale) {
        let Sizes { tick, label, .. } = self.sizes;
        let bar = Rect { x: frame.right() + BAR, y: frame.y, w: BAR, h: frame.h };
        let pixels = (0..128).rev().map(|i| super::colour::viridis(f64::from(i) / 127.0)).collect();
        scene.shapes.push(Shape::Image { place: bar, columns: 1, pixels });
        scene.line(&[bar.corners(), bar.corners()[..1].to_vec()].concat(), Style::solid(FRAME, 1.0));
        let (ticks, title) = scale.ticks(axis, level_ticks(frame));
        let mut widest = 0.0_f64;
        for t in &ticks {
            let y = bar.bottom() - scale.at(t.value) * bar.h;
            let length = if t.text.is_empty() { 2.0 } else { 4.0 };
            scene.line(&[(bar.right(), y), (bar.right() + length, y)], Style::solid(FRAME, 1.0));
            scene.text((bar.right() + 6.0, y + 0.36 * tick), t.text.as_str(), tick, Anchor::Start, INK);
            widest = widest.max(text::width(&t.text, tick));
        }
        upright(scene, (bar.right() + 6.0 + widest + label + 4.0, frame.y + frame.h / 2.0), &title, label, frame.h + 40.0);
    }
}

fn level_ticks(frame: Rect) -> usize {
    (frame.h / 45.0).clamp(2.0, 7.0) as usize
}

fn upright(scene: &mut Scene, at: (f64, f64), words: &str, size: f64, room: f64) {
    let words = text::fit(words, size, room);
    if !words.is_empty() {
        scene.shapes.push(Shape::Text { at, text: words, size, anchor: Anchor::Middle, colour: INK, upright: true, rim: false });
    }
}

/// The largest frame in the middle of `full` where both axes have the same px for each unit.
fn fit_equal(full: Rect, x: &Scale, y: &Scale) -> Rect {
    let span = |s: &Scale| if s.log { s.hi.ln() - s.lo.ln() } else { s.hi - s.lo };
    let unit = (full.w / span(x)).min(full.h / span(y));
    let (w, h) = ((unit * span(x)).max(10.0), (unit * span(y)).max(10.0));
    Rect { x: full.x + (full.w - w) / 2.0, y: full.y + (full.h - h), w, h }
}
