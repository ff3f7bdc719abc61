//! A signal at another rate.

use std::f64::consts::PI;

use num_complex::Complex32;

use crate::dsp::{kaiser, ratio};

/// Zero crossings of the filter on either side, at the lower of the two rates, and the shape of its window: 80 dB down.
const CROSSINGS: usize = 48;
const SHAPE: f64 = 8.6;
/// Rows of the filter at most: what lies between takes the one before it.
const ROWS: usize = 1024;

/// A signal at another rate, without delay: a windowed sinc that ends at half of the lower rate.
pub(super) struct RateChange {
    /// A step of an output is `step / whole` inputs.
    step: u64,
    whole: u64,
    /// Inputs that an output needs on either side.
    reach: usize,
    /// For each place between two inputs its taps.
    rows: Vec<Vec<f32>>,
    buffer: Vec<Complex32>,
    /// Where in the buffer the next output lies, and how far behind it, in parts of `whole`.
    place: usize,
    behind: u64,
}

impl RateChange {
    pub(super) fn new(from: f64, to: f64) -> Self {
        let (step, whole) = ratio(from, to);
        let cut = (to / from).min(1.0);
        let reach = (CROSSINGS as f64 / cut).ceil() as usize;
        let count = whole.min(ROWS as u64) as usize;
        let row = |r: usize| {
            let at = |k: usize| r as f64 / count as f64 + reach as f64 - k as f64;
            let sinc = |t: f64| if t == 0.0 { 1.0 } else { libm::sin(PI * t) / (PI * t) };
            let tap = |k: usize| kaiser(at(k) / (reach + 1) as f64, SHAPE) * sinc(cut * at(k));
            let total: f64 = (0..=2 * reach).map(tap).sum();
            (0..=2 * reach).map(|k| (tap(k) / total) as f32).collect()
        };
        // Silence lies before the first input.
        let buffer = vec![Complex32::ZERO; reach];
        Self { step, whole, reach, rows: (0..count).map(row).collect(), buffer, place: reach, behind: 0 }
    }

    /// Whether there are more outputs than inputs.
    pub(super) fn rises(&self) -> bool {
        self.step < self.whole
    }

    /// Takes the next inputs and appends the outputs that they complete.
    pub(super) fn process(&mut self, input: &[Complex32], output: &mut Vec<Complex32>) {
        self.buffer.extend_from_slice(input);
        while self.place + self.reach < self.buffer.len() {
            let row = &self.rows[(self.behind * self.rows.len() as u64 / self.whole) as usize];
            output.push(self.buffer[self.place - self.reach..].iter().zip(row).map(|(z, tap)| z * tap).sum());
            self.behind += self.step;
            self.place += (self.behind / self.whole) as usize;
            self.behind %= self.whole;
        }
        let done = (self.place - self.reach).min(self.buffer.len());
        self.buffer.drain(..done);
        self.place -= done;
    }

    /// The outputs that are still waiting, as if silence followed.
    pub(super) fn flush(&mut self, output: &mut Vec<Complex32>) {
        self.process(&vec![Complex32::ZERO; self.reach], output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_at_another_rate_is_that_tone_at_the_same_time() {
        for (from, to) in [(1e6_f64, 2e6_f64), (5e6, 4e6), (61.44e6, 20e6), (1e6, 1e6 + 1.0)] {
            let tone =
                |n: usize, rate: f64| Complex32::from_polar(0.5, (0.3 * from.min(to) * n as f64 / rate * 2.0 * PI % (2.0 * PI)) as f32);
            let input: Vec<Complex32> = (0..20_000).map(|n| tone(n, from)).collect();
            let (mut filter, mut output) = (RateChange::new(from, to), Vec::new());
            input.chunks(77).for_each(|part| filter.process(part, &mut output));
            let expected = (19_000.0 * to / from) as usize;
            assert!(output.len() > expected, "{from} to {to}: {} of {expected}", output.len());
            let error = (1000..expected).map(|m| (output[m] - tone(m, to)).norm()).fold(0.0, f32::max);
            // Where the ratio has more places than the filter has rows, they show.
            let least = if to - from == 1.0 { 2e-3 } else { 2e-4 };
            assert!(error < least, "{from} to {to}: {error}");
        }
    }
}
