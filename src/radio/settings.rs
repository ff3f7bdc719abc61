//! What the device's arguments say.

use crate::channel::{Amplifier, FadingConfig, Model, Profile};
use crate::error::require;
use crate::{Error, Result};

/// The parameters of a simulated radio; [`Settings::parse`] reads them from SoapySDR's device arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Radios of one process with the same name hear each other; one without a name hears itself alone.
    pub air: Option<String>,
    /// Whether samples take as long as they last, or as long as the processor needs.
    pub real_time: bool,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Ratio, in dB, of a received mean power of 1 (a saturated amplifier through the mean channel) to the noise.
    pub snr_db: f64,
    /// Fading taps, one sample apart; 0 is a wire.
    pub taps: u32,
    /// Each tap's power in dB below the one before.
    pub decay_db: f64,
    /// Doppler frequency in Hz.
    pub doppler_hz: f64,
    /// Rician factor in dB; none for Rayleigh.
    pub rician_k_db: Option<f64>,
    /// Delay between TX and RX in samples.
    pub delay: f64,
    /// Carrier offset between TX and RX in Hz.
    pub cfo_hz: f64,
    /// Offset of the receiver's sampling period in parts per million.
    pub ppm: f64,
    /// The transmit amplifier: none is a wire.
    pub amplifier: Option<Model>,
    /// What goes wrong.
    pub faults: Faults,
}

/// Faults on demand, each after every so many received samples; 0 is never.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// The receiver overflows and says so.
    pub overflow_every: u64,
    /// How many samples an overflow loses.
    pub overflow_length: u64,
    /// The clock jumps and nothing says so but the timestamps.
    pub jump_every: u64,
    /// By how many samples: those are lost. A negative jump loses none and sets the clock back.
    pub jump: i64,
    /// The stream stalls.
    pub stall_every: u64,
    /// How many reads time out then.
    pub stall: u64,
    /// The device is gone after so many samples.
    pub vanish_after: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            air: None,
            real_time: true,
            seed: 1,
            snr_db: 30.0,
            taps: 4,
            decay_db: 3.0,
            doppler_hz: 10.0,
            rician_k_db: None,
            delay: 40.0,
            cfo_hz: 0.0,
            ppm: 0.0,
            amplifier: Some(Model::Rapp { smoothness: 2.0 }),
            faults: Faults { overflow_length: 1000, stall: 3, ..Faults::default() },
        }
    }
}

/// Arguments that identify a device and mean nothing here.
const IDENTITY: [&str; 3] = ["driver", "label", "serial"];

impl Settings {
    /// The names of the parameters, as device arguments and as settings.
    pub const NAMES: [&str; 20] = [
        "air",
        "pace",
        "seed",
        "snr",
        "taps",
        "decay",
        "doppler",
        "rician",
        "delay",
        "cfo",
        "ppm",
        "amplifier",
        "smoothness",
        "overflow_every",
        "overflow_length",
        "jump_every",
        "jump",
        "stall_every",
        "stall",
        "vanish_after",
    ];

    /// Reads `key=value, key=value`.
    pub fn parse(arguments: &str) -> Result<Self> {
        let mut settings = Self::default();
        for pair in arguments.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !IDENTITY.contains(&key.trim()) {
                settings.set(key.trim(), value.trim())?;
            }
        }
        settings.fading(1.0)?;
        Ok(settings)
    }

    /// Changes one parameter. On an error nothing has changed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let number = || value.parse::<f64>().ok().filter(|v| !v.is_nan()).ok_or_else(|| Error::parameter(key, "a number", value));
        let within = |low: f64, high: f64, expected: &str| {
            let v = number()?;
            require((low..=high).contains(&v), key, expected, v).map(|()| v)
        };
        let count = || value.parse::<u64>().map_err(|_| Error::parameter(key, "a whole number, 0 or more", value));
        match key {
            "air" => self.air = Some(value.into()),
            "pace" => {
                self.real_time = match value {
                    "real" => true,
                    "fast" => false,
                    _ => return Err(Error::parameter(key, "real or fast", value)),
                }
            }
            "seed" => self.seed = count()?,
            "snr" => self.snr_db = within(-100.0, f64::INFINITY, "-100 or more, or inf for no noise")?,
            "taps" => self.taps = within(0.0, 64.0, "between 0 (a wire) and 64")? as u32,
            "decay" => self.decay_db = within(-100.0, 100.0, "between -100 and 100 dB")?,
            "doppler" => self.doppler_hz = within(0.0, 1e7, "between 0 and 1e7 Hz")?,
            "rician" => self.rician_k_db = Some(within(-100.0, 100.0, "between -100 and 100 dB")?),
            "delay" => self.delay = within(0.0, 1e5, "between 0 and 1e5 samples")?,
            "cfo" => self.cfo_hz = within(-1e6, 1e6, "between -1e6 and 1e6 Hz")?,
            "ppm" => self.ppm = within(-1000.0, 1000.0, "between -1000 and 1000")?,
            "amplifier" => {
                self.amplifier = match value {
                    "rapp" => Some(Model::Rapp { smoothness: 2.0 }),
                    "saleh" => Some(Model::saleh()),
                    "limiter" => Some(Model::Limiter),
                    "none" => None,
                    _ => return Err(Error::unknown("amplifier", value, ["rapp", "saleh", "limiter", "none"])),
                }
            }
            "smoothness" => {
                let model = Model::Rapp { smoothness: number()? };
                Amplifier::new(model.clone(), 0.0)?;
                self.amplifier = Some(model);
            }
            "overflow_every" => self.faults.overflow_every = count()?,
            "overflow_length" => self.faults.overflow_length = count()?,
            "jump_every" => self.faults.jump_every = count()?,
            "jump" => self.faults.jump = within(-1e9, 1e9, "between -1e9 and 1e9 samples")? as i64,
            "stall_every" => self.faults.stall_every = count()?,
            "stall" => self.faults.stall = count()?,
            "vanish_after" => self.faults.vanish_after = count()?,
            _ => return Err(Error::unknown("device argument", key, Self::NAMES)),
        }
        Ok(())
    }

    /// The channel between two antennas at `rate` samples a second; none is a wire.
    pub(super) fn fading(&self, rate: f64) -> Result<Option<FadingConfig>> {
        if self.taps == 0 {
            return Ok(None);
        }
        let doppler = (self.doppler_hz / rate).min(0.5);
        let mut fading = FadingConfig::new(Profile::exponential(self.taps, self.decay_db), doppler);
        fading.rician_k_db = self.rician_k_db;
        Ok(Some(fading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_set_what_they_name_and_errors_name_the_culprit() {
        let settings = Settings::parse("driver=kaflow-testbed, serial=7, pace=fast,snr=inf, doppler=500, jump=-3, amplifier=none").unwrap();
        let expected = Settings {
            real_time: false,
            snr_db: f64::INFINITY,
            doppler_hz: 500.0,
            amplifier: None,
            faults: Faults { jump: -3, ..Settings::default().faults },
            ..Settings::default()
        };
        assert_eq!(settings, expected);
        for (arguments, message) in [
            ("snrr=3", "unknown device argument 'snrr', did you mean 'snr'?"),
            ("snr=loud", "snr must be a number, got loud"),
            ("taps=-1", "taps must be between 0 (a wire) and 64, got -1"),
            ("pace=slow", "pace must be real or fast, got slow"),
            ("stall=1.5", "stall must be a whole number, 0 or more, got 1.5"),
            ("doppler=NaN", "doppler must be a number, got NaN"),
        ] {
            let error = Settings::parse(arguments).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
