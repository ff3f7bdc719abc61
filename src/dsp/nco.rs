//! A complex oscillator.

use std::f64::consts::TAU;

use num_complex::{Complex32, Complex64};

use super::{narrow, wide};

/// Rotating phasors are brought back to the unit circle this often: rounding moves them by about 1e-16 a step.
const RENORMALISE: u32 = 1024;

/// `exp(j radians)`, the same to the bit on every machine.
pub(crate) fn cis(radians: f64) -> Complex64 {
    let (sin, cos) = libm::sincos(radians);
    Complex64::new(cos, sin)
}

/// `exp(j(phase + 2π·frequency·n))` at sample `n`. A change of frequency keeps the phase continuous.
#[derive(Clone, Debug)]
pub(crate) struct Nco {
    frequency: f64,
    phasor: Complex64,
    step: Complex64,
    count: u32,
}

impl Nco {
    /// Turns by `frequency` cycles a sample and starts at `phase` radians.
    pub(crate) fn new(frequency: f64, phase: f64) -> Self {
        Self { frequency, phasor: cis(phase), step: cis(TAU * frequency), count: 0 }
    }

    /// Turns by `frequency` cycles a sample from the next sample on.
    pub(crate) fn set_frequency(&mut self, frequency: f64) {
        (self.frequency, self.step) = (frequency, cis(TAU * frequency));
    }

    /// Multiplies the next samples by the oscillator.
    pub(crate) fn mix(&mut self, samples: &mut [Complex32]) {
        if self.frequency == 0.0 && self.phasor == Complex64::ONE {
            return;
        }
        for sample in samples {
            *sample = narrow(wide(*sample) * self.phasor);
            self.phasor *= self.step;
            self.count += 1;
            if self.count == RENORMALISE {
                self.count = 0;
                self.phasor /= self.phasor.norm_sqr().sqrt();
            }
        }
    }
}
