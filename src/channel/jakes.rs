use num_complex::Complex64;
use std::f64::consts::TAU;

use super::random::Random;

/// Waves that make up one fading coefficient. `E|h|⁴ = 2 − 1/WAVES` where a Gaussian has 2.
const WAVES: usize = 64;

/// Points of the process in one Doppler period. A cubic through four of them is off by less than 4e-5 between them.
pub(super) const NODES: f64 = 32.0;

const RENORMALISE: u32 = 1024;
const LANES: usize = 8;

/// One Rayleigh-fading coefficient of unit power, in steps of `1/NODES` Doppler periods.
///
/// A sum of plane waves (Clarke): `h(u) = WAVES^−½ Σ exp(j(2πu cos α_m + φ_m))` with `α_m = 2π(m + θ)/WAVES`, and `θ` and every `φ_m` drawn at random.
/// The angles are spread evenly and turned by `θ`, so the ensemble's autocorrelation is `J0(2πu)` exactly, and a single
/// realisation's follows it over about ten Doppler periods (`u` up to `WAVES/2π`). Time is counted in Doppler periods: the
/// steps of the phasors never change, whatever the Doppler frequency does.
#[derive(Clone, Debug)]
pub(super) struct Waves {
    re: [f64; WAVES],
    im: [f64; WAVES],
    cos: [f64; WAVES],
    sin: [f64; WAVES],
    steps: u32,
}

impl Waves {
    pub(super) fn new(random: &mut Random) -> Self {
        let turn = random.uniform();
        let mut waves = Self { re: [0.0; WAVES], im: [0.0; WAVES], cos: [0.0; WAVES], sin: [0.0; WAVES], steps: 0 };
        let amplitude = 1.0 / (WAVES as f64).sqrt();
        for m in 0..WAVES {
            let arrival = TAU * (m as f64 + turn) / WAVES as f64;
            (waves.sin[m], waves.cos[m]) = libm::sincos(TAU / NODES * libm::cos(arrival));
            let (sin, cos) = libm::sincos(TAU * random.uniform());
            (waves.re[m], waves.im[m]) = (amplitude * cos, amplitude * sin);
        }
        waves
    }

    /// The coefficient at the next node.
    pub(super) fn next(&mut self) -> Complex64 {
        let (mut re, mut im) = ([0.0; LANES], [0.0; LANES]);
        for start in (0..WAVES).step_by(LANES) {
            for lane in 0..LANES {
                let m = start + lane;
                let (a, b) = (self.re[m], self.im[m]);
                re[lane] += a;
                im[lane] += b;
                self.re[m] = a * self.cos[m] - b * self.sin[m];
                self.im[m] = a * self.sin[m] + b * self.cos[m];
            }
        }
        self.steps += 1;
        if self.steps == RENORMALISE {
            self.steps = 0;
            self.renormalise();
        }
        Complex64::new(re.iter().sum(), im.iter().sum())
    }

    fn renormalise(&mut self) {
        for m in 0..WAVES {
            let scale = 1.0 / ((self.re[m] * self.re[m] + self.im[m] * self.im[m]) * WAVES as f64).sqrt();
            self.re[m] *= scale;
            self.im[m] *= scale;
        }
    }
}

/// A single wave of unit power that arrives at `angle` radians to the motion: the line of sight.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    phasor: Complex64,
    step: Complex64,
    steps: u32,
}

impl Sight {
    pub(super) fn new(angle: f64, random: &mut Random) -> Self {
        let (sin, cos) = libm::sincos(TAU * random.uniform());
        let (step_sin, step_cos) = libm::sincos(TAU / NODES * libm::cos(angle));
        Self { phasor: Complex64::new(cos, sin), step: Complex64::new(step_cos, step_sin), steps: 0 }
    }

    pub(super) fn next(&mut self) -> Complex64 {
        let value = self.phasor;
        self.phasor *= self.step;
        self.steps += 1;
        if self.steps == RENORMALISE {
            self.steps = 0;
            self.phasor /= self.phasor.norm_sqr().sqrt();
        }
        value
    }
}
