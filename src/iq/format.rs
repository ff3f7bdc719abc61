//! What kind of file holds the samples.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::Datatype;
use crate::{Error, Result};

/// What kind of file a recording is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Format {
    /// `.sigmf-meta` and `.sigmf-data` next to each other.
    Sigmf,
    /// A `.sigmf` archive of the two.
    Archive,
    /// A WAV file: two channels are I and Q, one is real.
    Wav,
    /// Bare samples.
    Raw(Raw),
}

/// What a file of bare samples does not say of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Raw {
    /// The layout of a sample.
    pub datatype: Datatype,
    /// How many channels are interleaved.
    pub channels: usize,
    /// Samples per second, where known.
    pub sample_rate: Option<f64>,
}

impl Raw {
    /// One channel of unknown rate.
    pub(crate) fn new(datatype: Datatype) -> Self {
        Self { datatype, channels: 1, sample_rate: None }
    }
}

impl Format {
    /// The format that a path's ending stands for. Besides SigMF and WAV these are the endings that recorders use for raw IQ: `cu8`,
    /// `cs8`, `cs16`, `cf32`, `fc32`, `cfile` (little endian).
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        let raw = |name: &str| name.parse().ok().map(|datatype| Self::Raw(Raw::new(datatype)));
        match ending.as_str() {
            "sigmf-meta" | "sigmf-data" => Some(Self::Sigmf),
            "sigmf" => Some(Self::Archive),
            "wav" | "wave" | "rf64" => Some(Self::Wav),
            "cs8" => raw("ci8"),
            "cs16" => raw("ci16_le"),
            "cf32" | "fc32" | "cfile" => raw("cf32_le"),
            name => raw(name),
        }
    }
}

impl FromStr for Format {
    type Err = Error;

    /// `sigmf`, `archive`, `wav`, or a datatype such as `cf32_le` for raw samples.
    fn from_str(name: &str) -> Result<Self> {
        match name {
            "sigmf" => Ok(Self::Sigmf),
            "archive" => Ok(Self::Archive),
            "wav" => Ok(Self::Wav),
            _ => match name.parse() {
                Ok(datatype) => Ok(Self::Raw(Raw::new(datatype))),
                Err(Error::Unknown { mut known, .. }) => {
                    known.extend(["sigmf", "archive", "wav"].map(String::from));
                    Err(Error::unknown("format", name, known))
                }
                Err(error) => Err(error),
            },
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sigmf => f.write_str("SigMF"),
            Self::Archive => f.write_str("SigMF archive"),
            Self::Wav => f.write_str("WAV"),
            Self::Raw(_) => f.write_str("raw"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_endings_are_understood() {
        let raw = |name: &str| Some(Format::Raw(Raw::new(name.parse().unwrap())));
        for (path, expected) in [
            ("a.sigmf-meta", Some(Format::Sigmf)),
            ("a.sigmf", Some(Format::Archive)),
            ("a.WAV", Some(Format::Wav)),
            ("g001_433.92M_250k.cu8", raw("cu8")),
            ("a.cs16", raw("ci16_le")),
            ("a.ci16_be", raw("ci16_be")),
            ("a.bin", None),
            ("a", None),
        ] {
            assert_eq!(Format::of(Path::new(path)), expected, "{path}");
        }
        assert_eq!("ci8".parse::<Format>().ok(), raw("ci8"));
        assert!("wave".parse::<Format>().unwrap_err().to_string().contains("did you mean 'wav'"));
    }
}
