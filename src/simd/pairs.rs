//! The pass over the last windows of a stream for a kernel that is a sum over taps, by lag.

use num_complex::Complex;

use super::{BLOCK, GROUP, Op, Vector};
use crate::Real;

/// What is known of the last samples, in planes, newest first: index 0 is the last sample.
#[derive(Clone, Copy)]
pub(crate) struct Samples<'a, T> {
    /// The inputs `u_i`, real and imaginary parts.
    pub(crate) input: [&'a [T]; 2],
    /// `sqrt(gamma) |u_i|`, where `exp2(−d²)` of the difference `d` of two is their similarity.
    pub(crate) envelope: &'a [T],
    /// The coefficients, zero where not yet known.
    pub(crate) coefficient: [&'a [T]; 2],
}

impl<T: Real> Samples<'_, T> {
    fn shortest(&self) -> usize {
        let planes = [self.input[0], self.input[1], self.envelope, self.coefficient[0], self.coefficient[1]];
        planes.iter().map(|plane| plane.len()).min().unwrap_or(0)
    }

    /// `conj(u_{i−m}) u_i exp2(−(e_i − e_{i−m})²)` of the sample at `i` against those at `then..`: what the sample adds to the rows of all windows that hold it.
    ///
    /// # Safety
    /// There must be more than `i` and at least `then + LANES` samples.
    #[inline(always)]
    unsafe fn term<V: Vector<T>>(&self, i: usize, then: usize, constants: &V::Exp2) -> (V, V) {
        let [re, im] = [self.input[0].as_ptr(), self.input[1].as_ptr()];
        let envelope = self.envelope.as_ptr();
        // SAFETY: the caller vouches for the lengths.
        unsafe {
            let (x, c) = ((V::splat(*re.add(i)), V::splat(*im.add(i))), (V::load(re.add(then)), V::load(im.add(then))));
            let apart = V::splat(*envelope.add(i)).sub(V::load(envelope.add(then)));
            let k = apart.fnma(apart, V::splat(T::zero())).max(V::splat(T::FLOOR)).exp2(constants);
            (c.0.fma(x.0, c.1.mul(x.1)).mul(k), c.1.fnma(x.0, c.0.mul(x.1)).mul(k))
        }
    }
}

/// The terms of the last windows, by group of lags.
///
/// The sum over a window of `L` samples is taken without ever subtracting: samples are counted in runs of `L`, and a window is the end of one run and the
/// beginning of the next. Of the run before, the sums from each place to its end are kept; of this run, the sum so far. So one addition makes a row, a run's end
/// costs one more for each place, and nothing that has left the window leaves a trace: neither a rounding nor a wild sample.
pub(crate) struct Terms<'a, T> {
    /// For each group: `taps` complex rows (before place `phase` the terms of this run, from there on the sums to the end of the run before),
    /// a row of zeros, and the sum of this run so far.
    pub(crate) rows: &'a mut [T],
    /// The samples in a window.
    pub(crate) taps: usize,
    /// The lag of the first group's first lane.
    pub(crate) first: usize,
    /// The place of the next sample in its run.
    pub(crate) phase: usize,
}

/// One complex number for each lag of a group.
const ROW: usize = 2 * GROUP;

impl<T: Real> Terms<'_, T> {
    /// How many numbers a group takes.
    pub(crate) fn stride(taps: usize) -> usize {
        (taps + 2) * ROW
    }

    /// The row at `place` of the lanes `lane..` of a group.
    ///
    /// # Safety
    /// `rows` must have the group.
    #[inline(always)]
    unsafe fn row(&mut self, group: usize, lane: usize, place: usize) -> *mut T {
        // SAFETY: the caller vouches for the group; a place is at most `taps + 1`.
        unsafe { self.rows.as_mut_ptr().add(group * Self::stride(self.taps) + place * ROW + lane) }
    }

    /// Ends a run: turns the terms of all places but the first, which no window needs, into sums from there to the end.
    ///
    /// # Safety
    /// As for [`row`](Self::row).
    #[inline(always)]
    unsafe fn end<V: Vector<T>>(&mut self, group: usize, lane: usize, from: usize) {
        // SAFETY: the caller vouches for the group.
        unsafe {
            let mut place = self.taps - 1;
            let mut sum = load::<T, V>(self.row(group, lane, place));
            while place > from {
                place -= 1;
                let row = self.row(group, lane, place);
                sum = add(sum, load(row));
                store(sum, row);
            }
        }
    }
}

/// Rows of several consecutive samples of a stream against the windows at a range of lags, and their weighted sums.
pub(crate) struct PairPass<'a, T> {
    /// The samples.
    pub(crate) samples: Samples<'a, T>,
    /// The terms, carried through the pass, of the groups in use.
    pub(crate) terms: Terms<'a, T>,
    /// Which lags of the last group count (1) and which do not (0); all of those of the groups before it do.
    pub(crate) mask: &'a [T; GROUP],
    /// Receives the weighted sum of each sample, the oldest sample first.
    pub(crate) sums: &'a mut [Complex<T>],
    /// Receives the kernel values of each sample at the first lags.
    pub(crate) triangle: &'a mut [[Complex<T>; GROUP]; BLOCK],
}

impl<T: Real> Op<T> for PairPass<'_, T> {
    type Output = usize;

    /// Returns the phase after the last sample.
    #[inline(always)]
    fn run<V: Vector<T>>(mut self) -> usize {
        let (count, stride) = (self.sums.len(), Terms::<T>::stride(self.terms.taps));
        assert!(count <= BLOCK && self.terms.rows.len().is_multiple_of(stride), "whole groups of lags, at most a block of samples");
        assert!(self.terms.phase < self.terms.taps, "a place in the run");
        let groups = self.terms.rows.len() / stride;
        assert!(self.samples.shortest() >= count + self.terms.first + groups * GROUP, "a history is too short");
        self.sums.fill(Complex::new(T::zero(), T::zero()));
        let constants = V::exp2_constants();
        let mut done = 0;
        while done < count {
            // As many samples together as lie within the run: each group of lags is then visited once for all of them.
            let most = (count - done).min(self.terms.taps - self.terms.phase);
            // SAFETY: the lengths were checked above, and so many samples are left.
            done += unsafe {
                match most {
                    8.. => self.samples_of::<V, 8>(done, groups, &constants),
                    4.. => self.samples_of::<V, 4>(done, groups, &constants),
                    2.. => self.samples_of::<V, 2>(done, groups, &constants),
                    _ => self.samples_of::<V, 1>(done, groups, &constants),
                }
            };
        }
        self.terms.phase
    }
}

impl<T: Real> PairPass<'_, T> {
    /// The samples `from..from + N` of one run; returns `N`.
    ///
    /// # Safety
    /// What `run` asserts, with so many samples left in the pass and in the run.
    #[inline(always)]
    unsafe fn samples_of<V: Vector<T>, const N: usize>(&mut self, from: usize, groups: usize, constants: &V::Exp2) -> usize {
        let mut sums = [(V::splat(T::zero()), V::splat(T::zero())); N];
        let mut group = 0;
        while group < groups {
            let mut lane = 0;
            while lane < GROUP {
                // SAFETY: the caller vouches for the group, and lanes end with it, as the number of lanes divides its size.
                unsafe {
                    if group + 1 < groups {
                        self.lanes::<V, N, false>(from, group, lane, &mut sums, constants);
                    } else {
                        self.lanes::<V, N, true>(from, group, lane, &mut sums, constants);
                    }
                }
                lane += V::LANES;
            }
            group += 1;
        }
        let mut n = 0;
        while n < N {
            self.sums[from + n] = Complex::new(sums[n].0.sum(), sums[n].1.sum());
            n += 1;
        }
        self.terms.phase = (self.terms.phase + N) % self.terms.taps;
        N
    }

    /// Some lanes of a group.
    ///
    /// # Safety
    /// As for [`samples_of`](Self::samples_of).
    #[inline(always)]
    unsafe fn lanes<V: Vector<T>, const N: usize, const MASK: bool>(
        &mut self,
        from: usize,
        group: usize,
        lane: usize,
        sums: &mut [(V, V); N],
        constants: &V::Exp2,
    ) {
        let (samples, taps, phase) = (self.samples, self.terms.taps, self.terms.phase);
        let [a_re, a_im] = [samples.coefficient[0].as_ptr(), samples.coefficient[1].as_ptr()];
        // SAFETY: the caller vouches for the group and the samples.
        unsafe {
            let carry = self.terms.row(group, lane, taps + 1);
            let mut so_far = if phase == 0 { (V::splat(T::zero()), V::splat(T::zero())) } else { load(carry) };
            let mut row = self.terms.row(group, lane, phase);
            let mut n = 0;
            while n < N {
                let newest = self.sums.len() - 1 - from - n;
                let then = newest + self.terms.first + group * GROUP + lane;
                let term = samples.term::<V>(newest, then, constants);
                store(term, row);
                row = row.add(ROW);
                so_far = add(so_far, term);
                let mut k = add(so_far, load(row));
                if MASK {
                    let mask = V::load(self.mask.as_ptr().add(lane));
                    k = (k.0.mul(mask), k.1.mul(mask));
                }
                if group == 0 {
                    self.hand_out(k, from + n, lane);
                }
                let a = (V::load(a_re.add(then)), V::load(a_im.add(then)));
                sums[n].0 = a.1.fnma(k.1, a.0.fma(k.0, sums[n].0));
                sums[n].1 = a.1.fma(k.0, a.0.fma(k.1, sums[n].1));
                n += 1;
            }
            if phase + N == taps {
                self.terms.end::<V>(group, lane, 1);
            } else {
                store(so_far, carry);
            }
        }
    }

    /// Kernel values at the first lags.
    #[inline(always)]
    fn hand_out<V: Vector<T>>(&mut self, k: (V, V), sample: usize, lane: usize) {
        let (mut re, mut im) = ([T::zero(); GROUP], [T::zero(); GROUP]);
        // SAFETY: both arrays have 16 places, the most that a vector has lanes.
        unsafe {
            k.0.store(re.as_mut_ptr());
            k.1.store(im.as_mut_ptr());
        }
        let mut i = 0;
        while i < V::LANES && lane + i < GROUP {
            self.triangle[sample][lane + i] = Complex::new(re[i], im[i]);
            i += 1;
        }
    }
}

/// The terms of [`PairPass`] from the samples alone, bit for bit as if it had come by them.
pub(crate) struct PairFill<'a, T> {
    /// The samples.
    pub(crate) samples: Samples<'a, T>,
    /// The terms; those of `groups` are filled.
    pub(crate) terms: Terms<'a, T>,
    /// The groups to fill.
    pub(crate) groups: std::ops::Range<usize>,
}

impl<T: Real> Op<T> for PairFill<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(mut self) {
        let Terms { taps, first, phase, .. } = self.terms;
        let end = self.groups.end;
        assert!(self.terms.rows.len() >= end * Terms::<T>::stride(taps) && phase < taps, "rows for each group, a place in the run");
        assert!(self.samples.shortest() >= taps + first + end * GROUP, "a history is too short");
        let constants = V::exp2_constants();
        let mut group = self.groups.start;
        while group < end {
            let mut lane = 0;
            while lane < GROUP {
                let mut so_far = (V::splat(T::zero()), V::splat(T::zero()));
                let mut place = 0;
                while place < taps {
                    let newest = (phase + taps - 1 - place) % taps;
                    // SAFETY: the lengths were checked above.
                    unsafe {
                        let term = self.samples.term::<V>(newest, newest + first + group * GROUP + lane, &constants);
                        store(term, self.terms.row(group, lane, place));
                        if place < phase {
                            so_far = add(so_far, term);
                        }
                    }
                    place += 1;
                }
                // SAFETY: as above. What is behind the phase belongs to the run before.
                unsafe {
                    self.terms.end::<V>(group, lane, phase.max(1));
                    store(so_far, self.terms.row(group, lane, taps + 1));
                }
                lane += V::LANES;
            }
            group += 1;
        }
    }
}

#[inline(always)]
fn add<T, V: Vector<T>>(a: (V, V), b: (V, V)) -> (V, V) {
    (a.0.add(b.0), a.1.add(b.1))
}

/// A complex row's lanes.
///
/// # Safety
/// `from` must be valid for reading the lanes of both parts, which are a group apart.
#[inline(always)]
unsafe fn load<T, V: Vector<T>>(from: *const T) -> (V, V) {
    // SAFETY: the caller vouches for the memory.
    unsafe { (V::load(from), V::load(from.add(GROUP))) }
}

/// Writes a complex row's lanes.
///
/// # Safety
/// As for [`load`], for writing.
#[inline(always)]
unsafe fn store<T, V: Vector<T>>(v: (V, V), to: *mut T) {
    // SAFETY: the caller vouches for the memory.
    unsafe {
        v.0.store(to);
        v.1.store(to.add(GROUP));
    }
}
