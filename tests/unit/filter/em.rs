use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::kernel::{Equivariant, Gaussian, Kernel};

struct Draws(ChaCha8Rng);

impl Draws {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Gaussian with `E|z|² = 1`, circular or real.
    fn normal(&mut self, real: bool) -> Complex64 {
        let radius = (-(1.0 - self.0.random::<f64>()).ln()).sqrt();
        let z = Complex64::from_polar(radius, std::f64::consts::TAU * self.0.random::<f64>());
        if real { Complex64::new(z.re * 2f64.sqrt(), 0.0) } else { z }
    }
}

/// Inputs and observations of the model itself.
fn simulate(model: Model, d: usize, n: usize, real: bool, input: f64, seed: u64) -> (Vec<Complex64>, Vec<Complex64>) {
    let mut draws = Draws::new(seed);
    let stationary = (model.process_noise / (1.0 - model.lambda * model.lambda).max(1e-3)).sqrt();
    let mut w: Vec<_> = (0..d).map(|_| draws.normal(real) * stationary).collect();
    let (mut rows, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let x: Vec<_> = (0..d).map(|_| draws.normal(real) * input).collect();
        w.iter_mut().for_each(|w| *w = *w * model.lambda + draws.normal(real) * model.process_noise.sqrt());
        targets.push(w.iter().zip(&x).map(|(w, x)| w * x).sum::<Complex64>() + draws.normal(real) * model.noise.sqrt());
        rows.extend(x);
    }
    (rows, targets)
}

fn near(what: &str, found: f64, truth: f64, part: f64) {
    assert!((found / truth - 1.0).abs() < part, "{what}: {found:.3e}, truth {truth:.3e}");
}

#[test]
fn em_finds_both_variances_within_a_fifth_from_2000_samples() {
    let model = |lambda, process_noise, noise| Model { lambda, process_noise, noise };
    let cases = [
        (model(1.0, 1e-3, 0.05), 4, false, 1.0),
        (model(1.0, 1e-3, 0.05), 4, true, 1.0),
        (model(0.99, 1e-2, 0.1), 3, false, 1.0),
        (model(0.999, 1e-3, 0.5), 2, true, 1.0),
        // The same channel in other units: a thousandth of the input, a million times the output.
        (model(1.0, 1e-3 * 1e18, 0.05 * 1e12), 4, false, 1e-3),
        (model(0.995, 1e-4, 0.01), 8, false, 1.0),
    ];
    for (i, (truth, d, real, input)) in cases.into_iter().enumerate() {
        let (rows, targets) = simulate(truth, d, 2000, real, input, 7 + i as u64);
        let found = estimate(&rows, &targets, Forgetting::Fixed(truth.lambda)).unwrap();
        near(&format!("case {i}, process noise"), found.model.process_noise, truth.process_noise, 0.2);
        near(&format!("case {i}, noise"), found.model.noise, truth.noise, 0.2);
    }
}

#[test]
fn em_finds_the_forgetting_factor_too() {
    for (i, (lambda, real)) in [(0.98, false), (0.95, true), (0.99, false)].into_iter().enumerate() {
        let truth = Model { lambda, process_noise: 0.02, noise: 0.1 };
        let (rows, targets) = simulate(truth, 3, 2000, real, 1.0, 70 + i as u64);
        let found = estimate(&rows, &targets, Forgetting::Learned(0.9)).unwrap();
        near("1 - lambda", 1.0 - found.model.lambda, 1.0 - lambda, 0.4);
        near("process noise", found.model.process_noise, truth.process_noise, 0.2);
        near("noise", found.model.noise, truth.noise, 0.2);
    }
}

/// Every moment that EM needs, from the joint Gaussian of all weights and observations, by brute force.
#[test]
fn a_smoothing_is_that_of_the_joint_distribution() {
    let (d, n) = (2, 6);
    let truth = Model { lambda: 0.9, process_noise: 0.3, noise: 0.2 };
    let (rows, targets) = simulate(truth, d, n, false, 1.0, 3);
    let smoother = Smoother::new(&rows, &targets).unwrap();
    let at = smoother.point(truth);
    let step = smoother.step(at, true);

    // Prior covariance of all weights, stacked: C_jk = λ^|j−k| V_min(j,k).
    let mut variances = vec![0.0; n];
    let mut v = smoother.weight_scale;
    for slot in &mut variances {
        v = truth.lambda * truth.lambda * v + truth.process_noise;
        *slot = v;
    }
    let prior = |j: usize, k: usize| truth.lambda.powi(j.abs_diff(k) as i32) * variances[j.min(k)];
    let size = n * d;
    let mut mean = vec![Complex64::zero(); size];
    let mut cov = vec![Complex64::zero(); size * size];
    for j in 0..n {
        for k in 0..n {
            for i in 0..d {
                cov[(j * d + i) * size + k * d + i] = prior(j, k).into();
            }
        }
    }
    // One observation after the other.
    for k in 0..n {
        let x = &rows[k * d..][..d];
        let v: Vec<Complex64> = (0..size).map(|i| (0..d).map(|l| cov[i * size + k * d + l] * x[l].conj()).sum()).collect();
        let f = truth.noise + (0..d).map(|l| (x[l] * v[k * d + l]).re).sum::<f64>();
        let e = targets[k] - (0..d).map(|l| x[l] * mean[k * d + l]).sum::<Complex64>();
        for i in 0..size {
            mean[i] += v[i] / f * e;
            for j in 0..size {
                cov[i * size + j] -= v[i] * v[j].conj() / f;
            }
        }
    }
    let second = |a: usize, b: usize| mean[a] * mean[b].conj() + cov[a * size + b];
    let (mut cross, mut power, mut next_power, mut residue) = (0.0, 0.0, 0.0, 0.0);
    for k in 0..n {
        for i in 0..d {
            if k + 1 < n {
                cross += second((k + 1) * d + i, k * d + i).re;
                power += second(k * d + i, k * d + i).re;
                next_power += second((k + 1) * d + i, (k + 1) * d + i).re;
            }
        }
        let x = &rows[k * d..][..d];
        let e = targets[k] - (0..d).map(|l| x[l] * mean[k * d + l]).sum::<Complex64>();
        let s: f64 = (0..d).map(|l| (0..d).map(|m| (x[l] * cov[(k * d + l) * size + k * d + m] * x[m].conj()).re).sum::<f64>()).sum();
        residue += e.norm_sqr() + s;
    }
    let lambda = cross / power;
    let process_noise = (next_power - 2.0 * lambda * cross + lambda * lambda * power) / ((n - 1) * d) as f64;
    let found = model(step.next);
    near("lambda", found.lambda, lambda.min(1.0), 1e-9);
    near("noise", found.noise, residue / n as f64, 1e-9);
    if lambda <= 1.0 {
        near("process noise", found.process_noise, process_noise, 1e-9);
    }
}

#[test]
fn likelihood_never_falls() {
    let (rows, targets) = simulate(Model { lambda: 0.99, process_noise: 1e-2, noise: 0.1 }, 3, 300, false, 1.0, 1);
    let smoother = Smoother::new(&rows, &targets).unwrap();
    let mut at = smoother.point(Model { lambda: 0.9, process_noise: 1.0, noise: 1.0 });
    let mut last = f64::NEG_INFINITY;
    for _ in 0..30 {
        let step = smoother.step(at, true);
        assert!(step.log_likelihood >= last - 1e-9 * last.abs(), "{} after {last}", step.log_likelihood);
        (last, at) = (step.log_likelihood, step.next);
    }
}

#[test]
fn missing_samples_are_passed_over_and_silence_is_refused() {
    let truth = Model { lambda: 1.0, process_noise: 1e-3, noise: 0.05 };
    let (mut rows, mut targets) = simulate(truth, 4, 2200, false, 1.0, 5);
    for k in 0..100 {
        targets[20 * k] = Complex64::new(f64::NAN, 0.0);
        rows[4 * (20 * k + 7)] = Complex64::new(0.0, f64::INFINITY);
    }
    let found = estimate(&rows, &targets, Forgetting::Fixed(1.0)).unwrap().model;
    near("process noise", found.process_noise, truth.process_noise, 0.25);
    near("noise", found.noise, truth.noise, 0.2);
    targets.fill(Complex64::zero());
    assert!(estimate(&rows, &targets, Forgetting::Fixed(1.0)).unwrap_err().to_string().contains("silent"));
    assert!(estimate(&rows, &targets[1..], Forgetting::Fixed(1.0)).is_err());
}

#[test]
fn features_reproduce_the_kernel() {
    let mut draws = Draws::new(2);
    let points: Vec<Vec<Complex64>> = (0..200).map(|_| (0..2).map(|_| draws.normal(false)).collect()).collect();
    fn check<K: Kernel<f64>>(kernel: &K, features: &Features<impl Kernel<f64>>, points: &[Vec<Complex64>]) {
        for a in &points[..20] {
            for b in &points[20..40] {
                let (mut x, mut y) = (Vec::new(), Vec::new());
                features.map(a, &mut x);
                features.map(b, &mut y);
                let product: Complex64 = x.iter().zip(&y).map(|(x, y)| x.conj() * y).sum();
                assert!((product - kernel.value(a, b)).norm() < 0.01, "{product} {}", kernel.value(a, b));
            }
        }
    }
    let gaussian = Gaussian::new(2.0).unwrap();
    check(&gaussian, &Features::pick(Gaussian::new(2.0).unwrap(), &points, 150), &points);
    let equivariant = Equivariant::new(2.5).unwrap();
    check(&equivariant, &Features::pick(Equivariant::new(2.5).unwrap(), &points, 190), &points);
}

#[test]
fn em_finds_the_variances_behind_a_kernel_filter() {
    // A function of one complex number that diffuses in the Gaussian kernel's space, seen in noise.
    let (diffusion, noise, lambda) = (1e-2, 0.05, 0.99);
    let mut draws = Draws::new(9);
    let inputs: Vec<Vec<Complex64>> = (0..2000).map(|_| vec![draws.normal(false)]).collect();
    let truth = Features::pick(Gaussian::new(1.5).unwrap(), &inputs, 60);
    let mut w = vec![Complex64::zero(); truth.len()];
    let mut targets = Vec::new();
    for x in &inputs {
        let mut phi = Vec::new();
        truth.map(x, &mut phi);
        w.iter_mut().for_each(|w| *w = *w * lambda + draws.normal(false) * f64::sqrt(diffusion));
        targets.push(w.iter().zip(&phi).map(|(w, p)| w * p).sum::<Complex64>() + draws.normal(false) * f64::sqrt(noise));
    }
    let features = Features::pick(Gaussian::new(1.5).unwrap(), &inputs, 30);
    let mut rows = Vec::new();
    inputs.iter().for_each(|x| features.map(x, &mut rows));
    let found = estimate(&rows, &targets, Forgetting::Fixed(lambda)).unwrap();
    near("diffusion", found.model.process_noise, diffusion, 0.2);
    near("noise", found.model.noise, noise, 0.2);
    assert!(found.gain_ratio > diffusion / noise, "the exact filter knows less than its last step");
}

#[test]
fn noise_about_a_line_is_found() {
    let x: Vec<_> = (0..400).map(|i| Complex64::new((f64::from(i) * 0.7).sin(), 0.0)).collect();
    let y: Vec<_> = x.iter().enumerate().map(|(i, x)| x * 2.0 + if i % 2 == 0 { 0.1 } else { -0.1 }).collect();
    let found = estimate(&x, &y, Forgetting::Fixed(1.0)).unwrap();
    assert!((found.model.noise - 0.01).abs() < 0.001);
}
