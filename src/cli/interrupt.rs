//! Ctrl-C ends long work cleanly: what has been done is kept.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);
static INSTALLED: OnceLock<()> = OnceLock::new();

/// From now on Ctrl-C asks for an end instead of killing; a second one kills.
pub(crate) fn watch() -> &'static AtomicBool {
    INSTALLED.get_or_init(|| {
        // Where no handler can be set, Ctrl-C keeps its usual meaning.
        let _ = ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        });
    });
    &STOP
}

/// Whether an end was asked for.
pub(crate) fn requested() -> bool {
    STOP.load(Ordering::Relaxed)
}
