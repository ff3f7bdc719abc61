//! The signal between its samples.

use std::f64::consts::PI;
use std::sync::LazyLock;

use num_complex::Complex32;

use super::kaiser;
use crate::simd::{Dispatch, Level, Op, Vector};

/// Samples that an interpolated one needs up to its whole position, that one included, and behind it.
pub(crate) const BEFORE: usize = 48;
pub(crate) const BEHIND: usize = 48;
const TAPS: usize = BEFORE + BEHIND;
/// Positions between two samples that the filter is tabulated at; linear in between.
const PHASES: usize = 512;
/// Shape of the Kaiser window, for errors below −80 dB up to 0.94 of the Nyquist frequency.
const SHAPE: f64 = 8.6;

/// Each tap twice, for the real and the imaginary part of its sample.
type Row = [f32; 2 * TAPS];

/// Row `p` interpolates at `p / PHASES` behind the middle sample; every row passes a constant unchanged.
static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let row = |p: usize| {
        let at = |k: usize| p as f64 / PHASES as f64 + (BEFORE - 1) as f64 - k as f64;
        let sinc = |t: f64| if t == 0.0 { 1.0 } else { libm::sin(PI * t) / (PI * t) };
        let tap = |k: usize| kaiser(at(k) / BEFORE as f64, SHAPE) * sinc(at(k));
        let total: f64 = (0..TAPS).map(tap).sum();
        std::array::from_fn(|i| (tap(i / 2) / total) as f32)
    };
    (0..=PHASES).map(row).collect()
});

/// A position in a slice: a sample, and how far behind it, in [0, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) whole: usize,
    pub(crate) fraction: f64,
}

impl Place {
    /// One sample on, and `drift` more.
    fn step(&mut self, drift: f64) {
        self.fraction += drift;
        self.whole += 1;
        if self.fraction >= 1.0 {
            self.fraction -= 1.0;
            self.whole += 1;
        } else if self.fraction < 0.0 {
            self.fraction += 1.0;
            self.whole -= 1;
        }
    }
}

/// Appends what lies at `place` in `input` and at every `1 + drift` samples behind it, at most `most` times and as long as the input reaches. `place` is left at the next
/// one. Positions that are samples are passed as they are.
///
/// A windowed sinc of 96 taps: errors lie below −80 dB for signals within 0.94 of the Nyquist band (the OFDM presets end at 0.81, their side lobes do not). In front of `place` there must
/// be `BEFORE - 1` samples at least; one more where `drift` is negative. Sums have a fixed order, so that results are the same to the bit on every machine.
pub(crate) fn interpolate(input: &[Complex32], place: &mut Place, drift: f64, most: usize, output: &mut Vec<Complex32>) {
    if drift == 0.0 && place.fraction == 0.0 {
        let n = most.min(input.len().saturating_sub(BEHIND + place.whole));
        output.extend_from_slice(&input[place.whole..place.whole + n]);
        place.whole += n;
        return;
    }
    f32::dispatch(Level::current(), Interpolation { input, place, drift, most, output });
}

/// Arguments of [`interpolate`].
struct Interpolation<'a> {
    input: &'a [Complex32],
    place: &'a mut Place,
    drift: f64,
    most: usize,
    output: &'a mut Vec<Complex32>,
}

impl Op<f32> for Interpolation<'_> {
    type Output = ();

    /// The compiler makes vectors of it: products are rounded, so that every level has the same result.
    #[inline(always)]
    fn run<V: Vector<f32>>(self) {
        let Self { input, place, drift, most, output } = self;
        output.reserve(most.min(input.len()));
        let table = &**TABLE;
        let fixed = if drift == 0.0 { Some(row(table, place.fraction)) } else { None };
        let mut n = 0;
        while n < most && place.whole + BEHIND < input.len() {
            let samples = &input[place.whole + 1 - BEFORE..=place.whole + BEHIND];
            output.push(match &fixed {
                Some(row) => filter(row, samples),
                None if place.fraction == 0.0 => input[place.whole],
                None => {
                    let (index, between) = phase(place.fraction);
                    let (low, high) = (filter(&table[index], samples), filter(&table[index + 1], samples));
                    low + (high - low) * between
                }
            });
            place.step(drift);
            n += 1;
        }
    }
}

/// The row at or before a fraction of a sample, and how far the fraction is on the way to the next one.
#[inline(always)]
fn phase(fraction: f64) -> (usize, f32) {
    let phase = fraction * PHASES as f64;
    let index = (phase as usize).min(PHASES - 1);
    (index, (phase - index as f64) as f32)
}

/// The filter for a fraction of a sample.
fn row(table: &[Row], fraction: f64) -> Row {
    let (index, between) = phase(fraction);
    std::array::from_fn(|i| table[index][i] + between * (table[index + 1][i] - table[index][i]))
}

#[inline(always)]
fn filter(row: &Row, samples: &[Complex32]) -> Complex32 {
    // Lanes of their own, so that the compiler may use vectors: four sums of real parts and four of imaginary ones.
    let mut sums = [0.0f32; 8];
    for (taps, samples) in row.chunks_exact(8).zip(samples.chunks_exact(4)) {
        let parts =
            [samples[0].re, samples[0].im, samples[1].re, samples[1].im, samples[2].re, samples[2].im, samples[3].re, samples[3].im];
        for ((sum, tap), part) in sums.iter_mut().zip(taps).zip(parts) {
            *sum += tap * part;
        }
    }
    Complex32::new((sums[0] + sums[2]) + (sums[4] + sums[6]), (sums[1] + sums[3]) + (sums[5] + sums[7]))
}
