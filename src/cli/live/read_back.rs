//! What was asked of a radio, and what it has made of it.

use serde_json::{Map, Value, json};
use soapysdr::Direction;

use super::recorder;
use crate::blocks::{Devices, End, Radio, RadioConfig, ReadBack};

/// Facts by name, for the report and for JSON.
type Facts = Vec<(&'static str, Value)>;

/// The two ends and their facts' names.
const ENDS: [(&str, Direction); 2] = [("tx", Direction::Tx), ("rx", Direction::Rx)];

fn end(config: &RadioConfig, direction: Direction) -> Option<&End> {
    if direction == Direction::Tx { config.tx.as_ref() } else { config.rx.as_ref() }
}

/// The devices in words.
pub(super) fn ends(config: &RadioConfig) -> String {
    let device = |end: &Option<End>| end.as_ref().map(|end| end.device.clone()).unwrap_or_default();
    let (tx, rx) = (device(&config.tx), device(&config.rx));
    let ends = match tx.as_str() {
        "" => format!("to {rx}"),
        _ if tx == rx => rx,
        _ => format!("from {tx} to {rx}"),
    };
    // In millions, once where both ends have the same.
    let both = |of: &dyn Fn(&End) -> Option<f64>, common: f64| {
        let at = |end: &Option<End>| end.as_ref().and_then(of).unwrap_or(common) / 1e6;
        match (&config.tx, at(&config.tx), at(&config.rx)) {
            (Some(_), sent, received) if sent != received => format!("{sent} to {received}"),
            (_, _, received) => received.to_string(),
        }
    };
    let frequency = both(&|end| end.frequency, config.frequency);
    format!("{ends} at {frequency} MHz, {} MS/s", both(&|end| end.rate, config.rate))
}

/// What the report says of the radio: as it was read back from it, where it tells, and what was asked for.
pub(super) fn facts(config: &RadioConfig, radio: &Radio) -> Facts {
    let mut facts = vec![("date", json!(recorder::now())), ("device", json!(ends(config))), ("rate_hz", json!(radio.rate()))];
    facts.push(("one_clock", json!(radio.one_clock())));
    facts.extend(ENDS.into_iter().filter_map(|(name, direction)| Some((name, fact(config, &radio.devices(), direction)?))));
    facts
}

/// Reads back again, once a run has ended: gains have risen, and viewers have turned dials.
pub(super) fn renew(facts: &mut Facts, config: &RadioConfig, devices: &Devices) {
    for (name, direction) in ENDS {
        if let (Some(told), Some((_, fact))) = (fact(config, devices, direction), facts.iter_mut().find(|(fact, _)| *fact == name)) {
            *fact = told;
        }
    }
}

fn fact(config: &RadioConfig, devices: &Devices, direction: Direction) -> Option<Value> {
    let (told, (device, _)) = (devices.read_back(direction)?, devices.get(direction)?);
    Some(json!({
        "frequency_hz": told.frequency,
        "rate_hz": told.rate,
        "gain_db": told.gain,
        "agc": told.automatic_gain,
        "bandwidth_hz": told.bandwidth,
        "ppm": told.correction_ppm,
        "antenna": told.antenna,
        "clock_source": device.get_clock_source().unwrap_or_default(),
        "time_source": device.get_time_source().unwrap_or_default(),
        "asked": asked(config, end(config, direction)?),
    }))
}

/// What was asked of an end, and nothing that was not.
fn asked(config: &RadioConfig, end: &End) -> Map<String, Value> {
    let number = |number: Option<f64>| number.map(|number| json!(number));
    let word = |word: &Option<String>| word.as_ref().map(|word| json!(word));
    let gains: Map<_, _> = end.gains.iter().map(|(name, gain)| (name.clone(), json!(gain))).collect();
    let settings: Map<_, _> = config.settings.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let all = [
        ("frequency_hz", Some(json!(end.frequency.unwrap_or(config.frequency)))),
        ("rate_hz", Some(json!(end.rate.unwrap_or(config.rate)))),
        ("lo_offset_hz", number(end.lo_offset)),
        ("gain_db", number(end.gain)),
        ("gains_db", (!gains.is_empty()).then(|| json!(gains))),
        ("bandwidth_hz", number(end.bandwidth)),
        ("ppm", number(end.correction_ppm)),
        ("antenna", word(&end.antenna)),
        ("clock_source", word(&config.clock_source)),
        ("time_source", word(&config.time_source)),
        ("dc_auto", end.automatic_dc.map(|on| json!(on))),
        ("iq_auto", end.automatic_iq.map(|on| json!(on))),
        ("stream_args", (!end.stream_args.is_empty()).then(|| json!(end.stream_args))),
        ("settings", (!settings.is_empty()).then(|| json!(settings))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Says where a device has made something else of what it was asked for, and what of it its driver does not know.
pub(super) fn warn(config: &RadioConfig, devices: &Devices) {
    for (name, direction) in ENDS {
        let (Some(told), Some(end)) = (devices.read_back(direction), end(config, direction)) else { continue };
        for (what, asked, got, unit) in differences(config, end, &told) {
            note!("{name} {what}: asked for {asked} {unit}, it has {got} {unit}");
        }
        let known = devices.stream_arguments(direction);
        let given = end.stream_args.split(',').filter_map(|pair| pair.split_once('=')).map(|(key, _)| key.trim());
        for key in given.filter(|_| !known.is_empty()).filter(|key| !known.iter().any(|k| k == key)) {
            note!("{name} stream: '{key}' is not among the arguments that its driver lists: {}", known.join(", "));
        }
    }
}

type Difference = (&'static str, f64, f64, &'static str);

fn differences(config: &RadioConfig, end: &End, told: &ReadBack) -> Vec<Difference> {
    let frequency = Some(end.frequency.unwrap_or(config.frequency));
    let all = [
        ("frequency", frequency, told.frequency, "Hz", 1.0),
        ("bandwidth", end.bandwidth.filter(|&hz| hz > 0.0), told.bandwidth, "Hz", 1.0),
        ("gain", end.gain.filter(|_| end.gains.is_empty()), told.gain, "dB", 0.01),
        ("oscillator", end.correction_ppm, told.correction_ppm, "ppm", 0.01),
    ];
    let differ = |(name, asked, got, unit, by): (&'static str, Option<f64>, f64, &'static str, f64)| {
        asked.filter(|asked| (asked - got).abs() > by).map(|asked| (name, asked, got, unit))
    };
    all.into_iter().filter_map(differ).collect()
}
