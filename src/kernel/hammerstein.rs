use num_complex::Complex;
use num_traits::Zero;

use super::equivariant::{gamma, row};
use super::{Centres, Kernel, Row};
use crate::{Real, Result};

/// `Σ_l conj(c_l) x_l · exp(−(|x_l|−|c_l|)² / 2σ²)`: sums over the taps of functions that turn with one sample each.
///
/// A saturated amplifier in front of echoes (a Hammerstein system) is `Σ_l h_l x_l G(|x_l|)`: what each tap adds depends on one sample, and
/// turns with its phase. This kernel has all such functions and no others, so it learns nothing about combinations of samples that no echo
/// makes. A sum of positive definite kernels, so positive definite; not normalised: `k(x,x) = xᴴx`. On real data the same formula makes
/// functions that are odd in each sample. Over the windows of several transmit antennas, one after the other, it serves MIMO.
///
/// # The state-space model
///
/// The weights of tap `l` are a complex gain curve `G_l` over the envelope, and what is received is `y_k = Σ_l x_{k−l} G_{k,l}(|x_{k−l}|) + n_k`. The
/// curves move as
///
/// `G_{k,l} = λ G_{k−1,l} + d_{k,l}`, with `E d_{k,l}(a) conj d_{k,l'}(b) = δ_{ll'} σ_d² exp(−(a−b)² / 2σ²)`:
///
/// at each sample every tap's curve takes a random step of variance `σ_d²`, independent of the other taps and of the past. Envelopes
/// within `σ` of each other move together, so `σ` says how far from a straight line the amplifier may be: for `σ → ∞` a curve is one number,
/// the tap of a linear channel in its random walk, and the filter is LMS; small `σ` lets weak and strong samples see two channels. With `λ < 1`, a tap
/// returns to zero within some `1/(1−λ)` samples unless it is seen, and its variance before any data is `σ_d² / (1−λ²)`.
///
/// As everywhere in the family, the covariance of what is known after a sample is left out, and that of one diffusion step, `σ_d² k`, stands for it. The
/// MAP step is then `α = σ_d² / (σ_n² + σ_d² k(x,x)) · error`: [`Gain::DiffusionRatio`](crate::observation::Gain) with `r = σ_d² / σ_n²`, here in units of
/// one over input power, and `k(x,x)` the energy in the window. `r k(x,x)` is how much the output may have moved in one sample, against the
/// noise; the error at `x` falls by `1 / (1 + r k(x,x))`, so the step never overshoots, whatever the power. What the prior does *not* know is that all
/// taps share one amplifier: that is the part of [`Ensemble`](crate::filter::ensemble::Ensemble).
///
/// ```
/// use kaflow::{Complex, kernel::{Hammerstein, Kernel}};
/// let kernel = Hammerstein::new(1.0).unwrap();
/// let (c, x) = ([Complex::new(0.0, 1.0), Complex::new(3.0, 0.0)], [Complex::new(2.0, 0.0), Complex::new(0.0, 3.0)]);
/// // Envelopes 1 and 2 in the first tap, 3 and 3 in the second.
/// assert_eq!(kernel.value(&c, &x), Complex::new(0.0, -2.0) * (-0.5f64).exp() + Complex::new(0.0, 9.0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Hammerstein<T> {
    sigma: T,
    /// `1 / 2σ²`.
    gamma: T,
}

impl<T: Real> Hammerstein<T> {
    /// Width `sigma` of the similarity of envelopes, in units of the input's amplitude; 0.7 times its RMS is a good start.
    pub fn new(sigma: f64) -> Result<Self> {
        Ok(Self { sigma: T::of(sigma), gamma: gamma(sigma)? })
    }

    /// What one tap adds.
    fn term(&self, c: Complex<T>, x: Complex<T>) -> Complex<T> {
        let d = x.norm() - c.norm();
        c.conj() * x * (-d * d * self.gamma).exp()
    }
}

impl<T: Real> Kernel<T> for Hammerstein<T> {
    fn value(&self, centre: &[Complex<T>], x: &[Complex<T>]) -> Complex<T> {
        centre.iter().zip(x).fold(Complex::zero(), |sum, (&c, &x)| sum + self.term(c, x))
    }

    fn norm(&self, x: &[Complex<T>]) -> T {
        x.iter().map(|z| z.norm_sqr()).sum()
    }

    /// The squared distance in feature space, `k(c,c) + k(x,x) − 2 Re k(c,x)`: two windows are near where no function of the prior tells them apart.
    fn distance(&self, centre: &[Complex<T>], x: &[Complex<T>]) -> T {
        // As a sum of what is not negative: the difference of large numbers would lose what is small.
        let apart = |(&c, &x): (&Complex<T>, &Complex<T>)| {
            let (a, b) = (x.norm(), c.norm());
            let d = a - b;
            d * d + T::of(2.0) * (a * b - self.term(c, x).re)
        };
        centre.iter().zip(x).map(apart).sum()
    }

    fn turns(&self) -> bool {
        true
    }

    fn row(&self, centres: &Centres<T>, x: &[Complex<T>], values: &mut Row<T>) {
        row::<T, true>(self.gamma, centres, x, values);
    }

    fn hammerstein(&self) -> Option<T> {
        Some(self.gamma)
    }

    fn describe(&self) -> String {
        format!("hammerstein(sigma={})", self.sigma)
    }
}
