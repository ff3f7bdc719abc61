//! Filters on streams and on vectors, by size and precision: `cargo bench`, or `cargo bench -- sliding`.
#![allow(missing_docs)]

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use kaflow::filter::registry::{self, Value, Values};
use kaflow::filter::{Evict, Filter, Guard, fklms};
use kaflow::kernel::{Centres, Gaussian, Kernel, Row};
use kaflow::observation::Gain;
use kaflow::{Complex, Real};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn main() {
    divan::main();
}

const SAMPLES: usize = 512;

fn noise<T: Real>(n: usize) -> Vec<Complex<T>> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    (0..n).map(|_| Complex::new(T::of(rng.random_range(-1.0..1.0)), T::of(rng.random_range(-1.0..1.0)))).collect()
}

fn stream<T: Real>(bencher: Bencher, name: &str, taps: usize, values: &[(&str, f64)]) {
    let given: Values = values.iter().map(|&(name, value)| (name.into(), Value::Number(value))).collect();
    let settings = registry::recipe(name).unwrap().settle(&given, (taps as f64).sqrt()).unwrap();
    let mut tracker = Guard::new(registry::tracker::<T>(&settings, taps).unwrap());
    let tx = noise::<T>(SAMPLES);
    let mut p = tx.clone();
    for _ in 0..10 {
        tracker.track(&tx, &tx, &mut p, None);
    }
    bencher.counter(ItemsCount::new(SAMPLES)).bench_local(|| tracker.track(black_box(&tx), black_box(&tx), &mut p, None));
}

#[divan::bench(args = [(10, 4), (100, 4), (500, 1), (500, 4), (500, 16), (500, 64), (2000, 4)], types = [f32, f64])]
fn sliding<T: Real>(bencher: Bencher, (budget, taps): (usize, usize)) {
    stream::<T>(bencher, "fklms", taps, &[("budget", budget as f64)]);
}

#[divan::bench(args = [1, 2])]
fn threads(bencher: Bencher, threads: usize) {
    stream::<f32>(bencher, "fklms", 4, &[("budget", 2000.0), ("workers", threads as f64)]);
}

#[divan::bench(args = [4, 16], types = [f32, f64])]
fn qklms<T: Real>(bencher: Bencher, taps: usize) {
    stream::<T>(bencher, "qklms", taps, &[("budget", 500.0), ("epsilon", 0.1)]);
}

#[divan::bench(args = [1, 4, 16, 64], types = [f32, f64])]
fn nlms<T: Real>(bencher: Bencher, taps: usize) {
    stream::<T>(bencher, "nlms", taps, &[]);
}

#[divan::bench(args = [4, 16])]
fn rls(bencher: Bencher, taps: usize) {
    stream::<f32>(bencher, "rls", taps, &[]);
}

#[divan::bench(args = [4, 16])]
fn vectors(bencher: Bencher, taps: usize) {
    let evict = Evict { budget: Some(500), floor: None };
    let mut filter = fklms(Gaussian::<f64>::new(1.0).unwrap(), Gain::Eta(0.3), 0.99, evict, taps).unwrap();
    let x = noise::<f64>(600 * taps);
    for x in x.chunks(taps) {
        Filter::adapt(&mut filter, x, x[0]);
    }
    bencher.counter(ItemsCount::new(1usize)).bench_local(|| Filter::adapt(&mut filter, black_box(&x[..taps]), x[1]));
}

#[divan::bench(types = [f32, f64])]
fn row<T: Real>(bencher: Bencher) {
    let (kernel, x) = (Gaussian::<T>::new(1.0).unwrap(), noise::<T>(4 * 501));
    let mut centres = Centres::new(4);
    x[4..].chunks(4).for_each(|c| centres.push(c));
    let mut row = Row::default();
    bencher.counter(ItemsCount::new(500usize)).bench_local(|| kernel.row(&centres, black_box(&x[..4]), &mut row));
}
