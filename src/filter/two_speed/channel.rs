//! The fast part: the taps of the channel.

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use super::Motion;
use super::linear::{Matrix, Vector, with_length};
use crate::Real;

/// Variance of a tap before the first sample, in units of the noise variance: a signal-to-noise ratio of 40 dB is no surprise.
const PRIOR: f64 = 1e4;
/// The same for a velocity, per sample squared: 0.03 radians a sample are no surprise.
const PRIOR_VELOCITY: f64 = 1e-3 * PRIOR;
/// A velocity dies down over this many spans, a position over that many: both keep the directions that the input does not excite finite.
const VELOCITY_SPANS: f64 = 16.0;
const POSITION_SPANS: f64 = 100.0;
/// The power of a tap is averaged over this many spans.
const SIZE_SPANS: f64 = 50.0;
/// Diffusion of a tap without power, in units of that of the strongest: enough to notice an echo that appears.
const LEAST_DIFFUSION: f64 = 0.01;

/// Kalman filter over the taps, their covariance in units of the noise variance.
///
/// Blocks of the covariance: `pp` positions, `pv` positions (rows) with velocities (columns), `vv` velocities.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Channel<T: Real> {
    taps: usize,
    moving: bool,
    diffusion: T,
    // Running power of each tap, and its diffusion: a tap moves in proportion to its size.
    size: Vec<T>,
    each: Vec<T>,
    pace: T,
    keep_position: T,
    keep_velocity: T,
    pub(super) h: Vector<T>,
    v: Vector<T>,
    pp: Matrix<T>,
    pv: Matrix<T>,
    vv: Matrix<T>,
    kp: Vector<T>,
    kv: Vector<T>,
}

impl<T: Real> Channel<T> {
    pub(super) fn new(taps: usize, motion: Motion, span: f64) -> Self {
        let moving = motion == Motion::Velocity;
        let of_velocity = if moving { taps } else { 0 };
        let mut channel = Self {
            taps,
            moving,
            diffusion: T::zero(),
            size: vec![T::zero(); taps],
            each: vec![T::zero(); taps],
            pace: T::zero(),
            keep_position: T::one(),
            keep_velocity: T::one(),
            h: Vector::zeros(taps),
            v: Vector::zeros(of_velocity),
            pp: Matrix::zeros(taps),
            pv: Matrix::zeros(of_velocity),
            vv: Matrix::zeros(of_velocity),
            kp: Vector::zeros(taps),
            kv: Vector::zeros(of_velocity),
        };
        channel.set_span(span);
        channel.reopen();
        channel
    }

    pub(super) fn set_span(&mut self, span: f64) {
        self.pace = T::of((super::HOUSEKEEPING as f64 / (SIZE_SPANS * span)).min(1.0));
        if self.moving {
            self.diffusion = T::of(span.powi(-4));
            self.keep_position = T::of(1.0 - 1.0 / (POSITION_SPANS * span));
            self.keep_velocity = T::of(1.0 - 1.0 / (VELOCITY_SPANS * span));
        } else {
            self.diffusion = T::of(span.powi(-2));
        }
    }

    pub(super) fn taps(&self) -> usize {
        self.taps
    }

    /// As uncertain as before the first sample, but keeps the estimate.
    pub(super) fn reopen(&mut self) {
        self.each.fill(self.diffusion);
        let n = self.h.len();
        self.pp.set_diagonal(n, self.taps, T::of(PRIOR));
        if self.moving {
            self.pv.set_diagonal(n, self.taps, T::zero());
            self.vv.set_diagonal(n, self.taps, T::of(PRIOR_VELOCITY));
        }
    }

    pub(super) fn reset(&mut self) {
        self.h.clear();
        self.v.clear();
        self.reopen();
    }

    /// One sample passes: each position moves by its velocity, and all turn with the carrier.
    #[inline]
    pub(super) fn propagate(&mut self, turn: Complex<T>) {
        with_length!(self.h.len(), propagate(self, turn));
    }

    /// The variance of `h . u` in units of the noise; prepares the gain for [`correct`](Self::correct).
    #[inline]
    pub(super) fn spread(&mut self, u: &Vector<T>) -> T {
        with_length!(self.h.len(), spread(self, u));
        u.dot(&self.kp).re.max(T::zero())
    }

    /// Learns from `error`, whose variance in units of the noise is `1 / weight`.
    #[inline]
    pub(super) fn correct(&mut self, error: Complex<T>, weight: T) {
        with_length!(self.h.len(), correct(self, error, weight));
    }

    /// Each tap diffuses in proportion to its power: taps that the channel does not have stay quiet.
    pub(super) fn share_diffusion(&mut self) {
        let mut most = T::min_positive_value();
        for i in 0..self.taps {
            let z = self.h.get(i).norm_sqr();
            let change = self.pace * (z - self.size[i]);
            self.size[i] += change;
            most = most.max(self.size[i]);
        }
        for i in 0..self.taps {
            self.each[i] = self.diffusion * (self.size[i] / most).max(T::of(LEAST_DIFFUSION));
        }
    }

    /// Keeps every variance between zero and the prior. Scaling a row and its column alike leaves the matrix positive.
    pub(super) fn bound(&mut self) {
        let n = self.h.len();
        let (most, most_velocity) = (T::of(PRIOR), T::of(PRIOR_VELOCITY));
        let one = T::one();
        for i in 0..self.taps {
            let p = self.pp.re[i * n + i];
            let v = if self.moving { self.vv.re[i * n + i] } else { one };
            if !(p > T::zero() && p.is_finite() && v > T::zero() && v.is_finite()) {
                return self.reopen();
            }
            if p > most {
                let s = (most / p).sqrt();
                self.pp.scale_cross(n, i, s, s);
                if self.moving {
                    self.pv.scale_cross(n, i, s, one);
                }
            }
            if self.moving && v > most_velocity {
                let s = (most_velocity / v).sqrt();
                self.vv.scale_cross(n, i, s, s);
                self.pv.scale_cross(n, i, one, s);
            }
        }
    }

    /// Takes the fraction `share` of the rotation that all taps have in common out of their velocities; returns it in radians a sample.
    pub(super) fn take_rotation(&mut self, share: T) -> T {
        if !self.moving {
            return T::zero();
        }
        let (mut cross, mut power) = (T::zero(), T::min_positive_value());
        for i in 0..self.taps {
            cross += self.h.re[i] * self.v.im[i] - self.h.im[i] * self.v.re[i];
            power += self.h.re[i] * self.h.re[i] + self.h.im[i] * self.h.im[i];
        }
        let rate = share * cross / power;
        if !rate.is_finite() {
            return T::zero();
        }
        self.v.add(Complex::new(T::zero(), -rate), &self.h);
        rate
    }

    /// The input changed its unit: `h` becomes `by * h`.
    pub(super) fn rescale(&mut self, by: Complex<T>) {
        self.h.scale(by);
        self.v.scale(by);
        for m in [&mut self.pp, &mut self.pv, &mut self.vv] {
            m.scale(by.norm_sqr());
        }
    }

    pub(super) fn is_finite(&self) -> bool {
        self.h.is_finite() && self.v.is_finite()
    }
}

#[inline(always)]
fn propagate<T: Real>(n: usize, c: &mut Channel<T>, turn: Complex<T>) {
    if !c.moving {
        c.h.scale(turn);
        for i in 0..c.taps {
            c.pp.re[i * n + i] += c.each[i];
        }
        return;
    }
    let (a, b) = (c.keep_position, c.keep_velocity);
    {
        let (hr, hi, vr, vi) = (&mut c.h.re[..n], &mut c.h.im[..n], &mut c.v.re[..n], &mut c.v.im[..n]);
        for i in 0..n {
            let (pr, pi) = (a * hr[i] + vr[i], a * hi[i] + vi[i]);
            hr[i] = pr * turn.re - pi * turn.im;
            hi[i] = pr * turn.im + pi * turn.re;
            let (wr, wi) = (b * vr[i], b * vi[i]);
            vr[i] = wr * turn.re - wi * turn.im;
            vi[i] = wr * turn.im + wi * turn.re;
        }
    }
    // F P F^H with F = [[a, 1], [0, b]] for each tap; the common rotation cancels.
    let (aa, ab, bb) = (a * a, a * b, b * b);
    let (ppr, ppi) = (&mut c.pp.re[..n * n], &mut c.pp.im[..n * n]);
    let (pvr, pvi) = (&mut c.pv.re[..n * n], &mut c.pv.im[..n * n]);
    let (vvr, vvi) = (&mut c.vv.re[..n * n], &mut c.vv.im[..n * n]);
    for i in 0..n {
        for j in 0..n {
            let (ij, ji) = (i * n + j, j * n + i);
            ppr[ij] = aa * ppr[ij] + a * (pvr[ij] + pvr[ji]) + vvr[ij];
            ppi[ij] = aa * ppi[ij] + a * (pvi[ij] - pvi[ji]) + vvi[ij];
        }
    }
    for ij in 0..n * n {
        pvr[ij] = ab * pvr[ij] + b * vvr[ij];
        pvi[ij] = ab * pvi[ij] + b * vvi[ij];
        vvr[ij] *= bb;
        vvi[ij] *= bb;
    }
    for i in 0..c.taps {
        vvr[i * n + i] += c.each[i];
    }
}

#[inline(always)]
fn spread<T: Real>(n: usize, c: &mut Channel<T>, u: &Vector<T>) {
    c.pp.adjoint_times_conj(n, u, &mut c.kp);
    if c.moving {
        c.pv.adjoint_times_conj(n, u, &mut c.kv);
    }
}

#[inline(always)]
fn correct<T: Real>(n: usize, c: &mut Channel<T>, error: Complex<T>, weight: T) {
    let step = error * weight;
    c.h.add(step, &c.kp);
    c.pp.downdate(n, weight, &c.kp, &c.kp);
    if c.moving {
        c.v.add(step, &c.kv);
        c.pv.downdate(n, weight, &c.kp, &c.kv);
        c.vv.downdate(n, weight, &c.kv, &c.kv);
    }
}
