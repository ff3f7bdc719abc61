//! A transmitter to linearise: OFDM, an amplifier with or without memory, a way back.

use kaflow::Complex64;
use kaflow::metrics::{Band, linearity};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustfft::FftPlanner;

const OVERSAMPLING: usize = 4;
const CARRIERS: usize = 256;
const ACTIVE: usize = 200;

pub fn random(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn gaussian(random: &mut ChaCha8Rng) -> Complex64 {
    let (a, b): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    Complex64::from_polar((-a.ln()).sqrt(), std::f64::consts::TAU * b)
}

/// 64-QAM on 200 carriers, four times oversampled, peaks clipped and filtered three times at 8 dB over rms; its rms is about 1.
pub fn ofdm(symbols: usize, seed: u64) -> Vec<Complex64> {
    let (size, random) = (CARRIERS * OVERSAMPLING, &mut random(seed));
    let mut planner = FftPlanner::new();
    let inverse = planner.plan_fft_inverse(size);
    let scale = 1.0 / (42.0 * ACTIVE as f64).sqrt();
    let mut x = Vec::new();
    for _ in 0..symbols {
        let mut bins = vec![Complex64::default(); size];
        for k in 1..=ACTIVE / 2 {
            for bin in [k, size - k] {
                let mut level = || f64::from(2 * random.random_range(0..8) - 7);
                bins[bin] = Complex64::new(level(), level()) * scale;
            }
        }
        inverse.process(&mut bins);
        x.extend_from_slice(&bins[size - size / 8..]);
        x.extend_from_slice(&bins);
    }
    let (forward, inverse) = (planner.plan_fft_forward(x.len()), planner.plan_fft_inverse(x.len()));
    let (peak, n) = (10f64.powf(8.0 / 20.0), x.len());
    for _ in 0..3 {
        x.iter_mut().filter(|z| z.norm() > peak).for_each(|z| *z *= peak / z.norm());
        forward.process(&mut x);
        let edge = (ACTIVE / 2 + 3) as f64 / size as f64;
        for (k, z) in x.iter_mut().enumerate() {
            let f = k as f64 / n as f64;
            *z *= if f.min(1.0 - f) < edge { 1.0 / n as f64 } else { 0.0 };
        }
        inverse.process(&mut x);
    }
    x
}

/// A solid-state amplifier 9 dB below saturation, that turns phases, and with `memory` has filters in front and behind.
pub fn amplifier(x: &[Complex64], memory: bool) -> Vec<Complex64> {
    let drive = 10f64.powf(-9.0 / 20.0);
    let at = |x: &[Complex64], n: usize, lag: usize| if n >= lag { x[n - lag] } else { Complex64::default() };
    let c = Complex64::new;
    let mut y: Vec<_> = (0..x.len())
        .map(|n| {
            let mut z = x[n];
            if memory {
                z += c(0.08, -0.05) * at(x, n, 1) + c(0.0, 0.03) * at(x, n, 2);
            }
            let z = z * drive;
            let r = z.norm();
            z / (1.0 + r.powf(3.2)).powf(1.0 / 3.2) * Complex64::cis(0.5 * r * r / (1.0 + 1.2 * r * r))
        })
        .collect();
    if memory {
        y = (0..y.len())
            .map(|n| y[n] - 0.06 * at(&y, n, 1) * (1.0 + 0.6 * at(&y, n, 2).norm_sqr()) + c(0.0, 0.02) * at(&y, n, 3))
            .collect();
    }
    y.iter().map(|z| z / drive).collect()
}

/// Noise `snr_db` below the signal.
pub fn noisy(y: &[Complex64], snr_db: f64, seed: u64) -> Vec<Complex64> {
    let random = &mut random(seed);
    let power = y.iter().map(Complex64::norm_sqr).sum::<f64>() / y.len() as f64;
    let sigma = (power * 10f64.powf(-snr_db / 10.0)).sqrt();
    y.iter().map(|y| y + sigma * gaussian(random)).collect()
}

/// Three taps two samples apart, each 3 dB below the one before, that fade with `f_d T = doppler` (sums of twelve waves).
pub fn fading(u: &[Complex64], doppler: f64, seed: u64) -> Vec<Complex64> {
    let random = &mut random(seed);
    let tau = std::f64::consts::TAU;
    let total: f64 = (0..3).map(|l| 10f64.powf(-0.3 * f64::from(l))).sum();
    let mut y = vec![Complex64::default(); u.len()];
    for l in 0..3 {
        let waves: Vec<(f64, f64)> =
            (0..12).map(|_| (tau * doppler * (tau * random.random::<f64>()).cos(), tau * random.random::<f64>())).collect();
        let scale = (10f64.powf(-0.3 * l as f64) / total / 12.0).sqrt();
        for n in 2 * l..u.len() {
            let h: Complex64 = waves.iter().map(|(w, phase)| Complex64::cis(w * n as f64 + phase)).sum();
            y[n] += h * scale * u[n - 2 * l];
        }
    }
    y
}

/// The worse side.
pub fn aclr(y: &[Complex64]) -> f64 {
    let width = (ACTIVE + 1) as f64 / (CARRIERS * OVERSAMPLING) as f64;
    let (lower, upper) = linearity(y, y, Band { width, spacing: 1.02 * width }).unwrap().aclr_dbc;
    lower.max(upper)
}
