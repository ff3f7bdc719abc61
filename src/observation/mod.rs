//! Observation models: how a latent function becomes a measurement.
