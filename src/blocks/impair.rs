//! A receiver's imperfections.

use std::collections::VecDeque;

use futuresdr::runtime::dev::prelude::*;

use super::{gap, message};
use crate::channel::{Dropper, Impairments, ImpairmentsConfig};

/// A receiver: delay and sampling offset, carrier offset, phase noise, noise, IQ imbalance, DC, converter, and gaps.
///
/// # Stream Inputs
///
/// `input`.
///
/// # Stream Outputs
///
/// `output`: a sampling offset and gaps change how many there are. A gap leaves a `gap` tag; other tags stay with their
/// sample, or with the next one where theirs is in a gap.
///
/// # Message Inputs
///
/// `set`: one of the parameters of [`ImpairmentsConfig`] (but for `delay`, `carrier_phase` and `adc_headroom_db`), `snr_db`, `signal_power` or `full_scale`. `reset`: anything, back to the first sample.
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::{VectorSink, VectorSource}, prelude::*};
/// use kaflow::{blocks::Impair, channel::ImpairmentsConfig};
///
/// # fn main() -> Result<()> {
/// let receiver = ImpairmentsConfig { carrier_offset: 1e-3, adc_bits: 12, drop_rate: 1e-3, drop_length: 10.0, ..ImpairmentsConfig::default() };
/// let impair = Impair::new(&receiver, 20.0, 1)?;
/// let source = VectorSource::<Complex32>::new(vec![Complex32::new(1.0, 0.0); 20_000]);
/// let sink = VectorSink::<Complex32>::new(20_000);
/// let mut fg = Flowgraph::new();
/// connect!(fg, source > impair > sink);
/// let fg = Runtime::new().run(fg)?;
/// assert!((19_000..20_000).contains(&sink.get(&fg)?.items().len())); // 1 % is in gaps
/// # Ok(()) }
/// ```
#[derive(Block)]
#[message_inputs(set, reset)]
pub struct Impair<I = DefaultCpuReader<Complex32>, O = DefaultCpuWriter<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    #[input]
    input: I,
    #[output]
    output: O,
    receiver: Impairments,
    dropper: Dropper,
    /// Outputs of the receiver that were not emitted yet; the first has the index `position`.
    ready: VecDeque<Complex32>,
    position: u64,
    taken: u64,
    tags: VecDeque<(u64, Tag)>,
    scratch: Vec<Complex32>,
    flushed: bool,
}

impl Impair {
    /// A receiver as configured, for a signal of mean power 1, with noise `snr_db` below it (infinity for none).
    pub fn new(config: &ImpairmentsConfig, snr_db: f64, seed: u64) -> crate::Result<Self> {
        let dropper = Dropper::new(config.drop_rate, config.drop_length, seed)?;
        Ok(Self::with_buffers(Impairments::new(config, snr_db, seed)?, dropper))
    }
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> Impair<I, O> {
    /// `receiver`, which then loses what `dropper` says; buffers of any kind.
    pub(crate) fn with_buffers(receiver: Impairments, dropper: Dropper) -> Self {
        let mut output = O::default();
        output.set_min_buffer_size_in_items(super::BUFFER);
        Self {
            input: I::default(),
            output,
            receiver,
            dropper,
            ready: VecDeque::new(),
            position: 0,
            taken: 0,
            tags: VecDeque::new(),
            scratch: Vec::new(),
            flushed: false,
        }
    }

    async fn set(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("set", &p, |p| {
            let (name, value) = message::assignment(p)?;
            if name.starts_with("drop_") { self.dropper.set(&name, value) } else { self.receiver.set(&name, value) }
        })
    }

    async fn reset(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("reset", &p, |_| {
            self.receiver.reset();
            self.dropper.reset();
            Ok(())
        })
    }
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> Kernel for Impair<I, O> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (output, mut output_tags) = self.output.slice_with_tags();
        let (input, input_tags) = self.input.slice_with_tags();
        let input_len = input.len();
        // Only as much as there is room for, so that what waits stays short.
        let n = input_len.min(output.len().saturating_sub(self.ready.len()));
        self.tags.extend(input_tags.iter().filter(|t| t.index < n).map(|t| (self.taken + t.index as u64, t.tag.clone())));
        self.taken += n as u64;
        self.receiver.process(&input[..n], &mut self.scratch);
        self.input.consume(n);
        let ended = self.input.finished() && n == input_len;
        if ended && !self.flushed {
            self.receiver.flush(&mut self.scratch);
            self.flushed = true;
        }
        self.ready.extend(self.scratch.drain(..));

        let mut produced = 0;
        let mut gaps = Vec::new();
        while produced < output.len() {
            let Some(sample) = self.ready.pop_front() else { break };
            self.position += 1;
            if !self.dropper.keep(&mut gaps) {
                continue;
            }
            output[produced] = sample;
            if let Some(next) = gaps.pop() {
                output_tags.add_tag(produced, gap(next.length as usize));
            }
            while self.tags.front().is_some_and(|(at, _)| *at < self.position) {
                if let Some((_, tag)) = self.tags.pop_front() {
                    output_tags.add_tag(produced, tag);
                }
            }
            produced += 1;
        }
        if produced > 0 {
            self.output.produce(produced);
        }
        if ended && self.ready.is_empty() {
            io.finished = true;
        } else if ended {
            // The rest comes out as the reader makes room.
            io.call_again = produced > 0;
        }
        Ok(())
    }
}
