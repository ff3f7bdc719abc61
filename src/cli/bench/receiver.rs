//! OFDM receivers on a stream of coded frames.

use std::time::Instant;

use crate::channel::{Noise, Stage};
use crate::ofdm::trial::rapp;
use crate::ofdm::{Config, Method, Rate, Reading, Receiver, Source, Transmitter};
use crate::{Complex32, Result};

/// Frames of one run, so that all that belongs to a frame is in the time.
const FRAMES: usize = 8;

/// Samples a second of a receiver: 64 carriers, 16-QAM, code of rate 1/2, Rapp's amplifier at its saturation point, two paths, 25 dB. The fastest of some rounds.
pub(super) fn rate(method: Method, learned: bool, rounds: usize) -> Result<f64> {
    let config = Config { code: Some(Rate::Half), ..Config::default() };
    let curve = rapp(&config, 0.0);
    let mut samples = vec![Complex32::default(); FRAMES * config.frame_samples()];
    Transmitter::new(config.clone(), Source::RandomFrames)?.fill(&mut samples);
    let mut last = Complex32::default();
    for z in &mut samples {
        let gain = curve.gain(f64::from(z.norm()));
        let u = *z * Complex32::new(gain.re as f32, gain.im as f32);
        *z = u * 0.9 + last * Complex32::new(0.2, -0.3);
        last = u;
    }
    Noise::new(25.0, 1)?.process(&mut samples);
    let mut receiver = Receiver::new(config)?;
    if method != Method::OneTap {
        receiver = receiver.reading(&Reading { method, curve: (!learned).then_some(curve), oversampling: None })?;
    }
    let mut best = f64::INFINITY;
    for round in 0..rounds + 20 {
        receiver.reset();
        let start = Instant::now();
        receiver.push(&samples, |_| {});
        // First it learns.
        if round >= 20 {
            best = best.min(start.elapsed().as_secs_f64());
        }
    }
    Ok(samples.len() as f64 / best)
}
