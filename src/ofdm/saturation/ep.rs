//! Expectation propagation through the amplifier.

use num_complex::Complex32;

use super::{
    Curve, Detected, Observation,
    frame::{Frame, OneTap, doubt_of},
    smooth::{LEAST, Smooth, Smoother},
    soft::exp,
};
use crate::simd::{Dispatch, Level, Op, Vector};

/// Three nodes exchange Gaussian messages with one variance each: the channel (`Y` and the amplifier's output u on all bins), the amplifier (`u = g(x)`, sample by
/// sample) and the constellation (x and the points). What a node knows goes to the next without what it heard from there (Minka 2001).
///
/// The amplifier's node is one-dimensional: over the envelope r of x the phase integrates to Bessel functions, with `c(r) = r x̂*/v + G(r) û*/τ` the weight is
/// `r exp(−r²/v − |G|²/τ) I0(2|c|)` and `E[e^{jφ} | r] = (c*/|c|) I1/I0`.
#[derive(Clone, Debug)]
pub(super) struct Ep {
    level: Level,
    node: Node,
    smooth: Smooth,
    tap: OneTap,
    /// Messages: what the constellation says of x, what the amplifier says of u, what the channel says of u.
    x: Vec<Complex32>,
    u: Vec<Complex32>,
    heard: Vec<Complex32>,
    spectrum: Vec<Complex32>,
    about_x: Vec<Complex32>,
    about_u: Vec<Complex32>,
    means: Vec<Complex32>,
    spread: Vec<f32>,
}

/// Points of the envelope, and the largest of them.
const POINTS: usize = 48;
const REACH: f32 = 3.2;
/// Least variance of any message: below it the points of the envelope would be too far apart, and rounds would not settle.
const FLOOR: f32 = 2e-3;
/// Share of the distortion below which it is weak.
const WEAK: f32 = 0.02;
const ROUNDS: usize = 10;
const DAMPING: f32 = 0.6;
/// Share of what a node knows that is its own, at least.
const OWN: f32 = 0.1;
/// Mean squared change of the points below which it has settled.
const SETTLED: f32 = 1e-6;

/// The amplifier at the points of the envelope.
#[derive(Clone, Debug)]
struct Node {
    r: [f32; POINTS],
    re: [f32; POINTS],
    im: [f32; POINTS],
    power: [f32; POINTS],
}

/// What was heard, and its variance.
#[derive(Clone, Copy)]
struct Message<'a> {
    mean: &'a [Complex32],
    variance: f32,
}

impl Ep {
    pub(super) fn new(frame: &Frame, curve: &Curve) -> Self {
        let (size, active) = (frame.size(), frame.active());
        let none = || vec![Complex32::default(); size];
        let mut ep = Self {
            level: Level::current(),
            node: Node { r: [0.0; POINTS], re: [0.0; POINTS], im: [0.0; POINTS], power: [0.0; POINTS] },
            smooth: Smoother::shared().smooth(curve),
            tap: OneTap::default(),
            x: none(),
            u: none(),
            heard: none(),
            spectrum: none(),
            about_x: none(),
            about_u: none(),
            means: vec![Complex32::default(); active],
            spread: vec![0.0; active],
        };
        ep.set_curve(&mut frame.clone(), curve);
        ep
    }

    pub(super) fn set_curve(&mut self, frame: &mut Frame, curve: &Curve) {
        for i in 0..POINTS {
            let r = (i as f32 + 0.5) * REACH / POINTS as f32;
            let g = curve.apply(Complex32::new(r, 0.0));
            (self.node.r[i], self.node.re[i], self.node.im[i], self.node.power[i]) = (r, g.re, g.im, g.norm_sqr());
        }
        Smoother::shared().apply(curve, &mut self.smooth);
        self.tap = frame.bussgang(|z| curve.apply(z));
    }

    pub(super) fn detect(&mut self, frame: &mut Frame, symbol: &Observation<'_>, out: &mut Detected) {
        let size = frame.size();
        let unitary = 1.0 / (size as f32).sqrt();
        // Bins of unit power a sample in place of unit power a carrier.
        let scale = 1.0 / frame.density().sqrt();
        let noise = (symbol.noise * scale * scale).max(1e-9);
        self.x.fill(Complex32::default());
        self.u.fill(Complex32::default());
        let (mut v, mut tau) = (1.0f32, 1.0f32);
        let mut variance = 1.0;
        for round in 0..ROUNDS {
            // The channel's node: what it says of u.
            self.spectrum.copy_from_slice(&self.u);
            frame.fourier().forward(&mut self.spectrum);
            let mut total = 0.0;
            for ((z, y), h) in self.spectrum.iter_mut().zip(symbol.bins).zip(symbol.channel) {
                let w = 1.0 / (h.norm_sqr() / noise + 1.0 / tau);
                *z = (h.conj() * y * (scale / noise) + *z * (unitary / tau)) * w;
                total += w;
            }
            frame.fourier().inverse(&mut self.spectrum);
            self.spectrum.iter_mut().for_each(|z| *z *= unitary);
            let said = extrinsic(&self.spectrum, total / size as f32, Message { mean: &self.u, variance: tau }, &mut self.heard).max(FLOOR);
            let heard = Message { mean: &self.heard, variance: said };
            // The amplifier's node: what it says of x.
            let (vx, _) =
                self.node.posterior(self.level, Message { mean: &self.x, variance: v }, heard, &mut self.about_x, &mut self.about_u);
            if round > 0 && 1.0 / vx - 1.0 / v < OWN / vx {
                // Next to all that it knows of x it has been told. What little it adds drowns in the steps of the envelope, and would pass for far more than it is.
                break;
            }
            let ve = extrinsic(&self.about_x, vx, Message { mean: &self.x, variance: v }, &mut frame.time);
            self.about_x.copy_from_slice(&frame.time);
            // The constellation's node.
            frame.demodulate();
            variance = ve * frame.density();
            for slot in 0..frame.active() {
                out.points[slot] = frame.carrier(slot);
            }
            out.variances.fill(variance);
            out.doubt = frame.posterior(symbol.index, &out.points, &out.variances, &mut self.means, &mut self.spread);
            let change: f32 = self.means.iter().zip(&out.means).map(|(a, b)| (a - b).norm_sqr()).sum();
            out.means.copy_from_slice(&self.means);
            if round + 1 == ROUNDS || round >= 3 && change < SETTLED * frame.active() as f32 {
                break;
            }
            let known = out.doubt.max(3e-4);
            frame.modulate(&self.means);
            let damping = if round == 0 { 1.0 } else { DAMPING };
            self.spectrum.copy_from_slice(&frame.time);
            let fresh = extrinsic(&self.spectrum, known, Message { mean: &self.about_x, variance: ve }, &mut frame.time);
            v = damp(&frame.time, fresh, &mut self.x, v, damping);
            // The amplifier's node again: what it says of u.
            let (_, vu) =
                self.node.posterior(self.level, Message { mean: &self.x, variance: v }, heard, &mut self.about_x, &mut self.about_u);
            let fresh = extrinsic(&self.about_u, vu, heard, &mut frame.time);
            tau = damp(&frame.time, fresh, &mut self.u, tau, damping);
        }
        self.reconstruct(frame, out);
        out.doubt = frame.posterior(symbol.index, &out.points, &out.variances, &mut out.means, &mut self.spread);
        // One tap, where that is surer.
        let sure = variance.is_finite() && out.points.iter().all(|z| z.re.is_finite() && z.im.is_finite());
        if !(sure && doubt_of(&out.variances) < frame.one_tap_doubt(self.tap)) {
            frame.one_tap(self.tap, symbol.index, &mut self.spread, out);
        }
    }

    /// Messages have one variance for all carriers. Where a carrier's own noise is less than that, the distortion that the expected symbol has is taken from what
    /// arrived there, as in reconstruction. A weak distortion carries next to nothing from one carrier to the others, whatever the one variance says: then all are
    /// read so.
    fn reconstruct(&mut self, frame: &mut Frame, out: &mut Detected) {
        let v = out.doubt.clamp(LEAST, 1.0);
        frame.modulate(&self.means);
        let moments = self.smooth.moments(&mut frame.time, v);
        frame.demodulate();
        let power = moments.gain.norm_sqr().max(1e-12);
        let inverse = moments.gain.conj() / power;
        let weak = self.tap.distortion < WEAK * self.tap.gain.norm_sqr();
        for slot in 0..frame.active() {
            let variance = (frame.noise[slot] + moments.distortion * frame.density()) / power;
            if variance < out.variances[slot] || weak {
                out.points[slot] = self.means[slot] + (frame.equalized[slot] - frame.carrier(slot)) * inverse;
                out.variances[slot] = variance;
            }
        }
    }
}

/// What a node knows (mean and variance) without what it was told; returns the variance. At least [`OWN`] of its knowledge is taken to be its own.
fn extrinsic(mean: &[Complex32], variance: f32, told: Message<'_>, out: &mut [Complex32]) -> f32 {
    let precision = (1.0 / variance - 1.0 / told.variance).max(OWN / variance);
    let (a, b) = (1.0 / (variance * precision), 1.0 / (told.variance * precision));
    for ((out, m), t) in out.iter_mut().zip(mean).zip(told.mean) {
        *out = m * a - t * b;
    }
    1.0 / precision
}

/// Moves a message towards a fresh one, in precisions; returns its variance.
fn damp(fresh: &[Complex32], variance: f32, message: &mut [Complex32], old: f32, damping: f32) -> f32 {
    let (a, b) = (damping / variance, (1.0 - damping) / old);
    let precision = a + b;
    for (m, f) in message.iter_mut().zip(fresh) {
        *m = (f * a + *m * b) / precision;
    }
    (1.0 / precision).max(FLOOR)
}

impl Node {
    /// Posterior means of x and u, sample by sample, and their mean variances.
    fn posterior(&self, level: Level, x: Message<'_>, u: Message<'_>, about_x: &mut [Complex32], about_u: &mut [Complex32]) -> (f32, f32) {
        f32::dispatch(level, Posterior { node: self, x, u, about_x, about_u })
    }
}

struct Posterior<'a> {
    node: &'a Node,
    x: Message<'a>,
    u: Message<'a>,
    about_x: &'a mut [Complex32],
    about_u: &'a mut [Complex32],
}

impl Op<f32> for Posterior<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run<V: Vector<f32>>(self) -> (f32, f32) {
        let Node { r, re, im, power } = self.node;
        let (iv, it) = (1.0 / self.x.variance, 1.0 / self.u.variance);
        let mut base = [0.0; POINTS];
        for i in 0..POINTS {
            base[i] = -r[i] * r[i] * iv - power[i] * it;
        }
        let (mut vx, mut vu) = (0.0, 0.0);
        let samples = self.x.mean.iter().zip(self.u.mean);
        for ((x, u), (out_x, out_u)) in samples.zip(self.about_x.iter_mut().zip(self.about_u.iter_mut())) {
            let (xr, xi, ur, ui) = (x.re * iv, x.im * iv, u.re * it, u.im * it);
            let (mut cr, mut ci, mut a, mut e) = ([0.0; POINTS], [0.0; POINTS], [0.0; POINTS], [0.0; POINTS]);
            for i in 0..POINTS {
                // c = r x̂*/v + G û*/τ
                cr[i] = r[i] * xr + re[i] * ur + im[i] * ui;
                ci[i] = -r[i] * xi + im[i] * ur - re[i] * ui;
                a[i] = 2.0 * (cr[i] * cr[i] + ci[i] * ci[i]).sqrt();
                e[i] = base[i] + a[i];
            }
            let mut top = f32::MIN;
            for i in 0..POINTS {
                top = if e[i] > top { e[i] } else { top };
            }
            let mut sums = [[0.0; 8]; 7];
            for i in 0..POINTS {
                let (i0, i1) = bessel(a[i]);
                let w = r[i] * exp(e[i] - top);
                let (w0, w1) = (w * i0, w * i1 * 2.0 / if a[i] > 1e-12 { a[i] } else { 1e-12 });
                let (er, ei) = (w1 * cr[i], -w1 * ci[i]);
                let lane = i % 8;
                sums[0][lane] += w0;
                sums[1][lane] += er * r[i];
                sums[2][lane] += ei * r[i];
                sums[3][lane] += er * re[i] - ei * im[i];
                sums[4][lane] += er * im[i] + ei * re[i];
                sums[5][lane] += w0 * r[i] * r[i];
                sums[6][lane] += w0 * power[i];
            }
            let mut total = [0.0; 7];
            for k in 0..7 {
                let s = &sums[k];
                total[k] = (s[0] + s[4]) + (s[1] + s[5]) + ((s[2] + s[6]) + (s[3] + s[7]));
            }
            let scale = 1.0 / total[0];
            *out_x = Complex32::new(total[1] * scale, total[2] * scale);
            *out_u = Complex32::new(total[3] * scale, total[4] * scale);
            let (x, u) = (total[5] * scale - out_x.norm_sqr(), total[6] * scale - out_u.norm_sqr());
            let least = REACH * REACH / (POINTS * POINTS) as f32 / 3.0;
            vx += if x > least / 4.0 { x } else { least / 4.0 };
            vu += if u > least / 8.0 { u } else { least / 8.0 };
        }
        let count = self.x.mean.len() as f32;
        (vx / count, vu / count)
    }
}

/// `e^{−a} I0(a)` and `e^{−a} I1(a)` for `a ≥ 0`, to 1e-6 (Abramowitz and Stegun 9.8.1 to 9.8.4). Both branches are computed, so that compilers do many at once.
#[inline(always)]
fn bessel(a: f32) -> (f32, f32) {
    let small = if a < 3.75 { a } else { 3.75 };
    let t = small * small * (1.0 / (3.75 * 3.75));
    let decay = exp(-small);
    let i0 = 1.0 + t * (3.515_622_9 + t * (3.089_942_4 + t * (1.206_749_2 + t * (0.265_973_2 + t * (0.036_076_8 + t * 0.004_581_3)))));
    let i1 = small
        * (0.5 + t * (0.878_905_94 + t * (0.514_988_69 + t * (0.150_849_34 + t * (0.026_587_33 + t * (0.003_015_32 + t * 0.000_324_11))))));
    let s = 3.75 / if a > 3.75 { a } else { 3.75 };
    let root = 1.0 / (if a > 3.75 { a } else { 3.75 }).sqrt();
    let k0 = 0.398_942_3
        + s * (0.013_285_92
            + s * (0.002_253_19
                + s * (-0.001_575_65
                    + s * (0.009_162_81 + s * (-0.020_577_06 + s * (0.026_355_37 + s * (-0.016_476_33 + s * 0.003_923_77)))))));
    let k1 = 0.398_942_3
        + s * (-0.039_880_24
            + s * (-0.003_620_18
                + s * (0.001_638_01
                    + s * (-0.010_315_55 + s * (0.022_829_67 + s * (-0.028_953_12 + s * (0.017_876_54 - s * 0.004_200_59)))))));
    if a < 3.75 { (i0 * decay, i1 * decay) } else { (k0 * root, k1 * root) }
}

#[cfg(test)]
#[path = "../../../tests/unit/ofdm/saturation/ep.rs"]
mod tests;
