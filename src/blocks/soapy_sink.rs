//! A radio's transmitter as a sink.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam::channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};
use futuresdr::runtime::dev::prelude::*;
use soapysdr::{Device, ErrorCode, TxStream};

use super::soapy::{DEAD_AFTER, Health, PACKET, PATIENCE_US, Shared};
use super::{Fault, Radio};
use crate::Error;

/// Transmits with any SoapySDR device.
///
/// A thread of its own writes from a bounded queue to the driver. The first sample goes out at the time that [`Radio`] and its source agreed on, where the device has
/// time. Underflows, late samples and timeouts are counted in the radio's [`Health`] and end nothing; a device that disappears ends the flowgraph
/// with an error.
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
#[blocking]
pub struct SoapySink<I = DefaultCpuReader<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
{
    #[input]
    input: Vec<I>,
    shared: Arc<Shared>,
    driver: Option<(Sender<Packet>, Receiver<Error>, JoinHandle<()>)>,
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
    pub fn with_buffers(radio: &mut Radio) -> crate::Result<Self> {
        if radio.tx_channels() == 0 {
            return Err(Error::Data("this radio was opened without a transmitter".into()));
        }
        let mut input: Vec<I> = (0..radio.tx_channels()).map(|_| I::default()).collect();
        input.iter_mut().for_each(|i| i.set_min_buffer_size_in_items(super::BUFFER));
        Ok(Self { input, shared: radio.shared.clone(), driver: None, fault: Fault::default() })
    }

    /// A handle that says why the block failed, if it did.
    pub fn fault(&self) -> Fault {
        self.fault.clone()
    }

    /// Lets the driver write what is in the queue and end its burst.
    fn end(&mut self) {
        if let Some((queue, _, thread)) = self.driver.take() {
            drop(queue);
            let _ = thread.join();
        }
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Kernel for SoapySink<I> {
    async fn init(&mut self, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let start = self.shared.start().map_err(|e| self.fault.raise(e))?;
        let Some((stream, device)) = self.shared.take_tx() else {
            return Err(self.fault.raise(Error::Data("the transmitter is in use already".into())).into());
        };
        let (packets, queue) = bounded(self.shared.queue);
        let (complaints, failure) = bounded(1);
        let driver = Driver {
            stream,
            device,
            channels: self.input.len(),
            began_ns: start.tx_at_ns,
            start_ns: start.tx_at_ns,
            queue,
            complaints,
            shared: self.shared.clone(),
        };
        let thread = std::thread::Builder::new().name("kaflow tx".into()).spawn(move || driver.run());
        let thread = thread.map_err(|e| self.fault.raise(Error::io("thread", e)))?;
        self.driver = Some((packets, failure, thread));
        Ok(())
    }

    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let Some((queue, failure, _)) = &self.driver else {
            io.finished = true;
            return Ok(());
        };
        if let Ok(error) = failure.try_recv() {
            return Err(self.fault.raise(error).into());
        }
        let slices: Vec<&[Complex32]> = self.input.iter_mut().map(|i| i.slice()).collect();
        let available = slices.iter().map(|s| s.len()).min().unwrap_or(0);
        let n = available.min(4 * PACKET);
        let ended = self.input.iter_mut().any(|i| i.finished());
        if n < PACKET && !ended && !self.shared.stopped() {
            // Handing samples over is dear: not in small pieces.
            return Ok(());
        }
        let slices: Vec<&[Complex32]> = self.input.iter_mut().map(|i| i.slice()).collect();
        if n > 0 {
            let packet: Packet = slices.iter().map(|s| s[..n].to_vec()).collect();
            match queue.send_timeout(packet, Duration::from_millis(50)) {
                Ok(()) => {
                    self.input.iter_mut().for_each(|i| i.consume(n));
                    io.call_again = n < available;
                }
                // What did not fit stays in the buffer.
                Err(SendTimeoutError::Timeout(_)) => io.call_again = true,
                Err(SendTimeoutError::Disconnected(_)) => {
                    return match failure.recv_timeout(Duration::from_secs(1)) {
                        Ok(error) => Err(self.fault.raise(error).into()),
                        Err(_) => {
                            io.finished = true;
                            Ok(())
                        }
                    };
                }
            }
        }
        let sent_all = n == available && !io.call_again;
        io.finished = self.shared.stopped() || (sent_all && ended);
        Ok(())
    }

    async fn deinit(&mut self, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        self.end();
        Ok(())
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Drop for SoapySink<I> {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.end();
    }
}

/// The thread that writes.
struct Driver {
    stream: TxStream<Complex32>,
    device: Device,
    channels: usize,
    began_ns: Option<i64>,
    /// Until the first sample is written.
    start_ns: Option<i64>,
    queue: Receiver<Packet>,
    complaints: Sender<Error>,
    shared: Arc<Shared>,
}

impl Driver {
    fn run(mut self) {
        loop {
            match self.queue.recv_timeout(Duration::from_millis(50)) {
                Ok(packet) => {
                    if let Err(error) = self.write(&packet) {
                        let _ = self.complaints.try_send(error);
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.shared.stopped() {
                break;
            }
            while self.note_status() {}
        }
        if !self.shared.stopped() {
            self.finish();
        }
        let _ = self.stream.deactivate(None);
    }

    /// Ends the burst and lets it go out: deactivating a stream drops what it has not sent yet.
    fn finish(&mut self) {
        let silence = vec![[Complex32::new(0.0, 0.0)]; self.channels];
        let slices: Vec<&[Complex32]> = silence.iter().map(|s| s.as_slice()).collect();
        let (Ok(_), Some(began)) = (self.stream.write(&slices, None, true, PATIENCE_US), self.began_ns) else { return };
        let sent = self.shared.health.sent.load(Ordering::Relaxed);
        let end = began + (sent as f64 * 1e9 / self.shared.rate) as i64;
        // Bounded, should the clock stand still.
        for _ in 0..1000 {
            if self.shared.stopped() || self.device.get_hardware_time(None).map_or(true, |now| now >= end) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn write(&mut self, packet: &Packet) -> crate::Result<()> {
        let health = self.shared.health.clone();
        let (mut at, mut errors) = (0, 0);
        while at < packet[0].len() && !self.shared.stopped() {
            let slices: Vec<&[Complex32]> = packet.iter().map(|channel| &channel[at..]).collect();
            match self.stream.write(&slices, self.start_ns, false, PATIENCE_US) {
                Ok(n) => {
                    (at, errors) = (at + n, 0);
                    Health::count(&health.sent, n as u64);
                    if n > 0 {
                        self.start_ns = None;
                    }
                }
                Err(error) => match error.code {
                    ErrorCode::Timeout => Health::count(&health.timeouts, 1),
                    ErrorCode::Underflow => Health::count(&health.underflows, 1),
                    ErrorCode::TimeError => {
                        Health::count(&health.time_errors, 1);
                        // Too late for its time: at once, then.
                        self.start_ns = None;
                    }
                    _ => {
                        errors += 1;
                        if errors >= DEAD_AFTER {
                            return Err(Error::Data(format!("the transmitter has disappeared: {} ({:?})", error.message, error.code)));
                        }
                        std::thread::sleep(Duration::from_millis(1));
                    }
                },
            }
        }
        Ok(())
    }

    /// Some losses only show in the stream's status.
    fn note_status(&mut self) -> bool {
        let health = &self.shared.health;
        match self.stream.read_status(&mut 0, &mut 0, &mut 0, 0) {
            Ok(_) => true,
            Err(error) => match error.code {
                ErrorCode::Underflow => {
                    Health::count(&health.underflows, 1);
                    true
                }
                ErrorCode::TimeError => {
                    Health::count(&health.time_errors, 1);
                    true
                }
                _ => false,
            },
        }
    }
}
