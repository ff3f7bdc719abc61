//! `.sigmf` archives: tar files that hold a recording. Nothing is unpacked: the samples are read where they lie.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use super::sigmf::{MAX_META_BYTES, Meta, read_small};
use crate::error::short;
use crate::{Error, Result};

/// More members than this and it is no recording.
const MAX_MEMBERS: usize = 10_000;

/// Finds the metadata and where in the archive the samples lie: offset and length in bytes.
///
/// Names inside the archive serve only to match metadata with data; they are never used as paths.
pub(crate) fn locate(path: &Path, mut file: &File) -> Result<(Meta, u64, u64)> {
    let size = file.metadata().map_err(|e| Error::io(path, e))?.len();
    let bad = |offset: u64, problem: String| Error::file(path, format!("offset {offset}"), problem);
    let mut found: Vec<(String, Meta)> = Vec::new();
    let mut data: Vec<(String, u64, u64)> = Vec::new();
    let mut compressed = [0; 2];
    if file.read_exact(&mut compressed).is_ok() && matches!(&compressed, [0x1f, 0x8b] | [0xfd, b'7'] | b"PK") {
        return Err(bad(0, "the archive is compressed; unpack it first".into()));
    }
    file.rewind().map_err(|e| Error::io(path, e))?;
    let mut archive = tar::Archive::new(file);
    let entries = archive.entries_with_seek().map_err(|e| bad(0, format!("not a tar archive: {}", short(&e.to_string()))))?;
    for (count, entry) in entries.enumerate() {
        let mut entry = entry.map_err(|e| bad(0, format!("not a whole tar archive: {}", short(&e.to_string()))))?;
        if count >= MAX_MEMBERS {
            return Err(bad(entry.raw_header_position(), format!("more than {MAX_MEMBERS} members")));
        }
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let (start, len) = (entry.raw_file_position(), entry.size());
        if let Some(base) = name.strip_suffix(".sigmf-meta") {
            if len > MAX_META_BYTES {
                return Err(bad(start, format!("the metadata {} declares {len} bytes", name.escape_debug())));
            }
            let text = read_small(path, &mut entry)?;
            if (text.len() as u64) < len {
                return Err(bad(start, format!("the archive ends inside the metadata {}", name.escape_debug())));
            }
            found.push((base.to_owned(), Meta::parse(path, &text)?));
        } else if let Some(base) = name.strip_suffix(".sigmf-data") {
            if start.checked_add(len).is_none_or(|end| end > size) {
                return Err(bad(start, format!("the data declares {len} bytes, and only {} follow", size.saturating_sub(start))));
            }
            data.push((base.to_owned(), start, len));
        }
    }
    if found.len() > 1 {
        let names: Vec<_> = found.iter().map(|(base, _)| base.escape_debug().to_string()).collect();
        return Err(bad(0, format!("holds {} recordings ({}); unpack it and name one", names.len(), names.join(", "))));
    }
    let (base, meta) = found.pop().ok_or_else(|| bad(0, "no .sigmf-meta in the archive".into()))?;
    let (_, start, len) = data
        .into_iter()
        .find(|(name, ..)| *name == base)
        .ok_or_else(|| bad(0, format!("no {}.sigmf-data in the archive", base.escape_debug())))?;
    Ok((meta, start, len))
}
