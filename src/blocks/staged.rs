//! The parts of the test bed that change a stream in place.

use futuresdr::runtime::{buffer::Tags, dev::prelude::*};

use super::{Fault, fault::guarded, message, tags};
use crate::channel::Stage;

/// A [`Stage`] of the simulated test bed as a block: [`Amplifier`](crate::channel::Amplifier), [`Fading`](crate::channel::Fading),
/// [`Noise`](crate::channel::Noise), or your own.
///
/// # Stream Inputs
///
/// `input`.
///
/// # Stream Outputs
///
/// `output`: as many samples; tags are copied.
///
/// # Message Inputs
///
/// `set`: one of the stage's parameters, `MapStrPmt {"ibo_db": F64(3)}` or `String("ibo_db=3")`, from the next buffer on: of an amplifier `ibo_db`, `input_power`,
/// `smoothness` (Rapp); of a clip `clip_db`, `input_power`; of fading `doppler` (cycles a sample), `rician_k_db`. `reset`: anything, back to the first sample.
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::{VectorSink, VectorSource}, prelude::*};
/// use kaflow::{blocks::Staged, channel::Noise};
///
/// # fn main() -> Result<()> {
/// let source = VectorSource::<Complex32>::new(vec![Complex32::new(0.0, 0.0); 10_000]);
/// let (noise, sink) = (Staged::new(Noise::new(20.0, 1)?), VectorSink::<Complex32>::new(10_000));
/// let mut fg = Flowgraph::new();
/// connect!(fg, source > noise > sink);
/// let fg = Runtime::new().run(fg)?;
/// let power = sink.get(&fg)?.items().iter().map(|z| z.norm_sqr()).sum::<f32>() / 10_000.0;
/// assert!((power / 0.01 - 1.0).abs() < 0.1);
/// # Ok(()) }
/// ```
#[derive(Block)]
#[message_inputs(set, reset)]
pub struct Staged<S, I = DefaultCpuReader<Complex32>, O = DefaultCpuWriter<Complex32>>
where
    S: Stage + 'static,
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    #[input]
    input: I,
    #[output]
    output: O,
    stage: S,
    /// Says why the block failed, if it did.
    pub fault: Fault,
}

impl<S: Stage + 'static> Staged<S> {
    /// A block around `stage`.
    pub fn new(stage: S) -> Self {
        Self::with_buffers(stage)
    }
}

impl<S, I, O> Staged<S, I, O>
where
    S: Stage + 'static,
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    /// A block around `stage` with buffers of another kind than the default.
    pub(crate) fn with_buffers(stage: S) -> Self {
        let mut output = O::default();
        output.set_min_buffer_size_in_items(super::BUFFER);
        Self { input: I::default(), output, stage, fault: Fault::default() }
    }

    async fn set(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("set", &p, |p| {
            let (name, value) = message::assignment(p)?;
            self.stage.set(&name, value)
        })
    }

    async fn reset(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("reset", &p, |_| {
            self.stage.reset();
            Ok(())
        })
    }
}

impl<S, I, O> Kernel for Staged<S, I, O>
where
    S: Stage + 'static,
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let stage = &mut self.stage;
        in_place(&mut self.input, &mut self.output, io, "the stage", |samples, _| stage.process(samples))
            .map_err(|e| self.fault.raise(e).into())
    }
}

/// The work of a block that puts out as many samples as it takes in: `process` changes them where they are and may add tags; those of the input are copied.
pub(super) fn in_place<I, O>(
    input: &mut I,
    output: &mut O,
    io: &mut WorkIo,
    what: &str,
    process: impl FnOnce(&mut [Complex32], &mut Tags<'_>),
) -> crate::Result<()>
where
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    let (from, from_tags) = input.slice_with_tags();
    let available = from.len();
    let (to, mut to_tags) = output.slice_with_tags();
    let n = available.min(to.len());
    if n > 0 {
        to[..n].copy_from_slice(&from[..n]);
        guarded(what, || process(&mut to[..n], &mut to_tags))?;
        tags::copy(&[from_tags], n, &mut to_tags);
        input.consume(n);
        output.produce(n);
    }
    io.finished |= input.finished() && n == available;
    Ok(())
}
