//! How near to the noise floor it comes, and how sure it is.

use kaflow::channel::{Doppler, Scenario, TestBed};
use kaflow::filter::ensemble::pair;
use kaflow::filter::{Filter, Guard, Residual, registry};
use kaflow::{Complex, Complex32};

use super::{Run, bare, common, ensemble, recorded, simulated, still, track};

#[test]
fn goals_are_reached_with_default_parameters() {
    const SEEDS: u64 = 10;
    for (preset, goal) in [("a", -19.35), ("d", -19.3), ("b", -10.1), ("e", -9.95)] {
        let runs: Vec<Run> = (1..=SEEDS)
            .map(|seed| {
                let (tx, rx) = simulated(preset, seed, 1e-3, 20_000);
                track(&mut ensemble(), &tx, &rx)
            })
            .collect();
        let mean = |f: &dyn Fn(&Run) -> f64| runs.iter().map(f).sum::<f64>() / SEEDS as f64;
        let (nmse, all, coverage) = (mean(&|r| r.nmse_from(500)), mean(&|r| r.nmse_from(0)), mean(&|r| r.coverage(500, preset == "e")));
        println!(
            "simulated {preset}: goal {goal:.2} dB, reached {nmse:.2} dB, from the first sample {all:.2} dB, 95 % intervals hold {coverage:.1} %"
        );
        assert!(nmse <= goal, "{preset}: {nmse}");
        assert!((94.0..=96.0).contains(&coverage), "{preset}: {coverage}");
        assert!(preset != "d" || all <= -18.8, "{all} from the first sample on");
    }
    let sets = [
        ("kafbox_mimotestbed8k", 4, 0, 500, -17.8),
        ("kafbox_mimotestbed8k", 6, 2, 500, -17.65),
        ("opendpd_dpa200", 4, 0, 8000, -35.2),
        ("opendpd_dpa200", 16, 4, 8000, -35.35),
        ("wifi80211a_6mbps", 4, 1, 10_000, -19.4),
        ("wifi80211a_6mbps", 6, 2, 10_000, -19.4),
        ("wifi80211a_6mbps", 8, 2, 10_000, -19.3),
    ];
    for (set, taps, advance, from, goal) in sets {
        let Some((tx, rx)) = recorded(set) else { continue };
        let (tx, rx) = pair(&tx, &rx, advance);
        let run = track(&mut Guard::new(bare(taps, advance)), tx, rx);
        let (nmse, coverage) = (run.nmse_from(from), run.coverage(from, set.starts_with("kafbox")));
        println!("{set}, {taps} taps, advance {advance}: goal {goal:.2} dB, reached {nmse:.2} dB, 95 % intervals hold {coverage:.1} %");
        assert!(nmse <= goal, "{set}: {nmse}");
        assert!(!set.starts_with("opendpd") || (94.0..=96.0).contains(&coverage), "{set}: {coverage}");
    }
}

/// Taps that come back are expected to: straight lines alone end at -17.9 and -8.3 dB.
#[test]
fn fast_fading_is_followed() {
    for (doppler, goal) in [(3e-3, -18.2), (1e-2, -9.8)] {
        let mean = (1..=4)
            .map(|seed| simulated("a", seed, doppler, 20_000))
            .map(|(tx, rx)| track(&mut ensemble(), &tx, &rx).nmse_from(500))
            .sum::<f64>()
            / 4.0;
        println!("simulated a, Doppler {doppler}: goal {goal:.2} dB, reached {mean:.2} dB");
        assert!(mean <= goal, "{doppler}: {mean}");
    }
}

#[test]
fn intervals_hold_however_good_the_predictions_are() {
    for noise_db in [20.0, 50.0, 75.0] {
        let (tx, rx) = still(120_000, noise_db);
        let run = track(&mut ensemble(), &tx, &rx);
        let (nmse, coverage) = (run.nmse_from(80_000), run.coverage(80_000, false));
        println!("noise at -{noise_db} dB: {nmse:.2} dB, 95 % intervals hold {coverage:.1} %");
        assert!((94.0..=96.0).contains(&coverage), "noise at -{noise_db} dB: {coverage} %");
    }
}

#[test]
fn the_offset_of_the_receiver_is_estimated() {
    let (tx, rx) = simulated("a", 2, 1e-3, 8000);
    let clean = track(&mut ensemble(), &tx, &rx).nmse_from(1000);
    let rms = (rx.iter().map(|y| y.norm_sqr()).sum::<f32>() / rx.len() as f32).sqrt();
    let offset = Complex::new(0.3, -0.5) * rms;
    let shifted: Vec<_> = rx.iter().map(|y| y + offset).collect();
    let mut tracker = ensemble();
    let run = track(&mut tracker, &tx, &shifted);
    // NMSE against the signal without its offset, which would flatter.
    let error: f32 = (1000..8000).map(|n| (shifted[n] - run.prediction[n]).norm_sqr()).sum();
    let nmse = 10.0 * f64::from(error / (1000..8000).map(|n| rx[n].norm_sqr()).sum::<f32>()).log10();
    assert!(nmse < clean + 0.1, "{nmse} instead of {clean}");
    let found = tracker.tracker().offset();
    let offset = Complex::new(f64::from(offset.re), f64::from(offset.im));
    assert!((found - offset).norm() < 0.05 * f64::from(rms), "{found} instead of {offset}");
}

#[test]
fn a_residual_stage_helps_on_a_measured_amplifier() {
    let Some((tx, rx)) = recorded("opendpd_dpa200") else { return };
    let spread = (4.0 * tx.iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>() / tx.len() as f64).sqrt();
    let run = |name: &str| {
        let settings = registry::recipe(name).unwrap().settle(&registry::Values::new(), spread).unwrap();
        track(&mut Guard::new(registry::tracker(&settings, 4).unwrap()), &tx, &rx).nmse_from(8000)
    };
    let (alone, both) = (run("ensemble"), run("residual"));
    println!("opendpd_dpa200, from 8001: ensemble {alone:.2} dB, residual {both:.2} dB");
    assert!(both < alone && both < -34.5, "{both} and {alone}");
}

#[test]
fn real_data_stay_real() {
    let (tx, rx) = simulated("e", 1, 1e-3, 6000);
    let run = track(&mut ensemble(), &tx, &rx);
    assert!(run.prediction.iter().all(|p| p.im == 0.0));
    assert!(run.nmse_from(500) < -9.0, "{}", run.nmse_from(500));
}

#[test]
fn the_carrier_is_found() {
    for offset in [-2e-3, 5e-4, 1.75e-3] {
        let mut scenario = Scenario { samples: 20_000, ..Scenario::preset("a").unwrap() };
        scenario.impairments.carrier_offset = offset;
        if let Some(fading) = &mut scenario.fading {
            fading.doppler = Doppler::Constant(1e-5);
        }
        let chunk = TestBed::run(&scenario).unwrap();
        let mut tracker = ensemble();
        let nmse = track(&mut tracker, &chunk.tx[0], &chunk.rx[0]).nmse_from(5000);
        let found = tracker.tracker().carrier() / std::f64::consts::TAU;
        println!("carrier offset {offset}: found {found:.6}, {nmse:.2} dB");
        assert!((found - offset).abs() < 1e-4, "{found} instead of {offset}");
        assert!(nmse < -19.5, "{nmse}");
    }
}

#[test]
fn the_bank_undoes_iq_imbalance_and_learns_the_memory_of_an_amplifier() {
    let (tx, _) = simulated("a", 6, 1e-3, 20_000);
    let noise = common::noise(4, tx.len());
    let g = |x: Complex32| x / (1.0 + x.norm_sqr());
    let rx: Vec<Complex32> = (0..tx.len())
        .map(|n| {
            // An echo that is saturated in another way than the direct path, an image, and a constant.
            let echo = if n > 0 { tx[n - 1] * tx[n - 1].norm_sqr() * 0.1 } else { Complex32::default() };
            let clean = g(tx[n]) + echo;
            clean + clean.conj() * Complex32::new(0.05, 0.02) + 0.1 + Complex::new(noise[n].re as f32, noise[n].im as f32) * 0.01
        })
        .collect();
    let run = track(&mut ensemble(), &tx, &rx);
    let nmse = run.nmse_from(8000);
    println!("amplifier with memory, image and offset: {nmse:.2} dB");
    assert!(nmse < -30.0, "{nmse}");
}

#[test]
fn the_second_stage_of_a_residual_finds_what_the_first_cannot() {
    // A linear first stage leaves the saturation to the second.
    let (tx, rx) = simulated("a", 13, 1e-5, 20_000);
    let linear = || kaflow::filter::Rls::new(4, 0.999, 1e-3).unwrap();
    let alone = track(&mut Guard::new(Filter::<f32>::on_stream(linear())), &tx, &rx).nmse_from(5000);
    let gaussian = kaflow::kernel::Gaussian::new(2.0).unwrap();
    let gain = kaflow::observation::Gain::Eta(0.2);
    let qklms = kaflow::filter::qklms(gaussian, gain, 1.0, kaflow::filter::Evict { budget: Some(300), floor: None }, 2).unwrap();
    let mut residual = Guard::new(Residual::new(linear().on_stream(), qklms.on_stream()));
    let both = track(&mut residual, &tx, &rx).nmse_from(5000);
    println!("linear {alone:.2} dB, with QKLMS on its error {both:.2} dB");
    assert!(both < alone - 0.5);
    // A second stage with nothing to find does no harm.
    let alone = track(&mut ensemble(), &tx, &rx).nmse_from(5000);
    let nothing = kaflow::filter::Nlms::new(4, 1.0, 1e-6).unwrap();
    let mut residual = Guard::new(Residual::new(Box::new(bare(4, 0)), nothing.on_stream()));
    let both = track(&mut residual, &tx, &rx).nmse_from(5000);
    assert!(both < alone + 0.1, "{both} and {alone}");
}
