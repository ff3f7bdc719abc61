//! Rows over arbitrary centres in planes.

use num_complex::Complex;

use super::{Op, Vector};
use crate::Real;

/// `‖c_i − x‖²` and `exp(−gamma ‖c_i − x‖²)` for centres stored as planes (all first real parts, all first imaginary parts, and so on).
pub(crate) struct GaussianRow<'a, T> {
    /// `2L` planes, `stride` apart, of which the first `distance.len()` values count.
    pub(crate) planes: &'a [T],
    /// From one plane to the next.
    pub(crate) stride: usize,
    /// The input.
    pub(crate) x: &'a [Complex<T>],
    /// `1 / 2σ²`.
    pub(crate) gamma: T,
    /// Receives the squared distances.
    pub(crate) distance: &'a mut [T],
    /// Receives the kernel values.
    pub(crate) value: &'a mut [T],
}

impl<T: Real> GaussianRow<'_, T> {
    /// Centres `at..at + LANES`.
    ///
    /// # Safety
    /// `at + LANES` values must be there in each plane (the last one included), in `distance` and in `value`.
    #[inline(always)]
    unsafe fn lanes<V: Vector<T>, const N: usize>(&mut self, at: usize, scale: V, floor: V, constants: &V::Exp2) {
        let mut d = [V::splat(T::zero()); N];
        for (l, z) in self.x.iter().enumerate() {
            let (re, im) = (V::splat(z.re), V::splat(z.im));
            for (n, d) in d.iter_mut().enumerate() {
                // SAFETY: the caller vouches for the length.
                let (x, y) = unsafe {
                    let plane = self.planes.as_ptr().add(2 * l * self.stride + at + n * V::LANES);
                    (re.sub(V::load(plane)), im.sub(V::load(plane.add(self.stride))))
                };
                *d = y.fma(y, x.fma(x, *d));
            }
        }
        for (n, d) in d.into_iter().enumerate() {
            // SAFETY: the caller vouches for the length.
            unsafe {
                d.store(self.distance.as_mut_ptr().add(at + n * V::LANES));
                d.mul(scale).max(floor).exp2(constants).store(self.value.as_mut_ptr().add(at + n * V::LANES));
            }
        }
    }
}

impl<T: Real> Op<T> for GaussianRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(mut self) {
        let len = self.distance.len();
        assert!(len <= self.stride && self.value.len() == len && self.planes.len() >= 2 * self.x.len() * self.stride, "planes too short");
        // 1/ln 2 turns the natural exponent into the binary one.
        let scale = V::splat(-self.gamma * T::LOG2_E());
        let (floor, constants) = (V::splat(T::FLOOR), V::exp2_constants());
        let mut at = 0;
        // Four vectors together hide the latency of the sums.
        while at + 4 * V::LANES <= len {
            // SAFETY: `at + 4 LANES <= len`, and each of the `2L` planes has `stride >= len` values.
            unsafe { self.lanes::<V, 4>(at, scale, floor, &constants) };
            at += 4 * V::LANES;
        }
        while at + V::LANES <= len {
            // SAFETY: as above, for one vector.
            unsafe { self.lanes::<V, 1>(at, scale, floor, &constants) };
            at += V::LANES;
        }
        if at < len {
            // The last few centres through a copy, so that nothing behind them is read.
            let rest = len - at;
            let (mut d, mut k) = ([T::zero(); 16], [T::zero(); 16]);
            for (l, z) in self.x.iter().enumerate() {
                for (d, i) in d[..rest].iter_mut().zip(at..) {
                    let (x, y) = (self.planes[2 * l * self.stride + i] - z.re, self.planes[(2 * l + 1) * self.stride + i] - z.im);
                    *d += x * x + y * y;
                }
            }
            // SAFETY: both arrays have 16 places, the most that a vector has lanes.
            unsafe { V::load(d.as_ptr()).mul(scale).max(floor).exp2(&constants).store(k.as_mut_ptr()) };
            self.distance[at..].copy_from_slice(&d[..rest]);
            self.value[at..].copy_from_slice(&k[..rest]);
        }
    }
}

/// `Σ a_i k_i` with complex `a` in two planes and real `k`.
pub(crate) struct WeighComplex<'a, T> {
    /// Real parts of the coefficients.
    pub(crate) re: &'a [T],
    /// Imaginary parts of the coefficients.
    pub(crate) im: &'a [T],
    /// The kernel values.
    pub(crate) row: &'a [T],
}

impl<T: Real> Op<T> for WeighComplex<'_, T> {
    type Output = Complex<T>;

    #[inline(always)]
    fn run<V: Vector<T>>(self) -> Complex<T> {
        let len = self.row.len();
        assert!(self.re.len() == len && self.im.len() == len, "one coefficient for each centre");
        let mut sums = [(V::splat(T::zero()), V::splat(T::zero())); 2];
        let mut at = 0;
        while at + 2 * V::LANES <= len {
            for (n, sum) in sums.iter_mut().enumerate() {
                let i = at + n * V::LANES;
                // SAFETY: `i + LANES <= len`, the length of all three.
                unsafe {
                    let k = V::load(self.row.as_ptr().add(i));
                    sum.0 = k.fma(V::load(self.re.as_ptr().add(i)), sum.0);
                    sum.1 = k.fma(V::load(self.im.as_ptr().add(i)), sum.1);
                }
            }
            at += 2 * V::LANES;
        }
        let mut sum = Complex::new(sums[0].0.add(sums[1].0).sum(), sums[0].1.add(sums[1].1).sum());
        for i in at..len {
            sum.re += self.re[i] * self.row[i];
            sum.im += self.im[i] * self.row[i];
        }
        sum
    }
}

/// `Σ a_i k_i` with both complex, in planes.
pub(crate) struct WeighByComplex<'a, T> {
    /// Real parts of the coefficients.
    pub(crate) re: &'a [T],
    /// Imaginary parts of the coefficients.
    pub(crate) im: &'a [T],
    /// Real and imaginary parts of the kernel values.
    pub(crate) row: [&'a [T]; 2],
}

impl<T: Real> Op<T> for WeighByComplex<'_, T> {
    type Output = Complex<T>;

    #[inline(always)]
    fn run<V: Vector<T>>(self) -> Complex<T> {
        let len = self.row[0].len();
        assert!(self.row[1].len() == len && self.re.len() == len && self.im.len() == len, "one coefficient for each centre");
        let mut sum = (V::splat(T::zero()), V::splat(T::zero()));
        // What the imaginary parts of the coefficients add has a sum of its own: two short chains of dependent instructions instead of a long one.
        let mut cross = (sum.0, sum.0);
        let mut at = 0;
        while at + V::LANES <= len {
            // SAFETY: `at + LANES <= len`, the length of all four.
            unsafe {
                let (a, b) = (V::load(self.re.as_ptr().add(at)), V::load(self.im.as_ptr().add(at)));
                let (x, y) = (V::load(self.row[0].as_ptr().add(at)), V::load(self.row[1].as_ptr().add(at)));
                (sum.0, cross.0) = (a.fma(x, sum.0), b.fma(y, cross.0));
                (sum.1, cross.1) = (a.fma(y, sum.1), b.fma(x, cross.1));
            }
            at += V::LANES;
        }
        let mut f = Complex::new(sum.0.sub(cross.0).sum(), sum.1.add(cross.1).sum());
        for i in at..len {
            f += Complex::new(self.re[i], self.im[i]) * Complex::new(self.row[0][i], self.row[1][i]);
        }
        f
    }
}

/// The least of some distances and its place, the first one on ties; `None` of none.
pub(crate) struct Nearest<'a, T> {
    /// The distances.
    pub(crate) distance: &'a [T],
}

impl<T: Real> Op<T> for Nearest<'_, T> {
    type Output = Option<(usize, T)>;

    #[inline(always)]
    fn run<V: Vector<T>>(self) -> Option<(usize, T)> {
        let len = self.distance.len();
        let mut least = (usize::MAX, T::infinity());
        let mut consider = |i: usize, d: T| {
            if d < least.1 || (d == least.1 && i < least.0) {
                least = (i, d);
            }
        };
        // Places are kept as floats beside the distances; beyond this many they would not be exact, and lanes start anew.
        const STRETCH: usize = 1 << 20;
        let whole = len - len % V::LANES;
        for begin in (0..whole).step_by(STRETCH) {
            let (mut best, mut place) = (V::splat(T::infinity()), V::splat(T::zero()));
            let (mut step, one) = (V::splat(T::zero()), V::splat(T::one()));
            for at in (begin..whole.min(begin + STRETCH)).step_by(V::LANES) {
                // SAFETY: `at + LANES <= whole <= len`.
                let d = unsafe { V::load(self.distance.as_ptr().add(at)) };
                place = d.select_less(best, step, place);
                best = d.min(best);
                step = step.add(one);
            }
            let (mut d, mut p) = ([T::infinity(); 16], [T::zero(); 16]);
            // SAFETY: both arrays have 16 places, the most that a vector has lanes.
            unsafe {
                best.store(d.as_mut_ptr());
                place.store(p.as_mut_ptr());
            }
            for lane in 0..V::LANES {
                if d[lane] < T::infinity() {
                    consider(begin + p[lane].to_usize().unwrap_or(0) * V::LANES + lane, d[lane]);
                }
            }
        }
        for i in whole..len {
            consider(i, self.distance[i]);
        }
        (least.1 < T::infinity()).then_some(least)
    }
}
