//! Cubic B-splines over the envelope: the functions that the gain curve and the bank are made of.

use num_complex::{Complex, Complex64};

use super::constants::{POINTS, STEP};
use super::planes::Planes;
use crate::Real;
use crate::simd::{Op, Vector};

/// The last place of the grid, in steps: the envelope counts as at most this.
const LAST: f64 = (POINTS - 3) as f64;

/// The four functions that are not zero at the envelope `r`, and the index of the first.
pub(super) fn weights(r: f64) -> (usize, [f64; 4]) {
    let s = (r / STEP).clamp(0.0, LAST);
    let i = (s as usize).min(POINTS - 4);
    let f = s - i as f64;
    let g = 1.0 - f;
    let inner = |f: f64| (3.0 * f * f * f - 6.0 * f * f + 4.0) / 6.0;
    (i, [g * g * g / 6.0, inner(f), inner(g), f * f * f / 6.0])
}

/// The gain at envelope `r`.
pub(super) fn gain(theta: &[Complex64; POINTS], r: f64) -> Complex64 {
    let (i, w) = weights(r);
    (0..4).map(|k| theta[i + k] * w[k]).sum()
}

/// The envelope in steps, for [`function`].
#[inline(always)]
pub(super) fn place<T: Real, V: Vector<T>>(re: V, im: V, inverse: V) -> V {
    re.fma(re, im.mul(im)).sqrt().mul(inverse).min(V::splat(T::of(LAST)))
}

/// Function `j` at a [`place`]: with `d` the distance to its middle, `(max(2 − d, 0)³ − 4 max(1 − d, 0)³) / 6`.
#[inline(always)]
pub(super) fn function<T: Real, V: Vector<T>>(place: V, j: usize) -> V {
    let zero = V::splat(T::zero());
    let d = place.sub(V::splat(T::of(j as f64 - 1.0)));
    let d = d.max(zero.sub(d));
    let (u, v) = (V::splat(T::of(2.0)).sub(d).max(zero), V::splat(T::one()).sub(d).max(zero));
    let sixth = V::splat(T::of(1.0 / 6.0));
    v.mul(v).mul(v).fnma(V::splat(T::of(4.0)), u.mul(u).mul(u)).mul(sixth)
}

/// `u = x G(|x|)` for some samples, `x` in units of the input's RMS.
pub(super) struct Bend<'a, T: Real> {
    pub(super) x: &'a Planes<T>,
    pub(super) normalised: &'a mut Planes<T>,
    pub(super) u: &'a mut Planes<T>,
    pub(super) theta: &'a [Complex<T>; POINTS],
    pub(super) inverse: T,
    /// Where to begin and end in the planes.
    pub(super) from: usize,
    pub(super) to: usize,
}

impl<T: Real> Op<T> for Bend<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let scale = V::splat(self.inverse);
        let steps = V::splat(self.inverse * T::of(1.0 / STEP));
        let mut i = self.from;
        while i < self.to {
            let (re, im) = (V::read(&self.x.re, i), V::read(&self.x.im, i));
            let s = place(re, im, steps);
            let (mut a, mut b) = (V::splat(T::zero()), V::splat(T::zero()));
            for (j, theta) in self.theta.iter().enumerate() {
                let f = function(s, j);
                a = f.fma(V::splat(theta.re), a);
                b = f.fma(V::splat(theta.im), b);
            }
            let (re, im) = (re.mul(scale), im.mul(scale));
            re.write(&mut self.normalised.re, i);
            im.write(&mut self.normalised.im, i);
            im.fnma(b, re.mul(a)).write(&mut self.u.re, i);
            im.fma(a, re.mul(b)).write(&mut self.u.im, i);
            i += V::LANES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Dispatch, Level};

    #[test]
    fn the_curve_at_every_level_is_that_of_the_four_weights() {
        let theta: [Complex64; POINTS] = std::array::from_fn(|j| Complex64::new(1.0 / (1.0 + j as f64), 0.1 * (j as f64).sin()));
        for k in 0..500 {
            let (i, w) = weights(f64::from(k) * 0.01);
            assert!((w.iter().sum::<f64>() - 1.0).abs() < 1e-12 && i + 4 <= POINTS);
        }
        for &level in Level::available() {
            let mut x = Planes::<f64>::new(0);
            (0..128).for_each(|i| (x.re[i], x.im[i]) = (0.05 * i as f64, -0.03 * i as f64));
            let (mut u, mut normalised) = (x.clone(), x.clone());
            f64::dispatch(level, Bend { x: &x, normalised: &mut normalised, u: &mut u, theta: &theta, inverse: 0.7, from: 0, to: 128 });
            for i in 0..128 {
                let z = x.at(i) * 0.7;
                let expected = z * gain(&theta, z.norm());
                assert!((u.at(i) - expected).norm() < 1e-12, "{level}, {z}: {} instead of {expected}", u.at(i));
            }
        }
    }
}
