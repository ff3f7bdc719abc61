//! Looking for the place.

use num_complex::{Complex32, Complex64};

use super::curve::Curve;
use super::follow::{FASTEST, Follower};
use super::line::Line;
use super::lock::Lock;
use super::probe::{Probe, grid};
use super::{BLOCK, Reference, State, Step, Synchroniser};
use crate::Result;
use crate::dsp::{BEFORE, Place, db, interpolate, narrow, wide};
use crate::iq::align::normal::{self, Grid};
use crate::iq::align::{Alignment, align_near, align_within};

/// Received samples that a search looks at.
pub(super) const SEARCH: usize = 3 << 12;

/// How far a stream of transmitted samples is looked at to either side of the old place.
const SPAN: usize = 1 << 15;

/// A longer frame is searched in parts, each with a little of the next: all at once would take 100 bytes a sample.
const LONG: usize = 1 << 20;
const PART: usize = 1 << 17;
const OVERLAP: i64 = 1 << 8;

/// Samples of either stream that may wait inside.
pub(super) const KEEP: usize = 1 << 18;

/// Less than this share of the received power says nothing.
pub(super) const EXPLAINED: f64 = 0.1;

/// A level that differs from the last one by more than this factor in amplitude needs a better explanation.
const JUMP: f64 = 10.0;

/// A fraction of a sample that is left as it is: 30 dB below the signal it is what few taps miss of the paths' neighbours, and no fraction is found more exactly through fading.
const CLOSE_ENOUGH: f64 = 0.02;

/// Samples from one look at the drift to the next, and what it comes to over a search before it is believed, in samples.
const LOOK: usize = 1 << 10;
const HARDLY: f64 = 0.03;

/// The path of the window that is where it is expected.
const EXPECTED: usize = normal::BEFORE as usize;

/// Carrier offsets, in cycles a sample, that any tracker follows without noticing.
pub(super) const SLOW: f64 = 1e-6;

impl Synchroniser {
    /// Looks for the place, once there is enough to look at.
    pub(super) fn find(&mut self) -> Result<Step> {
        let again = self.status.state == State::Lost;
        match &self.reference {
            Reference::Stream(line) if !again => {
                let enough = |line: &Line| line.ended || line.next() - line.first() >= self.options.samples as i64;
                if !enough(line) || !enough(&self.received) {
                    return Ok(Step::Wait);
                }
                let start = |line: &Line| {
                    let length = usize::try_from(line.next() - line.first()).unwrap_or(usize::MAX).min(self.options.samples);
                    let mut samples = vec![Complex32::ZERO; length];
                    line.fill(line.first(), &mut samples);
                    samples
                };
                let origins = (line.first(), self.received.first());
                let found = crate::iq::align::align(&start(line), &start(&self.received), self.options)?;
                let lock = Lock::new(&found).from(origins.0, origins.1);
                if self.follower.is_some() {
                    // Over so many samples two clocks have come apart: what is near is looked at more closely.
                    (self.last_delay, self.status.state) = (lock.delay().round() as i64, State::Lost);
                    return Ok(Step::Again);
                }
                self.begin(lock, Curve::default());
                Ok(Step::Again)
            }
            _ => Ok(self.find_near()),
        }
    }

    /// Searches in the next received samples, for any place in a frame or for one near the last in a stream.
    fn find_near(&mut self) -> Step {
        let from = self.search_from.max(self.received.first());
        self.search_from = from;
        let until = from.saturating_add(SEARCH as i64);
        if self.received.next() < until {
            // What is left is too little.
            if self.received.ended {
                self.discard(self.received.next());
                return Step::End;
            }
            return Step::Wait;
        }
        if let Some(behind) = self.received.last_break(from, until, SEARCH as u64 / 4) {
            self.discard(behind);
            return Step::Again;
        }
        let mut received = vec![Complex32::ZERO; SEARCH];
        self.received.fill(from, &mut received);
        // The reference as it would lie beside them, and as much around it as the delay may differ.
        let (middle, span) = match &self.reference {
            Reference::Frame(frame) if frame.len() > LONG => (0, PART as i64 / 2),
            Reference::Frame(frame) => (0, frame.len() as i64 / 2),
            Reference::Stream(_) => (from - self.last_delay, SPAN as i64),
        };
        if let Reference::Stream(line) = &self.reference
            && line.next() < middle + SEARCH as i64 + span
            && !line.ended
        {
            return Step::Wait;
        }
        let turns: Vec<i64> = match &self.reference {
            Reference::Stream(_) => vec![0],
            Reference::Frame(frame) if frame.len() > LONG => (0..frame.len() as i64).step_by((2 * span - OVERLAP) as usize).collect(),
            // The second look begins elsewhere in the frame: a delay right at the end of a period is found as another one.
            Reference::Frame(_) => vec![0, span / 2],
        };
        let chirps = turns.len() <= 2;
        let mut sent = vec![Complex32::ZERO; SEARCH + 2 * span as usize];
        for turn in turns {
            self.reference.fill(middle - span + turn, &mut sent);
            // Without a delay the two would be `span` apart.
            match align_within(&sent, &received, 1 - 2 * span..=-1, chirps).and_then(|found| self.plausible(found)) {
                Ok(found) => {
                    self.status.failure = None;
                    let one_clock = self.follower.as_ref().is_some_and(|follower| follower.one_clock);
                    let curve = amplifier(&sent, &received, &found);
                    let bent: Vec<Complex32> =
                        curve.bend(&sent.iter().map(|z| wide(*z)).collect::<Vec<_>>()).into_iter().map(narrow).collect();
                    let (found, rate) =
                        if one_clock { (found, 0.0) } else { steady(&bent, &received, align_near(&bent, &received, &found)) };
                    let mut lock = Lock::near(&found).from(middle - span + turn, from);
                    lock.rate = rate;
                    self.begin(lock, curve);
                    return Step::Again;
                }
                Err(error) => self.status.failure = Some(error.to_string()),
            }
        }
        self.discard(until);
        Step::Again
    }

    /// Refuses what could be an accident.
    fn plausible(&self, found: Alignment) -> Result<Alignment> {
        let problem = if found.explained < EXPLAINED {
            format!("the frame explains {:.0} % of what is received at its best place: that may be chance", 100.0 * found.explained)
        } else if self.status.gain > 0.0 && found.explained < 0.5 && !(1.0 / JUMP..JUMP).contains(&(found.gain / self.status.gain)) {
            format!("the level at the best place is {:.1} dB off", db(found.gain.powi(2), self.status.gain.powi(2)))
        } else {
            return Ok(found);
        };
        Err(crate::Error::Data(problem))
    }

    /// Received samples before `time` are given up.
    fn discard(&mut self, time: i64) {
        let kept = self.received.between(self.search_from, time);
        self.status.doubtful_samples += kept;
        self.unsure |= self.expected.is_some();
        self.search_from = time;
        self.received.forget(time);
        if let Reference::Stream(line) = &mut self.reference {
            line.forget(time - self.last_delay - 2 * SPAN as i64);
        }
    }

    /// Goes on from a place that was found.
    fn begin(&mut self, mut lock: Lock, curve: Curve) {
        self.status.searches += 1;
        let found = lock.alignment;
        if self.most_advance > 0 {
            self.advance.0 = found.advance.min(self.most_advance) as i64;
        }
        lock.jump(self.advance.1);
        if let Some(follower) = &mut self.follower {
            *follower = Follower::new(&found, curve, follower.one_clock);
            // Behind something else the first block may still hold a part of that.
            follower.fresh += u32::from(self.expected.is_some() || self.status.doubtful_samples > 0);
        }
        self.status.state = if self.follower.is_some() { State::Doubtful } else { State::Locked };
        self.status.alignment = Some(found);
        self.status.gain = found.gain;
        self.segment = None;
        self.lock = Some(lock);
        self.tell();
    }

    /// Gives the place up and searches for it again, from `time` on.
    pub(super) fn lose(&mut self, time: i64) {
        if let Some(lock) = self.lock.take() {
            self.last_delay = lock.rx - lock.tx;
        }
        self.doubt(State::Lost);
        self.search_from = time;
        // Nobody knows how many samples were lost, not even modulo the frame.
        self.unsure = self.expected.is_some();
    }

    /// How far back in the reference a search may look.
    pub(super) fn keep_sent(&self) -> i64 {
        if self.follower.is_some() { (SPAN + 4 * BLOCK) as i64 } else { 0 }
    }

    /// Writes down where the lock is.
    pub(super) fn tell(&mut self) {
        let Some(lock) = &self.lock else { return };
        let delay = lock.delay();
        self.status.delay_samples = match &self.reference {
            Reference::Frame(frame) => delay.rem_euclid(frame.len() as f64),
            Reference::Stream(_) => delay,
        };
        (self.status.cfo, self.status.clock_ppm) = (lock.cfo, 1e6 * lock.rate);
    }
}

/// What the amplifier makes of what was sent: the response shows the curve, and that the response again.
fn amplifier(sent: &[Complex32], received: &[Complex32], found: &Alignment) -> Curve {
    let mut curve = Curve::default();
    for _ in 0..3 {
        let known = curve.clone();
        for probe in looks(sent, received, found, &known).into_iter().flatten() {
            curve.learn(&probe, grid(found.support));
        }
    }
    curve
}

/// Probes of what was received, one in each `LOOK` samples, in the place that was found.
fn looks(sent: &[Complex32], received: &[Complex32], found: &Alignment, curve: &Curve) -> Vec<Option<Probe>> {
    let delay = found.delay.round() as i64;
    let mut straight = received.to_vec();
    Lock::new(&Alignment { delay: 0.0, ..*found }).straighten(0, &mut straight);
    let look = |(k, piece): (usize, &[Complex32])| {
        let start = (k * LOOK) as i64 - delay;
        Probe::new(piece, curve, |place, out| {
            let from = |i: usize| usize::try_from(start + place + i as i64).ok().and_then(|n| sent.get(n)).copied().unwrap_or_default();
            out.iter_mut().enumerate().for_each(|(i, z)| *z = from(i));
        })
    };
    straight.chunks_exact(LOOK).enumerate().map(look).collect()
}

/// What a search has found, without the blur of two clocks that differ, and by how much they do, in samples a sample.
fn steady(sent: &[Complex32], received: &[Complex32], found: Alignment) -> (Alignment, f64) {
    let mut padded = vec![Complex32::ZERO; BEFORE];
    padded.extend(received.iter().map(|z| if z.re.is_finite() && z.im.is_finite() { *z } else { Complex32::ZERO }));
    let at = |rate: f64| {
        let mut even = Vec::with_capacity(received.len());
        interpolate(&padded, &mut Place { whole: BEFORE, fraction: 0.0 }, rate, received.len(), &mut even);
        even
    };
    let (mut best, mut rate, mut even) = (found, 0.0, received.to_vec());
    for by in [By::Response, By::Response, By::Strongest, By::Strongest, By::AllPaths, By::AllPaths] {
        let Some(more) = drift(sent, &even, &best, by) else { continue };
        let evener = at(rate + more);
        let better = align_near(sent, &evener, &best);
        let simpler = better.support.0 + better.support.1 <= best.support.0 + best.support.1;
        if simpler && 1.0 - better.explained < 0.995 * (1.0 - best.explained) {
            (best, rate, even) = (better, rate + more, evener);
        }
    }
    (best, rate)
}

/// What is seen to move.
#[derive(Clone, Copy, PartialEq)]
enum By {
    /// The response that the channel has in the middle, as a whole: to nothing else does a drift look the same where there are several paths, but it must not change.
    Response,
    /// The strongest path: other paths make it seem to move less.
    Strongest,
    /// All paths, each free to change: the drift hides in them.
    AllPaths,
}

/// How fast a response moves, in samples a sample; none where it hardly does, or where nobody can tell.
fn drift(sent: &[Complex32], received: &[Complex32], found: &Alignment, by: By) -> Option<f64> {
    let none = Curve::default();
    let all = grid(found.support);
    let probes = looks(sent, received, found, &none);
    let (probes, grid) = match by {
        By::AllPaths => (probes, all),
        By::Strongest => (probes, Grid { first: all.first + found.support.0 + found.peak as usize, paths: 1 }),
        By::Response => {
            let passed = through(sent, &probes[probes.len() / 2].as_ref()?.response(all), all);
            (looks(&passed, received, found, &none), Grid { first: EXPECTED, paths: 1 })
        }
    };
    let mut looks: Vec<(f64, f64, f64)> = (1..)
        .zip(probes)
        .filter_map(|(k, probe)| {
            let late = probe?.late(grid);
            (late.by.abs() < 1.0).then_some(((k * LOOK) as f64, late.by, 1.0 - late.left))
        })
        .collect();
    // Where something else was received, nothing moves.
    let clearest = looks.iter().map(|l| l.2).fold(0.0, f64::max);
    looks.retain(|l| l.2 > 0.5 * clearest);
    let count = looks.len() as f64;
    if count < 6.0 {
        return None;
    }
    // A straight line through them.
    let mean = looks.iter().fold((0.0, 0.0), |sum, l| (sum.0 + l.0 / count, sum.1 + l.1 / count));
    let spread: f64 = looks.iter().map(|l| (l.0 - mean.0).powi(2)).sum();
    let slope = looks.iter().map(|l| (l.0 - mean.0) * (l.1 - mean.1)).sum::<f64>() / spread;
    let left: f64 = looks.iter().map(|l| (l.1 - mean.1 - slope * (l.0 - mean.0)).powi(2)).sum();
    let deviation = (left / (count - 2.0) / spread).sqrt();
    (slope.abs() * SEARCH as f64 > HARDLY && slope.abs() > 5.0 * deviation && slope.abs() < 2.0 * FASTEST).then_some(slope)
}

/// What was sent, as it comes out of a response on `grid`.
fn through(sent: &[Complex32], response: &[Complex64], grid: Grid) -> Vec<Complex32> {
    let mut out = vec![Complex32::ZERO; sent.len()];
    for (i, h) in response.iter().enumerate() {
        let (h, late) = (narrow(*h), grid.first as i64 + i as i64 - EXPECTED as i64);
        for (n, z) in out.iter_mut().enumerate() {
            *z += usize::try_from(n as i64 - late).ok().and_then(|n| sent.get(n)).map_or(Complex32::ZERO, |x| x * h);
        }
    }
    out
}

impl Lock {
    /// As an alignment says, less what is too little to be corrected: samples that can pass are passed.
    fn near(found: &Alignment) -> Self {
        let whole = if found.fraction().abs() < CLOSE_ENOUGH { found.delay.round() } else { found.delay };
        // What a fading channel turns by within the time that it holds still is not the carrier's.
        let slow = SLOW.max(0.3 / found.coherence.max(1) as f64);
        let cfo = if found.cfo.abs() < slow { 0.0 } else { found.cfo };
        let dc = if found.dc.norm() > 0.02 * found.gain { found.dc } else { Default::default() };
        let mut lock = Self::new(&Alignment { delay: whole, cfo, dc, ..*found });
        lock.alignment = *found;
        lock
    }
}
