//! A study as a user writes it down: TOML, every key checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cli::json::number;
use crate::{Error, Result};

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Above the report; the file's name where missing.
    pub(super) name: Option<String>,
    /// Samples that the filters look at; what `track` would take where missing.
    pub(super) taps: Option<usize>,
    /// How many of them reach past the predicted one.
    pub(super) advance: Option<usize>,
    /// Predict what was sent from what was received.
    #[serde(default)]
    pub(super) equalize: bool,
    /// Samples at the start that are left out of the average.
    #[serde(default)]
    pub(super) skip: u64,
    /// Filters as they are.
    #[serde(default)]
    pub(super) filters: Vec<String>,
    /// Filters with parameters.
    #[serde(default)]
    pub(super) filter: Vec<Family>,
    #[serde(default)]
    pub(super) input: Vec<Input>,
}

/// A simulated scenario in all its variants, or recordings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    pub(super) name: Option<String>,
    /// The scenario to start from, by name or from a file.
    pub(super) preset: Option<String>,
    pub(super) scenario: Option<PathBuf>,
    /// So many seeds, from 1 on, or these.
    pub(super) seeds: Option<Seeds>,
    /// Values of the scenario by their names in its file, tables with a dot: `amplifier.ibo_db`.
    #[serde(default)]
    pub(super) set: Map<String, Value>,
    /// The same with several values each.
    #[serde(default)]
    pub(super) grid: BTreeMap<String, Several>,
    /// Folders and collections that hold pairs; `*` and `?` stand for any letters and any one.
    pub(super) recordings: Option<String>,
    /// What was sent and what was received, in the same order.
    pub(super) tx: Option<String>,
    pub(super) rx: Option<String>,
    /// What raw recordings do not say of themselves, and which of their channels are meant.
    pub(super) format: Option<String>,
    pub(super) rate: Option<f64>,
    pub(super) channels: Option<usize>,
    #[serde(default)]
    pub(super) channel: usize,
    #[serde(default)]
    pub(super) tx_channel: usize,
    pub(super) align: Option<String>,
    #[serde(default)]
    pub(super) trim: bool,
}

/// A filter with its parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Family {
    pub(super) name: String,
    #[serde(default)]
    pub(super) set: Map<String, Value>,
    #[serde(default)]
    pub(super) grid: BTreeMap<String, Several>,
    pub(super) random: Option<Random>,
}

/// Parameters that are drawn, each uniform in its range or in the logarithm of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Random {
    pub(super) draws: u64,
    #[serde(default = "one")]
    pub(super) seed: u64,
    pub(super) range: BTreeMap<String, Ends>,
}

fn one() -> u64 {
    1
}

#[derive(Clone, Copy, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ends {
    pub(super) from: f64,
    pub(super) to: f64,
    #[serde(default)]
    pub(super) log: bool,
}

#[derive(Clone, Deserialize, serde::Serialize)]
#[serde(untagged, expecting = "seeds must be a number of seeds or a list of them")]
pub(super) enum Seeds {
    Count(u64),
    List(Vec<u64>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a grid must be a list of values or { from, to, steps, log }")]
pub(super) enum Several {
    List(Vec<Value>),
    Steps {
        from: f64,
        to: f64,
        steps: usize,
        #[serde(default)]
        log: bool,
    },
}

/// Steps of a range, at most: more could not be meant.
const STEPS: usize = 1_000_000;

impl Seeds {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Count(count) => *count,
            Self::List(list) => list.len() as u64,
        }
    }

    pub(super) fn at(&self, index: u64) -> u64 {
        match self {
            Self::Count(_) => index + 1,
            Self::List(list) => list[index as usize],
        }
    }
}

/// A number that is not finite is read as nothing at all, which TOML does not have.
pub(super) fn check_finite<'a>(name: &str, values: impl IntoIterator<Item = &'a Value>) -> Result<()> {
    values.into_iter().try_for_each(|value| match value {
        Value::Null => Err(Error::parameter(name, "a finite number", "one that is not")),
        Value::Array(values) => check_finite(name, values),
        Value::Object(values) => check_finite(name, values.values()),
        _ => Ok(()),
    })
}

impl Several {
    /// The values of `name`, of which there is at least one.
    pub(super) fn values(&self, name: &str) -> Result<Vec<Value>> {
        match self {
            Self::List(list) if list.is_empty() => Err(Error::parameter(name, "a list of at least one value", "an empty one")),
            Self::List(list) => check_finite(name, list).map(|()| list.clone()),
            Self::Steps { from, to, steps, log } => {
                if !(2..=STEPS).contains(steps) {
                    return Err(Error::parameter(format!("{name}.steps"), format!("between 2 and {STEPS}"), steps));
                }
                let ends = Ends { from: *from, to: *to, log: *log };
                ends.check(name)?;
                Ok((0..*steps).map(|i| number(ends.at(i as f64 / (steps - 1) as f64, 11))).collect())
            }
        }
    }
}

impl Ends {
    pub(super) fn check(&self, name: &str) -> Result<()> {
        let ends = format!("from {} to {}", self.from, self.to);
        if !(self.from.is_finite() && self.to.is_finite() && self.from != self.to) {
            return Err(Error::parameter(name, "a range between two different numbers", ends));
        }
        if self.log && !(self.from > 0.0 && self.to > 0.0) {
            return Err(Error::parameter(name, "a range of numbers above 0 where it is logarithmic", ends));
        }
        Ok(())
    }

    /// What lies at `unit` of the way, to so many digits behind the first: what is written down is what is tried.
    pub(super) fn at(&self, unit: f64, digits: usize) -> f64 {
        let value = match self.log {
            true => self.from * (self.to / self.from).powf(unit),
            false => self.from + (self.to - self.from) * unit,
        };
        format!("{value:.digits$e}").parse().unwrap_or(value)
    }
}

/// The paths that a pattern matches, in the order of their names: `*` stands for any letters, `?` for any one, neither for a separator.
pub(super) fn matches(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for part in Path::new(pattern).components() {
        let name = part.as_os_str().to_string_lossy();
        if !name.contains(['*', '?']) {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let mut next = Vec::new();
        for path in found {
            let mut names: Vec<String> = std::fs::read_dir(folder.join(&path))
                .into_iter()
                .flatten()
                .flatten()
                .filter_map(|entry| entry.file_name().into_string().ok())
                .filter(|entry| !entry.starts_with('.') && fits(&name, entry))
                .collect();
            names.sort_unstable();
            next.extend(names.into_iter().map(|name| path.join(name)));
        }
        found = next;
    }
    found.retain(|path| folder.join(path).exists());
    if found.is_empty() {
        return Err(Error::file(folder.join(pattern), "recordings", "there is no such file or folder"));
    }
    Ok(found)
}

/// Whether `name` is what `pattern` says.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // reach[j]: the pattern so far fits the first j letters.
    let mut reach = vec![false; name.len() + 1];
    reach[0] = true;
    for p in pattern {
        let mut next = vec![false; name.len() + 1];
        match p {
            '*' => {
                let first = reach.iter().position(|&r| r).unwrap_or(name.len() + 1);
                next.iter_mut().skip(first).for_each(|r| *r = true);
            }
            _ => (0..name.len()).for_each(|j| next[j + 1] = reach[j] && (p == '?' || p == name[j])),
        }
        reach = next;
    }
    reach[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_what_a_shell_says_it_fits() {
        for (pattern, name, expected) in [
            ("*", "anything", true),
            ("*.sigmf-meta", "a.sigmf-meta", true),
            ("*.sigmf-meta", "a.sigmf-data", false),
            ("run-??", "run-07", true),
            ("run-??", "run-7", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("**", "", true),
            ("?", "", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
        let folder = tempfile::tempdir().unwrap();
        for name in ["b/x", "a/x", "a/.x", "c/y"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let found = matches(folder.path(), "*/x").unwrap();
        assert_eq!(found, [PathBuf::from("a/x"), PathBuf::from("b/x")]);
        assert!(matches(folder.path(), "*/z").unwrap_err().to_string().contains("*/z: recordings: there is no such"));
    }

    #[test]
    fn steps_reach_both_ends_and_are_written_as_they_are_meant() {
        let linear = Several::Steps { from: -9.0, to: 0.0, steps: 4, log: false };
        assert_eq!(serde_json::to_string(&linear.values("ibo").unwrap()).unwrap(), "[-9,-6,-3,0]");
        let log = Several::Steps { from: 0.01, to: 1.0, steps: 3, log: true };
        assert_eq!(serde_json::to_string(&log.values("eta").unwrap()).unwrap(), "[0.01,0.1,1]");
        assert!(Several::Steps { from: -1.0, to: 1.0, steps: 3, log: true }.values("eta").is_err());
        assert!(Several::List(Vec::new()).values("eta").is_err());
    }
}
