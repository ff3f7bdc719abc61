//! Drift, threads and overflow.

use super::*;
use crate::filter::{Evict, Guard, fklms, norma};
use crate::kernel::{Gaussian, Hammerstein};
use crate::observation::Gain;
use crate::simd::Dispatch;

fn filter<T: Real>(budget: usize, taps: usize) -> Guard<T, Sliding<T, Gaussian<T>, Distances<T>>> {
    let (kernel, evict) = (Gaussian::new(1.0).unwrap(), Evict { budget: Some(budget), floor: None });
    Guard::new(Sliding::new(fklms(kernel, Gain::Eta(0.3), 0.99, evict, taps).unwrap(), budget, kernel.gaussian().unwrap()))
}

/// NORMA, whose decay depends on the sample's power.
fn pairs<T: Real>(budget: usize, taps: usize) -> Guard<T, Sliding<T, Hammerstein<T>, Pairs<T>>> {
    let (kernel, evict) = (Hammerstein::new(0.4).unwrap(), Evict { budget: Some(budget), floor: None });
    Guard::new(Sliding::new(norma(kernel, Gain::DiffusionRatio(2.0), 0.004, evict, taps).unwrap(), budget, kernel.hammerstein().unwrap()))
}

#[test]
fn a_wild_sample_leaves_no_trace_in_sums_over_taps() {
    for (taps, budget) in [(1, 20), (4, 100), (7, 33), (64, 40)] {
        let (mut state, mut sliding) = (5, pairs::<f32>(budget, taps));
        let mut tx = noise::<f32>(&mut state, 1500, 1.0, false);
        // Two at a lag within the budget, so that their product enters and leaves a sum.
        tx[1000] *= 1e12;
        tx[1000 + budget / 2] *= 1e12;
        let mut p = tx.clone();
        sliding.track(&tx[..1000 + budget], &tx[..1000 + budget], &mut p[..1000 + budget], None);
        sliding.track(&tx[1000 + budget..][..taps], &tx[1000 + budget..][..taps], &mut p[..taps], None);
        let mut anew = sliding.tracker().lags.clone();
        let (_, reached, phase) = anew.carried();
        anew.resume(&[], reached, phase);
        // Bit for bit what the samples alone give.
        assert!(anew.terms() == sliding.tracker().lags.terms(), "{taps} taps, {budget} centres");
    }
}

/// A cheap signal within a square of side `size`, with occasional bursts a thousand times as strong where there are `bursts`.
fn noise<T: Real>(state: &mut u64, n: usize, size: f64, bursts: bool) -> Vec<Complex<T>> {
    let mut draw = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    (0..n)
        .map(|_| {
            let size = if draw() > 0.4999 && bursts { 1000.0 * size } else { size };
            Complex::new(T::of(size * draw()), T::of(size * draw()))
        })
        .collect()
}

/// Runs `samples` samples and returns the greatest drift of an exponent seen.
fn drift<T: Real>(budget: usize, taps: usize, samples: u64, size: f64, bursts: bool) -> f64 {
    let mut sliding = filter::<T>(budget, taps);
    let (mut state, mut worst, mut done) = (1, 0.0f64, 0);
    let chunk = 1_999;
    let mut p = vec![Complex::zero(); chunk];
    while done < samples {
        let tx = noise::<T>(&mut state, chunk, size, bursts);
        sliding.track(&tx, &tx, &mut p, None);
        worst = worst.max(sliding.tracker().lags.drift());
        done += chunk as u64;
    }
    assert!(!sliding.tracker().direct && sliding.size() == budget);
    worst
}

/// The bound of [`Sliding`]'s documentation, for exponents of at most `largest`.
fn bound<T: Real>(budget: usize, taps: usize, largest: f64) -> f64 {
    let between = (budget as f64 / 2.0 + 8.0) * taps.div_ceil(16) as f64;
    (between + taps as f64) * T::epsilon().wide() * (largest + 10.0 * distances::CALM)
}

#[test]
fn exponents_drift_no_further_in_millions_of_samples_than_in_thousands() {
    for (budget, taps) in [(16, 1), (40, 5), (200, 4), (64, 64)] {
        // Ordinary samples; samples just too small to be cut off; samples that are cut off.
        for (size, bursts) in [(1.0, false), (3.3, false), (1.0, true)] {
            let what = format!("{budget} centres, {taps} taps, size {size}, bursts: {bursts}");
            let (short, long) = (drift::<f32>(budget, taps, 50_000, size, bursts), drift::<f32>(budget, taps, 1_000_000, size, bursts));
            let largest = if bursts { f32::FAR.wide() * taps as f64 } else { distances::CALM * taps as f64 };
            assert!(long <= bound::<f32>(budget, taps, largest), "{what}: {long:e}");
            assert!(long <= 10.0 * short.max(1e-6), "{what}: {long:e} after {short:e}");
            // What is usual is far below the bound.
            assert!(bursts || long <= 0.05 * bound::<f32>(budget, taps, largest), "{what}: {long:e}");
            let long = drift::<f64>(budget, taps, 200_000, size, bursts);
            let largest = if bursts { f64::FAR * taps as f64 } else { largest };
            assert!(long <= bound::<f64>(budget, taps, largest), "{what}: {long:e}");
        }
    }
}

/// Takes a minute: `cargo test --release -- --ignored hundred_million`.
#[test]
#[ignore = "a hundred million samples: too long without optimisation"]
fn exponents_do_not_drift_in_a_hundred_million_samples() {
    let (drift, bound) = (drift::<f32>(64, 4, 100_000_000, 1.0, true), bound::<f32>(64, 4, 4.0 * f32::FAR.wide()));
    assert!(drift <= bound, "{drift:e}");
    eprintln!("greatest drift in 1e8 samples: {drift:e}, bound {bound:e}");
}

#[test]
fn threads_change_nothing_but_rounding_with_the_gaussian_kernel() {
    threads_change_nothing_but_rounding(filter::<f32>);
}

#[test]
fn threads_change_nothing_but_rounding_with_the_hammerstein_kernel() {
    threads_change_nothing_but_rounding(pairs::<f32>);
}

fn threads_change_nothing_but_rounding<K: Kernel<f32>, L: Lags<f32>>(filter: impl Fn(usize, usize) -> Guard<f32, Sliding<f32, K, L>>) {
    let mut state = 3;
    let tx = noise::<f32>(&mut state, 6000, 1.0, true);
    let mut rx: Vec<_> = tx.iter().map(|z| z / (1.0 + z.norm_sqr())).collect();
    rx[4100].re = f32::NAN;
    let run = |threads: usize, cut: usize| {
        let mut sliding = filter(1500, 3);
        sliding.set("workers", threads as f64).unwrap();
        let mut p = vec![Complex::zero(); tx.len()];
        for ((tx, rx), p) in tx.chunks(cut).zip(rx.chunks(cut)).zip(p.chunks_mut(cut)) {
            sliding.track(tx, rx, p, None);
        }
        (p, sliding)
    };
    let (one, _) = run(1, 6000);
    for threads in [1, 2, 3, 4] {
        let (many, sliding) = run(threads, 6000);
        let worst = one.iter().zip(&many).map(|(a, b)| (a - b).norm()).fold(0.0, f32::max);
        assert!(worst < 2e-5, "{threads} threads: {worst:e}");
        for cut in [7, 333, 1000] {
            assert!(run(threads, cut).0 == many, "{threads} threads cut by {cut}");
        }
        // Saved in one place, restored in another, whatever its threads; and spread while it runs.
        let mut first = sliding;
        let saved = first.save().unwrap();
        let mut p = vec![Complex::zero(); 3000];
        first.track(&tx[..3000], &rx[..3000], &mut p, None);
        for others in 1..=4 {
            let mut second = filter(1500, 3);
            second.set("workers", others as f64).unwrap();
            second.restore(&saved).unwrap();
            let mut third = filter(1500, 3);
            third.restore(&saved).unwrap();
            third.set("workers", others as f64).unwrap();
            for mut restored in [second, third] {
                assert!(!restored.tracker().direct && restored.size() == first.size());
                let mut q = vec![Complex::zero(); 3000];
                restored.track(&tx[..3000], &rx[..3000], &mut q, None);
                let worst = p.iter().zip(&q).map(|(a, b)| (a - b).norm()).fold(0.0, f32::max);
                assert!(if others == threads { p == q } else { worst < 2e-5 }, "{threads} threads, restored into {others}: {worst:e}");
            }
        }
    }
    assert!(filter(100, 3).set("workers", 2.0).is_err());
    assert!(filter(1500, 3).set("workers", 0.5).is_err());
}

#[test]
fn a_step_that_overflows_is_not_taken() {
    let mut sliding = filter::<f32>(20, 2);
    let mut state = 1;
    let tx = noise::<f32>(&mut state, 100, 1.0, true);
    let mut rx = tx.clone();
    // The error overflows though both are finite.
    for (i, y) in rx.iter_mut().enumerate().take(60).skip(40) {
        *y = Complex::new(if i % 2 == 0 { f32::MAX } else { -f32::MAX }, 0.0);
    }
    let mut p = vec![Complex::zero(); 100];
    sliding.track(&tx, &rx, &mut p, None);
    assert!(p[99].re.is_finite() && sliding.size() == 20);
}
