//! The taps as far as the input excites them.
//!
//! An oversampled signal leaves directions of a window all but empty. What the taps are there hardly shows, and where there are more of them than the channel has echoes they become
//! whatever imitates the amplifier best from one sample to the next. A curve that is learned through such taps stays straight: bent, it would excite what was empty. So it is learned through
//! the smallest taps that do nearly the same,
//!
//! ```text
//!   h' = h - B h,   B = r (R + r)^-1,   r = ridge tr(R) / L
//! ```
//!
//! with `R` the covariance of the curve's outputs, and what `B h` adds to the output is taken as it is: a curve that leaves no error stays. The ridge falls as the curve becomes
//! better known. Limiters and saturated amplifiers behind three- and fourfold oversampling, eight taps for one echo: up to 18 dB.

use num_complex::{Complex, Complex64};
use serde::{Deserialize, Serialize};

use super::constants::{EMPTY, REFRESH_MOST, RIDGE_FIRST, RIDGE_LEAST, RIDGE_SAMPLES, WARM_UP};
use super::matrix::Matrix;
use super::shape::Shape;
use super::step::wide;
use crate::Real;
use crate::simd::Level;

/// Which part of the taps the curve is learned through.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Excited<T: Real> {
    /// `h'`.
    pub(super) taps: Vec<Complex<T>>,
    // `B h`.
    rest: Vec<Complex<T>>,
    // Columns of `B`; none is needed where the input leaves nothing empty.
    columns: Vec<Vec<Complex<T>>>,
    some: bool,
    // Samples after which it is computed anew.
    due: u64,
    #[serde(skip, default = "nothing")]
    work: Matrix,
}

fn nothing() -> Matrix {
    Matrix::zeros(0)
}

impl<T: Real> Excited<T> {
    pub(super) fn new(taps: usize) -> Self {
        let zero = vec![Complex::default(); taps];
        Self { taps: zero.clone(), rest: zero.clone(), columns: vec![zero; taps], some: false, due: WARM_UP, work: Matrix::zeros(taps) }
    }

    pub(super) fn is_sound(&self, taps: usize) -> bool {
        let sound = |v: &Vec<Complex<T>>| v.len() == taps && v.iter().all(|z| z.re.is_finite() && z.im.is_finite());
        self.columns.len() == taps && self.columns.iter().chain([&self.taps, &self.rest]).all(sound)
    }

    /// The curve begins to learn anew.
    pub(super) fn restart(&mut self) {
        self.due = WARM_UP;
    }

    /// So many samples were learned since the curve began: looks at the input where it is time.
    pub(super) fn follow(&mut self, shape: &Shape<T>, samples: u64, level: Level) {
        if samples < self.due {
            return;
        }
        self.due = samples + (samples / 4).min(REFRESH_MOST);
        let n = self.taps.len();
        if !self.work.fits(n) {
            self.work = Matrix::zeros(n);
        }
        let mean = (0..n).map(|i| shape.input(i, i).re).sum::<f64>() / n as f64;
        let ridge = mean * (RIDGE_FIRST * RIDGE_SAMPLES / samples as f64).clamp(RIDGE_LEAST, RIDGE_FIRST);
        for i in 0..n {
            (i..n).for_each(|j| self.work.set(i, j, shape.input(i, j)));
        }
        self.work.add_to_diagonal(ridge);
        self.some = self.work.sweep(level, 0, n) && self.work.is_finite();
        let empty: f64 = (0..n).map(|i| ridge * self.work.swept(i, i).re).sum();
        self.some &= empty > EMPTY * n as f64;
        for (j, column) in self.columns.iter_mut().enumerate() {
            for (i, to) in column.iter_mut().enumerate() {
                let z = self.work.swept(i, j) * ridge;
                *to = if self.some { Complex::new(T::of(z.re), T::of(z.im)) } else { Complex::default() };
            }
        }
    }

    /// Takes the taps apart.
    pub(super) fn split(&mut self, h: &[Complex<T>]) {
        self.taps.copy_from_slice(h);
        self.rest.fill(Complex::default());
        if self.some {
            for (h, column) in h.iter().zip(&self.columns) {
                self.rest.iter_mut().zip(column).for_each(|(rest, b)| *rest += b * h);
            }
            self.taps.iter_mut().zip(&self.rest).for_each(|(h, rest)| *h -= rest);
        }
    }

    /// What the other part makes of a window of the curve's outputs.
    pub(super) fn rest(&self, u: impl Fn(usize) -> Complex64) -> Complex64 {
        if self.some { self.rest.iter().enumerate().map(|(l, h)| wide(*h) * u(l)).sum() } else { Complex64::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of eight samples of a signal, newest first.
    fn windows(oversampling: usize) -> Vec<Vec<Complex64>> {
        // Tones in one part of the band, of phases that never come together.
        let tones = 40;
        let tone = |k: usize, n: usize| {
            let frequency = (k as f64 / tones as f64 - 0.5) / oversampling as f64;
            Complex64::cis(std::f64::consts::TAU * frequency * n as f64 + (k * k) as f64)
        };
        let x: Vec<Complex64> = (0..4008).map(|n| (0..tones).map(|k| tone(k, n)).sum()).collect();
        x.windows(8).map(|w| w.iter().rev().copied().collect()).collect()
    }

    #[test]
    fn what_the_input_does_not_excite_is_taken_out_and_hardly_shows() {
        for oversampling in [1, 4] {
            let windows = windows(oversampling);
            let (mut shape, mut excited) = (Shape::<f64>::new(8), Excited::<f64>::new(8));
            windows.iter().for_each(|u| shape.observe(u));
            excited.follow(&shape, 4000, Level::Plain);
            // An echo, and taps of alternating sign, which are nothing to a signal that hardly changes.
            let h: Vec<Complex64> =
                (0..8).map(|l| Complex64::new(f64::from(u8::from(l == 1)), if l % 2 == 0 { 3.0 } else { -3.0 })).collect();
            excited.split(&h);
            let through = |h: &[Complex64], u: &[Complex64]| h.iter().zip(u).map(|(h, u)| h * u).sum::<Complex64>();
            let (mut lost, mut all) = (0.0, 0.0);
            for u in &windows {
                let (whole, part) = (through(&h, u), through(&excited.taps, u));
                assert!((part + excited.rest(|l| u[l]) - whole).norm() < 1e-9 * (1.0 + whole.norm()));
                (lost, all) = (lost + (whole - part).norm_sqr(), all + whole.norm_sqr());
            }
            let size = |h: &[Complex64]| h.iter().map(|h| h.norm_sqr()).sum::<f64>();
            match oversampling {
                1 => assert_eq!(excited.taps, h),
                _ => assert!(
                    size(&excited.taps) < 0.2 * size(&h) && lost < 1e-2 * all,
                    "{} of {}, {lost} of {all}",
                    size(&excited.taps),
                    size(&h)
                ),
            }
        }
    }
}
