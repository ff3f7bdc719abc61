//! A vector without an end.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use futuresdr::runtime::dev::prelude::*;

/// Puts out the same samples over and over.
///
/// # Stream Inputs
///
/// No stream inputs.
///
/// # Stream Outputs
///
/// `output`, until `stop` is true.
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
/// use futuresdr::{blocks::{Head, NullSink}, prelude::*};
/// use kaflow::blocks::Repeat;
///
/// # fn main() -> Result<()> {
/// let repeat = Repeat::new(vec![Complex32::new(1.0, 0.0); 100], Default::default());
/// let (head, sink) = (Head::<Complex32>::new(12_345), NullSink::<Complex32>::new());
/// let mut fg = Flowgraph::new();
/// connect!(fg, repeat > head > sink);
/// Runtime::new().run(fg)?;
/// # Ok(()) }
/// ```
#[derive(Block)]
pub struct Repeat<O = DefaultCpuWriter<Complex32>>
where
    O: CpuBufferWriter<Item = Complex32>,
{
    #[output]
    output: O,
    samples: Vec<Complex32>,
    at: usize,
    stop: Arc<AtomicBool>,
    factor: Arc<AtomicU32>,
}

impl Repeat {
    /// Repeats `samples` until `stop` is true.
    pub fn new(samples: Vec<Complex32>, stop: Arc<AtomicBool>) -> Self {
        Self::with_buffers(samples, stop)
    }
}

impl<O: CpuBufferWriter<Item = Complex32>> Repeat<O> {
    /// As [`new`](Repeat::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(samples: Vec<Complex32>, stop: Arc<AtomicBool>) -> Self {
        let mut output = O::default();
        output.set_min_buffer_size_in_items(crate::blocks::BUFFER);
        Self { output, samples, at: 0, stop, factor: Arc::new(AtomicU32::new(1f32.to_bits())) }
    }

    /// Multiplies the samples by a factor that may change at any time: the bits of an f32.
    pub fn scaled(mut self, factor: Arc<AtomicU32>) -> Self {
        self.factor = factor;
        self
    }
}

impl<O: CpuBufferWriter<Item = Complex32>> Kernel for Repeat<O> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        io.finished = self.samples.is_empty() || self.stop.load(Ordering::Relaxed);
        let output = self.output.slice();
        if output.len() < crate::blocks::BUFFER / 4 {
            // Handing samples over is dear: not in small pieces.
            return Ok(());
        }
        let factor = f32::from_bits(self.factor.load(Ordering::Relaxed));
        let mut n = 0;
        while n < output.len() && !self.samples.is_empty() {
            let m = (self.samples.len() - self.at).min(output.len() - n);
            output[n..n + m].copy_from_slice(&self.samples[self.at..self.at + m]);
            self.at = (self.at + m) % self.samples.len();
            n += m;
        }
        if factor != 1.0 {
            output[..n].iter_mut().for_each(|z| *z *= factor);
        }
        if n > 0 {
            self.output.produce(n);
        }
        Ok(())
    }
}
