//! The filters as a textbook writes them down: what the fast ones are measured against.
//!
//! Straightforward Rust, compiled like everything else: a list of centres, one pass with the standard library's `exp`, the oldest centre
//! overwritten in place. No trick, and no handicap.

use crate::{Complex, Complex32};

/// What a textbook filter does with a window and its target.
pub(super) trait Textbook {
    /// Predicts, then learns.
    fn adapt(&mut self, x: &[Complex32], y: Complex32) -> Complex32;
}

/// fKLMS with a budget; `lambda` 1 is KLMS.
pub(super) struct Fklms {
    pub(super) eta: f32,
    pub(super) lambda: f32,
    pub(super) sigma: f32,
    pub(super) budget: usize,
    pub(super) centres: Vec<Vec<Complex32>>,
    pub(super) coefficients: Vec<Complex32>,
    pub(super) oldest: usize,
}

impl Textbook for Fklms {
    fn adapt(&mut self, x: &[Complex32], y: Complex32) -> Complex32 {
        let gamma = 1.0 / (2.0 * self.sigma * self.sigma);
        let mut p = Complex::new(0.0, 0.0);
        for (centre, a) in self.centres.iter().zip(&mut self.coefficients) {
            *a *= self.lambda;
            let distance: f32 = centre.iter().zip(x).map(|(c, x)| (c - x).norm_sqr()).sum();
            p += *a * (-distance * gamma).exp();
        }
        self.learn(x, (y - p) * self.eta);
        p
    }
}

impl Fklms {
    /// Appends a centre; the oldest one goes where there are too many.
    fn learn(&mut self, x: &[Complex32], step: Complex32) {
        if self.centres.len() < self.budget {
            self.centres.push(x.to_vec());
            self.coefficients.push(step);
        } else {
            self.centres[self.oldest].copy_from_slice(x);
            self.coefficients[self.oldest] = step;
            self.oldest = (self.oldest + 1) % self.budget;
        }
    }
}

/// fKLMS with the Hammerstein kernel and the Bayesian gain.
pub(super) struct Hammerstein {
    pub(super) base: Fklms,
    pub(super) ratio: f32,
}

impl Textbook for Hammerstein {
    fn adapt(&mut self, x: &[Complex32], y: Complex32) -> Complex32 {
        let f = &mut self.base;
        let gamma = 1.0 / (2.0 * f.sigma * f.sigma);
        let mut p = Complex::new(0.0, 0.0);
        for (centre, a) in f.centres.iter().zip(&mut f.coefficients) {
            *a *= f.lambda;
            let k: Complex32 = centre
                .iter()
                .zip(x)
                .map(|(c, x)| {
                    let d = x.norm() - c.norm();
                    c.conj() * x * (-d * d * gamma).exp()
                })
                .sum();
            p += *a * k;
        }
        let norm: f32 = x.iter().map(|x| x.norm_sqr()).sum();
        f.learn(x, (y - p) * (self.ratio / (1.0 + self.ratio * norm)));
        p
    }
}

/// QKLMS with a budget: the nearest centre within `epsilon` absorbs the step.
pub(super) struct Qklms {
    pub(super) base: Fklms,
    pub(super) epsilon: f32,
}

impl Textbook for Qklms {
    fn adapt(&mut self, x: &[Complex32], y: Complex32) -> Complex32 {
        let f = &mut self.base;
        let gamma = 1.0 / (2.0 * f.sigma * f.sigma);
        let mut p = Complex::new(0.0, 0.0);
        let (mut nearest, mut least) = (0, f32::INFINITY);
        for (i, (centre, a)) in f.centres.iter().zip(&f.coefficients).enumerate() {
            let distance: f32 = centre.iter().zip(x).map(|(c, x)| (c - x).norm_sqr()).sum();
            if distance < least {
                (nearest, least) = (i, distance);
            }
            p += *a * (-distance * gamma).exp();
        }
        let step = (y - p) * f.eta;
        if least <= self.epsilon * self.epsilon {
            f.coefficients[nearest] += step;
        } else {
            f.learn(x, step);
        }
        p
    }
}

/// NLMS.
pub(super) struct Nlms {
    pub(super) mu: f32,
    pub(super) regularization: f32,
    pub(super) weights: Vec<Complex32>,
}

impl Textbook for Nlms {
    fn adapt(&mut self, x: &[Complex32], y: Complex32) -> Complex32 {
        let p: Complex32 = self.weights.iter().zip(x).map(|(w, x)| w * x).sum();
        let power: f32 = x.iter().map(|x| x.norm_sqr()).sum();
        let step = (y - p) * (self.mu / (self.regularization + power));
        for (w, x) in self.weights.iter_mut().zip(x) {
            *w += x.conj() * step;
        }
        p
    }
}
