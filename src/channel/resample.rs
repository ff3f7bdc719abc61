use num_complex::Complex32;

use super::no_such;
use crate::Result;
use crate::dsp::{BEFORE, BEHIND, Place, interpolate};
use crate::error::require;

/// Delay and sampling-rate offset: output `m` is the input at the time `m(1 + ppm·1e-6) − delay`, in samples; silence before the input begins.
///
/// A positive offset means that the receiver's sampling period is longer than the transmitter's. Between samples the signal is interpolated with
/// a windowed sinc of 512 taps: errors lie below −78 dB for signals within 0.81 of the Nyquist band. The
/// number of samples changes, and the last 256 inputs wait for their neighbours until [`flush`](Self::flush). Without an
/// offset and with a whole delay samples pass unchanged.
#[derive(Clone, Debug)]
pub(crate) struct SampleOffset {
    ppm: f64,
    delay: f64,
    buffer: Vec<Complex32>,
    /// Where in the buffer the next output lies.
    place: Place,
}

impl SampleOffset {
    /// An offset of the sampling period in parts per million and a delay in samples, 0 or more.
    pub(crate) fn new(ppm: f64, delay: f64) -> Result<Self> {
        require((0.0..=1e7).contains(&delay), "delay", "between 0 and 1e7 samples", delay)?;
        let mut offset = Self { ppm: 0.0, delay, buffer: Vec::new(), place: Place { whole: 0, fraction: 0.0 } };
        offset.set_ppm(ppm)?;
        offset.reset();
        Ok(offset)
    }

    /// Sets the offset of the sampling period in parts per million from the next output on.
    pub(crate) fn set_ppm(&mut self, ppm: f64) -> Result<()> {
        require(ppm.abs() <= 1e5, "sample_offset_ppm", "between -100000 and 100000", ppm)?;
        self.ppm = ppm;
        Ok(())
    }

    /// Changes `sample_offset_ppm`.
    pub(crate) fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "sample_offset_ppm" => self.set_ppm(value),
            _ => Err(no_such("sampling offset", name, &["sample_offset_ppm"])),
        }
    }

    /// Takes the next inputs and appends the outputs that they complete.
    pub(crate) fn process(&mut self, input: &[Complex32], output: &mut Vec<Complex32>) {
        self.buffer.extend_from_slice(input);
        interpolate(&self.buffer, &mut self.place, self.ppm * 1e-6, usize::MAX, output);
        // An output may step back by one input, hence one more than the filter's reach.
        let done = self.place.whole.saturating_sub(BEFORE).min(self.buffer.len());
        self.buffer.drain(..done);
        self.place.whole -= done;
    }

    /// The outputs that are still waiting, as if silence followed.
    pub(crate) fn flush(&mut self, output: &mut Vec<Complex32>) {
        self.process(&[Complex32::ZERO; BEHIND], output);
    }

    /// Back to the first sample.
    pub(crate) fn reset(&mut self) {
        let whole = self.delay.ceil();
        self.buffer.clear();
        self.buffer.resize(whole as usize + BEFORE, Complex32::ZERO);
        self.place = Place { whole: BEFORE, fraction: whole - self.delay };
    }
}
