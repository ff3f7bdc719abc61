//! The one-tap equaliser with its pilot tracking.

use num_complex::{Complex32, Complex64};

use super::{
    detector::wide,
    layout::{Layout, pilot_polarity},
};

/// Divides each carrier by the channel, which the long training gave and the pilots keep up to date: the common phase at every symbol,
/// its slope over the carriers (a drifting sample clock) and the common gain (saturation) by loops.
#[derive(Clone, Debug)]
pub(crate) struct Equalizer {
    /// Carrier number of each active carrier.
    carriers: Vec<i32>,
    pilots: Vec<Pilot>,
    polarity: [f32; 127],
    /// The long training on the active carriers.
    training: Vec<Complex32>,
    /// Gain of the data symbols over the preamble: clipping takes more from the data's peaks.
    data_gain: f64,
    channel: Vec<Complex32>,
    inverse: Vec<Complex32>,
    slope: f64,
    gain: f64,
    /// Symbols that the gain rests on.
    weight: f64,
}

#[derive(Clone, Copy, Debug)]
struct Pilot {
    slot: usize,
    carrier: f64,
    sign: f32,
}

/// Share of a symbol's slope error that is corrected: a clock drifts slowly and four pilots are noisy.
const SLOPE_STEP: f64 = 0.2;
/// Symbols that the configured gain counts for, and the most that the pilots' gain is averaged over.
const GAIN_WEIGHT: (f64, f64) = (4.0, 64.0);

impl Equalizer {
    pub(crate) fn new(layout: &Layout, training: Vec<Complex32>, data_gain: f64) -> Self {
        let carriers: Vec<i32> = layout.active.iter().map(|&(k, _)| k).collect();
        let slot = |k: i32| carriers.partition_point(|&c| c < k);
        let pilots = layout.pilots.iter().map(|&(k, _, sign)| Pilot { slot: slot(k), carrier: f64::from(k), sign }).collect();
        Self {
            pilots,
            polarity: pilot_polarity(),
            channel: vec![Complex32::default(); carriers.len()],
            inverse: vec![Complex32::default(); carriers.len()],
            carriers,
            training,
            data_gain,
            slope: 0.0,
            gain: data_gain,
            weight: GAIN_WEIGHT.0,
        }
    }

    /// Estimates the channel from the two long training symbols and returns the signal-to-noise ratio (a power ratio) that their difference shows.
    pub(crate) fn train(&mut self, first: &[Complex32], second: &[Complex32]) -> f64 {
        let (mut signal, mut noise) = (0.0, 0.0);
        for i in 0..self.channel.len() {
            let mean = (first[i] + second[i]) * 0.5;
            noise += wide(first[i] - second[i]).norm_sqr() / 2.0;
            signal += wide(mean).norm_sqr();
            self.channel[i] = divide(mean, self.training[i]);
            self.inverse[i] = divide(Complex32::ONE, self.channel[i]);
        }
        (self.slope, self.gain, self.weight) = (0.0, self.data_gain, GAIN_WEIGHT.0);
        // The mean of the two still holds half of the noise.
        ((signal - noise / 2.0) / noise).max(0.0)
    }

    /// The channel on the active carriers.
    pub(crate) fn channel(&self) -> &[Complex32] {
        &self.channel
    }

    /// Mean delay of the channel's paths behind the start of the transform, in samples of a symbol of `size`: the turn of the channel from each carrier
    /// to the next.
    pub(crate) fn delay(&self, size: usize) -> f64 {
        let neighbours = self.carriers.windows(2).zip(self.channel.windows(2)).filter(|(k, _)| k[1] == k[0] + 1);
        let turn: Complex64 = neighbours.map(|(_, h)| wide(h[1]) * wide(h[0]).conj()).sum();
        -turn.arg() / std::f64::consts::TAU * size as f64
    }

    /// Equalises the active carriers of data symbol `index` in place. Returns the common phase in radians.
    pub(crate) fn equalize(&mut self, index: usize, carriers: &mut [Complex32]) -> f64 {
        carriers.iter_mut().zip(&self.inverse).for_each(|(z, inverse)| *z *= inverse);
        let phase = self.track(index, carriers);
        let turn = |k: i32| {
            let (sin, cos) = libm::sincos(-(phase + self.slope * f64::from(k)));
            Complex64::new(cos, sin)
        };
        let Some(&first) = self.carriers.first() else { return phase };
        // One step for each carrier; DC is skipped, so the first carrier above it takes two.
        let step = turn(1) * turn(0).conj();
        let (mut factor, mut at) = (turn(first) / self.gain, first);
        for (z, &k) in carriers.iter_mut().zip(&self.carriers) {
            while at < k {
                factor *= step;
                at += 1;
            }
            let turned = wide(*z) * factor;
            *z = Complex32::new(turned.re as f32, turned.im as f32);
        }
        phase
    }

    fn track(&mut self, index: usize, carriers: &[Complex32]) -> f64 {
        let polarity = self.polarity[index % self.polarity.len()];
        // Weighted by the channel's power, as a matched filter: a pilot in a fade says little.
        let weight = |p: &Pilot| f64::from(self.channel[p.slot].norm_sqr());
        let value = |p: &Pilot| {
            let (sin, cos) = libm::sincos(-self.slope * p.carrier);
            wide(carriers[p.slot]) * Complex64::new(cos, sin) * f64::from(p.sign * polarity)
        };
        let sum: Complex64 = self.pilots.iter().map(|p| value(p) * weight(p)).sum();
        let total: f64 = self.pilots.iter().map(weight).sum();
        if !(total > 0.0 && sum.norm_sqr() > 0.0) {
            return 0.0;
        }
        let common = sum / sum.norm();
        // Least squares of the remaining phases over the carriers, the imaginary part standing for the angle.
        let (mut lean, mut spread) = (0.0, 0.0);
        for p in &self.pilots {
            lean += weight(p) * p.carrier * (value(p) * common.conj()).im;
            spread += weight(p) * p.carrier * p.carrier;
        }
        let gain = sum.norm() / total;
        self.weight = (self.weight + 1.0).min(GAIN_WEIGHT.1);
        self.gain += (gain - self.gain) / self.weight;
        if spread > 0.0 && self.pilots.len() > 1 {
            self.slope += SLOPE_STEP * lean / (spread * self.gain);
        }
        sum.arg()
    }
}

/// `a / b`, or 0 where b is: an empty carrier carries nothing.
fn divide(a: Complex32, b: Complex32) -> Complex32 {
    let q = wide(a) * wide(b).conj() / wide(b).norm_sqr();
    if q.re.is_finite() && q.im.is_finite() { Complex32::new(q.re as f32, q.im as f32) } else { Complex32::default() }
}
