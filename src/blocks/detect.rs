//! Kernel classifiers as soft demappers.

use futuresdr::runtime::dev::prelude::*;

use super::{Fault, fault::guarded, tags, window::OnWindows};
use crate::{
    filter::{Adaptive, KernelFilter, MOST_TAPS, check_taps},
    kernel,
    observation::{Bernoulli, Multinomial},
};

/// A filter that tells classes apart: Bernoulli-KLMS (two classes) and multinomial-KLMS, or your own.
pub trait Classifier: Adaptive {
    /// The probability of each class at `x`, into `out`; learns nothing. A two-class filter may give `P(1)` alone.
    fn predict(&mut self, x: &[Complex32], out: &mut Vec<f32>);

    /// As [`predict`](Self::predict), then learns that `x` belongs to `class`.
    fn adapt(&mut self, x: &[Complex32], class: u8, out: &mut Vec<f32>);
}

impl<K: kernel::Kernel<f32>> Classifier for KernelFilter<f32, K, Bernoulli> {
    fn predict(&mut self, x: &[Complex32], out: &mut Vec<f32>) {
        out.push(KernelFilter::predict(self, x));
    }

    fn adapt(&mut self, x: &[Complex32], class: u8, out: &mut Vec<f32>) {
        out.push(if class < 2 { KernelFilter::adapt(self, x, class == 1) } else { KernelFilter::predict(self, x) });
    }
}

impl<K: kernel::Kernel<f32>> Classifier for KernelFilter<f32, K, Multinomial> {
    fn predict(&mut self, x: &[Complex32], out: &mut Vec<f32>) {
        out.extend_from_slice(KernelFilter::predict(self, x));
    }

    fn adapt(&mut self, x: &[Complex32], class: u8, out: &mut Vec<f32>) {
        out.extend_from_slice(KernelFilter::adapt(self, x, usize::from(class)));
    }
}

impl<C: Classifier + ?Sized> Classifier for Box<C> {
    fn predict(&mut self, x: &[Complex32], out: &mut Vec<f32>) {
        (**self).predict(x, out);
    }

    fn adapt(&mut self, x: &[Complex32], class: u8, out: &mut Vec<f32>) {
        (**self).adapt(x, class, out);
    }
}

/// What [`Detect`] puts out for each received sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Soft {
    /// The probability of each class; of two classes that of the second, `P(bit = 1)`, alone.
    Probability,
    /// `ln P(bit = 1) − ln P(bit = 0)` for each bit of the class's number, the most significant first; within ±16.
    Llr,
}

/// Learns from training which bit or symbol was sent, and says how sure it is: a soft demapper that needs no channel model.
///
/// # Stream Inputs
///
/// `rx`: the received samples, of which it sees windows of `taps`. `training` (`u8`): what was sent with each of them, or
/// [`UNKNOWN`](Detect::UNKNOWN) where that is not known. Delay `training` to let the window reach ahead of the symbol.
///
/// # Stream Outputs
///
/// `soft` (`f32`): for each received sample `per_sample` numbers, as [`Soft`] says, one step ahead: before the training of
/// that sample is learned. Tags of both inputs, on the first number of their sample.
///
/// # Message Inputs
///
/// `adapt`: `Bool`, learn from training or ignore it. `reset`: anything. `set`: one parameter by name, as in [`Track`](super::Track).
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::{VectorSink, VectorSource}, prelude::*};
/// use kaflow::{blocks::{Detect, Soft}, filter::{Evict, bayesian_klms}, kernel::Gaussian, observation::Bernoulli};
///
/// # fn main() -> Result<()> {
/// // A bit turns the phase of what is received; after 500 samples the detector is on its own.
/// let bits: Vec<u8> = (0..1000u32).map(|i| (i * i / 7 % 2) as u8).collect();
/// let rx = bits.iter().map(|&b| Complex32::cis(1.0 + 2.5 * f32::from(b))).collect();
/// let training = bits.iter().enumerate().map(|(i, &b)| if i < 500 { b } else { Detect::UNKNOWN }).collect();
///
/// let filter = bayesian_klms(Gaussian::new(0.5)?, Bernoulli::new(1.0, 0.0)?, 1.0, Evict { budget: Some(100), floor: None }, 1)?;
/// let detect = Detect::new(filter, 1, Soft::Llr)?;
/// let (rx, training) = (VectorSource::<Complex32>::new(rx), VectorSource::<u8>::new(training));
/// let llr = VectorSink::<f32>::new(1000);
/// let mut fg = Flowgraph::new();
/// connect!(fg, rx > rx.detect; training > training.detect; detect.soft > llr);
/// let fg = Runtime::new().run(fg)?;
/// assert!(llr.get(&fg)?.items()[500..].iter().zip(&bits[500..]).all(|(&l, &b)| (l > 0.0) == (b == 1)));
/// # Ok(()) }
/// ```
#[derive(Block)]
#[message_inputs(adapt, reset, set)]
pub struct Detect<C = Box<dyn Classifier>, I = DefaultCpuReader<Complex32>, L = DefaultCpuReader<u8>, O = DefaultCpuWriter<f32>>
where
    C: Classifier + 'static,
    I: CpuBufferReader<Item = Complex32>,
    L: CpuBufferReader<Item = u8>,
    O: CpuBufferWriter<Item = f32>,
{
    #[input]
    rx: I,
    #[input]
    training: L,
    #[output]
    soft: O,
    learner: OnWindows<C>,
    form: Soft,
    classes: usize,
    probabilities: Vec<f32>,
    /// Says why the block failed, if it did.
    pub fault: Fault,
}

impl Detect {
    /// The training value of a sample that carries nothing known.
    pub const UNKNOWN: u8 = u8::MAX;
}

impl<C: Classifier + 'static> Detect<C> {
    /// `classifier` on windows of `taps` samples.
    pub fn new(classifier: C, taps: usize, form: Soft) -> crate::Result<Self> {
        Self::with_buffers(classifier, taps, form)
    }
}

impl<C, I, L, O> Detect<C, I, L, O>
where
    C: Classifier + 'static,
    I: CpuBufferReader<Item = Complex32>,
    L: CpuBufferReader<Item = u8>,
    O: CpuBufferWriter<Item = f32>,
{
    /// As [`new`](Detect::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(mut classifier: C, taps: usize, form: Soft) -> crate::Result<Self> {
        check_taps(taps, MOST_TAPS)?;
        let mut probabilities = Vec::new();
        guarded(&format!("a classifier given {taps} numbers"), || {
            classifier.predict(&vec![Complex32::new(0.0, 0.0); taps], &mut probabilities);
        })?;
        let classes = probabilities.len().max(2);
        if form == Soft::Llr && !classes.is_power_of_two() {
            return Err(crate::Error::parameter("classes", "a power of two, to have bits", classes));
        }
        let mut soft = O::default();
        soft.set_min_items(classes);
        Ok(Self {
            rx: I::default(),
            training: L::default(),
            soft,
            learner: OnWindows::new(classifier, taps)?,
            form,
            classes,
            probabilities,
            fault: Fault::default(),
        })
    }

    /// How many numbers come out for each received sample.
    pub(crate) fn per_sample(&self) -> usize {
        match self.form {
            Soft::Probability if self.classes == 2 => 1,
            Soft::Probability => self.classes,
            Soft::Llr => self.classes.ilog2() as usize,
        }
    }

    /// The classifier inside.
    pub fn classifier(&self) -> &C {
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

/// Beyond this an `f32` probability is 0 or 1 and its logarithm says nothing more.
const MOST: f32 = 16.0;

/// The log-likelihood ratio of bit `bit` of the class's number.
fn llr(probabilities: &[f32], bit: usize) -> f32 {
    let (mut one, mut zero) = (0.0, 0.0);
    match probabilities {
        [one_alone] => (one, zero) = (*one_alone, 1.0 - one_alone),
        all => all.iter().enumerate().for_each(|(class, p)| *(if class >> bit & 1 == 1 { &mut one } else { &mut zero }) += p),
    }
    (one.ln() - zero.ln()).clamp(-MOST, MOST)
}

impl<C, I, L, O> Kernel for Detect<C, I, L, O>
where
    C: Classifier + 'static,
    I: CpuBufferReader<Item = Complex32>,
    L: CpuBufferReader<Item = u8>,
    O: CpuBufferWriter<Item = f32>,
{
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let per_sample = self.per_sample();
        let (rx, rx_tags) = self.rx.slice_with_tags();
        let (training, training_tags) = self.training.slice_with_tags();
        let (rx_len, training_len) = (rx.len(), training.len());
        let (soft, mut soft_tags) = self.soft.slice_with_tags();
        let n = rx_len.min(training_len).min(soft.len() / per_sample);
        tags::copy_scaled(&[rx_tags, training_tags], n, per_sample, &mut soft_tags);
        let (form, classes, probabilities) = (self.form, self.classes, &mut self.probabilities);
        let step = |classifier: &mut C, i: usize, x: &[Complex32], learn: bool| {
            probabilities.clear();
            if learn && usize::from(training[i]) < classes {
                classifier.adapt(x, training[i], probabilities);
            } else {
                classifier.predict(x, probabilities);
            }
            let out = &mut soft[i * per_sample..][..per_sample];
            match form {
                Soft::Probability => out.copy_from_slice(&probabilities[probabilities.len() - per_sample..]),
                Soft::Llr => out.iter_mut().rev().enumerate().for_each(|(bit, out)| *out = llr(probabilities, bit)),
            }
        };
        self.learner.run(&rx[..n], rx_tags.iter().chain(training_tags), step).map_err(|e| self.fault.raise(e))?;
        self.rx.consume(n);
        self.training.consume(n);
        self.soft.produce(n * per_sample);
        if (self.rx.finished() && n == rx_len) || (self.training.finished() && n == training_len) {
            io.finished = true;
        }
        Ok(())
    }
}
