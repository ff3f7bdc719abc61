//! The thread that reads from a driver, and what it finds missing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam::channel::{Receiver, Sender, bounded};
use num_complex::Complex32;
use soapysdr::ErrorCode;

use super::health::{ADC_CLIPS, Health};
use super::queue::{Nothing, Queue};
use super::radio::{DEAD_AFTER, PACKET, PATIENCE_US, Shared};
use super::stamps::{Stamps, Verdict};
use crate::Error;
use crate::radio::client::RxStream;

/// Samples of all channels that belong together.
pub(super) struct Packet {
    pub(super) samples: Vec<Vec<Complex32>>,
    pub(super) time_ns: Option<i64>,
    /// Samples missing before them; 0 for an unknown number.
    pub(super) gap: Option<u64>,
}

/// Reads without a stamp that are held back behind an overflow until one with a stamp says how long it was.
const HELD: usize = 8;

/// How long a read behind the end may wait, in microseconds.
const DRAIN_US: i64 = 5_000;

/// The thread that reads.
pub(super) struct Reader {
    /// None while the device is lost.
    stream: Option<RxStream>,
    channels: usize,
    queue: Arc<Queue<Packet>>,
    complaints: Sender<Error>,
    /// The queue has been full and is not half empty yet.
    full: bool,
    stamps: Stamps,
    /// The driver says that samples were lost.
    flagged: bool,
    /// Samples that are missing before the next packet; some for an unknown number as well.
    gap: Option<Gap>,
    held: VecDeque<Packet>,
    shared: Arc<Shared>,
}

#[derive(Clone, Copy, Default)]
struct Gap {
    samples: u64,
    unknown: bool,
}

impl Reader {
    /// A reader, and where its complaint comes out should it give up.
    pub(super) fn new(stream: RxStream, channels: usize, queue: Arc<Queue<Packet>>, shared: Arc<Shared>) -> (Self, Receiver<Error>) {
        let (complaints, failure) = bounded(1);
        let stamps = Stamps::new(shared.rates.rx);
        (
            Self {
                stream: Some(stream),
                channels,
                queue,
                complaints,
                full: false,
                stamps,
                flagged: false,
                gap: None,
                held: VecDeque::new(),
                shared,
            },
            failure,
        )
    }

    pub(super) fn run(mut self) {
        let shared = self.shared.clone();
        shared.reunion.join();
        let mut buffers = vec![vec![Complex32::new(0.0, 0.0); PACKET]; self.channels];
        loop {
            if let Some(error) = self.read(&mut buffers)
                && !shared.reunion.lose(&error)
            {
                self.give_up(error);
            }
            if shared.over() || !shared.reunion.lost() {
                break;
            }
            self.release();
            self.let_go(&mut buffers);
            let taken = || Error::Data("the receiver is in use already".into());
            let back = shared.come_back().and_then(|()| shared.take_rx().ok_or_else(taken));
            match back {
                Ok(stream) => self.begin(stream),
                Err(error) => self.give_up(error),
            }
        }
        shared.reunion.leave();
        self.release();
        // What was lost last has no packet behind it.
        if let Some(gap) = self.gap.take() {
            self.count(gap);
        }
        self.queue.close();
        self.let_go(&mut buffers);
    }

    /// Ends the stream with an error, unless nobody is interested any more.
    fn give_up(&self, error: Error) {
        if !self.shared.over() {
            let _ = self.complaints.try_send(error);
        }
        // Nothing that is transmitted from now on is of use.
        self.shared.gone.store(true, Ordering::Relaxed);
    }

    /// Closes the stream behind the transmitter. Until that has stopped the stream is read on: a device may wait for its reader.
    fn let_go(&mut self, buffers: &mut [Vec<Complex32>]) {
        let Some(mut stream) = self.stream.take() else { return };
        self.shared.wait_for_silence(|| match stream.read(buffers, DRAIN_US) {
            Ok(_) => {}
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        });
    }

    /// Goes on with a new stream, behind a gap of a length that nobody knows.
    fn begin(&mut self, stream: RxStream) {
        self.stream = Some(stream);
        (self.stamps, self.flagged) = (Stamps::new(self.shared.rates.rx), false);
        self.miss(0, true);
    }

    /// Reads until it is over; gives why, when the device is lost.
    fn read(&mut self, buffers: &mut [Vec<Complex32>]) -> Option<Error> {
        let health = self.shared.health.clone();
        let mut errors = 0;
        while !self.shared.interrupted() {
            match self.stream.as_mut()?.read(buffers, PATIENCE_US) {
                Ok(read) if read.samples == 0 => {}
                Ok(read) => {
                    errors = 0;
                    self.shared.note(&self.shared.heard);
                    Health::count(&health.received, read.samples as u64);
                    let samples: Vec<Vec<Complex32>> = buffers.iter().map(|b| b[..read.samples].to_vec()).collect();
                    samples.iter().for_each(|channel| health.rx.note(channel, ADC_CLIPS));
                    if !self.receive(Packet { samples, time_ns: read.time_ns, gap: None }) {
                        break;
                    }
                }
                Err(error) => match error.code {
                    ErrorCode::Timeout => {
                        Health::count(&health.timeouts, 1);
                        if self.shared.reunion.wanted() && self.shared.overdue(&self.shared.heard) {
                            let wait = self.shared.timeout.as_secs_f64();
                            return Some(Error::Device(format!("the receiver has brought nothing for {wait} s")));
                        }
                    }
                    ErrorCode::Overflow => {
                        errors = 0;
                        Health::count(&health.overflows, 1);
                        self.flagged = true;
                    }
                    ErrorCode::TimeError => {
                        Health::count(&health.time_errors, 1);
                        self.flagged = true;
                    }
                    ErrorCode::Corruption => {
                        Health::count(&health.corrupt, 1);
                        self.flagged = true;
                    }
                    _ => {
                        errors += 1;
                        if errors >= DEAD_AFTER {
                            let problem = format!("the receiver has disappeared: {} ({:?})", error.message, error.code);
                            return Some(Error::Device(problem));
                        }
                        std::thread::sleep(Duration::from_millis(1));
                    }
                },
            }
        }
        None
    }

    /// Finds out what is missing before a packet; false when nobody listens any more.
    fn receive(&mut self, packet: Packet) -> bool {
        if self.shared.relapse.displaced() {
            self.miss(0, true);
        }
        match packet.time_ns.map(|time| self.stamps.stamp(time)) {
            Some(Verdict::Whole) => self.flagged = false,
            Some(Verdict::Gap(samples)) => {
                self.flagged = false;
                self.miss(samples, false);
            }
            Some(Verdict::Fewer(samples)) => {
                self.miss(0, true);
                let known = &self.shared.health.gap_samples;
                let _ = known.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |known| Some(known.saturating_sub(samples)));
            }
            Some(Verdict::Back) => {
                Health::count(&self.shared.health.time_errors, 1);
                self.miss(0, true);
            }
            // A stamp is about to come and tell.
            None if self.flagged && self.stamps.next_ns().is_some() && self.held.len() < HELD => {
                self.stamps.advance(packet.samples[0].len());
                self.held.push_back(packet);
                return true;
            }
            None if std::mem::take(&mut self.flagged) => self.miss(0, true),
            None => {}
        }
        if !self.release() {
            return false;
        }
        let due = packet.time_ns.or(self.stamps.next_ns());
        self.stamps.advance(packet.samples[0].len());
        self.deliver(packet, due)
    }

    /// Delivers what was held back.
    fn release(&mut self) -> bool {
        while let Some(packet) = self.held.pop_front() {
            let due = packet.time_ns;
            if !self.deliver(packet, due) {
                return false;
            }
        }
        true
    }

    /// So many samples are missing before the next packet.
    fn miss(&mut self, samples: u64, unknown: bool) {
        let gap = self.gap.get_or_insert_default();
        gap.samples += samples;
        gap.unknown |= unknown;
        Health::count(&self.shared.health.gap_samples, samples);
    }

    fn count(&self, gap: Gap) {
        Health::count(&self.shared.health.gaps, 1);
        Health::count(&self.shared.health.unknown_gaps, u64::from(gap.unknown));
    }

    /// Puts a packet, due at a time, into the queue, or drops it; false when nobody listens any more.
    fn deliver(&mut self, mut packet: Packet, due_ns: Option<i64>) -> bool {
        let n = packet.samples[0].len();
        if self.shared.relapse.silent(due_ns) {
            self.miss(n as u64, false);
            return true;
        }
        if !self.shared.patient {
            // A packet at a time would leave nothing but gaps: rather a long one, and then a long stretch without.
            self.full = self.queue.full(n) || (self.full && 2 * self.queue.len() > self.shared.queue);
            if self.full {
                Health::count(&self.shared.health.dropped, n as u64);
                self.miss(n as u64, false);
                return true;
            }
        }
        let gap = self.gap.take();
        packet.gap = gap.map(|gap| if gap.unknown { 0 } else { gap.samples });
        if let Some(gap) = gap {
            self.count(gap);
        }
        loop {
            match self.queue.put(packet, n, Duration::from_millis(50)) {
                Ok(()) => break,
                Err((_, Nothing::Ever)) => return false,
                Err((back, Nothing::Yet)) => {
                    if self.shared.stopped() {
                        return false;
                    }
                    // The reader is slow, not the driver.
                    self.shared.note(&self.shared.heard);
                    packet = back;
                }
            }
        }
        let depth = self.queue.len();
        self.shared.health.depth.store(depth, Ordering::Relaxed);
        self.shared.health.deepest.fetch_max(depth, Ordering::Relaxed);
        true
    }
}
