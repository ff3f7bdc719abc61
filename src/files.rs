//! Files that are whole or not there, and never in place of something else by accident.

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
        Ok(Self { file: BufWriter::new(beside(path).map_err(|e| Error::io(path, e))?), path: path.into() })
    }

    /// Puts the file in its place.
    pub(crate) fn finish(self) -> Result<()> {
        let wrap = |e| Error::io(&self.path, e);
        let file = self.file.into_inner().map_err(|e| wrap(e.into_error()))?;
        file.as_file().sync_all().map_err(wrap)?;
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

/// A temporary file in the folder of `path`, with the permissions of any new file: a temporary file is private by default.
fn beside(path: &Path) -> std::io::Result<NamedTempFile> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// An error where `path` holds something and `force` is not given.
pub(crate) fn check_free(path: &Path, force: bool) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(Error::file(path, "output", "is a folder; name a file")),
        Ok(found) if found.len() > 0 && !force => Err(Error::file(path, "output", "exists already; name another or add --force")),
        _ => Ok(()),
    }
}

/// Replaces the file at `path` in one step: after a crash it holds either the old bytes or the new ones.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut output = Output::create(path, true)?;
    output.write_all(bytes).map_err(|e| Error::io(path, e))?;
    output.finish()
}

#[cfg(feature = "blocks")]
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| Error::io(path, e))
}

/// The file that a message names: any path, or, where the block is confined to a directory, a plain name in it.
#[cfg(feature = "blocks")]
pub(crate) fn within(confined: Option<&Path>, name: &str) -> Result<PathBuf> {
    let Some(directory) = confined else { return Ok(PathBuf::from(name)) };
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(std::path::Component::Normal(name)), None) => Ok(directory.join(name)),
        _ => Err(Error::parameter("the file", "a plain name without directories", name)),
    }
}
