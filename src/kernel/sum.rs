use num_complex::Complex;

use super::{Centres, Kernel, Row};
use crate::error::require;
use crate::{Error, Real, Result};

/// `Σ w_j k_j`: functions that are sums of what each kernel can express.
///
/// A Gaussian plus a linear kernel follows a channel that is mostly linear with far fewer centres than the Gaussian alone.
///
/// ```
/// use kaflow::{Complex, kernel::{Gaussian, Kernel, Linear, Sum}};
/// let kernel = Sum::new(vec![(0.5, Box::new(Gaussian::new(1.0).unwrap()) as _), (2.0, Box::new(Linear) as _)]).unwrap();
/// let x = [Complex::new(0.0, 3.0)];
/// assert_eq!(kernel.norm(&x), 0.5 + 2.0 * 9.0);
/// ```
pub struct Sum<T> {
    terms: Vec<(T, Box<dyn Kernel<T>>)>,
}

impl<T: Real> Sum<T> {
    /// The kernels with their weights, which must not be negative.
    pub fn new(terms: Vec<(f64, Box<dyn Kernel<T>>)>) -> Result<Self> {
        if terms.is_empty() {
            return Err(Error::parameter("kernels in a sum", "at least 1", 0));
        }
        let term = |(w, k): (f64, _)| {
            require(w >= 0.0 && w.is_finite(), "kernel weight", "at least 0", w)?;
            Ok((T::of(w), k))
        };
        Ok(Self { terms: terms.into_iter().map(term).collect::<Result<_>>()? })
    }
}

impl<T: Real> Kernel<T> for Sum<T> {
    fn value(&self, centre: &[Complex<T>], x: &[Complex<T>]) -> Complex<T> {
        self.terms.iter().map(|(w, k)| k.value(centre, x) * *w).sum()
    }

    fn norm(&self, x: &[Complex<T>]) -> T {
        self.terms.iter().map(|(w, k)| k.norm(x) * *w).sum()
    }

    fn constant_norm(&self) -> Option<T> {
        self.terms.iter().map(|(w, k)| Some(*w * if *w > T::zero() { k.constant_norm()? } else { T::one() })).sum()
    }

    fn row(&self, centres: &Centres<T>, x: &[Complex<T>], row: &mut Row<T>) {
        row.resize(centres.len());
        row.re.fill(T::zero());
        row.im.fill(T::zero());
        row.is_real = true;
        let mut spare = row.spare.take().unwrap_or_default();
        for (w, kernel) in &self.terms {
            kernel.row(centres, x, &mut spare);
            let add = |to: &mut [T], from: &[T]| to.iter_mut().zip(from).for_each(|(a, &b)| *a += *w * b);
            add(&mut row.re, &spare.re);
            if !spare.is_real {
                add(&mut row.im, &spare.im);
                row.is_real = false;
            }
            if spare.has_distance {
                std::mem::swap(&mut row.distance, &mut spare.distance);
                row.has_distance = true;
            }
        }
        row.spare = Some(spare);
    }

    fn describe(&self) -> String {
        self.terms.iter().map(|(w, k)| format!("{w}*{}", k.describe())).collect::<Vec<_>>().join(" + ")
    }
}
