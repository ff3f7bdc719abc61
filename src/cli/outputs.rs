//! What a command reads and what it is going to write, checked before it begins.

use std::path::{Path, PathBuf};

use super::voice;
use crate::iq::sigmf::{self, Meta};
use crate::{Error, Result, files};

/// The files and folders of a command.
#[derive(Default)]
pub(crate) struct Outputs<'a> {
    /// Recordings that are read.
    pub(crate) recordings: Vec<&'a Path>,
    /// Other files that are read.
    pub(crate) inputs: Vec<&'a Path>,
    /// Files to write.
    pub(crate) files: Vec<PathBuf>,
    /// A folder to write to.
    pub(crate) folder: Option<&'a Path>,
    /// Whether files that are there may be replaced.
    pub(crate) force: bool,
}

impl Outputs<'_> {
    /// Refuses outputs that are inputs or each other, that exist already, or that could not be written in the end. Makes nothing yet: what is refused later leaves nothing behind.
    pub(crate) fn check(&self) -> Result<()> {
        let read = self.recordings.iter().chain(&self.inputs);
        if read.filter(|path| files::is_standard_input(path)).count() > 1 {
            return Err(Error::Data("standard input was given twice: it can be read once".into()));
        }
        let written: Vec<&Path> = self.files.iter().map(PathBuf::as_path).collect();
        match written.iter().filter(|path| files::is_standard(path)).count() {
            0 => {}
            1 => voice::give_up_standard_output(),
            _ => return Err(Error::Data("standard output was given twice: name a file for all outputs but one".into())),
        }
        self.folder.map_or(Ok(()), files::check_folder)?;
        let inputs: Vec<PathBuf> =
            self.recordings.iter().flat_map(|path| of_recording(path)).chain(self.inputs.iter().map(|path| path.to_path_buf())).collect();
        // The one folder that is going to be made.
        let made = |folder: &Path| folder.as_os_str().is_empty() || folder.is_dir() || self.folder == Some(folder);
        if let Some(missing) = written.iter().filter_map(|path| path.parent()).find(|folder| !made(folder)) {
            return Err(Error::file(missing, "output", "there is no such folder"));
        }
        files::check_apart(inputs.iter().map(PathBuf::as_path), &written)?;
        // Where the folder is not there yet, nothing in it can be in the way.
        let there = |path: &&Path| path.parent().is_none_or(|folder| self.folder != Some(folder) || folder.exists());
        let written: Vec<&Path> = written.into_iter().filter(there).collect();
        files::check_outputs(inputs.iter().map(PathBuf::as_path), &written, self.force)
    }
}

/// The files that a recording, a collection or a folder of recordings is made of.
pub(super) fn of_recording(path: &Path) -> Vec<PathBuf> {
    let collection = path.extension().is_some_and(|e| e == "sigmf-collection");
    if path.is_dir() || collection {
        let folder = if collection { path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")) } else { path };
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        return entries.filter(|path| path.extension().is_some_and(|e| e.as_encoded_bytes().starts_with(b"sigmf"))).collect();
    }
    let (meta, data) = sigmf::files(path);
    let text = if meta.is_file() { files::read(&meta, sigmf::MAX_META_BYTES).ok() } else { None };
    let named = text.and_then(|text| Meta::parse(&meta, &text).ok()?.global.dataset).map(|name| meta.with_file_name(name));
    [Some(path.to_owned()), Some(meta), Some(data), named].into_iter().flatten().collect()
}

/// All that was to be written was tried: says what could not be, and fails if there was something.
pub(crate) fn all(results: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let mut failures: Vec<Error> = results.into_iter().filter_map(Result::err).collect();
    let last = failures.pop();
    failures.iter().for_each(|error| voice::complain(format_args!("{error}")));
    last.map_or(Ok(()), Err)
}
