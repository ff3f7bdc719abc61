//! Measuring: many short runs in turn, the fastest of each counts.

use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::textbook::Textbook;
use crate::filter::registry::{self, Value, Values};
use crate::filter::{Guard, Tracker, Window};
use crate::{Complex, Complex32, Result};

/// About as long as one run takes, in seconds: long against the clock, short against the slices of time that other programs get.
pub(super) const SHORT: f64 = 1e-3;

/// The same where several threads must first be woken.
pub(super) const LONG: f64 = 8e-3;

/// After so many rounds comes a pause: what else a machine does often slows it for a good part of a second, and then all the rounds would be slow.
const SITTING: usize = 20;
const PAUSE: Duration = Duration::from_millis(150);

/// The streams that everything is measured on: white noise and the same through a saturating amplifier.
pub(super) struct Signal {
    pub(super) tx: Vec<Complex32>,
    pub(super) rx: Vec<Complex32>,
    pub(super) p: Vec<Complex32>,
}

impl Signal {
    pub(super) fn new(n: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let tx: Vec<Complex32> = (0..n).map(|_| Complex::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect();
        let rx = tx.iter().map(|z| z / (1.0 + z.norm_sqr()).sqrt()).collect();
        Self { p: tx.clone(), tx, rx }
    }

    /// What the last contestant predicted.
    #[cfg(test)]
    pub(super) fn predictions(&self) -> &[Complex32] {
        &self.p
    }
}

/// Something that takes samples.
pub(super) trait Contestant {
    /// Takes the first `n` samples.
    fn take(&mut self, signal: &mut Signal, n: usize);
}

/// A filter as blocks and commands call it.
pub(super) type Guarded = Guard<f32, Box<dyn Tracker<f32>>>;

impl Contestant for Guarded {
    fn take(&mut self, signal: &mut Signal, n: usize) {
        self.track(&signal.tx[..n], &signal.rx[..n], &mut signal.p[..n], None);
    }
}

/// A textbook filter behind a window.
pub(super) struct Loop<F> {
    pub(super) filter: F,
    pub(super) window: Window<f32>,
}

impl<F: Textbook> Contestant for Loop<F> {
    fn take(&mut self, signal: &mut Signal, n: usize) {
        for ((&u, &y), p) in signal.tx[..n].iter().zip(&signal.rx).zip(&mut signal.p) {
            *p = self.filter.adapt(self.window.push(u), y);
        }
    }
}

/// A filter of the registry on a stream.
pub(super) fn tracker(name: &str, taps: usize, values: &[(&str, f64)]) -> Result<Guarded> {
    let given: Values = values.iter().map(|&(name, value)| (name.into(), Value::Number(value))).collect();
    let settings = registry::recipe(name)?.settle(&given, (taps as f64 * 2.0 / 3.0).sqrt())?;
    Ok(Guard::new(registry::tracker(&settings, taps)?))
}

/// Seconds a sample for each contestant: after `warm_up` samples, the fastest of `rounds` runs of about `length` seconds, taken in turn so that all
/// see the same machine.
pub(super) fn race(contestants: &mut [&mut dyn Contestant], warm_up: usize, rounds: usize, length: f64, signal: &mut Signal) -> Vec<f64> {
    let most = signal.tx.len();
    let mut lengths = Vec::new();
    for contestant in contestants.iter_mut() {
        let mut left = warm_up;
        while left > 0 {
            let n = left.min(most);
            contestant.take(signal, n);
            left -= n;
        }
        let trial = 32.min(most);
        let start = Instant::now();
        contestant.take(signal, trial);
        let seconds = start.elapsed().as_secs_f64().max(1e-9) / trial as f64;
        lengths.push(((length / seconds) as usize).clamp(trial, most));
    }
    let mut best = vec![f64::INFINITY; contestants.len()];
    for round in 0..rounds {
        if round > 0 && round.is_multiple_of(SITTING) {
            std::thread::sleep(PAUSE);
        }
        for ((contestant, &n), best) in contestants.iter_mut().zip(&lengths).zip(&mut best) {
            let start = Instant::now();
            contestant.take(signal, n);
            *best = best.min(start.elapsed().as_secs_f64() / n as f64);
        }
    }
    best
}

/// How long single calls take.
pub(super) struct Latency {
    pub(super) mean: f64,
    pub(super) p999: f64,
    pub(super) longest: f64,
}

/// `calls` calls of `n` samples.
pub(super) fn latency(contestant: &mut dyn Contestant, n: usize, calls: usize, signal: &mut Signal) -> Latency {
    let mut seconds: Vec<f64> = (0..calls)
        .map(|_| {
            let start = Instant::now();
            contestant.take(signal, n);
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let at = |q: f64| seconds[((q * calls as f64) as usize).min(calls - 1)];
    Latency { mean: seconds.iter().sum::<f64>() / calls as f64, p999: at(0.999), longest: at(1.0) }
}
