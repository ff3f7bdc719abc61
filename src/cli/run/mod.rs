//! What the commands that track have in common: their arguments, where the streams come from, which filters run, and what a run leaves behind.
//!
//! The run itself is [`flowgraphs::track`](crate::flowgraphs::track).

pub(super) mod arguments;
mod constellation;
pub(super) mod dashboard;
pub(super) mod filters;
pub(super) mod input;
pub(super) mod learned;
pub(super) mod memory;
mod pictures;
pub(super) mod report;
mod signal;

use std::sync::Arc;

use self::input::{Align, Survey};
use crate::blocks::{Stretch, Summary};
use crate::filter::registry::Settings;
use crate::flowgraphs::track::Outcome;
use crate::metrics::Row;
use crate::{Complex32, iq::align::Alignment, ofdm};

/// What is known of a run without looking at what it did.
pub(super) struct Subject {
    /// The streams in words.
    pub(super) source: String,
    /// Mean and peak of what was received in dB of full scale, and samples that were clipped; where full scale is known.
    pub(super) level: Option<(f64, f64, u64)>,
    /// Further facts by name, for the report and for JSON.
    pub(super) facts: Vec<(&'static str, serde_json::Value)>,
    pub(super) sample_rate: Option<f64>,
    /// Whether all imaginary parts are zero.
    pub(super) real: bool,
    pub(super) waveform: Option<Waveform>,
    /// How the streams are brought into step, and what a search found before the run.
    pub(super) align: Align,
    pub(super) alignment: Option<Alignment>,
    pub(super) taps: usize,
    /// Taps behind the predicted sample.
    pub(super) advance: usize,
    pub(super) skip: u64,
    pub(super) equalize: bool,
    /// Parameters of each filter of a channel.
    pub(super) settings: Vec<Settings>,
}

impl Subject {
    /// Streams as they were seen before the run.
    pub(super) fn new(survey: Survey, equalize: bool, skip: u64, settings: Vec<Settings>) -> Self {
        let Survey { source, sample_rate, real, waveform, align, alignment, taps, advance, .. } = survey;
        Self {
            source,
            level: None,
            facts: Vec::new(),
            sample_rate,
            real,
            waveform,
            align,
            alignment,
            taps,
            advance,
            skip,
            equalize,
            settings,
        }
    }
}

/// The OFDM waveform that was sent.
#[derive(Clone)]
pub(super) struct Waveform {
    pub(super) config: ofdm::Config,
    pub(super) sent: Sent,
}

/// In which order its symbols come.
#[derive(Clone)]
pub(super) enum Sent {
    /// One after the other.
    Symbols,
    /// In frames with a preamble.
    Frames,
    /// This frame over and over.
    Repeated(Vec<Complex32>),
}

/// What a filter has done.
pub(super) struct Tracked<'a> {
    pub(super) name: &'a str,
    pub(super) settings: &'a Settings,
    pub(super) summary: &'a Summary,
    pub(super) total: Row,
}

impl Tracked<'_> {
    pub(super) fn stretch(&self) -> Option<&Arc<Stretch>> {
        self.summary.stretch.as_ref()
    }
}

/// The filters, the best first; those that diverged last.
pub(super) fn ranked<'a>(subject: &'a Subject, outcome: &'a Outcome) -> Vec<Tracked<'a>> {
    let of_a_channel = subject.settings.len().max(1);
    let tracked = outcome.filters.iter().enumerate().map(|(n, (name, summary))| Tracked {
        name,
        settings: &subject.settings[n % of_a_channel],
        summary,
        total: summary.series.total(),
    });
    let mut filters: Vec<_> = tracked.collect();
    let key = |f: &Tracked| if f.total.nmse_db().is_nan() { f64::INFINITY } else { f.total.nmse_db() };
    filters.sort_by(|a, b| key(a).total_cmp(&key(b)));
    filters
}
