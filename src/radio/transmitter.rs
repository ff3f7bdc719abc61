//! From what a program writes to what is on the air: the transmit stream.

use std::time::{Duration, Instant};

use num_complex::Complex32;

use super::Direction;
use super::air::Event;
use super::bursts::Sent;
use super::device::{Failure, Radio, amplitude, lock};
use super::format::Format;
use super::quirks::Quirks;
use super::rate_change::RateChange;
use super::stream::{BLOCK, add};
use crate::channel::{Amplifier, Stage};

/// One transmit antenna: its amplifier, and the way from the transmitter's rate to that of the air where that is another.
struct Antenna {
    amplifier: Option<Amplifier>,
    drive_db: f64,
    filter: Option<RateChange>,
    scratch: Vec<Complex32>,
}

impl Antenna {
    /// Appends what goes on the air of the samples in `bytes`.
    fn feed(&mut self, bytes: &[u8], format: Format, out: &mut Vec<Complex32>) {
        let (first, mut samples) = (out.len(), std::mem::take(&mut self.scratch));
        samples.clear();
        format.decode(bytes, &mut samples);
        // The converter ends at full scale, whatever the program wrote.
        let held = |x: f32| x.clamp(-1.0, 1.0);
        samples.iter_mut().for_each(|z| *z = Complex32::new(held(z.re), held(z.im)));
        let late = self.amplifies_late();
        if !late {
            self.amplify(&mut samples);
        }
        match &mut self.filter {
            Some(filter) => filter.process(&samples, out),
            None => out.extend_from_slice(&samples),
        }
        if late {
            self.amplify(&mut out[first..]);
        }
        self.scratch = samples;
    }

    /// Appends what the filter holds back.
    fn flush(&mut self, out: &mut Vec<Complex32>) {
        let (first, late) = (out.len(), self.amplifies_late());
        self.filter.take().iter_mut().for_each(|filter| filter.flush(out));
        if late {
            self.amplify(&mut out[first..]);
        }
    }

    /// An amplifier works between samples too: it is where there are more of them, on either side of the filter.
    fn amplifies_late(&self) -> bool {
        self.filter.as_ref().is_some_and(RateChange::rises)
    }

    fn amplify(&mut self, samples: &mut [Complex32]) {
        match &mut self.amplifier {
            // Within its range any gain is a back-off that the amplifier takes.
            Some(amplifier) => {
                let _ = amplifier.set_ibo_db(-self.drive_db);
                amplifier.process(samples);
            }
            None => samples.iter_mut().for_each(|z| *z *= amplitude(self.drive_db)),
        }
    }
}

/// A transmit stream that is set up.
pub(super) struct TxStream {
    pub(super) channels: Vec<usize>,
    pub(super) format: Format,
    pub(super) active: bool,
    antennas: Vec<Antenna>,
    written: u64,
    /// The rates of the burst that is under way, of the transmitter and of the air, and when its next sample is due by the radio's clock, where it has a time.
    burst: Option<((f64, f64), Option<f64>)>,
}

impl TxStream {
    pub(super) fn new(channels: Vec<usize>, format: Format, amplifier: Option<Amplifier>) -> Self {
        let antenna = |_: &usize| Antenna { amplifier: amplifier.clone(), drive_db: 0.0, filter: None, scratch: Vec::new() };
        Self { antennas: channels.iter().map(antenna).collect(), channels, format, active: false, written: 0, burst: None }
    }

    pub(super) fn activate(&mut self) {
        (self.active, self.burst) = (true, None);
    }

    /// Appends what the filters hold back: the end of a burst.
    fn flush(&mut self, sent: &mut Sent) {
        self.burst = None;
        for (antenna, &channel) in self.antennas.iter_mut().zip(&self.channels) {
            antenna.flush(&mut sent[channel]);
        }
    }

    /// Whether a write at a time, or behind the last one, goes on with the burst that is under way.
    fn goes_on(&self, rates: (f64, f64), at_ns: Option<i64>) -> bool {
        let near = |at: i64, due: f64| (at as f64 - due).abs() * rates.1 < 0.5e9;
        self.burst.is_some_and(|(before, due)| before == rates && at_ns.is_none_or(|at| due.is_some_and(|due| near(at, due))))
    }

    fn begin(&mut self, rates: (f64, f64), at_ns: Option<i64>) {
        let filter = || (rates.0 != rates.1).then(|| RateChange::new(rates.0, rates.1));
        self.antennas.iter_mut().for_each(|antenna| antenna.filter = filter());
        self.burst = Some((rates, at_ns.map(|at| at as f64)));
    }
}

fn length(sent: &Sent) -> usize {
    sent.iter().map(Vec::len).max().unwrap_or(0)
}

impl Radio {
    /// Writes up to `wanted` samples, one buffer for each channel in the stream's format; gives how many were taken.
    pub(super) fn write(
        &self,
        buffers: &[&[u8]],
        wanted: usize,
        at_ns: Option<i64>,
        end: bool,
        timeout: Duration,
    ) -> Result<usize, Failure> {
        if self.gone.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(Failure::Gone);
        }
        let mut guard = lock(&self.tx);
        let tx = guard.as_mut().filter(|tx| tx.active).ok_or(Failure::NotSupported)?;
        let rates = (self.tx_rate(), self.air.rate());
        let on_air = (wanted as f64 * rates.1 / rates.0).ceil() as u64;
        let space = self.air.space(on_air, Instant::now() + timeout);
        if space == 0 && wanted > 0 {
            return Err(Failure::Timeout);
        }
        let space = ((space as f64 * rates.0 / rates.1) as u64).max(1);
        let (to_change, late) = punctuality(&lock(&self.settings).quirks, tx.written);
        let count = [space, 2 * BLOCK as u64, to_change].into_iter().fold(wanted as u64, u64::min) as usize;
        // The filters know what is around a sample, so that a burst at another rate is one piece.
        let goes_on = tx.goes_on(rates, at_ns);
        if !goes_on {
            let mut rest = Sent::default();
            tx.flush(&mut rest);
            let length = length(&rest);
            if length > 0 {
                self.air.transmit(rest, length, None, true, false);
            }
            tx.begin(rates, at_ns);
        }
        let mut sent = Sent::default();
        for ((buffer, &channel), antenna) in buffers.iter().zip(&tx.channels).zip(&mut tx.antennas) {
            antenna.drive_db = self.drive_db(channel);
            antenna.feed(&buffer[..count * tx.format.bytes()], tx.format, &mut sent[channel]);
        }
        tx.written += count as u64;
        if let Some((_, Some(due))) = &mut tx.burst {
            *due += count as f64 * 1e9 / rates.0;
        }
        // The end of the burst is the end of what the program wrote, not of what there was room for.
        let end = end && count == wanted;
        if end {
            tx.flush(&mut sent);
        }
        let length = length(&sent);
        let at_ns = at_ns.filter(|_| !goes_on || rates.0 == rates.1).map(|at| self.to_air(at));
        self.air.transmit(sent, length, at_ns, end, late);
        Ok(count)
    }

    /// The next event of a stream, and the time of the sample that it happened to.
    pub(super) fn status(&self, direction: Direction, timeout: Duration) -> (Failure, Option<i64>) {
        // A transmitter that is not active yet has nothing to tell: who asks then must not be told never to ask again.
        if direction == Direction::Rx {
            return (Failure::NotSupported, None);
        }
        let time = |sample: u64| self.has_time().then(|| self.time_ns(Some(sample)));
        match self.air.event(Instant::now() + timeout) {
            Some((Event::Underflow, at)) => {
                add(&self.losses.underflows, 1);
                (Failure::Underflow, time(at))
            }
            Some((Event::Late, at)) => {
                add(&self.losses.late, 1);
                (Failure::Late, time(at))
            }
            None => (Failure::Timeout, None),
        }
    }
}

/// Whether what is written next is too late, and for how many samples that holds.
fn punctuality(quirks: &Quirks, written: u64) -> (u64, bool) {
    let (every, length) = (quirks.late_every, quirks.late_length);
    if every == 0 || length == 0 {
        return (u64::MAX, false);
    }
    let into = written % every;
    if written >= every && into < length { (length.min(every) - into, true) } else { (every - into, false) }
}
