use super::*;
use crate::Complex64;
use crate::dpd::{Table, Term};

/// Gains that grow with the envelope, turned by `phase`, with memory.
fn table(phase: f64, level: f64) -> Table {
    let gain =
        |i: usize| [Complex64::from_polar(1.0 + 0.1 * i as f64, phase), Complex64::from_polar(0.1, -phase)].map(|g| [g.re, g.im]).to_vec();
    let terms = vec![Term { sample: 0, envelope: 0 }, Term { sample: 2, envelope: 1 }];
    Table { reach: 2.0, level, terms, rows: (0..5).map(gain).collect() }
}

fn signal(n: usize) -> Vec<Complex32> {
    (0..n).map(|i| Complex32::from_polar(1.0 + 0.5 * (i as f32 * 0.01).sin(), i as f32 * 0.02)).collect()
}

#[test]
fn a_swap_makes_no_step_keeps_the_level_and_ends_in_the_new_one() {
    let (a, b) = (Predistorter::new(table(0.0, 1.8)).unwrap(), Predistorter::new(table(0.6, 1.8)).unwrap());
    let mut out = signal(2000);
    let mut swapping = Swapping::new(a.clone());
    swapping.process(&mut out[..700]);
    swapping.swap(b.clone());
    // However the stream is cut.
    out[700..].chunks_mut(37).for_each(|piece| swapping.process(piece));
    let (mut first, mut second) = (signal(2000), signal(2000));
    a.clone().process(&mut first);
    b.clone().process(&mut second);
    assert_eq!(out[..700], first[..700]);
    assert_eq!(out[700 + FADE..], second[700 + FADE..], "the new one knows the samples before");
    let steps = |x: &[Complex32]| x.windows(2).map(|w| (w[1] - w[0]).norm()).fold(0.0, f32::max);
    assert!(steps(&out[500..1500]) < 1.5 * steps(&first).max(steps(&second)), "{}", steps(&out));
    assert!(out.iter().all(|z| z.norm() < 1.8001));
}

#[test]
fn one_that_comes_too_soon_waits_and_the_last_one_counts() {
    let make = |phase| Predistorter::new(table(phase, 3.0)).unwrap();
    let mut swapping = Swapping::new(make(0.0));
    [0.1, 0.2, 0.3].into_iter().for_each(|phase| swapping.swap(make(phase)));
    let (mut out, mut last) = (signal(1000), signal(1000));
    swapping.process(&mut out);
    make(0.3).process(&mut last);
    assert_eq!(out[2 * FADE..], last[2 * FADE..]);
}

#[test]
fn what_is_not_a_number_becomes_silence_and_passes() {
    let mut out = signal(100);
    out[40].re = f32::NAN;
    out[41].im = f32::INFINITY;
    out[42] = Complex32::new(1e30, -1e30);
    let mut p = Predistorter::new(table(0.0, 1.8)).unwrap();
    p.process(&mut out);
    assert!(out.iter().all(|z| z.norm() <= 1.8001), "{out:?}");
}
