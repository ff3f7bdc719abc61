//! Recordings on disk: SigMF, raw IQ and WAV, as streams of samples with known gaps; and the alignment of a TX/RX pair.
//!
//! - [`Recording`] reads: constant memory whatever the size, one channel or all of them interleaved, gaps reported.
//! - [`Writer`] writes SigMF that is valid at any time, also after a kill.
//! - [`Pair`] ties a transmitted and a received recording together in a `.sigmf-collection`.
//! - [`align`](fn@align::align) finds delay, carrier offset, gain, DC and inversion between the two.
//! - `survey` measures a recording: power, peak, clipping, DC, spectrum, envelope.
//!
//! # Conventions
//!
//! Integer samples are scaled to `[-1, 1)`: `ci16` by 1/32768, `ci8` by 1/128, and `cu8` as `(x - 128) / 128`. Real samples are read with an imaginary part
//! of zero. A *sample* is one instant: with several channels it holds one number for each.
//!
//! # Samples that are not numbers
//!
//! NaN and infinity are passed on (the filters skip them), counted, and the first one's place is kept: `Recording::not_finite`.

pub mod align;
mod archive;
mod datatype;
mod format;
mod hash;
mod pair;
mod recording;
mod segment;
pub mod sigmf;
mod spool;
mod survey;
mod sync;
mod wav;
mod writer;

pub use self::{
    datatype::Datatype,
    pair::Pair,
    recording::Recording,
    sync::{Pairs, State, Status, Synchroniser},
    writer::Writer,
};

#[cfg(feature = "soapy")]
pub(crate) use self::datatype::full_scale;
pub(crate) use self::{
    format::{Format, Raw},
    recording::NotFinite,
    segment::Segment,
    survey::{Survey, survey},
};

#[cfg(test)]
#[path = "../../tests/unit/iq.rs"]
mod tests;
