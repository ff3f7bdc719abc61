//! What the code says of its own bits: the max-log form of the algorithm of Bahl, Cocke, Jelinek and Raviv (1974).

use super::convolution::STATES;
use super::viterbi::{HALF, SIGNS};
use crate::simd::{Dispatch, Level, Op, Vector};

/// Soft bits in, soft bits out.
#[derive(Clone, Debug)]
pub(super) struct Feedback {
    level: Level,
    /// Forward metrics before each step.
    forward: Vec<[f32; STATES]>,
}

/// A state that cannot be.
const NEVER: f32 = -1e9;

impl Feedback {
    pub(super) fn new() -> Self {
        Self { level: Level::current(), forward: Vec::new() }
    }

    /// Replaces soft bits, two for each step, by the log-likelihood ratios that all of them together give. The encoder starts and ends in state 0.
    pub(super) fn run(&mut self, soft: &mut [f32]) {
        self.forward.resize(soft.len() / 2, [0.0; STATES]);
        f32::dispatch(self.level, Both { soft, forward: &mut self.forward });
    }
}

struct Both<'a> {
    soft: &'a mut [f32],
    forward: &'a mut [[f32; STATES]],
}

#[inline(always)]
fn greater(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// The metric of each butterfly's first way.
#[inline(always)]
fn gains(pair: &[f32]) -> [f32; HALF] {
    let mut gains = [0.0; HALF];
    for n in 0..HALF {
        gains[n] = 0.5 * (pair[0] * SIGNS[0][n] + pair[1] * SIGNS[1][n]);
    }
    gains
}

#[inline(always)]
fn centre(metrics: &mut [f32; STATES]) {
    let mut best = NEVER;
    for n in 0..STATES {
        best = greater(best, metrics[n]);
    }
    for n in 0..STATES {
        metrics[n] -= best;
    }
}

impl Op<f32> for Both<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f32>>(self) {
        let mut now = [NEVER; STATES];
        now[0] = 0.0;
        for (pair, kept) in self.soft.chunks_exact(2).zip(self.forward.iter_mut()) {
            *kept = now;
            let gains = gains(pair);
            for n in 0..HALF {
                let (even, odd) = (kept[2 * n], kept[2 * n + 1]);
                now[n] = greater(even + gains[n], odd - gains[n]);
                now[n + HALF] = greater(even - gains[n], odd + gains[n]);
            }
            centre(&mut now);
        }
        let mut after = [NEVER; STATES];
        after[0] = 0.0;
        for (pair, forward) in self.soft.chunks_exact_mut(2).zip(self.forward.iter()).rev() {
            let gains = gains(pair);
            let mut before = [0.0; STATES];
            let mut best = [[NEVER; 2]; 2];
            for n in 0..HALF {
                let (even, odd) = (forward[2 * n], forward[2 * n + 1]);
                let same = greater(even + after[n], odd + after[n + HALF]) + gains[n];
                let opposite = greater(even + after[n + HALF], odd + after[n]) - gains[n];
                for bit in 0..2 {
                    let (zero, one) = if SIGNS[bit][n] > 0.0 { (same, opposite) } else { (opposite, same) };
                    best[bit] = [greater(best[bit][0], zero), greater(best[bit][1], one)];
                }
                before[2 * n] = greater(after[n] + gains[n], after[n + HALF] - gains[n]);
                before[2 * n + 1] = greater(after[n] - gains[n], after[n + HALF] + gains[n]);
            }
            centre(&mut before);
            after = before;
            pair[0] = best[0][0] - best[0][1];
            pair[1] = best[1][0] - best[1][1];
        }
    }
}
