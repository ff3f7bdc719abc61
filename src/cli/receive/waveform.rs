//! Which waveform a recording has.

use std::path::Path;

use serde::Deserialize;

use crate::iq::Recording;
use crate::ofdm::{Config, Receiver, receive_wifi};
use crate::{Complex32, Error, Result, files};

/// Frames as kaflow sends them, or those of 802.11a/g stations, which say themselves how long they are.
#[derive(Clone, Debug)]
pub(super) enum Waveform {
    Frames(Config),
    Station,
}

/// The name of [`Waveform::Station`].
pub(super) const STATION: &str = "802.11a";
/// The key of a waveform in a recording's metadata.
const KEY: &str = "kaflow:ofdm";

/// What was asked for, or what the recording or its surroundings say, and where that is from.
pub(super) fn stated(name: Option<&str>, recording: &Recording) -> Result<Option<(Waveform, String)>> {
    if let Some(name) = name {
        return by_name(name).map(|waveform| Some((waveform, name.to_owned())));
    }
    if let Some(value) = recording.meta().global.extra.get(KEY) {
        let config: Config = serde_json::from_value(value.clone()).map_err(|e| Error::file(recording.data_path(), KEY, e.to_string()))?;
        config.validate()?;
        return Ok(Some((Waveform::Frames(config), format!("{KEY} in its metadata"))));
    }
    let beside = recording.data_path().with_file_name("scenario.toml");
    if beside.is_file() {
        return Ok(Some((Waveform::Frames(read(&beside)?), beside.display().to_string())));
    }
    Ok(None)
}

pub(super) fn by_name(name: &str) -> Result<Waveform> {
    if name.eq_ignore_ascii_case(STATION) {
        return Ok(Waveform::Station);
    }
    if name.ends_with(".toml") || name == "-" || Path::new(name).exists() {
        return read(Path::new(name)).map(Waveform::Frames);
    }
    let known = Config::PRESETS.into_iter().chain([STATION]);
    Config::preset(name).map(Waveform::Frames).map_err(|_| Error::unknown("waveform", name, known))
}

/// A waveform, or a whole scenario that has one.
#[derive(Deserialize)]
struct Scenario {
    samples: Option<u64>,
    ofdm: Option<Config>,
}

fn read(path: &Path) -> Result<Config> {
    let text = files::read_text(path, files::CONFIGURATION)?;
    let wrong = |e: toml::de::Error| {
        let place = e.span().map_or("waveform".into(), |span| format!("line {}", text[..span.start].matches('\n').count() + 1));
        Error::file(path, place, e.message().replace('\n', " "))
    };
    let scenario: Scenario = toml::from_str(&text).map_err(wrong)?;
    let config = match (scenario.ofdm, scenario.samples) {
        (Some(config), _) => config,
        // A scenario that says nothing of its waveform has the paper's, unclipped.
        (None, Some(_)) => Config { clip: None, ..Config::default() },
        (None, None) => toml::from_str(&text).map_err(wrong)?,
    };
    config.validate()?;
    Ok(config)
}

/// The waveform that most packets are found with and, of those, the one whose points are nearest to its constellation.
pub(super) fn guess(samples: &[Complex32], rate: Option<f64>) -> Result<Waveform> {
    if rate.is_none_or(|rate| (rate / 20e6 - 1.0).abs() < 0.01) && receive_wifi(samples)?.iter().any(|frame| frame.signal.is_some()) {
        return Ok(Waveform::Station);
    }
    let mut best = (0, f64::INFINITY, Config::default());
    for name in Config::PRESETS {
        let config = Config::preset(name)?;
        let (mut found, mut evm) = (0, crate::metrics::Evm::default());
        Receiver::new(config.clone())?.push(&samples[..samples.len().min(2_000_000)], |packet| {
            found += 1;
            evm.merge(&packet.evm);
        });
        let distance = evm.rms() / config.modulation.half_distance();
        if found > best.0 || found == best.0 && found > 0 && distance < best.1 {
            best = (found, distance, config);
        }
    }
    Ok(Waveform::Frames(best.2))
}

impl std::fmt::Display for Waveform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Station => write!(f, "frames of 802.11a/g stations"),
            Self::Frames(c) => {
                write!(
                    f,
                    "{} carriers, {} active, prefix {}, {}, frames of {} symbols",
                    c.fft, c.active, c.cyclic_prefix, c.modulation, c.symbols
                )?;
                match c.code {
                    Some(rate) => write!(f, ", code rate {rate}"),
                    None => write!(f, ", no code"),
                }
            }
        }
    }
}
