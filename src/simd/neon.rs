//! NEON, which every aarch64 machine that runs an operating system has.
#![allow(unused_unsafe)] // Where NEON is part of the target, its intrinsics are safe; elsewhere they are not.

use std::arch::aarch64::*;

use super::plain::{EXP2_F32, EXP2_F64, ROUND_F32, ROUND_F64};
use super::{Exp2, Vector};

macro_rules! vector {
    (
        $(#[$doc:meta])* $name:ident: $lanes:literal of $scalar:ident in $register:ty,
        $load:ident $store:ident $splat:ident $add:ident $sub:ident $mul:ident $fma:ident $fms:ident $min:ident $max:ident $less:ident $select:ident $sum:ident $greatest:ident $sqrt:ident $div:ident $even:ident $odd:ident,
        parts |$y:ident| $parts:expr,
        exponent |$p:ident, $whole:ident| $exponent:expr,
        $round:ident $coefficients:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name($register);

        impl Vector<$scalar> for $name {
            const LANES: usize = $lanes;
            type Exp2 = Exp2<Self, { $coefficients.len() }>;

            #[inline(always)]
            fn exp2_constants() -> Self::Exp2 {
                Exp2::new($round, &$coefficients)
            }

            #[inline(always)]
            unsafe fn load(from: *const $scalar) -> Self {
                // SAFETY: the caller vouches for the memory, the level for the instruction.
                Self(unsafe { $load(from) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $scalar) {
                // SAFETY: as for `load`.
                unsafe { $store(to, self.0) }
            }
            #[inline(always)]
            fn splat(value: $scalar) -> Self {
                // SAFETY: the level has the instruction; so for all methods below.
                Self(unsafe { $splat(value) })
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: see `splat`.
                Self(unsafe { $add(self.0, other.0) })
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                // SAFETY: see `splat`.
                Self(unsafe { $sub(self.0, other.0) })
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                // SAFETY: see `splat`.
                Self(unsafe { $mul(self.0, other.0) })
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                // SAFETY: see `splat`. The addend comes first.
                Self(unsafe { $fma(c.0, self.0, b.0) })
            }
            #[inline(always)]
            fn fnma(self, b: Self, c: Self) -> Self {
                // SAFETY: see `splat`. The minuend comes first.
                Self(unsafe { $fms(c.0, self.0, b.0) })
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                // SAFETY: see `splat`. The `nm` form returns the number where the other operand is none.
                Self(unsafe { $min(self.0, other.0) })
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                // SAFETY: see `min`.
                Self(unsafe { $max(self.0, other.0) })
            }
            #[inline(always)]
            fn select_less(self, other: Self, then: Self, otherwise: Self) -> Self {
                // SAFETY: see `splat`.
                Self(unsafe { $select($less(self.0, other.0), then.0, otherwise.0) })
            }
            #[inline(always)]
            fn less(self, other: Self) -> u64 {
                self.select_less(other, Self::read(&[1.0, 2.0, 4.0, 8.0], 0), Self::splat(0.0)).sum() as u64
            }
            #[inline(always)]
            fn any_less(self, other: Self) -> bool {
                self.select_less(other, Self::splat(1.0), Self::splat(0.0)).greatest() > 0.0
            }
            #[inline(always)]
            fn unzip(self, other: Self) -> (Self, Self) {
                // SAFETY: see `splat`.
                unsafe { (Self($even(self.0, other.0)), Self($odd(self.0, other.0))) }
            }
            #[inline(always)]
            fn sum(self) -> $scalar {
                // SAFETY: see `splat`.
                unsafe { $sum(self.0) }
            }
            #[inline(always)]
            fn sums([a, b, c, d]: [Self; 4]) -> [$scalar; 4] {
                [a.sum(), b.sum(), c.sum(), d.sum()]
            }
            #[inline(always)]
            fn greatest(self) -> $scalar {
                // SAFETY: see `splat`.
                unsafe { $greatest(self.0) }
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                // SAFETY: see `splat`.
                Self(unsafe { $sqrt(self.0) })
            }
            #[inline(always)]
            fn recip(self) -> Self {
                // SAFETY: see `splat`.
                Self(unsafe { $div($splat(1.0), self.0) })
            }
            #[inline(always)]
            fn rough_recip(self) -> Self {
                self.recip()
            }
            #[inline(always)]
            fn parts(self) -> (Self, Self) {
                let $y = self.0;
                // SAFETY: see `splat`.
                let (exponent, mantissa) = unsafe { $parts };
                (Self(exponent), Self(mantissa))
            }
            #[inline(always)]
            fn exp2(self, constants: &Self::Exp2) -> Self {
                let whole = self.add(constants.round);
                let part = self.sub(whole.sub(constants.round));
                let p = constants.polynomial(part);
                let ($p, $whole) = (p.0, whole.0);
                // SAFETY: see `splat`. The integer in the low bits of `whole` is added to the exponent of `p`.
                Self(unsafe { $exponent })
            }
        }
    };
}

vector! {
    /// Single precision.
    F32x4: 4 of f32 in float32x4_t,
    vld1q_f32 vst1q_f32 vdupq_n_f32 vaddq_f32 vsubq_f32 vmulq_f32 vfmaq_f32 vfmsq_f32 vminnmq_f32 vmaxnmq_f32 vcltq_f32 vbslq_f32 vaddvq_f32 vmaxvq_f32 vsqrtq_f32 vdivq_f32 vuzp1q_f32 vuzp2q_f32,
    parts |x| {
        let bits = vreinterpretq_u32_f32(x);
        let exponent = vsubq_f32(vcvtq_f32_u32(vshrq_n_u32::<23>(bits)), vdupq_n_f32(127.0));
        let mantissa = vorrq_u32(vandq_u32(bits, vdupq_n_u32(0x7f_ffff)), vdupq_n_u32(0x3f80_0000));
        (exponent, vreinterpretq_f32_u32(mantissa))
    },
    exponent |p, whole| vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(p), vshlq_n_s32::<23>(vreinterpretq_s32_f32(whole)))),
    ROUND_F32 EXP2_F32
}

vector! {
    /// Double precision.
    F64x2: 2 of f64 in float64x2_t,
    vld1q_f64 vst1q_f64 vdupq_n_f64 vaddq_f64 vsubq_f64 vmulq_f64 vfmaq_f64 vfmsq_f64 vminnmq_f64 vmaxnmq_f64 vcltq_f64 vbslq_f64 vaddvq_f64 vmaxvq_f64 vsqrtq_f64 vdivq_f64 vuzp1q_f64 vuzp2q_f64,
    parts |x| {
        let bits = vreinterpretq_u64_f64(x);
        let exponent = vsubq_f64(vcvtq_f64_u64(vshrq_n_u64::<52>(bits)), vdupq_n_f64(1023.0));
        let mantissa = vorrq_u64(vandq_u64(bits, vdupq_n_u64((1 << 52) - 1)), vdupq_n_u64(1.0f64.to_bits()));
        (exponent, vreinterpretq_f64_u64(mantissa))
    },
    exponent |p, whole| vreinterpretq_f64_s64(vaddq_s64(vreinterpretq_s64_f64(p), vshlq_n_s64::<52>(vreinterpretq_s64_f64(whole)))),
    ROUND_F64 EXP2_F64
}
