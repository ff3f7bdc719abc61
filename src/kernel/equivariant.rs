use num_complex::Complex;
use num_traits::Zero;

use super::{Centres, Kernel, Row};
use crate::error::require;
use crate::simd::EnvelopeRow;
use crate::{Real, Result};

/// `(cᴴx) · exp(−‖|x|−|c|‖² / 2σ²)`, with `|x|` the vector of magnitudes: functions that turn with their input, `f(e^{jt}x) = e^{jt}f(x)`.
///
/// An amplifier is such a function: what it does to a sample depends on the envelope alone and turns with the carrier's phase. The product
/// of the linear kernel and a Gaussian of the envelopes, so positive definite; not normalised: `k(x,x) = xᴴx`.
///
/// ```
/// use kaflow::{Complex, kernel::{Equivariant, Kernel}};
/// let kernel = Equivariant::new(1.0).unwrap();
/// let (c, x) = ([Complex::new(0.0, 1.0)], [Complex::new(2.0, 0.0)]); // envelopes 1 and 2
/// assert_eq!(kernel.value(&c, &x), Complex::new(0.0, -2.0) * (-0.5f64).exp());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Equivariant<T> {
    sigma: T,
    gamma: T,
}

impl<T: Real> Equivariant<T> {
    /// Width `sigma` of the similarity of envelopes, in units of the input's amplitude.
    pub fn new(sigma: f64) -> Result<Self> {
        Ok(Self { sigma: T::of(sigma), gamma: gamma(sigma)? })
    }
}

impl<T: Real> Kernel<T> for Equivariant<T> {
    fn value(&self, centre: &[Complex<T>], x: &[Complex<T>]) -> Complex<T> {
        let mut product = Complex::zero();
        let mut distance = T::zero();
        for (c, x) in centre.iter().zip(x) {
            product += c.conj() * x;
            let d = x.norm() - c.norm();
            distance += d * d;
        }
        product * (-distance * self.gamma).exp()
    }

    fn norm(&self, x: &[Complex<T>]) -> T {
        x.iter().map(|z| z.norm_sqr()).sum()
    }

    fn turns(&self) -> bool {
        true
    }

    fn row(&self, centres: &Centres<T>, x: &[Complex<T>], values: &mut Row<T>) {
        row::<T, false>(self.gamma, centres, x, values);
    }

    fn describe(&self) -> String {
        format!("equivariant(sigma={})", self.sigma)
    }
}

/// `1 / 2σ²`.
pub(super) fn gamma<T: Real>(sigma: f64) -> Result<T> {
    let gamma = 0.5 / (sigma * sigma);
    require(sigma > 0.0 && gamma.is_normal() && T::of(gamma).is_normal(), "sigma", "positive and of moderate size", sigma)?;
    Ok(T::of(gamma))
}

/// The row of a kernel of envelopes: with one exponential for each tap (`TAPWISE`), or one for all of them.
pub(super) fn row<T: Real, const TAPWISE: bool>(gamma: T, centres: &Centres<T>, x: &[Complex<T>], row: &mut Row<T>) {
    assert_eq!(x.len(), centres.taps(), "input length");
    row.resize(centres.len());
    row.envelope.resize(x.len(), T::zero());
    let (planes, stride) = centres.planes();
    let (envelope, re, im, distance) = (&mut row.envelope, &mut row.re, &mut row.im, &mut row.distance);
    T::dispatch(row.level, EnvelopeRow::<T, TAPWISE> { planes, stride, x, envelope, gamma, re, im, distance });
    row.has_distance = TAPWISE;
}
