//! The symbols of a stretch of the run, where the waveform is known.

use num_complex::Complex32;

use super::{Sent, Subject, Waveform};
use crate::blocks::Stretch;
use crate::metrics::Evm;
use crate::ofdm::{Config, Constellation, Demodulator};

/// Points of a picture: more only hide one another.
const MOST: usize = 4000;

/// Constellation points of the same data carriers.
#[derive(Default)]
pub(super) struct Points {
    /// By one tap for each carrier: divided by the gain of the symbol before, and turned as the pilots say.
    pub(super) one_tap: Vec<Complex32>,
    /// By a filter that equalises: its predictions of what was sent, demodulated.
    pub(super) equalised: Vec<Complex32>,
    /// The points that were meant.
    pub(super) ideal: Vec<Complex32>,
}

impl Points {
    /// How far one of the two clouds lies from the points that were meant.
    pub(super) fn evm(&self, found: &[Complex32]) -> Evm {
        let mut evm = Evm::default();
        found.iter().zip(&self.ideal).for_each(|(&z, &ideal)| evm.push(z, ideal));
        evm
    }
}

/// The last points of a stretch; nothing where the waveform is not known, or no two symbols of it are there.
pub(super) fn points(subject: &Subject, stretch: &Stretch) -> Option<Points> {
    let Waveform { config, sent: order } = subject.waveform.as_ref()?;
    // The filters' input is early; from here on both streams count alike.
    let late = vec![Complex32::default(); subject.advance];
    let input = [&late, &stretch.input[..]].concat();
    let (sent, received) = if subject.equalize { (&stretch.target, &input) } else { (&input, &stretch.target) };
    let mut carriers = Carriers { demodulator: Demodulator::new(config).ok()?, config };
    let ideal = Constellation::new(config.modulation);
    let (first, end) = (subject.advance, sent.len().min(received.len()));
    let start = match order {
        Sent::Repeated(frame) => place(frame, &sent[first..])? as u64 + frame.len() as u64 - first as u64,
        _ => stretch.start,
    };
    let mut pairs = symbols(config, !matches!(order, Sent::Symbols), start, first, end);
    pairs.drain(..pairs.len().saturating_sub(MOST / config.data_carriers().max(1)));
    let mut points = Points::default();
    for (before, now) in pairs {
        let (x, y) = (carriers.at(sent, before), carriers.at(received, before));
        let gains: Vec<_> = x.iter().zip(&y).map(|(x, y)| y * x.conj() / x.norm_sqr().max(f32::MIN_POSITIVE)).collect();
        let (x, y) = (carriers.at(sent, now), carriers.at(received, now));
        let estimate = if subject.equalize { carriers.at(&stretch.prediction, now) } else { x.clone() };
        let data = carriers.demodulator.data_slots();
        let pilots = (0..x.len()).filter(|slot| !data.contains(slot));
        let turn: Complex32 = pilots.map(|slot| y[slot] * (gains[slot] * x[slot]).conj()).sum();
        let turn = if turn.norm() > 0.0 { turn / turn.norm() } else { Complex32::new(1.0, 0.0) };
        for &slot in data {
            let (one_tap, equalised) = (y[slot] / (gains[slot] * turn), estimate[slot]);
            if (one_tap + equalised).norm().is_finite() {
                points.one_tap.push(one_tap);
                points.equalised.push(equalised);
                points.ideal.push(ideal.point(ideal.decide(x[slot])));
            }
        }
    }
    if !subject.equalize {
        points.equalised.clear();
    }
    Some(points).filter(|p| !p.one_tap.is_empty())
}

/// Where in the frame these samples begin, which repeat it.
fn place(frame: &[Complex32], samples: &[Complex32]) -> Option<usize> {
    let look = samples.get(..64.min(frame.len()))?;
    (0..frame.len()).find(|at| look.iter().enumerate().all(|(i, z)| *z == frame[(at + i) % frame.len()]))
}

/// Symbols that follow another one at once: where that one begins and where they do, in samples from `first` to `end` of a stream whose sample 0 is the `start`-th that was sent.
fn symbols(config: &Config, frames: bool, start: u64, first: usize, end: usize) -> Vec<(usize, usize)> {
    let length = config.symbol_samples();
    let (period, preamble, count) = match frames {
        false => (length, 0, 1),
        true => (config.frame_samples() + config.gap * config.oversampling, config.preamble_samples(), config.symbols),
    };
    let begins =
        |frame: u64, symbol: usize| (frame * period as u64 + (preamble + symbol * length) as u64).checked_sub(start).map(|at| at as usize);
    let frames_there = start / period as u64..(start + end as u64).div_ceil(period as u64);
    let all = frames_there.flat_map(|frame| (0..count).map(move |symbol| (frame, symbol)));
    let starts: Vec<usize> =
        all.filter_map(|(frame, symbol)| begins(frame, symbol)).filter(|at| *at >= first && at + length <= end).collect();
    starts.windows(2).filter(|pair| pair[1] == pair[0] + length).map(|pair| (pair[0], pair[1])).collect()
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
