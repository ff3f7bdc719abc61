//! Laws of the waveform and of its receiver.

mod receiver;
mod support;
mod waveform;
