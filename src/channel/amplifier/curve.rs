use num_complex::Complex64;

use super::Model;
use super::table::Table;
use crate::error::require;
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

    pub(super) fn apply(&self, x: Complex64) -> Complex64 {
        let power = x.norm_sqr();
        match self {
            Self::Limiter if power > 1.0 => x / power.sqrt(),
            Self::Limiter => x,
            Self::Rapp(knee) if power > 1.0 => x / (power.sqrt() * knee.compression(1.0 / power)),
            Self::Rapp(knee) => x / knee.compression(power),
            &Self::Saleh { alpha_a, beta_a, alpha_phi, beta_phi } => {
                let (sin, cos) = libm::sincos(alpha_phi * power / (1.0 + beta_phi * power));
                x * Complex64::new(cos, sin) * (alpha_a / (1.0 + beta_a * power))
            }
            Self::Table(table) => table.apply(x),
        }
    }
}
