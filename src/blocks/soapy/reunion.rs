//! Devices that are lost, and come back.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::health::Health;
use super::radio::Shared;
use crate::{Error, Result};

/// Between two attempts to open a device again.
const PAUSE: Duration = Duration::from_millis(100);

/// Between two looks at whether anybody is still interested.
const POLL: Duration = Duration::from_millis(20);

/// Where the threads of a source and a sink let go of what they hold, so that the devices can be opened again, and take up their new streams.
pub(super) struct Reunion {
    patience: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Threads that run, and of them those that have let go.
    running: usize,
    waiting: usize,
    lost: Option<Loss>,
    /// How often the devices have come back.
    returns: u64,
    failure: Option<String>,
}

struct Loss {
    since: Instant,
    why: String,
    /// Somebody is opening them.
    taken: bool,
}

impl Reunion {
    /// Devices may stay away for so long; 0 does not wait for them.
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether lost devices are waited for.
    pub(super) fn wanted(&self) -> bool {
        !self.patience.is_zero()
    }

    /// Whether they are lost at the moment.
    pub(super) fn lost(&self) -> bool {
        self.wanted() && self.lock().lost.is_some()
    }

    /// While they are lost: by how much longer than they may be.
    pub(super) fn overdue(&self) -> Option<Duration> {
        self.lock().lost.as_ref().map(|loss| loss.since.elapsed().saturating_sub(self.patience))
    }

    /// A device is lost; false where that is final.
    pub(super) fn lose(&self, why: &Error) -> bool {
        let mut state = self.lock();
        if !self.wanted() || state.failure.is_some() {
            return false;
        }
        state.lost.get_or_insert_with(|| Loss { since: Instant::now(), why: why.to_string(), taken: false });
        true
    }

    /// A thread begins to use a stream.
    pub(super) fn join(&self) {
        self.lock().running += 1;
    }

    /// It does not any more.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        state.running = state.running.saturating_sub(1);
        self.changed.notify_all();
    }
}

impl Shared {
    /// Waits until the devices are back, as one of the threads that use them and have let go of their streams; an error when they are not in time, or nobody is interested any more.
    pub(super) fn come_back(&self) -> Result<()> {
        let reunion = &self.reunion;
        let mut state = reunion.lock();
        let before = state.returns;
        state.waiting += 1;
        reunion.changed.notify_all();
        let outcome = loop {
            // Nothing is expected of a device that is away.
            self.note(&self.heard);
            self.note(&self.told);
            if state.returns > before {
                break Ok(());
            }
            if let Some(why) = &state.failure {
                break Err(Error::Device(why.clone()));
            }
            if self.over() {
                break Err(Error::Device("it was not waited for any longer".into()));
            }
            let (waiting, running) = (state.waiting, state.running);
            let Some(loss) = &mut state.lost else { break Ok(()) };
            if loss.since.elapsed() > reunion.patience {
                let why = format!("{}; it has not come back within {} s", loss.why, reunion.patience.as_secs_f64());
                state.failure = Some(why);
                continue;
            }
            if waiting < running && loss.since.elapsed() > self.timeout {
                // The others may be in a call that never returns.
                self.devices.unplug();
            }
            if waiting >= running && !loss.taken {
                loss.taken = true;
                drop(state);
                let opened = self.reopen();
                state = reunion.lock();
                match opened {
                    Ok(()) => {
                        Health::count(&self.health.reconnects, 1);
                        (state.lost, state.returns) = (None, state.returns + 1);
                        continue;
                    }
                    Err(why) => {
                        if let Some(loss) = &mut state.lost {
                            loss.taken = false;
                            // Why it cannot be opened says more than how it was lost.
                            let (first, _) = loss.why.split_once("; now: ").unwrap_or((&loss.why, ""));
                            loss.why = format!("{first}; now: {why}");
                        }
                    }
                }
                state = reunion.changed.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            state = reunion.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
        };
        state.waiting -= 1;
        if let Err(why) = &outcome {
            state.failure.get_or_insert_with(|| why.to_string());
        }
        reunion.changed.notify_all();
        outcome
    }

    /// Opens the devices and starts their streams.
    fn reopen(&self) -> Result<()> {
        self.devices.release();
        let (streams, _) = self.devices.open()?;
        self.replace(streams);
        self.relapse.forget();
        let started = self.activate();
        if started.is_err() {
            // Everything is let go of for the next attempt.
            self.replace(Default::default());
            self.silenced();
            self.devices.release();
        }
        started.map(drop)
    }
}
