//! The amplifier's drive, step by step, as with a programmable attenuator.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::Ordering;

use num_complex::Complex32;
use serde_json::json;

use super::Session;
use crate::blocks::RadioConfig;
use crate::files::Output;
use crate::metrics::{AmCurve, AmPoint};
use crate::plot::{AmplifierCurve, am_am_pm};
use crate::{Error, Result};

/// Points of an AM/AM curve.
const BINS: usize = 24;

/// Samples over which the channel is taken to stand still.
const PIECE: usize = 256;

/// Seconds at each gain, when nobody says.
const SECONDS: f64 = 1.0;

struct Level {
    gain: f64,
    filters: Vec<(String, f64, f64)>,
    curve: Vec<AmPoint>,
}

pub(super) fn run(session: &Session<'_>, config: &RadioConfig, gains: &[f64]) -> Result<()> {
    let mut levels = Vec::new();
    for &gain in gains {
        if session.stop.load(Ordering::Relaxed) {
            break;
        }
        let mut config = config.clone();
        match &mut config.tx {
            Some(tx) => tx.gain = Some(gain),
            None => return Err(Error::parameter("sweep-tx-gain", "used with a transmitter", "--rx-only")),
        }
        eprintln!("kaflow: TX gain {gain} dB");
        let (survey, outcome, finished) = session.run(&config, Some(session.args.seconds.unwrap_or(SECONDS)))?;
        let (sent, received) = still(&survey.input, &survey.target);
        levels.push(Level {
            gain,
            filters: outcome.filters.iter().map(|f| (f.name.clone(), f.total.nmse_db(), f.total.evm_percent())).collect(),
            curve: AmCurve::measure(&sent, &received, BINS)?,
        });
        if let Some(fault) = finished.fault {
            write(session, &levels)?;
            return Err(fault);
        }
    }
    write(session, &levels)
}

/// Takes the channel's slow changes out: each piece is divided by its own mean gain, so that the curves of a fading channel add up.
fn still(sent: &[Complex32], received: &[Complex32]) -> (Vec<Complex32>, Vec<Complex32>) {
    let pieces = sent.chunks_exact(PIECE).zip(received.chunks_exact(PIECE));
    let gain = |x: &[Complex32], y: &[Complex32]| -> Complex32 {
        y.iter().zip(x).map(|(y, x)| y * x.conj()).sum::<Complex32>() / x.iter().map(|x| x.norm_sqr()).sum::<f32>().max(f32::MIN_POSITIVE)
    };
    let gains: Vec<Complex32> = pieces.clone().map(|(x, y)| gain(x, y)).collect();
    let mean = (gains.iter().map(|g| g.norm_sqr()).sum::<f32>() / gains.len().max(1) as f32).sqrt();
    let mut out = (Vec::new(), Vec::new());
    for ((x, y), g) in pieces.zip(&gains) {
        // A deep fade is mostly noise.
        if g.norm() > 0.3 * mean {
            out.0.extend_from_slice(x);
            out.1.extend(y.iter().map(|y| y / g * mean));
        }
    }
    out
}

/// How far the largest amplitudes lie below the straight line through the small ones, in dB.
fn compression_db(curve: &[AmPoint]) -> f64 {
    let small: Vec<_> = curve.iter().filter(|p| p.input < 0.5 * curve.last().map_or(0.0, |p| p.input) && p.samples >= 16).collect();
    let (output, input): (f64, f64) = small.iter().fold((0.0, 0.0), |(o, i), p| (o + p.output * p.input, i + p.input * p.input));
    match curve.iter().rev().find(|p| p.samples >= 16) {
        Some(last) if input > 0.0 && last.input > 0.0 => 20.0 * ((last.output / last.input) / (output / input)).log10(),
        _ => f64::NAN,
    }
}

fn write(session: &Session<'_>, levels: &[Level]) -> Result<()> {
    let track = session.track;
    let mut table = format!("{:>10} {:<12} {:>8} {:>8} {:>15}\n", "TX gain dB", "filter", "NMSE dB", "EVM %", "compression dB");
    let mut csv = String::from("tx_gain_db,filter,nmse_db,evm_percent,compression_db\n");
    let mut curves = String::from("tx_gain_db,input,output,phase_deg,spread,samples\n");
    for level in levels {
        let compression = compression_db(&level.curve);
        for (name, nmse, evm) in &level.filters {
            let _ = writeln!(table, "{:>10} {name:<12} {nmse:>8.2} {evm:>8.2} {compression:>15.2}", level.gain);
            let _ = writeln!(csv, "{},{name},{nmse},{evm},{compression}", level.gain);
        }
        for p in &level.curve {
            let _ = writeln!(curves, "{},{},{},{},{},{}", level.gain, p.input, p.output, p.phase_deg, p.spread, p.samples);
        }
    }
    if let Some(path) = &track.json {
        let levels: Vec<_> = levels
            .iter()
            .map(|level| {
                let filters: Vec<_> =
                    level.filters.iter().map(|(name, nmse, evm)| json!({"name": name, "nmse_db": nmse, "evm_percent": evm})).collect();
                let curve: Vec<_> = level.curve.iter().map(|p| json!([p.input, p.output, p.phase_deg])).collect();
                json!({"tx_gain_db": level.gain, "compression_db": compression_db(&level.curve), "filters": filters, "am_am_pm": curve})
            })
            .collect();
        let text = serde_json::to_string_pretty(&json!({ "levels": levels })).map_err(|e| Error::file(path, "json", e.to_string()))?;
        let mut out = Output::create(path, track.force)?;
        writeln!(out, "{text}").map_err(|e| Error::io(path, e))?;
        out.finish()?;
    }
    if let Some(folder) = &track.out {
        for (name, text) in [("sweep.csv", &csv), ("am-am.csv", &curves)] {
            let path = folder.join(name);
            let mut out = Output::create(&path, track.force)?;
            out.write_all(text.as_bytes()).map_err(|e| Error::io(&path, e))?;
            out.finish()?;
        }
        let curve = |level: &Level| AmplifierCurve {
            name: format!("{} dB", level.gain),
            input: level.curve.iter().map(|p| p.input).collect(),
            output: level.curve.iter().map(|p| p.output).collect(),
            phase_deg: level.curve.iter().map(|p| p.phase_deg).collect(),
        };
        let curves: Vec<_> = levels.iter().map(curve).collect();
        am_am_pm("Received against sent amplitude", &AmplifierCurve::default(), &curves).save(folder.join("am-am"))?;
    }
    let _ = write!(std::io::stdout().lock(), "{table}");
    Ok(())
}
