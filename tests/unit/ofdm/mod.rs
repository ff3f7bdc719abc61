//! Laws of the waveform and of its receiver.

mod receiver;
mod saturation;
mod support;
mod waveform;
