//! How a filter is drawn.

/// A colour of the palette of pictures. Linear baselines are grey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hue {
    Grey,
    Orange,
    Sky,
    Green,
    Blue,
    Vermillion,
    Pink,
    Wine,
    Olive,
    Indigo,
}

/// How a line is broken. Two lines of one colour differ in this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dash {
    /// One unbroken line.
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
    /// Dash, dot, dash, dot.
    Mixed,
}
