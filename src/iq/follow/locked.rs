//! A stream whose place in the frame is known.

use std::f64::consts::TAU;

use num_complex::{Complex32, Complex64};

use crate::channel::{CarrierOffset, SampleOffset, Stage};
use crate::iq::align::{Alignment, Options, align};

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

/// Samples that tell whether a stream is where it should be, in pieces over which a channel hardly moves.
pub(super) const RECALL: usize = 1 << 10;
const PIECE: usize = 1 << 7;

/// Paths behind the lead that are looked at then.
const PATHS: usize = 8;

/// The share of the received power that they have to explain.
const EXPLAINED: f64 = 0.3;

/// The numbers of a stream whose place in the frame is known.
///
/// Received samples are counted from 0: their *coordinate*. Each pair looks at a coordinate; from one pair to the next it grows by 1 plus the drift.
#[derive(Clone, Debug)]
pub(super) struct Locked {
    pub(super) cfo: f64,
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
    pub(super) drift: f64,
    catch_up: f64,
    /// The coordinate of the next sample to be received, less that of the next pair.
    ahead: f64,
    /// Place in the frame of the next pair.
    pub(super) place: usize,
    /// Outputs of the interpolation that are not to be used.
    pub(super) skip: usize,
    /// To go until the next check; what it looks at is gathered from then on.
    to_check: u64,
    interval: u64,
    /// Since the last correction.
    since: u64,
    look: Vec<Complex32>,
    look_place: usize,
    misses: u32,
    pub(super) out: Vec<Complex32>,
}

/// Turns `cfo` back, having made so many turns; none for none.
fn mixer(cfo: f64, turns: f64) -> Option<CarrierOffset> {
    if cfo == 0.0 && turns == 0.0 { None } else { CarrierOffset::new((-cfo).clamp(-0.5, 0.5), -TAU * turns).ok() }
}

pub(super) enum Watch {
    /// Goes on, without so many pairs.
    Fine(u64),
    Lost,
}

impl Locked {
    /// As the search found it, against the frame from `turn` on; `tx` runs ahead by `lead`.
    pub(super) fn new(a: &Alignment, turn: usize, lead: usize, period: usize) -> Self {
        let fraction = if a.fraction().abs() < CLOSE_ENOUGH { 0.0 } else { a.fraction() };
        let cfo = if a.cfo.abs() < SLOW { 0.0 } else { a.cfo };
        let dc = if a.dc.norm() > 0.02 * a.gain { a.dc } else { Complex64::default() };
        Self {
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
            place: (turn as i64 - a.whole() + lead as i64).rem_euclid(period as i64) as usize,
            skip: 0,
            to_check: FIRST_CHECK,
            interval: FIRST_CHECK,
            since: 0,
            look: Vec::new(),
            look_place: 0,
            misses: 0,
            out: Vec::new(),
        }
    }

    /// The stream as it goes on when `rx` is what comes next after all; none when it is not, or when nobody can tell.
    pub(super) fn recall(&self, rx: &[Complex32], frame: &[Complex32]) -> Option<Self> {
        if self.clock.is_some() {
            return None;
        }
        let mut probe = self.clone();
        probe.correct(rx);
        let sent = |n: usize, path: usize| frame[(self.place + n + frame.len() - path % frame.len()) % frame.len()];
        let (mut explained, mut power) = (0.0, 0.0);
        for (piece, y) in probe.out.chunks_exact(PIECE).enumerate() {
            let received: f64 = y.iter().map(|y| f64::from(y.norm_sqr())).sum();
            power += received;
            for path in 0..=self.lead + PATHS {
                let overlap: Complex32 = y.iter().enumerate().map(|(n, y)| y * sent(piece * PIECE + n, path).conj()).sum();
                let energy: f32 = (0..PIECE).map(|n| sent(piece * PIECE + n, path).norm_sqr()).sum();
                // Noise alone explains one part in PIECE by each path.
                explained += f64::from(overlap.norm_sqr() / energy.max(f32::MIN_POSITIVE)) - received / PIECE as f64;
            }
        }
        let right = explained > EXPLAINED * power;
        right.then(|| Self { to_check: FIRST_CHECK, interval: FIRST_CHECK, look: Vec::new(), ..self.clone() })
    }

    /// Undoes everything but the delay's whole samples; the result is in `out`.
    pub(super) fn correct(&mut self, rx: &[Complex32]) {
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
    pub(super) fn resume(&mut self, hole: u64, period: usize) -> u64 {
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
    pub(super) fn watch(&mut self, skip: usize, first: usize, frame: &[Complex32]) -> Watch {
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
