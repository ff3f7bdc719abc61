//! Rates of events.

use futuresdr::runtime::dev::prelude::*;

use super::{Fault, fault::guarded, tags, window::OnWindows};
use crate::{
    filter::{KernelFilter, MOST_TAPS, check_taps},
    kernel,
    observation::Poisson,
};

/// Learns the rate of a Poisson process from counts: photons in a detector, packets in a slot.
///
/// # Stream Inputs
///
/// `input`: what the rate depends on, seen through a window of `taps` samples. `counts` (`f32`): how many events were counted with each of them; a
/// negative number or NaN where nobody counted.
///
/// # Stream Outputs
///
/// `rate` (`f32`): the expected count, one step ahead. Tags of both inputs.
///
/// # Message Inputs
///
/// `adapt`: `Bool`, learn or only predict. `reset`: anything. `set`: one parameter by name, as in [`Track`](super::Track).
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::{VectorSink, VectorSource}, prelude::*};
/// use kaflow::{blocks::Count, filter::{Evict, bayesian_klms}, kernel::Gaussian, observation::Poisson};
///
/// # fn main() -> Result<()> {
/// // Light falls on the detector while the input is 1.
/// let input: Vec<_> = (0..600).map(|i| Complex32::new((i / 20 % 2) as f32, 0.0)).collect();
/// let counts = input.iter().enumerate().map(|(i, x)| if x.re > 0.5 { 20.0 + (i % 3) as f32 } else { 1.0 }).collect();
///
/// let count = Count::new(bayesian_klms(Gaussian::new(0.3)?, Poisson::new(0.02, 0.0)?, 1.0, Evict::default(), 1)?, 1)?;
/// let (input, counts) = (VectorSource::<Complex32>::new(input), VectorSource::<f32>::new(counts));
/// let rate = VectorSink::<f32>::new(600);
/// let mut fg = Flowgraph::new();
/// connect!(fg, input > input.count; counts > counts.count; count.rate > rate);
/// let fg = Runtime::new().run(fg)?;
/// assert!((rate.get(&fg)?.items()[599] - 21.0).abs() < 2.0);
/// # Ok(()) }
/// ```
#[derive(Block)]
#[message_inputs(adapt, reset, set)]
pub struct Count<K, I = DefaultCpuReader<Complex32>, C = DefaultCpuReader<f32>, O = DefaultCpuWriter<f32>>
where
    K: kernel::Kernel<f32> + 'static,
    I: CpuBufferReader<Item = Complex32>,
    C: CpuBufferReader<Item = f32>,
    O: CpuBufferWriter<Item = f32>,
{
    #[input]
    input: I,
    #[input]
    counts: C,
    #[output]
    rate: O,
    learner: OnWindows<KernelFilter<f32, K, Poisson>>,
    /// Says why the block failed, if it did.
    pub fault: Fault,
}

impl<K: kernel::Kernel<f32> + 'static> Count<K> {
    /// `filter` on windows of `taps` samples.
    pub fn new(filter: KernelFilter<f32, K, Poisson>, taps: usize) -> crate::Result<Self> {
        Self::with_buffers(filter, taps)
    }
}

impl<K, I, C, O> Count<K, I, C, O>
where
    K: kernel::Kernel<f32> + 'static,
    I: CpuBufferReader<Item = Complex32>,
    C: CpuBufferReader<Item = f32>,
    O: CpuBufferWriter<Item = f32>,
{
    /// As [`new`](Count::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(mut filter: KernelFilter<f32, K, Poisson>, taps: usize) -> crate::Result<Self> {
        check_taps(taps, MOST_TAPS)?;
        guarded(&format!("a filter given {taps} numbers"), || {
            filter.predict(&vec![Complex32::new(0.0, 0.0); taps]);
        })?;
        let learner = OnWindows::new(filter, taps)?;
        Ok(Self { input: I::default(), counts: C::default(), rate: O::default(), learner, fault: Fault::default() })
    }

    /// The filter inside.
    pub fn filter(&self) -> &KernelFilter<f32, K, Poisson> {
        &self.learner.filter
    }

    async fn adapt(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        self.learner.adapt(&p)
    }

    async fn reset(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        self.learner.reset(&p)
    }

    async fn set(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        self.learner.set(&p)
    }
}

impl<K, I, C, O> Kernel for Count<K, I, C, O>
where
    K: kernel::Kernel<f32> + 'static,
    I: CpuBufferReader<Item = Complex32>,
    C: CpuBufferReader<Item = f32>,
    O: CpuBufferWriter<Item = f32>,
{
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (input, input_tags) = self.input.slice_with_tags();
        let (counts, counts_tags) = self.counts.slice_with_tags();
        let (input_len, counts_len) = (input.len(), counts.len());
        let (rate, mut rate_tags) = self.rate.slice_with_tags();
        let n = input_len.min(counts_len).min(rate.len());
        tags::copy(&[input_tags, counts_tags], n, &mut rate_tags);
        let step = |filter: &mut KernelFilter<f32, K, Poisson>, i: usize, x: &[Complex32], learn: bool| {
            rate[i] = if learn { filter.adapt(x, counts[i]) } else { filter.predict(x) };
        };
        self.learner.run(&input[..n], input_tags.iter().chain(counts_tags), step).map_err(|e| self.fault.raise(e))?;
        self.input.consume(n);
        self.counts.consume(n);
        self.rate.produce(n);
        if (self.input.finished() && n == input_len) || (self.counts.finished() && n == counts_len) {
            io.finished = true;
        }
        Ok(())
    }
}
