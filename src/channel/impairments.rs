use num_complex::Complex32;
use serde::{Deserialize, Serialize};

use super::{CarrierOffset, DcOffset, IqImbalance, Noise, PhaseNoise, Quantiser, SampleOffset, Stage};
use crate::{Error, Result};

/// What a receiver does to a signal besides receiving it. Everything is off by default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImpairmentsConfig {
    /// Delay of the signal in samples, 0 or more; need not be whole.
    pub delay: f64,
    /// Offset of the receiver's sampling period in parts per million.
    pub sample_offset_ppm: f64,
    /// Carrier frequency offset in cycles per sample.
    pub carrier_offset: f64,
    /// Phase of the carrier at the first sample, in radians.
    pub carrier_phase: f64,
    /// Phase noise: full width of the carrier's line at half power, in cycles per sample.
    pub linewidth: f64,
    /// Phase noise: bandwidth of the loop that holds the oscillator, in cycles per sample; 0 for a free one.
    pub loop_bandwidth: f64,
    /// Gain of the quadrature branch over the in-phase one in dB.
    pub iq_gain_db: f64,
    /// Phase error of the quadrature branch in degrees.
    pub iq_phase_deg: f64,
    /// DC offset of the real part, in units of sample amplitude.
    pub dc_re: f64,
    /// DC offset of the imaginary part.
    pub dc_im: f64,
    /// Bits of the converter; 0 for an ideal one.
    pub adc_bits: u32,
    /// The converter's full scale in dB above the rms of the real or imaginary part of what it receives.
    pub adc_headroom_db: f64,
    /// Gaps per sample: how often the receiver loses samples.
    pub drop_rate: f64,
    /// Mean length of a gap in samples.
    pub drop_length: f64,
}

impl Default for ImpairmentsConfig {
    fn default() -> Self {
        Self {
            delay: 0.0,
            sample_offset_ppm: 0.0,
            carrier_offset: 0.0,
            carrier_phase: 0.0,
            linewidth: 0.0,
            loop_bandwidth: 0.0,
            iq_gain_db: 0.0,
            iq_phase_deg: 0.0,
            dc_re: 0.0,
            dc_im: 0.0,
            adc_bits: 0,
            adc_headroom_db: 12.0,
            drop_rate: 0.0,
            drop_length: 100.0,
        }
    }
}

/// One receiver: delay and sampling offset, carrier offset, phase noise, noise, IQ imbalance, DC and converter, in this order.
///
/// Noise comes after the sampling offset so that it stays white, and before the mixer's imbalance as in a radio. Samples that go missing are the business of
/// `Dropper`.
#[derive(Clone, Debug)]
pub(crate) struct Impairments {
    clock: SampleOffset,
    carrier: CarrierOffset,
    phase_noise: PhaseNoise,
    noise: Noise,
    imbalance: IqImbalance,
    dc: DcOffset,
    adc: Quantiser,
}

/// The parameters that can be changed while running, by the part that has them.
const KNOWN: [&str; 12] = [
    "sample_offset_ppm",
    "carrier_offset",
    "linewidth",
    "loop_bandwidth",
    "snr_db",
    "signal_power",
    "iq_gain_db",
    "iq_phase_deg",
    "dc_re",
    "dc_im",
    "adc_bits",
    "full_scale",
];

impl Impairments {
    /// A receiver as configured, for a signal of mean power 1, with noise `snr_db` below it (infinity for none).
    ///
    /// The phase noise is drawn from `seed` as well as the noise; see `with_noise` for antennas that share an oscillator.
    pub(crate) fn new(config: &ImpairmentsConfig, snr_db: f64, seed: u64) -> Result<Self> {
        Self::with_noise(config, Noise::new(snr_db, seed)?, seed)
    }

    /// A receiver with a noise source of its own and an oscillator that others with the same `seed` share.
    pub(crate) fn with_noise(config: &ImpairmentsConfig, noise: Noise, seed: u64) -> Result<Self> {
        Ok(Self {
            clock: SampleOffset::new(config.sample_offset_ppm, config.delay)?,
            carrier: CarrierOffset::new(config.carrier_offset, config.carrier_phase)?,
            phase_noise: PhaseNoise::new(config.linewidth, config.loop_bandwidth, seed)?,
            noise,
            imbalance: IqImbalance::new(config.iq_gain_db, config.iq_phase_deg)?,
            dc: DcOffset::new(config.dc_re, config.dc_im)?,
            adc: Quantiser::new(config.adc_bits, 1.0)?,
        })
    }

    /// Takes the next inputs and appends the outputs that they complete: 48 fewer than came in, give or take the sampling offset.
    pub(crate) fn process(&mut self, input: &[Complex32], output: &mut Vec<Complex32>) {
        let start = output.len();
        self.clock.process(input, output);
        self.after_clock(&mut output[start..]);
    }

    /// The outputs that are still waiting, as if silence followed.
    pub(crate) fn flush(&mut self, output: &mut Vec<Complex32>) {
        let start = output.len();
        self.clock.flush(output);
        self.after_clock(&mut output[start..]);
    }

    fn after_clock(&mut self, samples: &mut [Complex32]) {
        self.carrier.process(samples);
        self.phase_noise.process(samples);
        self.noise.process(samples);
        self.imbalance.process(samples);
        self.dc.process(samples);
        self.adc.process(samples);
    }

    /// Back to the first sample; parameters stay as they were last set.
    pub(crate) fn reset(&mut self) {
        self.clock.reset();
        self.carrier.reset();
        self.phase_noise.reset();
        self.noise.reset();
    }

    /// Sets the mean power that the signal is taken to have; noise and the converter's full scale follow.
    pub(crate) fn set_signal_power(&mut self, power: f64, headroom_db: f64) -> Result<()> {
        self.noise.set_signal_power(power)?;
        let total = power + self.noise.power();
        if total > 0.0 {
            let parts = if self.noise.is_real() { 1.0 } else { 2.0 };
            self.adc.set_full_scale((total / parts).sqrt() * libm::pow(10.0, headroom_db / 20.0))?;
        }
        Ok(())
    }

    /// The mean power of the noise.
    pub(crate) fn noise_power(&self) -> f64 {
        self.noise.power()
    }

    /// Changes a parameter from the next sample on. An unknown name or an invalid value is an error and changes nothing.
    pub(crate) fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "sample_offset_ppm" => self.clock.set(name, value),
            "carrier_offset" => self.carrier.set(name, value),
            "linewidth" | "loop_bandwidth" => self.phase_noise.set(name, value),
            "snr_db" | "signal_power" => self.noise.set(name, value),
            "iq_gain_db" | "iq_phase_deg" => self.imbalance.set(name, value),
            "dc_re" | "dc_im" => self.dc.set(name, value),
            "adc_bits" | "full_scale" => self.adc.set(name, value),
            _ => Err(Error::unknown("impairment", name, KNOWN)),
        }
    }
}
