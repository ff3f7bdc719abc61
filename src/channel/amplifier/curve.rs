use num_complex::{Complex32, Complex64};

use super::table::Table;
use super::{Model, narrow, wide};
use crate::error::require;
use crate::simd::{Dispatch, Level, Op, Vector};
use crate::{Error, Result};

/// A checked model without memory: `y = x·G(|x|)`.
#[derive(Clone, Debug)]
pub(super) enum Curve {
    Limiter,
    Rapp(Knee),
    Saleh { alpha_a: f64, beta_a: f64, alpha_phi: f64, beta_phi: f64 },
    Table(Table),
}

/// `(1 + z^p)^(1/2p)`, with square roots in place of powers where they do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Knee {
    One,
    Two,
    Any(f64),
}

impl Knee {
    /// `z = min(r², 1/r²)` keeps `z^p` in range whatever the envelope.
    #[inline(always)]
    fn compression(self, z: f64) -> f64 {
        match self {
            Self::One => (1.0 + z).sqrt(),
            Self::Two => (1.0 + z * z).sqrt().sqrt(),
            Self::Any(p) => libm::pow(1.0 + libm::pow(z, p), 0.5 / p),
        }
    }
}

impl Curve {
    pub(super) fn new(model: &Model) -> Result<Self> {
        match *model {
            Model::Limiter => Ok(Self::Limiter),
            Model::Rapp { smoothness: p } => {
                require((0.1..=100.0).contains(&p), "smoothness", "between 0.1 and 100", p)?;
                Ok(Self::Rapp(match p {
                    1.0 => Knee::One,
                    2.0 => Knee::Two,
                    _ => Knee::Any(p),
                }))
            }
            Model::Saleh { alpha_a, beta_a, alpha_phi, beta_phi } => {
                require(alpha_a.is_finite() && alpha_a > 0.0, "alpha_a", "more than 0", alpha_a)?;
                require(beta_a.is_finite() && beta_a > 0.0, "beta_a", "more than 0", beta_a)?;
                require(alpha_phi.is_finite(), "alpha_phi", "finite", alpha_phi)?;
                require(beta_phi.is_finite() && beta_phi >= 0.0, "beta_phi", "0 or more", beta_phi)?;
                Ok(Self::Saleh { alpha_a, beta_a, alpha_phi, beta_phi })
            }
            Model::Table { ref points } => Ok(Self::Table(Table::new(points)?)),
            Model::MemoryPolynomial { .. } => Err(Error::parameter("model", "one without memory", "memory-polynomial")),
        }
    }

    /// All samples, `drive` times as large.
    pub(super) fn process(&self, drive: f64, samples: &mut [Complex32]) {
        match self {
            &Self::Rapp(knee) => f64::dispatch(Level::current(), Bend { knee, drive, samples }),
            _ => samples.iter_mut().for_each(|sample| *sample = narrow(self.apply(wide(*sample) * drive))),
        }
    }

    pub(super) fn apply(&self, x: Complex64) -> Complex64 {
        let power = x.norm_sqr();
        match self {
            Self::Limiter if power > 1.0 => x / power.sqrt(),
            Self::Limiter => x,
            Self::Rapp(knee) => x / rapp(power, |z| knee.compression(z)),
            &Self::Saleh { alpha_a, beta_a, alpha_phi, beta_phi } => {
                let (sin, cos) = libm::sincos(alpha_phi * power / (1.0 + beta_phi * power));
                x * Complex64::new(cos, sin) * (alpha_a / (1.0 + beta_a * power))
            }
            Self::Table(table) => table.apply(x),
        }
    }
}

/// What a Rapp amplifier divides a sample of that power by. Without branches, so that compilers do many at once.
#[inline(always)]
fn rapp(power: f64, compression: impl Fn(f64) -> f64) -> f64 {
    let (inverse, root) = (1.0 / power, power.sqrt());
    let (z, scale) = if power > 1.0 { (inverse, root) } else { (power, 1.0) };
    scale * compression(z)
}

/// Samples through a Rapp amplifier, with the vectors of the machine: the compiler makes them, and the numbers are the same to the last bit.
struct Bend<'a> {
    knee: Knee,
    drive: f64,
    samples: &'a mut [Complex32],
}

impl Op<f64> for Bend<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        match self.knee {
            Knee::One => self.bend(|z| Knee::One.compression(z)),
            Knee::Two => self.bend(|z| Knee::Two.compression(z)),
            knee => self.bend(|z| knee.compression(z)),
        }
    }
}

impl Bend<'_> {
    #[inline(always)]
    fn bend(self, compression: impl Fn(f64) -> f64) {
        const PIECE: usize = 64;
        let (mut re, mut im) = ([0.0; PIECE], [0.0; PIECE]);
        for piece in self.samples.chunks_mut(PIECE) {
            for (i, &sample) in piece.iter().enumerate() {
                let x = wide(sample) * self.drive;
                (re[i], im[i]) = (x.re, x.im);
            }
            for i in 0..PIECE {
                let by = rapp(re[i] * re[i] + im[i] * im[i], &compression);
                (re[i], im[i]) = (re[i] / by, im[i] / by);
            }
            for (i, sample) in piece.iter_mut().enumerate() {
                *sample = narrow(Complex64::new(re[i], im[i]));
            }
        }
    }
}
