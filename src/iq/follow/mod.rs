//! Staying in step with a transmitter that repeats a frame.

mod locked;
#[cfg(test)]
mod tests;

use num_complex::Complex32;

use super::align::{Options, align};
use crate::{Error, Result};
use locked::{Locked, Watch};

/// Samples that a search looks at, at least.
const SEARCH: usize = 1 << 14;

/// How the received stream lies to the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lock {
    /// How many samples after the first one that the search saw a frame began, in [0, period).
    pub delay: f64,
    /// Carrier offset in cycles a sample.
    pub cfo: f64,
    /// Amplitude of what was received over that of the frame.
    pub gain: f64,
    /// How much longer the transmitter's sampling period is than the receiver's, in parts per million, as far as it is known.
    pub drift_ppm: f64,
    /// How often it had to be searched for.
    pub searches: u64,
}

/// Pairs of samples that belong together.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// What was sent.
    pub tx: Vec<Complex32>,
    /// What was received, without delay, carrier offset and drift, scaled to the level of `tx`.
    pub rx: Vec<Complex32>,
    /// Where pairs are missing: before which index, and how many (0 when nobody knows).
    pub gaps: Vec<(usize, u64)>,
}

impl Followed {
    /// Empty again.
    pub fn clear(&mut self) {
        self.tx.clear();
        self.rx.clear();
        self.gaps.clear();
    }
}

/// Finds a frame that is repeated without an end in a received stream and stays in step with it: delay, carrier offset, drift of the clocks.
///
/// The frame is searched for with [`align`]; after that the delay and the carrier offset are checked at intervals and corrected slowly. Holes of known length change
/// nothing; after one of unknown length it looks whether anything was lost at all, and if so searches again. Two clocks that are one are never touched: the received
/// samples are then only scaled.
///
/// ```
/// use kaflow::{Complex32, iq::{Followed, Follower}};
/// let frame: Vec<_> = (0..4000u32).map(|i| Complex32::cis((i * i % 10_007) as f32)).collect();
/// let received: Vec<_> = (0..40_000).map(|n| frame[(n + 1234) % 4000] * 0.5).collect();
/// let (mut follower, mut out) = (Follower::new(frame)?, Followed::default());
/// follower.push(&received, None, &mut out);
/// assert!(out.rx.iter().zip(&out.tx).all(|(y, x)| (y - x).norm() < 0.05));
/// # Ok::<(), kaflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Follower {
    frame: Vec<Complex32>,
    state: State,
    /// Received since the last pair that was put out, and not put out.
    missing: u64,
    /// Whether it is known how many.
    unknown: bool,
    started: bool,
    lock: Option<Lock>,
    searches: u64,
    failure: Option<String>,
    most_lead: usize,
}

#[derive(Clone, Debug)]
enum State {
    Search(Gathered),
    /// Behind a hole of unknown length: perhaps nothing was lost, and only a clock was set.
    Doubt(Box<Locked>, Vec<Complex32>),
    Locked(Box<Locked>),
}

/// What a search is going to look at: silence where samples are missing.
#[derive(Clone, Debug, Default)]
struct Gathered {
    samples: Vec<Complex32>,
    /// Start and length of each stretch of silence.
    holes: Vec<(usize, usize)>,
}

impl Follower {
    /// Follows a transmitter that repeats `frame`, of at least 256 samples.
    pub fn new(frame: Vec<Complex32>) -> Result<Self> {
        if frame.len() < 256 {
            return Err(Error::parameter("frame", "at least 256 samples long", frame.len()));
        }
        if frame.iter().all(|z| *z == frame[0]) {
            return Err(Error::Data("the frame is constant: there is nothing to align by".into()));
        }
        Ok(Self {
            frame,
            state: State::Search(Gathered::default()),
            missing: 0,
            unknown: false,
            started: false,
            lock: None,
            searches: 0,
            failure: None,
            most_lead: 0,
        })
    }

    /// Lets `tx` run ahead of `rx` by as many samples as the channel begins before its first strong path, but at most `most`: for a tracker whose taps are to see them.
    pub fn lead(mut self, most: usize) -> Self {
        self.most_lead = most;
        self
    }

    /// How the stream lies to the frame; none while it is searched for.
    pub fn lock(&self) -> Option<Lock> {
        self.lock
    }

    /// Why the last search failed, until one succeeds.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Takes in received samples, before which `hole` samples were lost (0: an unknown number), and appends the pairs that they complete.
    pub fn push(&mut self, rx: &[Complex32], hole: Option<u64>, out: &mut Followed) {
        match hole {
            None => {}
            Some(0) => self.doubt(),
            Some(hole) => self.hole(hole),
        }
        let mut rx = rx;
        loop {
            match &mut self.state {
                State::Search(gathered) => {
                    let wanted = SEARCH.max(3 * self.frame.len());
                    let n = rx.len().min(wanted.saturating_sub(gathered.samples.len()));
                    gathered.samples.extend_from_slice(&rx[..n]);
                    rx = &rx[n..];
                    if gathered.samples.len() < wanted {
                        return;
                    }
                    let gathered = std::mem::take(gathered);
                    self.search(&gathered.samples);
                    if matches!(self.state, State::Locked(_)) {
                        let mut at = 0;
                        for &(start, length) in &gathered.holes {
                            self.track(&gathered.samples[at..start], out);
                            self.hole(length as u64);
                            at = start + length;
                        }
                        self.track(&gathered.samples[at..], out);
                    } else {
                        self.missing += gathered.samples.len() as u64;
                    }
                }
                State::Doubt(_, gathered) => {
                    let n = rx.len().min(locked::RECALL - gathered.len());
                    gathered.extend_from_slice(&rx[..n]);
                    rx = &rx[n..];
                    if gathered.len() < locked::RECALL {
                        return;
                    }
                    self.decide(out);
                }
                State::Locked(_) => {
                    if rx.is_empty() {
                        return;
                    }
                    let n = rx.len().min(4096);
                    self.track(&rx[..n], out);
                    rx = &rx[n..];
                }
            }
        }
    }

    /// What follows is where it should be, or anywhere.
    fn doubt(&mut self) {
        let State::Locked(locked) = &mut self.state else { return self.search_again() };
        let locked = locked.clone();
        self.state = State::Doubt(locked, Vec::new());
        self.unknown = true;
    }

    fn decide(&mut self, out: &mut Followed) {
        let State::Doubt(locked, gathered) = &mut self.state else { return };
        let gathered = std::mem::take(gathered);
        if let Some(locked) = locked.recall(&gathered, &self.frame) {
            self.state = State::Locked(Box::new(locked));
            self.track(&gathered, out);
        } else {
            self.search_again();
            self.state = State::Search(Gathered { samples: gathered, holes: Vec::new() });
        }
    }

    fn search_again(&mut self) {
        self.give_up();
        self.unknown = true;
        self.lock = None;
    }

    /// Searches from scratch.
    fn give_up(&mut self) {
        self.missing += match &self.state {
            State::Search(gathered) => gathered.samples.len() as u64,
            State::Doubt(_, gathered) => gathered.len() as u64,
            State::Locked(_) => 0,
        };
        self.state = State::Search(Gathered::default());
    }

    fn hole(&mut self, hole: u64) {
        match &mut self.state {
            State::Search(gathered) => match usize::try_from(hole).ok().filter(|&hole| hole < SEARCH / 4 && !gathered.samples.is_empty()) {
                Some(hole) => {
                    gathered.holes.push((gathered.samples.len(), hole));
                    gathered.samples.resize(gathered.samples.len() + hole, Complex32::ZERO);
                }
                None => {
                    self.give_up();
                    self.missing += hole;
                }
            },
            // With two holes in a row, one of them of unknown length, nothing is certain.
            State::Doubt(..) => self.search_again(),
            State::Locked(locked) => self.missing += locked.resume(hole, self.frame.len()),
        }
    }

    /// Looks for the frame in `rx`; the state says whether it was found.
    fn search(&mut self, rx: &[Complex32]) {
        let period = self.frame.len();
        // Delays of a repeated signal are unique within a period; one right at its end is found from another place of the frame.
        let found = [0, period / 4].into_iter().find_map(|turn| {
            let reference: Vec<Complex32> = (0..rx.len()).map(|n| self.frame[(n + turn) % period]).collect();
            let options = Options { max_delay: period / 2 - 1, samples: rx.len() };
            match align(&reference, rx, options) {
                Ok(alignment) => Some((alignment, turn)),
                Err(error) => {
                    self.failure = Some(error.to_string());
                    None
                }
            }
        });
        let Some((a, turn)) = found else {
            self.state = State::Search(Gathered::default());
            return;
        };
        self.searches += 1;
        self.failure = None;
        let mut locked = Locked::new(&a, turn, a.advance.min(self.most_lead), period);
        self.missing += locked.resume(0, period);
        let delay = (a.delay - turn as f64).rem_euclid(period as f64);
        self.lock = Some(Lock { delay, cfo: locked.cfo, gain: a.gain, drift_ppm: 0.0, searches: self.searches });
        self.state = State::Locked(Box::new(locked));
    }

    fn track(&mut self, rx: &[Complex32], out: &mut Followed) {
        let State::Locked(locked) = &mut self.state else { return };
        let period = self.frame.len();
        locked.correct(rx);
        let skip = locked.skip.min(locked.out.len());
        locked.skip -= skip;
        let corrected = locked.out.len() - skip;
        if corrected == 0 {
            locked.out.clear();
            return;
        }
        if self.started && (self.missing > 0 || self.unknown) {
            out.gaps.push((out.rx.len(), if self.unknown { 0 } else { self.missing }));
        }
        (self.missing, self.unknown, self.started) = (0, false, true);
        out.rx.extend_from_slice(&locked.out[skip..]);
        let first = locked.place;
        for _ in 0..corrected {
            out.tx.push(self.frame[locked.place]);
            locked.place = if locked.place + 1 == period { 0 } else { locked.place + 1 };
        }
        let lost = match locked.watch(skip, first, &self.frame) {
            Watch::Fine(missing) => {
                self.missing += missing;
                false
            }
            Watch::Lost => true,
        };
        locked.out.clear();
        if let Some(lock) = &mut self.lock {
            (lock.cfo, lock.drift_ppm) = (locked.cfo, 1e6 * locked.drift);
        }
        if lost {
            self.search_again();
        }
    }
}
