use num_complex::Complex32;
use std::f64::consts::TAU;

use super::random::{Draws, Random};
use super::{Stage, no_such};
use crate::Result;
use crate::dsp::{Nco, cis, narrow, wide};
use crate::error::require;

/// Carrier frequency offset: multiplies sample `n` by `exp(j(phase + 2π·frequency·n))`.
///
/// A change of frequency while running keeps the phase continuous.
#[derive(Clone, Debug)]
pub(crate) struct CarrierOffset {
    frequency: f64,
    phase: f64,
    oscillator: Nco,
}

impl CarrierOffset {
    /// An offset of `frequency` cycles per sample, in ±0.5, that starts at `phase` radians.
    pub(crate) fn new(frequency: f64, phase: f64) -> Result<Self> {
        require(phase.is_finite(), "carrier_phase", "finite", phase)?;
        let mut offset = Self { frequency, phase, oscillator: Nco::new(0.0, phase) };
        offset.set_frequency(frequency)?;
        Ok(offset)
    }

    /// Sets the frequency in cycles per sample.
    pub(crate) fn set_frequency(&mut self, frequency: f64) -> Result<()> {
        require(frequency.abs() <= 0.5, "carrier_offset", "between -0.5 and 0.5 cycles per sample", frequency)?;
        self.frequency = frequency;
        self.oscillator.set_frequency(frequency);
        Ok(())
    }
}

impl Stage for CarrierOffset {
    fn process(&mut self, samples: &mut [Complex32]) {
        self.oscillator.mix(samples);
    }

    fn reset(&mut self) {
        self.oscillator = Nco::new(self.frequency, self.phase);
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "carrier_offset" => self.set_frequency(value),
            _ => Err(no_such("carrier offset", name, &["carrier_offset"])),
        }
    }
}

/// Phase noise of an oscillator, free running or locked in a loop.
///
/// Free running (`loop_bandwidth` 0) the phase is a random walk whose steps have variance `2π·linewidth`: the spectrum of the carrier is a
/// Lorentzian that is `linewidth` wide between its half-power points, and `E[z(n+k) z*(n)] = exp(−π·linewidth·k)`. A loop of
/// one-sided bandwidth `b` (cycles per sample) pulls the phase back, `θ ← (1 − 2πb)θ + step`, and bounds its variance to
/// `2π·linewidth / (1 − (1 − 2πb)²)`.
#[derive(Clone, Debug)]
pub(crate) struct PhaseNoise {
    random: Random,
    linewidth: f64,
    loop_bandwidth: f64,
    theta: f64,
}

impl PhaseNoise {
    /// A line `linewidth` cycles per sample wide (0 for none), locked with `loop_bandwidth` cycles per sample (0 for free running).
    pub(crate) fn new(linewidth: f64, loop_bandwidth: f64, seed: u64) -> Result<Self> {
        let mut noise = Self { random: Random::new(seed, Draws::PhaseNoise), linewidth: 0.0, loop_bandwidth: 0.0, theta: 0.0 };
        noise.set_linewidth(linewidth)?;
        noise.set_loop_bandwidth(loop_bandwidth)?;
        Ok(noise)
    }

    /// Sets the linewidth in cycles per sample.
    pub(crate) fn set_linewidth(&mut self, linewidth: f64) -> Result<()> {
        require((0.0..=0.5).contains(&linewidth), "linewidth", "between 0 and 0.5 cycles per sample", linewidth)?;
        self.linewidth = linewidth;
        Ok(())
    }

    /// Sets the bandwidth of the loop in cycles per sample.
    pub(crate) fn set_loop_bandwidth(&mut self, bandwidth: f64) -> Result<()> {
        require((0.0..=0.15).contains(&bandwidth), "loop_bandwidth", "between 0 and 0.15 cycles per sample", bandwidth)?;
        self.loop_bandwidth = bandwidth;
        Ok(())
    }
}

impl Stage for PhaseNoise {
    fn process(&mut self, samples: &mut [Complex32]) {
        if self.linewidth == 0.0 && self.theta == 0.0 {
            return;
        }
        let step = (TAU * self.linewidth).sqrt();
        let keep = 1.0 - TAU * self.loop_bandwidth;
        for sample in samples {
            *sample = narrow(wide(*sample) * cis(self.theta));
            self.theta = keep * self.theta + step * self.random.real();
            // A free phase walks away from zero, and sine loses digits out there.
            if self.loop_bandwidth == 0.0 && self.theta.abs() > TAU {
                self.theta -= TAU.copysign(self.theta);
            }
        }
    }

    fn reset(&mut self) {
        self.random.reset();
        self.theta = 0.0;
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "linewidth" => self.set_linewidth(value),
            "loop_bandwidth" => self.set_loop_bandwidth(value),
            _ => Err(no_such("phase noise", name, &["linewidth", "loop_bandwidth"])),
        }
    }
}
