//! What all detectors share: where carriers and pilots are, the transforms at the amplifier's rate, and the equalised carriers.

use num_complex::Complex32;

use super::{Detected, Observation, soft::Soft};
use crate::dsp::Fourier;
use crate::ofdm::{
    Config, RandomBits,
    layout::{Layout, pilot_polarity},
};

/// One tap a carrier behind a curve: `U = gain · D + distortion` (Bussgang).
#[derive(Clone, Copy, Debug)]
pub(super) struct OneTap {
    pub(super) gain: Complex32,
    /// Power of the distortion on a carrier.
    pub(super) distortion: f32,
}

impl Default for OneTap {
    fn default() -> Self {
        Self { gain: Complex32::ONE, distortion: 0.0 }
    }
}

/// Buffers and maps of one waveform.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) soft: Soft,
    /// Bins of the active carriers in the receiver's transform, and in the amplifier's.
    received: Vec<usize>,
    bins: Vec<usize>,
    /// Slot and sign of each pilot.
    pilots: Vec<(usize, f32)>,
    polarity: [f32; 127],
    fourier: Fourier,
    /// One symbol at the amplifier's rate.
    pub(super) time: Vec<Complex32>,
    /// `Y / H` and `noise / |H|²` on the active carriers.
    pub(super) equalized: Vec<Complex32>,
    pub(super) noise: Vec<f32>,
    /// What is known of the points before, or nothing.
    prior: Vec<f32>,
    boundless: Vec<f32>,
    data: Vec<usize>,
    config: Config,
}

/// A carrier whose noise is stronger than so many signals says nothing.
const WORST: f32 = 1e6;

impl Frame {
    pub(super) fn new(config: &Config, oversampling: usize) -> Self {
        let received = Layout::new(config);
        let layout = Layout::new(&Config { oversampling, ..config.clone() });
        let slot = |k: i32| layout.active.partition_point(|&(c, _)| c < k);
        let pilots = layout.pilots.iter().map(|&(k, _, sign)| (slot(k), sign)).collect();
        Self {
            soft: Soft::new(config.modulation),
            received: received.active.iter().map(|&(_, bin)| bin).collect(),
            bins: layout.active.iter().map(|&(_, bin)| bin).collect(),
            pilots,
            polarity: pilot_polarity(),
            fourier: Fourier::new(layout.size),
            time: vec![Complex32::default(); layout.size],
            equalized: vec![Complex32::default(); config.active],
            noise: vec![0.0; config.active],
            prior: Vec::new(),
            boundless: Vec::new(),
            data: (0..config.active).filter(|&slot| layout.data.contains(&layout.active[slot].1)).collect(),
            config: config.clone(),
        }
    }

    pub(super) fn active(&self) -> usize {
        self.bins.len()
    }

    /// Samples of a symbol at the amplifier's rate.
    pub(super) fn size(&self) -> usize {
        self.time.len()
    }

    /// Power on a carrier for each unit of white power on the amplifier's samples.
    pub(super) fn density(&self) -> f32 {
        self.bins.len() as f32 / self.time.len() as f32
    }

    /// The pilots of symbol `index`: slot and value.
    pub(super) fn pilots(&self, index: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let polarity = self.polarity[index % self.polarity.len()];
        self.pilots.iter().map(move |&(slot, sign)| (slot, sign * polarity))
    }

    /// Equalises the carriers and makes room for the result.
    pub(super) fn prepare(&mut self, symbol: &Observation<'_>, out: &mut Detected) {
        let active = self.bins.len();
        out.points.resize(active, Complex32::default());
        out.means.resize(active, Complex32::default());
        out.variances.resize(active, 0.0);
        for (slot, &bin) in self.received.iter().enumerate() {
            let (y, h) = (symbol.bins[bin], symbol.channel[bin]);
            let power = h.norm_sqr();
            let usable = power.is_finite() && power * WORST > symbol.noise && power > 0.0;
            self.noise[slot] = if usable { symbol.noise / power } else { WORST };
            self.equalized[slot] = if usable { y * h.conj() / power } else { Complex32::default() };
        }
        self.prior.clear();
        if let Some(bits) = symbol.prior {
            let length = self.soft.prior_len();
            self.prior.resize(length * active, 0.0);
            for (&slot, bits) in self.data.iter().zip(bits.chunks_exact(self.config.modulation.bits())) {
                self.soft.prior(bits, &mut self.prior[slot * length..(slot + 1) * length]);
            }
        }
    }

    /// Samples at the amplifier's rate from the active carriers, rms 1.
    pub(super) fn modulate(&mut self, points: &[Complex32]) {
        self.time.fill(Complex32::default());
        let scale = 1.0 / (self.bins.len() as f32).sqrt();
        self.bins.iter().zip(points).for_each(|(&bin, &z)| self.time[bin] = z * scale);
        self.fourier.inverse(&mut self.time);
    }

    /// Transforms `time`; [`carrier`](Self::carrier) then has the carriers.
    pub(super) fn demodulate(&mut self) {
        self.fourier.forward(&mut self.time);
    }

    pub(super) fn carrier(&self, slot: usize) -> Complex32 {
        self.time[self.bins[slot]] * ((self.bins.len() as f32).sqrt() / self.time.len() as f32)
    }

    pub(super) fn fourier(&mut self) -> &mut Fourier {
        &mut self.fourier
    }

    /// What seeded random symbols through `g` show of it to one tap.
    pub(super) fn bussgang(&mut self, g: impl Fn(Complex32) -> Complex32) -> OneTap {
        let constellation = crate::ofdm::Constellation::new(self.config.modulation);
        let mut random = RandomBits::new(0);
        let mut bits = vec![0; self.active() * self.config.modulation.bits()];
        let mut sent = vec![Complex32::default(); self.active()];
        let (mut cross, mut power, mut total) = (Complex32::default(), 0.0, 0.0);
        for _ in 0..(4096 / self.active()).max(4) {
            random.fill(&mut bits);
            constellation.map(&bits, &mut sent);
            self.modulate(&sent);
            self.time.iter_mut().for_each(|z| *z = g(*z));
            self.demodulate();
            for (slot, d) in sent.iter().enumerate() {
                let u = self.carrier(slot);
                cross += u * d.conj();
                power += d.norm_sqr();
                total += u.norm_sqr();
            }
        }
        let gain = cross / power;
        OneTap { gain, distortion: ((total - gain.norm_sqr() * power) / power).max(0.0) }
    }

    /// What one tap leaves to know of a symbol, as [`doubt_of`] counts it.
    pub(super) fn one_tap_doubt(&self, tap: OneTap) -> f32 {
        let inverse = 1.0 / tap.gain.norm_sqr().max(1e-12);
        self.noise.iter().map(|noise| (noise + tap.distortion) * inverse).map(share).sum()
    }

    /// Reads the symbol with one tap.
    pub(super) fn one_tap(&self, tap: OneTap, index: usize, spread: &mut [f32], out: &mut Detected) {
        let power = tap.gain.norm_sqr().max(1e-12);
        let inverse = tap.gain.conj() / power;
        for slot in 0..self.active() {
            out.points[slot] = self.equalized[slot] * inverse;
            out.variances[slot] = (self.noise[slot] + tap.distortion) / power;
        }
        out.doubt = self.posterior(index, &out.points, &out.variances, &mut out.means, spread);
    }

    /// What is known of the points before anything is received: their means, and the mean variance over all active carriers.
    pub(super) fn before(&mut self, index: usize, means: &mut [Complex32], spread: &mut [f32]) -> f32 {
        if self.prior.is_empty() {
            means.fill(Complex32::default());
            self.pilots(index).for_each(|(slot, value)| means[slot] = Complex32::new(value, 0.0));
            return (self.active() - self.pilots.len()) as f32 / self.active() as f32;
        }
        // As if behind endless noise.
        self.time.fill(Complex32::default());
        self.boundless.resize(self.active(), 1e9);
        self.posterior(index, &self.time[..self.active()], &self.boundless, means, spread)
    }

    /// Posterior of the points in `out`; pilots are known. Returns the mean variance over all active carriers.
    pub(super) fn posterior(
        &self,
        index: usize,
        points: &[Complex32],
        variances: &[f32],
        means: &mut [Complex32],
        spread: &mut [f32],
    ) -> f32 {
        self.soft.posterior(points, variances, &self.prior, means, spread);
        for (slot, value) in self.pilots(index) {
            (means[slot], spread[slot]) = (Complex32::new(value, 0.0), 0.0);
        }
        spread.iter().sum::<f32>() / spread.len() as f32
    }
}

/// What is left to know of points behind noise of these variances, when nothing is known of the constellation: the sum of `v / (1 + v)`.
pub(super) fn doubt_of(variances: &[f32]) -> f32 {
    variances.iter().copied().map(share).sum()
}

fn share(v: f32) -> f32 {
    v / (1.0 + v)
}
