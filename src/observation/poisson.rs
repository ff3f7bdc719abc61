use serde::{Deserialize, Serialize};

use super::{Observation, Scalar};
use crate::{Real, Result};

/// Counts: `P(y) = Poisson(y; exp(f))`, so that the latent function is the logarithm of the rate.
///
/// `offset` is the latent value where nothing was learned: forgetting pulls the rate towards `exp(offset)`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Poisson(Scalar);

impl Poisson {
    /// Diffusion variance `σ_d²` of the weights, and the offset of the log rate.
    pub fn new(diffusion: f64, offset: f64) -> Result<Self> {
        Ok(Self(Scalar::new(diffusion, offset)?))
    }
}

impl<T: Real> Observation<T> for Poisson {
    /// A count; a real number, so that rates can be fed as well.
    type Target = T;
    /// The rate.
    type Mean<'a> = T;

    const NAME: &'static str = "poisson";
    const COMPLEX: bool = false;
    const PARAMETERS: &'static [&'static str] = Scalar::PARAMETERS;

    fn width(&self) -> usize {
        1
    }

    fn admissible(&self, y: T) -> bool {
        y >= T::zero() && y.is_finite()
    }

    fn prior(&self, latent: &mut [T]) {
        latent[0] = T::of(self.0.offset);
    }

    fn step(&self, f: &[T], y: T, norm: T, alpha: &mut [T]) {
        alpha[0] = T::of(unnormalised(norm.wide(), self.0.diffusion, |s| poisson_step(y.wide(), f[0].wide(), s)));
    }

    fn gain(&self, _: T) -> T {
        T::of(self.0.diffusion)
    }

    fn mean<'a>(&'a self, f: &'a mut [T]) -> T {
        f[0].exp()
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        self.0.set(name, value)
    }
}

/// With `k(x,x) = κ` the latent value moves by `β = ακ`, which solves the normalised problem with `κσ_d²` for `σ_d²`.
pub(super) fn unnormalised(norm: f64, diffusion: f64, step: impl Fn(f64) -> f64) -> f64 {
    if norm == 1.0 {
        step(diffusion)
    } else if norm > 0.0 && (norm * diffusion).is_finite() && norm * diffusion > 0.0 {
        step(norm * diffusion) / norm
    } else {
        0.0 // φ(x) = 0: no weight can change what is predicted here.
    }
}

/// The Poisson MAP step: the `α` that maximises `y(f+α) − exp(f+α) − α²/2s`, that is `α = s (y − exp(f+α))`.
///
/// In closed form `α = s y − W(s exp(f + s y))`, which overflows; here the root of a convex, increasing function is approached by Newton's
/// method from its right, where it converges without a safeguard. Finite for every finite input with `y ≥ 0` and `s > 0`.
pub(crate) fn poisson_step(y: f64, f: f64, s: f64) -> f64 {
    let pull = s * y;
    if pull == 0.0 {
        return -wright_omega(s.ln() + f);
    }
    // With d the step that would explain y fully: α + s·y·expm1(α − d) = 0, and α lies between 0 and d.
    let d = y.ln() - f;
    if d == 0.0 || !pull.is_finite() {
        return d;
    }
    let start = if d > 0.0 {
        d
    } else {
        // At the root s·y·e^(α−d) = s·y − α ≤ s·y + |d|.
        let ratio = d.abs() / pull;
        (d + if ratio.is_finite() { ratio.ln_1p() } else { d.abs().ln() - pull.ln() }).min(0.0)
    };
    newton_from_the_right(start, |a| {
        let e = (a - d).exp_m1();
        (a + pull * e, 1.0 + pull * (e + 1.0))
    })
}

/// Wright's omega: the `u > 0` with `u + ln u = z`, which is Lambert's `W(eᶻ)`.
pub(super) fn wright_omega(z: f64) -> f64 {
    if z < -40.0 {
        return z.exp(); // u = eᶻ(1 − eᶻ + …)
    }
    if z > 1e17 {
        return z; // ln z is below the rounding of z
    }
    let start = if z > 1.0 { z.ln() } else { z };
    let v = newton_from_the_right(start, |v| {
        let u = v.exp();
        (v - z + u, 1.0 + u)
    });
    // v = ln u loses digits of a large u; one step on u itself restores them.
    let u = v.exp();
    if z > 1.0 { u - (u + u.ln() - z) / (1.0 + 1.0 / u) } else { u }
}

/// Newton's method on a convex increasing function from a point right of its root: it goes left in every step, so a step to the right is
/// rounding and means that the root is reached.
fn newton_from_the_right(start: f64, f: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut a = start;
    for _ in 0..200 {
        let (value, slope) = f(a);
        let next = a - value / slope;
        if !next.is_finite() || next >= a {
            break;
        }
        let close = a - next <= 1e-9 * next.abs();
        a = next;
        if close {
            // Quadratic convergence: one more step is exact to rounding.
            let (value, slope) = f(a);
            let last = a - value / slope;
            return if last.is_finite() { last } else { a };
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omega_inverts_u_plus_ln_u() {
        for exponent in -300..300 {
            let u = 10f64.powi(exponent) * 1.7;
            let z = u + u.ln();
            let back = wright_omega(z);
            assert!((back - u).abs() <= 1e-13 * u * (1.0 + z.abs().ln().abs()), "{u}: {back}");
        }
    }
}
