//! Transmissions drawn at random: that no simple filter is ahead, whatever they are, and that taps there are too many of do no harm.

use kaflow::Complex32;
use kaflow::channel::{AmplifierConfig, FadingConfig, Model, Profile, Scenario, TestBed};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::simple::{another_band, behind};
use super::{bare, track};
use kaflow::filter::Guard;

/// One of the transmissions: what was sent, what was received, taps, and what it is.
fn case(seed: u64) -> (Vec<Complex32>, Vec<Complex32>, usize, String) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut pick = |from: &[f64]| from[rng.random_range(0..from.len())];
    let oversampling = pick(&[1.0, 1.0, 2.0, 3.0, 4.0]);
    let smoothness = pick(&[1.0, 2.0, f64::INFINITY]);
    let model = if smoothness.is_finite() { Model::Rapp { smoothness } } else { Model::Limiter };
    let (ibo_db, echoes, doppler) = (pick(&[-6.0, -2.0, 2.0, 6.0]), pick(&[1.0, 2.0, 3.0]), pick(&[0.0, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3]));
    let (snr_db, taps, band) = (pick(&[10.0, 16.0, 22.0, 28.0, 34.0, 40.0, 45.0]), pick(&[4.0, 4.0, 8.0]), pick(&[0.0, 0.0, 0.0, 0.1]));
    let mut scenario = Scenario {
        samples: 12_000,
        seed,
        snr_db: Some(snr_db),
        amplifier: Some(AmplifierConfig { ibo_db, model }),
        fading: Some(FadingConfig::new(Profile::exponential(echoes as u32, 3.0), doppler)),
        ..Scenario::preset("a").unwrap()
    };
    (scenario.ofdm.seed, scenario.ofdm.oversampling) = (seed, oversampling as usize);
    let mut chunk = TestBed::run(&scenario).unwrap();
    let (tx, rx) = (chunk.tx.remove(0), chunk.rx.remove(0));
    let rx = if band > 0.0 { another_band(&rx, band as f32) } else { rx };
    let words = format!(
        "seed {seed}: oversampling {oversampling}, smoothness {smoothness}, IBO {ibo_db} dB, {echoes} echoes, f_d T {doppler}, SNR {snr_db} dB, another band {band}, {taps} taps"
    );
    (tx, rx, taps as usize, words)
}

/// How many of these are behind by more than 0.3 dB, and by how much the worst.
fn check(seeds: std::ops::Range<u64>) -> (usize, f64) {
    let (mut count, mut worst) = (0, f64::NEG_INFINITY);
    for seed in seeds {
        let (tx, rx, taps, words) = case(seed);
        let (behind, nmse) = (behind(&tx, &rx, taps), track(&mut Guard::new(bare(taps, 0)), &tx, &rx).nmse_from(2000));
        if behind > 0.3 {
            count += 1;
            println!("{behind:.2} dB behind at {nmse:.2} dB: {words}");
        }
        worst = worst.max(behind);
    }
    (count, worst)
}

#[test]
fn simple_filters_are_hardly_ever_ahead_whatever_is_sent() {
    let (count, worst) = check(0..60);
    println!("{count} of 60 are behind by more than 0.3 dB, the worst by {worst:.2} dB");
    assert!(count <= 3 && worst < 3.0, "{count} of 60, the worst by {worst} dB");
}

#[test]
#[ignore = "takes two minutes"]
fn nor_are_they_in_a_thousand_cases() {
    let (count, worst) = check(1000..2000);
    println!("{count} of 1000 are behind by more than 0.3 dB, the worst by {worst:.2} dB");
    assert!(count <= 16, "{count} of 1000, the worst by {worst} dB");
}

/// An oversampled signal leaves most taps to chance, and a saturated amplifier tempts them: its curve is learned all the same.
#[test]
fn taps_that_nothing_needs_do_not_hide_the_amplifier() {
    for (oversampling, smoothness, seed) in [(3, f64::INFINITY, 1), (4, f64::INFINITY, 2), (3, 2.0, 3), (4, 2.0, 4), (4, 1.0, 5)] {
        let model = if f64::is_finite(smoothness) { Model::Rapp { smoothness } } else { Model::Limiter };
        let mut scenario = Scenario {
            samples: 12_000,
            seed,
            snr_db: Some(35.0),
            amplifier: Some(AmplifierConfig { ibo_db: -6.0, model }),
            fading: Some(FadingConfig::new(Profile::exponential(1, 3.0), 1e-4)),
            ..Scenario::preset("a").unwrap()
        };
        (scenario.ofdm.seed, scenario.ofdm.oversampling) = (seed, oversampling);
        let mut chunk = TestBed::run(&scenario).unwrap();
        let (tx, rx) = (chunk.tx.remove(0), chunk.rx.remove(0));
        let [one, eight] = [1, 8].map(|taps| track(&mut Guard::new(bare(taps, 0)), &tx, &rx).nmse_from(4000));
        println!("oversampling {oversampling}, smoothness {smoothness}: {one:.2} dB with one tap, {eight:.2} dB with eight");
        assert!(eight < one + 2.0, "oversampling {oversampling}, smoothness {smoothness}: {one} dB and {eight} dB");
    }
}
