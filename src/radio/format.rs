//! The sample formats of a stream.

use num_complex::{Complex, Complex32};

use crate::{Error, Result};

/// How samples are laid out in the program's buffers. Integers have their full scale at an amplitude of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Cf32,
    Cs16,
    Cs8,
}

/// One sample of a buffer, of whatever format.
pub(super) trait Sample: Copy {
    fn from_complex(z: Complex32) -> Self;
    fn to_complex(self) -> Complex32;
}

impl Sample for Complex32 {
    fn from_complex(z: Complex32) -> Self {
        z
    }
    fn to_complex(self) -> Complex32 {
        self
    }
}

impl Sample for Complex<i16> {
    fn from_complex(z: Complex32) -> Self {
        Self::new((z.re * 32767.0).round() as i16, (z.im * 32767.0).round() as i16)
    }
    fn to_complex(self) -> Complex32 {
        Complex32::new(f32::from(self.re), f32::from(self.im)) / 32767.0
    }
}

impl Sample for Complex<i8> {
    fn from_complex(z: Complex32) -> Self {
        Self::new((z.re * 127.0).round() as i8, (z.im * 127.0).round() as i8)
    }
    fn to_complex(self) -> Complex32 {
        Complex32::new(f32::from(self.re), f32::from(self.im)) / 127.0
    }
}

impl std::str::FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "CF32" => Ok(Self::Cf32),
            "CS16" => Ok(Self::Cs16),
            "CS8" => Ok(Self::Cs8),
            _ => Err(Error::unknown("stream format", name, ["CF32", "CS16", "CS8"])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_keep_a_sample_to_half_a_step() {
        fn worst<S: Sample>() -> f32 {
            let samples = (-100..=100).map(|i| Complex32::new(i as f32 / 100.0, -i as f32 / 77.0));
            samples
                .map(|z| Complex32::new(z.re, z.im.clamp(-1.0, 1.0)))
                .map(|z| (S::from_complex(z).to_complex() - z).norm())
                .fold(0.0, f32::max)
        }
        assert_eq!(worst::<Complex32>(), 0.0);
        assert!(worst::<Complex<i16>>() < 1.0 / 32767.0);
        assert!(worst::<Complex<i8>>() < 1.0 / 127.0);
        assert_eq!(Complex::<i8>::from_complex(Complex32::new(9.0, -9.0)), Complex::new(127, -128)); // saturates, never wraps
    }
}
