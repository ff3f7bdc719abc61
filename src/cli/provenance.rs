//! Where a result comes from: enough to make it again, and to tell whether two results belong together.
//!
//! The object `provenance` of every JSON file holds `version`, `command` (the words of the command line), `options` (all of them, with the
//! defaults of those that were not given), `seed` (null where nothing is drawn), `inputs` (`path` and `sha256` of every file that was read,
//! which reads it once more), `host`, `cpu` (`arch`, `cores`, `simd`: the vector instructions in use) and `time` (the end, UTC). Parameters
//! of filters after their defaults stand at the filters.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use clap::{ArgMatches, Command};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{json::number, outputs};
use crate::iq::{Pair, sigmf};
use crate::simd::Level;
use crate::{Error, Result};

/// This program.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Arguments that name files that are read.
const INPUTS: [&str; 11] = ["tx", "rx", "tx_option", "rx_option", "wanted", "signal", "file", "params", "scenario", "points", "study"];

/// What the user asked for.
struct Asked {
    command: Vec<String>,
    options: Map<String, Value>,
    inputs: Vec<PathBuf>,
}

static ASKED: OnceLock<Asked> = OnceLock::new();

/// Keeps what the command line says, defaults included.
pub(super) fn remember(words: &[std::ffi::OsString], command: &Command, matches: &ArgMatches) {
    let (mut command, mut matches) = (command, matches);
    while let Some((name, inner)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (command, matches) = (found, inner);
    }
    let (mut options, mut inputs) = (Map::new(), Vec::new());
    for argument in command.get_arguments() {
        let name = argument.get_id().as_str();
        let Ok(Some(values)) = matches.try_get_raw(name) else { continue };
        let values: Vec<_> = values.collect();
        if INPUTS.contains(&name) {
            inputs.extend(values.iter().map(PathBuf::from));
        }
        let mut values: Vec<Value> = values.iter().map(|value| typed(&value.to_string_lossy())).collect();
        options.insert(name.replace('_', "-"), if values.len() == 1 { values.remove(0) } else { json!(values) });
    }
    let command = words.iter().enumerate().map(|(i, word)| match i {
        0 => "kaflow".to_owned(),
        _ => word.to_string_lossy().into_owned(),
    });
    let _ = ASKED.set(Asked { command: command.collect(), options, inputs });
}

/// The command line in one line.
pub(super) fn command() -> String {
    ASKED.get().map(|asked| asked.command.join(" ")).unwrap_or_default()
}

fn typed(text: &str) -> Value {
    match (text, text.parse::<f64>()) {
        ("true", _) => json!(true),
        ("false", _) => json!(false),
        (_, Ok(value)) if value.is_finite() => text.parse::<i64>().map_or_else(|_| number(value), |whole| json!(whole)),
        _ => json!(text),
    }
}

/// The object for a file that holds `found`, which may know the seed where no option gives it.
pub(super) fn object(found: &Map<String, Value>) -> Value {
    let asked = ASKED.get();
    let options = asked.map(|asked| asked.options.clone()).unwrap_or_default();
    let known = [options.get("seed"), found.get("scenario").and_then(|s| s.get("seed")), found.get("settings").and_then(|s| s.get("seed"))];
    let seed = known.into_iter().flatten().next().cloned();
    let mut files = Vec::new();
    for path in asked.iter().flat_map(|asked| &asked.inputs) {
        files.extend(files_of(path));
    }
    files.dedup();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // One that has gone meanwhile must not take the results along.
    let inputs = files.iter().map(|path| json!({ "path": path.display().to_string(), "sha256": sha256(path).ok() }));
    json!({
        "version": VERSION,
        "command": asked.map(|asked| asked.command.as_slice()).unwrap_or_default(),
        "options": options,
        "seed": seed,
        "inputs": inputs.collect::<Vec<_>>(),
        "host": host(),
        "cpu": { "arch": std::env::consts::ARCH, "cores": cores, "simd": Level::current().to_string() },
        "time": now(),
    })
}

/// What is read where `path` is given: of a SigMF recording both files, of a pair those of both recordings. What cannot be read again, such
/// as standard input, is left out.
pub(super) fn files_of(path: &Path) -> Vec<PathBuf> {
    let pair = path.is_dir() || path.extension().is_some_and(|e| e == "sigmf-collection");
    let mut files = match pair.then(|| Pair::open(path)) {
        Some(Ok(pair)) => {
            let of = |data: &Path| [sigmf::files(data).0, data.to_owned()];
            [pair.tx.data_path(), pair.rx.data_path()].into_iter().flat_map(of).chain([path.to_owned()]).collect()
        }
        Some(Err(_)) => Vec::new(),
        None => outputs::of_recording(path),
    };
    files.retain(|file| file.is_file());
    files.sort();
    files.dedup();
    files
}

/// The SHA-256 of a file in hexadecimal digits.
pub(super) fn sha256(path: &Path) -> Result<String> {
    let io = |e| Error::io(path, e);
    let mut file = std::fs::File::open(path).map_err(io)?;
    let mut hash = Hasher(Sha256::new());
    std::io::copy(&mut file, &mut std::io::BufWriter::with_capacity(1 << 18, &mut hash)).map_err(io)?;
    Ok(hex(hash.0))
}

struct Hasher(Sha256);

impl std::io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The SHA-256 of `bytes` in hexadecimal digits.
pub(super) fn sha256_of(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of this machine.
pub(super) fn host() -> String {
    let said = std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    said.ok().or_else(|| std::env::var("HOSTNAME").ok()).map_or_else(|| "unknown".into(), |name| name.trim().to_owned())
}

/// Now, in ISO 8601 and UTC.
pub(super) fn now() -> String {
    sigmf::datetime(SystemTime::now())
}

#[cfg(test)]
#[path = "../../tests/unit/cli/provenance.rs"]
mod tests;
