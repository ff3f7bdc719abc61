//! The pass over the last windows of a stream, by lag.

use num_complex::Complex;

use super::{Op, Vector};
use crate::Real;

/// The most samples that one [`LagPass`] takes, and the number of lags whose kernel values it hands out for the correction between them.
pub(crate) const BLOCK: usize = 8;

/// Lags come in groups of this many: the most lanes that a vector has.
pub(crate) const GROUP: usize = 16;

/// Lags that are carried before their exponentials are taken: each of the two loops keeps its constants in registers, and what the first one
/// stores is still at hand for the second.
const STRIP: usize = 64;

/// What is known of the last samples, in planes, newest first: index 0 is the last sample.
#[derive(Clone, Copy)]
pub(crate) struct History<'a, T> {
    /// The inputs `u_i`.
    pub(crate) input: [&'a [T]; 2],
    /// `gamma (u_i − u_{i−L})`, real and imaginary parts.
    pub(crate) difference: [&'a [T]; 2],
    /// `u_i + u_{i−L}`.
    pub(crate) sum: [&'a [T]; 2],
    /// The coefficients, zero where not yet known.
    pub(crate) coefficient: [&'a [T]; 2],
}

impl<T> History<'_, T> {
    fn shortest(&self) -> usize {
        [self.input, self.difference, self.sum, self.coefficient].as_flattened().iter().map(|plane| plane.len()).min().unwrap_or(0)
    }
}

/// Rows of several consecutive samples of a stream against the windows at a range of lags, and their weighted sums.
///
/// For sample `i` and lag `m`, the exponent of the kernel value is `bias[m] − gamma Σ_l |u_{i−l} − u_{i−l−m}|²` over the taps. It is carried from
/// that of sample `i − 1` by the term that enters the window and the one that leaves it, the difference of two squares. With `v_i = u_i − u_{i−L}` and
/// `w_i = u_i + u_{i−L}` it is a product for each of real and imaginary part, whatever the taps:
///
/// `|u_i − u_{i−m}|² − |u_{i−L} − u_{i−L−m}|² = Re (v_i − v_{i−m})* (w_i − w_{i−m})`.
///
/// Where wild samples are about, the two terms are computed one by one and each is cut off where the kernel has long vanished: that changes
/// nothing, and keeps one wild sample from swamping the sums that it passes through.
pub(crate) struct LagPass<'a, T> {
    /// The samples.
    pub(crate) history: History<'a, T>,
    /// The samples in a window.
    pub(crate) taps: usize,
    /// The lag of the first exponent.
    pub(crate) first: usize,
    /// The exponents by lag, whole groups; carried through the pass.
    pub(crate) exponent: &'a mut [T],
    /// What a squared distance is multiplied by to become an exponent of 2.
    pub(crate) gamma: T,
    /// Which samples have a wild one in their history, the oldest first; at least as many as there are sums.
    pub(crate) wild: &'a [bool; BLOCK],
    /// Receives the weighted sum of each sample, the oldest sample first.
    pub(crate) sums: &'a mut [Complex<T>],
    /// Receives the kernel values of each sample at the first lags, at least [`BLOCK`] of them.
    pub(crate) triangle: &'a mut [[T; GROUP]; BLOCK],
}

impl<T: Real> Op<T> for LagPass<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(mut self) {
        let (count, lags) = (self.sums.len(), self.exponent.len());
        assert!(count <= BLOCK && lags.is_multiple_of(GROUP), "whole groups of lags, at most a block of samples");
        assert!(self.history.shortest() >= count + self.first + lags + self.taps, "a history is too short");
        if lags == 0 {
            self.sums.fill(Complex::new(T::zero(), T::zero()));
            return;
        }
        let constants = V::exp2_constants();
        for s in 0..count {
            // SAFETY: the lengths were checked above, and there is at least one group.
            self.sums[s] =
                unsafe { if self.wild[s] { self.sample::<V, true>(s, &constants) } else { self.sample::<V, false>(s, &constants) } };
        }
    }
}

impl<T: Real> LagPass<'_, T> {
    /// The weighted sum of sample `s`.
    ///
    /// # Safety
    /// What `run` asserts, at least one group of lags, and `s < sums.len()`.
    #[inline(always)]
    unsafe fn sample<V: Vector<T>, const WILD: bool>(&mut self, s: usize, constants: &V::Exp2) -> Complex<T> {
        // Where the sample lies in the planes, and the one that leaves its window.
        let newest = self.sums.len() - 1 - s;
        let History { input, difference, sum, coefficient } = self.history;
        let mut carry = Carry::<T, V> {
            difference: Plane::new(difference, newest, self.first),
            sum: Plane::new(sum, newest, self.first),
            enters: Plane::new(input, newest, self.first),
            leaves: Plane::new(input, newest + self.taps, self.first),
            far: V::splat(far(self.gamma)),
            gamma: V::splat(self.gamma),
            exponent: self.exponent.as_mut_ptr(),
        };
        let mut weigh = Weigh {
            coefficient: [coefficient[0][newest + self.first..].as_ptr(), coefficient[1][newest + self.first..].as_ptr()],
            exponent: self.exponent.as_ptr(),
            floor: V::splat(T::FLOOR),
            sum: (V::splat(T::zero()), V::splat(T::zero())),
        };
        let lags = self.exponent.len();
        let (mut carried, mut weighed) = (0, 0);
        while carried < lags {
            let end = lags.min(carried + STRIP);
            while carried < end {
                // SAFETY: `carried + LANES <= lags`, and the planes are long enough for all lags.
                unsafe { if WILD { carry.wild(carried) } else { carry.calm(carried) } };
                carried += V::LANES;
            }
            while weighed < BLOCK {
                // SAFETY: as above. A multiple of LANES below 8 is at most 16 − LANES, so the kernel values end within the 16 places of
                // their array, and the lags within their first group.
                unsafe { weigh.lanes(weighed, constants).store(self.triangle[s].as_mut_ptr().add(weighed)) };
                weighed += V::LANES;
            }
            while weighed < end {
                // SAFETY: as above.
                unsafe { weigh.lanes(weighed, constants) };
                weighed += V::LANES;
            }
        }
        Complex::new(weigh.sum.0.sum(), weigh.sum.1.sum())
    }
}

/// A complex plane as one sample sees it.
struct Plane<T, V> {
    /// Its value at the sample.
    here: (V, V),
    /// Its values by lag, real and imaginary parts.
    then: [*const T; 2],
}

impl<T: Real, V: Vector<T>> Plane<T, V> {
    /// Of the sample at `newest`, with the lags from `first` on.
    #[inline(always)]
    fn new([re, im]: [&[T]; 2], newest: usize, first: usize) -> Self {
        let here = (V::splat(re[newest]), V::splat(im[newest]));
        Self { here, then: [re[newest + first..].as_ptr(), im[newest + first..].as_ptr()] }
    }

    /// The sample less the values at the lags `at..`.
    ///
    /// # Safety
    /// The planes must have `at + LANES` values from the first lag on.
    #[inline(always)]
    unsafe fn apart(&self, at: usize) -> (V, V) {
        // SAFETY: the caller vouches for the lengths. This way round the loads are operands of the subtractions, and no instructions of their own.
        unsafe { (self.here.0.sub(V::load(self.then[0].add(at))), self.here.1.sub(V::load(self.then[1].add(at)))) }
    }
}

/// The exponents on their way from one sample to the next.
struct Carry<T, V> {
    difference: Plane<T, V>,
    sum: Plane<T, V>,
    enters: Plane<T, V>,
    leaves: Plane<T, V>,
    far: V,
    gamma: V,
    exponent: *mut T,
}

impl<T: Real, V: Vector<T>> Carry<T, V> {
    /// Lags `at..at + LANES`.
    ///
    /// # Safety
    /// There must be so many exponents, and values in all planes.
    #[inline(always)]
    unsafe fn calm(&mut self, at: usize) {
        // SAFETY: the caller vouches for the lengths.
        unsafe {
            let (v, w) = (self.difference.apart(at), self.sum.apart(at));
            let exponent = self.exponent.add(at);
            v.1.fnma(w.1, v.0.fnma(w.0, V::load(exponent))).store(exponent);
        }
    }

    /// As [`calm`](Self::calm), with terms cut off where the kernel has long vanished.
    ///
    /// # Safety
    /// As for [`calm`](Self::calm).
    #[inline(always)]
    unsafe fn wild(&mut self, at: usize) {
        // SAFETY: the caller vouches for the lengths.
        unsafe {
            let change = term(self.enters.apart(at), self.far).sub(term(self.leaves.apart(at), self.far));
            let exponent = self.exponent.add(at);
            change.fnma(self.gamma, V::load(exponent)).store(exponent);
        }
    }
}

/// A weighted sum on its way through the lags.
struct Weigh<T, V> {
    coefficient: [*const T; 2],
    exponent: *const T,
    floor: V,
    sum: (V, V),
}

impl<T: Real, V: Vector<T>> Weigh<T, V> {
    /// Adds the coefficients at the lags `at..at + LANES`, weighted with their kernel values, which it returns.
    ///
    /// # Safety
    /// There must be so many exponents and coefficients.
    #[inline(always)]
    unsafe fn lanes(&mut self, at: usize, constants: &V::Exp2) -> V {
        // SAFETY: the caller vouches for the lengths.
        unsafe {
            let k = V::load(self.exponent.add(at)).max(self.floor).exp2(constants);
            self.sum.0 = k.fma(V::load(self.coefficient[0].add(at)), self.sum.0);
            self.sum.1 = k.fma(V::load(self.coefficient[1].add(at)), self.sum.1);
            k
        }
    }
}

/// The squared distance from which on it is the same to the kernel how far away a centre is.
fn far<T: Real>(gamma: T) -> T {
    // Finite, so that the difference of two is a number.
    (T::FAR / gamma).min(T::max_value())
}

/// `x² + y²`, at most `far`.
#[inline(always)]
fn term<T, V: Vector<T>>((x, y): (V, V), far: V) -> V {
    x.fma(x, y.mul(y)).min(far)
}

/// The exponents of [`LagPass`] from the samples alone.
pub(crate) struct LagFill<'a, T> {
    /// Real and imaginary parts of the inputs; index 0 is the newest sample.
    pub(crate) input: [&'a [T]; 2],
    /// The samples in a window.
    pub(crate) taps: usize,
    /// The lag of the first exponent.
    pub(crate) first: usize,
    /// What a squared distance is multiplied by to become an exponent of 2.
    pub(crate) gamma: T,
    /// The exponent at distance zero, by lag.
    pub(crate) bias: &'a [T],
    /// Receives the exponents.
    pub(crate) exponent: &'a mut [T],
    /// The lags to fill, counted from the first; whole groups.
    pub(crate) lags: std::ops::Range<usize>,
}

impl<T: Real> Op<T> for LagFill<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let (end, [re, im]) = (self.lags.end, self.input);
        assert!(self.lags.start.is_multiple_of(GROUP) && end.is_multiple_of(GROUP), "whole groups of lags");
        assert!(end <= self.bias.len() && end <= self.exponent.len(), "one bias for each exponent");
        let reach = self.taps + self.first + end;
        assert!(re.len() >= reach && im.len() >= reach, "a history is too short");
        let (far, gamma) = (V::splat(far(self.gamma)), V::splat(self.gamma));
        let mut at = self.lags.start;
        while at < end {
            let mut distance = V::splat(T::zero());
            for l in 0..self.taps {
                // SAFETY: `l < taps` and `at + LANES <= end`; that there are `taps + first + end` values was checked above.
                distance = distance.add(unsafe {
                    let (re, im) = (re.as_ptr().add(l), im.as_ptr().add(l));
                    let then = self.first + at;
                    term((V::splat(*re).sub(V::load(re.add(then))), V::splat(*im).sub(V::load(im.add(then)))), far)
                });
            }
            // SAFETY: `at + LANES <= end`, which both have.
            unsafe { distance.fnma(gamma, V::load(self.bias.as_ptr().add(at))).store(self.exponent.as_mut_ptr().add(at)) };
            at += V::LANES;
        }
    }
}
