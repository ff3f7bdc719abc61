//! What real drivers do and good ones would not, on demand.

use crate::channel::random::{Draws, Random};

/// Quirks of a device. What happens after every so many samples (received ones, where nothing else is said) never happens at 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quirks {
    /// The receiver overflows and says so.
    pub overflow_every: u64,
    /// How many samples an overflow loses.
    pub overflow_length: u64,
    /// The clock jumps and nothing says so but the time stamps.
    pub jump_every: u64,
    /// By how many samples: those are lost. A negative jump loses none and sets the clock back.
    pub jump: i64,
    /// Samples are lost and nothing says so: time stamps go on as if they had come.
    pub slip_every: u64,
    /// How many samples a slip loses.
    pub slip: u64,
    /// Reads time out; what came meanwhile comes afterwards.
    pub stall_every: u64,
    /// How many reads time out then.
    pub stall: u64,
    /// After so many *transmitted* samples a packet reaches the device too late: it is not heard, and the status says so.
    pub late_every: u64,
    /// Samples in such a packet.
    pub late_length: u64,
    /// The device is gone after so many samples.
    pub vanish_after: u64,
    /// A read never returns after so many samples.
    pub hang_after: u64,
    /// Reads bring between one and so many samples, whatever was asked for; 0 brings all.
    pub short_reads: u64,
    /// Which reads have a time stamp.
    pub time_stamps: TimeStamps,
    /// Time stamps are off by so many samples (standard deviation).
    pub time_jitter: f64,
}

/// Which reads have a time stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimeStamps {
    /// All of them.
    #[default]
    All,
    /// Every other one.
    Alternate,
    /// None, and the device has no hardware time either.
    None,
}

impl TimeStamps {
    /// The names of the choices, in order.
    pub(super) const NAMES: [&str; 3] = ["all", "alternate", "none"];
    pub(super) const ALL: [Self; 3] = [Self::All, Self::Alternate, Self::None];
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            overflow_every: 0,
            overflow_length: 1000,
            jump_every: 0,
            jump: 0,
            slip_every: 0,
            slip: 1,
            stall_every: 0,
            stall: 3,
            late_every: 0,
            late_length: 4096,
            vanish_after: 0,
            hang_after: 0,
            short_reads: 0,
            time_stamps: TimeStamps::All,
            time_jitter: 0.0,
        }
    }
}

/// What strikes before a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Strike {
    pub(super) overflow: bool,
    pub(super) jump: bool,
    pub(super) slip: bool,
    pub(super) stall: bool,
    pub(super) vanish: bool,
    pub(super) hang: bool,
}

/// Where a receive stream stands among its quirks.
pub(super) struct Course {
    delivered: u64,
    /// What is due at this very sample has been dealt with.
    struck: bool,
    reads: u64,
    random: Random,
}

impl Course {
    pub(super) fn new(seed: u64) -> Self {
        Self { delivered: 0, struck: false, reads: 0, random: Random::new(seed, Draws::Dropper) }
    }

    /// What is due before the next sample; once.
    pub(super) fn strike(&mut self, quirks: &Quirks) -> Strike {
        let after = |n: u64| n > 0 && self.delivered >= n;
        let (vanish, hang) = (after(quirks.vanish_after), after(quirks.hang_after));
        if std::mem::replace(&mut self.struck, true) {
            return Strike { vanish, hang, ..Strike::default() };
        }
        let due = |every: u64| every > 0 && self.delivered > 0 && self.delivered.is_multiple_of(every);
        Strike {
            overflow: due(quirks.overflow_every),
            jump: due(quirks.jump_every),
            slip: due(quirks.slip_every),
            stall: due(quirks.stall_every),
            vanish,
            hang,
        }
    }

    /// How many samples the next read may bring: it ends where something strikes.
    pub(super) fn length(&mut self, quirks: &Quirks, wanted: usize) -> usize {
        let periodic = [quirks.overflow_every, quirks.jump_every, quirks.slip_every, quirks.stall_every];
        let next = periodic.into_iter().filter(|&every| every > 0).map(|every| every - self.delivered % every);
        let ends = [quirks.vanish_after, quirks.hang_after].into_iter().filter(|&n| n > self.delivered).map(|n| n - self.delivered);
        let short = if quirks.short_reads > 0 { 1 + (self.random.uniform() * quirks.short_reads as f64) as u64 } else { u64::MAX };
        let most = next.chain(ends).chain([short]).min().unwrap_or(u64::MAX);
        wanted.min(usize::try_from(most).unwrap_or(usize::MAX))
    }

    /// So many samples were read.
    pub(super) fn delivered(&mut self, count: usize) {
        self.delivered += count as u64;
        self.struck &= count == 0;
        self.reads += 1;
    }

    /// How far the time stamp of the next read is off, in samples; none where it has none.
    pub(super) fn stamp(&mut self, quirks: &Quirks) -> Option<f64> {
        let stamped = match quirks.time_stamps {
            TimeStamps::All => true,
            TimeStamps::Alternate => self.reads.is_multiple_of(2),
            TimeStamps::None => false,
        };
        stamped.then(|| if quirks.time_jitter > 0.0 { quirks.time_jitter * self.random.real() } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quirk_strikes_once_at_its_sample_and_reads_end_there() {
        let quirks = Quirks { overflow_every: 1000, slip_every: 1500, vanish_after: 3100, ..Quirks::default() };
        let mut course = Course::new(1);
        let mut found = Vec::new();
        let mut at = 0;
        loop {
            let strike = course.strike(&quirks);
            if strike != Strike::default() {
                found.push((at, strike.overflow, strike.slip, strike.vanish));
            }
            if strike.vanish {
                break;
            }
            assert_eq!(course.strike(&quirks), Strike::default(), "once");
            let n = course.length(&quirks, 400);
            course.delivered(n);
            at += n;
        }
        let expected = [(1000, true, false, false), (1500, false, true, false), (2000, true, false, false), (3000, true, true, false)];
        assert_eq!(found[..4], expected);
        assert_eq!(found[4..], [(3100, false, false, true)]);
    }

    #[test]
    fn short_reads_have_every_length_and_stamps_come_as_told() {
        let quirks = Quirks { short_reads: 5, time_stamps: TimeStamps::Alternate, ..Quirks::default() };
        let mut course = Course::new(7);
        let mut lengths = [0; 6];
        for read in 0..1000 {
            assert_eq!(course.stamp(&quirks).is_some(), read % 2 == 0);
            let n = course.length(&quirks, 100);
            lengths[n] += 1;
            course.delivered(n);
        }
        assert!(lengths[0] == 0 && lengths[1..].iter().all(|&n| n > 100), "{lengths:?}");
    }
}
