//! Staying in step with a transmitter that repeats a frame.

use std::f64::consts::TAU;

use num_complex::{Complex32, Complex64};

use super::align::{Options, align};
use crate::channel::{CarrierOffset, SampleOffset, Stage};
use crate::{Error, Result};

/// Samples that a search looks at, at least.
const SEARCH: usize = 1 << 14;

/// Samples that a check looks at.
const LOOK: usize = 1 << 13;

/// Samples between two checks: soon after a search, because a drift is not known yet, and then less and less often.
const FIRST_CHECK: u64 = 1 << 14;
const LAST_CHECK: u64 = 1 << 21;

/// Fractions of a sample that are left as they are.
const CLOSE_ENOUGH: f64 = 0.1;

/// Carrier offsets, in cycles a sample, that any tracker follows without noticing.
const SLOW: f64 = 1e-6;

/// A delay that jumps by more than the paths of a channel can explain means that the lock is lost.
const SLIP: f64 = 3.5;

/// Checks in a row that may find nothing.
const MISSES: u32 = 3;

/// Samples at a hole that the interpolation would mix with silence.
const EDGE: usize = 17;

/// How the received stream lies to the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lock {
    /// Where in the frame the first sample after the search was.
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
/// nothing; after one of unknown length it searches again. Two clocks that are one are never touched: the received samples are then only scaled.
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
    Locked(Box<Locked>),
}

/// What a search is going to look at: silence where samples are missing.
#[derive(Clone, Debug, Default)]
struct Gathered {
    samples: Vec<Complex32>,
    /// Start and length of each stretch of silence.
    holes: Vec<(usize, usize)>,
}

/// The numbers of a stream whose place in the frame is known.
///
/// Received samples are counted from 0: their *coordinate*. Each pair looks at a coordinate; from one pair to the next it grows by 1 plus the drift.
#[derive(Clone, Debug)]
struct Locked {
    cfo: f64,
    gain: f64,
    dc: Complex32,
    inverted: bool,
    lead: usize,
    /// None while there is no carrier offset.
    mixer: Option<CarrierOffset>,
    turns: f64,
    /// None while every pair looks at a sample as it is.
    clock: Option<SampleOffset>,
    /// Drift of the transmitter's clock, and what is made up for until the next check, in samples a sample.
    drift: f64,
    catch_up: f64,
    /// The coordinate of the next sample to be received, less that of the next pair.
    ahead: f64,
    /// Place in the frame of the next pair.
    place: usize,
    /// Outputs of the interpolation that are not to be used.
    skip: usize,
    /// To go until the next check; what it looks at is gathered from then on.
    to_check: u64,
    interval: u64,
    /// Since the last correction.
    since: u64,
    look: Vec<Complex32>,
    look_place: usize,
    misses: u32,
    out: Vec<Complex32>,
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
            Some(0) => self.search_again(),
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

    fn search_again(&mut self) {
        self.give_up();
        self.unknown = true;
        self.lock = None;
    }

    /// Searches from scratch.
    fn give_up(&mut self) {
        if let State::Search(gathered) = &self.state {
            self.missing += gathered.samples.len() as u64;
        }
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
        let (whole, fraction) = if a.fraction().abs() < CLOSE_ENOUGH { (a.whole(), 0.0) } else { (a.whole(), a.fraction()) };
        let cfo = if a.cfo.abs() < SLOW { 0.0 } else { a.cfo };
        let lead = a.advance.min(self.most_lead);
        let dc = if a.dc.norm() > 0.02 * a.gain { a.dc } else { Complex64::default() };
        let mut locked = Locked {
            cfo,
            gain: a.gain.max(f64::MIN_POSITIVE),
            dc: Complex32::new(dc.re as f32, dc.im as f32),
            inverted: a.inverted,
            lead,
            mixer: mixer(cfo, 0.0),
            turns: 0.0,
            clock: None,
            drift: 0.0,
            catch_up: 0.0,
            ahead: -fraction,
            // The partner of rx[n + fraction] is frame[n + turn − whole], or later by the lead.
            place: (turn as i64 - whole + lead as i64).rem_euclid(period as i64) as usize,
            skip: 0,
            to_check: FIRST_CHECK,
            interval: FIRST_CHECK,
            since: 0,
            look: Vec::new(),
            look_place: 0,
            misses: 0,
            out: Vec::new(),
        };
        self.missing += locked.resume(0, period);
        self.lock = Some(Lock { delay: a.delay, cfo, gain: a.gain, drift_ppm: 0.0, searches: self.searches });
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

/// Turns `cfo` back, having made so many turns; none for none.
fn mixer(cfo: f64, turns: f64) -> Option<CarrierOffset> {
    if cfo == 0.0 && turns == 0.0 { None } else { CarrierOffset::new((-cfo).clamp(-0.5, 0.5), -TAU * turns).ok() }
}

enum Watch {
    /// Goes on, without so many pairs.
    Fine(u64),
    Lost,
}

impl Locked {
    /// Undoes everything but the delay's whole samples; the result is in `out`.
    fn correct(&mut self, rx: &[Complex32]) {
        let (dc, scale) = (self.dc, (1.0 / self.gain) as f32);
        let straight = rx.iter().map(|z| (z - dc) * scale);
        let mut samples: Vec<Complex32> = if self.inverted { straight.map(|z| z.conj()).collect() } else { straight.collect() };
        if let Some(mixer) = &mut self.mixer {
            mixer.process(&mut samples);
        }
        self.turns = (self.turns + self.cfo * rx.len() as f64).fract();
        match &mut self.clock {
            Some(clock) => clock.process(&samples, &mut self.out),
            None => self.out.append(&mut samples),
        }
        let skipped = self.skip.min(self.out.len());
        self.ahead += rx.len() as f64 - (self.out.len() - skipped) as f64 * (1.0 + self.rate());
    }

    fn rate(&self) -> f64 {
        self.drift + self.catch_up
    }

    /// Goes on after `hole` samples that were not received; gives how many pairs are left out.
    fn resume(&mut self, hole: u64, period: usize) -> u64 {
        self.turns = (self.turns + self.cfo * hole as f64).fract();
        self.mixer = mixer(self.cfo, self.turns);
        self.look.clear();
        let rate = 1.0 + self.rate();
        let interpolate = rate != 1.0 || self.ahead.fract() != 0.0;
        // Interpolated, the first samples would be mixed with silence.
        let edge = if interpolate { EDGE as f64 - 1.0 } else { 0.0 };
        let distance = self.ahead + hole as f64 + edge;
        let pairs = (distance / rate).round().max(0.0);
        let fraction = pairs * rate - distance;
        (self.clock, self.skip, self.ahead) = (None, 0, 0.0);
        if interpolate {
            // Output m is the sample at m − 1 + fraction, so that the delay is not negative.
            self.clock = SampleOffset::new((1e6 * (rate - 1.0)).clamp(-1e5, 1e5), (1.0 - fraction).clamp(0.0, 2.0)).ok();
            (self.skip, self.ahead) = (EDGE, -(edge + fraction));
        }
        self.place = (self.place + (pairs as u64 % period as u64) as usize) % period;
        pairs as u64
    }

    /// Checks delay and carrier from time to time. `out[skip..]` belongs to the frame from `first` on.
    fn watch(&mut self, skip: usize, first: usize, frame: &[Complex32]) -> Watch {
        let period = frame.len();
        let n = (self.out.len() - skip) as u64;
        self.since += n;
        if self.to_check > n {
            self.to_check -= n;
            return Watch::Fine(0);
        }
        let begin = std::mem::take(&mut self.to_check) as usize;
        if self.look.is_empty() {
            self.look_place = (first + begin) % period;
            self.look.extend_from_slice(&self.out[skip + begin..]);
        } else {
            self.look.extend_from_slice(&self.out[skip..]);
        }
        if self.look.len() < LOOK {
            return Watch::Fine(0);
        }
        let reference: Vec<Complex32> = (0..self.look.len()).map(|i| frame[(self.look_place + i) % period]).collect();
        let options = Options { max_delay: 64.min(period / 2 - 1), samples: self.look.len() };
        let found = align(&reference, &self.look, options);
        self.look.clear();
        self.interval = (2 * self.interval).min(LAST_CHECK);
        self.to_check = self.interval;
        match found {
            Err(_) => {
                self.misses += 1;
                self.to_check = FIRST_CHECK;
                if self.misses >= MISSES { Watch::Lost } else { Watch::Fine(0) }
            }
            Ok(a) if (a.delay - self.lead as f64).abs() > SLIP => Watch::Lost,
            Ok(a) => {
                self.misses = 0;
                Watch::Fine(self.adjust(a.fraction(), a.cfo, period))
            }
        }
    }

    /// Turns what a check found into a slow correction; gives how many pairs that costs. Whole samples are left out: a path that fades moves the first one by those, a
    /// clock that drifts does not.
    fn adjust(&mut self, late: f64, cfo: f64, period: usize) -> u64 {
        if cfo.abs() > SLOW {
            self.cfo += 0.5 * cfo;
            match &mut self.mixer {
                Some(mixer) => drop(mixer.set_frequency((-self.cfo).clamp(-0.5, 0.5))),
                None => self.mixer = CarrierOffset::new((-self.cfo).clamp(-0.5, 0.5), 0.0).ok(),
            }
        }
        // While interpolating everything counts; without, only what is more than the search left.
        if self.clock.is_none() && late.abs() < 1.5 * CLOSE_ENOUGH {
            return 0;
        }
        // What was late at the last check has been made up for since: what is late now is the drift's error.
        self.drift += late / std::mem::take(&mut self.since).max(1) as f64;
        self.catch_up = late / (self.interval + LOOK as u64) as f64;
        let ppm = (1e6 * self.rate()).clamp(-1e5, 1e5);
        match &mut self.clock {
            Some(clock) => {
                let _ = clock.set_ppm(ppm);
                0
            }
            None => self.resume(0, period),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Impairments, ImpairmentsConfig};
    use crate::ofdm::{Config, RandomBits, Source, Transmitter};

    fn frame() -> Vec<Complex32> {
        let config = Config { symbols: 50, ..Config::default() };
        let mut bits = vec![0; config.payload_bits()];
        RandomBits::new(3).fill(&mut bits);
        let mut frame = vec![Complex32::ZERO; config.frame_samples()];
        Transmitter::new(config, Source::Repeat(bits)).unwrap().fill(&mut frame);
        frame
    }

    fn received(frame: &[Complex32], n: usize, impairments: &ImpairmentsConfig) -> Vec<Complex32> {
        let sent: Vec<Complex32> = (0..n).map(|i| frame[(i + 777) % frame.len()]).collect();
        let mut rx = Vec::new();
        Impairments::new(impairments, 30.0, 1).unwrap().process(&sent, &mut rx);
        rx.iter().map(|z| z * 0.25).collect()
    }

    fn nmse_db(out: &Followed, from: usize) -> f32 {
        // One complex gain in pieces of 512, as a tracker would follow the phase.
        let (mut error, mut power) = (0.0, 0.0);
        for (x, y) in out.tx[from..].chunks(512).zip(out.rx[from..].chunks(512)) {
            let h: Complex32 = y.iter().zip(x).map(|(y, x)| y * x.conj()).sum::<Complex32>() / x.iter().map(|x| x.norm_sqr()).sum::<f32>();
            error += y.iter().zip(x).map(|(y, x)| (y - x * h).norm_sqr()).sum::<f32>();
            power += y.iter().map(|y| y.norm_sqr()).sum::<f32>();
        }
        10.0 * (error / power).log10()
    }

    #[test]
    fn delay_carrier_offset_and_drift_are_followed() {
        let frame = frame();
        for (delay, cfo, ppm) in [(0.0, 0.0, 0.0), (100.3, 0.0, 0.0), (40.0, 2e-3, 0.0), (7.0, 0.0, 5.0), (3000.6, -1e-3, -8.0)] {
            let impairments = ImpairmentsConfig { delay, carrier_offset: cfo, sample_offset_ppm: ppm, ..ImpairmentsConfig::default() };
            let rx = received(&frame, 1_200_000, &impairments);
            let (mut follower, mut out) = (Follower::new(frame.clone()).unwrap(), Followed::default());
            rx.chunks(5000).for_each(|piece| follower.push(piece, None, &mut out));
            let lock = follower.lock().unwrap();
            assert_eq!((out.tx.len(), lock.searches), (out.rx.len(), 1), "{delay} {cfo} {ppm}");
            assert!(out.tx.len() > 1_190_000);
            assert!((lock.cfo - cfo).abs() < 1e-5 && (lock.drift_ppm + ppm).abs() < 1.0, "{lock:?}");
            let nmse = nmse_db(&out, 600_000);
            assert!(nmse < -25.0, "delay {delay}, cfo {cfo}, {ppm} ppm: {nmse} dB");
        }
    }

    #[test]
    fn holes_keep_the_pairs_together_and_have_the_right_length() {
        let frame = frame();
        for (delay, cfo) in [(40.0, 0.0), (40.4, 1e-3)] {
            let impairments = ImpairmentsConfig { delay, carrier_offset: cfo, ..ImpairmentsConfig::default() };
            let rx = received(&frame, 400_000, &impairments);
            let (mut follower, mut out) = (Follower::new(frame.clone()).unwrap(), Followed::default());
            let (mut at, mut lost, mut hole) = (0, 0, None);
            for k in 0.. {
                let n = 7000 + 13 * (k % 50);
                let Some(piece) = rx.get(at..at + n) else { break };
                follower.push(piece, hole, &mut out);
                let missing = 1 + 37 * (k % 40);
                hole = Some(missing as u64);
                at += n + missing;
                lost += missing;
            }
            assert!(lost > 20_000 && out.gaps.len() > 30);
            // Pairs and gaps together are all the time there was, up to what waits inside.
            let gaps: u64 = out.gaps.iter().map(|g| g.1).sum();
            assert!((out.tx.len() as u64 + gaps).abs_diff(400_000) < 30_000);
            assert!(nmse_db(&out, 0) < -25.0, "{}", nmse_db(&out, 0));
            assert_eq!(follower.lock().unwrap().searches, 1);
        }
    }

    #[test]
    fn a_hole_of_unknown_length_is_searched_across_and_noise_is_never_locked_to() {
        let frame = frame();
        let rx = received(&frame, 200_000, &ImpairmentsConfig::default());
        let (mut follower, mut out) = (Follower::new(frame).unwrap(), Followed::default());
        follower.push(&rx[..80_000], None, &mut out);
        follower.push(&rx[81_234..], Some(0), &mut out);
        assert_eq!(out.gaps.iter().filter(|g| g.1 == 0).count(), 1);
        assert!(nmse_db(&out, 0) < -25.0);
        assert_eq!(follower.lock().unwrap().searches, 2);
        let mut noise = vec![Complex32::ZERO; 100_000];
        crate::channel::Noise::new(0.0, 5).unwrap().process(&mut noise);
        let before = out.tx.len();
        follower.push(&noise, Some(0), &mut out);
        assert!(follower.lock().is_none() && out.tx.len() == before && follower.failure().is_some());
    }
}
