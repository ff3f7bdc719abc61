//! Two-speed tracking: a slow amplifier in front of a fast channel.
//!
//! Kernel filters that forget do so at one rate. In a radio the saturation of the amplifier hardly changes while the channel fades in
//! milliseconds; whoever forgets both loses the nonlinearity every time the channel moves. Here the state has two parts with two dynamics.
//!
//! # Model
//!
//! ```text
//!        theta_{t-1} ───► theta_t ───►          weights of the nonlinearity, slow
//!                            │
//!   x_t, x_{t-1}, ... ──► u_t = g(x_t) ──┐
//!                                        ├──► y_t ◄── offset b_t, noise n_t
//!        (h,v)_{t-1} ────► (h,v)_t ──────┘
//!                            ▲                  taps and their velocities, fast
//!                         carrier w
//!
//!   u_t = x_t G(|x_t|),   G(r) = theta_0 + sum_j theta_j exp(-(r - c_j)^2 / 2 s^2)
//!   y_t = sum_l h_{l,t} u_{t-l} + b_t + n_t
//! ```
//!
//! - **Nonlinearity.** A kernel expansion over the envelope, `G` complex (AM/AM and AM/PM): phase-equivariant for complex data, a signed odd
//!   function for real data. The centres cover 0 to 3.2 times the RMS of the input and follow it when the power changes by more than 3 dB;
//!   the learned curve is stretched along. The weights diffuse back to their prior, `theta_t ~ N(theta_{t-1}, drift (Sigma_0 - Sigma))` in
//!   effect. The prior `Sigma_0` gives every envelope the same deviation of the *output*, and is conditioned on a power-weighted mean gain
//!   of 1: that fixes the scale (and phase) that `g` and `h` could otherwise trade, since no update leaves the plane. With `memory` the
//!   expansion sums over several delays of `x`.
//! - **Channel.** Each tap has a position and a velocity, `h' = e^{jw}(a h + v)`, `v' = e^{jw}(b v + q)`; `a` and `b` are so close to 1 that
//!   they matter only in directions that the input does not excite. [`Motion::Walk`] is the simpler random walk. The variance of `q` in
//!   units of the noise is `span^-4` (`span^-2` for a walk): the steady state of the filter is a smoother over about `span` samples, at any
//!   signal level and noise. Taps weaker than the strongest get less of it, in proportion to their running power, so that too many taps
//!   cost little.
//! - **Carrier.** The rotation that all taps have in common, `Im sum conj(h) v / sum |h|^2`, is moved from the velocities into `w`; the
//!   prediction does not notice. A slow channel on a receiver some kHz off is slow again.
//! - **Noise.** Its variance is unknown. Covariances of the channel are kept in units of it, as in conjugate Bayesian regression.
//!
//! # Updates
//!
//! With `d_j = sum_l h_l x_{t-l} phi_j(|x_{t-l}|)` (the regressor of `theta`) and `u` (that of `h`), given all up to `t-1`:
//!
//! ```text
//!   p  = h.u + b                                      prediction
//!   S  = sigma^2 (1 + u P_h u^H + P_b) + d P_theta d^H  its variance
//!   e  = y - p,   z = |e|^2 / S
//!   h     += sigma^2 P_h u^H e / S,    P_h     -= sigma^2 P_h u^H u P_h / S      (velocities likewise)
//!   theta += P_theta d^H e / S,        P_theta -= P_theta d^H d P_theta / S
//!   sigma^2 *= 1 + (z - 1) / 300
//! ```
//!
//! # What is approximated
//!
//! - This is an extended Kalman filter on `(h, v, b, theta)` whose covariance between the blocks is dropped: each block is filtered given the
//!   mean of the other, but all see the full variance `S`, so neither claims an error that the other may have caused.
//! - After 4096 samples from the start or from a change of the input's power the nonlinearity learns from one
//!   sample in sixteen, at irregular intervals: it is slow by construction.
//! - The outputs of the nonlinearity in the window are recomputed only when its weights change.
//! - Errors beyond `z = 12` are weighted down to it (as with a heavy-tailed noise), and when `z` averages 4 over some 20 samples the channel
//!   is taken to have jumped: its covariance, not its estimate, starts again from the prior.
//! - Conjugate taps (`widely_linear`) learn, but the nonlinearity does not learn through them.
//!
//! # Scale and precision
//!
//! `tx` is divided by its running RMS, `rx` needs no scaling as long as its squares are in range. Covariances stay Hermitian to the last bit
//! and are bounded by their priors, so that a band without excitation (oversampled OFDM) does no harm, in `f32` either.

mod adaptive;
mod basis;
mod channel;
mod config;
mod linear;
mod power;
mod saturation;

use num_complex::Complex;
use num_traits::{One, Zero};
use serde::{Deserialize, Serialize};

pub use config::{Motion, TwoSpeedConfig, pair};

use self::basis::Basis;
use self::channel::Channel;
use self::linear::Vector;
use self::power::{Change, Power};
use self::saturation::Saturation;
use super::{Adaptive, Portrait, Tracker, finite};
use crate::simd::{self, Level, Op};
use crate::{Real, Result};

/// Samples over which the noise variance is averaged.
const NOISE_WINDOW: f64 = 300.0;
/// Squared errors count up to this many times their variance: a corrupt sample does no lasting harm, a lasting change is still followed.
const OUTLIER: f64 = 12.0;
/// The channel has jumped when squared errors, averaged over `JUMP_WINDOW` samples, are this many times their variance.
const JUMP: f64 = 4.0;
const JUMP_WINDOW: f64 = 20.0;
/// Samples after the start (or a jump) before a jump is believed.
const SETTLED: u64 = 100;
/// Samples between looks at bounds and carrier.
const HOUSEKEEPING: u64 = 16;
/// The carrier follows the rotation of the taps over this many samples, at first faster.
const CARRIER_WINDOW: f64 = 100.0;
/// Samples during which the nonlinearity learns from every sample, and of how many it takes one later.
/// Before them come samples in which it waits for the unit of the input and a first idea of the channel.
const WARM_UP: u64 = 64;
const EAGER: u64 = 4096;
const LAZY: u64 = 16;
/// Prior variance of the offset in units of the noise, and its diffusion.
const OFFSET_PRIOR: f64 = 1e2;
const OFFSET_DIFFUSION: f64 = 1e-8;

/// The Hammerstein tracker with two speeds; the model is in the [module's documentation](self).
///
/// ```
/// use kaflow::{Complex, filter::{Tracker, two_speed::{TwoSpeed, TwoSpeedConfig}}};
/// // tanh, then a tap that turns; no noise.
/// let tx: Vec<Complex<f64>> = (0..4000).map(|n| Complex::new(2.0 * (0.7 * n as f64).sin(), 2.0 * (1.9 * (n as f64).sqrt() * 7.0).cos())).collect();
/// let rx: Vec<_> = tx.iter().enumerate().map(|(n, x)| x / x.norm() * x.norm().tanh() * Complex::from_polar(1.0, 1e-3 * n as f64)).collect();
/// let mut tracker = TwoSpeed::new(TwoSpeedConfig { taps: 1, ..TwoSpeedConfig::default() }).unwrap();
/// let mut prediction = vec![Complex::new(0.0, 0.0); 4000];
/// tracker.track(&tx, &rx, &mut prediction, None);
/// let error: f64 = rx.iter().zip(&prediction).skip(2000).map(|(y, p)| (y - p).norm_sqr()).sum();
/// assert!(error / 2000.0 < 1e-3, "{error}");
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct TwoSpeed<T: Real> {
    config: TwoSpeedConfig,
    #[serde(skip)]
    basis: Basis<T>,
    // The vector instructions of the machine that tracks, not of the one that saved.
    #[serde(skip)]
    level: Level,
    #[serde(skip)]
    frozen: bool,
    power: Power,
    inverse: T,
    saturation: Saturation<T>,
    channel: Channel<T>,
    // Outputs of the nonlinearity, newest first; behind them their conjugates where the taps are widely linear.
    u: Vector<T>,
    noise: T,
    // Variance that the weights of the nonlinearity add, as last computed.
    slow: T,
    offset: Complex<T>,
    offset_variance: T,
    carrier: T,
    turn: Complex<T>,
    surprise: T,
    steps: u64,
    count: u64,
    since_jump: u64,
    since_slow: u64,
    // Samples after which the nonlinearity learns next, once it is not eager any more.
    wait: u64,
    // Samples for which the nonlinearity still learns from every one.
    eager: u64,
    unclean: u64,
    real: bool,
}

impl<T: Real> TwoSpeed<T> {
    /// A tracker that knows nothing yet.
    pub fn new(config: TwoSpeedConfig) -> Result<Self> {
        config.validate()?;
        let basis = Basis::new(config.centres);
        let taps = if config.widely_linear { 2 * config.taps } else { config.taps };
        let mut tracker = Self {
            saturation: Saturation::new(&basis, config.memory, config.taps, config.drift),
            channel: Channel::new(taps, config.motion, config.span),
            u: Vector::zeros(taps),
            config,
            basis,
            level: Level::current(),
            frozen: false,
            power: Power::default(),
            inverse: T::zero(),
            noise: T::zero(),
            slow: T::zero(),
            offset: Complex::zero(),
            offset_variance: T::zero(),
            carrier: T::zero(),
            turn: Complex::one(),
            surprise: T::zero(),
            steps: 0,
            count: 0,
            since_jump: 0,
            since_slow: 0,
            wait: LAZY,
            eager: EAGER,
            unclean: 0,
            real: true,
        };
        tracker.reset();
        Ok(tracker)
    }

    /// The parameters.
    pub fn config(&self) -> &TwoSpeedConfig {
        &self.config
    }

    /// The taps of the channel as it is now, newest sample first, for input in the units of `tx`; conjugate taps behind them.
    pub fn taps(&self) -> Vec<Complex<T>> {
        (0..self.channel.taps()).map(|l| self.channel.h.get(l) * self.inverse).collect()
    }

    /// The gain `G(|x|)` at an envelope in the units of `tx`; its power-weighted mean is 1.
    pub fn gain(&self, envelope: T) -> Complex<T> {
        self.saturation.curve(&self.basis, envelope * self.inverse)
    }

    /// The carrier offset in radians a sample; zero where it is not estimated.
    pub fn carrier(&self) -> T {
        self.carrier
    }

    /// The variance of the noise.
    pub fn noise(&self) -> T {
        self.noise
    }

    /// The constant that the receiver adds.
    pub fn offset(&self) -> Complex<T> {
        self.offset
    }

    /// Whether no sample so far had an imaginary part.
    pub fn is_real(&self) -> bool {
        self.real
    }

    /// The unit of the input grew by `ratio`.
    fn follow_power(&mut self, ratio: f64) {
        let mean = self.saturation.rescale(ratio, &self.basis);
        self.eager = EAGER;
        if self.count < WARM_UP {
            // The first samples may be decades below the RMS, and what was learned from them is as far off: begin again.
            self.channel.reset();
            self.noise = T::zero();
            self.count = 0;
        } else {
            self.channel.rescale(mean * T::of(ratio));
            self.channel.bound();
        }
        self.refresh();
    }

    /// All outputs of the nonlinearity, with its present weights.
    fn refresh(&mut self) {
        for l in 0..self.config.taps {
            let u = self.saturation.output(l);
            self.place(l, u);
        }
    }

    #[inline(always)]
    fn place(&mut self, l: usize, u: Complex<T>) {
        self.u.set(l, u);
        if self.config.widely_linear {
            // Of real data the conjugates would only repeat the outputs.
            self.u.set(self.config.taps + l, if self.real { Complex::zero() } else { u.conj() });
        }
    }

    /// Takes in a sample of the input; whether the window is fit to learn from.
    #[inline(always)]
    fn push(&mut self, x: Complex<T>) -> bool {
        let power = x.re.wide() * x.re.wide() + x.im.wide() * x.im.wide();
        let mut x = x;
        if power.is_finite() {
            match self.power.push(power) {
                Change::None => {}
                Change::Grow(ratio) => {
                    self.inverse = T::of(self.power.inverse());
                    self.follow_power(ratio);
                }
                Change::Restart => {
                    let power = self.power.clone();
                    self.reset();
                    self.power = power;
                }
                Change::Glitch => {
                    x = Complex::zero();
                    self.unclean = self.saturation.lags() as u64;
                }
            }
            if self.inverse == T::zero() {
                self.inverse = T::of(self.power.inverse());
            }
            if x.im != T::zero() {
                self.real = false;
            }
        } else {
            x = Complex::zero();
            self.unclean = self.saturation.lags() as u64;
        }
        self.saturation.push(x * self.inverse, &self.basis);
        let taps = self.config.taps;
        self.u.shift(0, taps);
        if self.config.widely_linear {
            self.u.shift(taps, taps);
        }
        let newest = self.saturation.output(0);
        self.place(0, newest);
        let clean = self.unclean == 0;
        self.unclean = self.unclean.saturating_sub(1);
        clean
    }

    #[inline(always)]
    fn step(&mut self, x: Complex<T>, y: Complex<T>) -> (Complex<T>, T) {
        self.steps += 1;
        if self.steps.is_multiple_of(HOUSEKEEPING) {
            self.keep_house();
        }
        let clean = self.push(x);
        let turn = if self.config.carrier { Some(self.turn) } else { None };
        let (mean, fast) = self.channel.predict(turn, &self.u);
        let prediction = mean + self.offset;

        self.since_slow += 1;
        let slow_turn = self.config.centres > 0 && self.count >= WARM_UP && (self.eager > 0 || self.since_slow >= self.wait);
        if slow_turn {
            self.slow = self.saturation.spread(&self.channel.h, self.config.taps);
        }
        let relative = T::one() + fast + self.offset_variance;
        let variance = self.noise * relative + self.slow;
        if !self.frozen && clean && finite(y) {
            self.learn(y - prediction, y, relative, variance, slow_turn);
        }
        (prediction, variance)
    }

    #[inline(always)]
    fn learn(&mut self, error: Complex<T>, y: Complex<T>, relative: T, variance: T, slow_turn: bool) {
        if y.im != T::zero() {
            self.real = false;
        }
        let squared = error.norm_sqr();
        if !squared.is_finite() || self.inverse == T::zero() {
            return;
        }
        if self.noise <= T::zero() {
            // The first error that is not zero sets the scale.
            self.noise = squared / relative;
            if self.noise <= T::zero() || self.noise.is_nan() {
                return;
            }
            self.channel.correct(error, relative.recip());
            return;
        }
        let outlier = T::of(OUTLIER);
        let surprise = squared / variance;
        if !surprise.is_finite() {
            return;
        }
        let weight = if surprise > outlier { outlier / squared } else { variance.recip() };
        let capped = surprise.min(outlier);
        let relative_weight = self.noise * weight;
        self.channel.correct(error, relative_weight);
        if slow_turn {
            self.saturation.correct(error, weight, self.since_slow as usize);
            self.since_slow = 0;
            self.wait = pause(self.steps);
            self.eager = self.eager.saturating_sub(1);
            self.refresh();
        }
        self.offset += error * (relative_weight * self.offset_variance);
        self.offset_variance -= relative_weight * self.offset_variance * self.offset_variance;
        self.offset_variance += T::of(OFFSET_DIFFUSION);

        self.count += 1;
        self.since_jump += 1;
        // After a jump the noise is as open as at the start: the channel cannot be found while its error counts as an outlier.
        let pace = T::of(NOISE_WINDOW.min(self.since_jump as f64).recip());
        self.noise *= T::one() + pace * (capped - T::one());
        self.surprise += (capped - self.surprise) * T::of(1.0 / JUMP_WINDOW);
        if self.surprise > T::of(JUMP) && self.since_jump > SETTLED {
            self.channel.reopen();
            self.surprise = T::one();
            self.since_jump = JUMP_WINDOW as u64;
        }
    }

    fn keep_house(&mut self) {
        if !self.channel.is_finite() {
            self.channel.reset();
        }
        self.channel.decay();
        self.channel.share_diffusion();
        self.channel.bound();
        self.saturation.bound();
        if self.steps.is_multiple_of(32 * HOUSEKEEPING) && !self.frozen {
            let mean = self.saturation.project();
            self.channel.rescale(mean);
            self.refresh();
        }
        if self.config.carrier && !self.frozen && self.count > HOUSEKEEPING {
            let share = HOUSEKEEPING as f64 / CARRIER_WINDOW.min(self.count as f64);
            self.carrier += self.channel.take_rotation(T::of(share));
            self.turn = Complex::new(self.carrier.cos(), self.carrier.sin());
        }
    }
}

/// Samples until the nonlinearity learns next, `LAZY` on average, never regular: in a signal that is interpolated by 8, or whose symbols are 80
/// samples long, every sixteenth sample has the same place in its symbol, and the peaks are never among them.
#[inline]
fn pause(step: u64) -> u64 {
    // The high bits of a product with 2^64 over the golden ratio are as good as random, and the same wherever the stream is cut.
    1 + (((step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * (2 * LAZY - 1)) >> 32)
}

/// The loop over the samples, compiled for each level of vector instructions.
struct Run<'a, T: Real> {
    tracker: &'a mut TwoSpeed<T>,
    tx: &'a [Complex<T>],
    rx: &'a [Complex<T>],
    prediction: &'a mut [Complex<T>],
    variance: Option<&'a mut [T]>,
}

impl<T: Real> Op<T> for Run<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: simd::Vector<T>>(mut self) {
        for (i, ((&x, &y), p)) in self.tx.iter().zip(self.rx).zip(self.prediction).enumerate() {
            let (mean, spread) = self.tracker.step(x, y);
            *p = mean;
            if let Some(v) = self.variance.as_deref_mut() {
                v[i] = spread;
            }
        }
    }
}

impl<T: Real> Tracker<T> for TwoSpeed<T> {
    fn track(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], prediction: &mut [Complex<T>], variance: Option<&mut [T]>) {
        T::dispatch(self.level, Run { tracker: self, tx, rx, prediction, variance });
    }

    fn gap(&mut self) {
        self.unclean = self.unclean.max(self.saturation.lags() as u64 - 1);
        // What the channel did meanwhile is not known.
        self.channel.reopen();
    }

    fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    fn portrait(&self) -> Portrait {
        let mut portrait = Portrait::of_taps(&self.taps()[..self.config.taps]);
        if self.config.centres > 0 && self.inverse > T::zero() {
            // As far as the centres reach.
            let envelopes = (0..64).map(|i| 3.2 / 63.0 * f64::from(i) / self.inverse.wide());
            portrait.gain = envelopes
                .map(|r| {
                    let gain = self.gain(T::of(r));
                    (r, Complex::new(gain.re.wide(), gain.im.wide()))
                })
                .collect();
        }
        portrait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nonlinearity_learns_from_every_place_in_a_symbol_of_any_length() {
        for period in [2usize, 7, 8, 16, 32, 80, 144] {
            let (mut step, mut turns, mut at) = (0, 0, vec![0u64; period]);
            while turns < 2000 * period as u64 {
                step += pause(step);
                turns += 1;
                at[step as usize % period] += 1;
            }
            assert!(at.iter().all(|n| (1500..2500).contains(n)), "{period}: {at:?}");
            let mean = step as f64 / turns as f64;
            assert!((mean - LAZY as f64).abs() < 1.0, "{mean}");
        }
    }
}
