//! Power amplifiers as they act on the complex envelope.

mod curve;
mod polynomial;
mod table;

pub use self::{polynomial::Term, table::Point};

use num_complex::Complex32;
use serde::{Deserialize, Serialize};

use super::{Stage, from_db, narrow, no_such, wide};
use crate::error::require;
use crate::{Error, Result};
use curve::Curve;
use polynomial::Polynomial;

/// What an amplifier does to the envelope `r = |x|`. Amplitudes are in the model's own units; `Model::saturation` says where it saturates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Model {
    /// Ideal limiter, `y = x / max(1, r)`: linear up to its saturation, constant envelope above.
    Limiter,
    /// Solid-state amplifier, `y = x / (1 + r^2p)^(1/2p)` with `p` = `smoothness` (Rapp, 1991). It turns no phase.
    Rapp {
        /// `p`, sharpness of the knee: 2 to 3 for a real amplifier; the limiter is the limit of infinity.
        smoothness: f64,
    },
    /// Travelling-wave tube, `|y| = α_a r / (1 + β_a r²)`, turned by `α_φ r² / (1 + β_φ r²)` radians (Saleh, 1981, equations 3 and 4).
    Saleh {
        /// `α_a`; Saleh's tube has 2.1587.
        alpha_a: f64,
        /// `β_a`; Saleh's tube has 1.1517.
        beta_a: f64,
        /// `α_φ` in radians; Saleh's tube has 4.0033.
        alpha_phi: f64,
        /// `β_φ`; Saleh's tube has 9.1040.
        beta_phi: f64,
    },
    /// Memory polynomial, `y_n = Σ a_kq x_{n−q} |x_{n−q}|^{k−1}` (Kim and Konstantinou, 2001).
    ///
    /// A polynomial means nothing outside the range that it was fitted on: here `r ≤ 1`. Larger envelopes are held at 1.
    MemoryPolynomial {
        /// The terms `a_kq`.
        terms: Vec<Term>,
    },
    /// Measured AM/AM and AM/PM points with a monotone cubic (Fritsch and Carlson, 1980) between them.
    ///
    /// Below the first point the gain is that of the first point, above the last one the output is held.
    Table {
        /// The points, by increasing input.
        points: Vec<Point>,
    },
}

impl Model {
    /// Saleh's own tube.
    pub(crate) fn saleh() -> Self {
        Self::Saleh { alpha_a: 2.1587, beta_a: 1.1517, alpha_phi: 4.0033, beta_phi: 9.1040 }
    }

    /// The input amplitude that input back-off is counted from: 1 for the limiter, for Rapp (where the small-signal line meets the
    /// saturated output) and for the memory polynomial (the end of its range); the input of the largest output for Saleh and a table.
    pub(crate) fn saturation(&self) -> f64 {
        match self {
            Self::Limiter | Self::Rapp { .. } | Self::MemoryPolynomial { .. } => 1.0,
            Self::Saleh { beta_a, .. } => 1.0 / beta_a.sqrt(),
            Self::Table { points } => table::saturation(points),
        }
    }
}

/// An amplifier and how hard it is driven.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AmplifierConfig {
    /// Input back-off in dB; negative is overdriven. See [`Amplifier`].
    pub ibo_db: f64,
    /// What the amplifier does to the envelope.
    pub model: Model,
}

/// An amplifier driven at a given *input back-off*: the ratio of the input power that saturates it to the mean power of its input,
///
/// `IBO = 10 log10( saturation² / E|drive·x|² )` dB,
///
/// so 0 dB drives it with a mean power equal to its saturation and −6 dB with four times that. The drive follows from the input power that it is
/// told (`set_input_power`, 1 unless told): it is stated, not measured, and one gain holds for the whole
/// stream. The output is in the model's units: the limiter and Rapp saturate at an envelope of 1.
#[derive(Clone, Debug)]
pub struct Amplifier {
    model: Model,
    shape: Shape,
    ibo_db: f64,
    input_power: f64,
    drive: f64,
}

#[derive(Clone, Debug)]
enum Shape {
    Static(Curve),
    Memory(Polynomial),
}

impl Amplifier {
    /// An amplifier at `ibo_db` of input back-off for an input of mean power 1.
    pub fn new(model: Model, ibo_db: f64) -> Result<Self> {
        let shape = match &model {
            Model::MemoryPolynomial { terms } => Shape::Memory(Polynomial::new(terms)?),
            other => Shape::Static(Curve::new(other)?),
        };
        let mut amplifier = Self { model, shape, ibo_db: 0.0, input_power: 1.0, drive: 1.0 };
        amplifier.set_ibo_db(ibo_db)?;
        Ok(amplifier)
    }

    /// Sets the input back-off in dB; negative is overdriven.
    pub(crate) fn set_ibo_db(&mut self, ibo_db: f64) -> Result<()> {
        require(ibo_db.abs() <= 200.0, "ibo_db", "between -200 and 200", ibo_db)?;
        self.ibo_db = ibo_db;
        self.update();
        Ok(())
    }

    /// Sets the mean power that the input is taken to have.
    pub(crate) fn set_input_power(&mut self, power: f64) -> Result<()> {
        require(power.is_finite() && power > 0.0, "input_power", "more than 0", power)?;
        self.input_power = power;
        self.update();
        Ok(())
    }

    /// Sets the knee `p` of a Rapp amplifier.
    pub(crate) fn set_smoothness(&mut self, smoothness: f64) -> Result<()> {
        let Model::Rapp { .. } = self.model else {
            return Err(Error::parameter("smoothness", "set on a rapp amplifier", smoothness));
        };
        let model = Model::Rapp { smoothness };
        self.shape = Shape::Static(Curve::new(&model)?);
        self.model = model;
        Ok(())
    }

    fn update(&mut self) {
        self.drive = self.model.saturation() * (from_db(-self.ibo_db) / self.input_power).sqrt();
    }
}

impl Stage for Amplifier {
    fn process(&mut self, samples: &mut [Complex32]) {
        let drive = self.drive;
        match &mut self.shape {
            Shape::Static(curve) => curve.process(drive, samples),
            Shape::Memory(polynomial) => {
                for sample in samples {
                    *sample = narrow(polynomial.push(wide(*sample) * drive));
                }
            }
        }
    }

    fn reset(&mut self) {
        if let Shape::Memory(polynomial) = &mut self.shape {
            polynomial.reset();
        }
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "ibo_db" => self.set_ibo_db(value),
            "input_power" => self.set_input_power(value),
            "smoothness" => self.set_smoothness(value),
            _ => Err(no_such("amplifier", name, &["ibo_db", "input_power", "smoothness"])),
        }
    }
}
