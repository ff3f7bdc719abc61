//! The level of a received stream.

use std::sync::{Arc, Mutex, PoisonError};

use futuresdr::runtime::dev::prelude::*;

use crate::dsp::db;

/// Amplitudes of one part from here on are at the end of a converter's range: the last step of one with 12 bits.
const FULL: f32 = 1.0 - 1.0 / 2048.0;

/// How strong a stream is; full scale is an amplitude of 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Levels {
    /// Samples that were numbers.
    pub samples: u64,
    /// Sum of their `|z|²`.
    pub energy: f64,
    /// Largest `|z|²`.
    pub peak: f64,
    /// Samples with a part at the end of the converter's range.
    pub clipped: u64,
}

impl Levels {
    /// Mean power in dB below full scale.
    pub fn power_dbfs(&self) -> f64 {
        db(self.energy, self.samples as f64)
    }

    /// Largest power in dB below full scale.
    pub fn peak_dbfs(&self) -> f64 {
        db(self.peak, 1.0)
    }

    fn add(&mut self, samples: &[Complex32]) {
        for z in samples.iter().filter(|z| z.re.is_finite() && z.im.is_finite()) {
            let power = f64::from(z.re).powi(2) + f64::from(z.im).powi(2);
            self.energy += power;
            self.peak = self.peak.max(power);
            self.clipped += u64::from(z.re.abs().max(z.im.abs()) >= FULL);
            self.samples += 1;
        }
    }
}

/// Reads a [`Level`] block while it runs.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<Mutex<Levels>>);

impl Gauge {
    /// The levels so far.
    pub fn read(&self) -> Levels {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Measures how strong a stream is, and how much of it is clipped.
///
/// # Stream Inputs
///
/// `input`.
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
/// use kaflow::blocks::Level;
///
/// # fn main() -> Result<()> {
/// let (source, level) = (VectorSource::<Complex32>::new(vec![Complex32::new(0.1, 0.0); 1000]), Level::new());
/// let gauge = level.gauge();
/// let mut fg = Flowgraph::new();
/// connect!(fg, source > level);
/// Runtime::new().run(fg)?;
/// assert!((gauge.read().power_dbfs() + 20.0).abs() < 1e-5 && gauge.read().clipped == 0);
/// # Ok(()) }
/// ```
#[derive(Block)]
pub struct Level<I = DefaultCpuReader<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
{
    #[input]
    input: I,
    gauge: Gauge,
}

impl Level {
    /// Nothing measured yet.
    #[allow(clippy::new_without_default)] // a block with other buffers would be meant by its type alone
    pub fn new() -> Self {
        Self { input: Default::default(), gauge: Gauge::default() }
    }

    /// A handle that reads the levels while the block runs.
    pub fn gauge(&self) -> Gauge {
        self.gauge.clone()
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Kernel for Level<I> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let input = self.input.slice();
        let n = input.len();
        self.gauge.0.lock().unwrap_or_else(PoisonError::into_inner).add(input);
        self.input.consume(n);
        io.finished = self.input.finished();
        Ok(())
    }
}
