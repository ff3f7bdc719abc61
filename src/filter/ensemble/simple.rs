//! The simple filters as members: whatever the input and the amplifier, the whole does not fall behind them.
//!
//! Lanes and bank rest on assumptions: every direction of the input is excited about as often as any other, one curve serves all taps, what has memory stands still. Where these do not hold
//! (oversampled signals with bursts out of band, an amplifier with memory in front of a moving channel, another band in the output) a filter that assumes nothing is ahead. So NLMS, RLS and a memory polynomial,
//! all with a window of some ten samples, are members like any other. They cost more than all else, and hardly ever carry weight: then they sleep, and are looked at less and less often.

use num_complex::{Complex, Complex64};
use serde::{Deserialize, Serialize};

use super::average::Sums;
use super::constants::*;
use super::evidence::{Evidence, LEAST};
use super::planes::Planes;
use crate::filter::{Filter, MemoryPolynomial, Nlms, Rls};
use crate::{Real, Result};

const SLOTS: usize = 3;
/// What they are called.
pub(super) const NAMES: [&str; SLOTS] = ["nlms", "rls", "mp-rls"];

/// The three filters, for input in units of its RMS.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Simple<T: Real> {
    nlms: Nlms<f64>,
    rls: Rls,
    polynomial: MemoryPolynomial,
    // Running means of their squared errors.
    squares: [f64; SLOTS],
    // Of the present block.
    predictions: Vec<Planes<T>>,
    pub(super) evidence: Evidence<T>,
    /// Blocks since it began, for how many more it sleeps, and for how many it has been awake.
    age: u64,
    sleep: u64,
    awake: u64,
}

impl<T: Real> Simple<T> {
    pub(super) fn new(taps: usize) -> Result<Self> {
        let terms = SIMPLE_ORDER.div_ceil(2);
        Ok(Self {
            nlms: Nlms::new(taps, SIMPLE_STEP, SIMPLE_NLMS_RIDGE)?,
            rls: Rls::new(taps.min(SIMPLE_FEATURES), SIMPLE_RLS_MEMORY, SIMPLE_RIDGE)?,
            polynomial: MemoryPolynomial::new(taps.min(SIMPLE_FEATURES / terms), terms, 1.0, SIMPLE_POLYNOMIAL_MEMORY, SIMPLE_RIDGE)?,
            squares: [0.0; SLOTS],
            predictions: vec![Planes::new(0); SLOTS],
            evidence: Evidence::new(SLOTS),
            age: 0,
            sleep: 0,
            awake: 0,
        })
    }

    /// Begins again: the unit of the input has changed.
    pub(super) fn restart(&mut self) {
        let members: [&mut dyn Filter<f64>; SLOTS] = [&mut self.nlms, &mut self.rls, &mut self.polynomial];
        members.into_iter().for_each(|m| m.reset());
        self.squares = [0.0; SLOTS];
        (self.age, self.sleep, self.awake) = (0, 0, 0);
    }

    pub(super) fn is_sound(&self, other: &Self) -> bool {
        self.nlms.weights().len() == other.nlms.weights().len()
            && self.rls.fits(&other.rls)
            && self.polynomial.fits(&other.polynomial)
            && self.predictions.len() == SLOTS
            && self.predictions.iter().all(|p| p.fits(0))
            && self.evidence.is_sound()
            && self.squares.iter().all(|x| x.is_finite())
    }

    /// Whether it looks at samples.
    pub(super) fn is_awake(&self) -> bool {
        self.sleep == 0
    }

    /// Whether it has part in the average: not in the first block after it slept, in which it catches up.
    pub(super) fn counts(&self) -> bool {
        self.sleep == 0 && self.awake > 0
    }

    /// Predicts sample `at` of the block from the window `x`, newest first, and learns its output.
    pub(super) fn take(&mut self, at: usize, x: &[Complex64], y: Complex64, learn: bool) {
        let members: [&mut dyn Filter<f64>; SLOTS] = [&mut self.nlms, &mut self.rls, &mut self.polynomial];
        for (i, member) in members.into_iter().enumerate() {
            let x = &x[..member.taps()];
            let mut p = member.predict(x);
            if !T::of(p.norm_sqr()).is_finite() {
                member.reset();
                p = Complex64::default();
            }
            self.predictions[i].set(at, Complex::new(T::of(p.re), T::of(p.im)));
            if !learn {
                continue;
            }
            let (e, mean) = (y - p, &mut self.squares[i]);
            let square = e.norm_sqr();
            // A glitch would undo all that was learned.
            let cut = if *mean > 0.0 { (SIMPLE_OUTLIER * *mean / square.max(f64::MIN_POSITIVE)).min(1.0) } else { 1.0 };
            *mean += (square * cut - *mean) / if *mean > 0.0 { SIMPLE_WINDOW } else { 1.0 };
            member.adapt(x, p + e * cut.sqrt());
        }
    }

    /// Sums over the members for `n` samples from `at` of the block on, and evidence for them where `learn`.
    // Hardly ever called: inlined, it would slow down the loop over the lanes.
    #[inline(never)]
    pub(super) fn judge(&mut self, y: &Planes<T>, at: usize, n: usize, relative: T, learn: bool) -> Sums<T> {
        self.evidence.judge(&self.predictions, 0..SLOTS, y, at, n, relative, learn)
    }

    /// The end of a block: whether it goes on. `noise` is the best that others reach.
    pub(super) fn turn(&mut self, noise: f64) {
        self.age += 1;
        if self.sleep > 0 {
            self.sleep -= 1;
            self.awake = 0;
            return;
        }
        self.awake += 1;
        if self.awake == 1 {
            self.evidence = Evidence::new(SLOTS);
            self.evidence.level = T::of(-BEHIND);
            self.evidence.noise.0.iter_mut().zip(self.squares).for_each(|(to, x)| *to = T::of(x.clamp(LEAST, 1.0 / LEAST)));
        } else if self.evidence.level < T::of(LIGHT) {
            let least = self.evidence.noise.0[..SLOTS].iter().fold(T::infinity(), |a, &b| a.min(b));
            let old = self.age > SIMPLE_OLD;
            if old || least.wide() > SIMPLE_FAR * noise {
                self.sleep = if old { self.age } else { self.age / 4 }.clamp(SIMPLE_REST, SIMPLE_PATIENCE);
                // Those from before count for nothing when it wakes.
                self.squares = [0.0; SLOTS];
            }
        }
    }
}
