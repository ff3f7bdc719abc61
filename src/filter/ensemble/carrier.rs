//! The carrier: a rotation that the whole channel has in common.
//!
//! Still echoes seen by a receiver some kHz off rotate together, and a velocity must be learned for what is one number. The outputs are turned back by
//! it and the predictions turned forth, so that no tap needs to rotate.

use num_complex::{Complex, Complex64};
use serde::{Deserialize, Serialize};

use super::constants::{BANK_EAGER, BLOCK, CARRIER_STEP};
use super::planes::Planes;
use crate::Real;

/// Blocks over which the rotation of the taps is averaged.
const WINDOW: f64 = 16.0;
/// The average counts where it is so many times the deviation from block to block: fading rotates taps too, but not for long in one direction.
const CLEAR: f64 = 2.0;

/// Least rotation, in radians a sample, that is taken for a carrier, and least change of one.
const FIRST: f64 = 1e-4;
const FINE: f64 = 1e-5;

/// The carrier's rotation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Carrier<T: Real> {
    /// Radians a sample.
    pub(super) step: f64,
    // Where it stands at the first sample of the block, and at each of its samples.
    first: Complex64,
    turns: Planes<T>,
    mean: f64,
    square: f64,
    blocks: f64,
    // Samples that the bank must have learned before it may be told to begin again.
    patience: u64,
}

impl<T: Real> Carrier<T> {
    pub(super) fn new() -> Self {
        Self { step: 0.0, first: Complex64::new(1.0, 0.0), turns: Planes::new(0), mean: 0.0, square: 0.0, blocks: 0.0, patience: 0 }
    }

    pub(super) fn is_sound(&self) -> bool {
        [self.step, self.first.re, self.first.im, self.mean, self.square, self.blocks].iter().all(|x| x.is_finite()) && self.turns.fits(0)
    }

    /// Turns back the outputs of samples from `at` of the block on.
    pub(super) fn undo(&self, rx: &[Complex<T>], at: usize, to: &mut Planes<T>) {
        let range = at..at + rx.len();
        let (re, im) = (&mut to.re[range.clone()], &mut to.im[range.clone()]);
        let turns = self.turns.re[range.clone()].iter().zip(&self.turns.im[range]);
        for (((y, (c, s)), re), im) in rx.iter().zip(turns).zip(re).zip(im) {
            (*re, *im) = if self.step == 0.0 { (y.re, y.im) } else { (y.re * *c + y.im * *s, y.im * *c - y.re * *s) };
        }
    }

    /// Turns forth the predictions of the same samples.
    pub(super) fn redo(&self, from: &Planes<T>, at: usize, to: &mut [Complex<T>]) {
        let range = at..at + to.len();
        let (re, im) = (&from.re[range.clone()], &from.im[range.clone()]);
        let turns = self.turns.re[range.clone()].iter().zip(&self.turns.im[range]);
        for (((p, (c, s)), re), im) in to.iter_mut().zip(turns).zip(re).zip(im) {
            *p = if self.step == 0.0 { Complex::new(*re, *im) } else { Complex::new(*re * *c - *im * *s, *re * *s + *im * *c) };
        }
    }

    /// A block has ended.
    pub(super) fn end_block(&mut self) {
        self.first *= Complex64::cis(self.step * BLOCK as f64);
        self.first /= self.first.norm();
    }

    /// The next block begins, with a step that may be new.
    pub(super) fn begin_block(&mut self) {
        if self.step == 0.0 {
            return;
        }
        let (mut now, turn) = (self.first, Complex64::cis(self.step));
        for i in 0..BLOCK {
            self.turns.set(i, Complex::new(T::of(now.re), T::of(now.im)));
            now *= turn;
        }
    }

    /// Whether the bank, which has learned so many samples, is to begin again: what it has learned turned all the time, and what it is to learn now may stand still. Fading turns taps
    /// again and again, and to begin is dear: each time only after twice as many samples.
    pub(super) fn begins_bank(&mut self, learned: u64, step: f64) -> bool {
        let begins = step.abs() > CARRIER_STEP && learned >= self.patience;
        if begins {
            self.patience = (2 * self.patience).max(BANK_EAGER / 8);
        }
        begins
    }

    /// Takes in the rotation of the channel in a block, in radians a sample; returns by how much the carrier has changed. `sure` where the channel is known to
    /// stand still otherwise.
    pub(super) fn follow(&mut self, rate: f64, sure: bool) -> Option<f64> {
        if !rate.is_finite() {
            return None;
        }
        self.blocks = (self.blocks + 1.0).min(WINDOW);
        self.mean += (rate - self.mean) / self.blocks;
        self.square += (rate * rate - self.square) / self.blocks;
        let spread = (self.square - self.mean * self.mean).max(0.0).sqrt();
        let worth = self.mean.abs() > if self.step == 0.0 && !sure { FIRST } else { FINE };
        if self.blocks < WINDOW || self.mean.abs() < CLEAR * spread || !worth {
            return None;
        }
        let step = self.mean;
        self.step += step;
        (self.mean, self.square, self.blocks) = (0.0, 0.0, 0.0);
        Some(step)
    }
}
