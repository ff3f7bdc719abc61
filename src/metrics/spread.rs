//! How sure an NMSE is.

use super::Row;
use crate::dsp::db;

/// Sums over rows of samples that tell how much the NMSE of all of them varies; two of them differ by what came in between.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    /// Rows that were summed.
    pub rows: u64,
    error: f64,
    reference: f64,
    /// Sums of `e²`, `e r` and `r²`, e and r being the energies of a row.
    squares: [f64; 3],
}

impl Spread {
    /// Adds a row.
    pub(crate) fn push(&mut self, row: &Row) {
        let (e, r) = (row.error, row.reference);
        self.rows += 1;
        self.error += e;
        self.reference += r;
        for (sum, value) in self.squares.iter_mut().zip([e * e, e * r, r * r]) {
            *sum += value;
        }
    }

    /// What was added after `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            rows: self.rows.saturating_sub(earlier.rows),
            error: self.error - earlier.error,
            reference: self.reference - earlier.reference,
            squares: std::array::from_fn(|i| self.squares[i] - earlier.squares[i]),
        }
    }

    /// NMSE of all rows together in dB; NaN without any, or where the reference is silent.
    pub(crate) fn nmse_db(&self) -> f64 {
        if self.reference > 0.0 { db(self.error, self.reference) } else { f64::NAN }
    }

    /// The ends of the 95 % interval of [`nmse_db`](Self::nmse_db), rows being taken as independent; none of fewer than five rows.
    ///
    /// The variance is that of a ratio estimator (Cochran 1977, eq. 2.39), `n/(n − 1) Σ(e − R r)² / (Σr)²`, carried to dB by its derivative.
    pub(crate) fn interval_db(&self) -> Option<(f64, f64)> {
        if self.rows < 5 || !(self.reference > 0.0 && self.error > 0.0) {
            return None;
        }
        let (n, ratio) = (self.rows as f64, self.error / self.reference);
        let [ee, er, rr] = self.squares;
        let variance = n / (n - 1.0) * (ee - 2.0 * ratio * er + ratio * ratio * rr).max(0.0) / self.reference.powi(2);
        // Student's quantile, to a hundredth from 4 degrees of freedom on.
        let quantile = 1.96 + 2.37 / (n - 1.0) + 3.5 / (n - 1.0).powi(2);
        let half = quantile * 10.0 / std::f64::consts::LN_10 * variance.sqrt() / ratio;
        half.is_finite().then(|| (self.nmse_db() - half, self.nmse_db() + half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_truth() {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        // Exponential energies of both; error over reference is 0.01 in the mean.
        let mut exponential = || -f64::ln(1.0 - random.random::<f64>());
        for rows in [8, 40] {
            let mut held = 0;
            for _ in 0..4000 {
                let mut spread = Spread::default();
                // Rows of 16 samples.
                let mut sum = || (0..16).map(|_| exponential()).sum::<f64>();
                (0..rows).for_each(|_| spread.push(&Row { end: 0, samples: 16, error: 0.01 * sum(), reference: sum() }));
                let (low, high) = spread.interval_db().unwrap();
                held += u32::from((low..high).contains(&-20.0));
            }
            let share = f64::from(held) / 4000.0;
            assert!((0.93..0.97).contains(&share), "{rows} rows: {share}");
        }
    }

    #[test]
    fn a_difference_is_what_came_in_between() {
        let row = |k: u64| Row { end: k, samples: 1, error: k as f64, reference: (k * k) as f64 };
        let (mut all, mut later) = (Spread::default(), Spread::default());
        (1..10).for_each(|k| all.push(&row(k)));
        let before = all;
        (10..20).for_each(|k| [&mut all, &mut later].into_iter().for_each(|s| s.push(&row(k))));
        assert_eq!(all.since(&before), later);
        assert!(later.since(&later).nmse_db().is_nan() && Spread::default().interval_db().is_none());
    }
}
