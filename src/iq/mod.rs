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
//! [`Recording::refuse_not_finite`] makes the first one an error instead.

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

pub use datatype::Datatype;
#[cfg(feature = "soapy")]
pub(crate) use datatype::full_scale;
pub(crate) use format::{Format, Raw};
pub use pair::Pair;
pub(crate) use recording::NotFinite;
pub use recording::Recording;
pub(crate) use segment::{Gap, Segment};
pub(crate) use survey::{Survey, survey};
pub use sync::{Pairs, State, Status, Synchroniser};
pub use writer::Writer;

#[cfg(test)]
#[path = "../../tests/unit/iq.rs"]
mod tests;
