use num_complex::{Complex32, Complex64};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::f64::consts::{SQRT_2, TAU};

use crate::simd::{Dispatch, Level, Op, Vector};

/// Which part of the test bed draws: parts with the same seed must not share random numbers.
#[derive(Clone, Copy)]
#[repr(u64)]
pub(crate) enum Draws {
    Fading = 1,
    Noise = 2,
    PhaseNoise = 3,
    Dropper = 4,
    /// Not the test bed, but the command's studies and searches.
    #[cfg(feature = "cli")]
    Study = 5,
}

/// Seeded random numbers that are the same on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    pub(crate) fn new(seed: u64, draws: Draws) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(draws as u64);
        Self(rng)
    }

    pub(crate) fn reset(&mut self) {
        self.0.set_word_pos(0);
    }

    /// Uniform on [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Circular Gaussian with `E|z|² = 1` (Box and Muller).
    pub(crate) fn complex(&mut self) -> Complex64 {
        let radius = (-libm::log(1.0 - self.uniform())).sqrt();
        let (sin, cos) = libm::sincos(TAU * self.uniform());
        Complex64::new(radius * cos, radius * sin)
    }

    /// Circular Gaussians of the same law, in single precision and without a call for each: a few times as fast as one at a time.
    pub(crate) fn complex_batch(&mut self, out: &mut [Complex32; BATCH]) {
        let mut bytes = [0; 8 * BATCH];
        self.0.fill_bytes(&mut bytes);
        f32::dispatch(Level::current(), Batch { bytes: &bytes, out });
    }

    /// Real Gaussian with unit variance.
    pub(crate) fn real(&mut self) -> f64 {
        SQRT_2 * self.complex().re
    }
}

/// Gaussians from random bytes, with the vectors of the machine: the compiler makes them, and the numbers are the same to the last bit.
struct Batch<'a> {
    bytes: &'a [u8; 8 * BATCH],
    out: &'a mut [Complex32; BATCH],
}

impl Op<f32> for Batch<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f32>>(self) {
        let bytes = self.bytes;
        let word = |n: usize| u32::from_le_bytes([bytes[4 * n], bytes[4 * n + 1], bytes[4 * n + 2], bytes[4 * n + 3]]);
        for (n, z) in self.out.iter_mut().enumerate() {
            let radius = minus_log(word(n)).sqrt();
            let (sin, cos) = sin_cos(word(BATCH + n));
            *z = Complex32::new(radius * cos, radius * sin);
        }
    }
}

/// How many [`Random::complex_batch`] draws.
pub(crate) const BATCH: usize = 64;

/// `−ln u` of the upper 24 bits as a `u` in (0, 1], to 1e-7: the exponent, and the series of `2 artanh((m − 1)/(m + 1))` for what is left of it. Without branches, so
/// that compilers do many at once.
#[inline(always)]
fn minus_log(bits: u32) -> f32 {
    let u = (((bits >> 8) + 1) as i32 as f32 * 2f32.powi(-24)).to_bits() as i32;
    let exponent = (u - std::f32::consts::FRAC_1_SQRT_2.to_bits() as i32) >> 23;
    let mantissa = f32::from_bits((u - (exponent << 23)) as u32);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let s2 = s * s;
    let log = 2.0 * s * (1.0 + s2 * (1.0 / 3.0 + s2 * (1.0 / 5.0 + s2 * (1.0 / 7.0 + s2 * (1.0 / 9.0)))));
    -(log + exponent as f32 * std::f32::consts::LN_2)
}

/// Sine and cosine of `bits / 2^32` turns, to 1e-7: the nearest quarter, and Taylor's series for what is left of an eighth.
#[inline(always)]
fn sin_cos(bits: u32) -> (f32, f32) {
    let quarter = bits.wrapping_add(1 << 29) >> 30;
    let x = bits.wrapping_sub(quarter << 30) as i32 as f32 * (TAU / (1u64 << 32) as f64) as f32;
    let x2 = x * x;
    let sin = x * (1.0 - x2 * (1.0 / 6.0 - x2 * (1.0 / 120.0 - x2 * (1.0 / 5040.0 - x2 * (1.0 / 362_880.0)))));
    let cos = 1.0 - x2 * (0.5 - x2 * (1.0 / 24.0 - x2 * (1.0 / 720.0 - x2 * (1.0 / 40_320.0))));
    let (sin, cos) = if quarter & 1 == 0 { (sin, cos) } else { (cos, sin) };
    let signed = |value: f32, negative: u32| f32::from_bits(value.to_bits() ^ (negative << 31));
    (signed(sin, (quarter >> 1) & 1), signed(cos, ((quarter + 1) >> 1) & 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_the_law_of_single_draws() {
        for bits in [0, 1, 255, 256, 1 << 20, 0x1fff_ffff, 0x2000_0000, 0x6000_0001, 0x9abc_def0, 0xb504_f333, 0xb505_0000, u32::MAX] {
            let u = f64::from((bits >> 8) + 1) / 2f64.powi(24);
            assert!((f64::from(minus_log(bits)) + u.ln()).abs() <= 2e-7 * (1.0 - u.ln()), "{bits:#x}");
            let (sin, cos) = (TAU * f64::from(bits) / 2f64.powi(32)).sin_cos();
            let found = sin_cos(bits);
            assert!((f64::from(found.0) - sin).abs() < 2e-7 && (f64::from(found.1) - cos).abs() < 2e-7, "{bits:#x}: {found:?}");
        }
        // Moments of a circular Gaussian: E|z|² = 1, E|z|⁴ = 2, E z = E z² = 0, P(|z|² > 3) = e⁻³; five standard errors each.
        let (mut random, mut batch) = (Random::new(5, Draws::Noise), [Complex32::ZERO; BATCH]);
        let (batches, mut mean, mut square, mut moments) = (10_000, Complex64::ZERO, Complex64::ZERO, [0.0; 3]);
        for _ in 0..batches {
            random.complex_batch(&mut batch);
            for z in &batch {
                let z = Complex64::new(z.re.into(), z.im.into());
                let power = z.norm_sqr();
                mean += z;
                square += z * z;
                for (sum, value) in moments.iter_mut().zip([power, power * power, f64::from(power > 3.0)]) {
                    *sum += value;
                }
            }
        }
        let n = (batches * BATCH) as f64;
        assert!(mean.norm() / n < 5.0 / n.sqrt() && square.norm() / n < 5.0 * (2.0 / n).sqrt(), "{mean} {square}");
        for (sum, (expected, deviation)) in moments.iter().zip([(1.0, 1.0), (2.0, 20f64.sqrt()), ((-3f64).exp(), 0.22)]) {
            assert!((sum / n - expected).abs() < 5.0 * deviation / n.sqrt(), "{} instead of {expected}", sum / n);
        }
    }
}
