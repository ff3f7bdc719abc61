//! `kaflow devices`: which radios there are, and which of them can do the job.

mod probe;

use std::path::PathBuf;

use serde_json::{Value, json};
use soapysdr::{Device, Direction, Range};

use super::outputs::Outputs;
use crate::blocks::open_device;
use crate::{Error, Result, radio};

/// List SoapySDR radios with what matters here: full duplex, 5.4 GHz, timestamps, rates; and what they lack.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only devices that fit these arguments, such as driver=uhd
    #[arg(value_name = "ARGS", default_value = "")]
    filter: String,
    /// Frequency that is asked for, in Hz
    #[arg(long, value_name = "HZ", alias = "frequency", default_value_t = 5.4e9)]
    freq: f64,
    /// List everything that they have, by the options of `kaflow live` that take it
    #[arg(long)]
    probe: bool,
    /// Write what was found as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

/// What a device can do.
pub(crate) struct Abilities {
    pub(crate) channels: (usize, usize),
    pub(crate) full_duplex: bool,
    pub(crate) timestamps: bool,
    pub(crate) tunes: (bool, bool),
    pub(crate) rates: Vec<Range>,
}

pub(crate) fn run(args: Args) -> Result<()> {
    if !(args.freq.is_finite() && args.freq > 0.0) {
        return Err(Error::parameter("freq", "more than 0", args.freq));
    }
    Outputs { files: args.json.iter().cloned().collect(), force: args.force, ..Outputs::default() }.check()?;
    let mut found: Vec<String> = soapysdr::enumerate(args.filter.as_str())
        .unwrap_or_default()
        .iter()
        // A sound card is no radio.
        .filter(|device| device.get("driver") != Some("audio"))
        .map(|device| device.to_string())
        .collect();
    let simulated = format!("driver={}", radio::DRIVER);
    if args.filter.is_empty() && cfg!(feature = "soapy") {
        found.push(format!("{simulated}, pace=real"));
    }
    let mut devices = Vec::new();
    for device in &found {
        say!("{device}");
        let opened = open_device(device);
        let able = opened.as_ref().ok().map(|device| abilities(device, args.freq));
        match (&opened, &able) {
            (Err(error), _) => say!("  cannot be opened: {error}"),
            (_, Some(able)) => say!("{}", describe(able, device, args.freq).trim_end()),
            _ => {}
        }
        let mut figures = figures(device, able.as_ref());
        if let Some(opened) = opened.as_ref().ok().filter(|_| args.probe) {
            let lines = probe::probe(opened, device);
            say!("{}", probe::text(&lines).trim_end());
            figures["probe"] = probe::json(&lines);
        }
        devices.push(figures);
    }
    if found.is_empty() {
        say!(
            "no device found; {}",
            if cfg!(feature = "soapy") {
                "driver=kaflow-testbed is a simulated one"
            } else {
                "a build with --features soapy has a simulated one"
            }
        );
    }
    let Some(path) = &args.json else { return Ok(()) };
    super::json::write(path, "devices", json!({ "frequency_hz": args.freq, "devices": devices }))
}

/// A device as JSON; no abilities where it cannot be opened.
fn figures(device: &str, abilities: Option<&Abilities>) -> Value {
    let of = |a: &Abilities| {
        let rates: Vec<_> = a.rates.iter().map(|r| json!([r.minimum, r.maximum])).collect();
        json!({
            "tx_channels": a.channels.0, "rx_channels": a.channels.1, "full_duplex": a.full_duplex, "timestamps": a.timestamps,
            "tunes_tx": a.tunes.0, "tunes_rx": a.tunes.1, "rates_hz": rates,
        })
    };
    json!({ "device": device, "abilities": abilities.map(of) })
}

/// Asks a device; what it does not answer it does not have.
fn abilities(device: &Device, frequency: f64) -> Abilities {
    let channels = |direction| device.num_channels(direction).unwrap_or(0);
    let tunes = |direction| {
        let ranges = device.frequency_range(direction, 0).unwrap_or_default();
        channels(direction) > 0 && ranges.iter().any(|r| r.minimum <= frequency && frequency <= r.maximum)
    };
    Abilities {
        channels: (channels(Direction::Tx), channels(Direction::Rx)),
        full_duplex: channels(Direction::Rx) > 0 && device.full_duplex(Direction::Rx, 0).unwrap_or(false),
        timestamps: device.has_hardware_time(None).unwrap_or(false),
        tunes: (tunes(Direction::Tx), tunes(Direction::Rx)),
        rates: device.get_sample_rate_range(Direction::Rx, 0).unwrap_or_default(),
    }
}

/// A few lines on a device, and the verdict.
pub(crate) fn describe(a: &Abilities, device: &str, frequency: f64) -> String {
    let yes = |b: bool| if b { "yes" } else { "no" };
    let ghz = frequency / 1e9;
    let (low, high) = a.rates.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), r| (low.min(r.minimum), high.max(r.maximum)));
    let rates = if high > 0.0 { format!("{:.2} to {:.2} MS/s", low / 1e6, high / 1e6) } else { "unknown".into() };
    let mut text = format!(
        "  {} TX, {} RX; full duplex: {}; {ghz} GHz: TX {}, RX {}; timestamps: {}; rates: {rates}\n",
        a.channels.0,
        a.channels.1,
        yes(a.full_duplex),
        yes(a.tunes.0),
        yes(a.tunes.1),
        yes(a.timestamps)
    );
    let verdict = match a {
        Abilities { channels: (0, 0), .. } => "cannot be used: it has no channels".into(),
        Abilities { tunes: (false, false), .. } => format!("cannot be used: it does not reach {ghz} GHz; try another --freq"),
        Abilities { channels: (0, _), .. } | Abilities { tunes: (false, _), .. } => {
            "receives only: kaflow live --rx-only, or with another radio as --tx-device".into()
        }
        Abilities { channels: (_, 0), .. } | Abilities { tunes: (_, false), .. } => {
            "transmits only: kaflow live with another radio as --rx-device".into()
        }
        Abilities { full_duplex: false, .. } => "half duplex: kaflow live needs two, as --tx-device and --rx-device".into(),
        Abilities { timestamps: false, .. } => {
            format!("kaflow live --device '{device}' --freq {frequency:e}; without timestamps the length of gaps is unknown")
        }
        _ => format!("kaflow live --device '{device}' --freq {frequency:e}"),
    };
    text += &format!("  {verdict}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_says_what_a_device_lacks() {
        let able = Abilities { channels: (1, 1), full_duplex: true, timestamps: true, tunes: (true, true), rates: Vec::new() };
        let with = |change: fn(&mut Abilities)| {
            let mut a = Abilities { rates: Vec::new(), ..able };
            change(&mut a);
            describe(&a, "driver=x", 5.4e9)
        };
        for (change, words) in [
            ((|_| ()) as fn(&mut Abilities), "kaflow live --device 'driver=x' --freq 5.4e9\n"),
            (|a| a.channels = (0, 0), "no channels"),
            (|a| a.tunes = (false, false), "does not reach 5.4 GHz"),
            (|a| a.channels.0 = 0, "receives only"),
            (|a| a.tunes.1 = false, "transmits only"),
            (|a| a.full_duplex = false, "needs two"),
            (|a| a.timestamps = false, "the length of gaps is unknown"),
        ] {
            assert!(with(change).contains(words), "{}", with(change));
        }
    }
}
