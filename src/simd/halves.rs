//! Eight lanes as two halves of four: what matrices with four columns need.

use super::plain::Plain;

/// Eight lanes as two halves of four: two rows of a matrix with four columns, or the same four numbers twice.
///
/// The registers of a level are wider or narrower than four numbers; what is computed with four of them wants a width of its own.
pub(crate) trait Halves<T>: Copy {
    /// Both halves.
    fn load(from: &[T; 8]) -> Self;
    /// The same four numbers in both halves.
    fn twice(from: &[T; 4]) -> Self;
    /// A half each.
    fn pair(first: &[T; 4], second: &[T; 4]) -> Self;
    /// Writes both halves.
    fn store(self, to: &mut [T; 8]);
    /// Writes the first half.
    fn store_first(self, to: &mut [T; 4]);
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
    /// Of four numbers that are there twice, the first along the first half and the second along the second.
    fn first_two(self) -> Self;
    /// The same with the third and the fourth.
    fn last_two(self) -> Self;
    /// The sum of both halves, twice.
    fn fold(self) -> Self;
    /// The sum of each half.
    fn sums(self) -> (T, T);
}

macro_rules! lanes {
    ($f:expr) => {{
        let mut lanes = [Default::default(); 8];
        let mut i = 0;
        while i < 8 {
            lanes[i] = $f(i);
            i += 1;
        }
        Plain(lanes)
    }};
}

macro_rules! plain {
    ($scalar:ty) => {
        impl Halves<$scalar> for Plain<$scalar> {
            #[inline(always)]
            fn load(from: &[$scalar; 8]) -> Self {
                Self(*from)
            }
            #[inline(always)]
            fn twice(from: &[$scalar; 4]) -> Self {
                let [a, b, c, d] = *from;
                Self([a, b, c, d, a, b, c, d])
            }
            #[inline(always)]
            fn pair(first: &[$scalar; 4], second: &[$scalar; 4]) -> Self {
                let ([a, b, c, d], [e, f, g, h]) = (*first, *second);
                Self([a, b, c, d, e, f, g, h])
            }
            #[inline(always)]
            fn store(self, to: &mut [$scalar; 8]) {
                *to = self.0;
            }
            #[inline(always)]
            fn store_first(self, to: &mut [$scalar; 4]) {
                let [a, b, c, d, ..] = self.0;
                *to = [a, b, c, d];
            }
            #[inline(always)]
            fn splat(value: $scalar) -> Self {
                Self([value; 8])
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                lanes!(|i: usize| self.0[i] + other.0[i])
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                lanes!(|i: usize| self.0[i] - other.0[i])
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                lanes!(|i: usize| self.0[i] * other.0[i])
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                lanes!(|i: usize| self.0[i] * b.0[i] + c.0[i])
            }
            #[inline(always)]
            fn fnma(self, b: Self, c: Self) -> Self {
                lanes!(|i: usize| c.0[i] - self.0[i] * b.0[i])
            }
            #[inline(always)]
            fn first_two(self) -> Self {
                let [a, b, ..] = self.0;
                Self([a, a, a, a, b, b, b, b])
            }
            #[inline(always)]
            fn last_two(self) -> Self {
                let [_, _, c, d, ..] = self.0;
                Self([c, c, c, c, d, d, d, d])
            }
            #[inline(always)]
            fn fold(self) -> Self {
                let [a, b, c, d, e, f, g, h] = self.0;
                Self::twice(&[a + e, b + f, c + g, d + h])
            }
            #[inline(always)]
            fn sums(self) -> ($scalar, $scalar) {
                let [a, b, c, d, e, f, g, h] = self.0;
                ((a + c) + (b + d), (e + g) + (f + h))
            }
        }
    };
}

plain!(f32);
plain!(f64);

#[cfg(target_arch = "x86_64")]
pub(super) use avx::HalvesF32;

#[cfg(target_arch = "x86_64")]
mod avx {
    use std::arch::x86_64::*;

    use super::Halves;

    /// AVX2 with FMA, single precision.
    #[derive(Clone, Copy)]
    pub(crate) struct HalvesF32(__m256);

    // SAFETY of every intrinsic: the methods are inlined into functions that have enabled the instructions, as those of the level's vectors are;
    // loads and stores are the unaligned ones, and an array reference has as many numbers as they move.
    impl Halves<f32> for HalvesF32 {
        #[inline(always)]
        fn load(from: &[f32; 8]) -> Self {
            // SAFETY: see above; so for all methods below.
            Self(unsafe { _mm256_loadu_ps(from.as_ptr()) })
        }
        #[inline(always)]
        fn twice(from: &[f32; 4]) -> Self {
            // SAFETY: see `load`.
            Self(unsafe { _mm256_broadcast_ps(&_mm_loadu_ps(from.as_ptr())) })
        }
        #[inline(always)]
        fn pair(first: &[f32; 4], second: &[f32; 4]) -> Self {
            // SAFETY: see `load`.
            Self(unsafe { _mm256_set_m128(_mm_loadu_ps(second.as_ptr()), _mm_loadu_ps(first.as_ptr())) })
        }
        #[inline(always)]
        fn store(self, to: &mut [f32; 8]) {
            // SAFETY: see `load`.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), self.0) }
        }
        #[inline(always)]
        fn store_first(self, to: &mut [f32; 4]) {
            // SAFETY: see `load`.
            unsafe { _mm_storeu_ps(to.as_mut_ptr(), _mm256_castps256_ps128(self.0)) }
        }
        #[inline(always)]
        fn splat(value: f32) -> Self {
            // SAFETY: see `load`.
            Self(unsafe { _mm256_set1_ps(value) })
        }
        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: see `load`.
            Self(unsafe { _mm256_add_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            // SAFETY: see `load`.
            Self(unsafe { _mm256_sub_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            // SAFETY: see `load`.
            Self(unsafe { _mm256_mul_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn fma(self, b: Self, c: Self) -> Self {
            // SAFETY: see `load`.
            Self(unsafe { _mm256_fmadd_ps(self.0, b.0, c.0) })
        }
        #[inline(always)]
        fn fnma(self, b: Self, c: Self) -> Self {
            // SAFETY: see `load`.
            Self(unsafe { _mm256_fnmadd_ps(self.0, b.0, c.0) })
        }
        #[inline(always)]
        fn first_two(self) -> Self {
            // SAFETY: see `load`.
            Self(unsafe { _mm256_permutevar_ps(self.0, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1)) })
        }
        #[inline(always)]
        fn last_two(self) -> Self {
            // SAFETY: see `load`.
            Self(unsafe { _mm256_permutevar_ps(self.0, _mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3)) })
        }
        #[inline(always)]
        fn fold(self) -> Self {
            // SAFETY: see `load`.
            Self(unsafe { _mm256_add_ps(self.0, _mm256_permute2f128_ps::<1>(self.0, self.0)) })
        }
        #[inline(always)]
        fn sums(self) -> (f32, f32) {
            // SAFETY: see `load`.
            unsafe {
                let two = _mm256_add_ps(self.0, _mm256_permute_ps::<0b00_00_11_10>(self.0));
                let one = _mm256_add_ps(two, _mm256_permute_ps::<0b01>(two));
                (_mm256_cvtss_f32(one), _mm_cvtss_f32(_mm256_extractf128_ps::<1>(one)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Real;
    use crate::simd::{Level, Op, Vector};

    use super::Halves;

    struct Everything<T>([T; 8], [T; 4]);

    impl<T: Real> Op<T> for Everything<T> {
        type Output = (Vec<[T; 8]>, [T; 4], (T, T));

        #[inline(always)]
        fn run<V: Vector<T>>(self) -> Self::Output {
            let (a, b) = (V::Halves::load(&self.0), V::Halves::twice(&self.1));
            let c = V::Halves::splat(self.1[2]);
            let pair = V::Halves::pair(&self.1, &[T::zero(); 4]);
            let all = [a, b, c, pair, a.add(b), a.sub(b), a.mul(b), a.fma(b, c), a.fnma(b, c), b.first_two(), b.last_two(), a.fold()];
            let mut stored = vec![[T::zero(); 8]; all.len()];
            for (to, x) in stored.iter_mut().zip(all) {
                x.store(to);
            }
            let mut first = [T::zero(); 4];
            a.store_first(&mut first);
            (stored, first, a.sums())
        }
    }

    #[test]
    fn halves_are_the_same_at_every_level() {
        fn check<T: Real>(level: Level) {
            let t = |x: f64| T::of(x);
            // Whole numbers, so that no level rounds.
            let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0].map(t), [10.0, 20.0, 30.0, 40.0].map(t));
            let (stored, first, sums) = T::dispatch(level, Everything(a, b));
            let expected = |f: &dyn Fn(f64, f64) -> f64| std::array::from_fn(|i| t(f(i as f64 + 1.0, 10.0 * (i % 4 + 1) as f64)));
            let all: [[T; 8]; 12] = [
                a,
                expected(&|_, b| b),
                [t(30.0); 8],
                expected(&|a, b| if a < 5.0 { b } else { 0.0 }),
                expected(&|a, b| a + b),
                expected(&|a, b| a - b),
                expected(&|a, b| a * b),
                expected(&|a, b| a * b + 30.0),
                expected(&|a, b| 30.0 - a * b),
                expected(&|a, _| if a < 5.0 { 10.0 } else { 20.0 }),
                expected(&|a, _| if a < 5.0 { 30.0 } else { 40.0 }),
                expected(&|_, b| 0.2 * b + 4.0),
            ];
            assert_eq!(stored, all, "{level}");
            assert_eq!((first, sums), ([1.0, 2.0, 3.0, 4.0].map(t), (t(10.0), t(26.0))), "{level}");
        }
        for &level in Level::available() {
            check::<f32>(level);
            check::<f64>(level);
        }
    }
}
