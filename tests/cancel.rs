//! Self-interference cancellation: what is known is taken out, what is wanted stays.

use kaflow::filter::{Canceller, Guard, Tracker, registry};
use kaflow::ofdm::{Config, Source, Transmitter};
use kaflow::{Complex32, Complex64};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A full-duplex radio that hears itself: an amplifier 6 dB below saturation with memory, echoes, an image 30 dB below, DC, a gain that drifts by 0.5 % a millisecond
/// at 20 MS/s, and noise 48 dB below.
struct Duplex {
    tx: Vec<Complex32>,
    rx: Vec<Complex32>,
    wanted: Vec<Complex32>,
    noise: Vec<Complex32>,
}

const SI_DB: f64 = 48.0;
const ELSEWHERE: usize = 1237;

fn gaussian(random: &mut ChaCha8Rng) -> Complex64 {
    let (a, b): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    Complex64::from_polar((-a.ln()).sqrt(), std::f64::consts::TAU * b)
}

fn wide(z: Complex32) -> Complex64 {
    Complex64::new(z.re.into(), z.im.into())
}

fn narrow(z: Complex64) -> Complex32 {
    Complex32::new(z.re as f32, z.im as f32)
}

fn ofdm(samples: usize, seed: u64, oversampling: usize) -> Vec<Complex32> {
    let config = Config { seed, oversampling, ..Config::preset("paper").unwrap() };
    let mut x = vec![Complex32::default(); samples];
    Transmitter::new(config, Source::Continuous).unwrap().fill(&mut x);
    x
}

/// `wanted_db` above the noise, where there is a wanted signal.
fn duplex(samples: usize, seed: u64, oversampling: usize, wanted_db: Option<f64>) -> Duplex {
    let random = &mut ChaCha8Rng::seed_from_u64(seed);
    let c = Complex64::new;
    let tx = ofdm(samples, seed, oversampling);
    let at = |x: &[Complex64], n: usize, lag: usize| if n >= lag { x[n - lag] } else { Complex64::default() };
    let x: Vec<Complex64> = tx.iter().map(|&z| wide(z)).collect();
    // Memory of three samples in front of and behind Rapp's curve.
    let drive = 10f64.powf(-6.0 / 20.0);
    let u: Vec<Complex64> = (0..samples)
        .map(|n| {
            let z = drive * (x[n] + c(0.08, -0.05) * at(&x, n, 1) + c(0.0, 0.03) * at(&x, n, 2));
            let r = z.norm();
            z / (1.0 + r.powi(4)).powf(0.25) * Complex64::cis(0.4 * r * r / (1.0 + r * r))
        })
        .collect();
    let echoes = [c(0.9, 0.2), c(-0.25, 0.15), c(0.08, -0.1), c(0.02, 0.03)];
    let mut si: Vec<Complex64> = (0..samples).map(|n| (0..4).map(|l| echoes[l] * at(&u, n, l)).sum()).collect();
    let power = si.iter().map(|z| z.norm_sqr()).sum::<f64>() / samples as f64;
    let drift = 0.005 / 20_000f64.sqrt();
    let mut gain = Complex64::new(1.0, 0.0);
    for z in &mut si {
        gain += drift * gaussian(random);
        let y = *z * gain / power.sqrt();
        *z = y + 10f64.powf(-30.0 / 20.0) * Complex64::cis(0.7) * y.conj() + c(0.02, -0.015);
    }
    let sigma = 10f64.powf(-SI_DB / 20.0);
    let noise: Vec<Complex32> = (0..samples).map(|_| narrow(sigma * gaussian(random))).collect();
    let wanted = match wanted_db {
        Some(db) => {
            // Of another station, whose frames begin elsewhere: preambles at the same time would be one signal.
            let w = ofdm(samples + ELSEWHERE, seed + 1000, oversampling).split_off(ELSEWHERE);
            let power = w.iter().map(|z| f64::from(z.norm_sqr())).sum::<f64>() / samples as f64;
            let scale = (sigma * 10f64.powf(db / 20.0) / power.sqrt()) as f32;
            w.iter().map(|z| z * scale).collect()
        }
        None => vec![Complex32::default(); samples],
    };
    let rx = (0..samples).map(|n| narrow(si[n]) + noise[n] + wanted[n]).collect();
    Duplex { tx, rx, wanted, noise }
}

fn power(x: impl Iterator<Item = Complex32>) -> f64 {
    x.map(|z| f64::from(z.norm_sqr())).sum()
}

fn cancel(filter: &str, d: &Duplex) -> Vec<Complex32> {
    let settings = registry::recipe(filter).unwrap().settle_stream(&Default::default(), 1.0, 4).unwrap();
    let tracker: Box<dyn Tracker<f32>> = registry::tracker(&settings, 4).unwrap();
    let mut prediction = d.rx.clone();
    Guard::new(tracker).track(&d.tx, &d.rx, &mut prediction, None);
    d.rx.iter().zip(&prediction).map(|(y, p)| y - p).collect()
}

fn db(a: f64, b: f64) -> f64 {
    10.0 * (a / b).log10()
}

#[test]
fn the_noise_floor_is_reached_and_a_wanted_signal_survives() {
    for (oversampling, seed) in [(1, 31), (2, 32), (1, 33)] {
        let d = duplex(60_000, seed, oversampling, None);
        let e = cancel("canceller", &d);
        let over = |part: std::ops::Range<usize>| db(power(e[part.clone()].iter().copied()), power(d.noise[part].iter().copied()));
        let (early, steady) = (over(3000..4000), over(30_000..60_000));
        println!("{oversampling}x, seed {seed}: {early:.2} dB above the noise from sample 3000, {steady:.2} dB in steady state");
        assert!(early <= 1.0 && steady <= 0.6, "{early:.2} {steady:.2}");
        for (wanted_db, goal) in [(10.0, 8.8), (20.0, 17.3)] {
            let d = duplex(60_000, seed, oversampling, Some(wanted_db));
            let e = cancel("canceller", &d);
            let part = 30_000..60_000;
            let left = part.clone().map(|n| e[n] - d.wanted[n]);
            let sinr = db(power(d.wanted[part].iter().copied()), power(left));
            println!("{oversampling}x, seed {seed}: wanted at {wanted_db} dB, SINR {sinr:.2} dB");
            assert!(sinr >= goal, "{sinr:.2} dB instead of {goal}");
        }
    }
}

/// An amplifier that works on the waveform, here at four times the rate, and a receiver that samples behind a filter.
fn between_samples(samples: usize, seed: u64) -> Duplex {
    const UP: usize = 4;
    const SIDE: i32 = 12 * UP as i32;
    let (random, c) = (&mut ChaCha8Rng::seed_from_u64(seed), Complex64::new);
    let tx = ofdm(samples, seed, 1);
    let lowpass: Vec<f64> = (-SIDE..=SIDE)
        .map(|k| {
            let (x, window) = (
                std::f64::consts::PI * 0.95 * f64::from(k) / UP as f64,
                (std::f64::consts::PI * f64::from(k) / f64::from(2 * SIDE + 2)).cos(),
            );
            0.95 * window * window * if k == 0 { 1.0 } else { x.sin() / x }
        })
        .collect();
    let filtered = |x: &[Complex64], n: usize| -> Complex64 {
        let tap =
            |(k, h): (usize, &f64)| (n + SIDE as usize).checked_sub(k).and_then(|at| x.get(at)).map_or(Complex64::default(), |x| x * h);
        lowpass.iter().enumerate().map(tap).sum()
    };
    let mut stuffed = vec![Complex64::default(); UP * samples];
    tx.iter().enumerate().for_each(|(n, &z)| stuffed[UP * n] = wide(z));
    let at = |x: &[Complex64], n: usize, lag: usize| if n >= UP * lag { x[n - UP * lag] } else { Complex64::default() };
    let x: Vec<Complex64> = (0..UP * samples).map(|n| filtered(&stuffed, n)).collect();
    let u: Vec<Complex64> = (0..x.len())
        .map(|n| {
            let z = 0.5 * (x[n] + c(0.08, -0.05) * at(&x, n, 1) + c(0.0, 0.03) * at(&x, n, 2));
            let r = z.norm();
            z / (1.0 + r.powi(4)).powf(0.25) * Complex64::cis(0.4 * r * r / (1.0 + r * r))
        })
        .collect();
    let heard: Vec<Complex64> = (0..u.len()).map(|n| c(0.9, 0.2) * u[n] + c(-0.25, 0.15) * at(&u, n, 1)).collect();
    let si: Vec<Complex64> = (0..samples).map(|n| filtered(&heard, UP * n)).collect();
    let scale = (si.iter().map(|z| z.norm_sqr()).sum::<f64>() / samples as f64).sqrt().recip();
    let noise: Vec<Complex32> = (0..samples).map(|_| narrow(10f64.powf(-SI_DB / 20.0) * gaussian(random))).collect();
    let rx = si.iter().zip(&noise).map(|(z, n)| narrow(z * scale) + n).collect();
    Duplex { tx, rx, wanted: Vec::new(), noise }
}

#[test]
fn products_between_samples_cancel_an_amplifier_that_works_between_them() {
    let d = between_samples(40_000, 38);
    // Seven samples ahead are as many as what lies halfway needs.
    let above = |advance: usize| {
        let tx: Vec<_> = d.tx[advance..].iter().copied().chain(vec![Complex32::default(); advance]).collect();
        let mut prediction = d.rx.clone();
        Guard::new(Box::new(Canceller::new(9, advance, 262_144.0).unwrap()) as Box<dyn Tracker<f32>>).track(
            &tx,
            &d.rx,
            &mut prediction,
            None,
        );
        let steady = 20_000..39_000;
        db(power(steady.clone().map(|n| d.rx[n] - prediction[n])), power(d.noise[steady].iter().copied()))
    };
    let [early, at_samples, between] = [0, 6, 7].map(above);
    println!(
        "amplifier between samples: {early:.1} dB above the noise without advance, {at_samples:.1} with 6 samples, {between:.1} with products halfway"
    );
    assert!(between < at_samples - 3.0 && at_samples < early, "{early:.2} {at_samples:.2} {between:.2}");
}

#[test]
fn a_burst_of_the_wanted_signal_is_not_learned_and_a_jump_of_the_channel_is() {
    let mut d = duplex(60_000, 34, 1, Some(20.0));
    // The wanted signal comes and goes.
    let present = |n: usize| (n / 5000) % 2 == 1;
    for n in (0..60_000).filter(|&n| !present(n)) {
        d.rx[n] -= d.wanted[n];
        d.wanted[n] = Complex32::default();
    }
    let e = cancel("canceller", &d);
    let quiet = (30_000..60_000).filter(|&n| !present(n));
    let over = db(power(quiet.clone().map(|n| e[n])), power(quiet.map(|n| d.noise[n])));
    assert!(over < 1.5, "{over:.2} dB above the noise between bursts");
    let mut d = duplex(60_000, 35, 1, None);
    d.rx[30_000..].iter_mut().for_each(|y| *y *= Complex32::new(-0.3, 0.9));
    let e = cancel("canceller", &d);
    let over = db(power(e[50_000..].iter().copied()), power(d.noise[50_000..].iter().copied()));
    assert!(over < 1.5, "{over:.2} dB above the noise after a jump");
}

#[test]
fn scale_silence_and_what_is_not_a_number() {
    let d = duplex(20_000, 36, 1, None);
    let plain = cancel("canceller", &d);
    for (up, down) in [(1e-3, 1.0), (1.0, 1e3)] {
        let scaled = |x: &[Complex32], by: f32| x.iter().map(|z| z * by).collect::<Vec<_>>();
        let e = cancel("canceller", &Duplex { tx: scaled(&d.tx, up), rx: scaled(&d.rx, down), wanted: Vec::new(), noise: Vec::new() });
        let (a, b) = (power(e[5000..].iter().copied()), power(plain[5000..].iter().copied()) * f64::from(down * down));
        assert!((db(a, b)).abs() < 0.05, "{up} {down}: {:.3} dB", db(a, b));
    }
    let mut broken = d;
    broken.tx[..100].fill(Complex32::default());
    broken.rx[7000].re = f32::NAN;
    broken.tx[8000].im = f32::INFINITY;
    broken.rx[9000] = Complex32::new(1e6, 0.0);
    let e = cancel("canceller", &broken);
    let tail = db(power(e[15_000..].iter().copied()), power(broken.noise[15_000..].iter().copied()));
    assert!(tail < 3.0, "{tail:.2} dB above the noise");
}

#[cfg(feature = "cli")]
mod command {
    use std::{fs, path::Path, time::Duration};

    use assert_cmd::{Command, cargo::cargo_bin};
    use kaflow::iq::{Datatype, Recording, Writer, sigmf};
    use serde_json::Value;

    use super::*;

    fn kaflow(directory: &Path, arguments: &str) -> assert_cmd::assert::Assert {
        Command::new(cargo_bin!("kaflow"))
            .current_dir(directory)
            .args(arguments.split_whitespace())
            .timeout(Duration::from_secs(120))
            .assert()
    }

    fn json(path: impl AsRef<Path>) -> Value {
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    fn write(path: impl AsRef<Path>, samples: &[Complex32], meta: sigmf::Meta) {
        let mut writer = Writer::create(path, meta, false).unwrap();
        writer.write(samples).unwrap();
        writer.finish().unwrap();
    }

    fn samples(path: impl AsRef<Path>) -> Vec<Complex32> {
        Recording::open(path.as_ref().with_extension("sigmf-meta"), None).unwrap().read_up_to(usize::MAX).unwrap()
    }

    #[test]
    fn what_remains_has_the_place_captures_and_annotations_of_what_was_received() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let d = duplex(60_000, 37, 1, Some(20.0));
        // Received seven samples late, with a gap that neither has samples for.
        let late: Vec<_> = d.rx[..7].iter().copied().chain(d.rx[..59_993].iter().copied()).collect();
        let wanted: Vec<_> = vec![Complex32::default(); 7].into_iter().chain(d.wanted[..59_993].iter().copied()).collect();
        let mut meta = sigmf::Meta::new(Datatype::CF32_LE, Some(20e6));
        meta.captures[0].frequency = Some(2.4e9);
        meta.captures[0].datetime = Some("2024-05-06T07:08:09.000000000Z".into());
        let note = sigmf::Annotation { sample_start: 100, sample_count: Some(50), label: Some("burst".into()), ..Default::default() };
        meta.annotations.push(note);
        write(at("tx"), &d.tx, sigmf::Meta::new(Datatype::CF32_LE, Some(20e6)));
        write(at("rx"), &late, meta.clone());
        write(at("wanted"), &wanted, sigmf::Meta::new(Datatype::CF32_LE, Some(20e6)));
        let run = "cancel tx.sigmf-meta rx.sigmf-meta --wanted wanted.sigmf-meta --skip 30000 --json a.json --out c";
        kaflow(folder.path(), run).success();
        let found = json(at("a.json"));
        assert_eq!((&found["schema"], &found["delay"]), (&"kaflow/cancel".into(), &7.into()));
        let (total, sinr) = (found["cancellation_db"].as_f64().unwrap(), found["sinr_db"].as_f64().unwrap());
        println!("{total:.1} dB, SINR {sinr:.1} dB");
        assert!((27.0..29.0).contains(&total), "{total}: the wanted signal is 28 dB below");
        // 20 dB above the noise, as in the law above: when it has learned, which takes longer with all that the command gives it to learn.
        assert!(sinr >= 17.3 && found["sinr_before_db"].as_f64().unwrap() < -27.0, "{found}");
        assert_eq!(found["over_frequency"].as_array().unwrap().len(), 32);
        let cleaned = Recording::open(at("c/cleaned.sigmf-meta"), None).unwrap();
        assert_eq!((cleaned.len(), cleaned.meta().global.sample_rate), (60_000, Some(20e6)));
        assert_eq!((&cleaned.meta().captures, &cleaned.meta().annotations), (&meta.captures, &meta.annotations));
        let left = samples(at("c/cleaned"));
        assert_eq!(left[..7], late[..7], "without a partner as it was received");
        let (n, far) = (30_000..60_000, 30_000..59_000);
        assert!(db(power(n.clone().map(|n| late[n])), power(n.map(|n| left[n]))) > 27.0);
        // Delayed by one, it would not be what was wanted.
        let error = |shift: usize| power(far.clone().map(|n| left[n] - wanted[n + shift]));
        assert!(error(0) < 0.1 * error(1));
        for file in ["spectrum.svg", "spectrum.png", "spectrum.csv"] {
            assert!(at("c").join(file).metadata().unwrap().len() > 500, "{file}");
        }
        // Once learned, it holds for a while.
        kaflow(folder.path(), "cancel tx.sigmf-meta rx.sigmf-meta --frozen-after 8000 --skip 8000 --json b.json --out f --filter ensemble")
            .success();
        let frozen = json(at("b.json"))["cancellation_db"].as_f64().unwrap();
        assert!((20.0..29.0).contains(&frozen), "{frozen}");
        let output = kaflow(folder.path(), "cancel tx.sigmf-meta rx.sigmf-meta --out c").code(2).get_output().clone();
        assert!(String::from_utf8(output.stderr).unwrap().contains("--force"));
        let output = kaflow(folder.path(), "cancel tx.sigmf-meta rx.sigmf-meta --out g --filter nlms,rls").code(2).get_output().clone();
        assert!(String::from_utf8(output.stderr).unwrap().contains("one filter"));
    }
}
