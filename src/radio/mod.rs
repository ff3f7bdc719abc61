//! A simulated SoapySDR radio, `driver=kaflow-testbed`, that any SoapySDR program can open.
//!
//! Four transmit and four receive channels from 70 MHz to 6 GHz at up to 61.44 MS/s, with timestamps and timed transmission; between them an amplifier, a fading channel and
//! noise from [`channel`](crate::channel). It works in-process (linking this crate registers it) and as a plug-in: build the example
//! `kaflow_testbed_module` and point `SOAPY_SDR_PLUGIN_PATH` to a directory that holds it.
//!
//! # Levels
//!
//! Full scale is an amplitude of 1. At an overall TX gain of 40 dB a signal of mean power 1 drives the amplifier without back-off, at 46 dB 6 dB into saturation; a
//! saturated amplifier gives an amplitude of 1, and the channel passes a mean power of 1. `snr_db` is the ratio of that power to the noise. At an overall RX gain of 40 dB
//! a received amplitude of 1 reads as 1; larger ones are held at full scale, as are larger ones that a program transmits. In integers an amplitude of 1 is 2^(bits-1), as in recordings: 32768 in
//! `CS16`, 128 in `CS8`.
//!
//! # Time
//!
//! With `pace=real` samples take as long as they last: who writes late underflows, who reads late overflows. With `pace=fast` time is counted in samples: as long as
//! a transmit stream is active, the receiver waits for what it writes (and a read times out when nothing comes), and the transmitter waits for the receiver.
//!
//! # Arguments
//!
//! The words of a [`Scenario`](crate::channel::Scenario) and of `kaflow simulate`, each a setting as well (`getSettingInfo` lists unit and range):
//!
//! | argument | meaning | default |
//! |---|---|---|
//! | `pace` | `real` or `fast` | `real` |
//! | `half_duplex` | `true`: receives or transmits, one at a time | `false` |
//! | `reference` | `false`: no external clock and no pulses are connected | `true` |
//! | `air` | radios of one process with the same name hear each other | itself alone |
//! | `seed` | of everything random | 1 |
//! | `snr_db` | dB, `inf` for no noise | 30 |
//! | `taps`, `decay_db` | fading taps, one sample apart, 0 for a wire; dB from one to the next | 4, 3 |
//! | `doppler_hz`, `rician_k_db` | Hz; Rician factor in dB, left out for Rayleigh | 10 |
//! | `delay`, `sample_offset_ppm` | samples; how much longer the receiver's sampling period is | 40, 0 |
//! | `carrier_offset_hz`, `carrier_phase` | carrier between transmitter and receiver | 0 |
//! | `linewidth_hz`, `loop_bandwidth_hz` | phase noise | 0 |
//! | `iq_gain_db`, `iq_phase_deg`, `dc_re`, `dc_im`, `adc_bits` | the receiver's front end | 0 |
//! | `amplifier`, `smoothness` | `rapp`, `saleh`, `limiter`, `none`; Rapp's knee | `rapp`, 2 |
//!
//! Frequencies are in cycles per sample without the `_hz`, as in a scenario. What real drivers do, to test programs with:
//!
//! | argument | meaning | default |
//! |---|---|---|
//! | `overflow_every`, `overflow_length` | after so many samples so many are lost, and the stream says so | never, 1000 |
//! | `jump_every`, `jump` | after so many samples so many are lost, and only the time stamps say so; a negative jump sets the clock back | never, 0 |
//! | `slip_every`, `slip` | after so many samples so many are lost, and nothing says so | never, 1 |
//! | `stall_every`, `stall` | after so many samples so many reads time out | never, 3 |
//! | `late_every`, `late_length` | after so many transmitted samples so many are too late and not heard | never, 4096 |
//! | `short_reads` | reads bring between one and so many samples | all |
//! | `time_stamps` | `all`, `alternate` (every other read) or `none` | `all` |
//! | `time_jitter` | standard deviation of time stamps in samples | 0 |
//! | `vanish_after`, `hang_after` | after so many samples the device is gone, or a read never returns | never |
//!
//! Unknown arguments are ignored with a warning, as programs pass on what is meant for other drivers; `kaflow` itself refuses them. All settings can be changed while running; delay and
//! taps change when the receiver is activated next, the amplifier when the transmitter is set up next. The rates can change while streams are active, and the transmitter may have
//! another than the receiver.
//!
//! A transmitter is heard where it is tuned and up to a tenth of the rate beside; elsewhere there is noise. The channel between two antennas stands still while nothing is transmitted. Sensors tell the
//! true taps of each receive channel, what was lost, and whether the clock is locked to its source. What is switched on and off is logged at SoapySDR's level DEBUG.

pub(crate) mod calls;
pub(crate) mod client;
pub(crate) mod sockets;

// The simulated radio, which a build for real ones alone can do without.
#[cfg(feature = "soapy")]
mod air;
#[cfg(feature = "soapy")]
mod bursts;
#[cfg(feature = "soapy")]
mod clock;
#[cfg(feature = "soapy")]
mod device;
#[cfg(feature = "soapy")]
mod ffi;
#[cfg(feature = "soapy")]
mod format;
#[cfg(feature = "soapy")]
mod parameters;
#[cfg(feature = "soapy")]
mod quirks;
#[cfg(feature = "soapy")]
mod rate_change;
#[cfg(feature = "soapy")]
mod receiver;
#[cfg(feature = "soapy")]
mod settings;
#[cfg(feature = "soapy")]
mod stream;
#[cfg(feature = "soapy")]
mod transmitter;

#[cfg(feature = "soapy")]
pub(crate) use {quirks::TimeStamps, settings::Settings};

/// The name that SoapySDR finds it by.
pub const DRIVER: &str = "kaflow-testbed";

/// Transmit channels, and receive channels.
#[cfg(feature = "soapy")]
pub(crate) const CHANNELS: usize = 4;

/// Refuses device arguments that the simulated radio would ignore.
#[cfg(feature = "soapy")]
pub(crate) fn check(arguments: &str) -> crate::Result<()> {
    Settings::check(arguments)
}

/// There may be one all the same, as a plug-in: it looks at its arguments itself.
#[cfg(not(feature = "soapy"))]
pub(crate) fn check(_: &str) -> crate::Result<()> {
    Ok(())
}

/// Where a radio is tuned to until somebody tunes it, in Hz.
#[cfg(feature = "soapy")]
const FREQUENCY: f64 = 100e6;

#[cfg(feature = "soapy")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Tx = 0,
    Rx = 1,
}
