//! Least squares for the weights of a [`Basis`].

use num_complex::Complex64;

use super::basis::Basis;
use crate::dsp::{db, solve};
use crate::{Error, Result};

/// Prior variance of the second differences of a function's control points, which says how straight it goes on where no envelope was seen; and of the control
/// points themselves, all but those of the present sample's own gain. In units of the mean gain.
const ROUGHNESS: f64 = 1e-4;
const SPREAD: f64 = 1e-2;
/// The least noise that is believed in, over the power of the targets: rounding.
const LEAST: f64 = 1e-9;

/// Normal equations `Σ conj(f) fᵀ w = Σ conj(f) y`; of the matrix the lower triangle counts.
#[derive(Clone, Debug)]
pub(crate) struct Equations {
    size: usize,
    matrix: Vec<Complex64>,
    right: Vec<Complex64>,
    /// Energy of the products' samples, and of the targets.
    energy: f64,
    target: f64,
    samples: f64,
}

impl Equations {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            size,
            matrix: vec![Complex64::ZERO; size * size],
            right: vec![Complex64::ZERO; size],
            energy: 0.0,
            target: 0.0,
            samples: 0.0,
        }
    }

    /// What was added so far counts `keep` times as much.
    pub(crate) fn age(&mut self, keep: f64) {
        self.matrix.iter_mut().chain(&mut self.right).for_each(|z| *z *= keep);
        self.energy *= keep;
        self.target *= keep;
        self.samples *= keep;
    }

    /// Adds a sample: products that are not zero, by place, and what they are to sum to.
    pub(crate) fn add(&mut self, products: &[(usize, Complex64)], target: Complex64, power: f64) {
        for (k, &(i, f)) in products.iter().enumerate() {
            let f = f.conj();
            let row = &mut self.matrix[i * self.size..];
            for &(j, g) in &products[..=k] {
                row[j] += f * g;
            }
            self.right[i] += f * target;
        }
        self.energy += power;
        self.target += target.norm_sqr();
        self.samples += 1.0;
    }

    /// Adds a sample with a product for every weight.
    pub(crate) fn add_all(&mut self, products: &[Complex64], target: Complex64, power: f64) {
        for (i, f) in products.iter().enumerate() {
            let (re, im) = (f.re, f.im);
            for (a, g) in self.matrix[i * self.size..][..=i].iter_mut().zip(products) {
                // conj(f) g
                *a += Complex64::new(re * g.re + im * g.im, re * g.im - im * g.re);
            }
            self.right[i] += f.conj() * target;
        }
        self.energy += power;
        self.target += target.norm_sqr();
        self.samples += 1.0;
    }

    /// Energy that `weights` leave, over that of the targets, in dB.
    pub(crate) fn nmse_db(&self, weights: &[Complex64]) -> f64 {
        let n = self.size;
        let (mut cross, mut own) = (0.0, 0.0);
        for i in 0..n {
            cross += (weights[i].conj() * self.right[i]).re;
            let row = &self.matrix[i * n..];
            let off: Complex64 = (0..i).map(|j| row[j] * weights[j]).sum();
            own += weights[i].norm_sqr() * row[i].re + 2.0 * (weights[i].conj() * off).re;
        }
        db((self.target - 2.0 * cross + own).max(0.0), self.target)
    }

    /// The most likely weights: least squares tells the noise, and the noise how much the prior counts.
    pub(crate) fn solve(&self, basis: &Basis) -> Result<Vec<Complex64>> {
        let nothing = || Error::Data("there is nothing to learn an amplifier from: the signal is silent or too short".into());
        let floor = LEAST * self.target;
        let first = self.solve_with(basis, floor).ok_or_else(nothing)?;
        let noise = (self.target - first.iter().zip(&self.right).map(|(w, b)| (w.conj() * b).re).sum::<f64>()).max(floor);
        self.solve_with(basis, noise).ok_or_else(nothing)
    }

    /// With errors of an energy of `noise`.
    fn solve_with(&self, basis: &Basis, noise: f64) -> Option<Vec<Complex64>> {
        let (n, points) = (self.size, basis.points);
        let (mut matrix, mut weights) = (self.matrix.clone(), self.right.clone());
        // The variance of an error over the square of the mean gain.
        let variance = noise / self.samples * self.energy / self.target;
        for first in (0..n).step_by(points) {
            for j in first..first + points - 2 {
                for (a, u) in [1.0, -2.0, 1.0].into_iter().enumerate() {
                    for (b, v) in [1.0, -2.0, 1.0].into_iter().enumerate().take(a + 1) {
                        matrix[(j + a) * n + j + b] += variance / ROUGHNESS * u * v;
                    }
                }
            }
        }
        for i in 0..n {
            matrix[i * n + i] += variance / SPREAD * if i < points { 1e-4 } else { 1.0 };
        }
        solve(&mut matrix, &mut weights).then_some(weights)
    }
}
