//! From probes to corrections.

mod learn;

use num_complex::Complex64;

use super::curve::Curve;
use super::drift::{Carrier, Delay};
use super::line::Segment;
use super::lock::Mark;
use super::probe::{Late, Left, Probe, grid, moved};
use super::search::{EXPLAINED, SEARCH};
use super::{BLOCK, Pairs, Reference, State, Synchroniser};
use crate::iq::align::Alignment;
use crate::iq::align::normal::{AFTER, BEFORE, Grid, WIDE};

/// A fit is better than another when it leaves less than this share of what the other leaves.
const BETTER: f64 = 0.8;

/// The share of the power that a response which has moved must explain, unless it is the usual one.
const SOLID: f64 = 0.97;

/// What a probe may leave more than usual before the places around are looked at.
const UNUSUAL: f64 = 1.5;

/// Probes in a row that may explain nothing before the place is given up.
const MISSES: u32 = 2;

/// Slips in a row that cast doubt on the place itself, and how fast they are forgotten.
const RESTLESS: f64 = 2.5;
const CALM: f64 = 0.9;

/// Blocks that may wait at most while nothing is sent.
const PATIENCE: usize = 8;

/// A channel is steady where the response of the last probe leaves less than this share of the next one.
const STEADY: f64 = 0.2;

/// The share of the power below which a path at either end of a response is none.
const NEGLIGIBLE: f64 = 2e-3;

/// Probes before what they say of paths is believed.
const SETTLED: u32 = 8;

/// The largest offset of the clocks that is believed, in samples a sample.
pub(super) const FASTEST: f64 = 100e-6;

/// How the place is followed.
#[derive(Clone, Debug, Default)]
pub(super) struct Follower {
    /// Nothing drifts.
    pub(super) one_clock: bool,
    /// The paths that explain what is received; from an alignment, and more when they come up.
    grid: Option<Grid>,
    /// The share of the power that is usually left.
    usual: f64,
    /// Mean power of the reference.
    sent: f64,
    misses: u32,
    /// Slips of late.
    unrest: f64,
    /// No probe has confirmed the place since it was found.
    pub(super) fresh: u32,
    /// What was said to be missing before the block, while no probe has confirmed it.
    claim: Option<u64>,
    /// The response at the last probe and its grid, how late that probe was for it, and how much of a probe it usually fails to explain.
    last: Option<(Vec<Complex64>, Grid)>,
    lateness: f64,
    change: f64,
    /// The largest share of the power that each path of the window had of late, and how many probes were looked at.
    peaks: [f64; WIDE],
    probes: u32,
    /// The same for longer.
    past: [f64; WIDE],
    delay: Delay,
    /// How much later the stream is read since the last probe.
    moved: f64,
    carrier: Carrier,
    /// What the amplifier makes of the reference.
    curve: Curve,
}

/// What a probe says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Good,
    /// Nothing was sent, or there was too little of it.
    Nothing,
    /// The response has moved by so many samples.
    Moved(i64),
    Bad,
}

impl Follower {
    pub(super) fn new(found: &Alignment, curve: Curve, one_clock: bool) -> Self {
        let (grid, usual) = (Some(grid(found.support)), (1.0 - found.explained).clamp(1e-4, 1.0));
        Self { one_clock, grid, usual, fresh: 1, change: 1.0, curve, ..Self::default() }
    }

    fn grid(&mut self) -> Grid {
        *self.grid.get_or_insert(Grid { first: BEFORE as usize, paths: 1 })
    }

    fn assess(&mut self, probe: Option<&Probe>) -> Verdict {
        let Some(probe) = probe else { return Verdict::Nothing };
        if probe.sent <= 1e-3 * self.sent {
            return Verdict::Nothing;
        }
        if probe.power <= 0.0 {
            return Verdict::Bad;
        }
        let grid = self.grid();
        let here = probe.left(grid);
        let unusual =
            |left: Left, usual: f64| left.all > UNUSUAL * usual || left.last > 2.0 * UNUSUAL * usual || 1.0 - left.all < EXPLAINED;
        let reach = self.reach(grid);
        if unusual(here, self.usual) && reach != grid && !unusual(probe.left(reach), self.usual) {
            // Paths are back that had faded.
            self.grid = Some(reach);
        } else if unusual(here, self.usual) || self.probes < SETTLED {
            if let Some(verdict) = self.look_around(probe, grid, here) {
                return verdict;
            }
            if 1.0 - here.all < EXPLAINED {
                return Verdict::Bad;
            }
        }
        self.continues(probe)
    }

    /// All paths from the first to the last that there are or were of late.
    fn reach(&self, grid: Grid) -> Grid {
        let strong = |peak: &f64| *peak >= NEGLIGIBLE;
        let end = self.past.iter().rposition(strong).map_or(0, |last| last + 1).max(grid.first + grid.paths);
        let first = self.past.iter().position(strong).unwrap_or(WIDE).min(grid.first);
        Grid { first, paths: end - first }
    }

    /// Whether another place, another delay or more paths explain a probe better; none where they do not.
    fn look_around(&mut self, probe: &Probe, grid: Grid, here: Left) -> Option<Verdict> {
        let Late { by, left: delayed, .. } = probe.late(grid);
        let drifts = !self.one_clock && by.abs() < 0.6 && delayed < BETTER * here.all;
        // Otherwise a part of the response lies outside the window.
        let usual = self.usual;
        let whole = |left: f64| left <= 2.0 * UNUSUAL * usual || 1.0 - left > SOLID;
        let places = (-(WIDE as i64)..WIDE as i64).filter(|&s| s != 0).filter_map(|s| moved(grid, s).map(|g| (s, g, probe.left(g))));
        let (by, there, left) = places.min_by(|a, b| a.2.all.total_cmp(&b.2.all))?;
        if left.all < BETTER * here.all && !(drifts && delayed < left.all) && 1.0 - left.all > EXPLAINED {
            // Paths that come up look the same, but leave the old ones where they were.
            let both = Grid { first: grid.first.min(there.first), paths: grid.paths + by.unsigned_abs() as usize };
            if probe.left(both).all > BETTER * left.all {
                return Some(if whole(left.all) { Verdict::Moved(by) } else { Verdict::Bad });
            }
            if !whole(probe.left(both).all) {
                return Some(Verdict::Bad);
            }
            self.grid = Some(both);
            return Some(Verdict::Good);
        }
        // The last piece alone: something has happened in the middle of the probe.
        if left.last < 0.5 * here.last && !drifts && here.last > 2.0 * UNUSUAL * self.usual && 1.0 - left.last > 0.5 {
            return Some(Verdict::Bad);
        }
        let wider = [(1, 0), (0, 1), (1, 1)].into_iter().filter_map(|(before, behind)| {
            let first = grid.first.checked_sub(before)?;
            let wider = Grid { first, paths: grid.paths + before + behind };
            (first + wider.paths <= WIDE).then(|| (wider, probe.left(wider).all))
        });
        let (wider, left) = wider.min_by(|a, b| a.1.total_cmp(&b.1))?;
        if left < BETTER * here.all && whole(left) && !(drifts && delayed < left) {
            self.grid = Some(wider);
            return Some(Verdict::Good);
        }
        (drifts && 1.0 - delayed > EXPLAINED).then_some(Verdict::Good)
    }

    /// Whether the response is the one that it was, where it changes slowly enough to be known again: of one that is longer than the channel, a slip leaves both ends inside.
    fn continues(&mut self, probe: &Probe) -> Verdict {
        let Some((response, grid)) = &self.last else { return Verdict::Good };
        let unlike = |by: i64| moved(*grid, by).map(|g| probe.unlike(g, response));
        let Some(here) = unlike(0) else { return Verdict::Good };
        // Behind a gap it may have changed by more, as the square of its length.
        let change = self.change * (1.0 + self.claim.unwrap_or(0) as f64 / BLOCK as f64).powi(2);
        if change < STEADY && here > 3.0 * change + 0.05 {
            let places = (-(WIDE as i64)..WIDE as i64).filter(|&s| s != 0).filter_map(|s| unlike(s).map(|u| (s, u)));
            if let Some((by, there)) = places.min_by(|a, b| a.1.total_cmp(&b.1))
                && there < 0.5 * here
                && there < 2.0 * change + 0.05
            {
                return Verdict::Moved(by);
            }
        }
        if self.claim.is_none() {
            self.change += (here - self.change) * if self.change == 1.0 { 1.0 } else { 0.1 };
        }
        Verdict::Good
    }
}

impl Synchroniser {
    /// Takes note of a new segment of the received stream.
    pub(super) fn cross(&mut self, segment: &Segment) {
        self.segment = Some(segment.time);
        if segment.claim == Some(0) {
            self.unsure = self.expected.is_some() || !self.held.is_empty();
        }
        if let Some(follower) = &mut self.follower
            && segment.claim.is_some()
        {
            follower.claim = segment.claim;
            follower.carrier.last = None;
        }
    }

    /// Looks at the end of the newest block and decides what is to be done.
    pub(super) fn judge(&mut self, start: Mark, at_break: bool, out: &mut Pairs) {
        let (Some(follower), Some(lock), Some(held)) = (&mut self.follower, &mut self.lock, self.held.last()) else { return };
        let received = if held.made.is_empty() { self.received.items_from(held.rx_item, held.count) } else { &held.made };
        let (reference, tx) = (&self.reference, held.tx);
        let probe = Probe::new(received, &follower.curve, |place, out| reference.fill(tx + place, out));
        let verdict = follower.assess(probe.as_ref());
        match verdict {
            // Where the search began something else was received, and where in the block it ended nobody knows.
            Verdict::Good if follower.fresh > 1 => {
                follower.fresh = 0;
                self.doubt(State::Doubtful);
            }
            Verdict::Good => {
                if let Some(probe) = &probe {
                    follower.learn(probe, lock);
                    let explained = (1.0 - probe.left(follower.grid()).all).max(0.0);
                    let gain = (explained * probe.power / probe.sent).sqrt();
                    self.status.gain += (gain - self.status.gain) * 0.25;
                }
                (follower.misses, follower.fresh, follower.claim) = (0, 0, None);
                follower.unrest *= CALM;
                self.status.state = State::Locked;
                let early = if matches!(self.reference, Reference::Frame(_)) { follower.missed(self.advance.0) } else { 0 };
                if early != 0 {
                    follower.slide(early);
                    lock.tx += early;
                }
                self.release(usize::from(!at_break && early == 0), out);
                self.tell();
            }
            Verdict::Nothing => {
                let sure = self.status.state == State::Locked && follower.claim.is_none();
                let keep = if at_break && sure { 0 } else { PATIENCE };
                self.release(keep, out);
            }
            Verdict::Moved(by) if follower.claim.is_some() => {
                // What was said to be missing is not quite what is.
                follower.claim = None;
                lock.rewind(start);
                lock.tx -= by;
                self.status.gap_samples = self.status.gap_samples.saturating_add_signed(-by);
                self.unmake();
            }
            Verdict::Moved(by) => {
                lock.tx -= by;
                follower.misses = 0;
                follower.carrier.last = None;
                follower.last = None;
                self.status.slips += 1;
                follower.unrest += 1.0;
                let (restless, here) = (follower.unrest > RESTLESS, lock.rx);
                self.doubt(State::Doubtful);
                if restless {
                    self.lose(here);
                }
            }
            Verdict::Bad => {
                // What was sent so long ago is gone, unless it is a frame.
                let kept = |n: u64| self.reference.keeps() || n < SEARCH as u64;
                if let Some(claim) = follower.claim.take().filter(|&n| n > 0 && kept(n)) {
                    // Perhaps nothing is missing at all.
                    lock.rewind(start);
                    lock.tx -= claim as i64;
                    self.status.gap_samples = self.status.gap_samples.saturating_sub(claim);
                    self.unmake();
                    return;
                }
                self.status.state = State::Doubtful;
                if follower.fresh > 0 {
                    // Where the search began something else was received.
                    follower.fresh += 1;
                    let give_up = follower.fresh as usize > 2 + SEARCH / BLOCK;
                    let here = lock.rx;
                    self.doubt(State::Doubtful);
                    if give_up {
                        self.lose(here);
                    }
                    return;
                }
                follower.misses += 1;
                if follower.misses >= MISSES {
                    // What has happened lies before this block, which is therefore in one place.
                    lock.rewind(start);
                    let from = lock.rx;
                    self.unmake();
                    self.lose(from);
                } else if let Some(held) = self.held.last_mut() {
                    held.doubtful = true;
                }
            }
        }
    }

    /// Forgets the newest block, which is going to be made again.
    fn unmake(&mut self) {
        self.unsure |= self.held.pop().is_some_and(|held| held.unsure);
    }

    /// Leaves out what is held.
    pub(super) fn doubt(&mut self, state: State) {
        for held in self.held.drain(..) {
            self.status.doubtful_samples += held.count as u64;
            self.unsure |= held.unsure;
        }
        self.status.state = state;
    }

    /// At the end of the streams: what no probe has contradicted is put out.
    pub(super) fn close(&mut self, out: &mut Pairs) {
        if self.status.state == State::Locked {
            self.release(0, out);
        } else {
            self.doubt(self.status.state);
        }
        if let Reference::Stream(line) = &mut self.reference {
            line.forget(line.next());
        }
    }
}

const _: () = assert!(AFTER >= 8, "slips of a few samples stay in the window");
