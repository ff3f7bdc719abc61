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
//! With `d_j = sum_l h_l x_{t-l} phi_j(|x_{t-l}|)` (the regressor of `theta`) and `u = (u_t, u_{t-1}, ...)` (that of `h`), given all up to `t-1`:
//!
//! ```text
//!   p  = h.u + b                                        prediction
//!   S  = sigma^2 (1 + u P_h u^H + P_b) + d P_theta d^H  its variance
//!   e  = y - p,   z = |e|^2 / S
//!   h     += sigma^2 P_h u^H e / S,    P_h     -= sigma^2 P_h u^H u P_h / S      (velocities and offset likewise)
//!   theta += P_theta d^H e / S,        P_theta -= P_theta d^H d P_theta / S
//!   sigma^2 *= 1 + (z - 1) / 300
//! ```
//!
//! and on the way to the next sample, `F` adding to each position its velocity and `Q` the diffusion of the velocities,
//!
//! ```text
//!   (h, v) = e^{jw} F (h, v),   P_h = F P_h F^H + Q,   P_b += 1e-8,   P_theta += drift (Sigma_0 - P_theta)
//! ```
//!
//! # What is approximated
//!
//! - This is an extended Kalman filter on `(h, v, b, theta)` whose covariance between the blocks is dropped: each block is filtered given the
//!   mean of the other, but all see the full variance `S`, so neither claims an error that the other may have caused.
//! - After 4096 samples from the start or from a change of the input's power the nonlinearity learns from one
//!   sample in sixteen, at irregular intervals: it is slow by construction. In between, `d P_theta d^H` is that of the last time. Where `z > 6`, it is
//!   computed anew before anybody learns, and where it then outweighs the rest of `S` the nonlinearity learns out of turn: such an error is
//!   likely that of an envelope that is seldom seen.
//! - Errors beyond `z = 12` are weighted down to it (as with a heavy-tailed noise). When `z`, cut there, averages 4 over some 20 samples, the channel
//!   is taken to have jumped: the variance of its taps, not their estimate, grows by as much as makes such errors likely, at most to the prior.
//! - The factors `a` and `b`, the carrier and the bounds of the covariances are applied every sixteenth sample; the diffusion of
//!   a velocity reaches its covariance with the position at once.
//! - The functions of the envelope are piecewise linear between 256 points.
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
mod four;
mod linear;
mod power;
mod recipe;
mod saturation;
mod step;

use num_complex::Complex;
use num_traits::{One, Zero};
use serde::{Deserialize, Serialize};

pub use config::{Motion, TwoSpeedConfig, pair};
pub(super) use recipe::{MIXTURE, RECIPE};

use self::basis::Basis;
use self::channel::Channel;
use self::linear::Vector;
use self::power::Power;
use self::saturation::Saturation;
use self::step::{HOUSEKEEPING, Run};
use super::{Adaptive, Portrait, Tracker};
use crate::simd::Level;
use crate::{Real, Result};

/// Samples during which the nonlinearity learns from every sample, and of how many it takes one later.
const EAGER: u64 = 4096;
const LAZY: u64 = 16;
/// Prior variance of the offset in units of the noise.
const OFFSET_PRIOR: f64 = 1e2;

/// The Hammerstein tracker with two speeds; the model is in the [module's documentation](self).
///
/// ```
/// use kaflow::{Complex, filter::{Tracker, two_speed::{TwoSpeed, TwoSpeedConfig}}};
/// // tanh, then a tap that turns; no noise.
/// let tx: Vec<Complex<f64>> = (0..4000).map(|n| Complex::new(2.0 * (0.7 * n as f64).sin(), 2.0 * (1.9 * (n as f64).sqrt() * 7.0).cos())).collect();
/// let rx: Vec<_> = tx.iter().enumerate().map(|(n, x)| x / x.norm() * x.norm().tanh() * Complex::from_polar(1.0, 1e-3 * n as f64)).collect();
/// let mut tracker = TwoSpeed::new(TwoSpeedConfig { taps: 1, ..TwoSpeedConfig::default() }).unwrap();
/// let mut prediction = vec![Complex::new(0.0, 0.0); 4000];
/// tracker.track(&tx, &rx, true, &mut prediction, None);
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
    shock: T,
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
            power: Power::default(),
            inverse: T::zero(),
            noise: T::zero(),
            slow: T::zero(),
            offset: Complex::zero(),
            offset_variance: T::zero(),
            carrier: T::zero(),
            turn: Complex::one(),
            surprise: T::zero(),
            shock: T::zero(),
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
}

impl<T: Real> Tracker<T> for TwoSpeed<T> {
    fn taps(&self) -> usize {
        self.saturation.lags()
    }

    fn track(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], learn: bool, prediction: &mut [Complex<T>], variance: Option<&mut [T]>) {
        macro_rules! run {
            ($places:literal, $stride:literal) => {
                T::dispatch(self.level, Run::<T, $places, $stride> { tracker: self, tx, rx, learn, prediction, variance })
            };
        }
        match (self.channel.h.len(), self.basis.stride()) {
            (4, 12) => run!(4, 12),
            (8, 12) => run!(8, 12),
            (32, 12) => run!(32, 12),
            _ => run!(0, 0),
        }
    }

    fn gap(&mut self, _missing: u64) {
        // What the channel did meanwhile is not known.
        self.channel.reopen();
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
