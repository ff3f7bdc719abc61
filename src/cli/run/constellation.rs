//! The symbols of a stretch of the run, where the waveform is known.

use num_complex::Complex32;

use super::{Sent, Subject, Waveform};
use crate::blocks::Stretch;
use crate::metrics::Evm;
use crate::ofdm::{Config, Constellation, Demodulator};

/// Points of a picture: more only hide one another.
pub(super) const MOST: usize = 4000;

/// Constellation points of the same data carriers.
#[derive(Default)]
pub(super) struct Points {
    /// By one tap for each carrier: divided by the gain of the symbols before, and turned as the pilots say.
    pub(super) one_tap: Vec<Complex32>,
    /// By a filter that equalises: its predictions of what was sent, demodulated.
    pub(super) equalised: Vec<Complex32>,
    /// The points that were meant.
    pub(super) ideal: Vec<Complex32>,
    /// The size of each carrier's gain.
    strength: Vec<f32>,
}

impl Points {
    /// How far the filter's cloud lies from the points that were meant.
    pub(super) fn equalised_evm(&self) -> Evm {
        let mut evm = Evm::default();
        self.equalised.iter().zip(&self.ideal).for_each(|(&z, &ideal)| evm.push(z, ideal));
        evm
    }

    /// How far what was received lies from the points that were meant: as it was received, so that a carrier in a fade counts as little as it is strong.
    pub(super) fn received_evm(&self) -> Evm {
        let mut evm = Evm::default();
        for ((&z, &ideal), &strength) in self.one_tap.iter().zip(&self.ideal).zip(&self.strength) {
            evm.push(z * strength, ideal * strength);
        }
        evm
    }
}

/// The last points of a stretch, at most so many; nothing where the waveform is not known, or no two symbols of it are there.
pub(super) fn points(subject: &Subject, stretch: &Stretch, most: usize) -> Option<Points> {
    let Waveform { config, sent: order } = subject.waveform.as_ref()?;
    // The filters' input is in advance; from here on both streams count alike.
    let late = vec![Complex32::default(); subject.advance];
    let input = [&late, &stretch.input[..]].concat();
    let (sent, received) = if subject.equalize { (&stretch.target, &input) } else { (&input, &stretch.target) };
    let mut carriers = Carriers { demodulator: Demodulator::new(config).ok()?, config };
    let (first, end) = (subject.advance, sent.len().min(received.len()));
    let start = match order {
        Sent::Repeated(frame) => place(frame, &sent[first..])? as u64 + frame.len() as u64 - first as u64,
        _ => stretch.start,
    };
    let starts = symbols(config, !matches!(order, Sent::Symbols), start, first, end);
    let mut symbol = |&at: &usize| {
        let estimate = if subject.equalize { carriers.at(&stretch.prediction, at) } else { Vec::new() };
        Symbol { at, sent: carriers.at(sent, at), received: carriers.at(received, at), estimate }
    };
    let shown = (most / config.data_carriers().max(1)).max(1);
    let needed = starts.len().saturating_sub(shown + MEMORIES[MEMORIES.len() - 1]);
    let all: Vec<Symbol> = starts[needed..].iter().map(&mut symbol).collect();
    // How long a channel stands still nobody knows: a receiver is as good as its best guess.
    let tried = MEMORIES.map(|memory| demodulate(config, &carriers.demodulator, &all, shown, memory));
    let best = tried.into_iter().filter(|p| !p.one_tap.is_empty());
    best.min_by(|a, b| a.received_evm().rms().total_cmp(&b.received_evm().rms()))
}

/// Symbols before the present one that a carrier's gain is estimated from.
const MEMORIES: [usize; 4] = [1, 2, 4, 8];

/// The active carriers of a symbol, and where it begins.
struct Symbol {
    at: usize,
    sent: Vec<Complex32>,
    received: Vec<Complex32>,
    estimate: Vec<Complex32>,
}

/// The points of the last `shown` symbols, by the gains of up to `memory` symbols that each follows at once.
fn demodulate(config: &Config, demodulator: &Demodulator, symbols: &[Symbol], shown: usize, memory: usize) -> Points {
    let (ideal, data) = (Constellation::new(config.modulation), demodulator.data_slots());
    let pilots: Vec<usize> = (0..config.active).filter(|slot| !data.contains(slot)).collect();
    let mut points = Points::default();
    let first = symbols.len().saturating_sub(shown).max(1);
    for (n, now) in symbols.iter().enumerate().skip(first) {
        let follows = |k: &usize| symbols[*k].at + (n - k) * config.symbol_samples() == now.at;
        let before = (n.saturating_sub(memory)..n).rev().take_while(follows).map(|k| &symbols[k]);
        let (mut gains, mut power) = (vec![Complex32::default(); config.active], vec![f32::MIN_POSITIVE; config.active]);
        for symbol in before {
            for (slot, (x, y)) in symbol.sent.iter().zip(&symbol.received).enumerate() {
                gains[slot] += y * x.conj();
                power[slot] += x.norm_sqr();
            }
        }
        gains.iter_mut().zip(&power).for_each(|(gain, power)| *gain /= power);
        let turn: Complex32 = pilots.iter().map(|&slot| now.received[slot] * (gains[slot] * now.sent[slot]).conj()).sum();
        let turn = if turn.norm() > 0.0 { turn / turn.norm() } else { Complex32::new(1.0, 0.0) };
        for &slot in data {
            let one_tap = now.received[slot] / (gains[slot] * turn);
            if one_tap.is_finite() && now.estimate.get(slot).is_none_or(|z| z.is_finite()) {
                points.one_tap.push(one_tap);
                points.equalised.extend(now.estimate.get(slot));
                points.ideal.push(ideal.points()[ideal.decide(now.sent[slot])]);
                points.strength.push(gains[slot].norm_sqr().sqrt());
            }
        }
    }
    points
}

/// Where in the frame these samples begin, which repeat it.
fn place(frame: &[Complex32], samples: &[Complex32]) -> Option<usize> {
    let look = samples.get(..64.min(frame.len()))?;
    (0..frame.len()).find(|at| look.iter().enumerate().all(|(i, z)| *z == frame[(at + i) % frame.len()]))
}

/// Where symbols begin that lie from `first` to `end` of a stream whose sample 0 is the `start`-th that was sent.
fn symbols(config: &Config, frames: bool, start: u64, first: usize, end: usize) -> Vec<usize> {
    let length = config.symbol_samples();
    let (period, preamble, count) = match frames {
        false => (length, 0, 1),
        true => (config.frame_samples() + config.gap * config.oversampling, config.preamble_samples(), config.symbols),
    };
    let begins = |frame: u64, symbol: usize| (frame * period as u64 + (preamble + symbol * length) as u64).checked_sub(start);
    let frames_there = start / period as u64..(start + end as u64).div_ceil(period as u64);
    let all = frames_there.flat_map(|frame| (0..count).filter_map(move |symbol| begins(frame, symbol)));
    all.map(|at| at as usize).filter(|at| *at >= first && at + length <= end).collect()
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
