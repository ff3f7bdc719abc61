//! The channel by a few taps, from all symbols whose distorted form is known.

use num_complex::{Complex32, Complex64};

use crate::dsp::solve;
use crate::ofdm::{Config, detector::wide, layout::Layout};

/// Taps before the start of the transform and behind the end of the prefix: an echo between two samples reaches over several.
const MARGIN: usize = 3;

/// Least squares for the taps of `Y_k = U_k Σ_l h_l e^{−j2πkl/N}`, each tap with a Gaussian prior whose variance is found from the taps themselves (one step of
/// sparse Bayesian learning: Tipping 2001), so that places without an echo cost nothing.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    /// Number of each active carrier, and its bin at the receiver.
    carriers: Vec<(i32, usize)>,
    taps: usize,
    /// `Σ|U|²` and `Σ U* Y` on the active carriers.
    power: Vec<f64>,
    cross: Vec<Complex64>,
    /// The same as it was when it was saved.
    saved: (Vec<f64>, Vec<Complex64>),
    /// `e^{j2πn/N}`.
    circle: Vec<Complex64>,
    matrix: Vec<Complex64>,
    lags: Vec<Complex64>,
    projection: Vec<Complex64>,
    solution: Vec<Complex64>,
    response: Vec<Complex32>,
}

impl Channel {
    pub(crate) fn new(config: &Config) -> Self {
        let layout = Layout::new(config);
        let taps = (config.cyclic_prefix + 1 + 2 * MARGIN).min(config.active / 2);
        let step = std::f64::consts::TAU / config.fft as f64;
        Self {
            taps,
            power: vec![0.0; config.active],
            cross: vec![Complex64::ZERO; config.active],
            saved: (vec![0.0; config.active], vec![Complex64::ZERO; config.active]),
            circle: (0..config.fft).map(|n| Complex64::cis(step * n as f64)).collect(),
            matrix: vec![Complex64::ZERO; taps * taps],
            lags: vec![Complex64::ZERO; taps],
            projection: vec![Complex64::ZERO; taps],
            solution: vec![Complex64::ZERO; taps],
            response: vec![Complex32::ZERO; layout.size],
            carriers: layout.active,
        }
    }

    /// Forgets all but a share of what was seen.
    pub(crate) fn keep(&mut self, share: f64) {
        self.power.iter_mut().for_each(|p| *p *= share);
        self.cross.iter_mut().for_each(|z| *z *= share);
    }

    /// Remembers what was seen, for [`restore`](Self::restore).
    pub(crate) fn save(&mut self) {
        self.saved.0.copy_from_slice(&self.power);
        self.saved.1.copy_from_slice(&self.cross);
    }

    pub(crate) fn restore(&mut self) {
        self.power.copy_from_slice(&self.saved.0);
        self.cross.copy_from_slice(&self.saved.1);
    }

    /// Takes in a symbol: what was sent, behind the amplifier, on the active carriers, what arrived on the bins, turned by `turn`, and how much it counts.
    pub(crate) fn add(&mut self, sent: &[Complex32], bins: &[Complex32], turn: Complex32, weight: f64) {
        for (i, (u, &(_, bin))) in sent.iter().zip(&self.carriers).enumerate() {
            self.power[i] += weight * f64::from(u.norm_sqr());
            self.cross[i] += wide(u.conj() * bins[bin] * turn) * weight;
        }
    }

    /// The channel on all bins of the receiver, for noise of this variance. Where nothing can be said it stays as it was.
    pub(crate) fn estimate(&mut self, noise: f64) -> &[Complex32] {
        let (n, taps) = (self.circle.len(), self.taps);
        let total: f64 = self.power.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            return &self.response;
        }
        // Entry (l, l') is Σ|U|² e^{j2πk(l − l')/N}, that of the right side Σ U*Y e^{j2πkl/N}.
        self.lags.fill(Complex64::ZERO);
        self.projection.fill(Complex64::ZERO);
        for ((&(k, _), &power), &cross) in self.carriers.iter().zip(&self.power).zip(&self.cross) {
            let step = i64::from(k).rem_euclid(n as i64) as usize;
            let cross = cross * self.circle[step * MARGIN % n].conj();
            let mut place = 0;
            for (lag, projection) in self.lags.iter_mut().zip(&mut self.projection) {
                let turn = self.circle[place];
                *lag += turn * power;
                *projection += turn * cross;
                place += step;
                place -= if place >= n { n } else { 0 };
            }
        }
        let energy: f64 = self.cross.iter().zip(&self.power).map(|(c, p)| if *p > 0.0 { c.norm_sqr() / p } else { 0.0 }).sum();
        // At first all taps are equally strong.
        let even = (energy / total / taps as f64).max(1e-300);
        let noise = noise.max(1e-9 * energy / total);
        let floor = noise / total;
        for pass in 0..2 {
            for i in 0..taps {
                for j in 0..=i {
                    self.matrix[i * taps + j] = self.lags[i - j];
                }
                let expected = if pass == 0 { even } else { self.solution[i].norm_sqr() + floor };
                self.matrix[i * taps + i] += noise / expected;
            }
            self.solution.copy_from_slice(&self.projection);
            if !solve(&mut self.matrix, &mut self.solution) {
                return &self.response;
            }
        }
        // All bins: with oversampling the response repeats beyond the band of the grid, where nothing is sent.
        let size = self.response.len();
        for (bin, response) in self.response.iter_mut().enumerate() {
            let step = if bin < size / 2 { bin % n } else { (n - (size - bin) % n) % n };
            let (mut place, mut value) = (0, Complex64::ZERO);
            for h in &self.solution {
                value += h * self.circle[place].conj();
                place += step;
                place -= if place >= n { n } else { 0 };
            }
            value *= self.circle[step * MARGIN % n];
            *response = Complex32::new(value.re as f32, value.im as f32);
        }
        &self.response
    }

    pub(crate) fn response(&self) -> &[Complex32] {
        &self.response
    }

    /// Multiplies the response: what a new scale of the curve takes away.
    pub(crate) fn scale(&mut self, factor: Complex32) {
        self.response.iter_mut().for_each(|h| *h *= factor);
    }
}
