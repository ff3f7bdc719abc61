//! Vector instructions: one source for every level, the level chosen once, when a filter is built.
//!
//! A hot loop is an `Op`: code over a `Vector` of lanes, compiled once for each [`Level`] with that level's instructions enabled. So every
//! level runs the same source, and the plain one, which needs no special instruction, is the same algorithm at another width.
//! Results of two levels differ by rounding (another number of lanes sums in another order, and without FMA products are rounded); results of
//! one level are reproducible bit for bit.
//!
//! This is the only module of the filters that contains `unsafe` code: calling a function compiled for instructions that the machine was seen
//! to have, and loading lanes from slices whose length was checked before the loop.
#![allow(unsafe_code)]

mod aligned;
mod envelope;
mod lags;
mod linear;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pairs;
mod plain;
mod rows;
#[cfg(test)]
#[path = "../../tests/unit/simd.rs"]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
use std::cell::Cell;
use std::fmt;

use num_complex::Complex;

#[cfg(test)]
use crate::{Error, Result};

pub(crate) use aligned::{Aligned, Row};
pub(crate) use envelope::EnvelopeRow;
pub(crate) use lags::{BLOCK, GROUP, History, LagFill, LagPass};
pub(crate) use linear::NlmsRun;
pub(crate) use pairs::{PairFill, PairPass, PairRow, Samples, Terms};
pub(crate) use rows::{GaussianRow, Nearest, WeighByComplex, WeighComplex};

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What every machine of the target has; the reference.
    Plain,
    /// 128-bit NEON with fused multiply-add (aarch64).
    #[cfg_attr(not(target_arch = "aarch64"), allow(dead_code))]
    Neon,
    /// 256-bit AVX2 with fused multiply-add (x86-64).
    Avx2,
    /// 512-bit AVX-512F (x86-64).
    Avx512,
}

#[cfg(test)]
thread_local! {
    static FORCED: Cell<Option<Level>> = const { Cell::new(None) };
}

impl Level {
    /// All levels that this machine can run, the slowest first.
    pub(crate) fn available() -> &'static [Level] {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 && is_x86_feature_detected!("avx512f") {
                return &[Level::Plain, Level::Avx2, Level::Avx512];
            }
            if avx2 {
                return &[Level::Plain, Level::Avx2];
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            return &[Level::Plain, Level::Neon];
        }
        &[Level::Plain]
    }

    /// The level that a filter built here and now will use: the best that the machine has, unless a test forces another.
    pub(crate) fn current() -> Level {
        #[cfg(test)]
        if let Some(level) = FORCED.get() {
            return level;
        }
        *Self::available().last().unwrap_or(&Level::Plain)
    }

    /// Runs `build` with this level for all filters that are built in it, on this thread.
    ///
    /// An error where the machine does not have the level.
    #[cfg(test)]
    pub(crate) fn force<R>(self, build: impl FnOnce() -> R) -> Result<R> {
        if !Self::available().contains(&self) {
            let known: Vec<String> = Self::available().iter().map(Level::to_string).collect();
            return Err(Error::parameter("level", format!("one that this machine has ({})", known.join(", ")), self));
        }
        /// Puts the former level back even when `build` panics.
        struct Restore(Option<Level>);
        impl Drop for Restore {
            fn drop(&mut self) {
                FORCED.set(self.0);
            }
        }
        let _restore = Restore(FORCED.replace(Some(self)));
        Ok(build())
    }
}

impl Default for Level {
    /// [`Level::current`].
    fn default() -> Self {
        Self::current()
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Plain => "plain",
            Level::Neon => "neon",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        })
    }
}

/// Some lanes of `T` in one register.
///
/// All methods are `#[inline(always)]`, so that they end up inside a function that has the instructions enabled. Those of a level that
/// the machine does not have must not be called; [`Dispatch::dispatch`] sees to that.
pub(crate) trait Vector<T>: Copy {
    /// How many lanes there are: a power of two, at most 16.
    const LANES: usize;

    /// What [`exp2`](Self::exp2) needs.
    type Exp2: Copy;

    /// The constants of [`exp2`](Self::exp2), to be made once before a loop.
    fn exp2_constants() -> Self::Exp2;

    /// The lanes at `from`.
    ///
    /// # Safety
    /// `from` must be valid for reading [`LANES`](Self::LANES) values; it need not be aligned.
    unsafe fn load(from: *const T) -> Self;

    /// Writes the lanes to `to`.
    ///
    /// # Safety
    /// `to` must be valid for writing [`LANES`](Self::LANES) values; it need not be aligned.
    unsafe fn store(self, to: *mut T);

    /// `value` in each lane.
    fn splat(value: T) -> Self;
    /// Lane-wise sum.
    fn add(self, other: Self) -> Self;
    /// Lane-wise difference.
    fn sub(self, other: Self) -> Self;
    /// Lane-wise product.
    fn mul(self, other: Self) -> Self;
    /// `self · b + c`, rounded once where the level has FMA.
    fn fma(self, b: Self, c: Self) -> Self;
    /// `c − self · b`, rounded once where the level has FMA.
    fn fnma(self, b: Self, c: Self) -> Self;
    /// The lesser; `other` where `self` is not a number.
    fn min(self, other: Self) -> Self;
    /// The greater; `other` where `self` is not a number.
    fn max(self, other: Self) -> Self;
    /// `then` where `self < other`, else `otherwise`.
    fn select_less(self, other: Self, then: Self, otherwise: Self) -> Self;
    /// Where `self < other`: one bit a lane, the first lane's the lowest.
    fn less(self, other: Self) -> u64;
    /// Whether `self < other` in some lane.
    #[inline(always)]
    fn any_less(self, other: Self) -> bool {
        self.less(other) != 0
    }
    /// Lanes at even places of `self` and then `other`, and those at odd places.
    fn unzip(self, other: Self) -> (Self, Self);
    /// `2^self` for lanes between the exponents of the least and the greatest normal number; other lanes are unspecified.
    fn exp2(self, constants: &Self::Exp2) -> Self;

    /// The square root of lanes that are not negative.
    fn sqrt(self) -> Self;
    /// `1 / self` of positive normal lanes, within some roundings.
    fn recip(self) -> Self;
    /// `1 / self` of positive lanes within 0.1 %; zero of infinity.
    fn rough_recip(self) -> Self;
    /// The exponent and the mantissa, between 1 and 2, of positive normal lanes.
    fn parts(self) -> (Self, Self);

    /// `log2` of positive normal lanes, within 1.5e-5: enough to compare likelihoods.
    #[inline(always)]
    fn log2(self) -> Self
    where
        T: crate::Real,
    {
        // Chebyshev's approximation on [1, 2].
        const C: [f64; 6] = [-2.794_153_676, 5.069_756_316, -3.520_218_838, 1.610_177_547, -0.409_475_585_8, 0.043_928_627_85];
        let (exponent, m) = self.parts();
        let mut p = Self::splat(T::of(C[5]));
        let mut n = 5;
        while n > 0 {
            n -= 1;
            p = p.fma(m, Self::splat(T::of(C[n])));
        }
        exponent.add(p)
    }

    /// The sum of all lanes, in pairs.
    fn sum(self) -> T;
    /// The sums of the lanes of four vectors.
    fn sums(of: [Self; 4]) -> [T; 4];
    /// The greatest lane.
    fn greatest(self) -> T;

    /// The lanes from `at` on.
    #[inline(always)]
    fn read(from: &[T], at: usize) -> Self {
        let lanes = &from[at..at + Self::LANES];
        // SAFETY: the slice has as many values as there are lanes.
        unsafe { Self::load(lanes.as_ptr()) }
    }

    /// Writes the lanes from `at` on.
    #[inline(always)]
    fn write(self, to: &mut [T], at: usize) {
        let lanes = &mut to[at..at + Self::LANES];
        // SAFETY: the slice has as many values as there are lanes.
        unsafe { self.store(lanes.as_mut_ptr()) }
    }
}

/// A hot loop that can be compiled for any [`Vector`].
pub(crate) trait Op<T> {
    /// What it returns.
    type Output;
    /// The loop. Must be `#[inline(always)]`, or it is compiled without the level's instructions.
    fn run<V: Vector<T>>(self) -> Self::Output;
}

/// Scalars that have vectors: `f32` and `f64`.
pub(crate) trait Dispatch: Sized {
    /// The exponent below which a kernel value counts as nothing. Far above the least normal number: products with it must not become
    /// subnormal, which some processors treat in microcode.
    const FLOOR: Self;
    /// The exponent from which on it is the same to a kernel how far away a centre is: `2^-FAR` is below the rounding of a sum that has a 1 in it.
    const FAR: Self;

    /// Runs `op` with the instructions of `level`.
    fn dispatch<O: Op<Self>>(level: Level, op: O) -> O::Output;
}

macro_rules! dispatch {
    ($scalar:ty, floor $floor:literal, far $far:literal, avx2 $avx2:ident, avx512 $avx512:ident, neon $neon:ident) => {
        impl Dispatch for $scalar {
            const FLOOR: Self = $floor;
            const FAR: Self = $far;

            fn dispatch<O: Op<Self>>(level: Level, op: O) -> O::Output {
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "avx2,fma")]
                    fn avx2<O: Op<$scalar>>(op: O) -> O::Output {
                        op.run::<x86::$avx2>()
                    }
                    #[target_feature(enable = "avx512f,avx2,fma")]
                    fn avx512<O: Op<$scalar>>(op: O) -> O::Output {
                        op.run::<x86::$avx512>()
                    }
                    match level {
                        // SAFETY: a `Level` other than `Plain` is made by `Level::current` alone, which was told so by the machine.
                        Level::Avx2 => return unsafe { avx2(op) },
                        // SAFETY: as above.
                        Level::Avx512 => return unsafe { avx512(op) },
                        Level::Plain | Level::Neon => {}
                    }
                }
                #[cfg(target_arch = "aarch64")]
                {
                    #[target_feature(enable = "neon")]
                    fn neon<O: Op<$scalar>>(op: O) -> O::Output {
                        op.run::<neon::$neon>()
                    }
                    if level == Level::Neon {
                        // SAFETY: a `Level` other than `Plain` is made by `Level::current` alone, which was told so by the machine.
                        return unsafe { neon(op) };
                    }
                }
                let _ = level;
                op.run::<plain::Plain<$scalar>>()
            }
        }
    };
}

dispatch!(f32, floor -100.0, far 40.0, avx2 F32x8, avx512 F32x16, neon F32x4);
dispatch!(f64, floor -900.0, far 80.0, avx2 F64x4, avx512 F64x8, neon F64x2);

/// Real and imaginary parts side by side, as they lie in memory.
pub(crate) fn parts<T>(samples: &[Complex<T>]) -> &[T] {
    // SAFETY: a complex number is two `T` and nothing else (`repr(C)`), aligned like them.
    unsafe { std::slice::from_raw_parts(samples.as_ptr().cast(), 2 * samples.len()) }
}

/// The constants of an exponential: what rounds to whole numbers, and a polynomial.
#[derive(Clone, Copy)]
pub(crate) struct Exp2<V, const N: usize> {
    round: V,
    c: [V; N],
}

impl<V, const N: usize> Exp2<V, N> {
    #[inline(always)]
    fn new<T: Copy>(round: T, c: &[T; N]) -> Self
    where
        V: Vector<T>,
    {
        let mut vectors = [V::splat(round); N];
        let mut n = 0;
        while n < N {
            vectors[n] = V::splat(c[n]);
            n += 1;
        }
        Self { round: V::splat(round), c: vectors }
    }

    /// `Σ c_n x^n` by Estrin's scheme over pairs: half as long a chain of dependent instructions as Horner's.
    #[inline(always)]
    fn polynomial<T>(&self, x: V) -> V
    where
        V: Vector<T>,
    {
        // Not closures or iterators: the compiler may leave those as calls, compiled without the level's instructions.
        let mut n = N - 1;
        let mut p = self.c[n];
        let square = x.mul(x);
        n -= 1;
        p = p.fma(x, self.c[n]);
        while n > 0 {
            n -= 2;
            p = p.fma(square, self.c[n + 1].fma(x, self.c[n]));
        }
        p
    }
}

/// `acc + conj(a) · b`, lane-wise.
#[inline(always)]
fn complex_conj_mul_acc<T, V: Vector<T>>(a: (V, V), b: (V, V), acc: (V, V)) -> (V, V) {
    (a.1.fma(b.1, a.0.fma(b.0, acc.0)), a.1.fnma(b.0, a.0.fma(b.1, acc.1)))
}

/// A complex number in every lane.
#[inline(always)]
fn complex_splat<T, V: Vector<T>>(z: Complex<T>) -> (V, V) {
    (V::splat(z.re), V::splat(z.im))
}
