//! Digital predistortion in front of an amplifier.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futuresdr::runtime::dev::prelude::*;

use super::{Fault, message, staged::in_place};
use crate::dpd::{Predistorter, Swapping, Table};

/// Sends what makes an amplifier put out its input: a [`Table`] with memory, which can be replaced while it runs.
///
/// # Stream Inputs
///
/// `input`: the signal.
///
/// # Stream Outputs
///
/// `output`: what to send to the amplifier, never beyond the table's level; tags are copied, and where a new table begins there is one called `table`, with its number.
///
/// # Message Inputs
///
/// `bypass`: anything, fades to the signal itself, held to the level of the table.
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
/// let swap = predistort.swap.clone(); // from any thread, at any time: swap.set(table)
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
    /// Replaces the table while the block runs.
    pub swap: Swap,
    /// Says why the block failed, if it did.
    pub fault: Fault,
}

/// The name of the tag where a new table begins.
pub(super) const TABLE: &str = "table";

/// Replaces the table of a [`Predistort`] block.
#[derive(Clone, Debug)]
pub struct Swap(Arc<Mutex<Tables>>);

#[derive(Debug)]
struct Tables {
    /// The last one that was set, the one before it, and how many there were before.
    table: Table,
    last: Table,
    number: usize,
    /// The same, until the block takes it.
    next: Option<Box<Predistorter>>,
}

impl Swap {
    fn new(table: Table) -> Self {
        Self(Arc::new(Mutex::new(Tables { last: table.clone(), table, number: 0, next: None })))
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fades to `table` from the next samples on.
    pub fn set(&self, table: Table) -> crate::Result<()> {
        self.next(table).map(drop)
    }

    /// The same; gives how many tables were before it.
    pub(super) fn next(&self, table: Table) -> crate::Result<usize> {
        let next = Box::new(Predistorter::new(table.clone())?);
        let mut tables = self.lock();
        let last = std::mem::replace(&mut tables.table, table);
        (tables.last, tables.number, tables.next) = (last, tables.number + 1, Some(next));
        Ok(tables.number)
    }

    /// Fades to the signal itself, held to the level of the table.
    pub(crate) fn bypass(&self) -> crate::Result<()> {
        let level = self.lock().table.level;
        self.set(Table::bypass(level))
    }

    /// The same, unless it is so already; true when it was not.
    pub(super) fn fall_back(&self) -> bool {
        let predistorts = !self.lock().table.is_bypass();
        predistorts && self.bypass().is_ok()
    }

    /// The table, and how many were before it.
    pub(super) fn table(&self) -> (Table, usize) {
        let tables = self.lock();
        (tables.table.clone(), tables.number)
    }

    /// The table, and the one before it.
    pub(super) fn tables(&self) -> (Table, Table) {
        let tables = self.lock();
        (tables.table.clone(), tables.last.clone())
    }

    /// How many tables were before this one.
    pub(super) fn number(&self) -> usize {
        self.lock().number
    }

    fn take(&self) -> Option<(Box<Predistorter>, usize)> {
        let mut tables = self.lock();
        tables.next.take().map(|next| (next, tables.number))
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
    pub(crate) fn with_buffers(table: Table) -> crate::Result<Self> {
        let mut output = O::default();
        output.set_min_buffer_size_in_items(super::BUFFER);
        let running = Swapping::new(Predistorter::new(table.clone())?);
        Ok(Self { input: I::default(), output, running, swap: Swap::new(table), fault: Fault::default() })
    }

    async fn bypass(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("bypass", &p, |_| self.swap.bypass())
    }
}

impl<I, O> Kernel for Predistort<I, O>
where
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (running, swap) = (&mut self.running, &self.swap);
        let work = in_place(&mut self.input, &mut self.output, io, "the predistorter", |samples, tags| {
            if let Some((next, number)) = swap.take() {
                running.swap(*next);
                tags.add_tag(0, Tag::NamedUsize(TABLE.into(), number));
            }
            running.process(samples);
        });
        work.map_err(|e| self.fault.raise(e).into())
    }
}
