use super::*;
use crate::channel::{Impairments, ImpairmentsConfig};
use crate::dsp::db;
use crate::ofdm::{Config, RandomBits, Source, Transmitter};

fn frame() -> Vec<Complex32> {
    let config = Config { symbols: 50, ..Config::default() };
    let mut bits = vec![0; config.payload_bits()];
    RandomBits::new(3).fill(&mut bits);
    let mut frame = vec![Complex32::ZERO; config.frame_samples()];
    Transmitter::new(config, Source::Repeat(bits)).unwrap().fill(&mut frame);
    frame
}

fn received(frame: &[Complex32], n: usize, impairments: &ImpairmentsConfig) -> Vec<Complex32> {
    let sent: Vec<Complex32> = (0..n).map(|i| frame[(i + 777) % frame.len()]).collect();
    let mut rx = Vec::new();
    Impairments::new(impairments, 30.0, 1).unwrap().process(&sent, &mut rx);
    rx.iter().map(|z| z * 0.25).collect()
}

/// What one complex gain leaves in pieces of 512, as a tracker would follow the phase.
fn nmse_db(tx: &[Complex32], rx: &[Complex32]) -> f64 {
    let (mut error, mut power) = (0.0, 0.0);
    for (x, y) in tx.chunks(512).zip(rx.chunks(512)) {
        let h: Complex32 = y.iter().zip(x).map(|(y, x)| y * x.conj()).sum::<Complex32>() / x.iter().map(|x| x.norm_sqr()).sum::<f32>();
        error += y.iter().zip(x).map(|(y, x)| (y - x * h).norm_sqr()).sum::<f32>();
        power += y.iter().map(|y| y.norm_sqr()).sum::<f32>();
    }
    db(error.into(), power.into())
}

#[test]
fn delay_carrier_offset_and_drift_are_followed() {
    let frame = frame();
    for (delay, cfo, ppm) in [(0.0, 0.0, 0.0), (100.3, 0.0, 0.0), (40.0, 2e-3, 0.0), (7.0, 0.0, 5.0), (3000.6, -1e-3, -50.0), (3.2, 2e-3, 50.0)] {
        let impairments = ImpairmentsConfig { delay, carrier_offset: cfo, sample_offset_ppm: ppm, ..ImpairmentsConfig::default() };
        let rx = received(&frame, 1_200_000, &impairments);
        let (mut sync, mut out) = (Synchroniser::repeated(frame.clone()).unwrap(), Pairs::default());
        for piece in rx.chunks(5000) {
            sync.receive(piece, None);
            sync.run(&mut out).unwrap();
        }
        let status = sync.status();
        println!("{delay} {cfo} {ppm}: {} {} {status:?}", nmse_db(&out.tx[..600_000], &out.rx), nmse_db(&out.tx[600_000..], &out.rx[600_000..]));
        assert_eq!((out.tx.len(), status.searches), (out.rx.len(), 1), "{delay} {cfo} {ppm}");
        assert!(out.tx.len() > 1_190_000);
        assert!((status.cfo - cfo).abs() < 1e-6 && (status.clock_ppm + ppm).abs() < 0.2, "{status:?}");
        let nmse = nmse_db(&out.tx[600_000..], &out.rx[600_000..]);
        assert!(nmse < -29.0, "delay {delay}, cfo {cfo}, {ppm} ppm: {nmse} dB");
    }
}

#[test]
fn gaps_keep_the_pairs_together_and_have_the_right_length() {
    let frame = frame();
    for (delay, cfo) in [(40.0, 0.0), (40.4, 1e-3)] {
        let impairments = ImpairmentsConfig { delay, carrier_offset: cfo, ..ImpairmentsConfig::default() };
        let rx = received(&frame, 400_000, &impairments);
        let (mut sync, mut out) = (Synchroniser::repeated(frame.clone()).unwrap(), Pairs::default());
        let (mut at, mut lost, mut gap) = (0, 0, None);
        for k in 0.. {
            let n = 7000 + 13 * (k % 50);
            let Some(piece) = rx.get(at..at + n) else { break };
            sync.receive(piece, gap);
            sync.run(&mut out).unwrap();
            let missing = 1 + 37 * (k % 40);
            gap = Some(missing as u64);
            at += n + missing;
            lost += missing;
        }
        assert!(lost > 20_000 && out.gaps.len() > 30);
        // Pairs and gaps together are all the time there was, up to what waits inside.
        let gaps: u64 = out.gaps.iter().map(|g| g.1).sum();
        assert!((out.tx.len() as u64 + gaps).abs_diff(400_000) < 30_000);
        assert!(nmse_db(&out.tx, &out.rx) < -28.0, "{}", nmse_db(&out.tx, &out.rx));
        assert_eq!((sync.status().searches, sync.status().slips, sync.status().doubtful_samples), (1, 0, 0), "{:?}", sync.status());
    }
}
