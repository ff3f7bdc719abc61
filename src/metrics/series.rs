//! Errors of predictions: of whole slices, and over time in constant memory.

use num_complex::{Complex, Complex32};
use serde::{Deserialize, Serialize};

use super::wide;
use crate::Real;
use crate::dsp::db;
use crate::simd::{Dispatch, Level, Op, Vector};

/// NMSE of whole slices in dB, `10 log10(Σ|y − p|² / Σ|y|²)`, where y was measured and p predicted; the shorter one counts. 0 dB is what predicting nothing
/// gives; a pair that is not finite is left out.
///
/// ```
/// use kaflow::{Complex64, metrics::nmse_db};
/// assert!((nmse_db(&[Complex64::new(0.0, 2.0)], &[Complex64::new(0.0, 1.8)]) + 20.0).abs() < 1e-9);
/// ```
pub fn nmse_db<T: Real>(measured: &[Complex<T>], predicted: &[Complex<T>]) -> f64 {
    let pairs = measured.iter().zip(predicted).map(|(&y, &p)| (wide(y), wide(p)));
    let energies = pairs.map(|(y, p)| ((y - p).norm_sqr(), y.norm_sqr())).filter(|(error, power)| error.is_finite() && power.is_finite());
    let (error, power) = energies.fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
    db(error, power)
}

/// Sums over a stretch of samples. Samples that are not numbers are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Index of the sample behind the last one.
    pub end: u64,
    /// How many samples were summed.
    pub samples: u64,
    /// Energy of the error, `sum |y − p|²`.
    pub error: f64,
    /// Energy of the reference, `sum |y|²`.
    pub reference: f64,
}

impl Row {
    /// The sums of whole slices of one length.
    pub(crate) fn measure(reference: &[Complex32], estimate: &[Complex32]) -> Self {
        let mut sums = Sums::default();
        sums.push(reference, estimate, &mut vec![Complex32::default(); reference.len()]);
        sums.row()
    }

    /// `10 log10(sum |y − p|² / sum |y|²)` in dB; NaN when nothing was summed or the reference is silent.
    pub fn nmse_db(&self) -> f64 {
        if self.reference > 0.0 { db(self.error, self.reference) } else { f64::NAN }
    }

    /// Error vector magnitude in percent of the reference's rms.
    pub(crate) fn evm_percent(&self) -> f64 {
        if self.reference > 0.0 { 100.0 * (self.error / self.reference).sqrt() } else { f64::NAN }
    }

    /// Mean power of the reference in dB relative to amplitude 1.
    pub(crate) fn power_db(&self) -> f64 {
        db(self.reference, self.samples as f64)
    }

    /// Adds the stretch that follows.
    pub(crate) fn merge(&mut self, later: &Row) {
        self.end = later.end;
        self.samples += later.samples;
        self.error += later.error;
        self.reference += later.reference;
    }
}

/// Samples that are summed side by side.
const SIDE: usize = 4;

/// The energies of real and imaginary parts, by the place of a sample among [`SIDE`] neighbours.
type Energy = [[f64; 2]; SIDE];

/// A [`Row`] that grows.
///
/// Places are counted from the start of the stream: so the loop runs in vectors, and the sums do not depend on how the stream is cut into calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sums {
    end: u64,
    samples: u64,
    error: Energy,
    reference: Energy,
}

impl Sums {
    fn row(&self) -> Row {
        let sum = |energy: &Energy| energy.iter().flatten().sum();
        Row { end: self.end, samples: self.samples, error: sum(&self.error), reference: sum(&self.reference) }
    }

    fn place(&self) -> usize {
        (self.end % SIDE as u64) as usize
    }

    /// Takes in samples and writes `reference − estimate` to `error`.
    fn push(&mut self, reference: &[Complex32], estimate: &[Complex32], error: &mut [Complex32]) {
        let before = *self;
        f64::dispatch(Level::current(), Pass { sums: self, reference, estimate, error });
        if !self.row().error.is_finite() {
            // So rare that the loop does not look: once more, and only what are numbers.
            *self = before;
            for (y, e) in reference.iter().zip(error) {
                if e.re.is_finite() && e.im.is_finite() {
                    self.add(*y, *e);
                } else {
                    self.end += 1;
                }
            }
        }
    }

    #[inline(always)]
    fn add(&mut self, y: Complex32, e: Complex32) {
        let place = self.place();
        add_square(&mut self.error[place], e);
        add_square(&mut self.reference[place], y);
        self.end += 1;
        self.samples += 1;
    }
}

#[inline(always)]
fn add_square(sum: &mut [f64; 2], z: Complex32) {
    let (re, im) = (f64::from(z.re), f64::from(z.im));
    sum[0] += re * re;
    sum[1] += im * im;
}

/// The loop of [`Sums::push`], compiled for the vector instructions of the machine.
struct Pass<'a> {
    sums: &'a mut Sums,
    reference: &'a [Complex32],
    estimate: &'a [Complex32],
    error: &'a mut [Complex32],
}

impl Op<f64> for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let Self { sums, reference, estimate, error } = self;
        let head = ((SIDE - sums.place()) % SIDE).min(reference.len());
        let (y_head, y) = reference.split_at(head);
        let (p_head, p) = estimate.split_at(head);
        let (e_head, e) = error.split_at_mut(head);
        one_by_one(sums, y_head, p_head, e_head);
        let (y, y_tail) = y.as_chunks::<SIDE>();
        let (p, p_tail) = p.as_chunks::<SIDE>();
        let (e, e_tail) = e.as_chunks_mut::<SIDE>();
        let (mut error, mut reference) = (sums.error, sums.reference);
        for ((y, p), e) in y.iter().zip(p).zip(e) {
            // In one piece, so that the compiler makes whole vectors of it.
            let (y, p) = (flat(y), flat(p));
            let d: [f32; 2 * SIDE] = std::array::from_fn(|i| y[i] - p[i]);
            *e = std::array::from_fn(|i| Complex32::new(d[2 * i], d[2 * i + 1]));
            for (((error, reference), d), y) in error.as_flattened_mut().iter_mut().zip(reference.as_flattened_mut()).zip(d).zip(y) {
                *error += f64::from(d) * f64::from(d);
                *reference += f64::from(y) * f64::from(y);
            }
        }
        (sums.error, sums.reference) = (error, reference);
        sums.end += (y.len() * SIDE) as u64;
        sums.samples += (y.len() * SIDE) as u64;
        one_by_one(sums, y_tail, p_tail, e_tail);
    }
}

#[inline(always)]
fn flat(z: &[Complex32; SIDE]) -> [f32; 2 * SIDE] {
    std::array::from_fn(|i| if i % 2 == 0 { z[i / 2].re } else { z[i / 2].im })
}

#[inline(always)]
fn one_by_one(sums: &mut Sums, reference: &[Complex32], estimate: &[Complex32], error: &mut [Complex32]) {
    for ((y, p), e) in reference.iter().zip(estimate).zip(error) {
        *e = y - p;
        sums.add(*y, *e);
    }
}

/// How many rows a series keeps before it halves its resolution.
const CAPACITY: usize = 2048;

/// Sums of every `every` samples and of all together.
///
/// The history keeps at most 2048 rows: when it is full, neighbours are merged and from then on a row covers twice as many samples, so
/// that a run of any length takes constant memory and still draws as a curve. Results do not depend on how the samples are cut into calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    every: u64,
    skip: u64,
    now: Sums,
    last: Row,
    /// What of the row in which the skipping ends lies behind it.
    begun: Sums,
    total: Row,
    merged: u64,
    blocks_per_row: u64,
    pending: Row,
    history: Vec<Row>,
}

impl Series {
    /// A row for every `every` samples (at least 1); the first `skip` samples are left out of the total.
    pub(crate) fn new(every: u64, skip: u64) -> Self {
        Self {
            every: every.max(1),
            skip,
            now: Sums::default(),
            last: Row::default(),
            begun: Sums::default(),
            total: Row::default(),
            merged: 0,
            blocks_per_row: 1,
            pending: Row::default(),
            history: Vec::new(),
        }
    }

    /// Samples to go until a row is complete.
    pub(crate) fn to_boundary(&self) -> u64 {
        self.every - self.now.end % self.every
    }

    /// Takes in samples, writes `reference − estimate` to `error` and says whether a row was completed; give at most
    /// [`to_boundary`](Self::to_boundary), and slices of one length.
    pub(crate) fn push(&mut self, reference: &[Complex32], estimate: &[Complex32], error: &mut [Complex32]) -> bool {
        let counts = self.counts();
        // Only the row in which the skipping ends is summed twice; the others are added to the total when they are complete.
        if !counts {
            let skipped = self.skip.saturating_sub(self.now.end).min(reference.len() as u64) as usize;
            self.begun.end = self.now.end + skipped as u64;
            self.begun.push(&reference[skipped..], &estimate[skipped..], &mut error[skipped..]);
        }
        self.now.push(reference, estimate, error);
        let complete = self.now.end.is_multiple_of(self.every);
        if complete {
            self.close(counts);
        }
        complete
    }

    /// Whether the current row lies behind the skipped samples.
    fn counts(&self) -> bool {
        (self.now.end - self.now.end % self.every) >= self.skip
    }

    fn close(&mut self, counts: bool) {
        self.last = self.now.row();
        if counts {
            self.total.merge(&self.last);
        } else {
            self.total.merge(&std::mem::take(&mut self.begun).row());
        }
        self.now = Sums { end: self.now.end, ..Sums::default() };
        self.pending.merge(&self.last);
        self.merged += 1;
        if self.merged < self.blocks_per_row {
            return;
        }
        self.history.push(std::mem::take(&mut self.pending));
        self.merged = 0;
        if self.history.len() == CAPACITY {
            for i in 0..CAPACITY / 2 {
                let mut row = self.history[2 * i];
                row.merge(&self.history[2 * i + 1]);
                self.history[i] = row;
            }
            self.history.truncate(CAPACITY / 2);
            self.blocks_per_row *= 2;
        }
    }

    /// Samples seen.
    #[allow(clippy::misnamed_getters)] // the end of all rows counts, not the field of one
    pub fn samples(&self) -> u64 {
        let Sums { end, .. } = self.now;
        end
    }

    /// The last complete row; before there is one, what there is.
    pub fn last(&self) -> Row {
        if self.last.end > 0 { self.last } else { self.now.row() }
    }

    /// All samples but the skipped ones.
    pub fn total(&self) -> Row {
        let mut total = self.total;
        total.merge(&if self.counts() { self.now.row() } else { self.begun.row() });
        total.end = self.now.end;
        total
    }

    /// The rows so far, with the unfinished one at the end.
    pub fn rows(&self) -> Vec<Row> {
        let mut rest = self.pending;
        rest.merge(&self.now.row());
        self.history.iter().copied().chain((rest.samples > 0).then_some(rest)).collect()
    }
}

#[cfg(test)]
#[path = "../../tests/unit/metrics/series.rs"]
mod tests;
