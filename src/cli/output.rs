//! Files that are whole or not there, and never in place of something else by accident.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{Error, Result};

/// A file that appears under its name only when it is complete.
pub(crate) struct Output {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl Output {
    /// Refuses to replace a file that holds something, unless forced.
    pub(crate) fn create(path: &Path, force: bool) -> Result<Self> {
        check_free(path, force)?;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = NamedTempFile::new_in(folder).map_err(|e| Error::io(path, e))?;
        Ok(Self { file: BufWriter::new(file), path: path.into() })
    }

    /// Puts the file in its place.
    pub(crate) fn finish(self) -> Result<()> {
        let wrap = |e| Error::io(&self.path, e);
        let file = self.file.into_inner().map_err(|e| wrap(e.into_error()))?;
        file.as_file().sync_all().map_err(wrap)?;
        // A temporary file is private; a result has the permissions of any new file.
        readable(file.as_file());
        file.persist(&self.path).map_err(|e| wrap(e.error))?;
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// An error where `path` holds something and `force` is not given.
pub(crate) fn check_free(path: &Path, force: bool) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(Error::file(path, "output", "is a folder; name a file")),
        Ok(found) if found.len() > 0 && !force => Err(Error::file(path, "output", "exists already; name another or add --force")),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn readable(file: &File) {
    use std::os::unix::fs::PermissionsExt;
    // Best effort: the file is complete either way.
    let _ = file.set_permissions(std::fs::Permissions::from_mode(0o644));
}

#[cfg(not(unix))]
fn readable(_: &File) {}
