//! What was received: lines, JSON, files, a page.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{Outcome, waveform::Waveform};
use crate::cli::{interrupt, json, outputs};
use crate::dsp::db;
use crate::files::write as write_file;
use crate::ofdm::{Constellation, Curve, Method};
use crate::plot::{self, AmplifierCurve, Figure};
use crate::{Complex32, Complex64, Result};

/// Prints what was found in `file`, and writes it where that was asked for.
pub(super) fn write(file: &Path, outcome: &Outcome, json: Option<&Path>, folder: Option<&Path>) -> Result<()> {
    let lines = lines(outcome);
    // The lines first: a disk that is full must not take them along.
    say!("{}", file.display());
    for (name, text) in &lines {
        say!("  {name:<12} {text}");
    }
    let json = json.map(|path| json::write(path, "receive", numbers(file, outcome)));
    let page = folder.map(|folder| {
        crate::files::make_folder(folder)?;
        files(folder, file, outcome, &lines)?;
        say!("{}", folder.join("report.html").display());
        Ok(())
    });
    outputs::all(json.into_iter().chain(page))
}

fn hertz(outcome: &Outcome, offset: f64) -> String {
    outcome.rate.map_or(format!("{offset:.3e} cycles a sample"), |rate| format!("{:.1} Hz", offset * rate))
}

/// What the terminal and the page say.
fn lines(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let r = &outcome.reception;
    let mut lines = vec![("waveform", format!("{} ({})", outcome.waveform, outcome.origin))];
    let helped = if r.helped > 0 { format!(", {} of them with the decoder's feedback", r.helped) } else { String::new() };
    let coded = matches!(&outcome.waveform, Waveform::Station) || matches!(&outcome.waveform, Waveform::Frames(c) if c.code.is_some());
    let decoded = if coded { format!("{} decoded{helped}", r.decoded) } else { "bits decided, no code to check them".into() };
    if interrupt::requested() {
        lines.push(("interrupted", "this is what was found until then".into()));
    }
    if r.found == 0 {
        lines.push(("packets", "0 found".into()));
        lines.push(("hint", hint(outcome)));
        return lines;
    }
    lines.push(("packets", format!("{} found, {decoded}", r.found)));
    if r.found > r.packets.len() as u64 {
        lines.push(("listed", format!("the first {}", r.packets.len())));
    }
    let before = if r.one_tap.points() > 0 { format!(" (one tap a carrier: {:.1} %)", r.one_tap.percent()) } else { String::new() };
    lines.push(("EVM", format!("{:.1} % by {}, against decided points{before}", r.evm.percent(), outcome.method)));
    lines.push(("SNR", format!("{:.1} dB", r.snr_db())));
    lines.push(("carrier", hertz(outcome, r.offset())));
    for (i, signal) in outcome.signals.iter().enumerate() {
        let text = match signal {
            Some(s) => {
                let sum = if r.packets[i].decoded { "checksum right" } else { "checksum wrong" };
                format!("packet {i}: SIGNAL {} Mbit/s, {} bytes, {} symbols of {}, {sum}", s.mbps, s.length, s.symbols(), s.modulation)
            }
            None => format!("packet {i}: SIGNAL not readable"),
        };
        lines.push(("station", text));
    }
    if let Some((curve, symbols)) = &outcome.curve {
        let (compression, phase) = bend(curve);
        let text = match compression {
            c if c < 0.3 => "no saturation to speak of".to_owned(),
            c => format!("{c:.1} dB less gain at twice the rms than at a quarter of it, phase {phase:+.1}°"),
        };
        lines.push(("amplifier", format!("{text}, learned from {symbols} symbols")));
    }
    lines
}

/// Why there may be no packet.
fn hint(outcome: &Outcome) -> String {
    let s = outcome.sighted;
    let preamble = match &outcome.waveform {
        Waveform::Station => "802.11's preamble at 20 MS/s".to_owned(),
        Waveform::Frames(c) => {
            let kind = if (c.fft, c.active) == (64, 52) { "802.11's sequences" } else { "quadratic phases" };
            format!(
                "a short training that repeats every {} samples and a long one of {} samples, {kind}, at {} MS/s",
                c.fft * c.oversampling / 4,
                c.fft * c.oversampling,
                c.output_rate() / 1e6
            )
        }
    };
    let mut text = format!("looked for {preamble}; best correlation of the short training {:.2} (needed {:.2})", s.short, s.short_needed);
    if s.short > s.short_needed {
        let _ = write!(text, ", of the long training {:.2} (needed {:.2})", s.long, s.long_needed);
    }
    let wanted = match &outcome.waveform {
        Waveform::Station => 20e6,
        Waveform::Frames(c) => c.output_rate(),
    };
    match outcome.rate {
        Some(rate) if (rate / wanted - 1.0).abs() > 1e-3 => {
            let _ = write!(text, "; the recording has {} MS/s: a waveform with that rate may fit (--waveform FILE)", rate / 1e6);
        }
        _ => text += "; if there should be packets, state their waveform with --waveform",
    }
    text
}

/// How many dB of gain, and how many degrees, lie between a quarter of the rms and twice the rms.
fn bend(curve: &Curve) -> (f64, f64) {
    let (low, high) = (curve.gain(0.25), curve.gain(2.0));
    (db(low.norm_sqr(), high.norm_sqr()), (high / low).arg().to_degrees())
}

fn numbers(file: &Path, outcome: &Outcome) -> Value {
    let r = &outcome.reception;
    let some = |value: f64| (r.found > 0).then_some(value);
    let packets: Vec<Value> = r
        .packets
        .iter()
        .map(|p| {
            json!({ "start": p.start, "snr_db": p.snr_db, "offset_cycles_per_sample": p.offset, "evm_percent": p.evm_percent, "decoded": p.decoded })
        })
        .collect();
    let signals: Vec<Value> = outcome
        .signals
        .iter()
        .map(|s| {
            s.map_or(
                Value::Null,
                |s| json!({ "mbps": s.mbps, "length": s.length, "modulation": s.modulation.name(), "rate": s.rate.name() }),
            )
        })
        .collect();
    let amplifier = outcome.curve.as_ref().filter(|_| r.found > 0).map(|(curve, symbols)| {
        let (compression_db, phase_deg) = bend(curve);
        let points: Vec<Value> = shape(curve).map(|(input, output, phase)| json!([input, output, phase])).collect();
        json!({ "compression_db": compression_db, "phase_deg": phase_deg, "symbols": symbols, "am_am_pm": points })
    });
    let waveform = match &outcome.waveform {
        Waveform::Station => json!(super::waveform::STATION),
        Waveform::Frames(config) => json!(config),
    };
    json!({
        "file": file.display().to_string(),
        "samples": outcome.samples,
        "interrupted": interrupt::requested(),
        "sample_rate": outcome.rate,
        "waveform": waveform,
        "waveform_from": outcome.origin,
        "detector": outcome.method.name(),
        "packets_found": r.found,
        "packets_decoded": r.decoded,
        "packets_helped": r.helped,
        "evm_percent": some(r.evm.percent()),
        "evm_one_tap_percent": (r.one_tap.points() > 0).then(|| r.one_tap.percent()),
        "snr_db": some(r.snr_db()),
        "carrier_offset_hz": outcome.rate.and_then(|rate| some(r.offset() * rate)),
        "carrier_offset_cycles_per_sample": some(r.offset()),
        "amplifier": amplifier,
        "signals": signals,
        "correlation": { "short": outcome.sighted.short, "short_needed": outcome.sighted.short_needed,
                         "long": outcome.sighted.long, "long_needed": outcome.sighted.long_needed },
        "packets": packets,
    })
}

/// Input and output amplitude and phase in degrees along a curve.
fn shape(curve: &Curve) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
    (1..=60).map(|i| f64::from(i) / 20.0).map(|r| (r, r * curve.gain(r).norm(), curve.gain(r).arg().to_degrees()))
}

fn pictures(outcome: &Outcome) -> Vec<(&'static str, Figure)> {
    let r = &outcome.reception;
    let wide = |points: &[Complex32]| points.iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect::<Vec<_>>();
    let ideal = match &outcome.waveform {
        Waveform::Frames(c) => wide(Constellation::new(c.modulation).points()),
        Waveform::Station => Vec::new(),
    };
    let mut clouds = Vec::new();
    if !r.before.is_empty() {
        clouds
            .push(plot::Constellation { title: format!("one tap a carrier, EVM {:.1} %", r.one_tap.percent()), symbols: wide(&r.before) });
    }
    let by = if outcome.method == Method::OneTap { "one tap a carrier".to_owned() } else { outcome.method.name().to_uppercase() };
    clouds.push(plot::Constellation { title: format!("{by}, EVM {:.1} %", r.evm.percent()), symbols: wide(&r.points) });
    let mut figures = vec![("constellation", plot::constellations("Received points", &clouds, &ideal))];
    if let Some((curve, symbols)) = &outcome.curve {
        let mut learned = AmplifierCurve { name: "learned".into(), ..AmplifierCurve::default() };
        for (input, output, phase) in shape(curve) {
            learned.input.push(input);
            learned.output.push(output);
            learned.phase_deg.push(phase);
        }
        let title = format!("The transmitter's amplifier, learned from {symbols} symbols");
        let caption = "Amplitudes in units of the signal's rms before clipping; the output has rms 1 and, on average, phase 0.";
        // Tenths of a degree are noise: they must not fill the panel.
        let reach = learned.phase_deg.iter().map(|p| 1.2 * p.abs()).fold(5.0, f64::max);
        let mut figure = plot::am_am_pm(title, &AmplifierCurve::default(), &[learned]).captioned(caption);
        if let Some(panel) = figure.panels.get_mut(1) {
            panel.y = panel.y.clone().range(-reach, reach);
        }
        figures.push(("amplifier", figure));
    }
    figures
}

fn files(folder: &Path, file: &Path, outcome: &Outcome, lines: &[(&str, String)]) -> Result<()> {
    let r = &outcome.reception;
    let mut payload = String::new();
    for bits in &r.bits {
        payload.extend(bits.iter().map(|bit| if bit & 1 == 1 { '1' } else { '0' }));
        payload.push('\n');
    }
    write_file(&folder.join("payload.txt"), payload.as_bytes())?;
    let mut table = "start,snr_db,offset_cycles_per_sample,evm_percent,decoded\n".to_owned();
    for p in &r.packets {
        let _ = writeln!(table, "{},{:?},{:?},{:?},{}", p.start, p.snr_db, p.offset, p.evm_percent, p.decoded);
    }
    write_file(&folder.join("packets.csv"), table.as_bytes())?;
    let mut figures = String::new();
    if r.found > 0 {
        for (name, figure) in pictures(outcome) {
            figure.save(folder.join(name))?;
            let _ = writeln!(figures, "<figure>{}</figure>", figure.svg());
        }
    }
    let rows: String = lines.iter().map(|(name, text)| format!("<tr><th>{name}</th><td>{}</td></tr>\n", escape(text))).collect();
    let page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>kaflow: packets received</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <style>:root{{color-scheme:light dark}}body{{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em}}\
         th,td{{padding:.1em 1.5em .1em 0;text-align:left;vertical-align:top}}\
         figure{{margin:1.5em 0}}svg{{max-width:100%;height:auto;border-radius:4px}}</style>\n\
         </head><body>\n<h1>kaflow: packets received</h1>\n<p>{}</p>\n<table>{rows}</table>\n{figures}</body></html>\n",
        escape(&file.display().to_string())
    );
    write_file(&folder.join("report.html"), page.as_bytes())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
