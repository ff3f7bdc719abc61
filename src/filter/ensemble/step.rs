//! What happens with samples.

use num_complex::{Complex, Complex64};

use super::bank::spread;
use super::constants::*;
use super::evidence::{LEAST, Weigh, noise_pace};
use super::features::Products;
use super::lanes::{self, Sums, White};
use super::shape::Whiten;
use super::spline::Bend;
use super::{Ensemble, acquisition};
use crate::Real;
use crate::simd::{Dispatch, Op, Row, Vector};

pub(super) fn wide<T: Real>(z: Complex<T>) -> Complex64 {
    Complex64::new(z.re.wide(), z.im.wide())
}

impl<T: Real> Ensemble<T> {
    /// Samples that do not leave the present cell.
    pub(super) fn chunk(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], learn: bool) {
        let (from, to) = (self.clock.at, self.clock.at + tx.len());
        self.input.take(self.history + from, tx);
        self.carrier.undo(rx, from, &mut self.y);
        if self.input.is_starting() {
            self.bend_history();
        }
        self.bend(from, to);
        let [lanes, bank] = self.running;
        let bank = bank && self.bank.is_ready();
        if self.running[1] {
            let places = (self.history + from, self.history + to);
            T::dispatch(self.level, Products { streams: &mut self.streams, from: places.0, to: places.1 });
        }
        if bank {
            self.bank.predict(self.level, &self.streams, from, to);
        }
        if lanes && self.acquisition.left == 0 {
            self.whiten(from, to);
        }
        let learn = learn && self.input.inverse() > 0.0;
        let lazy = if self.clock.since_change < 8 * EAGER { LAZY } else { LAZIEST };
        let mut at = from;
        while at < to {
            // After a bad error the weights are looked at after every sample.
            let quad = if self.alert { 1 } else { QUAD };
            let mut end = (at + quad.max(self.phase + 1) - self.phase).min(to);
            let eager = self.clock.since_change < EAGER;
            let curve = learn && lanes && self.clock.learned >= WARM_UP && (eager || self.clock.wait == 0);
            if curve && (self.phase == 0 || !eager) {
                let mut taps = std::mem::take(&mut self.taps);
                self.heaviest(&mut taps);
                self.taps = taps;
            }
            if !eager && learn && lanes {
                // Stop where the curve learns.
                end = end.min(if curve { at + 1 } else { at + self.clock.wait.min(QUAD as u64) as usize });
            }
            if self.acquisition.left > 0 && lanes {
                end = at + 1;
            }
            let (mut sums, mut other) = ([Sums::default(); QUAD], [Sums::default(); QUAD]);
            let (sums, other) = (&mut sums[..end - at], &mut other[..end - at]);
            if lanes {
                if self.acquisition.left > 0 { self.acquire(at, learn, &mut sums[0]) } else { self.run(at, end, learn, sums) }
            }
            if bank {
                let relative = T::of(self.relative);
                for (i, sums) in (at..end).zip(other.iter_mut()) {
                    *sums = self.bank.judge(i, self.y.at(i), relative, learn);
                }
            }
            for i in at..end {
                let own = self.conclude(i, [sums[i - at], other[i - at]], learn);
                if curve && (self.surprise < DOUBT || self.clock.learned < EAGER / 4) {
                    let x = |l: usize| wide(self.input.x.at(self.history + i - l)) * self.input.inverse();
                    let samples = if eager { 1 } else { lazy };
                    self.curve.learn(&self.taps, x, wide(self.y.at(i)) - self.offset, own.0, own.1, samples);
                }
            }
            let n = (end - at) as u64;
            self.clock.time += n;
            if learn {
                self.clock.learned += n;
                self.clock.since_jump += n;
                self.clock.since_change += n;
                self.clock.since_shape += n;
                self.clock.wait = if curve { spread(self.clock.time) % (2 * lazy - 1) } else { self.clock.wait.saturating_sub(n) };
                self.phase += end - at;
                if self.phase >= quad {
                    self.weigh(bank);
                    self.relative = 1.0 / self.v[end - 1].wide();
                }
            }
            if self.surprise > JUMP && self.clock.since_jump > SETTLED && self.lanes.evidence.level > T::of(LIGHT) {
                self.jump();
            }
            at = end;
        }
        self.clock.at = to;
    }

    /// The curve's outputs for samples of the block.
    fn bend(&mut self, from: usize, to: usize) {
        let (normalised, u) = self.streams.inputs();
        let inverse = T::of(self.input.inverse());
        let places = (self.history + from, self.history + to);
        T::dispatch(self.level, Bend { x: &self.input.x, normalised, u, theta: &self.curve.narrow, inverse, from: places.0, to: places.1 });
    }

    /// All that the planes hold, with a new curve or unit.
    pub(super) fn bend_history(&mut self) {
        let (normalised, u) = self.streams.inputs();
        let (inverse, to) = (T::of(self.input.inverse()), self.history + self.clock.at);
        T::dispatch(self.level, Bend { x: &self.input.x, normalised, u, theta: &self.curve.narrow, inverse, from: 0, to });
    }

    fn whiten(&mut self, from: usize, to: usize) {
        let white = self.white.get_or_insert_with(|| White::new(self.config.taps));
        T::dispatch(self.level, Whiten { shape: &self.shape, u: self.streams.bent(), start: self.history, from, to, white });
    }

    /// Samples `at..end` through the lanes.
    fn run(&mut self, at: usize, end: usize, learn: bool, sums: &mut [Sums<T>]) {
        let Some(white) = &self.white else { return };
        let mut y = [Complex::default(); QUAD];
        (at..end).for_each(|i| y[i - at] = self.y.at(i));
        macro_rules! run {
            ($taps:literal) => {
                T::dispatch(
                    self.level,
                    lanes::Run::<T, $taps> {
                        lanes: &mut self.lanes,
                        white,
                        from: at,
                        y: &y[..end - at],
                        offset: Complex::new(T::of(self.offset.re), T::of(self.offset.im)),
                        curve: T::of(self.curve.variance),
                        relative: T::of(self.relative),
                        pace: noise_pace(self.clock.since_jump),
                        tau: T::of(self.shape.tau),
                        learn,
                        silence: T::of(SILENCE * self.shape.tau),
                        sums,
                    },
                )
            };
        }
        match self.config.taps {
            4 => run!(4),
            8 => run!(8),
            16 => run!(16),
            _ => run!(0),
        }
    }

    /// Sample `at` through the members with a covariance.
    fn acquire(&mut self, at: usize, learn: bool, sums: &mut Sums<T>) {
        let u: Vec<Complex64> = (0..self.config.taps).map(|l| wide(self.streams.bent().at(self.history + at - l))).collect();
        f64::dispatch(self.level, acquisition::Predict { members: &mut self.acquisition, u: &u, offset: self.offset });
        let learn = learn && u.iter().map(|u| u.norm_sqr()).sum::<f64>() > SILENCE;
        let y = wide(self.y.at(at));
        let e = &mut self.lanes.evidence;
        let a = &mut self.acquisition;
        let mut rows = [Row::default(); 2];
        let mut error = ([0.0; MEMBERS], [0.0; MEMBERS]);
        let mut weight = [0.0; MEMBERS];
        let (mut re, mut im, mut square) = (0.0, 0.0, 0.0);
        for m in 0..MEMBERS {
            let (p, relative) = (Complex64::new(a.p.0[m], a.p.1[m]), 1.0 + a.f[m].max(0.0) + self.offset_variance);
            let d = y - p;
            if self.clock.learned == 0 && learn {
                e.noise.0[m] = T::of((d.norm_sqr() / relative).max(LEAST));
            }
            let noise = e.noise.0[m].wide();
            let variance = (noise * relative + self.curve.variance).max(LEAST);
            let w = e.weight.0[m].wide();
            (re, im, square) = (re + w * p.re, im + w * p.im, square + w * (variance + p.norm_sqr()));
            (error.0[m], error.1[m]) = (d.re, d.im);
            weight[m] = noise * (1.0 / variance).min(OUTLIER / d.norm_sqr().max(LEAST));
            (rows[0].0[m], rows[1].0[m]) = (T::of(d.norm_sqr().min(1e30)), T::of(variance));
        }
        (sums.re, sums.im, sums.square) = (sums.re + T::of(re), sums.im + T::of(im), sums.square + T::of(square));
        if !learn {
            return;
        }
        let pace = noise_pace(self.clock.since_jump);
        T::dispatch(self.level, Take { evidence: e, square: &rows[0], variance: &rows[1], relative: T::of(self.relative), pace });
        f64::dispatch(self.level, acquisition::Learn { members: a, error: &error, weight: &weight });
        self.shape.observe(&u);
        if self.clock.time % acquisition::TAP_LOOK == acquisition::TAP_LOOK - 1 {
            a.look();
        }
        a.left -= 1;
        if a.left == 0 {
            self.shape.power = a.power(e.best());
            self.shape.refresh(self.level);
            a.finish(&mut self.lanes, &self.shape);
            self.clock.since_shape = 0;
            self.whiten(self.clock.at, self.clock.cell);
        }
    }

    /// Makes the prediction of sample `i` out of the sums over the members of both halves, and what follows from its error. Returns the squared error of
    /// the lanes alone and its variance.
    fn conclude(&mut self, i: usize, sums: [Sums<T>; 2], learn: bool) -> (f64, f64) {
        let mix = |part: fn(&Sums<T>) -> T| self.shares[0] * part(&sums[0]) + self.shares[1] * part(&sums[1]);
        let p = Complex::new(mix(|s| s.re), mix(|s| s.im));
        let spread = |square: T, p: Complex<T>| (square - p.norm_sqr()).max(square * T::of(1e-12)).max(T::of(LEAST));
        let variance = spread(mix(|s| s.square), p);
        self.p.set(i, p);
        self.v[i] = variance;
        let y = self.y.at(i);
        if !learn {
            self.weight[i] = T::zero();
            return (0.0, 1.0);
        }
        let z = (y - p).norm_sqr() / variance;
        self.weight[i] = if z > T::of(SURPRISE) { T::of(SURPRISE) / z } else { T::one() };
        self.block_surprise += z.min(T::of(OUTLIER)).wide();
        self.alarm += (z.min(T::of(OUTLIER)).wide() - self.alarm) * (1.0 / JUMP_WINDOW);
        self.alert = z > T::of(ALERT) || self.acquisition.left > 0;
        if !self.running[0] {
            return (0.0, 1.0);
        }
        let own = Complex::new(sums[0].re, sums[0].im);
        let variance = spread(sums[0].square, own).wide();
        let e = wide(y) - wide(own);
        let square = e.norm_sqr();
        let inverse = 1.0 / variance;
        let z = square * inverse;
        self.surprise += (z.min(OUTLIER) - self.surprise) * (1.0 / JUMP_WINDOW);
        let weight = if z > OUTLIER { OUTLIER / square } else { inverse };
        self.offset_sums.0 += weight;
        self.offset_sums.1 += e * weight;
        (square, variance)
    }

    fn weigh(&mut self, bank: bool) {
        let forgetting = T::of(self.config.evidence.powi(self.phase as i32));
        self.phase = 0;
        let lanes = self.running[0].then_some(&mut self.lanes.evidence);
        let bank = bank.then_some(&mut self.bank.evidence);
        self.shares = T::dispatch(self.level, Weigh { running: [lanes, bank], forgetting });
    }
}

/// Evidence for members whose errors are known.
struct Take<'a, T: Real> {
    evidence: &'a mut super::evidence::Evidence<T>,
    square: &'a Row<T>,
    variance: &'a Row<T>,
    relative: T,
    pace: T,
}

impl<T: Real> Op<T> for Take<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        for g in 0..Row::<T>::groups::<V>() {
            let mut judge = self.evidence.load::<V>(g);
            judge.take(self.square.get(g), self.variance.get(g), V::splat(self.relative), V::splat(self.pace));
            judge.store(self.evidence, g);
        }
    }
}
