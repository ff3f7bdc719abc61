//! FutureSDR blocks: the library's filters, channels and files with stream and message ports, and nothing else.
//!
//! The arithmetic lives in the modules that know no runtime; a block slices its buffers, makes one call and hands the results on.
//!
//! | block | what it does |
//! |---|---|
//! | [`Track`], [`TrackMimo`] | any filter of the library, or yours, on a pair of streams or on several antennas |
//! | [`Detect`], [`Count`] | kernel classifiers as soft demappers, rates of events |
//! | [`OfdmTx`], [`OfdmRx`], [`Staged`] (amplifiers, fading, noise), [`FadingMimo`], [`Impair`], [`BedSource`] | the test bed |
//! | [`IqSource`], [`IqSink`] | recordings |
//! | [`Sync`] | two streams, or a stream and a frame that is repeated, brought into step and kept there |
//! | [`Meter`] | error and power over time |
//!
//! All of them keep three promises:
//!
//! - **Tags travel.** What arrives on an input leaves on the outputs at the same sample.
//! - **A gap is never learned across.** Missing samples are marked by a `gap` tag on the first sample behind the gap.
//! - **No panics.** A bad message is answered by [`Pmt::InvalidValue`](futuresdr::runtime::Pmt::InvalidValue), logged, and changes nothing.

/// Samples in the buffers around the busy blocks (512 KiB each).
///
/// Handing samples over has a price: the runtime's buffers are guarded by spin locks and wake their neighbour with the lock held, so that on a
/// loaded machine a hand-over can cost a time slice. With its default of 4096 samples a flowgraph was seen to spend 90 % of its time there.
const BUFFER: usize = 1 << 16;

mod bed_source;
mod controls;
mod count;
mod detect;
mod fading_mimo;
mod fault;
mod impair;
mod iq_sink;
mod iq_source;
mod latency;
mod learning;
mod linearize;
mod message;
mod meter;
mod ofdm_rx;
mod ofdm_tx;
mod predistort;
mod probe;
mod resources;
mod scope;
#[cfg(feature = "radio")]
mod soapy;
mod staged;
mod sync;
mod tags;
mod taps;
mod track;
mod track_mimo;
mod tracking;
mod window;

pub use self::{
    bed_source::BedSource,
    controls::{Command, Controls},
    count::Count,
    detect::{Classifier, Detect, Soft},
    fading_mimo::FadingMimo,
    fault::Fault,
    impair::Impair,
    iq_sink::IqSink,
    iq_source::IqSource,
    learning::{LoopConfig, Round, Rounds},
    linearize::Linearize,
    meter::Meter,
    ofdm_rx::OfdmRx,
    ofdm_tx::OfdmTx,
    predistort::{Predistort, Swap},
    probe::{Probe, Report, Summary},
    resources::{check_buffer, check_start},
    scope::Stretch,
    staged::Staged,
    sync::{Sync, SyncWatch},
    tags::{GAP, TIME, gap_length},
    track::Track,
    track_mimo::TrackMimo,
};

pub(crate) use self::{iq_sink::Recorder, latency::Latency, tags::gap, taps::TapHistory, tracking::Snapshot};

#[cfg(feature = "radio")]
pub(crate) use self::soapy::{Devices, Drive, check_device, open_device};
#[cfg(feature = "radio")]
pub use self::soapy::{End, Frame, Health, Level, Radio, RadioConfig, ReadBack, Repeat, SoapySink, SoapySource};

#[cfg(test)]
#[path = "../../tests/unit/blocks/mod.rs"]
mod tests;
