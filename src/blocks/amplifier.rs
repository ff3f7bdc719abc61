use super::Staged;

/// A transmit amplifier near saturation: [`channel::Amplifier`](crate::channel::Amplifier).
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
/// `set`: `ibo_db`, `input_power`, `smoothness` (Rapp). `reset`.
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use kaflow::{blocks::Amplifier, channel::{self, Model}};
/// let amplifier = Amplifier::new(channel::Amplifier::new(Model::Rapp { smoothness: 2.0 }, 0.0)?); // no back-off
/// # Ok::<(), kaflow::Error>(())
/// ```
pub type Amplifier = Staged<crate::channel::Amplifier>;
