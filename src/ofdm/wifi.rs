//! Frames of IEEE 802.11a/g stations: their SIGNAL field, their data, their checksum.

use num_complex::Complex32;

use super::{
    Config, Modulation, Packet, Rate, Receiver,
    code::{Run, scrambler},
};
use crate::Result;

/// The SIGNAL field (17.3.4): how the rest of a frame is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    /// Mbit/s.
    pub mbps: u32,
    /// Constellation of the data symbols.
    pub(crate) modulation: Modulation,
    /// Rate of their code.
    pub rate: Rate,
    /// Bytes of the frame, checksum included.
    pub length: usize,
}

/// A frame of a station.
#[derive(Clone, Debug)]
pub(crate) struct WifiFrame {
    /// The SIGNAL symbol alone where its parity or rate is wrong or the recording ends too early, otherwise all symbols, SIGNAL first.
    pub packet: Packet,
    /// `None` where it cannot be read.
    pub signal: Option<Signal>,
    /// The frame's bytes without their checksum, where that is right.
    pub data: Option<Vec<u8>>,
}

impl Signal {
    /// The 24 bits of the field, first bit first.
    fn parse(bits: &[u8]) -> Option<Self> {
        let parity = bits.iter().take(18).fold(0, |p, b| p ^ b);
        if bits.len() != 24 || parity != 0 || bits[4] != 0 || bits[18..].iter().any(|&b| b != 0) {
            return None;
        }
        let (mbps, modulation, rate) = match bits[..4] {
            [1, 1, 0, 1] => (6, Modulation::Bpsk, Rate::Half),
            [1, 1, 1, 1] => (9, Modulation::Bpsk, Rate::ThreeQuarters),
            [0, 1, 0, 1] => (12, Modulation::Qpsk, Rate::Half),
            [0, 1, 1, 1] => (18, Modulation::Qpsk, Rate::ThreeQuarters),
            [1, 0, 0, 1] => (24, Modulation::Qam16, Rate::Half),
            [1, 0, 1, 1] => (36, Modulation::Qam16, Rate::ThreeQuarters),
            [0, 0, 0, 1] => (48, Modulation::Qam64, Rate::TwoThirds),
            [0, 0, 1, 1] => (54, Modulation::Qam64, Rate::ThreeQuarters),
            _ => return None,
        };
        let length = bits[5..17].iter().rev().fold(0, |length, &bit| length << 1 | usize::from(bit));
        (length > 0).then_some(Self { mbps, modulation, rate, length })
    }

    /// Data symbols: 16 bits of SERVICE, the bytes, six zeros, filled up. 4 µs each.
    pub(crate) fn symbols(&self) -> usize {
        (16 + 8 * self.length + 6).div_ceil(4 * self.mbps as usize)
    }
}

/// The waveform of a frame with `symbols` symbols behind the training.
fn config(modulation: Modulation, symbols: usize) -> Config {
    Config { modulation, symbols, clip: None, ..Config::default() }
}

/// Finds the frames of stations in samples at 20 MS/s and reads them.
pub(crate) fn receive_wifi(samples: &[Complex32]) -> Result<Vec<WifiFrame>> {
    let mut run = Run::new();
    let mut frames = Vec::new();
    for packet in Receiver::new(config(Modulation::Bpsk, 1))?.receive(samples) {
        let signal = Signal::parse(&run.decode(&packet.soft, 48, 1, Rate::Half));
        let mut frame = WifiFrame { packet, signal, data: None };
        if let Some(signal) = signal {
            // Once more from shortly before its start, now that its length and constellation are known.
            let from = (frame.packet.start - 40).max(0) as usize;
            let waveform = config(signal.modulation, 1 + signal.symbols());
            let until = samples.len().min(from + waveform.frame_samples() + 200);
            // Where the recording ends with the frame, the receiver may want some samples of silence more.
            let mut receiver = Receiver::new(waveform)?;
            let mut found = receiver.receive(&samples[from..until]);
            found.extend(receiver.receive(&[Complex32::ZERO; 200]));
            if let Some(mut packet) = found.into_iter().next() {
                packet.start += from as i64;
                frame.data = read(&packet, signal, &mut run);
                frame.packet = packet;
            }
        }
        frames.push(frame);
    }
    Ok(frames)
}

/// The bytes of a frame, where their checksum is right.
fn read(packet: &Packet, signal: Signal, run: &mut Run) -> Option<Vec<u8>> {
    let bits = signal.modulation.bits();
    let soft = packet.soft.get(48 * bits..)?;
    let mut bits = run.decode(soft, 48, bits, signal.rate);
    // The first seven bits of SERVICE are 0 before scrambling: what arrives is the scrambler's sequence itself, of which any seven bits are a state.
    let seed = bits.get(..7)?.iter().fold(0, |seed, &bit| seed << 1 | u32::from(bit));
    bits.iter_mut().skip(7).zip(scrambler(seed).iter().cycle()).for_each(|(bit, s)| *bit ^= s);
    let byte = |bits: &[u8]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
    let bytes: Vec<u8> = bits.get(16..16 + 8 * signal.length)?.chunks_exact(8).map(byte).collect();
    let (data, sum) = bytes.split_at_checked(signal.length.checked_sub(4)?)?;
    (crc32fast::hash(data).to_le_bytes() == *sum).then(|| data.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IEEE 802.11-2012, annex L.1: 36 Mbit/s, 100 bytes, 6 symbols.
    #[test]
    fn the_signal_field_of_the_standards_example_is_understood() {
        let bits = [1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let signal = Signal::parse(&bits).unwrap();
        assert_eq!((signal.mbps, signal.length, signal.symbols()), (36, 100, 6));
        let mut wrong = bits;
        wrong[7] ^= 1;
        assert_eq!(Signal::parse(&wrong), None);
    }
}
