//! Ctrl-C, TERM and a closed terminal end long work cleanly: what has been done is kept, and the exit code says which of them it was.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::{consts, flag};

/// What signals change.
struct State {
    /// Ends the work.
    stop: Arc<AtomicBool>,
    /// The next signal ends the process: nobody watches, or the second one has come.
    kill: Arc<AtomicBool>,
    /// The signal that came, 0 for none.
    signal: Arc<AtomicUsize>,
}

static STATE: LazyLock<State> = LazyLock::new(|| {
    let state = State { stop: Arc::default(), kill: Arc::new(AtomicBool::new(true)), signal: Arc::default() };
    let mut signals = vec![consts::SIGINT, consts::SIGTERM];
    #[cfg(unix)]
    if !started_to_survive() {
        signals.push(consts::SIGHUP);
    }
    // A file that may not grow any more is a failed write, as a full disk is, and no reason to be killed.
    #[cfg(unix)]
    let _ = flag::register(TOO_LARGE, Arc::default());
    for signal in signals {
        // In this order: the first one that is watched only stops, the next one kills. Where no handler can be set, a signal keeps its usual meaning.
        let _ = flag::register_conditional_shutdown(signal, 128 + signal, state.kill.clone());
        let _ = flag::register(signal, state.kill.clone());
        let _ = flag::register(signal, state.stop.clone());
        let _ = flag::register_usize(signal, state.signal.clone(), signal as usize);
    }
    state
});

/// SIGXFSZ, the same number on all systems.
#[cfg(unix)]
const TOO_LARGE: i32 = 25;

/// Whether whoever started this process wants it to outlive the terminal, as `nohup` does. Where that cannot be known the signal is left as it is.
#[cfg(unix)]
fn started_to_survive() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_none_or(|mask| mask & 1 << (consts::SIGHUP - 1) != 0)
}

/// From now on a signal ends the process with a code of its own, until somebody watches.
pub(crate) fn install() {
    LazyLock::force(&STATE);
}

/// From now on the first signal asks for an end instead of killing; a second one kills.
pub(crate) fn watch() -> &'static AtomicBool {
    if !requested() {
        STATE.kill.store(false, Ordering::SeqCst);
    }
    &STATE.stop
}

/// Whether an end was asked for.
pub(crate) fn requested() -> bool {
    STATE.stop.load(Ordering::Relaxed)
}

/// The exit code of a process that a signal has ended, if one has.
pub(crate) fn code() -> Option<u8> {
    Some(STATE.signal.load(Ordering::Relaxed)).filter(|&signal| signal > 0).map(|signal| 128 + signal as u8)
}
