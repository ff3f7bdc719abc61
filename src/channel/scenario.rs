use serde::{Deserialize, Serialize};

use super::{AmplifierConfig, FadingConfig, ImpairmentsConfig, Model, Profile};
use crate::error::require;
use crate::{Error, Result, ofdm};

/// Everything about a simulated transmission: the same scenario gives the same samples on every machine.
///
/// What is left out of a file is off: no amplifier is a wire, no fading a single path of gain 1, no `snr_db` no noise. A waveform's numerology that is left
/// out is the paper's, its clipping off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// How many samples last from the first to the last.
    pub samples: u64,
    /// Seed of everything that is random.
    #[serde(default = "one")]
    pub seed: u64,
    /// Centre frequency in Hz; only written down.
    #[serde(default = "centre")]
    pub frequency: f64,
    /// Real-valued signal, taps and noise: the signal is `√2` times the real part of the OFDM signal.
    #[serde(default)]
    pub real: bool,
    /// Frames with a preamble, instead of data symbols without an end.
    #[serde(default)]
    pub frames: bool,
    /// Mean power of the received signal over that of the noise, in dB, over the record (see [`TestBed`](super::TestBed)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snr_db: Option<f64>,
    /// The true taps are given for every so many samples.
    #[serde(default = "sixteen")]
    pub taps_every: u64,
    /// The waveform. Its seed picks another payload for the same channel.
    #[serde(default)]
    pub ofdm: ofdm::Config,
    /// The transmit amplifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amplifier: Option<AmplifierConfig>,
    /// The channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fading: Option<FadingConfig>,
    /// The receiver.
    #[serde(default)]
    pub impairments: ImpairmentsConfig,
}

fn one() -> u64 {
    1
}

fn sixteen() -> u64 {
    16
}

fn centre() -> f64 {
    5.4e9
}

impl Scenario {
    /// The names that [`preset`](Self::preset) knows.
    pub(crate) const PRESETS: [&str; 6] = ["paper", "wifi", "a", "b", "d", "e"];

    /// A scenario by name.
    ///
    /// | preset | signal | amplifier (Rapp, p = 2) | channel | SNR |
    /// |---|---|---|---|---|
    /// | `a` | OFDM, 16-QAM, clipped 6 dB above rms | IBO 0 dB | 4 taps, `f_d T` = 1e-3 | 20 dB |
    /// | `d` | the same | IBO −6 dB | 4 taps, 1e-3 | 20 dB |
    /// | `b` | the same | IBO −6 dB | 2 taps, 1e-3 | 10 dB |
    /// | `e` | the same, real-valued | IBO −9 dB | 3 taps, 1e-3 | 10 dB |
    /// | `paper` | as `d`, in frames with a preamble | IBO −6 dB | 4 taps, 1e-3 | 20 dB |
    /// | `wifi` | QPSK frames, not clipped, 20 MHz | IBO 6 dB | 8 taps, 1e-6 (1 m/s), carrier 20 kHz off, 12-bit ADC | 25 dB |
    ///
    /// Taps fall by 3 dB each. The letters are channels that published filters have been compared on.
    pub fn preset(name: &str) -> Result<Self> {
        let on = |taps, ibo_db, snr_db| Self {
            samples: 6000,
            seed: one(),
            frequency: centre(),
            real: false,
            frames: false,
            snr_db: Some(snr_db),
            taps_every: sixteen(),
            ofdm: ofdm::Config::default(),
            amplifier: Some(AmplifierConfig { ibo_db, model: Model::Rapp { smoothness: 2.0 } }),
            fading: Some(FadingConfig::new(Profile::exponential(taps, 3.0), 1e-3)),
            impairments: ImpairmentsConfig::default(),
        };
        match name {
            "a" => Ok(on(4, 0.0, 20.0)),
            "b" => Ok(on(2, -6.0, 10.0)),
            "d" => Ok(on(4, -6.0, 20.0)),
            "e" => Ok(Self { real: true, ..on(3, -9.0, 10.0) }),
            "paper" => Ok(Self { samples: 20_000, frames: true, ..on(4, -6.0, 20.0) }),
            "wifi" => Ok(Self {
                samples: 100_000,
                frames: true,
                ofdm: ofdm::Config::preset("wifi")?,
                fading: Some(FadingConfig::new(Profile::exponential(8, 3.0), 1e-6)),
                impairments: ImpairmentsConfig { carrier_offset: 1e-3, adc_bits: 12, ..ImpairmentsConfig::default() },
                ..on(8, 6.0, 25.0)
            }),
            _ => Err(Error::unknown("preset", name, Self::PRESETS)),
        }
    }

    /// Checks what its parts do not check themselves.
    pub(super) fn validate(&self) -> Result<()> {
        // A TOML file holds no larger integers than these.
        let whole = 1..=i64::MAX as u64;
        require(whole.contains(&self.samples), "samples", "between 1 and 2^63 - 1", self.samples as f64)?;
        require(self.seed <= i64::MAX as u64, "seed", "less than 2^63", self.seed as f64)?;
        require(self.ofdm.seed <= i64::MAX as u64, "ofdm.seed", "less than 2^63", self.ofdm.seed as f64)?;
        require(whole.contains(&self.taps_every), "taps_every", "1 or more", self.taps_every as f64)?;
        require(self.frequency.is_finite() && self.frequency >= 0.0, "frequency", "0 Hz or more", self.frequency)?;
        let headroom_db = self.impairments.adc_headroom_db;
        require(headroom_db.abs() <= 100.0, "adc_headroom_db", "between -100 and 100", headroom_db)?;
        if self.real {
            let phased = [
                ("carrier_offset", self.impairments.carrier_offset),
                ("carrier_phase", self.impairments.carrier_phase),
                ("linewidth", self.impairments.linewidth),
                ("iq_gain_db", self.impairments.iq_gain_db),
                ("iq_phase_deg", self.impairments.iq_phase_deg),
                ("dc_im", self.impairments.dc_im),
            ];
            for (name, value) in phased {
                require(value == 0.0, name, "0 for a real-valued signal", value)?;
            }
        }
        Ok(())
    }

    /// The waveform of a transmit antenna, with the seed of that antenna's own payload: what [`SentFrames`](ofdm::SentFrames) of this seed draws.
    pub(crate) fn waveform(&self, antenna: usize) -> ofdm::Config {
        let seed = another(self.seed ^ another(self.ofdm.seed, 0), antenna);
        ofdm::Config { seed, ..self.ofdm.clone() }
    }

    /// Samples per second.
    pub(crate) fn sample_rate(&self) -> f64 {
        self.ofdm.output_rate()
    }

    /// Transmit antennas.
    pub(crate) fn tx_antennas(&self) -> usize {
        self.fading.as_ref().map_or(1, |f| f.tx_antennas)
    }

    /// Receive antennas.
    pub(crate) fn rx_antennas(&self) -> usize {
        self.fading.as_ref().map_or(1, |f| f.rx_antennas)
    }
}

/// The `n`-th of a family of seeds (the finaliser of SplitMix64 over a Weyl sequence).
pub(super) fn another(seed: u64, n: usize) -> u64 {
    let mut z = seed.wrapping_add((n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
