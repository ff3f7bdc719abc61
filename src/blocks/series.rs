//! Errors over time, in constant memory.

use num_complex::Complex32;
use serde::{Deserialize, Serialize};

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
    /// `10 log10(sum |y − p|² / sum |y|²)` in dB; NaN when nothing was summed or the reference is silent.
    pub fn nmse_db(&self) -> f64 {
        if self.reference > 0.0 { 10.0 * (self.error / self.reference).log10() } else { f64::NAN }
    }

    /// Error vector magnitude in percent of the reference's rms.
    pub fn evm_percent(&self) -> f64 {
        if self.reference > 0.0 { 100.0 * (self.error / self.reference).sqrt() } else { f64::NAN }
    }

    /// Mean power of the reference in dB relative to amplitude 1.
    pub fn power_db(&self) -> f64 {
        10.0 * (self.reference / self.samples as f64).log10()
    }

    fn push(&mut self, reference: &[Complex32], estimate: &[Complex32]) {
        self.end += reference.len() as u64;
        for (y, p) in reference.iter().zip(estimate) {
            let (yr, yi) = (f64::from(y.re), f64::from(y.im));
            let (er, ei) = (yr - f64::from(p.re), yi - f64::from(p.im));
            let error = er * er + ei * ei;
            if error.is_finite() {
                self.samples += 1;
                self.error += error;
                self.reference += yr * yr + yi * yi;
            }
        }
    }

    fn merge(&mut self, later: &Row) {
        self.end = later.end;
        self.samples += later.samples;
        self.error += later.error;
        self.reference += later.reference;
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
    now: Row,
    last: Row,
    total: Row,
    merged: u64,
    blocks_per_row: u64,
    pending: Row,
    history: Vec<Row>,
}

impl Series {
    /// A row for every `every` samples (at least 1); the first `skip` samples are left out of the total.
    pub fn new(every: u64, skip: u64) -> Self {
        Self {
            every: every.max(1),
            skip,
            now: Row::default(),
            last: Row::default(),
            total: Row::default(),
            merged: 0,
            blocks_per_row: 1,
            pending: Row::default(),
            history: Vec::new(),
        }
    }

    /// Samples to go until a row is complete.
    pub fn to_boundary(&self) -> u64 {
        self.every - self.now.end % self.every
    }

    /// Takes in samples and says whether a row was completed; give at most [`to_boundary`](Self::to_boundary).
    pub fn push(&mut self, reference: &[Complex32], estimate: &[Complex32]) -> bool {
        let counts = self.counts();
        // Only the row in which the skipping ends is summed twice; the others are added to the total when they are complete.
        if !counts {
            let skipped = self.skip.saturating_sub(self.now.end).min(reference.len() as u64) as usize;
            self.total.push(&reference[skipped..], &estimate[skipped..]);
        }
        self.now.push(reference, estimate);
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
        if counts {
            self.total.merge(&self.now);
        }
        self.last = self.now;
        self.now = Row { end: self.now.end, ..Row::default() };
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
        let Row { end, .. } = self.now;
        end
    }

    /// The last complete row; before there is one, what there is.
    pub fn last(&self) -> &Row {
        if self.last.end > 0 { &self.last } else { &self.now }
    }

    /// All samples but the skipped ones.
    pub fn total(&self) -> Row {
        let mut total = self.total;
        if self.counts() {
            total.merge(&self.now);
        }
        total.end = self.now.end;
        total
    }

    /// The rows so far, with the unfinished one at the end.
    pub fn rows(&self) -> Vec<Row> {
        let mut rest = self.pending;
        rest.merge(&self.now);
        self.history.iter().copied().chain((rest.samples > 0).then_some(rest)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(n: usize) -> (Vec<Complex32>, Vec<Complex32>) {
        let y: Vec<_> = (0..n).map(|i| Complex32::from_polar(1.0 + (i % 7) as f32, i as f32)).collect();
        let p = y.iter().enumerate().map(|(i, y)| y * (1.0 - 1.0 / (2.0 + i as f32))).collect();
        (y, p)
    }

    #[test]
    fn the_history_covers_every_sample_once_in_bounded_memory() {
        let (y, p) = signal(100_000);
        let mut series = Series::new(3, 0);
        let mut at = 0;
        while at < y.len() {
            let n = (series.to_boundary() as usize).min(y.len() - at);
            series.push(&y[at..at + n], &p[at..at + n]);
            at += n;
        }
        let rows = series.rows();
        assert!(rows.len() <= CAPACITY, "{} rows", rows.len());
        assert_eq!(rows.iter().map(|r| r.samples).sum::<u64>(), 100_000);
        assert!(rows.windows(2).all(|w| w[1].end - w[1].samples == w[0].end));
        let sum: f64 = rows.iter().map(|r| r.error).sum();
        assert!((sum / series.total().error - 1.0).abs() < 1e-12);
    }

    #[test]
    fn skipped_samples_and_samples_that_are_not_numbers_are_left_out() {
        let (mut y, p) = signal(10);
        y[7].re = f32::NAN;
        y[8].im = f32::INFINITY;
        let mut series = Series::new(100, 4);
        series.push(&y, &p);
        assert_eq!(series.total().samples, 4);
        assert_eq!(series.last().samples, 8);
        assert!(series.total().nmse_db().is_finite());
        assert!(Row::default().nmse_db().is_nan());
    }
}
