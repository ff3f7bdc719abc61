//! The Hammerstein kernel as it comes on streams: how well it tracks, on vectors of several antennas, and with steps that are too large.

use super::common::shared;
use kaflow::channel::{Doppler, Scenario, TestBed};
use kaflow::filter::registry::{self, Value, Values};
use kaflow::filter::{Evict, Filter, Guard, KrlsT, Tracker, Window, fklms, klms, qklms};
use kaflow::kernel::{Gaussian, Hammerstein, Kernel, Sum};
use kaflow::observation::Gain;
use kaflow::{Complex, Complex32};

const TAPS: usize = 4;

type Streams = (Vec<Complex32>, Vec<Complex32>);

fn simulated(preset: &str, seed: u64) -> Streams {
    let mut scenario = Scenario { seed, samples: 6000, ..Scenario::preset(preset).unwrap() };
    if let Some(fading) = &mut scenario.fading {
        fading.doppler = Doppler::Constant(1e-3);
    }
    scenario.ofdm.seed = seed;
    let mut chunk = TestBed::run(&scenario).unwrap();
    (chunk.tx.remove(0), chunk.rx.remove(0))
}

fn recorded(set: &str) -> Option<Streams> {
    let read = |side: &str| -> Option<Vec<Complex32>> {
        let bytes = std::fs::read(shared(&format!("data/{set}/{side}.sigmf-data"))?).unwrap();
        let float = |b: &[u8]| f32::from_le_bytes(b.try_into().unwrap());
        Some(bytes.chunks_exact(8).map(|b| Complex::new(float(&b[..4]), float(&b[4..]))).collect())
    };
    Some((read("tx")?, read("rx")?))
}

/// A filter on streams with nothing set.
fn untuned(name: &str, tx: &[Complex32]) -> Guard<f32, Box<dyn Tracker<f32>>> {
    let energy: f64 = tx.iter().map(|z| f64::from(z.re).powi(2) + f64::from(z.im).powi(2)).sum();
    let spread = (TAPS as f64 * energy / tx.len() as f64).sqrt();
    let settings = registry::recipe(name).unwrap().settle_stream(&Values::new(), spread, TAPS).unwrap();
    assert_eq!(settings.values()["kernel"], Value::Name("hammerstein".into()));
    Guard::new(registry::tracker(&settings, TAPS).unwrap())
}

/// NMSE after 500 samples.
fn nmse(tracker: &mut Guard<f32, Box<dyn Tracker<f32>>>, (tx, rx): &Streams) -> f64 {
    let mut p = tx.clone();
    tracker.track(tx, rx, &mut p, None);
    let power = |z: Complex32| f64::from(z.re).powi(2) + f64::from(z.im).powi(2);
    let error: f64 = rx.iter().zip(&p).skip(500).map(|(y, p)| power(y - p)).sum();
    10.0 * (error / rx.iter().skip(500).map(|&y| power(y)).sum::<f64>()).log10()
}

#[test]
fn goals_are_reached_untuned() {
    for (filter, preset, goal) in
        [("fklms", "d", -13.3), ("fklms", "a", -15.9), ("fklms", "b", -7.6), ("fklms", "e", -7.0), ("krlst", "d", -13.5)]
    {
        let one = |seed| {
            let streams = simulated(preset, seed);
            nmse(&mut untuned(filter, &streams.0), &streams)
        };
        let mean = (1..=10).map(one).sum::<f64>() / 10.0;
        println!("{filter} on {preset}: goal {goal:.1} dB, reached {mean:.2} dB (10 seeds)");
        assert!(mean <= goal, "{filter} on {preset}: {mean}");
    }
    let Some(streams) = recorded("kafbox_mimotestbed8k") else { return };
    let reached = nmse(&mut untuned("fklms", &streams.0), &streams);
    println!("fklms on kafbox_mimotestbed8k: goal -13.2 dB, reached {reached:.2} dB");
    assert!(reached <= -13.2, "{reached}");
}

#[test]
fn a_step_that_must_diverge_is_refused_with_the_bound() {
    let twice = || Sum::<f64>::new(vec![(2.5, Box::new(Gaussian::new(1.0).unwrap()) as _)]).unwrap();
    let error = klms(twice(), Gain::Eta(0.5), Evict::default(), 2).err().unwrap().to_string();
    assert!(error.contains("eta") && error.contains("0.4") && error.contains("0.5") && error.contains("gaussian"), "{error}");
    let mut filter = klms(twice(), Gain::Eta(0.4), Evict::default(), 2).unwrap();
    use kaflow::filter::Adaptive;
    assert!(filter.set("eta", 0.5).is_err() && filter.set("eta", 0.3).is_ok());
}

#[test]
fn a_step_that_depends_on_the_data_is_bounded_and_counted() {
    let (tx, rx) = simulated("d", 1);
    let loud: Vec<_> = tx.iter().map(|x| x * 10.0).collect();
    let evict = Evict { budget: Some(100), floor: None };
    let build = |gain| fklms(Hammerstein::<f32>::new(7.0).unwrap(), gain, 0.997, evict, TAPS).unwrap();
    for (gain, bounded) in [(Gain::Eta(0.5), true), (Gain::DiffusionRatio(0.01), false)] {
        let (mut by_lag, mut plain) = (Guard::new(build(gain).on_stream()), build(gain));
        let reached = nmse(&mut by_lag, &(loud.clone(), rx.clone()));
        assert!(reached < 0.0, "{gain:?}: {reached}");
        let mut window = Window::new(TAPS).unwrap();
        for (&u, &y) in loud.iter().zip(&rx) {
            plain.adapt(window.push(u), y);
        }
        let count = by_lag.portrait().bounded_steps;
        assert_eq!(count, Filter::portrait(&plain).bounded_steps, "{gain:?}");
        assert_eq!(count > 1000, bounded, "{gain:?}: {count}");
    }
}

fn noise(seed: u64, n: usize) -> Vec<Complex<f64>> {
    super::common::noise(seed, n)
}

#[test]
fn qklms_quantises_in_feature_space() {
    let (x, kernel) = (noise(7, 3 * 400), Hammerstein::<f64>::new(0.5).unwrap());
    let epsilon = 0.9;
    let mut filter = qklms(kernel, Gain::DiffusionRatio(1.0), epsilon, Evict::default(), 3).unwrap();
    let mut kept: Vec<&[Complex<f64>]> = Vec::new();
    for x in x.chunks(3) {
        filter.adapt(x, x[0]);
        if kept.iter().all(|c| kernel.distance(c, x) > epsilon * epsilon) {
            kept.push(x);
        }
    }
    let centres: Vec<_> = filter.dictionary().map(|(c, ..)| c).collect();
    assert!(kept.len() > 20 && kept.len() < 380, "{}", kept.len());
    assert_eq!(centres, kept);
}

#[test]
fn all_transmit_antennas_are_learned_together() {
    let (x, z) = (noise(1, 6000), noise(2, 6000));
    let sat = |u: Complex<f64>| u / (1.0 + 2.0 * u.norm_sqr()).sqrt();
    let (a, b) = (Complex::new(0.8, -0.3), Complex::new(-0.2, 0.6));
    let run = |filter: &mut dyn Filter<f64>| {
        let (mut first, mut second) = (Window::new(2).unwrap(), Window::new(2).unwrap());
        let (mut error, mut power) = (0.0, 0.0);
        for i in 1..x.len() {
            let input = [first.push(x[i]), second.push(z[i])].concat();
            let y = sat(x[i]) * a + sat(z[i - 1]) * b;
            let p = filter.adapt(&input, y);
            if i > 3000 {
                error += (y - p).norm_sqr();
                power += y.norm_sqr();
            }
        }
        10.0 * (error / power).log10()
    };
    let evict = Evict { budget: Some(500), floor: None };
    let one = run(&mut fklms(Hammerstein::new(0.5).unwrap(), Gain::DiffusionRatio(1.0), 0.9999, evict, 4).unwrap());
    let other = run(&mut fklms(Gaussian::new(1.5).unwrap(), Gain::DiffusionRatio(1.0), 0.9999, evict, 4).unwrap());
    assert!(one < -20.0 && one < other - 5.0, "{one} dB, Gaussian {other} dB");
}

/// Solves `A x = b`.
fn solve(mut a: Vec<Vec<Complex<f64>>>, mut b: Vec<Complex<f64>>) -> Vec<Complex<f64>> {
    let n = b.len();
    for i in 0..n {
        let row = a[i].clone();
        for j in i + 1..n {
            let factor = a[j][i] / row[i];
            (i..n).for_each(|k| a[j][k] -= factor * row[k]);
            b[j] = b[j] - factor * b[i];
        }
    }
    for i in (0..n).rev() {
        let known: Complex<f64> = (i + 1..n).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}

#[test]
fn krls_t_without_forgetting_is_the_gaussian_process_and_turns_with_its_input() {
    let (x, y, kernel, noise_power) = (noise(3, 3 * 15), noise(4, 15), Hammerstein::<f64>::new(0.5).unwrap(), 0.1);
    let turn = Complex::from_polar(1.0, 0.9);
    let turned: Vec<_> = x.iter().map(|z| z * turn).collect();
    let mut filter = KrlsT::new(kernel, 1.0, noise_power, 30, 3).unwrap();
    let mut second = KrlsT::new(kernel, 1.0, noise_power, 30, 3).unwrap();
    let windows: Vec<_> = x.chunks(3).collect();
    for (i, &new) in windows.iter().enumerate() {
        let p = filter.adapt(new, y[i]);
        let q = second.adapt(&turned[3 * i..3 * i + 3], y[i] * turn);
        assert!((p * turn - q).norm() < 1e-9, "sample {i} does not turn");
        let entry = |r: usize, c: usize| kernel.value(windows[c], windows[r]) + if r == c { noise_power } else { 0.0 };
        let gram = (0..i).map(|r| (0..i).map(|c| entry(r, c)).collect()).collect();
        let a = solve(gram, y[..i].to_vec());
        let expected: Complex<f64> = (0..i).map(|j| a[j] * kernel.value(windows[j], new)).sum();
        // The jitter is all that differs.
        assert!((p - expected).norm() < 1e-4 * (1.0 + expected.norm()), "sample {i}: {p} instead of {expected}");
    }
}
