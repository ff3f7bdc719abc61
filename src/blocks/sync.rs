//! Two streams brought into step and kept there.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use futuresdr::runtime::{buffer::Tags, dev::prelude::*};

use super::{Fault, gap, gap_length, message};
use crate::iq::{Pairs, Status, Synchroniser, align::Alignment};

/// Samples that are taken in at once, so that a stop is never far.
const PIECE: usize = super::BUFFER / 4;

/// Brings a received stream into step with the transmitted one: a [`Synchroniser`].
///
/// # Stream Inputs
///
/// `tx`, `rx`. A tag `gap` says how many samples before its sample never arrived, 0 for an unknown number. Where the transmitter repeats a frame, nothing is read from `tx`: connect
/// whatever there is.
///
/// # Stream Outputs
///
/// `aligned_tx`, `aligned_rx`: sample by sample partners. Each has its input's tags; where pairs are left out, because of a gap or because their partners are in doubt, both
/// have a `gap` tag behind them.
///
/// # Message Inputs
///
/// No message inputs.
///
/// # Message Outputs
///
/// `alignment`: a map whenever a search has found one: `delay` (samples), `cfo` (cycles a sample), `gain`, `phase`, `inverted`, `confidence`, `explained`, `advance`.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::{NullSink, VectorSource}, prelude::*};
/// use kaflow::{blocks::Sync, iq::{Synchroniser, align::Options}, ofdm::{Config, Source, Transmitter}};
///
/// # fn main() -> Result<()> {
/// let mut tx = vec![Complex32::ZERO; 20_000];
/// Transmitter::new(Config::preset("wifi")?, Source::Continuous)?.fill(&mut tx);
/// let rx = [&vec![Complex32::new(0.0, 0.0); 123], &tx[..]].concat();
/// let (tx, rx, sync) = (VectorSource::<Complex32>::new(tx), VectorSource::<Complex32>::new(rx), Sync::new(Synchroniser::search(Options::default())));
/// let watch = sync.watch.clone();
/// let (a, b) = (NullSink::<Complex32>::new(), NullSink::<Complex32>::new());
/// let mut fg = Flowgraph::new();
/// connect!(fg, tx > tx.sync; rx > rx.sync; sync.aligned_tx > a; sync.aligned_rx > b);
/// let fg = Runtime::new().run(fg)?;
/// assert_eq!(watch.status().alignment.unwrap().delay.round(), 123.0);
/// assert_eq!(a.get(&fg)?.n_received(), 20_000);
/// # Ok(()) }
/// ```
#[derive(Block)]
#[message_outputs(alignment)]
pub struct Sync<I = DefaultCpuReader<Complex32>, O = DefaultCpuWriter<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    #[input]
    tx: I,
    #[input]
    rx: I,
    #[output]
    aligned_tx: O,
    #[output]
    aligned_rx: O,
    synchroniser: Synchroniser,
    sent: Side,
    received: Side,
    ready: Pairs,
    given: usize,
    ended: bool,
    searches: u64,
    /// Reads how the block stands.
    pub watch: SyncWatch,
    /// Says why the block failed, if it did.
    pub fault: Fault,
}

/// Reads how a [`Sync`] block stands, while it runs and afterwards.
#[derive(Clone, Debug, Default)]
pub struct SyncWatch(Arc<Mutex<Status>>);

impl SyncWatch {
    /// How far the streams are in step.
    pub fn status(&self) -> Status {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, status: &Status) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(status);
    }
}

/// The tags of one of the inputs, by the samples that they are on; gaps are not among them.
#[derive(Default)]
struct Side {
    taken: u64,
    tags: VecDeque<(u64, Tag)>,
}

impl Side {
    /// Hands `input` over in stretches, each with the gap before it; gives how many samples.
    fn take(&mut self, input: &[Complex32], tags: &[ItemTag], most: usize, mut push: impl FnMut(&[Complex32], Option<u64>)) -> usize {
        let n = input.len().min(most);
        let mut starts: Vec<(usize, Option<u64>)> = vec![(0, None)];
        for ItemTag { index, tag } in tags.iter().filter(|t| t.index < n) {
            match gap_length(tag) {
                Some(length) => starts.push((*index, Some(length as u64))),
                None => self.tags.push_back((self.taken + *index as u64, tag.clone())),
            }
        }
        starts.sort_unstable();
        starts.dedup_by(|b, a| {
            let same = a.0 == b.0;
            if same {
                // Two gaps in a row are one, of unknown length where one of them is.
                a.1 = match (a.1, b.1) {
                    (Some(x), Some(y)) => Some(if x > 0 && y > 0 { x + y } else { 0 }),
                    (x, y) => x.or(y),
                };
            }
            same
        });
        for (i, &(at, gap)) in starts.iter().enumerate() {
            push(&input[at..starts.get(i + 1).map_or(n, |next| next.0)], gap);
        }
        self.taken += n as u64;
        n
    }

    /// Puts the tags of samples before `until` on `output`: those from `from` on where they belong, older ones on the next pair.
    fn put(&mut self, from: u64, until: u64, at: usize, output: &mut Tags<'_>) {
        while let Some((item, tag)) = self.tags.pop_front_if(|(item, _)| *item < until) {
            output.add_tag(at + item.saturating_sub(from) as usize, tag);
        }
    }
}

impl Sync {
    /// A block around `synchroniser`.
    pub fn new(synchroniser: Synchroniser) -> Self {
        Self::with_buffers(synchroniser)
    }
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> Sync<I, O> {
    /// As [`new`](Sync::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(synchroniser: Synchroniser) -> Self {
        let (mut aligned_tx, mut aligned_rx) = (O::default(), O::default());
        aligned_tx.set_min_buffer_size_in_items(super::BUFFER);
        aligned_rx.set_min_buffer_size_in_items(super::BUFFER);
        let watch = SyncWatch::default();
        watch.set(synchroniser.status());
        Self {
            tx: I::default(),
            rx: I::default(),
            aligned_tx,
            aligned_rx,
            synchroniser,
            sent: Side::default(),
            received: Side::default(),
            ready: Pairs::default(),
            given: 0,
            ended: false,
            searches: 0,
            watch,
            fault: Fault::default(),
        }
    }

    /// Takes samples in and lets the synchroniser work on them; gives how many, and whether nothing more will come.
    fn take(&mut self) -> crate::Result<usize> {
        let Self { tx, rx, synchroniser, .. } = self;
        let (room_tx, room_rx) = synchroniser.room();
        let (mut n_tx, mut tx_ended) = (0, true);
        if synchroniser.wants_sent() {
            let (input, tags) = tx.slice_with_tags();
            n_tx = self.sent.take(input, tags, room_tx.min(PIECE), |samples, gap| synchroniser.send(samples, gap));
            tx_ended = n_tx == input.len() && tx.finished();
            tx.consume(n_tx);
        }
        let (input, tags) = rx.slice_with_tags();
        let n_rx = self.received.take(input, tags, room_rx.min(PIECE), |samples, gap| synchroniser.receive(samples, gap));
        let rx_ended = n_rx == input.len() && rx.finished();
        rx.consume(n_rx);
        synchroniser.end(tx_ended, rx_ended);
        self.ready.clear();
        self.given = 0;
        self.ended = self.synchroniser.go(&mut self.ready)?;
        self.watch.set(self.synchroniser.status());
        Ok(n_tx + n_rx)
    }

    /// Puts out what is ready; true when all of it is.
    fn give(&mut self) -> bool {
        let (tx, mut tx_tags) = self.aligned_tx.slice_with_tags();
        let (rx, mut rx_tags) = self.aligned_rx.slice_with_tags();
        let n = tx.len().min(rx.len()).min(self.ready.tx.len() - self.given);
        let span = self.given..self.given + n;
        tx[..n].copy_from_slice(&self.ready.tx[span.clone()]);
        rx[..n].copy_from_slice(&self.ready.rx[span.clone()]);
        for &(at, length) in self.ready.gaps.iter().filter(|(at, _)| span.contains(at)) {
            tx_tags.add_tag(at - span.start, gap(length as usize));
            rx_tags.add_tag(at - span.start, gap(length as usize));
        }
        let origins = &self.ready.origins;
        for (i, &(at, sent, received)) in origins.iter().enumerate() {
            let (from, until) = (at.max(span.start), origins.get(i + 1).map_or(self.ready.tx.len(), |next| next.0).min(span.end));
            if from < until {
                let (skipped, count) = ((from - at) as u64, (until - from) as u64);
                self.sent.put(sent + skipped, sent + skipped + count, from - span.start, &mut tx_tags);
                self.received.put(received + skipped, received + skipped + count, from - span.start, &mut rx_tags);
            }
        }
        if n > 0 {
            self.aligned_tx.produce(n);
            self.aligned_rx.produce(n);
        }
        self.given += n;
        self.given == self.ready.tx.len()
    }
}

/// An alignment as a message.
fn told(a: &Alignment) -> Pmt {
    message::map([
        ("delay", Pmt::F64(a.delay)),
        ("cfo", Pmt::F64(a.cfo)),
        ("gain", Pmt::F64(a.gain)),
        ("phase", Pmt::F64(a.phase)),
        ("inverted", Pmt::Bool(a.inverted)),
        ("confidence", Pmt::F64(a.confidence)),
        ("explained", Pmt::F64(a.explained)),
        ("advance", Pmt::Usize(a.advance)),
    ])
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> Kernel for Sync<I, O> {
    async fn work(&mut self, io: &mut WorkIo, mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        if !self.give() {
            return Ok(());
        }
        let taken = self.take().map_err(|e| self.fault.raise(e))?;
        let status = self.synchroniser.status();
        if status.searches > self.searches
            && let Some(found) = status.alignment
        {
            self.searches = status.searches;
            mo.post("alignment", told(&found)).await?;
        }
        let given = self.give();
        io.finished |= self.ended && given;
        io.call_again |= taken > 0;
        Ok(())
    }
}
