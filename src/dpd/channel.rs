//! The way from the amplifier back to the receiver.

use num_complex::Complex64;

use super::basis::Basis;
use super::fit::Equations;
use super::model::mean_gain;
use crate::Result;
use crate::dsp::solve;
use crate::error::require;

/// How the amplifier's output came back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Path {
    /// Through a coupler or a cable: what it does is a part of the amplifier.
    Coupler,
    /// Over the air: behind the slow amplifier is a channel that fades. Over a block its taps move along straight lines.
    Air {
        /// Taps of the channel.
        taps: usize,
        /// How many of them come before the strongest path, to which the streams are aligned.
        advance: usize,
        /// Samples of a block: as long as the channel's taps keep to straight lines, many times as long as there are taps.
        block: usize,
    },
}

/// Pairs that are taken in at once where nothing else says how many.
const PIECE: usize = 1024;
/// What steadies the taps of an oversampled signal, which hardly tells them apart, for each sample of power 1.
const RIDGE: f64 = 1e-7;

impl Path {
    /// The path that explains a recorded pair: over the air where a linear channel that moves explains at least 1 dB more than one that stands still, or where there are echoes
    /// that no amplifier makes: one gain leaves more than -12 dB, and some taps 6 dB less than that.
    ///
    /// Errors are compared as if on other samples: with `p` taps fitted to a block of `n`, by generalised cross-validation, `error / (1 − p/n)²` (Golub, Heath, Wahba 1979).
    pub fn find(sent: &[Complex64], received: &[Complex64], taps: usize, advance: usize) -> Self {
        let error = |block: usize, moving: bool| {
            let part = block.min(sent.len());
            let fitted = if moving { 2 * taps } else { taps };
            let blocks = sent.chunks_exact(part).zip(received.chunks_exact(part));
            let (mut left, mut count) = (0.0, 0);
            for (x, y) in blocks.filter(|(x, _)| x.len() > 8 * taps) {
                let from = taps;
                let Some(response) = fit(x, y, from, taps, advance, moving) else { continue };
                left += response.left(x, y, from);
                count += y.len() - advance - from;
            }
            left / count.max(1) as f64 / (1.0 - fitted as f64 / part as f64).powi(2)
        };
        let still = error(usize::MAX, false);
        let power = received.iter().map(Complex64::norm_sqr).sum::<f64>() / received.len().max(1) as f64;
        let gain = mean_gain(sent, received);
        let alone = sent.iter().zip(received).map(|(x, y)| (y - gain * x).norm_sqr()).sum::<f64>() / (power * received.len().max(1) as f64);
        let blocks = [8000, 4000, 2000, 1000, 500, 250].into_iter().filter(|&block| block >= 16 * taps && 4 * block <= sent.len());
        let tried: Vec<(usize, f64)> = blocks.map(|block| (block, error(block, true))).collect();
        let least = tried.iter().map(|t| t.1).fold(f64::INFINITY, f64::min);
        // The longest that is as good as any: fewer taps to find.
        match tried.into_iter().find(|t| t.1 <= 1.05 * least) {
            Some((block, moving)) if moving < 0.79 * still => Self::Air { taps, advance, block },
            _ if alone > 0.063 && still < 0.25 * alone * power => {
                Self::Air { taps, advance, block: (sent.len() / 4).clamp(16 * taps, 8000.max(16 * taps)) }
            }
            _ => Self::Coupler,
        }
    }

    pub(super) fn validate(&self) -> Result<()> {
        let Self::Air { taps, advance, block } = *self else { return Ok(()) };
        require((1..=64).contains(&taps), "taps", "between 1 and 64", taps as f64)?;
        require(advance < taps, "advance", "less than the taps", advance as f64)?;
        require(block >= 8 * taps && block <= 1 << 20, "block", "at least 8 times the taps and at most 1048576 samples", block as f64)
    }

    pub(super) fn block(&self) -> usize {
        if let Self::Air { block, .. } = *self { block } else { PIECE }
    }

    pub(super) fn taps(&self) -> usize {
        if let Self::Air { taps, .. } = *self { taps } else { 0 }
    }
}

/// Taps over a block, each a value in its middle and what it gains until its end.
pub(super) struct Response {
    taps: Vec<[Complex64; 2]>,
    advance: usize,
}

impl Response {
    /// Energy that it does not explain.
    pub(super) fn left(&self, sent: &[Complex64], received: &[Complex64], from: usize) -> f64 {
        let end = received.len() - self.advance;
        let predicted = |n: usize| {
            let t = place(n, from, end);
            self.taps.iter().enumerate().map(|(l, [h, slope])| (h + slope * t) * sent[n + self.advance - l]).sum::<Complex64>()
        };
        (from..end).map(|n| (received[n] - predicted(n)).norm_sqr()).sum()
    }
}

/// Where sample `n` lies in a block that begins at `from`: -1 at its start, 1 at its end.
fn place(n: usize, from: usize, end: usize) -> f64 {
    2.0 * (n - from) as f64 / (end - from) as f64 - 1.0
}

/// The taps that make most of `received`, from sample `from` on, out of `sent`, along straight lines where they move; none where there is nothing to find them by.
pub(super) fn fit(sent: &[Complex64], received: &[Complex64], from: usize, taps: usize, advance: usize, moving: bool) -> Option<Response> {
    let (size, end) = (if moving { 2 * taps } else { taps }, received.len() - advance);
    let (mut matrix, mut right) = (vec![Complex64::ZERO; size * size], vec![Complex64::ZERO; size]);
    let mut row = vec![Complex64::ZERO; size];
    let mut energy = 0.0;
    for n in from..end {
        let t = place(n, from, end);
        for l in 0..taps {
            row[l] = sent[n + advance - l];
            if moving {
                row[taps + l] = row[l] * t;
            }
        }
        energy += sent[n].norm_sqr();
        for i in 0..size {
            let f = row[i].conj();
            matrix[i * size..][..=i].iter_mut().zip(&row).for_each(|(a, g)| *a += f * g);
            right[i] += f * received[n];
        }
    }
    (0..size).for_each(|i| matrix[i * size + i] += RIDGE * energy);
    let found = energy > 0.0 && solve(&mut matrix, &mut right);
    found.then(|| Response { taps: (0..taps).map(|l| [right[l], right.get(taps + l).copied().unwrap_or_default()]).collect(), advance })
}

/// Adds what a block says of the amplifier, behind a channel that is known: products are those of `basis`, each sent through the channel.
pub(super) fn add(equations: &mut Equations, basis: &Basis, sent: &[Complex64], received: &[Complex64], response: &Response, from: usize) {
    let advance = response.advance;
    let end = received.len() - advance;
    let mut rows = Vec::with_capacity(sent.len());
    for n in 0..sent.len() {
        let mut row = Vec::with_capacity(4 * basis.terms.len());
        basis.products(sent, n, &mut row);
        rows.push(row);
    }
    let mut sum = vec![Complex64::ZERO; basis.len()];
    for n in from..end {
        sum.fill(Complex64::ZERO);
        let t = place(n, from, end);
        let mut gain = 0.0;
        for (l, [h, slope]) in response.taps.iter().enumerate() {
            let h = h + slope * t;
            gain += h.norm_sqr();
            rows[n + advance - l].iter().for_each(|&(i, f)| sum[i] += h * f);
        }
        equations.add_all(&sum, received[n], gain * sent[n].norm_sqr());
    }
}
