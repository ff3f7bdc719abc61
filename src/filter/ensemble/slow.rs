//! What is slow: it waits for the end of a cell or of a block.

use num_complex::Complex64;

use super::bank::spread;
use super::constants::*;
use super::curve::Curve;
use super::evidence::{NOTHING, Weigh};
use super::features::Products;
use super::input::Change;
use super::lanes::Settle;
use super::motion::Motion;
use super::shape::Shape;
use super::step::wide;
use super::{Ensemble, lanes};
use crate::Real;
use crate::filter::Adaptive;
use crate::simd::Row;

impl<T: Real> Ensemble<T> {
    /// The end of a cell: what is slow.
    pub(super) fn end_cell(&mut self, learn: bool) {
        self.settle();
        self.average.follow(self.clock.at - 1);
        self.average.doubt = if self.clock.learned < EAGER / 4 { T::max_value() } else { T::of(DOUBT) };
        // Lanes that rest are called when the bank alone does badly.
        self.running[0] |= self.average.alarm > T::of(JUMP);
        let best = self.lanes.evidence.best();
        let noise = self.lanes.evidence.noise.0[best].wide();
        // The offset is a constant that all members share: a Kalman filter in information form over the cell.
        let (weights, errors) = std::mem::take(&mut self.average.offset);
        let (weights, errors) = (weights.wide(), wide(errors));
        if weights > 0.0 && learn {
            self.offset_variance = 1.0 / (1.0 / self.offset_variance + noise * weights);
            self.offset += errors * noise * self.offset_variance;
            self.offset_variance += OFFSET_DRIFT * self.clock.length as f64;
        }
        self.guard(best);
        let change = self.input.settle();
        let (mut bent, grown) = (false, change != Change::None);
        match change {
            Change::Begin => {
                let input = self.input.clone();
                self.reset();
                self.input = input;
                return;
            }
            Change::Grown(ratio) => {
                self.grow(ratio);
                self.jump();
                // The level of the output's noise may be another one as well.
                self.fresh = true;
                self.offset *= ratio.min(1.0);
                self.offset_variance = self.offset_variance.max(OFFSET_PRIOR / (ratio * ratio).min(1.0));
                self.clock.since_jump = 0;
                bent = true;
            }
            Change::None => {}
        }
        if learn && self.running[0] {
            self.excited.follow(&self.shape, self.clock.since_change, self.level);
        }
        let eager = self.clock.since_change < EAGER;
        if learn && self.running[0] && self.clock.since_change > WARM_UP && (eager || self.clock.at == BLOCK && self.is_curve_turn()) {
            bent |= self.curve.solve(self.level);
        }
        if self.clock.at == BLOCK {
            bent |= self.end_block(learn);
        }
        if bent {
            self.bend_history();
        }
        if grown && self.running[1] {
            let to = self.history + self.clock.at;
            T::dispatch(self.level, Products { streams: &mut self.streams, from: 1, to });
        }
        let length = ((self.clock.since_change / 64).next_power_of_two() as usize).clamp(QUAD, CELL);
        let length = if self.input.is_starting() { 1 } else { length };
        self.clock.cell = self.clock.at + length - self.clock.at % length;
        self.clock.length = self.clock.cell - self.clock.at;
    }

    /// Lets the lanes take in what the last sample taught, and weighs the members.
    fn settle(&mut self) {
        let level = self.lanes_level();
        if let Some(white) = &self.white {
            T::dispatch(level, Settle { lanes: &mut self.lanes, white, last: self.clock.at.wrapping_sub(1) });
        }
        if let Some(forgetting) = self.average.due.take() {
            let [lanes, bank] = [self.running[0], self.running[1] && self.bank.is_ready()];
            let simple = self.simple.counts().then_some(&mut self.simple.evidence);
            let running = [lanes.then_some(&mut self.lanes.evidence), bank.then_some(&mut self.bank.evidence), simple];
            self.average.shares = T::dispatch(level, Weigh { running, forgetting, counts: self.average.counts });
        }
    }

    /// The end of a block; returns whether the curve is another one.
    fn end_block(&mut self, learn: bool) -> bool {
        self.carrier.end_block();
        let mean = self.average.power(&self.y) / BLOCK as f64;
        let blocks = (self.clock.since_change / BLOCK as u64).clamp(1, 40) as f64;
        self.power += (mean - self.power) / blocks;
        let best = self.lanes.evidence.best();
        let noise = self.lanes.evidence.noise.0[best].wide();
        if learn && self.running[1] {
            self.follow_slow_carrier();
            self.bank.learn(self.level, &self.streams, &self.y, &self.average.weight[..BLOCK], self.clock.time, noise, self.power);
        }
        if learn && self.acquisition.left == 0 && self.running[0] {
            self.follow_carrier(best);
            let mut h = std::mem::take(&mut self.taps);
            self.heaviest(&mut h);
            let pace = BLOCK as f64 / (TAP_WINDOW * lanes::span(best));
            self.shape.follow(h.iter().map(|&h| wide(h)), pace);
            if self.clock.since_jump > NARROW {
                let v = &mut self.windows[0];
                v.iter_mut().zip(self.lanes.velocity(best)).for_each(|(to, v)| *to = v);
                self.shape.colour(v);
                self.motion.follow(h.iter().map(|&h| wide(h)), v.iter().copied(), pace.max(1.0 / SWING_BLOCKS));
                self.lanes.swing(&self.motion);
            }
            self.taps = h;
            let windows = if self.clock.since_change < EAGER { BLOCK / 4 } else { usize::from(self.is_slow_turn()) * 4 };
            for k in 0..windows {
                let every = BLOCK / windows;
                let at = self.history + k * every + (spread(self.clock.time + k as u64) % every as u64) as usize;
                let u = &mut self.windows[0];
                u.iter_mut().enumerate().for_each(|(l, u)| *u = wide(self.streams.bent().at(at - l)));
                self.shape.observe(u);
            }
            if self.clock.since_shape >= self.clock.next_shape {
                self.refresh();
            }
        }
        self.gate();
        let begun = self.are_lanes_lost();
        if begun {
            self.begin_lanes();
        }
        self.carrier.begin_block();
        self.clock.at = 0;
        self.input.x.roll(self.history);
        self.streams.roll(self.running[1]);
        begun
    }

    /// Decides which parts run in the next block: one that carries no weight rests, and is looked at once in a while.
    fn gate(&mut self) {
        let z = std::mem::take(&mut self.average.block).wide();
        let calm = z < CALM * BLOCK as f64 && self.average.alarm < T::of(JUMP);
        let light = T::of(LIGHT);
        self.average.usual = if calm && self.is_steady() { CALM_QUADS } else { QUAD };
        self.bank.begin_again(self.lanes.evidence.level);
        let block = self.clock.time / BLOCK as u64;
        let turn = block.is_multiple_of(match (self.bank.is_hopeless(), self.bank.is_long_behind()) {
            (false, false) => REST,
            (false, true) => 8 * REST,
            (true, _) if self.bank.learned() < BANK_SETTLED => 4 * REST,
            (true, _) => 32 * REST,
        });
        // Where simple filters are ahead, the others may yet catch up: at rest they would not, nor would they learn that garbage is over.
        let behind = self.average.shares[2] > T::of(0.5);
        // Errors larger than expected call the bank, but not one that has been of no use for long.
        let called = !calm && !self.bank.is_long_behind();
        let both = turn || called || behind || self.acquisition.left > 0 || self.bank.learned() < BANK_EAGER;
        if self.acquisition.left == 0 && self.running[0] {
            // Where the bank has the weight, lanes run once in a while, and then the fast ones must be among them.
            let clear = self.clock.since_jump > NARROW && self.lanes.evidence.level > light;
            self.lanes.choose(calm && clear && !block.is_multiple_of(NARROW_LOOK));
        }
        let before = self.running[1];
        self.running = [both || !calm || self.lanes.evidence.level > light, both || self.bank.evidence.level > light];
        self.bank.rest(!both);
        self.simple.turn(self.lanes.evidence.noise.0[self.lanes.evidence.best()].min(self.bank.least_noise()).wide());
        let [lanes, bank] = self.running;
        self.average.share([lanes, bank && self.bank.is_ready(), self.simple.counts()]);
        if self.running[1] && !before {
            let (from, to) = (BLOCK, BLOCK + self.history);
            T::dispatch(self.level, Products { streams: &mut self.streams, from, to });
        }
    }

    /// Whether weights hardly change within a few samples: the lanes carry them, and none of the fast ones is the best.
    fn is_steady(&self) -> bool {
        let slow = lanes::span(self.lanes.evidence.best()) >= (4 * CALM_QUADS) as f64;
        slow && self.bank.evidence.level < T::of(LIGHT) && self.clock.since_jump > NARROW && self.clock.since_change >= EAGER
    }

    /// Moves what rotation all taps have in common from their velocities into the carrier.
    fn follow_carrier(&mut self, best: usize) {
        let (mut cross, mut power) = (0.0, 0.0);
        for (h, v) in self.lanes.position(best).zip(self.lanes.velocity(best)) {
            (cross, power) = (cross + (h.conj() * v).im, power + h.norm_sqr());
        }
        if power > 0.0
            && self.average.shares[1] < T::of(0.5)
            && let Some(step) = self.carrier.follow(cross / power, false)
        {
            self.lanes.rotate(step);
            self.motion = Motion::default();
            if self.carrier.begins_bank(self.bank.learned(), step) {
                self.bank.restart();
            }
        }
    }

    /// The same for a rotation so slow that the bank describes the channel best, but lags behind it.
    fn follow_slow_carrier(&mut self) {
        if self.bank.is_ready()
            && self.bank.is_awake()
            && self.average.shares[1] >= T::of(0.5)
            && let Some(step) = self.carrier.follow(self.bank.rotation(&self.y), true)
        {
            self.lanes.rotate(step);
            self.bank.catch_up(&self.y);
        }
    }

    /// Whether what is slow gets its turn in this block: every block at first, later one in some.
    fn is_slow_turn(&self) -> bool {
        self.clock.since_change < EAGER || (self.clock.time / BLOCK as u64).is_multiple_of(REST)
    }

    /// Whether the curve is solved for after this block: once for a few samples that it has learned from.
    fn is_curve_turn(&self) -> bool {
        let blocks = if self.clock.since_change < 64 * EAGER { REST } else { 8 * REST };
        (self.clock.time / BLOCK as u64).is_multiple_of(blocks)
    }

    /// New coordinates.
    fn refresh(&mut self) {
        self.clock.since_shape = 0;
        self.clock.next_shape = (2 * self.clock.next_shape).min(REFRESH_MOST);
        if !self.shape.refresh(self.level) {
            return;
        }
        let [h, v] = &mut self.windows;
        for m in 0..MEMBERS {
            h.iter_mut().zip(self.lanes.position(m)).for_each(|(to, h)| *to = h);
            v.iter_mut().zip(self.lanes.velocity(m)).for_each(|(to, v)| *to = v);
            self.shape.convert(h);
            self.shape.convert(v);
            (0..h.len()).for_each(|l| self.lanes.set(m, l, h[l], v[l]));
        }
    }

    /// The channel has jumped: open all members.
    pub(super) fn jump(&mut self) {
        self.settle();
        self.lanes.choose(false);
        self.acquisition.reopen(&self.lanes, &self.shape, &mut self.windows);
        self.running[0] = true;
        // What goes on is not known yet: straight lines find it sooner.
        self.lanes.spring = Row::default();
        self.average.surprise = T::one();
        self.clock.since_jump = JUMP_WINDOW as u64;
    }

    /// Whether simple filters have been so far ahead of the lanes, for so long, that it must be garbage what these have learned.
    fn are_lanes_lost(&mut self) -> bool {
        let level = self.lanes.evidence.level;
        if level > T::of(LIGHT) {
            self.clock.patience = LANES_BEHIND;
        }
        let behind = self.average.shares[2] > T::of(0.5) && level <= T::of(NOTHING);
        self.clock.behind = if behind { self.clock.behind + 1 } else { 0 };
        self.clock.behind >= self.clock.patience
    }

    /// Lanes and curve begin from nothing.
    fn begin_lanes(&mut self) {
        self.jump();
        self.acquisition.begin();
        self.curve = Curve::new();
        self.motion = Motion::default();
        self.shape = Shape::new(self.config.taps);
        self.excited.restart();
        (self.offset, self.offset_variance) = (Complex64::default(), OFFSET_PRIOR);
        self.fresh = true;
        (self.clock.since_change, self.clock.since_shape, self.clock.next_shape) = (0, 0, REFRESH_FIRST);
        // If it did not help, it hardly will soon.
        (self.clock.behind, self.clock.patience) = (0, self.clock.patience.saturating_mul(2));
    }

    /// A member that has lost the channel takes the state of the best one.
    fn guard(&mut self, best: usize) {
        let acquiring = self.acquisition.left > 0;
        if self.clock.learned < WARM_UP {
            return;
        }
        let finite = if acquiring { self.acquisition.finite() } else { self.lanes.finite() };
        for m in self.lanes.evidence.window.members() {
            let e = &mut self.lanes.evidence;
            let lost = e.noise.0[m] > T::of(LOST) * e.noise.0[best] || !e.noise.0[m].is_finite();
            if m != best && (lost || !finite[m]) {
                e.noise.0[m] = e.noise.0[best];
                e.log.0[m] = (e.log.0[best] - T::of(BEHIND)).max(T::of(NOTHING));
                if acquiring { self.acquisition.copy(m, best) } else { self.lanes.copy(m, best) }
            }
        }
        if !acquiring && self.clock.time.is_multiple_of(16) {
            self.lanes.fade(self.clock.length);
        }
    }

    /// The unit of the input grew by `ratio`.
    fn grow(&mut self, ratio: f64) {
        self.clock.since_change = 0;
        self.excited.restart();
        self.bank.restart();
        self.simple.restart();
        self.running[0] = true;
        let factor = self.curve.stretch(ratio);
        self.acquisition.scale(factor);
        self.lanes.scale(factor);
    }
}
