//! Time, and what is being transmitted: the part that a transmitting and a receiving thread share.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use num_complex::Complex32;

use super::CHANNELS;

/// Samples that a transmitter may be ahead, and that a paced receiver may be behind before it overflows; at least the time below.
const BUFFER: u64 = 1 << 18;
const BUFFER_SECONDS: f64 = 0.1;

/// What became of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Underflow,
    Late,
}

/// One sample of each transmit antenna after the other, before they meet.
pub(super) type Sent = [Vec<Complex32>; CHANNELS];

struct Burst {
    start: u64,
    length: usize,
    used: usize,
    samples: Sent,
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
    rate: f64,
    /// When sample 0 was due; none runs as fast as possible.
    started: Option<Instant>,
    /// The hardware time of sample 0.
    epoch_ns: i64,
    /// The next sample that goes on the air.
    position: u64,
    listening: bool,
    transmission: Transmission,
    frequencies: [f64; CHANNELS],
    bursts: VecDeque<Burst>,
    queued: u64,
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
                    rate: 1e6,
                    started: real_time.then(Instant::now),
                    epoch_ns: 0,
                    position: 0,
                    listening: false,
                    transmission: Transmission::Off,
                    frequencies: [super::FREQUENCY; CHANNELS],
                    bursts: VecDeque::new(),
                    queued: 0,
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

    /// Waits for a change until `deadline`; paced time moves by itself, so at most until then.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, until: Instant) -> MutexGuard<'a, State> {
        let left = until.saturating_duration_since(Instant::now());
        self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
    }

    pub(super) fn rate(&self) -> f64 {
        self.lock().rate
    }

    /// Sets the clock; false while a stream is active.
    pub(super) fn set_rate(&self, rate: f64) -> bool {
        let mut state = self.lock();
        if state.rate == rate {
            return true;
        }
        if state.listening || state.transmission != Transmission::Off {
            return false;
        }
        state.epoch_ns = state.time_ns(state.now());
        state.rate = rate;
        state.position = 0;
        state.started = state.started.map(|_| Instant::now());
        true
    }

    pub(super) fn time_ns(&self, sample: Option<u64>) -> i64 {
        let state = self.lock();
        state.time_ns(sample.unwrap_or_else(|| state.now()))
    }

    /// The clock shows `time_ns` now.
    pub(super) fn set_time(&self, time_ns: i64) {
        let mut state = self.lock();
        let shown = state.time_ns(state.now());
        state.epoch_ns += time_ns - shown;
    }

    /// Sets the clock by so many samples, without a sample lost.
    pub(super) fn shift_clock(&self, samples: i64) {
        let mut state = self.lock();
        state.epoch_ns += (samples as f64 * 1e9 / state.rate).round() as i64;
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
        let first = at_ns.map_or(now, |t| state.sample_at(t)).max(now);
        state.listening = true;
        state.forget(first);
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
        let mut lost = 0;
        loop {
            let horizon = state.horizon();
            let behind = horizon.saturating_sub(state.position);
            if state.started.is_some() && behind > state.buffer() {
                lost += behind;
                state.skip(behind);
                continue;
            }
            if behind >= count as u64 || (behind > 0 && Instant::now() >= deadline) {
                let samples = count.min(behind as usize);
                state.play(samples, out);
                self.changed.notify_all();
                return Some(Heard { samples, lost });
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
        self.changed.notify_all();
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
        state.queued = 0;
        self.changed.notify_all();
    }

    pub(super) fn transmitting(&self) -> bool {
        self.lock().transmission != Transmission::Off
    }

    /// How many samples may be written now; 0 after the deadline.
    pub(super) fn space(&self, deadline: Instant) -> u64 {
        let mut state = self.lock();
        loop {
            state.play_unheard();
            let space = state.buffer().saturating_sub(state.queued);
            if space > 0 || Instant::now() >= deadline {
                return space;
            }
            // Nobody wakes a transmitter without a receiver: time does.
            let poll = Instant::now() + Duration::from_millis(1);
            let until = if state.listening { deadline } else { poll.min(deadline) };
            state = self.wait(state, until);
        }
    }

    /// Puts samples on the air at a hardware time, or right behind the last ones. What comes too late is not heard.
    pub(super) fn transmit(&self, mut samples: Sent, length: usize, at_ns: Option<i64>, end: bool) {
        let mut state = self.lock();
        let now = state.now();
        if state.started.is_some() {
            state.check_underflow(now);
        }
        let next = match state.transmission {
            Transmission::Burst(next) => next,
            _ => now.max(state.position),
        };
        let mut start = at_ns.map_or(next, |t| state.sample_at(t));
        let earliest = if state.started.is_some() { now.max(state.position) } else { state.position };
        if start < earliest && at_ns.is_none() {
            // An underflow, noted when it happened: the stream goes on from now.
            start = earliest;
        }
        let late = (earliest.saturating_sub(start) as usize).min(length);
        if late > 0 {
            state.event(Event::Late, start);
            samples.iter_mut().filter(|s| !s.is_empty()).for_each(|s| drop(s.drain(..late)));
        }
        if length > late {
            state.queued += (length - late) as u64;
            state.bursts.push_back(Burst { start: start + late as u64, length: length - late, used: 0, samples });
        }
        state.transmission = if end { Transmission::Between } else { Transmission::Burst(start + length as u64) };
        state.play_unheard();
        self.changed.notify_all();
    }

    /// The next thing that happened to the transmitter, and when.
    pub(super) fn event(&self, deadline: Instant) -> Option<(Event, i64)> {
        let mut state = self.lock();
        loop {
            state.play_unheard();
            if state.started.is_some() {
                let now = state.now();
                state.check_underflow(now);
            }
            if let Some((event, sample)) = state.events.pop_front() {
                return Some((event, state.time_ns(sample)));
            }
            if Instant::now() >= deadline {
                return None;
            }
            state = self.wait(state, deadline);
        }
    }
}

impl State {
    fn now(&self) -> u64 {
        self.started.map_or(self.position, |started| (started.elapsed().as_secs_f64() * self.rate) as u64)
    }

    fn buffer(&self) -> u64 {
        BUFFER.max((BUFFER_SECONDS * self.rate) as u64)
    }

    fn time_ns(&self, sample: u64) -> i64 {
        self.epoch_ns + (sample as f64 * 1e9 / self.rate).round() as i64
    }

    fn sample_at(&self, time_ns: i64) -> u64 {
        ((time_ns - self.epoch_ns) as f64 * self.rate / 1e9).round().max(0.0) as u64
    }

    /// When a sample is due.
    fn due(&self, sample: u64) -> Option<Instant> {
        self.started.map(|started| started + Duration::from_secs_f64(sample as f64 / self.rate))
    }

    /// The sample up to which the air is known: paced it is now; unpaced it is as far as the transmitter has got, or any if there is none.
    fn horizon(&self) -> u64 {
        if self.started.is_some() {
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
        for channel in out.iter_mut() {
            channel.clear();
        }
        while let Some(burst) = self.bursts.front_mut().filter(|b| b.start + (b.used as u64) < end) {
            let at = (burst.start + burst.used as u64).saturating_sub(self.position) as usize;
            let n = (burst.length - burst.used).min(count - at);
            for (out, samples) in out.iter_mut().zip(&burst.samples).filter(|(_, s)| !s.is_empty()) {
                out.resize(at.max(out.len()), Complex32::ZERO);
                out.extend_from_slice(&samples[burst.used..burst.used + n]);
            }
            burst.used += n;
            self.queued -= n as u64;
            if burst.used < burst.length {
                break;
            }
            self.bursts.pop_front();
        }
        for channel in out.iter_mut().filter(|c| !c.is_empty()) {
            channel.resize(count, Complex32::ZERO);
        }
        self.position = end;
    }

    /// Drops what was to be transmitted before `end`.
    fn forget(&mut self, end: u64) {
        while let Some(burst) = self.bursts.front_mut().filter(|b| b.start + (b.used as u64) < end) {
            let n = ((end - burst.start) as usize).min(burst.length) - burst.used;
            burst.used += n;
            self.queued -= n as u64;
            if burst.used < burst.length {
                break;
            }
            self.bursts.pop_front();
        }
    }

    fn skip(&mut self, count: u64) {
        let end = self.position + count;
        self.check_underflow(end);
        self.forget(end);
        self.position = end;
    }

    /// Without a listener the transmitter's samples are gone when they are due; unpaced at once.
    fn play_unheard(&mut self) {
        if self.listening {
            return;
        }
        let end = match (self.started, self.transmission) {
            (Some(_), _) => self.now(),
            (None, Transmission::Burst(next)) => next,
            (None, _) => self.bursts.back().map_or(self.position, |b| b.start + b.length as u64),
        };
        self.skip(end.saturating_sub(self.position));
    }
}
