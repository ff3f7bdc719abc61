//! The whole test bed as a source.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futuresdr::runtime::dev::prelude::*;

use super::gap;
use crate::channel::TestBed;

/// Runs a [`TestBed`]: what was sent and what the first antenna received, sample by sample partners.
///
/// # Stream Inputs
///
/// No stream inputs.
///
/// # Stream Outputs
///
/// `tx`, `rx`: both with a `gap` tag behind samples that were dropped.
///
/// # Message Inputs
///
/// No message inputs.
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::NullSink, prelude::*};
/// use kaflow::{blocks::BedSource, channel::{Scenario, TestBed}};
///
/// # fn main() -> Result<()> {
/// let bed = BedSource::new(TestBed::new(&Scenario::preset("a")?)?);
/// let (tx, rx) = (NullSink::<Complex32>::new(), NullSink::<Complex32>::new());
/// let mut fg = Flowgraph::new();
/// connect!(fg, bed.tx > tx; bed.rx > rx);
/// let fg = Runtime::new().run(fg)?;
/// assert_eq!(rx.get(&fg)?.n_received(), 6000);
/// # Ok(()) }
/// ```
#[derive(Block)]
pub struct BedSource<O = DefaultCpuWriter<Complex32>>
where
    O: CpuBufferWriter<Item = Complex32>,
{
    #[output]
    tx: O,
    #[output]
    rx: O,
    bed: TestBed,
    stop: Arc<AtomicBool>,
    /// The chunk that is being put out: sent, received, gaps in it, and how much is gone.
    chunk: (Vec<Complex32>, Vec<Complex32>, Vec<(usize, usize)>),
    gone: usize,
    emitted: u64,
}

impl BedSource {
    /// Runs `bed` to its end.
    pub fn new(bed: TestBed) -> Self {
        Self::with_buffers(bed)
    }
}

impl<O: CpuBufferWriter<Item = Complex32>> BedSource<O> {
    /// As [`new`](BedSource::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(bed: TestBed) -> Self {
        let (mut tx, mut rx) = (O::default(), O::default());
        tx.set_min_buffer_size_in_items(super::BUFFER);
        rx.set_min_buffer_size_in_items(super::BUFFER);
        Self { tx, rx, bed, stop: Arc::default(), chunk: Default::default(), gone: 0, emitted: 0 }
    }

    /// Ends the streams early, but cleanly, once `stop` is true.
    pub fn stop_when(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// Takes the next chunk from the bed; false at its end.
    fn refill(&mut self) -> bool {
        let (tx, rx, gaps) = &mut self.chunk;
        tx.clear();
        rx.clear();
        gaps.clear();
        self.gone = 0;
        while tx.is_empty() {
            let Some(chunk) = self.bed.next_chunk() else { return false };
            tx.extend_from_slice(&chunk.tx[0]);
            rx.extend_from_slice(&chunk.rx[0]);
            gaps.extend(chunk.gaps.iter().map(|g| ((g.at - self.emitted) as usize, g.length as usize)));
        }
        true
    }
}

impl<O: CpuBufferWriter<Item = Complex32>> Kernel for BedSource<O> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        if self.gone == self.chunk.0.len() && (self.stop.load(Ordering::Relaxed) || !self.refill()) {
            io.finished = true;
            return Ok(());
        }
        let (tx, mut tx_tags) = self.tx.slice_with_tags();
        let (rx, mut rx_tags) = self.rx.slice_with_tags();
        let span = self.gone..self.chunk.0.len().min(self.gone + tx.len().min(rx.len()));
        let n = span.len();
        if n == 0 {
            return Ok(());
        }
        tx[..n].copy_from_slice(&self.chunk.0[span.clone()]);
        rx[..n].copy_from_slice(&self.chunk.1[span.clone()]);
        for &(at, length) in self.chunk.2.iter().filter(|(at, _)| span.contains(at)) {
            tx_tags.add_tag(at - self.gone, gap(length));
            rx_tags.add_tag(at - self.gone, gap(length));
        }
        self.gone += n;
        self.emitted += n as u64;
        self.tx.produce(n);
        self.rx.produce(n);
        io.call_again = true;
        Ok(())
    }
}
