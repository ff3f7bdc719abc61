//! Samples of the present block behind a history, in planes.

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use super::constants::BLOCK;
use crate::Real;

/// Real and imaginary parts of a history, of the samples of a block, and of what a vector at the end of the block reaches over.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Planes<T: Real> {
    pub(super) re: Vec<T>,
    pub(super) im: Vec<T>,
}

impl<T: Real> Planes<T> {
    pub(super) fn new(history: usize) -> Self {
        let zeros = vec![T::zero(); history + BLOCK + 16];
        Self { re: zeros.clone(), im: zeros }
    }

    #[inline(always)]
    pub(super) fn at(&self, i: usize) -> Complex<T> {
        Complex::new(self.re[i], self.im[i])
    }

    #[inline(always)]
    pub(super) fn set(&mut self, i: usize, z: Complex<T>) {
        (self.re[i], self.im[i]) = (z.re, z.im);
    }

    /// Makes room for the next block: what was last becomes history.
    pub(super) fn roll(&mut self, history: usize) {
        for plane in [&mut self.re, &mut self.im] {
            plane.copy_within(BLOCK..BLOCK + history, 0);
        }
    }

    pub(super) fn fits(&self, history: usize) -> bool {
        [&self.re, &self.im].iter().all(|p| p.len() == history + BLOCK + 16 && p.iter().all(|x| x.is_finite()))
    }
}
