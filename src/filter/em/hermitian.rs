use num_complex::Complex64;
use num_traits::Zero;

/// The smoother's information matrix.
#[derive(Clone)]
pub(super) struct Hermitian {
    n: usize,
    re: Vec<f64>,
    im: Vec<f64>,
}

impl Hermitian {
    pub(super) fn new(n: usize) -> Self {
        Self { n, re: vec![0.0; n * n], im: vec![0.0; n * n] }
    }

    pub(super) fn at(&self, i: usize, j: usize) -> Complex64 {
        Complex64::new(self.re[i * self.n + j], self.im[i * self.n + j])
    }

    pub(super) fn trace(&self) -> f64 {
        self.re.iter().step_by(self.n + 1).sum()
    }

    pub(super) fn scale(&mut self, by: f64) {
        if by != 1.0 {
            self.re.iter_mut().chain(&mut self.im).for_each(|v| *v *= by);
        }
    }

    pub(super) fn times(&self, v: &[Complex64]) -> Vec<Complex64> {
        let row = |i: usize| {
            let rows = self.re[i * self.n..][..self.n].iter().zip(&self.im[i * self.n..][..self.n]);
            rows.zip(v).fold(Complex64::zero(), |sum, ((&re, &im), v)| {
                Complex64::new(sum.re + re * v.re - im * v.im, sum.im + re * v.im + im * v.re)
            })
        };
        (0..self.n).map(row).collect()
    }

    /// `N ← N + precision xᴴx − g x − xᴴgᴴ`.
    pub(super) fn observe(&mut self, x: &[Complex64], g: &[Complex64], precision: f64) {
        for i in 0..self.n {
            let (xi, gi) = (x[i], g[i]);
            let rows = self.re[i * self.n..][..self.n].iter_mut().zip(&mut self.im[i * self.n..][..self.n]);
            for ((re, im), (xj, gj)) in rows.zip(x.iter().zip(g)) {
                // conj(x_i) (precision x_j − conj(g_j)) − g_i x_j
                let (a, b) = (precision * xj.re - gj.re, precision * xj.im + gj.im);
                *re += xi.re * a + xi.im * b - (gi.re * xj.re - gi.im * xj.im);
                *im += xi.re * b - xi.im * a - (gi.re * xj.im + gi.im * xj.re);
            }
        }
    }
}
