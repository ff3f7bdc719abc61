//! Streams, frames and what happens to them on the way.

use kaflow::ofdm::{Config, RandomBits, Source, Transmitter};
use kaflow::{Complex32, Complex64};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

pub(crate) fn transmit(config: &Config, source: Source, samples: usize) -> Vec<Complex32> {
    let mut transmitter = Transmitter::new(config.clone(), source).unwrap();
    let mut out = vec![Complex32::ZERO; samples];
    assert_eq!(transmitter.fill(&mut out), samples);
    out
}

pub(crate) fn gaussian(rng: &mut ChaCha8Rng) -> Complex32 {
    let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    let z = Complex64::from_polar((-u.ln()).sqrt(), std::f64::consts::TAU * v);
    Complex32::new(z.re as f32, z.im as f32)
}

/// Adds circular noise of the given power.
pub(crate) fn add_noise(samples: &mut [Complex32], power: f64, rng: &mut ChaCha8Rng) {
    samples.iter_mut().for_each(|z| *z += gaussian(rng) * power.sqrt() as f32);
}

/// Turns samples by `offset` cycles a sample.
pub(crate) fn shift(samples: &mut [Complex32], offset: f64, phase: f64) {
    for (n, z) in samples.iter_mut().enumerate() {
        let turn = Complex64::cis(std::f64::consts::TAU * (offset * n as f64 + phase).fract());
        *z *= Complex32::new(turn.re as f32, turn.im as f32);
    }
}

pub(crate) fn convolve(samples: &[Complex32], taps: &[Complex32]) -> Vec<Complex32> {
    (0..samples.len()).map(|n| taps.iter().enumerate().take(n + 1).map(|(l, h)| h * samples[n - l]).sum()).collect()
}

/// Random payloads, and the frames that carry them, one after the other.
pub(crate) fn frames(config: &Config, count: usize, seed: u64) -> (Vec<Vec<u8>>, Vec<Vec<Complex32>>) {
    let mut random = RandomBits::new(seed);
    let mut transmitter = Transmitter::new(config.clone(), Source::Queue).unwrap();
    let mut payloads = Vec::new();
    let mut signals = Vec::new();
    for _ in 0..count {
        let mut payload = vec![0; config.payload_bits()];
        random.fill(&mut payload);
        transmitter.push(&payload);
        let mut signal = vec![Complex32::ZERO; config.frame_samples() + config.gap * config.oversampling + 7];
        let filled = transmitter.fill(&mut signal);
        assert_eq!(filled, signal.len() - 7);
        signal.truncate(filled);
        payloads.push(payload);
        signals.push(signal);
    }
    (payloads, signals)
}

/// What was recorded of an 802.11a station; says so where it is missing.
pub(crate) fn station() -> Option<Vec<Complex32>> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/wifi80211a_6mbps/rx.sigmf-data");
    let Ok(bytes) = std::fs::read(&path) else {
        println!("SKIPPED: {} is not there", path.display());
        return None;
    };
    let float = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    Some(bytes.chunks_exact(8).map(|b| Complex32::new(float(b), float(&b[4..]))).collect())
}

/// What Bussgang's theorem says of a complex Gaussian signal of rms 1 clipped at magnitude `level`: the output is `gain · input`
/// plus a distortion that is uncorrelated with the input.
pub(crate) fn bussgang(level: f64) -> (f64, f64) {
    let e = libm::exp(-level * level);
    let gain = 1.0 - e + std::f64::consts::PI.sqrt() / 2.0 * level * libm::erfc(level);
    // Mean power after clipping is 1 − exp(−level²).
    (gain, (1.0 - e - gain * gain).max(0.0))
}
