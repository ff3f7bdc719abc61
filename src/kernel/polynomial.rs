use num_complex::Complex;

use super::{Centres, Kernel, Row, inner, linear::inner_row};
use crate::error::require;
use crate::{Real, Result};

/// `(cᴴx + offset)^degree`: all monomials of the taps up to the degree.
///
/// ```
/// use kaflow::{Complex, kernel::{Kernel, Polynomial}};
/// let kernel = Polynomial::new(2, 1.0).unwrap();
/// let (c, x) = ([Complex::new(0.0, 1.0)], [Complex::new(2.0, 0.0)]);
/// assert_eq!(kernel.value(&c, &x), Complex::new(-3.0, -4.0)); // (1 − 2j)²
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Polynomial<T> {
    degree: u32,
    offset: T,
}

impl<T: Real> Polynomial<T> {
    /// `degree` from 1 to 16; an `offset` of 0 leaves only the monomials of exactly that degree, so 1 is the usual choice.
    pub fn new(degree: u32, offset: f64) -> Result<Self> {
        require((1..=16).contains(&degree), "degree", "from 1 to 16", f64::from(degree))?;
        require(offset >= 0.0 && offset.is_finite(), "kernel offset", "at least 0", offset)?;
        Ok(Self { degree, offset: T::of(offset) })
    }
}

impl<T: Real> Kernel<T> for Polynomial<T> {
    fn value(&self, centre: &[Complex<T>], x: &[Complex<T>]) -> Complex<T> {
        (inner(centre, x) + self.offset).powu(self.degree)
    }

    fn row(&self, centres: &Centres<T>, x: &[Complex<T>], row: &mut Row<T>) {
        row.resize(centres.len());
        inner_row(centres, x, row);
        for (re, im) in row.re.iter_mut().zip(&mut row.im) {
            let k = (Complex::new(*re, *im) + Complex::new(self.offset, T::zero())).powu(self.degree);
            (*re, *im) = (k.re, k.im);
        }
    }

    fn describe(&self) -> String {
        format!("polynomial(degree={}, offset={})", self.degree, self.offset)
    }
}
