//! Step 1: the delay to a sample, and whether the spectrum is mirrored, whatever the carrier offset.

use std::ops::RangeInclusive;

use num_complex::Complex64;

use crate::dsp::Fourier;
use crate::{Error, Result};

/// Each lag is another, nearly independent look at the same delay.
const LAGS: [usize; 4] = [1, 2, 3, 4];

/// A peak below this multiple of the mean happens by chance (about 25 was seen among unrelated recordings; related ones reach thousands).
const MIN_PEAK_TO_MEAN: f64 = 50.0;

/// A peak that stands less than 3 dB above the next one does not decide.
const MIN_CONFIDENCE: f64 = 0.5;

/// Delays this near to the peak belong to it: echoes, and the signal's own correlation.
const SKIRT: usize = 64;

/// Pieces of a plain correlation, each coherent in itself: the whole, or shorter than a channel that moves slowly.
const PIECES: [usize; 2] = [1, 8];

/// The most confidence there is in a plain correlation: a chirp that is late looks like one with a carrier offset.
const PLAIN: f64 = 0.85;

pub(super) struct Coarse {
    pub(super) delay: i64,
    pub(super) inverted: bool,
    pub(super) confidence: f64,
}

pub(super) fn find(tx: &[Complex64], rx: &[Complex64], delays: &RangeInclusive<i64>, chirps: bool) -> Result<Coarse> {
    let mut search = Search::new(tx, rx, delays);
    let size = search.size;
    let products = LAGS.iter().map(|&lag| (product(tx, lag, size), product(rx, lag, size)));
    let blind = search.find(products);
    // The products of chirps and Zadoff-Chu sequences are tones, which lie alike to each other at any delay: these are correlated as they are.
    let mut plain = PIECES.iter().filter(|_| chirps && blind.is_err()).map(|&pieces| {
        let length = rx.len().div_ceil(pieces);
        let piece = |start: usize| {
            let mut piece = vec![Complex64::default(); size];
            let end = (start + length).min(rx.len());
            piece[start..end].copy_from_slice(&rx[start..end]);
            piece
        };
        let whole = || tx.iter().copied().chain(std::iter::repeat(Complex64::default())).take(size).collect();
        search.find((0..rx.len()).step_by(length).map(|start| (whole(), piece(start))))
    });
    match plain.find_map(Result::ok) {
        Some(found) => Ok(Coarse { confidence: found.confidence.min(PLAIN), ..found }),
        None => blind,
    }
}

/// A search over the delays that leave an overlap.
struct Search {
    size: usize,
    first: i64,
    last: i64,
    fourier: Fourier<f64>,
}

impl Search {
    fn new(tx: &[Complex64], rx: &[Complex64], delays: &RangeInclusive<i64>) -> Self {
        let size = (tx.len() + rx.len()).next_power_of_two();
        // Only delays that leave an overlap of an eighth: the few products at the rims prove nothing.
        let rim = tx.len().min(rx.len()) / 8;
        let first = (rim as i64 - tx.len() as i64).max(*delays.start());
        let last = (rx.len() as i64 - rim as i64).min(*delays.end());
        Self { size, first, last, fourier: Fourier::double(size) }
    }

    fn at(&self, delay: i64) -> usize {
        delay.rem_euclid(self.size as i64) as usize
    }

    /// Where the sum of the squared correlations of all pairs is largest, and that it stands out there.
    fn find(&mut self, pairs: impl IntoIterator<Item = (Vec<Complex64>, Vec<Complex64>)>) -> Result<Coarse> {
        let size = self.size;
        let mut straight = vec![0.0; size];
        let mut mirrored = vec![0.0; size];
        for (mut a, mut b) in pairs {
            self.fourier.forward(&mut a);
            self.fourier.forward(&mut b);
            let mut work: Vec<Complex64> = a.iter().zip(&b).map(|(a, b)| b * a.conj()).collect();
            self.fourier.inverse(&mut work);
            straight.iter_mut().zip(&work).for_each(|(sum, z)| *sum += z.norm_sqr());
            // The transform of conj(x) is the conjugate of the transform at the mirrored bin.
            for (i, z) in work.iter_mut().enumerate() {
                *z = b[i] * a[(size - i) % size];
            }
            self.fourier.inverse(&mut work);
            mirrored.iter_mut().zip(&work).for_each(|(sum, z)| *sum += z.norm_sqr());
        }
        let delays = || self.first..=self.last;
        let best = |power: &[f64]| delays().max_by(|&i, &j| power[self.at(i)].total_cmp(&power[self.at(j)])).unwrap_or(0);
        let (delay, other) = (best(&straight), best(&mirrored));
        // A real signal is its own mirror image: then both fit and nothing was inverted.
        let inverted = mirrored[self.at(other)] > 2.0 * straight[self.at(delay)];
        let (power, delay) = if inverted { (mirrored, other) } else { (straight, delay) };
        let confidence = self.stands_out(&power, delay)?;
        Ok(Coarse { delay, inverted, confidence })
    }

    /// How sure the peak at `delay` is, or why it is none.
    fn stands_out(&self, power: &[f64], delay: i64) -> Result<f64> {
        let peak = power[self.at(delay)];
        let others = || (self.first..=self.last).filter(|d| d.abs_diff(delay) > SKIRT as u64).map(|d| (d, power[self.at(d)]));
        let (count, sum) = others().fold((0, 0.0), |(count, sum), (_, power)| (count + 1, sum + power));
        if peak <= 0.0 {
            return Err(Error::Data("tx and rx have nothing in common: one of them is silent".into()));
        }
        let Some((rival, second)) = others().max_by(|a, b| a.1.total_cmp(&b.1)) else { return Ok(1.0) };
        let (mean, confidence) = (sum / f64::from(count), (1.0 - second / peak).max(0.0));
        if peak < MIN_PEAK_TO_MEAN * mean {
            return Err(Error::Data(format!(
                "the recordings do not belong together: no delay between {} and {} samples stands out (the best, {delay}, has \
                 {:.0} times the mean correlation, at least {MIN_PEAK_TO_MEAN} are needed)",
                self.first,
                self.last,
                peak / mean
            )));
        }
        if confidence < MIN_CONFIDENCE {
            return Err(Error::Data(format!(
                "the delay is ambiguous: {delay} and {rival} samples fit nearly as well; the recordings do not belong together, or the signal repeats and \
                 the largest delay must be set below its period"
            )));
        }
        Ok(confidence)
    }
}

/// `x[n] x*[n-lag]` with mean 0 and energy 1, zero-padded; zeros stay zeros, so that silence correlates with nothing.
fn product(x: &[Complex64], lag: usize, size: usize) -> Vec<Complex64> {
    let mut u = vec![Complex64::default(); size];
    for n in lag..x.len() {
        u[n] = x[n] * x[n - lag].conj();
    }
    let sounds = |z: &Complex64| *z != Complex64::default();
    let count = u.iter().filter(|z| sounds(z)).count();
    let mean = u.iter().sum::<Complex64>() / count.max(1) as f64;
    u.iter_mut().filter(|z| sounds(z)).for_each(|z| *z -= mean);
    let energy: f64 = u.iter().map(|z| z.norm_sqr()).sum();
    if energy > 0.0 {
        let scale = energy.sqrt().recip();
        u.iter_mut().for_each(|z| *z *= scale);
    }
    u
}
