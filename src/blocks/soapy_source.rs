//! A radio's receiver as a stream.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam::channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};
use futuresdr::runtime::dev::prelude::*;
use soapysdr::{ErrorCode, RxStream};

use super::soapy::{DEAD_AFTER, PACKET, PATIENCE_US, Shared};
use super::soapy_health::Health;
use super::{Fault, Radio, TIME, gap};
use crate::Error;

/// Receives with any SoapySDR device.
///
/// A thread of its own reads from the driver into a bounded queue. When the queue is full, packets are dropped until it is half empty (or, for a patient [`Radio`], the driver
/// waits), so a flowgraph that is too slow loses samples at a few marked places and sees long stretches in between. What is received while the transmitter has fallen behind is left
/// out the same way. Overflows, clock jumps, timeouts and corrupt packets are counted in the radio's [`Health`] and end nothing; a device that disappears ends the
/// flowgraph with an error, or only the stream ([`lenient`](Self::lenient)).
///
/// # Stream Inputs
///
/// No stream inputs.
///
/// # Stream Outputs
///
/// `output[c]`: one for each channel. Where the device has time, the first sample of each packet has a tag [`TIME`]. The first sample behind a hole has a tag
/// [`gap`] with the number of missing samples by the timestamps, 0 where they do not tell.
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
    driver: Option<(Receiver<Packet>, Receiver<Error>, JoinHandle<()>)>,
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
        match queue.recv_timeout(if wait { Duration::from_millis(50) } else { Duration::ZERO }) {
            Ok(packet) => {
                self.shared.health.depth.store(queue.len(), Ordering::Relaxed);
                self.packet = Some((packet, 0));
                Next::Packet
            }
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::End,
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
            drop(queue);
            let _ = thread.join();
        }
    }
}

enum Next {
    Packet,
    Nothing,
    End,
}

impl<O: CpuBufferWriter<Item = Complex32>> Kernel for SoapySource<O> {
    async fn init(&mut self, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let start = self.shared.start().map_err(|e| self.fault.raise(e))?;
        let Some(stream) = self.shared.take_rx() else {
            return Err(self.fault.raise(Error::Data("the receiver is in use already".into())).into());
        };
        let (packets, queue) = bounded(self.shared.queue);
        let (complaints, failure) = bounded(1);
        let driver = Driver {
            stream,
            timed: start.rx_timed,
            channels: self.output.len(),
            queue: packets,
            complaints,
            full: false,
            expected_ns: None,
            lost: Lost::Nothing,
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
            let raised = self.fault.raise(error);
            if !self.lenient {
                return Err(raised.into());
            }
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

/// What was lost since the last packet that went into the queue.
#[derive(Clone, Copy, PartialEq)]
enum Lost {
    Nothing,
    /// So many, and no more.
    Known(u64),
    Unknown,
}

/// The thread that reads.
struct Driver {
    stream: RxStream<Complex32>,
    timed: bool,
    channels: usize,
    queue: Sender<Packet>,
    complaints: Sender<Error>,
    /// The queue has been full and is not half empty yet.
    full: bool,
    /// The time of the sample behind the last one in the queue.
    expected_ns: Option<i64>,
    /// Where there are no timestamps.
    lost: Lost,
    shared: Arc<Shared>,
}

impl Driver {
    fn run(mut self) {
        let health = self.shared.health.clone();
        let mut buffers = vec![vec![Complex32::new(0.0, 0.0); PACKET]; self.channels];
        let mut errors = 0;
        while !self.shared.over() {
            let mut slices: Vec<&mut [Complex32]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
            match self.stream.read(&mut slices, PATIENCE_US) {
                Ok(0) => {}
                Ok(n) => {
                    errors = 0;
                    Health::count(&health.received, n as u64);
                    let samples = buffers.iter().map(|b| b[..n].to_vec()).collect();
                    let time_ns = self.timed.then(|| self.stream.time_ns());
                    if !self.deliver(samples, time_ns, n) {
                        break;
                    }
                }
                Err(error) => match error.code {
                    ErrorCode::Timeout => Health::count(&health.timeouts, 1),
                    ErrorCode::Overflow => {
                        errors = 0;
                        Health::count(&health.overflows, 1);
                        self.lost = Lost::Unknown;
                    }
                    ErrorCode::TimeError => {
                        Health::count(&health.time_errors, 1);
                        self.lost = Lost::Unknown;
                    }
                    ErrorCode::Corruption => {
                        Health::count(&health.corrupt, 1);
                        self.lost = Lost::Unknown;
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
        let _ = self.stream.deactivate(None);
    }

    /// The hole before a packet, from the timestamps or else from what was counted.
    fn hole(&self, time_ns: Option<i64>) -> Option<u64> {
        if self.shared.relapse.displaced() {
            return Some(0);
        }
        match (time_ns, self.expected_ns) {
            (Some(time), Some(expected)) => {
                let missing = ((time - expected) as f64 * self.shared.rate / 1e9).round() as i64;
                match missing {
                    0 => None,
                    m if m > 0 => Some(m as u64),
                    // The clock was set back.
                    _ => {
                        Health::count(&self.shared.health.time_errors, 1);
                        Some(0)
                    }
                }
            }
            _ => match self.lost {
                Lost::Nothing => None,
                Lost::Known(n) => Some(n),
                Lost::Unknown => Some(0),
            },
        }
    }

    /// Leaves a packet out.
    fn lose(&mut self, n: usize) {
        self.lost = match self.lost {
            Lost::Nothing => Lost::Known(n as u64),
            Lost::Known(before) => Lost::Known(before + n as u64),
            Lost::Unknown => Lost::Unknown,
        };
    }

    /// Puts a packet into the queue, or drops it; false when nobody listens any more.
    fn deliver(&mut self, samples: Vec<Vec<Complex32>>, time_ns: Option<i64>, n: usize) -> bool {
        if self.shared.relapse.silent(time_ns) {
            self.lose(n);
            return true;
        }
        if !self.shared.patient {
            // A packet at a time would leave nothing but holes: rather a long one, and then a long stretch without.
            self.full = self.queue.is_full() || (self.full && 2 * self.queue.len() > self.shared.queue);
            if self.full {
                Health::count(&self.shared.health.dropped, n as u64);
                self.lose(n);
                return true;
            }
        }
        let hole = self.hole(time_ns);
        let mut packet = Packet { samples, time_ns, gap: hole };
        loop {
            match self.queue.send_timeout(packet, Duration::from_millis(50)) {
                Ok(()) => break,
                Err(SendTimeoutError::Disconnected(_)) => return false,
                Err(SendTimeoutError::Timeout(back)) => {
                    if self.shared.stopped() {
                        return false;
                    }
                    packet = back;
                }
            }
        }
        let health = &self.shared.health;
        if let Some(missing) = hole {
            Health::count(&health.gaps, 1);
            Health::count(&health.missing, missing);
        }
        self.lost = Lost::Nothing;
        self.expected_ns = time_ns.map(|t| t + (n as f64 * 1e9 / self.shared.rate).round() as i64);
        let depth = self.queue.len();
        health.depth.store(depth, Ordering::Relaxed);
        health.deepest.fetch_max(depth, Ordering::Relaxed);
        true
    }
}
