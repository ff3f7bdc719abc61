//! Legends: a row or more of entries above the frame, where they cover nothing.

use super::colour::{INK, Style};
use super::figure::{Mark, Panel};
use super::scene::{Anchor, Point, Rect, Scene, Shape};
use super::text;

/// What stands before the words.
#[derive(Clone, Debug, PartialEq)]
enum Sample {
    Line,
    Dot { ring: bool },
    Box,
}

/// One name and how it looks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    sample: Sample,
    style: Style,
    words: String,
}

const SAMPLE: f64 = 28.0;
const GAP: f64 = 20.0;

/// The marks that have a name. Dots and a line of one name share an entry.
pub(crate) fn entries(panel: &Panel) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for mark in &panel.marks {
        let name = mark.name();
        if name.is_empty() {
            continue;
        }
        let (sample, style, note) = match mark {
            Mark::Line { style, note, .. } => (Sample::Line, *style, note.as_str()),
            Mark::Contours { levels, .. } => (Sample::Line, levels.first().map_or(Style::solid(INK, 1.0), |l| l.1), ""),
            Mark::Dots { style, ring, .. } => (Sample::Dot { ring: *ring }, style.opacity(1.0).width(style.width.max(6.0)), ""),
            Mark::Band { style, .. } | Mark::Boxes { style, .. } => (Sample::Box, *style, ""),
            _ => continue,
        };
        let words = if note.is_empty() { name.to_owned() } else { format!("{name}  {note}") };
        if !entries.iter().any(|e| e.words == words) {
            entries.push(Entry { sample, style, words });
        }
    }
    entries
}

/// The widths of as many columns as fit, each as wide as its widest entry, so that rows line up.
fn arrange(entries: &[Entry], room: f64, size: f64) -> Vec<f64> {
    let wide: Vec<f64> = entries.iter().map(|e| SAMPLE + 6.0 + text::width(&e.words, size)).collect();
    let columns = |n: usize| (0..n).map(|c| wide.iter().skip(c).step_by(n).copied().fold(0.0, f64::max)).collect::<Vec<f64>>();
    let fits = |widths: &Vec<f64>| widths.iter().sum::<f64>() + GAP * (widths.len() - 1) as f64 <= room;
    let most = (1..=entries.len()).rev().find(|&n| fits(&columns(n))).unwrap_or(1);
    // As even as the number of rows allows: 5 entries where 4 fit make 3 + 2.
    let even = columns(entries.len().div_ceil(entries.len().div_ceil(most).max(1)).max(1));
    if fits(&even) { even } else { columns(most) }
}

pub(crate) fn height(entries: &[Entry], room: f64, size: f64) -> f64 {
    if entries.is_empty() {
        return 0.0;
    }
    let columns = arrange(entries, room, size).len();
    entries.len().div_ceil(columns) as f64 * (size + 6.0) + 6.0
}

/// Draws from `corner` downwards and says how high it became.
pub(crate) fn draw(scene: &mut Scene, entries: &[Entry], corner: Point, room: f64, size: f64) -> f64 {
    let widths = arrange(entries, room, size);
    let columns = widths.len();
    for (i, entry) in entries.iter().enumerate() {
        let x = corner.0 + widths[..i % columns].iter().map(|w| w + GAP).sum::<f64>();
        let y = corner.1 + (i / columns) as f64 * (size + 6.0) + size;
        let middle = y - 0.36 * size;
        match entry.sample {
            Sample::Line => scene.line(&[(x, middle), (x + SAMPLE, middle)], entry.style.width(entry.style.width.max(1.5))),
            Sample::Dot { ring } => dots(scene, vec![(x + SAMPLE / 2.0, middle)], entry.style, ring, ""),
            Sample::Box => {
                let place = Rect { x: x + 6.0, y: middle - 5.0, w: SAMPLE - 10.0, h: 10.0 };
                scene.rect(place, entry.style.colour, entry.style.opacity, None);
            }
        }
        scene.text((x + SAMPLE + 6.0, y), text::fit(&entry.words, size, room - SAMPLE - 6.0), size, Anchor::Start, INK);
    }
    height(entries, room, size)
}

/// Discs, or rings: discs with a white heart.
pub(crate) fn dots(scene: &mut Scene, points: Vec<Point>, style: Style, ring: bool, name: &str) {
    if ring {
        scene.shapes.push(Shape::Dots { points: points.clone(), style, name: name.to_owned() });
        let heart = Style { colour: super::colour::WHITE, width: style.width - 3.6, opacity: 1.0, ..style };
        scene.shapes.push(Shape::Dots { points, style: heart, name: String::new() });
    } else {
        scene.shapes.push(Shape::Dots { points, style, name: name.to_owned() });
    }
}
