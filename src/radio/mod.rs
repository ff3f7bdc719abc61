//! A simulated SoapySDR radio, `driver=kaflow-testbed`, that any SoapySDR program can open.
//!
//! Four transmit and four receive channels from 70 MHz to 6 GHz at up to 61.44 MS/s, with timestamps and timed transmission; between them an amplifier, a fading channel and
//! noise from [`channel`](crate::channel). It works in-process (linking this crate registers it) and as a plug-in: build the example
//! `kaflow_testbed_module` and point `SOAPY_SDR_PLUGIN_PATH` to a directory that holds it.
//!
//! # Levels
//!
//! Full scale is an amplitude of 1. At an overall TX gain of 40 dB a signal of mean power 1 drives the amplifier without back-off, at 46 dB 6 dB into saturation; a
//! saturated amplifier gives an amplitude of 1, and the channel passes a mean power of 1. `snr` is the ratio of that power to the noise. At an overall RX gain of 40 dB
//! a received amplitude of 1 reads as 1; larger ones are held at full scale.
//!
//! # Time
//!
//! With `pace=real` samples take as long as they last: who writes late underflows, who reads late overflows. With `pace=fast` time is counted in samples: as long as
//! a transmit stream is active, the receiver waits for what it writes (and a read times out when nothing comes), and the transmitter waits for the receiver.
//!
//! # Arguments
//!
//! | argument | meaning | default |
//! |---|---|---|
//! | `pace` | `real` or `fast` | `real` |
//! | `seed` | of everything random | 1 |
//! | `snr` | dB, `inf` for no noise | 30 |
//! | `taps`, `decay` | fading taps, one sample apart, 0 for a wire; dB from one to the next | 4, 3 |
//! | `doppler`, `rician` | Hz; Rician factor in dB, left out for Rayleigh | 10 |
//! | `delay`, `cfo`, `ppm` | samples; carrier offset in Hz; offset of the receiver's sampling period | 40, 0, 0 |
//! | `amplifier`, `smoothness` | `rapp`, `saleh`, `limiter`, `none`; Rapp's knee | `rapp`, 2 |
//! | `air` | radios of one process with the same name hear each other | itself alone |
//! | `overflow_every`, `overflow_length` | after so many samples so many are lost, and the stream says so | never, 1000 |
//! | `jump_every`, `jump` | after so many samples the clock jumps by so many, and only the timestamps say so | never, 0 |
//! | `stall_every`, `stall` | after so many samples so many reads time out | never, 3 |
//! | `vanish_after` | the device is gone after so many samples | never |
//!
//! Noise, Doppler and faults can be changed while running, with `writeSetting`. A transmitter is heard where it is tuned and up to a tenth of the rate beside; elsewhere there is
//! noise. The channel between two antennas stands still while nothing is transmitted.

mod air;
mod device;
mod ffi;
mod format;
mod receiver;
mod settings;

pub use device::UNITY_GAIN_DB;
pub use settings::{Faults, Settings};

/// The name that SoapySDR finds it by.
pub const DRIVER: &str = "kaflow-testbed";

/// Transmit channels, and receive channels.
pub const CHANNELS: usize = 4;

/// Where a radio is tuned to until somebody tunes it, in Hz.
const FREQUENCY: f64 = 100e6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Tx = 0,
    Rx = 1,
}
