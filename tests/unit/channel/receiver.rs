//! Noise, offsets and converters against theory.

use super::*;

#[test]
fn noise_is_white_circular_and_as_strong_as_asked() {
    for (snr_db, signal_power, quick) in [(20.0, 1.0, false), (10.0, 0.3, false), (-5.0, 1e-6, false), (20.0, 1.0, true)] {
        let mut noise = Noise::new(snr_db, 1).unwrap();
        if quick {
            noise = noise.quick();
        }
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
            let (mut worst, mut sum, mut count) = (0.0f64, 0.0, 0.0);
            for (m, y) in y.iter().enumerate() {
                let time = m as f64 * (1.0 + ppm * 1e-6) - delay;
                if (260.0..29_740.0).contains(&time) {
                    let error = (wide(*y) - Complex64::cis(TAU * (frequency * time).fract())).norm_sqr();
                    (worst, sum, count) = (worst.max(error), sum + error, count + 1.0);
                }
            }
            let (worst, mean) = (db(worst), db(sum / count));
            assert!(worst < -72.0 && mean < -78.0, "{ppm} ppm, delay {delay}, frequency {frequency}: {worst:.1} dB at worst, {mean:.1} dB");
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
    samples.retain(|_| dropper.keep(&mut gaps));
    near(samples.len() as f64 / 2e6, 1.0 / (1.0 + rate * length), 0.01, "share that survives");
    let lost: u64 = gaps.iter().map(|g| g.length).sum();
    near(lost as f64 / gaps.len() as f64, length, 4.0, "mean length");
    near(gaps.len() as f64 / samples.len() as f64, rate, 1e-4, "gaps per sample");
    let mut missing = 0;
    let mut next = gaps.iter().peekable();
    for (n, sample) in samples.iter().enumerate() {
        while let Some(gap) = next.next_if(|g| g.at == n as u64) {
            missing += gap.length;
        }
        assert_eq!(sample.re as u64, n as u64 + missing);
    }
}
