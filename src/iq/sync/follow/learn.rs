//! What a probe that is in its place teaches.

use num_complex::Complex64;

use super::{FASTEST, Follower, NEGLIGIBLE, SETTLED};
use crate::iq::align::normal::{BEFORE, Grid, WIDE};
use crate::iq::sync::probe::Probe;
use crate::iq::sync::{BLOCK, Lock};

/// The share of the power above which a path before the first one is missed by trackers.
const STRONG: f64 = 0.02;

/// How much of the largest share that a path had is kept from probe to probe, and the same for paths that may come back, behind a gap at once: a few million samples.
const FADE: f64 = 0.97;
const MEMORY: f64 = 0.999;

/// Probes until paths that were not seen are believed not to be there.
const SURE: u32 = 16;

/// Two clocks are taken for one until the delay is off by so much.
const OFF: f64 = 0.15;

/// Read so far from where they are, paths have neighbours of more than `NEGLIGIBLE`.
const ASTRAY: f64 = 0.05;

/// Probes from one that teaches the amplifier's curve to the next, where nothing drifts.
const CURVE_TURN: u32 = 8;

impl Follower {
    /// Delay, clock and carrier, from a probe that is in its place, before the next pair of `lock`.
    pub(super) fn learn(&mut self, probe: &Probe, lock: &mut Lock) {
        let grid = self.grid();
        let weight = if self.sent == 0.0 { 1.0 } else { 0.05 };
        self.sent += (probe.sent - self.sent) * weight;
        let left = probe.left(grid).all.clamp(1e-4, 1.0);
        self.usual += (left - self.usual) * if left < self.usual { 0.5 } else { 0.1 };
        if !self.one_clock {
            self.follow_clock(probe, grid, lock);
        }
        let response = probe.response(grid);
        if let Some(cfo) = self.carrier.measure(response.clone(), lock.rx, lock.cfo != 0.0) {
            lock.set_cfo((lock.cfo + cfo).clamp(-0.5, 0.5));
        }
        self.prune(grid, &response);
        if !self.one_clock {
            // Few paths cannot be late by a part of a sample: what they could not show then is no drift now.
            self.lateness = probe.later(grid, &response, 1.0).by;
        }
        self.last = Some((response, grid));
        // An amplifier hardly changes, and for slips alone it need not be known as well as for drifts.
        if !self.one_clock || self.probes.is_multiple_of(CURVE_TURN) {
            self.curve.learn(probe, grid);
        }
    }

    /// Reads the received stream where the delay is now.
    fn follow_clock(&mut self, probe: &Probe, grid: Grid, lock: &mut Lock) {
        let pairs = self.delay.pass(lock.tx);
        let moved = std::mem::take(&mut self.moved);
        if let Some((response, grid)) = self.last.as_ref().filter(|_| (1.0..=2.0 * BLOCK as f64).contains(&pairs)) {
            let later = probe.later(*grid, response, probe.left(*grid).all);
            self.delay.measure_drift((later.by - self.lateness + moved) / pairs, later.variance / (pairs * pairs));
        }
        // Beside the others a path that comes up looks like a delay: those at either end are taken out as well.
        let late = probe.late(around(self.reach(grid)));
        if late.by.abs() < 1.0 {
            self.delay.measure(late.by, late.variance);
        }
        if lock.interpolates() || (self.delay.late.abs() > OFF && self.delay.is_known()) {
            lock.shift(self.delay.late);
            self.moved = self.delay.late;
            if self.moved.abs() > ASTRAY {
                // Read so far from where they are, paths had neighbours that are none.
                (self.past, self.probes) = ([0.0; WIDE], self.probes.min(SETTLED));
            }
            lock.rate = (lock.rate + self.delay.drift).clamp(-FASTEST, FASTEST);
            (self.delay.late, self.delay.drift) = (0.0, 0.0);
        }
    }

    /// Takes away paths at the ends that are none.
    fn prune(&mut self, grid: Grid, response: &[Complex64]) {
        let power: f64 = response.iter().map(|h| h.norm_sqr()).sum();
        for (peaks, fade) in [(&mut self.peaks, FADE), (&mut self.past, MEMORY)] {
            peaks.iter_mut().for_each(|peak| *peak *= fade);
            for (peak, h) in peaks[grid.first..].iter_mut().zip(response) {
                *peak = peak.max(h.norm_sqr() / power);
            }
        }
        self.probes += 1;
        if self.probes < SETTLED {
            return;
        }
        let mut grid = grid;
        while grid.paths > 1 && self.peaks[grid.first + grid.paths - 1] < NEGLIGIBLE {
            grid.paths -= 1;
        }
        while grid.paths > 1 && self.peaks[grid.first] < NEGLIGIBLE {
            grid = Grid { first: grid.first + 1, paths: grid.paths - 1 };
        }
        self.grid = Some(grid);
    }

    /// By how many samples the first tap of a tracker, which reaches `advance` samples ahead, lies behind a strong path; negative where there has been no path up to the next taps for long.
    pub(super) fn missed(&self, advance: i64) -> i64 {
        let settled = self.probes >= SETTLED && (self.one_clock || self.delay.is_known());
        let Some((response, grid)) = self.last.as_ref().filter(|_| settled) else { return 0 };
        let power: f64 = response.iter().map(|h| h.norm_sqr()).sum();
        let first = (BEFORE - advance).max(0);
        // Read between its samples, a path has a neighbour.
        let least = STRONG.max(2.0 * self.delay.late.powi(2));
        let strong = response.iter().position(|h| h.norm_sqr() > least * power).map_or(first, |at| (grid.first + at) as i64);
        let any = self.past.iter().position(|peak| *peak >= NEGLIGIBLE).map_or(first, |at| at as i64);
        let late = if self.probes >= SURE { first - any } else { 0 };
        if strong < first { first - strong } else { late.min(0) }
    }

    /// The window lies `by` samples earlier from now on.
    pub(super) fn slide(&mut self, by: i64) {
        let slid = |grid: Grid| {
            let first = (grid.first as i64 + by).clamp(0, WIDE as i64 - 1) as usize;
            Grid { first, paths: grid.paths.min(WIDE - first) }
        };
        self.grid = self.grid.map(slid);
        self.last = None;
        self.carrier.last = None;
        (self.peaks, self.past, self.probes) = ([0.0; WIDE], [0.0; WIDE], 0);
    }
}

/// One path more at either end, as far as the window reaches.
fn around(grid: Grid) -> Grid {
    let (first, end) = (grid.first.saturating_sub(1), (grid.first + grid.paths + 1).min(WIDE));
    Grid { first, paths: end - first }
}
