//! What the canceller's prediction is a sum of.

use num_complex::Complex64;
use serde::{Deserialize, Serialize};

/// Cubic B-splines over the envelope, in units of the input's rms: control points, and the envelope that is the largest one told apart.
const POINTS: usize = 8;
const REACH: f64 = 3.2;
/// Functions of an envelope: all but the first, since together they are constant, and the constant is the sample itself.
const OWN: usize = POINTS - 1;
/// Functions for products with neighbours, which are small: powers of `r² / (1 + r²)`.
const SMOOTH: usize = 3;
/// Products with neighbours of one sample: the one before and the one before that, and this one with the one before; each plain and conjugate.
const CROSS: usize = 6 * SMOOTH;
/// Products of one sample.
const ROW: usize = OWN + CROSS;

/// Lags of the samples before the predicted one, of products with their own envelope, of those with neighbours and of conjugates.
const LINEAR: usize = 16;
const OWN_LAGS: usize = 7;
const CROSS_LAGS: usize = 4;
const CONJUGATE_LAGS: usize = 6;
/// Conjugates of the prediction itself, this one and those before: the image of all that the amplifier does.
pub(super) const IMAGES: usize = 2;
/// Of the products', how many are after the predicted sample, where the window reaches there.
const BEFORE: usize = 1;

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
    /// The last samples and their products.
    samples: Vec<Complex64>,
    rows: Vec<Complex64>,
    time: usize,
    /// The features of the last sample, in planes.
    pub(super) re: Vec<f64>,
    pub(super) im: Vec<f64>,
}

/// All splines but the first at envelope `r`.
fn functions(r: f64) -> [f64; OWN] {
    let last = (POINTS - 3) as f64;
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
        (self.linear, self.advance) == (other.linear, other.advance)
            && [self.samples.len(), self.rows.len(), self.re.len(), self.im.len()]
                == [other.samples.len(), other.rows.len(), other.re.len(), other.im.len()]
    }

    /// How large each weight is believed to be, over the gain of the whole, in the order of the features.
    pub(super) fn prior(&self) -> Vec<f64> {
        let products = |n: usize, size: f64, lags: usize| std::iter::repeat_n(size, n * lags);
        std::iter::once(PRIOR[4])
            .chain(products(1, PRIOR[0], self.linear))
            .chain(products(1, PRIOR[3], CONJUGATE_LAGS))
            .chain(products(OWN, PRIOR[1], OWN_LAGS))
            .chain(products(CROSS, PRIOR[2], CROSS_LAGS))
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
        let f = functions(x.norm());
        for k in 0..OWN {
            row[k] = x * f[k];
        }
        // The first-order terms of (x + a x₁ + b x₂) G(|x + a x₁ + b x₂|), and of an amplifier whose main path is the one before.
        neighbours(x, one, &mut row[OWN..]);
        neighbours(x, two, &mut row[OWN + 2 * SMOOTH..]);
        neighbours(one, x, &mut row[OWN + 4 * SMOOTH..]);
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
        for lag in 0..OWN_LAGS {
            self.rows[at(first + lag) * ROW..][..OWN].iter().for_each(|&z| put(z));
        }
        for lag in 0..CROSS_LAGS {
            self.rows[at(first + lag) * ROW + OWN..][..CROSS].iter().for_each(|&z| put(z));
        }
    }
}
