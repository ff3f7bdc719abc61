//! Coded 16-QAM through a saturated amplifier and a slowly fading channel of one path, and of two: one tap a carrier against a receiver that learns the amplifier's curve.
//!
//! `cargo run --release --example equalizer`, and with `-- DIR` it draws both constellations (`constellations.png`) and packet errors over SNR (`packet_errors.png`).

use std::path::PathBuf;

use futuresdr::prelude::Result;
use kaflow::{
    channel::Profile,
    flowgraphs::equalize::{Link, run},
    ofdm::{self, Config, Rate, Reading},
    plot::{Axis, Constellation, Series, constellations, lines},
};
use num_complex::{Complex32, Complex64};

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
            clouds.push(Constellation { title: format!("{title}, {name}, EVM {:.1} %", q.evm.percent()), symbols: wide(&q.points) });
        }
    }
    let Some(folder) = folder else { return Ok(()) };
    let ideal = wide(ofdm::Constellation::new(ofdm.modulation).points());
    constellations("16-QAM behind a saturated amplifier", &clouds, &ideal).save(folder.join("constellations.png"))?;
    // Deeper in saturation, over a channel that fades a little from frame to frame.
    let mut errors = [Series::new("one tap a carrier", Vec::new()), Series::new("learned curve", Vec::new())];
    for snr_db in (8..=26).step_by(3).map(f64::from) {
        let deep = Link { doppler: 1e-5, frames: 100, ..link(4, -6.0, snr_db) };
        let (one_tap, read) = run(&deep, &Reading::default())?;
        for (series, q) in errors.iter_mut().zip([one_tap, read]) {
            series.points.push([snr_db, q.packet_errors()]);
        }
    }
    let axes = (Axis::new("SNR", "dB"), Axis::new("packet errors", "").range(0.0, 1.0));
    lines("16-QAM, back-off -6 dB, four paths", axes.0, axes.1, &errors).save(folder.join("packet_errors.png"))?;
    Ok(())
}

fn wide(points: &[Complex32]) -> Vec<Complex64> {
    points.iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect()
}
