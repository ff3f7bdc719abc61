//! Streams of the simulated radio, with the quirks of a driver's; the receiver's in full.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use num_complex::Complex32;

use super::bursts::Sent;
use super::device::{Failure, Radio, lock};
use super::format::Format;
use super::quirks::Course;
use super::receiver::{Receiver, Tuned};
use super::transmitter::TxStream;
use super::{CHANNELS, Direction, Settings};
use crate::channel::Amplifier;
use crate::error::require;
use crate::{Error, Result};

/// Samples that go through the channel, and that a read brings, at most.
pub(super) const BLOCK: usize = 8192;

/// Lost samples still pass through the channel, so that it has moved on afterwards; beyond so many it stands still instead.
const PASSED_UNHEARD: u64 = 1 << 22;

/// A receive stream that is set up.
pub(super) struct RxStream {
    channels: Vec<usize>,
    format: Format,
    /// Samples that a read brings at most.
    mtu: usize,
    receiver: Option<Receiver>,
    /// Index of the next sample on the air; those before were delivered or lost.
    next: u64,
    /// Samples that were lost without a word: the clock of the time stamps has missed them.
    slipped: u64,
    /// Samples until the end of the burst that was asked for.
    left: Option<u64>,
    course: Course,
    /// Reads that have still to time out.
    stalled: u64,
    sent: Sent,
    /// A loss that has still to be told.
    overflowed: bool,
    /// How long the channel remembers, and how much of that is still to be dropped behind a loss, in samples.
    echo: usize,
    stale: usize,
}

impl RxStream {
    /// Takes over what can change while running.
    pub(super) fn update(&mut self, settings: &Settings, rate: f64) -> Result<()> {
        self.receiver.as_mut().map_or(Ok(()), |receiver| receiver.update(settings, rate))
    }

    /// The true taps between two antennas.
    pub(super) fn taps(&self, channel: usize, tx: usize) -> Option<Vec<Complex32>> {
        self.receiver.as_ref()?.taps(self.channels.iter().position(|&c| c == channel)?, tx)
    }
}

/// What a read brought.
pub(super) struct Read {
    pub(super) samples: usize,
    /// The time of the first one, where the stream tells it.
    pub(super) time_ns: Option<i64>,
    /// The burst ends here.
    pub(super) end: bool,
}

pub(super) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

impl Radio {
    pub(super) fn setup(&self, direction: Direction, format: &str, channels: &[usize], mtu: Option<usize>) -> Result<()> {
        let format = format.parse()?;
        let channels = if channels.is_empty() { vec![0] } else { channels.to_vec() };
        for (i, &channel) in channels.iter().enumerate() {
            let expected = "channels between 0 and 3, each once";
            require(channel < CHANNELS && !channels[..i].contains(&channel), "channels", expected, channel as f64)?;
        }
        let mtu = mtu.unwrap_or(BLOCK);
        require((1..=BLOCK).contains(&mtu), "bufflen", "between 1 and 8192 samples", mtu as f64)?;
        let busy = || Error::Data("the device has one stream for each direction, and this one is in use".into());
        let free = |used: bool| if used { Err(busy()) } else { Ok(()) };
        let settings = lock(&self.settings).clone();
        match direction {
            Direction::Rx => {
                let mut rx = lock(&self.rx);
                free(rx.is_some())?;
                *rx = Some(RxStream {
                    channels,
                    format,
                    mtu,
                    receiver: None,
                    next: 0,
                    slipped: 0,
                    left: None,
                    course: Course::new(settings.seed),
                    stalled: 0,
                    sent: Sent::default(),
                    overflowed: false,
                    echo: 0,
                    stale: 0,
                });
            }
            Direction::Tx => {
                let mut tx = lock(&self.tx);
                free(tx.is_some())?;
                let amplifier = settings.scenario(self.air.rate())?.amplifier;
                let amplifier = amplifier.as_ref().map(|a| Amplifier::new(a.model.clone(), a.ibo_db)).transpose()?;
                *tx = Some(TxStream::new(channels, format, amplifier));
            }
        }
        Ok(())
    }

    pub(super) fn close(&self, direction: Direction) {
        self.deactivate(direction);
        match direction {
            Direction::Rx => *lock(&self.rx) = None,
            Direction::Tx => *lock(&self.tx) = None,
        }
    }

    /// Begins at a time, or now; a receiver ends after `length` samples, or not at all with 0.
    pub(super) fn activate(&self, direction: Direction, at_ns: Option<i64>, length: usize) -> Result<(), Failure> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(Failure::Gone);
        }
        let other_active = match direction {
            Direction::Tx => lock(&self.rx).as_ref().is_some_and(|rx| rx.receiver.is_some()),
            Direction::Rx => lock(&self.tx).as_ref().is_some_and(|tx| tx.active),
        };
        if other_active && !self.full_duplex() {
            return Err(Failure::NotSupported);
        }
        match direction {
            Direction::Tx => {
                lock(&self.tx).as_mut().ok_or(Failure::NotSupported)?.activate();
                self.air.activate_transmitter();
            }
            Direction::Rx => {
                let mut rx = lock(&self.rx);
                let rx = rx.as_mut().ok_or(Failure::NotSupported)?;
                let settings = lock(&self.settings).clone();
                let receiver = Receiver::new(&settings, &rx.channels, self.air.rate());
                rx.receiver = Some(receiver.map_err(|_| Failure::NotSupported)?);
                rx.next = self.air.listen(at_ns.map(|at| self.to_air(at)));
                (rx.slipped, rx.stalled, rx.overflowed) = (0, 0, false);
                // Delay, taps and half the length of the filter that interpolates.
                (rx.echo, rx.stale) = (settings.impairments.delay.ceil() as usize + settings.taps as usize + 32, 0);
                rx.left = (length > 0).then_some(length as u64);
                rx.course = Course::new(settings.seed);
            }
        }
        Ok(())
    }

    pub(super) fn deactivate(&self, direction: Direction) {
        match direction {
            Direction::Tx => {
                if let Some(tx) = lock(&self.tx).as_mut().filter(|tx| tx.active) {
                    tx.active = false;
                    self.air.stop_transmitter();
                }
            }
            Direction::Rx => {
                if let Some(rx) = lock(&self.rx).as_mut().filter(|rx| rx.receiver.is_some()) {
                    rx.receiver = None;
                    self.air.stop_listening();
                }
            }
        }
    }

    /// The format, the number of channels and the largest read of a stream that is set up.
    pub(super) fn layout(&self, direction: Direction) -> Option<(Format, usize, usize)> {
        match direction {
            Direction::Rx => lock(&self.rx).as_ref().map(|rx| (rx.format, rx.channels.len(), rx.mtu)),
            Direction::Tx => lock(&self.tx).as_ref().map(|tx| (tx.format, tx.channels.len(), BLOCK)),
        }
    }

    /// Reads up to `wanted` samples into one buffer for each channel, which has room for them in the stream's format.
    pub(super) fn read(&self, buffers: &mut [&mut [u8]], wanted: usize, timeout: Duration) -> Result<Read, Failure> {
        let deadline = Instant::now() + timeout;
        if self.gone.load(Ordering::Relaxed) {
            return Err(Failure::Gone);
        }
        let mut guard = lock(&self.rx);
        let Some(rx) = guard.as_mut().filter(|rx| rx.receiver.is_some() && rx.left != Some(0)) else {
            drop(guard);
            std::thread::sleep(timeout);
            return Err(Failure::Timeout);
        };
        let (quirks, real_time) = {
            let settings = lock(&self.settings);
            (settings.quirks, settings.real_time)
        };
        let strike = rx.course.strike(&quirks);
        if strike.hang {
            drop(guard);
            loop {
                std::thread::sleep(Duration::from_secs(3600));
            }
        }
        if strike.vanish {
            self.gone.store(true, Ordering::Relaxed);
            // A writer does not wait for a receiver that is gone.
            self.air.stop_listening();
            return Err(Failure::Gone);
        }
        if strike.stall {
            rx.stalled = quirks.stall;
        }
        if strike.jump && quirks.jump < 0 {
            self.shift_clock(quirks.jump);
        } else if strike.jump {
            self.lose(rx, quirks.jump.unsigned_abs(), deadline)?;
        }
        if strike.slip {
            self.lose(rx, quirks.slip, deadline)?;
            rx.slipped += quirks.slip;
        }
        if strike.overflow {
            self.lose(rx, quirks.overflow_length, deadline)?;
            rx.overflowed = true;
        }
        if rx.stalled > 0 {
            rx.stalled -= 1;
            // Paced, a stall takes its time; unpaced only the result counts.
            let pause = deadline.saturating_duration_since(Instant::now());
            std::thread::sleep(if real_time { pause } else { pause.min(Duration::from_micros(50)) });
            return Err(Failure::Timeout);
        }
        let tuned = self.tune(rx)?;
        let left = rx.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let count = rx.course.length(&quirks, wanted.min(rx.mtu).min(left));
        self.fill(rx, count, deadline);
        if std::mem::take(&mut rx.overflowed) {
            add(&self.losses.overflows, 1);
            return Err(Failure::Overflow);
        }
        let Some(receiver) = &mut rx.receiver else { return Err(Failure::Timeout) };
        let count = count.min(receiver.ready());
        if count == 0 && wanted > 0 {
            return Err(Failure::Timeout);
        }
        for (antenna, (buffer, tuned)) in buffers.iter_mut().zip(&tuned).enumerate() {
            let peak = receiver.deliver(antenna, tuned.gain, count, rx.format, buffer);
            self.level(rx.channels[antenna], peak);
        }
        let jitter_ns = |off: f64| (off * 1e9 / self.air.rate()).round() as i64;
        let time_ns = rx.course.stamp(&quirks).map(|off| self.time_ns(Some(rx.next - rx.slipped)) + jitter_ns(off));
        rx.next += count as u64;
        rx.course.delivered(count);
        rx.left = rx.left.map(|left| left - count as u64);
        Ok(Read { samples: count, time_ns, end: rx.left == Some(0) })
    }

    /// Tunes the receiver to where its channels stand now.
    fn tune(&self, rx: &mut RxStream) -> Result<[Tuned; CHANNELS], Failure> {
        let mut tuned = [Tuned::default(); CHANNELS];
        for (tuned, &channel) in tuned.iter_mut().zip(&rx.channels) {
            *tuned = self.tuned(channel);
        }
        let Some(receiver) = &mut rx.receiver else { return Err(Failure::Timeout) };
        let settings = lock(&self.settings);
        let result = receiver.tune(&self.air.frequencies(), &tuned, &settings, self.air.rate());
        result.map(|()| tuned).map_err(|_| Failure::NotSupported)
    }

    /// Brings `count` samples through the channel, as far as they come before the deadline.
    fn fill(&self, rx: &mut RxStream, count: usize, deadline: Instant) {
        let Some(receiver) = &mut rx.receiver else { return };
        let grain = self.air.grain();
        while receiver.ready() < count {
            let most = (count - receiver.ready()).max(grain).min(BLOCK);
            let Some(heard) = self.air.take(most, deadline, &mut rx.sent) else { return };
            if heard.lost > 0 {
                // What waits to be read and what is under way in the channel is older than the loss: it goes with it.
                rx.stale = receiver.ready() + rx.echo;
                add(&self.losses.gap_samples, heard.lost);
                rx.next += heard.lost;
                rx.overflowed = true;
            }
            receiver.feed(&rx.sent, heard.samples);
            let gone = receiver.discard(rx.stale) as u64;
            rx.stale -= gone as usize;
            add(&self.losses.gap_samples, gone);
            rx.next += gone;
        }
    }

    /// Loses samples: they pass through the channel and are not delivered.
    fn lose(&self, rx: &mut RxStream, count: u64, deadline: Instant) -> Result<(), Failure> {
        let heard = count.min(PASSED_UNHEARD);
        self.tune(rx)?;
        self.air.skip(count - heard);
        let mut left = heard as usize;
        while left > 0 {
            let n = left.min(BLOCK);
            self.fill(rx, n, deadline.max(Instant::now() + Duration::from_millis(100)));
            let dropped = rx.receiver.as_mut().map_or(0, |r| r.discard(n));
            if dropped == 0 {
                // The transmitter has stopped writing: there is nothing to lose, and time jumps all the same.
                self.air.skip(left as u64);
                break;
            }
            left -= dropped;
        }
        add(&self.losses.gap_samples, count);
        rx.next += count;
        Ok(())
    }
}
