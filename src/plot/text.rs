//! Text: how wide it is, and its outlines. The font is part of the program, so a picture needs none on the machine.

use ttf_parser::{Face, GlyphId};

/// Sans-serif, readable when small, with the Greek letters and superscripts that formulas need.
fn face() -> Option<Face<'static>> {
    Face::parse(dejavu::sans::regular(), 0).ok()
}

fn glyph(face: &Face, c: char) -> GlyphId {
    face.glyph_index(c).or_else(|| face.glyph_index('?')).unwrap_or_default()
}

/// Width of `text` in px at `size` px.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let Some(face) = face() else { return 0.6 * size * text.chars().count() as f64 };
    let units: f64 = text.chars().map(|c| f64::from(face.glyph_hor_advance(glyph(&face, c)).unwrap_or(0))).sum();
    units * size / f64::from(face.units_per_em())
}

/// `text`, or as much of its beginning as fits into `room` px followed by an ellipsis.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.chars().collect();
    while kept.pop().is_some() {
        let short = kept.iter().collect::<String>().trim_end().to_owned() + "…";
        if width(&short, size) <= room {
            return short;
        }
    }
    String::new()
}

/// `text` in lines that fit into `room` px, broken between words where that is possible.
pub(crate) fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= room => *line = format!("{line} {word}"),
            _ => lines.push(fit(word, size, room)),
        }
    }
    lines
}

/// The outlines of `text` with its baseline's left end at the origin, y downwards.
pub(crate) fn outlines(text: &str, size: f64) -> Option<tiny_skia::Path> {
    struct Pen {
        path: tiny_skia::PathBuilder,
        x: f32,
        scale: f32,
    }
    impl Pen {
        fn at(&self, x: f32, y: f32) -> (f32, f32) {
            (self.x + x * self.scale, -y * self.scale)
        }
    }
    impl ttf_parser::OutlineBuilder for Pen {
        fn move_to(&mut self, x: f32, y: f32) {
            let (x, y) = self.at(x, y);
            self.path.move_to(x, y);
        }
        fn line_to(&mut self, x: f32, y: f32) {
            let (x, y) = self.at(x, y);
            self.path.line_to(x, y);
        }
        fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
            let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
            self.path.quad_to(x1, y1, x, y);
        }
        fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
            let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
            self.path.cubic_to(x1, y1, x2, y2, x, y);
        }
        fn close(&mut self) {
            self.path.close();
        }
    }
    let face = face()?;
    let mut pen = Pen { path: tiny_skia::PathBuilder::new(), x: 0.0, scale: size as f32 / f32::from(face.units_per_em()) };
    for c in text.chars() {
        let id = glyph(&face, c);
        face.outline_glyph(id, &mut pen);
        pen.x += f32::from(face.glyph_hor_advance(id).unwrap_or(0)) * pen.scale;
    }
    pen.path.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_does_not_fit_ends_in_an_ellipsis() {
        assert_eq!(fit("short", 12.0, 100.0), "short");
        let long = fit("a rather long legend entry", 12.0, 80.0);
        assert!(long.ends_with('…') && width(&long, 12.0) <= 80.0);
        assert_eq!(fit("anything", 12.0, 1.0), "");
    }

    #[test]
    fn wrapped_lines_fit_and_hold_all_words() {
        let text = "Gray lines show 11 repeats of the experiment,\nand the dark curve their average.";
        let lines = wrap(text, 12.0, 150.0);
        assert!(lines.len() > 2 && lines.iter().all(|line| width(line, 12.0) <= 150.0), "{lines:?}");
        assert_eq!(lines.join(" "), text.split_whitespace().collect::<Vec<_>>().join(" "));
        assert!(wrap("", 12.0, 100.0).is_empty());
    }

    #[test]
    fn the_font_has_what_axes_need() {
        let face = face().unwrap();
        for c in "−µ·×⁻⁰¹²³⁴⁵⁶⁷⁸⁹λησεα±≤°√|".chars() {
            assert!(face.glyph_index(c).is_some(), "{c}");
        }
    }
}
