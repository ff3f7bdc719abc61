//! Samples through the members that run.

use num_complex::Complex;

use super::average::{Average, Sums};
use super::bank::Bank;
use super::constants::*;
use super::evidence::{Evidence, LEAST, Weigh};
use super::lanes::{Lanes, White};
use super::planes::Planes;
use super::simple::Simple;
use super::window::Window;
use crate::Real;
use crate::simd::{Op, Row, Vector};

/// The lanes and what they need to know.
pub(super) struct Moving<'a, T: Real, const N: usize> {
    pub(super) lanes: &'a mut Lanes<T>,
    pub(super) white: &'a White<T>,
    pub(super) offset: Complex<T>,
    /// Variance that the curve adds.
    pub(super) curve: T,
    pub(super) tau: T,
    /// Squared norm of an input below which nothing is learned.
    pub(super) silence: T,
    /// The sample from which on the covariances are in their steady state: they are then followed with every fourth sample.
    pub(super) steady: u64,
}

/// Samples `from..to` of the block through the parts that run; returns how many were taken before the lanes were too much surprised.
pub(super) struct Run<'a, T: Real, const N: usize> {
    pub(super) lanes: Option<Moving<'a, T, N>>,
    pub(super) bank: Option<&'a mut Bank<T>>,
    pub(super) simple: Option<&'a mut Simple<T>>,
    pub(super) average: &'a mut Average<T>,
    pub(super) y: &'a Planes<T>,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) learn: bool,
    /// What remains of the evidence after a sample.
    pub(super) evidence: T,
}

impl<T: Real, const N: usize> Op<T> for Run<'_, T, N> {
    type Output = usize;

    #[inline(always)]
    fn run<V: Vector<T>>(mut self) -> usize {
        let (average, learn) = (self.average, self.learn);
        let row = Row::default();
        let mut rows = Rows { re: [row; QUAD], im: [row; QUAD], variance: [row; QUAD], product: row, surprise: row, new: false };
        let mut at = self.from;
        while at < self.to {
            let n = average.next(self.to - at);
            rows.new = average.due.is_some();
            if let Some(moving) = &mut self.lanes {
                moving.quad::<V>(self.y, at, n, average.relative, learn, &mut rows);
            }
            // Only now the weights that these predictions get: they take long to compute, and the members need not wait for them.
            if let Some(forgetting) = average.due.take() {
                let (lanes, bank) = (self.lanes.as_mut().map(|m| &mut m.lanes.evidence), self.bank.as_mut().map(|b| &mut b.evidence));
                let simple = self.simple.as_mut().map(|s| &mut s.evidence);
                average.shares = Weigh { running: [lanes, bank, simple], forgetting, counts: average.counts }.run::<V>();
            }
            let lanes = self.lanes.as_mut().map(|moving| rows.sum::<V>(&mut moving.lanes.evidence));
            let bank = self.bank.as_mut().map(|bank| bank.judge(self.y, at, n, average.relative, learn));
            let simple = self.simple.as_mut().map(|simple| simple.judge(self.y, at, n, average.relative, learn));
            average.conclude(self.y, at, n, [lanes, bank, simple], learn);
            at += n;
            if !learn {
                continue;
            }
            average.phase += n;
            if average.is_complete() {
                if let Some(moving) = &mut self.lanes {
                    moving.lanes.evidence.renew::<V>(average.phase);
                }
                if let Some(bank) = &mut self.bank {
                    bank.evidence.renew::<V>(average.phase);
                }
                if let Some(simple) = &mut self.simple {
                    simple.evidence.renew::<V>(average.phase);
                }
                average.complete(self.evidence, false);
                if average.surprise > T::of(JUMP) && self.lanes.is_some() {
                    break;
                }
            }
        }
        at - self.from
    }
}

/// What at most four samples are to the lanes: predictions, the variances of their errors, and the evidence that these are.
struct Rows<T> {
    re: [Row<T>; QUAD],
    im: [Row<T>; QUAD],
    variance: [Row<T>; QUAD],
    product: Row<T>,
    surprise: Row<T>,
    // Whether the weights for the samples before are yet to be computed.
    new: bool,
}

impl<T: Real> Rows<T> {
    /// The sums with the present weights; the evidence goes to those of the next.
    #[inline(always)]
    fn sum<V: Vector<T>>(&self, evidence: &mut Evidence<T>) -> Sums<T> {
        let mut sums = Sums::default();
        let Window { first, end } = evidence.window;
        let mut g = first;
        while g < end {
            evidence.put::<V>(g, self.product.get(g), self.surprise.get(g));
            let w: V = evidence.weight.get(g);
            let (mut re, mut im, mut square) = ([w; QUAD], [w; QUAD], [w; QUAD]);
            for s in 0..QUAD {
                let (x, y): (V, V) = (self.re[s].get(g), self.im[s].get(g));
                let (x, y) = (x.sub(V::splat(self.re[s].0[first])), y.sub(V::splat(self.im[s].0[first])));
                (re[s], im[s]) = (w.mul(x), w.mul(y));
                square[s] = w.mul(x.fma(x, y.fma(y, self.variance[s].get(g))));
            }
            let (re, im, square) = (V::sums(re), V::sums(im), V::sums(square));
            for s in 0..QUAD {
                (sums.re[s], sums.im[s], sums.variance[s]) = (sums.re[s] + re[s], sums.im[s] + im[s], sums.variance[s] + square[s]);
            }
            g += V::LANES;
        }
        for s in 0..QUAD {
            sums.variance[s] -= sums.re[s] * sums.re[s] + sums.im[s] * sums.im[s];
            (sums.re[s], sums.im[s]) = (self.re[s].0[first] + sums.re[s], self.im[s].0[first] + sums.im[s]);
        }
        sums
    }
}

impl<T: Real, const N: usize> Moving<'_, T, N> {
    /// `n` samples from `at` on.
    #[inline(always)]
    fn quad<V: Vector<T>>(&mut self, y: &Planes<T>, at: usize, n: usize, relative: T, learn: bool, rows: &mut Rows<T>) {
        let mut due = self.lanes.due;
        let Window { first, end } = self.lanes.evidence.window;
        let mut lane = first;
        while lane < end {
            due = self.group::<V>(lane, y, at, n, relative, learn, rows);
            lane += V::LANES;
        }
        self.lanes.due = due;
    }

    #[expect(clippy::too_many_arguments, reason = "an inner loop")]
    #[inline(always)]
    fn group<V: Vector<T>>(
        &mut self,
        lane: usize,
        y: &Planes<T>,
        at: usize,
        n: usize,
        relative: T,
        learn: bool,
        rows: &mut Rows<T>,
    ) -> bool {
        let Lanes { taps, p11, p12, p22, diffusion, spring, evidence, kappa: kappas, step, due, .. } = &mut *self.lanes;
        let count = if N > 0 { N } else { taps.len() };
        let (taps, windows) = (&mut taps[..count], &self.white.taps[..count]);
        let (one, zero, least) = (V::splat(T::one()), V::splat(T::zero()), V::splat(T::of(LEAST)));
        let (outlier, curve, relative, tau) = (V::splat(T::of(OUTLIER)), V::splat(self.curve), V::splat(relative), V::splat(self.tau));
        let (mut a11, mut a12, mut a22): (V, V, V) = (p11.get(lane), p12.get(lane), p22.get(lane));
        let (mut kappa, mut gr, mut gi): (V, V, V) = (kappas.get(lane), step[0].get(lane), step[1].get(lane));
        let (diffusion, spring): (V, V) = (diffusion.get(lane), spring.get(lane));
        let mut judge = evidence.load::<V>(lane, rows.new);
        let mut due = *due;
        let (outputs_re, outputs_im) = (&y.re[at..at + QUAD], &y.im[at..at + QUAD]);
        for s in 0..n.min(QUAD) {
            let t = White::<T>::place(at + s);
            let (mut p, mut q) = ((V::splat(self.offset.re), V::splat(self.offset.im)), (zero, zero));
            if due {
                // Take in what the last sample taught, and predict this one. The prediction is made with the taps before that, and corrected by
                // how much the two windows have in common: the error of a sample is then known soon after that of the one before.
                let more = kappa.add(one);
                for l in 0..count {
                    let (tap, x) = (&mut taps[l], &windows[l]);
                    let (old_re, old_im) = (V::splat(x.re[t - 1]), V::splat(x.im[t - 1]));
                    let (dr, di) = (gi.fma(old_im, gr.mul(old_re)), gr.fnma(old_im, gi.mul(old_re)));
                    let (vr, vi) = (tap.v_re.get::<V>(lane), tap.v_im.get::<V>(lane));
                    let (a, b) = (tap.re.get::<V>(lane).add(vr), tap.im.get::<V>(lane).add(vi));
                    let (x, y) = (V::splat(x.re[t]), V::splat(x.im[t]));
                    p = (a.fma(x, p.0), a.fma(y, p.1));
                    q = (b.fma(y, q.0), b.fma(x, q.1));
                    tap.v_re.put(lane, spring.fnma(a, kappa.fma(dr, vr)));
                    tap.v_im.put(lane, spring.fnma(b, kappa.fma(di, vi)));
                    tap.re.put(lane, more.fma(dr, a));
                    tap.im.put(lane, more.fma(di, b));
                }
                let (cr, ci) = (V::splat(self.white.link.0[t]), V::splat(self.white.link.1[t]));
                let (a, b) = (more.mul(gr), more.mul(gi));
                p = (a.fma(cr, p.0), a.fma(ci, p.1));
                q = (b.fma(ci, q.0), b.fma(cr, q.1));
            } else {
                for l in 0..count {
                    let (tap, x) = (&taps[l], &windows[l]);
                    let (x, y) = (V::splat(x.re[t]), V::splat(x.im[t]));
                    let (a, b) = (tap.re.get::<V>(lane), tap.im.get::<V>(lane));
                    p = (a.fma(x, p.0), a.fma(y, p.1));
                    q = (b.fma(y, q.0), b.fma(x, q.1));
                }
            }
            let (re_p, im_p) = (p.0.sub(q.0), p.1.add(q.1));
            let norm = self.white.norm[t];
            let variance = judge.noise.mul(a11.fma(V::splat(norm), one)).add(curve).max(least);
            rows.re[s].put(lane, re_p);
            rows.im[s].put(lane, im_p);
            rows.variance[s].put(lane, variance);
            due = learn && norm > self.silence;
            if !due {
                continue;
            }
            let (er, ei) = (V::splat(outputs_re[s]).sub(re_p), V::splat(outputs_im[s]).sub(im_p));
            let error = er.fma(er, ei.mul(ei));
            let inverse = variance.recip();
            let mut gain = a11.mul(judge.noise).mul(inverse);
            let most = outlier.mul(variance);
            if most.any_less(error) {
                gain = gain.mul(most.mul(error.max(least).rough_recip()).min(one));
            }
            (gr, gi) = (gain.mul(er), gain.mul(ei));
            judge.take(error.mul(inverse), variance.mul(relative));
            if (at + s) as u64 >= self.steady && !(at + s).is_multiple_of(QUAD) {
                continue;
            }
            kappa = a12.mul(a11.recip());
            let s = a11.fma(tau, one).recip();
            let (k1, k2) = (a11.mul(s), a12.mul(s));
            a22 = k2.fnma(a12, a22);
            a12 = k1.fnma(a12, a12);
            a11 = k1.fnma(a11, a11);
            a11 = a11.add(a12.add(a12).add(a22));
            let straight = a12.add(a22);
            a12 = spring.fnma(a11, straight);
            a22 = spring.fnma(a12.add(straight), a22.add(diffusion));
        }
        p11.put(lane, a11);
        p12.put(lane, a12);
        p22.put(lane, a22);
        kappas.put(lane, kappa);
        step[0].put(lane, gr);
        step[1].put(lane, gi);
        rows.product.put(lane, judge.product);
        rows.surprise.put(lane, judge.surprise);
        evidence.excess.put(lane, judge.excess);
        due
    }
}
