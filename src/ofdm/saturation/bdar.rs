//! Bayesian decision-aided reconstruction.

use num_complex::Complex32;

use super::{
    Curve, Detected, Observation,
    frame::{Frame, doubt_of},
    smooth::{LEAST, Smooth, Smoother},
};

/// From nothing (`m = 0`, `v = 1`), in each round:
///
/// 1. `x̂ = IFFT m`, the samples as far as they are known, with variance v.
/// 2. From tables over (|x̂|, v): `u = E g(x)`, its linear gain a and the distortion d that neither explains.
/// 3. `Z = m + (Y/H − FFT u) / a` with variance `(noise/|H|² + d) / |a|²`.
/// 4. m and v are the mean and variance of the points given Z, damped. Where Z lies further from m than its variance allows, the variance is raised.
///
/// The first round is one tap a carrier, with Bussgang's gain.
#[derive(Clone, Debug)]
pub(super) struct Bdar {
    smooth: Smooth,
    rounds: usize,
    /// Density of the distortion on the carriers over its mean over the amplifier's band, when nothing is known of the symbol.
    colour: f32,
    mean: Vec<Complex32>,
    fresh: Vec<Complex32>,
    spread: Vec<f32>,
    first: (Vec<Complex32>, Vec<f32>),
}

/// Rounds at most; it stops where nothing changes any more.
pub(super) const ROUNDS: usize = 12;
const DAMPING: f32 = 0.7;
/// Mean squared change of the points below which it has settled.
const SETTLED: f32 = 1e-5;

impl Bdar {
    pub(super) fn new(frame: &Frame, curve: &Curve, rounds: usize) -> Self {
        let active = frame.active();
        let mut bdar = Self {
            smooth: Smoother::shared().smooth(curve),
            rounds,
            colour: 1.0,
            mean: vec![Complex32::default(); active],
            fresh: vec![Complex32::default(); active],
            spread: vec![0.0; active],
            first: (vec![Complex32::default(); active], vec![0.0; active]),
        };
        bdar.measure_colour(&mut frame.clone(), curve);
        bdar
    }

    pub(super) fn set_curve(&mut self, frame: &mut Frame, curve: &Curve) {
        Smoother::shared().apply(curve, &mut self.smooth);
        self.measure_colour(frame, curve);
    }

    fn measure_colour(&mut self, frame: &mut Frame, curve: &Curve) {
        let (_, distortion) = frame.bussgang(|z| curve.apply(z));
        let flat = self.smooth.moments(&mut [Complex32::default()], 1.0).distortion * frame.density();
        self.colour = if flat > 1e-9 { (distortion / flat).clamp(0.3, 4.0) } else { 1.0 };
    }

    pub(super) fn detect(&mut self, frame: &mut Frame, symbol: &Observation<'_>, out: &mut Detected) {
        let active = frame.active();
        let mut v = if symbol.again {
            self.mean.copy_from_slice(&out.means);
            out.doubt.clamp(LEAST, 1.0)
        } else {
            frame.before(symbol.index, &mut self.mean, &mut self.spread).clamp(LEAST, 1.0)
        };
        let (mut least, mut extra) = (f32::INFINITY, 0.0);
        for round in 0..self.rounds {
            frame.modulate(&self.mean);
            let moments = self.smooth.moments(&mut frame.time, v);
            frame.demodulate();
            let gain = moments.gain;
            let power = gain.norm_sqr().max(1e-12);
            let distortion = moments.distortion * frame.density() * self.colour;
            let inverse = gain.conj() / power;
            for slot in 0..active {
                out.points[slot] = self.mean[slot] + (frame.equalized[slot] - frame.carrier(slot)) * inverse;
                out.variances[slot] = (frame.noise[slot] + distortion) / power + extra;
            }
            out.doubt = frame.posterior(symbol.index, &out.points, &out.variances, &mut self.fresh, &mut self.spread);
            if round == 0 && !symbol.again {
                self.first.0.copy_from_slice(&out.points);
                self.first.1.copy_from_slice(&out.variances);
                least = doubt_of(&out.variances);
            }
            extra = (extra + self.excess(out)).max(0.0);
            let damping = if round == 0 { 1.0 } else { DAMPING };
            let mut change = 0.0;
            for (m, fresh) in self.mean.iter_mut().zip(&self.fresh) {
                let step = (fresh - *m) * damping;
                change += step.norm_sqr();
                *m += step;
            }
            v = (v + damping * (out.doubt - v)).clamp(LEAST, 1.0);
            if change < SETTLED * active as f32 {
                break;
            }
        }
        // Not surer than one tap: then one tap it is.
        if doubt_of(&out.variances) > least {
            out.points.copy_from_slice(&self.first.0);
            out.variances.copy_from_slice(&self.first.1);
            out.doubt = frame.posterior(symbol.index, &out.points, &out.variances, &mut self.fresh, &mut self.spread);
        }
        out.means.copy_from_slice(&self.fresh);
    }

    /// How much larger the variance is than stated. Behind noise of the stated variance, Z is as far from its own posterior mean as the variance less the
    /// posterior's (the rest of Z − D is orthogonal to Z); what is more than that shows decisions that are wrong together.
    fn excess(&self, out: &Detected) -> f32 {
        let (mut excess, mut weights) = (0.0, 0.0);
        for (((z, &variance), mean), spread) in out.points.iter().zip(&out.variances).zip(&self.fresh).zip(&self.spread) {
            let weight = 1.0 / (variance * variance);
            excess += weight * ((z - mean).norm_sqr() - (variance - spread));
            weights += weight;
        }
        excess / weights
    }
}
