//! Rows of kernels of envelopes over arbitrary centres in planes.

use num_complex::Complex;

use super::{Op, Vector, complex_conj_mul_acc, complex_splat};
use crate::Real;

/// `Σ_l conj(c_l) x_l exp(−gamma (|x_l|−|c_l|)²)` for all centres (`TAPWISE`), or `(cᴴx) exp(−gamma ‖|x|−|c|‖²)`.
pub(crate) struct EnvelopeRow<'a, T, const TAPWISE: bool> {
    /// `2L` planes, `stride` apart, of which the first `re.len()` values count.
    pub(crate) planes: &'a [T],
    /// From one plane to the next.
    pub(crate) stride: usize,
    /// The input.
    pub(crate) x: &'a [Complex<T>],
    /// One place for each `|x_l|`.
    pub(crate) envelope: &'a mut [T],
    /// `1 / 2σ²`.
    pub(crate) gamma: T,
    /// Receives the real parts of the kernel values.
    pub(crate) re: &'a mut [T],
    /// Receives the imaginary parts.
    pub(crate) im: &'a mut [T],
    /// Receives the squared distances in feature space, where `TAPWISE`.
    pub(crate) distance: &'a mut [T],
}

impl<T: Real, const TAPWISE: bool> EnvelopeRow<'_, T, TAPWISE> {
    /// Centres `at..at + count`, where `count` is `LANES`, or less and `PART`.
    ///
    /// # Safety
    /// `at + count` values must be there in each plane (the last one included), in `re`, `im` and `distance`.
    #[inline(always)]
    unsafe fn lanes<V: Vector<T>, const PART: bool>(&mut self, at: usize, count: usize, constants: &V::Exp2) {
        let (zero, floor) = (V::splat(T::zero()), V::splat(T::FLOOR));
        // 1/ln 2 turns the natural exponent into the binary one.
        let scale = V::splat(-self.gamma * T::LOG2_E());
        let two = V::splat(T::of(2.0));
        let (mut sum, mut distance) = ((zero, zero), zero);
        for (l, (&z, &envelope)) in self.x.iter().zip(&*self.envelope).enumerate() {
            // SAFETY: the caller vouches for the length.
            let c = unsafe {
                let plane = self.planes.as_ptr().add(2 * l * self.stride + at);
                (fetch::<T, V, PART>(plane, count), fetch::<T, V, PART>(plane.add(self.stride), count))
            };
            let (x, envelope) = (complex_splat::<T, V>(z), V::splat(envelope));
            let other = magnitude(c);
            let apart = envelope.sub(other);
            let square = apart.mul(apart);
            if TAPWISE {
                let k = square.mul(scale).max(floor).exp2(constants);
                let product = complex_conj_mul_acc(c, x, (zero, zero));
                let term = (product.0.mul(k), product.1.mul(k));
                sum = (sum.0.add(term.0), sum.1.add(term.1));
                distance = distance.add(two.fma(envelope.mul(other).sub(term.0), square));
            } else {
                sum = complex_conj_mul_acc(c, x, sum);
                distance = distance.add(square);
            }
        }
        if !TAPWISE {
            let k = distance.mul(scale).max(floor).exp2(constants);
            sum = (sum.0.mul(k), sum.1.mul(k));
        }
        // SAFETY: the caller vouches for the length.
        unsafe {
            put::<T, V, PART>(sum.0, self.re.as_mut_ptr().add(at), count);
            put::<T, V, PART>(sum.1, self.im.as_mut_ptr().add(at), count);
            if TAPWISE {
                put::<T, V, PART>(distance, self.distance.as_mut_ptr().add(at), count);
            }
        }
    }
}

impl<T: Real, const TAPWISE: bool> Op<T> for EnvelopeRow<'_, T, TAPWISE> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(mut self) {
        let len = self.re.len();
        assert!(self.im.len() == len && self.distance.len() == len && self.envelope.len() == self.x.len(), "one place for each centre");
        assert!(len <= self.stride && self.planes.len() >= 2 * self.x.len() * self.stride, "planes too short");
        // By the same instructions as those of the centres: equal samples must have equal envelopes to the last bit, whatever their size.
        for (envelope, &z) in self.envelope.iter_mut().zip(self.x) {
            let mut lanes = [T::zero(); 16];
            // SAFETY: the array has 16 places, the most that a vector has lanes.
            unsafe { magnitude::<T, V>(complex_splat(z)).store(lanes.as_mut_ptr()) };
            *envelope = lanes[0];
        }
        let constants = V::exp2_constants();
        let mut at = 0;
        while at + V::LANES <= len {
            // SAFETY: `at + LANES <= len`, and each of the `2L` planes has `stride >= len` values.
            unsafe { self.lanes::<V, false>(at, V::LANES, &constants) };
            at += V::LANES;
        }
        if at < len {
            // SAFETY: as above, for the last few.
            unsafe { self.lanes::<V, true>(at, len - at, &constants) };
        }
    }
}

/// `|z|`.
#[inline(always)]
fn magnitude<T, V: Vector<T>>(z: (V, V)) -> V {
    z.0.fma(z.0, z.1.mul(z.1)).sqrt()
}

/// The lanes at `from`; only the first `count` where `PART`, so that nothing behind them is read.
///
/// # Safety
/// `from` must be valid for reading `LANES` values, or `count` where `PART`; `count` is at most 16.
#[inline(always)]
unsafe fn fetch<T: Real, V: Vector<T>, const PART: bool>(from: *const T, count: usize) -> V {
    if !PART {
        // SAFETY: the caller vouches for the memory.
        return unsafe { V::load(from) };
    }
    let mut values = [T::zero(); 16];
    // SAFETY: as above; the array has 16 places, the most that a vector has lanes.
    unsafe {
        std::ptr::copy_nonoverlapping(from, values.as_mut_ptr(), count);
        V::load(values.as_ptr())
    }
}

/// Writes the lanes to `to`; only the first `count` where `PART`.
///
/// # Safety
/// As for [`fetch`], for writing.
#[inline(always)]
unsafe fn put<T: Real, V: Vector<T>, const PART: bool>(v: V, to: *mut T, count: usize) {
    let mut values = [T::zero(); 16];
    // SAFETY: the caller vouches for the memory; the array has 16 places, the most that a vector has lanes.
    unsafe {
        if PART {
            v.store(values.as_mut_ptr());
            std::ptr::copy_nonoverlapping(values.as_ptr(), to, count);
        } else {
            v.store(to);
        }
    }
}
