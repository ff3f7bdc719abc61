//! Least squares for the weights of a [`Basis`].

use num_complex::Complex64;

use super::basis::Basis;
use crate::ofdm::saturation::solve::solve;
use crate::{Error, Result};

/// Weight of the second differences of neighbouring control points, for each sample of power 1: so small that it decides only where no envelope was seen, and there
/// a function goes on as a straight line.
const SMOOTH: f64 = 1e-6;
/// The same for every control point itself, but those of the present sample's own gain: of products that say the same none grows large.
const RIDGE: f64 = 1e-8;

/// Normal equations `Σ conj(f) fᵀ w = Σ conj(f) y`; of the matrix the lower triangle counts.
#[derive(Clone, Debug)]
pub(crate) struct Equations {
    size: usize,
    matrix: Vec<Complex64>,
    right: Vec<Complex64>,
    /// Energy of the products' samples, and of the targets.
    energy: f64,
    target: f64,
}

impl Equations {
    pub(crate) fn new(size: usize) -> Self {
        Self { size, matrix: vec![Complex64::ZERO; size * size], right: vec![Complex64::ZERO; size], energy: 0.0, target: 0.0 }
    }

    /// What was added so far counts `keep` times as much.
    pub(crate) fn age(&mut self, keep: f64) {
        self.matrix.iter_mut().chain(&mut self.right).for_each(|z| *z *= keep);
        self.energy *= keep;
        self.target *= keep;
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
    }

    /// The weights.
    pub(crate) fn solve(&self, basis: &Basis) -> Result<Vec<Complex64>> {
        let (n, points) = (self.size, basis.points);
        let (mut matrix, mut weights) = (self.matrix.clone(), self.right.clone());
        for first in (0..n).step_by(points) {
            for j in first..first + points - 2 {
                for (a, u) in [1.0, -2.0, 1.0].into_iter().enumerate() {
                    for (b, v) in [1.0, -2.0, 1.0].into_iter().enumerate().take(a + 1) {
                        matrix[(j + a) * n + j + b] += SMOOTH * self.energy * u * v;
                    }
                }
            }
        }
        for i in 0..n {
            matrix[i * n + i] += RIDGE * self.energy * if i < points { 1e-3 } else { 1.0 };
        }
        if solve(&mut matrix, &mut weights) { Ok(weights) } else { Err(Error::Data("there is nothing to learn an amplifier from: the signal is silent or too short".into())) }
    }
}
