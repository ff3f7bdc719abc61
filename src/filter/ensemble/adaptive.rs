//! Parameters, saved state and the way back to the start.

use super::Ensemble;
use crate::filter::Adaptive;
use crate::{Error, Real, Result, state};

impl<T: Real> Adaptive for Ensemble<T> {
    fn size(&self) -> usize {
        self.config.taps * super::constants::MEMBERS + super::constants::POINTS + self.bank.size()
    }

    fn reset(&mut self) {
        let level = self.level;
        // The parameters were valid when this one was built.
        if let Ok(new) = Self::new(self.config.clone()) {
            *self = new;
            self.level = level;
        }
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        let mut config = self.config.clone();
        match name {
            "evidence" => config.evidence = value,
            "still-taps" => {
                return Err(Error::parameter(name, "what the tracker was built with, since it fixes the size of its state", value));
            }
            _ => return Err(Error::NotApplicable { filter: "ensemble".into(), name: name.into(), known: vec!["evidence".into()] }),
        }
        config.validate()?;
        self.config = config;
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode(&state::kind::<T>("ensemble"), self)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let mut saved: Self = state::decode(&state::kind::<T>("ensemble"), bytes)?;
        saved.config.validate().map_err(|e| Error::State(format!("it has parameters that no tracker has: {e}")))?;
        for (what, found, expected) in [
            ("taps", saved.config.taps, self.config.taps),
            ("samples of advance", saved.config.advance, self.config.advance),
            ("still taps", saved.config.still_taps, self.config.still_taps),
        ] {
            state::same_shape(what, found, expected)?;
        }
        // The checksum tells of accidents alone: whoever made the file may have made any numbers.
        if !saved.is_sound(self) {
            return Err(Error::State("damaged: a length does not fit its parameters, or a number is out of range".into()));
        }
        saved.level = self.level;
        saved.bank.restore_scratch(Some(self.bank.features()));
        *self = saved;
        Ok(())
    }
}

impl<T: Real> Ensemble<T> {
    /// Whether this can stand in the place of `other`.
    fn is_sound(&self, other: &Self) -> bool {
        let taps = self.config.taps;
        let numbers = [self.offset.re, self.offset.im, self.offset_variance, self.power];
        let clock = &self.clock;
        let counts = clock.at < clock.cell && clock.cell <= super::constants::BLOCK;
        self.history == other.history
            && self.input.is_sound(self.history)
            && self.streams.fits(self.history)
            && self.curve.is_sound()
            && self.shape.is_sound(taps)
            && self.excited.is_sound(taps)
            && self.acquisition.is_sound(taps)
            && self.lanes.is_sound(taps)
            && self.bank.is_sound(&other.bank)
            && self.simple.is_sound(&other.simple)
            && self.y.fits(0)
            && self.average.is_sound()
            && self.taps.len() == taps
            && self.windows.iter().all(|w| w.len() == taps)
            && counts
            && self.carrier.is_sound()
            && self.motion.is_sound()
            && numbers.iter().all(|x| x.is_finite())
    }
}
