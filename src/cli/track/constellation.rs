//! The constellation before and after an equaliser, on a test bed whose waveform is known.

use num_complex::Complex32;

use super::{Args, graph::Tracked, input::Survey};
use crate::{
    Result,
    filter::{Guard, registry},
    ofdm::{Config, Demodulator},
};

/// Points of either picture: more only hide one another.
const MOST: usize = 4000;

/// Constellation points of the same data carriers, by two equalisers that both know all that was sent before, and nothing of the present symbol but its
/// pilots.
pub(super) struct Points {
    /// By one tap for each carrier: divided by the gain of the symbol before, and turned as the pilots say.
    pub(super) one_tap: Vec<Complex32>,
    /// By the filter: its predictions of what was sent, demodulated.
    pub(super) equalised: Vec<Complex32>,
    /// What was sent, as clipping and amplifier left it.
    pub(super) sent: Vec<Complex32>,
}

/// The last points of the start of the streams; nothing without `--equalize`, or where the waveform is not known.
pub(super) fn points(args: &Args, survey: &Survey, filter: &Tracked) -> Result<Option<Points>> {
    let Some((config, frames)) = survey.waveform.as_ref().filter(|_| args.equalize) else { return Ok(None) };
    let (received, sent) = (&survey.input, &survey.target);
    let early = &received[survey.advance.min(received.len())..];
    let n = early.len().min(sent.len());
    let mut estimate = vec![Complex32::default(); n];
    Guard::new(registry::tracker::<f32>(&filter.settings, args.taps)?).track(&early[..n], &sent[..n], &mut estimate, None);

    let mut carriers = Carriers { demodulator: Demodulator::new(config)?, config };
    let wanted = MOST / config.data_carriers().max(1);
    let mut pairs: Vec<(usize, usize)> = symbols(config, *frames, n);
    pairs.drain(..pairs.len().saturating_sub(wanted));
    let mut points = Points { one_tap: Vec::new(), equalised: Vec::new(), sent: Vec::new() };
    for (before, now) in pairs {
        let (x, y) = (carriers.at(sent, before), carriers.at(received, before));
        let gains: Vec<_> = x.iter().zip(&y).map(|(x, y)| y * x.conj() / x.norm_sqr().max(f32::MIN_POSITIVE)).collect();
        let (x, y, estimate) = (carriers.at(sent, now), carriers.at(received, now), carriers.at(&estimate, now));
        let data = carriers.demodulator.data_slots();
        let pilots = (0..x.len()).filter(|slot| !data.contains(slot));
        let turn: Complex32 = pilots.map(|slot| y[slot] * (gains[slot] * x[slot]).conj()).sum();
        let turn = if turn.norm() > 0.0 { turn / turn.norm() } else { Complex32::new(1.0, 0.0) };
        for &slot in data {
            let (one_tap, equalised) = (y[slot] / (gains[slot] * turn), estimate[slot]);
            if (one_tap + equalised).norm().is_finite() {
                points.one_tap.push(one_tap);
                points.equalised.push(equalised);
                points.sent.push(x[slot]);
            }
        }
    }
    Ok(Some(points).filter(|p| !p.equalised.is_empty()))
}

/// Where symbols begin that follow another one at once, with the beginning of that one, among the first `n` samples.
fn symbols(config: &Config, frames: bool, n: usize) -> Vec<(usize, usize)> {
    let length = config.symbol_samples();
    let starts = |first: usize, count: usize| (1..count).map(move |i| (first + (i - 1) * length, first + i * length));
    if !frames {
        return starts(0, n / length).collect();
    }
    let period = config.frame_samples() + config.gap * config.oversampling;
    (0..n / period).flat_map(|frame| starts(frame * period + config.preamble_samples(), config.symbols)).collect()
}

struct Carriers<'a> {
    demodulator: Demodulator,
    config: &'a Config,
}

impl Carriers<'_> {
    /// The active carriers of the symbol that begins at `start`, prefix included.
    fn at(&mut self, samples: &[Complex32], start: usize) -> Vec<Complex32> {
        let body = start + self.config.cyclic_prefix * self.config.oversampling;
        let mut carriers = vec![Complex32::default(); self.config.active];
        self.demodulator.carriers(&samples[body..body + self.config.fft * self.config.oversampling], &mut carriers);
        carriers
    }
}
