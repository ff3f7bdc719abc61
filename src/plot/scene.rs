//! A laid-out figure as a list of shapes, which [`svg`](super::svg) and [`png`](super::png) draw alike.

use super::colour::{Colour, Style};

pub(crate) type Point = (f64, f64);

/// A rectangle in px, y downwards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) w: f64,
    pub(crate) h: f64,
}

impl Rect {
    pub(crate) fn right(&self) -> f64 {
        self.x + self.w
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.y + self.h
    }

    pub(crate) fn contains(&self, (x, y): Point) -> bool {
        x >= self.x && x <= self.right() && y >= self.y && y <= self.bottom()
    }

    pub(crate) fn corners(&self) -> Vec<Point> {
        vec![(self.x, self.y), (self.right(), self.y), (self.right(), self.bottom()), (self.x, self.bottom())]
    }

    /// The part of the segment from `a` to `b` that lies inside (Liang and Barsky, 1984).
    pub(crate) fn clip(&self, a: Point, b: Point) -> Option<(Point, Point)> {
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let (mut from, mut to) = (0.0_f64, 1.0_f64);
        for (p, q) in [(-dx, a.0 - self.x), (dx, self.right() - a.0), (-dy, a.1 - self.y), (dy, self.bottom() - a.1)] {
            if p == 0.0 {
                if q < 0.0 {
                    return None;
                }
            } else if p < 0.0 {
                from = from.max(q / p);
            } else {
                to = to.min(q / p);
            }
        }
        (from <= to).then_some(((a.0 + from * dx, a.1 + from * dy), (a.0 + to * dx, a.1 + to * dy)))
    }
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// One thing to draw. Later ones cover earlier ones.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Open lines; `name` says in the SVG whose they are.
    Lines {
        pieces: Vec<Vec<Point>>,
        style: Style,
        name: String,
    },
    /// A closed, filled area, with an outline when `stroke` is given.
    Area {
        outlines: Vec<Vec<Point>>,
        fill: Colour,
        opacity: f64,
        stroke: Option<Style>,
    },
    /// Round dots of diameter `style.width`.
    Dots {
        points: Vec<Point>,
        style: Style,
        name: String,
    },
    /// `text` at `at`, its baseline there; turned a quarter to the left when `upright`; on a white rim when `rim`.
    Text {
        at: Point,
        text: String,
        size: f64,
        anchor: Anchor,
        colour: Colour,
        upright: bool,
        rim: bool,
    },
    /// Pixels, row by row from the top, stretched over `place`.
    Image {
        place: Rect,
        columns: usize,
        pixels: Vec<Colour>,
    },
    /// What follows up to `Close` belongs to a panel with this description.
    Open(String),
    Close,
}

/// All of a figure.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) title: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) shapes: Vec<Shape>,
}

impl Scene {
    pub(crate) fn line(&mut self, points: &[Point], style: Style) {
        self.shapes.push(Shape::Lines { pieces: vec![points.to_vec()], style, name: String::new() });
    }

    pub(crate) fn rect(&mut self, rect: Rect, fill: Colour, opacity: f64, stroke: Option<Style>) {
        self.shapes.push(Shape::Area { outlines: vec![rect.corners()], fill, opacity, stroke });
    }

    pub(crate) fn text(&mut self, at: Point, text: impl Into<String>, size: f64, anchor: Anchor, colour: Colour) {
        let text = text.into();
        if !text.is_empty() {
            self.shapes.push(Shape::Text { at, text, size, anchor, colour, upright: false, rim: false });
        }
    }
}
