//! The nonlinearity that all members share: a complex gain over the envelope, `u = x G(|x|)`.
//!
//! `G` is a cubic spline with control points `theta`, found by least squares in information form: `theta = A^-1 b`, `A += d^H d / V`, `b += d^H (y - off) / V`
//! with `d_j = sum_l h_l x_{t-l} phi_j(|x_{t-l}|)`, `h` the taps of the heaviest member before it learned `y_t`. The prior
//! `A_0 = D2^T D2 / 0.01 + 0.25 I + 1e8 m m^T`, `b_0 = 0.25 + 1e8 m` asks for a smooth curve near 1 whose power-weighted mean `m.theta` is 1: that fixes the
//! scale and phase that curve and taps could otherwise trade.

use num_complex::{Complex, Complex64};
use serde::{Deserialize, Serialize};

use super::constants::{CURVE_DRIFT, CURVE_MEMORY, FLATNESS, GAUGE, GAUGE_REACH, OUTLIER, POINTS, ROUGHNESS, STEP};
use super::matrix::Matrix;
use super::spline::{gain, weights};
use crate::Real;
use crate::simd::Level;

/// What is known of the curve.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Curve<T: Real> {
    theta: [Complex64; POINTS],
    /// `theta` in the precision of the samples.
    pub(super) narrow: [Complex<T>; POINTS],
    // What the samples add to the prior, both times `scale`, which grows instead of them decaying.
    a: Matrix,
    b: [Complex64; POINTS],
    scale: f64,
    #[serde(skip, default = "prior")]
    prior: (Matrix, [Complex64; POINTS]),
    // The sum of both while it is solved.
    #[serde(skip, default = "work")]
    work: Matrix,
    last: [Complex64; POINTS],
    // Samples since it began.
    seen: f64,
    /// Variance that the uncertainty of the curve adds to a prediction.
    pub(super) variance: f64,
}

/// Power-weighted mean of the functions, for the envelope of a complex Gaussian signal, as far as there are many samples. Control points beyond hardly count in the mean: they
/// would be bent by any amount, down to a gain of zero at peaks, to make up for taps that are a little off.
fn mean() -> [f64; POINTS] {
    let (mut mean, mut total) = ([0.0; POINTS], 0.0);
    for k in 0..200 {
        let r = GAUGE_REACH * f64::from(k) / 200.0;
        let ((i, w), c) = (weights(r), r.powi(3) * (-r * r).exp());
        total += c;
        (0..4).for_each(|k| mean[i + k] += c * w[k]);
    }
    mean.map(|m| m / total)
}

fn prior() -> (Matrix, [Complex64; POINTS]) {
    let (mean, mut a) = (mean(), Matrix::zeros(POINTS));
    let mut add = |i: usize, j: usize, x: f64| a.set(i, j, a.at(i, j) + x);
    for j in 0..POINTS - 2 {
        let second = [1.0, -2.0, 1.0];
        (0..3).for_each(|p| (0..3).for_each(|q| add(j + p, j + q, second[p] * second[q] / ROUGHNESS)));
    }
    for i in 0..POINTS {
        add(i, i, FLATNESS);
        (0..POINTS).for_each(|j| add(i, j, GAUGE * mean[i] * mean[j]));
    }
    (a, mean.map(|m| (FLATNESS + GAUGE * m).into()))
}

fn work() -> Matrix {
    Matrix::zeros(POINTS)
}

impl<T: Real> Curve<T> {
    pub(super) fn new() -> Self {
        let one = Complex64::new(1.0, 0.0);
        let mut curve = Self {
            theta: [one; POINTS],
            narrow: [Complex::default(); POINTS],
            a: Matrix::zeros(POINTS),
            b: [Complex64::default(); POINTS],
            scale: 1.0,
            prior: prior(),
            work: work(),
            seen: 0.0,
            last: [Complex64::default(); POINTS],
            variance: 0.0,
        };
        curve.fill();
        curve
    }

    fn fill(&mut self) {
        self.narrow = self.theta.map(|t| Complex::new(T::of(t.re), T::of(t.im)));
    }

    pub(super) fn is_sound(&self) -> bool {
        let sound = |z: &Complex64| z.re.is_finite() && z.im.is_finite();
        self.a.fits(POINTS)
            && self.a.is_finite()
            && self.theta.iter().chain(&self.b).chain(&self.last).all(sound)
            && self.variance.is_finite()
            && self.scale >= 1.0
    }

    /// The gain at an envelope in units of the input's RMS.
    pub(super) fn gain(&self, r: f64) -> Complex64 {
        gain(&self.theta, r)
    }

    /// Learns from a sample: `x(l)` in units of the RMS and taps `h`, the output without its offset, the error and variance of its prediction.
    /// `samples` is how many it stands for.
    pub(super) fn learn(
        &mut self,
        h: &[Complex<T>],
        x: impl Fn(usize) -> Complex64,
        y: Complex64,
        square: f64,
        variance: f64,
        samples: u64,
    ) {
        let mut d = [Complex64::default(); POINTS];
        for (l, h) in h.iter().enumerate() {
            let x = x(l);
            let ((i, w), hx) = (weights(x.norm_sqr().sqrt()), Complex64::new(h.re.wide(), h.im.wide()) * x);
            (0..4).for_each(|k| d[i + k] += hx * w[k]);
        }
        let weight = (1.0 / variance).min(OUTLIER / square.max(f64::MIN_POSITIVE));
        if !(weight.is_finite() && d.iter().all(|d| d.norm_sqr().is_finite())) {
            return;
        }
        self.seen += samples as f64;
        let keep = 1.0 - (samples as f64 / (CURVE_MEMORY * self.seen + 500.0)).max(CURVE_DRIFT * samples as f64);
        self.scale /= keep;
        let weight = weight * self.scale;
        for i in 0..POINTS {
            let a = d[i].conj() * weight;
            for j in i..POINTS {
                self.a.set(i, j, self.a.at(i, j) + a * d[j]);
            }
            self.b[i] += a * y;
        }
        self.last = d;
    }

    /// Solves for the curve; returns whether it changed.
    pub(super) fn solve(&mut self, level: Level) -> bool {
        if self.scale > 1e6 {
            self.a.scale(1.0 / self.scale);
            self.b = self.b.map(|b| b / self.scale);
            self.scale = 1.0;
        }
        let (a, prior) = (&mut self.work, &self.prior);
        a.copy_from(&self.a);
        a.scale(1.0 / self.scale);
        (0..POINTS).for_each(|i| (i..POINTS).for_each(|j| a.set(i, j, a.at(i, j) + prior.0.at(i, j))));
        let b: [Complex64; POINTS] = std::array::from_fn(|i| prior.1[i] + self.b[i] / self.scale);
        if !a.sweep(level, 0, POINTS) || !a.is_finite() {
            return false;
        }
        let times = |v: &dyn Fn(usize) -> Complex64, i: usize| (0..POINTS).map(|j| a.swept(i, j) * v(j)).sum::<Complex64>();
        self.theta = std::array::from_fn(|i| times(&|j| b[j], i));
        let spread: f64 = (0..POINTS).map(|i| (self.last[i] * times(&|j| self.last[j].conj(), i)).re).sum();
        self.variance += 0.1 * (spread.max(0.0) - self.variance);
        self.fill();
        true
    }

    /// The unit of the input grew by `ratio`: stretches the curve along and forgets how sure it was. Returns the factor that goes into the taps.
    pub(super) fn stretch(&mut self, ratio: f64) -> Complex64 {
        let old = self.theta;
        // Products with taps in the old unit: how sure the curve is would be a million times off.
        self.last = [Complex64::default(); POINTS];
        let stretched: [Complex64; POINTS] = std::array::from_fn(|j| gain(&old, ((j as f64 - 1.0) * STEP * ratio).abs()));
        let factor: Complex64 = stretched.iter().zip(mean()).map(|(t, m)| t * m).sum();
        if factor.norm_sqr() < 1e-12 {
            self.theta = [Complex64::new(1.0, 0.0); POINTS];
            self.b = [Complex64::default(); POINTS];
            self.a.clear();
            (self.scale, self.seen, self.variance) = (1.0, 0.0, 0.0);
            self.fill();
            return ratio.into();
        }
        self.theta = stretched.map(|t| t / factor);
        self.seen = 0.0;
        // In the units of an output whose level may have changed along.
        self.variance *= (ratio * ratio).min(1.0);
        // As if the prior had said so.
        self.a.clear();
        self.scale = 1.0;
        // The prior is real, and only its upper triangle is sure to be there.
        let (a, b) = &self.prior;
        self.b = std::array::from_fn(|i| (0..POINTS).map(|j| a.at(i.min(j), i.max(j)) * self.theta[j]).sum::<Complex64>() - b[i]);
        self.fill();
        factor * ratio
    }
}
