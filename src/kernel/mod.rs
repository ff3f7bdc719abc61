//! Kernels: the similarity of two windows of samples.
//!
//! A kernel is conjugate-linear in its first argument, the centre, as `cᴴx` is: `k(c, x) = conj k(x, c)`. A filter with coefficients
//! `a_i` on centres `c_i` is the function `f(x) = Σ a_i k(c_i, x)`, so that with the [`Linear`] kernel `f(x) = w·x` with
//! `w = Σ a_i conj(c_i)`. A filter whose latent function is real takes the real part, which is the same kernel on ℂᴸ ≅ ℝ²ᴸ.

mod centres;
mod equivariant;
mod gaussian;
mod hammerstein;
mod linear;
mod polynomial;
mod sum;

pub use self::{
    centres::{Centres, Row},
    equivariant::Equivariant,
    gaussian::Gaussian,
    hammerstein::Hammerstein,
    linear::Linear,
    polynomial::Polynomial,
    sum::Sum,
};

pub(crate) use self::centres::{weigh_complex, weigh_real};

use num_complex::Complex;

use crate::Real;

/// A positive definite kernel on ℂᴸ.
pub trait Kernel<T: Real>: Send + Sync + 'static {
    /// `k(centre, x)`.
    fn value(&self, centre: &[Complex<T>], x: &[Complex<T>]) -> Complex<T>;

    /// `k(x, x)`, which is real and not negative. Kernels for which it is 1 everywhere are called normalised.
    fn norm(&self, x: &[Complex<T>]) -> T {
        self.value(x, x).re
    }

    /// `k(x, x)` where it is the same for all `x`: a fixed step can then be judged before there are data.
    fn constant_norm(&self) -> Option<T> {
        None
    }

    /// Whether its functions turn with their input, `f(e^{jt}x) = e^{jt}f(x)`. A Gaussian process over such functions has a complex covariance; for other
    /// kernels the real part is taken, whose functions of a complex input have two independent parts.
    fn turns(&self) -> bool {
        false
    }

    /// The squared distance that quantisation goes by: in input space, unless the kernel has a better one.
    fn distance(&self, centre: &[Complex<T>], x: &[Complex<T>]) -> T {
        distance_sqr(centre, x)
    }

    /// `k(c_i, x)` for all centres at once: the hot pass.
    ///
    /// The default asks [`value`](Self::value) for one centre after the other; it is the reference that faster rows are checked against.
    fn row(&self, centres: &Centres<T>, x: &[Complex<T>], row: &mut Row<T>) {
        plain_row(self, centres, x, row);
    }

    /// `gamma`, where the kernel is `exp(−gamma ‖c−x‖²)` and so a stream can be filtered by lag.
    fn gaussian(&self) -> Option<T> {
        None
    }

    /// `gamma`, where the kernel is `Σ_l conj(c_l) x_l exp(−gamma (|x_l|−|c_l|)²)` and so a stream can be filtered by lag.
    fn hammerstein(&self) -> Option<T> {
        None
    }

    /// Name and parameters, as `gaussian(sigma=0.5)`: saved state is restored only into a filter with the same kernel.
    fn describe(&self) -> String;
}

/// The reference row: [`Kernel::value`] for one centre after the other.
pub(crate) fn plain_row<T: Real, K: Kernel<T> + ?Sized>(kernel: &K, centres: &Centres<T>, x: &[Complex<T>], row: &mut Row<T>) {
    row.resize(centres.len());
    let mut centre = std::mem::take(&mut row.centre);
    for i in 0..centres.len() {
        centres.copy_to(i, &mut centre);
        let k = kernel.value(&centre, x);
        row.re[i] = k.re;
        row.im[i] = k.im;
        row.distance[i] = kernel.distance(&centre, x);
    }
    row.has_distance = true;
    row.centre = centre;
}

impl<T: Real, K: Kernel<T> + ?Sized> Kernel<T> for Box<K> {
    fn value(&self, centre: &[Complex<T>], x: &[Complex<T>]) -> Complex<T> {
        (**self).value(centre, x)
    }
    fn norm(&self, x: &[Complex<T>]) -> T {
        (**self).norm(x)
    }
    fn constant_norm(&self) -> Option<T> {
        (**self).constant_norm()
    }
    fn turns(&self) -> bool {
        (**self).turns()
    }
    fn distance(&self, centre: &[Complex<T>], x: &[Complex<T>]) -> T {
        (**self).distance(centre, x)
    }
    fn row(&self, centres: &Centres<T>, x: &[Complex<T>], row: &mut Row<T>) {
        (**self).row(centres, x, row);
    }
    fn gaussian(&self) -> Option<T> {
        (**self).gaussian()
    }
    fn hammerstein(&self) -> Option<T> {
        (**self).hammerstein()
    }
    fn describe(&self) -> String {
        (**self).describe()
    }
}

/// `‖a − b‖²` on ℂᴸ taken as ℝ²ᴸ.
pub fn distance_sqr<T: Real>(a: &[Complex<T>], b: &[Complex<T>]) -> T {
    a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum()
}

/// `aᴴb`.
pub(crate) fn inner<T: Real>(a: &[Complex<T>], b: &[Complex<T>]) -> Complex<T> {
    a.iter().zip(b).map(|(a, b)| a.conj() * b).sum()
}

#[cfg(test)]
#[path = "../../tests/unit/kernel.rs"]
mod tests;
