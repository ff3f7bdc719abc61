//! What a fading channel is made of.

use serde::{Deserialize, Serialize};

use crate::channel::{Doppler, Profile};

/// A fading channel: how many antennas, how power is spread over delays, how fast it moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FadingConfig {
    /// Mean power over delay, the same for every pair of antennas.
    pub profile: Profile,
    /// Doppler frequency `f_d T` in cycles per sample; 0 freezes the channel.
    pub doppler: Doppler,
    /// Rician factor of the first path in dB: the line of sight's power over that of the scattered waves. None for Rayleigh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rician_k_db: Option<f64>,
    /// Angle between the line of sight and the motion in degrees: the line of sight is shifted by `f_d cos(angle)`.
    #[serde(default = "default_angle")]
    pub sight_angle_deg: f64,
    /// Transmit antennas.
    #[serde(default = "one")]
    pub tx_antennas: usize,
    /// Receive antennas.
    #[serde(default = "one")]
    pub rx_antennas: usize,
    /// Correlation `ρ` of neighbouring transmit antennas, `ρ^|i−j|` between antennas `i` and `j`; 0 for independent ones.
    #[serde(default)]
    pub tx_correlation: f64,
    /// The same for receive antennas.
    #[serde(default)]
    pub rx_correlation: f64,
}

fn one() -> usize {
    1
}

fn default_angle() -> f64 {
    45.0
}

impl FadingConfig {
    /// One antenna at each end, Rayleigh fading.
    pub fn new(profile: Profile, doppler: f64) -> Self {
        Self {
            profile,
            doppler: Doppler::Constant(doppler),
            rician_k_db: None,
            sight_angle_deg: default_angle(),
            tx_antennas: 1,
            rx_antennas: 1,
            tx_correlation: 0.0,
            rx_correlation: 0.0,
        }
    }
}
