//! The members for moving channels after acquisition: one lane each.
//!
//! In whitened coordinates (`h = C h~`, see [`shape`](super::shape)) the covariance of every member is a multiple of the identity, so that a member is
//! NLMS with a velocity, and the multiple follows a Riccati recursion of three numbers:
//!
//! ```text
//!   p = h~.u~ + off;   S = sigma^2 (1 + p11 |u~|^2) + v_theta;   e = y - p
//!   d = p11 min(sigma^2 / S, 12 sigma^2 / |e|^2) e u~*;   v~' = v~ + (p12 / p11) d - k (h~ + v~);   h~' = h~ + v~ + (1 + p12 / p11) d
//!   s = 1 / (1 + tau p11):   p22 -= s p12^2;   p12 -= s p11 p12;   p11 -= s p11^2
//!   p11 += 2 p12 + p22;   p12 += p22;   p22 += span^-4 - k (2 p12 - k p11);   p12 -= k p11
//! ```
//!
//! with `k` from the [motion](super::motion) of the taps.

use num_complex::{Complex, Complex64};
use serde::{Deserialize, Serialize};

use super::constants::{CELL, FASTEST_SPAN, MEMBERS, SPAN_RATIO};
use super::evidence::Evidence;
use super::window;
use crate::Real;
use crate::simd::{Op, Row, Vector};

/// Whitened inputs of a cell: of each tap, and what all taps have in common.
#[derive(Clone, Debug)]
pub(super) struct White<T> {
    pub(super) taps: Vec<Window<T>>,
    /// Squared norms of the windows.
    pub(super) norm: Samples<T>,
    /// What a window has in common with the one before it: `sum_l conj(u~_{l,t-1}) u~_{l,t}`.
    pub(super) link: (Samples<T>, Samples<T>),
}

/// The samples of a cell behind some that stand for the one before it.
pub(super) type Samples<T> = [T; 16 + CELL];

#[derive(Clone, Copy, Debug)]
pub(super) struct Window<T> {
    pub(super) re: Samples<T>,
    pub(super) im: Samples<T>,
}

impl<T: Real> White<T> {
    pub(super) fn new(taps: usize) -> Self {
        let zeros = [T::zero(); 16 + CELL];
        Self { taps: vec![Window { re: zeros, im: zeros }; taps], norm: zeros, link: (zeros, zeros) }
    }

    /// Where sample `i` of a block is.
    #[inline(always)]
    pub(super) fn place(i: usize) -> usize {
        16 + (i & (CELL - 1))
    }
}

/// A tap and its velocity in all members.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Tap<T: Real> {
    pub(super) re: Row<T>,
    pub(super) im: Row<T>,
    pub(super) v_re: Row<T>,
    pub(super) v_im: Row<T>,
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
    pub(super) diffusion: Row<T>,
    /// What turns a tap back, `k`.
    pub(super) spring: Row<T>,
    leak: Row<T>,
    pub(super) evidence: Evidence<T>,
    /// Whether the taps have yet to take in what the last sample taught: the gain times its error, and how much of that goes into velocities.
    pub(super) due: bool,
    pub(super) step: [Row<T>; 2],
    pub(super) kappa: Row<T>,
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
            spring: Row::default(),
            leak: row(&|span| (-1.0 / span).exp()),
            evidence: Evidence::new(MEMBERS),
            due: false,
            step: [Row::default(); 2],
            kappa: Row::default(),
        }
    }

    pub(super) fn is_sound(&self, taps: usize) -> bool {
        let rows = [&self.p11, &self.p12, &self.p22, &self.diffusion, &self.spring, &self.leak, &self.kappa, &self.step[0], &self.step[1]];
        let taps = self.taps.len() == taps && self.taps.iter().all(|t| [&t.re, &t.im, &t.v_re, &t.v_im].iter().all(|r| sound(r)));
        taps && rows.iter().all(|r| sound(r)) && self.evidence.is_sound()
    }

    /// Tap `l` of member `m` with what sample `last` taught.
    fn moved(&self, m: usize, l: usize, white: &White<T>, last: usize) -> Complex<T> {
        let (t, x, at) = (&self.taps[l], &white.taps[l], White::<T>::place(last));
        let step = Complex::new(self.step[0].0[m], self.step[1].0[m]) * Complex::new(x.re[at], -x.im[at]);
        Complex::new(t.re.0[m] + t.v_re.0[m], t.im.0[m] + t.v_im.0[m]) + step * (T::one() + self.kappa.0[m])
    }

    /// Whitened taps of member `m` after sample `last` of the block.
    pub(super) fn present<'a>(&'a self, m: usize, white: Option<&'a White<T>>, last: usize) -> impl Iterator<Item = Complex<T>> + 'a {
        (0..self.taps.len()).map(move |l| match white {
            Some(white) if self.due => self.moved(m, l, white, last),
            _ => Complex::new(self.taps[l].re.0[m], self.taps[l].im.0[m]),
        })
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

    /// Velocities fade in directions that the input does not excite: once in 16 samples.
    pub(super) fn fade(&mut self, samples: usize) {
        let mut leak = self.leak;
        for _ in 1..samples / 16 {
            (0..MEMBERS).for_each(|m| leak.0[m] *= self.leak.0[m]);
        }
        for t in &mut self.taps {
            for row in [&mut t.v_re, &mut t.v_im] {
                (0..MEMBERS).for_each(|m| row.0[m] *= leak.0[m]);
            }
        }
    }

    /// Of which members all numbers are in range.
    pub(super) fn finite(&self) -> [bool; MEMBERS] {
        let mut sums = Row::<T>::default();
        let taps = self.taps.iter().flat_map(|t| [&t.re, &t.im, &t.v_re, &t.v_im]);
        for row in taps.chain([&self.p11, &self.p12, &self.p22, &self.evidence.log]) {
            (0..MEMBERS).for_each(|m| sums.0[m] += row.0[m] * T::zero());
        }
        sums.0.map(|x| x == T::zero())
    }

    /// Member `m` takes the taps of member `from`.
    pub(super) fn copy(&mut self, m: usize, from: usize) {
        for t in &mut self.taps {
            for row in [&mut t.re, &mut t.im, &mut t.v_re, &mut t.v_im] {
                row.0[m] = row.0[from];
            }
        }
    }

    /// Member `m`, which has rested, goes on from where member `from` is; the weight that it gets is `less` times that member's, as a logarithm to base 2.
    pub(super) fn wake(&mut self, m: usize, from: usize, less: f64) {
        self.copy(m, from);
        self.evidence.wake(m, from, less);
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

/// Lets the taps take in what sample `last` of the block taught, if that is still to be done.
pub(super) struct Settle<'a, T: Real> {
    pub(super) lanes: &'a mut Lanes<T>,
    pub(super) white: &'a White<T>,
    pub(super) last: usize,
}

impl<T: Real> Op<T> for Settle<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let Lanes { taps, evidence, spring, kappa, step: [gr, gi], due, .. } = self.lanes;
        if !std::mem::take(due) {
            return;
        }
        let at = White::<T>::place(self.last);
        let window::Window { first, end } = evidence.window;
        let mut lane = first;
        while lane < end {
            let (gr, gi, kappa, spring): (V, V, V, V) = (gr.get(lane), gi.get(lane), kappa.get(lane), spring.get(lane));
            let more = kappa.add(V::splat(T::one()));
            for (tap, x) in taps.iter_mut().zip(&self.white.taps) {
                let (x, y) = (V::splat(x.re[at]), V::splat(x.im[at]));
                let (dr, di) = (gi.fma(y, gr.mul(x)), gr.fnma(y, gi.mul(x)));
                let (vr, vi) = (tap.v_re.get::<V>(lane), tap.v_im.get::<V>(lane));
                let (a, b) = (tap.re.get::<V>(lane).add(vr), tap.im.get::<V>(lane).add(vi));
                tap.v_re.put(lane, spring.fnma(a, kappa.fma(dr, vr)));
                tap.v_im.put(lane, spring.fnma(b, kappa.fma(di, vi)));
                tap.re.put(lane, more.fma(dr, a));
                tap.im.put(lane, more.fma(di, b));
            }
            lane += V::LANES;
        }
    }
}

fn sound<T: Real>(row: &Row<T>) -> bool {
    row.0.iter().all(|x| x.is_finite())
}
