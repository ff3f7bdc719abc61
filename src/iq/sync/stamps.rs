//! Time stamps of a receiver.

/// How much a new stamp moves the mean.
const WEIGHT: f64 = 1.0 / 16.0;

/// How the clock of a receiver lies to the samples that have come: a mean over its time stamps, which may be missing, rounded and late.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamps {
    offset: Option<f64>,
}

impl Stamps {
    /// A sample that is due at `time` has the stamp `stamp`, both in samples: gives how many samples are missing before it, as far as a stamp can say.
    ///
    /// A clock that is behind says nothing: it was set, or a stamp before it was wrong. A slip would be seen in the signal.
    pub(super) fn missing(&mut self, stamp: f64, time: i64) -> Option<u64> {
        if !stamp.is_finite() {
            return None;
        }
        let offset = self.offset.get_or_insert(stamp - time as f64);
        let late = stamp - time as f64 - *offset;
        if late >= 1.0 {
            // What is missing is going to be counted in the times to come.
            return Some(late.round() as u64);
        }
        *offset += if late <= -1.0 { late } else { WEIGHT * late };
        None
    }
}
