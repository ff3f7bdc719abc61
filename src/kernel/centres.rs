//! The centres of a dictionary and the row of kernel values over them.

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use crate::Real;
use crate::simd::{Level, WeighByComplex, WeighComplex};
use crate::state::same_shape;
use crate::{Error, Result};

/// Centres in ℂᴸ, stored as 2L planes: all first real parts, all first imaginary parts, all second real parts, and so on.
///
/// A pass over the dictionary then reads memory in order and vectorises over centres, whatever the number of taps.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Centres<T: Real> {
    planes: Vec<T>,
    taps: usize,
    capacity: usize,
    len: usize,
}

impl<T: Real> Centres<T> {
    /// No centres yet, of `taps` complex numbers each.
    pub fn new(taps: usize) -> Self {
        Self { planes: Vec::new(), taps, capacity: 0, len: 0 }
    }

    /// Complex numbers in a centre.
    pub(crate) fn taps(&self) -> usize {
        self.taps
    }

    /// How many centres there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Plane `d` in `0..2L`: the real (even) or imaginary (odd) parts of tap `d / 2` of all centres.
    pub(crate) fn plane(&self, d: usize) -> &[T] {
        &self.planes[d * self.capacity..][..self.len]
    }

    /// All planes, and how far apart they are.
    pub(crate) fn planes(&self) -> (&[T], usize) {
        (&self.planes, self.capacity)
    }

    /// Makes room for `capacity` centres in all, so that pushing up to there allocates nothing.
    pub(crate) fn reserve(&mut self, capacity: usize) {
        if capacity <= self.capacity {
            return;
        }
        let mut planes = vec![T::zero(); 2 * self.taps * capacity];
        for d in 0..2 * self.taps {
            planes[d * capacity..][..self.len].copy_from_slice(self.plane(d));
        }
        self.planes = planes;
        self.capacity = capacity;
    }

    /// Appends a centre. Allocates only where the reserved room is used up, doubling it.
    pub fn push(&mut self, x: &[Complex<T>]) {
        if self.len == self.capacity {
            self.reserve((2 * self.capacity).max(16));
        }
        self.len += 1;
        self.replace(self.len - 1, x);
    }

    /// Puts `x` in place of centre `i`.
    pub(crate) fn replace(&mut self, i: usize, x: &[Complex<T>]) {
        assert!(x.len() == self.taps && i < self.len, "centre {i} of {} with {} taps", self.len, x.len());
        for (l, z) in x.iter().enumerate() {
            self.planes[2 * l * self.capacity + i] = z.re;
            self.planes[(2 * l + 1) * self.capacity + i] = z.im;
        }
    }

    /// Removes centre `i`; the last one takes its place.
    pub(crate) fn swap_remove(&mut self, i: usize) {
        assert!(i < self.len, "centre {i} of {}", self.len);
        self.len -= 1;
        for d in 0..2 * self.taps {
            self.planes[d * self.capacity + i] = self.planes[d * self.capacity + self.len];
        }
    }

    /// Removes all centres and keeps their room.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Copies centre `i` into `centre`.
    pub(crate) fn copy_to(&self, i: usize, centre: &mut Vec<Complex<T>>) {
        centre.clear();
        centre.extend((0..self.taps).map(|l| Complex::new(self.plane(2 * l)[i], self.plane(2 * l + 1)[i])));
    }

    /// `‖c_i − x‖²` for all centres.
    pub(crate) fn distances(&self, x: &[Complex<T>], out: &mut [T]) {
        let out = &mut out[..self.len];
        out.fill(T::zero());
        for (l, z) in x.iter().enumerate() {
            for (d, v) in [(2 * l, z.re), (2 * l + 1, z.im)] {
                for (o, &c) in out.iter_mut().zip(self.plane(d)) {
                    *o += (c - v) * (c - v);
                }
            }
        }
    }

    /// Whether restored centres are sound and belong to a filter of `taps` taps.
    pub(crate) fn check(&self, taps: usize) -> Result<()> {
        same_shape("taps", self.taps, taps)?;
        let sound = self.len <= self.capacity && self.capacity.checked_mul(2 * taps) == Some(self.planes.len());
        if sound { Ok(()) } else { Err(Error::State("its centres do not fit their storage".into())) }
    }
}

/// The kernel values of one input against all centres, with the scratch space for computing them.
#[derive(Clone, Debug, Default)]
pub struct Row<T> {
    /// Real parts.
    pub re: Vec<T>,
    /// Imaginary parts; zero for a real kernel.
    pub im: Vec<T>,
    /// `‖c_i − x‖²`, where the kernel has use for it.
    pub distance: Vec<T>,
    /// Whether `distance` belongs to this row.
    pub has_distance: bool,
    /// Whether `im` is zero throughout, so that it need not be read.
    pub is_real: bool,
    /// The vector instructions to use.
    pub(crate) level: Level,
    /// The envelopes of the input.
    pub(crate) envelope: Vec<T>,
    /// One centre, for rows that go centre by centre.
    pub(crate) centre: Vec<Complex<T>>,
    /// A second row, for kernels made of kernels.
    pub(crate) spare: Option<Box<Row<T>>>,
}

impl<T: Real> Row<T> {
    /// One place for each of `len` centres, values unspecified but `im` zero where `is_real` is set.
    pub(crate) fn resize(&mut self, len: usize) {
        // Growing to the next power of two keeps an unbounded dictionary from reallocating at each sample.
        if self.re.capacity() < len {
            let more = len.next_power_of_two() - self.re.len();
            self.re.reserve_exact(more);
            self.im.reserve_exact(more);
            self.distance.reserve_exact(more);
        }
        for plane in [&mut self.re, &mut self.im, &mut self.distance] {
            plane.resize(len, T::zero());
        }
        self.has_distance = false;
        self.is_real = false;
    }

    /// As [`resize`](Self::resize), for a kernel whose values are real.
    pub(crate) fn resize_real(&mut self, len: usize) {
        self.resize(len);
        self.im.fill(T::zero());
        self.is_real = true;
    }
}

/// `Σ a_i k_i` with complex coefficients in two planes.
pub(crate) fn weigh_complex<T: Real>(re: &[T], im: &[T], row: &Row<T>) -> Complex<T> {
    if row.is_real {
        T::dispatch(row.level, WeighComplex { re, im, row: &row.re })
    } else {
        T::dispatch(row.level, WeighByComplex { re, im, row: [&row.re, &row.im] })
    }
}

/// `Σ a_i Re k_i` with real coefficients.
pub(crate) fn weigh_real<T: Real>(a: &[T], row: &Row<T>) -> T {
    a.iter().zip(&row.re).map(|(&a, &k)| a * k).sum()
}
