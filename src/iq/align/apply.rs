//! Undoing an alignment on streams.

use std::f64::consts::{PI, TAU};

use num_complex::{Complex32, Complex64};

use super::Alignment;

/// Half the length of the interpolation filter: flat to a ten-thousandth up to 0.45 of the sampling rate.
const HALF: usize = 32;

impl Alignment {
    /// Two streams that run together: `tx`, and `rx` without delay, carrier offset, DC and inversion, scaled to the level of `tx`. Both have the length of the overlap.
    ///
    /// For recordings that do not fit into memory see [`corrector`](Self::corrector).
    pub fn apply(&self, tx: &[Complex32], rx: &[Complex32]) -> (Vec<Complex32>, Vec<Complex32>) {
        let (skip_tx, skip_rx) = self.skip();
        let mut corrector = self.corrector();
        let mut out = Vec::with_capacity(rx.len());
        corrector.push(rx, &mut out);
        corrector.finish(&mut out);
        let tx = tx.get(skip_tx as usize..).unwrap_or_default();
        let out = out.get(skip_rx as usize..).unwrap_or_default();
        let n = tx.len().min(out.len());
        (tx[..n].to_vec(), out[..n].to_vec())
    }

    /// How many samples at the start of `tx` and of `rx` have no partner.
    pub fn skip(&self) -> (u64, u64) {
        let whole = self.whole();
        (whole.min(0).unsigned_abs(), whole.max(0).unsigned_abs())
    }

    /// Corrects `rx` as a stream, from its first sample on.
    pub fn corrector(&self) -> Corrector {
        let fraction = self.fraction();
        let mut taps: Vec<f32> = (0..2 * HALF + 1)
            .map(|i| {
                let t = i as f64 - HALF as f64 + fraction;
                let sinc = if t == 0.0 { 1.0 } else { (PI * t).sin() / (PI * t) };
                // Kaiser window, beta 8: side lobes 80 dB down.
                let edge = t / (HALF as f64 + 1.0);
                (sinc * bessel(8.0 * (1.0 - edge * edge).max(0.0).sqrt()) / bessel(8.0)) as f32
            })
            .collect();
        let sum: f32 = taps.iter().sum();
        taps.iter_mut().for_each(|tap| *tap /= sum);
        let scale = if self.gain > 0.0 { (1.0 / self.gain) as f32 } else { 1.0 };
        Corrector { taps, line: vec![Complex32::default(); HALF], alignment: *self, scale, position: 0 }
    }
}

/// Removes DC, carrier offset, inversion, gain and the fraction of the delay from a stream. The whole samples of the delay are the caller's: see [`Alignment::skip`].
#[derive(Clone, Debug)]
pub struct Corrector {
    taps: Vec<f32>,
    /// Samples that later ones still need.
    line: Vec<Complex32>,
    alignment: Alignment,
    scale: f32,
    position: u64,
}

impl Corrector {
    /// Takes in samples and appends those that can be told already; the last few wait for their successors.
    pub fn push(&mut self, rx: &[Complex32], out: &mut Vec<Complex32>) {
        let Alignment { cfo, dc, inverted, .. } = self.alignment;
        for z in rx {
            // The whole turns are dropped in integers' stead: a product with a large n would lose the phase's digits.
            let turns = (cfo * self.position as f64).fract();
            let turned = (Complex64::new(z.re.into(), z.im.into()) - dc) * Complex64::cis(-TAU * turns);
            let straight = if inverted { turned.conj() } else { turned };
            self.line.push(Complex32::new(straight.re as f32, straight.im as f32) * self.scale);
            self.position += 1;
        }
        self.drain(out);
    }

    /// Appends the last samples; zeros are taken to follow.
    pub fn finish(&mut self, out: &mut Vec<Complex32>) {
        self.line.extend([Complex32::default(); HALF]);
        self.drain(out);
    }

    fn drain(&mut self, out: &mut Vec<Complex32>) {
        let length = self.taps.len();
        let ready = (self.line.len() + 1).saturating_sub(length);
        // A tap's index grows with time: rx(n + fraction) = sum over k of rx[n + k] sinc(fraction - k).
        out.extend(
            self.line.windows(length).map(|window| window.iter().zip(self.taps.iter().rev()).map(|(z, &tap)| z * tap).sum::<Complex32>()),
        );
        self.line.drain(..ready);
    }
}

/// The modified Bessel function of order zero.
fn bessel(x: f64) -> f64 {
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > 1e-12 * sum {
        term *= (x / (2.0 * k)).powi(2);
        sum += term;
        k += 1.0;
    }
    sum
}
