//! The JSON that every command writes with `--json`.
//!
//! All files begin alike: `schema` says what the file is (`kaflow/` and the command), `schema_version` how it is laid out. The version grows when a field goes away or
//! changes its meaning, not when one is added. Counts are integers; what is not known, or not finite, is null.
//! `provenance` says where the numbers come from: [`super::provenance`].

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::filter::registry;
use crate::{Error, Result, files};

/// How the files are laid out.
const VERSION: u64 = 1;

/// What every file begins with.
pub(crate) fn envelope(kind: &str) -> Map<String, Value> {
    Map::from_iter([("schema".to_owned(), json!(format!("kaflow/{kind}"))), ("schema_version".to_owned(), json!(VERSION))])
}

/// Writes what a command found, an object, behind the envelope.
pub(crate) fn write(path: &Path, kind: &str, found: Value) -> Result<()> {
    let mut all = envelope(kind);
    let found = match found {
        Value::Object(found) => found,
        other => Map::from_iter([("found".to_owned(), other)]),
    };
    all.insert("provenance".into(), super::provenance::object(&found));
    all.extend(found);
    let text = serde_json::to_string_pretty(&all).map_err(|e| Error::file(path, "json", e.to_string()))?;
    files::write(path, (text + "\n").as_bytes())?;
    detail!("wrote {}", path.display());
    Ok(())
}

/// A number as JSON: whole ones as integers.
pub(crate) fn number(value: f64) -> Value {
    // Beyond this not every integer is a number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT { json!(value as i64) } else { json!(value) }
}

/// A parameter's value.
pub(crate) fn parameter(value: &registry::Value) -> Value {
    match value {
        registry::Value::Number(value) => number(*value),
        other => json!(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_it_is_and_counts_are_integers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write(&path, "track", json!({ "budget": number(500.0), "eta": number(0.5), "none": number(f64::NAN) })).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.starts_with("{\n  \"schema\": \"kaflow/track\",\n  \"schema_version\": 1,"), "{text}");
        assert!(text.contains("\"budget\": 500,") && text.contains("\"eta\": 0.5,") && text.contains("\"none\": null"), "{text}");
    }
}
