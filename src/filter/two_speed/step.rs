//! What happens with a sample.

use num_complex::Complex;
use num_traits::Zero;

use super::power::Change;
use super::{EAGER, LAZY, TwoSpeed, four};
use crate::Real;
use crate::filter::Adaptive;
use crate::simd::{self, Op};

/// Samples over which the noise variance is averaged.
const NOISE_WINDOW: u64 = 300;
/// Squared errors count up to this many times their variance: a corrupt sample does no lasting harm, a lasting change is still followed.
const OUTLIER: f64 = 12.0;
/// A squared error of so many times its variance makes the nonlinearity say how sure it is of this very sample.
const DOUBT: f64 = 6.0;
/// The channel has jumped when squared errors, averaged over `JUMP_WINDOW` samples, are this many times their variance.
const JUMP: f64 = 4.0;
const JUMP_WINDOW: u64 = 20;
/// The most that one error counts for how far it has jumped.
const SHOCK: f64 = 1e6;
/// Samples after the start (or a jump) before a jump is believed.
const SETTLED: u64 = 100;
/// Samples between looks at bounds and carrier.
pub(super) const HOUSEKEEPING: u64 = 16;
/// The carrier follows the rotation of the taps over this many samples, at first faster.
const CARRIER_WINDOW: f64 = 100.0;
/// Samples in which the nonlinearity waits for the unit of the input and a first idea of the channel.
const WARM_UP: u64 = 64;
/// Diffusion of the offset, in units of the noise.
const OFFSET_DIFFUSION: f64 = 1e-8;

/// The loop over the samples, compiled for each level of vector instructions and for the usual lengths: `N` places for the taps, `S` for the
/// functions of the nonlinearity, 0 where any number of them.
pub(super) struct Run<'a, T: Real, const N: usize, const S: usize> {
    pub(super) tracker: &'a mut TwoSpeed<T>,
    pub(super) tx: &'a [Complex<T>],
    pub(super) rx: &'a [Complex<T>],
    pub(super) learn: bool,
    pub(super) prediction: &'a mut [Complex<T>],
    pub(super) variance: Option<&'a mut [T]>,
}

impl<T: Real, const N: usize, const S: usize> Op<T> for Run<'_, T, N, S> {
    type Output = ();

    #[inline(always)]
    fn run<V: simd::Vector<T>>(mut self) {
        let (tracker, mut at) = (self.tracker, 0);
        let places = if N > 0 { N } else { tracker.channel.h.len() };
        let stride = if S > 0 { S } else { tracker.basis.stride() };
        while at < self.tx.len() {
            // What does not depend on what is learned comes first, for many samples at once: the processor then need not wait for it.
            let end = at + tracker.take_in::<V>(stride, &self.tx[at..]);
            for (i, (&y, p)) in self.rx[at..end].iter().zip(&mut self.prediction[at..end]).enumerate() {
                let (mean, spread) = tracker.step::<V>(places, stride, y, self.learn);
                *p = mean;
                if let Some(v) = self.variance.as_deref_mut() {
                    v[at + i] = spread;
                }
            }
            at = end;
        }
    }
}

impl<T: Real> TwoSpeed<T> {
    /// Puts samples of the input on the line, as many as there is room for and as leave its unit alone; at least one.
    #[inline(always)]
    fn take_in<V: simd::Vector<T>>(&mut self, stride: usize, tx: &[Complex<T>]) -> usize {
        let power = |x: Complex<T>| x.re.wide() * x.re.wide() + x.im.wide() * x.im.wide();
        let mut n = 0;
        let mut room = self.saturation.room().min(tx.len());
        while n < room {
            let (x, power) = (tx[n], power(tx[n]));
            if power.is_finite() && self.power.steady(power) {
                self.saturation.put::<V::Halves>(stride, x * self.inverse, &self.basis);
            } else if n == 0 {
                let usual = self.change::<V>(stride, power);
                // It may all have begun again.
                room = self.saturation.room().min(1);
                let x = if usual { x * self.inverse } else { Complex::zero() };
                self.saturation.put::<V::Halves>(stride, x, &self.basis);
            } else {
                return n;
            }
            n += 1;
        }
        n
    }

    /// A sample of that power is not like those before it; whether it can be used at all.
    #[inline(always)]
    fn change<V: simd::Vector<T>>(&mut self, stride: usize, power: f64) -> bool {
        let usual = power.is_finite()
            && match self.power.push(power) {
                Change::None => true,
                Change::Grow(ratio) => {
                    self.inverse = T::of(self.power.inverse());
                    self.follow_power::<V>(stride, ratio);
                    true
                }
                Change::Restart => {
                    let power = self.power.clone();
                    self.reset();
                    self.power = power;
                    true
                }
                Change::Glitch => false,
            };
        if !usual {
            self.unclean = self.saturation.lags() as u64;
        } else if self.inverse == T::zero() {
            self.inverse = T::of(self.power.inverse());
        }
        usual
    }

    /// The next sample of the line, with its output `y`.
    #[inline(always)]
    fn step<V: simd::Vector<T>>(&mut self, places: usize, stride: usize, y: Complex<T>, learn: bool) -> (Complex<T>, T) {
        self.steps += 1;
        if self.steps.is_multiple_of(HOUSEKEEPING) {
            self.keep_house::<V>(stride, learn);
        }
        let likely = if self.eager > 0 { 1 } else { self.wait.saturating_sub(self.since_slow) as usize };
        let x = self.saturation.next::<V::Halves>(stride, likely);
        self.real &= x.im == T::zero();
        let clean = self.unclean == 0;
        self.unclean = self.unclean.saturating_sub(1);
        let (mean, fast) = if self.channel.is_four(places) && !self.config.widely_linear {
            four::predict::<T, V::Halves>(&mut self.channel, self.saturation.window())
        } else {
            self.gather();
            self.channel.predict::<V::Halves>(places, &self.u)
        };
        let prediction = mean + self.offset;

        self.since_slow += 1;
        let learns = self.config.centres > 0 && self.count >= WARM_UP;
        let mut slow_turn = learns && (self.eager > 0 || self.since_slow >= self.wait);
        if slow_turn {
            self.slow = self.saturation.spread::<V::Halves>(stride, &self.channel.h, self.config.taps);
        }
        let relative = T::one() + fast.max(T::zero()) + self.offset_variance;
        let variance = self.noise * relative + self.slow;
        let error = y - prediction;
        let mut expected = variance;
        if learns && !slow_turn && error.norm_sqr() > T::of(DOUBT) * variance {
            // Perhaps an envelope that is seldom seen: the nonlinearity is asked before the channel takes the blame.
            let slow = self.saturation.spread::<V::Halves>(stride, &self.channel.h, self.config.taps);
            if slow > self.slow {
                expected = self.noise * relative + slow;
                slow_turn = slow > self.noise * relative;
            }
        }
        let weight = if learn && clean { self.weigh(error, relative, expected) } else { None };
        let turn = if self.config.carrier { Some(self.turn) } else { None };
        self.channel.go_on::<V::Halves>(places, weight.map(|w| (error, w.channel)), turn);
        if let Some(weight) = weight {
            self.real &= y.im == T::zero();
            if slow_turn {
                self.saturation.correct::<V::Halves>(stride, error, weight.absolute, self.since_slow);
                self.since_slow = 0;
                self.wait = pause(self.steps);
                self.eager = self.eager.saturating_sub(1);
                self.saturation.refresh::<V::Halves>(stride, self.config.taps);
            }
            self.offset += error * (weight.channel * self.offset_variance);
            self.offset_variance -= weight.channel * self.offset_variance * self.offset_variance;
            self.offset_variance += T::of(OFFSET_DIFFUSION);
            self.judge(weight, fast);
        }
        (prediction, variance)
    }

    /// How much can be learned from `error`; nothing where that would overflow.
    #[inline(always)]
    fn weigh(&mut self, error: Complex<T>, relative: T, variance: T) -> Option<Weight<T>> {
        let squared = error.norm_sqr();
        if !squared.is_finite() || self.inverse == T::zero() {
            return None;
        }
        if self.noise <= T::zero() {
            // The first error that is not zero sets the scale.
            self.noise = squared / relative;
            let usable = self.noise > T::zero() && self.noise.is_finite();
            self.noise = if usable { self.noise } else { T::zero() };
            return usable.then(|| Weight { channel: relative.recip(), absolute: squared.recip(), excess: T::one() });
        }
        let certainty = variance.recip();
        let surprise = squared * certainty;
        if !surprise.is_finite() {
            return None;
        }
        let outlier = T::of(OUTLIER);
        let absolute = if surprise > outlier { outlier / squared } else { certainty };
        Some(Weight { channel: self.noise * absolute, absolute, excess: surprise })
    }

    /// Follows the noise, and notices when the channel has jumped. `fast` is the variance that the taps add, in units of the noise.
    #[inline(always)]
    fn judge(&mut self, weight: Weight<T>, fast: T) {
        self.count += 1;
        self.since_jump += 1;
        let (one, surprise) = (T::one(), weight.excess.min(T::of(OUTLIER)));
        // After a jump the noise is as open as at the start: the channel cannot be found while its error counts as an outlier.
        let window = if self.since_jump < NOISE_WINDOW { self.since_jump } else { NOISE_WINDOW };
        let pace = T::of((window as f64).recip());
        self.noise *= one + pace * (surprise - one);
        let pace = T::of(1.0 / JUMP_WINDOW as f64);
        self.surprise += (surprise - self.surprise) * pace;
        self.shock += (weight.excess.min(T::of(SHOCK)) - self.shock) * pace;
        if self.surprise > T::of(JUMP) && self.since_jump > SETTLED {
            // As uncertain as makes such errors likely. Where a peak of the input was taken for a jump, that is little.
            self.channel.jump(self.shock * (one + fast));
            (self.surprise, self.shock) = (one, one);
            self.since_jump = JUMP_WINDOW;
        }
    }

    /// The regressor of the channel: outputs of the nonlinearity, and their conjugates where the taps are widely linear.
    #[inline(always)]
    fn gather(&mut self) {
        let (taps, (re, im)) = (self.config.taps, self.saturation.window());
        self.u.re[..taps].copy_from_slice(&re[..taps]);
        self.u.im[..taps].copy_from_slice(&im[..taps]);
        if self.config.widely_linear {
            for l in 0..taps {
                // Of real data the conjugates would only repeat the outputs.
                let u = if self.real { Complex::zero() } else { self.u.get(l).conj() };
                self.u.set(taps + l, u);
            }
        }
    }

    /// The unit of the input grew by `ratio`.
    #[inline(always)]
    fn follow_power<V: simd::Vector<T>>(&mut self, stride: usize, ratio: f64) {
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
        self.saturation.refresh::<V::Halves>(stride, self.config.taps);
    }

    #[inline(always)]
    fn keep_house<V: simd::Vector<T>>(&mut self, stride: usize, learn: bool) {
        if !self.channel.is_finite() {
            self.channel.reset();
        }
        self.channel.decay();
        self.channel.share_diffusion();
        self.channel.bound();
        if self.saturation.bound() {
            self.saturation.refresh::<V::Halves>(stride, self.config.taps);
        }
        if self.steps.is_multiple_of(32 * HOUSEKEEPING) && learn {
            let mean = self.saturation.project();
            self.channel.rescale(mean);
            self.saturation.refresh::<V::Halves>(stride, self.config.taps);
        }
        if self.config.carrier && learn && self.count > HOUSEKEEPING {
            let share = HOUSEKEEPING as f64 / CARRIER_WINDOW.min(self.count as f64);
            self.carrier += self.channel.take_rotation(T::of(share));
            self.turn = Complex::new(self.carrier.cos(), self.carrier.sin());
        }
    }
}

/// How much is learned from an error.
#[derive(Clone, Copy)]
struct Weight<T> {
    /// Reciprocal of the error's variance, in units of the noise: for channel and offset.
    channel: T,
    /// Reciprocal of the error's variance: for the nonlinearity.
    absolute: T,
    /// The squared error in units of its variance.
    excess: T,
}

/// Samples until the nonlinearity learns next, `LAZY` on average, never regular: in a signal that is interpolated by 8, or whose symbols are 80
/// samples long, every sixteenth sample has the same place in its symbol, and the peaks are never among them.
#[inline(always)]
fn pause(step: u64) -> u64 {
    // The high bits of a product with 2^64 over the golden ratio are as good as random, and the same wherever the stream is cut.
    1 + (((step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * (2 * LAZY - 1)) >> 32)
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
