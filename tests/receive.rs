//! `kaflow receive` as a user runs it.
#![cfg(feature = "cli")]

use std::path::Path;

use assert_cmd::Command;
use kaflow::Complex32;
use kaflow::iq::sigmf::Meta;
use kaflow::iq::{Datatype, Writer};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

/// What a command prints; it must succeed.
fn kaflow(arguments: &[&str]) -> String {
    let output = Command::cargo_bin("kaflow").unwrap().args(arguments).assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Coded frames through an overdriven amplifier and a channel that stands still.
fn simulate(folder: &Path, more: &[&str]) {
    let mut arguments = vec!["simulate", "--out", folder.to_str().unwrap(), "--preset", "paper", "--doppler", "1e-7", "--samples", "60000"];
    arguments.extend(more);
    kaflow(&arguments);
}

#[test]
fn packets_that_one_tap_loses_are_decoded_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    simulate(folder.path(), &["--code", "1/2", "--ibo-db", "-6", "--snr-db", "25", "--seed", "5"]);
    let rx = folder.path().join("rx.sigmf-meta");
    let (numbers, out) = (folder.path().join("numbers.json"), folder.path().join("out"));
    let run = |more: &[&str]| {
        let mut arguments = vec!["receive", rx.to_str().unwrap(), "--json", numbers.to_str().unwrap(), "--force"];
        arguments.extend(more);
        let text = kaflow(&arguments);
        (text, json(&numbers))
    };
    let (text, found) = run(&["--out", out.to_str().unwrap()]);
    let (_, one_tap) = run(&["--detector", "one-tap"]);
    // 60000 samples hold 53 frames of 1120.
    assert_eq!((found["packets_found"].as_u64(), found["packets_decoded"].as_u64()), (Some(53), Some(53)), "{text}");
    let evm = |v: &Value| v["evm_percent"].as_f64().unwrap();
    assert!(evm(&found) < 15.0 && evm(&found) < 0.8 * evm(&one_tap), "{found} {one_tap}");
    assert!(found["amplifier"]["compression_db"].as_f64().unwrap() > 3.0 && text.contains("dB less gain"), "{text}");
    assert_eq!(found["waveform"]["code"], "1/2");
    for file in ["report.html", "payload.txt", "packets.csv", "constellation.png", "constellation.svg", "amplifier.png"] {
        assert!(out.join(file).metadata().unwrap().len() > 100, "{file}");
    }
    let payload = std::fs::read_to_string(out.join("payload.txt")).unwrap();
    assert!(payload.lines().count() == 53 && payload.lines().all(|line| line.len() == 960 - 38));
    let again =
        Command::cargo_bin("kaflow").unwrap().args(["receive", rx.to_str().unwrap(), "--out", out.to_str().unwrap()]).output().unwrap();
    assert!(again.status.code() == Some(2) && String::from_utf8_lossy(&again.stderr).contains("exists already"));
}

#[test]
fn the_waveform_comes_from_metadata_a_file_or_a_name() {
    let folder = tempfile::tempdir().unwrap();
    simulate(folder.path(), &["--ibo-db", "6", "--snr-db", "30"]);
    let rx = folder.path().join("rx.sigmf-meta").to_str().unwrap().to_owned();
    let scenario = folder.path().join("scenario.toml");
    assert!(kaflow(&["receive", &rx]).contains("kaflow:ofdm in its metadata"));
    assert!(kaflow(&["receive", &rx, "--waveform", scenario.to_str().unwrap()]).contains("53 found"));
    assert!(kaflow(&["receive", &rx, "--waveform", "paper"]).contains("53 found"));
    let wrong = Command::cargo_bin("kaflow").unwrap().args(["receive", &rx, "--waveform", "papper"]).output().unwrap();
    assert!(wrong.status.code() == Some(2) && String::from_utf8_lossy(&wrong.stderr).contains("did you mean 'paper'?"));
    // Other carriers have another preamble: no packet, and the reason why.
    let other = folder.path().join("other.toml");
    std::fs::write(&other, "fft = 256\nactive = 200\npilots = []\n").unwrap();
    let text = kaflow(&["receive", &rx, "--waveform", other.to_str().unwrap()]);
    assert!(text.contains("0 found") && text.contains("repeats every 64 samples") && text.contains("best correlation"), "{text}");
}

#[test]
fn a_recording_without_packets_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let path = folder.path().join("noise");
    let mut writer = Writer::create(&path, Meta::new(Datatype::CF32_LE, Some(5e6)), false).unwrap();
    let noise: Vec<_> = (0..50_000).map(|_| Complex32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect();
    writer.write(&noise).unwrap();
    writer.finish().unwrap();
    let numbers = folder.path().join("numbers.json");
    let text = kaflow(&["receive", path.with_extension("sigmf-meta").to_str().unwrap(), "--json", numbers.to_str().unwrap()]);
    assert!(
        text.contains("0 found") && text.contains("best correlation of the short training 0.") && text.contains("the recording has 5 MS/s")
    );
    let found = json(&numbers);
    assert_eq!((found["packets_found"].as_u64(), found["packets_decoded"].as_u64()), (Some(0), Some(0)));
    assert!(found["evm_percent"].is_null());
}

#[test]
fn the_frames_of_a_station_are_recognised_without_being_told() {
    let rx = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/wifi80211a_6mbps/rx.sigmf-meta");
    if !rx.exists() {
        println!("SKIPPED: {} is not there", rx.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let numbers = folder.path().join("numbers.json");
    let text = kaflow(&["receive", rx.to_str().unwrap(), "--json", numbers.to_str().unwrap()]);
    let found = json(&numbers);
    assert_eq!(found["packets_found"].as_u64(), Some(10), "{text}");
    assert!(found["signals"].as_array().unwrap().iter().all(|s| s["mbps"] == 6), "{text}");
    assert!((found["carrier_offset_hz"].as_f64().unwrap() + 35_300.0).abs() < 500.0, "{text}");
}
