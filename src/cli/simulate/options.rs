//! Every parameter of a scenario as an option.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::amplifier::Amplifier;
use crate::channel::{Doppler, FadingConfig, Profile, Scenario};
use crate::cli::typed::whole;
use crate::ofdm::{Clip, Modulation, Rate};
use crate::{Error, Result, files};

/// A scenario: a preset or a file, with changes.
#[derive(clap::Args, Default)]
pub(crate) struct Options {
    /// Start from this scenario: paper, wifi, a, b, d or e
    #[arg(long, default_value = "paper", conflicts_with = "scenario")]
    preset: String,
    /// Start from a scenario in a TOML file, such as the scenario.toml of an earlier simulation
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// How many samples
    #[arg(long, value_parser = whole::<u64>)]
    samples: Option<u64>,
    /// Seed of everything that is random
    #[arg(long, value_parser = whole::<u64>)]
    seed: Option<u64>,
    /// Centre frequency in Hz, for the files only
    #[arg(long, value_name = "HZ", alias = "freq")]
    frequency: Option<f64>,
    /// Real-valued signal, channel and noise
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "true|false")]
    real: Option<bool>,
    /// Signal over noise at the receiver in dB, or none
    #[arg(long)]
    snr_db: Option<Maybe>,
    /// Write the true taps for every so many samples
    #[arg(long, value_parser = whole::<u64>)]
    taps_every: Option<u64>,
    #[command(flatten, next_help_heading = "Signal")]
    signal: Signal,
    #[command(flatten, next_help_heading = "Amplifier")]
    amplifier: Amplifier,
    #[command(flatten, next_help_heading = "Channel")]
    channel: Channel,
    #[command(flatten, next_help_heading = "Receiver")]
    receiver: Receiver,
}

#[derive(clap::Args, Default)]
struct Signal {
    /// Carriers of the grid
    #[arg(long, value_parser = whole::<usize>)]
    fft: Option<usize>,
    /// Carriers in use, pilots included
    #[arg(long, value_parser = whole::<usize>)]
    active: Option<usize>,
    /// Pilot carriers counted from DC, such as -21,-7,7,21, or none
    #[arg(long, allow_hyphen_values = true)]
    pilots: Option<Pilots>,
    /// Cyclic prefix in samples
    #[arg(long, value_parser = whole::<usize>)]
    cyclic_prefix: Option<usize>,
    /// bpsk, qpsk, qam16, qam64 or qam256
    #[arg(long)]
    modulation: Option<Modulation>,
    /// Samples for each sample of the grid
    #[arg(long, value_parser = whole::<usize>)]
    oversampling: Option<usize>,
    /// Raised-cosine edge of a symbol in samples
    #[arg(long, value_parser = whole::<usize>)]
    window: Option<usize>,
    /// Clip so many dB above rms, or none
    #[arg(long)]
    clip_db: Option<Maybe>,
    /// Filter what clipping put out of band
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "true|false")]
    clip_filter: Option<bool>,
    /// Clip and filter so many times
    #[arg(long, value_parser = whole::<usize>)]
    clip_iterations: Option<usize>,
    /// Frames with a preamble instead of endless data
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "true|false")]
    frames: Option<bool>,
    /// Data symbols in a frame
    #[arg(long, value_parser = whole::<usize>)]
    symbols: Option<usize>,
    /// Code of the frames' payload: 1/2, 2/3 or 3/4
    #[arg(long)]
    code: Option<Rate>,
    /// Silence after a frame in samples
    #[arg(long, value_parser = whole::<usize>)]
    gap: Option<usize>,
    /// Samples a second of the grid, before oversampling
    #[arg(long = "rate", value_name = "HZ", alias = "sample-rate")]
    sample_rate: Option<f64>,
    /// Another payload for the same channel
    #[arg(long, value_parser = whole::<u64>)]
    payload_seed: Option<u64>,
}

#[derive(clap::Args, Default)]
struct Channel {
    /// A single path of gain 1 in place of a fading channel
    #[arg(long, conflicts_with_all = ["taps", "decay_db", "profile", "doppler", "rician_k_db", "sight_angle_deg", "antennas", "tx_antennas", "rx_antennas",
        "tx_correlation", "rx_correlation"])]
    no_fading: bool,
    /// Taps of an exponential profile, one sample apart
    #[arg(long, conflicts_with = "profile", value_parser = whole::<u32>)]
    taps: Option<u32>,
    /// Fall of an exponential profile from tap to tap in dB
    #[arg(long, conflicts_with = "profile")]
    decay_db: Option<f64>,
    /// Paths as delay:power_db, such as 0:0,3:-6,7:-12
    #[arg(long)]
    profile: Option<Profile>,
    /// Doppler in cycles per sample: a number, or sample:doppler,... to change it on the way
    #[arg(long)]
    doppler: Option<Doppler>,
    /// Line of sight over scattered power of the first path in dB, or none
    #[arg(long)]
    rician_k_db: Option<Maybe>,
    /// Angle between the line of sight and the motion
    #[arg(long)]
    sight_angle_deg: Option<f64>,
    /// So many antennas at both ends
    #[arg(long, conflicts_with_all = ["tx_antennas", "rx_antennas"], value_parser = whole::<usize>)]
    antennas: Option<usize>,
    /// Transmit antennas
    #[arg(long, value_parser = whole::<usize>)]
    tx_antennas: Option<usize>,
    /// Receive antennas
    #[arg(long, value_parser = whole::<usize>)]
    rx_antennas: Option<usize>,
    /// Correlation of neighbouring transmit antennas
    #[arg(long)]
    tx_correlation: Option<f64>,
    /// Correlation of neighbouring receive antennas
    #[arg(long)]
    rx_correlation: Option<f64>,
}

#[derive(clap::Args, Default)]
struct Receiver {
    /// Delay in samples, need not be whole
    #[arg(long)]
    delay: Option<f64>,
    /// How much longer the receiver's sampling period is, in ppm
    #[arg(long)]
    sample_offset_ppm: Option<f64>,
    /// Carrier offset in Hz
    #[arg(long)]
    carrier_offset_hz: Option<f64>,
    /// Phase of the carrier at the first sample in radians
    #[arg(long)]
    carrier_phase: Option<f64>,
    /// Phase noise: width of the carrier's line in Hz
    #[arg(long)]
    linewidth_hz: Option<f64>,
    /// Phase noise: bandwidth of the loop in Hz; 0 is free running
    #[arg(long)]
    loop_bandwidth_hz: Option<f64>,
    /// Gain of the quadrature branch in dB
    #[arg(long)]
    iq_gain_db: Option<f64>,
    /// Phase error of the quadrature branch in degrees
    #[arg(long)]
    iq_phase_deg: Option<f64>,
    /// DC offset, real part
    #[arg(long)]
    dc_re: Option<f64>,
    /// DC offset, imaginary part
    #[arg(long)]
    dc_im: Option<f64>,
    /// Bits of the converter; 0 is ideal
    #[arg(long, value_parser = whole::<u32>)]
    adc_bits: Option<u32>,
    /// Full scale of the converter in dB above the rms of one part
    #[arg(long)]
    adc_headroom_db: Option<f64>,
    /// Gaps per sample
    #[arg(long)]
    drop_rate: Option<f64>,
    /// Mean length of a gap in samples
    #[arg(long)]
    drop_length: Option<f64>,
}

/// A number or `none`.
#[derive(Clone, Copy, Debug)]
struct Maybe(Option<f64>);

impl FromStr for Maybe {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            _ => text.parse().map(|x| Self(Some(x))).map_err(|_| "neither a number nor 'none'".into()),
        }
    }
}

/// Carriers or `none`.
#[derive(Clone, Debug)]
struct Pilots(Vec<i32>);

impl FromStr for Pilots {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let carriers = text.split(',').filter(|_| text != "none").map(|k| k.trim().parse());
        carriers.collect::<std::result::Result<_, _>>().map(Self).map_err(|_| "neither a list of whole numbers nor 'none'".into())
    }
}

/// Takes over an option that was given.
fn set<T: Clone>(slot: &mut T, option: &Option<T>) {
    if let Some(value) = option {
        *slot = value.clone();
    }
}

impl Options {
    /// The files that are read.
    pub(crate) fn files(&self) -> Vec<&Path> {
        self.scenario.iter().chain(&self.amplifier.points).map(PathBuf::as_path).collect()
    }

    /// The scenario that the options describe.
    pub(crate) fn scenario(&self) -> Result<Scenario> {
        let mut scenario = match &self.scenario {
            Some(path) => read(path)?,
            None => Scenario::preset(&self.preset)?,
        };
        set(&mut scenario.samples, &self.samples);
        set(&mut scenario.seed, &self.seed);
        set(&mut scenario.frequency, &self.frequency);
        set(&mut scenario.real, &self.real);
        set(&mut scenario.snr_db, &self.snr_db.map(|m| m.0));
        set(&mut scenario.taps_every, &self.taps_every);
        self.signal.apply(&mut scenario)?;
        self.amplifier.apply(&mut scenario)?;
        self.channel.apply(&mut scenario);
        self.receiver.apply(&mut scenario)?;
        Ok(scenario)
    }
}

/// Reads a TOML file, such as a scenario; errors name the file and the line.
pub(crate) fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = files::read_text(path, files::CONFIGURATION)?;
    toml::from_str(&text).map_err(|e| {
        let place = e.span().map_or("file".into(), |span| format!("line {}", text[..span.start].matches('\n').count() + 1));
        Error::file(path, place, e.message().replace('\n', " "))
    })
}

impl Signal {
    fn apply(&self, scenario: &mut Scenario) -> Result<()> {
        let ofdm = &mut scenario.ofdm;
        set(&mut ofdm.fft, &self.fft);
        set(&mut ofdm.active, &self.active);
        set(&mut ofdm.pilots, &self.pilots.as_ref().map(|p| p.0.clone()));
        set(&mut ofdm.cyclic_prefix, &self.cyclic_prefix);
        set(&mut ofdm.modulation, &self.modulation);
        set(&mut ofdm.oversampling, &self.oversampling);
        set(&mut ofdm.window, &self.window);
        set(&mut ofdm.symbols, &self.symbols);
        set(&mut ofdm.code, &self.code.map(Some));
        set(&mut ofdm.gap, &self.gap);
        set(&mut ofdm.sample_rate, &self.sample_rate);
        set(&mut ofdm.seed, &self.payload_seed);
        set(&mut scenario.frames, &self.frames);
        match self.clip_db {
            Some(Maybe(None)) => ofdm.clip = None,
            Some(Maybe(Some(level_db))) => ofdm.clip = Some(Clip { level_db, ..ofdm.clip.unwrap_or(Clip::at(level_db)) }),
            None => (),
        }
        match &mut ofdm.clip {
            Some(clip) => {
                set(&mut clip.filter, &self.clip_filter);
                set(&mut clip.iterations, &self.clip_iterations);
            }
            None if self.clip_filter == Some(true) || self.clip_iterations.is_some() => {
                return Err(Error::parameter("clip_db", "a level when --clip-filter or --clip-iterations is given", "none"));
            }
            None => (),
        }
        Ok(())
    }
}

impl Channel {
    fn apply(&self, scenario: &mut Scenario) {
        if self.no_fading {
            scenario.fading = None;
            return;
        }
        let mut fading = scenario.fading.clone().unwrap_or(FadingConfig::new(Profile::exponential(1, 0.0), 0.0));
        set(&mut fading.profile, &self.profile);
        if self.taps.is_some() || self.decay_db.is_some() {
            let (mut taps, mut decay_db) = match &fading.profile {
                &Profile::Exponential { taps, decay_db } => (taps, decay_db),
                Profile::Paths(paths) => (paths.len() as u32, 3.0),
            };
            set(&mut taps, &self.taps);
            set(&mut decay_db, &self.decay_db);
            fading.profile = Profile::exponential(taps, decay_db);
        }
        set(&mut fading.doppler, &self.doppler);
        set(&mut fading.rician_k_db, &self.rician_k_db.map(|m| m.0));
        set(&mut fading.sight_angle_deg, &self.sight_angle_deg);
        set(&mut fading.tx_antennas, &self.antennas.or(self.tx_antennas));
        set(&mut fading.rx_antennas, &self.antennas.or(self.rx_antennas));
        set(&mut fading.tx_correlation, &self.tx_correlation);
        set(&mut fading.rx_correlation, &self.rx_correlation);
        // A scenario without fading stays one unless an option asked for it.
        let untouched = FadingConfig::new(Profile::exponential(1, 0.0), 0.0);
        if scenario.fading.is_some() || fading != untouched {
            scenario.fading = Some(fading);
        }
    }
}

impl Receiver {
    fn apply(&self, scenario: &mut Scenario) -> Result<()> {
        let rate = scenario.sample_rate();
        let receiver = &mut scenario.impairments;
        let per_sample = |hz: Option<f64>| hz.map(|hz| hz / rate);
        // What is given in Hz is refused in Hz.
        let least = -0.5 * rate;
        for (name, hz, range) in [
            ("carrier-offset-hz", self.carrier_offset_hz, least..=0.5 * rate),
            ("linewidth-hz", self.linewidth_hz, 0.0..=0.5 * rate),
            ("loop-bandwidth-hz", self.loop_bandwidth_hz, 0.0..=0.15 * rate),
        ] {
            if let Some(hz) = hz.filter(|hz| !range.contains(hz)) {
                let expected = format!("between {} and {} Hz at {rate} samples a second", range.start(), range.end());
                return Err(Error::parameter(name, expected, hz));
            }
        }
        set(&mut receiver.delay, &self.delay);
        set(&mut receiver.sample_offset_ppm, &self.sample_offset_ppm);
        set(&mut receiver.carrier_offset, &per_sample(self.carrier_offset_hz));
        set(&mut receiver.carrier_phase, &self.carrier_phase);
        set(&mut receiver.linewidth, &per_sample(self.linewidth_hz));
        set(&mut receiver.loop_bandwidth, &per_sample(self.loop_bandwidth_hz));
        set(&mut receiver.iq_gain_db, &self.iq_gain_db);
        set(&mut receiver.iq_phase_deg, &self.iq_phase_deg);
        set(&mut receiver.dc_re, &self.dc_re);
        set(&mut receiver.dc_im, &self.dc_im);
        set(&mut receiver.adc_bits, &self.adc_bits);
        set(&mut receiver.adc_headroom_db, &self.adc_headroom_db);
        set(&mut receiver.drop_rate, &self.drop_rate);
        set(&mut receiver.drop_length, &self.drop_length);
        Ok(())
    }
}
