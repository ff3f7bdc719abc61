//! What was sent.

use num_complex::Complex32;

use super::line::Line;

/// What was sent.
#[derive(Clone, Debug)]
pub(super) enum Reference {
    Stream(Line),
    Frame(Vec<Complex32>),
}

impl Reference {
    /// Whether all of it can be looked at at any time.
    pub(super) fn keeps(&self) -> bool {
        matches!(self, Self::Frame(_))
    }

    pub(super) fn fill(&self, time: i64, out: &mut [Complex32]) {
        match self {
            Self::Stream(line) => line.fill(time, out),
            Self::Frame(frame) => {
                let mut at = time.rem_euclid(frame.len() as i64) as usize;
                let mut rest = out;
                while !rest.is_empty() {
                    let n = rest.len().min(frame.len() - at);
                    let (now, later) = rest.split_at_mut(n);
                    now.copy_from_slice(&frame[at..at + n]);
                    (rest, at) = (later, 0);
                }
            }
        }
    }
}
