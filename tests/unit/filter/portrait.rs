//! What filters show of themselves is what they predict with.

use super::common::{channel, noise};
use kaflow::Complex;
use kaflow::filter::ensemble::{Ensemble, EnsembleConfig};
use kaflow::filter::*;
use kaflow::kernel::Gaussian;
use kaflow::observation::Gain;

const TAPS: usize = 4;

fn tracker(name: &str, given: &[(&str, f64)]) -> Guard<f64, Box<dyn Tracker<f64>>> {
    let values = given.iter().map(|&(n, v)| (n.into(), registry::Value::Number(v))).collect();
    Guard::new(registry::tracker(&registry::recipe(name).unwrap().settle(&values, 1.5).unwrap(), TAPS).unwrap())
}

#[test]
fn the_taps_of_a_linear_filter_are_those_it_predicts_with() {
    let (tx, rx) = channel(3, 700);
    for (name, given) in [("nlms", [].as_slice()), ("lms", &[]), ("rls", &[]), ("mp-rls", &[("order", 1.0)])] {
        let mut tracker = tracker(name, given);
        let mut p = vec![Complex::new(0.0, 0.0); tx.len()];
        let n = 650;
        tracker.track(&tx[..n], &rx[..n], &mut p[..n], None);
        let taps = tracker.portrait().taps;
        assert_eq!(taps.len(), TAPS, "{name}");
        tracker.freeze(true);
        tracker.track(&tx[n..], &rx[n..], &mut p[n..], None);
        for i in n..tx.len() {
            let own: Complex<f64> = taps.iter().enumerate().map(|(l, h)| h * tx[i - l]).sum();
            assert!((own - p[i]).norm() < 1e-9 * (1.0 + own.norm()), "{name}: {own} and {}", p[i]);
        }
    }
}

/// Ages and sizes, the youngest first.
fn sorted(portrait: Portrait) -> Vec<Weight> {
    let mut weights = portrait.weights;
    weights.sort_by_key(|w| w.age);
    weights
}

#[test]
fn filters_by_lag_show_the_weights_of_the_dictionary() {
    let (tx, mut rx) = channel(5, 400);
    rx[230].re = f64::NAN; // by direct rows from here on, until the dictionary is the last windows again
    let (gain, budget) = (Gain::Eta(0.5), Evict { budget: Some(37), floor: None });
    let kernel = || Gaussian::new(1.5).unwrap();
    type Recipe = fn(Gaussian<f64>, Gain, Evict) -> GaussianKernelFilter<f64, Gaussian<f64>>;
    let recipes: [(&str, Recipe); 3] = [
        ("klms", |k, g, e| klms(k, g, e, TAPS).unwrap()),
        ("fklms", |k, g, e| fklms(k, g, 0.98, e, TAPS).unwrap()),
        ("norma", |k, g, e| norma(k, g, 0.1, e, TAPS).unwrap()),
    ];
    for (name, recipe) in recipes {
        let (mut plain, mut window) = (recipe(kernel(), gain, budget), Window::new(TAPS).unwrap());
        let mut by_lag = Guard::new(recipe(kernel(), gain, budget).on_stream());
        assert_eq!(by_lag.tracker().form(), "sliding");
        let mut p = vec![Complex::new(0.0, 0.0); 7];
        // Seven at a time: every place in a block of eight is looked at.
        for (i, (tx, rx)) in tx.chunks_exact(7).zip(rx.chunks_exact(7)).enumerate() {
            tx.iter().zip(rx).for_each(|(&u, &y)| {
                plain.adapt(window.push(u), y);
            });
            by_lag.track(tx, rx, &mut p, None);
            let (a, b) = (sorted(plain.portrait()), sorted(by_lag.portrait()));
            assert_eq!(a.len(), b.len(), "{name}, after {i}");
            let mut dictionary: Vec<_> = plain.dictionary().map(|(_, a, born)| (born, a[0].hypot(a[1]))).collect();
            dictionary.sort_by_key(|d| std::cmp::Reverse(d.0));
            for ((a, b), (_, size)) in a.iter().zip(&b).zip(&dictionary) {
                assert_eq!(a.age, b.age, "{name}, after {i}");
                assert!((a.size - b.size).abs() < 1e-9 && (a.size - size).abs() < 1e-12, "{name}, after {i}: {a:?}, {b:?}, {size}");
            }
        }
    }
}

#[test]
fn the_weight_of_one_point_is_what_krlst_predicts_there() {
    let mut filter = KrlsT::<f64, _>::new(Gaussian::new(1.0).unwrap(), 1.0, 0.1, 3, 1).unwrap();
    let (x, y) = ([Complex::new(0.3, -0.2)], Complex::new(1.0, 2.0));
    filter.adapt(&x, y);
    let [weight] = filter.portrait().weights[..] else { panic!("one weight") };
    assert!((weight.size - filter.predict(&x).norm()).abs() < 1e-5 && weight.age == 0, "{weight:?}");
    for x in noise(1, 50) {
        filter.adapt(&[x * 3.0], y);
    }
    let ages: Vec<u64> = sorted(filter.portrait()).iter().map(|w| w.age).collect();
    assert!(ages.len() == 3 && ages.windows(2).all(|w| w[0] < w[1]), "{ages:?}");
    let mut again = KrlsT::<f64, _>::new(Gaussian::new(1.0).unwrap(), 1.0, 0.1, 3, 1).unwrap();
    again.restore(&filter.save().unwrap()).unwrap();
    assert_eq!(again.portrait(), filter.portrait());
}

#[test]
fn the_ensemble_shows_its_taps_its_curve_and_the_weights_of_its_members() {
    let (tx, rx) = channel(7, 3000);
    let mut p = vec![Complex::new(0.0, 0.0); tx.len()];
    let mut ensemble = Ensemble::new(EnsembleConfig { taps: TAPS, ..EnsembleConfig::default() }).unwrap();
    ensemble.track(&tx, &rx, true, &mut p, None);
    let portrait = ensemble.portrait();
    assert_eq!(portrait.taps.len(), TAPS);
    assert!(portrait.gain.len() > 20 && portrait.gain.windows(2).all(|w| w[0].0 < w[1].0));
    assert!(portrait.gain.iter().all(|&(r, g)| (g - ensemble.gain(r)).norm() < 1e-12));
    assert!((portrait.members.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-9, "{:?}", portrait.members);
}
