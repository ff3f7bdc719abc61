//! A few hundred pairs, and which impulse response explains them.

use std::cell::OnceCell;

use num_complex::{Complex32, Complex64};

use super::LOOKAHEAD;
use super::curve::{Curve, TERMS};
use crate::dsp::{kaiser, wide};
use crate::iq::align::normal::{AFTER, BEFORE, Equations, Grid, WIDE, cross};

/// Samples over which any channel holds still, nearly.
pub(super) const PIECE: usize = 128;

/// Pieces of a probe, at most.
pub(super) const PIECES: usize = 4;

/// Samples to either side that tell how steep the reference is.
const REACH: usize = 10;
const _: () = assert!(REACH + BEFORE as usize <= LOOKAHEAD);

/// How much what is left may be like the slope rather than like noise: fading, an amplifier that is not known yet, paths that are not on the grid.
const MODEL: f64 = 0.03;

/// How much a change of the response is like a delay: one of some eight numbers.
const CHANGE: f64 = 0.35;

/// The last pairs of a block.
pub(super) struct Probe {
    pieces: Vec<Equations>,
    /// As it was sent, and as it comes out of the amplifier, with `REACH` more on either side; the derivative of that, once somebody asks for it; and as it was received. Path `i` of sample
    /// `k` is at `k + WIDE - 1 - i`.
    raw: Vec<Complex64>,
    bent: Vec<Complex64>,
    slope: OnceCell<Vec<Complex64>>,
    received: Vec<Complex64>,
    /// Mean power of the reference, and of what was received.
    pub(super) sent: f64,
    pub(super) power: f64,
}

/// A part of a probe over which the channel holds still.
struct Piece<'a> {
    equations: &'a Equations,
    /// Where it begins.
    at: usize,
    sent: &'a [Complex64],
    bent: &'a [Complex64],
    received: &'a [Complex64],
}

/// What a fit leaves over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Left {
    pub(super) all: f64,
    /// In the last piece alone.
    pub(super) last: f64,
}

/// How much later the received signal would have to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late {
    /// In samples.
    pub(super) by: f64,
    pub(super) variance: f64,
    /// The share of the power that would be left.
    pub(super) left: f64,
}

fn clean(z: &Complex32) -> Complex64 {
    if z.re.is_finite() && z.im.is_finite() { wide(*z) } else { Complex64::default() }
}

impl Probe {
    /// A look at the end of `received`; `reference` fills a slice with what was sent from a place on, counted from the first of `received`, and `curve` bends that. None where there
    /// is too little.
    pub(super) fn new(received: &[Complex32], curve: &Curve, reference: impl FnOnce(i64, &mut [Complex32])) -> Option<Self> {
        let pieces = (received.len() / PIECE).min(PIECES);
        if pieces == 0 {
            return None;
        }
        let length = pieces * PIECE;
        let from = received.len() - length;
        let mut sent = vec![Complex32::ZERO; length + WIDE - 1 + 2 * REACH];
        // Path 0 is `BEFORE` samples earlier than the expected one.
        reference(from as i64 - AFTER - REACH as i64, &mut sent);
        let raw: Vec<Complex64> = sent.iter().map(clean).collect();
        let bent = curve.bend(&raw);
        let received: Vec<Complex64> = received[from..].iter().map(clean).collect();
        let equations = |at: usize| Equations::new(&bent[REACH..][at..at + PIECE + WIDE - 1], &received[at..at + PIECE]);
        let pieces = (0..length).step_by(PIECE).map(equations).collect();
        let mean = |z: &[Complex64]| energy(z) / length as f64;
        let (sent, power) = (mean(&raw[REACH + AFTER as usize..][..length]), mean(&received));
        Some(Self { pieces, raw, bent, slope: OnceCell::new(), received, sent, power })
    }

    fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.pieces.iter().zip((0..).step_by(PIECE)).map(|(equations, at)| {
            let around = REACH + at..REACH + at + PIECE + WIDE - 1;
            let (sent, bent, received) = (&self.raw[around.clone()], &self.bent[around], &self.received[at..at + PIECE]);
            Piece { equations, at, sent, bent, received }
        })
    }

    /// The derivative of what comes out of the amplifier, from the first sample of the first piece on.
    fn slope(&self) -> &[Complex64] {
        self.slope.get_or_init(|| slope(&self.bent))
    }

    /// The number of samples.
    fn len(&self) -> usize {
        self.pieces.len() * PIECE
    }

    /// The share of the received power that `grid` leaves, corrected for what it would explain of noise.
    pub(super) fn left(&self, grid: Grid) -> Left {
        let mut left = Left::default();
        let noise = 1.0 / (1.0 - grid.paths as f64 / PIECE as f64);
        for equations in &self.pieces {
            let y = equations.factor(grid).halve(&equations.cross);
            left.last = noise * (equations.power - energy(&y)).max(0.0);
            left.all += left.last;
        }
        left.last /= self.power * PIECE as f64;
        left.all /= self.power * self.len() as f64;
        left
    }

    /// How late what was received is for `grid`, the response of each piece taken out.
    ///
    /// One step of Gauss and Newton in the delay: with `z` what comes out of the response, `|P(y + t z')|²` is least at `t = -Re⟨Pz', Py⟩ / |Pz'|²`, where `P` removes what the paths
    /// explain. The slope is that of the reference: in the received signal's there would be noise, and the more of it, the smaller a delay would seem.
    pub(super) fn late(&self, grid: Grid) -> Late {
        let mut sums = Sums::default();
        for piece in self.pieces() {
            let slope = through(&self.slope()[piece.at..], grid, &piece.equations.solve(grid));
            let factor = piece.equations.factor(grid);
            let (y, hidden) = (factor.halve(&piece.equations.cross), factor.halve(&cross(piece.bent, &slope)));
            sums.add(&piece, &slope, &hidden, &y);
        }
        sums.late(self, MODEL * MODEL * sums.left)
    }

    /// How late it is for a `response` on `grid`, times a complex gain for each piece. Of what is left, `free` of the power is noise; the rest is what else has become of the response.
    pub(super) fn later(&self, grid: Grid, response: &[Complex64], free: f64) -> Late {
        let mut sums = Sums::default();
        for piece in self.pieces() {
            let expected = through(piece.bent, grid, response);
            let scale = energy(&expected).sqrt();
            if scale > 0.0 {
                let part = |z: &[Complex64]| [expected.iter().zip(z).map(|(e, z)| e.conj() * z).sum::<Complex64>() / scale];
                let received = part(piece.received);
                let gain = received[0] / scale;
                let slope: Vec<Complex64> = through(&self.slope()[piece.at..], grid, response).into_iter().map(|z| z * gain).collect();
                sums.add(&piece, &slope, &part(&slope), &received);
            }
        }
        let changed = (sums.left - free * self.power * self.len() as f64).max(0.0);
        // The response before had as much noise in it.
        sums.late(self, CHANGE * CHANGE * changed + 0.5 / self.len() as f64 * sums.left)
    }

    /// The share of the power that `response` on `grid`, times a complex gain for each piece, does not explain.
    pub(super) fn unlike(&self, grid: Grid, response: &[Complex64]) -> f64 {
        let alike = |equations: &Equations| {
            let energy = equations.energy(grid, response);
            (energy > 0.0).then(|| alike(&equations.cross, grid, response).norm_sqr() / energy)
        };
        let explained: f64 = self.pieces.iter().filter_map(alike).sum();
        (1.0 - explained / (self.power * self.len() as f64)).max(0.0)
    }

    /// Terms of what was sent, and what the response on `grid` makes of them: gives `each` received sample's, with what the response leaves of it without them.
    pub(super) fn through(
        &self,
        grid: Grid,
        mut terms: impl FnMut(Complex64) -> [Complex64; TERMS],
        mut each: impl FnMut([Complex64; TERMS], Complex64),
    ) {
        for piece in self.pieces() {
            let response = piece.equations.solve(grid);
            let bent: Vec<[Complex64; TERMS]> = piece.sent.iter().map(|x| terms(*x)).collect();
            let mut sums = vec![[Complex64::default(); TERMS]; PIECE];
            for (i, h) in response.iter().enumerate() {
                for (sum, terms) in sums.iter_mut().zip(&bent[WIDE - 1 - grid.first - i..]) {
                    sum.iter_mut().zip(terms).for_each(|(sum, term)| *sum += h * term);
                }
            }
            let linear = through(piece.sent, grid, &response);
            sums.into_iter().zip(piece.received.iter().zip(linear)).for_each(|(sums, (y, z))| each(sums, y - z));
        }
    }

    /// The response on `grid`, summed over the pieces.
    pub(super) fn response(&self, grid: Grid) -> Vec<Complex64> {
        let mut sum = vec![Complex64::default(); grid.paths];
        for equations in &self.pieces {
            sum.iter_mut().zip(equations.solve(grid)).for_each(|(sum, h)| *sum += h);
        }
        sum
    }
}

/// Sums over the pieces of a probe, without what a fit explains.
#[derive(Default)]
struct Sums {
    inner: f64,
    steep: f64,
    left: f64,
}

impl Sums {
    /// A piece with the slope of what is expected, and the parts of the slope and of what was received that a fit explains, in an orthonormal basis.
    fn add(&mut self, piece: &Piece, slope: &[Complex64], hidden: &[Complex64], explained: &[Complex64]) {
        let inner = |a: &[Complex64], b: &[Complex64]| a.iter().zip(b).map(|(a, b)| (a.conj() * b).re).sum::<f64>();
        self.inner += inner(slope, piece.received) - inner(hidden, explained);
        self.steep += energy(slope) - energy(hidden);
        self.left += piece.equations.power - energy(explained);
    }

    /// What that says of the delay; `other` is the energy of what moves it besides noise, along the slope.
    fn late(&self, probe: &Probe, other: f64) -> Late {
        let Self { inner, steep, left } = *self;
        if steep <= 0.0 {
            return Late { by: 0.0, variance: f64::INFINITY, left: 1.0 };
        }
        let samples = probe.len() as f64;
        let left = (left - inner * inner / steep).max(0.0);
        // Noise of power s in each sample moves the estimate by s / (2 |Pz'|²).
        Late { by: -inner / steep, variance: (0.5 / samples * left + other) / steep, left: left / (probe.power * samples) }
    }
}

/// The derivative of samples that have `REACH` neighbours on either side.
fn slope(samples: &[Complex64]) -> Vec<Complex64> {
    // The derivative of a sinc at the samples around it is (-1)^k / k.
    let sign = |k: usize| if k.is_multiple_of(2) { 1.0 } else { -1.0 };
    let tap = |k: usize| sign(k) / k as f64 * kaiser(k as f64 / (REACH + 1) as f64, 4.0);
    let taps: [f64; REACH] = std::array::from_fn(|k| tap(k + 1));
    let at = |n: usize| taps.iter().zip(1..).map(|(tap, k)| (samples[n - k] - samples[n + k]) * tap).sum();
    (REACH..samples.len() - REACH).map(at).collect()
}

/// What comes out of a response on `grid`.
fn through(samples: &[Complex64], grid: Grid, response: &[Complex64]) -> Vec<Complex64> {
    let mut out = vec![Complex64::default(); PIECE];
    for (i, h) in response.iter().enumerate() {
        out.iter_mut().zip(&samples[WIDE - 1 - grid.first - i..]).for_each(|(out, x)| *out += h * x);
    }
    out
}

/// What a response on `grid` has in common with something that was correlated with all paths.
fn alike(cross: &[Complex64; WIDE], grid: Grid, response: &[Complex64]) -> Complex64 {
    response.iter().zip(&cross[grid.first..]).map(|(h, c)| h.conj() * c).sum()
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
