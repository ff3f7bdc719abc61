//! The default tracker on the channels that it is for: what it costs depends on what it finds.

use std::time::Instant;

use super::measure::{Contestant, Guarded, SHORT, Signal, race, tracker};
use crate::channel::{Doppler, Scenario, TestBed};
use crate::{Complex32, Result};

/// Samples before the steady state is measured, and samples that are its start.
const WARM_UP: usize = 1 << 17;
const START: usize = 1 << 14;

/// A row of the table: what was measured, seconds a sample, and the goal in MS/s.
pub(super) struct Row {
    pub(super) size: String,
    pub(super) time: f64,
    pub(super) goal: Option<f64>,
}

/// The steady state and the start on a fading channel (4 taps, 20 dB, `f_d T` = 1e-3) and behind an amplifier with memory that stands still.
pub(super) fn rows(rounds: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (taps, goal, still) in [(4, 12.0, false), (16, 6.0, false), (64, 1.5, false), (16, 4.0, true)] {
        let mut signal = streams(still)?;
        let mut walk = Walk { tracker: tracker("ensemble", taps, &[])?, at: 0 };
        let time = race(&mut [&mut walk], WARM_UP, rounds, SHORT, &mut signal)[0];
        let channel = if still { "still amplifier" } else { "fading" };
        rows.push(Row { size: format!("{channel}, {taps} taps"), time, goal: Some(goal) });
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let mut fresh = Walk { tracker: tracker("ensemble", taps, &[])?, at: 0 };
            let began = Instant::now();
            fresh.take(&mut signal, START);
            best = best.min(began.elapsed().as_secs_f64() / START as f64);
        }
        rows.push(Row { size: format!("{channel}, {taps} taps, first {START}"), time: best, goal: None });
    }
    Ok(rows)
}

/// A tracker that goes along the streams, since a channel that jumps is acquired anew.
struct Walk {
    tracker: Guarded,
    at: usize,
}

impl Contestant for Walk {
    fn take(&mut self, signal: &mut Signal, n: usize) {
        if self.at + n > signal.tx.len() {
            self.at = 0;
        }
        let range = self.at..(self.at + n).min(signal.tx.len());
        self.tracker.track(&signal.tx[range.clone()], &signal.rx[range.clone()], &mut signal.p[range.clone()], None);
        self.at = range.end;
    }
}

fn streams(still: bool) -> Result<Signal> {
    let mut scenario = Scenario { samples: 1 << 18, ..Scenario::preset("d")? };
    if let (true, Some(fading)) = (still, &mut scenario.fading) {
        fading.doppler = Doppler::Constant(0.0);
    }
    let mut chunk = TestBed::run(&scenario)?;
    let (tx, mut rx) = (chunk.tx.remove(0), chunk.rx.remove(0));
    if still {
        // An echo with a curve of its own, and little noise: nothing for the lanes.
        let noise = rx.clone();
        for n in 1..tx.len() {
            let (x, old) = (tx[n], tx[n - 1]);
            rx[n] = x / (1.0 + x.norm_sqr()).sqrt() + old * old.norm_sqr() * Complex32::new(0.05, 0.02) + noise[n] * 1e-3;
        }
    }
    Ok(Signal { p: tx.clone(), tx, rx })
}
