use num_complex::Complex32;

use super::{Stage, no_such};
use crate::Result;
use crate::error::require;

/// An analogue-to-digital converter: each part is rounded to one of `2^bits` levels and saturates at `±full_scale`.
///
/// Two's complement, mid-tread: with the step `Δ = full_scale / 2^(bits−1)` the levels are `−2^(bits−1)Δ ... (2^(bits−1) − 1)Δ`. The rounding error
/// of a busy signal has the variance `Δ²/12` in each part; a full-scale sine therefore has `6.02·bits + 1.76` dB of SNR.
#[derive(Clone, Debug)]
pub(crate) struct Quantiser {
    bits: u32,
    full_scale: f64,
}

impl Quantiser {
    /// A converter with `bits` bits (0 for an ideal one that lets everything through) and its full scale in units of sample amplitude.
    pub(crate) fn new(bits: u32, full_scale: f64) -> Result<Self> {
        let mut adc = Self { bits: 0, full_scale: 1.0 };
        adc.set_bits(bits)?;
        adc.set_full_scale(full_scale)?;
        Ok(adc)
    }

    /// Sets the number of bits: 0 for an ideal converter, or 2 to 24.
    pub(crate) fn set_bits(&mut self, bits: u32) -> Result<()> {
        require(bits != 1 && bits <= 24, "adc_bits", "between 2 and 24, or 0 for an ideal converter", f64::from(bits))?;
        self.bits = bits;
        Ok(())
    }

    /// Sets the amplitude at which each part saturates.
    pub(crate) fn set_full_scale(&mut self, full_scale: f64) -> Result<()> {
        require(full_scale.is_finite() && full_scale > 0.0, "full_scale", "more than 0", full_scale)?;
        self.full_scale = full_scale;
        Ok(())
    }
}

impl Stage for Quantiser {
    fn process(&mut self, samples: &mut [Complex32]) {
        if self.bits == 0 {
            return;
        }
        let levels = f64::from(1u32 << (self.bits - 1));
        let step = self.full_scale / levels;
        let convert = |x: f32| ((f64::from(x) / step).round().clamp(-levels, levels - 1.0) * step) as f32;
        for sample in samples {
            *sample = Complex32::new(convert(sample.re), convert(sample.im));
        }
    }

    fn reset(&mut self) {}

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "adc_bits" => {
                require(value.fract() == 0.0 && (0.0..=24.0).contains(&value), name, "a whole number between 0 and 24", value)?;
                self.set_bits(value as u32)
            }
            "full_scale" => self.set_full_scale(value),
            _ => Err(no_such("ADC", name, &["adc_bits", "full_scale"])),
        }
    }
}
