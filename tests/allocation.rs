//! The per-sample path allocates nothing once the dictionary is full.

mod common;

use common::channel;
use kaflow::Complex;
use kaflow::filter::registry::{self, Task, Value, Values};
use kaflow::filter::*;
use kaflow::kernel::Gaussian;
use kaflow::observation::{Bernoulli, Multinomial, Poisson};

#[test]
fn no_filter_allocates_once_its_dictionary_is_full() {
    let (tx, rx) = channel(30, 2000);
    let kernels = ["gaussian", "linear", "polynomial", "equivariant", "hammerstein", "gaussian+linear"];
    for recipe in registry::RECIPES.iter().filter(|recipe| recipe.task() == Task::Regression) {
        let name = recipe.name;
        let has = |p: &str| recipe.has(p);
        for kernel in kernels.iter().take(if has("kernel") { kernels.len() } else { 1 }) {
            let mut given = Values::new();
            if has("budget") {
                given.insert("budget".into(), Value::Number(50.0));
            }
            if has("kernel") {
                given.insert("kernel".into(), Value::Name((*kernel).into()));
            }
            let mut filter = registry::filter::<f64>(&recipe.settle(&given, 1.5).unwrap(), 4).unwrap();
            let mut run = |span: std::ops::Range<usize>| {
                for (x, &y) in tx[span.clone()].windows(4).zip(&rx[span]) {
                    filter.adapt(x, y);
                }
            };
            run(0..1000);
            let counted = allocation_counter::measure(|| run(1000..tx.len()));
            assert_eq!(counted.count_total, 0, "{name} with the {kernel} kernel");
        }
    }
}

#[test]
fn trackers_in_their_fastest_form_do_not_allocate_either() {
    let (tx, rx) = channel(32, 4000);
    let narrow = |z: &Complex<f64>| Complex::new(z.re as f32, z.im as f32);
    let (tx, rx): (Vec<_>, Vec<_>) = (tx.iter().map(narrow).collect(), rx.iter().map(narrow).collect());
    let mut prediction = vec![Complex::new(0.0f32, 0.0); 2000];
    for recipe in registry::RECIPES.iter().filter(|recipe| matches!(recipe.task(), Task::Regression | Task::Stream)) {
        let name = recipe.name;
        let budget = recipe.has("budget");
        let given: Values = budget.then(|| ("budget".into(), Value::Number(50.0))).into_iter().collect();
        // The second one is by lag with the Hammerstein kernel.
        for settings in [recipe.settle(&given, 1.5).unwrap(), recipe.settle_stream(&given, 1.5, 4).unwrap()] {
            let mut tracker = Guard::new(registry::tracker::<f32>(&settings, 4).unwrap());
            tracker.track(&tx[..2000], &rx[..2000], &mut prediction, None);
            let counted = allocation_counter::measure(|| tracker.track(&tx[2000..], &rx[2000..], &mut prediction, None));
            assert_eq!(counted.count_total, 0, "{name}");
        }
    }
}

#[test]
fn discrete_filters_do_not_allocate_either() {
    let evict = Evict { budget: Some(30), floor: Some(1e-6) };
    let kernel = || Gaussian::new(0.5).unwrap();
    let mut counts = bayesian_klms(kernel(), Poisson::new(0.1, 0.0).unwrap(), 0.99, evict, 1).unwrap();
    let mut bits = bayesian_klms(kernel(), Bernoulli::new(6.0, 0.0).unwrap(), 0.99, evict, 1).unwrap();
    let mut classes = bayesian_klms(kernel(), Multinomial::new(6.0, vec![0.0; 4]).unwrap(), 0.99, evict, 1).unwrap();
    let x = common::noise(31, 300);
    let mut run = |range: std::ops::Range<usize>| {
        for i in range {
            counts.adapt(&x[i..=i], (i % 5) as f64);
            bits.adapt(&x[i..=i], i % 2 == 0);
            classes.adapt(&x[i..=i], i % 4);
        }
    };
    run(0..100);
    assert_eq!(allocation_counter::measure(|| run(100..300)).count_total, 0);
}
