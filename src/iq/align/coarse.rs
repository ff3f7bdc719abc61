//! Step 1: the delay to a sample, and whether the spectrum is mirrored, whatever the carrier offset.

use std::ops::RangeInclusive;

use num_complex::Complex64;
use rustfft::FftPlanner;

use crate::{Error, Result};

/// Each lag is another, nearly independent look at the same delay.
const LAGS: [usize; 4] = [1, 2, 3, 4];

/// A peak below this multiple of the mean happens by chance (about 25 was seen among unrelated recordings; related ones reach thousands).
const MIN_PEAK_TO_MEAN: f64 = 50.0;

/// A peak that stands less than 3 dB above the next one does not decide.
const MIN_CONFIDENCE: f64 = 0.5;

/// Delays this near to the peak belong to it: echoes, and the signal's own correlation.
const SKIRT: usize = 64;

pub(super) struct Coarse {
    pub(super) delay: i64,
    pub(super) inverted: bool,
    pub(super) confidence: f64,
}

pub(super) fn find(tx: &[Complex64], rx: &[Complex64], delays: &RangeInclusive<i64>) -> Result<Coarse> {
    let size = (tx.len() + rx.len()).next_power_of_two();
    let mut planner = FftPlanner::new();
    let (forward, backward) = (planner.plan_fft_forward(size), planner.plan_fft_inverse(size));
    let mut straight = vec![0.0; size];
    let mut mirrored = vec![0.0; size];
    for lag in LAGS {
        let mut a = product(tx, lag, size);
        let mut b = product(rx, lag, size);
        forward.process(&mut a);
        forward.process(&mut b);
        let mut work: Vec<Complex64> = a.iter().zip(&b).map(|(a, b)| b * a.conj()).collect();
        backward.process(&mut work);
        straight.iter_mut().zip(&work).for_each(|(sum, z)| *sum += z.norm_sqr());
        // The transform of conj(x) is the conjugate of the transform at the mirrored bin.
        for (i, z) in work.iter_mut().enumerate() {
            *z = b[i] * a[(size - i) % size];
        }
        backward.process(&mut work);
        mirrored.iter_mut().zip(&work).for_each(|(sum, z)| *sum += z.norm_sqr());
    }

    // Only delays that leave an overlap of an eighth: the few products at the rims prove nothing.
    let rim = tx.len().min(rx.len()) / 8;
    let first = (rim as i64 - tx.len() as i64).max(*delays.start());
    let last = (rx.len() as i64 - rim as i64).min(*delays.end());
    let at = |delay: i64| delay.rem_euclid(size as i64) as usize;
    let best = |power: &[f64]| (first..=last).max_by(|&i, &j| power[at(i)].total_cmp(&power[at(j)])).unwrap_or(0);
    let (delay, other) = (best(&straight), best(&mirrored));
    // A real signal is its own mirror image: then both fit and nothing was inverted.
    let inverted = mirrored[at(other)] > 2.0 * straight[at(delay)];
    let (power, delay) = if inverted { (mirrored, other) } else { (straight, delay) };

    let peak = power[at(delay)];
    let (mut sum, mut count, mut second) = (0.0, 0, 0.0_f64);
    for d in (first..=last).filter(|d| d.abs_diff(delay) > SKIRT as u64) {
        sum += power[at(d)];
        second = second.max(power[at(d)]);
        count += 1;
    }
    if peak <= 0.0 {
        return Err(Error::Data("tx and rx have nothing in common: one of them is silent".into()));
    }
    let (mean, confidence) = if count == 0 { (0.0, 1.0) } else { (sum / f64::from(count), (1.0 - second / peak).max(0.0)) };
    if count > 0 && peak < MIN_PEAK_TO_MEAN * mean {
        return Err(Error::Data(format!(
            "the recordings do not belong together: no delay between {first} and {last} samples stands out (the best, {delay}, has \
             {:.0} times the mean correlation, at least {MIN_PEAK_TO_MEAN} are needed)",
            peak / mean
        )));
    }
    if confidence < MIN_CONFIDENCE {
        let rival = (first..=last).filter(|d| d.abs_diff(delay) > SKIRT as u64).find(|&d| power[at(d)] == second).unwrap_or(delay);
        return Err(Error::Data(format!(
            "the delay is ambiguous: {delay} and {rival} samples fit nearly as well; the recordings do not belong together, or the signal repeats and \
             the largest delay must be set below its period"
        )));
    }
    Ok(Coarse { delay, inverted, confidence })
}

/// `x[n] x*[n-lag]` with mean 0 and energy 1, zero-padded.
fn product(x: &[Complex64], lag: usize, size: usize) -> Vec<Complex64> {
    let mut u = vec![Complex64::default(); size];
    for n in lag..x.len() {
        u[n] = x[n] * x[n - lag].conj();
    }
    let mean = u.iter().sum::<Complex64>() / (x.len() - lag) as f64;
    u[lag..x.len()].iter_mut().for_each(|z| *z -= mean);
    let energy: f64 = u.iter().map(|z| z.norm_sqr()).sum();
    if energy > 0.0 {
        let scale = energy.sqrt().recip();
        u.iter_mut().for_each(|z| *z *= scale);
    }
    u
}
