//! A curve seen through an uncertain input: its mean, its linear gain and its spread, for any estimate and variance.

use std::sync::LazyLock;

use num_complex::Complex32;

use super::curve::{Curve, NODES, REACH, STEP};
use crate::simd::{Dispatch, Level, Op, Vector};

/// Variances of the table: halved from 1 downwards.
const VARIANCES: usize = 15;
/// The least variance that is told apart from 0.
pub(crate) const LEAST: f32 = 1.0 / (1 << (VARIANCES - 1)) as f32;
/// Points of the quadrature along the real and the imaginary axis.
const POINTS: usize = 20;

/// How a curve's values at the nodes add up to its moments, for `x ~ CN(x̂, v)`: weights that do not depend on the curve, made once.
///
/// With g interpolated linearly between the nodes the moments are sums over its gains:
/// `E g(x)`, `E[g(x) (x − x̂)*] / v` and `E|g(x)|²`.
#[derive(Clone, Debug)]
pub(crate) struct Smoother {
    rows: Vec<Row>,
}

/// The weights of the nodes from `first` on.
#[derive(Clone, Debug)]
struct Row {
    first: usize,
    /// For each node: of the mean over x̂, of the linear gain, of the power, and of the product with the next node's gain in the power.
    weights: Vec<[f32; 4]>,
}

/// Just before the last node.
const LAST: f32 = (NODES - 2) as f32 + 0.999;

/// One entry of the table: gain of the mean (real and imaginary part), linear gain (likewise), variance, and nothing.
type Entry = [f32; 8];

/// The moments of one curve over envelope and variance.
#[derive(Clone, Debug)]
pub(crate) struct Smooth {
    /// For each variance its nodes.
    table: Vec<[Entry; NODES]>,
    level: Level,
    /// The row between two variances that is in use.
    row: Box<[Entry; NODES]>,
}

/// What a [`Smooth`] says of a whole symbol.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    /// Mean linear gain.
    pub(crate) gain: Complex32,
    /// Mean variance of the output that is not `|gain|²` times that of the input.
    pub(crate) distortion: f32,
}

impl Smoother {
    /// The one that all share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<Smoother> = LazyLock::new(Smoother::new);
        &SHARED
    }

    fn new() -> Self {
        let quadrature = hermite(POINTS);
        let mut rows = Vec::with_capacity(VARIANCES * NODES);
        let mut sums = vec![[0.0f64; 4]; NODES];
        for level in 0..VARIANCES {
            // Each axis has half of the variance.
            let deviation = (0.5f64.powi(level as i32) / 2.0).sqrt();
            for node in 0..NODES {
                let centre = node as f64 * STEP;
                sums.fill([0.0; 4]);
                for &(a, wa) in &quadrature {
                    for &(b, wb) in &quadrature {
                        let (re, im, w) = (centre + deviation * a, deviation * b, wa * wb);
                        let r = re.hypot(im);
                        // Beyond the last node the output stays.
                        let held = if r > REACH { REACH / r } else { 1.0 };
                        let place = (r / STEP).min((NODES - 1) as f64 - 1e-9);
                        let (i, f) = (place as usize, place.fract());
                        let power = w * (held * r) * (held * r);
                        for (i, share) in [(i, 1.0 - f), (i + 1, f)] {
                            sums[i][0] += w * share * held * re;
                            // E[g d*] over v = 2 · deviation²: the real part, the imaginary one is odd in b.
                            sums[i][1] += w * share * held * (re * a + im * b) / (2.0 * deviation);
                            sums[i][2] += power * share * share;
                        }
                        sums[i][3] += power * 2.0 * f * (1.0 - f);
                    }
                }
                // A node at 0 has no gain of its own: there the mean is the linear gain times x̂.
                if node == 0 {
                    sums.iter_mut().for_each(|s| s[0] = s[1]);
                } else {
                    sums.iter_mut().for_each(|s| s[0] /= centre);
                }
                let used = |s: &[f64; 4]| s.iter().any(|w| w.abs() > 1e-9);
                let first = sums.iter().position(used).unwrap_or(0);
                let last = sums.iter().rposition(used).unwrap_or(0);
                rows.push(Row { first, weights: sums[first..=last].iter().map(|s| s.map(|w| w as f32)).collect() });
            }
        }
        Self { rows }
    }

    /// Fills in the moments of `curve`.
    pub(crate) fn apply(&self, curve: &Curve, smooth: &mut Smooth) {
        let gains: Vec<Complex32> = curve.gains().iter().map(|g| Complex32::new(g.re as f32, g.im as f32)).collect();
        let next = |i: usize| gains[(i + 1).min(NODES - 1)];
        let powers: Vec<[f32; 2]> = (0..NODES).map(|i| [gains[i].norm_sqr(), (gains[i] * next(i).conj()).re]).collect();
        for (n, (entry, row)) in smooth.table.iter_mut().flatten().zip(&self.rows).enumerate() {
            let (mut mean, mut linear, mut power) = (Complex32::ZERO, Complex32::ZERO, 0.0);
            let nodes = gains[row.first..].iter().zip(&powers[row.first..]);
            for (w, (gain, p)) in row.weights.iter().zip(nodes) {
                mean += gain * w[0];
                linear += gain * w[1];
                power += p[0] * w[2] + p[1] * w[3];
            }
            let centre = (n % NODES) as f32 * STEP as f32;
            let variance = (power - mean.norm_sqr() * centre * centre).max(0.0);
            *entry = [mean.re, mean.im, linear.re, linear.im, variance, 0.0, 0.0, 0.0];
        }
    }

    pub(crate) fn smooth(&self, curve: &Curve) -> Smooth {
        let mut smooth = Smooth { table: vec![[[0.0; 8]; NODES]; VARIANCES], level: Level::current(), row: Box::new([[0.0; 8]; NODES]) };
        self.apply(curve, &mut smooth);
        smooth
    }
}

impl Smooth {
    /// Replaces each `x̂` by `E g(x)` for `x ~ CN(x̂, v)` and says how the symbol fares on average.
    pub(crate) fn moments(&mut self, x: &mut [Complex32], v: f32) -> Moments {
        let place = (-v.clamp(LEAST, 1.0).log2()).min((VARIANCES - 1) as f32 - 1e-3);
        let level = place as usize;
        let pass = Pass { upper: &self.table[level], lower: &self.table[level + 1], share: place.fract(), row: &mut self.row, x };
        let [re, im, variance] = f32::dispatch(self.level, pass);
        let gain = Complex32::new(re, im);
        Moments { gain, distortion: (variance - gain.norm_sqr() * v).max(0.0) }
    }
}

/// One symbol: means of the linear gain and of the variance come out.
struct Pass<'a> {
    upper: &'a [Entry; NODES],
    lower: &'a [Entry; NODES],
    share: f32,
    row: &'a mut [Entry; NODES],
    x: &'a mut [Complex32],
}

impl Op<f32> for Pass<'_> {
    type Output = [f32; 3];

    #[inline(always)]
    fn run<V: Vector<f32>>(self) -> [f32; 3] {
        for n in 0..NODES {
            for lane in 0..8 {
                self.row[n][lane] = self.upper[n][lane] + (self.lower[n][lane] - self.upper[n][lane]) * self.share;
            }
        }
        let mut sums = [0.0f32; 8];
        for x in self.x.iter_mut() {
            let r = (x.re * x.re + x.im * x.im).sqrt() * (1.0 / STEP) as f32;
            let r = if r < LAST { r } else { LAST };
            let i = r as i32;
            let f = r - i as f32;
            let i = (i as usize).min(NODES - 2);
            let (a, b) = (&self.row[i], &self.row[i + 1]);
            let mut entry = [0.0f32; 8];
            for lane in 0..8 {
                entry[lane] = a[lane] + (b[lane] - a[lane]) * f;
                sums[lane] += entry[lane];
            }
            *x = Complex32::new(x.re * entry[0] - x.im * entry[1], x.re * entry[1] + x.im * entry[0]);
        }
        let count = self.x.len() as f32;
        [sums[2] / count, sums[3] / count, sums[4] / count]
    }
}

/// Nodes and weights for `E f(t)` of a standard normal `t`: the Gauss-Hermite rule, by Newton's method on the normalised polynomials.
fn hermite(count: usize) -> Vec<(f64, f64)> {
    // He_n over sqrt(n!), and n He_(n-1) over sqrt(n!) as its derivative.
    let value = |t: f64| {
        let (mut last, mut now) = (0.0, 1.0);
        for n in 0..count {
            let next = (t * now - (n as f64).sqrt() * last) / ((n + 1) as f64).sqrt();
            (last, now) = (now, next);
        }
        (now, (count as f64).sqrt() * last)
    };
    // The roots are symmetric and simple: bracket them on a grid, then refine.
    let edge = 2.0 * (count as f64).sqrt() + 1.0;
    let grid = 4000;
    let at = |i: usize| -edge + 2.0 * edge * i as f64 / grid as f64;
    let mut rule = Vec::with_capacity(count);
    for i in 0..grid {
        let (mut low, mut high) = (at(i), at(i + 1));
        if value(low).0 * value(high).0 >= 0.0 {
            continue;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if value(low).0 * value(middle).0 <= 0.0 { high = middle } else { low = middle }
        }
        let root = 0.5 * (low + high);
        let slope = value(root).1;
        // w = (n − 1)! / (n He_(n−1)²) in terms of the normalised polynomials.
        rule.push((root, 1.0 / (slope * slope / count as f64) / count as f64));
    }
    let total: f64 = rule.iter().map(|(_, w)| w).sum();
    rule.iter_mut().for_each(|(_, w)| *w /= total);
    rule
}
