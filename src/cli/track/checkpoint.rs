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
}

const KIND: &str = "track checkpoint";

impl Checkpoint {
    pub(super) fn read(path: &Path, run: &str, filters: usize) -> Result<Self> {
        let found: Self =
            state::decode(KIND, &files::read(path, files::SAVED)?).map_err(|e| Error::file(path, "checkpoint", e.to_string()))?;
        if found.run != run || found.states.len() != filters {
            let problem = "belongs to another run: go on with the recordings, filters and parameters that it was started with";
            return Err(Error::file(path, "checkpoint", problem));
        }
        Ok(found)
    }
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
}

/// A checkpoint that is not complete yet.
struct Partial {
    states: Vec<Option<Vec<u8>>>,
    /// Files of predictions that hold as many samples.
    files: usize,
}

impl Collector {
    pub(super) fn new(path: &Path, run: String, filters: usize, files: usize) -> Self {
        Self(Arc::new(Mutex::new(Inner { path: path.into(), run, filters, waiting: BTreeMap::new(), files })))
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
        let checkpoint = Checkpoint { run: inner.run.clone(), samples, states };
        files::write(&inner.path, &state::encode(KIND, &checkpoint)?)?;
        inner.waiting.retain(|&at, _| at > samples);
        Ok(())
    }
}
