//! Simulated pairs whose truth is known, recorded pairs, and pairs that are none.

use std::f64::consts::TAU;
use std::path::PathBuf;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::dsp::Fourier;

mod confidence;

fn gaussian(rng: &mut ChaCha8Rng) -> Complex64 {
    let radius = (-(1.0 - rng.random::<f64>()).ln()).sqrt();
    Complex64::cis(TAU * rng.random::<f64>()) * radius
}

/// OFDM of power 1: 16-QAM on 52 of 64 carriers, prefix 16, `over` times oversampled, clipped 6 dB above rms.
fn ofdm(samples: usize, over: usize, rng: &mut ChaCha8Rng) -> Vec<Complex64> {
    let size = 64 * over;
    let mut fourier = Fourier::double(size);
    let mut out = Vec::new();
    while out.len() < samples {
        let mut bins = vec![Complex64::default(); size];
        for k in (-26..=26_i64).filter(|&k| k != 0) {
            let mut level = || f64::from(2 * rng.random_range(0..4) - 3);
            bins[k.rem_euclid(size as i64) as usize] = Complex64::new(level(), level());
        }
        fourier.inverse(&mut bins);
        out.extend_from_slice(&bins[size - 16 * over..]);
        out.extend_from_slice(&bins);
    }
    out.truncate(samples);
    let rms = (out.iter().map(|z| z.norm_sqr()).sum::<f64>() / samples as f64).sqrt();
    out.iter_mut().for_each(|z| *z *= (2.0 * rms / z.norm()).min(1.0) / rms);
    out
}

/// `x(n - delay)`, exactly, with what comes in from outside being zero.
fn delayed(x: &[Complex64], delay: f64, length: usize) -> Vec<Complex64> {
    let size = (x.len().max(length) + delay.abs() as usize + 64).next_power_of_two() * 2;
    let mut bins = x.to_vec();
    bins.resize(size, Complex64::default());
    let mut fourier = Fourier::double(size);
    fourier.forward(&mut bins);
    for (i, z) in bins.iter_mut().enumerate() {
        let f = if i < size / 2 { i as f64 } else { i as f64 - size as f64 } / size as f64;
        *z *= Complex64::cis(-TAU * f * delay) / size as f64;
    }
    fourier.inverse(&mut bins);
    bins.truncate(length);
    bins
}

#[derive(Clone, Copy, Debug)]
struct Case {
    over: usize,
    samples: usize,
    delay: f64,
    cfo: f64,
    gain: f64,
    dc: Complex64,
    inverted: bool,
    paths: &'static [(f64, f64)],
    snr_db: f64,
}

const FLAT: &[(f64, f64)] = &[(1.0, 0.3)];

fn case() -> Case {
    Case { over: 1, samples: 60_000, delay: 0.0, cfo: 0.0, gain: 1.0, dc: Complex64::default(), inverted: false, paths: FLAT, snr_db: 10.0 }
}

fn narrow(x: &[Complex64]) -> Vec<Complex32> {
    x.iter().map(|z| Complex32::new(z.re as f32, z.im as f32)).collect()
}

/// `tx`, `rx` and the amplitude ratio between them.
fn simulate(case: &Case, seed: u64) -> (Vec<Complex32>, Vec<Complex32>, f64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let tx = ofdm(case.samples, case.over, &mut rng);
    let length = (case.samples as f64 + case.delay) as usize;
    let mut rx = vec![Complex64::default(); length];
    for (i, &(amplitude, phase)) in case.paths.iter().enumerate() {
        let late = delayed(&tx, case.delay + i as f64, length);
        rx.iter_mut().zip(late).for_each(|(sum, z)| *sum += z * Complex64::from_polar(amplitude, phase));
    }
    let power = rx.iter().map(|z| z.norm_sqr()).sum::<f64>() / case.samples as f64;
    let noise = (power * 10_f64.powf(-case.snr_db / 10.0)).sqrt();
    for (n, z) in rx.iter_mut().enumerate() {
        let clean = if case.inverted { z.conj() } else { *z };
        *z = (clean * Complex64::cis(TAU * case.cfo * n as f64) + gaussian(&mut rng) * noise) * case.gain + case.dc;
    }
    (narrow(&tx), narrow(&rx), power.sqrt() * case.gain)
}

#[test]
fn delay_is_right_to_a_twentieth_of_a_sample_and_carrier_to_10_hz_at_20_ms() {
    let paths: &[(f64, f64)] = &[(1.0, 0.3), (0.7, -2.0), (0.5, 1.0), (0.35, 2.5)];
    let late: &[(f64, f64)] = &[(0.5, 0.3), (1.0, 2.0), (0.5, -1.0)];
    let cases = [
        case(),
        Case { delay: 0.5, ..case() },
        Case { delay: 1234.37, cfo: -35e3 / 20e6, ..case() },
        Case { delay: -777.8, cfo: 0.01, gain: 0.01, ..case() },
        Case { delay: 100_000.25, samples: 150_000, cfo: 0.2, dc: Complex64::new(0.1, -0.2), ..case() },
        Case { delay: 99.9, over: 4, cfo: 1e-4, ..case() },
        Case { delay: 31.4, cfo: 3e-3, inverted: true, gain: 40.0, ..case() },
        Case { delay: 5000.0, cfo: 1e-3, paths, ..case() },
        Case { delay: 20.3, cfo: -1e-3, paths, ..case() },
        Case { delay: 4321.0, paths: late, ..case() },
        Case { delay: 17.66, snr_db: 40.0, ..case() },
        Case { delay: 17.66, snr_db: 0.0, ..case() },
    ];
    for (seed, case) in cases.iter().enumerate() {
        let (tx, rx, gain) = simulate(case, seed as u64);
        let found = align(&tx, &rx, Options::default()).unwrap_or_else(|e| panic!("{case:?}: {e}"));
        println!(
            "{case:?}\n -> {found:?}\n delay off by {:.4}, carrier by {:.2} Hz",
            found.delay - case.delay,
            (found.cfo - case.cfo) * 20e6
        );
        assert!((found.delay - case.delay).abs() < 0.05, "{case:?}: {found:?}");
        assert!((found.cfo - case.cfo).abs() * 20e6 < 10.0, "{case:?}: {found:?}");
        assert_eq!(found.inverted, case.inverted, "{case:?}");
        assert!((found.gain / gain - 1.0).abs() < 0.05, "{case:?}: {found:?}");
        assert!((found.dc - case.dc).norm() < 0.02 * case.gain, "{case:?}: {found:?}");
        assert!(found.confidence > if case.over > 1 { 0.8 } else { 0.9 } && found.advance == 0, "{case:?}: {found:?}");
        let snr = 10_f64.powf(case.snr_db / 10.0);
        assert!(
            (found.explained - snr / (1.0 + snr)).abs() < 0.02 + 0.2 * (case.samples as f64 / rx.len() as f64 - 1.0).abs(),
            "{case:?}: {found:?}"
        );
    }
}

#[test]
fn applying_an_alignment_leaves_only_the_noise() {
    let case =
        Case { delay: 300.3, cfo: 2e-3, dc: Complex64::new(0.3, 0.1), gain: 3.0, snr_db: 30.0, inverted: true, samples: 20_000, ..case() };
    let (tx, rx, _) = simulate(&case, 5);
    let found = align(&tx, &rx, Options::default()).unwrap();
    let (a, b) = found.apply(&tx, &rx);
    assert_eq!((a.len(), a[0]), (b.len(), tx[0]));
    let level = found.gain as f32;
    let inner = 100..a.len() - 100;
    let turn =
        Complex32::from_polar(1.0, a[inner.clone()].iter().zip(&b[inner.clone()]).map(|(a, b)| b * a.conj()).sum::<Complex32>().arg());
    let error: f32 = a[inner.clone()].iter().zip(&b[inner.clone()]).map(|(a, b)| (b / level - a * turn).norm_sqr()).sum();
    let nmse = 10.0 * (error / inner.len() as f32).log10();
    assert!(nmse < -27.0, "{nmse} dB left");

    // In pieces of any size it is the same.
    let (mut sync, mut pairs) = (Synchroniser::known(found), Pairs::default());
    for (tx, rx) in tx.chunks(17).zip(rx.chunks(17)) {
        sync.send(tx, None);
        sync.receive(rx, None);
        sync.run(&mut pairs).unwrap();
    }
    sync.receive(&rx[tx.len().div_ceil(17) * 17..], None);
    sync.finish(&mut pairs).unwrap();
    assert_eq!((pairs.tx, pairs.rx), (a, b));
}

fn recorded(set: &str, name: &str) -> Option<Recording> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(set).join(name);
    let recording = Recording::open(&path, None);
    if recording.is_err() {
        eprintln!("SKIPPED: no development recording at {}", path.display());
    }
    recording.ok()
}

const SETS: [&str; 3] = ["kafbox_mimotestbed8k", "opendpd_dpa200", "wifi80211a_6mbps"];

#[test]
fn recorded_pairs_are_aligned() {
    for (set, delay, cfo_hz) in [(SETS[0], 0.0, 0.0), (SETS[1], 0.0, 0.0), (SETS[2], 0.0, -35_300.0)] {
        let (Some(mut tx), Some(mut rx)) = (recorded(set, "tx"), recorded(set, "rx")) else { return };
        let found = align_recordings(&mut tx, &mut rx, Options::default()).unwrap();
        println!("{set}: {found:?}");
        // The measured ones went through filters: their paths lie between samples, and the packets have an early one that is not much weaker.
        let (found_delay, tolerance) = if set == SETS[0] { (found.delay, 0.05) } else { (found.delay + found.peak, 0.5) };
        assert!((found_delay - delay).abs() < tolerance, "{set}: {found:?}");
        assert!((found.cfo_hz(20e6) - cfo_hz).abs() < 700.0, "{set}: {found:?}");
        assert!(found.confidence > 0.79 && found.explained > 0.7 && !found.inverted, "{set}: {found:?}");
    }
}

#[test]
fn a_recorded_pair_that_starts_apart_is_found_again() {
    for set in SETS {
        let (Some(mut tx), Some(mut rx)) = (recorded(set, "tx"), recorded(set, "rx")) else { return };
        let together = align_recordings(&mut tx, &mut rx, Options::default()).unwrap();
        for (skip_tx, skip_rx) in [(1500, 0), (0, 1111)] {
            tx.seek(skip_tx).unwrap();
            rx.seek(skip_rx).unwrap();
            let apart = align_recordings(&mut tx, &mut rx, Options::default()).unwrap();
            let expected = together.delay + skip_tx as f64 - skip_rx as f64;
            assert!((apart.delay - expected).abs() < 0.3, "{set}: {apart:?} instead of {expected}");
        }
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut noise = |n: usize| -> Vec<Complex32> { narrow(&(0..n).map(|_| gaussian(&mut rng)).collect::<Vec<_>>()) };
    let (a, b) = (noise(30_000), noise(40_000));
    let message = |tx: &[Complex32], rx: &[Complex32]| align(tx, rx, Options::default()).unwrap_err().to_string();
    assert!(message(&a, &b).contains("do not belong together"));
    let (tx, ..) = simulate(&case(), 1);
    let (_, rx, _) = simulate(&case(), 2);
    assert!(message(&tx, &rx).contains("do not belong together"));
    assert!(message(&tx, &a).contains("do not belong together"));
    assert!(message(&tx, &vec![Complex32::new(0.5, 0.0); 4000]).contains("rx is constant"));
    assert!(message(&tx, &vec![Complex32::new(f32::NAN, 0.0); 4000]).contains("rx is constant"));
    assert!(message(&tx[..10], &rx).contains("tx has 10 samples"));
    // A signal that repeats fits at every period.
    let cyclic: Vec<_> = tx[..1000].iter().copied().cycle().take(50_000).collect();
    assert!(message(&cyclic, &cyclic).contains("the signal repeats"));
    assert_eq!(align(&cyclic, &cyclic, Options { max_delay: 500, ..Options::default() }).unwrap().whole(), 0);
}

#[test]
fn recordings_of_different_sets_are_refused() {
    for tx in SETS {
        for rx in SETS.into_iter().filter(|rx| *rx != tx) {
            let (Some(mut a), Some(mut b)) = (recorded(tx, "tx"), recorded(rx, "rx")) else { return };
            let read = |r: &mut Recording| r.read_up_to(usize::MAX).unwrap();
            let error = align(&read(&mut a), &read(&mut b), Options::default()).expect_err("not a pair").to_string();
            assert!(error.contains("do not belong together"), "{tx} with {rx}: {error}");
        }
        let (Some(mut a), Some(mut b)) = (recorded(tx, "tx"), recorded(tx, "rx")) else { return };
        let half = a.len() / 2;
        b.seek(half).unwrap();
        let (a, b) = (a.read_up_to(half as usize).unwrap(), b.read_up_to(half as usize).unwrap());
        let error = align(&a, &b, Options::default()).expect_err("the halves have no sample in common").to_string();
        assert!(error.contains("do not belong together"), "{tx}: {error}");
    }
}

#[test]
fn spikes_and_holes_do_not_hide_the_delay() {
    let case = Case { delay: 250.0, cfo: 1e-3, ..case() };
    let (tx, mut rx, _) = simulate(&case, 3);
    for (i, value) in [(100, f32::NAN), (5000, 1e6), (9000, f32::INFINITY), (20_000, -1e30)] {
        rx[i].re = value;
    }
    rx[30_000..32_000].fill(Complex32::default());
    let found = align(&tx, &rx, Options::default()).unwrap();
    assert_eq!(found.whole(), 250, "{found:?}");
    for scale in [1e-30, 1e15_f32] {
        let (tx, rx, _) = simulate(&case, 3);
        let rx: Vec<_> = rx.iter().map(|z| z * scale).collect();
        assert!((align(&tx, &rx, Options::default()).unwrap().delay - 250.0).abs() < 0.05);
    }
}

#[test]
fn every_preset_of_the_test_bed_is_aligned_at_10_db() {
    use crate::channel::{FadingConfig, Profile, Scenario, TestBed};
    for name in Scenario::PRESETS {
        for (delay, offset, moving) in [(37.3, 1e-3, true), (100_000.6, -3e-3, false)] {
            let mut scenario = Scenario::preset(name).unwrap();
            scenario.samples = 40_000 + delay as u64;
            scenario.snr_db = Some(10.0);
            scenario.impairments.delay = delay;
            scenario.impairments.carrier_offset = if scenario.real { 0.0 } else { offset };
            if !moving {
                scenario.fading = Some(FadingConfig::new(Profile::exponential(1, 3.0), 0.0));
            }
            let made = TestBed::run(&scenario).unwrap();
            let found = align(&made.tx[0], &made.rx[0], Options::default()).unwrap_or_else(|e| panic!("{name}, delay {delay}: {e}"));
            let off_hz = (found.cfo - scenario.impairments.carrier_offset) * 20e6;
            println!("{name} {delay} {moving}: off by {:.4} samples and {off_hz:.1} Hz; {found:?}", found.delay - delay);
            assert!((found.delay - delay).abs() < 0.05, "{name}: {found:?}");
            // A channel that fades at 20 kHz has no carrier that could be known to 10 Hz.
            let fast = moving && name != "wifi";
            assert!(off_hz.abs() < if fast { 1000.0 } else { 10.0 }, "{name}: {off_hz} Hz, {found:?}");
        }
    }
}

#[test]
fn bursts_with_silence_behind_them_and_missing_numbers_are_aligned() {
    for (length, padding, broken) in [(1000, 1000, false), (16_000, 200_000, false), (16_000, 0, true), (1000, 100_000, true)] {
        let case = Case { delay: 2.3, cfo: 1e-3, samples: length, ..case() };
        let (mut tx, mut rx, _) = simulate(&case, 7);
        tx.resize(length + padding, Complex32::default());
        rx.resize(length + padding, Complex32::default());
        if broken {
            rx.iter_mut().step_by(8).for_each(|z| *z = Complex32::new(f32::NAN, 0.0));
        }
        let found = align(&tx, &rx, Options::default()).unwrap_or_else(|e| panic!("{length} {padding} {broken}: {e}"));
        assert!((found.delay - 2.3).abs() < 0.1, "{length} {padding} {broken}: {found:?}");
        let (_, aligned) = found.apply(&tx, &rx);
        let numbers = aligned.iter().filter(|z| z.re.is_finite() && z.im.is_finite()).count();
        assert!(numbers >= aligned.len() * 7 / 8 - 2, "{numbers} numbers of {}", aligned.len());
    }
}

/// A linear chirp over `band` of the sampling rate.
fn chirp(length: usize, band: f64) -> Vec<Complex64> {
    let at = |n: usize| n as f64 / length as f64;
    (0..length).map(|n| Complex64::cis(TAU * band * 0.5 * (at(n) - 1.0) * n as f64)).collect()
}

#[test]
fn chirps_are_aligned() {
    use crate::channel::{Fading, FadingConfig, Profile, Stage};
    for (name, frame) in [("chirp", chirp(4096, 0.8))] {
        // Once behind silence, and repeated.
        for (turns, most) in [(1, 2000), (20, frame.len() / 2)] {
            for (delay, paths, doppler, snr_db, cfo) in [(0.0, 1, 0.0, 30.0, 0.0), (123.3, 1, 0.0, 10.0, 0.0), (-77.0, 3, 1e-6, 20.0, 0.0)]
            {
                let mut rng = ChaCha8Rng::seed_from_u64(delay as u64 + 5);
                let silence = vec![Complex64::default(); 1500];
                let tx = [silence.clone(), frame.repeat(turns), silence].concat();
                let mut faded = narrow(&tx);
                Fading::new(&FadingConfig::new(Profile::exponential(paths, 3.0), doppler), 3).unwrap().process(&mut faded);
                let faded: Vec<Complex64> = faded.iter().map(|z| crate::dsp::wide(*z)).collect();
                let mut rx = delayed(&faded, delay, tx.len());
                let level = 10_f64.powf(-snr_db / 20.0);
                rx.iter_mut().enumerate().for_each(|(n, z)| *z = *z * Complex64::cis(TAU * cfo * n as f64) + gaussian(&mut rng) * level);
                let told = format!("{name} x {turns}, delay {delay}, {paths} paths, {doppler:e}, {snr_db} dB");
                let found = align(&narrow(&tx), &narrow(&rx), Options { max_delay: most, ..Options::default() });
                let found = found.unwrap_or_else(|e| panic!("{told}: {e}"));
                println!("{told}: off by {:.3}, {found:?}", found.delay - delay);
                // At any moment a chirp is a tone: several paths look like one between them.
                let tolerance = if paths > 1 { 1.0 } else { 0.1 };
                assert!((found.delay - delay).abs() < tolerance && found.explained > 0.4, "{told}: {found:?}");
            }
        }
    }
}
