//! What the bank is made of: streams derived from the input, at some lags each.

use serde::{Deserialize, Serialize};

use super::constants::{POINTS, STEP};
use super::planes::Planes;
use super::spline::{function, place};
use crate::Real;
use crate::simd::{Op, Vector};

/// The normalised input, the curve's output, a constant, and then products of the input with functions of its own envelope, of the one before and of the
/// one after.
pub(super) const INPUT: usize = 0;
pub(super) const BENT: usize = 1;
const ONE: usize = 2;
const OWN: usize = 3;
const BEFORE: usize = OWN + POINTS - 1;
const AFTER: usize = BEFORE + POINTS / 2;
const STREAMS: usize = AFTER + POINTS / 2;

/// Lags of the products, as far as that many samples after the predicted one are known.
const PRODUCTS_AFTER: usize = 2;
const PRODUCTS_BEFORE: usize = 4;
/// Lags of the conjugates.
const CONJUGATES: usize = 12;

/// A stream at a lag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Feature {
    stream: usize,
    lag: usize,
    conjugate: bool,
}

/// The features for `linear` lags of which `advance` are after the predicted sample, and how many of them make up the short model.
pub(super) fn features(linear: usize, advance: usize, taps: usize) -> (Vec<Feature>, usize) {
    let at = |stream: usize, lag: usize| Feature { stream, lag, conjugate: false };
    let first = advance - advance.min(PRODUCTS_AFTER);
    let products = first..advance + PRODUCTS_BEFORE;
    let mut all = vec![at(ONE, 0)];
    // The short model: a memory polynomial of the same taps.
    let core = taps.min(linear);
    all.extend((0..core).map(|lag| at(INPUT, lag)));
    all.extend(products.clone().flat_map(|lag| (OWN..BEFORE).map(move |stream| at(stream, lag))));
    let short = all.len();
    all.extend((core..linear).map(|lag| at(INPUT, lag)));
    all.extend((0..linear).map(|lag| at(BENT, lag)));
    all.extend(products.flat_map(|lag| (BEFORE..STREAMS).map(move |stream| at(stream, lag))));
    all.extend((0..advance + CONJUGATES).map(|lag| Feature { stream: INPUT, lag, conjugate: true }));
    (all, short)
}

/// What the square of the second differences of the weights over the envelope, which make a gain rough, adds to the Gram matrix: rows, columns and
/// numbers. Function 0 is left out of the products, since they sum to the input; its weight is zero.
pub(super) fn roughness(features: &[Feature]) -> Vec<(usize, usize, f64)> {
    let follows = |i: usize, k: usize| {
        let (a, b) = (features[i], features.get(i + k)?);
        let same = |first: usize, last: usize| (first..last).contains(&a.stream) && (first..last).contains(&b.stream);
        let group = same(OWN, BEFORE) || same(BEFORE, AFTER) || same(AFTER, STREAMS);
        (group && a.lag == b.lag && b.stream == a.stream + k).then_some(i + k)
    };
    let mut all = Vec::new();
    let mut add = |second: &[(usize, f64)]| {
        for &(i, a) in second {
            all.extend(second.iter().map(|&(j, b)| (i, j, a * b)));
        }
    };
    for i in 0..features.len() {
        if let (Some(j), Some(k)) = (follows(i, 1), follows(i, 2)) {
            add(&[(i, 1.0), (j, -2.0), (k, 1.0)]);
        }
        if features[i].stream == OWN
            && let Some(j) = follows(i, 1)
        {
            add(&[(i, -2.0), (j, 1.0)]);
        }
    }
    all
}

/// How many samples before the block the features reach.
pub(super) fn reach(linear: usize, advance: usize) -> usize {
    linear.max(advance + PRODUCTS_BEFORE + 2).max(advance + CONJUGATES)
}

/// The streams over a history and the present block.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Streams<T: Real> {
    history: usize,
    planes: Vec<Planes<T>>,
    // 1, or 0 for conjugates of real data: they would only repeat the samples.
    conjugates: T,
}

impl<T: Real> Streams<T> {
    pub(super) fn new(history: usize) -> Self {
        let mut planes = vec![Planes::new(history); STREAMS];
        planes[ONE].re.fill(T::one());
        Self { history, planes, conjugates: T::zero() }
    }

    pub(super) fn fits(&self, history: usize) -> bool {
        self.history == history && self.planes.len() == STREAMS && self.planes.iter().all(|p| p.fits(history))
    }

    /// The input in units of its RMS and the curve's output, to be written.
    pub(super) fn inputs(&mut self) -> (&mut Planes<T>, &mut Planes<T>) {
        let (a, b) = self.planes.split_at_mut(1);
        (&mut a[INPUT], &mut b[0])
    }

    pub(super) fn input(&self) -> &Planes<T> {
        &self.planes[INPUT]
    }

    pub(super) fn bent(&self) -> &Planes<T> {
        &self.planes[BENT]
    }

    /// Makes room for the next block; `products` where they were computed.
    pub(super) fn roll(&mut self, products: bool) {
        let input = &self.planes[INPUT];
        if input.im.iter().any(|x| *x != T::zero()) {
            self.conjugates = T::one();
        }
        for (i, p) in self.planes.iter_mut().enumerate() {
            if i < ONE || i > ONE && products {
                p.roll(self.history);
            }
        }
    }

    /// A feature of the `n` samples from `t` of the block on: planes, and what to multiply them with.
    #[inline(always)]
    pub(super) fn samples(&self, f: &Feature, t: usize, n: usize) -> (&[T], &[T], Option<(T, T)>) {
        let (planes, at) = (&self.planes[f.stream], self.history + t - f.lag);
        (&planes.re[at..at + n], &planes.im[at..at + n], f.conjugate.then_some((self.conjugates, -T::one())))
    }
}

/// The lanes from `at` on of what [`Streams::samples`] gave.
#[inline(always)]
pub(super) fn lanes<T: Real, V: Vector<T>>((re, im, factors): (&[T], &[T], Option<(T, T)>), at: usize) -> (V, V) {
    let (re, im) = (V::read(re, at), V::read(im, at));
    match factors {
        Some((a, b)) => (re.mul(V::splat(a)), im.mul(V::splat(b))),
        None => (re, im),
    }
}

/// Computes the products for places `from..to` of the planes; the input is there already, one sample more at the front.
pub(super) struct Products<'a, T: Real> {
    pub(super) streams: &'a mut Streams<T>,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl<T: Real> Op<T> for Products<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let steps = V::splat(T::of(1.0 / STEP));
        let (input, rest) = self.streams.planes.split_at_mut(1);
        let (input, rest) = (&input[0], &mut rest[OWN - 1..]);
        let mut t = self.from;
        while t < self.to {
            let (re, im) = (V::read(&input.re, t), V::read(&input.im, t));
            let (old_re, old_im) = (V::read(&input.re, t - 1), V::read(&input.im, t - 1));
            let (new, old) = (place(re, im, steps), place(old_re, old_im, steps));
            for j in 1..POINTS {
                let f = function(new, j);
                let own = &mut rest[j - 1];
                f.mul(re).write(&mut own.re, t);
                f.mul(im).write(&mut own.im, t);
                if j % 2 == 1 {
                    // The sample before, with the envelope of the one after it.
                    let after = &mut rest[AFTER - OWN + j / 2];
                    f.mul(old_re).write(&mut after.re, t);
                    f.mul(old_im).write(&mut after.im, t);
                    let f = function(old, j);
                    let before = &mut rest[BEFORE - OWN + j / 2];
                    f.mul(re).write(&mut before.re, t);
                    f.mul(im).write(&mut before.im, t);
                }
            }
            t += V::LANES;
        }
    }
}
