//! The OFDM receiver as a sink of samples and a source of packets.

use futuresdr::runtime::dev::prelude::*;

use super::{message, tags};
use crate::{
    dsp::db,
    ofdm::{Packet, Receiver},
};

/// Finds frames in a stream, demodulates and decodes them, with one tap a carrier or, for a receiver that is [`reading`](Receiver::reading), through the
/// saturation of the transmitter's amplifier.
///
/// # Stream Inputs
///
/// `input`; a frame that a tag [`gap`](super::GAP) cuts is given up.
///
/// # Stream Outputs
///
/// `points`: the equalised constellation points of each frame, symbol after symbol. A tag `packet` is on the first of each frame, with its number.
///
/// # Message Inputs
///
/// `reset`: anything, back to the start of a stream.
///
/// # Message Outputs
///
/// `packets`: a map for each frame: `start` (index of its first sample), `bits` (`Blob`, one to a byte), `evm_percent`, `snr_db`, `offset` (cycles
/// a sample); of a coded frame also `decoded` (whether its checksum is right) and `data` (`Blob`, one bit to a byte, empty where it is not).
///
/// # Usage
/// ```
/// use futuresdr::{blocks::VectorSink, prelude::*};
/// use kaflow::{blocks::{OfdmRx, OfdmTx}, ofdm::{Config, Receiver, Source, Transmitter}};
///
/// # fn main() -> Result<()> {
/// let wifi = Config::preset("wifi")?;
/// let tx = OfdmTx::new(Transmitter::new(wifi.clone(), Source::RandomFrames)?, Some(12_000));
/// let (rx, points) = (OfdmRx::new(Receiver::new(wifi)?).keep_packets(), VectorSink::<Complex32>::new(0));
/// let mut fg = Flowgraph::new();
/// connect!(fg, tx > rx; rx.points > points);
/// let fg = Runtime::new().run(fg)?;
/// assert_eq!(points.get(&fg)?.items().len(), rx.get(&fg)?.packets().len() * 480); // ten symbols of 48 data carriers
/// # Ok(()) }
/// ```
#[derive(Block)]
#[message_inputs(reset)]
#[message_outputs(packets)]
pub struct OfdmRx<I = DefaultCpuReader<Complex32>, O = DefaultCpuWriter<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    #[input]
    input: I,
    #[output]
    points: O,
    receiver: Receiver,
    received: u64,
    /// Points that were not emitted yet, and how many of them are gone; frames among them by their first point.
    ready: Vec<Complex32>,
    sent: usize,
    frames: Vec<(usize, u64)>,
    due: Vec<Pmt>,
    keep: Option<Vec<Packet>>,
    told: Option<Told>,
    /// Where the gaps are in the input at hand.
    gaps: Vec<(usize, u64)>,
}

/// Hears of every packet, and of none at the end.
type Told = Box<dyn FnMut(&Receiver, Option<&Packet>) + Send>;

impl OfdmRx {
    /// A block around `receiver`.
    pub fn new(receiver: Receiver) -> Self {
        Self::with_buffers(receiver)
    }
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> OfdmRx<I, O> {
    /// As [`new`](OfdmRx::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(receiver: Receiver) -> Self {
        Self {
            input: I::default(),
            points: O::default(),
            receiver,
            received: 0,
            ready: Vec::new(),
            sent: 0,
            frames: Vec::new(),
            due: Vec::new(),
            keep: None,
            told: None,
            gaps: Vec::new(),
        }
    }

    /// Calls `told` with what was received after every piece of the stream in which packets were found, once for each, and without one at the end.
    /// For a receiver that a flowgraph keeps to itself, as that of a [`Plan`](crate::flowgraphs::track::Plan) does.
    pub fn tell(mut self, told: impl FnMut(&Receiver, Option<&Packet>) + Send + 'static) -> Self {
        self.told = Some(Box::new(told));
        self
    }

    /// Keeps all packets for [`packets`](Self::packets): for runs that are known to be short.
    pub fn keep_packets(mut self) -> Self {
        self.keep = Some(Vec::new());
        self
    }

    /// The packets, if they are kept.
    pub fn packets(&self) -> &[Packet] {
        self.keep.as_deref().unwrap_or_default()
    }

    async fn reset(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("reset", &p, |_| {
            self.receiver.reset();
            Ok(())
        })
    }
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> Kernel for OfdmRx<I, O> {
    async fn work(&mut self, io: &mut WorkIo, mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (input, input_tags) = self.input.slice_with_tags();
        let input_len = input.len();
        // New frames only when the old ones are out, so that what waits stays short.
        let n = if self.sent == self.ready.len() { input_len } else { 0 };
        if n > 0 {
            self.ready.clear();
            self.frames.clear();
            self.sent = 0;
            tags::gaps(input_tags, n, &mut self.gaps);
            let mut at = 0;
            let mut packets = Vec::new();
            for (end, length) in self.gaps.iter().map(|&(at, length)| (at, Some(length))).chain([(n, None)]) {
                self.receiver.push(&input[at..end], |packet| packets.push(packet.clone()));
                length.into_iter().for_each(|length| self.receiver.gap(length));
                at = end;
            }
            for packet in packets {
                self.frames.push((self.ready.len(), self.received));
                self.ready.extend_from_slice(&packet.points);
                self.received += 1;
                self.due.push(message::map([
                    ("start", Pmt::Isize(packet.start as isize)),
                    ("bits", Pmt::Blob(packet.bits.clone())),
                    ("evm_percent", Pmt::F64(packet.evm.percent())),
                    ("snr_db", Pmt::F64(db(packet.snr, 1.0))),
                    ("offset", Pmt::F64(packet.offset)),
                    ("decoded", Pmt::Bool(packet.data.is_some())),
                    ("data", Pmt::Blob(packet.data.clone().unwrap_or_default())),
                ]));
                if let Some(told) = &mut self.told {
                    told(&self.receiver, Some(&packet));
                }
                if let Some(keep) = &mut self.keep {
                    keep.push(packet);
                }
            }
            self.input.consume(n);
        }
        let (points, mut tags) = self.points.slice_with_tags();
        let m = points.len().min(self.ready.len() - self.sent);
        points[..m].copy_from_slice(&self.ready[self.sent..self.sent + m]);
        for &(at, number) in self.frames.iter().filter(|(at, _)| (self.sent..self.sent + m).contains(at)) {
            tags.add_tag(at - self.sent, Tag::NamedUsize("packet".into(), number as usize));
        }
        if m > 0 {
            self.sent += m;
            self.points.produce(m);
        }
        for packet in self.due.drain(..) {
            mo.post("packets", packet).await?;
        }
        let drained = self.sent == self.ready.len();
        io.call_again = drained && n < input_len;
        if self.input.finished() && n == input_len && drained {
            io.finished = true;
            if let Some(mut told) = self.told.take() {
                told(&self.receiver, None);
            }
        }
        Ok(())
    }
}
