//! Bringing a device to a configuration, and what it makes of it.

use soapysdr::{Device, Direction};

use super::soapy::{End, RadioConfig, refused};
use crate::{Error, Result};

/// What a device has made of its configuration, for one direction and its first channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadBack {
    /// Centre frequency in Hz.
    pub frequency: f64,
    /// Samples a second.
    pub rate: f64,
    /// Bandwidth of the analogue filter in Hz.
    pub bandwidth: f64,
    /// Overall gain in dB.
    pub gain: f64,
    /// Antenna.
    pub antenna: String,
}

impl ReadBack {
    /// What a device does not tell is not a number.
    pub(super) fn of(device: &Device, end: &End, direction: Direction) -> Self {
        let channel = end.channels.first().copied().unwrap_or(0);
        Self {
            frequency: device.frequency(direction, channel).unwrap_or(f64::NAN),
            rate: device.sample_rate(direction, channel).unwrap_or(f64::NAN),
            bandwidth: device.bandwidth(direction, channel).unwrap_or(f64::NAN),
            gain: device.gain(direction, channel).unwrap_or(f64::NAN),
            antenna: device.antenna(direction, channel).unwrap_or_default(),
        }
    }
}

/// Refuses to transmit and receive with a device that can only do one of them at a time.
pub(super) fn check_duplex(device: &Device, arguments: &str) -> Result<()> {
    if device.full_duplex(Direction::Rx, 0).unwrap_or(true) {
        return Ok(());
    }
    let instead = "take two radios, one as --tx-device and one as --rx-device, or receive with --rx-only what another box sends";
    Err(Error::Data(format!("{arguments}: half duplex: it cannot transmit and receive at the same time; {instead}")))
}

/// Refuses a gain that SoapySDR would silently replace by the nearest one.
fn check_gain(range: soapysdr::Range, name: &str, gain: f64, device: &str) -> Result<()> {
    if (range.minimum..=range.maximum).contains(&gain) {
        return Ok(());
    }
    let has = format!("between {} and {} dB, as {device} has it", range.minimum, range.maximum);
    Err(Error::parameter(name, has, gain))
}

/// Applies what the configuration says to one direction of a device; gives the rate that it took.
pub(super) fn tune(device: &Device, end: &End, direction: Direction, config: &RadioConfig) -> Result<f64> {
    let fail = |what: String| move |e: soapysdr::Error| refused(&end.device, &what, &e);
    if let Some(source) = &config.clock_source {
        device.set_clock_source(source.as_str()).map_err(fail(format!("clock source '{source}'")))?;
    }
    if let Some(source) = &config.time_source {
        device.set_time_source(source.as_str()).map_err(fail(format!("time source '{source}'")))?;
    }
    let available = device.num_channels(direction).map_err(fail("channels".into()))?;
    let (verb, gain_name) = if direction == Direction::Tx { ("transmit", "tx-gain") } else { ("receive", "rx-gain") };
    if available == 0 {
        return Err(Error::Data(format!("{}: cannot {verb}: it has no channels for that", end.device)));
    }
    for &channel in &end.channels {
        if channel >= available {
            let has = format!("below {available}: {} has that many in this direction", end.device);
            return Err(Error::parameter("channel", has, channel));
        }
        device.set_sample_rate(direction, channel, config.rate).map_err(fail(format!("{} samples a second", config.rate)))?;
        if let Some(bandwidth) = end.bandwidth {
            device.set_bandwidth(direction, channel, bandwidth).map_err(fail(format!("bandwidth {bandwidth} Hz")))?;
        }
        if let Some(antenna) = &end.antenna {
            device.set_antenna(direction, channel, antenna.as_str()).map_err(fail(format!("antenna '{antenna}'")))?;
        }
        device.set_frequency(direction, channel, config.frequency, ()).map_err(fail(format!("{} Hz", config.frequency)))?;
        if let Some(gain) = end.gain {
            if let Ok(range) = device.gain_range(direction, channel) {
                check_gain(range, gain_name, gain, &end.device)?;
            }
            device.set_gain(direction, channel, gain).map_err(fail(format!("gain {gain} dB")))?;
        }
        let elements = device.list_gains(direction, channel).unwrap_or_default();
        for (element, gain) in &end.gains {
            if !elements.contains(element) {
                return Err(Error::unknown("gain element", element, &elements));
            }
            if let Ok(range) = device.gain_element_range(direction, channel, element.as_str()) {
                check_gain(range, &format!("{gain_name} {element}"), *gain, &end.device)?;
            }
            let set = device.set_gain_element(direction, channel, element.as_str(), *gain);
            set.map_err(fail(format!("gain {gain} dB of element '{element}'")))?;
        }
    }
    let first = end.channels.first().copied().unwrap_or(0);
    let rate = device.sample_rate(direction, first).map_err(fail("sample rate".into()))?;
    if (rate - config.rate).abs() > 1e-6 * config.rate {
        let problem = format!("a rate that the device has; asked for that, it runs at {rate}");
        return Err(Error::parameter("rate", problem, config.rate));
    }
    Ok(rate)
}
