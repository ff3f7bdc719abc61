//! The folder of a study: results as lines of JSON, a file for each shard.

use std::borrow::Cow;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::plan::Plan;
use crate::cli::provenance;
use crate::{Error, Result};

pub(super) const SCHEMA: &str = "kaflow/study-task";
pub(super) const SCHEMA_VERSION: u64 = 1;

/// Bytes of a line are fewer.
const LONGEST: u64 = 1 << 20;

/// A line: what a task has found, and where that comes from. Read back, only what a merge looks at is kept.
#[derive(Serialize, Deserialize)]
pub(super) struct Record<'a> {
    #[serde(borrow)]
    pub(super) schema: Cow<'a, str>,
    pub(super) schema_version: u64,
    pub(super) task: u64,
    /// The identity of the plan.
    #[serde(borrow)]
    pub(super) study: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) version: Cow<'a, str>,
    #[serde(skip_deserializing)]
    pub(super) input: Cow<'a, str>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) recording: Option<String>,
    #[serde(skip_deserializing)]
    pub(super) seed: Option<u64>,
    #[serde(skip_deserializing)]
    pub(super) scenario: serde_json::Value,
    #[serde(skip_deserializing)]
    pub(super) filter: Cow<'a, str>,
    /// After defaults, which depend on the input.
    #[serde(skip_deserializing)]
    pub(super) parameters: serde_json::Value,
    #[serde(borrow)]
    pub(super) input_sha256: Cow<'a, str>,
    pub(super) samples: u64,
    /// None where the filter diverged or failed.
    pub(super) nmse_db: Option<f64>,
    pub(super) centres: u64,
    pub(super) gap_samples: u64,
    /// Why there is no result.
    #[serde(borrow)]
    pub(super) error: Option<Cow<'a, str>>,
    pub(super) seconds: f64,
    #[serde(borrow)]
    pub(super) time: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) host: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) cpu: Cow<'a, str>,
    #[serde(skip_deserializing)]
    pub(super) command: Cow<'a, str>,
}

/// Where the results of a plan are.
pub(super) struct Folder {
    pub(super) path: PathBuf,
}

impl Folder {
    /// The one that is asked for, or one beside the study's file that is called after it.
    pub(super) fn new(out: Option<&Path>, study: &Path) -> Self {
        Self { path: out.map_or_else(|| study.with_extension("results"), Path::to_owned) }
    }

    /// The folder of the results.
    pub(super) fn tasks(&self) -> PathBuf {
        self.path.join("tasks")
    }

    /// The file of the results of these tasks.
    pub(super) fn shard(&self, tasks: &Range<u64>) -> PathBuf {
        self.tasks().join(format!("{:07}-{:07}.ndjson", tasks.start, tasks.end.saturating_sub(1)))
    }

    pub(super) fn create(&self) -> Result<()> {
        crate::files::make_folder(&self.tasks())
    }

    /// The files of results by the tasks that they are for; their names say it, so that nobody has to open the others.
    fn files(&self) -> Result<Vec<(Range<u64>, PathBuf)>> {
        let folder = self.tasks();
        let entries = match std::fs::read_dir(&folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|e| Error::io(&folder, e))?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(|e| Error::io(&folder, e))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(".ndjson")) else { continue };
            let ends = name
                .trim_end_matches(".ndjson")
                .split_once('-')
                .and_then(|(a, b)| Some(a.parse().ok()?..b.parse::<u64>().ok()?.checked_add(1)?));
            let range = ends.ok_or_else(|| Error::file(&path, "name", "is not one of this study: results are called FIRST-LAST.ndjson"))?;
            files.push((range, path));
        }
        files.sort_by_key(|(range, _)| (range.start, range.end));
        Ok(files)
    }

    /// Hands all results of tasks in `range` to `each`, with where they are; refuses those that do not belong to the plan.
    pub(super) fn read(&self, plan: &Plan, range: &Range<u64>, mut each: impl FnMut(Record<'_>, &Path, u64) -> Result<()>) -> Result<()> {
        for (_, path) in self.files()?.iter().filter(|(own, _)| own.start < range.end && range.start < own.end) {
            let io = |e| Error::io(path, e);
            // Others than files may have no end, or never begin.
            if !std::fs::metadata(path).map_err(io)?.is_file() {
                return Err(Error::file(path, "results", "is no regular file"));
            }
            let mut reader = BufReader::with_capacity(1 << 18, File::open(path).map_err(io)?);
            let (mut line, mut number) = (Vec::new(), 0);
            loop {
                line.clear();
                (&mut reader).take(LONGEST).read_until(b'\n', &mut line).map_err(io)?;
                if line.len() as u64 == LONGEST {
                    return Err(Error::file(path, format!("line {}", number + 1), "is no result: it is too long"));
                }
                // A last line without an end is being written, or was when its process was killed.
                if line.last() != Some(&b'\n') {
                    break;
                }
                number += 1;
                let bad = |problem: String| Error::file(path, format!("line {number}"), problem);
                let record: Record<'_> = serde_json::from_slice(&line).map_err(|e| bad(format!("is no result: {e}")))?;
                if record.version != provenance::VERSION {
                    let version = provenance::VERSION;
                    return Err(bad(format!(
                        "is from kaflow {}, this is {version}: take the same, or another folder (--out)",
                        record.version
                    )));
                }
                if record.study != plan.id || record.task >= plan.tasks() || record.schema != SCHEMA {
                    return Err(bad(
                        "belongs to another plan: the study or its recordings were changed; take another folder (--out)".into()
                    ));
                }
                if range.contains(&record.task) {
                    each(record, path, number)?;
                }
            }
        }
        Ok(())
    }
}

/// The file that a shard writes its results to, a line at a time.
pub(super) struct Shard {
    file: Mutex<File>,
    path: PathBuf,
}

impl Shard {
    /// Opens the file of these tasks, alone: whoever else runs them is waited for. What a process that was killed left of its last line is
    /// cut off.
    pub(super) fn open(folder: &Folder, tasks: &Range<u64>) -> Result<Self> {
        let path = folder.shard(tasks);
        let io = |e| Error::io(&path, e);
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                note!("{}: another process runs these tasks; waiting for it", path.display());
                file.lock().map_err(io)?;
            }
            // A file system without locks: a merge finds out whether two have run the same tasks.
            Err(TryLockError::Error(_)) => {}
        }
        let length = file.metadata().map_err(io)?.len();
        let whole = whole_lines(&mut file, length).map_err(io)?;
        if whole < length {
            file.set_len(whole).map_err(io)?;
        }
        Ok(Self { file: Mutex::new(file), path })
    }

    /// Adds a line in one call, so that it is there as a whole or not at all.
    pub(super) fn append(&self, record: &Record<'_>) -> Result<()> {
        let mut line = serde_json::to_vec(record).map_err(|e| Error::io(&self.path, e.into()))?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line).map_err(|e| Error::io(&self.path, e))
    }

    /// Everything is on the disk.
    pub(super) fn finish(self) -> Result<()> {
        let file = self.file.into_inner().unwrap_or_else(PoisonError::into_inner);
        file.sync_all().map_err(|e| Error::io(&self.path, e))
    }
}

/// Bytes up to the end of the last whole line.
fn whole_lines(file: &mut File, length: u64) -> std::io::Result<u64> {
    let (mut end, mut block) = (length, vec![0; 1 << 12]);
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let block = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(block)?;
        if let Some(at) = block.iter().rposition(|&b| b == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Numbers in a few words: `3, 7-12`, the first of many.
pub(super) fn ranges(numbers: impl IntoIterator<Item = u64>, most: usize) -> String {
    let mut found: Vec<Range<u64>> = Vec::new();
    let mut more = 0u64;
    for number in numbers {
        if let Some(last) = found.last_mut().filter(|last| more == 0 && last.end == number) {
            last.end += 1;
        } else if found.len() < most {
            found.push(number..number + 1);
        } else {
            more += 1;
        }
    }
    let words = found.iter().map(|r| if r.end - r.start == 1 { r.start.to_string() } else { format!("{}-{}", r.start, r.end - 1) });
    let text = words.collect::<Vec<_>>().join(",");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_a_range() {
        assert_eq!(ranges([1, 2, 3, 7, 9, 10], 9), "1-3,7,9-10");
        assert_eq!(ranges([0, 2, 4, 6, 7], 2), "0,2 and 3 more");
        assert_eq!(ranges([], 2), "");
    }

    #[test]
    fn what_is_left_of_a_torn_line_is_cut_off() {
        let folder = Folder { path: tempfile::tempdir().unwrap().keep() };
        folder.create().unwrap();
        let path = folder.path.join("tasks/0000000-0000009.ndjson");
        let long = "x".repeat(10_000);
        for (before, after) in [("{}\n{}\n{\"ta", "{}\n{}\n"), ("{}\n", "{}\n"), ("{\"task\"", ""), ("", ""), (long.as_str(), "")] {
            std::fs::write(&path, before).unwrap();
            Shard::open(&folder, &(0..10)).unwrap().finish().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
        }
        std::fs::remove_dir_all(&folder.path).unwrap();
    }
}
