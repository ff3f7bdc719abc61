//! The state of a whole run in one file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{Error, Result, files, state};

/// All filters at the same sample.
#[derive(Serialize, Deserialize)]
pub(super) struct Checkpoint {
    /// What was run on what: a run that goes on must be the same one.
    pub(super) run: String,
    pub(super) samples: u64,
    pub(super) states: Vec<Vec<u8>>,
    /// The files that the run writes: going on, it may replace these and no others.
    pub(super) outputs: Vec<String>,
}

const KIND: &str = "track checkpoint";

impl Checkpoint {
    /// What is in the file; none where there is no file, or nothing in it.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        match files::read(path, files::SAVED)? {
            bytes if bytes.is_empty() => Ok(None),
            bytes => state::decode(KIND, &bytes).map(Some).map_err(|e| Error::file(path, "checkpoint", e.to_string())),
        }
    }

    /// Refuses to go on with something else.
    pub(super) fn check(&self, path: &Path, run: &str, filters: usize) -> Result<()> {
        if self.run == run && self.states.len() == filters {
            return Ok(());
        }
        let problem = "belongs to another run: go on with the recordings, filters and parameters that it was started with";
        Err(Error::file(path, "checkpoint", problem))
    }

    /// Whether the run that it belongs to has written this file.
    pub(super) fn owns(&self, path: &Path) -> bool {
        self.outputs.contains(&name(path))
    }
}

/// A file's name, the same from every folder, whether it is there or not.
fn name(path: &Path) -> String {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = std::fs::canonicalize(folder).unwrap_or(folder.into());
    folder.join(path.file_name().unwrap_or_default()).to_string_lossy().into_owned()
}

/// Gathers the filters' states and writes a checkpoint whenever all of them have come by the same sample.
#[derive(Clone)]
pub(super) struct Collector(Arc<Mutex<Inner>>);

struct Inner {
    path: PathBuf,
    run: String,
    filters: usize,
    /// What has come in, by sample.
    waiting: BTreeMap<u64, Partial>,
    files: usize,
    outputs: Vec<PathBuf>,
}

/// A checkpoint that is not complete yet.
struct Partial {
    states: Vec<Option<Vec<u8>>>,
    /// Files of predictions that hold as many samples.
    files: usize,
}

impl Collector {
    pub(super) fn new(path: &Path, run: String, filters: usize, files: usize, outputs: Vec<PathBuf>) -> Self {
        Self(Arc::new(Mutex::new(Inner { path: path.into(), run, filters, waiting: BTreeMap::new(), files, outputs })))
    }

    /// Filter `index` has this state after `samples`.
    pub(super) fn filter(&self, index: usize, samples: u64, state: Vec<u8>) -> Result<()> {
        self.note(samples, |partial| partial.states[index] = Some(state))
    }

    /// A file of predictions is complete up to `samples`.
    pub(super) fn file(&self, samples: u64) -> Result<()> {
        self.note(samples, |partial| partial.files += 1)
    }

    fn note(&self, samples: u64, note: impl FnOnce(&mut Partial)) -> Result<()> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *inner;
        let partial = inner.waiting.entry(samples).or_insert_with(|| Partial { states: vec![None; inner.filters], files: 0 });
        note(partial);
        if partial.files < inner.files || partial.states.iter().any(Option::is_none) {
            return Ok(());
        }
        let states = partial.states.iter_mut().filter_map(Option::take).collect();
        let checkpoint =
            Checkpoint { run: inner.run.clone(), samples, states, outputs: inner.outputs.iter().map(|path| name(path)).collect() };
        files::write(&inner.path, &state::encode(KIND, &checkpoint)?)?;
        inner.waiting.retain(|&at, _| at > samples);
        Ok(())
    }
}
