//! A fading channel between several antennas.

use futuresdr::runtime::dev::prelude::*;

use super::{message, tags};
use crate::channel::{self, Stage};

/// A channel that fades between N transmit and M receive antennas: [`channel::Fading`].
///
/// # Stream Inputs
///
/// `tx[n]`.
///
/// # Stream Outputs
///
/// `rx[m]`; each has the tags of all inputs.
///
/// # Message Inputs
///
/// `set`: `doppler` (cycles a sample), `rician_k_db`. `reset`: anything, back to the first sample.
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use kaflow::{blocks::FadingMimo, channel::{self, FadingConfig, Profile}};
/// let config = FadingConfig { tx_antennas: 4, rx_antennas: 4, ..FadingConfig::new(Profile::exponential(4, 3.0), 1e-3) };
/// let fading = FadingMimo::new(channel::Fading::new(&config, 1)?);
/// # Ok::<(), kaflow::Error>(())
/// ```
#[derive(Block)]
#[message_inputs(set, reset)]
pub struct FadingMimo<I = DefaultCpuReader<Complex32>, O = DefaultCpuWriter<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    #[input]
    tx: Vec<I>,
    #[output]
    rx: Vec<O>,
    fading: channel::Fading,
}

impl FadingMimo {
    /// A block around `fading`, with a port for each of its antennas.
    pub fn new(fading: channel::Fading) -> Self {
        Self::with_buffers(fading)
    }
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> FadingMimo<I, O> {
    /// As [`new`](FadingMimo::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(fading: channel::Fading) -> Self {
        let tx = (0..fading.tx_antennas()).map(|_| I::default()).collect();
        let rx = (0..fading.rx_antennas()).map(|_| O::default()).collect();
        Self { tx, rx, fading }
    }

    async fn set(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("set", &p, |p| {
            let (name, value) = message::assignment(p)?;
            Stage::set(&mut self.fading, &name, value)
        })
    }

    async fn reset(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("reset", &p, |_| {
            Stage::reset(&mut self.fading);
            Ok(())
        })
    }
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> Kernel for FadingMimo<I, O> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (tx, tx_tags): (Vec<_>, Vec<_>) = self.tx.iter_mut().map(|p| p.slice_with_tags()).unzip();
        let (mut rx, rx_tags): (Vec<_>, Vec<_>) = self.rx.iter_mut().map(|p| p.slice_with_tags()).unzip();
        let available = tx.iter().map(|s| s.len()).min().unwrap_or(0);
        let n = available.min(rx.iter().map(|s| s.len()).min().unwrap_or(0));
        if n > 0 {
            let inputs: Vec<_> = tx.iter().map(|s| &s[..n]).collect();
            let mut outputs: Vec<_> = rx.iter_mut().map(|s| &mut s[..n]).collect();
            self.fading.process_mimo(&inputs, &mut outputs, |_, _| {});
            for mut tags in rx_tags {
                tags::copy(&tx_tags, n, &mut tags);
            }
            self.tx.iter_mut().for_each(|p| p.consume(n));
            self.rx.iter_mut().for_each(|p| p.produce(n));
        }
        if self.tx.iter_mut().any(|p| p.finished() && p.slice().is_empty()) {
            io.finished = true;
        }
        Ok(())
    }
}
