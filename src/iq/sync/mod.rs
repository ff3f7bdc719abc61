//! Keeping a received stream in step with what was sent.
//!
//! A [`Synchroniser`] takes what was received, with its gaps, and a reference: a stream of transmitted samples, or a frame that is repeated without an end. It puts out pairs.
//! In which place the two lie is searched for once ([`align`](fn@super::align::align)), or told. After that, where it is asked to follow, it looks at a *probe* of every block of
//! 4096 samples: the short impulse response that explains it best, at the place where it should be and at the places around, behind an amplifier whose curve is learned as well. From the
//! probes come
//!
//! - the *place*: a response that has moved by whole samples is a slip, one that is gone means that the place is lost, and a search begins, behind a look at the old place;
//! - the *delay to a fraction of a sample* and the offset of the *clock*, by a Kalman filter over both that is told how late the
//!   paths are on their grid and how much later than in the probe before, unless there is [one clock](Synchroniser::one_clock);
//! - the offset of the *carrier*, from the phase between probes.
//!
//! Pairs are held back until the probe behind them has confirmed them, at most three blocks: what goes out is in step. Blocks that a probe contradicts are left out, as a gap.
//! Where delay and clock need no correction the received samples only pass. Levels are never changed: [`Status::gain`] tells them.

mod block;
mod curve;
mod drift;
mod follow;
mod line;
mod lock;
mod probe;
mod reference;
mod search;
mod status;
#[cfg(test)]
#[path = "../../../tests/unit/iq/sync.rs"]
mod tests;

use num_complex::Complex32;

use super::align::{Alignment, Options};
use crate::{Error, Result};
use block::Held;
use curve::Curve;
use follow::Follower;
use line::Line;
use lock::Lock;
use reference::Reference;
pub use status::{Pairs, State, Status};

/// Samples from one probe to the next.
const BLOCK: usize = 1 << 12;

/// Samples of a reference that a probe looks at beyond the pairs.
const LOOKAHEAD: usize = 16;

/// Brings a received stream into step with what was sent and keeps it there.
///
/// ```
/// use kaflow::{Complex32, iq::{Pairs, Synchroniser}, ofdm::{Config, Source, Transmitter}};
/// let mut frame = vec![Complex32::ZERO; 4000];
/// Transmitter::new(Config::preset("wifi")?, Source::Continuous)?.fill(&mut frame);
/// let received: Vec<_> = (0..40_000).map(|n| frame[(n + 1234) % 4000] * 0.5).collect();
/// let (mut sync, mut out) = (Synchroniser::repeated(frame)?, Pairs::default());
/// sync.receive(&received, None);
/// sync.finish(&mut out)?;
/// assert_eq!(out.rx.len(), 40_000);
/// assert!(out.rx.iter().zip(&out.tx).all(|(y, x)| *y == x * 0.5));
/// # Ok::<(), kaflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Synchroniser {
    reference: Reference,
    received: Line,
    /// None while the place is searched for.
    lock: Option<Lock>,
    /// None where the place is taken as told.
    follower: Option<Follower>,
    options: Options,
    advance: (i64, i64),
    most_advance: usize,
    skip: u64,
    held: Vec<Held>,
    /// The time in the reference behind the last pair that was put out.
    expected: Option<i64>,
    /// A gap of unknown length lies before the next pair.
    unsure: bool,
    /// The segment of the received stream that the last block was in.
    segment: Option<i64>,
    /// Received samples from this time on are searched, for a delay near the last one.
    search_from: i64,
    last_delay: i64,
    spare: Vec<Vec<Complex32>>,
    /// One of the streams has ended.
    done: bool,
    status: Status,
}

/// What became of an attempt to make a block.
enum Step {
    /// More samples are needed.
    Wait,
    /// Something was left out or decided: try again.
    Again,
    /// One of the streams has ended.
    End,
}

impl Synchroniser {
    fn new(reference: Reference, lock: Option<Lock>, options: Options) -> Self {
        let status = Status {
            state: if lock.is_some() { State::Locked } else { State::Searching },
            alignment: lock.as_ref().map(|l| l.alignment),
            gain: lock.as_ref().map_or(0.0, |l| l.alignment.gain),
            ..Status::default()
        };
        let mut sync = Self {
            reference,
            received: Line::default(),
            lock,
            follower: None,
            options,
            advance: (0, 0),
            most_advance: 0,
            skip: 0,
            held: Vec::new(),
            expected: None,
            unsure: false,
            segment: None,
            search_from: i64::MIN,
            last_delay: 0,
            spare: Vec::new(),
            done: false,
            status,
        };
        sync.tell();
        sync
    }

    /// Two streams in a place that is known.
    pub(crate) fn known(alignment: Alignment) -> Self {
        Self::new(Reference::Stream(Line::default()), Some(Lock::new(&alignment)), Options::default())
    }

    /// Two streams that are `samples` apart, positive when the received one is late, and need nothing else.
    pub fn delay(samples: i64) -> Self {
        let mut sync = Self::known(Alignment::only_delay(samples as f64));
        sync.status.alignment = None;
        sync
    }

    /// Two streams whose place is searched for at their beginning, within `options`.
    pub fn search(options: Options) -> Self {
        Self::new(Reference::Stream(Line::default()), None, options)
    }

    /// A transmitter that repeats `frame`, of at least 256 samples, without an end. The place is searched for and followed.
    pub fn repeated(frame: Vec<Complex32>) -> Result<Self> {
        if frame.len() < 256 {
            return Err(Error::parameter("frame", "at least 256 samples long", frame.len()));
        }
        if frame.iter().all(|z| *z == frame[0]) {
            return Err(Error::Data("the frame is constant: there is nothing to align by".into()));
        }
        if let Some(at) = frame.iter().position(|z| !(z.re.is_finite() && z.im.is_finite())) {
            return Err(Error::Data(format!("sample {at} of the frame is not a finite number")));
        }
        Ok(Self { follower: Some(Follower::default()), ..Self::new(Reference::Frame(frame), None, Options::default()) })
    }

    /// Looks at every block whether the place is still right, and corrects it; without, streams stay where they were found.
    pub fn follow(mut self) -> Self {
        self.follower =
            Some(self.lock.as_ref().map_or_else(Follower::default, |lock| Follower::new(&lock.alignment, Curve::default(), false)));
        self
    }

    /// Transmitter and receiver sample by one clock: whatever fading makes of the response, nothing drifts. A fraction of a sample in the delay that was found is undone, and stays as it is.
    pub fn one_clock(mut self) -> Self {
        if let Some(follower) = &mut self.follower {
            follower.one_clock = true;
        }
        self
    }

    /// Lets `tx` or `rx` run ahead by so many samples: for filters whose taps reach beyond the sample that they predict.
    pub fn advance(mut self, tx: u64, rx: u64) -> Self {
        self.advance = (tx.min(1 << 40) as i64, rx.min(1 << 40) as i64);
        if let Some(lock) = &mut self.lock {
            lock.rx += self.advance.1;
            lock.tx += self.advance.1;
        }
        self
    }

    /// Lets `tx` run ahead by as many samples as the channel begins before its first strong path, but at most `most`.
    pub fn advance_up_to(mut self, most: usize) -> Self {
        self.most_advance = most;
        self
    }

    /// Leaves out the first `pairs` of what would come out: to go on where an earlier run stopped.
    pub fn skip(mut self, pairs: u64) -> Self {
        self.skip = pairs;
        self
    }

    /// What is known by now.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Whether a stream of transmitted samples is expected.
    pub(crate) fn wants_sent(&self) -> bool {
        matches!(self.reference, Reference::Stream(_))
    }

    /// How many samples of `tx` and of `rx` it likes to be given before the next [`run`](Self::run): what bounds its memory.
    pub(crate) fn room(&self) -> (usize, usize) {
        let most = if self.lock.is_none() { self.options.samples.max(search::KEEP) } else { search::KEEP };
        let sent = match &self.reference {
            Reference::Stream(line) => most.saturating_sub(line.len()),
            Reference::Frame(_) => 0,
        };
        (sent, most.saturating_sub(self.received.len()))
    }

    /// Takes in transmitted samples, before which `gap` are missing (0: an unknown number).
    pub fn send(&mut self, tx: &[Complex32], gap: Option<u64>) {
        if let Reference::Stream(line) = &mut self.reference {
            line.push(tx, gap);
        }
    }

    /// Takes in received samples, before which `gap` are said to be missing (0: an unknown number). Where the place is followed that is checked.
    pub fn receive(&mut self, rx: &[Complex32], gap: Option<u64>) {
        self.received.push(rx, gap);
    }

    /// Appends the pairs that are certain by now. An error when two streams do not belong together.
    pub fn run(&mut self, out: &mut Pairs) -> Result<()> {
        self.go(out).map(drop)
    }

    /// No more samples will come: appends what is left.
    pub fn finish(&mut self, out: &mut Pairs) -> Result<()> {
        self.end(true, true);
        self.run(out)
    }

    /// No more samples of `tx` or `rx` will come.
    pub(crate) fn end(&mut self, tx: bool, rx: bool) {
        self.received.ended |= rx;
        if let Reference::Stream(line) = &mut self.reference {
            line.ended |= tx;
        }
    }

    /// As [`run`](Self::run); true once nothing can follow.
    pub(crate) fn go(&mut self, out: &mut Pairs) -> Result<bool> {
        while !self.done {
            let step = if self.lock.is_some() { self.make_block(out) } else { self.find()? };
            match step {
                Step::Again => self.tidy(),
                Step::Wait => {
                    self.tidy();
                    return Ok(false);
                }
                Step::End => {
                    self.close(out);
                    // What is left of the other stream has no partner: that is no gap.
                    self.done = true;
                }
            }
        }
        Ok(true)
    }
}
