//! Reading symbols that a saturated amplifier has distorted.
//!
//! On a carrier `k` arrives `Y = H·U + noise`, where U is the transform of `g(x)` and x that of the points D. One tap a carrier takes the distortion `U − αD` for
//! noise. The detectors here know the curve g ([`Curve`]) and explain the distortion by what they think was sent:
//!
//! - [`Method::Dar`]: decision-aided reconstruction (Kim, Stüber 1999; Tellado et al. 2003), hard decisions.
//! - [`Method::Bdar`]: its Bayesian form: the expected distortion of a symbol that is known up to a variance, a few transforms and a table a round.
//! - [`Method::Ep`]: expectation propagation through the amplifier, for a receiver that samples all that the amplifier makes.
//!
//! All of them say how sure they are of each point; BDAR and EP give what one tap gives where they are not surer than that.

mod bdar;
pub(crate) mod channel;
mod curve;
mod dar;
mod ep;
mod frame;
pub(crate) mod learn;
mod smooth;
mod soft;

use std::str::FromStr;

use num_complex::Complex32;
use serde::{Deserialize, Serialize};

pub use curve::Curve;
pub(crate) use soft::Soft;

use self::{bdar::Bdar, dar::Dar, ep::Ep, frame::Frame};
use super::Config;
use crate::{Error, Result};

/// How a symbol is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// One tap a carrier, distortion as noise.
    OneTap,
    /// Decision-aided reconstruction.
    Dar,
    /// Bayesian decision-aided reconstruction.
    #[default]
    Bdar,
    /// Expectation propagation.
    Ep,
}

impl Method {
    /// All of them, the simplest first.
    pub(crate) const ALL: [Self; 4] = [Self::OneTap, Self::Dar, Self::Bdar, Self::Ep];

    /// The name as options and files spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OneTap => "one-tap",
            Self::Dar => "dar",
            Self::Bdar => "bdar",
            Self::Ep => "ep",
        }
    }
}

impl FromStr for Method {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|m| m.name() == name).ok_or_else(|| Error::unknown("detector", name, Self::ALL.map(Self::name)))
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// One received symbol and what is known of its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation<'a> {
    /// The transform's bins, carrier 0 first, scaled such that unit power on a carrier is unit power here.
    pub bins: &'a [Complex32],
    /// The channel on the same bins.
    pub channel: &'a [Complex32],
    /// Variance of the noise on a bin.
    pub noise: f32,
    /// The symbol's number in its frame: it sets the pilots.
    pub index: usize,
    /// What a decoder says of the bits on the data carriers, as soft bits.
    pub prior: Option<&'a [f32]>,
    /// The result has what the same detector made of this symbol with a slightly different channel: it may start from there.
    pub again: bool,
}

/// What a detector makes of a symbol: one value for each active carrier, lowest frequency first, pilots included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detected {
    /// Estimates of the points, without what is known of the constellation: `D + noise`.
    pub points: Vec<Complex32>,
    /// Variances of that noise.
    pub variances: Vec<f32>,
    /// Expected points, given the constellation; pilots as they are.
    pub means: Vec<Complex32>,
    /// Mean variance of what was sent around `means`.
    pub doubt: f32,
}

/// Reads symbols with one [`Method`].
///
/// Nothing is allocated from the second symbol on.
#[derive(Clone, Debug)]
pub(crate) struct Saturation {
    frame: Frame,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Bdar(Box<Bdar>),
    Dar(Box<Dar>),
    Ep(Box<Ep>),
}

impl Saturation {
    /// A detector of the symbols of `config` behind an amplifier with the given curve, which includes the clipping of the waveform.
    ///
    /// `oversampling` says at how many times the carrier grid's rate the amplifier is modelled: where the receiver takes one sample for each of the grid but the
    /// amplifier is analogue, 4; the test bed's own amplifier works on the samples, so that it is the oversampling of the waveform. [`Method::Ep`] needs the receiver's
    /// own bins and takes the waveform's in any case.
    pub(crate) fn new(config: &Config, method: Method, oversampling: usize, curve: &Curve) -> Result<Self> {
        config.validate()?;
        if !(1..=16).contains(&oversampling) {
            return Err(Error::parameter("oversampling of the amplifier", "from 1 to 16", oversampling));
        }
        let oversampling = if method == Method::Ep { config.oversampling } else { oversampling };
        let frame = Frame::new(config, oversampling);
        let kind = match method {
            Method::OneTap => Kind::Bdar(Box::new(Bdar::new(&frame, curve, 1))),
            Method::Bdar => Kind::Bdar(Box::new(Bdar::new(&frame, curve, bdar::ROUNDS))),
            Method::Dar => Kind::Dar(Box::new(Dar::new(&frame, curve))),
            Method::Ep => Kind::Ep(Box::new(Ep::new(&frame, curve))),
        };
        Ok(Self { frame, kind })
    }

    /// Goes on with another curve.
    pub(crate) fn set_curve(&mut self, curve: &Curve) {
        match &mut self.kind {
            Kind::Bdar(d) => d.set_curve(&mut self.frame, curve),
            Kind::Dar(d) => d.set_curve(&mut self.frame, curve),
            Kind::Ep(d) => d.set_curve(&mut self.frame, curve),
        }
    }

    /// Reads one symbol.
    pub(crate) fn detect(&mut self, symbol: &Observation<'_>, out: &mut Detected) {
        self.frame.prepare(symbol, out);
        match &mut self.kind {
            Kind::Bdar(d) => d.detect(&mut self.frame, symbol, out),
            Kind::Dar(d) => d.detect(&mut self.frame, symbol, out),
            Kind::Ep(d) => d.detect(&mut self.frame, symbol, out),
        }
    }
}
