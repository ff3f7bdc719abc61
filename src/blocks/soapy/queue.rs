//! The queue between a driver's thread and a block: bounded in samples, however small its packets are.
//!
//! The thread waits as threads do; the block waits for a [future](Queue::filled), so that it needs no thread of its own. This is not only thrift: the streams' buffers are guarded by spin locks
//! that are held while the other side is woken, and a thread that is woken in place of the one that holds the lock spins for the rest of its time.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam::channel::Receiver;
use futuresdr::{
    futures::{future::select, task::AtomicWaker},
    runtime::Timer,
};

use crate::Error;

/// After so long without a word from a driver it is time to see whether it is alive.
pub(super) const MOMENT: Duration = Duration::from_millis(50);

/// A driver's thread.
pub(super) struct Worker<P> {
    /// What goes to it, or comes from it.
    pub(super) queue: Arc<Queue<P>>,
    /// Where its complaint comes out should it give up.
    pub(super) failure: Receiver<Error>,
    pub(super) thread: JoinHandle<()>,
}

impl<P> Worker<P> {
    /// Closes the queue and waits for the thread; one that does not end, because the driver does not return, is left alone.
    pub(super) async fn end(self, patience: Duration) {
        self.queue.close();
        let until = Instant::now() + patience;
        while !self.thread.is_finished() && Instant::now() < until {
            Timer::after(Duration::from_millis(1)).await;
        }
        if self.thread.is_finished() {
            let _ = self.thread.join();
        }
    }
}

/// Packets with their lengths in samples.
pub(super) struct Queue<P> {
    state: Mutex<State<P>>,
    /// For the thread.
    changed: Condvar,
    /// For the block.
    waker: AtomicWaker,
    limit: usize,
}

struct State<P> {
    packets: VecDeque<(P, usize)>,
    samples: usize,
    closed: bool,
}

impl<P> State<P> {
    /// Whether so many samples more fit; an empty queue has room for any number.
    fn fits(&self, samples: usize, limit: usize) -> bool {
        self.samples == 0 || self.samples + samples <= limit
    }
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
        let state = Mutex::new(State { packets: VecDeque::new(), samples: 0, closed: false });
        Self { state, changed: Condvar::new(), waker: AtomicWaker::new(), limit }
    }

    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Samples that wait.
    pub(super) fn len(&self) -> usize {
        self.lock().samples
    }

    /// Whether a packet of so many samples would have to wait.
    pub(super) fn full(&self, samples: usize) -> bool {
        !self.lock().fits(samples, self.limit)
    }

    fn notify(&self) {
        self.changed.notify_all();
        self.waker.wake();
    }

    /// For the block: there is something to take, or there never will be, or the time is over.
    pub(super) fn filled(self: &Arc<Self>, patience: Duration) -> impl Future<Output = ()> + use<P> {
        self.clone().until(patience, |state| !state.packets.is_empty())
    }

    /// For the block: there is room for so many samples, or there never will be, or the time is over.
    pub(super) fn emptied(self: &Arc<Self>, samples: usize, patience: Duration) -> impl Future<Output = ()> + use<P> {
        let limit = self.limit;
        self.clone().until(patience, move |state| state.fits(samples, limit))
    }

    async fn until(self: Arc<Self>, patience: Duration, ready: impl Fn(&State<P>) -> bool) {
        let ready = poll_fn(|context| {
            self.waker.register(context.waker());
            let state = self.lock();
            if state.closed || ready(&state) { Poll::Ready(()) } else { Poll::Pending }
        });
        select(ready, std::pin::pin!(Timer::after(patience))).await;
    }

    /// Both ends see that the other is gone.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.notify();
    }

    /// Puts a packet behind the others once there is room for it, or gives it back.
    pub(super) fn put(&self, packet: P, samples: usize, patience: Duration) -> Result<(), (P, Nothing)> {
        let until = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            if state.closed {
                return Err((packet, Nothing::Ever));
            }
            if state.fits(samples, self.limit) {
                state.samples += samples;
                state.packets.push_back((packet, samples));
                drop(state);
                self.notify();
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
                drop(state);
                self.notify();
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
    fn a_block_waits_for_the_other_end_and_not_for_ever() {
        use futuresdr::runtime::Runtime;
        let queue = Arc::new(Queue::new(100));
        let thread = {
            let queue = queue.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(5));
                queue.put('a', 100, Duration::ZERO).unwrap();
                std::thread::sleep(Duration::from_millis(5));
                queue.take(Duration::ZERO).unwrap();
                std::thread::sleep(Duration::from_millis(5));
                queue.close();
            })
        };
        let long = Duration::from_secs(600);
        Runtime::block_on(queue.filled(long));
        assert_eq!(queue.len(), 100);
        Runtime::block_on(queue.emptied(1, long));
        assert_eq!(queue.len(), 0);
        Runtime::block_on(queue.filled(long));
        assert_eq!(queue.take(Duration::ZERO), Err(Nothing::Ever));
        thread.join().unwrap();
        let open = Arc::new(Queue::<char>::new(1));
        Runtime::block_on(open.filled(Duration::from_millis(1)));
        assert_eq!(open.take(Duration::ZERO), Err(Nothing::Yet));
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
