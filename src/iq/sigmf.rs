//! SigMF 1.2 metadata: what we use of it typed, everything else kept as it is.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Datatype;
use crate::{Error, Result};

/// The version that we write.
pub(crate) const VERSION: &str = "1.2.0";

/// No metadata is larger: this bounds what a forged file can make us hold in memory.
pub(crate) const MAX_META_BYTES: u64 = 64 << 20;

/// Indices above this do not fit the specification.
const MAX_INDEX: u64 = i64::MAX as u64;

/// More channels than any radio has; a forged number must not decide over the size of a buffer.
const MAX_CHANNELS: u64 = 4096;

/// The content of a `.sigmf-meta` file.
///
/// Keys that have no field here, those of extensions in particular, are kept in `extra` and written back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Meta {
    /// What holds for the whole recording.
    pub global: Global,
    /// Where the capture's circumstances change, in order.
    pub captures: Vec<Capture>,
    /// Remarks on stretches of samples, in order.
    pub annotations: Vec<Annotation>,
}

/// What holds for the whole recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Global {
    /// The layout of a sample.
    #[serde(rename = "core:datatype", serialize_with = "as_text")]
    pub datatype: Datatype,
    /// The version of SigMF.
    #[serde(rename = "core:version")]
    pub version: String,
    /// Samples per second.
    #[serde(rename = "core:sample_rate", skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<f64>,
    /// How many channels are interleaved; 1 when absent.
    #[serde(rename = "core:num_channels", skip_serializing_if = "Option::is_none")]
    pub num_channels: Option<u64>,
    /// The SHA-512 of the data file in hexadecimal digits.
    #[serde(rename = "core:sha512", skip_serializing_if = "Option::is_none")]
    pub sha512: Option<String>,
    /// The index of the first sample, where a recording is split over files.
    #[serde(rename = "core:offset", skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The data file's name, where it is not the usual one.
    #[serde(rename = "core:dataset", skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Bytes after the last sample that are no samples.
    #[serde(rename = "core:trailing_bytes", skip_serializing_if = "Option::is_none")]
    pub trailing_bytes: Option<u64>,
    /// Whether there is no data file at all.
    #[serde(rename = "core:metadata_only", skip_serializing_if = "Option::is_none")]
    pub metadata_only: Option<bool>,
    /// What the recording is.
    #[serde(rename = "core:description", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The extensions whose keys appear.
    #[serde(rename = "core:extensions", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A declared extension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    /// The namespace of its keys.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether the recording can be read without knowing it.
    pub optional: bool,
}

/// From `sample_start` on these circumstances hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Capture {
    /// The first sample.
    #[serde(rename = "core:sample_start")]
    pub sample_start: u64,
    /// That sample's index in the stream that the radio saw; a jump is a gap.
    #[serde(rename = "core:global_index", skip_serializing_if = "Option::is_none")]
    pub global_index: Option<u64>,
    /// The centre frequency in Hz.
    #[serde(rename = "core:frequency", skip_serializing_if = "Option::is_none")]
    pub frequency: Option<f64>,
    /// When the first sample was taken, in ISO 8601 and UTC.
    #[serde(rename = "core:datetime", skip_serializing_if = "Option::is_none")]
    pub datetime: Option<String>,
    /// Bytes just before the first sample that are no samples.
    #[serde(rename = "core:header_bytes", skip_serializing_if = "Option::is_none")]
    pub header_bytes: Option<u64>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A remark on a stretch of samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Annotation {
    /// The first sample.
    #[serde(rename = "core:sample_start")]
    pub sample_start: u64,
    /// How many samples; until the next annotation when absent.
    #[serde(rename = "core:sample_count", skip_serializing_if = "Option::is_none")]
    pub sample_count: Option<u64>,
    /// A short name.
    #[serde(rename = "core:label", skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A moment as SigMF writes it: ISO 8601 and UTC, to the nanosecond.
pub(crate) fn datetime(time: std::time::SystemTime) -> String {
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86400, since.as_secs() % 86400);
    // Days are counted from 1 March of year 0, so that the leap day is the last one of a year: 400 years are 146097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = 400 * era + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:09}Z", since.subsec_nanos())
}

fn as_text<S: serde::Serializer>(datatype: &Datatype, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(datatype)
}

/// Reads the fields of one JSON object and names the one that is wrong.
struct Fields<'a> {
    path: &'a Path,
    place: String,
    map: Map<String, Value>,
}

impl<'a> Fields<'a> {
    fn new(path: &'a Path, place: impl Into<String>, value: Value) -> Result<Self> {
        let place = place.into();
        match value {
            Value::Object(map) => Ok(Self { path, place, map }),
            other => Err(Error::file(path, place, format!("must be an object, not {}", kind(&other)))),
        }
    }

    fn error(&self, key: &str, problem: impl Into<String>) -> Error {
        Error::file(self.path, format!("{} {key}", self.place), problem)
    }

    fn optional<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>> {
        let Some(value) = self.map.remove(key) else { return Ok(None) };
        T::deserialize(value).map(Some).map_err(|e| self.error(key, e.to_string()))
    }

    fn required<T: DeserializeOwned>(&mut self, key: &str) -> Result<T> {
        self.optional(key)?.ok_or_else(|| self.error(key, "is missing"))
    }

    fn index(&mut self, key: &str) -> Result<Option<u64>> {
        match self.optional(key)? {
            Some(n) if n > MAX_INDEX => Err(self.error(key, format!("{n} is above {MAX_INDEX}"))),
            other => Ok(other),
        }
    }

    fn list(&mut self, key: &str) -> Result<Vec<Value>> {
        match self.map.remove(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => Ok(list),
            Some(other) => Err(self.error(key, format!("must be an array, not {}", kind(&other)))),
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Parses JSON from a file; the depth is bounded by serde_json, the length by the caller.
pub(crate) fn parse_json(path: &Path, text: &[u8]) -> Result<Value> {
    serde_json::from_slice(text).map_err(|e| Error::file(path, format!("line {} column {}", e.line(), e.column()), e.to_string()))
}

impl Meta {
    /// Metadata of a new recording of one capture that starts now, at sample 0.
    pub fn new(datatype: Datatype, sample_rate: Option<f64>) -> Self {
        let global = Global {
            datatype,
            version: VERSION.into(),
            sample_rate,
            num_channels: None,
            sha512: None,
            offset: None,
            dataset: None,
            trailing_bytes: None,
            metadata_only: None,
            description: None,
            extensions: Vec::new(),
            extra: Map::new(),
        };
        Self { global, captures: vec![Capture::default()], annotations: Vec::new() }
    }

    /// Reads metadata from JSON; `path` is named in errors.
    pub(crate) fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        let mut top = Fields::new(path, "top level", parse_json(path, text)?)?;
        let global: Value = top.required("global")?;
        let captures = top.list("captures")?;
        let annotations = top.list("annotations")?;
        let global = Global::read(Fields::new(path, "global", global)?)?;
        let captures = captures
            .into_iter()
            .enumerate()
            .map(|(i, value)| Capture::read(Fields::new(path, format!("captures[{i}]"), value)?))
            .collect::<Result<_>>()?;
        let annotations = annotations
            .into_iter()
            .enumerate()
            .map(|(i, value)| Annotation::read(Fields::new(path, format!("annotations[{i}]"), value)?))
            .collect::<Result<_>>()?;
        Ok(Self { global, captures, annotations })
    }

    /// The JSON text, ending with a newline.
    pub(crate) fn to_json(&self) -> String {
        // Serialising to memory fails only for maps whose keys are not strings; ours are.
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }

    /// How many channels are interleaved.
    pub(crate) fn channels(&self) -> usize {
        self.global.num_channels.unwrap_or(1) as usize
    }

    /// Declares an extension once.
    pub(crate) fn declare(&mut self, name: &str, version: &str) {
        declare(&mut self.global.extensions, name, version);
    }

    /// Declares every extension whose keys appear and that was not declared. Its version cannot be known.
    pub(crate) fn declare_used(&mut self) {
        let used: Vec<String> = self.extra_keys().filter_map(|key| key.split_once(':')).map(|(space, _)| space.to_owned()).collect();
        for space in used.iter().filter(|space| *space != "core") {
            self.declare(space, "unknown");
        }
    }

    fn extra_keys(&self) -> impl Iterator<Item = &String> {
        let captures = self.captures.iter().flat_map(|c| c.extra.keys());
        self.global.extra.keys().chain(captures).chain(self.annotations.iter().flat_map(|a| a.extra.keys()))
    }

    /// What the specification forbids although the samples can be read, each named with its field. What we write has none of it.
    pub(crate) fn violations(&self) -> Vec<String> {
        let mut found = undeclared(self.extra_keys(), &self.global.extensions);
        for (i, pair) in self.annotations.windows(2).enumerate() {
            if pair[1].sample_start < pair[0].sample_start {
                found.push(format!("annotations[{}] core:sample_start: annotations must be sorted", i + 1));
            }
        }
        if self.captures.is_empty() {
            found.push("captures: is empty; a recording has at least one".into());
        }
        if self.captures.iter().any(|c| c.header_bytes.is_some()) && self.global.dataset.is_none() {
            found.push("captures core:header_bytes: is only for a data file named by core:dataset".into());
        }
        found
    }
}

/// Declares an extension once.
pub(crate) fn declare(extensions: &mut Vec<Extension>, name: &str, version: &str) {
    if !extensions.iter().any(|e| e.name == name) {
        extensions.push(Extension { name: name.into(), version: version.into(), optional: true });
    }
}

/// A sentence for each namespace that is used and not declared, and for each key without one.
pub(crate) fn undeclared<'a>(keys: impl Iterator<Item = &'a String>, extensions: &[Extension]) -> Vec<String> {
    let mut found = Vec::new();
    for key in keys {
        let sentence = match key.split_once(':') {
            None => format!("{key}: has no namespace"),
            Some(("core", _)) => continue,
            Some((space, _)) if extensions.iter().any(|e| e.name.split(':').next() == Some(space)) => continue,
            Some((space, _)) => format!("global core:extensions: '{space}' is used and not declared"),
        };
        if !found.contains(&sentence) {
            found.push(sentence);
        }
    }
    found
}

impl Global {
    fn read(mut fields: Fields<'_>) -> Result<Self> {
        let datatype: String = fields.required("core:datatype")?;
        let datatype = datatype.parse().map_err(|e: Error| fields.error("core:datatype", e.to_string()))?;
        let version: String = fields.required("core:version")?;
        match version_parts(&version) {
            Some((0 | 1, _)) => {}
            Some((major, _)) => return Err(fields.error("core:version", format!("is SigMF {major}, this kaflow reads SigMF 1"))),
            None => return Err(fields.error("core:version", format!("'{version}' is not a version such as {VERSION}"))),
        }
        let sample_rate = fields.optional("core:sample_rate")?;
        if let Some(rate) = sample_rate.filter(|rate| !(*rate > 0.0 && *rate <= 1e12)) {
            return Err(fields.error("core:sample_rate", format!("{rate} is not between 0 and 1e12")));
        }
        let num_channels = fields.index("core:num_channels")?;
        if let Some(channels) = num_channels.filter(|n| !(1..=MAX_CHANNELS).contains(n)) {
            return Err(fields.error("core:num_channels", format!("{channels} is not between 1 and {MAX_CHANNELS}")));
        }
        let sha512: Option<String> = fields.optional("core:sha512")?;
        if let Some(sum) = sha512.as_ref().filter(|sum| sum.len() != 128 || !sum.bytes().all(|b| b.is_ascii_hexdigit())) {
            return Err(fields.error("core:sha512", format!("must be 128 hexadecimal digits, found {} characters", sum.len())));
        }
        let dataset: Option<String> = fields.optional("core:dataset")?;
        if let Some(name) = &dataset {
            plain_name(name).map_err(|problem| fields.error("core:dataset", problem))?;
        }
        // Before 1.0 this was an object of names and versions.
        let extensions = match fields.map.get("core:extensions") {
            Some(Value::Object(_)) => Vec::new(),
            _ => fields.optional("core:extensions")?.unwrap_or_default(),
        };
        Ok(Self {
            datatype,
            version,
            sample_rate,
            num_channels,
            sha512,
            offset: fields.index("core:offset")?,
            dataset,
            trailing_bytes: fields.index("core:trailing_bytes")?,
            metadata_only: fields.optional("core:metadata_only")?,
            description: fields.optional("core:description")?,
            extensions,
            extra: fields.map,
        })
    }
}

impl Capture {
    fn read(mut fields: Fields<'_>) -> Result<Self> {
        let frequency = fields.optional("core:frequency")?;
        if let Some(hz) = frequency.filter(|hz: &f64| hz.abs() > 1e12) {
            return Err(fields.error("core:frequency", format!("{hz} is not between -1e12 and 1e12")));
        }
        Ok(Self {
            sample_start: fields.index("core:sample_start")?.ok_or_else(|| fields.error("core:sample_start", "is missing"))?,
            global_index: fields.index("core:global_index")?,
            frequency,
            datetime: fields.optional("core:datetime")?,
            header_bytes: fields.index("core:header_bytes")?,
            extra: fields.map,
        })
    }
}

impl Annotation {
    fn read(mut fields: Fields<'_>) -> Result<Self> {
        Ok(Self {
            sample_start: fields.index("core:sample_start")?.ok_or_else(|| fields.error("core:sample_start", "is missing"))?,
            sample_count: fields.index("core:sample_count")?,
            label: fields.optional("core:label")?,
            extra: fields.map,
        })
    }
}

/// Major and minor number of a version: `1.2.0`, `1.2`, `v1.0.0`, as they are found in the wild.
fn version_parts(text: &str) -> Option<(u32, u32)> {
    let number = |part: &str| if part.len() <= 6 && part.bytes().all(|b| b.is_ascii_digit()) { part.parse().ok() } else { None };
    let parts: Vec<u32> = text.strip_prefix('v').unwrap_or(text).split('.').map(number).collect::<Option<_>>()?;
    match parts[..] {
        [major, minor] | [major, minor, _] => Some((major, minor)),
        _ => None,
    }
}

/// Checks that a name from inside a file is a bare file name, which cannot lead out of the directory.
pub(crate) fn plain_name(name: &str) -> Result<(), String> {
    let bare = !name.is_empty() && !name.contains(['/', '\\', ':', '\0']) && name != "." && name != "..";
    if bare { Ok(()) } else { Err(format!("'{}' is not a plain file name", name.escape_debug())) }
}

/// The pair of files that a path names: with either ending, or without one.
pub(crate) fn files(path: &Path) -> (PathBuf, PathBuf) {
    let ending = |ending: &str| {
        let stem = match path.extension().and_then(|e| e.to_str()) {
            Some("sigmf-meta" | "sigmf-data") => path.with_extension(""),
            _ => path.to_owned(),
        };
        let mut name = stem.into_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    (ending(".sigmf-meta"), ending(".sigmf-data"))
}

/// Reads a whole small file, refusing one that is larger than metadata can be.
pub(crate) fn read_small(path: &Path, reader: impl std::io::Read) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut reader.take(MAX_META_BYTES + 1), &mut text).map_err(|e| Error::io(path, e))?;
    if text.len() as u64 > MAX_META_BYTES {
        return Err(Error::file(path, format!("offset {MAX_META_BYTES}"), "metadata is larger than 64 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
#[path = "../../tests/unit/sigmf.rs"]
mod tests;
