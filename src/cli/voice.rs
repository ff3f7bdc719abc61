//! What a command says: results on standard output, everything else on standard error, as much as was asked for.

use std::fmt::Arguments;
use std::io::Write as _;
use std::io::{Error, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicI8, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::plain;

static LEVEL: AtomicI8 = AtomicI8::new(0);
static TAKEN: AtomicBool = AtomicBool::new(false);
static FAILURE: Mutex<Option<Error>> = Mutex::new(None);

/// How much is said.
#[derive(clap::Args)]
pub(crate) struct Voice {
    /// Say nothing but results and errors
    #[arg(long, short, global = true, conflicts_with = "verbose", help_heading = "Output")]
    quiet: bool,
    /// Say what is read, with which parameters, and what is written
    #[arg(long, short, global = true, help_heading = "Output")]
    verbose: bool,
}

impl Voice {
    pub(crate) fn set(&self) {
        LEVEL.store(i8::from(self.verbose) - i8::from(self.quiet), Ordering::Relaxed);
    }
}

/// Whether nothing but results and errors are wanted.
pub(crate) fn quiet() -> bool {
    LEVEL.load(Ordering::Relaxed) < 0
}

/// Whether everything is wanted.
pub(crate) fn verbose() -> bool {
    LEVEL.load(Ordering::Relaxed) > 0
}

/// Standard output belongs to a file that was asked for: results go to standard error.
pub(crate) fn give_up_standard_output() {
    TAKEN.store(true, Ordering::Relaxed);
}

/// Prints a result, without what a terminal would obey. A reader who has gone away, as in `kaflow inspect FILE | head`, is no reason to stop before the files are written.
pub(crate) fn say(text: Arguments<'_>) {
    let text = clean(&text.to_string());
    let written = if TAKEN.load(Ordering::Relaxed) {
        std::io::stderr().lock().write_all(text.as_bytes())
    } else {
        std::io::stdout().lock().write_all(text.as_bytes())
    };
    if let Some(error) = written.err().filter(|error| error.kind() != ErrorKind::BrokenPipe) {
        FAILURE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Why a result could not be printed, if so.
pub(crate) fn failure() -> Option<Error> {
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Says something on the way, unless that is unwanted.
pub(crate) fn note(text: Arguments<'_>) {
    if !quiet() {
        complain(text);
    }
}

/// Shows how it goes, unless that is unwanted.
pub(crate) fn tell(text: Arguments<'_>) {
    if !quiet() {
        let _ = writeln!(std::io::stderr().lock(), "{}", clean(&text.to_string()));
    }
}

/// Says something that few want to know.
pub(crate) fn detail(text: Arguments<'_>) {
    if verbose() {
        complain(text);
    }
}

/// Says what went wrong.
pub(crate) fn complain(text: Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "kaflow: {}", clean(&text.to_string()));
}

fn clean(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}
