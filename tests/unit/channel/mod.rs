//! The parts of the test bed, each against the statistics or the formula that defines it.

mod amplifiers;
mod fading;
mod receiver;
mod streams;
mod test_bed;

use kaflow::channel::*;
use kaflow::{Complex32, Complex64};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::f64::consts::{PI, TAU};

fn wide(z: Complex32) -> Complex64 {
    Complex64::new(f64::from(z.re), f64::from(z.im))
}

/// Circular Gaussian samples of mean power 1, from nothing that is under test.
fn gaussian(samples: usize, seed: u64) -> Vec<Complex32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut uniform = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let mut draw = || Complex64::from_polar((-(1.0 - uniform()).ln()).sqrt(), TAU * uniform());
    (0..samples).map(|_| draw()).map(|z| Complex32::new(z.re as f32, z.im as f32)).collect()
}

fn power(samples: &[Complex32]) -> f64 {
    samples.iter().map(|z| wide(*z).norm_sqr()).sum::<f64>() / samples.len() as f64
}

fn tone(frequency: f64, samples: usize) -> Vec<Complex32> {
    (0..samples).map(|n| Complex64::cis(TAU * frequency * n as f64)).map(|z| Complex32::new(z.re as f32, z.im as f32)).collect()
}

/// `E[z(n+lag) z*(n)]` over a record.
fn autocorrelation(z: &[Complex64], lag: usize) -> Complex64 {
    z[lag..].iter().zip(z).map(|(a, b)| a * b.conj()).sum::<Complex64>() / (z.len() - lag) as f64
}

fn db(ratio: f64) -> f64 {
    10.0 * ratio.log10()
}

#[track_caller]
fn near(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((got - expected).abs() <= tolerance, "{what}: {got} is not {expected} ± {tolerance}");
}

fn measured() -> Model {
    let point = |input: f64| Point {
        input,
        output: input / (1.0 + input.powi(4)).powf(0.25),
        phase_deg: 20.0 * input * input / (1.0 + input * input),
    };
    Model::Table { points: (1..=40).map(|k| point(0.1 * f64::from(k))).collect() }
}

fn polynomial() -> Model {
    let term = |order, delay, re, im| Term { order, delay, re, im };
    Model::MemoryPolynomial { terms: vec![term(1, 0, 1.0, 0.0), term(3, 0, -0.3, 0.1), term(1, 1, 0.1, -0.05), term(5, 2, 0.0, 0.02)] }
}

fn models() -> Vec<Model> {
    let rapp = |smoothness| Model::Rapp { smoothness };
    vec![Model::Limiter, rapp(1.0), rapp(2.0), rapp(3.3), Model::saleh(), polynomial(), measured()]
}
