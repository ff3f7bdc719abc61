//! The older lags of a stream on a thread of their own.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use num_complex::Complex;
use num_traits::Zero;

use super::lags::{Lags, Triangle};
use crate::Real;
use crate::simd::BLOCK;

/// Samples in one job.
pub(super) const JOB: usize = 2 * BLOCK;

/// Jobs under way at a time. The other thread may be so many jobs ahead: rows do not depend on coefficients that are younger than its lags.
pub(super) const DEPTH: usize = 4;

/// The least first lag: coefficients must have arrived before their sample gets there.
pub(super) const LEAST: usize = 2 * JOB * (DEPTH + 1);

/// How often to look for a job before going to sleep: some hundred microseconds, about as long as one burst of samples is apart from the next.
const LOOKS: usize = 10_000;

/// Pauses between two looks of one who waits for a job.
const PAUSES: usize = 20;

/// Some consecutive samples, and what the older windows contribute to their predictions.
pub(super) struct Job<T> {
    pub(super) inputs: Vec<Complex<T>>,
    /// The place of the first one in its block.
    pub(super) place: usize,
    /// Windows that exist before the first one.
    pub(super) windows: usize,
    /// Coefficients that have become known, the oldest first, and how far back the first one lies.
    pub(super) coefficients: Vec<Complex<T>>,
    pub(super) age: usize,
    /// The answer.
    pub(super) sums: Vec<Complex<T>>,
}

impl<T: Real> Job<T> {
    fn new() -> Self {
        let room = || Vec::with_capacity(JOB);
        // Coefficients come late by as much as there are jobs under way.
        let coefficients = Vec::with_capacity(JOB * (DEPTH + 2));
        Self { inputs: room(), place: 0, windows: 0, coefficients, age: 0, sums: room() }
    }

    fn run<L: Lags<T>>(&mut self, lags: &mut L) {
        for (i, &a) in self.coefficients.iter().enumerate() {
            lags.planes_mut().learn(self.age - i, a);
        }
        self.sums.clear();
        self.sums.resize(self.inputs.len(), Complex::zero());
        let mut triangle: Triangle<L::Row> = [L::Row::default(); BLOCK];
        let (mut place, mut done) = (self.place, 0);
        while done < self.inputs.len() {
            if place == 0 {
                lags.begin_block(self.windows + done);
            }
            let n = (BLOCK - place).min(self.inputs.len() - done);
            lags.rows(&self.inputs[done..done + n], &mut self.sums[done..done + n], &mut triangle);
            (place, done) = ((place + n) % BLOCK, done + n);
        }
    }
}

/// What both threads see.
struct Shared<T, L> {
    /// Held while a job is worked on, so that jobs are done one after the other, by whoever has time.
    lags: Mutex<L>,
    /// Jobs to do, the oldest first.
    queue: Mutex<VecDeque<Box<Job<T>>>>,
    /// Jobs done, the oldest first.
    done: Mutex<VecDeque<Box<Job<T>>>>,
    ended: AtomicBool,
}

impl<T: Real, L: Lags<T>> Shared<T, L> {
    /// Does the next job, where there is one, nobody else is at work and, for one who waits for a job, none has just been done.
    fn work(&self, waits: bool) -> bool {
        let Ok(mut lags) = self.lags.try_lock() else { return false };
        if waits && !lock(&self.done).is_empty() {
            return true;
        }
        let Some(mut job) = lock(&self.queue).pop_front() else { return false };
        job.run(&mut *lags);
        lock(&self.done).push_back(job);
        true
    }
}

/// The lags themselves, and the thread that works on them while there are samples enough.
pub(super) struct Far<T: Real, L> {
    shared: Arc<Shared<T, L>>,
    worker: Thread,
    // Boxed, as they travel: moving a job between threads moves a pointer.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Job<T>>>,
}

impl<T: Real, L: Lags<T>> Far<T, L> {
    /// Starts a thread for these lags.
    pub(super) fn new(lags: L) -> std::io::Result<Self> {
        let room = || Mutex::new(VecDeque::with_capacity(DEPTH));
        let shared = Arc::new(Shared { lags: Mutex::new(lags), queue: room(), done: room(), ended: AtomicBool::new(false) });
        let theirs = Arc::clone(&shared);
        let handle = std::thread::Builder::new().name("kaflow lags".into()).spawn(move || {
            let mut looks = 0;
            while !theirs.ended.load(Ordering::Acquire) {
                if theirs.work(false) {
                    looks = 0;
                } else if looks < LOOKS {
                    looks += 1;
                    std::hint::spin_loop();
                } else {
                    // Until the next job; one that was given just now has left a token, and this returns at once.
                    std::thread::park();
                    looks = 0;
                }
            }
        })?;
        let spare = (0..DEPTH).map(|_| Box::new(Job::new())).collect();
        Ok(Self { shared, worker: handle.thread().clone(), spare })
    }

    /// The lags, for all that is not a job. No job may be under way.
    pub(super) fn lags(&self) -> MutexGuard<'_, L> {
        lock(&self.shared.lags)
    }

    /// Gives out a job as `fill` describes it; the other thread is woken for it only where it pays.
    pub(super) fn give(&mut self, wake: bool, fill: impl FnOnce(&mut Job<T>)) {
        let mut job = self.spare.pop().unwrap_or_else(|| Box::new(Job::new()));
        job.inputs.clear();
        job.coefficients.clear();
        fill(&mut job);
        lock(&self.shared.queue).push_back(job);
        if wake {
            self.worker.unpark();
        }
    }

    /// The oldest job under way, done; by this thread, where the other one has not begun.
    pub(super) fn fetch(&mut self) -> Box<Job<T>> {
        loop {
            if let Some(job) = lock(&self.shared.done).pop_front() {
                return job;
            }
            if !self.shared.work(true) {
                // Not so often that looking disturbs the one who works.
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
            }
        }
    }

    /// Takes a job back for another time.
    pub(super) fn recycle(&mut self, job: Box<Job<T>>) {
        self.spare.push(job);
    }
}

impl<T: Real, L> Drop for Far<T, L> {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        self.worker.unpark();
    }
}

/// A thread that panicked while it held a lock has left numbers behind, not broken promises.
fn lock<S>(mutex: &Mutex<S>) -> MutexGuard<'_, S> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
