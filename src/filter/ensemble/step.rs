//! What happens with samples.

use num_complex::{Complex, Complex64};

use super::average::{Average, Sums};
use super::bank::spread;
use super::constants::*;
use super::evidence::{Evidence, LEAST, Weigh, noise_pace};
use super::features::Products;
use super::lanes::White;
use super::run::{Moving, Run};
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
        if self.average.counts < T::one() && tx.iter().chain(rx).any(|z| z.im != T::zero()) {
            self.average.counts = T::one();
        }
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
        if self.simple.is_awake() && !self.input.is_starting() {
            for at in from..to {
                let x = &mut self.windows[0];
                x.iter_mut().enumerate().for_each(|(l, x)| *x = wide(self.streams.input().at(self.history + at - l)));
                self.simple.take(at, x, wide(self.y.at(at)), learn);
            }
        }
        while self.clock.at < to {
            let at = self.clock.at;
            let lazy = match self.clock.since_change / EAGER {
                0..8 => LAZY,
                8..64 => LAZIER,
                _ => LAZIEST,
            };
            let acquiring = lanes && self.acquisition.left > 0;
            let eager = self.clock.since_change < EAGER;
            let curve = learn && lanes && self.clock.since_change >= WARM_UP && (eager || self.clock.wait == 0);
            if curve && (self.average.phase == 0 || !eager) {
                let mut taps = std::mem::take(&mut self.taps);
                self.heaviest(&mut taps);
                self.excited.split(&taps);
                self.taps = taps;
            }
            // Stop where the curve learns.
            let end = match (acquiring, eager) {
                (true, _) => at + 1,
                (_, true) => at + self.average.next((EAGER - self.clock.since_change) as usize),
                _ if curve => at + 1,
                _ if learn && lanes => at + self.clock.wait as usize,
                _ => to,
            };
            let n = if acquiring { self.acquire(at, learn, bank) } else { self.run(at, end.min(to), learn, bank) };
            if curve {
                let samples = if eager { 1 } else { lazy };
                for i in at..at + n {
                    let x = |l: usize| wide(self.input.x.at(self.history + i - l)) * self.input.inverse();
                    if let Some((square, variance)) = self.average.errors_at(i) {
                        let rest = self.excited.rest(|l| wide(self.streams.bent().at(self.history + i - l)));
                        let y = wide(self.y.at(i)) - self.offset - rest;
                        self.curve.learn(&self.excited.taps, x, y, square, variance, samples);
                    }
                }
            }
            self.clock.at += n;
            let n = n as u64;
            self.clock.time += n;
            if learn {
                self.clock.learned += n;
                self.clock.since_jump += n;
                self.clock.since_change += n;
                self.clock.since_shape += n;
                self.clock.wait = if curve { spread(self.clock.time) % (2 * lazy - 1) } else { self.clock.wait.saturating_sub(n) };
            }
            if lanes && self.average.phase == 0 && self.average.surprise > T::of(JUMP) && self.clock.since_jump > SETTLED {
                // Where the bank describes the channel better than the lanes ever did, they may be surprised.
                let noise = self.lanes.evidence.noise.0[self.lanes.evidence.best()];
                if self.lanes.evidence.level > T::of(LIGHT) || noise < self.bank.least_noise() {
                    self.jump();
                }
            }
        }
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

    /// Whitened windows; all of the cell's if none are there.
    fn whiten(&mut self, from: usize, to: usize) {
        let from = if self.white.is_some() { from } else { from / CELL * CELL };
        let white = self.white.get_or_insert_with(|| White::new(self.config.taps));
        T::dispatch(self.level, Whiten { shape: &self.shape, u: self.streams.bent(), start: self.history, from, to, white });
    }

    /// Samples `from..to` through lanes and bank; returns how many were taken.
    fn run(&mut self, from: usize, to: usize, learn: bool, bank: bool) -> usize {
        let level = self.lanes_level();
        macro_rules! run {
            ($taps:literal) => {{
                let moving = self.white.as_ref().filter(|_| self.running[0]).map(|white| Moving::<T, $taps> {
                    lanes: &mut self.lanes,
                    white,
                    offset: Complex::new(T::of(self.offset.re), T::of(self.offset.im)),
                    curve: T::of(self.curve.variance),
                    tau: T::of(self.shape.tau),
                    silence: T::of(SILENCE * self.shape.tau),
                    steady: from as u64 + STEADY.saturating_sub(self.clock.since_jump),
                });
                let (average, y, evidence) = (&mut self.average, &self.y, T::of(self.config.evidence));
                let simple = self.simple.counts().then_some(&mut self.simple);
                T::dispatch(
                    level,
                    Run { lanes: moving, bank: bank.then_some(&mut self.bank), simple, average, y, from, to, learn, evidence },
                )
            }};
        }
        match self.config.taps {
            4 => run!(4),
            6 => run!(6),
            16 => run!(16),
            _ => run!(0),
        }
    }

    /// Sample `at` through the members with a covariance, and the bank; returns how many that are.
    fn acquire(&mut self, at: usize, learn: bool, bank: bool) -> usize {
        let all = learn;
        let u = &mut self.windows[0];
        u.iter_mut().enumerate().for_each(|(l, u)| *u = wide(self.streams.bent().at(self.history + at - l)));
        f64::dispatch(self.level, acquisition::Predict { members: &mut self.acquisition, u, offset: self.offset });
        let learn = learn && u.iter().map(|u| u.norm_sqr()).sum::<f64>() > SILENCE;
        let y = wide(self.y.at(at));
        let e = &mut self.lanes.evidence;
        let a = &mut self.acquisition;
        let relative = self.average.relative;
        let mut rows = [Row::default(); 2];
        let mut error = ([0.0; MEMBERS], [0.0; MEMBERS]);
        let mut weight = [0.0; MEMBERS];
        let (mut re, mut im, mut square) = (0.0, 0.0, 0.0);
        for m in 0..MEMBERS {
            let (p, excess) = (Complex64::new(a.p.0[m], a.p.1[m]), 1.0 + a.f[m].max(0.0) + self.offset_variance);
            let d = y - p;
            if (self.clock.learned == 0 || self.fresh) && learn {
                e.noise.0[m] = T::of((d.norm_sqr() / excess).max(LEAST));
            }
            let noise = e.noise.0[m].wide();
            let variance = (noise * excess + self.curve.variance).max(LEAST);
            let w = e.weight.0[m].wide();
            (re, im, square) = (re + w * p.re, im + w * p.im, square + w * (variance + p.norm_sqr()));
            (error.0[m], error.1[m]) = (d.re, d.im);
            weight[m] = noise * (1.0 / variance).min(OUTLIER / d.norm_sqr().max(LEAST));
            (rows[0].0[m], rows[1].0[m]) = (T::of((d.norm_sqr() / variance).min(1e30)), T::of(variance) * relative);
        }
        let mut own = Sums::default();
        (own.re[0], own.im[0], own.variance[0]) = (T::of(re), T::of(im), T::of(square - re * re - im * im));
        let other = bank.then(|| self.bank.judge(&self.y, at, 1, relative, all));
        let simple = self.simple.counts().then(|| self.simple.judge(&self.y, at, 1, relative, all));
        self.average.conclude(&self.y, at, 1, [Some(own), other, simple], all);
        if all {
            let (lanes, bank) = (&mut self.lanes.evidence, bank.then_some(&mut self.bank.evidence));
            let simple = self.simple.counts().then_some(&mut self.simple.evidence);
            let (taken, pace) = (learn.then_some([&rows[0], &rows[1]]), noise_pace(self.clock.since_jump));
            self.average.phase = 1;
            self.average.complete(T::of(self.config.evidence), true);
            self.average.follow(at);
            T::dispatch(self.level, Take { taken, lanes, others: [bank, simple], pace, average: &mut self.average });
        }
        if !learn {
            return 1;
        }
        self.fresh = false;
        f64::dispatch(self.level, acquisition::Learn { members: a, error: &error, weight: &weight });
        self.shape.observe(u);
        if self.clock.time % acquisition::TAP_LOOK == acquisition::TAP_LOOK - 1 {
            a.look();
        }
        a.left -= 1;
        if a.left == 0 {
            self.shape.power.iter_mut().zip(a.power(self.lanes.evidence.best())).for_each(|(to, p)| *to = p);
            self.shape.refresh(self.level);
            a.finish(&mut self.lanes, &self.shape, &mut self.windows);
            self.clock.since_shape = 0;
            self.whiten(self.clock.at, self.clock.cell);
        }
        1
    }
}

/// Evidence for members whose errors, in units of their variances, and variances are known; then the weights, if they are due.
struct Take<'a, T: Real> {
    taken: Option<[&'a Row<T>; 2]>,
    lanes: &'a mut Evidence<T>,
    others: [Option<&'a mut Evidence<T>>; PARTS - 1],
    /// That of the lanes' noise.
    pace: T,
    average: &'a mut Average<T>,
}

impl<T: Real> Op<T> for Take<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        let (lanes, [mut bank, mut simple]) = (self.lanes, self.others);
        if let Some([z, variance]) = self.taken {
            let mut at = 0;
            while at < MEMBERS {
                let mut judge = lanes.load::<V>(at, false);
                judge.take(z.get(at), variance.get(at));
                lanes.put(at, judge.product, judge.surprise);
                lanes.excess.put(at, judge.excess);
                at += V::LANES;
            }
            lanes.seen += T::one();
            lanes.renew_at::<V>(self.pace, T::max_value());
        }
        for other in [&mut bank, &mut simple].into_iter().flatten() {
            other.renew::<V>(1);
        }
        if let Some(forgetting) = self.average.due.take() {
            self.average.shares = Weigh { running: [Some(lanes), bank, simple], forgetting, counts: self.average.counts }.run::<V>();
        }
    }
}
