//! Every filter against reference predictions: float64 numpy and KAFBOX in Octave.

use super::common::Table;
use kaflow::Complex;
use kaflow::filter::*;
use kaflow::kernel::{Gaussian, Hammerstein};
use kaflow::observation::{Bernoulli, Gain, Poisson, bernoulli_step, poisson_step};

type Build = fn(&serde_json::Value, usize) -> Box<dyn Filter<f64>>;

fn number(p: &serde_json::Value, name: &str) -> f64 {
    p[name].as_f64().unwrap_or_else(|| panic!("no parameter {name} in {p}"))
}

fn budget(p: &serde_json::Value) -> Evict {
    Evict { budget: p["budget"].as_u64().map(|b| b as usize), floor: None }
}

fn sigma(p: &serde_json::Value) -> Gaussian<f64> {
    Gaussian::new(p["sigma"].as_f64().or(p["kernelpar"].as_f64()).unwrap()).unwrap()
}

fn envelopes(p: &serde_json::Value) -> (Hammerstein<f64>, Gain) {
    (Hammerstein::new(number(p, "sigma")).unwrap(), Gain::DiffusionRatio(number(p, "diffusion-ratio")))
}

/// Vector, tolerance relative to the largest target, and the filter that must reproduce it.
const CASES: &[(&str, f64, Build)] = &[
    ("kafbox_klms_real1", 1e-10, |p, n| Box::new(klms(sigma(p), Gain::Eta(number(p, "eta")), Evict::default(), n).unwrap())),
    ("ref_klms_cplx4", 1e-10, |p, n| Box::new(klms(sigma(p), Gain::Eta(number(p, "eta")), Evict::default(), n).unwrap())),
    ("ref_fklms_real1", 1e-10, |p, n| Box::new(fklms(sigma(p), Gain::Eta(number(p, "eta")), number(p, "lambda"), budget(p), n).unwrap())),
    ("ref_fklms_cplx4", 1e-10, |p, n| Box::new(fklms(sigma(p), Gain::Eta(number(p, "eta")), number(p, "lambda"), budget(p), n).unwrap())),
    ("ref_fklms_ratio_real4", 1e-10, |p, n| {
        Box::new(fklms(sigma(p), Gain::DiffusionRatio(number(p, "eta_prime")), number(p, "lambda"), budget(p), n).unwrap())
    }),
    ("ref_norma_cplx4", 1e-10, |p, n| Box::new(norma(sigma(p), Gain::Eta(number(p, "eta")), number(p, "reg"), budget(p), n).unwrap())),
    ("kafbox_qklms_real4", 1e-10, |p, n| {
        Box::new(qklms(sigma(p), Gain::Eta(number(p, "eta")), number(p, "epsu"), Evict::default(), n).unwrap())
    }),
    ("ref_qklms_cplx4", 1e-10, |p, n| {
        Box::new(qklms(sigma(p), Gain::Eta(number(p, "eta")), number(p, "eps"), Evict::default(), n).unwrap())
    }),
    ("kafbox_nlms_cplx4", 1e-10, |p, n| Box::new(Nlms::new(n, number(p, "mu"), number(p, "eps")).unwrap())),
    ("ref_nlms_real4", 1e-10, |p, n| Box::new(Nlms::new(n, number(p, "mu"), number(p, "eps")).unwrap())),
    ("kafbox_rls_cplx4", 1e-10, |p, n| Box::new(Rls::new(n, number(p, "lambda"), number(p, "c")).unwrap())),
    ("ref_kalman_cplx4", 1e-10, |p, n| Box::new(Kalman::new(n, number(p, "lambda"), number(p, "qvar"), number(p, "r")).unwrap())),
    ("hammerstein_klms_cplx4", 1e-10, |p, n| {
        let (kernel, gain) = envelopes(p);
        Box::new(klms(kernel, gain, budget(p), n).unwrap())
    }),
    ("hammerstein_fklms_cplx4", 1e-10, |p, n| {
        let (kernel, gain) = envelopes(p);
        Box::new(fklms(kernel, gain, number(p, "lambda"), budget(p), n).unwrap())
    }),
    ("hammerstein_norma_cplx4", 1e-10, |p, n| {
        let (kernel, gain) = envelopes(p);
        Box::new(norma(kernel, gain, number(p, "ridge"), budget(p), n).unwrap())
    }),
    ("kafbox_krlst_real4", 1e-6, |p, n| {
        Box::new(KrlsT::new(sigma(p), number(p, "lambda"), number(p, "sn2"), number(p, "M") as usize, n).unwrap())
    }),
    ("ref_krlst_cplx4", 1e-6, |p, n| {
        Box::new(KrlsT::new(sigma(p), number(p, "lambda"), number(p, "sn2"), number(p, "M") as usize, n).unwrap())
    }),
];

#[test]
fn filters_reproduce_the_reference_predictions() {
    for &(name, tolerance, build) in CASES {
        let table = Table::vector(name);
        let x = table.inputs();
        let (y, expected) = (table.complex("y"), table.complex("pred"));
        let mut filter = build(&table.about["params"], x[0].len());
        let centres = table.column("centres");
        for i in 0..x.len() {
            let p = filter.adapt(&x[i], y[i]);
            let error = (p - expected[i]).norm();
            assert!(error <= tolerance * expected[i].norm().max(1e-3), "{name}, sample {i}: {p} instead of {}", expected[i]);
            if let Some(centres) = centres.as_ref().filter(|c| c[i] > 0.0) {
                assert_eq!(filter.size() as f64, centres[i], "{name}, sample {i}: centres");
            }
        }
    }
}

#[test]
fn poisson_reproduces_the_reference_rates() {
    let table = Table::vector("ref_poisson");
    let p = &table.about["params"];
    let kernel = Gaussian::new((number(p, "c") / 2.0).sqrt()).unwrap();
    let model = Poisson::new(number(p, "sd2"), 0.0).unwrap();
    let mut filter = bayesian_klms(kernel, model, number(p, "lambda"), Evict::default(), 1).unwrap();
    let (x, y, expected) = (table.column("x_deg").unwrap(), table.column("y").unwrap(), table.column("pred_rate").unwrap());
    for i in 0..x.len() {
        let rate = filter.adapt(&[Complex::new(x[i], 0.0)], y[i]);
        assert!((rate - expected[i]).abs() <= 1e-10 * expected[i], "sample {i}: {rate} instead of {}", expected[i]);
    }
}

#[test]
fn bernoulli_reproduces_the_reference_probabilities() {
    let table = Table::vector("ref_bernoulli");
    let p = &table.about["params"];
    let kernel = Gaussian::new((number(p, "c") / 2.0).sqrt()).unwrap();
    let model = Bernoulli::new(number(p, "sd2"), 0.0).unwrap();
    let mut filter = bayesian_klms(kernel, model, number(p, "lambda"), Evict::default(), 2).unwrap();
    let (y, expected) = (table.column("y").unwrap(), table.column("pred_prob").unwrap());
    for (i, x) in table.inputs().iter().enumerate() {
        let prob = filter.adapt(x, y[i] != 0.0);
        assert!((prob - expected[i]).abs() <= 1e-10 * expected[i], "sample {i}: {prob} instead of {}", expected[i]);
    }
}

#[test]
fn scalar_steps_reproduce_multiprecision_values() {
    for (name, step) in [
        ("ref_poisson_alpha", (|y, f, s| poisson_step(y, f, s)) as fn(f64, f64, f64) -> f64),
        ("ref_bernoulli_alpha", |y, f, s| bernoulli_step(y != 0.0, f, s)),
    ] {
        let table = Table::vector(name);
        let column = |name: &str| table.column(name).unwrap();
        let (y, f, s, expected) = (column("y"), column("f"), column("sd2"), column("alpha_mpmath"));
        for i in 0..y.len() {
            let a = step(y[i], f[i], s[i]);
            assert!((a - expected[i]).abs() <= 1e-10 * expected[i].abs(), "{name} row {i}: {a} instead of {}", expected[i]);
        }
    }
}
