//! The sample rate that this machine sustains.

use std::time::{Duration, Instant};

use num_complex::Complex32;

use crate::Result;
use crate::cli::run::filters::{Choice, Purpose};
use crate::filter::Guard;

/// Rates that are tried, the highest first: those that most radios have.
const RATES: [f64; 10] = [20e6, 10e6, 5e6, 4e6, 2e6, 1e6, 500e3, 250e3, 200e3, 100e3];

/// Samples that a filter gets before it is measured, as its start may cost many times what it costs later; and for how long at most.
const START: usize = 1 << 15;
const PATIENCE: Duration = Duration::from_millis(500);

/// How long each filter is measured, and in pieces of how many samples: so many that what is done now and then is part of them.
const LOOK: Duration = Duration::from_millis(40);
const PIECE: usize = 4096;

/// The part of the processor's time that may be used, and what all around a filter needs for a sample, in seconds: driver, synchroniser, and a simulated radio's channel.
const SHARE: f64 = 0.6;
const AROUND: f64 = 80e-9;

/// What some filters cost, in seconds a sample.
pub(super) struct Cost {
    slowest: f64,
    all: f64,
    channels: f64,
}

fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1, |n| n.get()) as f64
}

impl Cost {
    /// Measures the filters on a frame that has gone through two paths, beside another part of it as noise: without any, filters that average over models are never calm.
    pub(super) fn measure(choices: &[Choice], frame: &[Complex32], taps: usize, channels: usize) -> Result<Self> {
        let channel = |n: usize| frame[n] * 0.6 + frame[n.saturating_sub(1)] * Complex32::new(0.0, 0.3);
        let rx: Vec<Complex32> = (0..frame.len()).map(|n| channel(n) + frame[(n + frame.len() / 2) % frame.len()] * 0.03).collect();
        let mut prediction = vec![Complex32::default(); frame.len()];
        let mut cost = Self { slowest: 0.0, all: 0.0, channels: channels as f64 };
        let purpose = Purpose { power: crate::metrics::power(frame), taps, advance: 0, samples: u64::MAX };
        for choice in choices {
            let mut filter = Guard::new(choice.settle(purpose)?.1);
            let (mut best, mut samples, began) = (f64::INFINITY, 0, Instant::now());
            let mut end = None;
            while end.is_none_or(|end| Instant::now() < end) {
                let start = Instant::now();
                let mut piece = 0;
                while piece < PIECE {
                    let n = frame.len().min(PIECE - piece);
                    filter.track(&frame[..n], &rx[..n], &mut prediction[..n], None);
                    piece += n;
                    if began.elapsed() > PATIENCE {
                        break;
                    }
                }
                samples += piece;
                match end {
                    Some(_) => best = best.min(start.elapsed().as_secs_f64() / piece as f64),
                    None if samples >= START.max(2 * taps) || began.elapsed() > PATIENCE => {
                        best = start.elapsed().as_secs_f64() / piece as f64;
                        end = Some(Instant::now() + LOOK);
                    }
                    None => {}
                }
            }
            cost.slowest = cost.slowest.max(best);
            cost.all += best;
        }
        Ok(cost)
    }

    /// The highest rate that they sustain on all channels at once; says so.
    pub(super) fn sustained(&self, choices: &[Choice]) -> f64 {
        let work = self.channels * (self.all + AROUND);
        // A filter is on one core at a time; together they have all of them.
        let most = SHARE / self.slowest.max(work / cores());
        let rate = RATES.into_iter().find(|rate| *rate <= most).unwrap_or(RATES[RATES.len() - 1]);
        let names: Vec<_> = choices.iter().map(|choice| choice.recipe.name).collect();
        note!("{} MS/s is what this machine sustains with {}; --rate asks for another", rate / 1e6, names.join(", "));
        rate
    }

    /// Threads for the flowgraph, where the filters keep those cores busy at this rate that a driver would leave: then it has to share its own. Else it is better off alone.
    pub(super) fn threads(&self, rate: f64) -> Option<usize> {
        (rate * self.channels * self.all > SHARE * (cores() - 1.0)).then_some(cores() as usize)
    }
}
