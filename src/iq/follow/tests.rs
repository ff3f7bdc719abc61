use super::*;
use crate::channel::{Impairments, ImpairmentsConfig, Stage};
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

fn nmse_db(out: &Followed, from: usize) -> f32 {
    // One complex gain in pieces of 512, as a tracker would follow the phase.
    let (mut error, mut power) = (0.0, 0.0);
    for (x, y) in out.tx[from..].chunks(512).zip(out.rx[from..].chunks(512)) {
        let h: Complex32 = y.iter().zip(x).map(|(y, x)| y * x.conj()).sum::<Complex32>() / x.iter().map(|x| x.norm_sqr()).sum::<f32>();
        error += y.iter().zip(x).map(|(y, x)| (y - x * h).norm_sqr()).sum::<f32>();
        power += y.iter().map(|y| y.norm_sqr()).sum::<f32>();
    }
    10.0 * (error / power).log10()
}

#[test]
fn delay_carrier_offset_and_drift_are_followed() {
    let frame = frame();
    for (delay, cfo, ppm) in [(0.0, 0.0, 0.0), (100.3, 0.0, 0.0), (40.0, 2e-3, 0.0), (7.0, 0.0, 5.0), (3000.6, -1e-3, -8.0)] {
        let impairments = ImpairmentsConfig { delay, carrier_offset: cfo, sample_offset_ppm: ppm, ..ImpairmentsConfig::default() };
        let rx = received(&frame, 1_200_000, &impairments);
        let (mut follower, mut out) = (Follower::new(frame.clone()).unwrap(), Followed::default());
        rx.chunks(5000).for_each(|piece| follower.push(piece, None, &mut out));
        let lock = follower.lock().unwrap();
        assert_eq!((out.tx.len(), lock.searches), (out.rx.len(), 1), "{delay} {cfo} {ppm}");
        assert!(out.tx.len() > 1_190_000);
        assert!((lock.cfo - cfo).abs() < 1e-5 && (lock.drift_ppm + ppm).abs() < 1.0, "{lock:?}");
        let nmse = nmse_db(&out, 600_000);
        assert!(nmse < -25.0, "delay {delay}, cfo {cfo}, {ppm} ppm: {nmse} dB");
    }
}

#[test]
fn holes_keep_the_pairs_together_and_have_the_right_length() {
    let frame = frame();
    for (delay, cfo) in [(40.0, 0.0), (40.4, 1e-3)] {
        let impairments = ImpairmentsConfig { delay, carrier_offset: cfo, ..ImpairmentsConfig::default() };
        let rx = received(&frame, 400_000, &impairments);
        let (mut follower, mut out) = (Follower::new(frame.clone()).unwrap(), Followed::default());
        let (mut at, mut lost, mut hole) = (0, 0, None);
        for k in 0.. {
            let n = 7000 + 13 * (k % 50);
            let Some(piece) = rx.get(at..at + n) else { break };
            follower.push(piece, hole, &mut out);
            let missing = 1 + 37 * (k % 40);
            hole = Some(missing as u64);
            at += n + missing;
            lost += missing;
        }
        assert!(lost > 20_000 && out.gaps.len() > 30);
        // Pairs and gaps together are all the time there was, up to what waits inside.
        let gaps: u64 = out.gaps.iter().map(|g| g.1).sum();
        assert!((out.tx.len() as u64 + gaps).abs_diff(400_000) < 30_000);
        assert!(nmse_db(&out, 0) < -25.0, "{}", nmse_db(&out, 0));
        assert_eq!(follower.lock().unwrap().searches, 1);
    }
}

#[test]
fn a_clock_that_is_set_without_a_loss_needs_no_search() {
    let frame = frame();
    for (delay, cfo, lead) in [(0.0, 0.0, 0), (3000.0, 2e-3, 2), (41.0, -1e-4, 0)] {
        let impairments = ImpairmentsConfig { delay, carrier_offset: cfo, ..ImpairmentsConfig::default() };
        let rx = received(&frame, 200_000, &impairments);
        let (mut follower, mut out) = (Follower::new(frame.clone()).unwrap().lead(lead), Followed::default());
        follower.push(&rx[..60_000], None, &mut out);
        rx[60_000..].chunks(1777).for_each(|piece| follower.push(piece, Some(0), &mut out));
        assert_eq!(follower.lock().unwrap().searches, 1, "delay {delay}, offset {cfo}");
        assert!(out.gaps.len() >= 79 && out.gaps.iter().all(|gap| gap.1 == 0) && out.tx.len() > 198_000, "{:?}", out.gaps);
        assert!(nmse_db(&out, 0) < -25.0, "{}", nmse_db(&out, 0));
    }
}

#[test]
fn a_hole_of_unknown_length_is_searched_across_and_noise_is_never_locked_to() {
    let frame = frame();
    let rx = received(&frame, 200_000, &ImpairmentsConfig::default());
    let (mut follower, mut out) = (Follower::new(frame).unwrap(), Followed::default());
    follower.push(&rx[..80_000], None, &mut out);
    follower.push(&rx[81_234..], Some(0), &mut out);
    assert_eq!(out.gaps.iter().filter(|g| g.1 == 0).count(), 1);
    assert!(nmse_db(&out, 0) < -25.0);
    assert_eq!(follower.lock().unwrap().searches, 2);
    let mut noise = vec![Complex32::ZERO; 100_000];
    crate::channel::Noise::new(0.0, 5).unwrap().process(&mut noise);
    let before = out.tx.len();
    follower.push(&noise, Some(0), &mut out);
    assert!(follower.lock().is_none() && out.tx.len() == before && follower.failure().is_some());
}
