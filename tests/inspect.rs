//! `kaflow inspect` as a user runs it.
#![cfg(feature = "cli")]

use std::f32::consts::TAU;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use kaflow::Complex32;
use kaflow::iq::sigmf::Meta;
use kaflow::iq::{Datatype, Pair, Writer};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use tempfile::TempDir;

fn kaflow(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("kaflow").unwrap();
    command.arg("inspect").args(arguments);
    command
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A tone of amplitude 0.5 at a quarter of the rate, with DC, and 40 samples missing in the middle.
fn tone(path: &Path) {
    let mut meta = Meta::new(Datatype::CF32_LE, Some(1e6));
    meta.captures[0].frequency = Some(433.92e6);
    let mut writer = Writer::create(path, meta, false).unwrap();
    let samples: Vec<_> = (0..8192).map(|n| Complex32::from_polar(0.5, 0.25 * TAU * n as f32) + 0.1).collect();
    writer.write(&samples[..4096]).unwrap();
    writer.gap(40).unwrap();
    writer.write(&samples[4096..]).unwrap();
    writer.finish().unwrap();
}

fn noise(n: usize, seed: u64) -> Vec<Complex32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| Complex32::from_polar((-(1.0 - rng.random::<f32>()).ln()).sqrt(), TAU * rng.random::<f32>())).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn numbers_are_those_of_the_signal() {
    let dir = TempDir::new().unwrap();
    let (recording, numbers) = (dir.path().join("tone"), dir.path().join("numbers.json"));
    tone(&recording);
    let output = kaflow(&[text(&recording), "--verify", "--json", text(&numbers)]).assert().success();
    let printed = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    for expected in [
        "SigMF, cf32_le, 1 channel",
        "1 MS/s",
        "8.192 ms, 8192 samples",
        "433.92 MHz",
        "2, 1 gap: 40 samples missing before sample 4096",
        "right",
    ] {
        assert!(printed.contains(expected), "{printed} lacks {expected}");
    }
    let found = json(&numbers);
    let number = |key: &str| found[key].as_f64().unwrap();
    assert!((number("power") - 0.26).abs() < 1e-4, "{found}");
    assert!((number("peak") - 0.6).abs() < 1e-4, "{found}");
    assert!((number("papr_db") - 10.0 * (0.36_f64 / 0.26).log10()).abs() < 1e-2, "{found}");
    assert!((found["dc"][0].as_f64().unwrap() - 0.1).abs() < 1e-4, "{found}");
    assert_eq!((found["missing"].as_u64(), found["gaps"][0]["at"].as_u64()), (Some(40), Some(4096)));
    let occupied = found["occupied"].as_array().unwrap();
    assert!(occupied[0].as_f64().unwrap().abs() < 3e3 && (occupied[1].as_f64().unwrap() - 250e3).abs() < 3e3, "{found}");
}

#[test]
fn clipping_is_told_from_its_absence() {
    let dir = TempDir::new().unwrap();
    for (name, datatype, scale, limit, rails, envelope) in [
        ("free", "cf32_le", 0.3, f32::MAX, false, false),
        ("polar", "cf32_le", 0.3, 0.4, false, true),
        ("overdriven", "ci16_le", 0.5, f32::MAX, true, false),
        ("quantised", "ci8", 0.15, f32::MAX, false, false),
    ] {
        let path = dir.path().join(name);
        let samples: Vec<_> = noise(50_000, 1).iter().map(|z| z * scale).map(|z| z * (limit / z.norm()).min(1.0)).collect();
        let mut writer = Writer::create(&path, Meta::new(datatype.parse().unwrap(), None), false).unwrap();
        writer.write(&samples).unwrap();
        writer.finish().unwrap();
        let numbers = dir.path().join("n.json");
        kaflow(&[text(&path), "--json", text(&numbers), "--force"]).assert().success();
        let found = json(&numbers);
        let counts = (found["clipping"]["rails"].as_u64().unwrap(), found["clipping"]["envelope"].as_u64().unwrap());
        assert_eq!((counts.0 > 100, counts.1 > 100), (rails, envelope), "{name}: {counts:?}");
        assert!(rails || counts.0 == 0, "{name}: {counts:?}");
    }
}

#[test]
fn pictures_are_drawn() {
    let dir = TempDir::new().unwrap();
    let recording = dir.path().join("tone");
    tone(&recording);
    let picture = dir.path().join("all");
    kaflow(&[text(&recording), "--plot", text(&picture)]).assert().success();
    assert!(fs::read(dir.path().join("all.png")).unwrap().starts_with(b"\x89PNG"));
    let svg = fs::read_to_string(dir.path().join("all.svg")).unwrap();
    assert_eq!(svg.matches("class=\"panel\"").count(), 4);
    kaflow(&[text(&recording), "--plot", text(&picture)]).assert().code(2);
    for kind in ["spectrogram", "psd", "constellation", "envelope"] {
        let picture = dir.path().join(kind).with_extension("svg");
        kaflow(&[text(&recording), "--plot", text(&picture), "--show", kind]).assert().success();
        assert_eq!(fs::read_to_string(&picture).unwrap().matches("class=\"panel\"").count(), 1, "{kind}");
    }
}

#[test]
fn raw_files_need_a_format_and_take_a_rate() {
    let dir = TempDir::new().unwrap();
    let raw = dir.path().join("capture.bin");
    fs::write(&raw, [128_u8; 4000]).unwrap();
    let numbers = dir.path().join("n.json");
    let complaint = |arguments: &[&str]| {
        let output = kaflow(arguments).assert().code(2);
        let text = String::from_utf8(output.get_output().stderr.clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    };
    assert!(complaint(&[text(&raw)]).contains("--format"));
    assert!(complaint(&[text(&raw), "--format", "wav"]).contains("not a WAV file"));
    assert!(complaint(&[text(&raw), "--format", "cu8", "--channel", "1"]).contains("channel must be below 1"));
    assert!(complaint(&[text(&raw), "--format", "cu8", "--rate", "-1"]).contains("rate must be"));
    assert!(complaint(&[text(&dir.path().join("none.sigmf-meta"))]).contains("none.sigmf-meta"));
    kaflow(&[text(&raw), "--format", "cu8", "--rate", "250e3", "--channels", "2", "--channel", "1", "--json", text(&numbers)])
        .assert()
        .success();
    let found = json(&numbers);
    assert_eq!((found["samples"].as_u64(), found["duration"].as_f64(), found["power"].as_f64()), (Some(1000), Some(0.004), Some(0.0)));
}

#[test]
fn hardly_anything_is_still_a_recording() {
    let dir = TempDir::new().unwrap();
    for (n, bytes) in [(0, vec![]), (1, vec![200_u8; 2]), (20, vec![7; 40])] {
        let raw = dir.path().join("few.cu8");
        fs::write(&raw, bytes).unwrap();
        let output = kaflow(&[text(&raw), "--plot", text(&dir.path().join(format!("few{n}.svg")))]).assert().success();
        assert!(String::from_utf8_lossy(&output.get_output().stdout).contains(&format!("{n} sample")));
    }
    let nan = dir.path().join("nan.cf32");
    fs::write(&nan, f32::NAN.to_le_bytes().repeat(200)).unwrap();
    let output = kaflow(&[text(&nan), "--plot", text(&dir.path().join("nan.svg"))]).assert().success();
    assert!(String::from_utf8_lossy(&output.get_output().stdout).contains("100 samples, the first at 0"));
}

#[test]
fn a_pair_is_inspected_with_its_alignment() {
    let dir = TempDir::new().unwrap();
    let samples = noise(20_000, 3);
    for (name, skip) in [("tx", 0), ("rx", 123)] {
        let mut writer = Writer::create(dir.path().join(name), Meta::new(Datatype::CF32_LE, Some(20e6)), false).unwrap();
        writer.write(&samples[skip..]).unwrap();
        writer.finish().unwrap();
    }
    let at = |name: &str| dir.path().join(name);
    let collection = Pair::tie(at("pair"), at("tx"), at("rx"), Some(-123.0), Default::default(), false).unwrap();
    let numbers = at("n.json");
    let output = kaflow(&[text(&collection), "--json", text(&numbers)]).assert().success();
    assert!(String::from_utf8_lossy(&output.get_output().stdout).contains("known delay  -123 samples"));
    let found = json(&numbers);
    assert!((found["alignment"]["delay"].as_f64().unwrap() + 123.0).abs() < 0.01, "{found}");
    assert_eq!(found["known_delay"].as_f64(), Some(-123.0));
}

#[cfg(unix)]
#[test]
fn a_reader_who_goes_away_is_no_error() {
    let folder = TempDir::new().unwrap();
    let (file, json) = (folder.path().join("a.sigmf-meta"), folder.path().join("a.json"));
    tone(&file);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("kaflow"));
    let run = command.args(["inspect", text(&file), "--json", text(&json)]).stdout(writer).stderr(std::process::Stdio::piped());
    let result = run.spawn().unwrap().wait_with_output().unwrap();
    assert!(result.status.success() && result.stderr.is_empty(), "{}", String::from_utf8_lossy(&result.stderr));
    assert!(fs::read_to_string(json).unwrap().contains("power"), "the file is written all the same");
}
