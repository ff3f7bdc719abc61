//! That no simple filter is ahead.

use kaflow::Complex32;
use kaflow::filter::{Guard, registry};

use super::{bare, common, ensemble, oversampled, recorded, simulated, track};

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
pub(super) fn behind(tx: &[Complex32], rx: &[Complex32], taps: usize) -> f64 {
    let spread = (taps as f64 * tx.iter().map(|x| f64::from(x.norm_sqr())).sum::<f64>() / tx.len() as f64).sqrt();
    let own = track(&mut Guard::new(bare(taps, 0)), tx, rx);
    let mut worst = f64::NEG_INFINITY;
    for name in ["nlms", "rls", "mp-rls", "fklms"] {
        let settings = registry::recipe(name).unwrap().settle(&registry::Values::new(), spread).unwrap();
        let run = track(&mut Guard::new(registry::tracker(&settings, taps).unwrap()), tx, rx);
        for from in (2000..tx.len() - 1999).step_by(250) {
            worst = worst.max(own.nmse(from..from + 2000) - run.nmse(from..from + 2000));
        }
    }
    worst
}

#[test]
fn the_simple_filters_are_never_far_ahead() {
    let (tx, rx) = simulated("d", 7, 1e-3, 12_000);
    let mut cases = vec![("d", tx, rx, 4)];
    for still in [1e-5, 0.0] {
        let (tx, rx) = simulated("b", 7, still, 12_000);
        cases.push(("b, slow", tx, rx, 4));
    }
    if let Some((tx, rx)) = recorded("opendpd_dpa200") {
        cases.push(("opendpd_dpa200", tx[..12_000].to_vec(), rx[..12_000].to_vec(), 4));
        for (amplitude, from, taps) in [(0.1, 0, 4), (0.1, 12_800, 8), (0.178, 12_800, 8), (0.178, 12_800, 16), (0.056, 0, 8)] {
            let range = from..from + 5000;
            cases.push(("opendpd_dpa200 with another band", tx[range.clone()].to_vec(), another_band(&rx[range], amplitude), taps));
        }
    }
    for (name, tx, rx, taps) in cases {
        let worst = behind(&tx, &rx, taps);
        println!("{name}, {taps} taps: at most {worst:.2} dB behind");
        assert!(worst < 0.3, "{name}, {taps} taps: {worst} dB");
    }
}

/// What is sent: noise in one part in `oversampling` of the band, or tones that begin anew every 68 samples and then are heard everywhere.
fn sent(seed: u64, samples: usize, oversampling: usize, tones: bool) -> Vec<Complex32> {
    let noise: Vec<Complex32> =
        common::noise(seed, samples + 64 * oversampling).iter().map(|v| Complex32::new(v.re as f32, v.im as f32)).collect();
    let x: Vec<Complex32> = if tones {
        let used = 54 / oversampling;
        let tone = |k: usize, n: usize| Complex32::cis(std::f32::consts::TAU * (k as f32 - used as f32 / 2.0) * (n % 68) as f32 / 64.0);
        (0..samples).map(|n| (0..used).map(|k| noise[n / 68 * used + k] * tone(k, n)).sum()).collect()
    } else {
        let half = 16 * oversampling;
        let filter: Vec<f32> = (0..=2 * half)
            .map(|k| {
                let (t, turn) = (k as f32 - half as f32, std::f32::consts::PI * k as f32 / half as f32);
                let x = 0.9 * std::f32::consts::PI * t / oversampling as f32;
                (if t == 0.0 { 1.0 } else { x.sin() / x }) * (0.42 - 0.5 * turn.cos() + 0.08 * (2.0 * turn).cos())
            })
            .collect();
        (0..samples).map(|n| filter.iter().zip(&noise[n..]).map(|(f, v)| v * f).sum()).collect()
    };
    let rms = (x.iter().map(|x| x.norm_sqr()).sum::<f32>() / samples as f32).sqrt();
    x.iter().map(|x| x / rms).collect()
}

#[test]
fn nor_on_oversampled_signals_through_amplifiers_with_memory_and_channels_that_move() {
    let bent = |x: Complex32| x / (1.0 + 0.3 * x.norm_sqr()).sqrt();
    let power = |x: Complex32| x.norm_sqr().min(16.0);
    type Amplifier<'a> = &'a dyn Fn(&[Complex32], usize) -> Complex32;
    let linear = |x: &[Complex32], n: usize| x[n] + x[n - 1] * Complex32::new(0.2, -0.1);
    let saturated = |x: &[Complex32], n: usize| bent(x[n]);
    let with_memory = |x: &[Complex32], n: usize| {
        let term = |x: Complex32, a: Complex32, b: f32, c: f32| x * (a + Complex32::new(b, -0.4 * b) * power(x) + c * power(x).powi(2));
        term(x[n], Complex32::new(1.0, 0.0), -0.04, 1e-3) + term(x[n - 1], Complex32::new(0.1, -0.05), 0.012, -3e-4)
    };
    let slow = |n: usize, rate: f32| 0.8 + 0.3 * Complex32::cis(std::f32::consts::TAU * rate * n as f32);
    let cases: [(&str, usize, bool, Amplifier, f32, f32, usize); 5] = [
        ("bursts out of band, slow fading", 4, true, &linear, 1e-5, 43.0, 8),
        ("saturation, slow fading, 16 taps", 3, false, &saturated, 5e-5, 21.0, 16),
        ("memory in front of a channel that turns", 2, false, &with_memory, 4e-6, 43.0, 4),
        ("memory in front of slow fading", 4, false, &with_memory, 2e-5, 40.0, 4),
        ("a linear channel that turns", 4, false, &linear, 2.5e-4, 24.0, 16),
    ];
    for (name, oversampling, tones, amplifier, rate, snr, taps) in cases {
        let tx = sent(11, 6000, oversampling, tones);
        let noise = common::noise(12, tx.len());
        let level = 10f32.powf(-snr / 20.0);
        let rx: Vec<Complex32> = (0..tx.len())
            .map(|n| {
                let clean = if n > 0 { amplifier(&tx, n) * slow(n, rate) } else { Complex32::default() };
                clean + Complex32::new(noise[n].re as f32, noise[n].im as f32) * level
            })
            .collect();
        let worst = behind(&tx, &rx, taps);
        println!("{name}: at most {worst:.2} dB behind");
        assert!(worst < 0.3, "{name}: {worst} dB");
    }
}

/// What is received with a second, unknown band beside it.
pub(super) fn another_band(rx: &[Complex32], amplitude: f32) -> Vec<Complex32> {
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
