//! A channel that turns slowly as a whole: members that describe it lag behind, and the lag tells the rotation.
//!
//! A member with a window of `W` samples knows the channel as it was `W` samples ago: it lags by `W` times the rotation.

use num_complex::{Complex, Complex64};

use super::super::constants::BLOCK;
use super::super::planes::Planes;
use super::{Bank, SLOTS, WINDOWS};
use crate::Real;

impl<T: Real> Bank<T> {
    /// How far the channel has turned past the member with a window while its window went by: radians a sample.
    pub(in crate::filter::ensemble) fn rotation(&self, y: &Planes<T>) -> f64 {
        self.lag(0, y).arg() / self.members[0].n.clamp(4.0 * BLOCK as f64, WINDOWS[0].0)
    }

    /// Turns all members to where the channel is: its rotation ends here.
    pub(in crate::filter::ensemble) fn catch_up(&mut self, y: &Planes<T>) {
        for i in 0..SLOTS {
            let lag = self.lag(i, y);
            let turn = lag / lag.norm().max(f64::MIN_POSITIVE);
            self.members[i].w.iter_mut().for_each(|w| *w *= turn);
            self.members[i].fill();
        }
        // What waits for a step or is summed up belongs to other angles.
        self.forget_gradients();
        self.eager = false;
    }

    /// What the outputs of the block have in common with the predictions of member `i`.
    fn lag(&self, i: usize, y: &Planes<T>) -> Complex64 {
        let wide = |z: Complex<T>| Complex64::new(z.re.wide(), z.im.wide());
        (0..BLOCK).map(|t| wide(self.predictions[i].at(t)).conj() * wide(y.at(t))).sum()
    }
}
