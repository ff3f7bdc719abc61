//! Numbers that begin at a cache line.

use std::ops::{Deref, DerefMut};

use crate::Real;

/// A fixed number of values, the first of which lies at the start of a cache line: no vector that begins at a multiple of 16 crosses a line.
#[derive(Clone, Debug)]
pub(crate) struct Aligned<T> {
    lines: Vec<Line<T>>,
    len: usize,
}

/// One cache line of `f32`, two of `f64`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line<T>([T; 16]);

impl<T: Real> Aligned<T> {
    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        Self { lines: vec![Line([T::zero(); 16]); len.div_ceil(16)], len }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: lines are arrays of 16 values one after the other, without padding (16 values fill one or two lines), and `len` is at most
        // 16 for each line.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`; the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
