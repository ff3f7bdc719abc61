//! What is known about two streams, and the pairs that come out.

use num_complex::Complex32;

use crate::iq::align::Alignment;

/// How far the streams are in step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The place has not been found yet.
    #[default]
    Searching,
    /// The last probe was as it should be; or nobody looks, because the place was told.
    Locked,
    /// The last probe was not: pairs are held back until it is clear what happened.
    Doubtful,
    /// It was not for too long: the place is searched for again.
    Lost,
}

/// What is known about two streams.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// How far they are in step.
    pub state: State,
    /// What the last search found, or what was told.
    pub alignment: Option<Alignment>,
    /// How many samples the received stream is late, missing samples counted; within a period where the reference is a repeated frame.
    pub delay_samples: f64,
    /// Carrier offset in cycles a sample.
    pub cfo: f64,
    /// How much more often the receiver samples than the transmitter, in parts per million.
    pub clock_ppm: f64,
    /// Amplitude of what the reference explains of the received samples over that of the reference.
    pub gain: f64,
    /// Pairs that were put out.
    pub pairs: u64,
    /// Samples of either stream that have never arrived.
    pub gap_samples: u64,
    /// Pairs around gaps that were left out because the received sample would be interpolated from missing ones.
    pub rim_samples: u64,
    /// Received samples that were left out because nobody knows their partners.
    pub doubtful_samples: u64,
    /// How often the place has moved without a word from the receiver.
    pub slips: u64,
    /// How often the place was found by a search.
    pub searches: u64,
    /// Why the last search failed, until one succeeds.
    pub failure: Option<String>,
}

/// Samples that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    /// What was sent.
    pub tx: Vec<Complex32>,
    /// What was received, without delay and carrier offset.
    pub rx: Vec<Complex32>,
    /// Where pairs are left out: before which index, and how many (0 when nobody knows).
    pub gaps: Vec<(usize, u64)>,
    /// From which index on the pairs are which samples of the two streams, counted as they were pushed.
    pub origins: Vec<(usize, u64, u64)>,
}

impl Pairs {
    /// Empty again.
    pub(crate) fn clear(&mut self) {
        self.tx.clear();
        self.rx.clear();
        self.gaps.clear();
        self.origins.clear();
    }
}
