//! A memory polynomial whose coefficients are tracked by RLS: what an engineer would pick for an amplifier.

use num_complex::{Complex, Complex64};
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use super::registry::{Dash, Hue, Make, Parameter, Preset, Recipe, Settings, odd, shared::*};
use super::{Adaptive, Filter, MOST_SQUARED, Portrait, Rls, check_taps, finite, require, state};
use crate::{Error, Real, Result};

pub(super) const RECIPE: Recipe = Recipe {
    name: "mp-rls",
    aliases: &[],
    about: "memory polynomial tracked by RLS",
    reference: "Kim, Konstantinou 2001",
    parameters: &[
        Parameter::number("order", "highest power of the memory polynomial, odd", Preset::Is(5.0), odd(1.0, 9.0)),
        LAMBDA.preset(Preset::Is(0.97)),
        REGULARIZATION,
    ],
    likelihood: None,
    covariance: |s, taps| taps as f64 * (s.number("order").unwrap_or(0.0) + 1.0) / 2.0,
    look: (Hue::Wine, Dash::Dashed),
    make: Make::Filter(build, build),
};

fn build<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    let order = s.whole("order")?.unwrap_or(5);
    if order % 2 == 0 {
        return Err(Error::parameter("order", "an odd number from 1 to 15", order));
    }
    let rms = s.spread() / (taps.max(1) as f64).sqrt();
    Ok(Box::new(MemoryPolynomial::new(taps, order.div_ceil(2), rms, s.number(LAMBDA.name)?, s.number(REGULARIZATION.name)?)?))
}

/// Envelopes above so many times the rms count as that one: there a polynomial knows nothing, and grows without bound.
const REACH: f64 = 4.0;

/// `p = Σ_l Σ_k w_lk u_l |u_l|^(2k)` with `u = x / rms`: odd powers of every tap, weights by [`Rls`].
///
/// Kim and Konstantinou, *Digital predistortion of wideband signals based on power amplifier model with memory*, 2001. Deviates in one thing: where `|u|` is above 4 the
/// powers are those of 4, so that the polynomial goes on as a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryPolynomial {
    rls: Rls,
    terms: usize,
    rms: f64,
    features: Vec<Complex64>,
}

impl MemoryPolynomial {
    /// `taps` taps with `terms` odd powers each (2 means orders 1 and 3), for input of that `rms`; `regularization` in units of input power.
    pub fn new(taps: usize, terms: usize, rms: f64, lambda: f64, regularization: f64) -> Result<Self> {
        require((1..=8).contains(&terms), "order", "an odd number from 1 to 15", 2.0 * terms as f64 - 1.0)?;
        require(rms > 0.0 && rms.is_finite(), "rms", "positive", rms)?;
        check_taps(taps, MOST_SQUARED / terms)?;
        let rls = Rls::new(taps * terms, lambda, regularization / (rms * rms))?;
        Ok(Self { features: vec![Complex64::zero(); rls.size()], rls, terms, rms })
    }

    /// Whether all that was read back has the sizes of `other`.
    pub(super) fn fits(&self, other: &Self) -> bool {
        self.terms == other.terms && self.rms == other.rms && self.features.len() == other.features.len() && self.rls.fits(&other.rls)
    }

    fn expand<T: Real>(&mut self, x: &[Complex<T>]) {
        assert_eq!(x.len() * self.terms, self.features.len(), "input length");
        for (features, x) in self.features.chunks_exact_mut(self.terms).zip(x) {
            let mut power = Complex64::new(x.re.wide(), x.im.wide()) / self.rms;
            let square = power.norm_sqr().min(REACH * REACH);
            for f in features {
                *f = if finite(power) { power } else { Complex64::zero() };
                power *= square;
            }
        }
    }
}

impl Adaptive for MemoryPolynomial {
    fn size(&self) -> usize {
        self.features.len()
    }

    fn reset(&mut self) {
        self.rls.reset();
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        self.rls.set(name, value)
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode("memory polynomial", &(self.terms as u64, self.rms, self.rls.save()?))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (terms, rms, rls): (u64, f64, Vec<u8>) = state::decode("memory polynomial", bytes)?;
        state::same_shape("powers", terms as usize, self.terms)?;
        if !(rms > 0.0 && rms.is_finite()) {
            return Err(Error::State("the rms of its input is no positive number".into()));
        }
        self.rls.restore(&rls)?;
        self.rms = rms;
        Ok(())
    }
}

impl<T: Real> Filter<T> for MemoryPolynomial {
    fn taps(&self) -> usize {
        self.features.len() / self.terms
    }

    fn predict(&mut self, x: &[Complex<T>]) -> Complex<T> {
        self.expand(x);
        let p: Complex64 = self.rls.predict(&self.features);
        Complex::new(T::of(p.re), T::of(p.im))
    }

    fn adapt(&mut self, x: &[Complex<T>], y: Complex<T>) -> Complex<T> {
        self.expand(x);
        let p = self.rls.adapt(&self.features, Complex64::new(y.re.wide(), y.im.wide()));
        Complex::new(T::of(p.re), T::of(p.im))
    }

    fn portrait(&self) -> Portrait {
        let taps: Vec<_> = self.rls.weights().iter().step_by(self.terms).map(|w| w / self.rms).collect();
        Portrait::of_taps(&taps)
    }
}
