use std::fmt::{Debug, Display, LowerExp};
use std::iter::Sum;

use num_complex::Complex;
use num_traits::{Float, FloatConst, FromPrimitive, NumAssign};
use serde::{Serialize, de::DeserializeOwned};

/// The scalar that a filter computes in: `f32` or `f64`.
#[expect(private_bounds, reason = "vector instructions exist for these two scalars alone, so the trait is sealed")]
pub trait Real:
    Float
    + FloatConst
    + FromPrimitive
    + NumAssign
    + Sum
    + Debug
    + Display
    + LowerExp
    + Default
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
    + crate::simd::Dispatch
{
    /// The nearest representable value.
    fn of(value: f64) -> Self;
    /// The value in double precision, exactly.
    fn wide(self) -> f64;
}

impl Real for f32 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
}

/// Whether both parts are finite.
pub(crate) fn finite<T: Real>(z: Complex<T>) -> bool {
    z.re.is_finite() && z.im.is_finite()
}
