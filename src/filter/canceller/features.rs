//! What the canceller's prediction is a sum of.

use num_complex::Complex64;
use serde::{Deserialize, Serialize};

use crate::dsp::solve;

/// The largest envelope that is told apart, in units of the input's rms.
const REACH: f64 = 3.2;
/// Functions of an envelope: cubic B-splines, all but the first, since together they are constant, and the constant is the sample itself.
const OWN: usize = 7;
/// Functions for products with neighbours, which are small: powers of `r² / (1 + r²)`.
const SMOOTH: usize = 3;
/// Products with neighbours of one sample: the one before and the one before that, and this one with the one before; each plain and conjugate.
const CROSS: usize = 6 * SMOOTH;
/// Functions of the envelope halfway to the next sample.
const HALFWAY: usize = 5;
/// Products of one sample.
const ROW: usize = OWN + CROSS + HALFWAY;

/// Lags of the samples before the predicted one, of products with their own envelope, of those with neighbours and of conjugates.
const LINEAR: usize = 16;
const OWN_LAGS: usize = 7;
/// Where there are products halfway between samples: lags of these, and of products with their own envelope.
const HALFWAY_LAGS: usize = 5;
const FEWER_OWN_LAGS: usize = 5;
const CROSS_LAGS: usize = 4;
const CONJUGATE_LAGS: usize = 6;
/// Conjugates of the prediction itself, this one and those before: the image of all that the amplifier does.
pub(super) const IMAGES: usize = 2;
/// Of the products', how many are after the predicted sample, where the window reaches there.
const BEFORE: usize = 1;

/// Samples on either side that the one halfway is interpolated from, and the highest frequency at which that is right, in cycles a sample.
const SIDE: usize = 6;
const HIGHEST: f64 = 0.43;

/// Samples that are kept: a power of two.
const RING: usize = 512;

/// How large a weight is believed to be, over the gain of the whole: of a sample, of a product with its own envelope, of one with a neighbour, of a conjugate and of
/// the constant.
const PRIOR: [f64; 5] = [1.0, 0.3, 0.05, 0.1, 0.1];

/// A stretch of the window and the features in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Features {
    linear: usize,
    advance: usize,
    /// Weights of the samples around the one halfway; none where the window does not reach far enough.
    halfway: Vec<f64>,
    /// The last samples and their products.
    samples: Vec<Complex64>,
    rows: Vec<Complex64>,
    time: usize,
    /// The features of the last sample, in planes.
    pub(super) re: Vec<f64>,
    pub(super) im: Vec<f64>,
}

/// The weights that find the value halfway between two samples: least squares over all frequencies up to `HIGHEST`, `∫ |Σ h_k exp(2πjfk) − 1|² df`, `k` from `½ − SIDE` to `SIDE − ½`.
fn interpolator() -> Vec<f64> {
    let kernel = |t: f64| {
        let x = 2.0 * std::f64::consts::PI * HIGHEST * t;
        Complex64::from(if x == 0.0 { 1.0 } else { libm::sin(x) / x })
    };
    let size = 2 * SIDE;
    let mut matrix: Vec<_> = (0..size * size).map(|i| kernel((i / size) as f64 - (i % size) as f64)).collect();
    let mut weights: Vec<_> = (0..size).map(|k| kernel(k as f64 + 0.5 - SIDE as f64)).collect();
    (0..size).for_each(|i| matrix[i * size + i] += 1e-9);
    solve(&mut matrix, &mut weights);
    weights.iter().map(|w| w.re).collect()
}

/// All of `N + 1` splines but the first at envelope `r`.
fn functions<const N: usize>(r: f64) -> [f64; N] {
    let last = (N - 2) as f64;
    let s = (r / REACH * last).min(last);
    std::array::from_fn(|k| {
        let d = (s - k as f64).abs();
        let (u, v) = ((2.0 - d).max(0.0), (1.0 - d).max(0.0));
        (u * u * u - 4.0 * v * v * v) / 6.0
    })
}

/// What a small `other` beside `x` adds to `x G(|x|)`: itself and its conjugate, `x² other*`, times functions of the envelope.
fn neighbours(x: Complex64, other: Complex64, to: &mut [Complex64]) {
    let square = x.norm_sqr();
    let inverse = 1.0 / (1.0 + square);
    let (mut plain, mut turned) = (other * (square * inverse), x * x * other.conj() * inverse);
    for k in 0..SMOOTH {
        (to[k], to[SMOOTH + k]) = (plain, turned);
        (plain, turned) = (plain * (square * inverse), turned * (square * inverse));
    }
}

impl Features {
    /// For windows of at least `taps` samples, of which `advance` are after the predicted one.
    pub(super) fn new(taps: usize, advance: usize) -> Self {
        let linear = taps.max(LINEAR + advance);
        let mut features = Self {
            linear,
            advance,
            halfway: if advance >= SIDE + BEFORE { interpolator() } else { Vec::new() },
            samples: vec![Complex64::ZERO; RING],
            rows: vec![Complex64::ZERO; RING * ROW],
            time: 0,
            re: Vec::new(),
            im: Vec::new(),
        };
        let size = features.prior().len();
        (features.re, features.im) = (vec![0.0; size], vec![0.0; size]);
        features
    }

    pub(super) fn len(&self) -> usize {
        self.re.len()
    }

    /// Samples that a prediction looks at.
    pub(super) fn reach(&self) -> usize {
        self.linear.max(self.advance + OWN_LAGS + 2)
    }

    /// Samples at which lags the linear part has taps, newest first.
    pub(super) fn linear(&self) -> usize {
        self.linear
    }

    pub(super) fn fits(&self, other: &Self) -> bool {
        (self.linear, self.advance, self.halfway.len()) == (other.linear, other.advance, other.halfway.len())
            && [self.samples.len(), self.rows.len(), self.re.len(), self.im.len()]
                == [other.samples.len(), other.rows.len(), other.re.len(), other.im.len()]
    }

    /// Lags of products with their own envelope, and of those halfway between samples.
    fn lags(&self) -> (usize, usize) {
        if self.halfway.is_empty() { (OWN_LAGS, 0) } else { (FEWER_OWN_LAGS, HALFWAY_LAGS) }
    }

    /// How large each weight is believed to be, over the gain of the whole, in the order of the features.
    pub(super) fn prior(&self) -> Vec<f64> {
        let products = |n: usize, size: f64, lags: usize| std::iter::repeat_n(size, n * lags);
        let (own, halfway) = self.lags();
        std::iter::once(PRIOR[4])
            .chain(products(1, PRIOR[0], self.linear))
            .chain(products(1, PRIOR[3], CONJUGATE_LAGS))
            .chain(products(OWN, PRIOR[1], own))
            .chain(products(CROSS, PRIOR[2], CROSS_LAGS))
            .chain(products(HALFWAY, PRIOR[1], halfway))
            .chain(products(1, PRIOR[3], IMAGES))
            .collect()
    }

    /// Puts the image of this sample's prediction, in units of the output's rms, in its place.
    pub(super) fn image(&mut self, z: Complex64) {
        let first = self.len() - IMAGES;
        self.re.copy_within(first..first + IMAGES - 1, first + 1);
        self.im.copy_within(first..first + IMAGES - 1, first + 1);
        (self.re[first], self.im[first]) = (z.re, -z.im);
    }

    /// Takes in the next sample, in units of the input's rms, and makes the features but for the image.
    pub(super) fn push(&mut self, x: Complex64) {
        let now = self.time % RING;
        self.time = self.time.wrapping_add(1);
        self.samples[now] = x;
        let at = |lag: usize| (now + RING - lag) % RING;
        let (one, two) = (self.samples[at(1)], self.samples[at(2)]);
        let row = &mut self.rows[now * ROW..][..ROW];
        let f: [f64; OWN] = functions(x.norm());
        for k in 0..OWN {
            row[k] = x * f[k];
        }
        // The first-order terms of (x + a x₁ + b x₂) G(|x + a x₁ + b x₂|), and of an amplifier whose main path is the one before.
        neighbours(x, one, &mut row[OWN..]);
        neighbours(x, two, &mut row[OWN + 2 * SMOOTH..]);
        neighbours(one, x, &mut row[OWN + 4 * SMOOTH..]);
        if !self.halfway.is_empty() {
            // Between the sample `SIDE` before this one and the next.
            let oldest = 2 * SIDE - 1;
            let z: Complex64 = self.halfway.iter().enumerate().map(|(k, w)| self.samples[at(oldest - k)] * w).sum();
            let f: [f64; HALFWAY] = functions(z.norm());
            self.rows[at(SIDE) * ROW + OWN + CROSS..][..HALFWAY].iter_mut().zip(f).for_each(|(to, f)| *to = z * f);
        }
        let (own, halfway) = self.lags();
        let mut place = 0;
        let (re, im) = (&mut self.re, &mut self.im);
        let mut put = |z: Complex64| {
            (re[place], im[place]) = (z.re, z.im);
            place += 1;
        };
        put(Complex64::ONE);
        (0..self.linear).for_each(|lag| put(self.samples[at(lag)]));
        let first = self.advance - self.advance.min(BEFORE);
        (0..CONJUGATE_LAGS).for_each(|lag| put(self.samples[at(first + lag)].conj()));
        for lag in 0..own {
            self.rows[at(first + lag) * ROW..][..OWN].iter().for_each(|&z| put(z));
        }
        for lag in 0..CROSS_LAGS {
            self.rows[at(first + lag) * ROW + OWN..][..CROSS].iter().for_each(|&z| put(z));
        }
        for lag in 0..halfway {
            self.rows[at(first + lag) * ROW + OWN + CROSS..][..HALFWAY].iter().for_each(|&z| put(z));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halfway_between_samples_of_a_tone_is_the_tone() {
        let weights = interpolator();
        assert!(weights.iter().zip(weights.iter().rev()).all(|(a, b)| (a - b).abs() < 1e-9), "{weights:?}");
        for f in [-0.41, -0.2, 0.0, 0.07, 0.3, 0.41] {
            let tone = |t: f64| Complex64::cis(std::f64::consts::TAU * f * t);
            let found: Complex64 = weights.iter().enumerate().map(|(k, w)| tone(k as f64 - (SIDE as f64 - 0.5)) * w).sum();
            assert!((found - 1.0).norm() < 0.03, "{f}: {found}");
        }
    }
}
