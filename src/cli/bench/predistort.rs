//! The predistorter on one core.

use std::time::Instant;

use crate::dpd::{Predistorter, Table};
use crate::{Complex64, Result};

use super::measure::Signal;

/// Samples a second of a predistorter with so much memory. The fastest of some rounds.
pub(super) fn rate(memory: usize, signal: &Signal, rounds: usize) -> Result<f64> {
    let samples: Vec<Complex64> = signal.tx.iter().map(|&z| crate::dsp::wide(z)).collect();
    let sent: Vec<Complex64> = samples.iter().map(|z| z * (1.0 + 0.1 * z.norm_sqr())).collect();
    let mut predistorter = Predistorter::new(Table::fitted(memory, &samples, &sent, 4.0)?)?;
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let mut piece = signal.tx.clone();
        let start = Instant::now();
        predistorter.process(&mut piece);
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(signal.tx.len() as f64 / best)
}
