//! A frame that is repeated, at the rates of both ends.

use num_complex::Complex32;

use crate::dsp::{Fourier, ratio};
use crate::{Error, Result};

/// One period of what a transmitter repeats, with an rms of about 1: as it is sent, and as the receiver's rate has it.
///
/// Where the rates differ, it is as many other samples of the same signal: what repeats consists of lines, and those within both bands are kept exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// At the transmitter's rate.
    pub sent: Vec<Complex32>,
    /// At the receiver's.
    pub known: Vec<Complex32>,
}

impl From<Vec<Complex32>> for Frame {
    /// At one rate.
    fn from(frame: Vec<Complex32>) -> Self {
        Self { known: frame.clone(), sent: frame }
    }
}

impl Frame {
    /// A frame that is sent with `tx_rate` and received with `rx_rate` samples a second. Refuses rates at which it is no whole number of received samples, with the nearest of the
    /// transmitter's at which it is.
    ///
    /// ```
    /// use kaflow::{Complex32, blocks::Frame};
    ///
    /// let tone: Vec<_> = (0..80).map(|n| Complex32::cis(0.1 * std::f32::consts::PI * n as f32)).collect();
    /// let frame = Frame::at_rates(tone, 1e6, 2.5e6)?;
    /// assert!(frame.known.len() == 200 && (frame.known[5] - frame.sent[2]).norm() < 1e-6);
    /// assert!(Frame::at_rates(frame.sent, 1e6, 2.501e6).unwrap_err().to_string().contains("the nearest being 1000400"));
    /// # Ok::<(), kaflow::Error>(())
    /// ```
    pub fn at_rates(sent: Vec<Complex32>, tx_rate: f64, rx_rate: f64) -> Result<Self> {
        if tx_rate == rx_rate {
            return Ok(sent.into());
        }
        let length = sent.len() as f64 * rx_rate / tx_rate;
        match fits(sent.len(), tx_rate, rx_rate) {
            true => Ok(Self { known: resampled(&sent, length.round() as usize), sent }),
            false => Err(misfit(sent.len(), "received", tx_rate, sent.len() as f64 * rx_rate / length.round().max(1.0))),
        }
    }

    /// The same from what the receiver's rate has of it.
    pub(crate) fn known_at_rates(known: Vec<Complex32>, tx_rate: f64, rx_rate: f64) -> Result<Self> {
        let length = known.len() as f64 * tx_rate / rx_rate;
        match fits(known.len(), rx_rate, tx_rate) {
            true => Ok(Self { sent: resampled(&known, length.round() as usize), known }),
            false => Err(misfit(known.len(), "transmitted", tx_rate, length.round().max(1.0) * rx_rate / known.len() as f64)),
        }
    }

    /// Samples by which a frame of so many at `rate` has to be longer for it to be a whole number of samples at `other`.
    pub(crate) fn padding(samples: usize, rate: f64, other: f64) -> usize {
        let parts = ratio(other, rate).1;
        ((parts - samples as u64 % parts) % parts) as usize
    }
}

/// Whether so many samples at a rate last as long as a whole number of samples at another.
fn fits(samples: usize, rate: f64, other: f64) -> bool {
    Frame::padding(samples, rate, other) == 0
}

fn misfit(samples: usize, others: &str, tx_rate: f64, nearest: f64) -> Error {
    let problem = format!("one at which the {samples} samples of a frame last as long as a whole number of {others} ones");
    Error::parameter("tx-rate", format!("{problem}, the nearest being {nearest}"), tx_rate)
}

/// A period as another number of samples.
fn resampled(period: &[Complex32], length: usize) -> Vec<Complex32> {
    let n = period.len();
    let mut lines: Vec<Complex32> = period.iter().map(|z| z / n as f32).collect();
    Fourier::new(n).forward(&mut lines);
    let mut kept = vec![Complex32::ZERO; length];
    let least = n.min(length);
    for k in 0..least.div_ceil(2) {
        kept[k] = lines[k];
        if k > 0 {
            kept[length - k] = lines[n - k];
        }
    }
    if least.is_multiple_of(2) {
        // The line at half of the lower rate is two at the higher one.
        let (at, half) = (least / 2, if n < length { 0.5 } else { 1.0 });
        let both = if n > length { lines[at] + lines[n - at] } else { lines[at] };
        kept[at] = both * half;
        if n < length {
            kept[length - at] = both * half;
        }
    }
    Fourier::new(length).inverse(&mut kept);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_is_the_frame_and_what_repeats_is_sampled_between_its_samples() {
        let frame: Vec<Complex32> = (0..750).map(|n| Complex32::cis((n * n % 511) as f32)).collect();
        for (tx, rx) in [(2e6, 3e6), (1e6, 61.44e6), (5e6, 5e6)] {
            let there = Frame::at_rates(frame.clone(), tx, rx).unwrap();
            assert_eq!(there.known.len(), (750.0 * rx / tx).round() as usize);
            let back = Frame::known_at_rates(there.known, tx, rx).unwrap().sent;
            assert!(frame.iter().zip(&back).all(|(a, b)| (a - b).norm() < 1e-4), "{tx} {rx}");
        }
        // Beyond what the lower rate holds nothing is left, and nothing folds back.
        let tone: Vec<Complex32> = (0..100).map(|n| Complex32::cis(std::f32::consts::TAU * 0.4 * n as f32)).collect();
        assert!(Frame::at_rates(tone, 2e6, 1e6).unwrap().known.iter().all(|z| z.norm() < 1e-5));
        let said = Frame::known_at_rates(frame, 2.0001e6, 1e6).unwrap_err().to_string();
        assert!(said.contains("tx-rate") && said.contains("the nearest being 2000000, got 2000100"), "{said}");
        assert_eq!((Frame::padding(750, 4e6, 5e6), Frame::padding(751, 4e6, 5e6), Frame::padding(7, 1e6, 3e6)), (2, 1, 0));
    }
}
