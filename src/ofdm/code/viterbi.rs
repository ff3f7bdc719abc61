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
        // Even and odd states apart, so that a butterfly's four ways are whole vectors; the compiler sees arrays of fixed length.
        let mut even = [f32::MIN / 4.0; HALF];
        let mut odd = [f32::MIN / 4.0; HALF];
        even[0] = 0.0;
        let mut next = [0.0; STATES];
        let mut odd_wins = [0u8; STATES];
        for (step, (pair, choice)) in self.soft.chunks_exact(2).zip(self.choices).enumerate() {
            for n in 0..HALF {
                let gain = pair[0] * SIGNS[0][n] + pair[1] * SIGNS[1][n];
                let (a, b) = (even[n] + gain, odd[n] - gain);
                let (c, d) = (even[n] - gain, odd[n] + gain);
                next[n] = if b > a { b } else { a };
                next[n + HALF] = if d > c { d } else { c };
                odd_wins[n] = u8::from(b > a);
                odd_wins[n + HALF] = u8::from(d > c);
            }
            if step % RENEW == RENEW - 1 {
                let best = next.iter().fold(f32::MIN, |best, &m| if m > best { m } else { best });
                next.iter_mut().for_each(|m| *m -= best);
            }
            for n in 0..HALF {
                even[n] = next[2 * n];
                odd[n] = next[2 * n + 1];
            }
            let mut bits = 0;
            for (i, eight) in odd_wins.chunks_exact(8).enumerate() {
                // Gathers the lowest bits of eight bytes in the highest byte of the product.
                let eight = u64::from_le_bytes([eight[0], eight[1], eight[2], eight[3], eight[4], eight[5], eight[6], eight[7]]);
                bits |= (eight.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
            }
            *choice = bits;
        }
    }
}
