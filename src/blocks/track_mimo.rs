//! Several antennas at once.

use std::path::PathBuf;

use futuresdr::runtime::dev::prelude::*;

use super::{Fault, fault::guarded, message, tags};
use crate::{
    files,
    filter::{CleanWindow, Filter, MOST_TAPS, check_taps},
    metrics::Series,
};

/// Predicts each of M received streams from N transmitted ones.
///
/// The windows of all `tx` streams, one after the other, are the input vector of one [`Filter`] for each `rx` stream: the filters see `N · taps`
/// numbers.
///
/// # Stream Inputs
///
/// `tx[n]`, `rx[m]`.
///
/// # Stream Outputs
///
/// `prediction[m]`, `error[m]` = `rx[m] − prediction[m]`. Tags of `tx` and of `rx[m]` go to both; a tag `gap` on any input keeps all
/// filters from learning until the windows lie behind the gap.
///
/// # Message Inputs
///
/// `adapt`, `bypass` (`prediction[m]` is `tx[m]`, or zero where there is none), `reset`, `set`, `save`, `load` as in [`Track`](super::Track), for all
/// filters together.
///
/// # Message Outputs
///
/// `metrics`: a map every N samples: `step`, `nmse_db` and `nmse_total_db` (lists, one number for each `rx`), `centres`.
///
/// # Usage
/// ```
/// use futuresdr::{blocks::{NullSink, VectorSource}, prelude::*};
/// use kaflow::{blocks::TrackMimo, filter::Nlms};
///
/// # fn main() -> Result<()> {
/// let stream = |k: i32| VectorSource::<Complex32>::new((0..2000).map(|i| Complex32::cis((i * i * k) as f32)).collect());
/// let (tx0, tx1, rx) = (stream(1), stream(3), stream(3));
/// let mimo = TrackMimo::new(2, 4, vec![Nlms::new(8, 0.5, 1e-6)?])?;
/// let (prediction, error) = (NullSink::<Complex32>::new(), NullSink::<Complex32>::new());
/// let mut fg = Flowgraph::new();
/// connect!(fg, tx0 > tx[0].mimo; tx1 > tx[1].mimo; rx > rx[0].mimo;
///     mimo.prediction[0] > prediction; mimo.error[0] > error);
/// let fg = Runtime::new().run(fg)?;
/// assert!(mimo.get(&fg)?.series()[0].total().nmse_db() < -10.0); // rx[0] is tx[1]
/// # Ok(()) }
/// ```
#[derive(Block)]
#[message_inputs(adapt, bypass, reset, set, save, load)]
#[message_outputs(metrics)]
pub struct TrackMimo<F = Box<dyn Filter<f32>>, I = DefaultCpuReader<Complex32>, O = DefaultCpuWriter<Complex32>>
where
    F: Filter<f32> + 'static,
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    #[input]
    tx: Vec<I>,
    #[input]
    rx: Vec<I>,
    #[output]
    prediction: Vec<O>,
    #[output]
    error: Vec<O>,
    core: Core<F>,
    due: Vec<Pmt>,
    /// Says why the block failed, if it did.
    pub fault: Fault,
    confined: Option<PathBuf>,
}

impl<F: Filter<f32> + 'static> TrackMimo<F> {
    /// `tx` input streams seen through `taps` samples each, and a filter on `tx · taps` numbers for each received stream.
    pub fn new(tx: usize, taps: usize, filters: Vec<F>) -> crate::Result<Self> {
        Self::with_buffers(tx, taps, filters)
    }
}

impl<F, I, O> TrackMimo<F, I, O>
where
    F: Filter<f32> + 'static,
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    /// As [`new`](TrackMimo::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(tx: usize, taps: usize, filters: Vec<F>) -> crate::Result<Self> {
        if tx == 0 || filters.is_empty() {
            return Err(crate::Error::parameter("streams", "at least one tx and one filter", format!("{tx} and {}", filters.len())));
        }
        check_taps(tx.saturating_mul(taps), MOST_TAPS)?;
        let windows = (0..tx).map(|_| CleanWindow::new(taps)).collect::<crate::Result<Vec<_>>>()?;
        let x = vec![Complex32::new(0.0, 0.0); tx * taps];
        if let Some(other) = filters.iter().find(|f| f.taps() != x.len()) {
            return Err(crate::Error::parameter(
                "taps",
                format!("{} in every filter: {tx} streams of {taps} samples", x.len()),
                other.taps(),
            ));
        }
        let m = filters.len();
        let series = vec![Series::new(4096, 0); m];
        let core =
            Core { filters, windows, x, frozen: false, bypass: false, series, work: vec![Vec::new(); m], errors: vec![Vec::new(); m] };
        Ok(Self {
            tx: (0..tx).map(|_| I::default()).collect(),
            rx: (0..m).map(|_| I::default()).collect(),
            prediction: (0..m).map(|_| O::default()).collect(),
            error: (0..m).map(|_| O::default()).collect(),
            core,
            due: Vec::new(),
            fault: Fault::default(),
            confined: None,
        })
    }

    /// Metrics every `every` samples (4096 if not set); the first `skip` samples are left out of the overall figures.
    pub fn metrics_every(mut self, every: u64, skip: u64) -> Self {
        self.core.series = vec![Series::new(every, skip); self.rx.len()];
        self
    }

    /// `save` and `load` take plain file names in `directory` only.
    pub fn confined(mut self, directory: impl Into<PathBuf>) -> Self {
        self.confined = Some(directory.into());
        self
    }

    /// The filters, one for each received stream.
    pub fn filters(&self) -> &[F] {
        &self.core.filters
    }

    /// The errors over time, one series for each received stream.
    pub fn series(&self) -> &[Series] {
        &self.core.series
    }

    async fn adapt(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("adapt", &p, |p| {
            self.core.frozen = !message::switch(p)?;
            Ok(())
        })
    }

    async fn bypass(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("bypass", &p, |p| {
            let bypass = message::switch(p)?;
            if self.core.bypass && !bypass {
                self.core.gap();
            }
            self.core.bypass = bypass;
            Ok(())
        })
    }

    async fn reset(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("reset", &p, |_| {
            self.core.filters.iter_mut().for_each(|f| f.reset());
            self.core.windows.iter_mut().for_each(CleanWindow::clear);
            Ok(())
        })
    }

    async fn set(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("set", &p, |p| {
            let (name, value) = message::assignment(p)?;
            let before = self.core.save();
            self.core.filters.iter_mut().try_for_each(|f| f.set(&name, value)).inspect_err(|_| {
                // All or none: filters that took the value before another one refused it go back.
                let _ = before.map(|before| self.core.take(&before));
            })
        })
    }

    async fn save(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("save", &p, |p| {
            let path = files::within(self.confined.as_deref(), message::text(p)?)?;
            files::write(&path, &self.core.save()?)
        })
    }

    async fn load(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta, p: Pmt) -> Result<Pmt> {
        message::answer("load", &p, |p| {
            let path = files::within(self.confined.as_deref(), message::text(p)?)?;
            self.core.restore(&files::read(&path, files::SAVED)?)
        })
    }
}

/// The block without its ports.
struct Core<F> {
    filters: Vec<F>,
    windows: Vec<CleanWindow<f32>>,
    x: Vec<Complex32>,
    frozen: bool,
    bypass: bool,
    series: Vec<Series>,
    // Predictions of one call, one list for each received stream.
    work: Vec<Vec<Complex32>>,
    errors: Vec<Vec<Complex32>>,
}

impl<F: Filter<f32>> Core<F> {
    fn taps(&self) -> usize {
        self.x.len() / self.windows.len()
    }

    fn gap(&mut self) {
        self.windows.iter_mut().for_each(CleanWindow::gap);
    }

    fn save(&self) -> crate::Result<Vec<u8>> {
        let filters = self.filters.iter().map(|f| f.save()).collect::<crate::Result<Vec<_>>>()?;
        crate::state::encode("mimo", &(filters, &self.windows))
    }

    fn restore(&mut self, bytes: &[u8]) -> crate::Result<()> {
        let before = self.save()?;
        self.take(bytes).inspect_err(|_| {
            // Filters that were restored before the one that refused go back.
            let _ = self.take(&before);
        })
    }

    fn take(&mut self, bytes: &[u8]) -> crate::Result<()> {
        let (filters, windows): (Vec<Vec<u8>>, Vec<CleanWindow<f32>>) = crate::state::decode("mimo", bytes)?;
        crate::state::same_shape("received streams", filters.len(), self.filters.len())?;
        crate::state::same_shape("transmitted streams", windows.len(), self.windows.len())?;
        self.windows.iter().zip(&windows).try_for_each(|(window, saved)| window.check(saved))?;
        self.filters.iter_mut().zip(&filters).try_for_each(|(f, saved)| f.restore(saved))?;
        self.windows = windows;
        Ok(())
    }

    /// One sample of every transmitted stream; predicts and learns one of every received stream.
    fn step(&mut self, tx: &[&[Complex32]], rx: &[&[Complex32]], i: usize) {
        let taps = self.taps();
        let mut learn = !self.frozen;
        for ((window, tx), x) in self.windows.iter_mut().zip(tx).zip(self.x.chunks_exact_mut(taps)) {
            let (window, clean) = window.push(tx[i]);
            x.copy_from_slice(window);
            learn &= clean;
        }
        for ((filter, rx), out) in self.filters.iter_mut().zip(rx).zip(&mut self.work) {
            out.push(if learn { filter.adapt(&self.x, rx[i]) } else { filter.predict(&self.x) });
        }
    }

    fn run(&mut self, tx: &[&[Complex32]], rx: &[&[Complex32]], n: usize, gaps: &[(usize, u64)], due: &mut Vec<Pmt>) {
        self.work.iter_mut().for_each(Vec::clear);
        if self.bypass {
            for (m, out) in self.work.iter_mut().enumerate() {
                match tx.get(m) {
                    Some(tx) => out.extend_from_slice(&tx[..n]),
                    None => out.resize(n, Complex32::new(0.0, 0.0)),
                }
            }
        } else {
            let mut gaps = gaps.iter().copied().peekable();
            for i in 0..n {
                if gaps.next_if(|&(at, _)| at == i).is_some() {
                    self.gap();
                }
                self.step(tx, rx, i);
            }
        }
        self.errors.iter_mut().for_each(|e| e.resize(n, Complex32::default()));
        let mut at = 0;
        while at < n {
            let end = at.saturating_add(self.series[0].to_boundary() as usize).min(n);
            let mut row = false;
            for (((series, rx), p), e) in self.series.iter_mut().zip(rx).zip(&self.work).zip(&mut self.errors) {
                row = series.push(&rx[at..end], &p[at..end], &mut e[at..end]);
            }
            at = end;
            if row {
                let list = |f: &dyn Fn(&Series) -> f64| Pmt::VecPmt(self.series.iter().map(|s| Pmt::F64(f(s))).collect());
                due.push(message::map([
                    ("step", Pmt::U64(self.series[0].samples())),
                    ("nmse_db", list(&|s| s.last().nmse_db())),
                    ("nmse_total_db", list(&|s| s.total().nmse_db())),
                    ("centres", Pmt::Usize(self.filters.iter().map(|f| f.size()).sum())),
                ]));
            }
        }
    }
}

impl<F, I, O> Kernel for TrackMimo<F, I, O>
where
    F: Filter<f32> + 'static,
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    async fn work(&mut self, io: &mut WorkIo, mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (tx, tx_tags): (Vec<_>, Vec<_>) = self.tx.iter_mut().map(|p| p.slice_with_tags()).unzip();
        let (rx, rx_tags): (Vec<_>, Vec<_>) = self.rx.iter_mut().map(|p| p.slice_with_tags()).unzip();
        let space = self.prediction.iter_mut().chain(&mut self.error).map(|p| p.slice().len()).min().unwrap_or(0);
        let available = tx.iter().chain(&rx).map(|s| s.len()).min().unwrap_or(0);
        let n = available.min(space);
        if n > 0 {
            let mut gaps = Vec::new();
            tags::gaps(tx_tags.iter().chain(&rx_tags).flat_map(|t| t.iter()), n, &mut gaps);
            let (core, due) = (&mut self.core, &mut self.due);
            guarded("the filter", || core.run(&tx, &rx, n, &gaps, due)).map_err(|e| self.fault.raise(e))?;
            for (m, (prediction, error)) in self.prediction.iter_mut().zip(&mut self.error).enumerate() {
                let mut inputs = tx_tags.clone();
                inputs.push(rx_tags[m]);
                let (p, mut p_tags) = prediction.slice_with_tags();
                p[..n].copy_from_slice(&self.core.work[m]);
                tags::copy(&inputs, n, &mut p_tags);
                let (e, mut e_tags) = error.slice_with_tags();
                e[..n].copy_from_slice(&self.core.errors[m]);
                tags::copy(&inputs, n, &mut e_tags);
                prediction.produce(n);
                error.produce(n);
            }
            self.tx.iter_mut().chain(&mut self.rx).for_each(|p| p.consume(n));
            for metrics in self.due.drain(..) {
                mo.post("metrics", metrics).await?;
            }
        }
        // The shortest stream ends all of them.
        if self.tx.iter_mut().chain(&mut self.rx).any(|p| p.finished() && p.slice().is_empty()) {
            io.finished = true;
        }
        Ok(())
    }
}
