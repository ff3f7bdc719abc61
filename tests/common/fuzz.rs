//! Random damage: what every test of damaged input needs.
//!
//! Files of `tests/data/fuzz` are changed at random, from a seed, so that a failure comes again. Each test runs for a second, or for `KAFLOW_FUZZ_SECONDS`.
#![allow(dead_code)] // each test uses a part

use std::path::Path;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

/// A file of the corpus.
pub(crate) fn corpus(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fuzz").join(name)).unwrap()
}

/// Calls `each` with the random numbers of round 0, 1, ... until the time is up; at least once, and says how often.
pub(crate) fn rounds(name: &str, mut each: impl FnMut(&mut ChaCha8Rng, &str)) {
    let seconds = std::env::var("KAFLOW_FUZZ_SECONDS").ok().and_then(|text| text.parse::<f64>().ok()).unwrap_or(1.0);
    let (began, time) = (Instant::now(), Duration::from_secs_f64(seconds.clamp(0.0, 1e6)));
    let mut round = 0;
    while round == 0 || began.elapsed() < time {
        each(&mut ChaCha8Rng::seed_from_u64(round), &format!("{name}, round {round}"));
        round += 1;
    }
    eprintln!("{name}: {round} rounds");
}

/// What parsers stumble over.
pub(crate) const TOKENS: [&str; 28] = [
    "-1",
    "0",
    "1e400",
    "-1e400",
    "1e-400",
    "NaN",
    "inf",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"\u{1b}[2J\"",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "4294967295",
    "0.5",
    "\u{feff}",
    "\r\n",
    "\0",
    ",",
    ":",
    "[[[[[[[[[[[[[[[[",
    "../../../etc/passwd",
    "é",
    "0x10",
];

/// A few random changes: bits, bytes, stretches doubled and dropped, and numbers replaced by bad ones.
pub(crate) fn mutate(rng: &mut ChaCha8Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.random_range(1..6) {
        let at = rng.random_range(0..=bytes.len());
        let end = (at + rng.random_range(0..64)).min(bytes.len());
        match rng.random_range(0..8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = *[0, 0xff, 0x7f, 0x80, b'"', b'\n'].choose(rng).unwrap(),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            4 => bytes.truncate(at),
            5 => drop(bytes.splice(at..at, (0..rng.random_range(0..16)).map(|_| rng.random()).collect::<Vec<u8>>())),
            _ => {
                // A number or a word, from here on.
                let word = |b: &u8| b.is_ascii_alphanumeric() || b"+-._".contains(b);
                let from = bytes[at..].iter().position(word).map_or(at, |i| at + i);
                let to = bytes[from..].iter().position(|b| !word(b)).map_or(bytes.len(), |i| from + i);
                bytes.splice(from..to, TOKENS.choose(rng).unwrap().bytes());
            }
        }
    }
}

/// An error is one line that a terminal can show.
#[track_caller]
pub(crate) fn decent(what: &str, error: &str) {
    assert!(!error.is_empty() && error.chars().count() < 3000 && !error.chars().any(char::is_control), "{what}: {error:?}");
}
