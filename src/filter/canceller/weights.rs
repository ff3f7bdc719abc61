//! Weighted least squares for many weights, over blocks.

use std::ops::Range;

use num_complex::Complex64;
use serde::{Deserialize, Serialize};

use crate::dsp::{factor, substitute};
use crate::simd::{Dispatch, Level, Op, Vector};

/// Samples of which every one goes into the Gram matrix, and of how many it takes one later.
const EAGER: u64 = 6144;
const LAZY: u64 = 16;

/// `w = A⁻¹ Σ conj(f) ω y` while every sample goes into `A = Σ conj(f) fᵀ ω + prior`; then `w += A⁻¹ Σ conj(f) ω e` over blocks, which is recursive least squares that
/// inverts once in a while.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Weights {
    size: usize,
    pub(super) re: Vec<f64>,
    pub(super) im: Vec<f64>,
    /// The lower triangle of the Gram matrix, in planes, and the Cholesky factor of what it was at the last look.
    gram: (Vec<f64>, Vec<f64>),
    factor: Vec<Complex64>,
    // Memory for the next one, and for a solution.
    #[serde(skip)]
    spare: Vec<Complex64>,
    #[serde(skip)]
    step: Vec<Complex64>,
    /// Sums of targets, and of errors since the last look.
    right: (Vec<f64>, Vec<f64>),
    gradient: (Vec<f64>, Vec<f64>),
    /// Sum of the samples' weights in the matrix, what it was at the last look, samples since the start or the last change, and until a look.
    mass: f64,
    looked: f64,
    count: u64,
    left: u64,
}

/// How much the matrix grows until it is inverted again.
const STALE: f64 = 1.06;

/// A sample to learn from.
pub(super) struct Sample {
    /// What the features are multiplied by.
    pub(super) gain: Complex64,
    pub(super) target: Complex64,
    pub(super) error: Complex64,
    /// How much it counts.
    pub(super) weight: f64,
}

/// What is known beside the samples.
pub(super) struct Belief<'a> {
    /// The variance of errors.
    pub(super) noise: f64,
    /// One over the squares of how large weights are believed to be.
    pub(super) prior: &'a [f64],
    /// How many samples count.
    pub(super) window: f64,
}

fn complex((re, im): &(Vec<f64>, Vec<f64>)) -> impl Iterator<Item = Complex64> {
    re.iter().zip(im).map(|(&re, &im)| Complex64::new(re, im))
}

impl Weights {
    pub(super) fn new(size: usize) -> Self {
        let zeros = || vec![0.0; size];
        Self {
            size,
            re: zeros(),
            im: zeros(),
            gram: (vec![0.0; size * size], vec![0.0; size * size]),
            factor: Vec::new(),
            spare: Vec::new(),
            step: Vec::new(),
            right: (zeros(), zeros()),
            gradient: (zeros(), zeros()),
            mass: 0.0,
            looked: 0.0,
            count: 0,
            left: 48,
        }
    }

    pub(super) fn fits(&self, other: &Self) -> bool {
        let lengths = |w: &Self| {
            [
                w.size,
                w.re.len(),
                w.im.len(),
                w.gram.0.len(),
                w.gram.1.len(),
                w.gradient.0.len(),
                w.gradient.1.len(),
                w.right.0.len(),
                w.right.1.len(),
            ]
        };
        self.left > 0 && lengths(self) == lengths(other) && (self.factor.is_empty() || self.factor.len() == self.gram.0.len())
    }

    /// The sum over some of the features.
    pub(super) fn predict(&self, level: Level, (re, im): (&[f64], &[f64]), part: Range<usize>) -> Complex64 {
        let w = (&self.re[part.clone()], &self.im[part.clone()]);
        f64::dispatch(level, Dot { w, f: (&re[part.clone()], &im[part]) })
    }

    /// Learns from a sample.
    pub(super) fn learn(&mut self, level: Level, f: (&[f64], &[f64]), sample: &Sample, belief: &Belief<'_>) {
        let Sample { gain, target, error, weight } = *sample;
        let eager = self.is_eager();
        let (to, what) = if eager { (&mut self.right, target) } else { (&mut self.gradient, error) };
        f64::dispatch(level, Axpy { to, f, step: gain.conj() * what * weight });
        self.count = self.count.wrapping_add(1);
        let amount = if eager { weight } else { weight * LAZY as f64 };
        if eager || self.count.is_multiple_of(LAZY) {
            f64::dispatch(level, Accumulate { gram: &mut self.gram, f, amount: amount * gain.norm_sqr() });
            self.mass += amount;
        }
        self.left -= 1;
        if self.left == 0 {
            if eager || self.mass > STALE * self.looked {
                self.invert(belief);
            }
            self.update(eager);
            self.left = if eager { (self.count / 8).clamp(16, 128) } else { 128 };
        }
    }

    fn invert(&mut self, belief: &Belief<'_>) {
        if self.mass > belief.window {
            self.fade(belief.window / self.mass);
        }
        let n = self.size;
        self.spare.clear();
        self.spare.extend(complex(&self.gram));
        for i in 0..n {
            self.spare[i * n + i] += belief.noise * belief.prior[i] + 1e-12 * self.mass;
        }
        if factor(&mut self.spare, n) {
            std::mem::swap(&mut self.factor, &mut self.spare);
            self.looked = self.mass;
        }
    }

    fn update(&mut self, eager: bool) {
        if self.factor.is_empty() {
            return;
        }
        self.step.clear();
        self.step.extend(complex(if eager { &self.right } else { &self.gradient }));
        substitute(&self.factor, &mut self.step);
        // The matrix has grown since it was inverted.
        let scale = self.looked / self.mass.max(self.looked);
        if self.step.iter().all(|z| z.is_finite()) {
            for (i, z) in self.step.iter().enumerate() {
                let (re, im) = if eager { (0.0, 0.0) } else { (self.re[i], self.im[i]) };
                (self.re[i], self.im[i]) = (re + scale * z.re, im + scale * z.im);
            }
        }
        self.gradient.0.fill(0.0);
        self.gradient.1.fill(0.0);
    }

    /// What was learned counts `keep` times as much.
    pub(super) fn fade(&mut self, keep: f64) {
        let all = [&mut self.gram.0, &mut self.gram.1, &mut self.right.0, &mut self.right.1];
        all.into_iter().flatten().for_each(|a| *a *= keep);
        self.mass *= keep;
    }

    /// The channel has changed: what was learned counts as much as so many samples, and the next ones are learned from eagerly.
    pub(super) fn doubt(&mut self, samples: f64) {
        self.fade((samples / self.mass.max(samples)).min(1.0));
        // What the weights would have been learned from.
        let (n, gram, w) = (
            self.size,
            complex(&self.gram).collect::<Vec<_>>(),
            (0..self.size).map(|i| Complex64::new(self.re[i], self.im[i])).collect::<Vec<_>>(),
        );
        for i in 0..n {
            let entry = |j: usize| if j <= i { gram[i * n + j] } else { gram[j * n + i].conj() };
            let sum: Complex64 = (0..n).map(|j| entry(j) * w[j]).sum();
            (self.right.0[i], self.right.1[i]) = (sum.re, sum.im);
        }
        (self.looked, self.count, self.left) = (0.0, 0, 48);
    }

    /// Whether every sample is learned from.
    pub(super) fn is_eager(&self) -> bool {
        self.count < EAGER
    }
}

/// `Σ w f`. The loops of these are plain: compiled for every level of vector instructions.
struct Dot<'a> {
    w: (&'a [f64], &'a [f64]),
    f: (&'a [f64], &'a [f64]),
}

impl Op<f64> for Dot<'_> {
    type Output = Complex64;

    #[inline(always)]
    fn run<V: Vector<f64>>(self) -> Complex64 {
        let mut sums = [[0.0; 8]; 2];
        let ((a, b), (c, d)) = (self.w, self.f);
        let n = a.len() / 8 * 8;
        let mut i = 0;
        while i < n {
            for k in 0..8 {
                let (a, b, c, d) = (a[i + k], b[i + k], c[i + k], d[i + k]);
                sums[0][k] += a * c - b * d;
                sums[1][k] += a * d + b * c;
            }
            i += 8;
        }
        while i < a.len() {
            sums[0][0] += a[i] * c[i] - b[i] * d[i];
            sums[1][0] += a[i] * d[i] + b[i] * c[i];
            i += 1;
        }
        Complex64::new(sums[0].iter().sum(), sums[1].iter().sum())
    }
}

/// `to += conj(f) step`.
struct Axpy<'a> {
    to: &'a mut (Vec<f64>, Vec<f64>),
    f: (&'a [f64], &'a [f64]),
    step: Complex64,
}

impl Op<f64> for Axpy<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let (a, b) = (self.step.re, self.step.im);
        for (((re, im), &x), &y) in self.to.0.iter_mut().zip(&mut self.to.1).zip(self.f.0).zip(self.f.1) {
            *re += x * a + y * b;
            *im += x * b - y * a;
        }
    }
}

/// `A += amount · conj(f) fᵀ`, the lower triangle.
struct Accumulate<'a> {
    gram: &'a mut (Vec<f64>, Vec<f64>),
    f: (&'a [f64], &'a [f64]),
    amount: f64,
}

impl Op<f64> for Accumulate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let (re, im) = self.f;
        let n = re.len();
        for i in 0..n {
            let (a, b) = (self.amount * re[i], self.amount * im[i]);
            let (to_re, to_im) = (&mut self.gram.0[i * n..][..=i], &mut self.gram.1[i * n..][..=i]);
            for (((to_re, to_im), &x), &y) in to_re.iter_mut().zip(to_im).zip(&re[..=i]).zip(&im[..=i]) {
                *to_re += a * x + b * y;
                *to_im += a * y - b * x;
            }
        }
    }
}
