//! The rounds of a loop that linearises: learn, invert, apply.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use num_complex::{Complex32, Complex64};

use super::predistort::Swap;
use crate::Result;
use crate::dpd::{Learner, Model, Options, Table, predistort};
use crate::dsp::{db, wide};
use crate::error::require;
use crate::metrics::{Band, Linearity, linearity, power};

/// How a loop of [`Linearize`](super::Linearize) and [`Predistort`](super::Predistort) learns.
#[derive(Clone, Debug)]
pub struct LoopConfig {
    /// The amplifier's model.
    pub options: Options,
    /// The largest envelope that is ever sent.
    pub level: f64,
    /// How much weaker than without the signal comes out, in dB; more where `power_db` asks for it.
    pub back_off_db: f64,
    /// How much more mean power than that of the signal may be sent, in dB.
    pub power_db: f64,
    /// Pairs of a round; those that were sent before the last table are left out.
    pub pairs: usize,
    /// Pairs after which a new table has come round at the latest, where it does not show before; none where the predistorter's tag says so on what is received.
    pub latency: Option<usize>,
}

/// What a round of a loop has done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Whether what came back was predistorted.
    pub predistorted: bool,
    /// How linear it was; none where too little came back to tell.
    pub linearity: Option<Linearity>,
    /// What the model leaves unexplained of it, in dB.
    pub model_db: f64,
    /// Whether the model's inverse is applied from now on; else the signal is sent as it is.
    pub applied: bool,
}

/// What the rounds of a loop have done so far.
#[derive(Clone, Debug, Default)]
pub struct Rounds(Arc<Mutex<History>>);

#[derive(Debug, Default)]
struct History {
    rounds: Vec<Round>,
    /// What came back in the first round without predistortion, and in the last one with it.
    first: Option<Vec<Complex64>>,
    last: Option<Vec<Complex64>>,
}

impl Rounds {
    fn lock(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rounds, in order.
    pub fn get(&self) -> Vec<Round> {
        self.lock().rounds.clone()
    }

    /// What came back in the first round without predistortion, and in the last one with it.
    #[cfg_attr(not(feature = "radio"), allow(dead_code))]
    pub(crate) fn received(&self) -> (Option<Vec<Complex64>>, Option<Vec<Complex64>>) {
        let history = self.lock();
        (history.first.clone(), history.last.clone())
    }

    /// Nothing comes back any more: `swap` fades to the signal as it is, which counts as a round, unless it is so already; true when it was not.
    pub fn silent(&self, swap: &Swap) -> bool {
        let fell_back = swap.fall_back();
        if fell_back {
            self.lock().rounds.push(Round { predistorted: true, linearity: None, model_db: 0.0, applied: false });
        }
        fell_back
    }

    fn note(&self, round: Round, received: Vec<Complex64>) {
        let mut history = self.lock();
        history.rounds.push(round);
        if round.predistorted {
            history.last = Some(received);
        } else {
            history.first.get_or_insert(received);
        }
    }
}

/// Pairs of a round.
#[derive(Debug, Default)]
pub(super) struct Heard {
    signal: Vec<Complex64>,
    received: Vec<Complex64>,
    /// Before which pairs there is a gap.
    breaks: Vec<usize>,
}

impl Heard {
    pub(super) fn len(&self) -> usize {
        self.signal.len()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes in pairs; `breaks` are counted from the first of them.
    pub(super) fn push(&mut self, pairs: impl Iterator<Item = (Complex64, Complex64)>, breaks: impl Iterator<Item = usize>) {
        let before = self.len();
        self.breaks.extend(breaks.map(|at| before + at));
        for (x, y) in pairs {
            self.signal.push(x);
            self.received.push(y);
        }
    }

    /// What is whole.
    fn pieces(&self) -> impl Iterator<Item = (&[Complex64], &[Complex64])> {
        let edges = || self.breaks.iter().copied();
        std::iter::once(0)
            .chain(edges())
            .zip(edges().chain([self.len()]))
            .map(|(from, to)| (&self.signal[from..to], &self.received[from..to]))
    }
}

/// A model that is worse than the best one so far by more than this, in dB, is not applied: something else has come into the feedback.
const WORSE_DB: f64 = 6.0;
/// Nor is one that leaves more than this.
const POOR_DB: f64 = -15.0;
/// How often an inverse that sends too much power is made weaker.
const TRIES: usize = 8;

/// What is known of the amplifier, from round to round.
pub(super) struct Learning {
    config: LoopConfig,
    /// A stretch of what is to come out, and where its channel is.
    signal: Vec<Complex64>,
    band: Band,
    learner: Learner,
    swap: Swap,
    /// The last table that was set here.
    number: usize,
    best_db: f64,
    rounds: Rounds,
}

impl Learning {
    pub(super) fn new(config: LoopConfig, signal: &[Complex32], swap: Swap) -> Result<Self> {
        require(config.pairs >= 1024, "pairs", "at least 1024", config.pairs as f64)?;
        require(!config.power_db.is_nan(), "power", "a number of dB", config.power_db)?;
        let signal: Vec<Complex64> = signal.iter().map(|&z| wide(z)).collect();
        let learner = Learner::new(config.options, &signal, config.level)?;
        Ok(Self { band: Band::of(&signal, None, None)?, learner, signal, config, swap, number: 0, best_db: 0.0, rounds: Rounds::default() })
    }

    pub(super) fn rounds(&self) -> Rounds {
        self.rounds.clone()
    }

    /// There is a new table. One that somebody else has set says that what was learned no longer holds.
    pub(super) fn notice(&mut self, number: usize) {
        if std::mem::replace(&mut self.number, number) != number {
            self.begin_anew();
        }
    }

    fn begin_anew(&mut self) {
        self.best_db = 0.0;
        self.learner.forget(0.0);
    }

    /// Whether pairs were sent through the present table: whether it explains them at least as well as the one before.
    pub(super) fn has_come(&self, heard: &Heard) -> bool {
        let (table, last) = self.swap.tables();
        let left = |table: &Table| predistort(table, &heard.signal).map_or(f64::INFINITY, |sent| self.learner.left(&sent, &heard.received));
        heard.breaks.is_empty() && left(&table) <= left(&last)
    }

    /// Learns from pairs that were sent through `table`, and decides what is applied.
    pub(super) fn round(&mut self, heard: Heard, table: &Table) -> Result<()> {
        for (signal, received) in heard.pieces() {
            self.learner.broken();
            // What was sent is not known until the table's memory is full.
            let known = table.memory().min(signal.len());
            let sent = predistort(table, signal)?;
            self.learner.push(&sent[known..], &received[known..])?;
        }
        // A round without a full block has taught nothing.
        let fitted = self.learner.model().ok().map(|model| (model, self.learner.nmse_db())).filter(|(_, db)| db.is_finite());
        let model_db = fitted.as_ref().map_or(0.0, |(_, db)| *db);
        let good = model_db < POOR_DB && model_db < self.best_db + WORSE_DB;
        let next = fitted.filter(|_| good).and_then(|(model, _)| self.invert(&model));
        let applied = next.is_some();
        self.number = self.swap.next(next.unwrap_or_else(|| Table::bypass(self.config.level)))?;
        if applied {
            self.best_db = self.best_db.min(model_db);
            self.learner.forget(0.5);
        } else {
            self.begin_anew();
        }
        let longest = heard.pieces().max_by_key(|piece| piece.0.len());
        let found = longest.and_then(|(signal, received)| linearity(signal, received, self.band).ok());
        self.rounds.note(Round { predistorted: !table.is_bypass(), linearity: found, model_db, applied }, heard.received);
        Ok(())
    }

    /// The inverse that holds to the level, made weaker until it also holds to the power.
    fn invert(&self, model: &Model) -> Option<Table> {
        let mut back_off_db = self.config.back_off_db;
        for _ in 0..TRIES {
            let table = Table::invert(model, &self.signal, self.config.level, back_off_db).ok()?;
            let sent = predistort(&table, &self.signal).ok()?;
            let excess = db(power(&sent), power(&self.signal)) - self.config.power_db;
            if excess <= 0.0 {
                return Some(table);
            }
            back_off_db += excess + 0.005;
        }
        None
    }
}
