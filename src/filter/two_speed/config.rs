//! Parameters.

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use crate::error::require;
use crate::{Real, Result};

/// How the taps of the channel move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Motion {
    /// Each tap takes a random step every sample.
    Walk,
    /// Each tap has a velocity, and that takes the steps: fading is smooth.
    #[default]
    Velocity,
}

/// Parameters of [`TwoSpeed`](super::TwoSpeed).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TwoSpeedConfig {
    /// Taps of the channel. Those that reach beyond the predicted sample are among them: pair the streams with [`pair`].
    pub taps: usize,
    /// Gaussians over the envelope; 0 makes the tracker linear.
    pub centres: usize,
    /// Memory of the nonlinearity in samples, beside that of the channel.
    pub memory: usize,
    /// How the taps move.
    pub motion: Motion,
    /// Samples over which the channel looks like a straight line (or, for a walk, like a constant) above the noise. Larger is slower.
    pub span: f64,
    /// Part of its uncertainty that the nonlinearity gets back every sample; 0 for one that never changes. Envelopes that are seen rarely
    /// wander when it is large: 1e-5 costs 20 dB over a million samples of an oversampled signal without noise, 1e-6 nothing.
    pub drift: f64,
    /// Whether the taps rotate with a carrier offset that is estimated.
    pub carrier: bool,
    /// Whether the receiver adds a constant that is estimated.
    pub offset: bool,
    /// Whether there are taps for the conjugate too (IQ imbalance).
    pub widely_linear: bool,
}

impl Default for TwoSpeedConfig {
    fn default() -> Self {
        Self {
            taps: 4,
            centres: 8,
            memory: 0,
            motion: Motion::Velocity,
            span: 30.0,
            drift: 1e-6,
            carrier: false,
            offset: true,
            widely_linear: false,
        }
    }
}

impl TwoSpeedConfig {
    /// Names the first parameter that is out of range.
    pub fn validate(&self) -> Result<()> {
        require((1..=256).contains(&self.taps), "taps", "between 1 and 256", self.taps as f64)?;
        require(self.centres == 0 || (2..=64).contains(&self.centres), "centres", "0 or between 2 and 64", self.centres as f64)?;
        require(self.memory <= 16, "memory", "at most 16", self.memory as f64)?;
        require(self.span >= 1.0 && self.span <= 1e6, "span", "between 1 and 1e6 samples", self.span)?;
        require(self.drift >= 0.0 && self.drift <= 0.1, "drift", "between 0 and 0.1", self.drift)
    }

    /// The parameters that fix the sizes of the state.
    pub(super) fn shape(&self) -> [(&'static str, usize); 5] {
        [
            ("taps", self.taps),
            ("centres", self.centres),
            ("samples of memory", self.memory),
            ("velocities", usize::from(self.motion == Motion::Velocity)),
            ("conjugate taps", usize::from(self.widely_linear)),
        ]
    }
}

/// Pairs two aligned streams so that the taps reach `advance` samples beyond the predicted one: sample `n` of the output goes with sample `n + advance` of the
/// input. After alignment on its strongest tap a real channel has precursors; they are taps of negative delay.
///
/// ```
/// use kaflow::{Complex, filter::two_speed::pair};
/// let stream: Vec<_> = (0..5).map(|n| Complex::new(n as f32, 0.0)).collect();
/// let (tx, rx) = pair(&stream, &stream, 2);
/// assert_eq!((tx.len(), rx.len()), (3, 3));
/// assert_eq!((tx[0].re, rx[0].re), (2.0, 0.0));
/// ```
pub fn pair<'a, T: Real>(tx: &'a [Complex<T>], rx: &'a [Complex<T>], advance: usize) -> (&'a [Complex<T>], &'a [Complex<T>]) {
    let tx = &tx[advance.min(tx.len())..];
    let n = tx.len().min(rx.len());
    (&tx[..n], &rx[..n])
}
