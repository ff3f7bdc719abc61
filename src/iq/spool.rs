//! What is read twice or out of order must be a file: what flows is kept in one.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Bytes that are kept of what flows.
const MOST: u64 = 4_000_000_000;

/// Opens a file, and keeps what comes out of a pipe, or of standard input (`-`), in a temporary one. The name is for errors and reports.
pub(crate) fn open(path: &Path) -> Result<(File, PathBuf)> {
    let name = if path.as_os_str() == "-" { PathBuf::from("standard input") } else { path.to_owned() };
    let wrap = |e| Error::io(&name, e);
    let file = match path.as_os_str() == "-" {
        true => standard_input().map_err(wrap)?,
        false => File::open(path).map_err(wrap)?,
    };
    let kind = file.metadata().map_err(wrap)?.file_type();
    if kind.is_file() {
        return Ok((file, name));
    }
    if kind.is_dir() {
        return Err(wrap(io::ErrorKind::IsADirectory.into()));
    }
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_char_device(&kind) || std::os::unix::fs::FileTypeExt::is_block_device(&kind) {
        return Err(Error::file(name, "file", "is a device, not a recording: name a file or a pipe"));
    }
    let mut kept = tempfile::tempfile().map_err(|e| Error::io(std::env::temp_dir(), e))?;
    let copied = io::copy(&mut file.take(MOST + 1), &mut kept).map_err(wrap)?;
    if copied > MOST {
        return Err(Error::file(
            name,
            "size",
            format!("more than {} GB come out of this pipe: write them to a file first", MOST / 1_000_000_000),
        ));
    }
    kept.rewind().map_err(wrap)?;
    Ok((kept, name))
}

#[cfg(unix)]
fn standard_input() -> io::Result<File> {
    std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned().map(File::from)
}

#[cfg(not(unix))]
fn standard_input() -> io::Result<File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "recordings are not read from standard input on this system"))
}
