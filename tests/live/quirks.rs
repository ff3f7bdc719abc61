//! `kaflow live` with what real drivers do, against a quiet run: within half a decibel after recovery.

use std::process::{Command, Stdio};

use serde_json::Value as Json;

/// Runs the command on the simulated radio with a quirk; gives how it ended, what it said and what it wrote.
fn live(quirk: &str, seconds: &str) -> (bool, String, Option<Json>) {
    live_with(quirk, seconds, &[])
}

fn live_with(quirk: &str, seconds: &str, arguments: &[&str]) -> (bool, String, Option<Json>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("found.json");
    let device = format!("driver=kaflow-testbed,pace=fast,taps=2,doppler_hz=20,snr_db=30,{quirk}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kaflow"));
    command.args(["live", "--device", &device, "--rate", "5e6", "--seconds", seconds, "--tx-gain", "46", "--rx-gain", "28"]);
    command.args(["--filter", "nlms", "--skip", "500000"]).args(arguments).arg("--json").arg(&path).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let found = std::fs::read_to_string(&path).ok().map(|text| serde_json::from_str(&text).unwrap());
    (output.status.success(), text, found)
}

fn nmse_db(quirk: &str) -> f64 {
    let (ok, text, found) = live(quirk, "0.8");
    assert!(ok, "{quirk}: {text}");
    found.unwrap()["filters"][0]["nmse_db"].as_f64().unwrap()
}

fn as_good_as_quiet(quirks: &[&str], within_db: f64) {
    let quiet = nmse_db("seed=1");
    let found: Vec<f64> = quirks.iter().map(|quirk| nmse_db(quirk)).collect();
    println!("quiet {quiet:.2}, {quirks:?}: {found:.2?} dB");
    assert!(found.iter().all(|nmse| nmse - quiet < within_db), "quiet {quiet:.2} dB; {quirks:?}: {found:.2?} dB");
}

#[test]
fn short_reads_and_stalls_cost_nothing() {
    as_good_as_quiet(&["short_reads=362", "stall_every=100000,stall=3"], 0.5);
}

#[test]
fn stamps_that_are_missing_or_scatter_cost_nothing() {
    as_good_as_quiet(&["time_stamps=none", "time_stamps=alternate", "time_jitter=0.3", "time_jitter=40"], 0.5);
}

#[test]
fn losses_that_are_told_cost_nothing_after_recovery() {
    as_good_as_quiet(
        &[
            "overflow_every=1000000,overflow_length=777",
            "jump_every=1000000,jump=1",
            "jump_every=1000000,jump=3",
            "jump_every=1000000,jump=300",
        ],
        0.5,
    );
    as_good_as_quiet(&["overflow_every=1000000,overflow_length=777,time_stamps=alternate", "time_stamps=none,overflow_every=1000000"], 0.5);
}

#[test]
fn slips_that_nothing_tells_are_found() {
    let slips = ["slip=1", "slip=2", "slip=3", "slip=4", "slip=300"].map(|slip| format!("slip_every=1500000,{slip}"));
    as_good_as_quiet(&slips.each_ref().map(String::as_str), 0.5);
    let blind = slips.map(|slip| format!("{slip},time_stamps=none"));
    as_good_as_quiet(&blind.each_ref().map(String::as_str), 0.5);
}

#[test]
fn packets_that_are_late_cost_nothing_after_recovery() {
    as_good_as_quiet(&["late_every=1500000,late_length=4096", "late_every=1500000,late_length=4096,time_stamps=none"], 0.5);
}

#[test]
fn a_carrier_and_a_slow_clock_cost_nothing() {
    as_good_as_quiet(&["carrier_offset_hz=2000", "sample_offset_ppm=5"], 0.5);
}

#[test]
fn two_clocks_cost_a_decibel_at_most() {
    as_good_as_quiet(&["sample_offset_ppm=10", "sample_offset_ppm=-20"], 1.0);
    as_good_as_quiet(&["sample_offset_ppm=50,carrier_offset_hz=2000", "sample_offset_ppm=-50,carrier_offset_hz=-2000"], 1.0);
}

#[test]
fn a_radio_that_falls_silent_ends_the_run_with_its_report_and_an_error() {
    for quirk in ["hang_after=3000000", "stall_every=3000000,stall=1000000000"] {
        let (ok, text, found) = live(quirk, "5");
        assert!(!ok && text.contains("has brought nothing for 2 s") && text.contains("NMSE dB"), "{quirk}: {text}");
        let samples = found.unwrap()["filters"][0]["samples"].as_u64().unwrap();
        assert!((2_000_000..=3_000_000).contains(&samples), "{quirk}: {samples}");
    }
}

#[test]
fn a_radio_that_comes_back_goes_on_behind_a_gap_and_the_samples_add_up() {
    // Gone after 1,500,000 samples, again and again.
    let (ok, text, found) = live_with("vanish_after=1500000", "0.8", &["--reconnect", "5"]);
    let found = found.unwrap();
    assert!(ok && text.contains("reconnects: "), "{text}");
    let count = |name: &str| found[name].as_u64().unwrap();
    let (tracked, radio) = (found["filters"][0]["samples"].as_u64().unwrap(), &found["radio"]);
    assert_eq!(tracked + count("doubtful_samples") + count("rim_samples"), 4_000_000, "{text}");
    // Two gaps lie in what was asked for, and the driver may have read on.
    let returns = radio["reconnects"].as_f64().unwrap();
    assert!(returns >= 2.0 && radio["gaps"] == radio["unknown_gaps"] && radio["gaps"] == returns, "{radio}");
    assert_eq!(found["alignment"]["searches"], 3, "{text}");
    let quiet = nmse_db("seed=1");
    assert!(found["filters"][0]["nmse_db"].as_f64().unwrap() - quiet < 0.5, "quiet {quiet:.2} dB: {text}");
    // One that only brings nothing any more comes back as well.
    let (ok, text, _) = live_with("stall_every=2000000,stall=1000000000", "0.8", &["--reconnect", "5", "--timeout", "0.3"]);
    assert!(ok && text.contains("reconnects: "), "{text}");
    let (ok, text, _) = live_with("hang_after=2000000", "5", &["--reconnect", "1", "--timeout", "0.3"]);
    assert!(!ok && text.contains("has brought nothing for 0.3 s") && text.contains("NMSE dB"), "{text}");
}

#[test]
fn what_cannot_be_is_said_at_the_start() {
    let refused = |arguments: &[&str], words: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_kaflow")).arg("live").args(arguments).stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(words), "{arguments:?}: {text}");
    };
    let device = "driver=kaflow-testbed,pace=fast";
    refused(&["--device", device, "--queue", "99999999999"], "queue must be between 1 and");
    refused(&["--device", device, "--rx-gain", "frequency=5.3e9"], "unknown gain element 'frequency'");
    refused(&["--device", "driver=kaflow-testbed,half_duplex=true"], "half duplex: it cannot transmit and receive at the same time");
    for (old, new) in [("snr", "snr_db"), ("cfo", "carrier_offset_hz"), ("ppm", "sample_offset_ppm")] {
        refused(&["--device", &format!("{device},{old}=3")], &format!("unknown device argument '{old}'"));
        refused(&["--device", &format!("{device},{old}=3")], new);
    }
}
