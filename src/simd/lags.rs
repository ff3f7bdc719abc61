//! The pass over the last windows of a stream, by lag.

use num_complex::Complex;

use super::{Op, Vector};
use crate::Real;

/// The most samples that one [`LagPass`] takes, and the number of lags whose kernel values it hands out for the correction between them.
pub(crate) const BLOCK: usize = 8;

/// Lags come in groups of this many: the most lanes that a vector has.
pub(crate) const GROUP: usize = 16;

/// How many samples go through the lags together: as many as leave their sums in registers.
const TOGETHER: usize = 2;

/// What one sample adds to the squared distances, by lag, for the last `taps` samples: a ring of rows.
pub(crate) struct Ring<'a, T> {
    /// The rows, one after the other.
    pub(crate) rows: &'a mut [T],
    /// How many rows there are: the samples in a window.
    pub(crate) taps: usize,
    /// Places in a row.
    pub(crate) stride: usize,
    /// The row of the oldest sample, which the next one overwrites.
    pub(crate) next: usize,
}

impl<T> Ring<'_, T> {
    /// The row that sample `s` of a pass overwrites.
    #[inline(always)]
    fn row(&self, s: usize) -> usize {
        (self.next + s) % self.taps * self.stride
    }

    fn check(&self, lags: usize) {
        assert!(
            lags <= self.stride && lags.is_multiple_of(GROUP) && self.rows.len() >= self.taps * self.stride && self.taps > 0,
            "a ring too small"
        );
    }
}

/// Rows of several consecutive samples of a stream against the windows at a range of lags, and their weighted sums.
///
/// For sample `i` and lag `m`, `D_i[m] = Σ_l e_{i−l}[m]` over the taps, with `e_i[m] = min(|u_i − u_{i−m}|², far)`, is carried from
/// `D_{i−1}[m]` by adding the term that enters the window and taking away the one that leaves it, which was kept: only the two additions
/// round. The kernel value is `2^(bias[m] − gamma D_i[m])`. Cutting a term off where the kernel has long vanished changes nothing and keeps one
/// wild sample from swamping the sum that it passes through.
///
/// The histories are newest first: index 0 is the last sample of the pass.
pub(crate) struct LagPass<'a, T> {
    /// Real parts of the inputs.
    pub(crate) re: &'a [T],
    /// Imaginary parts of the inputs.
    pub(crate) im: &'a [T],
    /// Real parts of the coefficients, zero where not yet known.
    pub(crate) a_re: &'a [T],
    /// Imaginary parts of the coefficients.
    pub(crate) a_im: &'a [T],
    /// The lag of the first distance.
    pub(crate) first: usize,
    /// The distances by lag, whole groups; carried through the pass.
    pub(crate) distance: &'a mut [T],
    /// Added to the exponent of each lag.
    pub(crate) bias: &'a [T],
    /// What a squared distance is multiplied by to become an exponent of 2.
    pub(crate) gamma: T,
    /// Lags at the start for which neither `far` nor the floor of exponents can be reached, so that nothing is cut off there: whole groups.
    pub(crate) calm: usize,
    /// The terms that make up the distances.
    pub(crate) ring: Ring<'a, T>,
    /// Receives the weighted sum of each sample, the oldest sample first.
    pub(crate) sums: &'a mut [Complex<T>],
    /// Receives the kernel values of each sample at the first lags, at least [`BLOCK`] of them.
    pub(crate) triangle: &'a mut [[T; GROUP]],
}

impl<T: Real> Op<T> for LagPass<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(mut self) {
        let (count, lags) = (self.sums.len(), self.distance.len());
        assert!(count <= BLOCK && self.triangle.len() >= count && self.bias.len() == lags);
        self.ring.check(lags);
        let reach = count + self.first + lags;
        assert!([self.re, self.im, self.a_re, self.a_im].iter().all(|plane| plane.len() >= reach), "a history is too short");
        if lags == 0 {
            self.sums.fill(Complex::new(T::zero(), T::zero()));
            return;
        }
        let constants = V::exp2_constants();
        let mut done = 0;
        while count - done >= TOGETHER {
            // SAFETY: the lengths were checked above.
            unsafe { self.some::<V, TOGETHER>(done, constants) };
            done += TOGETHER;
        }
        while done < count {
            // SAFETY: the lengths were checked above.
            unsafe { self.some::<V, 1>(done, constants) };
            done += 1;
        }
    }
}

impl<T: Real> LagPass<'_, T> {
    /// Samples `from..from + S`.
    ///
    /// # Safety
    /// What `run` asserts, at least one group of lags, and `from + S <= sums.len()`.
    #[inline(always)]
    unsafe fn some<V: Vector<T>, const S: usize>(&mut self, from: usize, constants: V::Exp2) {
        let lags = self.distance.len();
        let zero = V::splat(T::zero());
        let mut few = Few {
            planes: [self.re.as_ptr(), self.im.as_ptr(), self.a_re.as_ptr(), self.a_im.as_ptr()],
            distance: self.distance.as_mut_ptr(),
            bias: self.bias.as_ptr(),
            start: [0; S],
            newest: [(zero, zero); S],
            rows: [self.ring.rows.as_mut_ptr(); S],
            triangle: [self.triangle.as_mut_ptr().cast(); S],
            far: V::splat(T::FAR / self.gamma),
            floor: V::splat(T::FLOOR),
            gamma: V::splat(self.gamma),
            constants,
        };
        for s in 0..S {
            let i = self.sums.len() - 1 - from - s;
            few.start[s] = i + self.first;
            few.newest[s] = (V::splat(self.re[i]), V::splat(self.im[i]));
            // SAFETY: `row` is the start of one of the ring's rows, all of which lie within it.
            few.rows[s] = unsafe { few.rows[s].add(self.ring.row(from + s)) };
            few.triangle[s] = self.triangle[from + s].as_mut_ptr();
        }
        let mut sums = [(zero, zero); S];
        let mut at = 0;
        // While one vector of lags waits for its exponentials, the distances of the next one are computed. The first few lags are peeled off,
        // as their kernel values are also handed out.
        // SAFETY: `at + LANES <= lags`, and the planes are long enough for all lags.
        unsafe {
            let mut current = few.exponents::<true>(0);
            while at < BLOCK && at + V::LANES < lags {
                let next = few.exponents::<true>(at + V::LANES);
                few.weigh::<true>(at, current, &mut sums);
                current = next;
                at += V::LANES;
            }
            while at + V::LANES < self.calm.min(lags) {
                let next = few.exponents::<false>(at + V::LANES);
                few.weigh::<false>(at, current, &mut sums);
                current = next;
                at += V::LANES;
            }
            while at + V::LANES < lags {
                let next = few.exponents::<true>(at + V::LANES);
                few.weigh::<false>(at, current, &mut sums);
                current = next;
                at += V::LANES;
            }
            few.weigh::<true>(at, current, &mut sums);
        }
        for (total, sum) in self.sums[from..].iter_mut().zip(sums) {
            *total = Complex::new(sum.0.sum(), sum.1.sum());
        }
    }
}

/// A few samples of a [`LagPass`] on their way through the lags.
struct Few<T, V: Vector<T>, const S: usize> {
    /// Inputs and coefficients.
    planes: [*const T; 4],
    distance: *mut T,
    bias: *const T,
    /// Where the first lag of each sample lies in the planes.
    start: [usize; S],
    newest: [(V, V); S],
    rows: [*mut T; S],
    triangle: [*mut T; S],
    far: V,
    floor: V,
    gamma: V,
    constants: V::Exp2,
}

impl<T: Copy, V: Vector<T>, const S: usize> Few<T, V, S> {
    /// Carries the distances at `at..` through the samples and returns the exponents of their kernel values, with what is too far cut off where `CUT`.
    ///
    /// # Safety
    /// `at + LANES` must be at most the length of `distance`, `bias` and the ring's rows, and each sample's `start + at + LANES` at most that of
    /// the planes.
    #[inline(always)]
    unsafe fn exponents<const CUT: bool>(&self, at: usize) -> [V; S] {
        // SAFETY: the caller vouches for all lengths.
        unsafe {
            let mut d = V::load(self.distance.add(at));
            let bias = V::load(self.bias.add(at));
            let mut exponents = [bias; S];
            #[allow(clippy::needless_range_loop)] // four arrays side by side
            for s in 0..S {
                let i = self.start[s] + at;
                // This way round the loads are operands of the subtractions, and no instructions of their own.
                let x = self.newest[s].0.sub(V::load(self.planes[0].add(i)));
                let y = self.newest[s].1.sub(V::load(self.planes[1].add(i)));
                let mut enters = x.fma(x, y.mul(y));
                if CUT {
                    enters = enters.min(self.far);
                }
                d = d.add(enters.sub(V::load(self.rows[s].add(at))));
                enters.store(self.rows[s].add(at));
                exponents[s] = d.fnma(self.gamma, bias);
                if CUT {
                    exponents[s] = exponents[s].max(self.floor);
                }
            }
            d.store(self.distance.add(at));
            exponents
        }
    }

    /// Adds the coefficients at `at..`, weighted with the kernel values that belong to `exponents`; hands those of the first lags out where `FIRST`.
    ///
    /// # Safety
    /// As for [`exponents`](Self::exponents).
    #[inline(always)]
    unsafe fn weigh<const FIRST: bool>(&self, at: usize, exponents: [V; S], sums: &mut [(V, V); S]) {
        for s in 0..S {
            let k = exponents[s].exp2(&self.constants);
            let i = self.start[s] + at;
            // SAFETY: the caller vouches for the planes. A multiple of LANES below 8 is at most 16 − LANES, so the kernel values end
            // within the 16 places of their array.
            unsafe {
                sums[s].0 = k.fma(V::load(self.planes[2].add(i)), sums[s].0);
                sums[s].1 = k.fma(V::load(self.planes[3].add(i)), sums[s].1);
                if FIRST && at < BLOCK {
                    k.store(self.triangle[s].add(at));
                }
            }
        }
    }
}

/// The distances of [`LagPass`] from the terms that make them up: exact but for the rounding of one sum.
pub(crate) struct LagRefresh<'a, T> {
    /// The distances of all lags.
    pub(crate) distance: &'a mut [T],
    /// The terms.
    pub(crate) ring: Ring<'a, T>,
    /// The lags to refresh, counted from the first; whole groups.
    pub(crate) lags: std::ops::Range<usize>,
}

impl<T: Real> Op<T> for LagRefresh<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        self.ring.check(self.lags.end);
        assert!(self.lags.end <= self.distance.len() && self.lags.start.is_multiple_of(GROUP));
        for at in self.lags.step_by(V::LANES) {
            let mut sum = V::splat(T::zero());
            for row in 0..self.ring.taps {
                // SAFETY: `at + LANES` is at most the length of a row, and the ring holds all rows.
                sum = sum.add(unsafe { V::load(self.ring.rows.as_ptr().add(row * self.ring.stride + at)) });
            }
            // SAFETY: `at + LANES <= distance.len()`.
            unsafe { sum.store(self.distance.as_mut_ptr().add(at)) };
        }
    }
}

/// Fills the terms and distances of some lags from the history alone.
pub(crate) struct LagFill<'a, T> {
    /// Real parts of the inputs; index 0 is the newest sample.
    pub(crate) re: &'a [T],
    /// Imaginary parts of the inputs.
    pub(crate) im: &'a [T],
    /// The lag of the first distance.
    pub(crate) first: usize,
    /// What a squared distance is multiplied by to become an exponent of 2.
    pub(crate) gamma: T,
    /// As in [`LagRefresh`].
    pub(crate) refresh: LagRefresh<'a, T>,
}

impl<T: Real> Op<T> for LagFill<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(mut self) {
        let LagRefresh { ring, lags, .. } = &mut self.refresh;
        ring.check(lags.end);
        let reach = ring.taps + self.first + lags.end;
        assert!(self.re.len() >= reach && self.im.len() >= reach && lags.start % GROUP == 0, "a history is too short");
        let far = V::splat(T::FAR / self.gamma);
        for l in 0..ring.taps {
            // The newest sample's row is the one before the oldest's.
            let row = ring.row(ring.taps - 1 - l);
            let (re, im) = (V::splat(self.re[l]), V::splat(self.im[l]));
            for at in lags.clone().step_by(V::LANES) {
                // SAFETY: the read begins at `l + first + at`, ends within the length checked above; the store ends within the row.
                unsafe {
                    let (x, y) = (V::load(self.re.as_ptr().add(l + self.first + at)), V::load(self.im.as_ptr().add(l + self.first + at)));
                    let (x, y) = (x.sub(re), y.sub(im));
                    x.fma(x, y.mul(y)).min(far).store(ring.rows.as_mut_ptr().add(row + at));
                }
            }
        }
        self.refresh.run::<V>();
    }
}
