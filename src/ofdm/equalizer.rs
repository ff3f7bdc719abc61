//! The one-tap equaliser with its pilot tracking.

use num_complex::{Complex32, Complex64};

use super::{
    detector::wide,
    layout::{Layout, pilot_polarity},
};

/// Divides each carrier by the channel, which the long training gave; pilots and decisions keep it up to date: the common phase at every
/// symbol, its slope over the carriers (a drifting sample clock) and the common gain (saturation) by loops.
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
    ideal: Vec<Complex32>,
    phase: f64,
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

/// Radians within which two phases give the same decisions.
const SAME_PHASE: f64 = 0.01;
/// Share of a symbol's slope error that is corrected: a clock drifts slowly.
const SLOPE_STEP: f64 = 0.2;
/// Symbols that the configured gain counts for, and the most that the measured one is averaged over.
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
            ideal: vec![Complex32::default(); carriers.len()],
            carriers,
            training,
            data_gain,
            phase: 0.0,
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
        (self.phase, self.slope, self.gain, self.weight) = (0.0, 0.0, self.data_gain, GAIN_WEIGHT.0);
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

    /// Equalises the active carriers of data symbol `index` in place; `decide` gives the constellation point nearest to its argument. Returns
    /// the common phase in radians.
    ///
    /// The pilots give the phase unambiguously but, being few, roughly: clipping alone can throw them off by a tenth of a radian. So the last symbol's
    /// phase competes with theirs: the one that leaves the smaller decision errors wins, and the decided points of all carriers refine it.
    pub(crate) fn equalize(&mut self, index: usize, carriers: &mut [Complex32], decide: impl Fn(Complex32) -> Complex32) -> f64 {
        carriers.iter_mut().zip(&self.inverse).for_each(|(z, inverse)| *z *= inverse);
        let polarity = self.polarity[index % self.polarity.len()];
        let mut rough = self.pilot_phase(polarity, carriers).unwrap_or(self.phase);
        self.untwist(carriers, rough);
        let error = self.decide(polarity, carriers, &decide);
        let back = self.phase - rough;
        if back.abs() > SAME_PHASE {
            turn(carriers, back);
            if self.decide(polarity, carriers, &decide) <= error {
                rough = self.phase;
            } else {
                turn(carriers, -back);
                self.decide(polarity, carriers, &decide);
            }
        }
        let (mut sum, mut power, mut lean, mut spread) = (Complex64::default(), 0.0, 0.0, 0.0);
        for (((z, ideal), h), &k) in carriers.iter().zip(&self.ideal).zip(&self.channel).zip(&self.carriers) {
            // Weighted by the channel's power, as a matched filter: a carrier in a fade says little.
            let (weight, k) = (f64::from(h.norm_sqr()), f64::from(k));
            let product = wide(*z) * wide(*ideal).conj() * weight;
            let energy = f64::from(ideal.norm_sqr()) * weight;
            sum += product;
            power += energy;
            // Least squares of the phases over the carriers, the imaginary part standing for the angle.
            lean += k * product.im;
            spread += k * k * energy;
        }
        if power > 0.0 && sum.norm_sqr() > 0.0 {
            self.phase = rough + sum.arg();
            self.weight = (self.weight + 1.0).min(GAIN_WEIGHT.1);
            self.gain *= 1.0 + (sum.norm() / power - 1.0) / self.weight;
            self.slope += SLOPE_STEP * lean / spread;
            turn(carriers, sum.arg());
        }
        self.phase
    }

    /// Decides the data carriers, knows the pilots, and returns the squared error of all, weighted by the channel's power.
    fn decide(&mut self, polarity: f32, carriers: &[Complex32], decide: impl Fn(Complex32) -> Complex32) -> f64 {
        for (ideal, &z) in self.ideal.iter_mut().zip(carriers) {
            *ideal = decide(z);
        }
        for p in &self.pilots {
            self.ideal[p.slot] = Complex32::new(p.sign * polarity, 0.0);
        }
        let errors = carriers.iter().zip(&self.ideal).zip(&self.channel);
        errors.map(|((z, ideal), h)| f64::from((z - ideal).norm_sqr() * h.norm_sqr())).sum()
    }

    /// The phase that the pilots have in common; `None` without pilots.
    fn pilot_phase(&self, polarity: f32, carriers: &[Complex32]) -> Option<f64> {
        let value = |p: &Pilot| {
            let weight = f64::from(p.sign * polarity * self.channel[p.slot].norm_sqr());
            wide(carriers[p.slot]) * phasor(-self.slope * p.carrier) * weight
        };
        let sum: Complex64 = self.pilots.iter().map(value).sum();
        (sum.norm_sqr() > 0.0).then(|| sum.arg())
    }

    /// Takes a phase, the slope of phases over the carriers and the gain out.
    fn untwist(&self, carriers: &mut [Complex32], phase: f64) {
        let Some(&first) = self.carriers.first() else { return };
        // One step for each carrier; DC is skipped, so the first carrier above it takes two.
        let step = phasor(-self.slope);
        let (mut factor, mut at) = (phasor(-phase - self.slope * f64::from(first)) / self.gain, first);
        for (z, &k) in carriers.iter_mut().zip(&self.carriers) {
            while at < k {
                factor *= step;
                at += 1;
            }
            let turned = wide(*z) * factor;
            *z = Complex32::new(turned.re as f32, turned.im as f32);
        }
    }
}

fn phasor(angle: f64) -> Complex64 {
    let (sin, cos) = libm::sincos(angle);
    Complex64::new(cos, sin)
}

/// Takes a phase out.
fn turn(carriers: &mut [Complex32], phase: f64) {
    let factor = phasor(-phase);
    let factor = Complex32::new(factor.re as f32, factor.im as f32);
    carriers.iter_mut().for_each(|z| *z *= factor);
}

/// `a / b`, or 0 where b is: an empty carrier carries nothing.
fn divide(a: Complex32, b: Complex32) -> Complex32 {
    let q = wide(a) * wide(b).conj() / wide(b).norm_sqr();
    if q.re.is_finite() && q.im.is_finite() { Complex32::new(q.re as f32, q.im as f32) } else { Complex32::default() }
}
