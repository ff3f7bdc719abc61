//! The pass over the last windows of a stream for a kernel that is a sum over taps, by lag.

use std::mem::MaybeUninit;

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

    /// The sample at `i`, in every lane.
    ///
    /// # Safety
    /// There must be more than `i` samples.
    #[inline(always)]
    unsafe fn sample<V: Vector<T>>(&self, i: usize) -> Sample<V> {
        // SAFETY: the caller vouches for the lengths.
        unsafe {
            let input = (V::splat(*self.input[0].as_ptr().add(i)), V::splat(*self.input[1].as_ptr().add(i)));
            Sample { input, envelope: V::splat(*self.envelope.as_ptr().add(i)) }
        }
    }

    /// `conj(u_{i−m}) u_i exp2(−(e_i − e_{i−m})²)` of the sample `i` against those at `then..`: what the sample adds to the rows of all windows that hold it.
    ///
    /// # Safety
    /// There must be at least `then + LANES` samples.
    #[inline(always)]
    unsafe fn term<V: Vector<T>>(&self, i: Sample<V>, then: usize, constants: &V::Exp2) -> (V, V) {
        // SAFETY: the caller vouches for the lengths.
        let (c, envelope) = unsafe {
            let [re, im] = [self.input[0].as_ptr(), self.input[1].as_ptr()];
            ((V::load(re.add(then)), V::load(im.add(then))), V::load(self.envelope.as_ptr().add(then)))
        };
        let (x, apart) = (i.input, i.envelope.sub(envelope));
        let k = apart.fnma(apart, V::splat(T::zero())).max(V::splat(T::FLOOR)).exp2(constants);
        (c.0.fma(x.0, c.1.mul(x.1)).mul(k), c.1.fnma(x.0, c.0.mul(x.1)).mul(k))
    }
}

/// One sample in every lane.
#[derive(Clone, Copy)]
struct Sample<V> {
    input: (V, V),
    envelope: V,
}

/// The terms of the last windows, by group of lags.
///
/// The sum over a window of `L` samples is taken without ever subtracting: samples are counted in runs of `L`, and a window is the end of one run and the
/// beginning of the next. Of the run before, the sums from each place to its end are kept; of this run, the sum so far. So one addition makes a row, a run's end
/// costs one more for each place, and nothing that has left the window leaves a trace: neither a rounding nor a wild sample.
pub(crate) struct Terms<'a, T> {
    /// For each group `taps` complex rows. That at place 0, which no window needs from the run before, is the sum of this run so far. Of the others, those before
    /// place `phase` are the terms of this run, and from there on they are the sums to the end of the run before.
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
        taps * ROW
    }

    /// The row at place 0 of the lanes that begin with that lag, counted from the first.
    ///
    /// # Safety
    /// `rows` must have its group.
    #[inline(always)]
    unsafe fn row(&mut self, lag: usize) -> *mut T {
        // SAFETY: the caller vouches for the group.
        unsafe { self.rows.as_mut_ptr().add(lag / GROUP * Self::stride(self.taps) + lag % GROUP) }
    }
}

/// Turns the terms of the places `from..to` into sums to the end of the run, of which `sum` lies behind them.
///
/// # Safety
/// There must be so many places at `row`, that at place 0.
#[inline(always)]
unsafe fn add_up<T, V: Vector<T>>(mut sum: (V, V), row: *mut T, from: usize, to: usize) {
    let mut place = to;
    while place > from {
        place -= 1;
        // SAFETY: the caller vouches for the places.
        unsafe {
            sum = add(sum, load::<T, V, GROUP>(row.add(place * ROW)));
            store::<T, V, GROUP>(sum, row.add(place * ROW));
        }
    }
}

/// Lags whose terms are computed before they are summed: each of the two loops then keeps what it needs in registers, and what the first one stores is
/// still at hand for the second.
const STRIP: usize = 128;

/// One complex number for each lag of a strip.
const SAMPLE: usize = 2 * STRIP;

/// The terms of a block's samples at a strip of lags.
#[repr(align(64))]
struct Strip<T>([[T; SAMPLE]; BLOCK]);

/// The kernel values of a sample at the first lags, real and imaginary parts.
pub(crate) type PairRow<T> = [[T; GROUP]; 2];

/// Rows of several consecutive samples of a stream against the windows at a range of lags, and their weighted sums.
pub(crate) struct PairPass<'a, T> {
    /// The samples.
    pub(crate) samples: Samples<'a, T>,
    /// The terms, carried through the pass.
    pub(crate) terms: Terms<'a, T>,
    /// The lags in use.
    pub(crate) lags: usize,
    /// Receives the weighted sum of each sample, the oldest sample first.
    pub(crate) sums: &'a mut [Complex<T>],
    /// Receives the kernel values of each sample.
    pub(crate) triangle: &'a mut [PairRow<T>; BLOCK],
}

impl<T: Real> Op<T> for PairPass<'_, T> {
    type Output = usize;

    /// Returns the phase after the last sample.
    #[inline(always)]
    fn run<V: Vector<T>>(mut self) -> usize {
        let (count, taps, lags) = (self.sums.len(), self.terms.taps, self.lags);
        assert!(count <= BLOCK && self.terms.phase < taps, "at most a block of samples, a place in the run");
        assert!(self.terms.rows.len() >= lags.div_ceil(GROUP) * Terms::<T>::stride(taps), "rows for each lag");
        assert!(self.samples.shortest() >= count + self.terms.first + lags.next_multiple_of(GROUP), "a history is too short");
        let (constants, last) = (V::exp2_constants(), last_lanes::<T, V>(lags));
        let zero = (V::splat(T::zero()), V::splat(T::zero()));
        let mut sums = [zero; BLOCK];
        let mut fresh = MaybeUninit::<Strip<T>>::uninit();
        let fresh = fresh.as_mut_ptr().cast::<T>();
        let begin = self.terms.phase;
        let mut lag = 0;
        while lag < lags {
            let end = lags.min(lag + STRIP);
            let mut s = 0;
            while s < count {
                // SAFETY: the lengths were checked above; a strip has as many lags, and a block as many samples.
                unsafe { self.terms_of::<V>(s, lag, end, last, fresh.add(s * SAMPLE), &constants) };
                s += 1;
            }
            (s, self.terms.phase) = (0, begin);
            while s < count {
                // As many samples together as lie within the run and have room in registers: what is carried at a lag is then visited once for all of them.
                let left = taps - self.terms.phase;
                // SAFETY: as above, so many samples are left, and their terms have been computed.
                s += unsafe {
                    match (count - s).min(left) {
                        4.. if left == 4 => self.samples_of::<V, 4, true>(s, lag, end, fresh, &mut sums),
                        4.. => self.samples_of::<V, 4, false>(s, lag, end, fresh, &mut sums),
                        2.. if left == 2 => self.samples_of::<V, 2, true>(s, lag, end, fresh, &mut sums),
                        2.. => self.samples_of::<V, 2, false>(s, lag, end, fresh, &mut sums),
                        _ if left == 1 => self.samples_of::<V, 1, true>(s, lag, end, fresh, &mut sums),
                        _ => self.samples_of::<V, 1, false>(s, lag, end, fresh, &mut sums),
                    }
                };
            }
            lag = end;
        }
        let mut s = 0;
        while s < count {
            // Always in pairs, as the sums of four vectors are rounded in another order than that of one.
            let [re, im, next_re, next_im] = V::sums([sums[s].0, sums[s].1, sums[s + 1].0, sums[s + 1].1]);
            self.sums[s] = Complex::new(re, im);
            if s + 1 < count {
                self.sums[s + 1] = Complex::new(next_re, next_im);
            }
            s += 2;
        }
        (begin + count) % taps
    }
}

impl<T: Real> PairPass<'_, T> {
    /// The terms of sample `s` at the lags `from..to`, of which a vector that is not full has the lanes `last`.
    ///
    /// # Safety
    /// What `run` asserts, and that there is room for so many lags.
    #[inline(always)]
    unsafe fn terms_of<V: Vector<T>>(&self, s: usize, from: usize, to: usize, last: V, fresh: *mut T, constants: &V::Exp2) {
        let (samples, newest) = (self.samples, self.sums.len() - 1 - s);
        let then = newest + self.terms.first + from;
        // SAFETY: the caller vouches for the samples and the room.
        unsafe {
            let sample = samples.sample::<V>(newest);
            let (mut at, whole) = (0, (to - from) / V::LANES * V::LANES);
            while at < whole {
                store::<T, V, STRIP>(samples.term(sample, then + at, constants), fresh.add(at));
                at += V::LANES;
            }
            if from + at < to {
                store::<T, V, STRIP>(only(last, samples.term(sample, then + at, constants)), fresh.add(at));
            }
        }
    }

    /// The samples `s..s + N` of one run, which they `END` or not, at the lags `from..to`; returns `N`.
    ///
    /// # Safety
    /// What `run` asserts, with so many samples left in the pass and in the run, and their terms in `fresh`.
    #[inline(always)]
    unsafe fn samples_of<V: Vector<T>, const N: usize, const END: bool>(
        &mut self,
        s: usize,
        from: usize,
        to: usize,
        fresh: *const T,
        sums: &mut [(V, V); BLOCK],
    ) -> usize {
        let mut these = [sums[s]; N];
        let mut n = 1;
        while n < N {
            these[n] = sums[s + n];
            n += 1;
        }
        let mut lag = from;
        // SAFETY: the caller vouches for the samples and the lags; the number of lanes divides that of a group.
        unsafe {
            let fresh = fresh.add(s * SAMPLE);
            while lag < to.min(BLOCK) {
                self.lanes::<V, N, END, true>(s, lag, fresh.add(lag - from), &mut these);
                lag += V::LANES;
            }
            while lag < to {
                self.lanes::<V, N, END, false>(s, lag, fresh.add(lag - from), &mut these);
                lag += V::LANES;
            }
            // A run that begins here as well has no samples before these, and leaves the sum so far as it was. A loop of its own, as
            // a branch in the other one would cost it the registers.
            if END && self.terms.phase > 0 {
                lag = from;
                while lag < to {
                    self.end::<V>(lag, fresh.add(lag - from));
                    lag += V::LANES;
                }
            }
        }
        n = 0;
        while n < N {
            sums[s + n] = these[n];
            n += 1;
        }
        self.terms.phase = if END { 0 } else { self.terms.phase + N };
        N
    }

    /// The samples `s..s + N` at the lags of one vector, whose kernel values are handed out where they are the `FIRST`.
    ///
    /// # Safety
    /// As for [`samples_of`](Self::samples_of).
    #[inline(always)]
    unsafe fn lanes<V: Vector<T>, const N: usize, const END: bool, const FIRST: bool>(
        &mut self,
        s: usize,
        lag: usize,
        fresh: *const T,
        sums: &mut [(V, V); N],
    ) {
        let phase = self.terms.phase;
        let then = self.sums.len() - 1 - s + self.terms.first + lag;
        // SAFETY: the caller vouches for the samples and the lags.
        unsafe {
            let [re, im] = [self.samples.coefficient[0].as_ptr().add(then), self.samples.coefficient[1].as_ptr().add(then)];
            let rows = self.terms.row(lag);
            let row = rows.add(phase * ROW);
            let mut so_far = load::<T, V, GROUP>(rows);
            let mut n = 0;
            while n < N {
                so_far = add(so_far, load::<T, V, STRIP>(fresh.add(n * SAMPLE)));
                // The last window of a run holds nothing of the run before.
                let k = if END && n + 1 == N { so_far } else { add(so_far, load::<T, V, GROUP>(row.add((n + 1) * ROW))) };
                if FIRST {
                    let [re, im] = &mut self.triangle[s + n];
                    k.0.write(re, lag);
                    k.1.write(im, lag);
                }
                let a = (V::load(re.sub(n)), V::load(im.sub(n)));
                sums[n].0 = a.1.fnma(k.1, a.0.fma(k.0, sums[n].0));
                sums[n].1 = a.1.fma(k.0, a.0.fma(k.1, sums[n].1));
                n += 1;
            }
            if END {
                n = N - 1;
                let mut sum = load::<T, V, STRIP>(fresh.add(n * SAMPLE));
                while n > 0 {
                    store::<T, V, GROUP>(sum, row.add(n * ROW));
                    n -= 1;
                    sum = add(sum, load::<T, V, STRIP>(fresh.add(n * SAMPLE)));
                }
            } else {
                n = 0;
                while n < N {
                    store::<T, V, GROUP>(load::<T, V, STRIP>(fresh.add(n * SAMPLE)), row.add(n * ROW));
                    n += 1;
                }
                store::<T, V, GROUP>(so_far, rows);
            }
        }
    }

    /// Ends the run of the sample `s`, behind which all has been summed but the sample itself and those before it.
    ///
    /// # Safety
    /// As for [`samples_of`](Self::samples_of).
    #[inline(always)]
    unsafe fn end<V: Vector<T>>(&mut self, lag: usize, fresh: *const T) {
        let (taps, phase) = (self.terms.taps, self.terms.phase);
        let zero = (V::splat(T::zero()), V::splat(T::zero()));
        // SAFETY: the caller vouches for the samples and the lags.
        unsafe {
            let rows = self.terms.row(lag);
            let row = rows.add(phase * ROW);
            let behind = if phase + 1 < taps { load::<T, V, GROUP>(row.add(ROW)) } else { zero };
            store::<T, V, GROUP>(load::<T, V, STRIP>(fresh), row);
            add_up(behind, rows, 1, phase + 1);
            store::<T, V, GROUP>(zero, rows);
        }
    }
}

/// Which lanes of the last vector of so many lags there are.
#[inline(always)]
fn last_lanes<T: Real, V: Vector<T>>(lags: usize) -> V {
    let mut exist = [T::one(); GROUP];
    let mut lane = lags % V::LANES;
    while lane > 0 && lane < V::LANES {
        exist[lane] = T::zero();
        lane += 1;
    }
    V::read(&exist, 0)
}

/// The terms in those lanes, and zeros.
#[inline(always)]
fn only<T: Real, V: Vector<T>>(lanes: V, term: (V, V)) -> (V, V) {
    let zero = V::splat(T::zero());
    (zero.select_less(lanes, term.0, zero), zero.select_less(lanes, term.1, zero))
}

/// The terms of [`PairPass`] from the samples alone, bit for bit as if it had come by them.
pub(crate) struct PairFill<'a, T> {
    /// The samples.
    pub(crate) samples: Samples<'a, T>,
    /// The terms; those of `lags` are filled.
    pub(crate) terms: Terms<'a, T>,
    /// The lags to fill, counted from the first; they begin with a group.
    pub(crate) lags: std::ops::Range<usize>,
}

impl<T: Real> Op<T> for PairFill<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(mut self) {
        let Terms { taps, first, phase, .. } = self.terms;
        let (mut lag, end) = (self.lags.start, self.lags.end);
        assert!(lag.is_multiple_of(GROUP) && phase < taps, "whole groups, a place in the run");
        assert!(self.terms.rows.len() >= end.div_ceil(GROUP) * Terms::<T>::stride(taps), "rows for each lag");
        assert!(self.samples.shortest() >= taps + first + end.next_multiple_of(GROUP), "a history is too short");
        let (constants, last) = (V::exp2_constants(), last_lanes::<T, V>(end));
        while lag < end {
            let zero = (V::splat(T::zero()), V::splat(T::zero()));
            let mut so_far = zero;
            let mut place = 0;
            // SAFETY: the lengths were checked above.
            unsafe {
                let row = self.terms.row(lag);
                while place < taps {
                    let newest = (phase + taps - 1 - place) % taps;
                    let term = self.samples.term(self.samples.sample::<V>(newest), newest + first + lag, &constants);
                    let term = if end - lag < V::LANES { only(last, term) } else { term };
                    store::<T, V, GROUP>(term, row.add(place * ROW));
                    if place < phase {
                        so_far = add(so_far, term);
                    }
                    place += 1;
                }
                // What is behind the phase belongs to the run before.
                add_up(zero, row, phase.max(1), taps);
                store::<T, V, GROUP>(so_far, row);
            }
            lag += V::LANES;
        }
    }
}

#[inline(always)]
fn add<T, V: Vector<T>>(a: (V, V), b: (V, V)) -> (V, V) {
    (a.0.add(b.0), a.1.add(b.1))
}

/// Complex lanes.
///
/// # Safety
/// `from` must be valid for reading the lanes of both parts, which are so far `APART`.
#[inline(always)]
unsafe fn load<T, V: Vector<T>, const APART: usize>(from: *const T) -> (V, V) {
    // SAFETY: the caller vouches for the memory.
    unsafe { (V::load(from), V::load(from.add(APART))) }
}

/// Writes complex lanes.
///
/// # Safety
/// As for [`load`], for writing.
#[inline(always)]
unsafe fn store<T, V: Vector<T>, const APART: usize>(v: (V, V), to: *mut T) {
    // SAFETY: the caller vouches for the memory.
    unsafe {
        v.0.store(to);
        v.1.store(to.add(APART));
    }
}
