//! From many points to those that can be seen, and from heights to contours: what keeps a picture of a million samples small.

use super::figure::Grid;
use super::scene::{Point, Rect};

/// More dots than this and some are left out.
const DOTS: usize = 12_000;

/// A line in px, in pieces that lie inside `frame`. `None`s are gaps. Of all points within one px column, those that can be seen: the
/// first, the lowest, the highest and the last.
pub(crate) fn line(points: impl Iterator<Item = Option<Point>>, frame: Rect) -> Vec<Vec<Point>> {
    let mut pieces = Vec::new();
    let mut run: Vec<Point> = Vec::new();
    for point in points.chain(std::iter::once(None)) {
        match point {
            Some(point) => run.push(point),
            None if run.is_empty() => {}
            None => {
                clip(&thin(&run, frame), frame, &mut pieces);
                run.clear();
            }
        }
    }
    pieces
}

fn thin(run: &[Point], frame: Rect) -> Vec<Point> {
    if !run.is_sorted_by(|a, b| a.0 <= b.0) {
        // A path that turns back: only what moves by a fifth of a px.
        let mut kept: Vec<Point> = vec![run[0]];
        for &point in &run[1..] {
            let last = kept[kept.len() - 1];
            if (point.0 - last.0).abs().max((point.1 - last.1).abs()) >= 0.2 {
                kept.push(point);
            }
        }
        return kept;
    }
    let column = |x: f64| (x - frame.x).clamp(-1.0, frame.w + 1.0).floor();
    let mut kept = Vec::new();
    let mut start = 0;
    while start < run.len() {
        let here = column(run[start].0);
        let end = start + run[start..].iter().take_while(|p| column(p.0) == here).count();
        let highest = |sign: f64| (start..end).max_by(|&a, &b| (sign * run[a].1).total_cmp(&(sign * run[b].1))).unwrap_or(start);
        let mut seen = [start, highest(1.0), highest(-1.0), end - 1];
        seen.sort_unstable();
        kept.extend(seen.iter().enumerate().filter(|(i, s)| *i == 0 || seen[i - 1] != **s).map(|(_, &s)| run[s]));
        start = end;
    }
    kept
}

fn clip(run: &[Point], frame: Rect, pieces: &mut Vec<Vec<Point>>) {
    if let [only] = run {
        if frame.contains(*only) {
            pieces.push(vec![*only]);
        }
        return;
    }
    let mut open = false;
    for pair in run.windows(2) {
        let Some((a, b)) = frame.clip(pair[0], pair[1]) else {
            open = false;
            continue;
        };
        match pieces.last_mut() {
            Some(piece) if open => piece.push(b),
            _ => pieces.push(vec![a, b]),
        }
        open = b == pair[1];
    }
}

/// The dots inside `frame`; where there are too many, a fair sample of them and the extremes of every px column.
pub(crate) fn dots(points: impl Iterator<Item = Point>, frame: Rect) -> Vec<Point> {
    let inside: Vec<Point> = points.filter(|&p| frame.contains(p)).collect();
    if inside.len() <= DOTS {
        return inside;
    }
    let mut extremes: Vec<Option<(usize, usize)>> = vec![None; frame.w as usize + 1];
    for (i, &(x, y)) in inside.iter().enumerate() {
        let slot = &mut extremes[(x - frame.x) as usize];
        let (lo, hi) = slot.unwrap_or((i, i));
        *slot = Some((if y < inside[lo].1 { i } else { lo }, if y > inside[hi].1 { i } else { hi }));
    }
    let kept: std::collections::BTreeSet<usize> = extremes.into_iter().flatten().flat_map(|(lo, hi)| [lo, hi]).collect();
    // Chosen by a hash of the index: every n-th point would fall into step with symbols and frames.
    let share = DOTS as f64 / inside.len() as f64;
    (0..inside.len()).filter(|&i| uniform(i) < share || kept.contains(&i)).map(|i| inside[i]).collect()
}

/// A number in 0..1 that looks random and is always the same for one index (SplitMix64).
fn uniform(index: usize) -> f64 {
    let mut z = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// `grid` as seen through the cells between neighbouring `xs` and `ys`, both increasing, row by row. Each is the largest of those that it touches: a burst must
/// not vanish.
pub(crate) fn pool(grid: &Grid, xs: &[f64], ys: &[f64]) -> Vec<f64> {
    let [left, right, bottom, top] = grid.edges();
    let touched = |cut: &[f64], lo: f64, hi: f64, count: usize| {
        // A cut on the edge of a cell, give or take rounding, does not touch the cell behind it.
        let at = |v: f64, shift: f64| ((v - lo) / (hi - lo) * count as f64 + shift).clamp(0.0, count as f64 - 1.0) as usize;
        let first = at(cut[0], 1e-6);
        first..at(cut[1], -1e-6).max(first) + 1
    };
    let columns: Vec<_> = xs.windows(2).map(|cut| touched(cut, left, right, grid.columns)).collect();
    let mut values = Vec::with_capacity(columns.len() * ys.len());
    for cut in ys.windows(2) {
        let rows = touched(cut, bottom, top, grid.rows());
        // `max` ignores NaN on either side.
        let largest = |columns: &std::ops::Range<usize>| {
            let cells = rows.clone().flat_map(|row| &grid.values[row * grid.columns..][columns.clone()]);
            cells.fold(f64::NAN, |most, &v| most.max(v))
        };
        values.extend(columns.iter().map(largest));
    }
    values
}

/// The line at height `level`, as segments in the grid's coordinates: marching squares, where saddles are settled by the mean of the four.
pub(crate) fn contour(grid: &Grid, level: f64) -> Vec<[[f64; 2]; 2]> {
    let (columns, rows) = (grid.columns, grid.rows());
    let mut segments = Vec::new();
    for row in 0..rows.saturating_sub(1) {
        for column in 0..columns.saturating_sub(1) {
            // Around the cell, so that neighbours share an edge.
            let corners = [(column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1)];
            let heights = corners.map(|(c, r)| grid.values[r * columns + c] - level);
            if !heights.iter().all(|h| h.is_finite()) {
                continue;
            }
            let crossing = |edge: usize| {
                let next = (edge + 1) % 4;
                let t = heights[edge] / (heights[edge] - heights[next]);
                let ([ax, ay], [bx, by]) = (grid.place(corners[edge].0, corners[edge].1), grid.place(corners[next].0, corners[next].1));
                [ax + t * (bx - ax), ay + t * (by - ay)]
            };
            let crossed: Vec<usize> = (0..4).filter(|&e| (heights[e] >= 0.0) != (heights[(e + 1) % 4] >= 0.0)).collect();
            match crossed[..] {
                [a, b] => segments.push([crossing(a), crossing(b)]),
                [a, b, c, d] => {
                    let joined = (heights.iter().sum::<f64>() >= 0.0) == (heights[0] >= 0.0);
                    let pairs = if joined { [[a, b], [c, d]] } else { [[d, a], [b, c]] };
                    segments.extend(pairs.map(|[a, b]| [crossing(a), crossing(b)]));
                }
                _ => {}
            }
        }
    }
    segments
}

#[cfg(test)]
#[path = "../../tests/unit/plot/reduce.rs"]
mod tests;
