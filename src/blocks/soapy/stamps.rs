//! What time stamps tell about a stream: evidence, to be averaged.

/// Stamps that come closer than this many samples to the last one that was averaged only serve to find jumps.
const APART: u64 = 1024;

/// Stamps over which the line is fitted; older ones are forgotten.
const MEMORY: f64 = 512.0;

/// The first stamps, whose scatter has to be found out.
const FIRST: usize = 9;

/// Samples of a gap that one of the first stamps tells: at once where it is too large for most scatter, else when they are all there.
fn believed(off: f64) -> f64 {
    if off.abs() >= 3.0 { off.round() } else { 0.0 }
}

/// What a stamp says about the samples before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing is missing.
    Whole,
    /// So many samples are missing.
    Gap(u64),
    /// So many fewer are missing than was said before: the stamp that said so was off.
    Fewer(u64),
    /// The clock was set back.
    Back,
}

/// A straight line through time stamps: when the next sample is due, and how far stamps scatter about that.
///
/// A stamp that lies further off than the others scatter (and than half a sample) tells a gap at once. When the next one is back on the line, it was scatter, and it is taken back. A gap that is as
/// small as the scatter is told by the mean of several.
pub(super) struct Stamps {
    period_ns: f64,
    base_ns: i64,
    line: Option<Line>,
}

struct Line {
    /// When the next sample is due, in ns after the base.
    next_ns: f64,
    /// How much longer a sample lasts by the stamps' clock than by the nominal rate, as a share.
    drift: f64,
    /// Stamps that were averaged, and samples since the last of them.
    seen: f64,
    since: u64,
    /// Mean and mean square of how far the last stamps were off, in samples.
    mean: f64,
    scatter: f64,
    /// How far each of the first stamps was off from the one before, and what the last of them was off.
    first: Vec<f64>,
    before: f64,
    /// Stamps in a row whose mean was off.
    doubt: u32,
    /// By how many samples the last stamp moved the line.
    moved: f64,
}

impl Stamps {
    pub(super) fn new(rate: f64) -> Self {
        Self { period_ns: 1e9 / rate, base_ns: 0, line: None }
    }

    /// When the next sample is due by the stamps so far.
    pub(super) fn next_ns(&self) -> Option<i64> {
        self.line.as_ref().map(|line| self.base_ns + line.next_ns.round() as i64)
    }

    /// So many samples have come.
    pub(super) fn advance(&mut self, samples: usize) {
        if let Some(line) = &mut self.line {
            line.next_ns += samples as f64 * self.period_ns * (1.0 + line.drift);
            line.since += samples as u64;
        }
    }

    /// The next sample came with a stamp.
    pub(super) fn stamp(&mut self, time_ns: i64) -> Verdict {
        let Some(line) = &mut self.line else {
            self.base_ns = time_ns;
            let first = Vec::with_capacity(FIRST);
            self.line = Some(Line {
                next_ns: 0.0,
                drift: 0.0,
                seen: 1.0,
                since: 0,
                mean: 0.0,
                scatter: 0.0,
                first,
                before: 0.0,
                doubt: 0,
                moved: 0.0,
            });
            return Verdict::Whole;
        };
        let time_ns = (time_ns.saturating_sub(self.base_ns)) as f64;
        let off = (time_ns - line.next_ns) / self.period_ns;
        if line.first.len() < FIRST {
            return line.begin(off, self.period_ns);
        }
        let moved = std::mem::take(&mut line.moved);
        if moved != 0.0 && (off + moved).abs() < 0.5 * moved.abs() {
            // Back where it was: an outlier, three standard deviations or so.
            line.next_ns -= moved * self.period_ns;
            line.scatter = line.scatter.max(moved * moved / 9.0);
            return if moved > 0.0 { Verdict::Fewer(moved as u64) } else { Verdict::Whole };
        }
        let sigma = line.scatter.sqrt() * (1.0 + 8.0 / line.seen);
        if off.abs() > (6.0 * sigma).max(0.5) {
            // By whole samples: what is left over is scatter, and its mean corrects the count where that was too large for one stamp.
            line.moved = off.round();
            (line.mean, line.doubt) = (0.0, 0);
            line.next_ns += line.moved * self.period_ns;
            return if off > 0.0 { Verdict::Gap(line.moved as u64) } else { Verdict::Back };
        }
        if line.since < APART {
            return Verdict::Whole;
        }
        line.mean += (off - line.mean) / 6.0;
        if line.seen >= 8.0 && line.mean.abs() > (0.9 * sigma).max(0.3) {
            // A gap as small as the scatter, perhaps: nothing is learned from it before the mean has come to rest.
            line.doubt += 1;
            if line.doubt < 10 {
                line.since = 0;
                return Verdict::Whole;
            }
            let slip = line.mean.round();
            if slip != 0.0 {
                line.next_ns += slip * self.period_ns;
                (line.mean, line.doubt) = (line.mean - slip, 0);
                return if slip > 0.0 { Verdict::Gap(slip as u64) } else { Verdict::Fewer(-slip as u64) };
            }
        }
        line.doubt = 0;
        line.scatter += (off * off - line.scatter) / line.seen.min(64.0);
        // The gains of a least-squares line over the stamps so far, and over the last MEMORY of them from then on.
        let n = line.seen.min(MEMORY) + 1.0;
        line.next_ns += 2.0 * (2.0 * n - 1.0) / (n * (n + 1.0)) * off * self.period_ns;
        line.drift = (line.drift + 6.0 / (n * (n + 1.0)) * off / line.since as f64).clamp(-1e-3, 1e-3);
        line.seen += 1.0;
        line.since = 0;
        Verdict::Whole
    }
}

impl Line {
    /// Takes one of the first stamps, and finds out from the last of them how far they can be trusted.
    fn begin(&mut self, off: f64, period_ns: f64) -> Verdict {
        self.first.push(off - self.before);
        if self.first.len() < FIRST {
            let moved = believed(off);
            (self.before, self.next_ns) = (off - moved, self.next_ns + moved * period_ns);
            return match moved {
                0.0 => Verdict::Whole,
                m if m > 0.0 => Verdict::Gap(m as u64),
                _ => Verdict::Back,
            };
        }
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        // About their own median: steps that are all alike are gaps, and no scatter.
        let middle = median(self.first.clone());
        let spread = median(self.first.iter().map(|step| (step - middle).abs()).collect());
        // The median of a normal distribution's absolute values is 0.67 of its standard deviation, and a step is the difference of two stamps.
        let sigma = spread / (0.67 * std::f64::consts::SQRT_2);
        self.scatter = sigma * sigma;
        // What was told before and was nothing but scatter is taken back.
        let (mut residue, mut shifted, mut told, mut truly, mut missing) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (n, step) in self.first.iter().enumerate() {
            if n + 1 < FIRST {
                let moved = believed(residue + step);
                (residue, shifted, told) = (residue + step - moved, shifted + moved, told + moved.max(0.0));
            }
            let real = if step.abs() > (6.0 * sigma).max(0.5) { step.round() } else { 0.0 };
            (truly, missing) = (truly + real, missing + real.max(0.0));
        }
        self.next_ns += (truly - shifted) * period_ns;
        match missing - told {
            0.0 => Verdict::Whole,
            more if more > 0.0 => Verdict::Gap(more as u64),
            fewer => Verdict::Fewer(-fewer as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::random::{Draws, Random};

    const RATE: f64 = 3e6;

    /// Reads of `length` samples; before those in `gaps` so many samples are missing. Gives how many were told to be missing, and after which read the last verdict came.
    fn watch(reads: usize, length: usize, jitter: f64, ppm: f64, every: usize, gaps: &[(usize, u64)]) -> (i64, usize) {
        let mut random = Random::new(5, Draws::Dropper);
        let mut stamps = Stamps::new(RATE);
        let (mut sample, mut told, mut last) = (0u64, 0, 0);
        for read in 0..reads {
            sample += gaps.iter().filter(|g| g.0 == read).map(|g| g.1).sum::<u64>();
            if read.is_multiple_of(every) {
                let time = (sample as f64 * (1.0 + 1e-6 * ppm) + jitter * random.real()) * 1e9 / RATE;
                let verdict = stamps.stamp(7_000_000_000 + time.round() as i64);
                match verdict {
                    Verdict::Gap(n) => told += n as i64,
                    Verdict::Fewer(n) => told -= n as i64,
                    Verdict::Whole | Verdict::Back => {}
                }
                last = if verdict == Verdict::Whole { last } else { read };
            }
            stamps.advance(length);
            sample += length as u64;
        }
        (told, last)
    }

    #[test]
    fn clean_stamps_tell_every_gap_to_the_sample_at_once() {
        for length in [17, 362, 8192] {
            for every in [1, 2, 5] {
                let gaps: Vec<_> = (0..40).map(|n| (10 + 40 * n, 1 + (n as u64 * n as u64) % 900)).collect();
                let expected: u64 = gaps.iter().map(|g| g.1).sum();
                assert_eq!(watch(2000, length, 0.0, 0.0, every, &gaps), (expected as i64, 1570), "{length}, {every}");
            }
        }
    }

    #[test]
    fn a_gap_before_every_stamp_is_no_scatter() {
        let gaps: Vec<_> = (1..500).map(|read| (read, 777)).collect();
        assert_eq!(watch(500, 4000, 0.0, 0.0, 1, &gaps), (499 * 777, 499));
    }

    #[test]
    fn stamps_that_scatter_tell_no_gap_where_there_is_none() {
        for (length, jitter, ppm) in [(8192, 0.3, 0.0), (362, 0.3, 0.0), (8192, 40.0, 0.0), (2000, 0.05, 20.0), (8192, 0.3, -30.0)] {
            let (told, last) = watch(20_000, length, jitter, ppm, 1, &[]);
            // The first few have nothing to be compared with, and what they tell is no better than they are.
            assert!(told.abs() <= jitter as i64 && last < 400, "{length}, {jitter}, {ppm}: {told}, {last}");
        }
    }

    #[test]
    fn stamps_that_scatter_count_gaps_to_the_sample_in_the_mean() {
        for gap in [1, 2, 3, 4, 50, 300] {
            let gaps: Vec<_> = (0..20).map(|n| (300 + 150 * n, gap)).collect();
            assert_eq!(watch(4000, 4096, 0.3, 0.0, 1, &gaps).0, 20 * gap as i64, "{gap}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_is_told_apart() {
        let mut stamps = Stamps::new(1e6);
        for read in 0..100 {
            assert_eq!(stamps.stamp(1_000_000 * read), Verdict::Whole);
            stamps.advance(1000);
        }
        assert_eq!(stamps.stamp(99_500_000), Verdict::Back);
        assert_eq!(stamps.next_ns(), Some(99_500_000));
        assert_eq!(stamps.stamp(99_503_000), Verdict::Gap(3));
    }
}
