//! Constellations as probabilities: what a noisy point says of the point that was sent, and of its bits.

use num_complex::Complex32;

use crate::ofdm::Modulation;
use crate::simd::{Dispatch, Level, Op, Vector};

/// The axes of a square constellation, for points `z = x + n` with circular Gaussian noise of known variance.
#[derive(Clone, Debug)]
pub(crate) struct Soft {
    modulation: Modulation,
    level: Level,
    /// Levels of one axis, the lowest first, and their labels.
    levels: Vec<f32>,
    labels: Vec<usize>,
    bits: usize,
}

/// Variance below which a point counts as exact, and soft bits stop to grow.
const LEAST: f32 = 1e-6;
/// Largest soft bit: a certainty of e⁻⁴⁰ is one, and sums of thousands stay exact enough.
const LARGEST: f32 = 40.0;

impl Soft {
    pub(crate) fn new(modulation: Modulation) -> Self {
        let bits = modulation.bits().div_ceil(2);
        let (count, distance) = (1usize << bits, modulation.half_distance());
        Self {
            modulation,
            level: Level::current(),
            levels: (0..count).map(|i| ((2 * i) as f64 - (count as f64 - 1.0)) as f32 * distance as f32).collect(),
            labels: (0..count).map(|level| level ^ level >> 1).collect(),
            bits,
        }
    }

    /// Posterior mean and variance of the points behind `z`, whose noise has the variances `v`. `prior` has the logarithms of what is known of them before, as
    /// [`prior`](Self::prior) writes them, or is empty: all points are equally likely.
    pub(crate) fn posterior(&self, z: &[Complex32], v: &[f32], prior: &[f32], mean: &mut [Complex32], variance: &mut [f32]) {
        let real = self.modulation == Modulation::Bpsk;
        f32::dispatch(self.level, Posterior { levels: &self.levels, real, z, v, prior, mean, variance });
    }

    /// Values of `prior` for each point.
    pub(crate) fn prior_len(&self) -> usize {
        2 * self.levels.len()
    }

    /// Logarithms of the probabilities of a point's levels, real axis first, from the soft bits of its label.
    pub(crate) fn prior(&self, bits: &[f32], out: &mut [f32]) {
        for (axis, out) in out.chunks_exact_mut(self.levels.len()).enumerate() {
            let bits = bits.get(axis * self.bits..(axis + 1) * self.bits).unwrap_or_default();
            for (out, &label) in out.iter_mut().zip(&self.labels) {
                // Half of the ratio for a 0, minus half for a 1: right up to a constant.
                let sign = |bit: usize| if label >> (self.bits - 1 - bit) & 1 == 0 { 0.5 } else { -0.5 };
                *out = bits.iter().enumerate().map(|(bit, soft)| sign(bit) * soft).sum();
            }
        }
    }

    /// Appends the soft bits of `points`, `ln P(0) − ln P(1)`, the first bit of each label first: the nearest point with a 0 against the nearest with a 1 (max-log).
    /// A point that is not finite says nothing.
    pub(crate) fn bits(&self, points: &[Complex32], variances: &[f32], out: &mut Vec<f32>) {
        let start = out.len();
        out.resize(start + points.len().min(variances.len()) * self.modulation.bits(), 0.0);
        let real = self.modulation == Modulation::Bpsk;
        let out = &mut out[start..];
        f32::dispatch(self.level, Bits { levels: &self.levels, labels: &self.labels, bits: self.bits, real, points, variances, out });
    }
}

struct Bits<'a> {
    levels: &'a [f32],
    labels: &'a [usize],
    bits: usize,
    real: bool,
    points: &'a [Complex32],
    variances: &'a [f32],
    out: &'a mut [f32],
}

impl Op<f32> for Bits<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f32>>(self) {
        // Labels of a length that the compiler knows are written many at a time.
        match (self.bits, self.real) {
            (_, true) => self.label::<1, 1>(),
            (1, _) => self.label::<1, 2>(),
            (2, _) => self.label::<2, 4>(),
            (3, _) => self.label::<3, 6>(),
            _ => self.label::<4, 8>(),
        }
    }
}

impl Bits<'_> {
    /// Labels of `WIDTH` bits, `BITS` for each axis.
    #[inline(always)]
    fn label<const BITS: usize, const WIDTH: usize>(self) {
        let groups = self.points.chunks(GROUP).zip(self.variances.chunks(GROUP));
        for ((points, variances), out) in groups.zip(self.out.chunks_mut(GROUP * WIDTH)) {
            let mut inverse = [0.0; GROUP];
            let mut parts = [[0.0; GROUP]; 2];
            for i in 0..points.len() {
                let usable = points[i].re.is_finite() && points[i].im.is_finite() && variances[i] < f32::MAX;
                inverse[i] = if usable { 1.0 / if variances[i] > LEAST { variances[i] } else { LEAST } } else { 0.0 };
                (parts[0][i], parts[1][i]) = if usable { (points[i].re, points[i].im) } else { (0.0, 0.0) };
            }
            let mut soft = [[0.0; WIDTH]; GROUP];
            for place in 0..WIDTH {
                let (part, bit) = (&parts[place / BITS], place % BITS);
                let mut near = [[f32::MAX; GROUP]; 2];
                for (&level, &label) in self.levels.iter().zip(self.labels) {
                    let near = &mut near[label >> (BITS - 1 - bit) & 1];
                    for i in 0..GROUP {
                        let d = (part[i] - level) * (part[i] - level);
                        near[i] = if d < near[i] { d } else { near[i] };
                    }
                }
                for i in 0..GROUP {
                    let ratio = (near[1][i] - near[0][i]) * inverse[i];
                    soft[i][place] = ratio.clamp(-LARGEST, LARGEST);
                }
            }
            let used = out.len();
            out.copy_from_slice(&soft.as_flattened()[..used]);
        }
    }
}

struct Posterior<'a> {
    levels: &'a [f32],
    real: bool,
    z: &'a [Complex32],
    v: &'a [f32],
    prior: &'a [f32],
    mean: &'a mut [Complex32],
    variance: &'a mut [f32],
}

/// Levels of an axis, at most.
const LEVELS: usize = 16;
/// Points that are worked on together.
const GROUP: usize = 16;

impl Op<f32> for Posterior<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f32>>(self) {
        let count = self.levels.len();
        let groups = self.z.chunks(GROUP).zip(self.v.chunks(GROUP));
        for (g, ((z, v), (mean, variance))) in groups.zip(self.mean.chunks_mut(GROUP).zip(self.variance.chunks_mut(GROUP))).enumerate() {
            let (mut re, mut im, mut inverse) = ([0.0; GROUP], [0.0; GROUP], [1.0; GROUP]);
            for i in 0..z.len() {
                (re[i], im[i], inverse[i]) = (z[i].re, z[i].im, 1.0 / if v[i] > LEAST { v[i] } else { LEAST });
            }
            let prior = self.prior.get(g * GROUP * 2 * count..).unwrap_or_default();
            let (a, va) = axis(self.levels, &re, &inverse, prior, 0);
            let (b, vb) = if self.real { ([0.0; GROUP], [0.0; GROUP]) } else { axis(self.levels, &im, &inverse, prior, count) };
            for i in 0..z.len() {
                mean[i] = Complex32::new(a[i], b[i]);
                variance[i] = va[i] + vb[i];
            }
        }
    }
}

/// Mean and variance of the levels behind `t`.
#[inline(always)]
fn axis(levels: &[f32], t: &[f32; GROUP], inverse: &[f32; GROUP], prior: &[f32], from: usize) -> ([f32; GROUP], [f32; GROUP]) {
    let mut metrics = [[0.0f32; GROUP]; LEVELS];
    let mut best = [f32::MIN; GROUP];
    if !prior.is_empty() {
        for (i, prior) in prior.chunks_exact(2 * levels.len()).take(GROUP).enumerate() {
            for n in 0..levels.len().min(LEVELS) {
                metrics[n][i] = prior[from + n];
            }
        }
    }
    for (&level, metric) in levels.iter().zip(&mut metrics) {
        for i in 0..GROUP {
            metric[i] -= (t[i] - level) * (t[i] - level) * inverse[i];
            best[i] = if metric[i] > best[i] { metric[i] } else { best[i] };
        }
    }
    let (mut total, mut first, mut second) = ([0.0; GROUP], [0.0; GROUP], [0.0; GROUP]);
    for (&level, metric) in levels.iter().zip(&metrics) {
        for i in 0..GROUP {
            let p = exp(metric[i] - best[i]);
            total[i] += p;
            first[i] += p * level;
            second[i] += p * level * level;
        }
    }
    let (mut mean, mut variance) = ([0.0; GROUP], [0.0; GROUP]);
    for i in 0..GROUP {
        let scale = 1.0 / total[i];
        mean[i] = first[i] * scale;
        let v = second[i] * scale - mean[i] * mean[i];
        variance[i] = if v > 0.0 { v } else { 0.0 };
    }
    (mean, variance)
}

/// `e^x` for `x ≤ 0` to some roundings of x, and nearly 0 below −60: no branch, so that compilers do many at once.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let y = x * std::f32::consts::LOG2_E;
    let y = if y > -87.0 { y } else { -87.0 };
    let whole = y + ROUND;
    let part = y - (whole - ROUND);
    let p = 1.0
        + part * (std::f32::consts::LN_2 + part * (0.240_226_5 + part * (0.055_504_11 + part * (0.009_618_129 + part * 0.001_333_356))));
    f32::from_bits(p.to_bits().wrapping_add(whole.to_bits() << 23))
}

#[cfg(test)]
#[path = "../../../tests/unit/ofdm/saturation/soft.rs"]
mod tests;
