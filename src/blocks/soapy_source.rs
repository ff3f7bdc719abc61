//! A radio's receiver as a stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam::channel::{Receiver, Sender, bounded};
use futuresdr::runtime::dev::prelude::*;
use soapysdr::ErrorCode;

use super::soapy::{DEAD_AFTER, PACKET, PATIENCE_US, Shared, join};
use super::soapy_health::{ADC_CLIPS, Health};
use super::soapy_queue::{Nothing, Queue};
use super::soapy_stamps::{Stamps, Verdict};
use super::{Fault, Radio, TIME, gap};
use crate::Error;
use crate::radio::client::RxStream;

/// Receives with any SoapySDR device.
///
/// A thread of its own reads from the driver into a bounded queue. When the queue is full, packets are dropped until it is half empty (or, for a patient [`Radio`], the driver
/// waits), so a flowgraph that is too slow loses samples at a few marked places and sees long stretches in between. What is received while the transmitter has fallen behind is left
/// out the same way. Overflows, clock jumps, timeouts and corrupt packets are counted in the radio's [`Health`] and end nothing; a device that disappears, and one that brings nothing
/// for the radio's timeout, end the flowgraph with an error, or only the stream ([`lenient`](Self::lenient)), even if a call into the driver never returns.
///
/// Samples leave as they were received: full scale is an amplitude of 1.
///
/// # Stream Inputs
///
/// No stream inputs.
///
/// # Stream Outputs
///
/// `output[c]`: one for each channel. The first sample of each read that the driver stamped has a tag [`TIME`]. The first sample behind a gap has a tag [`gap`] with the number of missing
/// samples, 0 where nobody knows: time stamps are averaged, so that those that scatter tell no gaps that are none.
///
/// # Message Inputs
///
/// No message inputs.
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::NullSink, prelude::*};
/// use kaflow::blocks::{Radio, RadioConfig, SoapySource};
///
/// # fn main() -> Result<()> {
/// let config = RadioConfig { tx: None, patient: true, ..RadioConfig::duplex("driver=kaflow-testbed,pace=fast", 5.4e9, 5e6) };
/// let mut radio = Radio::open(&config)?;
/// let source = SoapySource::new(&mut radio)?.limit(100_000);
/// let sink = NullSink::<Complex32>::new();
/// let mut fg = Flowgraph::new();
/// connect!(fg, source.output[0] > sink);
/// let fg = Runtime::new().run(fg)?;
/// assert_eq!(sink.get(&fg)?.n_received(), 100_000);
/// # Ok(()) }
/// ```
#[derive(Block)]
#[blocking]
pub struct SoapySource<O = DefaultCpuWriter<Complex32>>
where
    O: CpuBufferWriter<Item = Complex32>,
{
    #[output]
    output: Vec<O>,
    shared: Arc<Shared>,
    driver: Option<(Arc<Queue<Packet>>, Receiver<Error>, JoinHandle<()>)>,
    packet: Option<(Packet, usize)>,
    left: u64,
    lenient: bool,
    fault: Fault,
}

/// Samples of all channels that belong together.
struct Packet {
    samples: Vec<Vec<Complex32>>,
    time_ns: Option<i64>,
    /// Samples missing before them; 0 for an unknown number.
    gap: Option<u64>,
}

impl SoapySource {
    /// The receiver of `radio`; it starts with the flowgraph.
    pub fn new(radio: &mut Radio) -> crate::Result<Self> {
        Self::with_buffers(radio)
    }
}

impl<O: CpuBufferWriter<Item = Complex32>> SoapySource<O> {
    /// As [`new`](SoapySource::new), with buffers of another kind than the default.
    pub fn with_buffers(radio: &mut Radio) -> crate::Result<Self> {
        if radio.rx_channels() == 0 {
            return Err(Error::Data("this radio was opened without a receiver".into()));
        }
        let mut output: Vec<O> = (0..radio.rx_channels()).map(|_| O::default()).collect();
        output.iter_mut().for_each(|o| o.set_min_buffer_size_in_items(super::BUFFER));
        Ok(Self {
            output,
            shared: radio.shared.clone(),
            driver: None,
            packet: None,
            left: u64::MAX,
            lenient: false,
            fault: Fault::default(),
        })
    }

    /// Ends the stream, and with it the flowgraph in good order, when the device disappears; the [`fault`](Self::fault) says so.
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Ends after so many samples of each channel.
    pub fn limit(mut self, samples: u64) -> Self {
        self.left = samples;
        self
    }

    /// A handle that says why the block failed, if it did.
    pub fn fault(&self) -> Fault {
        self.fault.clone()
    }

    /// The next packet, when there is one, or one comes within a moment. Once the radio is to stop, what is left in the queue is of no interest.
    fn next_packet(&mut self, wait: bool) -> Next {
        let Some((queue, _, _)) = self.driver.as_ref().filter(|_| !self.shared.stopped()) else { return Next::End };
        match queue.take(if wait { Duration::from_millis(50) } else { Duration::ZERO }) {
            Ok(packet) => {
                self.shared.health.depth.store(queue.len(), Ordering::Relaxed);
                self.packet = Some((packet, 0));
                Next::Packet
            }
            Err(Nothing::Yet) if self.shared.overdue(&self.shared.heard) => Next::Dead,
            Err(Nothing::Yet) => Next::Nothing,
            Err(Nothing::Ever) => Next::End,
        }
    }

    /// Copies what fits of the packet to place `at` of the outputs; gives how many samples.
    fn copy(&mut self, at: usize, room: usize) -> usize {
        let Some((packet, used)) = &mut self.packet else { return 0 };
        let length = packet.samples[0].len();
        let n = (room - at).min(length - *used);
        for (output, samples) in self.output.iter_mut().zip(&packet.samples) {
            let (out, mut tags) = output.slice_with_tags();
            out[at..at + n].copy_from_slice(&samples[*used..*used + n]);
            if *used == 0 {
                if let Some(time) = packet.time_ns {
                    tags.add_tag(at, Tag::NamedUsize(TIME.into(), time.max(0) as usize));
                }
                if let Some(missing) = packet.gap {
                    tags.add_tag(at, gap(missing as usize));
                }
            }
        }
        *used += n;
        if *used == length {
            self.packet = None;
        }
        n
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some((queue, _, thread)) = self.driver.take() {
            // A driver that waits for room in the queue sees that nobody takes from it any more.
            queue.close();
            join(thread, Duration::from_secs(1));
        }
    }

    /// The stream has ended with an error.
    fn fail(&self, error: Error) -> Result<()> {
        let raised = self.fault.raise(error);
        if self.lenient { Ok(()) } else { Err(raised.into()) }
    }
}

enum Next {
    Packet,
    Nothing,
    End,
    /// Nothing has come for too long.
    Dead,
}

impl<O: CpuBufferWriter<Item = Complex32>> Kernel for SoapySource<O> {
    async fn init(&mut self, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        self.shared.start().map_err(|e| self.fault.raise(e))?;
        let Some(stream) = self.shared.take_rx() else {
            return Err(self.fault.raise(Error::Data("the receiver is in use already".into())).into());
        };
        let queue = Arc::new(Queue::new(self.shared.queue));
        let (complaints, failure) = bounded(1);
        let driver = Driver {
            stream,
            channels: self.output.len(),
            queue: queue.clone(),
            complaints,
            full: false,
            stamps: Stamps::new(self.shared.rate),
            flagged: false,
            gap: None,
            held: VecDeque::new(),
            shared: self.shared.clone(),
        };
        let thread = std::thread::Builder::new().name("kaflow rx".into()).spawn(move || driver.run());
        let thread = thread.map_err(|e| self.fault.raise(Error::io("thread", e)))?;
        self.driver = Some((queue, failure, thread));
        Ok(())
    }

    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let room = self.output.iter_mut().map(|o| o.slice().len()).min().unwrap_or(0);
        let room = room.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if room == 0 {
            return Ok(());
        }
        // Handing samples over is dear: as many packets at once as there are.
        let mut n = 0;
        while n < room {
            if self.packet.is_none() {
                match self.next_packet(n == 0) {
                    Next::Packet => {}
                    Next::Nothing => break,
                    Next::End => {
                        io.finished = true;
                        break;
                    }
                    Next::Dead => {
                        // Nothing that is transmitted from now on is of use.
                        self.shared.gone.store(true, Ordering::Relaxed);
                        io.finished = true;
                        if n > 0 {
                            self.output.iter_mut().for_each(|output| output.produce(n));
                        }
                        let wait = self.shared.timeout.as_secs_f64();
                        let problem = format!(
                            "the receiver has brought nothing for {wait} s, and its driver does not say why: is the radio, or the host that it is at, still there?"
                        );
                        return self.fail(Error::Data(problem));
                    }
                }
            }
            n += self.copy(n, room);
        }
        if n > 0 {
            self.output.iter_mut().for_each(|output| output.produce(n));
            self.left -= n as u64;
        }
        if io.finished
            && let Some(error) = self.driver.as_ref().and_then(|(_, failure, _)| failure.try_recv().ok())
        {
            self.fail(error)?;
        }
        io.finished |= self.left == 0;
        io.call_again = !io.finished;
        Ok(())
    }

    async fn deinit(&mut self, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        self.end();
        Ok(())
    }
}

impl<O: CpuBufferWriter<Item = Complex32>> Drop for SoapySource<O> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads without a stamp that are held back behind an overflow until one with a stamp says how long it was.
const HELD: usize = 8;

/// The thread that reads.
struct Driver {
    stream: RxStream,
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

impl Driver {
    fn run(mut self) {
        self.read();
        self.release();
        // What was lost last has no packet behind it.
        if let Some(gap) = self.gap.take() {
            self.count(gap);
        }
        self.queue.close();
        self.stream.deactivate();
    }

    fn read(&mut self) {
        let health = self.shared.health.clone();
        let mut buffers = vec![vec![Complex32::new(0.0, 0.0); PACKET]; self.channels];
        let mut errors = 0;
        while !self.shared.over() {
            match self.stream.read(&mut buffers, PATIENCE_US) {
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
                    ErrorCode::Timeout => Health::count(&health.timeouts, 1),
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
                            let _ = self.complaints.try_send(Error::Data(problem));
                            // Nothing that is transmitted from now on is of use.
                            self.shared.gone.store(true, Ordering::Relaxed);
                            break;
                        }
                        std::thread::sleep(Duration::from_millis(1));
                    }
                },
            }
        }
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
        if let Some(gap) = gap {
            self.count(gap);
        }
        let depth = self.queue.len();
        self.shared.health.depth.store(depth, Ordering::Relaxed);
        self.shared.health.deepest.fetch_max(depth, Ordering::Relaxed);
        true
    }
}
