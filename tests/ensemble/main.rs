//! The ensemble and the residual stage: how near they come to the noise floor, what they survive, and that no simple filter is ahead of them.
//!
//! `cargo test --release --test ensemble -- --nocapture goals` prints the table of what is reached on each set.

mod cases;
#[path = "../common/mod.rs"]
mod common;
mod goals;
mod simple;
mod state;
mod upsets;

use common::shared;
use kaflow::channel::{Doppler, Noise, Scenario, Stage, TestBed};
use kaflow::filter::ensemble::{Ensemble, EnsembleConfig};
use kaflow::filter::{Guard, Tracker};
use kaflow::{Complex, Complex32};

/// One tracked stream.
struct Run {
    rx: Vec<Complex32>,
    prediction: Vec<Complex32>,
    variance: Vec<f32>,
}

fn track<F: Tracker<f32>>(tracker: &mut Guard<f32, F>, tx: &[Complex32], rx: &[Complex32]) -> Run {
    let (mut prediction, mut variance) = (vec![Complex32::default(); rx.len()], vec![0.0; rx.len()]);
    tracker.track(tx, rx, &mut prediction, Some(&mut variance));
    Run { rx: rx.to_vec(), prediction, variance }
}

impl Run {
    /// NMSE in dB over a range of samples.
    fn nmse(&self, range: std::ops::Range<usize>) -> f64 {
        let power = |z: Complex32| f64::from(z.re).powi(2) + f64::from(z.im).powi(2);
        let error: f64 = range.clone().map(|i| power(self.rx[i] - self.prediction[i])).sum();
        10.0 * (error / range.map(|i| power(self.rx[i])).sum::<f64>()).log10()
    }

    fn nmse_from(&self, from: usize) -> f64 {
        self.nmse(from..self.rx.len())
    }

    /// Percentage of samples from `from` inside their 95 % interval: a disc, or an interval where the data are real.
    fn coverage(&self, from: usize, real: bool) -> f64 {
        let limit = if real { 1.96f32.powi(2) } else { -(0.05f32.ln()) };
        let inside = (from..self.rx.len()).filter(|&i| (self.rx[i] - self.prediction[i]).norm_sqr() <= limit * self.variance[i]);
        100.0 * inside.count() as f64 / (self.rx.len() - from) as f64
    }
}

fn simulated(preset: &str, seed: u64, doppler: f64, samples: u64) -> (Vec<Complex32>, Vec<Complex32>) {
    let mut scenario = Scenario { seed, samples, ..Scenario::preset(preset).unwrap() };
    if let Some(fading) = &mut scenario.fading {
        fading.doppler = Doppler::Constant(doppler);
    }
    scenario.ofdm.seed = seed;
    let mut chunk = TestBed::run(&scenario).unwrap();
    (chunk.tx.remove(0), chunk.rx.remove(0))
}

fn recorded(set: &str) -> Option<(Vec<Complex32>, Vec<Complex32>)> {
    let read = |side: &str| -> Option<Vec<Complex32>> {
        let bytes = std::fs::read(shared(&format!("data/{set}/{side}.sigmf-data"))?).unwrap();
        let float = |b: &[u8]| f32::from_le_bytes(b.try_into().unwrap());
        Some(bytes.chunks_exact(8).map(|b| Complex::new(float(&b[..4]), float(&b[4..]))).collect())
    };
    Some((read("tx")?, read("rx")?))
}

fn bare(taps: usize, advance: usize) -> Ensemble<f32> {
    Ensemble::new(EnsembleConfig { taps, advance, ..EnsembleConfig::default() }).unwrap()
}

fn ensemble() -> Guard<f32, Ensemble<f32>> {
    Guard::new(bare(4, 0))
}

/// An amplifier with memory that stands still, and noise at `noise_db` below what is received.
fn still(samples: usize, noise_db: f32) -> (Vec<Complex32>, Vec<Complex32>) {
    let (tx, _) = simulated("a", 6, 0.0, samples as u64);
    let mut noise = vec![Complex32::default(); samples];
    Noise::new(noise_db.into(), 3).unwrap().process(&mut noise);
    let rx = (0..samples)
        .map(|n| {
            let (x, old) = (tx[n], tx[n.saturating_sub(1)]);
            let bent = |x: Complex32| x / (1.0 + x.norm_sqr()).sqrt();
            bent(x) + old * old.norm_sqr() * Complex::new(0.05, 0.02) + noise[n]
        })
        .collect();
    (tx, rx)
}

/// Oversampled OFDM: nothing excites the covariance out of band.
fn oversampled(samples: usize) -> (Vec<Complex32>, Vec<Complex32>) {
    let (tx, _) = simulated("a", 1, 1e-3, (samples / 8) as u64 + 64);
    // Interpolation by 8 with a raised cosine four samples wide.
    let kernel: Vec<f32> = (0..32).map(|k| 0.5 - 0.5 * (std::f32::consts::TAU * (k as f32 + 0.5) / 32.0).cos()).collect();
    let x: Vec<Complex32> = (0..samples).map(|n| (0..4).map(|j| tx[n / 8 + j] * kernel[31 - (n % 8 + 8 * j)]).sum()).collect();
    let g: Vec<Complex32> = x.iter().map(|x| x / (1.0 + x.norm_sqr())).collect();
    let noise = common::noise(2, samples);
    let echo = |n: usize| if n > 0 { g[n - 1] * 0.5 } else { Complex32::default() };
    let y = (0..samples).map(|n| g[n] + echo(n) + Complex::new(noise[n].re as f32, noise[n].im as f32) * 0.005).collect();
    (x, y)
}
