//! Products of samples with smooth functions of envelopes: what the amplifier's model and its inverse are made of.

use num_complex::Complex64;
use serde::{Deserialize, Serialize};

/// A sample times a function of an envelope, `x[n − sample] f(|x[n − envelope]|)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// How many samples ago the sample was.
    pub sample: usize,
    /// How many samples ago the envelope was.
    pub envelope: usize,
}

/// The terms of a generalised memory polynomial (Morgan et al. 2006, eq. 23) without its powers: each sample with its own envelope up to `memory` samples back,
/// and where there is memory, this one with the envelope before and the one before with this envelope.
pub(crate) fn terms(memory: usize) -> Vec<Term> {
    let own = (0..=memory).map(|lag| Term { sample: lag, envelope: lag });
    let crossed = [(0, 1), (1, 0)].map(|(sample, envelope)| Term { sample, envelope });
    own.chain(crossed.into_iter().filter(|_| memory > 0)).collect()
}

/// Functions of the envelope: cubic B-splines with equal steps from 0 to `reach`; beyond it they are held. Splines, since a polynomial is meaningless beyond the
/// envelopes that it was fitted on, which is where an inverse asks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Basis {
    pub(crate) terms: Vec<Term>,
    /// Control points of each function.
    pub(crate) points: usize,
    pub(crate) reach: f64,
}

impl Basis {
    pub(crate) fn new(memory: usize, points: usize, reach: f64) -> Self {
        Self { terms: terms(memory), points, reach }
    }

    /// Weights of all functions together.
    pub(crate) fn len(&self) -> usize {
        self.terms.len() * self.points
    }

    /// Samples before the present one that a product needs.
    pub(crate) fn longest(&self) -> usize {
        self.terms.iter().map(|t| t.sample.max(t.envelope)).max().unwrap_or(0)
    }

    /// The four splines that are not zero at envelope `r`, and the first one's index.
    fn splines(&self, r: f64) -> (usize, [f64; 4]) {
        let last = (self.points - 3) as f64;
        let s = (r / self.reach * last).clamp(0.0, last);
        let i = (s as usize).min(self.points - 4);
        let (f, g) = (s - i as f64, 1.0 - (s - i as f64));
        let inner = |f: f64| (3.0 * f * f * f - 6.0 * f * f + 4.0) / 6.0;
        (i, [g * g * g / 6.0, inner(f), inner(g), f * f * f / 6.0])
    }

    /// The products at sample `n` that are not zero, with the places of their weights in increasing order. Before its first sample `x` is silent.
    pub(crate) fn products(&self, x: &[Complex64], n: usize, to: &mut Vec<(usize, Complex64)>) {
        to.clear();
        for (t, term) in self.terms.iter().enumerate() {
            if n < term.sample.max(term.envelope) {
                continue;
            }
            let z = x[n - term.sample];
            let (first, weights) = self.splines(x[n - term.envelope].norm());
            to.extend(weights.iter().enumerate().map(|(k, &w)| (t * self.points + first + k, z * w)));
        }
    }

    /// Each term's function at envelope `r`.
    pub(crate) fn gains(&self, weights: &[Complex64], r: f64) -> Vec<Complex64> {
        let (first, splines) = self.splines(r);
        let gain = |own: &[Complex64]| splines.iter().zip(&own[first..]).map(|(s, w)| w * s).sum();
        weights.chunks(self.points).map(gain).collect()
    }

    /// The sum of all products with their weights, for every sample.
    pub(crate) fn apply(&self, weights: &[Complex64], x: &[Complex64]) -> Vec<Complex64> {
        let gains: Vec<Vec<Complex64>> = x.iter().map(|z| self.gains(weights, z.norm())).collect();
        let sample = |n: usize| {
            let term = |(t, term): (usize, &Term)| {
                if n < term.sample.max(term.envelope) { Complex64::ZERO } else { x[n - term.sample] * gains[n - term.envelope][t] }
            };
            self.terms.iter().enumerate().map(term).sum()
        };
        (0..x.len()).map(sample).collect()
    }

    /// Weights that pass the input on.
    pub(crate) fn identity(&self) -> Vec<Complex64> {
        (0..self.len()).map(|i| if i < self.points { Complex64::ONE } else { Complex64::ZERO }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splines_sum_to_one_and_products_are_what_is_applied() {
        let basis = Basis::new(2, 9, 2.0);
        for k in 0..300 {
            let (first, s) = basis.splines(f64::from(k) * 0.01);
            assert!((s.iter().sum::<f64>() - 1.0).abs() < 1e-12 && first + 4 <= 9, "{k}");
        }
        let x: Vec<_> = (0..50).map(|n| Complex64::from_polar(0.05 * f64::from(n), f64::from(n * n))).collect();
        let weights: Vec<_> = (0..basis.len()).map(|i| Complex64::cis(i as f64)).collect();
        let y = basis.apply(&weights, &x);
        let mut row = Vec::new();
        for n in 0..50 {
            basis.products(&x, n, &mut row);
            assert!(row.is_sorted_by_key(|p| p.0));
            let sum: Complex64 = row.iter().map(|&(i, f)| weights[i] * f).sum();
            assert!((sum - y[n]).norm() < 1e-12);
        }
        assert!(basis.apply(&basis.identity(), &x).iter().zip(&x).all(|(a, b)| (a - b).norm() < 1e-12));
    }
}
