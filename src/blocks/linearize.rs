//! Learns the amplifier behind a predistorter.

use std::sync::{Arc, Mutex, PoisonError};

use futuresdr::runtime::dev::prelude::*;

use super::{
    Fault,
    fault::guarded,
    predistort::{Swap, TABLE},
    tags,
};
use crate::Complex64;
use crate::dpd::{Learner, Options, Table};
use crate::dsp::wide;
use crate::error::require;

/// How a loop of [`Linearize`] and [`Predistort`](super::Predistort) learns.
#[derive(Clone, Debug)]
pub struct LoopConfig {
    /// The amplifier's model.
    pub options: Options,
    /// The largest envelope that is ever sent.
    pub level: f64,
    /// How much weaker than without the signal comes out, in dB.
    pub back_off_db: f64,
    /// Pairs of a round; those that were sent before the last table are left out.
    pub pairs: usize,
}

/// What a round of a loop has done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// What the model leaves unexplained of what came back, in dB.
    pub model_db: f64,
    /// Whether its inverse is applied; else the signal is sent as it is.
    pub applied: bool,
}

/// What the rounds of a loop have done so far.
#[derive(Clone, Debug, Default)]
pub struct Rounds(Arc<Mutex<Vec<Round>>>);

impl Rounds {
    /// The rounds, in order.
    pub fn get(&self) -> Vec<Round> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A model that is worse than the best one so far by more than this, in dB, is not applied: something else has come into the feedback.
const WORSE_DB: f64 = 6.0;
/// Nor is one that leaves more than this.
const POOR_DB: f64 = -15.0;

/// Learns the amplifier from what was sent and what came back, and gives a [`Predistort`](super::Predistort) block its inverse, round after round. A fit that gets
/// worse sends it back to the signal itself, and begins anew.
///
/// # Stream Inputs
///
/// `sent`: what the amplifier was given. `received`: what came back, in step. A tag `gap` on either begins a round anew.
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
    sent: I,
    #[input]
    received: I,
    config: LoopConfig,
    signal: Vec<Complex64>,
    learner: Learner,
    swap: Swap,
    /// Whether the last table is still on its way, and pairs taken in this round.
    waits: bool,
    taken: usize,
    best_db: f64,
    rounds: Rounds,
    gaps: Vec<(usize, u64)>,
    fault: Fault,
}

impl Linearize {
    /// Gives the block behind `swap` its tables; `signal` is a stretch of what is to come out undistorted.
    pub fn new(config: LoopConfig, signal: &[Complex32], swap: Swap) -> crate::Result<Self> {
        Self::with_buffers(config, signal, swap)
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Linearize<I> {
    /// As [`new`](Linearize::new), with buffers of another kind than the default.
    pub fn with_buffers(config: LoopConfig, signal: &[Complex32], swap: Swap) -> crate::Result<Self> {
        require(config.pairs >= 1024, "pairs", "at least 1024", config.pairs as f64)?;
        let signal: Vec<Complex64> = signal.iter().map(|&z| wide(z)).collect();
        let learner = Learner::new(config.options, &signal, config.level)?;
        let (mut sent, mut received) = (I::default(), I::default());
        sent.set_min_buffer_size_in_items(super::BUFFER);
        received.set_min_buffer_size_in_items(super::BUFFER);
        Ok(Self {
            sent,
            received,
            waits: false,
            config,
            signal,
            learner,
            swap,
            taken: 0,
            best_db: 0.0,
            rounds: Rounds::default(),
            gaps: Vec::new(),
            fault: Fault::default(),
        })
    }

    /// A handle on what the rounds have done.
    pub fn rounds(&self) -> Rounds {
        self.rounds.clone()
    }

    /// A handle that says why the block failed, if it did.
    pub fn fault(&self) -> Fault {
        self.fault.clone()
    }
}

/// Takes in pairs and, at the end of a round, decides what is applied.
struct Turn<'a> {
    config: &'a LoopConfig,
    signal: &'a [Complex64],
    learner: &'a mut Learner,
    swap: &'a Swap,
    best_db: &'a mut f64,
    rounds: &'a Rounds,
}

impl Turn<'_> {
    fn end(self) -> crate::Result<()> {
        // A round without a full block has taught nothing.
        let fitted = self.learner.model().ok().map(|model| (model, self.learner.nmse_db())).filter(|(_, db)| db.is_finite());
        let model_db = fitted.as_ref().map_or(0.0, |(_, db)| *db);
        let good = model_db < POOR_DB && model_db < *self.best_db + WORSE_DB;
        let table = match fitted {
            Some((model, _)) if good => Table::invert(&model, self.signal, self.config.level, self.config.back_off_db).ok(),
            _ => None,
        };
        let applied = table.is_some();
        self.swap.set(table.unwrap_or_else(|| Table::bypass(self.config.level)))?;
        if applied {
            *self.best_db = self.best_db.min(model_db);
            self.learner.forget(0.5);
        } else {
            *self.best_db = 0.0;
            self.learner.forget(0.0);
        }
        self.rounds.0.lock().unwrap_or_else(PoisonError::into_inner).push(Round { model_db, applied });
        Ok(())
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Kernel for Linearize<I> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (sent, sent_tags) = self.sent.slice_with_tags();
        let (received, received_tags) = self.received.slice_with_tags();
        let (sent_len, received_len) = (sent.len(), received.len());
        let available = sent_len.min(received_len);
        tags::gaps(sent_tags.iter().chain(received_tags), available, &mut self.gaps);
        // Up to the next gap, which breaks the stream.
        let cut = self.gaps.iter().map(|gap| gap.0).find(|&at| at > 0).unwrap_or(available);
        if self.gaps.first().is_some_and(|gap| gap.0 == 0) {
            self.learner.broken();
        }
        let arrived = sent_tags.iter().find(|t| matches!(&t.tag, Tag::NamedUsize(name, _) if name == TABLE)).map(|t| t.index);
        let skipped = if self.waits { arrived.unwrap_or(cut).min(cut) } else { 0 };
        self.waits &= arrived.is_none_or(|at| at >= cut);
        let n = (skipped + self.config.pairs.saturating_sub(self.taken)).min(cut);
        if n > skipped {
            let learner = &mut self.learner;
            let pairs: (Vec<_>, Vec<_>) = sent[skipped..n].iter().zip(&received[skipped..n]).map(|(&x, &y)| (wide(x), wide(y))).unzip();
            guarded("the learner", || learner.push(&pairs.0, &pairs.1)).flatten().map_err(|e| self.fault.raise(e))?;
            self.taken += n - skipped;
        }
        io.call_again = n < available;
        self.sent.consume(n);
        self.received.consume(n);
        if self.taken >= self.config.pairs {
            (self.taken, self.waits) = (0, true);
            let turn = Turn {
                config: &self.config,
                signal: &self.signal,
                learner: &mut self.learner,
                swap: &self.swap,
                best_db: &mut self.best_db,
                rounds: &self.rounds,
            };
            guarded("the learner", || turn.end()).flatten().map_err(|e| self.fault.raise(e))?;
        }
        if (self.sent.finished() && n == sent_len) || (self.received.finished() && n == received_len) {
            io.finished = true;
        }
        Ok(())
    }
}
