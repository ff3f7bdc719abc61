//! What the exit code says.

use std::io::ErrorKind;

use super::interrupt;
use crate::{Error, Result};

/// What `--help` says of it.
pub(super) const HELP: &str = "Exit codes: 0 it worked; 1 it failed while running (disk, device); 2 wrong input or usage; 130 Ctrl-C, 143 TERM, 129 the terminal was closed: what was done until then is left.";

/// The exit code of what a command came to. That somebody ended it goes before what became of the rest.
pub(super) fn code(result: &Result<()>) -> u8 {
    match (interrupt::code(), result) {
        (Some(code), _) => code,
        (None, Ok(())) => 0,
        (None, Err(error)) => of(error),
    }
}

fn of(error: &Error) -> u8 {
    match error {
        // Nobody reads on: what was asked for is done.
        Error::Io { source, .. } if source.kind() == ErrorKind::BrokenPipe => 0,
        Error::Io { source, .. } => match source.kind() {
            // Another name would help.
            ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::AlreadyExists
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory
            | ErrorKind::InvalidFilename
            | ErrorKind::InvalidInput => 2,
            _ => 1,
        },
        Error::Device(_) => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_input_and_failures_are_told_apart() {
        let io = |kind: ErrorKind| Error::io("file", kind.into());
        assert_eq!([io(ErrorKind::NotFound), Error::Data("x".into()), Error::parameter("a", "b", "c")].each_ref().map(of), [2; 3]);
        assert_eq!([io(ErrorKind::StorageFull), io(ErrorKind::UnexpectedEof), Error::Device("gone".into())].each_ref().map(of), [1; 3]);
        assert_eq!(of(&io(ErrorKind::BrokenPipe)), 0);
    }
}
