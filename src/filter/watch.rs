//! Whether a tracker is worth being believed.

use num_complex::Complex;
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use crate::Real;

/// Samples between two places where a tracker may be restarted.
pub(super) const BLOCK: u64 = 512;

/// What a tracker may be worse than no prediction for as long as it likes: half a decibel. Steps that are large against the noise cost as much.
const SLACK: f64 = 1.12;

/// The error that it may add to that, in units of the mean power of a received sample.
const EXCESS: f64 = 256.0;

/// Or, where the level has risen since, in units of what was received in the block so far.
const STEP: f64 = 4.0;

/// The largest power of a prediction, in units of the largest power of a sample that was received, and what is kept of that from block to block.
const LARGEST: f64 = 4.0;
const FADE: f64 = 0.96;

/// Blocks in a row that a tracker, once given up, has to be better than no prediction.
const PROOF: u32 = 2;

/// A tracker that leaves this share of the power, and so many times what it used to leave, is no use any more after so many blocks, and each time twice as many: where a new start does not help,
/// it is the channel.
const USELESS: f64 = 0.3;
const USED_TO: f64 = 10.0;
const STUCK: u32 = 8;
const MOST_STUCK: u32 = 16;
/// How fast it is forgotten what it used to leave, from block to block.
const FORGET: f64 = 1.01;

/// Samples after which one that was given up is a new case: restarted it is believed at once.
const FORGIVEN: u64 = 1 << 14;

/// Compares the error of a tracker with the power of what it predicts, and gives it up where it is worse than no prediction at all.
///
/// Every sample adds `|e|^2 - 1.12 |y|^2` to a sum, which is never below zero at the start of a block. Above 256 times the mean power of a sample the predictions become zero, and the
/// tracker starts again from nothing at the end of the block. It is believed again at once, or, where this is not the first time in 16,384 samples, when it has been better
/// than nothing for two blocks. A prediction of more than four times the power of anything received of late is none. A tracker that is better
/// than nothing starts again too where it has left ten times what it used to leave, and a third of the power, for 4,096 samples, the next time 8,192 and so on. So whatever the streams are, the mean error exceeds the power by little, and no fault that garbage has left in a tracker stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Watch {
    /// Samples in the present block, and their power.
    at: u64,
    power: f64,
    /// Mean power of a sample in the last blocks.
    levels: [f64; 2],
    /// The largest power of a sample of late.
    peak: f64,
    /// The error beyond what is allowed, and in this block the error beyond the power.
    excess: f64,
    worse: f64,
    /// The share of the power that the tracker leaves at its best, and blocks in a row in which it was no use beside that.
    best: Option<f64>,
    poor: u32,
    /// How often it was started again for that.
    stuck: u32,
    /// Predictions are not passed on.
    muted: bool,
    /// The tracker is to start again at the end of the block.
    failed: bool,
    /// Blocks that it has to be good for.
    owes: u32,
    /// Samples since the tracker was last given up, and how often it was.
    since: Option<u64>,
    restarts: u64,
}

impl Watch {
    /// How often the tracker was given up.
    pub(super) fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Whether predictions are not to be passed on.
    pub(super) fn mutes(&self) -> bool {
        self.muted
    }

    /// Whether it can have come from a file.
    pub(super) fn is_sound(&self) -> bool {
        self.at < BLOCK && [self.power, self.peak, self.levels[0], self.levels[1]].iter().all(|p| *p >= 0.0)
    }

    /// Samples until the end of the block.
    pub(super) fn room(&self) -> usize {
        (BLOCK - self.at) as usize
    }

    /// Nothing is known of the streams any more; how often the tracker was given up is.
    pub(super) fn clear(&mut self) {
        *self = Self { restarts: self.restarts, ..Self::default() };
    }

    /// Looks at the predictions of at most [`room`](Self::room) samples that were learned, and mutes those that are not to be believed. True where the tracker has to start again now.
    #[allow(clippy::neg_cmp_op_on_partial_ord, reason = "what is not a number must fail")]
    pub(super) fn look<T: Real>(&mut self, rx: &[Complex<T>], prediction: &mut [Complex<T>]) -> bool {
        let mut allowed = EXCESS * self.levels[0].max(self.levels[1]);
        if !self.muted && !self.failed && self.is_quiet(Sums::of(rx, prediction), allowed) {
            self.at += rx.len() as u64;
            return self.at >= BLOCK && self.end_block();
        }
        // Before the end of the first block the level is that of what has come so far.
        let (first, mut samples) = (allowed == 0.0, self.at);
        // Beside the fastest tracker every load and store counts.
        let (mut power, mut worse, mut excess, mut peak) = (self.power, self.worse, self.excess, self.peak);
        for (y, p) in rx.iter().zip(prediction) {
            let (e, y) = (square(*y - *p), square(*y));
            // Comparisons are written so that what is not a number is none, and fails.
            if self.muted || !(square(*p) <= LARGEST * peak) {
                *p = Complex::zero();
            }
            peak = if y > peak { y } else { peak };
            // One absurd prediction, which was not passed on, is forgiven.
            let most = 2.0 * LARGEST * peak;
            let e = if e > most { most } else { e };
            power += y;
            if first {
                samples += 1;
                allowed = EXCESS * power / samples as f64;
            }
            worse += e - y;
            excess += e - SLACK * y;
            if !(excess <= allowed || excess <= STEP * power || self.failed) {
                self.fail();
            }
        }
        (self.power, self.worse, self.excess, self.peak) = (power, worse, excess, peak);
        self.at += rx.len() as u64;
        self.at >= BLOCK && self.end_block()
    }

    /// Takes in samples all at once where none of them can be one to act on, which is nearly always.
    fn is_quiet(&mut self, sums: Sums, allowed: f64) -> bool {
        let Sums { power, error, largest } = sums;
        let [received, predicted, wrong] = largest;
        // The peak only grows on the way, and the excess is nowhere more than all errors. Powers that single precision cannot hold are looked at one by one.
        let quiet = received > f64::from(f32::MIN_POSITIVE) * 1e10
            && predicted <= LARGEST * self.peak
            && wrong <= 2.0 * LARGEST * self.peak
            && self.excess.max(0.0) + error <= allowed;
        if quiet {
            self.power += power;
            self.worse += error - power;
            self.excess += error - SLACK * power;
            self.peak = self.peak.max(received);
        }
        quiet
    }

    fn fail(&mut self) {
        let again = self.muted || self.since.is_some_and(|since| since < FORGIVEN);
        self.restarts += u64::from(!self.muted);
        self.owes = if again { PROOF } else { 0 };
        (self.failed, self.muted, self.since) = (true, true, Some(0));
    }

    fn end_block(&mut self) -> bool {
        let level = self.power / BLOCK as f64;
        self.levels = [self.levels[1], if level.is_finite() { level } else { 0.0 }];
        self.peak *= FADE;
        self.since = self.since.map(|since| since + BLOCK);
        let failed = std::mem::take(&mut self.failed);
        if !failed && self.muted {
            self.owes = if self.worse < 0.0 { self.owes.saturating_sub(1) } else { PROOF };
        }
        self.muted &= self.owes > 0;
        let stuck = !failed && !self.muted && self.is_stuck();
        if stuck {
            (self.restarts, self.since, self.stuck) = (self.restarts + 1, Some(0), self.stuck + 1);
        }
        if failed || stuck {
            (self.excess, self.peak, self.best, self.poor) = (0.0, 0.0, None, 0);
        }
        self.excess = self.excess.max(0.0);
        (self.at, self.power, self.worse) = (0, 0.0, 0.0);
        failed || stuck
    }

    /// Whether the tracker was good once and has been no use for long.
    fn is_stuck(&mut self) -> bool {
        let left = 1.0 + self.worse / self.power;
        if left.is_finite() {
            let poor = left > USELESS && self.best.is_some_and(|best| left > USED_TO * best);
            self.poor = if poor { self.poor + 1 } else { 0 };
            self.best = Some(self.best.map_or(left, |best| left.min(FORGET * best)));
        }
        self.poor >= STUCK << self.stuck.min(MOST_STUCK)
    }
}

/// What a run of samples amounts to.
struct Sums {
    power: f64,
    error: f64,
    /// The largest power of a sample that was received, of a prediction and of an error.
    largest: [f64; 3],
}

impl Sums {
    /// In the precision of the samples and in lanes: beside the fastest tracker every operation counts.
    fn of<T: Real>(rx: &[Complex<T>], prediction: &[Complex<T>]) -> Self {
        const LANES: usize = 8;
        let zeros = [T::zero(); LANES];
        let (mut power, mut error, mut largest) = (zeros, zeros, [zeros; 3]);
        let mut add = |k: usize, y: Complex<T>, p: Complex<T>| {
            let e = y - p;
            let squares = [y, p, e].map(|z| z.re * z.re + z.im * z.im);
            power[k] += squares[0];
            error[k] += squares[2];
            for (largest, square) in largest.iter_mut().zip(squares) {
                largest[k] = if largest[k] > square { largest[k] } else { square };
            }
        };
        let (mut ys, mut ps) = (rx.chunks_exact(LANES), prediction.chunks_exact(LANES));
        for (y, p) in ys.by_ref().zip(ps.by_ref()) {
            (0..LANES).for_each(|k| add(k, y[k], p[k]));
        }
        ys.remainder().iter().zip(ps.remainder()).enumerate().for_each(|(k, (y, p))| add(k, *y, *p));
        let sum = |lanes: [T; LANES]| lanes.into_iter().map(Real::wide).sum();
        Self { power: sum(power), error: sum(error), largest: largest.map(|lanes| lanes.into_iter().map(Real::wide).fold(0.0, f64::max)) }
    }
}

fn square<T: Real>(z: Complex<T>) -> f64 {
    z.re.wide() * z.re.wide() + z.im.wide() * z.im.wide()
}
