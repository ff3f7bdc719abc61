//! What is to be transmitted, in the order of its time.

use std::collections::VecDeque;

use num_complex::Complex32;

use super::CHANNELS;

/// The samples of each transmit antenna, before they meet; none of one that is off.
pub(super) type Sent = [Vec<Complex32>; CHANNELS];

/// Samples that follow each other are kept in pieces of about so many, however few a program writes at a time: what goes over all pieces then stays quick.
const PIECE: usize = 1 << 16;

struct Burst {
    start: u64,
    length: usize,
    used: usize,
    samples: Sent,
}

impl Burst {
    fn end(&self) -> u64 {
        self.start + self.length as u64
    }

    /// The first sample that is left.
    fn next(&self) -> u64 {
        self.start + self.used as u64
    }
}

/// Samples that wait for their time.
#[derive(Default)]
pub(super) struct Bursts(VecDeque<Burst>);

impl Bursts {
    /// Puts samples behind the others; what follows the last one without a gap becomes a part of it.
    pub(super) fn queue(&mut self, start: u64, length: usize, samples: Sent) {
        let follows = |last: &&mut Burst| {
            let same = last.samples.iter().zip(&samples).all(|(a, b)| a.is_empty() == b.is_empty());
            same && last.end() == start && last.length < PIECE
        };
        match self.0.back_mut().filter(follows) {
            Some(last) => {
                last.length += length;
                last.samples.iter_mut().zip(&samples).for_each(|(last, samples)| last.extend_from_slice(samples));
            }
            None => self.0.push_back(Burst { start, length, used: 0, samples }),
        }
    }

    /// The sample behind the last one.
    pub(super) fn end(&self) -> Option<u64> {
        self.0.back().map(Burst::end)
    }

    /// Samples that are not due yet.
    pub(super) fn ahead(&self, now: u64) -> u64 {
        self.0.iter().map(|burst| burst.end().saturating_sub(now.max(burst.next()))).sum()
    }

    /// Plays the `count` samples from `position` on, with silence where there are none; an antenna that has none at all is left empty.
    pub(super) fn play(&mut self, position: u64, count: usize, out: &mut Sent) {
        let end = position + count as u64;
        for channel in out.iter_mut() {
            channel.clear();
        }
        while let Some(burst) = self.0.front_mut().filter(|burst| burst.next() < end) {
            let at = burst.next().saturating_sub(position) as usize;
            let n = (burst.length - burst.used).min(count - at);
            for (out, samples) in out.iter_mut().zip(&burst.samples).filter(|(_, samples)| !samples.is_empty()) {
                out.resize(at.max(out.len()), Complex32::ZERO);
                out.extend_from_slice(&samples[burst.used..burst.used + n]);
            }
            burst.used += n;
            if burst.used < burst.length {
                break;
            }
            self.0.pop_front();
        }
        for channel in out.iter_mut().filter(|channel| !channel.is_empty()) {
            channel.resize(count, Complex32::ZERO);
        }
    }

    /// Drops what was to be transmitted before `end`.
    pub(super) fn forget(&mut self, end: u64) {
        while let Some(burst) = self.0.front_mut().filter(|burst| burst.next() < end) {
            burst.used = ((end - burst.start) as usize).min(burst.length);
            if burst.used < burst.length {
                break;
            }
            self.0.pop_front();
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_two_antennas(from: usize, count: usize) -> Sent {
        let ramp = |part: f32| (from..from + count).map(|n| Complex32::new(n as f32, part)).collect();
        [ramp(0.0), Vec::new(), ramp(2.0), Vec::new()]
    }

    #[test]
    fn small_writes_are_few_pieces_and_play_as_one_large_one() {
        let mut bursts = Bursts::default();
        let total = 3 * PIECE;
        let mut at = 0;
        while at < total {
            let n = (1 + at % 37).min(total - at);
            bursts.queue(100 + at as u64, n, on_two_antennas(at, n));
            at += n;
        }
        assert!(bursts.0.len() <= 3, "{}", bursts.0.len());
        assert_eq!((bursts.end(), bursts.ahead(0), bursts.ahead(200)), (Some(100 + total as u64), total as u64, total as u64 - 100));
        let (mut out, mut position) = (Sent::default(), 40);
        while position < 100 + total as u64 {
            bursts.play(position, 1000, &mut out);
            assert!(out[1].is_empty() && out[3].is_empty());
            for antenna in [0, 2].into_iter().filter(|&antenna| !out[antenna].is_empty()) {
                for (n, z) in (position..).zip(&out[antenna]) {
                    let sent = (100..100 + total as u64).contains(&n);
                    let expected = if sent { Complex32::new((n - 100) as f32, antenna as f32) } else { Complex32::ZERO };
                    assert_eq!(*z, expected, "{n}");
                }
            }
            position += 1000;
        }
        assert!(bursts.0.is_empty());
    }

    #[test]
    fn what_is_forgotten_is_not_played_and_a_gap_stays_a_gap() {
        let mut bursts = Bursts::default();
        bursts.queue(0, 10, on_two_antennas(0, 10));
        bursts.queue(15, 5, on_two_antennas(15, 5));
        bursts.forget(7);
        assert_eq!(bursts.ahead(0), 8);
        let mut out = Sent::default();
        bursts.play(5, 20, &mut out);
        let parts: Vec<f32> = out[2].iter().map(|z| z.re).collect();
        assert_eq!(parts, [0., 0., 7., 8., 9., 0., 0., 0., 0., 0., 15., 16., 17., 18., 19., 0., 0., 0., 0., 0.]);
    }
}
