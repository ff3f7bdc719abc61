use num_complex::Complex;

use super::{Centres, Kernel, Row, inner};
use crate::Real;

/// `cᴴx`: KLMS with it is LMS.
///
/// ```
/// use kaflow::{Complex, kernel::{Kernel, Linear}};
/// let (c, x) = ([Complex::new(0.0, 1.0)], [Complex::new(2.0, 0.0)]);
/// assert_eq!(Linear.value(&c, &x), Complex::new(0.0, -2.0)); // the centre is conjugated, the input is not
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Linear;

impl<T: Real> Kernel<T> for Linear {
    fn value(&self, centre: &[Complex<T>], x: &[Complex<T>]) -> Complex<T> {
        inner(centre, x)
    }

    fn row(&self, centres: &Centres<T>, x: &[Complex<T>], row: &mut Row<T>) {
        row.resize(centres.len());
        inner_row(centres, x, row);
    }

    fn describe(&self) -> String {
        "linear".into()
    }
}

/// `c_iᴴx` for all centres, plane by plane.
pub(super) fn inner_row<T: Real>(centres: &Centres<T>, x: &[Complex<T>], row: &mut Row<T>) {
    row.re.fill(T::zero());
    row.im.fill(T::zero());
    for (l, z) in x.iter().enumerate() {
        let planes = centres.plane(2 * l).iter().zip(centres.plane(2 * l + 1));
        for ((re, im), (&a, &b)) in row.re.iter_mut().zip(&mut row.im).zip(planes) {
            *re += a * z.re + b * z.im;
            *im += a * z.im - b * z.re;
        }
    }
}
