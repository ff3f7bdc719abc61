//! Linear filters on planes.

use num_complex::Complex;
use num_traits::Zero;

use super::{Op, Vector, complex_conj_mul_acc, complex_splat};
use crate::Real;
use crate::real::finite;

/// NLMS over a run of consecutive samples: for each, predict `p = w·x`, then `w += mu / (regularization + xᴴx) · conj(x) · (y − p)`.
///
/// The update of one sample and the prediction of the next share a pass over the weights.
pub(crate) struct NlmsRun<'a, T> {
    /// Real parts of the inputs, newest first: index 0 is the last sample of the run. Padded by 16 values behind the oldest window.
    pub(crate) re: &'a [T],
    /// Imaginary parts of the inputs, likewise.
    pub(crate) im: &'a [T],
    /// Real parts of the weights, padded with zeros to a multiple of 16.
    pub(crate) w_re: &'a mut [T],
    /// Imaginary parts of the weights, likewise.
    pub(crate) w_im: &'a mut [T],
    /// How many weights there are.
    pub(crate) taps: usize,
    /// The step.
    pub(crate) mu: T,
    /// Added to the input's power.
    pub(crate) regularization: T,
    /// What was received; empty to predict without learning.
    pub(crate) y: &'a [Complex<T>],
    /// Receives the predictions, the oldest sample first.
    pub(crate) p: &'a mut [Complex<T>],
}

impl<T: Real> Op<T> for NlmsRun<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(mut self) {
        let vectors = self.taps.div_ceil(V::LANES);
        let padded = vectors * V::LANES;
        let count = self.p.len();
        let learn = !self.y.is_empty();
        assert!(count > 0 && self.taps > 0 && (!learn || self.y.len() == count), "one target for each sample");
        // One sample more than the run, for the update that it starts with.
        assert!(self.re.len() > count + padded && self.im.len() > count + padded, "a history is too short");
        assert!(self.w_re.len() >= padded && self.w_im.len() >= padded, "one weight for each tap");

        // The lanes of the last vector that lie inside the window.
        let mut mask = [T::zero(); 16];
        mask[..self.taps - (padded - V::LANES)].fill(T::one());
        // SAFETY: the array has 16 places, the most that a vector has lanes.
        let mask = unsafe { V::load(mask.as_ptr()) };
        let last = vectors - 1;
        if vectors == 1 {
            self.short(mask);
            return;
        }
        let zero = V::splat(T::zero());
        let mut step = Complex::zero();
        for s in 0..count {
            let start = count - 1 - s;
            let update: (V, V) = complex_splat(step);
            let (mut rr, mut ii, mut ri, mut ir, mut power) = (zero, zero, zero, zero, (zero, zero));
            for v in 0..vectors {
                // SAFETY: `v < vectors`, and the weights were checked to fill all vectors.
                let w = unsafe {
                    let (re, im) = (self.w_re.as_mut_ptr().add(v * V::LANES), self.w_im.as_mut_ptr().add(v * V::LANES));
                    let w = (V::load(re), V::load(im));
                    if learn {
                        let w = complex_conj_mul_acc(self.window(start + 1, v, last, mask), update, w);
                        w.0.store(re);
                        w.1.store(im);
                        w
                    } else {
                        w
                    }
                };
                // SAFETY: `start < count` and `v < vectors`; the planes exceed `count + padded`.
                let x = unsafe { self.window(start, v, last, mask) };
                rr = w.0.fma(x.0, rr);
                ii = w.1.fma(x.1, ii);
                ri = w.0.fma(x.1, ri);
                ir = w.1.fma(x.0, ir);
                power = (x.0.fma(x.0, power.0), x.1.fma(x.1, power.1));
            }
            let p = Complex::new(rr.sub(ii).sum(), ri.add(ir).sum());
            self.p[s] = p;
            if learn {
                step = self.step(s, p, power.0.add(power.1).sum());
            }
        }
        if learn {
            let update: (V, V) = complex_splat(step);
            for v in 0..vectors {
                // SAFETY: as in the loop above.
                unsafe {
                    let (re, im) = (self.w_re.as_mut_ptr().add(v * V::LANES), self.w_im.as_mut_ptr().add(v * V::LANES));
                    let w = complex_conj_mul_acc(self.window(0, v, last, mask), update, (V::load(re), V::load(im)));
                    w.0.store(re);
                    w.1.store(im);
                }
            }
        }
    }
}

/// The step that is not taken. Apart and cold, so that the rare case is a branch and not a part of every step.
#[cold]
fn no_step<T: Real>() -> Complex<T> {
    Complex::zero()
}

impl<T: Real> NlmsRun<'_, T> {
    /// What the prediction `p` of sample `s` teaches.
    #[inline(always)]
    fn step(&self, s: usize, p: Complex<T>, power: T) -> Complex<T> {
        let gain = self.mu / (self.regularization + power);
        let step = (self.y[s] - p) * gain;
        if finite(step) && power.is_finite() { step } else { no_step() }
    }

    /// The whole run where all weights fit one vector, and so stay in registers.
    #[inline(always)]
    fn short<V: Vector<T>>(&mut self, mask: V) {
        let learn = !self.y.is_empty();
        let count = self.p.len();
        // SAFETY: `run` has checked that there is room for one vector.
        let mut w = unsafe { (V::load(self.w_re.as_ptr()), V::load(self.w_im.as_ptr())) };
        for s in 0..count {
            // SAFETY: `count - 1 - s < count`, and the planes exceed `count + LANES`.
            let x = unsafe { self.window(count - 1 - s, 0, 0, mask) };
            let re = w.0.mul(x.0).sub(w.1.mul(x.1));
            let im = w.0.fma(x.1, w.1.mul(x.0));
            let p = Complex::new(re.sum(), im.sum());
            self.p[s] = p;
            if learn {
                let power = x.0.fma(x.0, x.1.mul(x.1)).sum();
                w = complex_conj_mul_acc(x, complex_splat(self.step(s, p, power)), w);
            }
        }
        // SAFETY: as for loading them.
        unsafe {
            w.0.store(self.w_re.as_mut_ptr());
            w.1.store(self.w_im.as_mut_ptr());
        }
    }

    /// Vector `v` of the window that begins at `start`, zero beyond the last tap.
    ///
    /// # Safety
    /// `start + (v + 1) · LANES` must be at most the length of the planes.
    #[inline(always)]
    unsafe fn window<V: Vector<T>>(&self, start: usize, v: usize, last: usize, mask: V) -> (V, V) {
        let at = start + v * V::LANES;
        // SAFETY: the caller vouches for the length.
        let x = unsafe { (V::load(self.re.as_ptr().add(at)), V::load(self.im.as_ptr().add(at))) };
        if v == last { (x.0.mul(mask), x.1.mul(mask)) } else { x }
    }
}
