//! Decision-aided reconstruction with hard decisions.

use num_complex::Complex32;

use super::{
    Curve, Detected, Observation,
    frame::{Frame, OneTap},
};

/// Decides, sends the decisions through the curve, takes the distortion that they would have away, and decides again.
#[derive(Clone, Debug)]
pub(super) struct Dar {
    curve: Curve,
    tap: OneTap,
    decided: Vec<Complex32>,
    spread: Vec<f32>,
}

const ROUNDS: usize = 4;
/// Share of the distortion that is taken to remain: hard decisions do not know how wrong they are.
const REMAINS: f32 = 0.3;
/// Noise of a hard decision's posterior: none.
const HARD: f32 = 1e-6;

impl Dar {
    pub(super) fn new(frame: &Frame, curve: &Curve) -> Self {
        let active = frame.active();
        let mut dar =
            Self { curve: curve.clone(), tap: OneTap::default(), decided: vec![Complex32::default(); active], spread: vec![0.0; active] };
        dar.set_curve(&mut frame.clone(), curve);
        dar
    }

    pub(super) fn set_curve(&mut self, frame: &mut Frame, curve: &Curve) {
        self.curve = curve.clone();
        self.tap = frame.bussgang(|z| curve.apply(z));
    }

    pub(super) fn detect(&mut self, frame: &mut Frame, symbol: &Observation<'_>, out: &mut Detected) {
        let OneTap { gain, distortion } = self.tap;
        let power = gain.norm_sqr().max(1e-12);
        let inverse = gain.conj() / power;
        for slot in 0..frame.active() {
            out.points[slot] = frame.equalized[slot] * inverse;
            out.variances[slot] = HARD;
        }
        for _ in 0..ROUNDS {
            frame.posterior(symbol.index, &out.points, &out.variances, &mut self.decided, &mut self.spread);
            frame.modulate(&self.decided);
            for z in &mut frame.time {
                *z = self.curve.apply(*z);
            }
            frame.demodulate();
            for slot in 0..frame.active() {
                out.points[slot] = self.decided[slot] + (frame.equalized[slot] - frame.carrier(slot)) * inverse;
            }
        }
        for (v, noise) in out.variances.iter_mut().zip(&frame.noise) {
            *v = (noise + REMAINS * distortion) / power;
        }
        out.doubt = frame.posterior(symbol.index, &out.points, &out.variances, &mut out.means, &mut self.spread);
    }
}
