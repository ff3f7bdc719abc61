//! Systems of linear equations.

use num_complex::Complex64;

/// Solves `A x = b` for a Hermitian positive definite matrix, row by row, of which the lower triangle is read and overwritten by its Cholesky factor. `b` becomes x.
///
/// False, with `b` in an unspecified state, where A is not positive definite.
pub(crate) fn solve(a: &mut [Complex64], b: &mut [Complex64]) -> bool {
    factor(a, b.len()) && {
        substitute(a, b);
        b.iter().all(|z| z.re.is_finite() && z.im.is_finite())
    }
}

/// Overwrites the lower triangle of a Hermitian matrix of `n` rows by its Cholesky factor; false where it is not positive definite.
pub(crate) fn factor(a: &mut [Complex64], n: usize) -> bool {
    for i in 0..n {
        for j in 0..=i {
            let (done, row) = a.split_at_mut(i * n);
            let other = if i == j { &row[..j] } else { &done[j * n..j * n + j] };
            let sum: Complex64 = row[..j].iter().zip(other).map(|(x, y)| x * y.conj()).sum();
            let rest = row[j] - sum;
            if i == j {
                if !(rest.re > 0.0 && rest.re.is_finite()) {
                    return false;
                }
                row[i] = Complex64::new(rest.re.sqrt(), 0.0);
            } else {
                row[j] = rest / done[j * n + j].re;
            }
        }
    }
    true
}

/// Solves `L Lᴴ x = b` with what [`factor`] left; `b` becomes x.
pub(crate) fn substitute(a: &[Complex64], b: &mut [Complex64]) {
    let n = b.len();
    for i in 0..n {
        let sum: Complex64 = (0..i).map(|j| a[i * n + j] * b[j]).sum();
        b[i] = (b[i] - sum) / a[i * n + i].re;
    }
    for i in (0..n).rev() {
        b[i] /= a[i * n + i].re;
        let x = b[i];
        for j in 0..i {
            b[j] -= a[i * n + j].conj() * x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solution_solves() {
        let n = 7;
        let value = |i: usize, j: usize| Complex64::new(((i * 5 + j * 3) % 7) as f64 - 3.0, ((i * 2 + j * 11) % 5) as f64 - 2.0);
        // A = B Bᴴ + I.
        let entry = |i: usize, j: usize| (0..n).map(|k| value(i, k) * value(j, k).conj()).sum::<Complex64>() + f64::from(u8::from(i == j));
        let a: Vec<Complex64> = (0..n * n).map(|k| entry(k / n, k % n)).collect();
        let expected: Vec<Complex64> = (0..n).map(|i| value(i, 2 * i + 1)).collect();
        let mut b: Vec<Complex64> = (0..n).map(|i| (0..n).map(|j| a[i * n + j] * expected[j]).sum()).collect();
        assert!(solve(&mut a.clone(), &mut b));
        assert!(b.iter().zip(&expected).all(|(x, y)| (x - y).norm() < 1e-9), "{b:?}");
        assert!(!solve(&mut [Complex64::new(-1.0, 0.0)], &mut [Complex64::ONE]));
        assert!(!solve(&mut [Complex64::new(f64::NAN, 0.0)], &mut [Complex64::ONE]));
    }
}
