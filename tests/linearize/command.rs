//! `kaflow linearize` as a user runs it.

use std::{fs, path::Path, time::Duration};

use assert_cmd::{Command, cargo::cargo_bin};
use kaflow::{Complex64, iq::Recording};
use serde_json::Value;

use crate::link::*;

#[path = "../common/mod.rs"]
pub mod common;

pub fn kaflow(directory: &Path, arguments: &str) -> assert_cmd::assert::Assert {
    Command::new(cargo_bin!("kaflow")).current_dir(directory).args(arguments.split_whitespace()).timeout(Duration::from_secs(120)).assert()
}

pub fn json(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

pub fn raw(path: impl AsRef<Path>, samples: &[Complex64]) {
    let bytes: Vec<u8> = samples.iter().flat_map(|z| [(z.re as f32).to_le_bytes(), (z.im as f32).to_le_bytes()].concat()).collect();
    fs::write(path, bytes).unwrap();
}

/// The worse side.
pub fn worse(sides: &Value) -> f64 {
    sides[0].as_f64().unwrap().max(sides[1].as_f64().unwrap())
}

pub fn refused(directory: &Path, arguments: &str, word: &str) {
    let output = kaflow(directory, arguments).code(2).get_output().clone();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.trim().lines().count() == 1 && text.contains(word), "{arguments}: {text}");
}

#[test]
fn a_pair_gives_a_predistorter_and_a_second_one_a_better_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let x = ofdm(20, 51);
    raw(at("tx.cf32"), &x);
    raw(at("rx.cf32"), &noisy(&amplifier(&x, true), 45.0, 1));
    kaflow(folder.path(), "linearize tx.cf32 rx.cf32 --rate 1e6 --bandwidth 196e3 --spacing 200e3 --out one --json one.json").success();
    for file in ["predistorter.toml", "predistorter.csv", "amplifier.svg", "spectrum.png"] {
        assert!(at("one").join(file).metadata().unwrap().len() > 500, "{file}");
    }
    let found = json(at("one.json"));
    assert_eq!((&found["schema"], &found["path"]), (&"kaflow/linearize".into(), &"coupler".into()));
    assert!(worse(&found["aclr_before_dbc"]) > -33.0 && worse(&found["aclr_after_dbc"]) < -45.0, "{found}");
    assert!(found["evm_db"].as_f64().unwrap() < found["evm_before_db"].as_f64().unwrap() - 10.0, "{found}");
    assert!(found["peak_growth_db"].as_f64().unwrap() <= 2.001);
    // What is really put out, and learned from again.
    let sent = |name: &str| -> Vec<Complex64> {
        let mut recording = Recording::open(at(name), None).unwrap();
        recording.read_up_to(usize::MAX).unwrap().iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect()
    };
    let first = sent("one/predistorted.sigmf-meta");
    raw(at("z.cf32"), &first);
    raw(at("rx2.cf32"), &noisy(&amplifier(&first, true), 45.0, 2));
    kaflow(folder.path(), "linearize --check z.cf32 rx2.cf32 --rate 1e6 --bandwidth 196e3 --spacing 200e3 --json check.json").success();
    let once = worse(&json(at("check.json"))["aclr_dbc"]);
    assert!((once - aclr(&amplifier(&first, true))).abs() < 2.5 && once < -40.0, "{once}");
    kaflow(folder.path(), "linearize z.cf32 rx2.cf32 --signal tx.cf32 --rate 1e6 --out two --align none").success();
    let twice = aclr(&amplifier(&sent("two/predistorted.sigmf-meta"), true));
    println!("{:.1} dBc without, {once:.1} after one round, {twice:.1} after two", worse(&found["aclr_before_dbc"]));
    assert!(twice < -48.0, "{twice:.1} dBc");
    // Indirect learning, from a good coupler.
    kaflow(folder.path(), "linearize z.cf32 rx2.cf32 --signal tx.cf32 --rate 1e6 --out ila --method indirect --align none").success();
    let indirect = aclr(&amplifier(&sent("ila/predistorted.sigmf-meta"), true));
    assert!(indirect < -43.0, "{indirect:.1} dBc");
}

#[test]
fn over_the_air_the_channel_is_taken_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let x = ofdm(30, 52);
    raw(at("tx.cf32"), &x);
    raw(at("rx.cf32"), &noisy(&fading(&amplifier(&x, false), 1e-5, 3), 30.0, 1));
    kaflow(folder.path(), "linearize tx.cf32 rx.cf32 --align none --memory 0 --out air --json air.json").success();
    let found = json(at("air.json"));
    assert_eq!(found["path"], "air");
    let mut sent = Recording::open(at("air/predistorted.sigmf-meta"), None).unwrap();
    let sent: Vec<_> = sent.read_up_to(usize::MAX).unwrap().iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect();
    let real = aclr(&amplifier(&sent, false));
    println!("over the air, one round: {real:.1} dBc");
    assert!(real < -50.0, "{real:.1} dBc");
    refused(folder.path(), "linearize tx.cf32 rx.cf32 --align none --method indirect --out other", "forward over the air");
}

#[test]
fn what_cannot_be_linearised_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let x = ofdm(10, 53);
    raw(at("tx.cf32"), &x);
    raw(at("rx.cf32"), &amplifier(&x, false));
    raw(at("other.cf32"), &ofdm(10, 54));
    let white: Vec<_> = common::noise(1, 8000);
    raw(at("white.cf32"), &white);
    raw(at("bent.cf32"), &amplifier(&white, false));
    raw(at("short.cf32"), &x[..900]);
    raw(at("short_rx.cf32"), &amplifier(&x[..900], false));
    refused(folder.path(), "linearize white.cf32 bent.cf32 --align none --out d", "at least 3");
    refused(folder.path(), "linearize short.cf32 short_rx.cf32 --align none --out d", "too short");
    refused(folder.path(), "linearize tx.cf32 other.cf32 --align none --out d", "does not follow");
    refused(folder.path(), "linearize tx.cf32 rx.cf32 --align none --out d --peak-growth 50", "--peak-growth");
    refused(folder.path(), "linearize tx.cf32 rx.cf32 --align none", "--out");
    assert!(!at("d").exists(), "what is refused leaves nothing behind");
}

#[test]
fn a_measured_amplifier() {
    let Some(data) = common::shared("data/opendpd_dpa200") else { return };
    let folder = tempfile::tempdir().unwrap();
    for method in ["forward", "indirect"] {
        let arguments = format!("linearize {} --memory 4 --method {method} --out {method} --json {method}.json", data.display());
        kaflow(folder.path(), &arguments).success();
        let found = json(folder.path().join(format!("{method}.json")));
        let (before, after) = (worse(&found["aclr_before_dbc"]), worse(&found["aclr_after_dbc"]));
        println!(
            "opendpd_dpa200, {method}: model {}, ACLR {before:.1} to {after:.1}, EVM {} to {}",
            found["model_nmse_db"], found["evm_before_db"], found["evm_db"]
        );
        // Against the model, not the amplifier; which has precursors that the model lacks.
        assert!(found["model_nmse_db"].as_f64().unwrap() < -28.0 && after < before - 2.0, "{method}: {found}");
    }
}
