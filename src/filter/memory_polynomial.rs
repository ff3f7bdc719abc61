//! A memory polynomial whose coefficients are tracked by RLS: what an engineer would pick for an amplifier.

use num_complex::{Complex, Complex64};
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use super::registry::{Dash, Hue, Make, Parameter, Preset, Recipe, Settings, odd, shared::*};
use super::{Adaptive, Filter, Portrait, Rls, finite, require, state};
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
    look: (Hue::Wine, Dash::Dashed),
    make: Make::Filter(build, build),
};

fn build<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    let order = s.whole("order")?.unwrap_or(5);
    if order % 2 == 0 {
        return Err(Error::parameter("order", "an odd number from 1 to 15", order));
    }
    Ok(Box::new(MemoryPolynomial::new(taps, order.div_ceil(2), s.number(LAMBDA.name)?, s.number(REGULARIZATION.name)?)?))
}

/// `p = Σ_l Σ_k w_lk x_l |x_l|^(2k)`: odd powers of every tap, weights by [`Rls`].
///
/// Kim and Konstantinou, *Digital predistortion of wideband signals based on power amplifier model with memory*, 2001. The powers are those of the input
/// as it is: scale it to about unit rms, or the regularization weighs them unequally.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryPolynomial {
    rls: Rls,
    terms: usize,
    features: Vec<Complex64>,
}

impl MemoryPolynomial {
    /// `taps` taps with `terms` odd powers each (2 means orders 1 and 3).
    pub fn new(taps: usize, terms: usize, lambda: f64, regularization: f64) -> Result<Self> {
        require((1..=8).contains(&terms), "order", "an odd number from 1 to 15", (2 * terms) as f64 - 1.0)?;
        let rls = Rls::new(taps * terms, lambda, regularization)?;
        Ok(Self { rls, terms, features: vec![Complex64::zero(); taps * terms] })
    }

    fn expand<T: Real>(&mut self, x: &[Complex<T>]) {
        assert_eq!(x.len() * self.terms, self.features.len(), "input length");
        for (features, x) in self.features.chunks_exact_mut(self.terms).zip(x) {
            let mut power = Complex64::new(x.re.wide(), x.im.wide());
            let square = power.norm_sqr();
            for f in features {
                // A power that overflows counts as zero, as an input that is not finite does.
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
        state::encode("memory polynomial", &(self.terms as u64, self.rls.save()?))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (terms, rls): (u64, Vec<u8>) = state::decode("memory polynomial", bytes)?;
        state::same_shape("powers", terms as usize, self.terms)?;
        self.rls.restore(&rls)
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
        Portrait::of_taps(self.rls.weights().iter().step_by(self.terms))
    }
}
