//! The queue between a driver's thread and a block: bounded in samples, however small its packets are.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam::channel::Receiver;

use crate::Error;

/// A driver's thread, the queue at its end, and where its complaint comes out should it give up.
pub(super) type Worker<P> = (Arc<Queue<P>>, Receiver<Error>, JoinHandle<()>);

/// Packets with their lengths in samples.
pub(super) struct Queue<P> {
    state: Mutex<State<P>>,
    changed: Condvar,
    limit: usize,
}

struct State<P> {
    packets: VecDeque<(P, usize)>,
    samples: usize,
    closed: bool,
}

/// Why nothing was taken or put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nothing {
    /// Not within the time that was given.
    Yet,
    /// The other end is gone, and so is all that it had put.
    Ever,
}

impl<P> Queue<P> {
    pub(super) fn new(limit: usize) -> Self {
        Self { state: Mutex::new(State { packets: VecDeque::new(), samples: 0, closed: false }), changed: Condvar::new(), limit }
    }

    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Samples that wait.
    pub(super) fn len(&self) -> usize {
        self.lock().samples
    }

    /// Whether a packet of so many samples would have to wait; an empty queue has room for any.
    pub(super) fn full(&self, samples: usize) -> bool {
        let state = self.lock();
        state.samples > 0 && state.samples + samples > self.limit
    }

    /// Both ends see that the other is gone.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Puts a packet behind the others once there is room for it, or gives it back.
    pub(super) fn put(&self, packet: P, samples: usize, patience: Duration) -> Result<(), (P, Nothing)> {
        let until = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            if state.closed {
                return Err((packet, Nothing::Ever));
            }
            if state.samples == 0 || state.samples + samples <= self.limit {
                state.samples += samples;
                state.packets.push_back((packet, samples));
                self.changed.notify_all();
                return Ok(());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err((packet, Nothing::Yet));
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes the first packet, when there is one or one comes in time. What was put before it was closed can still be taken.
    pub(super) fn take(&self, patience: Duration) -> Result<P, Nothing> {
        let until = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            if let Some((packet, samples)) = state.packets.pop_front() {
                state.samples -= samples;
                self.changed.notify_all();
                return Ok(packet);
            }
            if state.closed {
                return Err(Nothing::Ever);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Nothing::Yet);
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_in_samples_and_empties_after_it_is_closed() {
        let queue = Queue::new(1000);
        for n in 0..10 {
            queue.put(n, 100, Duration::ZERO).unwrap();
        }
        assert!(queue.full(1) && queue.len() == 1000);
        assert_eq!(queue.put(10, 100, Duration::from_millis(1)), Err((10, Nothing::Yet)));
        queue.close();
        assert_eq!((0..10).map(|_| queue.take(Duration::ZERO).unwrap()).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        assert_eq!(queue.take(Duration::ZERO), Err(Nothing::Ever));
        assert_eq!(queue.put(11, 100, Duration::ZERO), Err((11, Nothing::Ever)));
    }

    #[test]
    fn a_packet_larger_than_the_queue_passes_alone() {
        let queue = Queue::new(10);
        assert!(!queue.full(100));
        queue.put('a', 100, Duration::ZERO).unwrap();
        assert!(queue.full(1));
        assert_eq!(queue.take(Duration::ZERO), Ok('a'));
    }
}
