use num_complex::{Complex32, Complex64};

use super::{Stage, narrow, no_such, wide};
use crate::Result;
use crate::error::require;

/// Imbalance of the in-phase and quadrature branches: `y = μx + νx*` with `μ = (1 + g e^{jφ})/2`, `ν = (1 − g e^{jφ})/2`.
///
/// `g` is the quadrature branch's gain over the in-phase one and `φ` its error of phase, so that the image lies `|μ|²/|ν|²` below the signal.
#[derive(Clone, Debug)]
pub(crate) struct IqImbalance {
    gain_db: f64,
    phase_deg: f64,
    direct: Complex64,
    image: Complex64,
}

impl IqImbalance {
    /// A gain imbalance in dB and a phase imbalance in degrees; 0 and 0 for a perfect mixer.
    pub(crate) fn new(gain_db: f64, phase_deg: f64) -> Result<Self> {
        let mut imbalance = Self { gain_db: 0.0, phase_deg: 0.0, direct: Complex64::ONE, image: Complex64::ZERO };
        imbalance.set_gain_db(gain_db)?;
        imbalance.set_phase_deg(phase_deg)?;
        Ok(imbalance)
    }

    /// Sets the gain imbalance in dB.
    pub(crate) fn set_gain_db(&mut self, gain_db: f64) -> Result<()> {
        require(gain_db.abs() <= 20.0, "iq_gain_db", "between -20 and 20", gain_db)?;
        self.gain_db = gain_db;
        self.update();
        Ok(())
    }

    /// Sets the phase imbalance in degrees.
    pub(crate) fn set_phase_deg(&mut self, phase_deg: f64) -> Result<()> {
        require(phase_deg.abs() <= 45.0, "iq_phase_deg", "between -45 and 45", phase_deg)?;
        self.phase_deg = phase_deg;
        self.update();
        Ok(())
    }

    /// How far the image lies below the signal, in dB; infinite for a perfect mixer.
    #[cfg(test)]
    pub(crate) fn image_rejection_db(&self) -> f64 {
        crate::dsp::db(self.direct.norm_sqr(), self.image.norm_sqr())
    }

    fn update(&mut self) {
        let (sin, cos) = libm::sincos(self.phase_deg.to_radians());
        let branch = Complex64::new(cos, sin) * libm::pow(10.0, self.gain_db / 20.0);
        self.direct = (1.0 + branch) / 2.0;
        self.image = (1.0 - branch) / 2.0;
    }
}

impl Stage for IqImbalance {
    fn process(&mut self, samples: &mut [Complex32]) {
        if self.image == Complex64::ZERO {
            return;
        }
        for sample in samples {
            let x = wide(*sample);
            *sample = narrow(self.direct * x + self.image * x.conj());
        }
    }

    fn reset(&mut self) {}

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "iq_gain_db" => self.set_gain_db(value),
            "iq_phase_deg" => self.set_phase_deg(value),
            _ => Err(no_such("IQ imbalance", name, &["iq_gain_db", "iq_phase_deg"])),
        }
    }
}

/// A constant added to every sample: leakage of the local oscillator.
#[derive(Clone, Debug)]
pub(crate) struct DcOffset(Complex32);

impl DcOffset {
    /// The constant, in units of sample amplitude.
    pub(crate) fn new(re: f64, im: f64) -> Result<Self> {
        let mut dc = Self(Complex32::ZERO);
        dc.set("dc_re", re)?;
        dc.set("dc_im", im)?;
        Ok(dc)
    }
}

impl Stage for DcOffset {
    fn process(&mut self, samples: &mut [Complex32]) {
        for sample in samples {
            *sample += self.0;
        }
    }

    fn reset(&mut self) {}

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        let slot = match name {
            "dc_re" => &mut self.0.re,
            "dc_im" => &mut self.0.im,
            _ => return Err(no_such("DC offset", name, &["dc_re", "dc_im"])),
        };
        require((value as f32).is_finite(), name, "finite", value)?;
        *slot = value as f32;
        Ok(())
    }
}
