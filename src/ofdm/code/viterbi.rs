//! The most likely bits, by Viterbi's algorithm over all 64 states.

use super::convolution::{STATES, output};
use crate::simd::{Dispatch, Level, Op, Vector};

/// Soft decisions in, bits out. Memory is kept from one packet to the next.
#[derive(Clone, Debug)]
pub(super) struct Viterbi {
    level: Level,
    /// For each step one bit a state: whether the odd predecessor won.
    choices: Vec<u64>,
}

/// Half the states: butterfly `n` leads from the states 2n and 2n + 1 to n (a bit 0) and n + 32 (a bit 1).
pub(super) const HALF: usize = STATES / 2;

/// Signs of the two soft bits on the way from state 2n with a bit 0. Both generators reach from the newest bit to the oldest, so that the other three ways of a
/// butterfly have these signs or their opposites.
pub(super) const SIGNS: [[f32; HALF]; 2] = {
    let mut signs = [[1.0; HALF]; 2];
    let mut n = 0;
    while n < HALF {
        let pair = output(2 * n as u32, 0);
        if pair & 1 == 1 {
            signs[0][n] = -1.0;
        }
        if pair & 2 == 2 {
            signs[1][n] = -1.0;
        }
        n += 1;
    }
    signs
};

/// Steps after which the metrics are brought back to around zero: rounding stays far below one soft bit.
const RENEW: usize = 256;

impl Viterbi {
    pub(super) fn new() -> Self {
        Self { level: Level::current(), choices: Vec::new() }
    }

    /// The bits, one to a byte, whose code agrees best with `soft`, two values a bit, positive for a 0. The encoder starts in state 0 and ends in it.
    pub(super) fn decode(&mut self, soft: &[f32], bits: &mut [u8]) {
        let steps = soft.len() / 2;
        self.choices.clear();
        self.choices.resize(steps, 0);
        f32::dispatch(self.level, Forward { soft, choices: &mut self.choices });
        let mut state = 0;
        for (bit, choice) in bits[..steps].iter_mut().zip(&self.choices).rev() {
            *bit = (state >> (STATES.ilog2() - 1)) as u8;
            state = state << 1 & (STATES - 1) | (choice >> state & 1) as usize;
        }
    }
}

struct Forward<'a> {
    soft: &'a [f32],
    choices: &'a mut [u64],
}

impl Op<f32> for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f32>>(self) {
        let mut metrics = [f32::MIN / 4.0; STATES];
        metrics[0] = 0.0;
        for (step, (pair, choice)) in self.soft.chunks_exact(2).zip(self.choices).enumerate() {
            let (first, second) = (V::splat(pair[0]), V::splat(pair[1]));
            let mut next = [0.0; STATES];
            let mut odd_wins = 0;
            let mut n = 0;
            while n < HALF {
                let gain = first.mul(V::read(&SIGNS[0], n)).add(second.mul(V::read(&SIGNS[1], n)));
                let (even, odd) = V::read(&metrics, 2 * n).unzip(V::read(&metrics, 2 * n + V::LANES));
                let (a, b) = (even.add(gain), odd.sub(gain));
                let (c, d) = (even.sub(gain), odd.add(gain));
                b.max(a).write(&mut next, n);
                d.max(c).write(&mut next, n + HALF);
                odd_wins |= a.less(b) << n | c.less(d) << (n + HALF);
                n += V::LANES;
            }
            if step % RENEW == RENEW - 1 {
                let best = next.iter().fold(f32::MIN, |best, &m| if m > best { m } else { best });
                next.iter_mut().for_each(|m| *m -= best);
            }
            metrics = next;
            *choice = odd_wins;
        }
    }
}
