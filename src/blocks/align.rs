//! Two streams brought into step.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futuresdr::runtime::{buffer::Tags, dev::prelude::*};

use super::{Fault, gap, gap_length, message};
use crate::iq::align::{Alignment, Corrector, Options, align};

/// Samples that may wait for their partner.
const AHEAD: usize = super::BUFFER;

/// Brings a received stream into step with the transmitted one: delay, carrier offset, gain, DC, inversion.
///
/// It looks at the beginning of both streams (or is told the [`Alignment`]), then passes `tx` on and corrects `rx`. Where samples are missing on either side, their
/// partners are left out, so that the streams stay in step.
///
/// # Stream Inputs
///
/// `tx`, `rx`.
///
/// # Stream Outputs
///
/// `aligned_tx`, `aligned_rx`: sample by sample partners. Each has its input's tags; behind a hole in either both have a [`gap`] tag.
///
/// # Message Inputs
///
/// No message inputs.
///
/// # Message Outputs
///
/// `alignment`: a map, once it is found: `delay` (samples), `cfo` (cycles a sample), `gain`, `phase`, `inverted`, `confidence`, `explained`, `advance`.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::{NullSink, VectorSource}, prelude::*};
/// use kaflow::{blocks::Align, iq::align::Options, ofdm::{Config, Source, Transmitter}};
///
/// # fn main() -> Result<()> {
/// let mut tx = vec![Complex32::ZERO; 20_000];
/// Transmitter::new(Config::preset("wifi")?, Source::Continuous)?.fill(&mut tx);
/// let rx = [&vec![Complex32::new(0.0, 0.0); 123], &tx[..]].concat();
/// let (tx, rx, align) = (VectorSource::<Complex32>::new(tx), VectorSource::<Complex32>::new(rx), Align::new(Options::default()));
/// let (a, b) = (NullSink::<Complex32>::new(), NullSink::<Complex32>::new());
/// let mut fg = Flowgraph::new();
/// connect!(fg, tx > tx.align; rx > rx.align; align.aligned_tx > a; align.aligned_rx > b);
/// let fg = Runtime::new().run(fg)?;
/// assert_eq!(align.get(&fg)?.alignment().unwrap().whole(), 123);
/// assert_eq!(a.get(&fg)?.n_received(), 20_000);
/// # Ok(()) }
/// ```
#[derive(Block)]
#[message_outputs(alignment)]
pub struct Align<I = DefaultCpuReader<Complex32>, O = DefaultCpuWriter<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    #[input]
    tx: I,
    #[input]
    rx: I,
    #[output]
    aligned_tx: O,
    #[output]
    aligned_rx: O,
    options: Options,
    alignment: Option<Alignment>,
    correction: Option<Correction>,
    sent: Side,
    received: Side,
    lead: (u64, u64),
    skip: u64,
    /// Samples left out since the last pair that was put out, and altogether.
    missing: u64,
    lost: Arc<AtomicU64>,
    fault: Fault,
}

/// One of the streams, on a time line in which holes are filled: samples, and whether they are real.
#[derive(Default)]
struct Side {
    line: VecDeque<(Complex32, bool)>,
    /// Samples taken in, with and without those that fill holes; and how many are gone from the line.
    taken: u64,
    real: u64,
    gone: u64,
    /// Real samples whose tags were seen to.
    noted: u64,
    /// Missing samples that are still to be filled in before the next one.
    owed: u64,
    tags: VecDeque<(u64, Tag)>,
}

impl Side {
    /// Takes in samples until the line holds `most`; gives how many of `input` went in.
    fn take(&mut self, input: &[Complex32], tags: &[ItemTag], most: usize) -> usize {
        let mut at = 0;
        while at < input.len() {
            if self.noted <= self.real {
                tags.iter().filter(|t| t.index == at).for_each(|t| self.note(&t.tag));
                self.noted = self.real + 1;
            }
            let fill = self.owed.min(most.saturating_sub(self.line.len()) as u64);
            self.line.extend(std::iter::repeat_n((Complex32::new(0.0, 0.0), false), fill as usize));
            self.taken += fill;
            self.owed -= fill;
            let room = most.saturating_sub(self.line.len());
            if room == 0 {
                break;
            }
            let next_tag = tags.iter().map(|t| t.index).filter(|&i| i > at).min().unwrap_or(input.len());
            let end = next_tag.min(input.len()).min(at.saturating_add(room));
            self.line.extend(input[at..end].iter().map(|&z| (z, true)));
            self.taken += (end - at) as u64;
            self.real += (end - at) as u64;
            self.noted = self.real;
            at = end;
        }
        at
    }

    fn note(&mut self, tag: &Tag) {
        match gap_length(tag) {
            Some(missing) if missing > 0 => self.owed += missing as u64,
            _ => self.tags.push_back((self.taken + self.owed, tag.clone())),
        }
    }

    fn pop(&mut self) -> Option<(Complex32, bool)> {
        let front = self.line.pop_front()?;
        self.gone += 1;
        Some(front)
    }

    fn samples(&self) -> Vec<Complex32> {
        self.line.iter().map(|(z, _)| *z).collect()
    }

    /// Drops the tags of all samples that are gone.
    fn forget(&mut self) {
        while self.tags.front().is_some_and(|(at, _)| *at < self.gone) {
            self.tags.pop_front();
        }
    }

    /// Puts the tags of all samples that are gone on the output.
    fn tag(&mut self, index: usize, output: &mut Tags<'_>) {
        while self.tags.front().is_some_and(|(at, _)| *at < self.gone) {
            if let Some((_, tag)) = self.tags.pop_front() {
                output.add_tag(index, tag);
            }
        }
    }
}

/// The correction of `rx`, once the alignment is known.
struct Correction {
    /// None where only whole samples are shifted.
    corrector: Option<Corrector>,
    /// Samples at the start that have no partner.
    skip_tx: u64,
    skip_rx: u64,
    /// Which of the samples inside the corrector are real.
    inside: VecDeque<bool>,
    corrected: VecDeque<(Complex32, bool)>,
    scratch: Vec<Complex32>,
    out: Vec<Complex32>,
    ended: bool,
}

impl Correction {
    fn new((skip_tx, skip_rx): (u64, u64), corrector: Option<Corrector>) -> Self {
        Self {
            corrector,
            skip_tx,
            skip_rx,
            inside: VecDeque::new(),
            corrected: VecDeque::new(),
            scratch: Vec::new(),
            out: Vec::new(),
            ended: false,
        }
    }

    /// Moves what waits in `line` through the corrector.
    fn correct(&mut self, line: &mut VecDeque<(Complex32, bool)>, ended: bool) {
        let n = line.len().min(AHEAD.saturating_sub(self.corrected.len()));
        self.scratch.clear();
        self.scratch.extend(line.iter().take(n).map(|(z, _)| *z));
        self.inside.extend(line.drain(..n).map(|(_, real)| real));
        match &mut self.corrector {
            Some(corrector) => corrector.push(&self.scratch, &mut self.out),
            None => self.out.append(&mut self.scratch),
        }
        if ended
            && line.is_empty()
            && !std::mem::replace(&mut self.ended, true)
            && let Some(corrector) = &mut self.corrector
        {
            corrector.finish(&mut self.out);
        }
        for z in self.out.drain(..) {
            let real = self.inside.pop_front().unwrap_or(false);
            self.corrected.push_back((z, real));
        }
    }
}

impl Align {
    /// Finds the alignment itself, within `options`.
    pub fn new(options: Options) -> Self {
        Self::with_buffers(options)
    }

    /// Applies an alignment that is known.
    pub fn known(alignment: Alignment) -> Self {
        Self { alignment: Some(alignment), ..Self::with_correction(Options::default(), Some(correction(&alignment))) }
    }

    /// Shifts by whole samples, positive when `rx` is late, and changes nothing else.
    pub fn delay(samples: i64) -> Self {
        Self::delay_with_buffers(samples)
    }
}

fn correction(alignment: &Alignment) -> Correction {
    Correction::new(alignment.skip(), Some(alignment.corrector()))
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> Align<I, O> {
    /// Finds the alignment within `options`; buffers of any kind.
    pub fn with_buffers(options: Options) -> Self {
        Self::with_correction(options, None)
    }

    /// As [`delay`](Align::delay), with buffers of any kind.
    pub fn delay_with_buffers(samples: i64) -> Self {
        let skip = (samples.min(0).unsigned_abs(), samples.max(0).unsigned_abs());
        Self::with_correction(Options::default(), Some(Correction::new(skip, None)))
    }

    fn with_correction(options: Options, correction: Option<Correction>) -> Self {
        let (mut aligned_tx, mut aligned_rx) = (O::default(), O::default());
        aligned_tx.set_min_buffer_size_in_items(super::BUFFER);
        aligned_rx.set_min_buffer_size_in_items(super::BUFFER);
        Self {
            tx: I::default(),
            rx: I::default(),
            aligned_tx,
            aligned_rx,
            options,
            correction,
            alignment: None,
            lead: (0, 0),
            skip: 0,
            lost: Arc::default(),
            sent: Side::default(),
            received: Side::default(),
            missing: 0,
            fault: Fault::default(),
        }
    }

    /// Lets one stream run ahead: drops `tx` and `rx` samples at the start, beyond what the alignment drops. A filter whose taps reach `n` samples ahead needs
    /// its input `n` samples early.
    pub fn lead(mut self, tx: u64, rx: u64) -> Self {
        self.lead = (tx, rx);
        if let Some(correction) = &mut self.correction {
            correction.skip_tx += tx;
            correction.skip_rx += rx;
        }
        self
    }

    /// Leaves out the first `pairs` of what would come out: to go on where an earlier run stopped.
    pub fn skip(mut self, pairs: u64) -> Self {
        self.skip = pairs;
        self
    }

    /// Counts the samples that were left out because they or their partners were missing, while the block runs.
    pub fn lost(&self) -> Arc<AtomicU64> {
        self.lost.clone()
    }

    /// What was found or told.
    pub fn alignment(&self) -> Option<&Alignment> {
        self.alignment.as_ref()
    }

    /// A handle that says why the block failed, if it did.
    pub fn fault(&self) -> Fault {
        self.fault.clone()
    }

    /// Looks for the alignment once there is enough to look at; gives the message that tells of it.
    fn search(&mut self, tx_ended: bool, rx_ended: bool) -> crate::Result<Option<Pmt>> {
        let enough = |side: &Side, ended: bool| ended || side.line.len() >= self.options.samples;
        if self.correction.is_some() || !enough(&self.sent, tx_ended) || !enough(&self.received, rx_ended) {
            return Ok(None);
        }
        let a = align(&self.sent.samples(), &self.received.samples(), self.options)?;
        let mut correction = correction(&a);
        correction.skip_tx += self.lead.0;
        correction.skip_rx += self.lead.1;
        self.correction = Some(correction);
        self.alignment = Some(a);
        Ok(Some(message::map([
            ("delay", Pmt::F64(a.delay)),
            ("cfo", Pmt::F64(a.cfo)),
            ("gain", Pmt::F64(a.gain)),
            ("phase", Pmt::F64(a.phase)),
            ("inverted", Pmt::Bool(a.inverted)),
            ("confidence", Pmt::F64(a.confidence)),
            ("explained", Pmt::F64(a.explained)),
            ("advance", Pmt::Usize(a.advance)),
        ])))
    }

    /// Puts out pairs of real samples; gives how many.
    fn emit(&mut self) -> usize {
        let Some(correction) = &mut self.correction else { return 0 };
        let (tx, mut tx_tags) = self.aligned_tx.slice_with_tags();
        let (rx, mut rx_tags) = self.aligned_rx.slice_with_tags();
        let (room, mut n) = (tx.len().min(rx.len()), 0);
        while correction.skip_tx > 0 && self.sent.pop().is_some() {
            correction.skip_tx -= 1;
        }
        while correction.skip_rx > 0 && correction.corrected.pop_front().is_some() {
            correction.skip_rx -= 1;
            self.received.gone += 1;
        }
        while n < room && !self.sent.line.is_empty() && !correction.corrected.is_empty() {
            let (Some((x, x_real)), Some((y, y_real))) = (self.sent.pop(), correction.corrected.pop_front()) else { break };
            self.received.gone += 1;
            if !(x_real && y_real) {
                self.missing += 1;
                self.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if self.skip > 0 {
                // Tags and gaps of what is left out were seen to by the earlier run.
                (self.skip, self.missing) = (self.skip - 1, 0);
                self.sent.forget();
                self.received.forget();
                continue;
            }
            (tx[n], rx[n]) = (x, y);
            self.sent.tag(n, &mut tx_tags);
            self.received.tag(n, &mut rx_tags);
            if self.missing > 0 {
                tx_tags.add_tag(n, gap(self.missing as usize));
                rx_tags.add_tag(n, gap(self.missing as usize));
                self.missing = 0;
            }
            n += 1;
        }
        n
    }
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> Kernel for Align<I, O> {
    async fn work(&mut self, io: &mut WorkIo, mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let most = if self.correction.is_some() { AHEAD } else { self.options.samples.max(AHEAD) };
        let (tx, tx_tags) = self.tx.slice_with_tags();
        let (rx, rx_tags) = self.rx.slice_with_tags();
        let n_tx = self.sent.take(tx, tx_tags, most);
        let n_rx = self.received.take(rx, rx_tags, most);
        let (tx_empty, rx_empty) = (n_tx == tx.len(), n_rx == rx.len());
        let (tx_ended, rx_ended) = (tx_empty && self.tx.finished(), rx_empty && self.rx.finished());
        self.tx.consume(n_tx);
        self.rx.consume(n_rx);

        let found = self.search(tx_ended, rx_ended).map_err(|e| self.fault.raise(e))?;
        if let Some(correction) = &mut self.correction {
            correction.correct(&mut self.received.line, rx_ended);
        }
        let n = self.emit();
        if n > 0 {
            self.aligned_tx.produce(n);
            self.aligned_rx.produce(n);
        }
        if let Some(found) = found {
            mo.post("alignment", found).await?;
        }
        if let Some(correction) = &self.correction {
            let tx_done = tx_ended && self.sent.line.is_empty();
            let rx_done = rx_ended && self.received.line.is_empty() && correction.corrected.is_empty();
            io.finished |= tx_done || rx_done;
        }
        io.call_again |= n > 0 || n_tx > 0 || n_rx > 0;
        Ok(())
    }
}
