use super::Staged;

/// Polar clipping, a level above the rms of the signal: [`channel::Clip`](crate::channel::Clip).
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
/// `set`: `clip_db`, `input_power`. `reset`.
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use kaflow::{blocks::Clip, channel};
/// let clip = Clip::new(channel::Clip::new(6.0)?); // 6 dB above rms
/// # Ok::<(), kaflow::Error>(())
/// ```
pub type Clip = Staged<crate::channel::Clip>;
