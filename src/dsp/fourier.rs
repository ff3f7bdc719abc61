//! Fourier transforms in place, with their scratch.

use std::sync::Arc;

use num_complex::Complex;
use rustfft::algorithm::{BluesteinsAlgorithm, Radix4};
use rustfft::{Fft, FftDirection, FftNum, FftPlannerScalar};

/// Both directions of one size, neither scaled; scalar, so that no processor rounds differently from another.
#[derive(Clone)]
pub(crate) struct Fourier<T = f32> {
    forward: Arc<dyn Fft<T>>,
    inverse: Arc<dyn Fft<T>>,
    scratch: Vec<Complex<T>>,
}

impl Fourier<f32> {
    pub(crate) fn new(size: usize) -> Self {
        let mut planner = FftPlannerScalar::new();
        Self::of(planner.plan_fft_forward(size), planner.plan_fft_inverse(size))
    }
}

impl Fourier<f64> {
    /// Made for powers of two; other sizes take some four times as long. (A planner would be compiled with its two dozen algorithms once more.)
    pub(crate) fn double(size: usize) -> Self {
        let plan = |direction: FftDirection| -> Arc<dyn Fft<f64>> {
            if size.is_power_of_two() {
                return Arc::new(Radix4::new(size, direction));
            }
            let inner = Arc::new(Radix4::new((2 * size).next_power_of_two(), direction));
            Arc::new(BluesteinsAlgorithm::new(size, inner))
        };
        Self::of(plan(FftDirection::Forward), plan(FftDirection::Inverse))
    }
}

impl<T: FftNum> Fourier<T> {
    fn of(forward: Arc<dyn Fft<T>>, inverse: Arc<dyn Fft<T>>) -> Self {
        let scratch = vec![Complex::new(T::zero(), T::zero()); forward.get_inplace_scratch_len().max(inverse.get_inplace_scratch_len())];
        Self { forward, inverse, scratch }
    }

    pub(crate) fn forward(&mut self, data: &mut [Complex<T>]) {
        self.forward.process_with_scratch(data, &mut self.scratch);
    }

    pub(crate) fn inverse(&mut self, data: &mut [Complex<T>]) {
        self.inverse.process_with_scratch(data, &mut self.scratch);
    }
}

impl<T: FftNum> std::fmt::Debug for Fourier<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fourier").field("size", &self.forward.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_the_sum_that_defines_it_and_comes_back() {
        for size in [1, 2, 3, 4, 8, 13, 32, 100, 127, 256] {
            let x: Vec<Complex<f64>> = (0..size).map(|n| Complex::from_polar(1.0 + n as f64 / 7.0, (n * n) as f64)).collect();
            let sum = |k: usize| -> Complex<f64> {
                let turn = |n: usize| Complex::cis(-std::f64::consts::TAU * (n * k % size) as f64 / size as f64);
                x.iter().enumerate().map(|(n, z)| z * turn(n)).sum()
            };
            let (mut fourier, mut lines) = (Fourier::double(size), x.clone());
            fourier.forward(&mut lines);
            let scale = (size as f64).powi(2);
            assert!(lines.iter().enumerate().all(|(k, z)| (z - sum(k)).norm() < 1e-14 * scale), "{size}");
            fourier.inverse(&mut lines);
            assert!(lines.iter().zip(&x).all(|(z, x)| (z / size as f64 - x).norm() < 1e-14 * scale), "{size}");
            let mut lines: Vec<Complex<f32>> = x.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect();
            Fourier::new(size).forward(&mut lines);
            let off = |(k, z): (usize, &Complex<f32>)| (Complex::new(f64::from(z.re), f64::from(z.im)) - sum(k)).norm();
            assert!(lines.iter().enumerate().all(|line| off(line) < 1e-6 * scale), "{size}");
        }
    }
}
