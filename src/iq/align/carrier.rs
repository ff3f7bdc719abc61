//! Step 2: the carrier offset, as precisely as the channel holds still.

use std::f64::consts::TAU;

use num_complex::Complex64;

/// Samples summed before phases are compared: short against any fading, long enough to lift the sums out of the noise.
const BLOCK: usize = 32;

/// Paths around the coarse delay that take part.
pub(super) const REACH: i64 = 4;

pub(super) struct Carrier {
    /// Cycles per sample.
    pub(super) cfo: f64,
    /// Samples over which the channel stays the same.
    pub(super) coherence: usize,
}

/// The overlap of `rx` with `tx` delayed by `delay`, as a range of `rx`, with a margin for neighbouring paths.
pub(super) fn overlap(tx: &[Complex64], rx: &[Complex64], delay: i64, margin: i64) -> std::ops::Range<usize> {
    let start = (delay + margin).max(0);
    let end = (tx.len() as i64 + delay - margin).min(rx.len() as i64);
    start as usize..end.max(start) as usize
}

pub(super) fn find(tx: &[Complex64], rx: &[Complex64], delay: i64) -> Carrier {
    let range = overlap(tx, rx, delay, REACH);
    let despread = |path: i64| -> Vec<Complex64> { range.clone().map(|n| rx[n] * tx[(n as i64 - delay - path) as usize].conj()).collect() };
    // Sample by sample: any offset up to half the sampling rate, roughly.
    let main = [despread(0)];
    let (cfo, _) = refine(&main, 1, 0.0, 16);
    drop(main);

    // Block by block, over all paths: finely.
    let sums: Vec<Vec<Complex64>> = (-REACH..=REACH)
        .map(|path| {
            let mut z = despread(path);
            z.iter_mut().zip(range.clone()).for_each(|(z, n)| *z *= Complex64::cis(-TAU * cfo * n as f64));
            z.chunks_exact(BLOCK).map(|block| block.iter().sum()).collect()
        })
        .collect();
    let strongest = sums.iter().map(|z| energy(z)).fold(0.0, f64::max);
    let sums: Vec<_> = sums.into_iter().filter(|z| energy(z) > 0.1 * strongest).collect();
    let longest = sums.first().map_or(0, |z| z.len() / 2);
    let (left, lag) = refine(&sums, BLOCK, 0.0, longest);
    Carrier { cfo: cfo + left, coherence: lag * BLOCK }
}

fn energy(z: &[Complex64]) -> f64 {
    z.iter().map(|z| z.norm_sqr()).sum()
}

/// The frequency at which `paths` turn, in cycles per sample where their elements are `step` samples apart. Starts from `guess` and doubles the lag up to `longest` as long as the
/// paths stay coherent. Also returns the last lag.
fn refine(paths: &[Vec<Complex64>], step: usize, guess: f64, longest: usize) -> (f64, usize) {
    let (mut frequency, mut first, mut used) = (guess, 0.0, 1);
    let mut lag = 1;
    while lag <= longest.max(1) {
        let mut sum = Complex64::default();
        let mut most = 0.0;
        for z in paths.iter().filter(|z| z.len() > lag) {
            for (later, earlier) in z[lag..].iter().zip(z) {
                let pair = later * earlier.conj();
                sum += pair;
                most += pair.norm();
            }
        }
        if most == 0.0 {
            break;
        }
        // Not over the number of pairs: of bursts, few at some lags meet anything but silence.
        let strength = sum.norm() / most;
        if lag == 1 {
            first = strength;
        } else if strength < 0.8 * first {
            break;
        }
        let span = (lag * step) as f64;
        // The phase is known up to whole turns; the estimate so far picks the turn.
        let expected = frequency * span;
        let turns = sum.arg() / TAU;
        frequency = (turns + (expected - turns).round()) / span;
        used = lag;
        // Not beyond the last half: the longer the lag, the fewer the pairs.
        lag = if lag < longest && 2 * lag > longest { longest } else { 2 * lag };
    }
    (frequency, used)
}
