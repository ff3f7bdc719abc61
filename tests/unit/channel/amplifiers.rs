//! Amplifiers and clipping against their formulas.

use super::*;

fn output(model: Model, ibo_db: f64, x: Complex32) -> Complex64 {
    let mut samples = [x];
    Amplifier::new(model, ibo_db).unwrap().process(&mut samples);
    wide(samples[0])
}

#[test]
fn follow_their_formulas() {
    // (model, input amplitude, output amplitude, turn in radians)
    let saleh = |r: f64| (2.1587 * r / (1.0 + 1.1517 * r * r), 4.0033 * r * r / (1.0 + 9.104 * r * r));
    let table = [
        (Model::Limiter, 0.7, (0.7, 0.0)),
        (Model::Limiter, 3.0, (1.0, 0.0)),
        (Model::Rapp { smoothness: 1.0 }, 1.0, (0.5f64.sqrt(), 0.0)),
        (Model::Rapp { smoothness: 2.0 }, 1.0, (0.5f64.powf(0.25), 0.0)),
        (Model::Rapp { smoothness: 2.0 }, 2.0, (2.0 / 17f64.powf(0.25), 0.0)),
        (Model::Rapp { smoothness: 3.3 }, 2.0, (2.0 / (1.0 + 2f64.powf(6.6)).powf(1.0 / 6.6), 0.0)),
        (Model::saleh(), 0.3, saleh(0.3)),
        (Model::saleh(), 2.0, saleh(2.0)),
        (measured(), 0.05, (0.5 * 0.1 / 1.0001f64.powf(0.25), (20f64 * 0.01 / 1.01).to_radians())),
        (measured(), 0.5, (0.5 / 1.0625f64.powf(0.25), 4f64.to_radians())),
        (measured(), 99.0, (4.0 / 257f64.powf(0.25), (20f64 * 16.0 / 17.0).to_radians())),
    ];
    for (model, input, (amplitude, turn)) in table {
        // The amplifier drives an input of power 1 at 0 dB up to its saturation: undo that to address the curve itself.
        let x = Complex64::from_polar(input / model.saturation(), 0.8);
        let y = output(model.clone(), 0.0, Complex32::new(x.re as f32, x.im as f32));
        near(y.norm(), amplitude, 1e-5, &format!("{model:?} at {input}"));
        near((y * Complex64::cis(-0.8)).arg(), turn, 1e-5, &format!("phase of {model:?} at {input}"));
    }
}

#[test]
fn back_off_is_saturation_power_over_mean_input_power() {
    // An ideal limiter at γ² = saturation / mean power passes (1 − e^{−γ²})/γ² of its saturation power when the input is Gaussian.
    let x = gaussian(400_000, 1);
    for (ibo_db, input_power) in [(-9.0, 1.0), (-6.0, 25.0), (0.0, 1e-6), (6.0, 1.0)] {
        let mut y: Vec<Complex32> = x.iter().map(|z| z * f64::sqrt(input_power) as f32).collect();
        let mut amplifier = Amplifier::new(Model::Limiter, ibo_db).unwrap();
        amplifier.set_input_power(input_power).unwrap();
        amplifier.process(&mut y);
        let gamma2 = 10f64.powf(ibo_db / 10.0);
        near(power(&y) / ((1.0 - (-gamma2).exp()) / gamma2), 1.0, 0.01, &format!("IBO {ibo_db} dB"));
    }
}

#[test]
fn distortion_of_a_limiter_is_bussgangs() {
    // A limiter at γ times the rms passes α = 1 − e^{−γ²} + (√π/2)γ erfc(γ) of a Gaussian signal; the rest of its output is distortion.
    let x = gaussian(400_000, 12);
    for ibo_db in [-6.0, 0.0, 4.0] {
        let mut y = x.clone();
        Amplifier::new(Model::Limiter, ibo_db).unwrap().process(&mut y);
        let gamma = 10f64.powf(ibo_db / 20.0);
        let alpha = 1.0 - (-gamma * gamma).exp() + PI.sqrt() / 2.0 * gamma * libm::erfc(gamma);
        // The output is in units of the saturation: 1/γ of the rms.
        let gain = x.iter().zip(&y).map(|(x, y)| wide(y * x.conj())).sum::<Complex64>() / 4e5 / power(&x);
        near(gain.re * gamma, alpha, 0.005, &format!("gain at {ibo_db} dB"));
        let evm2 =
            x.iter().zip(&y).map(|(x, y)| (wide(*y) - wide(*x) * gain).norm_sqr()).sum::<f64>() / 4e5 / (gain.norm_sqr() * power(&x));
        near(db(evm2), db((1.0 - (-gamma * gamma).exp()) / (alpha * alpha) - 1.0), 0.1, &format!("EVM at {ibo_db} dB"));
    }
}

#[test]
fn turn_with_their_input() {
    for model in models() {
        let x = gaussian(100, 2);
        let (mut plain, mut turned) = (x.clone(), x.iter().map(|z| z * Complex32::i()).collect::<Vec<_>>());
        Amplifier::new(model.clone(), -3.0).unwrap().process(&mut plain);
        Amplifier::new(model.clone(), -3.0).unwrap().process(&mut turned);
        for (p, t) in plain.iter().zip(&turned) {
            assert!((p * Complex32::i() - t).norm() < 1e-6, "{model:?}");
        }
    }
}

#[test]
fn rapp_with_a_sharp_knee_is_the_limiter() {
    for amplitude in [0.1f32, 0.8, 1.3, 20.0] {
        let x = Complex32::new(0.6 * amplitude, -0.8 * amplitude);
        let difference = output(Model::Rapp { smoothness: 100.0 }, 0.0, x) - output(Model::Limiter, 0.0, x);
        assert!(difference.norm() < 1e-3, "{amplitude}: {difference}");
    }
}

#[test]
fn saturate_where_they_say() {
    for model in [Model::saleh(), measured()] {
        let largest = output(model.clone(), 0.0, Complex32::ONE).norm();
        for amplitude in [0.5, 0.9, 1.1, 2.0] {
            assert!(output(model.clone(), 0.0, Complex32::new(amplitude, 0.0)).norm() <= largest + 1e-6, "{model:?} at {amplitude}");
        }
    }
}

#[test]
fn a_memory_polynomial_is_its_sum() {
    let x = gaussian(500, 3);
    let mut y: Vec<Complex32> = x.iter().map(|z| z * 0.2).collect();
    let scaled: Vec<Complex64> = y.iter().map(|&z| wide(z)).collect();
    let mut amplifier = Amplifier::new(polynomial(), 0.0).unwrap();
    amplifier.process(&mut y);
    for n in 2..500 {
        let (a, b, c) = (scaled[n], scaled[n - 1], scaled[n - 2]);
        let expected = a
            + a * a.norm_sqr() * Complex64::new(-0.3, 0.1)
            + b * Complex64::new(0.1, -0.05)
            + c * c.norm().powi(4) * Complex64::new(0.0, 0.02);
        assert!((wide(y[n]) - expected).norm() < 1e-6, "sample {n}");
    }
}

#[test]
fn stay_finite_at_any_finite_input() {
    for model in models() {
        for amplitude in [0.0, 1e-38, 1e-20, 1e20, 1e38] {
            let y = output(model.clone(), -20.0, Complex32::new(amplitude, -amplitude));
            assert!(y.re.is_finite() && y.im.is_finite() && y.norm() < 10.0, "{model:?} at {amplitude}: {y}");
        }
    }
}

#[test]
fn refuse_what_makes_no_amplifier() {
    let point = |input, output| Point { input, output, phase_deg: 0.0 };
    let term = |order, re| Term { order, delay: 0, re, im: 0.0 };
    let bad = [
        Model::Rapp { smoothness: 0.0 },
        Model::Rapp { smoothness: f64::NAN },
        Model::Saleh { alpha_a: 2.0, beta_a: -1.0, alpha_phi: 0.0, beta_phi: 0.0 },
        Model::MemoryPolynomial { terms: vec![] },
        Model::MemoryPolynomial { terms: vec![term(0, 1.0)] },
        Model::MemoryPolynomial { terms: vec![term(1, f64::INFINITY)] },
        Model::Table { points: vec![point(1.0, 1.0)] },
        Model::Table { points: vec![point(1.0, 1.0), point(1.0, 2.0)] },
        Model::Table { points: vec![point(0.5, 1.0), point(1.0, f64::NAN)] },
    ];
    for model in bad {
        let error = Amplifier::new(model.clone(), 0.0).expect_err(&format!("{model:?}")).to_string();
        assert!(error.contains("must be"), "{error}");
    }
    assert!(Amplifier::new(Model::Limiter, f64::NAN).is_err());
    assert!(Amplifier::new(Model::Limiter, 0.0).unwrap().set("smoothness", 2.0).is_err());
}

#[test]
fn clipping_keeps_the_phase_and_the_power_that_theory_says() {
    let x = gaussian(400_000, 4);
    for clip_db in [0.0, 3.0, 6.0] {
        let mut y = x.clone();
        Amplifier::new(Model::Limiter, clip_db).unwrap().process(&mut y);
        let gamma2 = 10f64.powf(clip_db / 10.0);
        near(power(&y) * gamma2, 1.0 - (-gamma2).exp(), 0.005, &format!("clipped at {clip_db} dB"));
        assert!(y.iter().zip(&x).all(|(y, x)| y.norm() < 1.00001 && (y * x.conj()).arg().abs() < 1e-6));
    }
}
