//! That no simple filter is ahead.

use kaflow::Complex32;
use kaflow::filter::{Guard, registry};

use super::{common, ensemble, oversampled, recorded, simulated, track};

#[test]
fn it_keeps_up_with_a_memory_polynomial_on_its_own_ground() {
    let (tx, _) = simulated("a", 46, 1e-3, 20_000);
    let noise = common::noise(3, tx.len());
    let terms = [
        [(1.0, 0.1), (-0.12, 0.05), (0.01, -0.005)],
        [(0.2, -0.1), (0.06, 0.04), (-0.004, 0.002)],
        [(-0.05, 0.03), (0.02, -0.03), (0.0, 0.0)],
    ];
    let echo = |x: Complex32, c: [(f32, f32); 3]| {
        let (power, [a, b, c]) = (x.norm_sqr(), c.map(|(re, im)| Complex32::new(re, im)));
        x * (a + b * power + c * power * power)
    };
    for (noise_db, doppler) in [(-20.0, 0.0), (-40.0, 0.0), (-25.0, 1e-5), (-25.0, 3e-5), (-25.0, 1e-4), (-40.0, 1e-4)] {
        let rx: Vec<Complex32> = (0..tx.len())
            .map(|n| {
                let clean: Complex32 = terms.iter().enumerate().filter(|(l, _)| *l <= n).map(|(l, c)| echo(tx[n - l], *c)).sum();
                let channel = Complex32::from_polar(1.0, std::f32::consts::TAU * doppler * n as f32);
                let level = 10f32.powf(noise_db / 20.0) * 1.2;
                clean * channel + Complex32::new(noise[n].re as f32, noise[n].im as f32) * level
            })
            .collect();
        let recipe = registry::recipe("mp-rls").unwrap().settle(&registry::Values::new(), 2.0).unwrap();
        let polynomial = track(&mut Guard::new(registry::tracker(&recipe, 4).unwrap()), &tx, &rx).nmse_from(8000);
        let nmse = track(&mut ensemble(), &tx, &rx).nmse_from(8000);
        println!("memory polynomial, noise {noise_db} dB, Doppler {doppler}: ensemble {nmse:.2} dB, mp-rls {polynomial:.2} dB");
        assert!(nmse < polynomial + 0.3, "noise {noise_db} dB, Doppler {doppler}: {nmse} and {polynomial}");
    }
}

/// By how much the ensemble is behind the best simple filter, over the worst 2,000 samples after the first 2,000.
fn behind(tx: &[Complex32], rx: &[Complex32]) -> f64 {
    let spread = (4.0 * tx.iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>() / tx.len() as f64).sqrt();
    let own = track(&mut ensemble(), tx, rx);
    let mut worst = f64::NEG_INFINITY;
    for name in ["nlms", "rls", "mp-rls"] {
        let settings = registry::recipe(name).unwrap().settle(&registry::Values::new(), spread).unwrap();
        let run = track(&mut Guard::new(registry::tracker(&settings, 4).unwrap()), tx, rx);
        for from in (2000..tx.len() - 1999).step_by(1000) {
            worst = worst.max(own.nmse(from..from + 2000) - run.nmse(from..from + 2000));
        }
    }
    worst
}

#[test]
fn the_simple_filters_are_never_far_ahead() {
    let (tx, rx) = simulated("d", 7, 1e-3, 12_000);
    let mut cases = vec![("d", tx, rx)];
    for still in [1e-5, 0.0] {
        let (tx, rx) = simulated("b", 7, still, 12_000);
        cases.push(("b, slow", tx, rx));
    }
    if let Some((tx, rx)) = recorded("opendpd_dpa200") {
        cases.push(("opendpd_dpa200", tx[..12_000].to_vec(), rx[..12_000].to_vec()));
        cases.push(("opendpd_dpa200 with another band", tx[..5000].to_vec(), another_band(&rx[..5000], 0.1)));
    }
    for (name, tx, rx) in cases {
        let worst = behind(&tx, &rx);
        println!("{name}: at most {worst:.2} dB behind");
        assert!(worst < 0.3, "{name}: {worst} dB");
    }
}

/// What is received with a second, unknown band beside it.
fn another_band(rx: &[Complex32], amplitude: f32) -> Vec<Complex32> {
    let noise = common::noise(77, rx.len());
    let rms = (rx.iter().map(|y| y.norm_sqr()).sum::<f32>() / rx.len() as f32).sqrt();
    let (mut state, mut power) = (Complex32::default(), 0.0);
    let band: Vec<Complex32> = noise
        .iter()
        .map(|v| {
            state = state * 0.97 * Complex32::cis(0.9) + Complex32::new(v.re as f32, v.im as f32);
            power += state.norm_sqr() / rx.len() as f32;
            state
        })
        .collect();
    rx.iter().zip(band).map(|(y, b)| y + b * (amplitude * rms / power.sqrt())).collect()
}

#[test]
fn rls_and_the_memory_polynomial_stay_bounded() {
    let (mut tx, mut rx) = oversampled(20_000);
    for n in 10_000..20_000 {
        (tx[n], rx[n]) = (tx[n] * 4.0, rx[n] * 4.0);
    }
    for name in ["rls", "mp-rls"] {
        let settings = registry::recipe(name).unwrap().settle(&registry::Values::new(), 2.0).unwrap();
        let run = track(&mut Guard::new(registry::tracker(&settings, 8).unwrap()), &tx, &rx);
        for from in (0..20_000).step_by(1000) {
            let nmse = run.nmse(from..from + 1000);
            assert!(nmse < 0.0 || from == 10_000, "{name} from {from}: {nmse}");
        }
    }
}
