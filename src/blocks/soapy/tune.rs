//! Bringing one direction of a device to a configuration, and what it makes of it.

use soapysdr::{Args, Device, Direction, Range};

use super::config::{End, RadioConfig};
use super::devices::refused;
use crate::radio::calls::{Calls, Of};
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
    /// Whether it chooses its gain by itself.
    pub automatic_gain: bool,
    /// Correction of the oscillator in ppm.
    pub correction_ppm: f64,
}

impl ReadBack {
    /// What a device does not tell is not a number.
    pub(super) fn of(device: &Device, calls: &Calls, end: &End, direction: Direction) -> Self {
        let channel = end.channels.first().copied().unwrap_or(0);
        let corrects = calls.has_correction(direction, channel);
        Self {
            frequency: device.frequency(direction, channel).unwrap_or(f64::NAN),
            rate: device.sample_rate(direction, channel).unwrap_or(f64::NAN),
            bandwidth: device.bandwidth(direction, channel).unwrap_or(f64::NAN),
            gain: device.gain(direction, channel).unwrap_or(f64::NAN),
            antenna: device.antenna(direction, channel).unwrap_or_default(),
            automatic_gain: device.gain_mode(direction, channel).unwrap_or(false),
            correction_ppm: if corrects { calls.correction(direction, channel) } else { f64::NAN },
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

/// Refuses a value that the device does not have, which drivers would replace by another one in silence, and names the nearest that it has. A device that tells no range takes any.
fn check(name: &str, ranges: &[Range], unit: &str, device: &str, value: f64) -> Result<()> {
    let slack = |r: &Range| 1e-9 * r.maximum.abs().max(r.minimum.abs());
    if ranges.is_empty() || ranges.iter().any(|r| (r.minimum - slack(r)..=r.maximum + slack(r)).contains(&value)) {
        return Ok(());
    }
    let at = |r: &Range| value.max(r.minimum).min(r.maximum);
    let nearest = ranges.iter().map(at).min_by(|a, b| (a - value).abs().total_cmp(&(b - value).abs())).unwrap_or(f64::NAN);
    let words = |r: &Range| match r.minimum == r.maximum {
        true => r.minimum.to_string(),
        false => format!("between {} and {}", r.minimum, r.maximum),
    };
    let (some, more) = (ranges.len().min(6), if ranges.len() > 6 { " and others" } else { "" });
    let has = ranges[..some].iter().map(words).collect::<Vec<_>>().join(" or ");
    Err(Error::parameter(name, format!("{has}{more} {unit}, as {device} has it, the nearest being {nearest}"), value))
}

/// The same for one of several words.
pub(super) fn check_name(kind: &'static str, name: &str, known: &[String]) -> Result<()> {
    if known.is_empty() || known.iter().any(|k| k == name) { Ok(()) } else { Err(Error::unknown(kind, name, known)) }
}

/// The gains of a transmitter that are set once its stream has started; until then they are as low as they can be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rise {
    /// The overall gain, where it was given, and then those of elements: those that were given, or else all as they were.
    overall: Option<f64>,
    elements: Vec<(String, f64)>,
    /// Overall gain in dB as far as it is known before it is set.
    pub(super) expected: f64,
}

impl Rise {
    /// What is to be set, where the device has it.
    fn plan(device: &Device, end: &End, channel: usize) -> Result<Self> {
        let direction = Direction::Tx;
        check_gains(device, end, direction, channel)?;
        let now = device.gain(direction, channel).unwrap_or(f64::NAN);
        let as_it_is = |name: String| device.gain_element(direction, channel, name.as_str()).ok().map(|gain| (name, gain));
        let elements = match (end.gain, end.gains.is_empty()) {
            (None, true) => device.list_gains(direction, channel).unwrap_or_default().into_iter().filter_map(as_it_is).collect(),
            _ => end.gains.clone(),
        };
        Ok(Self { overall: end.gain, elements, expected: end.gain.unwrap_or(now) })
    }

    /// Every gain as low as it can be.
    fn lower(device: &Device, channel: usize) -> Result<(), soapysdr::Error> {
        let direction = Direction::Tx;
        if let Ok(range) = device.gain_range(direction, channel) {
            device.set_gain(direction, channel, range.minimum)?;
        }
        for name in device.list_gains(direction, channel).unwrap_or_default() {
            if let Ok(range) = device.gain_element_range(direction, channel, name.as_str()) {
                device.set_gain_element(direction, channel, name.as_str(), range.minimum)?;
            }
        }
        Ok(())
    }

    pub(super) fn apply(&self, device: &Device, end: &End) -> Result<()> {
        end.channels.iter().try_for_each(|&channel| set_gains(device, end, Direction::Tx, channel, self.overall, &self.elements))
    }
}

fn gain_name(direction: Direction) -> &'static str {
    if direction == Direction::Tx { "tx-gain" } else { "rx-gain" }
}

fn check_gains(device: &Device, end: &End, direction: Direction, channel: usize) -> Result<()> {
    let name = gain_name(direction);
    if let (Some(gain), Ok(range)) = (end.gain, device.gain_range(direction, channel)) {
        check(name, &[range], "dB", &end.device, gain)?;
    }
    let elements = device.list_gains(direction, channel).unwrap_or_default();
    for (element, gain) in &end.gains {
        if !elements.contains(element) {
            return Err(Error::unknown("gain element", element, &elements));
        }
        if let Ok(range) = device.gain_element_range(direction, channel, element.as_str()) {
            check(&format!("{name} {element}"), &[range], "dB", &end.device, *gain)?;
        }
    }
    Ok(())
}

fn set_gains(
    device: &Device,
    end: &End,
    direction: Direction,
    channel: usize,
    overall: Option<f64>,
    elements: &[(String, f64)],
) -> Result<()> {
    if let Some(gain) = overall {
        device.set_gain(direction, channel, gain).map_err(|e| refused(&end.device, &format!("gain {gain} dB"), &e))?;
    }
    elements.iter().try_for_each(|(element, gain)| {
        let set = device.set_gain_element(direction, channel, element.as_str(), *gain);
        set.map_err(|e| refused(&end.device, &format!("gain {gain} dB of element '{element}'"), &e))
    })
}

/// The rate that an end is to have, and the name of who asked for it.
fn asked_rate(end: &End, direction: Direction, config: &RadioConfig) -> (&'static str, f64) {
    match (end.rate, direction) {
        (Some(rate), Direction::Tx) => ("tx-rate", rate),
        (Some(rate), Direction::Rx) => ("rx-rate", rate),
        (None, _) => ("rate", config.rate),
    }
}

/// The rate that one direction of a device has in the end: the other direction may have changed it.
pub(super) fn settled_rate(device: &Device, end: &End, direction: Direction, config: &RadioConfig) -> Result<f64> {
    let (name, asked) = asked_rate(end, direction, config);
    let first = end.channels.first().copied().unwrap_or(0);
    let rate = device.sample_rate(direction, first).map_err(|e| refused(&end.device, "sample rate", &e))?;
    if (rate - asked).abs() > 1e-6 * asked {
        let one = if config.one_rate() { "" } else { ": it may have one rate for both directions" };
        return Err(Error::parameter(name, format!("a rate that the device has; asked for that, it runs at {rate}{one}"), asked));
    }
    Ok(rate)
}

/// Applies what the configuration says to one direction of a device; gives the gains that a transmitter is to have once it runs.
pub(super) fn tune(device: &Device, calls: &Calls, end: &End, direction: Direction, config: &RadioConfig) -> Result<Option<Rise>> {
    let fail = |what: String| move |e: soapysdr::Error| refused(&end.device, &what, &e);
    let available = device.num_channels(direction).map_err(fail("channels".into()))?;
    let (verb, side) = if direction == Direction::Tx { ("transmit", "tx") } else { ("receive", "rx") };
    if available == 0 {
        return Err(Error::Data(format!("{}: cannot {verb}: it has no channels for that", end.device)));
    }
    let mut rise = None;
    for &channel in &end.channels {
        if channel >= available {
            let has = format!("below {available}: {} has that many in this direction", end.device);
            return Err(Error::parameter("channel", has, channel));
        }
        if direction == Direction::Tx {
            rise = Some(Rise::plan(device, end, channel)?);
            Rise::lower(device, channel).map_err(fail("lowest transmit gain".into()))?;
        } else {
            check_gains(device, end, direction, channel)?;
        }
        let rates = device.get_sample_rate_range(direction, channel).unwrap_or_default();
        let (name, rate) = asked_rate(end, direction, config);
        check(name, &rates, "samples a second", &end.device, rate)?;
        device.set_sample_rate(direction, channel, rate).map_err(fail(format!("{rate} samples a second")))?;
        if let Some(bandwidth) = end.bandwidth {
            let ranges = device.bandwidth_range(direction, channel).unwrap_or_default();
            if bandwidth != 0.0 {
                check("bandwidth", &ranges, "Hz", &end.device, bandwidth)?;
            }
            device.set_bandwidth(direction, channel, bandwidth).map_err(fail(format!("bandwidth {bandwidth} Hz")))?;
        }
        if let Some(antenna) = &end.antenna {
            check_name("antenna", antenna, &device.antennas(direction, channel).unwrap_or_default())?;
            device.set_antenna(direction, channel, antenna.as_str()).map_err(fail(format!("antenna '{antenna}'")))?;
        }
        correct(device, calls, end, direction, channel)?;
        let frequency = end.frequency.unwrap_or(config.frequency);
        let name = if end.frequency.is_some() { format!("{side}-freq") } else { "freq".into() };
        let reach = device.frequency_range(direction, channel).unwrap_or_default();
        check(&name, &reach, "Hz", &end.device, frequency)?;
        let tuned = device.set_frequency(direction, channel, frequency, offset(calls, end, direction, channel)?);
        tuned.map_err(fail(format!("{frequency} Hz")))?;
        if direction == Direction::Rx {
            set_gains(device, end, direction, channel, end.gain, &end.gains)?;
        }
    }
    Ok(rise)
}

/// What the device corrects by itself, and its oscillator; refuses what was asked for and cannot be had.
fn correct(device: &Device, calls: &Calls, end: &End, direction: Direction, channel: usize) -> Result<()> {
    let fail = |what: &'static str| move |e: soapysdr::Error| refused(&end.device, what, &e);
    let lacks = |name: &str, what: &str, value: &str| Error::parameter(name, format!("left out: {} has no {what}", end.device), value);
    if device.has_gain_mode(direction, channel).unwrap_or(false) {
        device.set_gain_mode(direction, channel, end.automatic_gain).map_err(fail("automatic gain"))?;
    } else if end.automatic_gain {
        return Err(lacks("agc", "automatic gain", "it"));
    }
    // What is asked of both directions may be a matter of one.
    let receives = direction == Direction::Rx;
    match end.automatic_dc {
        Some(on) if device.has_dc_offset_mode(direction, channel).unwrap_or(false) => {
            device.set_dc_offset_mode(direction, channel, on).map_err(fail("correction of the DC offset"))?;
        }
        Some(true) if receives => return Err(lacks("dc", "correction of the DC offset of its own", "auto")),
        _ => {}
    }
    match end.automatic_iq {
        Some(on) if calls.has_iq_mode(direction, channel) => {
            calls.set_iq_mode(direction, channel, on).map_err(fail("balance of I and Q"))?;
        }
        Some(true) if receives => return Err(lacks("iq", "balance of I and Q of its own", "auto")),
        _ => {}
    }
    match end.correction_ppm {
        Some(ppm) if calls.has_correction(direction, channel) => {
            calls.set_correction(direction, channel, ppm).map_err(fail("correction of the oscillator"))
        }
        Some(ppm) if ppm != 0.0 => Err(lacks("ppm", "correction of its oscillator", &ppm.to_string())),
        _ => Ok(()),
    }
}

/// The frequency arguments: where the oscillator is.
fn offset(calls: &Calls, end: &End, direction: Direction, channel: usize) -> Result<Args> {
    const NAME: &str = "OFFSET";
    let mut arguments = Args::new();
    let Some(offset) = end.lo_offset else { return Ok(arguments) };
    let known = calls.arguments(Of::Frequency(direction, channel));
    let Some(known) = known.iter().find(|argument| argument.key == NAME) else {
        return Err(Error::parameter("lo-offset", format!("left out: {} has no frequency argument {NAME}", end.device), offset));
    };
    if let Some((minimum, maximum)) = known.range {
        check("lo-offset", &[Range { minimum, maximum, step: 0.0 }], "Hz", &end.device, offset)?;
    }
    arguments.set(NAME, offset.to_string());
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_a_device_lacks_is_refused_with_the_nearest_that_it_has() {
        let range = |minimum: f64, maximum: f64| Range { minimum, maximum, step: 0.0 };
        let several = [range(1e6, 2e6), range(4e6, 4e6), range(8e6, 10e6)];
        for value in [1e6, 1.5e6, 2e6, 4e6, 10e6] {
            check("rate", &several, "Hz", "driver=x", value).unwrap();
        }
        check("rate", &[], "Hz", "driver=x", 7.0).unwrap();
        for (value, nearest) in [(0.0, "1000000"), (2.9e6, "2000000"), (3.1e6, "4000000"), (7e6, "8000000"), (1e9, "10000000")] {
            let said = check("rate", &several, "Hz", "driver=x", value).unwrap_err().to_string();
            assert!(said.contains(&format!("the nearest being {nearest}, got {value}")), "{said}");
            assert!(said.starts_with("rate must be between 1000000 and 2000000 or 4000000 or between"), "{said}");
        }
        assert!(check("rate", &several, "Hz", "driver=x", f64::NAN).is_err());
    }
}
