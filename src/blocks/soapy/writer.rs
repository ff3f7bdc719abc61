//! The thread that writes to a driver.

use std::sync::Arc;
use std::time::Duration;

use crossbeam::channel::{Receiver, Sender, bounded};
use num_complex::Complex32;
use soapysdr::{Device, ErrorCode, TxStream};

use super::health::{DAC_CLIPS, Health};
use super::queue::{Nothing, Queue};
use super::radio::{DEAD_AFTER, LEAD_NS, PACKET, PATIENCE_US, Shared, Start};
use crate::Error;

/// Samples of all channels that belong together.
pub(super) type Packet = Vec<Vec<Complex32>>;

/// A stream, and the device that it is of.
type Stream = (TxStream<Complex32>, Device);

fn in_use() -> Error {
    Error::Data("the transmitter is in use already".into())
}

/// The thread that writes.
pub(super) struct Writer {
    /// None while the device is lost, and behind the end.
    stream: Option<Stream>,
    channels: usize,
    /// The time of sample 0; none without time.
    began_ns: Option<i64>,
    /// The time of the next sample, when it does not follow the last one.
    start_ns: Option<i64>,
    /// The place of the next sample to be sent, counted from the first one, and how many are to be left out before it.
    next: u64,
    left_out: u64,
    period: Option<u64>,
    /// What was sent last: a period, and how much of it is known.
    last: Packet,
    known: u64,
    /// Samples were due before they were written.
    behind: bool,
    queue: Arc<Queue<Packet>>,
    complaints: Sender<Error>,
    shared: Arc<Shared>,
}

impl Writer {
    /// A writer for so many channels, and where its complaint comes out should it give up.
    pub(super) fn new(channels: usize, period: Option<u64>, queue: Arc<Queue<Packet>>, shared: Arc<Shared>) -> (Self, Receiver<Error>) {
        let (complaints, failure) = bounded(1);
        let (stream, began_ns, start_ns, next, left_out, behind) = (None, None, None, 0, 0, false);
        let last = vec![vec![Complex32::default(); period.unwrap_or(0) as usize]; channels];
        (Self { stream, channels, began_ns, start_ns, next, left_out, period, last, known: 0, behind, queue, complaints, shared }, failure)
    }

    pub(super) fn run(mut self, stream: Stream, start: Start) {
        let shared = self.shared.clone();
        shared.reunion.join();
        self.begin(stream, start);
        loop {
            if let Some(error) = self.send()
                && !shared.reunion.lose(&error)
            {
                let _ = self.complaints.try_send(error);
                break;
            }
            if shared.over() || !shared.reunion.lost() {
                break;
            }
            self.let_go();
            let back =
                shared.come_back().and_then(|()| shared.activate()).and_then(|start| Ok((shared.take_tx().ok_or_else(in_use)?, start)));
            match back {
                Ok((stream, start)) => self.begin(stream, start),
                Err(error) => {
                    if !shared.over() {
                        let _ = self.complaints.try_send(error);
                    }
                    break;
                }
            }
        }
        shared.reunion.leave();
        if !shared.over() {
            self.finish();
        }
        self.queue.close();
        self.let_go();
    }

    /// Sends with a stream that has just started, whose first sample is due at the start.
    fn begin(&mut self, stream: Stream, start: Start) {
        self.stream = Some(stream);
        (self.began_ns, self.start_ns) = (start.tx_at_ns, start.tx_at_ns);
        (self.next, self.left_out, self.known, self.behind) = (0, 0, 0, false);
    }

    /// Stops the stream.
    fn let_go(&mut self) {
        if let Some((mut stream, _)) = self.stream.take() {
            let _ = stream.deactivate(None);
            self.shared.silenced();
        }
    }

    /// Sends until it is over; gives why, when the device is lost.
    fn send(&mut self) -> Option<Error> {
        while !self.shared.interrupted() {
            // A flowgraph that is late does not silence a stream that repeats itself.
            let again = !self.shared.patient && self.period.is_some_and(|period| self.known >= period);
            let packet = match self.queue.take(if again { Duration::ZERO } else { Duration::from_millis(10) }) {
                Ok(packet) => Some(packet),
                Err(Nothing::Yet) if again => None,
                Err(Nothing::Yet) => {
                    // Nothing to send is no fault of the driver.
                    self.shared.note(&self.shared.told);
                    None
                }
                Err(Nothing::Ever) => break,
            };
            while self.note_status() {}
            // Behind, or about to be late for coming back.
            if std::mem::take(&mut self.behind) || (self.start_ns.is_some() && self.next > 0) {
                self.catch_up();
            }
            let sent = match packet {
                Some(packet) => self.write(&packet),
                None if again => self.repeat(),
                None => Ok(()),
            };
            if let Err(error) = sent {
                return Some(error);
            }
        }
        None
    }

    fn now_ns(&self) -> Option<i64> {
        self.stream.as_ref().and_then(|(_, device)| device.get_hardware_time(None).ok())
    }

    /// When a sample is due, in nanoseconds after the first one.
    fn due_ns(&self, sample: u64) -> i64 {
        (sample as f64 * 1e9 / self.shared.rates.tx).round() as i64
    }

    fn end_burst(&mut self) -> bool {
        let silence = vec![[Complex32::new(0.0, 0.0)]; self.channels];
        let slices: Vec<&[Complex32]> = silence.iter().map(|s| s.as_slice()).collect();
        self.stream.as_mut().is_some_and(|(stream, _)| stream.write(&slices, None, true, PATIENCE_US).is_ok())
    }

    /// Goes on where the stream would be now, or tells the receiver that it is somewhere else.
    fn catch_up(&mut self) {
        let now = self.began_ns.and_then(|began| self.now_ns().map(|now| (began, now)));
        let Some((began, now)) = now else { return self.shared.relapse.note(None) };
        if self.start_ns.is_none() {
            self.end_burst();
        }
        // Behind the sample that ended the burst, at least.
        let place = ((now - began + LEAD_NS) as f64 * self.shared.rates.tx / 1e9).ceil().max(0.0) as u64;
        let place = place.max(self.next + 1);
        self.left_out += place - self.next;
        self.left_out = self.period.map_or(self.left_out, |period| self.left_out % period);
        self.next = place;
        if self.period.is_some_and(|period| self.known < period) {
            self.known = 0;
        }
        self.start_ns = Some(began + self.due_ns(place));
        self.shared.relapse.note(self.start_ns);
    }

    /// Ends the burst and lets it go out: deactivating a stream drops what it has not sent yet.
    fn finish(&mut self) {
        let (true, Some(began)) = (self.end_burst(), self.began_ns) else { return };
        let end = began + self.due_ns(self.next);
        // Bounded, should the clock stand still.
        for _ in 0..1000 {
            if self.shared.over() || self.now_ns().is_none_or(|now| now >= end) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn write(&mut self, packet: &Packet) -> crate::Result<()> {
        let left_out = self.left_out.min(packet[0].len() as u64);
        self.left_out -= left_out;
        self.transmit(packet, left_out as usize)
    }

    /// Sends what comes next out of the last period; as much of what is in the queue is then to be left out.
    fn repeat(&mut self) -> crate::Result<()> {
        let (Some(period), before) = (self.period, self.next) else { return Ok(()) };
        let at = (self.next % period) as usize;
        let packet = self.last.iter().map(|channel| channel[at..].iter().take(PACKET).copied().collect()).collect();
        let sent = self.transmit(&packet, 0);
        self.left_out = (self.left_out + self.next - before) % period;
        sent
    }

    /// Keeps what was sent.
    fn keep(last: &mut Packet, mut at: usize, sent: &[&[Complex32]], n: usize) {
        let mut done = 0;
        while done < n {
            let part = (last[0].len() - at).min(n - done);
            for (to, from) in last.iter_mut().zip(sent) {
                to[at..at + part].copy_from_slice(&from[done..done + part]);
            }
            (done, at) = (done + part, 0);
        }
    }

    /// Sends a packet from sample `at` on.
    fn transmit(&mut self, packet: &Packet, mut at: usize) -> crate::Result<()> {
        let health = self.shared.health.clone();
        let mut errors = 0;
        while at < packet[0].len() && !self.shared.interrupted() {
            let Some((stream, _)) = &mut self.stream else { break };
            let slices: Vec<&[Complex32]> = packet.iter().map(|channel| &channel[at..]).collect();
            match stream.write(&slices, self.start_ns, false, PATIENCE_US) {
                Ok(n) => {
                    slices.iter().for_each(|channel| health.tx.note(&channel[..n], DAC_CLIPS));
                    if let Some(period) = self.period {
                        Self::keep(&mut self.last, (self.next % period) as usize, &slices, n);
                        self.known += n as u64;
                    }
                    self.shared.note(&self.shared.told);
                    (at, errors) = (at + n, 0);
                    Health::count(&health.sent, n as u64);
                    self.next += n as u64;
                    if n > 0 {
                        self.start_ns = None;
                    }
                }
                Err(error) => match error.code {
                    ErrorCode::Timeout => Health::count(&health.timeouts, 1),
                    ErrorCode::Underflow => {
                        Health::count(&health.underflows, 1);
                        self.behind = true;
                    }
                    ErrorCode::TimeError => {
                        Health::count(&health.time_errors, 1);
                        // Too late for its time: the rest of the packet goes out at once, wherever that is.
                        (self.start_ns, self.behind) = (None, true);
                    }
                    _ => {
                        errors += 1;
                        if errors >= DEAD_AFTER {
                            return Err(Error::Device(format!("the transmitter has disappeared: {} ({:?})", error.message, error.code)));
                        }
                        std::thread::sleep(Duration::from_millis(1));
                    }
                },
            }
        }
        Ok(())
    }

    /// Takes in the next word of the stream's status, where some losses only show; false when there is none.
    fn note_status(&mut self) -> bool {
        let health = &self.shared.health;
        let Some((stream, _)) = &mut self.stream else { return false };
        let counter = match stream.read_status(&mut 0, &mut 0, &mut 0, 0) {
            Ok(_) => return true,
            Err(error) if error.code == ErrorCode::Underflow => &health.underflows,
            Err(error) if error.code == ErrorCode::TimeError => &health.time_errors,
            Err(_) => return false,
        };
        Health::count(counter, 1);
        self.behind = true;
        true
    }
}

impl Drop for Writer {
    /// A panic stops the stream too.
    fn drop(&mut self) {
        self.let_go();
    }
}
