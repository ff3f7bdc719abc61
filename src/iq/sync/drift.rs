//! Delay, clock and carrier, from probe to probe.

use num_complex::Complex64;

use super::BLOCK;
use super::search::SLOW;

/// A Kalman filter over how late the stream is read and how that grows from sample to sample: what two clocks do that are each steady.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    pub(super) late: f64,
    pub(super) drift: f64,
    /// Of `late`, of both, of `drift`.
    pub(super) variance: [f64; 3],
    /// The time in the reference of the last measurement.
    time: Option<i64>,
    /// Measurements in a row that were not believed.
    odd: u32,
}

impl Default for Delay {
    fn default() -> Self {
        Self { late: 0.0, drift: 0.0, variance: [0.2 * 0.2, 0.0, 60e-6 * 60e-6], time: None, odd: 0 }
    }
}

impl Delay {
    /// How much the drift may change from block to block: 1 ppm in some seconds; and the delay, besides.
    const RESTLESS: f64 = 6e-10;
    const WANDER: f64 = 5e-4;

    /// Whether the delay is known well enough to act on it.
    pub(super) fn is_known(&self) -> bool {
        self.variance[0] < 0.07 * 0.07
    }

    /// What is to be expected at `time` in the reference; gives how many pairs have passed since the last measurement.
    pub(super) fn pass(&mut self, time: i64) -> f64 {
        let [a, b, c] = self.variance;
        let pairs = (time - self.time.replace(time).unwrap_or(time)).max(0) as f64;
        self.late += pairs * self.drift;
        self.variance =
            [a + 2.0 * pairs * b + pairs * pairs * c + Self::WANDER * Self::WANDER, b + pairs * c, c + Self::RESTLESS * Self::RESTLESS];
        pairs
    }

    /// Takes in how late the stream is read now.
    pub(super) fn measure(&mut self, late: f64, variance: f64) {
        let [a, b, c] = self.variance;
        let (off, spread) = (late - self.late, a + variance);
        if off * off > 25.0 * spread {
            self.odd += 1;
            if self.odd >= 3 {
                // Not an accident: what was believed is wrong.
                *self = Self { late, time: self.time, ..Self::default() };
            }
            return;
        }
        self.odd = 0;
        let (k, l) = (a / spread, b / spread);
        self.late += k * off;
        self.drift += l * off;
        self.variance = [a * (1.0 - k), b * (1.0 - k), c - l * b];
    }

    /// Takes in how fast that grows.
    pub(super) fn measure_drift(&mut self, drift: f64, variance: f64) {
        let [a, b, c] = self.variance;
        let (off, spread) = (drift - self.drift, c + variance);
        if off * off < 25.0 * spread {
            let (k, l) = (b / spread, c / spread);
            self.late += k * off;
            self.drift += l * off;
            self.variance = [a - k * b, b * (1.0 - l), c * (1.0 - l)];
        }
    }
}

/// The carrier offset from the phase between the responses of two probes.
#[derive(Clone, Debug, Default)]
pub(super) struct Carrier {
    pub(super) last: Option<(Vec<Complex64>, i64)>,
    /// The mean turn, and how many it is over.
    mean: Complex64,
    count: u32,
}

impl Carrier {
    /// Turns over which a mean is taken before a carrier that was none is believed to be one.
    const PROOF: u32 = 256;
    /// The least of those, in cycles a sample: more than slow fading turns by.
    const SURE: f64 = 5e-6;

    /// What is to be added to the correction, in cycles a sample. `turning` says that there is one.
    pub(super) fn measure(&mut self, response: Vec<Complex64>, time: i64, turning: bool) -> Option<f64> {
        let last = self.last.replace((response, time))?;
        let (now, time) = self.last.as_ref()?;
        let distance = (time - last.1) as f64;
        if now.len() != last.0.len() || distance > 2.0 * BLOCK as f64 || distance < 1.0 {
            return None;
        }
        let turn: Complex64 = now.iter().zip(&last.0).map(|(a, b)| a * b.conj()).sum();
        let energy = |h: &[Complex64]| h.iter().map(|z| z.norm_sqr()).sum::<f64>();
        let scale = (energy(now) * energy(&last.0)).sqrt();
        if scale <= 0.0 {
            return None;
        }
        let (turn, cycles) = (turn / scale, turn.arg() / std::f64::consts::TAU / distance);
        if turning {
            // The more the response has changed its shape, the less its phase says.
            return Some(0.1 * turn.norm_sqr() * cycles).filter(|c| c.abs() > 1e-3 * SLOW);
        }
        self.count = (self.count + 1).min(Self::PROOF);
        self.mean += (turn - self.mean) / f64::from(self.count);
        let cycles = self.mean.arg() / std::f64::consts::TAU / distance;
        (self.count == Self::PROOF && self.mean.norm() > 0.7 && cycles.abs() > Self::SURE).then_some(cycles)
    }
}
