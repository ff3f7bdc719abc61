//! Files that are whole or not there, and never in place of something else by accident.
//!
//! One way for everything that kaflow writes in one piece: the bytes go to a temporary file beside the place, which then takes the name. What is not a regular
//! file (a pipe, a terminal, `/dev/null`) is written to as it is, and `-` is standard output; symbolic links are followed. A new file has the permissions that the
//! umask leaves, one that is replaced keeps its own.

use std::ffi::OsString;
use std::fs::{File, FileType, OpenOptions, Permissions};
use std::io::{BufWriter, ErrorKind, Write};
#[cfg(any(feature = "cli", test))]
use std::path::Component;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::{Error, Result};

/// The names that stand for standard output. A file behind the last ones belongs to whoever redirected it: it is not replaced either.
const STANDARD: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
/// How the names of temporary files end.
const ENDING: &str = ".partial";
/// A temporary file that is younger may belong to a process that is about to lock it.
const YOUNG: Duration = Duration::from_secs(60);
/// Symbolic links that are followed, one after the other.
const LINKS: usize = 40;

/// A file that appears under its name only when it is complete.
pub(crate) struct Output {
    to: BufWriter<To>,
    path: PathBuf,
}

enum To {
    Beside(NamedTempFile),
    Special(File),
    Standard(std::io::Stdout),
}

impl Write for To {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Beside(file) => file.write(bytes),
            Self::Special(file) => file.write(bytes),
            Self::Standard(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Beside(file) => file.flush(),
            Self::Special(file) => file.flush(),
            Self::Standard(out) => out.flush(),
        }
    }
}

impl Output {
    /// Refuses to replace a file that holds something, unless forced.
    pub(crate) fn create(path: &Path, force: bool) -> Result<Self> {
        let wrap = |e| Error::io(path, e);
        check_free(path, force)?;
        let place = followed(path).map_err(wrap)?;
        let to = if is_standard(path) {
            To::Standard(std::io::stdout())
        } else if special(&place).is_some() {
            To::Special(OpenOptions::new().write(true).open(&place).map_err(wrap)?)
        } else {
            To::Beside(beside(&place).map_err(wrap)?)
        };
        let path = if is_standard(path) { PathBuf::from("standard output") } else { place };
        Ok(Self { to: BufWriter::new(to), path })
    }

    /// Puts the file in its place.
    pub(crate) fn finish(self) -> Result<()> {
        let wrap = |e| Error::io(&self.path, e);
        match self.to.into_inner().map_err(|e| wrap(e.into_error()))? {
            To::Beside(file) => {
                file.as_file().sync_all().map_err(wrap)?;
                file.persist(&self.path).map(drop).map_err(|e| wrap(e.error))
            }
            To::Special(mut file) => file.flush().map_err(wrap),
            To::Standard(mut out) => out.flush().map_err(wrap),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Whether `path` stands for standard output.
pub(crate) fn is_standard(path: &Path) -> bool {
    STANDARD.iter().any(|name| path.as_os_str() == *name)
}

/// Whether `path` stands for standard input.
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(crate) fn is_standard_input(path: &Path) -> bool {
    ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].iter().any(|name| path.as_os_str() == *name)
}

/// Standard output or something else that is written as it comes: no file, so it is neither replaced nor cut.
#[cfg(feature = "cli")]
pub(crate) fn flows(path: &Path) -> bool {
    is_standard(path) || special(path).is_some()
}

/// A file that grows while it is written, empty at first; standard output and special files as they are.
#[cfg(feature = "cli")]
pub(crate) fn stream(path: &Path) -> Result<File> {
    let wrap = |e| Error::io(path, e);
    #[cfg(unix)]
    if is_standard(path) {
        return std::os::fd::AsFd::as_fd(&std::io::stdout()).try_clone_to_owned().map(File::from).map_err(wrap);
    }
    match special(path) {
        Some(_) => OpenOptions::new().write(true).open(path).map_err(wrap),
        None => OpenOptions::new().write(true).create(true).truncate(true).open(path).map_err(wrap),
    }
}

/// What is at `path` when it is neither a regular file nor a folder nor nothing.
fn special(path: &Path) -> Option<FileType> {
    std::fs::metadata(path).ok().map(|found| found.file_type()).filter(|kind| !kind.is_file() && !kind.is_dir())
}

/// Where a chain of symbolic links ends, whether there is something or not.
fn followed(path: &Path) -> std::io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..LINKS {
        match std::fs::read_link(&place) {
            // A link says where it points to from its own folder.
            Ok(target) => place = folder(&place).join(target),
            Err(_) => return Ok(place),
        }
    }
    Err(std::io::Error::new(ErrorKind::InvalidInput, "too many symbolic links"))
}

/// The folder that holds `path`.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// How the temporary files for `path` begin.
fn beginning(path: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".");
    name
}

/// A temporary file in the folder of `path`, locked as long as this process lives, with the permissions that the finished one is to have.
fn beside(path: &Path) -> std::io::Result<NamedTempFile> {
    sweep(path);
    let name = beginning(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&name).suffix(ENDING);
    let old = std::fs::metadata(path).ok().map(|found| found.permissions());
    // A temporary file is private by default; the umask takes from this what it takes from any new file.
    #[cfg(unix)]
    builder.permissions(old.clone().unwrap_or(std::os::unix::fs::PermissionsExt::from_mode(0o666)));
    let file = builder.tempfile_in(folder(path))?;
    // The umask must not narrow what an existing file has. Best effort: the content matters more.
    let _ = old.map(|old: Permissions| file.as_file().set_permissions(old));
    let _ = file.as_file().try_lock();
    Ok(file)
}

/// Removes what killed processes left of earlier tries at `path`: temporary files that nobody holds a lock on.
fn sweep(path: &Path) {
    let name = beginning(path);
    let ours = |entry: &std::fs::DirEntry| {
        let found = entry.file_name();
        found.as_encoded_bytes().starts_with(name.as_encoded_bytes()) && found.as_encoded_bytes().ends_with(ENDING.as_bytes())
    };
    for entry in std::fs::read_dir(folder(path)).into_iter().flatten().flatten().filter(ours) {
        let old = entry.metadata().and_then(|m| m.modified()).is_ok_and(|time| time.elapsed().is_ok_and(|age| age > YOUNG));
        if old && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// An error where `path` holds something and `force` is not given.
pub(crate) fn check_free(path: &Path, force: bool) -> Result<()> {
    match std::fs::metadata(path) {
        _ if is_standard(path) => Ok(()),
        _ if path.as_os_str().as_encoded_bytes().ends_with(b"/") => Err(Error::file(path, "output", "is a folder; name a file")),
        Ok(found) if found.is_dir() => Err(Error::file(path, "output", "is a folder; name a file")),
        Ok(found) if found.is_file() && found.len() > 0 && !force => {
            Err(Error::file(path, "output", "exists already; name another or add --force"))
        }
        _ => Ok(()),
    }
}

/// What a command is going to write, checked before it begins: each output is free, can be written, and is neither an input nor another output, whatever their names.
#[cfg(any(feature = "cli", test))]
pub(crate) fn check_outputs<'a>(inputs: impl IntoIterator<Item = &'a Path>, outputs: &[&Path], force: bool) -> Result<()> {
    check_apart(inputs, outputs)?;
    for &path in outputs {
        check_free(path, force)?;
        let place = followed(path).map_err(|e| Error::io(path, e))?;
        if !is_standard(path) && special(&place).is_none() {
            // The only sure way to find out is to try.
            beside(&place).map_err(|e| Error::io(path, e))?;
        }
    }
    Ok(())
}

/// Refuses an output that is an input or another output, whatever their names.
#[cfg(any(feature = "cli", test))]
pub(crate) fn check_apart<'a>(inputs: impl IntoIterator<Item = &'a Path>, outputs: &[&Path]) -> Result<()> {
    let inputs: Vec<(&Path, Identity)> = inputs.into_iter().filter_map(|path| Some((path, identity(path)?))).collect();
    let mut seen: Vec<(&Path, Identity)> = Vec::new();
    for &path in outputs {
        let Some(this) = identity(path) else { continue };
        let same = |(_, other): &&(&Path, Identity)| *other == this;
        if let Some((input, _)) = inputs.iter().find(same) {
            return Err(Error::file(path, "output", format!("is the input {}; name another", input.display())));
        }
        if let Some((other, _)) = seen.iter().find(same) {
            return Err(Error::file(path, "output", format!("is the output {} too; name another", other.display())));
        }
        seen.push((path, this));
    }
    Ok(())
}

/// Finds out that results can be written to a folder, which need not be there yet, before there are any.
#[cfg(any(feature = "cli", test))]
pub(crate) fn check_folder(path: &Path) -> Result<()> {
    if path.as_os_str() == STANDARD[0] {
        return Err(Error::file(path, "output", "is standard output; name a folder"));
    }
    let there = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    if !there.is_dir() {
        return Err(Error::file(there, "output", "is a file; name a folder"));
    }
    // The only sure way to find out is to try.
    beside(&there.join("kaflow")).map(drop).map_err(|e| Error::io(path, e))
}

/// Makes a folder, and those that it is in.
#[cfg(feature = "cli")]
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|e| Error::io(path, e))
}

/// What makes two names the same regular file: device and number where it exists, else where it is going to be. Of special files there can be many users.
#[cfg(any(feature = "cli", test))]
#[derive(PartialEq)]
enum Identity {
    #[cfg(unix)]
    There(u64, u64),
    Path(PathBuf),
}

#[cfg(any(feature = "cli", test))]
fn identity(path: &Path) -> Option<Identity> {
    if is_standard(path) || special(path).is_some() {
        return None;
    }
    let place = followed(path).ok()?;
    #[cfg(unix)]
    if let Ok(found) = std::fs::metadata(&place) {
        use std::os::unix::fs::MetadataExt;
        return Some(Identity::There(found.dev(), found.ino()));
    }
    // Of a folder that is not there yet, the first that is.
    let (there, found) = place.ancestors().skip(1).find_map(|p| Some((p, std::fs::canonicalize(folder(&p.join("x"))).ok()?)))?;
    let mut named = found;
    for part in place.strip_prefix(there).ok()?.components() {
        match part {
            Component::ParentDir => drop(named.pop()),
            Component::CurDir => {}
            part => named.push(part),
        }
    }
    Some(Identity::Path(named))
}

/// Replaces the file at `path` in one step: after a crash it holds either the old bytes or the new ones.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut output = Output::create(path, true)?;
    output.write_all(bytes).map_err(|e| Error::io(&output.path, e))?;
    output.finish()
}

/// The whole of a file of at most `most` bytes, whatever it claims to be: `/dev/zero` has no end.
#[cfg_attr(not(feature = "blocks"), allow(dead_code))]
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let large = || Error::file(path, "size", format!("has more than {} MB, which is more than it can need", most / 1_000_000));
    if std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > most) {
        return Err(large());
    }
    let read = |bytes: &mut Vec<u8>| {
        if path.as_os_str() == STANDARD[0] {
            std::io::stdin().lock().take(most + 1).read_to_end(bytes)
        } else {
            File::open(path)?.take(most + 1).read_to_end(bytes)
        }
    };
    let name = if path.as_os_str() == STANDARD[0] { Path::new("standard input") } else { path };
    read(&mut bytes).map_err(|e| Error::io(name, e))?;
    if bytes.len() as u64 > most {
        return Err(large());
    }
    Ok(bytes)
}

/// Bytes of a file of parameters or a scenario, at most.
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(crate) const CONFIGURATION: u64 = 64_000_000;
/// Bytes of a table that does not come from a file, and so has to be kept.
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(crate) const TABLE: u64 = 1_000_000_000;
/// Bytes of a saved state, at most.
#[cfg_attr(not(feature = "blocks"), allow(dead_code))]
pub(crate) const SAVED: u64 = 4_000_000_000;

/// As [`read`], text.
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(crate) fn read_text(path: &Path, most: u64) -> Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|e| Error::file(path, format!("byte {}", e.utf8_error().valid_up_to()), "is not UTF-8 text"))
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

#[cfg(all(test, unix))]
#[path = "../tests/unit/files.rs"]
mod tests;
