use num_complex::{Complex32, Complex64};
use std::f64::consts::PI;

use super::{narrow, no_such, wide};
use crate::Result;
use crate::error::require;

/// Half the length of the interpolating filter: an output needs this many inputs on either side.
const HALF: usize = 16;
/// Positions between two inputs that the filter is tabulated at; linear in between.
const PHASES: usize = 512;
/// Shape of the Kaiser window, for errors below −90 dB up to 0.8 of the Nyquist frequency.
const SHAPE: f64 = 9.0;

/// Delay and sampling-rate offset: output `m` is the input at the time `m(1 + ppm·1e-6) − delay`, in samples; silence before the input begins.
///
/// A positive offset means that the receiver's sampling period is longer than the transmitter's. Between samples the signal is interpolated with
/// a windowed sinc of 32 taps: errors lie below −90 dB for signals within 0.8 of the Nyquist band (the OFDM presets end at 0.81). The
/// number of samples changes, and the last 16 inputs wait for their neighbours until [`flush`](Self::flush). Without an
/// offset and with a whole delay samples pass unchanged.
#[derive(Clone, Debug)]
pub struct SampleOffset {
    ppm: f64,
    delay: f64,
    table: Vec<[f64; 2 * HALF]>,
    buffer: Vec<Complex32>,
    /// Index in the buffer of the input just before the next output, and how far the output lies behind it, in [0, 1).
    at: usize,
    fraction: f64,
}

impl SampleOffset {
    /// An offset of the sampling period in parts per million and a delay in samples, 0 or more.
    pub fn new(ppm: f64, delay: f64) -> Result<Self> {
        require((0.0..=1e7).contains(&delay), "delay", "between 0 and 1e7 samples", delay)?;
        let mut offset = Self { ppm: 0.0, delay, table: Vec::new(), buffer: Vec::new(), at: 0, fraction: 0.0 };
        offset.set_ppm(ppm)?;
        offset.reset();
        Ok(offset)
    }

    /// Sets the offset of the sampling period in parts per million from the next output on.
    pub fn set_ppm(&mut self, ppm: f64) -> Result<()> {
        require(ppm.abs() <= 1e5, "sample_offset_ppm", "between -100000 and 100000", ppm)?;
        self.ppm = ppm;
        Ok(())
    }

    /// Changes `sample_offset_ppm`.
    pub fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "sample_offset_ppm" => self.set_ppm(value),
            _ => Err(no_such("sampling offset", name, &["sample_offset_ppm"])),
        }
    }

    /// Takes the next inputs and appends the outputs that they complete.
    pub fn process(&mut self, input: &[Complex32], output: &mut Vec<Complex32>) {
        self.buffer.extend_from_slice(input);
        if (self.ppm != 0.0 || self.fraction != 0.0) && self.table.is_empty() {
            self.table = kernel();
        }
        let drift = self.ppm * 1e-6;
        if drift == 0.0 && self.fraction == 0.0 && self.at + HALF < self.buffer.len() {
            let end = self.buffer.len() - HALF;
            output.extend_from_slice(&self.buffer[self.at..end]);
            self.at = end;
        }
        while self.at + HALF < self.buffer.len() {
            output.push(if self.fraction == 0.0 { self.buffer[self.at] } else { self.interpolate() });
            self.fraction += drift;
            self.at += 1;
            if self.fraction >= 1.0 {
                self.fraction -= 1.0;
                self.at += 1;
            } else if self.fraction < 0.0 {
                self.fraction += 1.0;
                self.at -= 1;
            }
        }
        // An output may step back by one input, hence one more than the filter's reach.
        let done = self.at.saturating_sub(HALF).min(self.buffer.len());
        self.buffer.drain(..done);
        self.at -= done;
    }

    /// The outputs that are still waiting, as if silence followed.
    pub fn flush(&mut self, output: &mut Vec<Complex32>) {
        self.process(&[Complex32::ZERO; HALF], output);
    }

    /// Back to the first sample.
    pub fn reset(&mut self) {
        let whole = self.delay.ceil();
        self.fraction = whole - self.delay;
        self.buffer.clear();
        self.buffer.resize(whole as usize + HALF, Complex32::ZERO);
        self.at = HALF;
    }

    fn interpolate(&self) -> Complex32 {
        let phase = self.fraction * PHASES as f64;
        let row = (phase as usize).min(PHASES - 1);
        let between = phase - row as f64;
        let (low, high) = (&self.table[row], &self.table[row + 1]);
        let inputs = &self.buffer[self.at + 1 - HALF..=self.at + HALF];
        let mut sum = Complex64::ZERO;
        for ((&x, &a), &b) in inputs.iter().zip(low).zip(high) {
            sum += wide(x) * (a + between * (b - a));
        }
        narrow(sum)
    }
}

/// Row `p` interpolates at `p / PHASES` behind the middle input; every row passes a constant unchanged.
fn kernel() -> Vec<[f64; 2 * HALF]> {
    let row = |p: usize| {
        let fraction = p as f64 / PHASES as f64;
        let mut taps = [0.0; 2 * HALF];
        for (k, tap) in taps.iter_mut().enumerate() {
            let t = fraction + (HALF - 1) as f64 - k as f64;
            let inside = 1.0 - (t / HALF as f64) * (t / HALF as f64);
            let window = if inside > 0.0 { bessel_i0(SHAPE * inside.sqrt()) } else { 1.0 };
            *tap = window * if t == 0.0 { 1.0 } else { libm::sin(PI * t) / (PI * t) };
        }
        let total: f64 = taps.iter().sum();
        taps.map(|tap| tap / total)
    };
    (0..=PHASES).map(row).collect()
}

/// The modified Bessel function I0 by its power series, for arguments up to 10 or so.
fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..40 {
        term *= quarter / (k * k) as f64;
        sum += term;
    }
    sum
}
