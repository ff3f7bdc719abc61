//! A few hundred pairs, and which impulse response explains them.

use num_complex::{Complex32, Complex64};

use crate::dsp::{BEFORE as LEFT, BEHIND as RIGHT, Place, interpolate, wide};
use crate::iq::align::normal::{AFTER, BEFORE, Equations, Grid, WIDE, cross};

/// Samples over which any channel holds still, nearly.
pub(super) const PIECE: usize = 128;

/// Pieces of a probe, at most.
pub(super) const PIECES: usize = 4;

/// Samples around the pieces that tell how steep the signal is there.
const MARGIN: usize = if LEFT > RIGHT { LEFT } else { RIGHT } + 2;

/// What fading and whatever else is not in the model does to a measured delay, in samples.
const MODEL: f64 = 0.01;

/// The last pairs of a block.
pub(super) struct Probe {
    pieces: Vec<Piece>,
    /// Mean power of the reference, and of what was received.
    pub(super) sent: f64,
    pub(super) power: f64,
}

struct Piece {
    equations: Equations,
    /// The derivative of the received signal: with the paths, with the signal, and with itself.
    slope: [Complex64; WIDE],
    inner: f64,
    energy: f64,
}

/// What a fit leaves over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    pub(super) all: f64,
    /// In the last piece alone.
    pub(super) last: f64,
}

fn clean(z: &Complex32) -> Complex64 {
    if z.re.is_finite() && z.im.is_finite() { wide(*z) } else { Complex64::default() }
}

impl Probe {
    /// A look at the end of `received`; `reference` fills a slice with what was sent from a place on, counted from the first of `received`. None where there is too little.
    pub(super) fn new(received: &[Complex32], reference: impl FnOnce(i64, &mut [Complex32])) -> Option<Self> {
        let pieces = (received.len().checked_sub(2 * MARGIN)? / PIECE).min(PIECES);
        if pieces == 0 {
            return None;
        }
        let length = pieces * PIECE;
        let from = received.len() - MARGIN - length;
        let mut sent = vec![Complex32::ZERO; length + WIDE - 1];
        // Path 0 is `BEFORE` samples earlier than the expected one.
        reference(from as i64 - AFTER, &mut sent);
        let sent: Vec<Complex64> = sent.iter().map(clean).collect();
        let around: Vec<Complex32> =
            received[from - MARGIN..].iter().map(|z| if z.re.is_finite() && z.im.is_finite() { *z } else { Complex32::ZERO }).collect();
        let mut halves = Vec::with_capacity(length + 3);
        interpolate(&around, &mut Place { whole: MARGIN - 2, fraction: 0.5 }, 0.0, length + 3, &mut halves);
        let y: Vec<Complex64> = around[MARGIN..MARGIN + length].iter().map(|z| wide(*z)).collect();
        // The derivative to the fourth order in the distance.
        let slope: Vec<Complex64> =
            halves.windows(4).map(|h| (wide(h[2]) - wide(h[1])) * (9.0 / 8.0) - (wide(h[3]) - wide(h[0])) / 24.0).collect();
        let pieces = (0..pieces)
            .map(|p| {
                let (sent, y, slope) = (&sent[p * PIECE..][..PIECE + WIDE - 1], &y[p * PIECE..][..PIECE], &slope[p * PIECE..][..PIECE]);
                Piece {
                    equations: Equations::new(sent, y),
                    slope: cross(sent, slope),
                    inner: slope.iter().zip(y).map(|(s, y)| (s.conj() * y).re).sum(),
                    energy: slope.iter().map(|s| s.norm_sqr()).sum(),
                }
            })
            .collect();
        let mean = |z: &[Complex64]| z.iter().map(|z| z.norm_sqr()).sum::<f64>() / z.len() as f64;
        Some(Self { pieces, sent: mean(&sent[AFTER as usize..][..length]), power: mean(&y) })
    }

    /// The number of samples.
    pub(super) fn len(&self) -> usize {
        self.pieces.len() * PIECE
    }

    /// The share of the received power that `grid` leaves, corrected for what it would explain of noise.
    pub(super) fn left(&self, grid: Grid) -> Left {
        let mut left = Left::default();
        let noise = 1.0 / (1.0 - grid.paths as f64 / PIECE as f64);
        for piece in &self.pieces {
            let y = piece.equations.factor(grid).halve(&piece.equations.cross);
            left.last = noise * (piece.equations.power - energy(&y)).max(0.0);
            left.all += left.last;
        }
        left.last /= self.power * PIECE as f64;
        left.all /= self.power * self.len() as f64;
        left
    }

    /// How much later the received signal would have to be read so that `grid` explains it best, in samples, and the variance of that; and the share of the power that would be left.
    ///
    /// One step of Gauss and Newton in the delay, the response of each piece taken out: `|P(y + t y')|²` is least at `t = -Re⟨Py', Py⟩ / |Py'|²`, where `P` removes what
    /// the paths explain.
    pub(super) fn late(&self, grid: Grid) -> (f64, f64, f64) {
        let (mut inner, mut steep, mut left, mut all) = (0.0, 0.0, 0.0, 0.0);
        for piece in &self.pieces {
            let factor = piece.equations.factor(grid);
            let (y, slope) = (factor.halve(&piece.equations.cross), factor.halve(&piece.slope));
            let both: f64 = slope.iter().zip(&y).map(|(s, y)| (s.conj() * y).re).sum();
            inner += piece.inner - both;
            steep += piece.energy - energy(&slope);
            all += piece.energy;
            left += piece.equations.power - energy(&y);
        }
        if steep <= 0.0 {
            return (0.0, f64::INFINITY, 1.0);
        }
        let late = -inner / steep;
        let left = (left - inner * inner / steep).max(0.0);
        // Noise of power s in each sample moves the estimate by s / (2 |Py'|²). What else is not in the model counts for the more, the more of the slope the paths can imitate.
        let variance = left / self.len() as f64 / (2.0 * steep) + (MODEL * all / steep).powi(2);
        (late, variance, left / (self.power * self.len() as f64))
    }

    /// The share of the power that `response` on `grid`, times a complex gain for each piece, does not explain.
    pub(super) fn unlike(&self, grid: Grid, response: &[Complex64]) -> f64 {
        let mut explained = 0.0;
        for Piece { equations, .. } in &self.pieces {
            let (mut alike, mut energy) = (Complex64::default(), 0.0);
            for (i, h) in response.iter().enumerate() {
                alike += h.conj() * equations.cross[grid.first + i];
                let row: Complex64 = response.iter().enumerate().map(|(j, h)| equations.gram[grid.first + i][grid.first + j] * h).sum();
                energy += (h.conj() * row).re;
            }
            if energy > 0.0 {
                explained += alike.norm_sqr() / energy;
            }
        }
        (1.0 - explained / (self.power * self.len() as f64)).max(0.0)
    }

    /// The response on `grid`, summed over the pieces.
    pub(super) fn response(&self, grid: Grid) -> Vec<Complex64> {
        let mut sum = vec![Complex64::default(); grid.paths];
        for piece in &self.pieces {
            sum.iter_mut().zip(piece.equations.solve(grid)).for_each(|(sum, h)| *sum += h);
        }
        sum
    }
}

fn energy(z: &[Complex64]) -> f64 {
    z.iter().map(|z| z.norm_sqr()).sum()
}

/// `grid` with all its paths `by` samples later; none where it would leave the window.
pub(super) fn moved(grid: Grid, by: i64) -> Option<Grid> {
    let first = usize::try_from(grid.first as i64 + by).ok()?;
    (first + grid.paths <= WIDE).then_some(Grid { first, ..grid })
}

/// The grid that an alignment tells, `before` paths before the first one and `behind` from it on.
pub(super) fn grid((before, behind): (usize, usize)) -> Grid {
    let before = before.min(BEFORE as usize);
    Grid { first: BEFORE as usize - before, paths: before + behind.clamp(1, AFTER as usize + 1) }
}
