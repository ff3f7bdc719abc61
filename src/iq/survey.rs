//! What a recording looks like, measured in one pass and constant memory.

use num_complex::{Complex32, Complex64};

use super::{NotFinite, Recording};
use crate::Result;
use crate::dsp::{Fourier, db};
use crate::metrics::Psd;

/// Samples in a spectrum, or fewer when the recording is shorter.
const SPECTRUM: usize = 1024;

/// More spectra than these do not make the average better to look at; those of a longer recording are picked evenly.
const MAX_SPECTRA: u64 = 1 << 16;

/// Columns and rows of the spectrogram at most.
const COLUMNS: usize = 512;
const ROWS: usize = 256;

/// Samples kept for a constellation at most.
const POINTS: u64 = 4096;

/// Bins of the envelope's histogram, a quarter of a dB each, centred on 0 dB.
const BINS_PER_DB: f64 = 4.0;
const BINS: usize = 2400;

/// What one channel of a recording looks like.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    /// Samples that were looked at, those not finite included.
    pub samples: u64,
    /// NaN or infinite samples; the other numbers leave them out.
    pub not_finite: Option<NotFinite>,
    /// Mean power, `E|x|^2`.
    pub power: f64,
    /// Largest `|x|`.
    pub peak: f64,
    /// The mean.
    pub dc: Complex64,
    /// Whether every imaginary part is zero.
    pub real: bool,
    /// Samples that are cut off.
    pub clipping: Clipping,
    /// Welch's estimate over the whole recording; in cycles per sample when the rate is unknown. `None` for fewer than 16 samples.
    pub psd: Option<Psd>,
    /// Power density over time (columns) and frequency (rows, lowest first), row by row; a column without a spectrum is NaN.
    pub spectrogram: Vec<f64>,
    /// How many columns the spectrogram has.
    pub columns: usize,
    /// Counts of `|x|^2`, one for each quarter of a dB from -300 dB.
    pub envelope: Vec<u64>,
    /// Samples picked evenly, at most 4096.
    pub points: Vec<Complex32>,
}

/// How many samples are cut off.
///
/// For integer samples: those at full scale. For floats: those within a ten-thousandth of the extreme, when they are more than those within 3 % of it: a signal that is not cut
/// gets rarer towards its extreme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Clipping {
    /// A real or imaginary part at its limit: a converter was overdriven.
    pub rails: u64,
    /// The envelope at its limit: the signal was clipped, or its envelope is constant.
    pub envelope: u64,
}

impl Survey {
    /// Peak to average power in dB.
    pub(crate) fn papr_db(&self) -> f64 {
        db(self.peak * self.peak, self.power)
    }

    /// The edges of the envelope's histogram relative to rms, and its density there; bins below -60 dB of the peak are left out.
    pub(crate) fn envelope_density(&self) -> (Vec<f64>, Vec<f64>) {
        let rms = self.power.sqrt();
        let total = self.envelope.iter().sum::<u64>() as f64;
        let edge = |bin: usize| 10_f64.powf((bin as f64 / BINS_PER_DB - 300.0) / 20.0) / rms;
        let last = self.envelope.iter().rposition(|&n| n > 0);
        let Some(last) = last.filter(|_| rms > 0.0) else { return (Vec::new(), Vec::new()) };
        let first = last.saturating_sub(60 * BINS_PER_DB as usize);
        let density = (first..=last).map(|bin| self.envelope[bin] as f64 / total / (edge(bin + 1) - edge(bin))).collect();
        ((first..=last + 1).map(edge).collect(), density)
    }
}

/// Reads the selected channel from its start to its end and measures it. `progress` is called with the number of samples done; the recording is left at
/// its end.
pub(crate) fn survey(recording: &mut Recording, mut progress: impl FnMut(u64)) -> Result<Survey> {
    recording.seek(0)?;
    let len = recording.len();
    let datatype = recording.meta().global.datatype;
    let mut sums = Sums::new(datatype.is_integer().then(|| full_scale(datatype.bytes() / if datatype.is_complex() { 2 } else { 1 })));
    let mut spectra = Spectra::new(len);
    let stride = len.div_ceil(POINTS).max(1);
    let mut points = Vec::new();
    let mut buffer = vec![Complex32::default(); 1 << 15];
    let mut position = 0_u64;
    loop {
        if recording.gap().is_some() {
            spectra.cut();
        }
        let n = recording.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        let samples = &mut buffer[..n];
        let offset = (position.next_multiple_of(stride) - position) as usize;
        points.extend(samples.iter().skip(offset).step_by(stride as usize).filter(|z| z.re.is_finite() && z.im.is_finite()));
        sums.add(samples);
        spectra.add(samples, position);
        position += n as u64;
        progress(position);
    }
    let finite = (sums.finite.max(1)) as f64;
    let (psd, spectrogram, columns) = spectra.finish(recording.sample_rate().unwrap_or(1.0));
    Ok(Survey {
        samples: position,
        not_finite: recording.not_finite(),
        power: sums.power / finite,
        peak: sums.peak.sqrt(),
        dc: sums.sum / finite,
        real: sums.real,
        clipping: sums.clipping(),
        psd,
        spectrogram,
        columns,
        envelope: sums.envelope,
        points,
    })
}

/// The largest positive value of an integer of so many bytes.
fn full_scale(bytes: usize) -> f32 {
    1.0 - 1.0 / (1_u64 << (8 * bytes - 1)) as f32
}

struct Sums {
    finite: u64,
    power: f64,
    peak: f64,
    sum: Complex64,
    real: bool,
    envelope: Vec<u64>,
    full_scale: Option<f32>,
    at_full_scale: u64,
    high: Extreme,
    low: Extreme,
    round: Extreme,
}

impl Sums {
    fn new(full_scale: Option<f32>) -> Self {
        Self {
            finite: 0,
            power: 0.0,
            peak: 0.0,
            sum: Complex64::default(),
            real: true,
            envelope: vec![0; BINS],
            full_scale,
            at_full_scale: 0,
            high: Extreme::default(),
            low: Extreme::default(),
            round: Extreme::default(),
        }
    }

    fn add(&mut self, samples: &[Complex32]) {
        for z in samples.iter().filter(|z| z.re.is_finite() && z.im.is_finite()) {
            let wide = Complex64::new(z.re.into(), z.im.into());
            let power = wide.norm_sqr();
            self.finite += 1;
            self.sum += wide;
            self.power += power;
            self.peak = self.peak.max(power);
            self.real &= z.im == 0.0;
            if power > 0.0 {
                let bin = (crate::dsp::db(power, 1.0) + 300.0) * BINS_PER_DB;
                self.envelope[(bin.max(0.0) as usize).min(BINS - 1)] += 1;
            } else {
                self.envelope[0] += 1;
            }
            if let Some(top) = self.full_scale {
                self.at_full_scale += u64::from([z.re, z.im].iter().any(|&v| v >= top || v <= -1.0));
            } else {
                self.high.add(wide.re.max(wide.im));
                self.low.add(-wide.re.min(wide.im));
            }
            self.round.add(power.sqrt());
        }
    }

    fn clipping(&self) -> Clipping {
        let rails = if self.full_scale.is_some() { self.at_full_scale } else { self.high.count() + self.low.count() };
        Clipping { rails, envelope: self.round.count() }
    }
}

/// How many values lie at the largest one so far, and how many just below it.
#[derive(Default)]
struct Extreme {
    largest: f64,
    at: u64,
    below: u64,
}

impl Extreme {
    fn add(&mut self, value: f64) {
        if value > self.largest * 1.0001 {
            // What was the extreme lies below it now, or far away.
            self.below = if value * 0.97 <= self.largest { self.below + self.at } else { 0 };
            self.at = 0;
            self.largest = value;
        }
        if value > 0.0 && value >= self.largest * 0.9999 {
            self.at += 1;
        } else if value > 0.0 && value >= self.largest * 0.97 {
            self.below += 1;
        }
    }

    fn count(&self) -> u64 {
        // A preamble that returns has a peak that returns.
        if self.at >= 8 && self.at > self.below { self.at } else { 0 }
    }
}

/// Spectra of half-overlapping windows, averaged over all and over each column of the spectrogram.
struct Spectra {
    size: usize,
    len: u64,
    /// Every so many windows one is taken.
    every: u64,
    windows: u64,
    held: Vec<Complex32>,
    window: Vec<f32>,
    fourier: Fourier,
    work: Vec<Complex32>,
    sum: Vec<f64>,
    count: f64,
    rows: usize,
    cells: Vec<f64>,
    counts: Vec<f64>,
}

impl Spectra {
    fn new(len: u64) -> Self {
        let size = usize::try_from(len).unwrap_or(SPECTRUM).min(SPECTRUM);
        let size = if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 }.max(2);
        let total = len / (size as u64 / 2).max(1);
        let columns = total.clamp(1, COLUMNS as u64) as usize;
        let rows = size.min(ROWS);
        Self {
            size,
            len,
            every: total.div_ceil(MAX_SPECTRA).max(1),
            windows: 0,
            held: Vec::with_capacity(size),
            window: (0..size).map(|n| 0.5 - 0.5 * (std::f32::consts::TAU * n as f32 / size as f32).cos()).collect(),
            fourier: Fourier::new(size),
            work: vec![Complex32::default(); size],
            sum: vec![0.0; size],
            count: 0.0,
            rows,
            cells: vec![0.0; rows * columns],
            counts: vec![0.0; columns],
        }
    }

    /// A window must not reach over a gap.
    fn cut(&mut self) {
        self.held.clear();
    }

    /// Takes in samples of which the first has this position.
    fn add(&mut self, samples: &[Complex32], position: u64) {
        for (i, &z) in samples.iter().enumerate() {
            self.held.push(if z.re.is_finite() && z.im.is_finite() { z } else { Complex32::default() });
            if self.held.len() == self.size {
                if self.windows.is_multiple_of(self.every) {
                    self.transform(position + i as u64);
                }
                self.windows += 1;
                self.held.drain(..self.size / 2);
            }
        }
    }

    fn transform(&mut self, end: u64) {
        for ((w, z), h) in self.work.iter_mut().zip(&self.held).zip(&self.window) {
            *w = z * h;
        }
        self.fourier.forward(&mut self.work);
        let columns = self.counts.len();
        let middle = end.saturating_sub(self.size as u64 / 2);
        // In 128 bits: the product of a length and a column may exceed 64.
        let column = ((u128::from(middle) * columns as u128 / u128::from(self.len.max(1))) as usize).min(columns - 1);
        let group = self.size / self.rows;
        for (i, z) in self.work.iter().enumerate() {
            let power = f64::from(z.norm_sqr());
            let bin = (i + self.size / 2) % self.size;
            self.sum[bin] += power;
            self.cells[bin / group * columns + column] += power;
        }
        self.count += 1.0;
        self.counts[column] += 1.0;
    }

    fn finish(self, sample_rate: f64) -> (Option<Psd>, Vec<f64>, usize) {
        let energy: f64 = self.window.iter().map(|&w| f64::from(w * w)).sum();
        let scale = 1.0 / (energy * sample_rate);
        let columns = self.counts.len();
        let group = (self.size / self.rows) as f64;
        let cells = self.cells.iter().enumerate().map(|(i, power)| power * scale / (group * self.counts[i % columns])).collect();
        if self.count == 0.0 || self.size < 16 {
            return (None, Vec::new(), 0);
        }
        let density = self.sum.iter().map(|power| power * scale / self.count).collect();
        (Some(Psd { sample_rate, density }), cells, columns)
    }
}
