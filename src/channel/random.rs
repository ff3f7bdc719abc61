use num_complex::Complex64;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::f64::consts::{SQRT_2, TAU};

/// Which part of the test bed draws: parts with the same seed must not share random numbers.
#[derive(Clone, Copy)]
#[repr(u64)]
pub(crate) enum Draws {
    Fading = 1,
    Noise = 2,
    PhaseNoise = 3,
    Dropper = 4,
    /// Not the test bed, but the command's studies and searches.
    #[cfg(feature = "cli")]
    Study = 5,
}

/// Seeded random numbers that are the same on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    pub(crate) fn new(seed: u64, draws: Draws) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(draws as u64);
        Self(rng)
    }

    pub(crate) fn reset(&mut self) {
        self.0.set_word_pos(0);
    }

    /// Uniform on [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Circular Gaussian with `E|z|² = 1` (Box and Muller).
    pub(crate) fn complex(&mut self) -> Complex64 {
        let radius = (-libm::log(1.0 - self.uniform())).sqrt();
        let (sin, cos) = libm::sincos(TAU * self.uniform());
        Complex64::new(radius * cos, radius * sin)
    }

    /// Real Gaussian with unit variance.
    pub(crate) fn real(&mut self) -> f64 {
        SQRT_2 * self.complex().re
    }
}
