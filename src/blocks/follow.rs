//! A received stream and the frame that it repeats.

use std::sync::{Arc, Mutex, PoisonError};

use futuresdr::runtime::dev::prelude::*;

use super::{gap, gap_length};
use crate::iq::{Followed, Follower, Lock};

/// Puts what was sent beside what is received, when the transmitter repeats a known frame.
///
/// # Stream Inputs
///
/// `input`: what is received. A tag [`gap`] says how many samples are missing before its sample, 0 for an unknown number.
///
/// # Stream Outputs
///
/// `tx`, `rx`: pairs, as [`Follower`] brings them into step; nothing while it searches. Behind a hole both have a [`gap`] tag.
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
/// use futuresdr::{blocks::{NullSink, VectorSource}, prelude::*};
/// use kaflow::{blocks::Follow, iq::Follower};
///
/// # fn main() -> Result<()> {
/// let frame: Vec<_> = (0..4000u32).map(|i| Complex32::cis((i * i % 10_007) as f32)).collect();
/// let received = (0..40_000).map(|n| frame[(n + 1234) % 4000] * 0.5).collect();
/// let (source, follow) = (VectorSource::<Complex32>::new(received), Follow::new(Follower::new(frame)?));
/// let (tx, rx) = (NullSink::<Complex32>::new(), NullSink::<Complex32>::new());
/// let mut fg = Flowgraph::new();
/// connect!(fg, source > follow; follow.tx > tx; follow.rx > rx);
/// let fg = Runtime::new().run(fg)?;
/// assert_eq!(tx.get(&fg)?.n_received(), rx.get(&fg)?.n_received());
/// # Ok(()) }
/// ```
#[derive(Block)]
pub struct Follow<I = DefaultCpuReader<Complex32>, O = DefaultCpuWriter<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    #[input]
    input: I,
    #[output]
    tx: O,
    #[output]
    rx: O,
    follower: Follower,
    ready: Followed,
    given: usize,
    watcher: Watcher,
    keep: usize,
    kept: (Vec<Complex32>, Vec<Complex32>),
}

/// Reads how a [`Follow`] block stands while it runs.
#[derive(Clone, Debug, Default)]
pub struct Watcher(Arc<Mutex<(Option<Lock>, Option<String>)>>);

impl Watcher {
    /// How the stream lies to the frame; none while it is searched for.
    pub fn lock(&self) -> Option<Lock> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Why the last search failed.
    pub fn failure(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

impl Follow {
    /// A block around `follower`.
    pub fn new(follower: Follower) -> Self {
        Self::with_buffers(follower)
    }
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> Follow<I, O> {
    /// As [`new`](Follow::new), with buffers of another kind than the default.
    pub fn with_buffers(follower: Follower) -> Self {
        let (mut tx, mut rx) = (O::default(), O::default());
        tx.set_min_buffer_size_in_items(super::BUFFER);
        rx.set_min_buffer_size_in_items(super::BUFFER);
        Self {
            input: I::default(),
            tx,
            rx,
            follower,
            ready: Followed::default(),
            given: 0,
            watcher: Watcher::default(),
            keep: 0,
            kept: Default::default(),
        }
    }

    /// Keeps the first `pairs` for a look.
    pub fn keep(mut self, pairs: usize) -> Self {
        self.keep = pairs;
        self
    }

    /// The first pairs, sent and received, as many as were to be kept.
    pub fn kept(&self) -> (Vec<Complex32>, Vec<Complex32>) {
        self.kept.clone()
    }

    /// A handle that reads how the block stands while it runs.
    pub fn watcher(&self) -> Watcher {
        self.watcher.clone()
    }

    /// Puts out what is ready; true when all of it is.
    fn give(&mut self) -> bool {
        let (tx, mut tx_tags) = self.tx.slice_with_tags();
        let (rx, mut rx_tags) = self.rx.slice_with_tags();
        let n = tx.len().min(rx.len()).min(self.ready.tx.len() - self.given);
        let span = self.given..self.given + n;
        tx[..n].copy_from_slice(&self.ready.tx[span.clone()]);
        rx[..n].copy_from_slice(&self.ready.rx[span.clone()]);
        for &(at, missing) in self.ready.gaps.iter().filter(|(at, _)| span.contains(at)) {
            tx_tags.add_tag(at - span.start, gap(missing as usize));
            rx_tags.add_tag(at - span.start, gap(missing as usize));
        }
        if n > 0 {
            self.tx.produce(n);
            self.rx.produce(n);
        }
        self.given += n;
        self.given == self.ready.tx.len()
    }
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> Kernel for Follow<I, O> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        if !self.give() {
            return Ok(());
        }
        self.ready.clear();
        self.given = 0;
        let (input, tags) = self.input.slice_with_tags();
        let available = input.len();
        let mut holes: Vec<(usize, u64)> =
            tags.iter().filter_map(|t| gap_length(&t.tag).map(|missing| (t.index, missing as u64))).filter(|h| h.0 < available).collect();
        holes.sort_unstable();
        // Up to the next hole, and not too much at a time.
        let mut at = 0;
        let mut holes = holes.into_iter().peekable();
        let most = available.min(super::BUFFER / 4);
        while at < most {
            let hole = holes.next_if(|h| h.0 == at).map(|h| h.1);
            let end = holes.peek().map_or(most, |h| h.0.min(most));
            self.follower.push(&input[at..end], hole, &mut self.ready);
            at = end;
        }
        self.input.consume(at);
        let room = (self.keep - self.kept.0.len()).min(self.ready.tx.len());
        self.kept.0.extend_from_slice(&self.ready.tx[..room]);
        self.kept.1.extend_from_slice(&self.ready.rx[..room]);
        if at > 0 {
            *self.watcher.0.lock().unwrap_or_else(PoisonError::into_inner) =
                (self.follower.lock(), self.follower.failure().map(str::to_owned));
        }
        let given = self.give();
        io.finished = self.input.finished() && at == available && given;
        io.call_again = !io.finished && (at < available || (self.input.finished() && given));
        Ok(())
    }
}
