//! A radio's receiver as a stream.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futuresdr::runtime::{Runtime, dev::prelude::*};

use super::Radio;
use super::queue::{MOMENT, Nothing, Queue, Worker};
use super::radio::Shared;
use super::reader::{Packet, Reader};
use crate::Error;
use crate::blocks::{Fault, TIME, gap};

/// Receives with any SoapySDR device.
///
/// A thread of its own reads from the driver into a bounded queue. When the queue is full, packets are dropped until it is half empty (or, for a patient [`Radio`], the driver
/// waits), so a flowgraph that is too slow loses samples at a few marked places and sees long stretches in between. What is received while the transmitter has fallen behind is left
/// out the same way. Overflows, clock jumps, timeouts and corrupt packets are counted in the radio's [`Health`](super::Health) and end nothing; a device that disappears, and one that brings nothing
/// for the radio's timeout, is opened again where the radio waits for it, behind a gap of unknown length; otherwise, or when it does not come back, it ends the flowgraph with an error, or only the stream ([`lenient`](Self::lenient)), even if a call into the driver never returns.
///
/// Samples leave as they were received: full scale is an amplitude of 1.
///
/// # Stream Inputs
///
/// No stream inputs.
///
/// # Stream Outputs
///
/// `output[c]`: one for each channel. The first sample of each read that the driver stamped has a tag [`TIME`]. The first sample behind a gap has a tag `gap` with the number of missing
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
pub struct SoapySource<O = DefaultCpuWriter<Complex32>>
where
    O: CpuBufferWriter<Item = Complex32>,
{
    #[output]
    output: Vec<O>,
    shared: Arc<Shared>,
    driver: Option<Worker<Packet>>,
    packet: Option<(Packet, usize)>,
    left: u64,
    lenient: bool,
    /// Says why the block failed, if it did.
    pub fault: Fault,
}

impl SoapySource {
    /// The receiver of `radio`; it starts with the flowgraph.
    pub fn new(radio: &mut Radio) -> crate::Result<Self> {
        Self::with_buffers(radio)
    }
}

impl<O: CpuBufferWriter<Item = Complex32>> SoapySource<O> {
    /// As [`new`](SoapySource::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(radio: &mut Radio) -> crate::Result<Self> {
        if radio.rx_channels() == 0 {
            return Err(Error::Data("this radio was opened without a receiver".into()));
        }
        let mut output: Vec<O> = (0..radio.rx_channels()).map(|_| O::default()).collect();
        output.iter_mut().for_each(|o| o.set_min_buffer_size_in_items(crate::blocks::BUFFER));
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

    /// The next packet, when there is one. Once the radio is to stop, what is left in the queue is of no interest.
    fn next_packet(&mut self) -> Next {
        let Some(Worker { queue, .. }) = self.driver.as_ref().filter(|_| !self.shared.stopped()) else { return Next::End };
        match queue.take(Duration::ZERO) {
            Ok(packet) => {
                self.shared.health.depth.store(queue.len(), Ordering::Relaxed);
                self.packet = Some((packet, 0));
                Next::Packet
            }
            Err(Nothing::Yet) if self.shared.stuck(&self.shared.heard) => Next::Dead,
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

    /// A driver that waits for room in the queue sees that nobody takes from it any more.
    async fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(driver) = self.driver.take() {
            driver.queue.close();
            self.shared.silence().await;
            driver.end(Duration::from_secs(1)).await;
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
        let (reader, failure) = Reader::new(stream, self.output.len(), queue.clone(), self.shared.clone());
        let thread = std::thread::Builder::new().name("kaflow rx".into()).spawn(move || reader.run());
        let thread = thread.map_err(|e| self.fault.raise(Error::io("thread", e)))?;
        self.driver = Some(Worker { queue, failure, thread });
        Ok(())
    }

    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        io.block_on = None;
        let room = self.output.iter_mut().map(|o| o.slice().len()).min().unwrap_or(0);
        let room = room.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if room == 0 {
            return Ok(());
        }
        // Handing samples over is dear: as many packets at once as there are.
        let mut n = 0;
        while n < room {
            if self.packet.is_none() {
                match self.next_packet() {
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
                        return self.fail(self.shared.silence_of("the receiver has brought nothing"));
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
            && let Some(error) = self.driver.as_ref().and_then(|driver| driver.failure.try_recv().ok())
        {
            self.fail(error)?;
        }
        io.finished |= self.left == 0;
        if let Some(driver) = self.driver.as_ref().filter(|_| !io.finished && n < room) {
            io.block_on(driver.queue.filled(MOMENT));
        }
        Ok(())
    }

    async fn deinit(&mut self, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        self.end().await;
        Ok(())
    }
}

impl<O: CpuBufferWriter<Item = Complex32>> Drop for SoapySource<O> {
    fn drop(&mut self) {
        Runtime::block_on(self.end());
    }
}
