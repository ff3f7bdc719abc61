//! A transmitter stops before anything else does, whatever ends the run.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::{Duration, Instant};

use futuresdr::runtime::Timer;

use super::radio::Shared;

/// How long an end waits for the transmitter to stop: longer than any call of its thread into a driver that returns, on a machine that is loaded.
const PATIENCE: Duration = Duration::from_secs(3);

/// Between two looks at whether it has.
const LOOK: Duration = Duration::from_millis(1);

/// The name of the thread that transmits.
pub(super) const THREAD: &str = "kaflow tx";

/// Radios that have started.
static STARTED: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// From now on a panic anywhere in the process stops this radio's transmitter before the panic goes on its way: it may end the process.
pub(super) fn watch_over(shared: &Arc<Shared>) {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            silence_all();
            usual(panic);
        }));
    });
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    started.retain(|radio| radio.strong_count() > 0);
    started.push(Arc::downgrade(shared));
}

fn silence_all() {
    let radios: Vec<Arc<Shared>> = match STARTED.try_lock() {
        Ok(started) => started.iter().filter_map(Weak::upgrade).collect(),
        Err(_) => return,
    };
    let radios: Vec<_> = radios.into_iter().filter(|radio| radio.transmits.load(Ordering::SeqCst)).collect();
    radios.iter().for_each(|radio| radio.stop.store(true, Ordering::SeqCst));
    // The thread that transmits lets go of its stream when the panic is its own.
    if std::thread::current().name() != Some(THREAD) {
        radios.iter().for_each(|radio| radio.wait_for_silence(|| std::thread::sleep(LOOK)));
    }
    // Nobody else may be left who holds one, and closing a device is no business of a panic.
    std::mem::forget(radios);
}

impl Shared {
    /// Waits until the transmitter has stopped, doing something meanwhile; not for ever, as its driver may not return.
    pub(super) fn wait_for_silence(&self, mut meanwhile: impl FnMut()) {
        let until = Instant::now() + PATIENCE;
        while self.sounds() && Instant::now() < until {
            meanwhile();
        }
    }

    /// The same in a block, whose thread is needed by others.
    pub(super) async fn silence(&self) {
        let until = Instant::now() + PATIENCE;
        while self.sounds() && Instant::now() < until {
            Timer::after(LOOK).await;
        }
    }

    /// Whether the transmitter is on. A stream that nobody has taken has nobody else who stops it.
    fn sounds(&self) -> bool {
        if self.take_tx().is_some() {
            self.silenced();
        }
        self.transmits.load(Ordering::SeqCst)
    }
}
