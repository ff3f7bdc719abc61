//! The marks of one panel, from data to px.

use super::axis::{Axis, Scale};
use super::colour::{Dash, FRAME, Style, WHITE, viridis};
use super::figure::{Mark, Panel};
use super::scene::{Anchor, Point, Rect, Scene, Shape};
use super::{legend, reduce};

/// A frame in px and the ranges that it shows.
pub(crate) struct Place {
    pub(crate) frame: Rect,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    /// Names run from the top downwards.
    pub(crate) down: bool,
}

impl Place {
    pub(crate) fn across(&self, value: f64) -> f64 {
        self.frame.x + self.x.at(value).clamp(-1e6, 1e6) * self.frame.w
    }

    pub(crate) fn up(&self, value: f64) -> f64 {
        let at = self.y.at(value).clamp(-1e6, 1e6);
        if self.down { self.frame.y + at * self.frame.h } else { self.frame.bottom() - at * self.frame.h }
    }

    /// `None` for what has no place: NaN, infinity, and what is not positive on a logarithmic axis.
    pub(crate) fn point(&self, x: &Axis, y: &Axis, [px, py]: [f64; 2]) -> Option<Point> {
        (x.takes(px) && y.takes(py)).then(|| (self.across(px), self.up(py)))
    }

    fn within(&self, (x, y): Point) -> Point {
        (x.clamp(self.frame.x, self.frame.right()), y.clamp(self.frame.y, self.frame.bottom()))
    }
}

/// The ranges of both axes.
pub(crate) fn scales(panel: &Panel) -> (Scale, Scale) {
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    let (mut x_pad, mut y_pad) = (0.0_f64, 0.05_f64);
    for mark in &panel.marks {
        match mark {
            Mark::Line { points, .. } => points.iter().for_each(|p| push(panel, &mut xs, &mut ys, p[0], p[1])),
            Mark::Dots { points, .. } => {
                x_pad = x_pad.max(0.03);
                points.iter().for_each(|p| push(panel, &mut xs, &mut ys, p[0], p[1]));
            }
            Mark::Scores { points, .. } => {
                x_pad = x_pad.max(0.04);
                points.iter().for_each(|p| push(panel, &mut xs, &mut ys, p[0], p[1]));
            }
            Mark::Band { points, .. } => points.iter().for_each(|p| {
                push(panel, &mut xs, &mut ys, p[0], p[1]);
                push(panel, &mut xs, &mut ys, p[0], p[2]);
            }),
            Mark::Boxes { boxes, .. } => boxes.iter().for_each(|b| {
                push(panel, &mut xs, &mut ys, b[0], b[2]);
                push(panel, &mut xs, &mut ys, b[1], b[3]);
            }),
            Mark::Whiskers { intervals, .. } => intervals.iter().flatten().for_each(|p| push(panel, &mut xs, &mut ys, p[0], p[1])),
            Mark::Heat { grid, .. } => {
                let [left, right, bottom, top] = grid.edges();
                xs.extend([left, right]);
                ys.extend([bottom, top]);
                y_pad = 0.0;
            }
            Mark::Contours { grid, .. } => {
                xs.extend(grid.x);
                ys.extend(grid.y);
                y_pad = 0.0;
            }
        }
    }
    (Scale::around(&panel.x, xs.into_iter(), x_pad), Scale::around(&panel.y, ys.into_iter(), y_pad))
}

/// A point counts for the ranges only if it can be drawn, and, for y, only if it lies within a given range of x.
fn push(panel: &Panel, xs: &mut Vec<f64>, ys: &mut Vec<f64>, x: f64, y: f64) {
    if panel.x.takes(x) && panel.y.takes(y) {
        xs.push(x);
        if panel.x.range.is_none_or(|[lo, hi]| x >= lo && x <= hi) {
            ys.push(y);
        }
    }
}

/// What the colours of a panel stand for, and their range.
pub(crate) fn level(panel: &Panel) -> Option<(&Axis, Scale)> {
    panel.marks.iter().find_map(|mark| match mark {
        Mark::Heat { grid, level } => Some((level, Scale::around(level, grid.values.iter().copied(), 0.0))),
        Mark::Scores { points, level, .. } => Some((level, Scale::around(level, points.iter().map(|p| p[2]), 0.0))),
        _ => None,
    })
}

/// All marks, in their order.
pub(crate) fn marks(scene: &mut Scene, panel: &Panel, place: &Place, size: f64) {
    let before = scene.shapes.len();
    // Where two lines coincide, a broken one shows the other through its gaps: unbroken lines go first, in the places where lines are.
    let broken = |mark: &&Mark| matches!(mark, Mark::Line { style, .. } if style.dash != Dash::Solid);
    let is_line = |mark: &&Mark| matches!(mark, Mark::Line { .. });
    let mut lines: Vec<&Mark> = panel.marks.iter().filter(is_line).collect();
    lines.sort_by_key(broken);
    let mut lines = lines.into_iter();
    for mark in &panel.marks {
        let mark = if is_line(&mark) { lines.next().unwrap_or(mark) } else { mark };
        draw(scene, mark, panel, place);
    }
    if scene.shapes.len() == before && !panel.marks.is_empty() {
        let centre = (place.frame.x + place.frame.w / 2.0, place.frame.y + place.frame.h / 2.0);
        scene.text(centre, "no data", size, Anchor::Middle, FRAME);
    }
}

fn draw(scene: &mut Scene, mark: &Mark, panel: &Panel, place: &Place) {
    let frame = place.frame;
    let at = |p: [f64; 2]| place.point(&panel.x, &panel.y, p);
    match mark {
        Mark::Line { name, points, style, .. } => {
            let (lone, pieces): (Vec<_>, Vec<_>) =
                reduce::line(points.iter().map(|&p| at(p)), frame).into_iter().partition(|p| p.len() == 1);
            if !pieces.is_empty() {
                scene.shapes.push(Shape::Lines { pieces, style: *style, name: name.clone() });
            }
            if !lone.is_empty() {
                scene.shapes.push(Shape::Dots { points: lone.concat(), style: style.width(style.width + 2.5), name: name.clone() });
            }
        }
        Mark::Dots { name, points, style, ring } => {
            let points = reduce::dots(points.iter().filter_map(|&p| at(p)), frame);
            if !points.is_empty() {
                legend::dots(scene, points, *style, *ring, name);
            }
        }
        Mark::Band { points, style, .. } => {
            let side = |which: usize| reduce::line(points.iter().map(|p| at([p[0], p[which]]).map(|p| place.within(p))), frame).concat();
            let (low, high) = (side(1), side(2));
            if low.len() > 1 {
                let outline: Vec<Point> = low.into_iter().chain(high.into_iter().rev()).collect();
                scene.shapes.push(Shape::Area { outlines: vec![outline], fill: style.colour, opacity: style.opacity, stroke: None });
            }
        }
        Mark::Boxes { boxes, style, .. } => {
            // A bar that begins at zero begins at the edge of a logarithmic axis.
            let floor = |axis: &Axis, scale: &Scale, v: f64| if axis.log && v <= 0.0 { scale.lo } else { v };
            let outlines = boxes.iter().filter_map(|&[left, right, bottom, top]| {
                let a = at([floor(&panel.x, &place.x, left), floor(&panel.y, &place.y, bottom)])?;
                let b = at([floor(&panel.x, &place.x, right), floor(&panel.y, &place.y, top)])?;
                let (a, b) = (place.within(a), place.within(b));
                (a.0 != b.0 && a.1 != b.1).then(|| vec![a, (b.0, a.1), b, (a.0, b.1)])
            });
            let outlines: Vec<Vec<Point>> = outlines.collect();
            if !outlines.is_empty() {
                scene.shapes.push(Shape::Area { outlines, fill: style.colour, opacity: style.opacity, stroke: None });
            }
        }
        Mark::Whiskers { intervals, style } => {
            let mut pieces = Vec::new();
            for &[a, b] in intervals {
                let (Some(a), Some(b)) = (at(a), at(b)) else { continue };
                if let Some((a, b)) = frame.clip(a, b) {
                    let level = (a.0 - b.0).abs() > (a.1 - b.1).abs();
                    let (dx, dy) = if level { (0.0, 4.0) } else { (4.0, 0.0) };
                    pieces.extend([
                        vec![a, b],
                        vec![(a.0 - dx, a.1 - dy), (a.0 + dx, a.1 + dy)],
                        vec![(b.0 - dx, b.1 - dy), (b.0 + dx, b.1 + dy)],
                    ]);
                }
            }
            if !pieces.is_empty() {
                // On a white rim, to be seen on a bar of any colour.
                let rim = Style { colour: WHITE, width: style.width + 2.0, opacity: 0.8, dash: Dash::Solid };
                scene.shapes.push(Shape::Lines { pieces: pieces.clone(), style: rim, name: String::new() });
                scene.shapes.push(Shape::Lines { pieces, style: style.dash(Dash::Solid), name: String::new() });
            }
        }
        Mark::Scores { points, size, .. } => {
            let Some((axis, scale)) = level(panel) else { return };
            let mut seen: Vec<(f64, Point)> =
                points.iter().filter(|p| axis.takes(p[2])).filter_map(|p| Some((scale.at(p[2]), at([p[0], p[1]])?))).collect();
            // The low ones, which a search looks for, on top.
            seen.sort_by(|a, b| b.0.total_cmp(&a.0));
            for (score, point) in seen.into_iter().filter(|(_, p)| frame.contains(*p)) {
                let dot = |colour, width| Shape::Dots { points: vec![point], style: Style::solid(colour, width), name: String::new() };
                scene.shapes.push(dot(WHITE, size + 1.5));
                scene.shapes.push(dot(viridis(score), *size));
            }
        }
        Mark::Heat { grid, .. } => heat(scene, panel, place, grid),
        Mark::Contours { grid, levels, name } => {
            for (height, style) in levels {
                let segments = reduce::contour(grid, *height);
                let pieces: Vec<Vec<Point>> =
                    segments.iter().filter_map(|&[a, b]| frame.clip(at(a)?, at(b)?)).map(|(a, b)| vec![a, b]).collect();
                if !pieces.is_empty() {
                    scene.shapes.push(Shape::Lines { pieces: chain(pieces), style: *style, name: name.clone() });
                }
            }
        }
    }
}

fn heat(scene: &mut Scene, panel: &Panel, place: &Place, grid: &super::Grid) {
    let Some((axis, scale)) = level(panel) else { return };
    let (frame, [left, right, bottom, top]) = (place.frame, grid.edges());
    // What is not positive lies beyond the edge of a logarithmic axis.
    let edge = |scale: &Scale, value: f64| if scale.log { value.max(scale.lo) } else { value };
    let (left, right, bottom, top) = (edge(&place.x, left), edge(&place.x, right), edge(&place.y, bottom), edge(&place.y, top));
    if grid.rows() == 0 || ![left, right, bottom, top].iter().all(|v| v.is_finite()) {
        return;
    }
    let (a, b) = (place.within((place.across(left), place.up(top))), place.within((place.across(right), place.up(bottom))));
    if a.0 >= b.0 || a.1 >= b.1 {
        return;
    }
    // A pixel for each cell where the whole grid is in sight and has no more cells than there are px; else one for each px.
    let whole = |from: f64, to: f64, lo: f64, hi: f64, log: bool| !log && from <= lo.min(hi) + 1e-9 && to >= lo.max(hi) - 1e-9;
    let cuts = |axis: &Scale, from: f64, to: f64, first: f64, last: f64, cells: usize, px: f64| {
        let px = (px.ceil() as usize).max(1);
        let count = if whole(axis.lo, axis.hi, first, last, axis.log) { cells.min(px) } else { px };
        (0..=count).map(|i| axis.value(from + (to - from) * i as f64 / count as f64)).collect::<Vec<f64>>()
    };
    let (w, h) = (b.0 - a.0, b.1 - a.1);
    let xs = cuts(&place.x, (a.0 - frame.x) / frame.w, (b.0 - frame.x) / frame.w, left, right, grid.columns, w);
    let ys = cuts(&place.y, (frame.bottom() - b.1) / frame.h, (frame.bottom() - a.1) / frame.h, bottom, top, grid.rows(), h);
    let columns = xs.len() - 1;
    let values = reduce::pool(grid, &xs, &ys);
    let shade = |&value: &f64| viridis(if axis.takes(value) { scale.at(value) } else { f64::NAN });
    let pixels = values.chunks_exact(columns).rev().flat_map(|row| row.iter().map(shade)).collect();
    scene.shapes.push(Shape::Image { place: Rect { x: a.0, y: a.1, w, h }, columns, pixels });
}

/// Joins segments end to end, so that dashes run along the whole line.
fn chain(segments: Vec<Vec<Point>>) -> Vec<Vec<Point>> {
    use std::collections::{HashMap, VecDeque};
    // Ends that coincide were computed from the same two corners, up to rounding.
    let key = |(x, y): Point| ((x * 1e3).round() as i64, (y * 1e3).round() as i64);
    let mut ends: HashMap<(i64, i64), Vec<usize>> = HashMap::new();
    for (i, segment) in segments.iter().enumerate() {
        ends.entry(key(segment[0])).or_default().push(i);
        ends.entry(key(segment[1])).or_default().push(i);
    }
    let mut used = vec![false; segments.len()];
    let mut chains = Vec::new();
    for start in 0..segments.len() {
        if std::mem::replace(&mut used[start], true) {
            continue;
        }
        let mut chain = VecDeque::from(segments[start].clone());
        for forward in [true, false] {
            while let Some(&tip) = if forward { chain.back() } else { chain.front() } {
                let Some(&next) = ends.get(&key(tip)).and_then(|all| all.iter().find(|&&i| !used[i])) else { break };
                used[next] = true;
                let far = if key(segments[next][0]) == key(tip) { segments[next][1] } else { segments[next][0] };
                if forward { chain.push_back(far) } else { chain.push_front(far) }
            }
        }
        chains.push(chain.into());
    }
    chains
}
