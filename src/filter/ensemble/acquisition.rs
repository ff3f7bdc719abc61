//! The members at the start and after a jump: a full covariance of the taps each, in double precision.
//!
//! `P -= k k^H / S`, `P += (2 p12 + p22) D`, with the same scalar recursion for `p11`, `p12`, `p22` as in the [lanes](super::lanes), the sum of `D` in place
//! of `tau`. After `max(256, 8 L)` samples the covariances have taken their common shape, and the lanes go on with `p11 = tr(P R) / tau`.

use num_complex::Complex64;
use serde::{Deserialize, Serialize};

use super::constants::{JUMP_PRIOR, MEMBERS, PRIOR, TAP_FLOOR, TAP_WINDOW, VELOCITY_PRIOR};
use super::lanes::{Lanes, span};
use super::shape::Shape;
use crate::Real;
use crate::simd::{Op, Vector};

/// A number in each member.
type Each = [f64; MEMBERS];

/// Samples between two looks at the power of the taps.
pub(super) const TAP_LOOK: u64 = 16;

/// All members.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Acquisition {
    taps: usize,
    /// Samples to go; zero while the lanes run.
    pub(super) left: usize,
    // Upper triangles.
    p_re: Vec<Each>,
    p_im: Vec<Each>,
    h: Vec<(Each, Each)>,
    v: Vec<(Each, Each)>,
    k: Vec<(Each, Each)>,
    d: Vec<Each>,
    power: Vec<Each>,
    p11: Each,
    p12: Each,
    p22: Each,
    /// Predictions of the last sample and the variance of their taps, in units of the noise.
    pub(super) p: (Each, Each),
    pub(super) f: Each,
}

impl Acquisition {
    pub(super) fn new(taps: usize) -> Self {
        let zero = ([0.0; MEMBERS], [0.0; MEMBERS]);
        let triangle = vec![zero.0; taps * (taps + 1) / 2];
        let mut new = Self {
            taps,
            left: 0,
            p_re: triangle.clone(),
            p_im: triangle,
            h: vec![zero; taps],
            v: vec![zero; taps],
            k: vec![zero; taps],
            d: vec![zero.0; taps],
            power: vec![zero.0; taps],
            p11: zero.0,
            p12: zero.0,
            p22: zero.0,
            p: zero,
            f: zero.0,
        };
        new.begin();
        new
    }

    /// Begins from nothing.
    pub(super) fn begin(&mut self) {
        let zero = ([0.0; MEMBERS], [0.0; MEMBERS]);
        self.left = length(self.taps);
        self.p_re.iter_mut().chain(&mut self.p_im).chain(&mut self.power).for_each(|x| *x = zero.0);
        self.h.iter_mut().chain(&mut self.v).for_each(|x| *x = zero);
        self.d.fill([1.0; MEMBERS]);
        (0..self.taps).for_each(|i| self.p_re[index(self.taps, i, i)] = [PRIOR; MEMBERS]);
        (self.p11, self.p12) = ([PRIOR; MEMBERS], zero.0);
        self.p22 = std::array::from_fn(|m| PRIOR * VELOCITY_PRIOR / span(m).powi(2));
    }

    pub(super) fn is_sound(&self, taps: usize) -> bool {
        let triangle = taps * (taps + 1) / 2;
        let lengths = self.taps == taps && [&self.p_re, &self.p_im].iter().all(|p| p.len() == triangle);
        let rows = [&self.h, &self.v, &self.k].iter().all(|x| x.len() == taps);
        lengths && rows && [&self.d, &self.power].iter().all(|x| x.len() == taps) && self.left <= length(taps)
    }

    /// Begins again with what the lanes know, less sure of it.
    pub(super) fn reopen<T: Real>(&mut self, lanes: &Lanes<T>, shape: &Shape<T>, [h, v]: &mut [Vec<Complex64>; 2]) {
        if self.left == 0 {
            for m in 0..MEMBERS {
                h.iter_mut().zip(lanes.position(m)).for_each(|(to, h)| *to = h);
                v.iter_mut().zip(lanes.velocity(m)).for_each(|(to, v)| *to = v);
                shape.colour(h);
                shape.colour(v);
                for l in 0..self.taps {
                    (self.h[l].0[m], self.h[l].1[m]) = (h[l].re, h[l].im);
                    (self.v[l].0[m], self.v[l].1[m]) = (v[l].re, v[l].im);
                }
                (self.p11[m], self.p12[m], self.p22[m]) = (lanes.p11.0[m].wide(), lanes.p12.0[m].wide(), lanes.p22.0[m].wide());
            }
            for i in 0..self.taps {
                self.power[i] = [shape.power[i]; MEMBERS];
                for j in i..self.taps {
                    let (x, at) = (shape.entry(i, j), index(self.taps, i, j));
                    self.p_re[at] = self.p11.map(|p| p * x.re);
                    self.p_im[at] = self.p11.map(|p| p * x.im);
                }
            }
            self.share();
        }
        self.left = length(self.taps);
        for m in 0..MEMBERS {
            for l in 0..self.taps {
                self.p_re[index(self.taps, l, l)][m] += JUMP_PRIOR;
            }
            self.p11[m] += JUMP_PRIOR;
            self.p22[m] += JUMP_PRIOR * VELOCITY_PRIOR / span(m).powi(2);
        }
    }

    /// Hands over to the lanes. `best` is the member whose taps tell the shape.
    pub(super) fn finish<T: Real>(&mut self, lanes: &mut Lanes<T>, shape: &Shape<T>, [h, v]: &mut [Vec<Complex64>; 2]) {
        for m in 0..MEMBERS {
            let complex = |z: &(Each, Each)| Complex64::new(z.0[m], z.1[m]);
            h.iter_mut().zip(&self.h).for_each(|(to, h)| *to = complex(h));
            v.iter_mut().zip(&self.v).for_each(|(to, v)| *to = complex(v));
            shape.whiten(h);
            shape.whiten(v);
            (0..self.taps).for_each(|l| lanes.set(m, l, h[l], v[l]));
            let at = |i: usize, j: usize| index(self.taps, i, j);
            let excess = shape.excess(|i, j| Complex64::new(self.p_re[at(i, j)][m], self.p_im[at(i, j)][m]));
            let p11 = (excess / shape.tau).clamp(1e-12, PRIOR);
            let ratio = p11 / self.p11[m];
            (lanes.p11.0[m], lanes.p12.0[m], lanes.p22.0[m]) = (T::of(p11), T::of(self.p12[m] * ratio), T::of(self.p22[m] * ratio));
        }
    }

    /// The taps of member `m`.
    pub(super) fn position(&self, m: usize) -> impl Iterator<Item = Complex64> {
        self.h.iter().map(move |h| Complex64::new(h.0[m], h.1[m]))
    }

    /// Power of the taps as member `m` sees it.
    pub(super) fn power(&self, m: usize) -> impl Iterator<Item = f64> {
        self.power.iter().map(move |p| p[m])
    }

    /// The units of input and curve have changed: all taps are multiplied by `factor`.
    pub(super) fn scale(&mut self, factor: Complex64) {
        for x in self.h.iter_mut().chain(&mut self.v) {
            for m in 0..MEMBERS {
                let z = Complex64::new(x.0[m], x.1[m]) * factor;
                (x.0[m], x.1[m]) = (z.re, z.im);
            }
        }
    }

    /// Member `m` takes all of member `from`.
    pub(super) fn copy(&mut self, m: usize, from: usize) {
        let planes = self.h.iter_mut().chain(&mut self.v).flat_map(|(re, im)| [re, im]);
        let rest = self.p_re.iter_mut().chain(&mut self.p_im).chain(&mut self.d).chain(&mut self.power);
        planes.chain(rest).chain([&mut self.p11, &mut self.p12, &mut self.p22]).for_each(|x| x[m] = x[from]);
    }

    /// Of which members all numbers are in range.
    pub(super) fn finite(&self) -> [bool; MEMBERS] {
        std::array::from_fn(|m| self.h.iter().all(|h| (h.0[m] + h.1[m]).is_finite()) && self.p11[m].is_finite())
    }

    /// Follows the power of the taps, lets velocities fade, and bounds the variances.
    pub(super) fn look(&mut self) {
        for m in 0..MEMBERS {
            let (pace, fade) = ((TAP_LOOK as f64 / (TAP_WINDOW * span(m))).min(1.0), (-1.0 / span(m)).exp());
            for l in 0..self.taps {
                let square = self.h[l].0[m].powi(2) + self.h[l].1[m].powi(2);
                self.power[l][m] += pace * (square - self.power[l][m]);
                (self.v[l].0[m], self.v[l].1[m]) = (self.v[l].0[m] * fade, self.v[l].1[m] * fade);
                let variance = self.p_re[index(self.taps, l, l)][m];
                if variance > PRIOR {
                    let s = (PRIOR / variance).sqrt();
                    for j in 0..self.taps {
                        let at = index(self.taps, l.min(j), l.max(j));
                        let s = if j == l { s * s } else { s };
                        (self.p_re[at][m], self.p_im[at][m]) = (self.p_re[at][m] * s, self.p_im[at][m] * s);
                    }
                }
            }
        }
        self.share();
    }

    fn share(&mut self) {
        for m in 0..MEMBERS {
            let most = self.power.iter().fold(f64::MIN_POSITIVE, |a, p| a.max(p[m]));
            self.d.iter_mut().zip(&self.power).for_each(|(d, p)| d[m] = (p[m] / most).max(TAP_FLOOR));
        }
    }
}

/// Samples that an acquisition takes.
fn length(taps: usize) -> usize {
    (8 * taps).max(256)
}

/// Where entry `i, j` of an upper triangle is.
#[inline(always)]
fn index(n: usize, i: usize, j: usize) -> usize {
    i * n - i * (i + 1) / 2 + j
}

/// Predicts a sample from the window `u`, newest first.
pub(super) struct Predict<'a> {
    pub(super) members: &'a mut Acquisition,
    pub(super) u: &'a [Complex64],
    pub(super) offset: Complex64,
}

// Plain loops over the members: compiled inside a function that has the level's instructions, they become vectors.
impl Op<f64> for Predict<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let a = self.members;
        let n = a.taps;
        a.p = ([self.offset.re; MEMBERS], [self.offset.im; MEMBERS]);
        a.k.iter_mut().for_each(|k| *k = ([0.0; MEMBERS], [0.0; MEMBERS]));
        for i in 0..n {
            let (x, h) = (self.u[i], &a.h[i]);
            for m in 0..MEMBERS {
                a.p.0[m] += h.0[m] * x.re - h.1[m] * x.im;
                a.p.1[m] += h.0[m] * x.im + h.1[m] * x.re;
            }
            // k = P conj(u)
            let (first, rest) = a.k.split_at_mut(i + 1);
            let ki = &mut first[i];
            let at = index(n, i, i);
            for m in 0..MEMBERS {
                ki.0[m] += a.p_re[at][m] * x.re;
                ki.1[m] -= a.p_re[at][m] * x.im;
            }
            for (j, kj) in rest.iter_mut().enumerate() {
                let (w, re, im) = (self.u[i + 1 + j], &a.p_re[at + 1 + j], &a.p_im[at + 1 + j]);
                for m in 0..MEMBERS {
                    ki.0[m] += re[m] * w.re + im[m] * w.im;
                    ki.1[m] += im[m] * w.re - re[m] * w.im;
                    kj.0[m] += re[m] * x.re - im[m] * x.im;
                    kj.1[m] -= re[m] * x.im + im[m] * x.re;
                }
            }
        }
        a.f = [0.0; MEMBERS];
        for (x, k) in self.u.iter().zip(&a.k) {
            for m in 0..MEMBERS {
                a.f[m] += x.re * k.0[m] - x.im * k.1[m];
            }
        }
    }
}

/// Learns from the errors of a sample that was [predicted](Predict): `weight` is one over the variance of the error in units of the noise, cut for outliers.
pub(super) struct Learn<'a> {
    pub(super) members: &'a mut Acquisition,
    pub(super) error: &'a (Each, Each),
    pub(super) weight: &'a Each,
}

impl Op<f64> for Learn<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let a = self.members;
        let n = a.taps;
        let kappa: Each = std::array::from_fn(|m| a.p12[m] / a.p11[m]);
        let mut sum = [0.0; MEMBERS];
        for i in 0..n {
            let (k, h, v) = (&a.k[i], &mut a.h[i], &mut a.v[i]);
            for m in 0..MEMBERS {
                let (gr, gi) = (self.weight[m] * self.error.0[m], self.weight[m] * self.error.1[m]);
                let (dr, di) = (gr * k.0[m] - gi * k.1[m], gr * k.1[m] + gi * k.0[m]);
                v.0[m] += kappa[m] * dr;
                v.1[m] += kappa[m] * di;
                h.0[m] += dr + v.0[m];
                h.1[m] += di + v.1[m];
                sum[m] += a.d[i][m];
            }
            let at = index(n, i, i);
            for j in i..n {
                let (k, o, re, im) = (&a.k[i], &a.k[j], &mut a.p_re[at + j - i], &mut a.p_im[at + j - i]);
                for m in 0..MEMBERS {
                    re[m] -= self.weight[m] * (k.0[m] * o.0[m] + k.1[m] * o.1[m]);
                    im[m] -= self.weight[m] * (k.1[m] * o.0[m] - k.0[m] * o.1[m]);
                }
            }
        }
        let mut grow = [0.0; MEMBERS];
        for m in 0..MEMBERS {
            let s = 1.0 / (1.0 + sum[m] * a.p11[m]);
            let (k1, k2) = (a.p11[m] * s, a.p12[m] * s);
            a.p22[m] -= k2 * a.p12[m];
            a.p12[m] -= k1 * a.p12[m];
            a.p11[m] -= k1 * a.p11[m];
            grow[m] = 2.0 * a.p12[m] + a.p22[m];
            a.p11[m] += grow[m];
            a.p12[m] += a.p22[m];
            a.p22[m] += span(m).powi(-4);
        }
        for i in 0..n {
            let at = index(n, i, i);
            for m in 0..MEMBERS {
                a.p_re[at][m] += grow[m] * a.d[i][m];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Dispatch, Level};

    /// Without motion and outliers it is recursive least squares: the taps of a still channel without noise are found.
    #[test]
    fn a_still_channel_is_found() {
        for &level in Level::available() {
            let mut a = Acquisition::new(5);
            let truth: Vec<Complex64> = (0..5).map(|l| Complex64::cis(l as f64) / (1.0 + l as f64)).collect();
            for t in 0..60u32 {
                let u: Vec<_> = (0..5u32).map(|l| Complex64::cis(f64::from((t + 7 - l).pow(2)) * 0.7)).collect();
                let y: Complex64 = u.iter().zip(&truth).map(|(u, h)| u * h).sum();
                f64::dispatch(level, Predict { members: &mut a, u: &u, offset: Complex64::default() });
                let error: (Each, Each) = (a.p.0.map(|p| y.re - p), a.p.1.map(|p| y.im - p));
                let weight = a.f.map(|f| 1.0 / (1.0 + f));
                f64::dispatch(level, Learn { members: &mut a, error: &error, weight: &weight });
            }
            a.position(MEMBERS - 1).zip(&truth).for_each(|(h, truth)| assert!((h - truth).norm() < 1e-3, "{level}: {h} and {truth}"));
        }
    }
}
