//! The channel code of a frame: CRC, scrambler, convolutional code and interleaver of IEEE 802.11, and the way back from soft bits.

mod convolution;
mod feedback;
mod interleaver;
mod viterbi;

pub use convolution::Rate;

use self::{convolution::TAIL, feedback::Feedback, interleaver::Interleaver, viterbi::Viterbi};
use super::Config;
use crate::{Error, Result};

/// Turns the data bits of one frame into its payload and back.
///
/// The data are followed by their CRC-32 (that of 802.11 and Ethernet) and six zeros, scrambled with 802.11's sequence (seed all ones; the zeros stay), encoded,
/// punctured and interleaved over up to 32 symbols, within each as 802.11 does. Soft bits are log-likelihood ratios `ln P(0) − ln P(1)`: positive for a 0.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    rate: Rate,
    payload: usize,
    information: usize,
    scrambler: [u8; 127],
    interleaver: Interleaver,
    viterbi: Viterbi,
    feedback: Feedback,
    gathered: Vec<f32>,
    pairs: Vec<f32>,
    bits: Vec<u8>,
}

/// Symbols that are interleaved together.
const DEPTH: usize = 32;
/// Share of what the decoder says of a bit that is believed.
const SHARE: f32 = 0.75;
/// Bits of the checksum.
const CHECKSUM: usize = 32;

impl Code {
    /// The code of the frames of `config`, whatever [`Config::code`] says.
    pub(crate) fn new(config: &Config, rate: Rate) -> Result<Self> {
        config.validate()?;
        let payload = config.payload_bits();
        let information = rate.information(payload);
        if information <= CHECKSUM + TAIL {
            let least = format!("large enough for {} coded bits", 2 * (CHECKSUM + TAIL + 1));
            return Err(Error::parameter("payload of a coded frame", least, payload));
        }
        Ok(Self {
            rate,
            payload,
            information,
            scrambler: scrambler(0x7f),
            interleaver: Interleaver::new(config.data_carriers(), config.modulation.bits(), DEPTH),
            viterbi: Viterbi::new(),
            feedback: Feedback::new(),
            gathered: Vec::new(),
            pairs: Vec::new(),
            bits: vec![0; information],
        })
    }

    /// Data bits in a frame.
    pub(crate) fn data_bits(&self) -> usize {
        self.information - CHECKSUM - TAIL
    }

    /// The payload that carries `data`, one bit to a byte; bits that are missing count as 0, those beyond [`data_bits`](Self::data_bits) are left out.
    pub(crate) fn encode(&self, data: &[u8]) -> Vec<u8> {
        let mut bits: Vec<u8> = data.iter().map(|bit| bit & 1).take(self.data_bits()).collect();
        bits.resize(self.data_bits(), 0);
        let sum = checksum(&bits);
        bits.extend((0..CHECKSUM).map(|place| (sum >> place & 1) as u8));
        let scrambled = bits.iter().zip(self.scrambler.iter().cycle()).map(|(bit, s)| bit ^ s).chain([0; TAIL]);
        let mut coded = Vec::with_capacity(self.payload);
        convolution::encode(scrambled, self.rate, &mut coded);
        coded.resize(self.payload, 0);
        let mut payload = vec![0; self.payload];
        self.interleaver.spread(&coded, &mut payload);
        payload
    }

    /// The data bits of a frame from the soft bits of its payload; `None` where their checksum is wrong.
    pub(crate) fn decode(&mut self, soft: &[f32]) -> Option<&[u8]> {
        self.interleaver.gather(&soft[..self.payload.min(soft.len())], &mut self.gathered);
        convolution::depuncture(&self.gathered, self.rate, self.information, &mut self.pairs);
        self.viterbi.decode(&self.pairs, &mut self.bits);
        self.bits.iter_mut().zip(self.scrambler.iter().cycle()).for_each(|(bit, s)| *bit ^= s);
        let (data, rest) = self.bits.split_at(self.data_bits());
        let sum = rest[..CHECKSUM].iter().rev().fold(0, |sum, &bit| sum << 1 | u32::from(bit));
        (soft.len() == self.payload && sum == checksum(data)).then_some(data)
    }
}

impl Code {
    /// What the code adds to the soft bits of a payload: for each bit what all the others say of it. A detector that hears this may read better.
    pub(crate) fn feedback(&mut self, soft: &[f32], extrinsic: &mut Vec<f32>) {
        let coded = self.payload.min(soft.len());
        self.interleaver.gather(&soft[..coded], &mut self.gathered);
        convolution::depuncture(&self.gathered, self.rate, self.information, &mut self.pairs);
        self.feedback.run(&mut self.pairs);
        let sent = self.rate.pattern().iter().cycle();
        let known = self.pairs.iter().zip(sent).filter(|(_, sent)| **sent).map(|(posterior, _)| *posterior);
        // Max-log says too much; three quarters of it is the usual remedy. Bits that fill up the last symbol are not coded.
        let bits = known.zip(&mut self.gathered).map(|(posterior, soft)| *soft = SHARE * (posterior - *soft)).count();
        self.gathered[bits..].fill(0.0);
        extrinsic.clear();
        extrinsic.resize(coded, 0.0);
        self.interleaver.spread(&self.gathered, extrinsic);
    }
}

/// CRC-32 of bits, eight to a byte, the first in the lowest place, the last byte filled up with zeros.
fn checksum(bits: &[u8]) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    bits.chunks(8).for_each(|bits| hash.update(&[bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit)]));
    hash.finalize()
}

/// The 127 bits of the scrambler with the polynomial `x⁷ + x⁴ + 1` (17.3.5.5) from a seed of seven bits.
pub(super) fn scrambler(seed: u32) -> [u8; 127] {
    let mut state = seed & 0x7f;
    std::array::from_fn(|_| {
        let bit = (state >> 6 ^ state >> 3) & 1;
        state = (state << 1 | bit) & 0x7f;
        bit as u8
    })
}

/// Bits of one coded run without checksum or scrambler: what the parts of an 802.11 frame are made of.
#[derive(Clone, Debug)]
pub(super) struct Run {
    viterbi: Viterbi,
    gathered: Vec<f32>,
    pairs: Vec<f32>,
}

impl Run {
    pub(super) fn new() -> Self {
        Self { viterbi: Viterbi::new(), gathered: Vec::new(), pairs: Vec::new() }
    }

    /// The bits behind `soft`, whole symbols of `carriers` times `bits`.
    pub(super) fn decode(&mut self, soft: &[f32], carriers: usize, bits: usize, rate: Rate) -> Vec<u8> {
        Interleaver::new(carriers, bits, 1).gather(soft, &mut self.gathered);
        let information = rate.information(soft.len());
        convolution::depuncture(&self.gathered, rate, information, &mut self.pairs);
        let mut out = vec![0; information];
        self.viterbi.decode(&self.pairs, &mut out);
        out
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/ofdm/code.rs"]
mod tests;
