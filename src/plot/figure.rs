//! What a picture shows, as plain numbers: nothing here is rounded, thinned out or clipped.

use super::axis::Axis;
use super::colour::{Style, style_of};

/// A page of panels under one title.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    /// Above all panels; empty for none.
    pub title: String,
    /// Panels in a row.
    pub columns: usize,
    /// Row by row.
    pub panels: Vec<Panel>,
    /// Width of the page in px; its height follows from the panels.
    pub width: f64,
    /// Below all panels, in as many lines as it takes; empty for none.
    pub caption: String,
}

/// Two axes and what is drawn between them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel {
    /// Above the frame; empty for none.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, later ones above earlier ones, but broken lines above unbroken ones.
    pub marks: Vec<Mark>,
    /// Small panels inside this one.
    pub insets: Vec<Inset>,
    /// Height in px, with titles and labels; the tallest of a row counts.
    pub height: f64,
    /// How many columns it takes.
    pub span: usize,
    /// One unit is as long upwards as it is sideways: maps and constellations.
    pub equal: bool,
}

/// A small panel inside another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inset {
    /// What it shows.
    pub panel: Panel,
    /// Left, top, width and height, in fractions of the outer frame.
    pub place: [f64; 4],
    /// The point of the outer panel that it belongs to, if there is one: a thin line leads there.
    pub anchor: Option<[f64; 2]>,
}

/// Numbers over a rectangle, at evenly spaced points.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid {
    /// The first and last column's x.
    pub x: [f64; 2],
    /// The first and last row's y.
    pub y: [f64; 2],
    /// Points in a row.
    pub columns: usize,
    /// Row by row, the one of lowest y first.
    pub values: Vec<f64>,
}

/// One thing drawn in a panel. Points that are not finite are skipped and leave a gap in a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mark {
    /// Points joined by a line.
    Line {
        /// In the legend; empty to stay out of it.
        name: String,
        /// Follows the name in the legend: an average, say.
        note: String,
        /// x and y.
        points: Vec<[f64; 2]>,
        /// Colour, dash and width.
        style: Style,
    },
    /// Points by themselves.
    Dots {
        /// In the legend; empty to stay out of it.
        name: String,
        /// x and y.
        points: Vec<[f64; 2]>,
        /// Colour and diameter.
        style: Style,
        /// A ring in place of a disc.
        ring: bool,
    },
    /// The area between two lines.
    Band {
        /// In the legend; empty to stay out of it.
        name: String,
        /// x, lower y and upper y.
        points: Vec<[f64; 3]>,
        /// Colour and opacity.
        style: Style,
    },
    /// Rectangles: bars and histograms.
    Boxes {
        /// In the legend; empty to stay out of it.
        name: String,
        /// Left, right, bottom and top.
        boxes: Vec<[f64; 4]>,
        /// Colour and opacity.
        style: Style,
    },
    /// Intervals with a stroke across each end: error bars.
    Whiskers {
        /// From point to point.
        intervals: Vec<[[f64; 2]; 2]>,
        /// Colour and width.
        style: Style,
    },
    /// Dots whose colour is a number, with a scale for it beside the panel; low is dark.
    Scores {
        /// x, y and the number.
        points: Vec<[f64; 3]>,
        /// What the number is.
        level: Axis,
        /// Diameter in px.
        size: f64,
    },
    /// Cells whose colour is a number, with a scale for it beside the panel; low is dark.
    Heat {
        /// The numbers.
        grid: Grid,
        /// What the number is.
        level: Axis,
    },
    /// Lines of equal height.
    Contours {
        /// In the legend; empty to stay out of it.
        name: String,
        /// The heights' landscape.
        grid: Grid,
        /// Heights, each with the style of its line.
        levels: Vec<(f64, Style)>,
    },
}

impl Mark {
    /// A line in the colours of `name`.
    pub(crate) fn line(name: impl Into<String>, points: Vec<[f64; 2]>) -> Self {
        let name = name.into();
        Self::Line { style: style_of(&name), name, note: String::new(), points }
    }

    /// Dots in the colours of `name`.
    #[cfg(test)]
    pub(crate) fn dots(name: impl Into<String>, points: Vec<[f64; 2]>) -> Self {
        let name = name.into();
        Self::Dots { style: style_of(&name).width(5.0).dash(super::colour::Dash::Solid), name, points, ring: false }
    }

    /// The name in the legend; empty for marks without one.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Line { name, .. }
            | Self::Dots { name, .. }
            | Self::Band { name, .. }
            | Self::Boxes { name, .. }
            | Self::Contours { name, .. } => name,
            _ => "",
        }
    }
}

impl Grid {
    /// `rows` times `columns` values of `f(x, y)`.
    pub(crate) fn of(x: [f64; 2], y: [f64; 2], columns: usize, rows: usize, mut f: impl FnMut(f64, f64) -> f64) -> Self {
        let mut grid = Self { x, y, columns, values: Vec::with_capacity(columns * rows) };
        for row in 0..rows {
            for column in 0..columns {
                grid.values.push(f(between(x, column, columns), between(y, row, rows)));
            }
        }
        grid
    }

    /// Full rows.
    pub(crate) fn rows(&self) -> usize {
        self.values.len().checked_div(self.columns).unwrap_or(0)
    }

    /// The x of a column and the y of a row.
    pub(crate) fn place(&self, column: usize, row: usize) -> [f64; 2] {
        [between(self.x, column, self.columns), between(self.y, row, self.rows())]
    }

    /// Cells reach half a step beyond the points at the edge: left, right, bottom, top.
    pub(crate) fn edges(&self) -> [f64; 4] {
        let half = |[a, b]: [f64; 2], n: usize| if n > 1 { (b - a) / (n - 1) as f64 / 2.0 } else { 0.5 };
        let (dx, dy) = (half(self.x, self.columns), half(self.y, self.rows()));
        [self.x[0] - dx, self.x[1] + dx, self.y[0] - dy, self.y[1] + dy]
    }
}

fn between([a, b]: [f64; 2], index: usize, count: usize) -> f64 {
    if count < 2 { a } else { a + (b - a) * index as f64 / (count - 1) as f64 }
}

impl Panel {
    /// An empty panel of one column.
    pub(crate) fn new(x: Axis, y: Axis) -> Self {
        Self { title: String::new(), x, y, marks: Vec::new(), insets: Vec::new(), height: 360.0, span: 1, equal: false }
    }

    /// The same under a title.
    pub(crate) fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// The same with one mark more, above the others.
    pub(crate) fn with(mut self, mark: Mark) -> Self {
        self.marks.push(mark);
        self
    }

    /// The same at another height.
    pub(crate) fn height(self, height: f64) -> Self {
        Self { height, ..self }
    }

    /// The points of the line or dots that the legend calls `name`.
    #[cfg(test)]
    pub(crate) fn points(&self, name: &str) -> Option<&[[f64; 2]]> {
        self.marks.iter().find_map(|mark| match mark {
            Mark::Line { name: own, points, .. } | Mark::Dots { name: own, points, .. } if own == name => Some(points.as_slice()),
            _ => None,
        })
    }
}

impl Figure {
    /// A page without panels, 800 px wide.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), columns: 1, panels: Vec::new(), width: 800.0, caption: String::new() }
    }

    /// The same with one panel more.
    pub(crate) fn with(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }

    /// The same with words below the panels.
    pub(crate) fn captioned(self, caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), ..self }
    }

    /// The same with `columns` panels in a row.
    pub(crate) fn columns(self, columns: usize) -> Self {
        Self { columns: columns.max(1), ..self }
    }

    /// The panels of several figures on one page: `columns` in a row, whatever they were before. A figure's title becomes that of its first panel, unless that
    /// has one.
    pub(crate) fn compose(title: impl Into<String>, columns: usize, figures: impl IntoIterator<Item = Figure>) -> Self {
        let mut page = Self::new(title).columns(columns);
        for figure in figures {
            page.panels.extend(figure.panels.into_iter().enumerate().map(|(i, panel)| {
                let title = if i == 0 && panel.title.is_empty() { figure.title.clone() } else { panel.title.clone() };
                Panel { title, span: panel.span.min(columns.max(1)), ..panel }
            }));
        }
        page
    }
}
