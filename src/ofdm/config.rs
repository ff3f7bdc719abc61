//! The numerology: one serde struct, its presets and its rules.

use serde::{Deserialize, Serialize};

use super::{Modulation, Rate};
use crate::{Error, Result};

/// A CP-OFDM waveform. Lengths in samples count at the carrier grid's own rate, before oversampling.
///
/// ```
/// use kaflow::ofdm::Config;
/// let wifi = Config::preset("wifi").unwrap();
/// assert_eq!((wifi.fft, wifi.active, wifi.cyclic_prefix), (64, 52, 16));
/// assert_eq!(wifi.payload_bits(), 10 * 48 * 2); // ten symbols, 48 data carriers, QPSK
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Carriers of the grid, a multiple of 4 from 32 to 65536.
    pub fft: usize,
    /// Carriers in use, pilots included: an even number of at least 16, half of them on each side of the empty DC carrier.
    pub active: usize,
    /// Which of the active carriers are pilots, counted from DC, such as `[-21, -7, 7, 21]`.
    pub pilots: Vec<i32>,
    /// Length of the cyclic prefix, in samples; at most half of `fft`.
    pub cyclic_prefix: usize,
    /// Constellation of the data carriers.
    pub modulation: Modulation,
    /// Samples for each sample of the grid: 2 doubles the sample rate and leaves the spectrum as it is.
    pub oversampling: usize,
    /// Length of the raised-cosine edge that two neighbouring symbols share, in samples; it eats into the prefix. 0 is a hard edge.
    pub window: usize,
    /// Polar clipping; none where a file leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<Clip>,
    /// Convolutional code of the payload, with a checksum; none where a file leaves it out: the payload is plain bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Rate>,
    /// Data symbols in a frame.
    pub symbols: usize,
    /// Silence after each frame, in samples.
    pub gap: usize,
    /// Rate of the grid, in samples a second: carriers are `sample_rate / fft` Hz apart.
    pub sample_rate: f64,
    /// Seed of the random payload.
    pub seed: u64,
}

/// Polar clipping: the magnitude is limited, the phase stays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clip {
    /// Largest magnitude, in dB above the rms of the signal before clipping.
    pub level_db: f64,
    /// Remove what the clipping put outside the active carriers (Armstrong 2002); peaks grow again a little.
    #[serde(default)]
    pub filter: bool,
    /// How many times to clip and filter. More than once has an effect with `filter` only.
    #[serde(default = "once")]
    pub iterations: usize,
}

fn once() -> usize {
    1
}

impl Clip {
    /// Clips once at `level_db` above rms, unfiltered.
    pub(crate) fn at(level_db: f64) -> Self {
        Self { level_db, filter: false, iterations: 1 }
    }

    /// Largest magnitude for a signal of rms 1.
    pub(crate) fn level(&self) -> f64 {
        libm::pow(10.0, self.level_db / 20.0)
    }
}

impl Default for Config {
    /// The preset `paper`.
    fn default() -> Self {
        Self {
            fft: 64,
            active: 52,
            pilots: vec![-21, -7, 7, 21],
            cyclic_prefix: 16,
            modulation: Modulation::Qam16,
            oversampling: 1,
            window: 0,
            clip: Some(Clip::at(6.0)),
            code: None,
            symbols: 10,
            gap: 0,
            sample_rate: 20e6,
            seed: 1,
        }
    }
}

impl Config {
    /// The names that [`preset`](Self::preset) knows.
    pub(crate) const PRESETS: [&str; 2] = ["paper", "wifi"];

    /// A waveform by name: `paper` (16-QAM, clipped 6 dB above rms) or `wifi` (QPSK, unclipped, windowed edges); both
    /// have 64 carriers, 52 active, a prefix of 16 samples and 20 MHz.
    pub fn preset(name: &str) -> Result<Self> {
        match name {
            "paper" => Ok(Self::default()),
            "wifi" => Ok(Self { modulation: Modulation::Qpsk, window: 2, clip: None, gap: 320, ..Self::default() }),
            _ => Err(Error::unknown("OFDM preset", name, Self::PRESETS)),
        }
    }

    /// Checks every field; the error names the first that is wrong.
    pub(crate) fn validate(&self) -> Result<()> {
        let check = |ok: bool, name: &str, expected: String, value: String| -> Result<()> {
            if ok { Ok(()) } else { Err(Error::parameter(name, expected, value)) }
        };
        let half = (self.active / 2) as i64;
        check(
            (32..=65536).contains(&self.fft) && self.fft.is_multiple_of(4),
            "fft",
            "a multiple of 4 from 32 to 65536".into(),
            self.fft.to_string(),
        )?;
        check(
            self.active.is_multiple_of(2) && (16..=self.fft - 2).contains(&self.active),
            "active",
            format!("an even number from 16 to {} (fft - 2)", self.fft - 2),
            self.active.to_string(),
        )?;
        for (i, &k) in self.pilots.iter().enumerate() {
            let expected = format!("a carrier from -{half} to {half}, not 0, each once");
            check(k != 0 && i64::from(k).abs() <= half && !self.pilots[..i].contains(&k), "pilots", expected, k.to_string())?;
        }
        check(self.pilots.len() < self.active, "pilots", format!("fewer than active ({})", self.active), self.pilots.len().to_string())?;
        check(
            self.cyclic_prefix <= self.fft / 2,
            "cyclic_prefix",
            format!("at most {} (fft / 2)", self.fft / 2),
            self.cyclic_prefix.to_string(),
        )?;
        check((1..=64).contains(&self.oversampling), "oversampling", "from 1 to 64".into(), self.oversampling.to_string())?;
        check(
            self.window <= self.cyclic_prefix,
            "window",
            format!("at most cyclic_prefix ({})", self.cyclic_prefix),
            self.window.to_string(),
        )?;
        if let Some(clip) = self.clip {
            check((-20.0..=60.0).contains(&clip.level_db), "clip.level_db", "from -20 to 60".into(), clip.level_db.to_string())?;
            check((1..=32).contains(&clip.iterations), "clip.iterations", "from 1 to 32".into(), clip.iterations.to_string())?;
        }
        check((1..=1_000_000).contains(&self.symbols), "symbols", "from 1 to 1000000".into(), self.symbols.to_string())?;
        check(self.gap <= 1_000_000_000, "gap", "at most 1000000000".into(), self.gap.to_string())?;
        check(
            self.sample_rate.is_finite() && self.sample_rate > 0.0,
            "sample_rate",
            "positive, in samples a second".into(),
            self.sample_rate.to_string(),
        )
    }

    /// Rate of the samples that the transmitter writes, in samples a second: `sample_rate · oversampling`.
    pub(crate) fn output_rate(&self) -> f64 {
        self.sample_rate * self.oversampling as f64
    }

    /// Distance of two carriers, in Hz.
    pub(crate) fn carrier_spacing(&self) -> f64 {
        self.sample_rate / self.fft as f64
    }

    /// Bandwidth from the first to the last active carrier, in Hz.
    pub(crate) fn occupied_bandwidth(&self) -> f64 {
        (self.active + 1) as f64 * self.carrier_spacing()
    }

    /// Data carriers: the active ones that are not pilots.
    pub(crate) fn data_carriers(&self) -> usize {
        self.active - self.pilots.len()
    }

    /// Where they are among the active carriers, lowest frequency first, as in [`Packet::channel`](super::Packet::channel); the others are pilots.
    pub fn data_slots(&self) -> Vec<usize> {
        let half = (self.active / 2) as i32;
        let active = (-half..=half).filter(|&k| k != 0);
        active.enumerate().filter(|(_, k)| !self.pilots.contains(k)).map(|(slot, _)| slot).collect()
    }

    /// Bits in one OFDM symbol.
    pub(crate) fn symbol_bits(&self) -> usize {
        self.data_carriers() * self.modulation.bits()
    }

    /// Bits in one frame.
    pub fn payload_bits(&self) -> usize {
        self.symbols * self.symbol_bits()
    }

    /// Output samples of one OFDM symbol with its prefix.
    pub(crate) fn symbol_samples(&self) -> usize {
        (self.fft + self.cyclic_prefix) * self.oversampling
    }

    /// Samples of the prefix of the long training: a double one, but at most half a symbol, lest the training seem to start earlier.
    pub(crate) fn guard(&self) -> usize {
        (2 * self.cyclic_prefix).min(self.fft / 2)
    }

    /// Output samples of the preamble: short training of 2.5 symbols, a double prefix, and two long training symbols.
    pub(crate) fn preamble_samples(&self) -> usize {
        (self.fft * 4 + self.fft / 2 + self.guard()) * self.oversampling
    }

    /// Output samples of one frame without the gap after it.
    pub fn frame_samples(&self) -> usize {
        self.preamble_samples() + self.symbols * self.symbol_samples()
    }
}
