//! Flowgraphs to run and to copy from: each file builds one.
//!
//! - [`loopback`]: clipped OFDM through an amplifier and a fading channel, tracked.
//! - [`replay`]: two recordings, aligned, tracked, the error written to a file.
//! - [`equalize`]: an OFDM receiver that reads through a saturated amplifier, against one tap a carrier.
//! - [`mimo`]: four transmit and four receive antennas.
//! - `live` (feature `soapy`): a frame through radios, tracked while it runs.

pub mod equalize;
#[cfg(feature = "soapy")]
pub mod live;
pub mod loopback;
pub mod mimo;
pub mod replay;
