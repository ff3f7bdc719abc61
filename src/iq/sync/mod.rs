//! Keeping a received stream in step with what was sent.
//!
//! A [`Synchroniser`] takes what was received, with its gaps, and a reference: a stream of transmitted samples, or a frame that is repeated without an end. It puts out pairs.
//! In which place the two lie is searched for once ([`align`](fn@super::align::align)), or told. After that, where it is asked to follow, it looks at a *probe* of every block of
//! 4096 samples: the short impulse response that explains it best, at the place where it should be and at the places around. From the probes come
//!
//! - the *place*: a response that has moved by whole samples is a slip, one that is gone means that the place is lost, and a search begins, behind a look at the old place;
//! - the *delay to a fraction of a sample* and the offset of the *clock*, by a Kalman filter over both;
//! - the offset of the *carrier*, from the phase between probes.
//!
//! Pairs are held back until the probe behind them has confirmed them, at most three blocks: what goes out is in step. Blocks that a probe contradicts are left out, as a gap.
//! Where delay and clock need no correction the received samples only pass. Levels are never changed: [`Status::gain`] tells them.

mod follow;
mod line;
mod lock;
mod probe;
mod search;
mod stamps;
#[cfg(test)]
mod tests;

use num_complex::Complex32;

use super::align::{Alignment, Options};
use crate::{Error, Result};
use follow::Follower;
use line::{Line, Spot};
use lock::Lock;
use stamps::Stamps;

/// Samples from one probe to the next.
const BLOCK: usize = 1 << 12;

/// Samples of a reference that a probe looks at beyond the pairs.
const LOOKAHEAD: usize = 16;

/// How far the streams are in step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The place has not been found yet.
    #[default]
    Searching,
    /// The last probe was as it should be; or nobody looks, because the place was told.
    Locked,
    /// The last probe was not: pairs are held back until it is clear what happened.
    Doubtful,
    /// It was not for too long: the place is searched for again.
    Lost,
}

/// What is known about two streams.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// How far they are in step.
    pub state: State,
    /// What the last search found, or what was told.
    pub alignment: Option<Alignment>,
    /// How many samples the received stream is late, missing samples counted; within a period where the reference is a repeated frame.
    pub delay_samples: f64,
    /// Carrier offset in cycles a sample.
    pub cfo: f64,
    /// How much more often the receiver samples than the transmitter, in parts per million.
    pub clock_ppm: f64,
    /// Amplitude of what the reference explains of the received samples over that of the reference.
    pub gain: f64,
    /// Pairs that were put out.
    pub pairs: u64,
    /// Pairs that were left out because one of their samples, or a neighbour that it is interpolated from, is missing.
    pub gap_samples: u64,
    /// Received samples that were left out because nobody knows their partners.
    pub doubtful_samples: u64,
    /// How often the place has moved without a word from the receiver.
    pub slips: u64,
    /// How often the place was found by a search.
    pub searches: u64,
    /// Why the last search failed, until one succeeds.
    pub failure: Option<String>,
}

/// Samples that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    /// What was sent.
    pub tx: Vec<Complex32>,
    /// What was received, without delay and carrier offset.
    pub rx: Vec<Complex32>,
    /// Where pairs are left out: before which index, and how many (0 when nobody knows).
    pub gaps: Vec<(usize, u64)>,
    /// From which index on the pairs are which samples of the two streams, counted as they were pushed.
    pub origins: Vec<(usize, u64, u64)>,
}

impl Pairs {
    /// Empty again.
    pub(crate) fn clear(&mut self) {
        self.tx.clear();
        self.rx.clear();
        self.gaps.clear();
        self.origins.clear();
    }
}

/// What was sent.
#[derive(Clone, Debug)]
enum Reference {
    Stream(Line),
    Frame(Vec<Complex32>),
}

impl Reference {
    /// Whether all of it can be looked at at any time.
    fn keeps(&self) -> bool {
        matches!(self, Self::Frame(_))
    }

    fn fill(&self, time: i64, out: &mut [Complex32]) {
        match self {
            Self::Stream(line) => line.fill(time, out),
            Self::Frame(frame) => {
                let mut at = time.rem_euclid(frame.len() as i64) as usize;
                let mut rest = out;
                while !rest.is_empty() {
                    let n = rest.len().min(frame.len() - at);
                    let (now, later) = rest.split_at_mut(n);
                    now.copy_from_slice(&frame[at..at + n]);
                    (rest, at) = (later, 0);
                }
            }
        }
    }
}

/// Pairs that wait for the next probe.
#[derive(Clone, Debug)]
struct Held {
    tx: i64,
    rx_item: u64,
    count: usize,
    /// The received samples; none where they only pass.
    made: Vec<Complex32>,
    /// A gap of unknown length lies before them.
    unsure: bool,
    /// A probe has contradicted them.
    doubtful: bool,
}

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
    stamps: Stamps,
    stamp: Option<f64>,
    spare: Vec<Vec<Complex32>>,
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
        Self {
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
            stamps: Stamps::default(),
            stamp: None,
            spare: Vec::new(),
            status,
        }
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
        self.follower = Some(self.lock.as_ref().map_or_else(Follower::default, |lock| Follower::new(&lock.alignment)));
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
        if rx.is_empty() {
            return;
        }
        let due = self.received.next().saturating_add_unsigned(gap.unwrap_or(0));
        let more = self.stamp.take().and_then(|stamp| self.stamps.missing(stamp, due));
        self.received.push(rx, more.map(|more| more + gap.unwrap_or(0)).or(gap));
    }

    /// The first of the next received samples has this time on the receiver's clock, in samples from wherever it counts. Time stamps are averaged; one that says that samples are
    /// missing is checked where the place is followed.
    pub(crate) fn stamp(&mut self, samples: f64) {
        self.stamp = Some(samples);
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
        loop {
            let step = if self.lock.is_some() { self.make_block(out) } else { self.find()? };
            match step {
                Step::Again => self.tidy(),
                Step::Wait => {
                    self.tidy();
                    return Ok(false);
                }
                Step::End => {
                    self.close(out);
                    return Ok(true);
                }
            }
        }
    }

    /// Makes the next block of pairs, or leaves out what has no partner.
    fn make_block(&mut self, out: &mut Pairs) -> Step {
        let Some(lock) = &mut self.lock else { return Step::Again };
        let ahead = lock.tx + self.advance.0 - self.advance.1;
        let (sent, sent_closed) = match &self.reference {
            Reference::Frame(_) => (usize::MAX, false),
            Reference::Stream(line) => match line.locate(ahead) {
                Spot::Here { run, closed: true, .. } => (run, true),
                Spot::Here { run, .. } => (if self.follower.is_some() { run.saturating_sub(LOOKAHEAD) } else { run }, false),
                Spot::Gap { until } => return self.leave_out(until - ahead),
                Spot::Later => return if line.ended { Step::End } else { Step::Wait },
            },
        };
        let (before, behind) = lock.margins();
        // Interpolated, the first pair of a stream may lie up to half a sample before it.
        let early = i64::from(lock.fraction >= 0.5 && lock.rx == -1);
        let (item, run, segment, closed, last) = match self.received.locate(lock.rx + early) {
            Spot::Here { item, run, segment, closed, last } => (item, run, segment, closed, last),
            Spot::Gap { until } => {
                let pairs = lock.pairs_until(until);
                return self.leave_out(pairs);
            }
            Spot::Later => return if self.received.ended { Step::End } else { Step::Wait },
        };
        if segment.claim.is_some() && lock.rx - segment.time < before {
            let pairs = lock.pairs_until(segment.time + before);
            return self.leave_out(pairs);
        }
        if self.segment != Some(segment.time) {
            self.cross(&segment);
        }
        let Some(lock) = &mut self.lock else { return Step::Again };
        // The last pair of a stream may lie up to half a sample behind it.
        let reach = (run as i64 + early) as f64 - lock.fraction - if last { 0.5 } else { (behind + 1) as f64 };
        let usable = ((reach / (1.0 + lock.rate)).floor() + 1.0).max(0.0) as usize;
        let wanted = BLOCK.min(sent).min(usable);
        let passes = lock.passes() && self.follower.is_none();
        let complete = wanted == BLOCK || (wanted == sent && sent_closed) || (wanted == usable && closed);
        if wanted == 0 && closed {
            let pairs = lock.pairs_until(lock.rx + run as i64);
            return self.leave_out(pairs);
        }
        if wanted == 0 || !(complete || passes) {
            return Step::Wait;
        }
        let mut made = self.spare.pop().unwrap_or_default();
        made.clear();
        let (tx, start) = (lock.tx, lock.mark());
        if lock.passes() {
            lock.jump(wanted as i64);
        } else {
            lock.make(&self.received, &segment, wanted, &mut made);
        }
        let unsure = std::mem::take(&mut self.unsure);
        self.held.push(Held { tx, rx_item: item, count: wanted, made, unsure, doubtful: false });
        if self.follower.is_some() {
            let at_break = complete && wanted < BLOCK;
            self.judge(start, at_break, out);
        } else {
            self.release(0, out);
        }
        Step::Again
    }

    /// Leaves out pairs one of whose samples is missing.
    fn leave_out(&mut self, pairs: i64) -> Step {
        if pairs > search::SEARCH as i64 && !self.held.is_empty() {
            // What is held would keep the streams waiting for each other.
            self.doubt(self.status.state);
        }
        if let Some(lock) = &mut self.lock {
            lock.jump(pairs);
            if self.expected.is_some() || !self.held.is_empty() {
                self.status.gap_samples += pairs as u64;
            }
        }
        Step::Again
    }

    /// Puts out what is held, except for the newest `keep` blocks.
    fn release(&mut self, keep: usize, out: &mut Pairs) {
        let count = self.held.len().saturating_sub(keep);
        let mut unsure = false;
        for held in self.held.drain(..count) {
            unsure |= held.unsure;
            if held.doubtful {
                self.status.doubtful_samples += held.count as u64;
                continue;
            }
            let unsure = std::mem::take(&mut unsure);
            let tx = held.tx + self.advance.0 - self.advance.1;
            let missing = self.expected.map_or(0, |expected| tx - expected);
            let gap = self.expected.is_some() && (missing != 0 || unsure);
            self.expected = Some(tx + held.count as i64);
            let skipped = self.skip.min(held.count as u64) as usize;
            self.skip -= skipped as u64;
            let n = held.count - skipped;
            if n > 0 {
                let at = out.tx.len();
                if gap && skipped == 0 {
                    // A stream that has gone back in time: nobody knows what is missing.
                    out.gaps.push((at, if unsure { 0 } else { u64::try_from(missing).unwrap_or(0) }));
                }
                let sent = match &self.reference {
                    Reference::Stream(line) => match line.locate(tx + skipped as i64) {
                        Spot::Here { item, .. } => item,
                        _ => 0,
                    },
                    Reference::Frame(_) => 0,
                };
                out.origins.push((at, sent, held.rx_item + skipped as u64));
                out.tx.resize(at + n, Complex32::ZERO);
                self.reference.fill(tx + skipped as i64, &mut out.tx[at..]);
                if held.made.is_empty() {
                    out.rx.extend_from_slice(self.received.items_from(held.rx_item + skipped as u64, n));
                } else {
                    out.rx.extend_from_slice(&held.made[skipped..]);
                }
                self.status.pairs += n as u64;
            }
            if self.spare.len() < 4 {
                self.spare.push(held.made);
            }
        }
        self.carry_unsure(unsure);
    }

    /// A gap of unknown length lies before pairs that are not put out: it lies before the next ones.
    fn carry_unsure(&mut self, unsure: bool) {
        match self.held.first_mut() {
            Some(held) => held.unsure |= unsure,
            None => self.unsure |= unsure,
        }
    }

    /// Lets go of samples that nobody will ask for.
    fn tidy(&mut self) {
        let Some(lock) = &self.lock else { return };
        let back = BLOCK as i64;
        let (sent, received) = match self.held.first() {
            Some(held) => (held.tx, lock.rx - (lock.tx - held.tx) - 1),
            None => (lock.tx, lock.rx),
        };
        self.received.forget(received - back);
        let keep = self.keep_sent();
        if let Reference::Stream(line) = &mut self.reference {
            line.forget(sent - keep);
        }
    }
}
