//! Flowgraphs to run and to copy from: each file builds one.
//!
//! - [`track`]: recordings, the test bed or a radio, in step, and any number of filters: what the commands run.
//! - [`loopback`]: clipped OFDM through an amplifier and a fading channel, tracked.
//! - [`equalize`]: an OFDM receiver that reads through a saturated amplifier, against one tap a carrier.
//! - [`linearize`]: a transmitter that learns its own amplifier and predistorts.
//! - [`mimo`]: four transmit and four receive antennas.

pub mod equalize;
pub mod linearize;
pub mod loopback;
pub mod mimo;
pub mod track;
