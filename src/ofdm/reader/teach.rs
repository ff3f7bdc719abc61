//! How a reader comes to its curve: a first guess, then least squares from packet to packet.

use num_complex::Complex32;

use super::{Course, Reader};
use crate::ofdm::{Constellation, Curve, detector::wide, trial::rapp};

/// Symbols after which the curve is known well enough that one look at a packet is enough, and after which it learns from every fourth symbol only.
const NOVICE: f64 = 60.0;
const EXPERT: f64 = 400.0;
/// Back-offs in dB of the amplifiers that are tried on the first packet.
const GUESSES: [f64; 7] = [15.0, 6.0, 3.0, 0.0, -3.0, -6.0, -9.0];

impl Reader {
    /// Learns the curve from what was read; as long as it changes much, reads again with the new one.
    pub(super) fn learn(&mut self, count: usize, start: Course) {
        let rounds = if self.learner.as_ref().is_some_and(|l| l.symbols() < NOVICE) { 3 } else { 1 };
        for round in 0..rounds {
            let mut learner = match self.learner.take() {
                Some(learner) => learner,
                None => return,
            };
            let before = (round + 1 < rounds).then(|| learner.clone());
            let every = if learner.symbols() > EXPERT { 4 } else { 1 };
            let near = self.config.modulation.half_distance().powi(2) as f32;
            for i in (0..count).step_by(every) {
                if self.read[i].doubt < 0.5 * near {
                    self.turn(self.done + i, self.gains[self.done + i]);
                    let response = self.channel.response();
                    let arrived = self.bins.iter().map(|&b| (self.turned[b], response[b]));
                    learner.add(&self.read[i].means, arrived, self.noise as f32);
                }
            }
            if self.done == 0 && every == 1 {
                for bins in &self.trained {
                    let response = self.channel.response();
                    learner.add(&self.training, self.bins.iter().map(|&b| (bins[b], response[b])), self.noise as f32);
                }
            }
            let (curve, scale) = learner.curve();
            self.curve = curve;
            self.channel.scale(Complex32::new(scale.re as f32, scale.im as f32));
            // Only what the last round taught is kept: the others were read with a worse curve.
            self.learner = Some(before.unwrap_or(learner));
            if self.curve.differs(&self.in_use) {
                self.in_use = self.curve.clone();
                self.detector.set_curve(&self.curve);
            }
            if round + 1 < rounds {
                self.noise = self.pass(count, start, true).max(1e-9);
                self.channel.estimate(self.noise);
            }
        }
    }

    /// Tries amplifiers on the first packet and starts from the one that explains it best.
    pub(super) fn guess(&mut self, count: usize) {
        let noise = self.noise;
        let mut best = (f64::INFINITY, Curve::linear());
        for ibo_db in GUESSES {
            self.noise = noise;
            self.curve = rapp(&self.config, ibo_db);
            self.detector.set_curve(&self.curve);
            self.train();
            self.channel.save();
            self.channel.estimate(self.noise);
            self.pass(count, Course::default(), false);
            self.channel.estimate(self.noise);
            self.pass(count, Course::default(), true);
            let error = self.mismatch(count);
            if error < best.0 {
                best = (error, self.curve.clone());
            }
        }
        self.noise = noise;
        self.curve = best.1;
        self.in_use = self.curve.clone();
        self.detector.set_curve(&self.curve);
        if let Some(learner) = &mut self.learner {
            learner.begin(&self.curve);
        }
    }

    /// Power that decided symbols leave unexplained.
    fn mismatch(&mut self, count: usize) -> f64 {
        let constellation = Constellation::new(self.config.modulation);
        let mut sum = 0.0;
        for i in 0..count {
            let mut points = self.read[i].means.clone();
            self.slots.iter().for_each(|&slot| points[slot] = constellation.points()[constellation.decide(points[slot])]);
            self.turn(self.done + i, self.gains[self.done + i]);
            self.rebuild(&points);
            for (u, &bin) in self.rebuilt.iter().zip(&self.bins) {
                sum += wide(self.turned[bin] - u * self.channel.response()[bin]).norm_sqr();
            }
        }
        sum
    }
}
