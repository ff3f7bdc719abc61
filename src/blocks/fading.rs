use super::Staged;

/// A channel that fades, one antenna at each end: [`channel::Fading`](crate::channel::Fading).
///
/// # Stream Inputs
///
/// `input`.
///
/// # Stream Outputs
///
/// `output`.
///
/// # Message Inputs
///
/// `set`: `doppler` (cycles a sample), `rician_k_db`. `reset`.
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use kaflow::{blocks::Fading, channel::{self, FadingConfig, Profile}};
/// let config = FadingConfig::new(Profile::exponential(4, 3.0), 1e-3); // 4 taps, 3 dB each, Doppler 1e-3 cycles a sample
/// let fading = Fading::new(channel::Fading::new(&config, 1)?);
/// # Ok::<(), kaflow::Error>(())
/// ```
pub type Fading = Staged<crate::channel::Fading>;
