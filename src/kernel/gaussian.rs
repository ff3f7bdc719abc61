use num_complex::Complex;

use super::{Centres, Kernel, Row, distance_sqr};
use crate::error::require;
use crate::simd::GaussianRow;
use crate::{Real, Result};

/// `exp(−‖a−b‖² / 2σ²)` on ℂᴸ ≅ ℝ²ᴸ: real, normalised, smooth.
///
/// A caption that writes `exp(−d²/c)` means `sigma = sqrt(c/2)`. KAFBOX writes `exp(−d²/(2σ²))` too.
///
/// ```
/// use kaflow::{Complex, kernel::{Gaussian, Kernel}};
/// let kernel = Gaussian::new(0.5).unwrap();
/// let (a, b) = ([Complex::new(0.0, 0.0)], [Complex::new(0.3, 0.4)]); // at distance 0.5 = sigma
/// assert!((kernel.value(&a, &b).re - (-0.5f64).exp()).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Gaussian<T> {
    sigma: T,
    /// `1 / 2σ²`.
    gamma: T,
}

impl<T: Real> Gaussian<T> {
    /// Width `sigma`, in units of the input's amplitude: the distance at which similarity falls to `exp(-1/2)`.
    pub fn new(sigma: f64) -> Result<Self> {
        let gamma = 0.5 / (sigma * sigma);
        require(sigma > 0.0 && gamma.is_normal() && T::of(gamma).is_normal(), "sigma", "positive and of moderate size", sigma)?;
        Ok(Self { sigma: T::of(sigma), gamma: T::of(gamma) })
    }
}

impl<T: Real> Kernel<T> for Gaussian<T> {
    fn value(&self, centre: &[Complex<T>], x: &[Complex<T>]) -> Complex<T> {
        (-distance_sqr(centre, x) * self.gamma).exp().into()
    }

    fn norm(&self, _: &[Complex<T>]) -> T {
        T::one()
    }

    fn constant_norm(&self) -> Option<T> {
        Some(T::one())
    }

    fn row(&self, centres: &Centres<T>, x: &[Complex<T>], row: &mut Row<T>) {
        row.resize_real(centres.len());
        let (planes, stride) = centres.planes();
        assert_eq!(x.len(), centres.taps(), "input length");
        let (gamma, distance, value) = (self.gamma, &mut row.distance, &mut row.re);
        T::dispatch(row.level, GaussianRow { planes, stride, x, gamma, distance, value });
        row.has_distance = true;
    }

    fn gaussian(&self) -> Option<T> {
        Some(self.gamma)
    }

    fn describe(&self) -> String {
        format!("gaussian(sigma={})", self.sigma)
    }
}
