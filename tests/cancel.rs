//! Self-interference cancellation: what is known is taken out, what is wanted stays.

use kaflow::filter::{Guard, Tracker, registry};
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
            let w = ofdm(samples, seed + 1000, oversampling);
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

#[test]
fn survey() {
    let db = |a: f64, b: f64| 10.0 * (a / b).log10();
    let filters = std::env::var("FILTERS").unwrap_or("ensemble".into());
    for name in filters.split(',') {
        for oversampling in [1, 2] {
            for seed in [11, 12] {
                let d = duplex(60_000, seed, oversampling, None);
                let e = cancel(name, &d);
                let over = |part: std::ops::Range<usize>| db(power(e[part.clone()].iter().copied()), power(d.noise[part].iter().copied()));
                print!("{name} {oversampling}x: early {:.2} ", over(2500..3500));
                print!("steady {:.2} ", over(30_000..60_000));
                for wanted in [10.0, 20.0] {
                    let d = duplex(60_000, seed, oversampling, Some(wanted));
                    let e = cancel(name, &d);
                    let part = 30_000..60_000;
                    let left = part.clone().map(|n| e[n] - d.wanted[n]);
                    print!("SINR {:.2} ", db(power(d.wanted[part].iter().copied()), power(left)));
                }
                println!();
            }
        }
    }
}
