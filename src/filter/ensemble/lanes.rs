//! The members for moving channels after acquisition: one lane each.
//!
//! In whitened coordinates (`h = C h~`, see [`shape`](super::shape)) the covariance of every member is a multiple of the identity, so that a member is
//! NLMS with a velocity, and the multiple follows a Riccati recursion of three numbers:
//!
//! ```text
//!   p = h~.u~ + off;   S = sigma^2 (1 + p11 |u~|^2) + v_theta;   e = y - p
//!   d = p11 min(sigma^2 / S, 12 sigma^2 / |e|^2) e u~*;   v~ += (p12 / p11) d;   h~ += d + v~
//!   s = 1 / (1 + tau p11):   p22 -= s p12^2;   p12 -= s p11 p12;   p11 -= s p11^2
//!   p11 += 2 p12 + p22;   p12 += p22;   p22 += span^-4
//! ```

use num_complex::{Complex, Complex64};
use serde::{Deserialize, Serialize};

use super::constants::{CELL, FASTEST_SPAN, MEMBERS, OUTLIER, SPAN_RATIO};
use super::evidence::{Evidence, LEAST};
use crate::Real;
use crate::simd::{Op, Row, Vector};

/// Whitened inputs of a cell: one array of samples for each tap, and the squared norms.
#[derive(Clone, Debug)]
pub(super) struct White<T> {
    pub(super) re: Vec<[T; CELL]>,
    pub(super) im: Vec<[T; CELL]>,
    pub(super) norm: [T; CELL],
}

impl<T: Real> White<T> {
    pub(super) fn new(taps: usize) -> Self {
        Self { re: vec![[T::zero(); CELL]; taps], im: vec![[T::zero(); CELL]; taps], norm: [T::zero(); CELL] }
    }
}

/// A tap and its velocity in all members.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Tap<T: Real> {
    pub(super) re: Row<T>,
    pub(super) im: Row<T>,
    v_re: Row<T>,
    v_im: Row<T>,
}

/// The span of member `m` in samples.
pub(super) fn span(m: usize) -> f64 {
    FASTEST_SPAN * SPAN_RATIO.powi(m as i32)
}

/// All members.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Lanes<T: Real> {
    pub(super) taps: Vec<Tap<T>>,
    pub(super) p11: Row<T>,
    pub(super) p12: Row<T>,
    pub(super) p22: Row<T>,
    diffusion: Row<T>,
    leak: Row<T>,
    pub(super) evidence: Evidence<T>,
}

impl<T: Real> Lanes<T> {
    pub(super) fn new(taps: usize) -> Self {
        let row = |f: &dyn Fn(f64) -> f64| Row(std::array::from_fn(|m| T::of(f(span(m)))));
        Self {
            taps: vec![Tap { re: Row::default(), im: Row::default(), v_re: Row::default(), v_im: Row::default() }; taps],
            p11: Row::default(),
            p12: Row::default(),
            p22: Row::default(),
            diffusion: row(&|span| span.powi(-4)),
            leak: row(&|span| (-1.0 / span).exp()),
            evidence: Evidence::new(MEMBERS),
        }
    }

    pub(super) fn is_sound(&self, taps: usize) -> bool {
        let rows = [&self.p11, &self.p12, &self.p22, &self.diffusion, &self.leak];
        let taps = self.taps.len() == taps && self.taps.iter().all(|t| [&t.re, &t.im, &t.v_re, &t.v_im].iter().all(|r| sound(r)));
        taps && rows.iter().all(|r| sound(r)) && self.evidence.is_sound()
    }

    /// Whitened taps of member `m`.
    pub(super) fn position(&self, m: usize) -> impl Iterator<Item = Complex64> {
        self.taps.iter().map(move |t| Complex64::new(t.re.0[m].wide(), t.im.0[m].wide()))
    }

    pub(super) fn velocity(&self, m: usize) -> impl Iterator<Item = Complex64> {
        self.taps.iter().map(move |t| Complex64::new(t.v_re.0[m].wide(), t.v_im.0[m].wide()))
    }

    pub(super) fn set(&mut self, m: usize, l: usize, h: Complex64, v: Complex64) {
        let t = &mut self.taps[l];
        (t.re.0[m], t.im.0[m]) = (T::of(h.re), T::of(h.im));
        (t.v_re.0[m], t.v_im.0[m]) = (T::of(v.re), T::of(v.im));
    }

    /// Velocities fade in directions that the input does not excite.
    pub(super) fn fade(&mut self) {
        for t in &mut self.taps {
            for m in 0..MEMBERS {
                t.v_re.0[m] *= self.leak.0[m];
                t.v_im.0[m] *= self.leak.0[m];
            }
        }
    }

    /// Whether all numbers of member `m` are in range.
    pub(super) fn is_finite(&self, m: usize) -> bool {
        let taps = self.taps.iter().all(|t| (t.re.0[m] + t.im.0[m] + t.v_re.0[m] + t.v_im.0[m]).is_finite());
        taps && [&self.p11, &self.p12, &self.p22].iter().all(|r| r.0[m].is_finite()) && self.evidence.log.0[m].is_finite()
    }

    /// Member `m` takes the taps of member `from`.
    pub(super) fn copy(&mut self, m: usize, from: usize) {
        for t in &mut self.taps {
            for row in [&mut t.re, &mut t.im, &mut t.v_re, &mut t.v_im] {
                row.0[m] = row.0[from];
            }
        }
    }

    /// The carrier took over a rotation of `step` radians a sample.
    pub(super) fn rotate(&mut self, step: f64) {
        let step = T::of(step);
        for t in &mut self.taps {
            for m in 0..MEMBERS {
                t.v_re.0[m] += step * t.im.0[m];
                t.v_im.0[m] -= step * t.re.0[m];
            }
        }
    }

    /// The units of input and curve have changed: all taps are multiplied by `factor`.
    pub(super) fn scale(&mut self, factor: Complex64) {
        for l in 0..self.taps.len() {
            for m in 0..MEMBERS {
                let t = &self.taps[l];
                let h = Complex64::new(t.re.0[m].wide(), t.im.0[m].wide()) * factor;
                let v = Complex64::new(t.v_re.0[m].wide(), t.v_im.0[m].wide()) * factor;
                self.set(m, l, h, v);
            }
        }
    }
}

fn sound<T: Real>(row: &Row<T>) -> bool {
    row.0.iter().all(|x| x.is_finite())
}

/// The sums over all members that make a prediction: `w·p` and `w·(V + |p|²)`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums<T> {
    pub(super) re: T,
    pub(super) im: T,
    pub(super) square: T,
}

/// At most four samples through all members.
pub(super) struct Run<'a, T: Real, const N: usize> {
    pub(super) lanes: &'a mut Lanes<T>,
    pub(super) white: &'a White<T>,
    /// Place of the first sample in the cell.
    pub(super) from: usize,
    pub(super) y: &'a [Complex<T>],
    pub(super) offset: Complex<T>,
    /// Variance that the curve adds, and one over the unit of variances.
    pub(super) curve: T,
    pub(super) relative: T,
    pub(super) pace: T,
    pub(super) tau: T,
    pub(super) learn: bool,
    /// Squared norm of an input below which nothing is learned.
    pub(super) silence: T,
    pub(super) sums: &'a mut [Sums<T>],
}

impl<T: Real, const N: usize> Op<T> for Run<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(mut self) {
        for group in 0..Row::<T>::groups::<V>() {
            self.group::<V>(group);
        }
    }
}

impl<T: Real, const N: usize> Run<'_, T, N> {
    #[inline(always)]
    fn group<V: Vector<T>>(&mut self, group: usize) {
        let n = if N > 0 { N } else { self.lanes.taps.len() };
        let taps = &mut self.lanes.taps[..n];
        let (re, im) = (&self.white.re[..n], &self.white.im[..n]);
        let (one, zero, least) = (V::splat(T::one()), V::splat(T::zero()), V::splat(T::of(LEAST)));
        let (outlier, curve, relative, pace) =
            (V::splat(T::of(OUTLIER)), V::splat(self.curve), V::splat(self.relative), V::splat(self.pace));
        let (mut p11, mut p12, mut p22): (V, V, V) = (self.lanes.p11.get(group), self.lanes.p12.get(group), self.lanes.p22.get(group));
        let diffusion: V = self.lanes.diffusion.get(group);
        let mut judge = self.lanes.evidence.load::<V>(group);

        let t = self.from & (CELL - 1);
        let (mut p, mut q) = ((V::splat(self.offset.re), V::splat(self.offset.im)), (zero, zero));
        for l in 0..n {
            let (x, y) = (V::splat(re[l][t]), V::splat(im[l][t]));
            let (a, b) = (taps[l].re.get::<V>(group), taps[l].im.get::<V>(group));
            p = (a.fma(x, p.0), a.fma(y, p.1));
            q = (b.fma(y, q.0), b.fma(x, q.1));
        }
        for (s, &y) in self.y.iter().enumerate() {
            let t = (self.from + s) & (CELL - 1);
            let (re_p, im_p) = (p.0.sub(q.0), p.1.add(q.1));
            let norm = self.white.norm[t];
            let variance = judge.noise.mul(p11.fma(V::splat(norm), one)).add(curve).max(least);
            let sums = &mut self.sums[s];
            sums.re += judge.weight.mul(re_p).sum();
            sums.im += judge.weight.mul(im_p).sum();
            sums.square += judge.weight.mul(re_p.fma(re_p, im_p.fma(im_p, variance))).sum();
            let next = (t + 1) & (CELL - 1);
            let more = s + 1 < self.y.len();
            if !(self.learn && norm > self.silence) {
                if more {
                    (p, q) = ((V::splat(self.offset.re), V::splat(self.offset.im)), (zero, zero));
                    for l in 0..n {
                        let (x, y) = (V::splat(re[l][next]), V::splat(im[l][next]));
                        let (a, b) = (taps[l].re.get::<V>(group), taps[l].im.get::<V>(group));
                        p = (a.fma(x, p.0), a.fma(y, p.1));
                        q = (b.fma(y, q.0), b.fma(x, q.1));
                    }
                }
                continue;
            }
            let (er, ei) = (V::splat(y.re).sub(re_p), V::splat(y.im).sub(im_p));
            let square = er.fma(er, ei.mul(ei));
            let inverse = variance.recip();
            let trust = inverse.min(outlier.mul(square.max(least).rough_recip()));
            let gain = p11.mul(judge.noise).mul(trust);
            let (gr, gi) = (gain.mul(er), gain.mul(ei));
            let kappa = p12.mul(p11.recip());

            // Learn, move, and predict the next sample: one pass over the taps.
            (p, q) = ((V::splat(self.offset.re), V::splat(self.offset.im)), (zero, zero));
            for l in 0..n {
                let tap = &mut taps[l];
                let (x, y) = (V::splat(re[l][t]), V::splat(im[l][t]));
                let (dr, di) = (gi.fma(y, gr.mul(x)), gr.fnma(y, gi.mul(x)));
                let (vr, vi) = (kappa.fma(dr, tap.v_re.get(group)), kappa.fma(di, tap.v_im.get(group)));
                tap.v_re.put(group, vr);
                tap.v_im.put(group, vi);
                let (a, b) = (tap.re.get::<V>(group).add(dr.add(vr)), tap.im.get::<V>(group).add(di.add(vi)));
                tap.re.put(group, a);
                tap.im.put(group, b);
                let (x, y) = (V::splat(re[l][next]), V::splat(im[l][next]));
                p = (a.fma(x, p.0), a.fma(y, p.1));
                q = (b.fma(y, q.0), b.fma(x, q.1));
            }
            judge.take(square, variance, relative, pace);
            let s = p11.fma(V::splat(self.tau), one).recip();
            let (k1, k2) = (p11.mul(s), p12.mul(s));
            p22 = k2.fnma(p12, p22);
            p12 = k1.fnma(p12, p12);
            p11 = k1.fnma(p11, p11);
            p11 = p11.add(p12.add(p12).add(p22));
            p12 = p12.add(p22);
            p22 = p22.add(diffusion);
        }
        self.lanes.p11.put(group, p11);
        self.lanes.p12.put(group, p12);
        self.lanes.p22.put(group, p22);
        judge.store(&mut self.lanes.evidence, group);
    }
}
