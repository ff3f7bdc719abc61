//! Window functions.

/// The modified Bessel function I0 by its power series, for arguments up to 10 or so.
pub(crate) fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut sum, mut term, mut k) = (1.0, 1.0, 0.0);
    // Terms fall faster and faster once they fall.
    while term > sum * f64::EPSILON / 4.0 {
        k += 1.0;
        term *= quarter / (k * k);
        sum += term;
    }
    sum
}

/// Kaiser's window of the given shape at `t`, which is 0 in the middle and ±1 at the ends: 1 in the middle.
pub(crate) fn kaiser(t: f64, shape: f64) -> f64 {
    bessel_i0(shape * (1.0 - t * t).max(0.0).sqrt()) / bessel_i0(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bessel_of_one() {
        assert!((bessel_i0(1.0) - 1.266_065_877_752_008).abs() < 1e-15);
    }

    #[test]
    fn the_window_falls_from_one_to_its_edge() {
        assert_eq!(kaiser(0.0, 9.0), 1.0);
        assert_eq!(kaiser(1.0, 9.0), 1.0 / bessel_i0(9.0));
    }
}
