//! A transmitted and a received recording, tied together by a `.sigmf-collection`.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::hash::sha512;
use super::sigmf::{self, Extension, VERSION, declare, parse_json, plain_name, read_small};
use super::{Recording, spool};

use crate::{Error, Result, files};

/// The version of the `kaflow` extension: `kaflow:tx`, `kaflow:rx` and `kaflow:delay_samples` in a collection.
const EXTENSION_VERSION: &str = "1.0.0";

/// Two recordings that belong together: what was sent and what arrived.
///
/// On disk it is a `.sigmf-collection` with both names and the hashes of their metadata, which hold the hashes of the data. The declared extension
/// `kaflow` says which is which (`kaflow:tx`, `kaflow:rx`) and, where known, the delay.
#[derive(Debug)]
pub struct Pair {
    /// What was sent.
    pub tx: Recording,
    /// What arrived.
    pub rx: Recording,
    /// `rx[n]` is the answer to `tx[n - delay]`, where known.
    pub delay: Option<f64>,
    /// The collection's keys that mean nothing here.
    pub extra: Map<String, Value>,
}

impl Pair {
    /// Opens a pair: a `.sigmf-collection`, or a directory that holds one, or one with recordings named `tx` and `rx`.
    ///
    /// The hashes of the metadata are checked; those of the data, which takes time, by [`verify`](Self::verify).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            return match Self::find(path)? {
                Some(collection) => Self::open_collection(&collection),
                None => {
                    let open = |name: &str| Recording::open(path.join(name).with_extension("sigmf-meta"), None);
                    Ok(Self { tx: open("tx")?, rx: open("rx")?, delay: None, extra: Map::new() })
                }
            };
        }
        Self::open_collection(path)
    }

    /// The one collection in a directory.
    fn find(directory: &Path) -> Result<Option<PathBuf>> {
        let entries = std::fs::read_dir(directory).map_err(|e| Error::io(directory, e))?;
        let mut found: Vec<PathBuf> =
            entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "sigmf-collection")).collect();
        if found.len() > 1 {
            return Err(Error::file(directory, "directory", format!("holds {} collections: name one of them", found.len())));
        }
        Ok(found.pop())
    }

    fn open_collection(path: &Path) -> Result<Self> {
        // A device that is no file may never answer.
        let (file, _) = spool::open(path)?;
        let mut top = parse_json(path, &read_small(path, file)?)?;
        let bad = |place: &str, problem: String| Error::file(path, place, problem);
        let Some(Value::Object(mut collection)) = top.get_mut("collection").map(Value::take) else {
            return Err(bad("collection", "is missing or not an object".into()));
        };
        let streams = match collection.remove("core:streams") {
            Some(Value::Array(streams)) => streams,
            _ => return Err(bad("core:streams", "is missing or not an array".into())),
        };
        let mut recording = |key: &str| -> Result<Recording> {
            let name = match collection.remove(key) {
                Some(Value::String(name)) => name,
                Some(_) => return Err(bad(key, "must be the name of a recording".into())),
                None => return Err(bad(key, "is missing: it says which recording is which".into())),
            };
            plain_name(&name).map_err(|problem| bad(key, problem))?;
            let text = |stream: &Value, field: &str| stream.get(field).and_then(Value::as_str).map(str::to_owned);
            let stream = streams
                .iter()
                .find(|s| text(s, "name").as_deref() == Some(&name))
                .ok_or_else(|| bad("core:streams", format!("has no recording '{name}', which {key} names")))?;
            let meta_path = path.with_file_name(format!("{name}.sigmf-meta"));
            let hash = text(stream, "hash").ok_or_else(|| bad("core:streams", format!("'{name}' has no hash")))?;
            let (meta, _) = spool::open(&meta_path)?;
            if !sha512(&meta_path, meta)?.eq_ignore_ascii_case(&hash) {
                let problem = format!("the hash of '{name}' is not that of {}: one of them was changed", meta_path.display());
                return Err(bad("core:streams", problem));
            }
            Recording::open(&meta_path, None)
        };
        let (tx, rx) = (recording("kaflow:tx")?, recording("kaflow:rx")?);
        let delay = match collection.remove("kaflow:delay_samples") {
            None => None,
            Some(value) => Some(value.as_f64().ok_or_else(|| bad("kaflow:delay_samples", format!("{value} is not a number")))?),
        };
        Ok(Self { tx, rx, delay, extra: collection })
    }

    /// Compares the SHA-512 of both data files with their metadata; `Ok(false)` when one has none.
    pub fn verify(&mut self) -> Result<bool> {
        Ok(self.tx.verify()? & self.rx.verify()?)
    }

    /// Ties two finished recordings that lie in the collection's directory together: writes `path` (`.sigmf-collection` is added where missing).
    ///
    /// `extra` may hold further keys of a collection; their extensions must be declared under `core:extensions` in it.
    pub fn tie(
        path: impl AsRef<Path>,
        tx: impl AsRef<Path>,
        rx: impl AsRef<Path>,
        delay: Option<f64>,
        extra: Map<String, Value>,
        force: bool,
    ) -> Result<PathBuf> {
        let mut path = path.as_ref().to_owned();
        if path.extension().is_none_or(|e| e != "sigmf-collection") {
            path.as_mut_os_string().push(".sigmf-collection");
        }
        if path.exists() && !force {
            return Err(Error::file(path, "file", "exists already; overwrite it with --force or choose another name"));
        }
        if let Some(delay) = delay.filter(|d| !d.is_finite()) {
            return Err(Error::parameter("delay", "a finite number of samples", delay));
        }
        let mut collection = Map::new();
        let mut streams = Vec::new();
        let mut extensions: Vec<Extension> = match extra.get("core:extensions") {
            Some(list) => serde_json::from_value(list.clone()).map_err(|e| Error::file(&path, "core:extensions", e.to_string()))?,
            None => Vec::new(),
        };
        declare(&mut extensions, "kaflow", EXTENSION_VERSION);
        collection.insert("core:version".into(), VERSION.into());
        collection.insert("core:extensions".into(), json!(extensions));
        for (key, recording) in [("kaflow:tx", tx.as_ref()), ("kaflow:rx", rx.as_ref())] {
            let meta_path = sigmf::files(recording).0;
            let directory = |p: &Path| p.parent().map(|d| if d.as_os_str().is_empty() { PathBuf::from(".") } else { d.to_owned() });
            if directory(&meta_path) != directory(&path) {
                return Err(Error::file(meta_path, "directory", format!("must be that of the collection {}", path.display())));
            }
            let name = meta_path
                .file_stem()
                .and_then(|name| name.to_str())
                .ok_or_else(|| Error::file(&meta_path, "file name", "is not UTF-8"))?
                .to_owned();
            let file = File::open(&meta_path).map_err(|e| Error::io(&meta_path, e))?;
            streams.push(json!({ "name": name, "hash": sha512(&meta_path, file)? }));
            collection.insert(key.into(), name.into());
        }
        if let Some(delay) = delay {
            collection.insert("kaflow:delay_samples".into(), delay.into());
        }
        collection.insert("core:streams".into(), streams.into());
        for (key, value) in extra {
            collection.entry(key).or_insert(value);
        }
        let undeclared = sigmf::undeclared(collection.keys(), &extensions);
        if let Some(problem) = undeclared.into_iter().next() {
            return Err(Error::file(path, "metadata to write", problem));
        }
        let text = serde_json::to_string_pretty(&json!({ "collection": collection })).unwrap_or_default() + "\n";
        files::write(&path, text.as_bytes())?;
        Ok(path)
    }
}
