//! Studies as a user runs them: here, in shards, on a cluster, and put together again.
#![cfg(feature = "cli")]

mod cluster;
mod merge;
mod plan;
mod provenance;
mod refusals;

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::{Command, assert::Assert};

/// Two scenarios, three seeds, a filter as it is and one with a grid: 2 x 3 x (1 + 2) tasks.
pub const SMALL: &str = r#"
skip = 200
filters = ["nlms"]
[[input]]
preset = "d"
seeds = 3
set.samples = 1200
grid.snr_db = [10, 20]
[[filter]]
name = "fklms"
set.budget = 50
grid.lambda = [0.99, 0.999]
"#;

pub(crate) struct Study {
    folder: tempfile::TempDir,
}

impl Study {
    pub(crate) fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("s.toml"), text).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// `kaflow` in the folder, whatever scheduler these tests themselves run under.
    pub(crate) fn kaflow(&self, words: &[&str]) -> Command {
        let mut command = Command::cargo_bin("kaflow").unwrap();
        command.current_dir(self.folder.path()).args(words);
        ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"].iter().for_each(|name| {
            command.env_remove(name);
        });
        command
    }

    /// `kaflow study WHAT s.toml ...`.
    pub(crate) fn study(&self, what: &str, words: &[&str]) -> Assert {
        self.kaflow(&[&["study", what, "s.toml"], words].concat()).assert()
    }

    /// All results of a folder, by task; the order of the lines is that of the machine.
    pub(crate) fn results(&self, folder: &str) -> Vec<serde_json::Value> {
        let mut lines: Vec<serde_json::Value> = files(&self.path(folder).join("tasks"))
            .iter()
            .flat_map(|path| fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>())
            .collect();
        lines.sort_by_key(|line: &serde_json::Value| line["task"].as_u64());
        lines
    }
}

/// The files in a folder, by name.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

pub(crate) fn stdout(run: &Assert) -> String {
    String::from_utf8_lossy(&run.get_output().stdout).into_owned()
}

pub(crate) fn stderr(run: &Assert) -> String {
    String::from_utf8_lossy(&run.get_output().stderr).into_owned()
}

/// What a merge writes that does not say when and where.
pub const MERGED: [&str; 5] = ["table.csv", "table.ndjson", "report.html", "filters.svg", "curves.svg"];

/// Both folders were merged to the same bytes.
pub(crate) fn assert_merged_alike(study: &Study, a: &str, b: &str) {
    for name in MERGED {
        assert_eq!(study.read(&format!("{a}/{name}")), study.read(&format!("{b}/{name}")), "{name}");
    }
}
