//! CP-OFDM: modulator, demodulator, preamble and pilots, as pure functions on slices.
//!
//! What a frame looks like, in samples of the carrier grid (N carriers, prefix P):
//!
//! | part | length | what it is for |
//! |---|---|---|
//! | short training | 5N/2 | repeats every N/4: detection, coarse carrier offset (± two carriers) |
//! | long training | min(2P, N/2) + 2N | one symbol twice: timing, fine carrier offset, channel estimate, noise level |
//! | data | (P + N) each | data carriers and pilots; neighbours share an edge of `window` samples |
//! | gap | any | silence |
//!
//! A saturated amplifier distorts all of this. [`Receiver::reading`] undoes it: see `saturation`.
//!
//! The signal has rms 1 before clipping and windowing. What a [`Transmitter`] writes is the same to the bit on every machine: its functions come from the `libm`
//! crate, its transforms are scalar, and nothing is fused.

mod clip;
mod code;
mod config;
mod constellation;
mod demodulator;
mod detector;
mod equalizer;
mod layout;
mod modulator;
mod packet;
mod reader;
mod receiver;
mod reception;
pub(crate) mod saturation;
mod synchronizer;
mod transmitter;
pub(crate) mod trial;
mod wifi;

pub use self::{
    code::Rate,
    config::{Clip, Config},
    constellation::Modulation,
    packet::Packet,
    reader::Reading,
    receiver::Receiver,
    saturation::{Curve, Method},
    transmitter::{SentFrame, SentFrames, Source, Transmitter},
};

pub(crate) use self::{
    clip::clip,
    code::Code,
    constellation::Constellation,
    demodulator::Demodulator,
    modulator::{Modulator, Overlap},
    packet::Sighted,
    reception::Reception,
    transmitter::RandomBits,
    wifi::{Signal, receive_wifi},
};

#[cfg(test)]
#[path = "../../tests/unit/ofdm/mod.rs"]
mod tests;
