//! Why a flowgraph failed.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Error, Result};

/// Carries a block's error out of a flowgraph: the runtime itself only says that *a* block raised one.
#[derive(Clone, Debug, Default)]
pub struct Fault(Arc<Mutex<Option<Error>>>);

impl Fault {
    /// Notes `error`, unless one was noted before, and gives back its text for the runtime.
    pub(crate) fn raise(&self, error: Error) -> futuresdr::runtime::Error {
        let text = error.to_string();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        futuresdr::runtime::Error::RuntimeError(text)
    }

    /// What was noted, once.
    pub fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What was noted, or else the runtime's own words.
    pub fn explain(&self, otherwise: impl ToString) -> Error {
        self.take().unwrap_or_else(|| Error::Device(otherwise.to_string()))
    }
}

/// Runs code that may not be ours (a user's tracker): a panic there becomes an error, since a panic in a block would take the process down.
pub(super) fn guarded<R>(what: &str, f: impl FnOnce() -> R) -> Result<R> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Error::Device(format!("{what} panicked: {}", text.unwrap_or("no message")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_explains() {
        let (fault, inside) = {
            let f = Fault::default();
            (f.clone(), f)
        };
        let _ = inside.raise(Error::Data("the disk is full".into()));
        assert_eq!(fault.explain("a block failed").to_string(), "the disk is full");
    }
}
