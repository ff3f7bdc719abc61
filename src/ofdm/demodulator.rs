//! From samples to carriers, symbol by symbol.

use num_complex::Complex32;

use super::{Config, layout::Layout};
use crate::Result;
use crate::dsp::Fourier;

/// Turns the body of one OFDM symbol into the values on its active carriers, lowest frequency first: the inverse of
/// `Modulator::symbol` but for clipping. No synchronisation, no equaliser: [`Receiver`](super::Receiver) has those.
#[derive(Clone, Debug)]
pub(crate) struct Demodulator {
    fourier: Fourier,
    bins: Vec<usize>,
    data: Vec<usize>,
    scale: f32,
    symbol: Vec<Complex32>,
}

impl Demodulator {
    /// A demodulator of a valid `config`.
    pub(crate) fn new(config: &Config) -> Result<Self> {
        config.validate()?;
        Ok(Self::of(&Layout::new(config)))
    }

    pub(crate) fn of(layout: &Layout) -> Self {
        let is_data = |bin: &usize| layout.data.contains(bin);
        let bins: Vec<usize> = layout.active.iter().map(|&(_, bin)| bin).collect();
        Self {
            fourier: Fourier::new(layout.size),
            data: (0..bins.len()).filter(|&slot| is_data(&bins[slot])).collect(),
            scale: (bins.len() as f32).sqrt() / layout.size as f32,
            symbol: vec![Complex32::default(); layout.size],
            bins,
        }
    }

    /// Where the data carriers are among the active ones; the others are pilots.
    pub(crate) fn data_slots(&self) -> &[usize] {
        &self.data
    }

    /// The active carriers of a symbol, `fft · oversampling` samples from any place where its prefix has begun and it has not ended; unit power on
    /// the carrier is unit power here.
    ///
    /// # Panics
    /// When `body` or `carriers` has another length than the numerology says.
    pub(crate) fn carriers(&mut self, body: &[Complex32], carriers: &mut [Complex32]) {
        self.symbol.copy_from_slice(body);
        self.transform(carriers);
    }

    /// The buffer for one symbol's samples, to be filled before [`transform`](Self::transform).
    pub(crate) fn body(&mut self) -> &mut [Complex32] {
        &mut self.symbol
    }

    /// All bins of the symbol that was transformed last, and their scale.
    pub(crate) fn bins(&self) -> (&[Complex32], f32) {
        (&self.symbol, self.scale)
    }

    pub(crate) fn transform(&mut self, carriers: &mut [Complex32]) {
        assert_eq!(carriers.len(), self.bins.len(), "number of active carriers");
        self.fourier.forward(&mut self.symbol);
        for (carrier, &bin) in carriers.iter_mut().zip(&self.bins) {
            *carrier = self.symbol[bin] * self.scale;
        }
    }
}
