//! The parts of the test bed, each against the statistics or the formula that defines it.

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

mod amplifiers {
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
            Clip::new(clip_db).unwrap().process(&mut y);
            let gamma2 = 10f64.powf(clip_db / 10.0);
            near(power(&y), 1.0 - (-gamma2).exp(), 0.005, &format!("clipped at {clip_db} dB"));
            assert!(y.iter().zip(&x).all(|(y, x)| y.norm() < gamma2.sqrt() as f32 * 1.00001 && (y * x.conj()).arg().abs() < 1e-6));
        }
    }
}

mod fading {
    use super::*;

    const FLAT: fn() -> Profile = || Profile::exponential(1, 0.0);

    /// The taps over time, by coefficient.
    fn taps(config: &FadingConfig, samples: usize, seed: u64, real: bool) -> Vec<Vec<Complex64>> {
        let mut fading = if real { Fading::real_valued(config, seed) } else { Fading::new(config, seed) }.unwrap();
        let x = vec![Complex32::ONE; samples];
        let tx = vec![&x[..]; fading.tx_antennas()];
        let mut y = vec![vec![Complex32::ZERO; samples]; fading.rx_antennas()];
        let mut out = vec![Vec::with_capacity(samples); fading.coefficients()];
        fading.process_mimo(&tx, &mut y.iter_mut().map(|r| &mut r[..]).collect::<Vec<_>>(), |_, now| {
            for (out, tap) in out.iter_mut().zip(now.taps()) {
                out.push(tap);
            }
        });
        out
    }

    #[test]
    fn autocorrelation_is_j0() {
        // 40 realisations of 100 Doppler periods: the standard error of each value is about 0.01.
        let doppler = 0.01;
        let lags = [0usize, 5, 10, 20, 38, 61, 88, 100, 150, 300];
        for real in [false, true] {
            let mut sums = vec![Complex64::ZERO; lags.len()];
            for seed in 0..40 {
                let h = taps(&FadingConfig::new(FLAT(), doppler), 10_000, seed, real).remove(0);
                for (sum, &lag) in sums.iter_mut().zip(&lags) {
                    *sum += autocorrelation(&h, lag) / 40.0;
                }
            }
            for (sum, lag) in sums.iter().zip(lags) {
                near(sum.re, libm::j0(TAU * doppler * lag as f64), 0.04, &format!("lag {lag}, real {real}"));
                near(sum.im, 0.0, 0.04, &format!("imaginary part at lag {lag}"));
            }
        }
    }

    #[test]
    fn envelope_is_rayleigh_and_parts_are_gaussian() {
        // 4000 independent channels: the empirical distribution function is within 1.63/√4000 = 0.026 of the true one in 99 % of all cases.
        let config = FadingConfig::new(Profile::exponential(4, 0.0), 0.1);
        let mut draws: Vec<Complex64> =
            (0..1000).flat_map(|seed| Fading::new(&config, seed).unwrap().taps().map(|h| h * 2.0).collect::<Vec<_>>()).collect();
        let fourth = draws.iter().map(|h| h.norm_sqr().powi(2)).sum::<f64>() / draws.len() as f64;
        near(fourth, 2.0, 0.2, "E|h|^4");
        draws.sort_by(|a, b| a.norm().total_cmp(&b.norm()));
        let distance = draws
            .iter()
            .enumerate()
            .map(|(k, h)| ((k as f64 + 0.5) / draws.len() as f64 - (1.0 - (-h.norm_sqr()).exp())).abs())
            .fold(0.0, f64::max);
        assert!(distance < 0.026, "distance from Rayleigh: {distance}");
        let correlation = draws.iter().map(|h| h.re * h.im).sum::<f64>() / draws.len() as f64;
        near(correlation, 0.0, 0.03, "E[Re Im]");
    }

    #[test]
    fn powers_follow_the_profile_and_add_up_to_one() {
        let cases = [
            (Profile::exponential(4, 3.0), vec![0.0, -3.0, -6.0, -9.0]),
            (Profile::Paths(vec![(7, -8.0), (0, -2.0), (3, 0.0)]), vec![-2.0, 0.0, -8.0]),
            ("0:-100,5:0".parse().unwrap(), vec![-100.0, 0.0]),
        ];
        for (profile, expected) in cases {
            let total: f64 = expected.iter().map(|p| 10f64.powf(p / 10.0)).sum();
            let config = FadingConfig::new(profile.clone(), 0.02);
            let mut powers = vec![0.0; expected.len()];
            for seed in 0..20 {
                for (power, h) in powers.iter_mut().zip(taps(&config, 5000, seed, false)) {
                    *power += autocorrelation(&h, 0).re / 20.0;
                }
            }
            for (power, expected) in powers.iter().zip(&expected) {
                near(db(*power), expected - db(total), 0.5, &format!("{profile}"));
            }
            near(powers.iter().sum(), 1.0, 0.06, "total power");
        }
        let fading = Fading::new(&FadingConfig::new(Profile::Paths(vec![(7, -8.0), (0, -2.0)]), 0.0), 1).unwrap();
        assert_eq!(fading.delays(), [0, 7]);
    }

    #[test]
    fn the_line_of_sight_has_its_power_and_its_frequency() {
        for k_db in [-3.0, 6.0, 20.0] {
            let mut config = FadingConfig::new(FLAT(), 0.01);
            config.rician_k_db = Some(k_db);
            config.sight_angle_deg = 60.0;
            let k = 10f64.powf(k_db / 10.0);
            let (mut total, mut sight) = (0.0, 0.0);
            for seed in 0..30 {
                let h = taps(&config, 20_000, seed, false).remove(0);
                total += autocorrelation(&h, 0).re / 30.0;
                let line: Complex64 = h.iter().enumerate().map(|(n, h)| h * Complex64::cis(-TAU * 0.01 * 0.5 * n as f64)).sum();
                sight += (line / h.len() as f64).norm_sqr() / 30.0;
            }
            near(total, 1.0, 0.05, "total power");
            near(sight, k / (k + 1.0), 0.04, &format!("K = {k_db} dB"));
        }
    }

    #[test]
    fn doppler_may_change_in_time() {
        // Ensemble correlation over 100 samples, early and late: J0 of the frequency that holds there.
        let mut config = FadingConfig::new(FLAT(), 0.0);
        config.doppler = "1000:5e-4,11000:3e-3".parse().unwrap();
        let mut sums = [0.0; 3];
        for seed in 0..1500 {
            let mut fading = Fading::new(&config, seed).unwrap();
            let mut h = Vec::new();
            let x = [Complex32::ONE; 12_600];
            let mut y = [Complex32::ZERO; 12_600];
            fading.process_mimo(&[&x], &mut [&mut y], |n, now| {
                if n % 100 == 0 {
                    h.extend(now.taps());
                }
            });
            for (sum, start) in sums.iter_mut().zip([2, 60, 122]) {
                *sum += (h[start + 1] * h[start].conj()).re / 1500.0;
            }
        }
        let middle = 5e-4 + 2.5e-3 * (6050.0 - 1000.0) / 10_000.0;
        for (sum, frequency) in sums.iter().zip([5e-4, middle, 3e-3]) {
            near(*sum, libm::j0(TAU * frequency * 100.0), 0.08, &format!("at {frequency}"));
        }
    }

    #[test]
    fn taps_and_delays_explain_the_output() {
        let mut config = FadingConfig::new(Profile::Paths(vec![(0, 0.0), (2, -1.0), (9, -5.0)]), 0.02);
        (config.tx_antennas, config.rx_antennas) = (3, 2);
        (config.tx_correlation, config.rx_correlation, config.rician_k_db) = (0.5, 0.3, Some(0.0));
        let x: Vec<Vec<Complex32>> = (0..3).map(|t| gaussian(600, 10 + t)).collect();
        let mut fading = Fading::new(&config, 5).unwrap();
        let mut y = vec![vec![Complex32::ZERO; 600]; 2];
        let mut taps = Vec::new();
        let tx: Vec<&[Complex32]> = x.iter().map(|t| &t[..]).collect();
        fading.process_mimo(&tx, &mut y.iter_mut().map(|r| &mut r[..]).collect::<Vec<_>>(), |_, now| {
            taps.push(now.taps().collect::<Vec<_>>())
        });
        for n in 9..600 {
            for r in 0..2 {
                let mut expected = Complex64::ZERO;
                for t in 0..3 {
                    for (l, delay) in [0, 2, 9].into_iter().enumerate() {
                        expected += taps[n][(r * 3 + t) * 3 + l] * wide(x[t][n - delay]);
                    }
                }
                assert!((wide(y[r][n]) - expected).norm() < 1e-5);
            }
        }
    }

    #[test]
    fn antennas_are_as_correlated_as_asked() {
        for (rho_tx, rho_rx) in [(0.0, 0.0), (0.7, 0.4)] {
            let mut config = FadingConfig::new(FLAT(), 0.0);
            (config.tx_antennas, config.rx_antennas) = (4, 4);
            (config.tx_correlation, config.rx_correlation) = (rho_tx, rho_rx);
            let mut covariance = vec![Complex64::ZERO; 256];
            const RUNS: u64 = 4000;
            for seed in 0..RUNS {
                let h: Vec<Complex64> = Fading::new(&config, seed).unwrap().taps().collect();
                for a in 0..16 {
                    for b in 0..16 {
                        covariance[a * 16 + b] += h[a] * h[b].conj() / RUNS as f64;
                    }
                }
            }
            for a in 0..16i32 {
                for b in 0..16i32 {
                    let expected = f64::powi(rho_rx, (a / 4 - b / 4).abs()) * f64::powi(rho_tx, (a % 4 - b % 4).abs());
                    let got = covariance[(a * 16 + b) as usize];
                    assert!((got - expected).norm() < 0.08, "links {a} and {b}: {got} is not {expected}");
                }
            }
        }
    }

    #[test]
    fn a_frozen_channel_stays_and_a_fast_one_works() {
        let still = taps(&FadingConfig::new(FLAT(), 0.0), 1000, 3, false).remove(0);
        assert!(still.iter().all(|h| *h == still[0]));
        let fast = taps(&FadingConfig::new(FLAT(), 0.5), 20_000, 3, false).remove(0);
        near(autocorrelation(&fast, 0).re, 1.0, 0.1, "power at the highest Doppler");
    }

    #[test]
    fn real_channels_keep_real_signals_real() {
        let config = FadingConfig::new(Profile::exponential(3, 3.0), 0.01);
        let mut x: Vec<Complex32> = gaussian(1000, 1).iter().map(|z| Complex32::new(z.re, 0.0)).collect();
        Fading::real_valued(&config, 1).unwrap().process(&mut x);
        assert!(x.iter().all(|z| z.im == 0.0) && power(&x) > 0.01);
    }

    #[test]
    fn refuse_what_makes_no_channel() {
        let good = || FadingConfig::new(FLAT(), 0.001);
        let bad = [
            FadingConfig { profile: Profile::exponential(0, 3.0), ..good() },
            FadingConfig { profile: Profile::Paths(vec![]), ..good() },
            FadingConfig { profile: Profile::Paths(vec![(1, 0.0), (1, -3.0)]), ..good() },
            FadingConfig { profile: Profile::Paths(vec![(1, f64::NAN)]), ..good() },
            FadingConfig { doppler: Doppler::Constant(0.6), ..good() },
            FadingConfig { doppler: Doppler::Constant(-0.1), ..good() },
            FadingConfig { doppler: Doppler::Points(vec![(5, 0.1), (5, 0.2)]), ..good() },
            FadingConfig { doppler: Doppler::Points(vec![]), ..good() },
            FadingConfig { tx_antennas: 0, ..good() },
            FadingConfig { tx_antennas: 16, rx_antennas: 16, profile: Profile::exponential(17, 1.0), ..good() },
            FadingConfig { rx_antennas: 17, ..good() },
            FadingConfig { rx_correlation: 1.0, ..good() },
            FadingConfig { rician_k_db: Some(f64::NAN), ..good() },
        ];
        for config in bad {
            assert!(Fading::new(&config, 0).is_err(), "{config:?}");
        }
        assert!("0:x".parse::<Doppler>().is_err() && "3".parse::<Profile>().is_err());
    }
}

mod receiver {
    use super::*;

    #[test]
    fn noise_is_white_circular_and_as_strong_as_asked() {
        for (snr_db, signal_power) in [(20.0, 1.0), (10.0, 0.3), (-5.0, 1e-6)] {
            let mut noise = Noise::new(snr_db, 1).unwrap();
            noise.set_signal_power(signal_power).unwrap();
            let mut n = vec![Complex32::ZERO; 400_000];
            noise.process(&mut n);
            near(db(signal_power / power(&n)), snr_db, 0.03, "SNR");
            let unit: Vec<Complex64> = n.iter().map(|&z| wide(z) / noise.power().sqrt()).collect();
            near(unit.iter().map(|z| z.norm_sqr().powi(2)).sum::<f64>() / 4e5, 2.0, 0.03, "E|n|^4");
            let pseudo = unit.iter().map(|z| z * z).sum::<Complex64>() / 4e5;
            assert!(pseudo.norm() < 0.01 && autocorrelation(&unit, 1).norm() < 0.01 && autocorrelation(&unit, 7).norm() < 0.01);
        }
        let mut real = vec![Complex32::ZERO; 400_000];
        Noise::new(10.0, 2).unwrap().real_valued().process(&mut real);
        assert!(real.iter().all(|z| z.im == 0.0));
        near(db(power(&real)), -10.0, 0.05, "real noise");
    }

    #[test]
    fn an_oracle_reaches_the_noise_floor() {
        for (snr_db, floor_db) in [(20.0, -20.043), (10.0, -10.414)] {
            let x = gaussian(400_000, 7);
            let mut y = x.clone();
            Noise::new(snr_db, 3).unwrap().process(&mut y);
            let error: f64 = x.iter().zip(&y).map(|(x, y)| wide(y - x).norm_sqr()).sum();
            near(db(error / 4e5 / power(&y)), floor_db, 0.03, "NMSE of an oracle");
        }
    }

    #[test]
    fn sixteen_qam_in_noise_has_the_bit_error_rate_and_evm_of_the_closed_form() {
        let levels = [-3.0, -1.0, 3.0, 1.0].map(|a: f64| a / 10f64.sqrt());
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let bits: Vec<u32> = (0..300_000).map(|_| rng.next_u32() & 15).collect();
        let symbols: Vec<Complex32> =
            bits.iter().map(|b| Complex32::new(levels[(b & 3) as usize] as f32, levels[(b >> 2) as usize] as f32)).collect();
        let q = |x: f64| 0.5 * libm::erfc(x / 2f64.sqrt());
        for snr_db in [8.0, 12.0, 16.0] {
            let mut y = symbols.clone();
            Noise::new(snr_db, 4).unwrap().process(&mut y);
            let nearest = |x: f32| {
                (0..4u32)
                    .min_by(|&a, &b| (f64::from(x) - levels[a as usize]).abs().total_cmp(&(f64::from(x) - levels[b as usize]).abs()))
                    .unwrap()
            };
            let wrong: u32 = bits.iter().zip(&y).map(|(b, y)| (b ^ (nearest(y.re) | nearest(y.im) << 2)).count_ones()).sum();
            let rate = f64::from(wrong) / (4.0 * bits.len() as f64);
            // Gray-coded 16-QAM: P = (3Q(a) + 2Q(3a) − Q(5a))/4 with a = √(SNR/5).
            let a = (10f64.powf(snr_db / 10.0) / 5.0).sqrt();
            let theory = (3.0 * q(a) + 2.0 * q(3.0 * a) - q(5.0 * a)) / 4.0;
            let deviation = (theory / (4.0 * bits.len() as f64)).sqrt();
            near(rate, theory, 5.0 * deviation, &format!("bit errors at {snr_db} dB"));
            let evm2 = symbols.iter().zip(&y).map(|(s, y)| wide(y - s).norm_sqr()).sum::<f64>() / symbols.len() as f64;
            near(10.0 * (evm2 / power(&symbols)).log10(), -snr_db, 0.05, "EVM");
        }
    }

    #[test]
    fn a_carrier_offset_turns_exactly() {
        for frequency in [-0.4, 1e-5, 0.123456] {
            let mut x = vec![Complex32::ONE; 300_000];
            CarrierOffset::new(frequency, 0.5).unwrap().process(&mut x);
            for n in [0usize, 1, 1023, 1024, 50_000, 299_999] {
                let expected = Complex64::cis(0.5 + TAU * (frequency * n as f64).fract());
                assert!((wide(x[n]) - expected).norm() < 1e-6, "{frequency} at {n}");
            }
        }
    }

    #[test]
    fn phase_noise_has_its_linewidth_or_its_locked_variance() {
        let linewidth = 1e-3;
        let mut x = vec![Complex32::ONE; 2_000_000];
        PhaseNoise::new(linewidth, 0.0, 1).unwrap().process(&mut x);
        let z: Vec<Complex64> = x.iter().map(|&z| wide(z)).collect();
        for lag in [10usize, 100, 300] {
            near(autocorrelation(&z, lag).re, (-PI * linewidth * lag as f64).exp(), 0.05, &format!("lag {lag}"));
        }
        let mut x = vec![Complex32::ONE; 500_000];
        PhaseNoise::new(1e-5, 1e-3, 2).unwrap().process(&mut x);
        let variance = x[10_000..].iter().map(|z| f64::from(z.arg()).powi(2)).sum::<f64>() / 490_000.0;
        let keep = 1.0 - TAU * 1e-3;
        near(variance / (TAU * 1e-5 / (1.0 - keep * keep)), 1.0, 0.1, "locked variance");
    }

    #[test]
    fn iq_imbalance_makes_an_image_of_the_stated_size() {
        for (gain_db, phase_deg) in [(0.5, 0.0), (0.0, 3.0), (-1.0, -5.0)] {
            let mut imbalance = IqImbalance::new(gain_db, phase_deg).unwrap();
            let mut x = tone(0.125, 8000);
            imbalance.process(&mut x);
            let line = |f: f64| x.iter().enumerate().map(|(n, z)| wide(*z) * Complex64::cis(-TAU * f * n as f64)).sum::<Complex64>();
            let ratio = db(line(0.125).norm_sqr() / line(-0.125).norm_sqr());
            let (g, phi) = (10f64.powf(gain_db / 20.0), phase_deg.to_radians());
            let formula = db((1.0 + 2.0 * g * phi.cos() + g * g) / (1.0 - 2.0 * g * phi.cos() + g * g));
            near(ratio, formula, 0.01, "image rejection");
            near(imbalance.image_rejection_db(), formula, 1e-9, "image rejection as told");
        }
    }

    #[test]
    fn dc_is_added() {
        let mut x = tone(0.25, 4000);
        DcOffset::new(0.1, -0.2).unwrap().process(&mut x);
        let mean = x.iter().map(|z| wide(*z)).sum::<Complex64>() / 4000.0;
        assert!((mean - Complex64::new(0.1, -0.2)).norm() < 1e-6);
    }

    #[test]
    fn a_converter_has_six_decibels_a_bit_and_saturates() {
        for bits in [4, 8, 12] {
            // Just below full scale: the topmost level is one step short of it.
            let x: Vec<Complex32> = tone(0.137_219, 200_000).iter().map(|z| z * 0.85).collect();
            let mut y = x.clone();
            Quantiser::new(bits, 1.0).unwrap().process(&mut y);
            let error = x.iter().zip(&y).map(|(x, y)| wide(y - x).norm_sqr()).sum::<f64>() / 2e5;
            near(db(1.0 / error), 6.02 * f64::from(bits) + 1.76, 0.6, &format!("{bits} bits"));
        }
        let mut y = [Complex32::new(5.0, -5.0), Complex32::new(0.26, -0.24), Complex32::new(f32::MAX, -f32::MAX)];
        Quantiser::new(3, 1.0).unwrap().process(&mut y);
        assert_eq!(y, [Complex32::new(0.75, -1.0), Complex32::new(0.25, -0.25), Complex32::new(0.75, -1.0)]);
    }

    #[test]
    fn a_sampling_offset_samples_at_the_times_it_says() {
        for (ppm, delay) in [(0.0, 0.0), (0.0, 3.0), (0.0, 2.3), (100.0, 0.0), (-40.0, 1000.75), (20_000.0, 0.5), (-20_000.0, 0.0)] {
            for frequency in [0.01, -0.25, 0.4] {
                let x = tone(frequency, 30_000);
                let mut clock = SampleOffset::new(ppm, delay).unwrap();
                let mut y = Vec::new();
                clock.process(&x, &mut y);
                clock.flush(&mut y);
                let expected = (30_000.0 + delay) / (1.0 + ppm * 1e-6);
                near(y.len() as f64, expected.min(expected.ceil()), 1.5, &format!("length at {ppm} ppm, delay {delay}"));
                let mut worst = 0.0f64;
                for (m, y) in y.iter().enumerate() {
                    let time = m as f64 * (1.0 + ppm * 1e-6) - delay;
                    if (20.0..29_980.0).contains(&time) {
                        worst = worst.max((wide(*y) - Complex64::cis(TAU * (frequency * time).fract())).norm());
                    }
                }
                assert!(worst < 1e-4, "{ppm} ppm, delay {delay}, frequency {frequency}: {worst:e}");
            }
        }
    }

    #[test]
    fn without_an_offset_samples_pass_unchanged() {
        let x = gaussian(1000, 1);
        let mut impairments = Impairments::new(&ImpairmentsConfig::default(), f64::INFINITY, 1).unwrap();
        let mut y = Vec::new();
        impairments.process(&x, &mut y);
        impairments.flush(&mut y);
        assert_eq!(x, y);
    }

    #[test]
    fn holes_are_as_frequent_and_as_long_as_asked_and_account_for_every_sample() {
        let (rate, length) = (1e-3, 50.0);
        let mut dropper = Dropper::new(rate, length, 1).unwrap();
        let mut samples: Vec<Complex32> = (0..2_000_000).map(|n| Complex32::new(n as f32, 0.0)).collect();
        let mut gaps = Vec::new();
        dropper.process(&mut samples, &mut gaps);
        near(samples.len() as f64 / 2e6, 1.0 / (1.0 + rate * length), 0.01, "share that survives");
        let lost: u64 = gaps.iter().map(|g| g.lost).sum();
        near(lost as f64 / gaps.len() as f64, length, 4.0, "mean length");
        near(gaps.len() as f64 / samples.len() as f64, rate, 1e-4, "holes per sample");
        let mut missing = 0;
        let mut next = gaps.iter().peekable();
        for (n, sample) in samples.iter().enumerate() {
            while let Some(gap) = next.next_if(|g| g.at == n as u64) {
                missing += gap.lost;
            }
            assert_eq!(sample.re as u64, n as u64 + missing);
        }
    }
}

mod streams {
    use super::*;

    type Run = Box<dyn FnMut(&[Complex32], bool) -> Vec<Complex32>>;

    fn staged(mut stage: impl Stage + 'static) -> Run {
        Box::new(move |x, reset| {
            if reset {
                stage.reset();
            }
            let mut y = x.to_vec();
            stage.process(&mut y);
            y
        })
    }

    /// Every part as a function of the next samples that can start over.
    fn parts() -> Vec<(&'static str, Run)> {
        let mut fading = FadingConfig::new(Profile::exponential(4, 3.0), 0.01);
        fading.rician_k_db = Some(3.0);
        fading.doppler = "0:1e-3,700:2e-2".parse().unwrap();
        let config = ImpairmentsConfig {
            delay: 3.4,
            sample_offset_ppm: -80.0,
            carrier_offset: 0.01,
            linewidth: 1e-4,
            iq_gain_db: 0.3,
            dc_re: 0.01,
            adc_bits: 8,
            ..Default::default()
        };
        let mut chain = Impairments::new(&config, 20.0, 3).unwrap();
        let mut dropper = Dropper::new(0.01, 5.0, 3).unwrap();
        vec![
            ("polynomial", staged(Amplifier::new(polynomial(), -3.0).unwrap())),
            ("rapp", staged(Amplifier::new(Model::Rapp { smoothness: 2.0 }, -3.0).unwrap())),
            ("clip", staged(Clip::new(3.0).unwrap())),
            ("fading", staged(Fading::new(&fading, 4).unwrap())),
            ("noise", staged(Noise::new(10.0, 4).unwrap())),
            ("carrier", staged(CarrierOffset::new(0.1, 0.0).unwrap())),
            ("phase noise", staged(PhaseNoise::new(1e-3, 0.0, 4).unwrap())),
            ("imbalance", staged(IqImbalance::new(1.0, 2.0).unwrap())),
            ("dc", staged(DcOffset::new(1.0, 2.0).unwrap())),
            ("adc", staged(Quantiser::new(6, 3.0).unwrap())),
            (
                "impairments",
                Box::new(move |x, reset| {
                    if reset {
                        chain.reset();
                    }
                    let mut y = Vec::new();
                    chain.process(x, &mut y);
                    y
                }),
            ),
            (
                "dropper",
                Box::new(move |x, reset| {
                    if reset {
                        dropper.reset();
                    }
                    let mut y = x.to_vec();
                    dropper.process(&mut y, &mut Vec::new());
                    y
                }),
            ),
        ]
    }

    #[test]
    fn output_does_not_depend_on_the_pieces_and_reset_starts_over() {
        let x = gaussian(3000, 5);
        for (name, mut run) in parts() {
            let whole = run(&x, false);
            let mut pieces = Vec::new();
            let mut rest = &x[..];
            for (k, size) in [1usize, 0, 2, 17, 333, 1024, 5000].into_iter().enumerate() {
                let (piece, tail) = rest.split_at(size.min(rest.len()));
                rest = tail;
                pieces.extend(run(piece, k == 0));
            }
            assert!(rest.is_empty());
            assert_eq!(whole, pieces, "{name}");
        }
    }

    #[test]
    fn a_sample_that_is_not_a_number_does_no_lasting_harm() {
        let mut x = gaussian(3000, 6);
        x[100] = Complex32::new(f32::NAN, 0.0);
        x[200] = Complex32::new(f32::INFINITY, f32::NEG_INFINITY);
        for (name, mut run) in parts() {
            let y = run(&x, false);
            assert!(y[300..].iter().all(|z| z.re.is_finite() && z.im.is_finite()), "{name}");
            assert!(y[..50].iter().all(|z| z.re.is_finite() && z.im.is_finite()), "{name}");
        }
    }

    #[test]
    fn a_bad_setting_is_an_error_and_changes_nothing() {
        let stages: Vec<(Box<dyn Stage>, &str, f64)> = vec![
            (Box::new(Amplifier::new(Model::Rapp { smoothness: 2.0 }, 0.0).unwrap()), "ibo_db", f64::NAN),
            (Box::new(Amplifier::new(Model::Rapp { smoothness: 2.0 }, 0.0).unwrap()), "smoothness", -1.0),
            (Box::new(Clip::new(3.0).unwrap()), "clip_db", f64::INFINITY),
            (Box::new(Fading::new(&FadingConfig::new(Profile::exponential(2, 3.0), 0.1), 1).unwrap()), "doppler", 0.7),
            (Box::new(Noise::new(10.0, 1).unwrap()), "snr_db", f64::NAN),
            (Box::new(CarrierOffset::new(0.1, 0.0).unwrap()), "carrier_offset", 0.6),
            (Box::new(PhaseNoise::new(0.1, 0.0, 1).unwrap()), "linewidth", -1.0),
            (Box::new(IqImbalance::new(1.0, 0.0).unwrap()), "iq_phase_deg", 90.0),
            (Box::new(DcOffset::new(1.0, 0.0).unwrap()), "dc_re", f64::INFINITY),
            (Box::new(Quantiser::new(8, 1.0).unwrap()), "adc_bits", 2.5),
        ];
        for (mut stage, name, value) in stages {
            let x = gaussian(50, 8);
            let mut before = x.clone();
            stage.process(&mut before);
            let error = stage.set(name, value).expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
            let unknown = stage.set("colour", 1.0).expect_err("an unknown name").to_string();
            assert!(unknown.contains("colour") && unknown.contains(name), "{unknown}");
            stage.reset();
            let mut after = x.clone();
            stage.process(&mut after);
            assert_eq!(before, after, "{name}");
        }
    }

    #[test]
    fn a_good_setting_takes_effect() {
        let mut amplifier = Amplifier::new(Model::Limiter, 20.0).unwrap();
        amplifier.set("ibo_db", -20.0).unwrap();
        let mut x = [Complex32::ONE];
        amplifier.process(&mut x);
        assert!((x[0].re - 1.0).abs() < 1e-6);
        let mut receiver = Impairments::new(&ImpairmentsConfig::default(), f64::INFINITY, 1).unwrap();
        receiver.set("dc_re", 0.5).unwrap();
        let mut y = Vec::new();
        receiver.process(&[Complex32::ZERO; 32], &mut y);
        assert_eq!(y[0].re, 0.5);
        let error = receiver.set("dc_r", 0.5).unwrap_err().to_string();
        assert!(error.contains("did you mean 'dc_re'"), "{error}");
    }
}

mod test_bed {
    use super::*;
    use kaflow::filter::{Nlms, Tracker, Windowed};
    use kaflow::ofdm::{RandomBits, Receiver};

    fn preset(name: &str, seed: u64) -> Scenario {
        Scenario { seed, ..Scenario::preset(name).unwrap() }
    }

    /// `10 log10(Σ|y − p|² / Σ|y|²)`.
    fn nmse_db(y: &[Complex32], p: &[Complex32]) -> f64 {
        let error: f64 = y.iter().zip(p).map(|(y, p)| wide(y - p).norm_sqr()).sum();
        db(error / y.iter().map(|y| wide(*y).norm_sqr()).sum::<f64>())
    }

    #[test]
    fn an_oracle_reaches_the_noise_floor_of_every_preset() {
        for (name, floor_db) in [("a", -20.04), ("d", -20.04), ("b", -10.41), ("e", -10.41), ("paper", -20.04)] {
            for seed in 1..4 {
                let noisy = TestBed::run(&preset(name, seed)).unwrap();
                let clean = TestBed::run(&Scenario { snr_db: None, ..preset(name, seed) }).unwrap();
                assert_eq!(noisy.tx, clean.tx);
                near(nmse_db(&noisy.rx[0], &clean.rx[0]), floor_db, 0.2, &format!("preset {name}, seed {seed}"));
            }
        }
    }

    #[test]
    fn nlms_gets_what_it_is_known_to_get() {
        for (name, taps, mu, expected_db) in [("a", 4, 0.25, -11.9), ("d", 4, 0.2, -8.0), ("b", 2, 0.1, -5.8), ("e", 3, 0.08, -3.5)] {
            let mut mean = 0.0;
            for seed in 1..=8 {
                let run = TestBed::run(&preset(name, seed)).unwrap();
                let mut tracker = Windowed::new(Nlms::<f32>::new(taps, mu, 1e-6).unwrap(), taps).unwrap();
                let mut prediction = vec![Complex32::ZERO; 6000];
                tracker.track(&run.tx[0], &run.rx[0], &mut prediction, None);
                mean += nmse_db(&run.rx[0][500..], &prediction[500..]) / 8.0;
            }
            near(mean, expected_db, 0.6, &format!("preset {name}"));
        }
    }

    #[test]
    fn a_noise_free_record_is_the_amplified_signal_through_the_true_taps() {
        let mut scenario = preset("d", 3);
        (scenario.snr_db, scenario.taps_every) = (None, 1);
        let run = TestBed::run(&scenario).unwrap();
        let mut amplified = run.tx[0].clone();
        let mut amplifier = Amplifier::from_config(scenario.amplifier.as_ref().unwrap()).unwrap();
        amplifier.set_input_power(power(&run.tx[0])).unwrap();
        amplifier.process(&mut amplified);
        assert_eq!(run.taps.len(), 4 * 6000);
        for n in 3..6000 {
            let expected: Complex32 = (0..4).map(|l| run.taps[4 * n + l] * amplified[n - l]).sum();
            assert!((run.rx[0][n] - expected).norm() < 1e-5, "sample {n}");
        }
    }

    #[test]
    fn preset_e_is_real_valued_and_the_others_are_not() {
        let real = TestBed::run(&preset("e", 1)).unwrap();
        assert!(real.tx[0].iter().chain(&real.rx[0]).chain(&real.taps).all(|z| z.im == 0.0));
        near(power(&real.tx[0]), 1.0, 0.05, "power of the real signal");
        let complex = TestBed::run(&preset("b", 1)).unwrap();
        assert!(complex.rx[0].iter().all(|z| z.im != 0.0));
        let error = TestBed::new(&Scenario { real: true, ..preset("wifi", 1) }).unwrap_err().to_string();
        assert!(error.contains("carrier_offset must be 0 for a real-valued signal"), "{error}");
    }

    #[test]
    fn a_reset_bed_repeats_itself_and_another_seed_does_not() {
        for name in Scenario::PRESETS {
            let mut scenario = preset(name, 2);
            scenario.samples = 9000;
            scenario.impairments.sample_offset_ppm = 30.0;
            scenario.impairments.drop_rate = 1e-3;
            let first = TestBed::run(&scenario).unwrap();
            let mut bed = TestBed::new(&scenario).unwrap();
            bed.next_chunk().unwrap();
            bed.reset().unwrap();
            let mut again = Vec::new();
            while let Some(chunk) = bed.next_chunk() {
                again.extend_from_slice(&chunk.rx[0]);
            }
            assert_eq!(first.rx[0], again, "{name}");
            let other = TestBed::run(&Scenario { seed: 3, ..scenario }).unwrap();
            assert_ne!(first.rx[0][..100], other.rx[0][..100]);
            assert_ne!(first.tx[0][500..600], other.tx[0][500..600]);
        }
    }

    #[test]
    fn a_receiver_gets_every_frame_of_the_wifi_preset_and_its_carrier_offset() {
        for seed in 1..=4 {
            let scenario = Scenario { snr_db: None, ..preset("wifi", seed) };
            let run = TestBed::run(&scenario).unwrap();
            let config = scenario.waveform(0);
            let packets = Receiver::new(config.clone()).unwrap().receive(&run.rx[0]);
            let frames = scenario.samples as usize / (config.frame_samples() + config.gap);
            assert!((frames..=frames + 1).contains(&packets.len()), "seed {seed}: {} of {frames} frames", packets.len());
            let mut bits = RandomBits::new(config.seed);
            let mut sent = vec![0; config.payload_bits()];
            for packet in &packets[..frames] {
                bits.fill(&mut sent);
                assert!(packet.bits == sent, "seed {seed}: frame at {} is damaged", packet.start);
                near(packet.offset, 1e-3, 2e-5, "carrier offset");
            }
        }
    }

    #[test]
    fn every_antenna_sends_its_own_signal_and_gets_its_own_noise() {
        let mut scenario = preset("d", 1);
        let fading = scenario.fading.as_mut().unwrap();
        (fading.tx_antennas, fading.rx_antennas) = (4, 3);
        let run = TestBed::run(&scenario).unwrap();
        assert_eq!((run.tx.len(), run.rx.len()), (4, 3));
        assert_eq!(run.taps.len(), 4 * 4 * 3 * 6000usize.div_ceil(16));
        let correlation = |a: &[Complex32], b: &[Complex32]| {
            let sum: Complex64 = a.iter().zip(b).map(|(a, b)| wide(a * b.conj())).sum();
            sum.norm() / (power(a) * power(b)).sqrt() / a.len() as f64
        };
        // They share their pilots, 4 of 52 carriers.
        assert!(correlation(&run.tx[0], &run.tx[3]) < 0.12);
        let clean = TestBed::run(&Scenario { snr_db: None, ..scenario }).unwrap();
        let noise: Vec<Vec<Complex32>> = run.rx.iter().zip(&clean.rx).map(|(y, c)| y.iter().zip(c).map(|(y, c)| y - c).collect()).collect();
        assert!(correlation(&noise[0], &noise[2]) < 0.05);
        near(db(power(&noise[0]) / power(&noise[1])), 0.0, 0.2, "noise is the same at all antennas");
    }

    #[test]
    fn a_delay_is_a_delay_and_holes_are_in_both_streams() {
        let mut scenario = preset("a", 1);
        scenario.fading = None;
        (scenario.amplifier, scenario.snr_db) = (None, None);
        scenario.impairments.delay = 5000.0;
        let run = TestBed::run(&scenario).unwrap();
        assert!(run.rx[0][..5000].iter().all(|z| *z == Complex32::ZERO));
        assert_eq!(run.rx[0][5000..], run.tx[0][..1000]);
        scenario.impairments.delay = 0.0;
        let whole = TestBed::run(&scenario).unwrap();
        assert_eq!(whole.tx, whole.rx);
        (scenario.impairments.drop_rate, scenario.impairments.drop_length) = (2e-3, 40.0);
        let holes = TestBed::run(&scenario).unwrap();
        assert_eq!(holes.tx, holes.rx);
        let mut rebuilt = Vec::new();
        let mut from = 0;
        for gap in &holes.gaps {
            rebuilt.extend_from_slice(&holes.tx[0][from..gap.at as usize]);
            from = gap.at as usize;
            let next = rebuilt.len();
            rebuilt.extend_from_slice(&whole.tx[0][next..next + gap.lost as usize]);
        }
        rebuilt.extend_from_slice(&holes.tx[0][from..]);
        assert!(!holes.gaps.is_empty() && rebuilt[..] == whole.tx[0][..rebuilt.len()]);
    }

    #[test]
    fn scenarios_survive_being_written_down() {
        for name in Scenario::PRESETS {
            let scenario = preset(name, 7);
            let text = serde_json::to_string(&scenario).unwrap();
            assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), scenario, "{name}");
        }
        let error = serde_json::from_str::<Scenario>(r#"{"samples": 5, "snr": 3}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `snr`") && error.contains("snr_db"), "{error}");
        let error = Scenario::preset("papr").unwrap_err().to_string();
        assert!(error.contains("did you mean 'paper'"), "{error}");
    }

    #[test]
    fn a_scenario_that_cannot_be_is_refused() {
        let edit = |change: fn(&mut Scenario)| {
            let mut scenario = preset("a", 1);
            change(&mut scenario);
            TestBed::new(&scenario).unwrap_err().to_string()
        };
        for (error, culprit) in [
            (edit(|s| s.samples = 0), "samples"),
            (edit(|s| s.seed = u64::MAX), "seed"),
            (edit(|s| s.taps_every = 0), "taps_every"),
            (edit(|s| s.snr_db = Some(f64::NAN)), "snr_db"),
            (edit(|s| s.impairments.delay = -1.0), "delay"),
            (edit(|s| s.impairments.drop_length = 0.0), "drop_length"),
            (edit(|s| s.impairments.adc_headroom_db = f64::NAN), "adc_headroom_db"),
            (edit(|s| s.ofdm.fft = 3), "fft"),
            (edit(|s| s.fading.as_mut().unwrap().doppler = Doppler::Constant(3.0)), "doppler"),
        ] {
            assert!(error.starts_with(culprit), "{error}");
        }
    }

    #[test]
    fn samples_are_the_same_on_every_machine() {
        // FNV-1a over the bits of everything. A change of this number is a change of every recording ever simulated: say so in the changelog.
        let mut scenario = preset("wifi", 1);
        scenario.samples = 3000;
        scenario.impairments.linewidth = 1e-5;
        scenario.impairments.sample_offset_ppm = 20.0;
        scenario.impairments.iq_gain_db = 0.2;
        let fading = scenario.fading.as_mut().unwrap();
        (fading.doppler, fading.rician_k_db) = (Doppler::Constant(0.01), Some(3.0));
        for (model, expected) in [
            (Model::Rapp { smoothness: 3.0 }, 0x4fe4_d5fd_4e78_98f4),
            (Model::saleh(), 0x8017_073e_74ca_2786),
            (measured(), 0x4287_3af6_5797_cc62),
            (polynomial(), 0xae42_173d_1c32_8a5d),
        ] {
            scenario.amplifier.as_mut().unwrap().model = model.clone();
            let run = TestBed::run(&scenario).unwrap();
            let mut hash = 0xcbf2_9ce4_8422_2325u64;
            for z in run.tx[0].iter().chain(&run.rx[0]).chain(&run.taps) {
                for byte in z.re.to_le_bytes().into_iter().chain(z.im.to_le_bytes()) {
                    hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
                }
            }
            assert_eq!(hash, expected, "{model:?}: {hash:#018x}");
        }
    }
}
