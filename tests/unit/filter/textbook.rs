//! The library against the recursions as the literature writes them: no running scale, no planes, no shortcuts.

use super::common::{channel, noise};
use kaflow::Complex64;
use kaflow::filter::*;
use kaflow::kernel::{Equivariant, Gaussian, Hammerstein, Kernel, Linear, Polynomial};
use kaflow::observation::Gain;

const TAPS: usize = 3;

fn pairs(seed: u64, n: usize) -> Vec<(Vec<Complex64>, Complex64)> {
    let (tx, rx) = channel(seed, n);
    let mut window = Window::new(TAPS).unwrap();
    tx.iter().zip(rx).map(|(&u, y)| (window.push(u).to_vec(), y)).collect()
}

fn compare(what: &str, seed: u64, filter: &mut dyn Filter<f64>, mut textbook: impl FnMut(&[Complex64], Complex64) -> Complex64) {
    for (i, (x, y)) in pairs(seed, 300).into_iter().enumerate() {
        let (p, q) = (filter.adapt(&x, y), textbook(&x, y));
        assert!((p - q).norm() <= 1e-10 * (1e-3 + q.norm()), "{what}, sample {i}: {p} instead of {q}");
    }
}

/// How a member of the family differs from the others.
#[derive(Clone, Copy)]
struct Member {
    eta: f64,
    /// Decay before the prediction.
    decay: f64,
    /// Decay after it, in units of the step.
    ridge: f64,
    budget: usize,
    radius: Option<f64>,
}

/// KLMS, fKLMS, NORMA and QKLMS in one: a list of centres and coefficients.
fn family<'a>(kernel: &'a dyn Kernel<f64>, member: Member) -> impl FnMut(&[Complex64], Complex64) -> Complex64 + 'a {
    let mut list: Vec<(Vec<Complex64>, Complex64)> = Vec::new();
    move |x, y| {
        // More than this would overshoot.
        let eta = member.eta.min(1.0 / kernel.norm(x));
        list.iter_mut().for_each(|(_, a)| *a *= member.decay);
        let p: Complex64 = list.iter().map(|(c, a)| a * kernel.value(c, x)).sum();
        list.iter_mut().for_each(|(_, a)| *a *= 1.0 - eta * member.ridge);
        let step = (y - p) * eta;
        let distance = |c: &[Complex64]| kernel.distance(c, x);
        let nearest = list.iter_mut().min_by(|a, b| distance(&a.0).total_cmp(&distance(&b.0)));
        match nearest {
            Some((c, a)) if member.radius.is_some_and(|r| distance(c) <= r * r) => *a += step,
            _ => list.push((x.to_vec(), step)),
        }
        if list.len() > member.budget {
            list.remove(0);
        }
        p
    }
}

#[test]
fn the_family_follows_its_definition_with_every_kernel() {
    let kernels: [&dyn Fn() -> Box<dyn Kernel<f64>>; 5] = [
        &|| Box::new(Gaussian::new(0.9).unwrap()),
        &|| Box::new(Linear),
        &|| Box::new(Polynomial::new(2, 1.0).unwrap()),
        &|| Box::new(Equivariant::new(0.6).unwrap()),
        &|| Box::new(Hammerstein::new(0.6).unwrap()),
    ];
    for (i, kernel) in kernels.iter().enumerate() {
        let k = kernel();
        let (eta, seed, unbounded) = (0.08, 40 + i as u64, usize::MAX);
        let budget = |m| Evict { budget: Some(m), floor: None };
        let base = Member { eta, decay: 1.0, ridge: 0.0, budget: unbounded, radius: None };
        compare("klms", seed, &mut klms(kernel(), Gain::Eta(eta), Evict::default(), TAPS).unwrap(), family(&*k, base));
        let member = Member { decay: 0.95, budget: 17, ..base };
        compare("fklms", seed, &mut fklms(kernel(), Gain::Eta(eta), 0.95, budget(17), TAPS).unwrap(), family(&*k, member));
        let member = Member { ridge: 0.4, budget: 23, ..base };
        compare("norma", seed, &mut norma(kernel(), Gain::Eta(eta), 0.4, budget(23), TAPS).unwrap(), family(&*k, member));
        let member = Member { radius: Some(0.8), budget: 40, ..base };
        compare("qklms", seed, &mut qklms(kernel(), Gain::Eta(eta), 0.8, budget(40), TAPS).unwrap(), family(&*k, member));
    }
}

type Matrix = Vec<Vec<Complex64>>;

fn solve(mut a: Matrix, mut b: Vec<Complex64>) -> Vec<Complex64> {
    let n = b.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|&r, &s| a[r][i].norm().total_cmp(&a[s][i].norm())).unwrap();
        a.swap(i, pivot);
        b.swap(i, pivot);
        for r in i + 1..n {
            let factor = a[r][i] / a[i][i];
            let pivot_row = a[i].clone();
            a[r].iter_mut().zip(&pivot_row).skip(i).for_each(|(entry, p)| *entry -= factor * p);
            let v = b[i];
            b[r] -= factor * v;
        }
    }
    for i in (0..n).rev() {
        for c in i + 1..n {
            let v = b[c];
            b[i] -= a[i][c] * v;
        }
        b[i] /= a[i][i];
    }
    b
}

#[test]
fn rls_solves_the_weighted_normal_equations() {
    let (lambda, c): (f64, f64) = (0.97, 0.05);
    let mut past: Vec<(Vec<Complex64>, Complex64)> = Vec::new();
    compare("rls", 50, &mut Rls::new(TAPS, lambda, c).unwrap(), |x, y| {
        // min Σ λ^(n−i) |y_i − w·x_i|² + λ^n c ‖w‖²
        let n = past.len() as i32;
        let mut a: Matrix = (0..TAPS).map(|i| (0..TAPS).map(|j| if i == j { c * lambda.powi(n) } else { 0.0 }.into()).collect()).collect();
        let mut b = vec![Complex64::new(0.0, 0.0); TAPS];
        for (i, (u, v)) in past.iter().enumerate() {
            let weight = lambda.powi(n - 1 - i as i32);
            for r in 0..TAPS {
                b[r] += u[r].conj() * v * weight;
                for s in 0..TAPS {
                    a[r][s] += u[r].conj() * u[s] * weight;
                }
            }
        }
        past.push((x.to_vec(), y));
        solve(a, b).iter().zip(x).map(|(w, x)| w * x).sum()
    });
}

#[test]
fn krls_t_without_forgetting_is_a_gaussian_process() {
    let (kernel, noise_variance) = (Gaussian::new(1.5).unwrap(), 0.05);
    let mut filter = KrlsT::new(Gaussian::new(1.5).unwrap(), 1.0, noise_variance, 60, TAPS).unwrap();
    let data = pairs(51, 60);
    for (n, (x, y)) in data.iter().enumerate() {
        let p = filter.adapt(x, *y);
        // mean = kᵀ (K + σ² I)⁻¹ y, with the jitter on the diagonal of K
        let gram = |i: usize, j: usize| kernel.value(&data[i].0, &data[j].0) + if i == j { noise_variance + 1e-6 } else { 0.0 };
        let a: Matrix = (0..n).map(|i| (0..n).map(|j| gram(i, j)).collect()).collect();
        let weights = solve(a, data[..n].iter().map(|(_, y)| *y).collect());
        let q: Complex64 = weights.iter().zip(&data).map(|(w, (c, _))| w * kernel.value(c, x)).sum();
        assert!((p - q).norm() < 1e-6, "sample {n}: {p} instead of {q}");
    }
}

#[test]
fn the_kalman_filter_is_the_posterior_of_its_state_space_model() {
    // With λ = 1 and no noise on the weights but the prior, the posterior mean is ridge regression with ridge σ_n².
    let noise_variance = 0.2;
    let mut past: Vec<(Vec<Complex64>, Complex64)> = Vec::new();
    compare("kalman", 52, &mut Kalman::new(TAPS, 1.0, 0.0, noise_variance).unwrap(), |x, y| {
        let mut a: Matrix = (0..TAPS).map(|i| (0..TAPS).map(|j| if i == j { noise_variance } else { 0.0 }.into()).collect()).collect();
        let mut b = vec![Complex64::new(0.0, 0.0); TAPS];
        for (u, v) in &past {
            for r in 0..TAPS {
                b[r] += u[r].conj() * v;
                for s in 0..TAPS {
                    a[r][s] += u[r].conj() * u[s];
                }
            }
        }
        past.push((x.to_vec(), y));
        solve(a, b).iter().zip(x).map(|(w, x)| w * x).sum()
    });
}

#[test]
fn the_kalman_filter_knows_its_error() {
    // Data drawn from the model itself: errors have the variance that the filter reports.
    let (q, r) = (1e-3, 0.1);
    let (x, drift, n) = (noise(53, 20_000 + TAPS), noise(54, 20_000 * TAPS), noise(55, 20_000));
    // Uniform on a square of side 2: variance 2/3 in all.
    let unit = (1.5f64).sqrt();
    let mut truth = [Complex64::new(0.3, 0.1), Complex64::new(-0.5, 0.6), Complex64::new(0.1, -0.9)];
    let mut filter = Kalman::new(TAPS, 1.0, q, r).unwrap();
    let mut ratio = 0.0;
    for i in 0..20_000 {
        for (l, w) in truth.iter_mut().enumerate() {
            *w += drift[i * TAPS + l] * (unit * q.sqrt());
        }
        let u = &x[i..i + TAPS];
        let y = truth.iter().zip(u).map(|(w, x)| w * x).sum::<Complex64>() + n[i] * (unit * r.sqrt());
        let p: Complex64 = filter.adapt(u, y);
        let variance: f64 = Filter::<f64>::variance(&filter).unwrap();
        if i >= 1000 {
            ratio += (y - p).norm_sqr() / variance / 19_000.0;
        }
    }
    assert!((ratio - 1.0).abs() < 0.03, "squared errors are {ratio} times the reported variance");
}
