//! What an amplifier does to the envelope, as a receiver sees it.

use num_complex::{Complex32, Complex64};

/// Nodes of the envelope, in units of the signal's rms: from 0 to [`REACH`].
pub(crate) const NODES: usize = 81;
/// The largest envelope that a curve knows; beyond it the output stays as it is there. Of 64 carriers' samples one in ten million is larger.
pub(crate) const REACH: f64 = 4.0;
/// Distance of two nodes.
pub(crate) const STEP: f64 = REACH / (NODES - 1) as f64;

/// An amplifier without memory, `g(x) = x · G(|x|)`, for signals of rms 1 before clipping; a complex gain turns the phase as well.
///
/// Scaled such that a complex Gaussian signal of rms 1 leaves it with rms 1 and, on average, unturned: what is left belongs to the channel.
///
/// ```
/// use kaflow::{Complex64, ofdm::Curve};
/// let limiter = Curve::new(|r| Complex64::new(1f64.min(1.0 / r), 0.0)); // saturates at the rms
/// assert!((limiter.gain(3.0) / limiter.gain(0.5) - 1.0 / 3.0).norm() < 1e-3);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    gains: Vec<Complex64>,
}

impl Curve {
    /// The curve with the gain `G` at each envelope, up to a factor; a gain that is not finite counts as 0.
    pub fn new(gain: impl Fn(f64) -> Complex64) -> Self {
        let mut curve = Self::raw(gain);
        curve.normalize();
        curve
    }

    /// The same as it is.
    pub(crate) fn raw(gain: impl Fn(f64) -> Complex64) -> Self {
        // The middle of the first cell for an envelope of 0, where a gain may be 0/0.
        let at = |i: usize| gain(if i == 0 { STEP / 8.0 } else { i as f64 * STEP });
        let finite = |z: Complex64| if z.re.is_finite() && z.im.is_finite() { z } else { Complex64::ZERO };
        Self { gains: (0..NODES).map(|i| finite(at(i))).collect() }
    }

    /// No amplifier, or one that is far from saturation.
    pub(crate) fn linear() -> Self {
        Self { gains: vec![Complex64::ONE; NODES] }
    }

    /// The gain at an envelope.
    pub fn gain(&self, envelope: f64) -> Complex64 {
        if envelope >= REACH {
            return self.gains[NODES - 1] * (REACH / envelope);
        }
        let place = (envelope / STEP).clamp(0.0, (NODES - 2) as f64 + 0.999_999);
        let (i, f) = (place as usize, place.fract());
        self.gains[i] * (1.0 - f) + self.gains[i + 1] * f
    }

    pub(crate) fn gains(&self) -> &[Complex64] {
        &self.gains
    }

    /// What leaves for `x`.
    pub(crate) fn apply(&self, x: Complex32) -> Complex32 {
        let gain = self.gain(f64::from(x.norm_sqr()).sqrt());
        x * Complex32::new(gain.re as f32, gain.im as f32)
    }

    /// Whether the outputs of the two differ by more than a millionth of their power: 60 dB down, where no detector sees it.
    pub(crate) fn differs(&self, other: &Self) -> bool {
        let distance = |i: usize| {
            let r = i as f64 * STEP;
            2.0 * r * r * r * (-r * r).exp() * STEP * (self.gains[i] - other.gains[i]).norm_sqr()
        };
        (0..NODES).map(distance).sum::<f64>() > 1e-6
    }

    /// Divides by the gain of a Gaussian signal and returns it: its size from the powers, its phase from Bussgang's.
    pub(crate) fn normalize(&mut self) -> Complex64 {
        let (mut power, mut cross) = (0.0, Complex64::ZERO);
        for (i, gain) in self.gains.iter().enumerate() {
            let r = i as f64 * STEP;
            // The density of the envelope of a Gaussian signal times the squared envelope.
            let weight = 2.0 * r * r * r * (-r * r).exp() * STEP;
            power += weight * gain.norm_sqr();
            cross += gain * weight;
        }
        if !(power > 1e-30 && power.is_finite()) {
            *self = Self::linear();
            return Complex64::ONE;
        }
        let phase = if cross.norm() > 1e-9 * power.sqrt() { cross / cross.norm() } else { Complex64::ONE };
        let scale = phase * power.sqrt();
        self.gains.iter_mut().for_each(|gain| *gain /= scale);
        scale
    }
}
