use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

use super::from_db;
use crate::error::require;
use crate::{Error, Result};

/// How the mean power of a channel is spread over delays; normalised to a total of 1 when used.
///
/// As text: a list of `delay:power_db` such as `0:0,3:-6,7:-12`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a profile is { taps = 4, decay_db = 3.0 } or a list of [delay in samples, power in dB]"
)]
pub enum Profile {
    /// Taps at delays 0, 1, 2, ...
    Exponential {
        /// How many taps, one sample apart.
        taps: u32,
        /// Each tap's power in dB below the one before.
        decay_db: f64,
    },
    /// Delay in samples and power in dB of each path.
    Paths(Vec<(u32, f64)>),
}

const MAX_PATHS: usize = 1024;
const MAX_DELAY: u32 = 1 << 16;

impl Profile {
    /// `taps` taps, one sample apart, each `decay_db` below the one before.
    pub fn exponential(taps: u32, decay_db: f64) -> Self {
        Self::Exponential { taps, decay_db }
    }

    /// Delay in samples and share of the power of each path, by increasing delay; the shares add up to 1.
    pub(crate) fn paths(&self) -> Result<Vec<(usize, f64)>> {
        let mut paths: Vec<(u32, f64)> = match self {
            &Self::Exponential { taps, decay_db } => {
                require((1..=MAX_PATHS as u32).contains(&taps), "taps", "between 1 and 1024", f64::from(taps))?;
                require(decay_db.abs() <= 100.0, "decay_db", "between -100 and 100", decay_db)?;
                (0..taps).map(|l| (l, -decay_db * f64::from(l))).collect()
            }
            Self::Paths(paths) => paths.clone(),
        };
        require((1..=MAX_PATHS).contains(&paths.len()), "profile", "1 to 1024 paths", paths.len() as f64)?;
        paths.sort_by_key(|p| p.0);
        for pair in paths.windows(2) {
            require(pair[0].0 < pair[1].0, "profile", "a list without a delay given twice", f64::from(pair[1].0))?;
        }
        let mut strongest = f64::NEG_INFINITY;
        for &(delay, power_db) in &paths {
            require(delay <= MAX_DELAY, "profile", "delays of at most 65536 samples", f64::from(delay))?;
            require(power_db.is_finite(), "profile", "powers that are finite", power_db)?;
            strongest = strongest.max(power_db);
        }
        let shares: Vec<f64> = paths.iter().map(|p| from_db(p.1 - strongest)).collect();
        let total: f64 = shares.iter().sum();
        Ok(paths.iter().zip(shares).map(|(p, share)| (p.0 as usize, share / total)).collect())
    }
}

/// The Doppler frequency `f_d T` in cycles per sample: constant, or changing linearly between given samples.
///
/// As text: `1e-3`, or a list of `sample:frequency` such as `0:1e-3,100000:5e-3`. Before the first point and after the last one it is constant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "doppler is a number of cycles per sample or a list of [sample, cycles per sample]")]
pub enum Doppler {
    /// The same for ever.
    Constant(f64),
    /// Index of a sample and the frequency there, by increasing index.
    Points(Vec<(u64, f64)>),
}

impl Doppler {
    /// Checks the frequencies and their order.
    pub(super) fn validate(&self) -> Result<()> {
        let check = |f: f64| require((0.0..=0.5).contains(&f), "doppler", "between 0 and 0.5 cycles per sample", f);
        match self {
            Self::Constant(f) => check(*f),
            Self::Points(points) => {
                require(!points.is_empty(), "doppler", "a list of one point or more", 0.0)?;
                for pair in points.windows(2) {
                    require(pair[0].0 < pair[1].0, "doppler", "a list by increasing sample", pair[1].0 as f64)?;
                }
                points.iter().try_for_each(|p| check(p.1))
            }
        }
    }

    /// The frequency at a sample; `hint` remembers which points lie around it and only ever moves forward.
    pub(super) fn at(&self, sample: u64, hint: &mut usize) -> f64 {
        let points = match self {
            Self::Constant(f) => return *f,
            Self::Points(points) => points,
        };
        while *hint < points.len() && points[*hint].0 <= sample {
            *hint += 1;
        }
        match *hint {
            0 => points[0].1,
            n if n == points.len() => points[n - 1].1,
            n => {
                let ((from, start), (to, end)) = (points[n - 1], points[n]);
                start + (end - start) * ((sample - from) as f64 / (to - from) as f64)
            }
        }
    }
}

/// Reads `a:b,c:d`.
fn pairs<A: FromStr>(text: &str, name: &str, expected: &str) -> Result<Vec<(A, f64)>> {
    let pair = |item: &str| {
        let (a, b) = item.split_once(':')?;
        Some((a.trim().parse().ok()?, b.trim().parse().ok()?))
    };
    text.split(',').map(|item| pair(item).ok_or_else(|| Error::parameter(name, expected, format!("'{item}'")))).collect()
}

fn write_pairs<A: fmt::Display>(f: &mut fmt::Formatter<'_>, pairs: &[(A, f64)]) -> fmt::Result {
    for (at, (a, b)) in pairs.iter().enumerate() {
        write!(f, "{}{a}:{b}", if at == 0 { "" } else { "," })?;
    }
    Ok(())
}

impl FromStr for Doppler {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Ok(f) = text.trim().parse() {
            return Ok(Self::Constant(f));
        }
        pairs(text, "doppler", "a number, or a list such as 0:1e-3,100000:5e-3").map(Self::Points)
    }
}

impl fmt::Display for Doppler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(frequency) => write!(f, "{frequency}"),
            Self::Points(points) => write_pairs(f, points),
        }
    }
}

impl FromStr for Profile {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        pairs(text, "profile", "a list of delay:power_db such as 0:0,3:-6").map(Self::Paths)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exponential { taps, decay_db } => write!(f, "{taps} taps, {decay_db} dB apart"),
            Self::Paths(paths) => write_pairs(f, paths),
        }
    }
}
