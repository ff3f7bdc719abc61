//! Time, and what is being transmitted: the part that a transmitting and a receiving thread share.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::CHANNELS;
use super::bursts::{Bursts, Sent};
use super::clock::Clock;

/// Samples that a transmitter may be ahead, and that a paced receiver may be behind before it overflows; at least the time below.
const BUFFER: u64 = 1 << 18;
const BUFFER_SECONDS: f64 = 0.1;

/// A paced transmitter takes no fewer samples than this at a time, where as many are written.
const LEAST_WRITE: u64 = 4096;

/// A paced receiver brings samples through the channel in pieces that last so many seconds: it is not woken for each of a program's small reads.
const GRAIN_SECONDS: f64 = 0.5e-3;

/// From one pulse to the next, for all radios.
pub(super) const PULSE_NS: i64 = 1_000_000_000;

/// What became of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Underflow,
    Late,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transmission {
    Off,
    /// Activated, and nothing was ever written.
    Pending,
    /// The sample that follows the last one written.
    Burst(u64),
    /// A burst was ended.
    Between,
}

/// The medium and the clock of one or more radios.
pub(super) struct Air {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    clock: Clock,
    /// The rate is one that a receiver has set.
    received: bool,
    /// The next sample that goes on the air.
    position: u64,
    listening: bool,
    /// Samples that came too fast for the reader, since it was told last.
    unread: u64,
    transmission: Transmission,
    frequencies: [f64; CHANNELS],
    bursts: Bursts,
    events: VecDeque<(Event, u64)>,
}

/// Airs by name, so that two radios of one process can hear each other.
static AIRS: LazyLock<Mutex<HashMap<String, Weak<Air>>>> = LazyLock::new(Mutex::default);

/// What a receiver took off the air.
pub(super) struct Heard {
    pub(super) samples: usize,
    /// Samples before the first one that came too fast for the reader.
    pub(super) lost: u64,
}

impl Air {
    pub(super) fn open(name: Option<&str>, real_time: bool) -> Arc<Self> {
        let fresh = || {
            Arc::new(Self {
                state: Mutex::new(State {
                    clock: Clock { rate: 1e6, sample: 0, time_ns: 0, due: real_time.then(Instant::now) },
                    received: false,
                    position: 0,
                    listening: false,
                    unread: 0,
                    transmission: Transmission::Off,
                    frequencies: [super::FREQUENCY; CHANNELS],
                    bursts: Bursts::default(),
                    events: VecDeque::new(),
                }),
                changed: Condvar::new(),
            })
        };
        let Some(name) = name else { return fresh() };
        let mut airs = AIRS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(air) = airs.get(name).and_then(Weak::upgrade) {
            return air;
        }
        airs.retain(|_, air| air.strong_count() > 0);
        let air = fresh();
        airs.insert(name.into(), Arc::downgrade(&air));
        air
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait for another thread. In paced time that is nobody: it moves by itself, and being woken for each small read and write of a program is dear.
    fn tell(&self, state: &State) {
        if state.clock.due.is_none() || !state.events.is_empty() {
            self.changed.notify_all();
        }
    }

    /// Waits for a change until `deadline`; paced time moves by itself, so at most until then.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, until: Instant) -> MutexGuard<'a, State> {
        let left = until.saturating_duration_since(Instant::now());
        self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
    }

    pub(super) fn rate(&self) -> f64 {
        self.lock().clock.rate
    }

    /// Sets the rate, from the next sample on: that of a receiver, which counts, or else that of a transmitter. Gives whether it has changed.
    pub(super) fn set_rate(&self, rate: f64, received: bool) -> bool {
        let mut state = self.lock();
        let changes = (received || !state.received) && rate != state.clock.rate;
        state.received |= received;
        if changes {
            let now = state.now();
            let due = state.clock.due.map(|_| Instant::now());
            state.clock = Clock { rate, sample: now, time_ns: state.clock.time_ns(now), due };
            self.changed.notify_all();
        }
        changes
    }

    /// The time of a sample, or of now, since the first one.
    pub(super) fn time_ns(&self, sample: Option<u64>) -> i64 {
        let state = self.lock();
        state.clock.time_ns(sample.unwrap_or_else(|| state.now()))
    }

    /// The time of the last pulse.
    pub(super) fn last_pulse_ns(&self) -> i64 {
        self.time_ns(None).div_euclid(PULSE_NS) * PULSE_NS
    }

    pub(super) fn tune(&self, channel: usize, frequency: f64) {
        self.lock().frequencies[channel] = frequency;
    }

    pub(super) fn frequencies(&self) -> [f64; CHANNELS] {
        self.lock().frequencies
    }

    /// Begins to listen at a hardware time, or now; gives the first sample. What was on the air before is gone.
    pub(super) fn listen(&self, at_ns: Option<i64>) -> u64 {
        let mut state = self.lock();
        let now = state.now();
        let first = at_ns.map_or(now, |t| state.clock.sample_at(t)).max(now);
        (state.listening, state.unread) = (true, 0);
        state.bursts.forget(first);
        state.position = first;
        self.changed.notify_all();
        first
    }

    pub(super) fn stop_listening(&self) {
        let mut state = self.lock();
        state.listening = false;
        self.changed.notify_all();
    }

    /// Takes the next samples of all transmit antennas off the air, as many as there are until the deadline but at most `count`; none is a timeout.
    pub(super) fn take(&self, count: usize, deadline: Instant, out: &mut Sent) -> Option<Heard> {
        let mut state = self.lock();
        loop {
            state.pass_unread();
            let behind = state.horizon().saturating_sub(state.position);
            if behind >= count as u64 || (behind > 0 && Instant::now() >= deadline) {
                let samples = count.min(behind as usize);
                state.play(samples, out);
                self.tell(&state);
                return Some(Heard { samples, lost: std::mem::take(&mut state.unread) });
            }
            if Instant::now() >= deadline {
                return None;
            }
            let due = state.due(state.position + count as u64).unwrap_or(deadline);
            state = self.wait(state, due.min(deadline));
        }
    }

    /// Drops samples that the receiver does not want, as far as they are there; the clock then jumps over the rest.
    pub(super) fn skip(&self, count: u64) {
        let mut state = self.lock();
        state.skip(count);
        self.tell(&state);
    }

    /// How many samples to take off the air at least, where that costs no more than a moment.
    pub(super) fn grain(&self) -> usize {
        let clock = &self.lock().clock;
        if clock.due.is_some() { (GRAIN_SECONDS * clock.rate) as usize } else { 0 }
    }

    pub(super) fn activate_transmitter(&self) {
        let mut state = self.lock();
        state.transmission = Transmission::Pending;
        state.events.clear();
        self.changed.notify_all();
    }

    pub(super) fn stop_transmitter(&self) {
        let mut state = self.lock();
        state.transmission = Transmission::Off;
        state.bursts.clear();
        self.changed.notify_all();
    }

    /// How many of the `wanted` samples may be written now; 0 after the deadline.
    pub(super) fn space(&self, wanted: u64, deadline: Instant) -> u64 {
        let mut state = self.lock();
        let least = if state.clock.due.is_some() { wanted.min(LEAST_WRITE) } else { 1 };
        loop {
            state.pass_unread();
            let space = state.buffer().saturating_sub(state.ahead());
            if space >= least || Instant::now() >= deadline {
                return space;
            }
            // Time makes room in a paced transmitter, with or without a receiver; an unpaced receiver wakes it.
            let poll = Instant::now() + Duration::from_millis(1);
            let until = if state.listening && state.clock.due.is_none() { deadline } else { poll.min(deadline) };
            state = self.wait(state, until);
        }
    }

    /// Puts samples on the air at a hardware time, or right behind the last ones. What comes too late is not heard; neither is a `late` packet.
    pub(super) fn transmit(&self, mut samples: Sent, length: usize, at_ns: Option<i64>, end: bool, late: bool) {
        let mut state = self.lock();
        let now = state.now();
        if state.clock.due.is_some() {
            state.check_underflow(now);
        }
        let earliest = now.max(state.position);
        let next = match state.transmission {
            Transmission::Burst(next) => next,
            _ => state.bursts.end().unwrap_or(earliest),
        };
        // Without a time it follows the last one, or, after an underflow that was noted when it happened, goes on from now.
        let start = at_ns.map_or(next.max(earliest), |t| state.clock.sample_at(t));
        let past = if late { length } else { (earliest.saturating_sub(start) as usize).min(length) };
        if past > 0 {
            state.event(Event::Late, start);
            samples.iter_mut().filter(|s| !s.is_empty()).for_each(|s| drop(s.drain(..past)));
        }
        if length > past {
            state.bursts.queue(start + past as u64, length - past, samples);
        }
        state.transmission = if end { Transmission::Between } else { Transmission::Burst(start + length as u64) };
        state.pass_unread();
        self.tell(&state);
    }

    /// The next thing that happened to the transmitter, and at which sample.
    pub(super) fn event(&self, deadline: Instant) -> Option<(Event, u64)> {
        let mut state = self.lock();
        loop {
            state.pass_unread();
            if state.clock.due.is_some() {
                let now = state.now();
                state.check_underflow(now);
            }
            if let Some(event) = state.events.pop_front() {
                return Some(event);
            }
            if Instant::now() >= deadline {
                return None;
            }
            let runs_dry = match state.transmission {
                Transmission::Burst(next) => state.due(next + 1),
                _ => None,
            };
            state = self.wait(state, runs_dry.map_or(deadline, |dry| dry.min(deadline)));
        }
    }
}

impl State {
    fn now(&self) -> u64 {
        let Clock { rate, sample, due, .. } = &self.clock;
        due.map_or(self.position, |due| sample + (due.elapsed().as_secs_f64() * rate) as u64)
    }

    fn buffer(&self) -> u64 {
        BUFFER.max((BUFFER_SECONDS * self.clock.rate) as u64)
    }

    /// Samples that were written and are not due yet.
    fn ahead(&self) -> u64 {
        self.bursts.ahead(self.now())
    }

    /// When a sample is due.
    fn due(&self, sample: u64) -> Option<Instant> {
        let Clock { rate, sample: from, due, .. } = &self.clock;
        due.map(|due| due + Duration::from_secs_f64(sample.saturating_sub(*from) as f64 / rate))
    }

    /// The sample up to which the air is known: paced it is now; unpaced it is as far as the transmitter has got, or any if there is none.
    fn horizon(&self) -> u64 {
        if self.clock.due.is_some() {
            return self.now();
        }
        match self.transmission {
            Transmission::Off | Transmission::Between => u64::MAX,
            Transmission::Pending => self.position,
            Transmission::Burst(next) => next,
        }
    }

    fn event(&mut self, event: Event, sample: u64) {
        // Nobody has to read them.
        if self.events.len() < 1024 {
            self.events.push_back((event, sample));
        }
    }

    /// Notes an underflow when a burst should have gone on before `end`.
    fn check_underflow(&mut self, end: u64) {
        if let Transmission::Burst(next) = self.transmission
            && next < end
        {
            self.event(Event::Underflow, next);
            self.transmission = Transmission::Between;
        }
    }

    fn play(&mut self, count: usize, out: &mut Sent) {
        let end = self.position + count as u64;
        self.check_underflow(end);
        self.bursts.play(self.position, count, out);
        self.position = end;
    }

    fn skip(&mut self, count: u64) {
        let end = self.position + count;
        self.check_underflow(end);
        self.bursts.forget(end);
        self.position = end;
    }

    /// Without a listener the transmitter's samples are gone when they are due, unpaced at once; a listener who does not read them in time loses them too.
    fn pass_unread(&mut self) {
        let paced = self.clock.due.is_some();
        let end = match self.transmission {
            _ if paced => self.now(),
            _ if self.listening => return,
            Transmission::Burst(next) => next,
            _ => self.bursts.end().unwrap_or(self.position),
        };
        let behind = end.saturating_sub(self.position);
        if self.listening && behind <= self.buffer() {
            return;
        }
        if self.listening {
            self.unread += behind;
        }
        self.skip(behind);
    }
}
