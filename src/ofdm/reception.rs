//! What was received, added up over packets.

use num_complex::Complex32;

use super::{Config, Packet};
use crate::{dsp::db, metrics::Evm};

/// Packets, how well they were read, and points for a picture; memory stays bounded but for the list of packets and their bits, which can be [limited](Self::most).
#[derive(Clone, Debug, Default)]
pub(crate) struct Reception {
    /// Packets found.
    pub found: u64,
    /// Packets whose checksum is right; without a code all of them, as nothing tells.
    pub decoded: u64,
    /// Packets that were decoded with the help of the decoder's feedback.
    pub helped: u64,
    /// Error vector magnitude against the decided points.
    pub evm: Evm,
    /// The same for one tap a carrier, where another detector was at work.
    pub one_tap: Evm,
    /// Where each packet starts, its SNR in dB, its carrier offset in cycles a sample, its EVM in percent, whether it was decoded.
    pub packets: Vec<Line>,
    /// The last points of the detector and of one tap.
    pub points: Vec<Complex32>,
    /// The same points by one tap.
    pub before: Vec<Complex32>,
    /// Data bits, or decided payload bits without a code, packet by packet; empty for lost packets.
    pub bits: Vec<Vec<u8>>,
    /// How many packets are listed at most, the first ones; all without it.
    pub most: Option<usize>,
    /// Sums of SNR in dB and of offsets.
    sums: (f64, f64),
}

/// One packet in a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    /// Index of its first sample.
    pub start: i64,
    /// Signal-to-noise ratio in dB.
    pub snr_db: f64,
    /// Carrier offset in cycles a sample.
    pub offset: f64,
    /// Error vector magnitude in percent.
    pub evm_percent: f64,
    /// Whether it was decoded.
    pub decoded: bool,
}

/// Points that are kept: more only hide one another.
const POINTS: usize = 4000;

impl Reception {
    /// Takes in a packet of a waveform.
    pub(crate) fn push(&mut self, config: &Config, packet: &Packet) {
        let read = if config.code.is_some() { packet.data.clone() } else { Some(packet.bits.clone()) };
        let decided = super::Constellation::new(config.modulation);
        let mut evm = Evm::default();
        packet.one_tap.iter().for_each(|&z| evm.push(z, decided.points()[decided.decide(z)]));
        self.one_tap.merge(&evm);
        self.add(packet, read);
        keep(&mut self.before, &packet.one_tap);
    }

    /// Takes in a packet that was decoded elsewhere.
    pub(crate) fn add(&mut self, packet: &Packet, read: Option<Vec<u8>>) {
        self.found += 1;
        self.decoded += u64::from(read.is_some());
        self.helped += u64::from(read.is_some() && packet.feedbacks > 0);
        self.evm.merge(&packet.evm);
        let snr_db = db(packet.snr, 1.0);
        self.sums = (self.sums.0 + snr_db, self.sums.1 + packet.offset);
        keep(&mut self.points, &packet.points);
        if self.most.is_none_or(|most| self.packets.len() < most) {
            let (start, offset, evm_percent, decoded) = (packet.start, packet.offset, packet.evm.percent(), read.is_some());
            self.packets.push(Line { start, snr_db, offset, evm_percent, decoded });
            self.bits.push(read.unwrap_or_default());
        }
    }

    /// Mean SNR in dB.
    pub(crate) fn snr_db(&self) -> f64 {
        self.sums.0 / self.found.max(1) as f64
    }

    /// Mean carrier offset in cycles a sample.
    pub(crate) fn offset(&self) -> f64 {
        self.sums.1 / self.found.max(1) as f64
    }
}

fn keep(kept: &mut Vec<Complex32>, points: &[Complex32]) {
    kept.extend_from_slice(points);
    let old = kept.len().saturating_sub(POINTS);
    kept.drain(..old);
}
