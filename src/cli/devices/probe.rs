//! Everything that a device has, in the words that `kaflow live` takes.

use serde_json::{Map, Value, json};
use soapysdr::{Device, Direction, Range};

use crate::radio::calls::{Argument, Calls, Of};

/// A line: the option of `kaflow live`, or what a device tells, and what it may be.
pub(super) struct Line {
    name: String,
    text: String,
    json: Value,
}

/// Asks a device for all that it tells.
pub(super) fn probe(device: &Device, arguments: &str) -> Vec<Line> {
    let calls = Calls::open(arguments).ok();
    let mut lines = Vec::new();
    for (direction, side) in [(Direction::Rx, "rx"), (Direction::Tx, "tx")] {
        for channel in 0..device.num_channels(direction).unwrap_or(0).min(1) {
            end(device, calls.as_ref(), direction, channel, side, &mut lines);
        }
    }
    let words = |name: &str, list: Vec<String>| Line { name: name.into(), text: list.join(", "), json: json!(list) };
    lines.push(words("--clock-source", device.list_clock_sources().unwrap_or_default()));
    lines.push(words("--time-source", device.list_time_sources().unwrap_or_default()));
    let sensors: Map<_, _> = device.list_sensors().unwrap_or_default().into_iter().map(|name| read(device, name)).collect();
    let text = sensors.iter().map(|(name, value)| format!("{name} {}", value.as_str().unwrap_or_default()));
    lines.push(Line { name: "sensors".into(), text: text.collect::<Vec<_>>().join(", "), json: json!(sensors) });
    let settings = calls.as_ref().map(|calls| calls.arguments(Of::Settings)).unwrap_or_default();
    lines.extend(settings.iter().map(|setting| {
        let now = device.read_setting(setting.key.as_str()).unwrap_or_else(|_| setting.value.clone());
        argument("--setting", &Argument { value: now, ..setting.clone() })
    }));
    lines.retain(|line| !line.text.is_empty());
    lines
}

fn read(device: &Device, name: String) -> (String, Value) {
    let value = device.read_sensor(&name).unwrap_or_default();
    (name, json!(value))
}

/// One direction, by its first channel.
fn end(device: &Device, calls: Option<&Calls>, direction: Direction, channel: usize, side: &str, lines: &mut Vec<Line>) {
    let receives = direction == Direction::Rx;
    let option = |both: &str, tx: &str| if receives { format!("--{both}") } else { format!("--{tx}") };
    let mut ranges = |name: String, ranges: Vec<Range>, unit: &str| lines.push(range(name, &ranges, unit));
    let of = |element: Option<&str>| match element {
        None => device.gain_range(direction, channel),
        Some(element) => device.gain_element_range(direction, channel, element),
    };
    ranges(format!("--{side}-freq"), device.frequency_range(direction, channel).unwrap_or_default(), "Hz");
    ranges(format!("--{side}-rate"), device.get_sample_rate_range(direction, channel).unwrap_or_default(), "samples a second");
    ranges(format!("--{side}-bandwidth"), device.bandwidth_range(direction, channel).unwrap_or_default(), "Hz");
    ranges(format!("--{side}-gain"), of(None).into_iter().collect(), "dB");
    for element in device.list_gains(direction, channel).unwrap_or_default() {
        ranges(format!("--{side}-gain {element}="), of(Some(&element)).into_iter().collect(), "dB");
    }
    let antennas = device.antennas(direction, channel).unwrap_or_default();
    lines.push(Line { name: option("antenna", "tx-antenna"), text: antennas.join(", "), json: json!(antennas) });
    let mut able = vec![
        ("--agc", receives && device.has_gain_mode(direction, channel).unwrap_or(false)),
        ("--dc", device.has_dc_offset_mode(direction, channel).unwrap_or(false)),
    ];
    if let Some(calls) = calls {
        able.push(("--iq", calls.has_iq_mode(direction, channel)));
        able.push((if receives { "--ppm" } else { "--tx-ppm" }, calls.has_correction(direction, channel)));
    }
    let able: Vec<_> = able.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect();
    lines.push(Line { name: format!("{side} corrects"), text: able.join(", "), json: json!(able) });
    let Some(calls) = calls else { return };
    for known in calls.arguments(Of::Frequency(direction, channel)).iter().filter(|known| known.key == "OFFSET") {
        lines.push(Line { name: option("lo-offset", "tx-lo-offset"), ..argument("", known) });
    }
    let name = option("stream-args", "tx-stream-args");
    lines.extend(calls.arguments(Of::Stream(direction, channel)).iter().map(|known| argument(&name, known)));
}

fn range(name: String, ranges: &[Range], unit: &str) -> Line {
    let words = |r: &Range| match r.minimum == r.maximum {
        true => r.minimum.to_string(),
        false => format!("{} to {}", r.minimum, r.maximum),
    };
    let text = ranges.iter().map(words).collect::<Vec<_>>().join(", ");
    let text = if text.is_empty() { text } else { format!("{text} {unit}") };
    Line { name, text, json: ranges.iter().map(|r| json!([r.minimum, r.maximum])).collect() }
}

fn argument(option: &str, of: &Argument) -> Line {
    let values = match (&of.range, of.options.is_empty()) {
        (_, false) => of.options.join(" or "),
        (Some((low, high)), _) => format!("{low} to {high}"),
        (None, true) => String::new(),
    };
    let now = if of.value.is_empty() { String::new() } else { format!("now {}", of.value) };
    let parts = [format!("{values} {}", of.unit).trim().to_owned(), now, of.description.clone()];
    let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    let json = json!({ "value": of.value, "unit": of.unit, "range": of.range, "options": of.options, "description": of.description });
    Line { name: format!("{option} {}=", of.key).trim().to_owned(), text, json }
}

/// In columns.
pub(super) fn text(lines: &[Line]) -> String {
    let wide = lines.iter().map(|line| line.name.len()).max().unwrap_or(0);
    lines.iter().map(|line| format!("  {:wide$}  {}\n", line.name, line.text)).collect()
}

pub(super) fn json(lines: &[Line]) -> Value {
    Value::Object(lines.iter().map(|line| (line.name.clone(), line.json.clone())).collect())
}
