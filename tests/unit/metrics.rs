//! Laws of the numbers.

use kaflow::metrics::{Ber, Evm, Percentiles, Row, am_curve, db, nmse_db, papr_db, power, welch};
use kaflow::{Complex, Complex32, Complex64};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Circular complex Gaussian samples of power 1.
fn noise(count: usize, seed: u64) -> Vec<Complex64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sample = |_| {
        let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        Complex64::from_polar((-u.ln()).sqrt(), std::f64::consts::TAU * v)
    };
    (0..count).map(sample).collect()
}

#[test]
fn nmse_of_a_scaled_prediction_is_the_square_of_what_is_missing() {
    let y = noise(1000, 1);
    for (gain, expected) in [(0.0, 0.0), (0.9, -20.0), (0.99, -40.0), (2.0, 0.0), (-1.0, 20.0 * 2f64.log10())] {
        let p: Vec<_> = y.iter().map(|z| z * gain).collect();
        assert!((nmse_db(&y, &p) - expected).abs() < 1e-9, "gain {gain}");
    }
}

#[test]
fn nmse_does_not_depend_on_scale_or_phase() {
    let (y, p) = (noise(500, 2), noise(500, 3));
    let reference = nmse_db(&y, &p);
    for factor in [Complex64::new(1e-150, 0.0), Complex64::new(0.0, 1e150), Complex64::new(3.0, -4.0)] {
        let scaled = |x: &[Complex64]| x.iter().map(|z| z * factor).collect::<Vec<_>>();
        assert!((nmse_db(&scaled(&y), &scaled(&p)) - reference).abs() < 1e-9, "{factor}");
    }
}

#[test]
fn ratios_of_nothing_are_finite() {
    let zero = vec![Complex32::ZERO; 10];
    let one = vec![Complex32::ONE; 10];
    assert_eq!(nmse_db(&zero, &zero), 0.0);
    assert_eq!(nmse_db(&one, &one), -300.0);
    assert_eq!(nmse_db(&zero, &one), 300.0);
    assert_eq!(nmse_db::<f32>(&[], &[]), 0.0);
    assert_eq!(Evm::default().db(), 0.0);
    assert_eq!(Ber::default().rate(), 0.0);
    assert_eq!(papr_db(&zero), 0.0);
    assert_eq!(power::<f64>(&[]), 0.0);
    assert_eq!(db(0.0, 0.0), 0.0);
}

#[test]
fn samples_that_are_not_numbers_are_left_out_of_every_metric() {
    let nan = Complex64::new(f64::NAN, 0.0);
    let (mut y, mut p) = (noise(100, 8), noise(100, 9));
    let clean = nmse_db(&y, &p);
    let clean_power = power(&y);
    y.push(nan);
    p.push(Complex64::ONE);
    y.push(Complex64::ONE);
    p.push(Complex64::new(0.0, f64::INFINITY));
    assert_eq!(nmse_db(&y, &p), clean);
    let narrow = |x: &[Complex64]| x.iter().map(|z| Complex32::new(z.re as f32, z.im as f32)).collect::<Vec<_>>();
    let row = Row::measure(&narrow(&y), &narrow(&p));
    assert!((row.nmse_db() - clean).abs() < 1e-5 && row.samples == 100, "{row:?}");
    assert!((power(&y[..101]) - clean_power).abs() < 1e-12);
    let mut evm = Evm::default();
    evm.push(nan, Complex64::ONE);
    assert_eq!(evm.points(), 0);
    assert!(welch(&y, 64, 1.0).unwrap().density.iter().all(|p| p.is_finite()));
}

#[test]
fn evm_is_the_inverse_square_root_of_snr() {
    let ideal = Complex64::new(0.6, -0.8);
    for snr_db in [0.0, 10.0, 25.0] {
        let sigma = 10f64.powf(-snr_db / 20.0);
        let mut evm = Evm::default();
        noise(100_000, 11).iter().for_each(|z| evm.push(ideal + z * sigma, ideal));
        assert!((evm.db() + snr_db).abs() < 0.05, "{} at {snr_db} dB", evm.db());
        assert!((evm.percent() - 100.0 * evm.rms()).abs() < 1e-9);
        let mut twice = evm;
        twice.merge(&evm);
        assert!((twice.db() - evm.db()).abs() < 1e-9 && twice.points() == 200_000);
    }
}

#[test]
fn lost_bits_are_wrong_bits() {
    let mut ber = Ber::default();
    ber.extend(&[1, 0, 1, 1], &[1, 0]);
    assert_eq!((ber.errors, ber.bits), (2, 4));
}

#[test]
fn a_spectrum_holds_all_the_power() {
    let x: Vec<_> = noise(100_000, 12).iter().map(|z| z * 3.0).collect();
    for size in [64, 255, 1024] {
        let psd = welch(&x, size, 20e6).unwrap();
        let total = psd.density.iter().sum::<f64>() * psd.resolution();
        assert!((total / 9.0 - 1.0).abs() < 0.02, "{total}");
        assert!((psd.power(-10e6, 10e6) / total - 1.0).abs() < 1e-9);
        let halves = psd.power(-10e6, 1.234e6) + psd.power(1.234e6, 10e6);
        assert!((halves / total - 1.0).abs() < 1e-9);
        // White: 9 W over 20 MHz, every bin within a few standard errors.
        assert!(psd.density.iter().all(|p| (p / (9.0 / 20e6) - 1.0).abs() < 0.5));
    }
}

#[test]
fn a_tone_appears_at_its_frequency_with_its_sign() {
    for bin in [-100i32, -1, 0, 37] {
        let frequency = f64::from(bin) / 256.0;
        let x: Vec<_> = (0..5000).map(|n| Complex::cis(std::f64::consts::TAU * frequency * n as f64)).collect();
        let psd = welch(&x, 256, 1.0).unwrap();
        let peak = (0..256).max_by(|&a, &b| psd.density[a].total_cmp(&psd.density[b])).unwrap();
        assert!((psd.frequency(peak) - frequency).abs() < 1e-12);
    }
}

#[test]
fn acpr_of_two_tones_is_their_ratio() {
    // A tone of power 1 in the channel, one of power 0.01 in the upper neighbour and one of power 0.0001 in the lower.
    let tone = |f: f64, n: usize| Complex::cis(std::f64::consts::TAU * f * n as f64);
    let x: Vec<_> = (0..8192).map(|n| tone(0.03, n) + tone(0.25, n) * 0.1 + tone(-0.25, n) * 0.01).collect();
    let psd = welch(&x, 512, 1.0).unwrap();
    let (lower, upper) = psd.acpr_db(0.2, 0.25).unwrap();
    assert!((lower + 40.0).abs() < 0.05 && (upper + 20.0).abs() < 0.05, "{lower} {upper}");
    assert!(psd.acpr_db(0.2, 0.45).unwrap_err().to_string().contains("adjacent channel"));
    assert!(psd.acpr_db(0.0, 0.1).is_err());
}

#[test]
fn occupied_bandwidth_of_white_noise_is_its_fraction() {
    let psd = welch(&noise(200_000, 13), 512, 100.0).unwrap();
    let (low, high) = psd.occupied(0.9);
    assert!((low + 45.0).abs() < 0.5 && (high - 45.0).abs() < 0.5, "{low} {high}");
}

#[test]
fn a_spectrum_of_too_little_is_refused() {
    let x = noise(10, 14);
    assert!(welch(&x, 16, 1.0).unwrap_err().to_string().contains("needs as many"));
    assert!(welch(&x, 0, 1.0).is_err() && welch(&x, 1 << 40, 1.0).is_err());
    assert!(welch(&x, 1, 1.0).is_err() && welch(&x, 8, 0.0).is_err() && welch(&x, 8, f64::NAN).is_err());
}

#[test]
fn papr_of_known_signals() {
    let tone: Vec<_> = (0..100).map(|n| Complex32::from_polar(2.0, n as f32)).collect();
    assert!(papr_db(&tone).abs() < 1e-5);
    let pulse: Vec<_> = (0..100).map(|n| if n == 7 { Complex32::i() } else { Complex32::ZERO }).collect();
    assert!((papr_db(&pulse) - 20.0).abs() < 1e-6);
}

#[test]
fn am_curves_measure_gain_phase_and_spread() {
    // y = x / (1 + |x|²) turned by 30° |x|, and noise of rms 0.1.
    let x = noise(200_000, 16);
    let noise = noise(200_000, 17);
    let device = |a: f64| Complex64::from_polar(a / (1.0 + a * a), (30.0 * a).to_radians());
    let y: Vec<_> = x.iter().zip(&noise).map(|(x, n)| x / x.norm() * device(x.norm()) + n * 0.1).collect();
    let curve = am_curve(&x, &y, 40).unwrap();
    for point in curve.iter().filter(|p| p.samples > 2000) {
        let truth = device(point.input);
        assert!((point.output - truth.norm()).abs() < 0.01, "{point:?}");
        assert!((point.phase_deg - truth.arg().to_degrees()).abs() < 3.0, "{point:?}");
        assert!((point.spread - 0.1).abs() < 0.02, "{point:?}");
    }
    assert!(curve.windows(2).all(|p| p[0].input < p[1].input));
    assert_eq!(curve.iter().map(|p| p.samples).sum::<u64>(), 200_000);
    assert!(am_curve(&[Complex32::ZERO; 4], &[Complex32::ONE; 4], 8).unwrap_err().to_string().contains("silent"));
    assert!(am_curve(&x, &y, 0).is_err());
}

#[test]
fn running_percentiles_agree_with_sorting() {
    let mut rng = ChaCha8Rng::seed_from_u64(19);
    let mut values: Vec<f64> = (0..20_000).map(|_| (rng.random::<f64>() * 20.0 - 10.0).exp()).collect();
    let mut running = Percentiles::default();
    values.iter().for_each(|&v| running.push(v));
    values.sort_by(f64::total_cmp);
    for q in [0.01, 0.5, 0.9, 0.999] {
        let exact = values[(q * (values.len() - 1) as f64) as usize];
        assert!((running.quantile(q).unwrap() / exact - 1.0).abs() < 0.02, "{q}");
    }
    assert!((running.quantile(1.0).unwrap() / values[values.len() - 1] - 1.0).abs() < 0.02);
    let mut odd = Percentiles::new();
    assert_eq!(odd.quantile(0.5), None);
    [0.0, -1.0, 1e300, f64::NAN].into_iter().for_each(|v| odd.push(v));

    assert!(odd.quantile(0.5).unwrap().is_finite());
}
