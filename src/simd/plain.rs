//! The plain level: eight scalars side by side, no instruction beyond the target's baseline.

use super::{Exp2, Vector};

/// Lanes of the plain level. Eight, as a loop over them suits the compiler's own vectoriser.
const LANES: usize = 8;

/// Eight scalars.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Plain<T>(pub(super) [T; LANES]);

// The linear coefficient of a minimax polynomial is near ln 2 and not ln 2.
/// Coefficients of `2^x` on [-1/2, 1/2] from the constant term up, minimax with the constant fixed at 1, so that the kernel of a point with
/// itself is exactly 1. Relative error 1.1e-7 in exact arithmetic, about one rounding.
#[allow(clippy::approx_constant)]
pub(super) const EXP2_F32: [f32; 6] = [1.0, 0.693_147, 0.240_222_42, 0.055_507_336, 0.009_671_513, 0.001_326_472_7];

/// As [`EXP2_F32`], relative error 1e-17 in exact arithmetic.
#[allow(clippy::approx_constant, clippy::excessive_precision)]
pub(super) const EXP2_F64: [f64; 12] = [
    1.0,
    0.693_147_180_559_945_3,
    0.240_226_506_959_100_98,
    0.055_504_108_664_821_594,
    0.009_618_129_107_606_889,
    0.001_333_355_814_641_693_5,
    0.000_154_035_304_417_360_5,
    1.525_273_382_983_611_8e-5,
    1.321_544_258_792_169e-6,
    1.017_806_244_584_577_4e-7,
    7.072_585_949_269_224e-9,
    4.454_960_598_186_518e-10,
];

/// Adding and subtracting it rounds to the nearest integer, which then stands in the low bits of the sum.
pub(super) const ROUND_F32: f32 = 12_582_912.0; // 1.5 · 2^23
/// As [`ROUND_F32`].
pub(super) const ROUND_F64: f64 = 6_755_399_441_055_744.0; // 1.5 · 2^52

macro_rules! plain {
    ($scalar:ty, $bits:literal, $round:ident, $coefficients:ident) => {
        impl Vector<$scalar> for Plain<$scalar> {
            const LANES: usize = LANES;
            type Exp2 = Exp2<Self, { $coefficients.len() }>;

            #[inline(always)]
            fn exp2_constants() -> Self::Exp2 {
                Exp2::new($round, &$coefficients)
            }

            #[inline(always)]
            unsafe fn load(from: *const $scalar) -> Self {
                // SAFETY: the caller vouches for LANES values at `from`; an array of them has no other demand than their alignment.
                Self(unsafe { from.cast::<[$scalar; LANES]>().read() })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $scalar) {
                // SAFETY: the caller vouches for room for LANES values at `to`.
                unsafe { to.cast::<[$scalar; LANES]>().write(self.0) }
            }
            #[inline(always)]
            fn splat(value: $scalar) -> Self {
                Self([value; LANES])
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                Self(std::array::from_fn(|i| self.0[i] - other.0[i]))
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Self(std::array::from_fn(|i| self.0[i] * other.0[i]))
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                // Not `mul_add`: without the instruction it is a call into a library, and fifty times slower.
                Self(std::array::from_fn(|i| self.0[i] * b.0[i] + c.0[i]))
            }
            #[inline(always)]
            fn fnma(self, b: Self, c: Self) -> Self {
                Self(std::array::from_fn(|i| c.0[i] - self.0[i] * b.0[i]))
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Self(std::array::from_fn(|i| if self.0[i] < other.0[i] { self.0[i] } else { other.0[i] }))
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Self(std::array::from_fn(|i| if self.0[i] > other.0[i] { self.0[i] } else { other.0[i] }))
            }
            #[inline(always)]
            fn select_less(self, other: Self, then: Self, otherwise: Self) -> Self {
                Self(std::array::from_fn(|i| if self.0[i] < other.0[i] { then.0[i] } else { otherwise.0[i] }))
            }
            #[inline(always)]
            fn less(self, other: Self) -> u64 {
                self.0.iter().zip(&other.0).rev().fold(0, |mask, (a, b)| mask << 1 | u64::from(a < b))
            }
            #[inline(always)]
            fn unzip(self, other: Self) -> (Self, Self) {
                let at = |i: usize| if i < LANES { self.0[i] } else { other.0[i - LANES] };
                (Self(std::array::from_fn(|i| at(2 * i))), Self(std::array::from_fn(|i| at(2 * i + 1))))
            }
            #[inline(always)]
            fn sum(self) -> $scalar {
                let [a, b, c, d, e, f, g, h] = self.0;
                ((a + e) + (c + g)) + ((b + f) + (d + h))
            }
            #[inline(always)]
            fn sums([a, b, c, d]: [Self; 4]) -> [$scalar; 4] {
                [a.sum(), b.sum(), c.sum(), d.sum()]
            }
            #[inline(always)]
            fn greatest(self) -> $scalar {
                self.0.into_iter().fold(<$scalar>::NEG_INFINITY, <$scalar>::max)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Self(std::array::from_fn(|i| self.0[i].sqrt()))
            }
            #[inline(always)]
            fn recip(self) -> Self {
                Self(std::array::from_fn(|i| 1.0 / self.0[i]))
            }
            #[inline(always)]
            fn rough_recip(self) -> Self {
                self.recip()
            }
            #[inline(always)]
            fn parts(self) -> (Self, Self) {
                let mantissa = (1 << $bits) - 1;
                let exponent = |x: $scalar| ((x.to_bits() >> $bits) as i32 - ((<$scalar>::MAX_EXP) - 1)) as $scalar;
                let one: $scalar = 1.0;
                (
                    Self(std::array::from_fn(|i| exponent(self.0[i]))),
                    Self(std::array::from_fn(|i| <$scalar>::from_bits(self.0[i].to_bits() & mantissa | one.to_bits()))),
                )
            }
            #[inline(always)]
            fn exp2(self, constants: &Self::Exp2) -> Self {
                let whole = self.add(constants.round);
                let part = self.sub(whole.sub(constants.round));
                let p = constants.polynomial(part);
                Self(std::array::from_fn(|i| <$scalar>::from_bits(p.0[i].to_bits().wrapping_add(whole.0[i].to_bits() << $bits))))
            }
        }
    };
}

plain!(f32, 23, ROUND_F32, EXP2_F32);
plain!(f64, 52, ROUND_F64, EXP2_F64);
