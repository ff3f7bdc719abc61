use num_complex::Complex64;

use crate::kernel::Kernel;
use crate::real::finite;

/// A map `φ` with `φ(c)ᴴφ(x) ≈ k(c, x)`, exact on its centres, which it picks from data: each time the point that the others say least about (pivoted Cholesky;
/// Fine, Scheinberg 2001).
pub(crate) struct Features<K> {
    kernel: K,
    centres: Vec<Vec<Complex64>>,
    /// Row `j` holds `φ(c_j)` up to its own component.
    factor: Vec<Vec<Complex64>>,
}

impl<K: Kernel<f64>> Features<K> {
    /// At most `most` features, fewer where they leave less than a thousandth of the largest `k(x, x)` unexplained. Points that are not finite are passed over.
    pub(crate) fn pick(kernel: K, points: &[Vec<Complex64>], most: usize) -> Self {
        let mut features = Self { kernel, centres: Vec::new(), factor: Vec::new() };
        let points: Vec<&Vec<Complex64>> = points.iter().filter(|p| p.iter().all(|&z| finite(z))).collect();
        let mut left: Vec<f64> = points.iter().map(|p| features.kernel.norm(p)).collect();
        let mut images: Vec<Vec<Complex64>> = vec![Vec::new(); points.len()];
        let largest = left.iter().copied().fold(0.0, f64::max);
        while features.centres.len() < most {
            let Some((pivot, &top)) = left.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)) else { break };
            if !top.is_finite() || top <= 1e-3 * largest {
                break;
            }
            let mut own = images[pivot].clone();
            own.push(Complex64::new(top.sqrt(), 0.0));
            features.centres.push(points[pivot].clone());
            features.factor.push(own);
            for ((point, image), left) in points.iter().zip(&mut images).zip(&mut left) {
                let next = features.component(point, image);
                *left = (*left - next.norm_sqr()).max(0.0);
                image.push(next);
            }
            left[pivot] = 0.0;
        }
        features
    }

    /// The component of `φ(x)` that follows those in `image`.
    fn component(&self, x: &[Complex64], image: &[Complex64]) -> Complex64 {
        let j = image.len();
        let own = &self.factor[j];
        let known: Complex64 = own[..j].iter().zip(image).map(|(c, x)| c.conj() * x).sum();
        (self.kernel.value(&self.centres[j], x) - known) / own[j].re
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.centres.len()
    }

    /// Appends `φ(x)` to `out`.
    pub(crate) fn map(&self, x: &[Complex64], out: &mut Vec<Complex64>) {
        let start = out.len();
        for _ in 0..self.len() {
            let next = self.component(x, &out[start..]);
            out.push(next);
        }
    }
}
