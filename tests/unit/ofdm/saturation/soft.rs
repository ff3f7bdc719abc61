use super::*;
use crate::ofdm::Constellation;

#[test]
fn the_exponential_is_one() {
    for i in 0..4000 {
        let x = -f64::from(i) * 0.015;
        assert!((f64::from(exp(x as f32)) / x.exp() - 1.0).abs() < 4e-6 - 2e-7 * x, "{x}");
    }
    assert!(exp(0.0) == 1.0 && exp(-1e30) < 1e-26 && exp(f32::NEG_INFINITY) < 1e-26);
}

/// Against sums over all points of the plane, in double precision.
#[test]
fn posterior_and_soft_bits_are_bayes_rule() {
    for modulation in Modulation::ALL {
        let (soft, table) = (Soft::new(modulation), Constellation::new(modulation));
        for (n, v) in [(0, 0.9), (1, 0.1), (2, 0.03), (3, 0.3), (4, 2.0)] {
            let z = Complex32::new(0.37 - 0.3 * n as f32, 0.11 * n as f32 - 0.2);
            let weight = |p: Complex32| (-f64::from((z - p).norm_sqr()) / f64::from(v)).exp();
            let total: f64 = table.points().iter().map(|&p| weight(p)).sum();
            let mean = |f: &dyn Fn(Complex32) -> f64| table.points().iter().map(|&p| weight(p) * f(p)).sum::<f64>() / total;
            let (re, im, power) = (mean(&|p| p.re.into()), mean(&|p| p.im.into()), mean(&|p| p.norm_sqr().into()));
            let (mut m, mut s) = ([Complex32::ZERO], [0.0]);
            soft.posterior(&[z], &[v], &[], &mut m, &mut s);
            assert!((f64::from(m[0].re) - re).abs() < 1e-5 && (f64::from(m[0].im) - im).abs() < 1e-5, "{modulation}: {m:?}");
            assert!((f64::from(s[0]) - (power - re * re - im * im)).abs() < 1e-5, "{modulation}: {s:?}");
            let mut bits = Vec::new();
            soft.bits(&[z], &[v], &mut bits);
            assert_eq!(bits.len(), modulation.bits());
            for (i, &bit) in bits.iter().enumerate() {
                let side = |value: usize| {
                    let shift = modulation.bits() - 1 - i;
                    let points = table.points().iter().enumerate().filter(move |(label, _)| label >> shift & 1 == value);
                    points.map(|(_, &p)| f64::from((z - p).norm_sqr())).fold(f64::INFINITY, f64::min)
                };
                let expected = ((side(1) - side(0)) / f64::from(v)).clamp(-40.0, 40.0);
                assert!((f64::from(bit) - expected).abs() < 1e-3 * (1.0 + expected.abs()), "{modulation} bit {i}: {bit}, {expected}");
            }
        }
    }
}

/// A prior from soft bits is the posterior of a point that those bits were read from.
#[test]
fn what_the_decoder_says_counts_as_much_as_what_arrived() {
    let soft = Soft::new(Modulation::Qam16);
    let (mut prior, mut m, mut s) = (vec![0.0; soft.prior_len()], [Complex32::ZERO], [0.0]);
    soft.prior(&[30.0, -30.0, -30.0, 30.0], &mut prior);
    soft.posterior(&[Complex32::ZERO], &[1e9], &prior, &mut m, &mut s);
    let sent = Constellation::new(Modulation::Qam16).points()[0b0110];
    assert!((m[0] - sent).norm() < 1e-5 && s[0] < 1e-5, "{m:?} {s:?} {sent}");
    soft.prior(&[0.0; 4], &mut prior);
    soft.posterior(&[Complex32::ZERO], &[1e9], &prior, &mut m, &mut s);
    assert!(m[0].norm() < 1e-5 && (s[0] - 1.0).abs() < 1e-5, "{m:?} {s:?}");
}

#[test]
fn extreme_points_and_variances_stay_finite() {
    let soft = Soft::new(Modulation::Qam64);
    for z in [0.0, 1e-30, 5.0, 1e15, f32::NAN, f32::INFINITY] {
        for v in [0.0, 1e-30, 1e-3, 1e15] {
            let mut bits = Vec::new();
            soft.bits(&[Complex32::new(z, -z)], &[v], &mut bits);
            assert!(bits.len() == 6 && bits.iter().all(|b| b.is_finite() && b.abs() <= 40.0), "{z} {v}: {bits:?}");
        }
    }
}
