//! What the transmitter's amplifier makes of the reference.
//!
//! A saturated amplifier distorts by a tenth of the power and more. To a fit that knows the undistorted reference alone that is noise, in which slow drifts and weak paths drown. So the
//! reference is bent before it is compared: `x (1 + Σ w_k L_k(|x|²/P))` with the generalised Laguerre polynomials `L_k^(1)`, whose products with `x` are uncorrelated with `x` and each other
//! where `x` is complex Gaussian of power `P`, as OFDM nearly is: the linear gain stays with the response, and few samples tell the weights.

use num_complex::Complex64;

use super::probe::Probe;
use crate::dsp::solve;
use crate::iq::align::normal::Grid;

/// Terms beside the linear one: orders 3, 5 and 7.
pub(super) const TERMS: usize = 3;

/// How much of what was learned is kept from probe to probe.
const MEMORY: f64 = 0.95;

/// Share of a term's energy that is added to it, so that a term that follows from the others has no weight: envelopes may be constant.
const RIDGE: f64 = 1e-3;

/// Above so many times the power that the polynomials are for, they are made anew.
const RISE: f64 = 4.0;

/// An amplifier without memory, as far as received samples tell it.
#[derive(Clone, Debug, Default)]
pub(super) struct Curve {
    /// The reference's mean power; 0 before anything was learned.
    power: f64,
    /// The largest envelope seen, as power over the mean one: nothing is known beyond.
    most: f64,
    weights: [Complex64; TERMS],
    gram: [Complex64; TERMS * TERMS],
    cross: [Complex64; TERMS],
}

/// `L_k^(1)` for k = 1 to 3.
fn terms(t: f64) -> [f64; TERMS] {
    [2.0 - t, 3.0 - t * (3.0 - t / 2.0), 4.0 - t * (6.0 - t * (2.0 - t / 6.0))]
}

impl Curve {
    /// What comes out of the amplifier.
    pub(super) fn bend(&self, samples: &[Complex64]) -> Vec<Complex64> {
        if self.power == 0.0 {
            return samples.to_vec();
        }
        let gain = |x: &Complex64| {
            let t = (x.norm_sqr() / self.power).min(self.most);
            terms(t).iter().zip(&self.weights).map(|(term, w)| w * term).sum::<Complex64>() + 1.0
        };
        samples.iter().map(|x| x * gain(x)).collect()
    }

    /// Learns from a probe that `grid` explains: given the response, the received samples are linear in the weights.
    pub(super) fn learn(&mut self, probe: &Probe, grid: Grid) {
        if !probe.sent.is_finite() {
            return;
        }
        // What was seen first may have been silence: its power is no measure.
        if probe.sent > RISE * self.power {
            *self = Self { power: probe.sent, ..Self::default() };
        }
        if self.power == 0.0 {
            return;
        }
        self.gram.iter_mut().chain(&mut self.cross).for_each(|z| *z *= MEMORY);
        let (power, mut most) = (self.power, self.most * MEMORY);
        probe.through(
            grid,
            |x| {
                let t = x.norm_sqr() / power;
                most = most.max(t);
                terms(t).map(|term| x * term)
            },
            |bent, rest| {
                for (i, z) in bent.iter().enumerate() {
                    self.cross[i] += z.conj() * rest;
                    for (j, other) in bent.iter().enumerate() {
                        self.gram[i * TERMS + j] += z.conj() * other;
                    }
                }
            },
        );
        self.most = most;
        let (mut gram, mut weights) = (self.gram, self.cross);
        for i in 0..TERMS {
            gram[i * (TERMS + 1)] *= 1.0 + RIDGE;
        }
        if solve(&mut gram, &mut weights) {
            self.weights = weights;
        } else {
            // Sums that are no numbers would stay so.
            (self.gram, self.cross) = Default::default();
        }
    }
}
