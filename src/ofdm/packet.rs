//! What a receiver delivers.

use num_complex::Complex32;

use crate::metrics::{Ber, Evm};

/// One received frame.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    /// Index of the frame's first sample, by its strongest path, since the start of the stream.
    pub start: i64,
    /// The same to a fraction of a sample, by the mean delay of the channel's paths: what an alignment follows.
    pub arrival: f64,
    /// Carrier offset in cycles a sample; times `Config::output_rate` it is in Hz.
    pub offset: f64,
    /// Signal-to-noise ratio on the carriers (a power ratio), from the difference of the two long training symbols.
    pub snr: f64,
    /// Rms of the long training as received.
    pub rms: f64,
    /// The channel on the active carriers, lowest frequency first, relative to `rms`.
    pub channel: Vec<Complex32>,
    /// Equalised points of the data carriers, symbol after symbol.
    pub points: Vec<Complex32>,
    /// Variance of the noise and distortion on each point, as far as the receiver knows.
    pub variances: Vec<f32>,
    /// Soft bits of the payload, `ln P(0) − ln P(1)`.
    pub soft: Vec<f32>,
    /// The data bits of a coded frame whose checksum is right; `None` for lost ones and for frames without a code.
    pub data: Option<Vec<u8>>,
    /// How often the decoder helped the detector before the checksum was right, or wrong for good.
    pub feedbacks: usize,
    /// The points that one tap a carrier gives, where another detector is at work.
    pub one_tap: Vec<Complex32>,
    /// Decided bits, one to a byte.
    pub bits: Vec<u8>,
    /// Error vector magnitude against the decided points.
    pub evm: Evm,
    /// Common phase of the carriers in each symbol, in radians.
    pub phases: Vec<f64>,
}

impl Packet {
    pub(crate) fn clear_points(&mut self) {
        self.points.clear();
        self.variances.clear();
        self.soft.clear();
    }

    /// Compares with the payload that was sent.
    pub fn ber(&self, payload: &[u8]) -> Ber {
        let mut ber = Ber::default();
        ber.extend(payload, &self.bits);
        ber
    }
}

/// The highest correlations with the training that a `Receiver` has seen, each from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sighted {
    /// Of the short training with itself a quarter of a symbol later.
    pub short: f64,
    /// What it takes to look further.
    pub short_needed: f64,
    /// Share of the power that is the long training, where the short one was found.
    pub long: f64,
    /// What it takes to be a frame.
    pub long_needed: f64,
}
