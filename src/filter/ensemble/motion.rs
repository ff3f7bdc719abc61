//! How fast the taps swing.
//!
//! A tap that fades goes to and fro: the faster it moves, the sooner it turns back. A straight line does not know that, and has to learn each turn from errors. With
//! `v' = v - k h'` a tap is an oscillator that noise drives, and `k = E|v|^2 / E|h|^2` is the mean square of its Doppler frequencies, in radians a sample: half the square of the greatest
//! one where they are spread as Jakes says, and for an echo that turns at one frequency the very `k` of that rotation. Both means are those of the heaviest member.

use num_complex::Complex64;
use serde::{Deserialize, Serialize};

use super::constants::{SWING, SWING_FIRST, SWING_MOST};
use super::lanes::{Lanes, span};
use crate::Real;

/// Mean power of the taps and of their velocities, over all taps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Motion {
    taps: f64,
    velocities: f64,
    blocks: f64,
}

impl Motion {
    pub(super) fn is_sound(&self) -> bool {
        [self.taps, self.velocities, self.blocks].iter().all(|x| x.is_finite())
    }

    /// Takes in taps and velocities after a block; later ones count `pace`, the first ones more.
    pub(super) fn follow(&mut self, h: impl Iterator<Item = Complex64>, v: impl Iterator<Item = Complex64>, pace: f64) {
        let (taps, velocities) = (power(h), power(v));
        if !(taps + velocities).is_finite() {
            return;
        }
        self.blocks += 1.0;
        let pace = pace.max(SWING_FIRST / (SWING_FIRST + self.blocks - 1.0)).min(1.0);
        self.taps += pace * (taps - self.taps);
        self.velocities += pace * (velocities - self.velocities);
    }

    /// The `k` of a member with some span, for which a turn takes much longer than it.
    fn spring(&self, span: f64) -> f64 {
        if self.blocks <= SWING_FIRST || self.taps <= 0.0 {
            return 0.0;
        }
        (SWING * self.velocities / self.taps).min(SWING_MOST / (span * span))
    }
}

fn power(z: impl Iterator<Item = Complex64>) -> f64 {
    z.map(|z| z.norm_sqr()).sum()
}

impl<T: Real> Lanes<T> {
    /// Lets all members swing.
    pub(super) fn swing(&mut self, motion: &Motion) {
        self.spring.0.iter_mut().enumerate().for_each(|(m, k)| *k = T::of(motion.spring(span(m))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_that_turns_has_the_spring_of_its_rotation() {
        let (mut motion, rate) = (Motion::default(), 3e-3);
        let turn = |n: f64| Complex64::from_polar(0.7, rate * n);
        for block in 0..100 {
            let h = turn(f64::from(block) * 128.0);
            motion.follow(std::iter::once(h), std::iter::once(h * Complex64::new(0.0, rate)), 0.01);
        }
        assert!((motion.spring(8.0) / (SWING * rate * rate) - 1.0).abs() < 1e-9);
        // Where a turn would take no longer than a span, the span decides.
        assert_eq!(motion.spring(1e4), SWING_MOST / 1e8);
    }

    #[test]
    fn without_motion_there_is_no_spring() {
        let mut motion = Motion::default();
        assert_eq!(motion.spring(8.0), 0.0);
        for _ in 0..10 {
            motion.follow(std::iter::once(Complex64::new(1.0, 0.0)), std::iter::once(Complex64::default()), 0.1);
            motion.follow(std::iter::once(Complex64::new(f64::NAN, 0.0)), std::iter::once(Complex64::default()), 0.1);
        }
        assert!(motion.is_sound() && motion.spring(8.0) == 0.0);
    }
}
