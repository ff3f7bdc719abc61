//! State files, written whole or not at all.

use std::{
    io::Write,
    path::{Component, Path, PathBuf},
};

use crate::{Error, Result};

/// Replaces the file at `path` in one step: after a crash it holds either the old bytes or the new ones.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(|e| Error::io(path, e))?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(|e| Error::io(path, e))?;
    file.persist(path).map_err(|e| Error::io(path, e.error))?;
    Ok(())
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| Error::io(path, e))
}

/// The file that a message names: any path, or, where the block is confined to a directory, a plain name in it.
pub(super) fn path(confined: Option<&Path>, name: &str) -> Result<PathBuf> {
    let Some(directory) = confined else { return Ok(PathBuf::from(name)) };
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) => Ok(directory.join(name)),
        _ => Err(Error::parameter("the file", "a plain name without directories", name)),
    }
}
