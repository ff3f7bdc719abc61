//! AVX2 with FMA, and AVX-512.
//!
//! Every intrinsic here is safe where its instructions are enabled, and every method is inlined into a function that has enabled them
//! (see [`Dispatch`](super::Dispatch)), which is what the `unsafe` of each one vouches for.

use std::arch::x86_64::*;

use super::plain::{EXP2_F32, EXP2_F64, ROUND_F32, ROUND_F64};
use super::{Exp2, Vector};

macro_rules! vector {
    (
        $(#[$doc:meta])* $name:ident: $lanes:literal of $scalar:ident in $register:ty,
        $load:ident $store:ident $splat:ident $add:ident $sub:ident $mul:ident $fma:ident $fnma:ident $min:ident $max:ident,
        less |$a:ident, $b:ident, $then:ident, $otherwise:ident| $less:expr,
        mask |$c:ident, $d:ident| $mask:expr,
        unzip |$e:ident, $f:ident| $unzip:expr,
        split |$x:ident, $magic:ident| $split:expr,
        exponent |$p:ident, $whole:ident| $exponent:expr,
        sum |$v:ident| $sum:expr,
        sums |$i:ident, $j:ident, $k:ident, $l:ident| $sums:expr,
        greatest |$g:ident| $greatest:expr,
        $sqrt:ident, recip |$r:ident| $recip:expr, rough |$q:ident| $rough:expr,
        parts |$y:ident| $parts:expr,
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
                // SAFETY: the caller vouches for the memory, the level for the instruction; it is the unaligned one.
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
                // SAFETY: see `splat`.
                Self(unsafe { $fma(self.0, b.0, c.0) })
            }
            #[inline(always)]
            fn fnma(self, b: Self, c: Self) -> Self {
                // SAFETY: see `splat`.
                Self(unsafe { $fnma(self.0, b.0, c.0) })
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                // SAFETY: see `splat`. The instruction returns its second operand where one is not a number.
                Self(unsafe { $min(self.0, other.0) })
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                // SAFETY: see `min`.
                Self(unsafe { $max(self.0, other.0) })
            }
            #[inline(always)]
            fn select_less(self, other: Self, then: Self, otherwise: Self) -> Self {
                let ($a, $b, $then, $otherwise) = (self.0, other.0, then.0, otherwise.0);
                // SAFETY: see `splat`.
                Self(unsafe { $less })
            }
            #[inline(always)]
            fn less(self, other: Self) -> u64 {
                let ($c, $d) = (self.0, other.0);
                // SAFETY: see `splat`.
                unsafe { $mask as u64 }
            }
            #[inline(always)]
            fn unzip(self, other: Self) -> (Self, Self) {
                let ($e, $f) = (self.0, other.0);
                // SAFETY: see `splat`.
                let (even, odd) = unsafe { $unzip };
                (Self(even), Self(odd))
            }
            #[inline(always)]
            fn sum(self) -> $scalar {
                let $v = self.0;
                // SAFETY: see `splat`.
                unsafe { $sum }
            }
            #[inline(always)]
            fn sums([$i, $j, $k, $l]: [Self; 4]) -> [$scalar; 4] {
                $sums
            }
            #[inline(always)]
            fn greatest(self) -> $scalar {
                let $g = self.0;
                // SAFETY: see `splat`.
                unsafe { $greatest }
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                // SAFETY: see `splat`.
                Self(unsafe { $sqrt(self.0) })
            }
            #[inline(always)]
            fn recip(self) -> Self {
                let $r = self.0;
                // SAFETY: see `splat`.
                Self(unsafe { $recip })
            }
            #[inline(always)]
            fn rough_recip(self) -> Self {
                let $q = self.0;
                // SAFETY: see `splat`.
                Self(unsafe { $rough })
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
                let ($x, $magic) = (self.0, constants.round.0);
                // SAFETY: see `splat`.
                let ($whole, part) = unsafe { $split };
                let $p = constants.polynomial(Self(part)).0;
                // SAFETY: see `splat`. The integer in the low bits of `whole` is added to the exponent of `p`.
                Self(unsafe { $exponent })
            }
        }
    };
}

vector! {
    /// AVX2, single precision.
    F32x8: 8 of f32 in __m256,
    _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_fmadd_ps _mm256_fnmadd_ps _mm256_min_ps _mm256_max_ps,
    less |a, b, then, otherwise| _mm256_blendv_ps(otherwise, then, _mm256_cmp_ps::<_CMP_LT_OQ>(a, b)),
    mask |a, b| _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(a, b)),
    // The shuffles work within halves: their quarters are put in order afterwards.
    unzip |a, b| {
        let even = _mm256_castps_pd(_mm256_shuffle_ps::<0b10_00_10_00>(a, b));
        let odd = _mm256_castps_pd(_mm256_shuffle_ps::<0b11_01_11_01>(a, b));
        (_mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(even)), _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(odd)))
    },
    // Rounding instead of a magic number: two constants fewer, and a shorter way to the polynomial.
    split |x, _magic| (_mm256_cvtps_epi32(x), _mm256_sub_ps(x, _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x))),
    exponent |p, whole| _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32::<23>(whole))),
    sum |v| {
        let four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
    },
    // Two rounds that interleave what they add, so that three additions serve four vectors; then the halves.
    // SAFETY: see `splat`; a register of four numbers has the layout of their array.
    sums |a, b, c, d| unsafe {
        let two = _mm256_add_ps(_mm256_unpacklo_ps(a.0, c.0), _mm256_unpackhi_ps(a.0, c.0));
        let other = _mm256_add_ps(_mm256_unpacklo_ps(b.0, d.0), _mm256_unpackhi_ps(b.0, d.0));
        let four = _mm256_add_ps(_mm256_unpacklo_ps(two, other), _mm256_unpackhi_ps(two, other));
        std::mem::transmute::<__m128, [f32; 4]>(_mm_add_ps(_mm256_castps256_ps128(four), _mm256_extractf128_ps::<1>(four)))
    },
    greatest |v| {
        let four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
        let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
    },
    // One step of Newton's method doubles the bits of the estimate.
    _mm256_sqrt_ps, recip |x| {
        let r = _mm256_rcp_ps(x);
        _mm256_mul_ps(r, _mm256_fnmadd_ps(x, r, _mm256_set1_ps(2.0)))
    }, rough |x| _mm256_rcp_ps(x),
    parts |x| {
        let bits = _mm256_castps_si256(x);
        let exponent = _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_srli_epi32::<23>(bits), _mm256_set1_epi32(127)));
        let mantissa = _mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi32(0x7f_ffff)), _mm256_set1_epi32(0x3f80_0000));
        (exponent, _mm256_castsi256_ps(mantissa))
    },
    ROUND_F32 EXP2_F32
}

vector! {
    /// AVX2, double precision.
    F64x4: 4 of f64 in __m256d,
    _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_fmadd_pd _mm256_fnmadd_pd _mm256_min_pd _mm256_max_pd,
    less |a, b, then, otherwise| _mm256_blendv_pd(otherwise, then, _mm256_cmp_pd::<_CMP_LT_OQ>(a, b)),
    mask |a, b| _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(a, b)),
    unzip |a, b| {
        let (even, odd) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        (_mm256_permute4x64_pd::<0b11_01_10_00>(even), _mm256_permute4x64_pd::<0b11_01_10_00>(odd))
    },
    split |x, magic| {
        let whole = _mm256_add_pd(x, magic);
        (whole, _mm256_sub_pd(x, _mm256_sub_pd(whole, magic)))
    },
    exponent |p, whole| _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(p), _mm256_slli_epi64::<52>(_mm256_castpd_si256(whole)))),
    sum |v| {
        let two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v));
        _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
    },
    sums |a, b, c, d| [a.sum(), b.sum(), c.sum(), d.sum()],
    greatest |v| {
        let two = _mm_max_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v));
        _mm_cvtsd_f64(_mm_max_sd(two, _mm_unpackhi_pd(two, two)))
    },
    _mm256_sqrt_pd, recip |x| _mm256_div_pd(_mm256_set1_pd(1.0), x), rough |x| _mm256_div_pd(_mm256_set1_pd(1.0), x),
    parts |x| {
        // There is no conversion of 64-bit integers: a double of 2^52 holds one in its low bits.
        let bits = _mm256_castpd_si256(x);
        let biased = _mm256_or_si256(_mm256_srli_epi64::<52>(bits), _mm256_castpd_si256(_mm256_set1_pd(4_503_599_627_370_496.0)));
        let exponent = _mm256_sub_pd(_mm256_castsi256_pd(biased), _mm256_set1_pd(4_503_599_627_370_496.0 + 1023.0));
        let one = _mm256_castpd_si256(_mm256_set1_pd(1.0));
        let mantissa = _mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi64x((1 << 52) - 1)), one);
        (exponent, _mm256_castsi256_pd(mantissa))
    },
    ROUND_F64 EXP2_F64
}

vector! {
    /// AVX-512, single precision.
    F32x16: 16 of f32 in __m512,
    _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_fmadd_ps _mm512_fnmadd_ps _mm512_min_ps _mm512_max_ps,
    less |a, b, then, otherwise| _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), otherwise, then),
    mask |a, b| _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b),
    unzip |a, b| {
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        (_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, _mm512_add_epi32(even, _mm512_set1_epi32(1)), b))
    },
    // Rounding instead of a magic number: two constants fewer, and a shorter way to the polynomial.
    split |x, _magic| (_mm512_cvtps_epi32(x), _mm512_sub_ps(x, _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x))),
    exponent |p, whole| _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32::<23>(whole))),
    sum |v| _mm512_reduce_add_ps(v),
    // SAFETY: as for `F32x8`.
    sums |a, b, c, d| unsafe {
        let two = _mm512_add_ps(_mm512_unpacklo_ps(a.0, c.0), _mm512_unpackhi_ps(a.0, c.0));
        let other = _mm512_add_ps(_mm512_unpacklo_ps(b.0, d.0), _mm512_unpackhi_ps(b.0, d.0));
        let four = _mm512_add_ps(_mm512_unpacklo_ps(two, other), _mm512_unpackhi_ps(two, other));
        let half = _mm256_add_ps(_mm512_castps512_ps256(four), _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(four))));
        std::mem::transmute::<__m128, [f32; 4]>(_mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half)))
    },
    greatest |v| _mm512_reduce_max_ps(v),
    _mm512_sqrt_ps, recip |x| {
        let r = _mm512_rcp14_ps(x);
        _mm512_mul_ps(r, _mm512_fnmadd_ps(x, r, _mm512_set1_ps(2.0)))
    }, rough |x| _mm512_rcp14_ps(x),
    parts |x| (_mm512_getexp_ps(x), _mm512_getmant_ps::<_MM_MANT_NORM_1_2, _MM_MANT_SIGN_SRC>(x)),
    ROUND_F32 EXP2_F32
}

vector! {
    /// AVX-512, double precision.
    F64x8: 8 of f64 in __m512d,
    _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_fmadd_pd _mm512_fnmadd_pd _mm512_min_pd _mm512_max_pd,
    less |a, b, then, otherwise| _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b), otherwise, then),
    mask |a, b| _mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b),
    unzip |a, b| {
        let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        (_mm512_permutex2var_pd(a, even, b), _mm512_permutex2var_pd(a, _mm512_add_epi64(even, _mm512_set1_epi64(1)), b))
    },
    split |x, magic| {
        let whole = _mm512_add_pd(x, magic);
        (whole, _mm512_sub_pd(x, _mm512_sub_pd(whole, magic)))
    },
    exponent |p, whole| _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(p), _mm512_slli_epi64::<52>(_mm512_castpd_si512(whole)))),
    sum |v| _mm512_reduce_add_pd(v),
    sums |a, b, c, d| [a.sum(), b.sum(), c.sum(), d.sum()],
    greatest |v| _mm512_reduce_max_pd(v),
    _mm512_sqrt_pd, recip |x| _mm512_div_pd(_mm512_set1_pd(1.0), x), rough |x| _mm512_div_pd(_mm512_set1_pd(1.0), x),
    parts |x| (_mm512_getexp_pd(x), _mm512_getmant_pd::<_MM_MANT_NORM_1_2, _MM_MANT_SIGN_SRC>(x)),
    ROUND_F64 EXP2_F64
}
