//! The fast part: the taps of the channel.

use num_complex::Complex;
use num_traits::One;
use serde::{Deserialize, Serialize};

use super::Motion;
use super::four;
use super::linear::{Lanes, Matrix, Vector, add, adjoint_times_conj, dot, downdate, in_lanes, padded};
use crate::Real;
use crate::simd::Halves;

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
/// The state is that of the coming sample: learning from a sample and moving on to the next are one pass. Blocks of the covariance: `pp`
/// positions, `pv` positions (rows) with velocities (columns), `vp` its adjoint, which is cheaper to keep than to transpose, `vv` velocities.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Channel<T: Real> {
    taps: usize,
    moving: bool,
    diffusion: T,
    // Running power of each tap, and its diffusion: a tap moves in proportion to its size.
    size: Vec<T>,
    pub(super) each: Vec<T>,
    pace: T,
    keep_position: T,
    keep_velocity: T,
    pub(super) h: Vector<T>,
    pub(super) v: Vector<T>,
    pub(super) pp: Matrix<T>,
    pub(super) pv: Matrix<T>,
    pub(super) vp: Matrix<T>,
    pub(super) vv: Matrix<T>,
    // Gains of the sample at hand: covariance times conjugate of the regressor.
    pub(super) kp: Vector<T>,
    pub(super) kv: Vector<T>,
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
            each: vec![T::zero(); padded(taps)],
            pace: T::zero(),
            keep_position: T::one(),
            keep_velocity: T::one(),
            h: Vector::zeros(taps),
            v: Vector::zeros(of_velocity),
            pp: Matrix::zeros(taps),
            pv: Matrix::zeros(of_velocity),
            vp: Matrix::zeros(of_velocity),
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
        self.each[..self.taps].fill(self.diffusion);
        let n = self.h.len();
        self.pp.set_diagonal(n, self.taps, T::of(PRIOR));
        if self.moving {
            self.pv.set_diagonal(n, self.taps, T::zero());
            self.vp.set_diagonal(n, self.taps, T::zero());
            self.vv.set_diagonal(n, self.taps, T::of(PRIOR_VELOCITY));
        }
    }

    /// The taps have jumped: errors have a variance of `size` in units of the noise, of which each tap is to blame for its part.
    pub(super) fn jump(&mut self, size: T) {
        let n = self.h.len();
        let each = (size / T::of(self.taps as f64)).min(T::of(PRIOR));
        for i in 0..self.taps {
            self.pp.re[i * n + i] += each;
            if self.moving {
                self.vv.re[i * n + i] += each * T::of(PRIOR_VELOCITY / PRIOR);
            }
        }
        self.each[..self.taps].fill(self.diffusion);
        self.bound();
    }

    pub(super) fn reset(&mut self) {
        self.h.clear();
        self.v.clear();
        self.size.fill(T::zero());
        self.reopen();
    }

    /// `h . u` and its variance in units of the noise; prepares the gain for [`go_on`](Self::go_on). `n` is the length of all vectors, a constant
    /// where it is usual.
    #[inline(always)]
    pub(super) fn predict<H: Halves<T>>(&mut self, n: usize, u: &Vector<T>) -> (Complex<T>, T) {
        adjoint_times_conj::<T, H>(n, &self.pp, u, &mut self.kp);
        if self.moving {
            adjoint_times_conj::<T, H>(n, &self.pv, u, &mut self.kv);
        }
        (dot::<T, H>(n, &self.h, u), dot::<T, H>(n, u, &self.kp).re)
    }

    /// Whether there are four places and they move: then [`four::predict`] does it faster.
    #[inline(always)]
    pub(super) fn is_four(&self, n: usize) -> bool {
        n == 4 && self.moving
    }

    /// Learns from `lesson`, an error and the reciprocal of its variance in units of the noise, where there is one. Then a sample passes: each
    /// position moves by its velocity, and all turn with the carrier.
    #[inline(always)]
    pub(super) fn go_on<H: Halves<T>>(&mut self, n: usize, lesson: Option<(Complex<T>, T)>, turn: Option<Complex<T>>) {
        if self.is_four(n) {
            return four::go_on::<T, H>(self, lesson, turn);
        }
        if let Some((error, weight)) = lesson {
            add::<T, H>(n, &mut self.h, error * weight, &self.kp);
            downdate::<T, H>(n, &mut self.pp, weight, &self.kp, &self.kp);
            if self.moving {
                add::<T, H>(n, &mut self.v, error * weight, &self.kv);
                downdate::<T, H>(n, &mut self.pv, weight, &self.kp, &self.kv);
                downdate::<T, H>(n, &mut self.vp, weight, &self.kv, &self.kp);
                downdate::<T, H>(n, &mut self.vv, weight, &self.kv, &self.kv);
            }
        }
        if let Some(turn) = turn {
            // The velocity turns with its position; of the covariance the common rotation cancels.
            self.h.scale(turn);
            self.v.scale(turn);
        }
        if self.moving {
            add::<T, H>(n, &mut self.h, Complex::one(), &self.v);
            in_lanes!(H, n, move_on(self));
        } else {
            for i in 0..self.taps {
                self.pp.re[i * n + i] += self.each[i];
            }
        }
    }

    /// Positions and velocities die down a little, over the samples between two calls.
    pub(super) fn decay(&mut self) {
        if self.moving {
            let (a, b) = (self.keep_position, self.keep_velocity);
            self.h.scale_real(a);
            self.v.scale_real(b);
            self.pp.scale(a * a);
            self.pv.scale(a * b);
            self.vp.scale(a * b);
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
                    self.vp.scale_cross(n, i, one, s);
                }
            }
            if self.moving && v > most_velocity {
                let s = (most_velocity / v).sqrt();
                self.vv.scale_cross(n, i, s, s);
                self.pv.scale_cross(n, i, one, s);
                self.vp.scale_cross(n, i, s, one);
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
        for i in 0..self.taps {
            let v = self.v.get(i) - Complex::new(T::zero(), rate) * self.h.get(i);
            self.v.set(i, v);
        }
        rate
    }

    /// The input changed its unit: `h` becomes `by * h`.
    pub(super) fn rescale(&mut self, by: Complex<T>) {
        self.h.scale(by);
        self.v.scale(by);
        for m in [&mut self.pp, &mut self.pv, &mut self.vp, &mut self.vv] {
            m.scale(by.norm_sqr());
        }
    }

    /// The lengths of all vectors, and what indices are computed from.
    pub(super) fn lengths(&self) -> Vec<usize> {
        let vectors = [&self.h, &self.v, &self.kp, &self.kv].into_iter().flat_map(|x| [x.re.len(), x.im.len()]);
        let matrices = [&self.pp, &self.pv, &self.vp, &self.vv].into_iter().flat_map(|x| [x.re.len(), x.im.len()]);
        let others = [self.taps, usize::from(self.moving), self.size.len(), self.each.len()];
        vectors.chain(matrices).chain(others).collect()
    }

    /// A state that only a forger writes.
    #[cfg(test)]
    pub(super) fn forge(&mut self) {
        self.pp.im = Vec::new().into();
    }

    pub(super) fn is_finite(&self) -> bool {
        self.h.is_finite() && self.v.is_finite()
    }
}

/// The covariance of the moving taps a sample later, `F P F^H + Q` with `F = [[1, 1], [0, 1]]` for each tap.
///
/// The diffusion of the velocities reaches `pv` at once, one sample early; that is no worse a model.
#[inline(always)]
fn move_on<T: Real, L: Lanes<T>>(n: usize, c: &mut Channel<T>) {
    let planes = [
        (&mut c.pp.re[..n * n], &mut c.pv.re[..n * n], &mut c.vp.re[..n * n], &c.vv.re[..n * n]),
        (&mut c.pp.im[..n * n], &mut c.pv.im[..n * n], &mut c.vp.im[..n * n], &c.vv.im[..n * n]),
    ];
    for (pp, pv, vp, vv) in planes {
        for at in (0..n * n).step_by(L::WIDTH) {
            let (a, b, v) = (L::load(pv, at), L::load(vp, at), L::load(vv, at));
            L::load(pp, at).add(a.add(b).add(v)).store(pp, at);
            a.add(v).store(pv, at);
            b.add(v).store(vp, at);
        }
    }
    for i in 0..c.taps {
        for m in [&mut c.pv, &mut c.vp, &mut c.vv] {
            m.re[i * n + i] += c.each[i];
        }
    }
}
