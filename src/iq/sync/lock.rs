//! Where the next pair is, and what is undone to make it.

use num_complex::Complex32;
use std::f64::consts::TAU;

use super::line::{Line, Segment};
use crate::dsp::{BEFORE, BEHIND, Nco, Place, interpolate, narrow};
use crate::iq::align::Alignment;

/// The longest delay, in samples: whole numbers and their sums stay exact.
const FARTHEST: f64 = (1u64 << 50) as f64;

/// The place of a received stream beside its reference: pair by pair `tx` grows by 1 and the time at the receiver by `1 + rate`.
#[derive(Clone, Debug)]
pub(super) struct Lock {
    pub(super) alignment: Alignment,
    /// The time of the next pair in the reference and, as a sample and how far behind it in [0, 1), at the receiver.
    pub(super) tx: i64,
    pub(super) rx: i64,
    pub(super) fraction: f64,
    pub(super) rate: f64,
    /// Cycles a sample, and turns made at a time of the receiver.
    pub(super) cfo: f64,
    turns: f64,
    turned: i64,
    dc: Complex32,
    inverted: bool,
    scratch: Vec<Complex32>,
}

/// A place to go back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    tx: i64,
    rx: i64,
    fraction: f64,
}

impl Lock {
    /// As `alignment` says, for streams whose times count from 0.
    pub(super) fn new(alignment: &Alignment) -> Self {
        let mut lock = Self {
            alignment: *alignment,
            tx: 0,
            rx: 0,
            fraction: 0.0,
            rate: 0.0,
            cfo: alignment.cfo,
            turns: 0.0,
            turned: 0,
            dc: narrow(alignment.dc),
            inverted: alignment.inverted,
            scratch: Vec::new(),
        };
        // A delay that is no number leaves no pairs, as one beyond all times does.
        let delay = if alignment.delay.is_finite() { alignment.delay.clamp(-FARTHEST, FARTHEST) } else { FARTHEST };
        lock.place(delay);
        // The first pair: neither side before its beginning.
        lock.jump((-delay.round() as i64).max(0));
        lock
    }

    /// The same place for streams whose first samples have these times.
    pub(super) fn from(mut self, tx: i64, rx: i64) -> Self {
        self.tx += tx;
        self.rx += rx;
        self.turned += rx;
        self
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { tx: self.tx, rx: self.rx, fraction: self.fraction }
    }

    pub(super) fn rewind(&mut self, mark: Mark) {
        (self.tx, self.rx, self.fraction) = (mark.tx, mark.rx, mark.fraction);
    }

    /// Puts the next pair of the reference `delay` samples later at the receiver.
    fn place(&mut self, delay: f64) {
        let at = self.tx as f64 + delay;
        (self.rx, self.fraction) = (at.floor() as i64, at - at.floor());
    }

    /// Whether samples are put out as they were received.
    pub(super) fn passes(&self) -> bool {
        !self.interpolates() && self.cfo == 0.0 && self.turns == 0.0 && self.dc == Complex32::ZERO && !self.inverted
    }

    pub(super) fn interpolates(&self) -> bool {
        self.fraction != 0.0 || self.rate != 0.0
    }

    /// How many samples later at the receiver than in the reference.
    pub(super) fn delay(&self) -> f64 {
        (self.rx - self.tx) as f64 + self.fraction
    }

    /// Leaves out `pairs`, or goes back by so many.
    pub(super) fn jump(&mut self, pairs: i64) {
        self.tx += pairs;
        self.rx += pairs;
        self.shift(pairs as f64 * self.rate);
    }

    /// Reads the received stream `samples` later.
    pub(super) fn shift(&mut self, samples: f64) {
        let fraction = self.fraction + samples;
        (self.rx, self.fraction) = (self.rx + fraction.floor() as i64, fraction - fraction.floor());
    }

    /// Pairs until the receiver's time is `time` at least.
    pub(super) fn pairs_until(&self, time: i64) -> i64 {
        (((time - self.rx) as f64 - self.fraction) / (1.0 + self.rate)).ceil().max(1.0) as i64
    }

    /// Turns by another frequency from the next pair on, without a step in phase.
    pub(super) fn set_cfo(&mut self, cfo: f64) {
        self.turns = self.turns_at(self.rx);
        (self.turned, self.cfo) = (self.rx, cfo);
    }

    fn turns_at(&self, time: i64) -> f64 {
        (self.turns + self.cfo * (time - self.turned) as f64).fract()
    }

    /// Samples that a pair needs before and behind its own, where it is not simply passed on.
    pub(super) fn margins(&self) -> (i64, i64) {
        if self.interpolates() { (BEFORE as i64, BEHIND as i64 + 1) } else { (0, 0) }
    }

    /// Makes the received samples of the next `n` pairs from one segment of the stream, silence where it has none, and goes on behind them.
    pub(super) fn make(&mut self, line: &Line, segment: &Segment, n: usize, out: &mut Vec<Complex32>) {
        let (before, behind) = self.margins();
        let stretch = (n as f64 * (1.0 + self.rate.max(0.0))).ceil() as usize;
        let first = self.rx - before;
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(stretch + (before + behind) as usize, Complex32::ZERO);
        let real = line.fill_segment(segment, first, &mut scratch);
        self.straighten(first + real.start as i64, &mut scratch[real]);
        out.clear();
        if self.interpolates() {
            // What is not a number would spread over its neighbours.
            let mut broken = Vec::new();
            for (k, z) in scratch.iter_mut().enumerate().filter(|(_, z)| !(z.re.is_finite() && z.im.is_finite())) {
                *z = Complex32::ZERO;
                broken.push((k as f64 - before as f64 - self.fraction) / (1.0 + self.rate));
            }
            let mut place = Place { whole: before as usize, fraction: self.fraction };
            interpolate(&scratch, &mut place, self.rate, n, out);
            for at in broken {
                if let Some(z) = out.get_mut(at.round().max(0.0) as usize).filter(|_| at > -0.5) {
                    *z = Complex32::new(f32::NAN, f32::NAN);
                }
            }
            (self.rx, self.fraction) = (first + place.whole as i64, place.fraction);
        } else {
            out.extend_from_slice(&scratch[..n]);
            self.rx += n as i64;
        }
        self.tx += n as i64;
        self.scratch = scratch;
    }

    /// Removes DC, carrier offset and inversion from samples that begin at `time`.
    pub(super) fn straighten(&self, time: i64, samples: &mut [Complex32]) {
        if self.dc != Complex32::ZERO {
            samples.iter_mut().for_each(|z| *z -= self.dc);
        }
        if self.cfo != 0.0 || self.turns != 0.0 {
            Nco::new(-self.cfo, -TAU * self.turns_at(time)).mix(samples);
        }
        if self.inverted {
            samples.iter_mut().for_each(|z| *z = z.conj());
        }
    }
}
