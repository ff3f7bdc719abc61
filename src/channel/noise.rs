use num_complex::Complex32;
use std::f64::consts::SQRT_2;

use super::random::{BATCH, Draws, Random};
use super::{Stage, from_db, narrow, no_such, wide};
use crate::Result;
use crate::error::require;

/// White Gaussian noise at a given SNR: circular with `E|n|² = signal_power / 10^(snr_db/10)`.
///
/// The signal's power is stated, not measured, so that a fading signal keeps its fades. A predictor that knows the noise-free signal reaches
/// an NMSE of `1/(1 + SNR)` against the noisy one: −20.04 dB at 20 dB, −10.41 dB at 10 dB.
#[derive(Clone, Debug)]
pub struct Noise {
    random: Random,
    snr_db: f64,
    signal_power: f64,
    amplitude: f64,
    real: bool,
    batch: Option<Batch>,
}

/// Draws that were made together, and how many of them are used.
#[derive(Clone, Debug)]
struct Batch {
    draws: [Complex32; BATCH],
    used: usize,
}

impl Noise {
    /// Noise `snr_db` below a signal of mean power 1; `f64::INFINITY` for none.
    pub fn new(snr_db: f64, seed: u64) -> Result<Self> {
        let mut noise = Self {
            random: Random::new(seed, Draws::Noise),
            snr_db: f64::INFINITY,
            signal_power: 1.0,
            amplitude: 0.0,
            real: false,
            batch: None,
        };
        noise.set_snr_db(snr_db)?;
        Ok(noise)
    }

    /// The same power in the real part alone, for real-valued signals.
    pub(crate) fn real_valued(mut self) -> Self {
        self.real = true;
        self
    }

    /// Complex noise of the same law in single precision: other samples, a few times as fast.
    #[cfg_attr(not(feature = "soapy"), allow(dead_code))]
    pub(crate) fn quick(mut self) -> Self {
        self.batch = Some(Batch { draws: [Complex32::ZERO; BATCH], used: BATCH });
        self
    }

    pub(super) fn is_real(&self) -> bool {
        self.real
    }

    /// Sets the ratio of signal power to noise power in dB; infinity switches the noise off.
    pub(crate) fn set_snr_db(&mut self, snr_db: f64) -> Result<()> {
        let ok = snr_db == f64::INFINITY || snr_db.abs() <= 300.0;
        require(ok, "snr_db", "between -300 and 300, or inf for no noise", snr_db)?;
        self.snr_db = snr_db;
        self.update();
        Ok(())
    }

    /// Sets the mean power that the signal is taken to have.
    pub(crate) fn set_signal_power(&mut self, power: f64) -> Result<()> {
        require(power.is_finite() && power >= 0.0, "signal_power", "0 or more", power)?;
        self.signal_power = power;
        self.update();
        Ok(())
    }

    /// The noise's mean power.
    pub(crate) fn power(&self) -> f64 {
        self.amplitude * self.amplitude
    }

    fn update(&mut self) {
        self.amplitude = (self.signal_power * from_db(-self.snr_db)).sqrt();
    }
}

impl Stage for Noise {
    fn process(&mut self, samples: &mut [Complex32]) {
        if self.amplitude == 0.0 {
            return;
        }
        if let Some(batch) = &mut self.batch {
            return batch.add(samples, self.amplitude as f32, &mut self.random);
        }
        let real = self.amplitude * SQRT_2;
        for sample in samples {
            let draw = self.random.complex();
            *sample = if self.real { narrow(wide(*sample) + real * draw.re) } else { narrow(wide(*sample) + draw * self.amplitude) };
        }
    }

    fn reset(&mut self) {
        self.random.reset();
        if let Some(batch) = &mut self.batch {
            batch.used = BATCH;
        }
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "snr_db" => self.set_snr_db(value),
            "signal_power" => self.set_signal_power(value),
            _ => Err(no_such("noise", name, &["snr_db", "signal_power"])),
        }
    }
}

impl Batch {
    fn add(&mut self, mut samples: &mut [Complex32], amplitude: f32, random: &mut Random) {
        while !samples.is_empty() {
            if self.used == BATCH {
                random.complex_batch(&mut self.draws);
                self.used = 0;
            }
            let n = samples.len().min(BATCH - self.used);
            let (now, later) = samples.split_at_mut(n);
            for (sample, draw) in now.iter_mut().zip(&self.draws[self.used..]) {
                *sample += draw * amplitude;
            }
            self.used += n;
            samples = later;
        }
    }
}
