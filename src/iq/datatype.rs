//! How one sample lies in a file: SigMF's `core:datatype`.

use std::fmt;
use std::str::FromStr;

use num_complex::Complex32;

use crate::{Error, Result};

/// The number that a component is stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    F32,
    F64,
    I32,
    /// Only in WAV files; SigMF has no name for it.
    I24,
    I16,
    U32,
    U16,
    I8,
    U8,
}

impl Number {
    fn bytes(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::I24 => 3,
            Self::I16 | Self::U16 => 2,
            Self::I8 | Self::U8 => 1,
        }
    }
}

/// A sample's layout: complex or real, kind of number, byte order. Its name is SigMF's: `cf32_le`, `ci16_be`, `cu8`, `rf32_le`.
///
/// ```
/// use kaflow::iq::Datatype;
/// assert_eq!("cf32_le".parse::<Datatype>().unwrap(), Datatype::CF32_LE);
/// assert!("ci16".parse::<Datatype>().is_err(), "without a byte order it could be either");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datatype {
    pub(crate) complex: bool,
    pub(crate) number: Number,
    pub(crate) big_endian: bool,
}

impl Datatype {
    /// `cf32_le`: pairs of little-endian 32-bit floats, what GNU Radio calls a complex file.
    pub const CF32_LE: Self = Self { complex: true, number: Number::F32, big_endian: false };

    /// The size of one channel's sample.
    pub(crate) fn bytes(self) -> usize {
        self.number.bytes() * if self.complex { 2 } else { 1 }
    }

    /// Whether a sample has an imaginary part.
    pub(crate) fn is_complex(self) -> bool {
        self.complex
    }

    /// Whether components are stored as integers, which saturate at full scale.
    pub(crate) fn is_integer(self) -> bool {
        !matches!(self.number, Number::F32 | Number::F64)
    }

    /// Reads `out.len()` samples from `bytes`, which holds exactly as many.
    pub(crate) fn decode(self, bytes: &[u8], out: &mut [Complex32]) {
        debug_assert_eq!(bytes.len(), out.len() * self.bytes());
        match (self.number, self.big_endian) {
            (Number::F32, false) => self.decode_with(bytes, out, |b: [u8; 4]| f32::from_le_bytes(b)),
            (Number::F32, true) => self.decode_with(bytes, out, |b: [u8; 4]| f32::from_be_bytes(b)),
            (Number::F64, false) => self.decode_with(bytes, out, |b: [u8; 8]| f64::from_le_bytes(b) as f32),
            (Number::F64, true) => self.decode_with(bytes, out, |b: [u8; 8]| f64::from_be_bytes(b) as f32),
            (Number::I32, false) => self.decode_with(bytes, out, |b: [u8; 4]| signed(i32::from_le_bytes(b), 32)),
            (Number::I32, true) => self.decode_with(bytes, out, |b: [u8; 4]| signed(i32::from_be_bytes(b), 32)),
            (Number::I24, _) => self.decode_with(bytes, out, |b: [u8; 3]| signed(i32::from_le_bytes([0, b[0], b[1], b[2]]) >> 8, 24)),
            (Number::I16, false) => self.decode_with(bytes, out, |b: [u8; 2]| signed(i16::from_le_bytes(b).into(), 16)),
            (Number::I16, true) => self.decode_with(bytes, out, |b: [u8; 2]| signed(i16::from_be_bytes(b).into(), 16)),
            (Number::U32, false) => self.decode_with(bytes, out, |b: [u8; 4]| unsigned(u32::from_le_bytes(b), 32)),
            (Number::U32, true) => self.decode_with(bytes, out, |b: [u8; 4]| unsigned(u32::from_be_bytes(b), 32)),
            (Number::U16, false) => self.decode_with(bytes, out, |b: [u8; 2]| unsigned(u16::from_le_bytes(b).into(), 16)),
            (Number::U16, true) => self.decode_with(bytes, out, |b: [u8; 2]| unsigned(u16::from_be_bytes(b).into(), 16)),
            (Number::I8, _) => self.decode_with(bytes, out, |b: [u8; 1]| signed(i8::from_le_bytes(b).into(), 8)),
            (Number::U8, _) => self.decode_with(bytes, out, |b: [u8; 1]| unsigned(b[0].into(), 8)),
        }
    }

    fn decode_with<const N: usize>(self, bytes: &[u8], out: &mut [Complex32], number: impl Fn([u8; N]) -> f32) {
        let (numbers, _) = bytes.as_chunks::<N>();
        if self.complex {
            for (z, pair) in out.iter_mut().zip(numbers.chunks_exact(2)) {
                *z = Complex32::new(number(pair[0]), number(pair[1]));
            }
        } else {
            for (z, &real) in out.iter_mut().zip(numbers) {
                *z = Complex32::new(number(real), 0.0);
            }
        }
    }

    /// Appends `samples` to `bytes`. Integers round to the nearest and saturate at full scale; NaN becomes zero there. Returns how
    /// many samples were saturated.
    pub(crate) fn encode(self, samples: &[Complex32], bytes: &mut Vec<u8>) -> u64 {
        let mut saturated = 0;
        for z in samples {
            let clipped = self.encode_number(z.re, bytes) | (self.complex && self.encode_number(z.im, bytes));
            saturated += u64::from(clipped);
        }
        saturated
    }

    #[inline]
    fn encode_number(self, value: f32, bytes: &mut Vec<u8>) -> bool {
        let scaled = |bits: u32| (f64::from(value) * f64::from(full_scale(bits))).round();
        let clipped = |bits: u32| {
            let full = f64::from(full_scale(bits));
            scaled(bits) > full - 1.0 || scaled(bits) < -full
        };
        // An `as` cast saturates and takes NaN to zero. The offset of unsigned codes is added in f64, where it is exact.
        macro_rules! put {
            ($number:expr) => {{
                let number = $number;
                bytes.extend_from_slice(&if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() });
            }};
        }
        match self.number {
            Number::F32 => put!(value),
            Number::F64 => put!(f64::from(value)),
            Number::I32 => put!(scaled(32) as i32),
            Number::I24 => bytes.extend_from_slice(&((scaled(24).clamp(-8_388_608.0, 8_388_607.0) as i32) << 8).to_le_bytes()[1..]),
            Number::I16 => put!(scaled(16) as i16),
            Number::U32 => put!((zero_if_nan(scaled(32)) + 2_147_483_648.0) as u32),
            Number::U16 => put!((zero_if_nan(scaled(16)) + 32_768.0) as u16),
            Number::I8 => put!(scaled(8) as i8),
            Number::U8 => put!((zero_if_nan(scaled(8)) + 128.0) as u8),
        }
        match self.number {
            Number::F32 | Number::F64 => false,
            number => clipped(8 * number.bytes() as u32),
        }
    }
}

fn zero_if_nan(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// The code that an amplitude of 1 has in integers of so many bits, one more than the largest: 32768 in 16 bits. The same in recordings and radios.
pub(crate) fn full_scale(bits: u32) -> f32 {
    (1_u32 << (bits - 1)) as f32
}

fn signed(code: i32, bits: u32) -> f32 {
    code as f32 / full_scale(bits)
}

fn unsigned(code: u32, bits: u32) -> f32 {
    let middle = 1_u32 << (bits - 1);
    signed(code.wrapping_sub(middle) as i32, bits)
}

impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = match self.number {
            Number::F32 => "f32",
            Number::F64 => "f64",
            Number::I32 => "i32",
            Number::I24 => "i24",
            Number::I16 => "i16",
            Number::U32 => "u32",
            Number::U16 => "u16",
            Number::I8 => "i8",
            Number::U8 => "u8",
        };
        let order = match (self.number.bytes(), self.big_endian) {
            (1, _) => "",
            (_, false) => "_le",
            (_, true) => "_be",
        };
        write!(f, "{}{number}{order}", if self.complex { 'c' } else { 'r' })
    }
}

impl FromStr for Datatype {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let unknown = || {
            let known = ["cf32_le", "cf32_be", "ci16_le", "ci16_be", "ci8", "cu8", "cf64_le", "rf32_le", "ri16_le"];
            Error::unknown("datatype", name, known)
        };
        let (complex, rest) = match name.split_at_checked(1) {
            Some(("c", rest)) => (true, rest),
            Some(("r", rest)) => (false, rest),
            _ => return Err(unknown()),
        };
        let (number, order) = match rest.split_once('_') {
            Some((number, order)) => (number, Some(order)),
            None => (rest, None),
        };
        let number = match number {
            "f32" => Number::F32,
            "f64" => Number::F64,
            "i32" => Number::I32,
            "i16" => Number::I16,
            "u32" => Number::U32,
            "u16" => Number::U16,
            "i8" => Number::I8,
            "u8" => Number::U8,
            _ => return Err(unknown()),
        };
        let big_endian = match order {
            Some("le") => false,
            Some("be") => true,
            None if number.bytes() == 1 => false,
            None => {
                return Err(Error::parameter("datatype", format!("one with a byte order, {name}_le or {name}_be"), name));
            }
            Some(_) => return Err(unknown()),
        };
        // One byte has no order: "ci8_le", seen in the wild, is read as "ci8".
        Ok(Self { complex, number, big_endian: big_endian && number.bytes() > 1 })
    }
}

#[cfg(test)]
#[path = "../../tests/unit/iq/datatype.rs"]
mod tests;
