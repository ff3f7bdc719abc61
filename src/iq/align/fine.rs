//! Steps 3 and 4: the delay to a fraction of a sample, and what follows from the fit.
//!
//! A channel of several paths pulls the peak of a correlation to its centre of gravity. Here instead a grid of `K` evenly spaced paths at an unknown fraction of a sample is fitted
//! by least squares, block by block because the channel may fade, and the fewest paths that explain as much as many do are taken: one for a plain delay, four for a four-tap channel.

use std::f64::consts::TAU;
use std::ops::Range;

use num_complex::Complex64;

use super::carrier::{Carrier, overlap};
use super::normal::{AFTER, BEFORE, Equations, Grid, WIDE};
use crate::dsp::Fourier;

/// More samples than these do not make the fraction better than it needs to be.
const MAX_SAMPLES: usize = 1 << 16;

/// The most paths of a grid.
const MAX_PATHS: usize = 10;

/// Fractions of a sample that are tried.
const FRACTIONS: usize = 10;

/// A grid may leave this much more of the power unexplained than the best one.
const TOLERANCE: f64 = 0.02;

/// Paths weaker than this share of the power do not count.
const NEGLIGIBLE: f64 = 1e-3;

/// Blocks in which less was sent than this share of the loudest one's say nothing of single paths.
const QUIET: f64 = 0.05;

/// The most confidence there is in a delay that may belong to a neighbouring path, or to noise.
const VAGUE: f64 = 0.85;

pub(super) struct Fine {
    pub(super) delay: f64,
    pub(super) peak: f64,
    pub(super) advance: usize,
    pub(super) gain: f64,
    pub(super) phase: f64,
    pub(super) dc: Complex64,
    pub(super) explained: f64,
    /// 0 to 1: how sure the delay is to a tenth of a sample.
    pub(super) confidence: f64,
    /// Paths of the grid before the first one that counts, and from it on.
    pub(super) support: (usize, usize),
}

pub(super) fn find(tx: &[Complex64], rx: &[Complex64], delay: i64, carrier: &Carrier) -> Fine {
    let range = overlap(tx, rx, delay, BEFORE.max(AFTER) + 1);
    let range = loudest(tx, rx, delay, range);
    // Not longer even if the channel holds still: a phase jump between joined packets then spoils little.
    let length = (carrier.coherence / 2).clamp(64, 256).min(range.len());
    let mut spectrum = Spectrum::new(tx, range.start as i64 - delay - AFTER - 64, range.len() as i64 + WIDE as i64 + 128);

    // What is left by every grid at every fraction: left[place][paths - 1], places in order, FRACTIONS to a sample.
    let mut left = vec![[f64::INFINITY; MAX_PATHS]; WIDE * FRACTIONS];
    for fraction in 0..FRACTIONS {
        let blocks = blocks(&spectrum.delayed(fraction as f64 / FRACTIONS as f64), rx, &range, length);
        for first in 0..WIDE {
            left[first * FRACTIONS + fraction] = unexplained(&blocks, first, length);
        }
    }
    let power: f64 = rx[range.clone()].iter().map(|z| z.norm_sqr()).sum();
    let best = |paths: usize| (0..left.len()).min_by(|&i, &j| left[i][paths - 1].total_cmp(&left[j][paths - 1])).unwrap_or(0);
    let lowest = left.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let allowed = lowest * (1.0 + TOLERANCE) + NEGLIGIBLE * power;
    let paths = (1..=MAX_PATHS).find(|&paths| left[best(paths)][paths - 1] <= allowed).unwrap_or(1);
    let place = best(paths);

    // The lowest point of a parabola through the neighbours.
    let at = |place: usize| left.get(place).map(|l| l[paths - 1]).filter(|l| l.is_finite());
    let bend = match (place.checked_sub(1).and_then(at), at(place), at(place + 1)) {
        (Some(before), Some(here), Some(after)) if before + after > 2.0 * here => {
            (0.5 * (before - after) / (before + after - 2.0 * here)).clamp(-0.5, 0.5)
        }
        _ => 0.0,
    };
    // How much worse it would be anywhere a fifth of a sample away or more, in units of what chance does: 18 of them are three standard deviations at a tenth of a sample.
    let away = (0..left.len()).filter(|p| p.abs_diff(place) >= 2).filter_map(at).fold(f64::INFINITY, f64::min);
    let sounding = rx[range.clone()].iter().filter(|z| z.norm_sqr() > 0.0).count() as f64;
    let sure = if away.is_finite() { sounding * (away / left[place][paths - 1].max(1e-9 * power)).ln() } else { 0.0 };
    let sharp = 1.0 - (-sure / 8.0).exp();
    let grid = Grid { first: place / FRACTIONS, paths };
    let fraction = ((place % FRACTIONS) as f64 + bend) / FRACTIONS as f64;

    // The channel on that grid, block by block.
    let shifted = spectrum.delayed(fraction);
    let solved = blocks(&shifted, rx, &range, length);
    let taps: Vec<Vec<Complex64>> = solved.iter().map(|block| block.solve(grid)).collect();
    // Where little was sent the taps are anything: of the tails of a burst next to it, paths are nearly dependent, and a fit of noise has any strength.
    let sent = |block: &Equations| block.gram[grid.first][grid.first].re;
    let most = solved.iter().map(sent).fold(0.0, f64::max);
    let weights = || solved.iter().map(|block| Some(sent(block)).filter(|&sent| sent > QUIET * most).unwrap_or(0.0));
    let strength: Vec<f64> = (0..grid.paths).map(|i| taps.iter().zip(weights()).map(|(h, w)| w * h[i].norm_sqr()).sum()).collect();
    let strongest = argmax(&strength);
    let first = strength.iter().position(|&s| s >= strength[strongest] / 16.0).unwrap_or(strongest);
    // Paths that are just about strong enough, or not, make the first one a matter of chance.
    let chance = strength[..first].iter().any(|&s| s > strength[strongest] / 100.0) || 8.0 * strength[first] < strength[strongest];
    // Neighbouring paths of an oversampled signal look like one between them.
    let (alike, own) = solved.iter().fold((Complex64::default(), 0.0), |sum, b| (sum.0 + b.gram[0][1], sum.1 + b.gram[0][0].re));
    let oversampled = alike.norm_sqr() > if grid.paths > 1 { 0.1 } else { 0.4 } * own * own;
    let origin = (delay - BEFORE) as f64 + grid.first as f64 + fraction;

    // What the grid leaves over tells the DC and how much was explained.
    let (mut dc, mut left, mut sent, mut count) = (Complex64::default(), 0.0, 0.0, 0);
    for (h, start) in taps.iter().zip(range.clone().step_by(length)) {
        for n in start..start + length {
            let u = |path: usize| shifted[n - range.start + 64 + WIDE - 1 - grid.first - path];
            let fit: Complex64 = h.iter().enumerate().map(|(i, h)| h * u(i)).sum();
            let residual = rx[n] - fit;
            dc += residual * Complex64::cis(TAU * carrier.cfo * n as f64);
            left += residual.norm_sqr();
            sent += u(0).norm_sqr();
            count += 1;
        }
    }
    let seen: f64 = solved.iter().map(|b| b.power).sum();
    // A fit of K numbers to a block explains K/length of pure noise as well.
    let left = (left / (1.0 - grid.paths as f64 / length as f64)).min(seen);
    let explained = if seen > 0.0 { 1.0 - left / seen } else { 0.0 };
    let vague = chance || oversampled || explained < 0.45;
    let phase = taps.first().map_or(0.0, |h| h[strongest].arg());
    Fine {
        delay: origin + first as f64,
        peak: (strongest - first) as f64,
        advance: precursors(&solved, grid.first + first, length),
        gain: if sent > 0.0 { (explained * seen / sent).sqrt() } else { 0.0 },
        phase,
        dc: dc / f64::from(count.max(1)),
        explained,
        confidence: if vague { sharp.min(VAGUE) } else { sharp },
        support: (first, grid.paths - first),
    }
}

/// The stretch of `MAX_SAMPLES` in which most was sent and received.
fn loudest(tx: &[Complex64], rx: &[Complex64], delay: i64, range: Range<usize>) -> Range<usize> {
    const STEP: usize = 256;
    if range.len() <= MAX_SAMPLES {
        return range.start..range.end - range.len() % 2;
    }
    let both = |start: usize| -> f64 {
        let end = (start + STEP).min(range.end);
        (start..end).map(|n| (rx[n].norm_sqr() * tx[(n as i64 - delay) as usize].norm_sqr()).sqrt()).sum()
    };
    let loudness: Vec<f64> = range.clone().step_by(STEP).map(both).collect();
    let (mut sum, steps) = (loudness[..MAX_SAMPLES / STEP].iter().sum::<f64>(), MAX_SAMPLES / STEP);
    let (mut best, mut at) = (sum, 0);
    for i in steps..range.len() / STEP {
        sum += loudness[i] - loudness[i - steps];
        // Not for rounding: the first of equals.
        if sum > 1.01 * best {
            (best, at) = (sum, i + 1 - steps);
        }
    }
    let start = range.start + at * STEP;
    start..start + MAX_SAMPLES
}

fn argmax(values: &[f64]) -> usize {
    (0..values.len()).max_by(|&i, &j| values[i].total_cmp(&values[j])).unwrap_or(0)
}

/// How many paths before `origin` a channel needs to explain as much as one that reaches back as far as it can.
///
/// Not the strength of single paths: those of an oversampled signal are nearly dependent, and a fit spreads over all of them.
fn precursors(blocks: &[Equations], origin: usize, length: usize) -> usize {
    let from = |first: usize| {
        let paths = WIDE - first;
        let mut left = 0.0;
        for block in blocks {
            let y = block.factor(Grid { first, paths }).halve(&block.cross);
            left += (block.power - y[..paths].iter().map(|y| y.norm_sqr()).sum::<f64>()).max(0.0);
        }
        left / (1.0 - paths as f64 / length as f64)
    };
    let power: f64 = blocks.iter().map(|b| b.power).sum();
    let allowed = from(0) * (1.0 + TOLERANCE) + NEGLIGIBLE * power;
    (0..origin).find(|&advance| from(origin - advance) <= allowed).unwrap_or(origin)
}

/// A stretch of the sent signal in the frequency domain, to be delayed by any fraction.
struct Spectrum {
    bins: Vec<Complex64>,
    keep: usize,
    fourier: Fourier<f64>,
}

impl Spectrum {
    /// Samples `start..start + length` of `tx`, zeros where there are none.
    fn new(tx: &[Complex64], start: i64, length: i64) -> Self {
        let size = (length as usize).next_power_of_two();
        let mut bins: Vec<Complex64> = (0..size as i64)
            .map(|i| usize::try_from(start + i).ok().filter(|_| i < length).and_then(|n| tx.get(n)).copied().unwrap_or_default())
            .collect();
        let mut fourier = Fourier::double(size);
        fourier.forward(&mut bins);
        Self { bins, keep: length as usize, fourier }
    }

    fn delayed(&mut self, fraction: f64) -> Vec<Complex64> {
        let size = self.bins.len();
        let scale = 1.0 / size as f64;
        let mut out: Vec<Complex64> = self
            .bins
            .iter()
            .enumerate()
            .map(|(i, z)| {
                let frequency = if i < size / 2 { i as f64 } else { i as f64 - size as f64 } * scale;
                z * Complex64::cis(-TAU * frequency * fraction) * scale
            })
            .collect();
        self.fourier.inverse(&mut out);
        out.truncate(self.keep);
        out
    }
}

/// Normal equations of whole blocks. `tx[n - range.start + 64 + WIDE - 1 - i]` is path `i` at sample `n`.
fn blocks(tx: &[Complex64], rx: &[Complex64], range: &std::ops::Range<usize>, length: usize) -> Vec<Equations> {
    let starts = range.clone().step_by(length).take_while(|start| start + length <= range.end);
    starts.map(|start| Equations::sounding(&tx[start - range.start + 64..][..length + WIDE - 1], &rx[start..start + length])).collect()
}

/// What grids of 1, 2, ... paths that begin at `first` leave unexplained, corrected for what they would explain of noise. Infinite where there is no such grid.
fn unexplained(blocks: &[Equations], first: usize, length: usize) -> [f64; MAX_PATHS] {
    let most = MAX_PATHS.min(WIDE - first);
    let mut left = [f64::INFINITY; MAX_PATHS];
    left[..most].fill(0.0);
    for block in blocks {
        // One factorisation serves all: the smaller ones are its corners.
        let y = block.factor(Grid { first, paths: most }).halve(&block.cross);
        let mut remains = block.power;
        for (left, y) in left.iter_mut().zip(&y[..most]) {
            remains -= y.norm_sqr();
            *left += remains.max(0.0);
        }
    }
    for (i, left) in left.iter_mut().enumerate() {
        *left /= 1.0 - (i + 1) as f64 / length as f64;
    }
    left
}
