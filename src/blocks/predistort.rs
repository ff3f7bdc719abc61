//! Digital predistortion in front of an amplifier.

use std::sync::{Arc, Mutex, PoisonError};

use futuresdr::runtime::dev::prelude::*;

use super::{Fault, fault::guarded, message, tags};
use crate::dpd::{Predistorter, Swapping, Table};

/// Sends what makes an amplifier put out its input: a [`Table`] with memory, which can be replaced while it runs.
///
/// # Stream Inputs
///
/// `input`: the signal.
///
/// # Stream Outputs
///
/// `output`: what to send to the amplifier, never beyond the table's level; tags are copied, and where a new table begins there is one called `table`.
///
/// # Message Inputs
///
/// `bypass`: anything, fades to the signal itself, held to the level of the first table.
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::{VectorSink, VectorSource}, prelude::*};
/// use kaflow::{blocks::Predistort, dpd::Table};
///
/// # fn main() -> Result<()> {
/// let source = VectorSource::<Complex32>::new(vec![Complex32::new(3.0, 4.0); 1000]);
/// let (predistort, sink) = (Predistort::new(Table::bypass(1.0))?, VectorSink::<Complex32>::new(1000));
/// let swap = predistort.swap(); // from any thread, at any time: swap.set(table)
/// let mut fg = Flowgraph::new();
/// connect!(fg, source > predistort > sink);
/// let fg = Runtime::new().run(fg)?;
/// assert!((sink.get(&fg)?.items()[999] - Complex32::new(0.6, 0.8)).norm() < 1e-6);
/// # Ok(()) }
/// ```
#[derive(Block)]
#[message_inputs(bypass)]
pub struct Predistort<I = DefaultCpuReader<Complex32>, O = DefaultCpuWriter<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    #[input]
    input: I,
    #[output]
    output: O,
    running: Swapping,
    level: f64,
    swap: Swap,
    fault: Fault,
}

/// The name of the tag where a new table begins.
pub(super) const TABLE: &str = "table";

/// Replaces the table of a [`Predistort`] block.
#[derive(Clone, Debug, Default)]
pub struct Swap(Arc<Mutex<Option<Box<Predistorter>>>>);

impl Swap {
    /// Fades to `table` from the next samples on.
    pub fn set(&self, table: Table) -> crate::Result<()> {
        let next = Box::new(Predistorter::new(table)?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
        Ok(())
    }

    fn take(&self) -> Option<Box<Predistorter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Predistort {
    /// Begins with `table`.
    pub fn new(table: Table) -> crate::Result<Self> {
        Self::with_buffers(table)
    }
}

impl<I, O> Predistort<I, O>
where
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    /// As [`new`](Predistort::new), with buffers of another kind than the default.
    pub fn with_buffers(table: Table) -> crate::Result<Self> {
        let (mut output, level) = (O::default(), table.level);
        output.set_min_buffer_size_in_items(super::BUFFER);
        let running = Swapping::new(Predistorter::new(table)?);
        Ok(Self { input: I::default(), output, running, level, swap: Swap::default(), fault: Fault::default() })
    }

    /// A handle that replaces the table while the block runs.
    pub fn swap(&self) -> Swap {
        self.swap.clone()
    }

    /// A handle that says why the block failed, if it did.
    pub fn fault(&self) -> Fault {
        self.fault.clone()
    }

    async fn bypass(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("bypass", &p, |_| self.swap.set(Table::bypass(self.level)))
    }
}

impl<I, O> Kernel for Predistort<I, O>
where
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (input, input_tags) = self.input.slice_with_tags();
        let input_len = input.len();
        let (output, mut output_tags) = self.output.slice_with_tags();
        let n = input_len.min(output.len());
        if n > 0 {
            if let Some(next) = self.swap.take() {
                self.running.swap(*next);
                output_tags.add_tag(0, Tag::NamedUsize(TABLE.into(), 0));
            }
            output[..n].copy_from_slice(&input[..n]);
            let running = &mut self.running;
            guarded("the predistorter", || running.process(&mut output[..n])).map_err(|e| self.fault.raise(e))?;
            tags::copy(&[input_tags], n, &mut output_tags);
            self.input.consume(n);
            self.output.produce(n);
        }
        if self.input.finished() && n == input_len {
            io.finished = true;
        }
        Ok(())
    }
}
