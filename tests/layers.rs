//! Modules import only what lies to their left, so that each can be read, built and tested without what is built on it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// From the bottom to the top; modules of one layer may know each other.
const LAYERS: [&[&str]; 10] = [
    &["error", "real", "state", "files"],
    &["simd"],
    &["dsp"],
    &["kernel", "observation"],
    &["filter"],
    &["channel", "dpd", "ofdm", "iq", "metrics"],
    &["radio"],
    &["blocks"],
    &["flowgraphs"],
    &["cli", "serve", "plot"],
];

/// Importer, imported, and why that is so. This list only gets shorter.
const EXCEPTIONS: [(&str, &str, &str); 1] = [("real", "simd", "the scalars are sealed by the vector instructions that exist for them")];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The modules of this crate that the text names after `crate::`, alone or in braces. Comments do not count.
fn imported(text: &str) -> BTreeSet<String> {
    let code: String = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n");
    let word = |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut names = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            names.insert(word(rest));
            continue;
        };
        // The names at the first level of braces.
        let (mut depth, mut start) = (1, 0);
        for (at, c) in list.char_indices() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if depth == 0 || (c == ',' && depth == 1) {
                names.insert(word(&list[start..at]));
                start = at + 1;
            }
            if depth == 0 {
                break;
            }
        }
    }
    names
}

#[test]
fn modules_import_from_their_left_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for (directory, fixed) in [("src", None), ("flowgraphs", Some("flowgraphs"))] {
        let mut files = Vec::new();
        sources(&root.join(directory), &mut files);
        assert!(files.len() > 3, "{directory} is empty");
        for file in files {
            let path = file.strip_prefix(root.join(directory)).unwrap();
            let first = path.iter().next().unwrap().to_str().unwrap();
            let module = fixed.unwrap_or(first.trim_end_matches(".rs"));
            if ["lib", "main", "build"].contains(&module) {
                continue;
            }
            let Some(own) = layer(module) else {
                panic!("{}: say in LAYERS where the module '{module}' belongs", file.display());
            };
            for other in imported(&fs::read_to_string(&file).unwrap()) {
                if layer(&other).is_some_and(|layer| layer > own) {
                    match EXCEPTIONS.iter().position(|(a, b, _)| *a == module && *b == other) {
                        Some(known) => drop(used.insert(known)),
                        None => wrong.push(format!("{directory}/{} imports {other}", path.display())),
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these import what is built on them:\n{}", wrong.join("\n"));
    assert_eq!(used.len(), EXCEPTIONS.len(), "an exception is no longer needed: take it off the list");
}

#[test]
fn imports_are_found_however_they_are_written() {
    let text = "use crate::{Real, error::require, filter::{Tracker, em}, };\nlet x = crate::simd::Level::current(); // crate::cli\nuse crate::state;";
    let found: Vec<_> = imported(text).into_iter().filter(|n| !n.is_empty()).collect();
    assert_eq!(found, ["Real", "error", "filter", "simd", "state"]);
}
