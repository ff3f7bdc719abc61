//! The carrier: a rotation that the whole channel has in common.
//!
//! Still echoes seen by a receiver some kHz off rotate together, and a velocity must be learned for what is one number. The outputs are turned back by
//! it and the predictions turned forth, so that no tap needs to rotate.

use num_complex::{Complex, Complex64};
use serde::{Deserialize, Serialize};

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
pub(super) struct Carrier {
    /// Radians a sample.
    pub(super) step: f64,
    now: Complex64,
    turn: Complex64,
    mean: f64,
    square: f64,
    blocks: f64,
    // Where the next samples' rotations begin.
    last: Complex64,
}

impl Default for Carrier {
    fn default() -> Self {
        let one = Complex64::new(1.0, 0.0);
        Self { step: 0.0, now: one, turn: one, mean: 0.0, square: 0.0, blocks: 0.0, last: one }
    }
}

impl Carrier {
    pub(super) fn is_sound(&self) -> bool {
        let parts = [
            self.step,
            self.now.re,
            self.now.im,
            self.turn.re,
            self.turn.im,
            self.mean,
            self.square,
            self.blocks,
            self.last.re,
            self.last.im,
        ];
        parts.iter().all(|x| x.is_finite())
    }

    /// Turns back the outputs of the next samples.
    pub(super) fn undo<T: Real>(&mut self, rx: &[Complex<T>], at: usize, to: &mut Planes<T>) {
        self.last = self.now;
        for (i, y) in rx.iter().enumerate() {
            if self.step == 0.0 {
                to.set(at + i, *y);
                continue;
            }
            let (re, im) = (T::of(self.now.re), T::of(-self.now.im));
            to.set(at + i, *y * Complex::new(re, im));
            self.now *= self.turn;
        }
    }

    /// Turns forth the predictions of the same samples.
    pub(super) fn redo<T: Real>(&mut self, from: &Planes<T>, at: usize, to: &mut [Complex<T>]) {
        for (i, p) in to.iter_mut().enumerate() {
            *p = from.at(at + i);
            if self.step != 0.0 {
                *p *= Complex::new(T::of(self.last.re), T::of(self.last.im));
                self.last *= self.turn;
            }
        }
    }

    /// Takes in the rotation of the channel in a block, in radians a sample; returns by how much the carrier has changed. `sure` where the channel is known to
    /// stand still otherwise.
    pub(super) fn follow(&mut self, rate: f64, sure: bool) -> Option<f64> {
        self.now /= self.now.norm();
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
        self.turn = Complex64::cis(self.step);
        (self.mean, self.square, self.blocks) = (0.0, 0.0, 0.0);
        Some(step)
    }
}
