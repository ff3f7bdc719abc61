//! What a stream's filter needs of the windows at a range of lags.

use num_complex::Complex;

use super::planes::Planes;
use crate::Real;
use crate::simd::BLOCK;

/// What is known of each sample of a block at the first lags.
pub(super) type Triangle<R> = [R; BLOCK];

/// The windows that lie some range of samples back, with their coefficients, under one kernel.
///
/// Samples come in blocks of [`BLOCK`], counted from the last [`fill`](Self::fill) or [`clear`](Self::clear). Everything that is not done for
/// each sample alike is done where a block begins, so results do not depend on how the samples are cut into calls.
pub(super) trait Lags<T: Real>: Clone + Send + 'static {
    /// The kernel values of a sample at the first lags.
    type Row: Copy + Default;

    /// Lags `first..=last` of windows of `taps` samples under the kernel with that `gamma`, with the history of all lags up to `budget`.
    fn new(taps: usize, first: usize, last: usize, budget: usize, gamma: T) -> Self;

    /// The samples.
    fn planes(&self) -> &Planes<T>;
    /// The samples; what was carried from one to the next is stale after a change of inputs until [`fill`](Self::fill).
    fn planes_mut(&mut self) -> &mut Planes<T>;

    /// Takes in one sample without a row; what is carried is stale until [`fill`](Self::fill).
    fn note(&mut self, input: Complex<T>);

    /// Computes what is carried from the samples alone.
    fn fill(&mut self);

    /// Forgets all samples.
    fn clear(&mut self);

    /// To be called before the first sample of every block, with the number of windows that exist.
    fn begin_block(&mut self, windows: usize);

    /// Takes in at most [`BLOCK`] samples of one block and gives for each the weighted sum over the windows whose coefficients are known, and
    /// its kernel values at the first lags.
    fn rows(&mut self, inputs: &[Complex<T>], sums: &mut [Complex<T>], triangle: &mut Triangle<Self::Row>);

    /// `k(x,x)` of a sample.
    fn norm(row: &Self::Row) -> T;

    /// `sum + Σ_m k[m] a_{−m}` over the samples of the block that came before, the oldest first: the part of a row that had to wait for their coefficients.
    fn correct(sum: Complex<T>, row: &Self::Row, before: &[Complex<T>]) -> Complex<T>;

    /// What must be kept besides the samples to go on bit for bit: numbers by lag, the last lag in use, and a count.
    fn carried(&self) -> (&[T], usize, u64);

    /// Goes on from what [`carried`](Self::carried) gave, after [`take_over`](Self::take_over).
    fn resume(&mut self, numbers: &[T], reached: usize, count: u64);

    /// Takes over samples, the newest first, as many as are kept here; what is carried is stale until [`fill`](Self::fill) or
    /// [`resume`](Self::resume).
    fn take_over<I>(&mut self, samples: I)
    where
        I: Iterator<Item = (Complex<T>, Complex<T>)> + DoubleEndedIterator + ExactSizeIterator,
    {
        self.clear();
        let keep = self.planes().reach();
        for (input, coefficient) in samples.take(keep).rev() {
            self.note(input);
            self.planes_mut().learn(0, coefficient);
        }
    }
}
