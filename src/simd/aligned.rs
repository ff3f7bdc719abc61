//! Numbers in memory where vector instructions like them.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

use super::Vector;

/// Sixteen numbers, a cache line of `f32`, two of `f64`: vectors that begin at a multiple of 16 numbers never lie across two lines, where on some
/// processors what was stored is slow to load again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(crate) struct Row<T>(pub(crate) [T; 16]);

impl<T> Row<T> {
    /// The lanes from `at` on.
    #[inline(always)]
    pub(crate) fn get<V: Vector<T>>(&self, at: usize) -> V {
        V::read(&self.0, at)
    }

    /// Writes the lanes from `at` on.
    #[inline(always)]
    pub(crate) fn put<V: Vector<T>>(&mut self, at: usize, lanes: V) {
        lanes.write(&mut self.0, at);
    }
}

/// Numbers the first of which lies at the start of a cache line. Fixed in length.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<T>", into = "Vec<T>", bound = "T: Copy + Default + Serialize + for<'a> Deserialize<'a>")]
pub(crate) struct Aligned<T> {
    blocks: Vec<Row<T>>,
    len: usize,
}

impl<T: Copy + Default> From<Vec<T>> for Aligned<T> {
    fn from(numbers: Vec<T>) -> Self {
        let () = Row::<T>::DENSE;
        let blocks = numbers.chunks(16).map(|chunk| {
            let mut block = Row([T::default(); 16]);
            block.0[..chunk.len()].copy_from_slice(chunk);
            block
        });
        Self { blocks: blocks.collect(), len: numbers.len() }
    }
}

impl<T: Copy + Default> Aligned<T> {
    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        vec![T::default(); len].into()
    }
}

impl<T: Copy> From<Aligned<T>> for Vec<T> {
    fn from(numbers: Aligned<T>) -> Self {
        numbers.to_vec()
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: a block is sixteen numbers without padding between them (checked in `from`, the only place that makes one), and there are blocks
        // for at least `len` numbers.
        unsafe { std::slice::from_raw_parts(self.blocks.as_ptr().cast(), self.len) }
    }
}

impl<T> DerefMut for Aligned<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.blocks.as_mut_ptr().cast(), self.len) }
    }
}

impl<T> Row<T> {
    /// Checked when it is compiled: whatever `T` is, no padding.
    const DENSE: () = assert!(size_of::<Self>() == 16 * size_of::<T>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_on_their_boundary_and_come_back() {
        for n in [0usize, 1, 15, 16, 17, 144] {
            let numbers: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let mut aligned = Aligned::from(numbers.clone());
            assert_eq!((&aligned[..], aligned.as_ptr().align_offset(64)), (&numbers[..], 0));
            aligned.iter_mut().for_each(|x| *x += 1.0);
            assert_eq!(Vec::from(aligned.clone()), numbers.iter().map(|x| x + 1.0).collect::<Vec<_>>());
            let bytes = postcard::to_stdvec(&aligned).unwrap();
            assert_eq!(&postcard::from_bytes::<Aligned<f32>>(&bytes).unwrap()[..], &aligned[..]);
        }
    }
}
