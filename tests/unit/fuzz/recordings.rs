//! SigMF, archives, WAV, raw samples and collections that are damaged.

use std::path::Path;

use kaflow::Complex32;
use kaflow::iq::{Pair, Recording, sigmf::Meta};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{corpus, decent, mutate, rounds};

#[test]
fn metadata_is_refused_or_survives_a_rewrite() {
    let seeds = ["plain.sigmf-meta", "gaps.sigmf-meta"].map(corpus);
    rounds("metadata", |rng, what| {
        let mut text = seeds[rng.random_range(0..seeds.len())].clone();
        mutate(rng, &mut text);
        match Meta::parse(Path::new("a.sigmf-meta"), &text) {
            Ok(meta) => assert_eq!(Meta::parse(Path::new("a.sigmf-meta"), meta.to_json().as_bytes()).ok().as_ref(), Some(&meta), "{what}"),
            Err(error) => decent(what, &error.to_string()),
        }
    });
}

/// Reads to the end in pieces of random size; every sample is there once, and the pieces are what the whole is.
fn read(rng: &mut ChaCha8Rng, what: &str, mut recording: Recording) {
    let channels = recording.channels();
    if recording.select(rng.random_range(0..channels)).is_err() {
        panic!("{what}: a channel is missing");
    }
    let mut pieces = Vec::new();
    let mut buffer = vec![Complex32::default(); 4096];
    loop {
        let size = rng.random_range(1..=buffer.len());
        let gap = recording.gap();
        assert!(gap.is_none_or(|gap| gap.at == recording.position() && gap.length > 0), "{what}");
        match recording.read(&mut buffer[..size]) {
            Ok(0) => break,
            Ok(n) => pieces.extend_from_slice(&buffer[..n]),
            Err(error) => return decent(what, &error.to_string()),
        }
    }
    assert_eq!(pieces.len() as u64, recording.len(), "{what}");
    recording.seek(0).unwrap();
    let whole = recording.read_up_to(usize::MAX).unwrap();
    let bits = |samples: &[Complex32]| samples.iter().map(|z| (z.re.to_bits(), z.im.to_bits())).collect::<Vec<_>>();
    assert!(bits(&whole) == bits(&pieces), "{what}");
    assert!(recording.seek(recording.len() + 1).is_err(), "{what}");
    let _ = recording.warnings();
    let _ = recording.verify();
}

#[test]
fn a_sigmf_recording_is_refused_or_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let seeds = ["plain.sigmf-meta", "gaps.sigmf-meta"].map(corpus);
    rounds("SigMF", |rng, what| {
        let mut meta = seeds[rng.random_range(0..seeds.len())].clone();
        if rng.random_bool(0.8) {
            mutate(rng, &mut meta);
        }
        std::fs::write(at("a.sigmf-meta"), meta).unwrap();
        let frame = [8, 4, 16][rng.random_range(0..3)];
        let bytes: Vec<u8> = (0..frame * rng.random_range(0..200) + usize::from(rng.random_bool(0.1))).map(|_| rng.random()).collect();
        std::fs::write(at("a.sigmf-data"), bytes).unwrap();
        match Recording::open(at("a"), None) {
            Ok(recording) => read(rng, what, recording),
            Err(error) => decent(what, &error.to_string()),
        }
    });
}

#[test]
fn archives_wav_and_raw_samples_are_refused_or_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let seeds = [("a.wav", corpus("tiny.wav")), ("a.sigmf", corpus("tiny.sigmf")), ("a.cs16", vec![1; 400]), ("a.rf32_be", vec![2; 64])];
    rounds("archives, WAV, raw", |rng, what| {
        let (name, mut bytes) = seeds[rng.random_range(0..seeds.len())].clone();
        mutate(rng, &mut bytes);
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        match Recording::open(&path, None) {
            Ok(recording) => read(rng, what, recording),
            Err(error) => decent(what, &error.to_string()),
        }
    });
}

#[test]
fn a_collection_is_refused_or_opens_both_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["tx", "rx"] {
        std::fs::write(at(&format!("{name}.sigmf-meta")), corpus("plain.sigmf-meta")).unwrap();
        std::fs::write(at(&format!("{name}.sigmf-data")), vec![0; 80]).unwrap();
    }
    Pair::tie(at("pair"), at("tx"), at("rx"), Some(1.5), Default::default(), true).unwrap();
    let seed = std::fs::read(at("pair.sigmf-collection")).unwrap();
    rounds("collections", |rng, what| {
        let mut text = seed.clone();
        mutate(rng, &mut text);
        std::fs::write(at("b.sigmf-collection"), text).unwrap();
        match Pair::open(at("b.sigmf-collection")) {
            Ok(pair) => assert!(pair.tx.len() == 10 && pair.rx.len() == 10, "{what}"),
            Err(error) => decent(what, &error.to_string()),
        }
    });
}
