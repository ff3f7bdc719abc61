//! Learns the amplifier behind a predistorter.

use std::mem;
use std::thread::JoinHandle;

use futuresdr::runtime::dev::prelude::*;

use super::{
    Fault,
    fault::guarded,
    learning::{Heard, Learning, LoopConfig, Rounds},
    predistort::{Swap, TABLE},
    tags,
};
use crate::Error;
use crate::dpd::FADE;
use crate::dsp::wide;

/// Pairs that tell which table they were sent through, and how far apart such stretches are.
const STRETCH: usize = 2048;
const APART: u64 = 1 << 14;
/// Pairs that a radio's synchroniser takes to settle.
const SETTLE: u64 = 1 << 17;

/// Learns the amplifier from the signal and what came back, and gives a [`Predistort`](super::Predistort) block its inverse, round after round. A fit that gets
/// worse sends it back to the signal itself, and begins anew.
///
/// What the amplifier was given is found by sending the signal through the table of that block: what goes through a radio cannot be seen behind it.
///
/// # Stream Inputs
///
/// `signal`: what is to come out undistorted, as it goes into the predistorter. `received`: what came back, in step. A tag `gap` on either is a break; the predistorter's tag `table` on
/// `received` says from where on a table was used, where there is one.
///
/// # Stream Outputs
///
/// No stream outputs.
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
///
/// [`flowgraphs::linearize`](crate::flowgraphs::linearize) closes the loop.
#[derive(Block)]
pub struct Linearize<I = DefaultCpuReader<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
{
    #[input]
    signal: I,
    #[input]
    received: I,
    pairs: usize,
    latency: Option<usize>,
    swap: Swap,
    /// None while a thread has it.
    learning: Option<Learning>,
    thread: Option<JoinHandle<crate::Result<Learning>>>,
    aside: bool,
    /// What the rounds have done.
    pub rounds: Rounds,
    /// The table that counts, pairs that were seen so far, how many there are when it has come round, and when it is looked for next.
    number: usize,
    seen: u64,
    from: u64,
    look: u64,
    heard: Heard,
    gaps: Vec<(usize, u64)>,
    /// Says why the block failed, if it did.
    pub fault: Fault,
}

impl Linearize {
    /// Gives the block behind `swap` its tables; `signal` is a stretch of what is to come out undistorted.
    pub fn new(config: LoopConfig, signal: &[Complex32], swap: Swap) -> crate::Result<Self> {
        Self::with_buffers(config, signal, swap)
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Linearize<I> {
    /// As [`new`](Linearize::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(config: LoopConfig, signal: &[Complex32], swap: Swap) -> crate::Result<Self> {
        let (pairs, latency) = (config.pairs, config.latency);
        let learning = Learning::new(config, signal, swap.clone())?;
        let (mut plain, mut received) = (I::default(), I::default());
        plain.set_min_buffer_size_in_items(super::BUFFER);
        received.set_min_buffer_size_in_items(super::BUFFER);
        Ok(Self {
            signal: plain,
            received,
            pairs,
            latency,
            swap,
            rounds: learning.rounds(),
            learning: Some(learning),
            thread: None,
            aside: false,
            number: 0,
            seen: 0,
            from: if latency.is_some() { SETTLE } else { 0 },
            look: u64::MAX,
            heard: Heard::default(),
            gaps: Vec::new(),
            fault: Fault::default(),
        })
    }

    /// Learns in a thread of its own, while pairs pass unused: for a radio, which does not wait.
    pub fn aside(mut self) -> Self {
        self.aside = true;
        self
    }

    /// Learns from what was heard, here or aside.
    fn learn(&mut self) -> crate::Result<()> {
        let (heard, (table, number)) = (mem::take(&mut self.heard), self.swap.table());
        // Somebody has just set another one: what was heard is of no use.
        let Some(mut learning) = self.learning.take_if(|_| number == self.number) else { return Ok(()) };
        let round = move || guarded("the learner", || learning.round(heard, &table).map(|()| learning)).flatten();
        if self.aside {
            let thread = std::thread::Builder::new().name("kaflow dpd".into()).spawn(round);
            self.thread = Some(thread.map_err(|e| Error::io("thread", e))?);
        } else {
            self.learning = Some(round()?);
        }
        Ok(())
    }

    /// Looks whether the new table has come round; the next pairs count then.
    fn search(&mut self) -> crate::Result<()> {
        let heard = mem::take(&mut self.heard);
        let Some(learning) = &self.learning else { return Ok(()) };
        if heard.len() >= STRETCH && guarded("the learner", || learning.has_come(&heard))? {
            self.from = self.from.min(self.seen);
        }
        self.look = self.seen + APART;
        Ok(())
    }

    /// Takes back what a thread has learned, if it is done; and looks whether there is a new table, which takes a while to come round. False while pairs are of no use.
    fn ready(&mut self) -> crate::Result<bool> {
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            let learned = thread.join().map_err(|_| Error::Device("the learner's thread has panicked".into()))?;
            self.learning = Some(learned?);
        }
        let Some(learning) = &mut self.learning else { return Ok(false) };
        let number = self.swap.number();
        if number != self.number {
            learning.notice(number);
            self.number = number;
            self.from = self.latency.map_or(u64::MAX, |latency| self.seen + latency as u64);
            self.look = self.latency.map_or(u64::MAX, |_| self.seen);
            self.heard.clear();
        }
        Ok(true)
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Kernel for Linearize<I> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let ready = self.ready().map_err(|e| self.fault.raise(e))?;
        let (signal, signal_tags) = self.signal.slice_with_tags();
        let (received, received_tags) = self.received.slice_with_tags();
        let (signal_len, received_len) = (signal.len(), received.len());
        let available = signal_len.min(received_len);
        let begins = |t: &&ItemTag| matches!(&t.tag, Tag::NamedUsize(name, number) if name == TABLE && *number == self.number);
        if let Some(tag) = received_tags.iter().filter(|t| t.index < available).find(begins) {
            self.from = self.seen + (tag.index + 2 * FADE) as u64;
        }
        // Until a table has come round a stretch now and then tells whether it has; then all pairs count.
        let waits = self.seen < self.from;
        let within = |pairs: u64| pairs.saturating_sub(self.seen).min(available as u64) as usize;
        let (from, end, wanted) = if waits { (within(self.look), within(self.from), STRETCH) } else { (0, available, self.pairs) };
        let (skipped, end) = if ready { (from.min(end), end) } else { (available, available) };
        let n = end.min(skipped + wanted.saturating_sub(self.heard.len()));
        tags::gaps(signal_tags.iter().chain(received_tags), n, &mut self.gaps);
        let breaks = self.gaps.iter().filter(|gap| gap.0 >= skipped).map(|gap| gap.0 - skipped);
        self.heard.push(signal[skipped..n].iter().zip(&received[skipped..n]).map(|(&x, &y)| (wide(x), wide(y))), breaks);
        io.call_again = n < available;
        self.signal.consume(n);
        self.received.consume(n);
        self.seen += n as u64;
        if waits && (self.heard.len() >= STRETCH || self.seen >= self.from) {
            self.search().map_err(|e| self.fault.raise(e))?;
        } else if ready && !waits && self.heard.len() >= self.pairs {
            self.learn().map_err(|e| self.fault.raise(e))?;
        }
        if (self.signal.finished() && n == signal_len) || (self.received.finished() && n == received_len) {
            io.finished = true;
        }
        Ok(())
    }
}
