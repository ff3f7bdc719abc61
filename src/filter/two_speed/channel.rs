//! The fast part: the taps of the channel.

use num_complex::Complex;
use num_traits::One;
use serde::{Deserialize, Serialize};

use super::Motion;
use super::linear::{LANES, Lane, Matrix, Vector, add, dot, scale_real, with_length};
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
            let keep = |spans: f64| T::of((-(super::HOUSEKEEPING as f64) / (spans * span)).exp());
            self.keep_position = keep(POSITION_SPANS);
            self.keep_velocity = keep(VELOCITY_SPANS);
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
        self.size.fill(T::zero());
        self.reopen();
    }

    /// One sample passes: each position moves by its velocity, and all turn with the carrier. Returns `h . u` and its variance in units of
    /// the noise, and prepares the gain for [`correct`](Self::correct).
    #[inline(always)]
    pub(super) fn predict(&mut self, turn: Option<Complex<T>>, u: &Vector<T>) -> (Complex<T>, T) {
        if let Some(turn) = turn {
            // The velocity turns with its position.
            self.h.scale(turn);
            self.v.scale(turn);
        }
        if self.moving { with_length!(self.h.len(), predict_moving(self, u)) } else { with_length!(self.h.len(), predict_walking(self, u)) }
    }

    /// Learns from `error`, whose variance in units of the noise is `1 / weight`.
    #[inline(always)]
    pub(super) fn correct(&mut self, error: Complex<T>, weight: T) {
        with_length!(self.h.len(), correct(self, error, weight));
    }

    /// Positions and velocities die down a little, over the samples between two calls.
    pub(super) fn decay(&mut self) {
        if self.moving {
            let (a, b) = (self.keep_position, self.keep_velocity);
            self.h.scale_real(a);
            self.v.scale_real(b);
            self.pp.scale(a * a);
            self.pv.scale(a * b);
            self.vv.scale(b * b);
        }
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

    /// The lengths of all vectors, and what indices are computed from.
    pub(super) fn lengths(&self) -> Vec<usize> {
        let vectors = [&self.h, &self.v, &self.kp, &self.kv].into_iter().flat_map(|x| [x.re.len(), x.im.len()]);
        let matrices = [&self.pp, &self.pv, &self.vv].into_iter().flat_map(|x| [x.re.len(), x.im.len()]);
        let others = [self.taps, usize::from(self.moving), self.size.len(), self.each.len()];
        vectors.chain(matrices).chain(others).collect()
    }

    /// A state that only a forger writes.
    #[cfg(test)]
    pub(super) fn forge(&mut self) {
        self.pp.im.pop();
    }

    pub(super) fn is_finite(&self) -> bool {
        self.h.is_finite() && self.v.is_finite()
    }
}

/// The covariance of the moving taps a sample later, `F P F^H` with `F = [[1, 1], [0, 1]]` for each tap (the common rotation cancels), and the
/// gains `kp = P_pp conj(u)`, `kv = P_vp conj(u)` in the same pass.
#[inline(always)]
fn predict_moving<T: Real>(n: usize, c: &mut Channel<T>, u: &Vector<T>) -> (Complex<T>, T) {
    add(n, &mut c.h, Complex::one(), &c.v);
    let (ppr, ppi) = (&mut c.pp.re[..n * n], &mut c.pp.im[..n * n]);
    let (pvr, pvi) = (&mut c.pv.re[..n * n], &mut c.pv.im[..n * n]);
    let (vvr, vvi) = (&mut c.vv.re[..n * n], &mut c.vv.im[..n * n]);
    let (ur, ui) = (&u.re[..n], &u.im[..n]);
    for col in (0..n).step_by(LANES) {
        for i in 0..n {
            let at = i * n + col;
            // The adjoint of pv at this place: a column.
            let column = |m: &[T]| Lane([m[col * n + i], m[(col + 1) * n + i], m[(col + 2) * n + i], m[(col + 3) * n + i]]);
            let re = Lane::load(ppr, at) + ((Lane::load(pvr, at) + column(pvr)) + Lane::load(vvr, at));
            let im = Lane::load(ppi, at) + ((Lane::load(pvi, at) - column(pvi)) + Lane::load(vvi, at));
            re.store(ppr, at);
            im.store(ppi, at);
        }
    }
    for i in 0..c.taps {
        vvr[i * n + i] += c.each[i];
    }
    for col in (0..n).step_by(LANES) {
        let zero = Lane::splat(T::zero());
        let (mut pr, mut pi, mut vr, mut vi) = (zero, zero, zero, zero);
        for j in 0..n {
            let at = j * n + col;
            let (a, b) = (Lane::splat(ur[j]), Lane::splat(ui[j]));
            let (r, i) = (Lane::load(ppr, at), Lane::load(ppi, at));
            pr = pr + (r * a - i * b);
            pi = pi - (r * b + i * a);
            // The diffusion of this very sample is in vv already; that it reaches pv one sample early is no worse a model.
            let (r, i) = (Lane::load(pvr, at) + Lane::load(vvr, at), Lane::load(pvi, at) + Lane::load(vvi, at));
            r.store(pvr, at);
            i.store(pvi, at);
            vr = vr + (r * a - i * b);
            vi = vi - (r * b + i * a);
        }
        pr.store(&mut c.kp.re, col);
        pi.store(&mut c.kp.im, col);
        vr.store(&mut c.kv.re, col);
        vi.store(&mut c.kv.im, col);
    }
    (dot(n, &c.h, u), dot(n, u, &c.kp).re.max(T::zero()))
}

/// The same for taps that walk.
#[inline(always)]
fn predict_walking<T: Real>(n: usize, c: &mut Channel<T>, u: &Vector<T>) -> (Complex<T>, T) {
    for i in 0..c.taps {
        c.pp.re[i * n + i] += c.each[i];
    }
    c.pp.adjoint_times_conj(n, u, &mut c.kp);
    (dot(n, &c.h, u), dot(n, u, &c.kp).re.max(T::zero()))
}

/// The gains are scaled by the root of the weight, so that the products of a downdate are the same in both halves.
#[inline(always)]
fn correct<T: Real>(n: usize, c: &mut Channel<T>, error: Complex<T>, weight: T) {
    let root = weight.sqrt();
    let step = error * root;
    scale_real(n, &mut c.kp, root);
    add(n, &mut c.h, step, &c.kp);
    c.pp.downdate(n, &c.kp, &c.kp);
    if c.moving {
        scale_real(n, &mut c.kv, root);
        add(n, &mut c.v, step, &c.kv);
        c.pv.downdate(n, &c.kp, &c.kv);
        c.vv.downdate(n, &c.kv, &c.kv);
    }
}
