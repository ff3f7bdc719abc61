//! Coded 16-QAM through a saturated amplifier and a slowly fading channel of one path, and of two: one tap a carrier against a receiver that learns the amplifier's curve.
//!
//! `cargo run --release --example equalizer`, and with `-- DIR` it draws both constellations (`constellations.svg`) and packet errors over SNR (`packet_errors.svg`).

use std::{fmt::Write as _, fs, path::PathBuf};

use futuresdr::prelude::Result;
use kaflow::{
    channel::Profile,
    flowgraphs::equalize::{Link, run},
    ofdm::{Config, Rate, Reading},
};
use num_complex::Complex32;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).map(PathBuf::from);
    let ofdm = Config { code: Some(Rate::Half), ..Config::preset("paper")? };
    let link = |paths: u32, ibo_db: f64, snr_db: f64| {
        let profile = Profile::exponential(paths, 3.0);
        Link { ofdm: ofdm.clone(), frames: 40, ibo_db, profile, doppler: 1e-6, snr_db, seed: 3 }
    };
    let mut clouds = Vec::new();
    println!("16-QAM, back-off 2 dB, 30 dB {:>20} {:>7} {:>7} {:>10} {:>8}", "frames", "decoded", "EVM %", "weighted %", "BER");
    for (paths, title) in [(1, "one path"), (2, "two paths")] {
        let (one_tap, read) = run(&link(paths, 2.0, 30.0), &Reading::default())?;
        for (name, q) in [("one tap a carrier", one_tap), ("learned curve, BDAR", read)] {
            let (plain, weighted) = (q.evm.percent(), q.weighted.percent());
            println!("{title:<20} {name:<21} {:>6} {:>7} {plain:>7.2} {weighted:>10.2} {:>8.1e}", q.packets, q.decoded, q.ber.rate());
            clouds.push((format!("{title}, {name}, EVM {:.1} %", q.evm.percent()), q.points));
        }
    }
    let Some(folder) = folder else { return Ok(()) };
    fs::write(folder.join("constellations.svg"), constellations(&clouds, &ofdm.modulation.points()))?;
    // Deeper in saturation, over a channel that fades a little from frame to frame.
    let mut errors = [("one tap a carrier", Vec::new()), ("learned curve", Vec::new())];
    for snr_db in (8..=26).step_by(3).map(f64::from) {
        let deep = Link { doppler: 1e-5, frames: 100, ..link(4, -6.0, snr_db) };
        let (one_tap, read) = run(&deep, &Reading::default())?;
        for ((_, points), q) in errors.iter_mut().zip([one_tap, read]) {
            points.push((snr_db, q.packet_errors()));
        }
    }
    fs::write(folder.join("packet_errors.svg"), packet_errors(&errors))?;
    Ok(())
}

const PAGE: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"12\" style=\"background:white\"";

/// The received symbols of each reading in a panel of its own, the constellation's points as crosses upon them.
fn constellations(clouds: &[(String, Vec<Complex32>)], ideal: &[Complex32]) -> String {
    let mut svg = format!("{PAGE} viewBox=\"0 0 {} 330\">", clouds.len() * 320);
    for (panel, (title, points)) in clouds.iter().enumerate() {
        let place = |z: &Complex32| (panel as f32 * 320.0 + 160.0 + 95.0 * z.re, 175.0 - 95.0 * z.im);
        let _ = write!(svg, "<text x=\"{}\" y=\"16\" text-anchor=\"middle\">{title}</text>", panel * 320 + 160);
        for (x, y) in points.iter().filter(|z| z.norm() < 1.6).take(4000).map(place) {
            let _ = write!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\".8\" fill=\"#4477aa\"/>");
        }
        for (x, y) in ideal.iter().map(place) {
            let _ = write!(svg, "<path d=\"M{:.1} {y:.1}h8m-4-4v8\" stroke=\"black\"/>", x - 4.0);
        }
    }
    svg + "</svg>"
}

/// A curve for each receiver: packet errors from none to all, over SNR.
fn packet_errors(curves: &[(&str, Vec<(f64, f64)>)]) -> String {
    let place = |&(snr_db, errors): &(f64, f64)| (60.0 + (snr_db - 8.0) * 25.0, 260.0 - 220.0 * errors);
    let mut svg = format!(
        "{PAGE} viewBox=\"0 0 560 310\"><text x=\"60\" y=\"20\">packet errors over SNR in dB: 16-QAM, back-off -6 dB, four paths</text>"
    );
    for errors in [0.0, 0.5, 1.0] {
        let (x, y) = place(&(8.0, errors));
        let _ = write!(
            svg,
            "<path d=\"M{x} {y}h450\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{errors}</text>",
            x - 8.0,
            y + 4.0
        );
    }
    for (snr_db, _) in &curves[0].1 {
        let _ = write!(svg, "<text x=\"{}\" y=\"280\" text-anchor=\"middle\">{snr_db}</text>", place(&(*snr_db, 0.0)).0);
    }
    for (at, ((name, points), colour)) in curves.iter().zip(["#ee6677", "#4477aa"]).enumerate() {
        let path: Vec<String> = points.iter().map(|p| format!("{:.1} {:.1}", place(p).0, place(p).1)).collect();
        let _ = write!(svg, "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>", path.join("L"));
        let _ = write!(svg, "<text x=\"380\" y=\"{}\" fill=\"{colour}\">{name}</text>", 60 + 18 * at);
    }
    svg + "</svg>"
}
