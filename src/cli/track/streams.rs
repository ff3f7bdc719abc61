//! The start of the two streams, as the filters see them: for commands that look at them without a flowgraph.

use std::path::PathBuf;

use num_complex::Complex32;

use super::{Args, input::Align, input::Input};
use crate::{Error, Result, iq};

/// Where the streams come from and how they are brought into step, as `track`'s options of the same names.
pub(crate) struct Source {
    pub(crate) tx: Option<PathBuf>,
    pub(crate) rx: Option<PathBuf>,
    pub(crate) format: Option<iq::Format>,
    pub(crate) align: Align,
    pub(crate) trim: bool,
    pub(crate) preset: Option<String>,
    pub(crate) taps: usize,
    pub(crate) advance: Option<usize>,
    pub(crate) equalize: bool,
}

/// What a filter would be fed: input and target of the same length.
pub(crate) struct Streams {
    pub(crate) input: Vec<Complex32>,
    pub(crate) target: Vec<Complex32>,
    /// Taps that reach ahead: the input is that much early.
    pub(crate) advance: usize,
    /// Pairs that there are; `input` and `target` hold the first of them.
    pub(crate) total: u64,
}

impl Source {
    /// The first samples, up to some ten thousand.
    pub(crate) fn read(self) -> Result<Streams> {
        if self.taps == 0 || self.taps > 4096 {
            return Err(Error::parameter("taps", "between 1 and 4096", self.taps));
        }
        let args = Args {
            tx: self.tx,
            rx: self.rx,
            format: self.format,
            align: self.align,
            trim: self.trim,
            preset: self.preset,
            taps: self.taps,
            advance: self.advance,
            equalize: self.equalize,
            ..Args::bare()
        };
        let survey = Input::open(&args)?.survey(&args)?;
        let (mut input, mut target) = (survey.input, survey.target);
        input.drain(..survey.advance.min(input.len()));
        target.truncate(input.len());
        input.truncate(target.len());
        Ok(Streams { input, target, advance: survey.advance, total: survey.total })
    }
}
