//! Fading against the statistics of Jakes, Rayleigh and Rice.

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
fn passes_over_many_samples_are_single_steps_to_the_last_bit() {
    let x: Vec<Complex32> = (0..3000).map(|n| Complex32::from_polar(1.0 + (n % 7) as f32, (n * n % 1009) as f32)).collect();
    for (paths, doppler, k_db) in [(1, 0.0, None), (4, 1e-3, None), (4, 0.07, Some(3.0)), (6, 0.5, None), (200, 1e-4, None)] {
        let config = FadingConfig { rician_k_db: k_db, ..FadingConfig::new(Profile::exponential(paths, 0.1), doppler) };
        let (mut single, mut many) = (Fading::new(&config, 3).unwrap(), Fading::new(&config, 3).unwrap());
        let (mut expected, mut found) = (vec![Complex32::ZERO; x.len()], x.clone());
        single.process_mimo(&[&x], &mut [&mut expected], |_, _| ());
        // In pieces of all sizes, some of them by the other way.
        let (mut at, mut n) = (0, 1);
        while at < x.len() {
            let end = (at + n).min(x.len());
            if n % 5 == 0 {
                many.process_mimo(&[&x[at..end]], &mut [&mut found[at..end]], |_, _| ());
            } else {
                many.process(&mut found[at..end]);
            }
            (at, n) = (end, n * 3 / 2 + 1);
        }
        assert!(expected == found && single.taps().eq(many.taps()), "{paths} paths, Doppler {doppler}");
    }
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
    fading.process_mimo(&tx, &mut y.iter_mut().map(|r| &mut r[..]).collect::<Vec<_>>(), |_, now| taps.push(now.taps().collect::<Vec<_>>()));
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
