//! The sample formats of a stream.

use num_complex::Complex32;

use crate::iq::full_scale;
use crate::{Error, Result};

/// How samples are laid out in the program's buffers, in the machine's byte order. An amplitude of 1 is the [`full_scale`] of integers, as in recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Cf32,
    Cs16,
    Cs8,
}

/// Converts each part of each sample.
fn parts<const N: usize>(bytes: &mut [u8], samples: &[Complex32], convert: impl Fn(f32) -> [u8; N]) {
    let (numbers, _) = bytes.as_chunks_mut::<N>();
    for (pair, z) in numbers.chunks_exact_mut(2).zip(samples) {
        (pair[0], pair[1]) = (convert(z.re), convert(z.im));
    }
}

fn complex<const N: usize>(bytes: &[u8], out: &mut Vec<Complex32>, convert: impl Fn([u8; N]) -> f32) {
    let (numbers, _) = bytes.as_chunks::<N>();
    out.extend(numbers.chunks_exact(2).map(|pair| Complex32::new(convert(pair[0]), convert(pair[1]))));
}

impl Format {
    /// The names that SoapySDR has for them.
    pub(super) const NAMES: [&str; 3] = ["CF32", "CS16", "CS8"];

    /// The size of a sample.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Cf32 => 8,
            Self::Cs16 => 4,
            Self::Cs8 => 2,
        }
    }

    /// Writes samples to a program's buffer, which has room for them. Integers round to the nearest and saturate.
    pub(super) fn encode(self, samples: &[Complex32], bytes: &mut [u8]) {
        match self {
            Self::Cf32 => parts(bytes, samples, |x| x.to_ne_bytes()),
            Self::Cs16 => parts(bytes, samples, |x| ((x * full_scale(16)).round() as i16).to_ne_bytes()),
            Self::Cs8 => parts(bytes, samples, |x| ((x * full_scale(8)).round() as i8).to_ne_bytes()),
        }
    }

    /// Appends the samples of a program's buffer.
    pub(super) fn decode(self, bytes: &[u8], out: &mut Vec<Complex32>) {
        match self {
            Self::Cf32 => complex(bytes, out, f32::from_ne_bytes),
            Self::Cs16 => complex(bytes, out, |b| f32::from(i16::from_ne_bytes(b)) / full_scale(16)),
            Self::Cs8 => complex(bytes, out, |b| f32::from(i8::from_ne_bytes(b)) / full_scale(8)),
        }
    }
}

impl std::str::FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "CF32" => Ok(Self::Cf32),
            "CS16" => Ok(Self::Cs16),
            "CS8" => Ok(Self::Cs8),
            _ => Err(Error::unknown("stream format", name, Self::NAMES)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iq::Datatype;

    #[test]
    fn integers_keep_a_sample_to_half_a_step_and_saturate() {
        let samples: Vec<Complex32> = (-99..=99).map(|i| Complex32::new(i as f32 / 100.0, -i as f32 / 101.0)).collect();
        for (format, step) in [(Format::Cf32, 0.0), (Format::Cs16, 1.0 / 32768.0), (Format::Cs8, 1.0 / 128.0)] {
            let mut bytes = vec![0; samples.len() * format.bytes()];
            format.encode(&samples, &mut bytes);
            let mut back = Vec::new();
            format.decode(&bytes, &mut back);
            assert!(samples.iter().zip(&back).all(|(a, b)| (a - b).norm() <= 0.71 * step), "{format:?}");
        }
        let mut bytes = [0; 2];
        Format::Cs8.encode(&[Complex32::new(9.0, -9.0)], &mut bytes);
        assert_eq!(bytes.map(|b| b as i8), [127, -128], "saturates, never wraps");
    }

    #[test]
    fn a_code_of_the_radio_is_the_same_code_in_a_recording() {
        // Every 16-bit code, as a radio receives it, as a recording keeps it and as a radio sends it again.
        let codes: Vec<u8> = (i16::MIN..=i16::MAX).flat_map(|code| [code.to_ne_bytes(), (!code).to_ne_bytes()].concat()).collect();
        let mut samples = Vec::new();
        Format::Cs16.decode(&codes, &mut samples);
        let recorded: Datatype = if cfg!(target_endian = "little") { "ci16_le" } else { "ci16_be" }.parse().unwrap();
        let mut bytes = Vec::new();
        assert_eq!(recorded.encode(&samples, &mut bytes), 0, "nothing is clipped");
        assert_eq!(bytes, codes);
        let mut back = vec![Complex32::ZERO; samples.len()];
        recorded.decode(&bytes, &mut back);
        let mut sent = vec![0; codes.len()];
        Format::Cs16.encode(&back, &mut sent);
        assert_eq!(sent, codes);
    }
}
