//! Least squares over a window of neighbouring paths.

use num_complex::Complex64;

use crate::simd::{Dispatch, Level, Op, Vector};

/// Paths before and after the expected delay that can be part of a response.
pub(crate) const BEFORE: i64 = 5;
pub(crate) const AFTER: i64 = 12;
pub(crate) const WIDE: usize = (BEFORE + AFTER + 1) as usize;

/// Normal equations of one stretch for all `WIDE` paths; the channel is taken to hold still over it.
#[derive(Clone, Debug)]
pub(crate) struct Equations {
    pub(crate) gram: [[Complex64; WIDE]; WIDE],
    pub(crate) cross: [Complex64; WIDE],
    pub(crate) power: f64,
}

/// Some neighbouring paths: the first (an index into the window) and how many there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grid {
    pub(crate) first: usize,
    pub(crate) paths: usize,
}

/// `Σ conj(path i) z` for all paths; `tx[k + WIDE - 1 - i]` is path `i` at sample `k` of `rx`.
pub(crate) fn cross(tx: &[Complex64], rx: &[Complex64]) -> [Complex64; WIDE] {
    let [re, im] = f64::dispatch(Level::current(), Cross { tx, rx });
    std::array::from_fn(|i| Complex64::new(re[WIDE - 1 - i], im[WIDE - 1 - i]))
}

/// The sums of [`cross`], last path first, with the vectors of the machine: the compiler makes them, and the numbers are the same to the last bit.
struct Cross<'a> {
    tx: &'a [Complex64],
    rx: &'a [Complex64],
}

impl Op<f64> for Cross<'_> {
    /// Real and imaginary parts.
    type Output = [[f64; WIDE]; 2];

    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> Self::Output {
        const PIECE: usize = 128;
        let (mut re, mut im) = ([0.0; WIDE], [0.0; WIDE]);
        let (mut u_re, mut u_im) = ([0.0; PIECE + WIDE - 1], [0.0; PIECE + WIDE - 1]);
        for (n, rx) in self.rx.chunks(PIECE).enumerate() {
            let tx = &self.tx[n * PIECE..];
            for (k, u) in tx[..rx.len() + WIDE - 1].iter().enumerate() {
                (u_re[k], u_im[k]) = (u.re, u.im);
            }
            for (k, z) in rx.iter().enumerate() {
                let (u_re, u_im) = (&u_re[k..k + WIDE], &u_im[k..k + WIDE]);
                for i in 0..WIDE {
                    re[i] += u_re[i] * z.re + u_im[i] * z.im;
                    im[i] += u_re[i] * z.im - u_im[i] * z.re;
                }
            }
        }
        [re, im]
    }
}

impl Equations {
    /// `tx`, which is longer by `WIDE - 1` than `rx`, holds path `i` of sample `k` at `k + WIDE - 1 - i`.
    pub(crate) fn new(tx: &[Complex64], rx: &[Complex64]) -> Self {
        let length = rx.len();
        let newest = &tx[WIDE - 1..];
        let mut gram = [[Complex64::default(); WIDE]; WIDE];
        gram[0] = cross(tx, &newest[..length]);
        gram[0].iter_mut().for_each(|z| *z = z.conj());
        // One step down the diagonal the same products are summed one sample earlier: only the two at the ends differ.
        let (start, end) = (WIDE - 1, WIDE - 2 + length);
        for i in 1..WIDE {
            for j in i..WIDE {
                let (enters, leaves) = (tx[start - i].conj() * tx[start - j], tx[end + 1 - i].conj() * tx[end + 1 - j]);
                gram[i][j] = gram[i - 1][j - 1] + enters - leaves;
            }
            for j in 0..i {
                gram[i][j] = gram[j][i].conj();
            }
        }
        Self { gram, cross: cross(tx, rx), power: rx.iter().map(|z| z.norm_sqr()).sum() }
    }

    /// As [`new`](Self::new), without the samples at which nothing was received.
    pub(crate) fn sounding(tx: &[Complex64], rx: &[Complex64]) -> Self {
        let silent = |z: &Complex64| *z == Complex64::default();
        if !rx.iter().any(silent) {
            return Self::new(tx, rx);
        }
        let mut gram = [[Complex64::default(); WIDE]; WIDE];
        for (u, _) in tx.windows(WIDE).zip(rx).filter(|(_, z)| !silent(z)) {
            for i in 0..WIDE {
                for j in i..WIDE {
                    gram[i][j] += u[WIDE - 1 - i].conj() * u[WIDE - 1 - j];
                }
            }
        }
        for i in 1..WIDE {
            for j in 0..i {
                gram[i][j] = gram[j][i].conj();
            }
        }
        Self { gram, cross: cross(tx, rx), power: rx.iter().map(|z| z.norm_sqr()).sum() }
    }

    /// The energy of what comes out of a response on `grid`.
    pub(crate) fn energy(&self, grid: Grid, response: &[Complex64]) -> f64 {
        let row =
            |i: usize| response.iter().enumerate().map(move |(j, h)| self.gram[grid.first + i][grid.first + j] * h).sum::<Complex64>();
        response.iter().enumerate().map(|(i, h)| (h.conj() * row(i)).re).sum()
    }

    /// Cholesky's factor of the grid's part of the Gram matrix.
    pub(crate) fn factor(&self, grid: Grid) -> Factor {
        let n = grid.paths;
        let at = |i: usize, j: usize| self.gram[grid.first + i][grid.first + j];
        // An oversampled signal's Gram matrix is nearly singular.
        let load = 1e-6 * (0..WIDE).map(|i| self.gram[i][i].re).sum::<f64>() / WIDE as f64;
        let mut lower = [[Complex64::default(); WIDE]; WIDE];
        for i in 0..n {
            for j in 0..i {
                let inner: Complex64 = (0..j).map(|k| lower[i][k] * lower[j][k].conj()).sum();
                lower[i][j] = (at(i, j) - inner) / lower[j][j].re;
            }
            let pivot = at(i, i).re + load - (0..i).map(|k| lower[i][k].norm_sqr()).sum::<f64>();
            if pivot <= 0.0 || pivot.is_nan() {
                // Silence, or a path that follows from the others: it explains nothing.
                lower[i] = [Complex64::default(); WIDE];
                lower[i][i] = f64::INFINITY.into();
                continue;
            }
            lower[i][i] = pivot.sqrt().into();
        }
        Factor { lower, grid }
    }

    /// Least squares on the grid.
    pub(crate) fn solve(&self, grid: Grid) -> Vec<Complex64> {
        let factor = self.factor(grid);
        let mut h = factor.halve(&self.cross);
        for i in (0..grid.paths).rev() {
            let inner: Complex64 = (i + 1..grid.paths).map(|k| factor.lower[k][i].conj() * h[k]).sum();
            h[i] = (h[i] - inner) / factor.lower[i][i].re;
        }
        h[..grid.paths].to_vec()
    }
}

/// Half the way to a least-squares fit.
pub(crate) struct Factor {
    lower: [[Complex64; WIDE]; WIDE],
    grid: Grid,
}

impl Factor {
    /// The solution `y` of `L y = cross`: the energy that `k` paths explain is that of the first `k` of `y`.
    pub(crate) fn halve(&self, cross: &[Complex64; WIDE]) -> [Complex64; WIDE] {
        let mut y = [Complex64::default(); WIDE];
        for i in 0..self.grid.paths {
            let pivot = self.lower[i][i].re;
            if pivot.is_finite() {
                let inner: Complex64 = (0..i).map(|k| self.lower[i][k] * y[k]).sum();
                y[i] = (cross[self.grid.first + i] - inner) / pivot;
            }
        }
        y
    }
}
