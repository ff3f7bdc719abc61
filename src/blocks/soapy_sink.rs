//! A radio's transmitter as a sink.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam::channel::{Sender, bounded};
use futuresdr::runtime::{Runtime, dev::prelude::*};
use soapysdr::{Device, ErrorCode, TxStream};

use super::soapy::{DEAD_AFTER, LEAD_NS, PACKET, PATIENCE_US, Shared};
use super::soapy_health::{DAC_CLIPS, Health};
use super::soapy_queue::{MOMENT, Nothing, Queue, Worker};
use super::{Fault, Radio};
use crate::Error;

/// Transmits with any SoapySDR device.
///
/// A thread of its own writes from a bounded queue to the driver. The first sample goes out at the time that [`Radio`] and its source agreed on, where the device has
/// time, and every sample behind it at its own time: after an underflow the samples whose time has passed are left out, so that nothing is displaced for good.
/// Without time the receiver is told that everything from now on is. Underflows, late samples and timeouts are counted in the radio's [`Health`] and end
/// nothing, and so are samples that the converter clips; a device that disappears, and one that takes nothing for the radio's timeout, end the flowgraph with an error, or in good order
/// ([`lenient`](Self::lenient)), even if a call into the driver never returns.
///
/// # Stream Inputs
///
/// `input[c]`: one for each channel. Full scale is an amplitude of 1.
///
/// # Stream Outputs
///
/// No stream outputs.
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
/// use futuresdr::{blocks::VectorSource, prelude::*};
/// use kaflow::blocks::{Radio, RadioConfig, SoapySink};
///
/// # fn main() -> Result<()> {
/// let config = RadioConfig { rx: None, patient: true, ..RadioConfig::duplex("driver=kaflow-testbed,pace=fast", 5.4e9, 5e6) };
/// let mut radio = Radio::open(&config)?;
/// let source = VectorSource::<Complex32>::new(vec![Complex32::new(0.25, 0.0); 100_000]);
/// let sink = SoapySink::new(&mut radio)?;
/// let mut fg = Flowgraph::new();
/// connect!(fg, source > input[0].sink);
/// Runtime::new().run(fg)?;
/// assert_eq!(radio.health().sent.load(std::sync::atomic::Ordering::Relaxed), 100_000);
/// # Ok(()) }
/// ```
#[derive(Block)]
pub struct SoapySink<I = DefaultCpuReader<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
{
    #[input]
    input: Vec<I>,
    shared: Arc<Shared>,
    driver: Option<Worker<Packet>>,
    period: Option<u64>,
    lenient: bool,
    fault: Fault,
}

type Packet = Vec<Vec<Complex32>>;

impl SoapySink {
    /// The transmitter of `radio`; it starts with the flowgraph.
    pub fn new(radio: &mut Radio) -> crate::Result<Self> {
        Self::with_buffers(radio)
    }
}

impl<I: CpuBufferReader<Item = Complex32>> SoapySink<I> {
    /// As [`new`](SoapySink::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(radio: &mut Radio) -> crate::Result<Self> {
        if radio.tx_channels() == 0 {
            return Err(Error::Data("this radio was opened without a transmitter".into()));
        }
        let mut input: Vec<I> = (0..radio.tx_channels()).map(|_| I::default()).collect();
        input.iter_mut().for_each(|i| i.set_min_buffer_size_in_items(super::BUFFER));
        Ok(Self { input, shared: radio.shared.clone(), driver: None, period: None, lenient: false, fault: Fault::default() })
    }

    /// The stream repeats itself after so many samples: after an underflow it is enough to find the right place in it.
    pub fn repeats(mut self, period: usize) -> Self {
        self.period = Some(period.max(1) as u64);
        self
    }

    /// Ends the flowgraph in good order when the device disappears; the [`fault`](Self::fault) says so.
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// A handle that says why the block failed, if it did.
    pub fn fault(&self) -> Fault {
        self.fault.clone()
    }

    /// The driver has given up.
    fn fail(&mut self, error: Error, io: &mut WorkIo) -> Result<()> {
        let raised = self.fault.raise(error);
        // Nothing that is received from now on is of use.
        self.shared.gone.store(true, Ordering::Relaxed);
        io.finished = true;
        if self.lenient { Ok(()) } else { Err(raised.into()) }
    }

    /// Lets the driver write what is in the queue and end its burst.
    async fn end(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.end(Duration::from_secs(3)).await;
        }
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Kernel for SoapySink<I> {
    async fn init(&mut self, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let start = self.shared.start().map_err(|e| self.fault.raise(e))?;
        let Some((stream, device)) = self.shared.take_tx() else {
            return Err(self.fault.raise(Error::Data("the transmitter is in use already".into())).into());
        };
        let queue = Arc::new(Queue::new(self.shared.queue));
        let (complaints, failure) = bounded(1);
        let driver = Driver {
            stream,
            device,
            channels: self.input.len(),
            began_ns: start.tx_at_ns,
            start_ns: start.tx_at_ns,
            next: 0,
            left_out: 0,
            period: self.period,
            behind: false,
            queue: queue.clone(),
            complaints,
            shared: self.shared.clone(),
        };
        let thread = std::thread::Builder::new().name("kaflow tx".into()).spawn(move || driver.run());
        let thread = thread.map_err(|e| self.fault.raise(Error::io("thread", e)))?;
        self.driver = Some(Worker { queue, failure, thread });
        Ok(())
    }

    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        io.block_on = None;
        let Some(Worker { queue, failure, .. }) = &self.driver else {
            io.finished = true;
            return Ok(());
        };
        if let Ok(error) = failure.try_recv() {
            return self.fail(error, io);
        }
        let slices: Vec<&[Complex32]> = self.input.iter_mut().map(|i| i.slice()).collect();
        let available = slices.iter().map(|s| s.len()).min().unwrap_or(0);
        let n = available.min(4 * PACKET);
        let ended = self.input.iter_mut().any(|i| i.finished());
        if n < PACKET && !ended && !self.shared.over() {
            // Handing samples over is dear: not in small pieces.
            return Ok(());
        }
        let slices: Vec<&[Complex32]> = self.input.iter_mut().map(|i| i.slice()).collect();
        let waits = n > 0 && queue.full(n);
        if waits {
            // What does not fit stays in the buffer. A device that waits for a slow reader may take its time.
            if !self.shared.patient && self.shared.overdue(&self.shared.told) {
                let wait = self.shared.timeout.as_secs_f64();
                let problem = format!("the transmitter has taken nothing for {wait} s, and its driver does not say why");
                return self.fail(Error::Device(problem), io);
            }
            io.block_on(queue.emptied(n, MOMENT));
        } else if n > 0 {
            let packet: Packet = slices.iter().map(|s| s[..n].to_vec()).collect();
            match queue.put(packet, n, Duration::ZERO) {
                Ok(()) => {
                    self.input.iter_mut().for_each(|i| i.consume(n));
                    io.call_again = n < available;
                }
                Err(_) => {
                    return match failure.recv_timeout(Duration::from_secs(1)) {
                        Ok(error) => self.fail(error, io),
                        Err(_) => {
                            io.finished = true;
                            Ok(())
                        }
                    };
                }
            }
        }
        let sent_all = n == available && !waits;
        io.finished = self.shared.over() || (sent_all && ended);
        Ok(())
    }

    async fn deinit(&mut self, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        self.end().await;
        Ok(())
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Drop for SoapySink<I> {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        Runtime::block_on(self.end());
    }
}

/// The thread that writes.
struct Driver {
    stream: TxStream<Complex32>,
    device: Device,
    channels: usize,
    /// The time of sample 0; none without time.
    began_ns: Option<i64>,
    /// The time of the next sample, when it does not follow the last one.
    start_ns: Option<i64>,
    /// The place of the next sample to be sent, counted from the first one, and how many are to be left out before it.
    next: u64,
    left_out: u64,
    period: Option<u64>,
    /// Samples were due before they were written.
    behind: bool,
    queue: Arc<Queue<Packet>>,
    complaints: Sender<Error>,
    shared: Arc<Shared>,
}

impl Driver {
    fn run(mut self) {
        while !self.shared.over() {
            let packet = match self.queue.take(Duration::from_millis(10)) {
                Ok(packet) => Some(packet),
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
            if let Some(packet) = packet
                && let Err(error) = self.write(&packet)
            {
                let _ = self.complaints.try_send(error);
                break;
            }
        }
        if !self.shared.over() {
            self.finish();
        }
        self.queue.close();
        let _ = self.stream.deactivate(None);
    }

    /// When a sample is due, in nanoseconds after the first one.
    fn due_ns(&self, sample: u64) -> i64 {
        (sample as f64 * 1e9 / self.shared.rate).round() as i64
    }

    fn end_burst(&mut self) -> bool {
        let silence = vec![[Complex32::new(0.0, 0.0)]; self.channels];
        let slices: Vec<&[Complex32]> = silence.iter().map(|s| s.as_slice()).collect();
        self.stream.write(&slices, None, true, PATIENCE_US).is_ok()
    }

    /// Goes on where the stream would be now, or tells the receiver that it is somewhere else.
    fn catch_up(&mut self) {
        let now = self.began_ns.and_then(|began| self.device.get_hardware_time(None).ok().map(|now| (began, now)));
        let Some((began, now)) = now else { return self.shared.relapse.note(None) };
        if self.start_ns.is_none() {
            self.end_burst();
        }
        // Behind the sample that ended the burst, at least.
        let place = ((now - began + LEAD_NS) as f64 * self.shared.rate / 1e9).ceil().max(0.0) as u64;
        let place = place.max(self.next + 1);
        self.left_out += place - self.next;
        self.left_out = self.period.map_or(self.left_out, |period| self.left_out % period);
        self.next = place;
        self.start_ns = Some(began + self.due_ns(place));
        self.shared.relapse.note(self.start_ns);
    }

    /// Ends the burst and lets it go out: deactivating a stream drops what it has not sent yet.
    fn finish(&mut self) {
        let (true, Some(began)) = (self.end_burst(), self.began_ns) else { return };
        let end = began + self.due_ns(self.next);
        // Bounded, should the clock stand still.
        for _ in 0..1000 {
            if self.shared.over() || self.device.get_hardware_time(None).map_or(true, |now| now >= end) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn write(&mut self, packet: &Packet) -> crate::Result<()> {
        let health = self.shared.health.clone();
        let left_out = self.left_out.min(packet[0].len() as u64);
        self.left_out -= left_out;
        let (mut at, mut errors) = (left_out as usize, 0);
        while at < packet[0].len() && !self.shared.over() {
            let slices: Vec<&[Complex32]> = packet.iter().map(|channel| &channel[at..]).collect();
            match self.stream.write(&slices, self.start_ns, false, PATIENCE_US) {
                Ok(n) => {
                    slices.iter().for_each(|channel| health.tx.note(&channel[..n], DAC_CLIPS));
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
        let counter = match self.stream.read_status(&mut 0, &mut 0, &mut 0, 0) {
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
