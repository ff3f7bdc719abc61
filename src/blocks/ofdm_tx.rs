//! The OFDM transmitter as a source.

use futuresdr::runtime::dev::prelude::*;

use super::message;
use crate::{Error, ofdm::Transmitter};

/// A source of OFDM samples, rms 1 before clipping.
///
/// # Stream Inputs
///
/// No stream inputs.
///
/// # Stream Outputs
///
/// `output`.
///
/// # Message Inputs
///
/// `bits`: `Blob`, payload bits, one to a byte, for a transmitter with [`Source::Queue`](crate::ofdm::Source::Queue); `Finished` ends the stream when they
/// are sent. `set`: `gain_db`, the level of the output.
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::VectorSink, prelude::*};
/// use kaflow::{blocks::OfdmTx, ofdm::{Config, Source, Transmitter}};
///
/// # fn main() -> Result<()> {
/// let tx = OfdmTx::new(Transmitter::new(Config::preset("paper")?, Source::Continuous)?, Some(100_000));
/// let sink = VectorSink::<Complex32>::new(100_000);
/// let mut fg = Flowgraph::new();
/// connect!(fg, tx > sink);
/// let fg = Runtime::new().run(fg)?;
/// assert_eq!(sink.get(&fg)?.items().len(), 100_000);
/// # Ok(()) }
/// ```
#[derive(Block)]
#[message_inputs(bits, set)]
pub struct OfdmTx<O = DefaultCpuWriter<Complex32>>
where
    O: CpuBufferWriter<Item = Complex32>,
{
    #[output]
    output: O,
    transmitter: Transmitter,
    left: Option<u64>,
    gain: f32,
    last: bool,
}

impl OfdmTx {
    /// `samples` of what `transmitter` sends, or without an end.
    pub fn new(transmitter: Transmitter, samples: Option<u64>) -> Self {
        Self::with_buffers(transmitter, samples)
    }
}

impl<O: CpuBufferWriter<Item = Complex32>> OfdmTx<O> {
    /// As [`new`](OfdmTx::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(transmitter: Transmitter, samples: Option<u64>) -> Self {
        let mut output = O::default();
        output.set_min_buffer_size_in_items(super::BUFFER);
        Self { output, transmitter, left: samples, gain: 1.0, last: false }
    }

    async fn bits(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        self.last |= matches!(p, Pmt::Finished);
        message::answer("bits", &p, |p| match p {
            Pmt::Blob(bits) if bits.iter().all(|&b| b < 2) => {
                self.transmitter.push(bits);
                Ok(())
            }
            _ => Err(Error::parameter("the message", "a Blob of bits, 0 or 1 in each byte", p)),
        })
    }

    async fn set(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("set", &p, |p| match message::assignment(p)? {
            (name, db) if name == "gain_db" => {
                crate::error::require(db.abs() <= 200.0, "gain_db", "between -200 and 200", db)?;
                self.gain = 10f64.powf(db / 20.0) as f32;
                Ok(())
            }
            (name, _) => Err(Error::NotApplicable { filter: "the transmitter".into(), name, known: vec!["gain_db".into()] }),
        })
    }
}

impl<O: CpuBufferWriter<Item = Complex32>> Kernel for OfdmTx<O> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let output = self.output.slice();
        let room = output.len().min(self.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX)));
        let n = self.transmitter.fill(&mut output[..room]);
        if self.gain != 1.0 {
            output[..n].iter_mut().for_each(|z| *z *= self.gain);
        }
        if n > 0 {
            self.output.produce(n);
        }
        if let Some(left) = &mut self.left {
            *left -= n as u64;
        }
        // A queue that has run dry waits for bits, unless there will be none.
        if self.left == Some(0) || (self.last && n < room) {
            io.finished = true;
        }
        Ok(())
    }
}
