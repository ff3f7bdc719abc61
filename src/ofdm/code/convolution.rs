//! The convolutional code of IEEE 802.11 (17.3.5.6): constraint length 7, generators 133 and 171 (octal), and its puncturing.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// States of the encoder: the last six bits, the newest in the highest place.
pub(super) const STATES: usize = 64;
/// Zeros that bring the encoder back to its first state.
pub(super) const TAIL: usize = 6;
const GENERATORS: [u32; 2] = [0o133, 0o171];

/// Rate of the code: information bits for each bit that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Rate {
    /// Nothing is punctured.
    #[serde(rename = "1/2")]
    Half,
    /// One bit of four is left out.
    #[serde(rename = "2/3")]
    TwoThirds,
    /// Two bits of six are left out.
    #[serde(rename = "3/4")]
    ThreeQuarters,
}

impl Rate {
    /// All of them, the most robust first.
    pub(crate) const ALL: [Self; 3] = [Self::Half, Self::TwoThirds, Self::ThreeQuarters];

    /// The name as options and files spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Half => "1/2",
            Self::TwoThirds => "2/3",
            Self::ThreeQuarters => "3/4",
        }
    }

    /// Which of the encoder's bits are sent, over one period (802.11, figures 17-9 and 17-10).
    pub(super) fn pattern(self) -> &'static [bool] {
        match self {
            Self::Half => &[true, true],
            Self::TwoThirds => &[true, true, true, false],
            Self::ThreeQuarters => &[true, true, true, false, false, true],
        }
    }

    /// The most information bits whose code fits `coded` bits.
    pub(super) fn information(self, coded: usize) -> usize {
        let sent = self.pattern().iter().filter(|&&sent| sent).count();
        coded * (self.pattern().len() / 2) / sent
    }
}

impl FromStr for Rate {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name).ok_or_else(|| Error::unknown("code rate", name, Self::ALL.map(Self::name)))
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// The two bits that the encoder sends on `bit` in `state`, the first one in the lowest place.
pub(super) const fn output(state: u32, bit: u32) -> u32 {
    let register = bit << TAIL | state;
    (register & GENERATORS[0]).count_ones() & 1 | ((register & GENERATORS[1]).count_ones() & 1) << 1
}

/// Appends the punctured code of `bits`, one to a byte, to `out`.
pub(super) fn encode(bits: impl Iterator<Item = u8>, rate: Rate, out: &mut Vec<u8>) {
    let mut state = 0;
    let mut sent = rate.pattern().iter().cycle();
    for bit in bits {
        let bit = u32::from(bit & 1);
        let pair = output(state, bit);
        state = (bit << TAIL | state) >> 1;
        for place in 0..2 {
            if *sent.next().unwrap_or(&true) {
                out.push((pair >> place & 1) as u8);
            }
        }
    }
}

/// Puts zeros, which favour neither bit, where bits were left out, until `pairs` pairs are there.
pub(super) fn depuncture(soft: &[f32], rate: Rate, pairs: usize, out: &mut Vec<f32>) {
    out.clear();
    let pattern = rate.pattern();
    let sent = pattern.iter().filter(|&&sent| sent).count();
    for soft in soft.chunks(sent) {
        let mut soft = soft.iter();
        out.extend(pattern.iter().map(|&sent| if sent { soft.next().copied().unwrap_or(0.0) } else { 0.0 }));
    }
    out.resize(2 * pairs, 0.0);
}
