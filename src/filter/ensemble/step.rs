//! What happens with samples.

use num_complex::{Complex, Complex64};

use super::bank::spread;
use super::constants::*;
use super::evidence::{LEAST, NOTHING, Weigh, noise_pace};
use super::features::Products;
use super::input::Change;
use super::lanes::{self, Sums, White};
use super::shape::{Whiten, colour};
use super::spline::Bend;
use super::{Ensemble, acquisition};
use crate::Real;
use crate::filter::Adaptive;
use crate::simd::{Dispatch, Op, Row, Vector};

fn wide<T: Real>(z: Complex<T>) -> Complex64 {
    Complex64::new(z.re.wide(), z.im.wide())
}

impl<T: Real> Ensemble<T> {
    /// Samples that do not leave the present cell.
    pub(super) fn chunk(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], learn: bool) {
        let (from, to) = (self.clock.at, self.clock.at + tx.len());
        self.input.take(self.history + from, tx);
        rx.iter().enumerate().for_each(|(i, &y)| self.y.set(from + i, y));
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
        let mut at = from;
        while at < to {
            let mut end = (at + QUAD - self.phase).min(to);
            let eager = self.clock.since_change < EAGER;
            let curve = learn && lanes && self.clock.learned >= WARM_UP && (eager || self.clock.wait == 0);
            if curve && (self.phase == 0 || !eager) {
                self.taps = self.heaviest();
            }
            if !eager && learn && lanes {
                // Stop where the curve learns.
                end = end.min(if curve { at + 1 } else { at + self.clock.wait.min(QUAD as u64) as usize });
            }
            if self.acquisition.left > 0 && lanes {
                end = at + 1;
            }
            let mut sums = [Sums::default(); QUAD];
            let sums = &mut sums[..end - at];
            if lanes {
                if self.acquisition.left > 0 { self.acquire(at, learn, &mut sums[0]) } else { self.run(at, end, learn, sums) }
            }
            if bank {
                let y = &rx[at - from..end - from];
                let slots = Slots { bank: &mut self.bank, y, at, relative: T::of(self.relative), pace: noise_pace(u64::MAX), learn, sums };
                T::dispatch(self.level, slots);
            }
            for i in at..end {
                self.conclude(i, sums[i - at], learn, bank);
                if curve {
                    let x = |l: usize| wide(self.input.x.at(self.history + i - l)) * self.input.inverse();
                    let (y, p, v) = (wide(self.y.at(i)), wide(self.p.at(i)), self.v[i].wide());
                    let samples = if eager { 1 } else { LAZY };
                    self.curve.learn(&self.taps, x, y - self.offset, (y - p).norm_sqr(), v.max(LEAST), samples);
                }
            }
            let n = (end - at) as u64;
            self.clock.time += n;
            if learn {
                self.clock.learned += n;
                self.clock.since_jump += n;
                self.clock.since_change += n;
                self.clock.since_shape += n;
                self.clock.wait = if curve { spread(self.clock.time) % (2 * LAZY - 1) } else { self.clock.wait.saturating_sub(n) };
                self.phase += end - at;
                if self.phase == QUAD {
                    self.weigh(bank);
                    self.relative = 1.0 / self.v[end - 1].wide();
                }
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
        self.shape.observe(&u, 1.0);
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

    /// Makes the prediction of sample `i` out of the sums over all members, and what follows from its error.
    fn conclude(&mut self, i: usize, sums: Sums<T>, learn: bool, bank: bool) {
        let p = Complex::new(sums.re, sums.im);
        let variance = (sums.square - p.norm_sqr()).max(sums.square * T::of(1e-12)).max(T::of(LEAST));
        self.p.set(i, p);
        self.v[i] = variance;
        let y = self.y.at(i);
        if !learn {
            self.weight[i] = T::zero();
            if bank {
                self.bank.note(i, None);
            }
            return;
        }
        let e = wide(y) - wide(p);
        let z = e.norm_sqr() / variance.wide();
        self.weight[i] = T::of((SURPRISE / z).min(1.0));
        self.surprise += (z.min(OUTLIER) - self.surprise) / JUMP_WINDOW;
        self.shock = self.shock.max(self.surprise);
        let weight = (1.0 / variance.wide()).min(OUTLIER / e.norm_sqr().max(LEAST));
        self.offset_sums.0 += weight;
        self.offset_sums.1 += e * weight;
        let power = wide(y).norm_sqr();
        let most = if self.power > 0.0 { 100.0 * self.power } else { power };
        self.power += (power.min(most) - self.power) / (self.clock.learned as f64 + 1.0).min(5000.0);
        if bank {
            self.bank.note(i, Some(y));
        }
    }

    fn weigh(&mut self, bank: bool) {
        self.phase = 0;
        let forgetting = T::of(self.config.evidence.powi(QUAD as i32));
        let lanes = self.running[0].then_some(&mut self.lanes.evidence);
        let bank = bank.then_some(&mut self.bank.evidence);
        T::dispatch(self.level, Weigh { running: [lanes, bank], forgetting });
    }

    /// The end of a cell: what is slow.
    pub(super) fn end_cell(&mut self) {
        let best = self.lanes.evidence.best();
        let noise = self.lanes.evidence.noise.0[best].wide();
        // The offset is a constant that all members share: a Kalman filter in information form over the cell.
        let (weights, errors) = std::mem::take(&mut self.offset_sums);
        if weights > 0.0 {
            self.offset_variance = 1.0 / (1.0 / self.offset_variance + noise * weights);
            self.offset += errors * noise * self.offset_variance;
            self.offset_variance += OFFSET_DRIFT * self.clock.length as f64;
        }
        self.guard(best);
        if self.shock > JUMP && self.clock.since_jump > SETTLED {
            self.jump();
        }
        self.shock = self.surprise;
        let change = self.input.settle();
        let mut bent = false;
        match change {
            Change::Begin => {
                let input = self.input.clone();
                self.reset();
                self.input = input;
                return;
            }
            Change::Grown(ratio) => {
                self.grow(ratio);
                bent = true;
            }
            Change::None => {}
        }
        let eager = self.clock.since_change < EAGER;
        if self.running[0] && self.clock.learned > WARM_UP && (eager || self.clock.at == BLOCK) {
            bent |= self.curve.solve(self.level);
        }
        if self.clock.at == BLOCK {
            self.end_block();
        }
        if bent {
            // The history with the new curve; vectors of sixteen begin at the front of the planes.
            let (normalised, u) = self.streams.inputs();
            let inverse = T::of(self.input.inverse());
            let to = self.history + self.clock.at;
            T::dispatch(self.level, Bend { x: &self.input.x, normalised, u, theta: &self.curve.narrow, inverse, from: 0, to });
        }
        let length = ((self.clock.since_change / 64).next_power_of_two() as usize).clamp(QUAD, CELL);
        self.clock.cell = self.clock.at + length - self.clock.at % length;
        self.clock.length = self.clock.cell - self.clock.at;
    }

    fn end_block(&mut self) {
        let best = self.lanes.evidence.best();
        let noise = self.lanes.evidence.noise.0[best].wide();
        if self.running[1] {
            self.bank.learn(self.level, &self.streams, &self.y, &self.weight, self.clock.time, noise, self.power);
        }
        if self.acquisition.left == 0 && self.running[0] {
            let h = self.heaviest();
            self.shape.follow(h.into_iter(), BLOCK as f64 / (TAP_WINDOW * lanes::span(best)));
            for k in 0..2 {
                let at = self.history + k * CELL + (spread(self.clock.time + k as u64) % CELL as u64) as usize;
                let u: Vec<Complex64> = (0..self.config.taps).map(|l| wide(self.streams.bent().at(at - l))).collect();
                self.shape.observe(&u, CELL as f64);
            }
            if self.clock.since_shape >= self.clock.next_shape {
                self.refresh();
            }
        }
        self.clock.at = 0;
        self.input.x.roll(self.history);
        self.streams.roll();
    }

    /// New coordinates.
    fn refresh(&mut self) {
        self.clock.since_shape = 0;
        self.clock.next_shape = (2 * self.clock.next_shape).min(REFRESH_MOST);
        let Some(old) = self.shape.refresh(self.level) else { return };
        for m in 0..MEMBERS {
            let mut h = colour(&old, &self.lanes.position(m).collect::<Vec<_>>());
            let mut v = colour(&old, &self.lanes.velocity(m).collect::<Vec<_>>());
            self.shape.whiten(&mut h);
            self.shape.whiten(&mut v);
            (0..self.config.taps).for_each(|l| self.lanes.set(m, l, h[l], v[l]));
        }
    }

    /// The channel has jumped: open all members.
    pub(super) fn jump(&mut self) {
        self.acquisition.reopen(&self.lanes, &self.shape);
        (self.surprise, self.shock) = (1.0, 1.0);
        self.clock.since_jump = JUMP_WINDOW as u64;
        self.running = [true, true];
    }

    /// A member that has lost the channel takes the state of the best one.
    fn guard(&mut self, best: usize) {
        let acquiring = self.acquisition.left > 0;
        if self.clock.learned < WARM_UP {
            return;
        }
        for m in 0..MEMBERS {
            let finite = if acquiring { self.acquisition.is_finite(m) } else { self.lanes.is_finite(m) };
            let e = &mut self.lanes.evidence;
            let lost = e.noise.0[m] > T::of(LOST) * e.noise.0[best] || !e.noise.0[m].is_finite();
            if m != best && (lost || !finite) {
                e.noise.0[m] = e.noise.0[best];
                e.log.0[m] = (e.log.0[best] - T::of(7.0)).max(T::of(NOTHING));
                if acquiring { self.acquisition.copy(m, best) } else { self.lanes.copy(m, best) }
            }
        }
        if !acquiring && self.clock.time % 16 == 0 {
            // Once in 16 samples.
            (0..(self.clock.length / 16).max(1)).for_each(|_| self.lanes.fade());
        }
    }

    /// The unit of the input grew by `ratio`.
    fn grow(&mut self, ratio: f64) {
        let factor = if self.clock.learned > 200 {
            self.clock.since_change = 0;
            self.bank.restart();
            self.running = [true, true];
            self.curve.stretch(ratio)
        } else {
            ratio.into()
        };
        self.acquisition.scale(factor);
        self.lanes.scale(factor);
        self.shape.scale(1.0 / factor.norm_sqr());
        let square = T::of(factor.norm_sqr());
        for row in [&mut self.lanes.p11, &mut self.lanes.p12, &mut self.lanes.p22] {
            row.0.iter_mut().for_each(|p| *p *= square);
        }
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

/// Some samples through the bank's members, whose predictions are known.
struct Slots<'a, T: Real> {
    bank: &'a mut super::bank::Bank<T>,
    y: &'a [Complex<T>],
    at: usize,
    relative: T,
    pace: T,
    learn: bool,
    sums: &'a mut [Sums<T>],
}

impl<T: Real> Op<T> for Slots<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        for (i, (&y, sums)) in self.y.iter().zip(self.sums).enumerate() {
            let (re, im) = self.bank.prediction(self.at + i);
            for g in 0..Row::<T>::groups::<V>() {
                let mut judge = self.bank.evidence.load::<V>(g);
                let (p, q): (V, V) = (re.get(g), im.get(g));
                sums.re += judge.weight.mul(p).sum();
                sums.im += judge.weight.mul(q).sum();
                sums.square += judge.weight.mul(p.fma(p, q.fma(q, judge.noise))).sum();
                if self.learn {
                    let (a, b) = (V::splat(y.re).sub(p), V::splat(y.im).sub(q));
                    let square = a.fma(a, b.mul(b));
                    judge.take(square, judge.noise, V::splat(self.relative), V::splat(self.pace));
                    judge.store(&mut self.bank.evidence, g);
                }
            }
        }
    }
}
