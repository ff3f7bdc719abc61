//! Laws that hold between the filters, over all of them where they hold for all.

use super::common::{channel, noise};
use kaflow::filter::registry::{self, Task, Value, Values};
use kaflow::filter::*;
use kaflow::kernel::{Gaussian, Linear};
use kaflow::observation::*;
use kaflow::{Complex, Real};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const TAPS: usize = 4;

fn multinomial_step(f: &[f64], y: usize, s: f64) -> Vec<f64> {
    let mut alpha = vec![0.0; f.len()];
    Multinomial::new(s, vec![0.0; f.len()]).unwrap().step(f, y, 1.0, &mut alpha);
    alpha
}

/// Every filter for complex targets, in the forms that differ inside: name, and parameters beside the defaults.
const FORMS: &[(&str, &[(&str, f64)])] = &[
    ("lms", &[]),
    ("lms", &[("budget", 7.0)]),
    ("klms", &[]),
    ("klms", &[("budget", 11.0)]),
    ("fklms", &[("budget", 20.0), ("lambda", 0.97)]),
    ("fklms", &[("floor", 0.01), ("lambda", 0.9)]),
    ("fklms", &[("floor", 0.02), ("budget", 10.0), ("diffusion-ratio", 2.0)]),
    ("norma", &[("budget", 20.0)]),
    ("qklms", &[("epsilon", 0.9)]),
    ("qklms", &[("epsilon", 0.7), ("budget", 15.0)]),
    ("nlms", &[]),
    ("rls", &[]),
    ("kalman", &[]),
    ("mp-rls", &[]),
    ("krlst", &[("budget", 12.0)]),
];

fn build<T: Real>(name: &str, given: &[(&str, f64)]) -> Box<dyn Filter<T>> {
    let values: Values = given.iter().map(|&(n, v)| (n.into(), Value::Number(v))).collect();
    registry::filter(&registry::recipe(name).unwrap().settle(&values, 1.5).unwrap(), TAPS).unwrap()
}

fn tracker<T: Real>(name: &str, given: &[(&str, f64)]) -> Guard<T, Box<dyn Tracker<T>>> {
    Guard::new(build(name, given).on_stream())
}

fn run<F: Tracker<f64>>(tracker: &mut Guard<f64, F>, tx: &[Complex<f64>], rx: &[Complex<f64>]) -> Vec<Complex<f64>> {
    let mut prediction = vec![Complex::new(0.0, 0.0); tx.len()];
    tracker.track(tx, rx, &mut prediction, None);
    prediction
}

fn windows(tx: &[Complex<f64>]) -> Vec<Vec<Complex<f64>>> {
    let mut window = Window::new(TAPS).unwrap();
    tx.iter().map(|&u| window.push(u).to_vec()).collect()
}

fn agree(what: &str, a: &mut dyn Filter<f64>, b: &mut dyn Filter<f64>, tolerance: f64) {
    let (tx, rx) = channel(1, 400);
    for (i, (x, &y)) in windows(&tx).iter().zip(&rx).enumerate() {
        let (p, q) = (a.adapt(x, y), b.adapt(x, y));
        assert!((p - q).norm() <= tolerance * (1.0 + p.norm()), "{what}, sample {i}: {p} and {q}");
    }
}

#[test]
fn every_filter_for_complex_targets_is_among_the_forms() {
    for name in registry::of_task(Task::Regression) {
        assert!(FORMS.iter().any(|(form, _)| *form == name), "{name} is not tested");
    }
}

#[test]
fn klms_with_the_linear_kernel_is_lms() {
    for gain in [Gain::Eta(0.1), Gain::DiffusionRatio(0.7)] {
        agree("lms", &mut Lms::new(TAPS, gain).unwrap(), &mut klms(Linear, gain, Evict::default(), TAPS).unwrap(), 1e-11);
    }
}

#[test]
fn members_of_the_family_without_their_speciality_are_klms() {
    let kernel = || Gaussian::new(1.2).unwrap();
    let gain = Gain::Eta(0.4);
    let base = || klms(kernel(), gain, Evict::default(), TAPS).unwrap();
    agree("fklms, lambda 1", &mut base(), &mut fklms(kernel(), gain, 1.0, Evict::default(), TAPS).unwrap(), 0.0);
    agree("norma, ridge 0", &mut base(), &mut norma(kernel(), gain, 0.0, Evict::default(), TAPS).unwrap(), 0.0);
    agree("qklms, radius 0", &mut base(), &mut qklms(kernel(), gain, 0.0, Evict::default(), TAPS).unwrap(), 1e-12);
    agree("a budget never reached", &mut base(), &mut klms(kernel(), gain, Evict { budget: Some(400), floor: None }, TAPS).unwrap(), 0.0);
    agree("a floor of 0", &mut base(), &mut klms(kernel(), gain, Evict { budget: None, floor: Some(0.0) }, TAPS).unwrap(), 0.0);
}

#[test]
fn nlms_is_lms_with_the_diffusion_ratio_when_mu_is_one() {
    // eta'/(1 + eta' xᴴx) = 1/(1/eta' + xᴴx).
    let ratio = Gain::DiffusionRatio(4.0);
    agree("nlms", &mut Lms::new(TAPS, ratio).unwrap(), &mut Nlms::new(TAPS, 1.0, 0.25).unwrap(), 1e-12);
}

#[test]
fn kalman_without_diffusion_is_rls_without_forgetting() {
    let kalman = &mut Kalman::new(TAPS, 1.0, 0.0, 0.5).unwrap();
    // P₀ = I with noise r is P₀ = I/r with unit noise: both scale by r.
    agree("kalman", &mut Rls::new(TAPS, 1.0, 0.5).unwrap(), kalman, 1e-9);
}

#[test]
fn normas_predictions_are_fklmss_divided_by_lambda_at_equal_weights() {
    let (eta, ridge) = (0.4, 0.1);
    let lambda = 1.0 - eta * ridge;
    let kernel = || Gaussian::new(1.2).unwrap();
    let mut norma = norma(kernel(), Gain::Eta(eta), ridge, Evict::default(), TAPS).unwrap();
    let mut fklms = fklms(kernel(), Gain::Eta(eta), lambda, Evict::default(), TAPS).unwrap();
    let (tx, rx) = channel(2, 200);
    for (x, &y) in windows(&tx).iter().zip(&rx) {
        // Equal weights, up to now: both have learned the same step, because each is told the target that makes its own error `y`.
        let (p, q) = (norma.predict(x), fklms.predict(x));
        assert!((q - p * lambda).norm() < 1e-12, "{p} {q}");
        norma.adapt(x, p + y);
        fklms.adapt(x, q + y);
    }
}

#[test]
fn a_budget_keeps_the_newest_and_a_floor_keeps_the_large() {
    let (tx, rx) = channel(3, 300);
    let mut filter = fklms(Gaussian::new(1.0).unwrap(), Gain::Eta(0.5), 0.95, Evict { budget: Some(30), floor: None }, TAPS).unwrap();
    let mut floored =
        fklms(Gaussian::new(1.0).unwrap(), Gain::Eta(0.5), 0.95, Evict { budget: Some(25), floor: Some(0.15) }, TAPS).unwrap();
    for (i, (x, &y)) in windows(&tx).iter().zip(&rx).enumerate() {
        filter.adapt(x, y);
        floored.adapt(x, y);
        let mut born: Vec<u64> = filter.dictionary().map(|(_, _, born)| born).collect();
        born.sort_unstable();
        assert_eq!(born, (i.saturating_sub(29) as u64..=i as u64).collect::<Vec<_>>());
        assert!(floored.size() <= 25);
        assert!(floored.dictionary().all(|(_, a, _)| a[0].hypot(a[1]) >= 0.15 * (1.0 - 1e-12)));
    }
    assert!(floored.size() < 25, "the floor drops more than the budget does");
}

#[test]
fn forgetting_for_ever_neither_overflows_nor_changes_predictions() {
    // 0.9^n leaves the range of f32 after 800 samples; the running scale must be rebased in time.
    let (tx, rx) = channel(4, 5000);
    let evict = Evict { budget: Some(50), floor: None };
    let mut single = fklms(Gaussian::<f32>::new(1.0).unwrap(), Gain::Eta(0.5), 0.9, evict, TAPS).unwrap();
    let mut double = fklms(Gaussian::<f64>::new(1.0).unwrap(), Gain::Eta(0.5), 0.9, evict, TAPS).unwrap();
    for (x, &y) in windows(&tx).iter().zip(&rx) {
        let narrow: Vec<_> = x.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect();
        let p = single.adapt(&narrow, Complex::new(y.re as f32, y.im as f32));
        let q = double.adapt(x, y);
        assert!((p.re - q.re as f32).abs() < 1e-4 && (p.im - q.im as f32).abs() < 1e-4, "{p} {q}");
    }
}

#[test]
fn results_do_not_depend_on_how_the_stream_is_cut() {
    let (tx, rx) = channel(5, 700);
    for &(name, given) in FORMS {
        let whole = run(&mut tracker(name, given), &tx, &rx);
        let mut pieces = Vec::new();
        let mut cut = tracker(name, given);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        while pieces.len() < tx.len() {
            let end = (pieces.len() + rng.random_range(1..100)).min(tx.len());
            let range = pieces.len()..end;
            pieces.extend(run(&mut cut, &tx[range.clone()], &rx[range]));
        }
        assert_eq!(whole, pieces, "{name} {given:?}");
    }
}

#[test]
fn saving_and_restoring_at_any_point_changes_nothing() {
    let (tx, rx) = channel(6, 300);
    for &(name, given) in FORMS {
        let whole = run(&mut tracker(name, given), &tx, &rx);
        for cut in [0, 1, 3, 50, 299] {
            let mut before = tracker(name, given);
            run(&mut before, &tx[..cut], &rx[..cut]);
            let saved = before.save().unwrap();
            let mut after = tracker(name, given);
            run(&mut after, &rx, &tx); // whatever it held is replaced
            after.restore(&saved).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(after.save().unwrap(), saved, "{name} {given:?} saved again after {cut}");
            assert_eq!(run(&mut after, &tx[cut..], &rx[cut..]), whole[cut..], "{name} {given:?} restored after {cut}");
        }
    }
}

#[test]
fn damaged_and_foreign_state_is_refused_and_changes_nothing() {
    let (tx, rx) = channel(7, 100);
    for &(name, given) in FORMS {
        let mut filter = tracker(name, given);
        run(&mut filter, &tx[..50], &rx[..50]);
        let saved = filter.save().unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        for _ in 0..50 {
            let mut damaged = saved.clone();
            let i = rng.random_range(0..damaged.len());
            damaged[i] ^= 1 << rng.random_range(0..8);
            assert!(filter.restore(&damaged).is_err(), "{name}");
            assert!(filter.restore(&saved[..rng.random_range(0..saved.len())]).is_err(), "{name}");
        }
        for &(other, with) in FORMS.iter().filter(|(other, _)| *other != name) {
            let foreign = tracker::<f64>(other, with).save().unwrap();
            // Members of one family with the same shape may take each other's state; nobody else's.
            if let Ok(()) = filter.restore(&foreign) {
                assert_eq!(filter.size(), tracker::<f64>(other, with).size());
                filter.restore(&saved).unwrap();
            }
        }
        assert_eq!(filter.save().unwrap(), saved, "{name}");
    }
}

#[test]
fn corrupt_samples_and_silence_do_no_lasting_harm() {
    let (clean_tx, clean_rx) = channel(8, 1500);
    let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-310];
    for &(name, given) in FORMS {
        let (mut tx, mut rx) = (clean_tx.clone(), clean_rx.clone());
        for (k, &value) in bad.iter().enumerate() {
            tx[100 + 37 * k].re = value;
            rx[119 + 37 * k].im = value;
        }
        tx[400..700].fill(Complex::new(0.0, 0.0));
        rx[400..700].fill(Complex::new(0.0, 0.0));
        let damaged = run(&mut tracker(name, given), &tx, &rx);
        assert!(damaged.iter().all(|p| p.re.is_finite() && p.im.is_finite()), "{name} {given:?}");
        // All are as good as if nothing had happened, but for those that never were: a linear dictionary of seven.
        let nmse = |p: &[Complex<f64>]| {
            let error: f64 = p[1200..].iter().zip(&clean_rx[1200..]).map(|(p, y)| (p - y).norm_sqr()).sum();
            error / clean_rx[1200..].iter().map(|y| y.norm_sqr()).sum::<f64>()
        };
        if name != "lms" || given.is_empty() {
            let clean = nmse(&run(&mut tracker(name, given), &clean_tx, &clean_rx));
            assert!(nmse(&damaged) < 2.0 * clean + 0.05, "{name} {given:?}: {} instead of {clean}", nmse(&damaged));
        }
    }
}

#[test]
fn absurd_but_finite_samples_never_become_nan() {
    let (clean_tx, clean_rx) = channel(15, 400);
    for &(name, given) in FORMS {
        for value in [1e30, -1e200, 1e308] {
            let (mut tx, mut rx) = (clean_tx.clone(), clean_rx.clone());
            tx[100].re = value;
            rx[200].im = value;
            let p = run(&mut tracker(name, given), &tx, &rx);
            assert!(p.iter().all(|p| !p.re.is_nan() && !p.im.is_nan()), "{name} {given:?} with {value}");
        }
    }
}

#[test]
fn scale_of_the_data_does_not_break_any_filter() {
    for scale in [1e-12, 1e-3, 1e3, 1e12] {
        let (tx, rx) = channel(9, 300);
        let tx: Vec<_> = tx.iter().map(|z| z * scale).collect();
        let rx: Vec<_> = rx.iter().map(|z| z / scale).collect();
        for &(name, given) in FORMS {
            let fixed_step = name == "lms" && given.is_empty();
            let p = run(&mut tracker(name, given), &tx, &rx);
            assert!(fixed_step || p.iter().all(|p| p.re.is_finite() && p.im.is_finite()), "{name} {given:?} at scale {scale}");
        }
    }
}

/// Symbol-like noise, oversampled eight times by a moving average of a moving average: its covariance is singular out of band.
fn oversampled(n: usize) -> Vec<Complex<f64>> {
    let symbols = noise(10, n / 8 + 20);
    let mut x: Vec<_> = (0..n).map(|i| symbols[i / 8]).collect();
    for _ in 0..6 {
        x = (0..n).map(|i| x[i.saturating_sub(7)..=i].iter().sum::<Complex<f64>>() / 8.0).collect();
    }
    x
}

#[test]
fn rls_and_kalman_stay_bounded_on_oversampled_input() {
    let tx = oversampled(1_000_000);
    let h = [Complex::new(0.5, 0.2), Complex::new(-0.3, 0.4), Complex::new(0.1, -0.7), Complex::new(0.2, 0.0)];
    let filters: [(&str, Box<dyn Filter<f32>>); 3] = [
        ("rls", Box::new(Rls::new(8, 0.998, 1e-3).unwrap())),
        ("kalman", Box::new(Kalman::new(8, 0.999, 1e-4, 1e-3).unwrap())),
        ("kalman, random walk", Box::new(Kalman::new(8, 1.0, 1e-3, 1e-3).unwrap())),
    ];
    for (name, mut filter) in filters {
        let mut window = Window::<f32>::new(8).unwrap();
        let (mut error, mut power, mut largest) = (0.0, 0.0, 0.0f32);
        for i in 0..tx.len() {
            let y: Complex<f64> = h.iter().enumerate().filter(|(l, _)| i >= *l).map(|(l, h)| h * tx[i - l]).sum();
            let x = window.push(Complex::new(tx[i].re as f32, tx[i].im as f32));
            let y = Complex::new(y.re as f32, y.im as f32);
            let p = filter.adapt(x, y);
            largest = largest.max(p.norm());
            if i > tx.len() - 100_000 {
                error += f64::from((p - y).norm_sqr());
                power += f64::from(y.norm_sqr());
            }
        }
        assert!(largest < 10.0, "{name}: predictions up to {largest}");
        assert!(error < 1e-4 * power, "{name}: {:.1} dB after a million samples", 10.0 * (error / power).log10());
    }
}

#[test]
fn standing_still_the_error_vanishes_with_eta_and_moving_there_is_a_best_eta() {
    assert!(steady_state_error(1e-6, 0.0, 0.1) < 1e-7);
    assert!(steady_state_error(0.1, 1e-3, 0.1) < steady_state_error(0.01, 1e-3, 0.1));
    assert!(steady_state_error(0.1, 1e-3, 0.1) < steady_state_error(0.9, 1e-3, 0.1));
}

#[test]
fn steady_state_error_agrees_with_a_simulation() {
    // A function in the span of 12 points whose Gram matrix is nearly the identity walks at random; x visits the points at random.
    let (points, noise_variance) = (12usize, 0.05);
    for (eta, drift) in [(0.2, 0.0), (0.5, 0.0), (0.3, 0.02), (0.7, 0.05)] {
        let kernel = Gaussian::new(0.1).unwrap();
        let mut filter = qklms(kernel, Gain::Eta(eta), 0.0, Evict::default(), 1).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let mut normal = {
            let mut rng = ChaCha8Rng::seed_from_u64(12);
            move |variance: f64| {
                let (u, v): (f64, f64) = (rng.random(), rng.random());
                let r = (-variance * (1.0 - u).ln()).sqrt();
                Complex::from_polar(r, v * std::f64::consts::TAU)
            }
        };
        let mut truth = vec![Complex::new(0.0, 0.0); points];
        let (mut error, mut count) = (0.0, 0u32);
        for i in 0..200_000 {
            truth.iter_mut().for_each(|w| *w += normal(drift / points as f64));
            let k = rng.random_range(0..points);
            let p = filter.adapt(&[Complex::new(k as f64, 0.0)], truth[k] + normal(noise_variance));
            if i > 2000 {
                error += (truth[k] - p).norm_sqr();
                count += 1;
            }
        }
        let (measured, formula) = (error / f64::from(count), steady_state_error(eta, drift, noise_variance));
        assert!((measured / formula - 1.0).abs() < 0.05, "eta {eta}, drift {drift}: {measured} instead of {formula}");
    }
}

#[test]
fn forgetting_pulls_towards_the_offset() {
    let kernel = || Gaussian::<f64>::new(0.1).unwrap();
    let far = [Complex::new(100.0, 0.0)];
    let mut counts = bayesian_klms(kernel(), Poisson::new(0.5, 3f64.ln()).unwrap(), 0.9, Evict::default(), 1).unwrap();
    let mut bits = bayesian_klms(kernel(), Bernoulli::new(5.0, -2.0).unwrap(), 0.9, Evict::default(), 1).unwrap();
    let mut classes = bayesian_klms(kernel(), Multinomial::new(5.0, vec![0.0, 1.0, 2.0]).unwrap(), 0.9, Evict::default(), 1).unwrap();
    for _ in 0..10 {
        counts.adapt(&[Complex::new(0.0, 0.0)], 20.0);
        bits.adapt(&[Complex::new(0.0, 0.0)], true);
        classes.adapt(&[Complex::new(0.0, 0.0)], 0);
    }
    assert!(counts.predict(&[Complex::new(0.0, 0.0)]) > 6.0);
    for _ in 0..200 {
        counts.adapt(&far, 3.0);
        bits.adapt(&far, false);
        classes.adapt(&far, 2);
    }
    let near = [Complex::new(0.0, 0.0)];
    assert!((counts.predict(&near) - 3.0f64).abs() < 1e-6, "a rate that nobody confirms falls back to the offset's");
    assert!((bits.predict(&near) - 1.0 / (1.0 + 2f64.exp())).abs() < 1e-6);
    let total: f64 = [0.0, 1.0, 2.0].iter().map(|o: &f64| o.exp()).sum();
    for (p, o) in classes.predict(&near).iter().zip([0.0f64, 1.0, 2.0]) {
        assert!((p - o.exp() / total).abs() < 1e-6);
    }
}

#[test]
fn discrete_filters_save_and_restore() {
    let kernel = || Gaussian::new(0.5).unwrap();
    let make =
        || bayesian_klms(kernel(), Multinomial::new(2.0, vec![0.0; 3]).unwrap(), 0.99, Evict { budget: Some(20), floor: None }, 1).unwrap();
    let x = noise(13, 100);
    let mut whole = make();
    let mut first = make();
    for (i, &x) in x.iter().enumerate() {
        let p = whole.adapt(&[x], i % 3).to_vec();
        if i == 50 {
            let mut second = make();
            second.restore(&first.save().unwrap()).unwrap();
            first = second;
        }
        assert_eq!(first.adapt(&[x], i % 3), p);
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn the_predictive_variance_of_krls_t_is_calibrated() {
    // Complex Gaussian errors: |e|² / variance is exponential, so 95 % lie below -ln 0.05 = 3.
    let (tx, rx) = channel(14, 6000);
    let mut filter = KrlsT::new(Gaussian::new(2.0).unwrap(), 0.9999, 1e-3, 120, TAPS).unwrap();
    let mut inside = 0;
    for (i, (x, &y)) in windows(&tx).iter().zip(&rx).enumerate() {
        let p = filter.adapt(x, y);
        if i >= 2000 && (y - p).norm_sqr() <= 3.0 * filter.variance().unwrap() {
            inside += 1;
        }
    }
    let coverage = f64::from(inside) / 4000.0;
    assert!((0.90..=0.99).contains(&coverage), "95 % intervals hold {coverage}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_poisson_step_satisfies_its_stationarity(y in 0u32..5000, f in -60.0..12.0f64, log_s in -12.0..12.0f64) {
        let (y, s) = (f64::from(y), log_s.exp());
        let a = poisson_step(y, f, s);
        let pull = y - (f + a).exp();
        // Its own rounding: exp amplifies that of f + a, and the difference cancels.
        let rounding = 1e-14 * s * (y + (f + a).exp() * (1.0 + f.abs() + a.abs()));
        prop_assert!((a - s * pull).abs() <= 1e-12 * a.abs() + rounding, "{a} against {}", s * pull);
    }

    #[test]
    fn the_bernoulli_step_satisfies_its_stationarity(y: bool, f in -800.0..800.0f64, log_s in -20.0..20.0f64) {
        let s = log_s.exp();
        let a = bernoulli_step(y, f, s);
        let logistic = |z: f64| if z >= 0.0 { 1.0 / (1.0 + (-z).exp()) } else { z.exp() / (1.0 + z.exp()) };
        let expected = if y { s * logistic(-(f + a)) } else { -s * logistic(f + a) };
        let rounding = 1e-15 * a.abs() * (1.0 + (f + a).abs() + f.abs() + a.abs());
        prop_assert!((a - expected).abs() <= 1e-13 * a.abs() + rounding * (1.0 + s), "{a} against {expected}");
    }

    #[test]
    fn bernoulli_and_multinomial_steps_agree_for_two_classes(y in 0usize..2, f0 in -30.0..30.0f64, f1 in -30.0..30.0f64, log_s in -8.0..8.0f64) {
        let s = log_s.exp();
        let a = multinomial_step(&[f0, f1], y, s);
        // The difference of the two diffuses twice as fast.
        let b = bernoulli_step(y == 1, f1 - f0, 2.0 * s);
        prop_assert!((a[1] - a[0] - b).abs() <= 1e-9 * (b.abs() + 1e-300), "{a:?} against {b}");
        prop_assert!((a[0] + a[1]).abs() <= 1e-12 * b.abs());
    }

    #[test]
    fn the_multinomial_step_satisfies_its_stationarity(f in prop::collection::vec(-20.0..20.0f64, 2..9), y: prop::sample::Index, log_s in -6.0..6.0f64) {
        let (y, s) = (y.index(f.len()), log_s.exp());
        let a = multinomial_step(&f, y, s);
        let z: Vec<f64> = f.iter().zip(&a).map(|(f, a)| f + a).collect();
        let top = z.iter().copied().fold(f64::MIN, f64::max);
        let total: f64 = z.iter().map(|z| (z - top).exp()).sum();
        for k in 0..f.len() {
            let p = (z[k] - top).exp() / total;
            let expected = s * (f64::from(u8::from(k == y)) - p);
            prop_assert!((a[k] - expected).abs() <= 1e-9 * s, "class {k}: {} against {expected}", a[k]);
        }
    }

    #[test]
    fn scalar_steps_are_finite_for_every_finite_input(y in 0.0..f64::MAX, f in prop::num::f64::NORMAL | prop::num::f64::ZERO, s in prop::num::f64::POSITIVE) {
        prop_assume!(s > 0.0 && s.is_finite());
        prop_assert!(poisson_step(y, f, s).is_finite(), "poisson {y} {f} {s}: {}", poisson_step(y, f, s));
        prop_assert!(poisson_step(0.0, f, s).is_finite(), "poisson 0 {f} {s}: {}", poisson_step(0.0, f, s));
        prop_assert!(bernoulli_step(y > 1.0, f, s).is_finite());
        prop_assert!(multinomial_step(&[f, 0.0, -f], 1, s).iter().all(|a| a.is_finite()));
    }

    #[test]
    fn random_parameters_keep_every_filter_finite_and_reproducible(form in 0..FORMS.len(), seed in 0u64..1000, eta in 0.01..1.0f64, lambda in 0.5..1.0f64, sigma in 0.05..20.0f64) {
        let (name, given) = FORMS[form];
        let mut given: Vec<(&str, f64)> = given.to_vec();
        let recipe = registry::recipe(name).unwrap();
        for (p, v) in [("eta", eta), ("lambda", lambda), ("sigma", sigma)] {
            let free = !given.iter().any(|(n, _)| *n == p || (*n == "diffusion-ratio" && p == "eta"));
            if free && name != "lms" && recipe.has(p) {
                given.push((p, v));
            }
        }
        let (tx, rx) = channel(seed, 150);
        let first = run(&mut tracker(name, &given), &tx, &rx);
        prop_assert!(first.iter().all(|p| p.re.is_finite() && p.im.is_finite()));
        prop_assert_eq!(first, run(&mut tracker(name, &given), &tx, &rx));
    }
}

#[test]
fn parameters_change_while_running_or_not_at_all() {
    let mut filter = tracker::<f64>("fklms", &[("budget", 10.0)]);
    let before = filter.save().unwrap();
    for (name, value) in [("lambda", 0.0), ("lambda", 1.5), ("eta", -1.0), ("eta", f64::NAN), ("ridge", 0.1), ("zeal", 1.0)] {
        assert!(filter.set(name, value).is_err(), "{name} = {value}");
    }
    assert_eq!(filter.save().unwrap(), before);
    filter.set("lambda", 0.5).unwrap();
    assert_ne!(filter.save().unwrap(), before);
}

#[test]
fn a_smaller_budget_keeps_the_youngest_centres_and_goes_on_in_their_order() {
    use kaflow::Complex64;
    let evict = Evict { budget: Some(20), ..Evict::default() };
    for samples in [5, 20, 37, 60] {
        let mut filter = fklms(Gaussian::new(1.0).unwrap(), Gain::Eta(0.5), 0.99, evict, 1).unwrap();
        let feed = |filter: &mut GaussianKernelFilter<f64, Gaussian<f64>>, from: u64, to: u64| {
            (from..to).for_each(|n| {
                Filter::adapt(filter, &[Complex64::new(n as f64, 0.0)], Complex64::new(1.0, n as f64));
            });
        };
        feed(&mut filter, 0, samples);
        let mut youngest: Vec<_> = filter.dictionary().collect();
        youngest.sort_by_key(|(.., born)| std::cmp::Reverse(*born));
        youngest.truncate(7);
        filter.set("budget", 7.0).unwrap();
        let mut kept: Vec<_> = filter.dictionary().collect();
        kept.sort_by_key(|(.., born)| std::cmp::Reverse(*born));
        assert_eq!(kept, youngest);
        feed(&mut filter, samples, samples + 10);
        let mut born: Vec<u64> = filter.dictionary().map(|(.., born)| born).collect();
        born.sort_unstable();
        assert_eq!(born, (samples + 3..samples + 10).collect::<Vec<_>>());
        assert!(filter.set("budget", 8.0).is_err() && filter.set("budget", 0.0).is_err() && filter.set("budget", 2.5).is_err());
    }
}

#[test]
fn a_smaller_budget_on_a_stream_is_kept_to_and_learning_goes_on() {
    let (tx, rx) = channel(3, 900);
    let mut filter = tracker::<f64>("fklms", &[("budget", 20.0)]);
    let error = |p: &[Complex<f64>], y: &[Complex<f64>]| p.iter().zip(y).map(|(p, y)| (y - p).norm_sqr()).sum::<f64>();
    let mut p = vec![Complex::new(0.0, 0.0); 300];
    filter.track(&tx[..300], &rx[..300], &mut p, None);
    filter.set("budget", 7.0).unwrap();
    assert!(filter.set("budget", 8.0).is_err());
    filter.track(&tx[300..600], &rx[300..600], &mut p, None);
    assert_eq!(filter.size(), 7);
    filter.track(&tx[600..], &rx[600..], &mut p, None);
    let mut small = tracker::<f64>("fklms", &[("budget", 7.0)]);
    let mut q = p.clone();
    small.track(&tx[600..], &rx[600..], &mut q, None);
    // What was learned long ago is forgotten: in the end it is a filter with that budget.
    let (p, q) = (error(&p[100..], &rx[700..]), error(&q[100..], &rx[700..]));
    assert!((p - q).abs() < 0.05 * q, "{p} and {q}");
}
