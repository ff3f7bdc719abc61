//! Fourier transforms in place, with their scratch.

use std::sync::Arc;

use num_complex::Complex32;
use rustfft::{Fft, FftPlanner, FftPlannerScalar};

/// Both directions of one size, neither scaled.
///
/// The scalar planner, because the SIMD ones round differently from one processor to the next.
#[derive(Clone)]
pub(crate) struct Fourier {
    forward: Arc<dyn Fft<f32>>,
    inverse: Arc<dyn Fft<f32>>,
    scratch: Vec<Complex32>,
}

impl Fourier {
    pub(crate) fn new(size: usize) -> Self {
        let mut planner = FftPlannerScalar::new();
        Self::of(planner.plan_fft_forward(size), planner.plan_fft_inverse(size))
    }

    /// With the machine's vector instructions, where the last bit does not matter.
    pub(crate) fn fast(size: usize) -> Self {
        let mut planner = FftPlanner::new();
        Self::of(planner.plan_fft_forward(size), planner.plan_fft_inverse(size))
    }

    fn of(forward: Arc<dyn Fft<f32>>, inverse: Arc<dyn Fft<f32>>) -> Self {
        let scratch = vec![Complex32::default(); forward.get_inplace_scratch_len().max(inverse.get_inplace_scratch_len())];
        Self { forward, inverse, scratch }
    }

    pub(crate) fn forward(&mut self, data: &mut [Complex32]) {
        self.forward.process_with_scratch(data, &mut self.scratch);
    }

    pub(crate) fn inverse(&mut self, data: &mut [Complex32]) {
        self.inverse.process_with_scratch(data, &mut self.scratch);
    }
}

impl std::fmt::Debug for Fourier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fourier").field("size", &self.forward.len()).finish()
    }
}
