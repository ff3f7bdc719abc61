//! Drift, threads and overflow.

use super::*;
use crate::filter::{Evict, fklms};
use crate::kernel::Gaussian;
use crate::observation::Gain;

fn filter<T: Real>(budget: usize, taps: usize) -> Sliding<T, Gaussian<T>> {
    let evict = Evict { budget: Some(budget), floor: None };
    Sliding::new(fklms(Gaussian::new(1.0).unwrap(), Gain::Eta(0.3), 0.99, evict, taps).unwrap()).ok().unwrap()
}

/// A cheap signal with occasional bursts a thousand times as strong.
fn noise<T: Real>(state: &mut u64, n: usize) -> Vec<Complex<T>> {
    let mut draw = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    (0..n)
        .map(|_| {
            let size = if draw() > 0.4999 { 1000.0 } else { 1.0 };
            Complex::new(T::of(size * draw()), T::of(size * draw()))
        })
        .collect()
}

/// Runs `samples` samples and returns the greatest drift of a distance seen, in units of the kernel's exponent.
fn drift<T: Real>(budget: usize, taps: usize, samples: u64) -> f64 {
    let mut sliding = filter::<T>(budget, taps);
    let (mut state, mut worst, mut done) = (1, 0.0f64, 0);
    let chunk = 50_000;
    let mut p = vec![Complex::zero(); chunk];
    while done < samples {
        let tx = noise::<T>(&mut state, chunk);
        sliding.track(&tx, &tx, &mut p, None);
        worst = worst.max(sliding.lags.drift());
        done += chunk as u64;
    }
    assert!(!sliding.direct && sliding.size() == budget);
    worst
}

/// The bound of [`Sliding`]'s documentation for samples of any size.
fn bound<T: Real>(budget: usize, taps: usize) -> f64 {
    (budget as f64 / 2.0 + 8.0 + taps as f64) * T::epsilon().wide() * T::FAR.wide() * taps as f64
}

#[test]
fn distances_drift_no_further_in_millions_of_samples_than_in_thousands() {
    for (budget, taps) in [(16, 1), (40, 5), (200, 4)] {
        let (short, long) = (drift::<f32>(budget, taps, 100_000), drift::<f32>(budget, taps, 2_000_000));
        assert!(long <= bound::<f32>(budget, taps), "{budget} centres, {taps} taps: {long:e}");
        assert!(long <= 20.0 * short.max(1e-6), "{budget} centres, {taps} taps: {long:e} after {short:e}");
        let long = drift::<f64>(budget, taps, 400_000);
        assert!(long <= bound::<f64>(budget, taps), "{budget} centres, {taps} taps: {long:e}");
    }
}

/// Takes a minute: `cargo test --release -- --ignored hundred_million`.
#[test]
#[ignore = "a hundred million samples take a minute"]
fn distances_do_not_drift_in_a_hundred_million_samples() {
    let drift = drift::<f32>(64, 4, 100_000_000);
    assert!(drift <= bound::<f32>(64, 4), "{drift:e}");
    eprintln!("greatest drift in 1e8 samples: {drift:e}, bound {:e}", bound::<f32>(64, 4));
}

#[test]
fn threads_change_nothing_but_rounding() {
    let mut state = 3;
    let tx = noise::<f32>(&mut state, 6000);
    let mut rx: Vec<_> = tx.iter().map(|z| z / (1.0 + z.norm_sqr())).collect();
    rx[4100].re = f32::NAN;
    let run = |threads: usize, cut: usize| {
        let mut sliding = filter::<f32>(1500, 3);
        sliding.set_threads(threads).unwrap();
        let mut p = vec![Complex::zero(); tx.len()];
        for ((tx, rx), p) in tx.chunks(cut).zip(rx.chunks(cut)).zip(p.chunks_mut(cut)) {
            sliding.track(tx, rx, p, None);
        }
        (p, sliding)
    };
    let (one, _) = run(1, 6000);
    for threads in [2, 3, 4] {
        let (many, sliding) = run(threads, 6000);
        let worst = one.iter().zip(&many).map(|(a, b)| (a - b).norm()).fold(0.0, f32::max);
        assert!(worst < 2e-5, "{threads} threads: {worst:e}");
        for cut in [7, 333, 1000] {
            assert!(run(threads, cut).0 == many, "{threads} threads cut by {cut}");
        }
        // Saved in one place, restored in another.
        let mut first = sliding;
        let mut second = filter::<f32>(1500, 3);
        assert!(second.restore(&first.save().unwrap()).is_err(), "another number of threads");
        second.set("threads", threads as f64).unwrap();
        second.restore(&first.save().unwrap()).unwrap();
        let (mut p, mut q) = (vec![Complex::zero(); 3000], vec![Complex::zero(); 3000]);
        first.track(&tx[..3000], &rx[..3000], &mut p, None);
        second.track(&tx[..3000], &rx[..3000], &mut q, None);
        assert!(p == q, "{threads} threads, restored");
    }
    assert!(filter::<f32>(100, 3).set_threads(2).is_err());
    assert!(filter::<f32>(1500, 3).set("threads", 0.5).is_err());
}

#[test]
fn a_step_that_overflows_is_not_taken() {
    let mut sliding = filter::<f32>(20, 2);
    let mut state = 1;
    let tx = noise::<f32>(&mut state, 100);
    let mut rx = tx.clone();
    // The error overflows though both are finite.
    for (i, y) in rx.iter_mut().enumerate().take(60).skip(40) {
        *y = Complex::new(if i % 2 == 0 { f32::MAX } else { -f32::MAX }, 0.0);
    }
    let mut p = vec![Complex::zero(); 100];
    sliding.track(&tx, &rx, &mut p, None);
    assert!(p[99].re.is_finite() && sliding.size() == 20);
}
