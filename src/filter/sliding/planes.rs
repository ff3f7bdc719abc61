//! The last samples of a stream, in planes.

use num_complex::Complex;
use num_traits::Zero;

use crate::Real;
use crate::simd::Aligned;

// What every plane set begins with; further planes are whatever the lags want to have computed once a sample.
pub(super) const RE: usize = 0;
pub(super) const IM: usize = 1;
pub(super) const A_RE: usize = 2;
pub(super) const A_IM: usize = 3;

/// A page of `f32`.
const PAGE: usize = 1024;

/// Inputs, coefficients and what follows from them, each in a plane that is written backwards: increasing lag is increasing address.
#[derive(Clone, Debug)]
pub(super) struct Planes<T> {
    /// One plane after the other, so that together they fill the cache evenly.
    numbers: Aligned<T>,
    /// From one plane to the next.
    stride: usize,
    /// Where the newest sample lies.
    start: usize,
    /// How many samples are kept at least.
    reach: usize,
}

impl<T: Real> Planes<T> {
    /// `count` planes that keep at least `reach` samples.
    pub(super) fn new(count: usize, reach: usize) -> Self {
        // As much again as must be kept: the copy at the wrap then costs one number a sample and plane. Planes that begin a multiple of a page apart
        // would compete for the same few places of the cache.
        let stride = (2 * reach).next_multiple_of(PAGE) + PAGE / 8;
        Self { numbers: Aligned::zeros(count * stride), stride, start: reach, reach }
    }

    /// How many samples are kept at least.
    pub(super) fn reach(&self) -> usize {
        self.reach
    }

    /// A plane from its newest sample on.
    pub(super) fn plane(&self, plane: usize) -> &[T] {
        &self.numbers[plane * self.stride + self.start..][..2 * self.reach - self.start]
    }

    /// Makes room for `count` samples.
    pub(super) fn make_room(&mut self, count: usize) {
        if self.start < count {
            for plane in self.numbers.chunks_exact_mut(self.stride) {
                plane.copy_within(self.start..self.start + self.reach, self.reach);
            }
            self.start = self.reach;
        }
    }

    /// Takes in one sample, for which there is room: one number for each plane.
    pub(super) fn push<const N: usize>(&mut self, values: [T; N]) {
        self.start -= 1;
        let at = self.start;
        for (plane, value) in values.into_iter().enumerate() {
            self.numbers[plane * self.stride + at] = value;
        }
    }

    /// Takes back the last `count` samples.
    pub(super) fn undo(&mut self, count: usize) {
        self.start += count;
    }

    /// Forgets all samples.
    pub(super) fn clear(&mut self) {
        self.numbers.fill(T::zero());
        self.start = self.reach;
    }

    /// Gives the sample `age` samples back its coefficient.
    pub(super) fn learn(&mut self, age: usize, coefficient: Complex<T>) {
        let at = self.start + age;
        self.numbers[A_RE * self.stride + at] = coefficient.re;
        self.numbers[A_IM * self.stride + at] = coefficient.im;
    }

    /// Multiplies all coefficients. Those too small to matter become exact zeros: left alone they would end as denormal numbers, which cost a hundred
    /// times as much to add.
    pub(super) fn rescale(&mut self, factor: T) {
        let negligible = T::min_positive_value() / T::epsilon();
        for plane in [A_RE, A_IM] {
            for a in &mut self.numbers[plane * self.stride + self.start..][..2 * self.reach - self.start] {
                let value = *a * factor;
                *a = if value.abs() < negligible { T::zero() } else { value };
            }
        }
    }

    /// The window that ends `age` samples back, newest first.
    pub(super) fn window(&self, age: usize, window: &mut [Complex<T>]) {
        for ((x, &re), &im) in window.iter_mut().zip(&self.plane(RE)[age..]).zip(&self.plane(IM)[age..]) {
            *x = Complex::new(re, im);
        }
    }

    /// The input `age` samples back.
    pub(super) fn input(&self, age: usize) -> Complex<T> {
        Complex::new(self.plane(RE)[age], self.plane(IM)[age])
    }

    /// Input and coefficient `age` samples back.
    pub(super) fn sample(&self, age: usize) -> (Complex<T>, Complex<T>) {
        if age >= self.reach {
            return (Complex::zero(), Complex::zero());
        }
        (self.input(age), Complex::new(self.plane(A_RE)[age], self.plane(A_IM)[age]))
    }
}
