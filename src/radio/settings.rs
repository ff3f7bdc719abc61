//! What the device's arguments and settings say, in the words of [`Scenario`].

use super::parameters::{AMPLIFIERS, PARAMETERS};
use super::quirks::{Quirks, TimeStamps};
use crate::channel::{AmplifierConfig, FadingConfig, ImpairmentsConfig, Model, Profile, Scenario};
use crate::error::require;
use crate::{Error, Result, nearest, ofdm};

/// The parameters of a simulated radio; [`Settings::parse`] reads them from SoapySDR's device arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Radios of one process with the same name hear each other; one without a name hears itself alone.
    pub air: Option<String>,
    /// Whether samples take as long as they last, or as long as the processor needs.
    pub real_time: bool,
    /// Whether it can only do one of receiving and transmitting at a time.
    pub half_duplex: bool,
    /// Whether an external clock, with a pulse a second, is connected.
    pub reference: bool,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Ratio, in dB, of a received mean power of 1 (a saturated amplifier through the mean channel) to the noise; infinity for none.
    pub snr_db: f64,
    /// Fading taps, one sample apart; 0 is a wire.
    pub taps: u64,
    /// Each tap's power in dB below the one before.
    pub decay_db: f64,
    /// Doppler frequency in cycles per sample, unless `in_hz` has one.
    pub doppler: f64,
    /// Rician factor in dB; none for Rayleigh.
    pub rician_k_db: Option<f64>,
    /// The transmit amplifier: none is a wire. Its back-off is the transmit gain's business.
    pub amplifier: Option<Model>,
    /// The receiver: delay, clock, carrier and front end. Its converter's full scale is 1.
    pub impairments: ImpairmentsConfig,
    /// The same frequencies in Hz, which hold at any rate.
    pub in_hz: InHz,
    /// What goes wrong.
    pub quirks: Quirks,
}

/// Frequencies in Hz; those that are given hold instead of the ones in cycles per sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct InHz {
    /// Of the fading.
    pub doppler: Option<f64>,
    /// Between transmitter and receiver.
    pub carrier_offset: Option<f64>,
    /// Of the phase noise.
    pub linewidth: Option<f64>,
    /// Of the oscillator's loop.
    pub loop_bandwidth: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            air: None,
            real_time: true,
            half_duplex: false,
            reference: true,
            seed: 1,
            snr_db: 30.0,
            taps: 4,
            decay_db: 3.0,
            doppler: 0.0,
            rician_k_db: None,
            amplifier: Some(Model::Rapp { smoothness: SMOOTHNESS }),
            impairments: ImpairmentsConfig { delay: 40.0, ..ImpairmentsConfig::default() },
            in_hz: InHz { doppler: Some(10.0), ..InHz::default() },
            quirks: Quirks::default(),
        }
    }
}

/// The knee of a Rapp amplifier where none is given.
const SMOOTHNESS: f64 = 2.0;

/// A parameter's place.
enum Slot<'a> {
    Number(&'a mut f64),
    Maybe(&'a mut Option<f64>),
    Whole(&'a mut u64),
}

impl Settings {
    /// The names of the parameters, as device arguments and as settings.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        PARAMETERS.iter().map(|p| p.name)
    }

    /// Reads `key=value, key=value`. Drivers ignore arguments that they do not know, since programs pass on what is meant for others: those come back, each in a sentence.
    pub(crate) fn parse(arguments: &str) -> Result<(Self, Vec<String>)> {
        let mut settings = Self::default();
        let mut ignored = Vec::new();
        for pair in arguments.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').map_or((pair, ""), |(key, value)| (key.trim(), value.trim()));
            if Self::names().any(|name| name == key) {
                settings.set(key, value)?;
            } else if key != "driver" {
                let names: Vec<&str> = Self::names().collect();
                let hint = nearest(key, &names).map_or(String::new(), |name| format!(", did you mean '{name}'?"));
                ignored.push(format!("unknown device argument '{key}' is ignored{hint}"));
            }
        }
        settings.scenario(1e6)?;
        Ok((settings, ignored))
    }

    /// Refuses arguments that the device would ignore: what a person wrote is meant.
    pub(crate) fn check(arguments: &str) -> Result<()> {
        Self::parse(arguments)?;
        let key = |pair: &str| pair.split_once('=').map_or(pair, |(key, _)| key).trim().to_owned();
        let mut keys = arguments.split(',').map(key).filter(|key| !key.is_empty() && key != "driver");
        keys.find(|key| Self::names().all(|name| name != key))
            .map_or(Ok(()), |key| Err(Error::unknown("device argument", key, Self::names())))
    }

    fn slot(&mut self, key: &str) -> Option<Slot<'_>> {
        use Slot::{Maybe, Number, Whole};
        let (r, q) = (&mut self.impairments, &mut self.quirks);
        Some(match key {
            "seed" => Whole(&mut self.seed),
            "snr_db" => Number(&mut self.snr_db),
            "taps" => Whole(&mut self.taps),
            "decay_db" => Number(&mut self.decay_db),
            "doppler" => Number(&mut self.doppler),
            "doppler_hz" => Maybe(&mut self.in_hz.doppler),
            "rician_k_db" => Maybe(&mut self.rician_k_db),
            "delay" => Number(&mut r.delay),
            "sample_offset_ppm" => Number(&mut r.sample_offset_ppm),
            "carrier_offset" => Number(&mut r.carrier_offset),
            "carrier_offset_hz" => Maybe(&mut self.in_hz.carrier_offset),
            "carrier_phase" => Number(&mut r.carrier_phase),
            "linewidth" => Number(&mut r.linewidth),
            "linewidth_hz" => Maybe(&mut self.in_hz.linewidth),
            "loop_bandwidth" => Number(&mut r.loop_bandwidth),
            "loop_bandwidth_hz" => Maybe(&mut self.in_hz.loop_bandwidth),
            "iq_gain_db" => Number(&mut r.iq_gain_db),
            "iq_phase_deg" => Number(&mut r.iq_phase_deg),
            "dc_re" => Number(&mut r.dc_re),
            "dc_im" => Number(&mut r.dc_im),
            "overflow_every" => Whole(&mut q.overflow_every),
            "overflow_length" => Whole(&mut q.overflow_length),
            "jump_every" => Whole(&mut q.jump_every),
            "slip_every" => Whole(&mut q.slip_every),
            "slip" => Whole(&mut q.slip),
            "stall_every" => Whole(&mut q.stall_every),
            "stall" => Whole(&mut q.stall),
            "late_every" => Whole(&mut q.late_every),
            "late_length" => Whole(&mut q.late_length),
            "vanish_after" => Whole(&mut q.vanish_after),
            "hang_after" => Whole(&mut q.hang_after),
            "short_reads" => Whole(&mut q.short_reads),
            "time_jitter" => Number(&mut q.time_jitter),
            _ => return None,
        })
    }

    /// Changes one parameter. On an error nothing has changed.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let parameter = PARAMETERS.iter().find(|p| p.name == key).ok_or_else(|| Error::unknown("setting", key, Self::names()))?;
        if !parameter.options.is_empty() && !parameter.options.contains(&value) {
            return Err(Error::parameter(key, format!("one of {}", parameter.options.join(", ")), value));
        }
        let number = || {
            let number = value.parse::<f64>().ok().filter(|v| !v.is_nan()).ok_or_else(|| Error::parameter(key, "a number", value))?;
            let (low, high) = parameter.range;
            let (kind, unit) = (if parameter.whole { "a whole number " } else { "" }, parameter.unit);
            let fits = (low..=high).contains(&number) && (!parameter.whole || number.fract() == 0.0);
            let range = format!("{kind}between {low} and {high} {unit}");
            require(fits, key, range.trim_end(), number).map(|()| number)
        };
        match key {
            "air" => self.air = Some(value.into()),
            "pace" => self.real_time = value == "real",
            "half_duplex" => self.half_duplex = value == "true",
            "reference" => self.reference = value == "true",
            "amplifier" => {
                self.amplifier = match value {
                    "rapp" => Some(Model::Rapp { smoothness: SMOOTHNESS }),
                    "saleh" => Some(Model::saleh()),
                    "limiter" => Some(Model::Limiter),
                    _ => None,
                }
            }
            "smoothness" => self.amplifier = Some(Model::Rapp { smoothness: number()? }),
            "time_stamps" => {
                let at = TimeStamps::NAMES.iter().position(|name| *name == value).unwrap_or(0);
                self.quirks.time_stamps = TimeStamps::ALL[at];
            }
            "adc_bits" => self.impairments.adc_bits = number()? as u32,
            "jump" => self.quirks.jump = number()? as i64,
            "serial" | "label" => {}
            _ => {
                let number = number()?;
                match self.slot(key) {
                    Some(Slot::Number(slot)) => *slot = number,
                    Some(Slot::Maybe(slot)) => *slot = Some(number),
                    Some(Slot::Whole(slot)) => *slot = number as u64,
                    None => {}
                }
                // The one that was given last holds.
                let hz = &mut self.in_hz;
                match key {
                    "doppler" => hz.doppler = None,
                    "carrier_offset" => hz.carrier_offset = None,
                    "linewidth" => hz.linewidth = None,
                    "loop_bandwidth" => hz.loop_bandwidth = None,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// A parameter's value as [`set`](Self::set) reads it, at `rate` samples a second. A number always has one: programs read what is listed as a number as a number.
    pub(crate) fn get(&self, key: &str, rate: f64) -> Option<String> {
        let amplifier = || match &self.amplifier {
            Some(Model::Rapp { .. }) => AMPLIFIERS[0],
            Some(Model::Saleh { .. }) => AMPLIFIERS[1],
            Some(_) => AMPLIFIERS[2],
            None => AMPLIFIERS[3],
        };
        Some(match key {
            "air" => self.air.clone().unwrap_or_default(),
            "pace" => if self.real_time { "real" } else { "fast" }.into(),
            "half_duplex" => self.half_duplex.to_string(),
            "reference" => self.reference.to_string(),
            "amplifier" => amplifier().into(),
            "smoothness" => match &self.amplifier {
                Some(Model::Rapp { smoothness }) => smoothness.to_string(),
                _ => SMOOTHNESS.to_string(),
            },
            "time_stamps" => TimeStamps::NAMES[self.quirks.time_stamps as usize].into(),
            "adc_bits" => self.impairments.adc_bits.to_string(),
            "jump" => self.quirks.jump.to_string(),
            "serial" | "label" => String::new(),
            _ => self.number(key, rate)?.to_string(),
        })
    }

    /// A number's value. The two words for a frequency tell the same, whichever was given.
    fn number(&self, key: &str, rate: f64) -> Option<f64> {
        let mut copy = self.clone();
        if let Some(Slot::Maybe(Some(hz))) = copy.slot(&format!("{key}_hz")) {
            return Some(*hz / rate);
        }
        match copy.slot(key)? {
            Slot::Number(number) => Some(*number),
            Slot::Whole(whole) => Some(*whole as f64),
            Slot::Maybe(maybe) if maybe.is_some() => *maybe,
            Slot::Maybe(_) => Some(key.strip_suffix("_hz").map_or(f64::NEG_INFINITY, |key| self.number(key, 1.0).unwrap_or(0.0) * rate)),
        }
    }

    /// What lies between a transmit and a receive antenna at `rate` samples a second, as the test bed would run it: the amplifier without back-off, the noise below a
    /// power of 1.
    pub(crate) fn scenario(&self, rate: f64) -> Result<Scenario> {
        let per_sample = |hz: Option<f64>, otherwise: f64| hz.map_or(otherwise, |hz| hz / rate);
        let hz = &self.in_hz;
        let fading = (self.taps > 0).then(|| FadingConfig {
            rician_k_db: self.rician_k_db.filter(|k| k.is_finite()),
            ..FadingConfig::new(Profile::exponential(self.taps as u32, self.decay_db), per_sample(hz.doppler, self.doppler).min(0.5))
        });
        let impairments = ImpairmentsConfig {
            carrier_offset: per_sample(hz.carrier_offset, self.impairments.carrier_offset).clamp(-0.5, 0.5),
            linewidth: per_sample(hz.linewidth, self.impairments.linewidth).min(0.5),
            loop_bandwidth: per_sample(hz.loop_bandwidth, self.impairments.loop_bandwidth).min(0.15),
            ..self.impairments.clone()
        };
        Ok(Scenario {
            seed: self.seed,
            // Noise beyond 300 dB is none.
            snr_db: Some(self.snr_db).filter(|&snr| snr <= 300.0),
            ofdm: ofdm::Config { sample_rate: rate, ..ofdm::Config::default() },
            amplifier: self.amplifier.clone().map(|model| AmplifierConfig { ibo_db: 0.0, model }),
            fading,
            impairments,
            ..Scenario::preset("a")?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_set_what_they_name_and_errors_name_the_culprit() {
        let (settings, ignored) =
            Settings::parse("driver=kaflow-testbed, serial=7, pace=fast,snr_db=inf, doppler_hz=500, jump=-3, amplifier=none").unwrap();
        let expected = Settings {
            real_time: false,
            snr_db: f64::INFINITY,
            in_hz: InHz { doppler: Some(500.0), ..InHz::default() },
            amplifier: None,
            quirks: Quirks { jump: -3, ..Quirks::default() },
            ..Settings::default()
        };
        assert_eq!((settings, ignored.len()), (expected, 0));
        for (arguments, message) in [
            ("snr_db=loud", "snr_db must be a number, got loud"),
            ("taps=-1", "taps must be a whole number between 0 and 64, got -1"),
            ("pace=slow", "pace must be one of real, fast, got slow"),
            ("stall=1.5", "stall must be a whole number between 0 and"),
            ("doppler_hz=NaN", "doppler_hz must be a number, got NaN"),
            ("doppler=500", "doppler must be between 0 and 0.5 cycles per sample, got 500"),
        ] {
            let error = Settings::parse(arguments).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn what_is_unknown_is_ignored_aloud_and_refused_where_a_person_wrote_it() {
        let (settings, ignored) = Settings::parse("soapy=0,remote=tcp://x,snr=3").unwrap();
        assert_eq!(settings, Settings::default());
        assert_eq!(ignored.len(), 3);
        assert!(ignored[2].contains("'snr' is ignored, did you mean 'snr_db'?"), "{ignored:?}");
        for (old, new) in [("snr", "snr_db"), ("cfo=3", "carrier_offset"), ("ppm=3", "sample_offset_ppm"), ("dopler=3", "doppler")] {
            let error = Settings::check(&format!("driver=kaflow-testbed,{old}")).unwrap_err().to_string();
            assert!(error.contains("unknown device argument") && error.contains(new), "{error}");
        }
        Settings::check("driver=kaflow-testbed,snr_db=3").unwrap();
    }

    #[test]
    fn every_setting_reads_back_what_was_written() {
        for parameter in &PARAMETERS {
            let mut settings = Settings::default();
            let (low, high) = parameter.range;
            let value = match parameter.options.last() {
                Some(option) => (*option).to_owned(),
                None if parameter.whole => "3".into(),
                None => ((low.max(-1.0) + high.min(1.0)) / 2.0 + 0.0625).to_string(),
            };
            settings.set(parameter.name, &value).unwrap();
            let read = settings.get(parameter.name, 1e6).unwrap();
            assert!(read == value || ["serial", "label"].contains(&parameter.name), "{}: {value} became {read}", parameter.name);
        }
    }

    #[test]
    fn frequencies_in_hz_hold_at_any_rate_and_the_last_one_given_counts() {
        let (settings, _) = Settings::parse("doppler_hz=100,carrier_offset_hz=-2000").unwrap();
        for rate in [1e6, 4e6] {
            let scenario = settings.scenario(rate).unwrap();
            assert_eq!(scenario.impairments.carrier_offset, -2000.0 / rate);
            assert_eq!(scenario.fading.unwrap().doppler, crate::channel::Doppler::Constant(100.0 / rate));
        }
        let (mut settings, _) = Settings::parse("doppler=1e-3").unwrap();
        assert_eq!(settings.scenario(4e6).unwrap().fading.unwrap().doppler, crate::channel::Doppler::Constant(1e-3));
        settings.set("doppler_hz", "4").unwrap();
        assert_eq!(settings.scenario(4e6).unwrap().fading.unwrap().doppler, crate::channel::Doppler::Constant(1e-6));
    }
}
