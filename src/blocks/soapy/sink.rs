//! A radio's transmitter as a sink.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futuresdr::runtime::{Runtime, dev::prelude::*};

use super::Radio;
use super::queue::{MOMENT, Queue, Worker};
use super::radio::{PACKET, Shared};
use super::stop::THREAD;
use super::writer::{Packet, Writer};
use crate::Error;
use crate::blocks::Fault;

/// The most samples that wait to be sent: a source that repeats a frame fills the queue at once, and what changes behind it is heard that much later.
const MOST: usize = 1 << 22;

/// Transmits with any SoapySDR device.
///
/// A thread of its own writes from a bounded queue to the driver. The first sample goes out at the time that [`Radio`] and its source agreed on, where the device has
/// time, and every sample behind it at its own time: after an underflow the samples whose time has passed are left out, so that nothing is displaced for good.
/// Without time the receiver is told that everything from now on is. Underflows, late samples and timeouts are counted in the radio's [`Health`](super::Health) and end
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
    /// Says why the block failed, if it did.
    pub fault: Fault,
}

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
        input.iter_mut().for_each(|i| i.set_min_buffer_size_in_items(crate::blocks::BUFFER));
        Ok(Self { input, shared: radio.shared.clone(), driver: None, period: None, lenient: false, fault: Fault::default() })
    }

    /// The stream repeats itself after so many samples: where the flowgraph is late, the last period is sent again, and after an underflow it is enough to find the right place in it.
    pub fn repeats(mut self, period: usize) -> Self {
        self.period = Some(period.max(1) as u64);
        self
    }

    /// Ends the flowgraph in good order when the device disappears; the [`fault`](Self::fault) says so.
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
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
        let Some(stream) = self.shared.take_tx() else {
            return Err(self.fault.raise(Error::Data("the transmitter is in use already".into())).into());
        };
        let queue = Arc::new(Queue::new(self.shared.queue.min(MOST)));
        let (writer, failure) = Writer::new(self.input.len(), self.period, queue.clone(), self.shared.clone());
        let thread = std::thread::Builder::new().name(THREAD.into()).spawn(move || writer.run(stream, start));
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
            if !self.shared.patient && self.shared.stuck(&self.shared.told) {
                return self.fail(self.shared.silence_of("the transmitter has taken nothing"), io);
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
