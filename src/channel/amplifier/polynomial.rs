use num_complex::Complex64;
use serde::{Deserialize, Serialize};

use super::curve::Curve;
use crate::error::require;
use crate::{Error, Result};

/// One term of a memory polynomial, `(re + j·im) · x_{n−delay} · |x_{n−delay}|^{order−1}`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// 1 is linear, 3 cubic; even orders are allowed.
    pub order: u32,
    /// In samples.
    pub delay: u32,
    /// Real part of the coefficient.
    pub re: f64,
    /// Imaginary part of the coefficient.
    #[serde(default)]
    pub im: f64,
}

const MAX_ORDER: u32 = 31;
const MAX_DELAY: u32 = 1023;

/// Checked terms and the last inputs, newest at `newest`.
#[derive(Clone, Debug)]
pub(super) struct Polynomial {
    terms: Vec<(Complex64, i32, usize)>,
    history: Vec<(Complex64, f64)>,
    newest: usize,
}

impl Polynomial {
    pub(super) fn new(terms: &[Term]) -> Result<Self> {
        if terms.is_empty() {
            return Err(Error::parameter("terms", "at least one term", "none"));
        }
        let mut checked = Vec::with_capacity(terms.len());
        for term in terms {
            require((1..=MAX_ORDER).contains(&term.order), "order", "between 1 and 31", f64::from(term.order))?;
            require(term.delay <= MAX_DELAY, "delay", "at most 1023 samples", f64::from(term.delay))?;
            require(term.re.is_finite(), "re", "finite", term.re)?;
            require(term.im.is_finite(), "im", "finite", term.im)?;
            checked.push((Complex64::new(term.re, term.im), term.order as i32 - 1, term.delay as usize));
        }
        let longest = checked.iter().map(|t| t.2).max().unwrap_or(0);
        Ok(Self { terms: checked, history: vec![(Complex64::ZERO, 0.0); longest + 1], newest: 0 })
    }

    pub(super) fn push(&mut self, x: Complex64) -> Complex64 {
        let x = Curve::Limiter.apply(x);
        let size = self.history.len();
        self.newest = if self.newest == 0 { size - 1 } else { self.newest - 1 };
        self.history[self.newest] = (x, x.norm_sqr().sqrt());
        let mut y = Complex64::ZERO;
        for &(coefficient, exponent, delay) in &self.terms {
            let at = self.newest + delay;
            let (x, envelope) = self.history[if at < size { at } else { at - size }];
            y += coefficient * x * power(envelope, exponent);
        }
        y
    }

    pub(super) fn reset(&mut self) {
        self.history.fill((Complex64::ZERO, 0.0));
        self.newest = 0;
    }
}

/// `base^exponent` in a fixed order of multiplications: `f64::powi` may round differently from one platform to the next.
fn power(base: f64, exponent: i32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}
