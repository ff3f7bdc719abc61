//! Parameters, saved state and the way back to the start.

use num_complex::Complex;
use num_traits::{One, Zero};

use super::{EAGER, LAZY, OFFSET_PRIOR, Power, TwoSpeed};
use crate::{Error, Real, Result};
use crate::{error::require, filter::Adaptive, state};

impl<T: Real> Adaptive for TwoSpeed<T> {
    fn size(&self) -> usize {
        self.channel.taps() + self.saturation.size(&self.basis)
    }

    fn reset(&mut self) {
        self.power = Power::default();
        self.inverse = T::zero();
        self.saturation.reset();
        self.channel.reset();
        self.u.clear();
        self.noise = T::zero();
        self.slow = T::zero();
        self.offset = Complex::zero();
        self.offset_variance = if self.config.offset { T::of(OFFSET_PRIOR) } else { T::zero() };
        self.carrier = T::zero();
        self.turn = Complex::one();
        (self.surprise, self.shock) = (T::one(), T::one());
        (self.steps, self.count, self.since_jump, self.since_slow, self.unclean) = (0, 0, 0, 0, 0);
        self.eager = EAGER;
        self.wait = LAZY;
        self.real = true;
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        let mut config = self.config.clone();
        match name {
            "span" => config.span = value,
            "drift" => config.drift = value,
            "carrier" => {
                require(value == 0.0 || value == 1.0, name, "0 (no) or 1 (yes)", value)?;
                config.carrier = value == 1.0;
            }
            "rbfs" | "memory" | "motion" | "widely-linear" => {
                return Err(Error::parameter(name, "what the tracker was built with, since it fixes the size of its state", value));
            }
            _ => {
                let known = ["span", "drift", "carrier"].map(String::from).to_vec();
                return Err(Error::NotApplicable { filter: "two-speed".into(), name: name.into(), known });
            }
        }
        config.validate()?;
        if !config.carrier {
            (self.carrier, self.turn) = (T::zero(), Complex::one());
        }
        self.channel.set_span(config.span);
        self.saturation.set_drift(config.drift);
        self.config = config;
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode(&state::kind::<T>("two-speed"), self)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let mut saved: Self = state::decode(&state::kind::<T>("two-speed"), bytes)?;
        saved.config.validate().map_err(|e| Error::State(format!("it has parameters that no tracker has: {e}")))?;
        for (what, found, expected) in saved.config.shape().into_iter().zip(self.config.shape()).map(|(a, b)| (a.0, a.1, b.1)) {
            state::same_shape(what, found, expected)?;
        }
        // The checksum tells of accidents alone: whoever made the file may have made any numbers.
        if saved.lengths() != self.lengths() || !saved.saturation.is_placed() {
            return Err(Error::State("damaged: its vectors do not have the lengths that its parameters ask for".into()));
        }
        if !saved.is_sound() {
            return Err(Error::State("damaged: it holds a number that is not finite or a count that no stream reaches".into()));
        }
        saved.basis = self.basis.clone();
        saved.level = self.level;
        *self = saved;
        Ok(())
    }
}

impl<T: Real> TwoSpeed<T> {
    /// The lengths of all vectors, and what indices are computed from.
    fn lengths(&self) -> Vec<usize> {
        let mut lengths = vec![self.u.re.len(), self.u.im.len()];
        lengths.extend(self.channel.lengths());
        lengths.extend(self.saturation.lengths());
        lengths
    }

    /// Whether the tracker can go on from its scalars. What the vectors hold is looked after while tracking.
    fn is_sound(&self) -> bool {
        let (o, t) = (self.offset, self.turn);
        let scalars =
            [self.inverse, self.noise, self.slow, o.re, o.im, self.offset_variance, self.carrier, t.re, t.im, self.surprise, self.shock];
        let counts = [self.steps, self.count, self.since_jump, self.since_slow, self.wait, self.eager, self.unclean];
        scalars.iter().all(|x| x.is_finite()) && counts.iter().all(|&n| n <= u64::MAX / 2) && self.power.is_sound()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Motion, TwoSpeedConfig};
    use super::*;
    use crate::filter::Tracker;

    #[test]
    fn a_forged_state_is_refused_and_changes_nothing() {
        type Forge = fn(&mut TwoSpeed<f32>);
        let forgeries: [Forge; 16] = [
            |t| t.u.im = vec![0.0].into(),
            |t| t.u.re = vec![0.0; 5].into(),
            |t| t.channel.h.re = Vec::new().into(),
            |t| t.channel.forge(),
            |t| t.saturation.theta.im = Vec::new().into(),
            |t| t.saturation.forge(0),
            |t| t.saturation.forge(1),
            |t| t.saturation.forge(2),
            |t| t.saturation.forge(3),
            |t| t.config.taps = 5,
            |t| t.config.span = f64::NAN,
            |t| t.noise = f32::NAN,
            |t| t.offset.im = f32::INFINITY,
            |t| t.steps = u64::MAX,
            |t| t.since_slow = u64::MAX,
            |t| t.power.forge(),
        ];
        let z: Vec<_> = (0..400).map(|n| Complex::new((n as f32 * 1.7).sin(), (n as f32 * n as f32 * 0.3).cos())).collect();
        for motion in [Motion::Walk, Motion::Velocity] {
            let config = TwoSpeedConfig { motion, memory: 1, carrier: true, ..TwoSpeedConfig::default() };
            let mut tracker = TwoSpeed::<f32>::new(config).unwrap();
            let mut prediction = z.clone();
            tracker.track(&z[..200], &z[..200], true, &mut prediction[..200], None);
            let before = tracker.save().unwrap();
            for (k, forge) in forgeries.iter().enumerate() {
                let mut forged = tracker.clone();
                forge(&mut forged);
                let refused = tracker.restore(&forged.save().unwrap());
                assert!(matches!(refused, Err(Error::State(_))), "forgery {k}: {refused:?}");
                assert!(tracker.save().unwrap() == before, "forgery {k}");
            }
            // What the vectors hold may be anything.
            let mut forged = tracker.clone();
            forged.channel.h.re.fill(f32::NAN);
            forged.saturation.theta.re.fill(f32::INFINITY);
            tracker.restore(&forged.save().unwrap()).unwrap();
            tracker.track(&z, &z, true, &mut prediction, None);
            assert!(prediction[200..].iter().all(|p| p.re.is_finite() && p.im.is_finite()));
        }
    }
}
