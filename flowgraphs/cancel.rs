//! Takes what is known out of what was received: a radio's own signal, a converter's noise.
//!
//! ```text
//! what is known, tx ──┐
//!                     ├─► in step ─► canceller ─► what remains ─► SigMF
//! what was heard, rx ─┘
//! ```
//!
//! The canceller is a [`Track`] block, of which the error is what remains. What was received stays as it is, sample by sample: its partner is shifted, not it.

use futuresdr::prelude::Complex32;

use super::track::{self, Filter, Outcome, Plan, Source, View, Watch};
use crate::Result;
use crate::blocks::{IqSink, Track};
use crate::iq::{Recording, Synchroniser, Writer};

/// What is cancelled, and where it goes.
pub struct Job {
    /// What is known.
    pub tx: Recording,
    /// What was received.
    pub rx: Recording,
    /// `rx[n]` is the answer to `tx[n - delay]`.
    pub delay: i64,
    /// How many samples after the present one the canceller's window reaches.
    pub advance: usize,
    /// The canceller.
    pub canceller: Track,
    /// Receives as many samples as `rx` has: those without a partner, at its ends, as they were received.
    pub cleaned: Writer,
}

/// Samples that are copied at a time.
const PIECE: u64 = 1 << 16;

/// Cancels to the end; `look` is called at intervals.
///
/// ```no_run
/// use kaflow::{blocks::Track, filter::Canceller, flowgraphs::{cancel::{self, Job}, track::Watch}};
/// use kaflow::iq::{Datatype, Recording, Writer};
///
/// # fn main() -> kaflow::Result<()> {
/// let (tx, rx) = (Recording::open("tx.sigmf-meta", None)?, Recording::open("rx.sigmf-meta", None)?);
/// let cleaned = Writer::create("cleaned", rx.meta().clone(), false)?;
/// let canceller = Track::new(Box::new(Canceller::new(4, 0, 262_144.0)?) as _);
/// let done = cancel::run(Job { tx, rx, delay: 0, advance: 0, canceller, cleaned }, &Watch::new(&false.into()), |_| ())?;
/// println!("{:.1} dB", -done.filters[0].1.series.total().nmse_db());
/// # Ok(()) }
/// ```
pub fn run(job: Job, watch: &Watch<'_>, look: impl FnMut(&View<'_>)) -> Result<Outcome> {
    let Job { tx, mut rx, delay, advance, canceller, mut cleaned } = job;
    let head = delay.max(0).unsigned_abs().min(rx.len());
    let mut left = head;
    while left > 0 {
        let piece = rx.read_up_to(left.min(PIECE) as usize)?;
        cleaned.write(&piece)?;
        left -= piece.len() as u64;
    }
    rx.seek(0)?;
    let (mut behind, length) = (rx.reopen()?, rx.len());
    let sink = IqSink::new(cleaned).within(move |written| -> Result<Vec<Complex32>> {
        behind.seek((head + written).min(length))?;
        behind.read_up_to(usize::MAX)
    });
    let filter = Filter { name: "canceller".into(), track: canceller, prediction: None, error: Some(sink) };
    let plan = Plan { filters: vec![vec![filter]], advance, ..Plan::default() };
    track::run(Source::Recordings(tx, rx, Synchroniser::delay(delay)), plan, watch, look)
}
