//! States that viewers keep: plain new names in one folder, and no path from outside.

use std::path::{Path, PathBuf};

use crate::filter::registry::Values;
use crate::{Error, Result, files, state};

/// Of the files; only these are listed and read.
const ENDING: &str = "state";
/// A state file that is larger was not written by a filter.
const LARGEST: u64 = 1 << 30;

/// A filter's state and the parameters that it had.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Kept {
    pub(super) filter: String,
    /// As JSON: the sealed format cannot tell a number from a name.
    values: String,
    pub(super) state: Vec<u8>,
}

impl Kept {
    pub(super) fn new(filter: &str, values: &Values, state: Vec<u8>) -> Result<Self> {
        let values = serde_json::to_string(values).map_err(|e| Error::State(e.to_string()))?;
        Ok(Self { filter: filter.into(), values, state })
    }

    pub(super) fn values(&self) -> Result<Values> {
        serde_json::from_str(&self.values).map_err(|e| Error::State(e.to_string()))
    }
}

/// The folder of the command line.
pub(super) struct States(pub(super) PathBuf);

impl States {
    /// The names that there are.
    pub(super) fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path());
        let states = files.filter(|path| path.extension().is_some_and(|ending| ending == ENDING));
        let mut names: Vec<_> = states.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
        names.sort();
        names
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        let plain = |c: char| c.is_alphanumeric() || "-_+. ".contains(c);
        let odd = name.is_empty() || name.len() > 100 || name.starts_with('.') || name.trim() != name || !name.chars().all(plain);
        if odd {
            return Err(Error::parameter("the name", "letters, digits, spaces and - _ + . (at most 100, no folder)", format!("'{name}'")));
        }
        files::within(Some(&self.0), &format!("{name}.{ENDING}"))
    }

    pub(super) fn write(&self, name: &str, kept: &Kept) -> Result<()> {
        let path = self.path(name)?;
        if std::fs::symlink_metadata(&path).is_ok() {
            return Err(Error::parameter("the name", "a new one: nothing is overwritten", format!("'{name}'")));
        }
        files::write(&path, &state::encode("kept", kept)?)
    }

    pub(super) fn read(&self, name: &str) -> Result<Kept> {
        let path = self.path(name)?;
        let found = std::fs::symlink_metadata(&path).map_err(|e| Error::io(&path, e))?;
        if !found.is_file() || found.len() > LARGEST {
            return Err(Error::parameter("the name", "that of a state that was saved here", format!("'{name}'")));
        }
        state::decode("kept", &files::read(&path, files::SAVED)?)
    }

    /// A name for a recording that no file has.
    pub(super) fn recording(&self) -> (String, PathBuf) {
        let taken =
            |path: &Path| ["sigmf-meta", "sigmf-data"].iter().any(|ending| std::fs::symlink_metadata(path.with_extension(ending)).is_ok());
        let names = (1..).map(|n| format!("rx-{n}"));
        names.map(|name| (name.clone(), self.0.join(name))).find(|(_, path)| !taken(path)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::registry::Value;

    #[test]
    fn names_are_plain_and_new() {
        let folder = tempfile::tempdir().unwrap();
        let states = States(folder.path().join("kept"));
        std::fs::create_dir(&states.0).unwrap();
        let values = Values::from([("mu".into(), Value::Number(0.1)), ("motion".into(), Value::Name("walk".into()))]);
        let kept = Kept::new("nlms", &values, vec![1, 2, 3]).unwrap();
        states.write("after the fade", &kept).unwrap();
        let read = states.read("after the fade").unwrap();
        assert_eq!((read.state.as_slice(), read.values().unwrap()), (&[1, 2, 3][..], values));
        assert!(states.write("after the fade", &kept).is_err());
        let outside = ["", ".", "..", "../a", "a/b", "/etc/passwd", "a\\b", "a\0b", ".a", " a", "a\n", "C:a", &"a".repeat(101)];
        for name in outside {
            assert!(states.write(name, &kept).is_err() && states.read(name).is_err(), "{name:?}");
        }
        assert_eq!(states.names(), ["after the fade"]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            // A link is no state that was saved here, and is not written through.
            std::os::unix::fs::symlink("/etc/passwd", states.0.join("link.state")).unwrap();
            assert!(states.read("link").is_err() && states.write("link", &kept).is_err());
        }
        assert_eq!(states.recording().0, "rx-1");
        std::fs::write(states.0.join("rx-1.sigmf-data"), b"").unwrap();
        assert_eq!(states.recording().0, "rx-2");
    }
}
