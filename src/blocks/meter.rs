//! NMSE, EVM and power over time.

use futuresdr::runtime::dev::prelude::*;

use super::message;
use crate::metrics::{Row, Series};

/// Measures how far `estimate` is from `reference`.
///
/// # Stream Inputs
///
/// `reference`: what it should be. `estimate`: what it is.
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
/// `rows`: a map every N samples: `end` (index behind the row's last sample), `samples`, `nmse_db`, `evm_percent`, `power_db` (of the reference,
/// relative to amplitude 1).
///
/// # Usage
/// ```
/// use futuresdr::{blocks::VectorSource, prelude::*};
/// use kaflow::blocks::Meter;
///
/// # fn main() -> Result<()> {
/// let (a, b) = (vec![Complex32::new(1.0, 0.0); 5000], vec![Complex32::new(0.9, 0.0); 5000]);
/// let mut fg = Flowgraph::new();
/// let (a, b, meter) = (VectorSource::<Complex32>::new(a), VectorSource::<Complex32>::new(b), Meter::new(1000));
/// connect!(fg, a > reference.meter; b > estimate.meter);
/// let fg = Runtime::new().run(fg)?;
/// assert!((meter.get(&fg)?.series.total().nmse_db() + 20.0).abs() < 1e-4);
/// assert_eq!(meter.get(&fg)?.series.rows().len(), 5);
/// # Ok(()) }
/// ```
#[derive(Block)]
#[message_outputs(rows)]
pub struct Meter<I = DefaultCpuReader<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
{
    #[input]
    reference: I,
    #[input]
    estimate: I,
    /// The errors over time.
    pub series: Series,
    error: Vec<Complex32>,
    due: Vec<Row>,
}

impl Meter {
    /// A row for every `every` samples.
    pub fn new(every: u64) -> Self {
        Self::with_buffers(every, 0)
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Meter<I> {
    /// A row for every `every` samples, the first `skip` left out of the total; buffers of any kind.
    pub(crate) fn with_buffers(every: u64, skip: u64) -> Self {
        Self { reference: I::default(), estimate: I::default(), series: Series::new(every, skip), error: Vec::new(), due: Vec::new() }
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Kernel for Meter<I> {
    async fn work(&mut self, io: &mut WorkIo, mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (reference, estimate) = (self.reference.slice(), self.estimate.slice());
        let (reference_len, estimate_len) = (reference.len(), estimate.len());
        let n = reference_len.min(estimate_len);
        let mut at = 0;
        while at < n {
            let end = at.saturating_add(self.series.to_boundary() as usize).min(n);
            self.error.resize(end - at, Complex32::default());
            if self.series.push(&reference[at..end], &estimate[at..end], &mut self.error) {
                self.due.push(self.series.last());
            }
            at = end;
        }
        self.reference.consume(n);
        self.estimate.consume(n);
        for row in self.due.drain(..) {
            let row = message::map([
                ("end", Pmt::U64(row.end)),
                ("samples", Pmt::U64(row.samples)),
                ("nmse_db", Pmt::F64(row.nmse_db())),
                ("evm_percent", Pmt::F64(row.evm_percent())),
                ("power_db", Pmt::F64(row.power_db())),
            ]);
            mo.post("rows", row).await?;
        }
        if (self.reference.finished() && n == reference_len) || (self.estimate.finished() && n == estimate_len) {
            io.finished = true;
        }
        Ok(())
    }
}
