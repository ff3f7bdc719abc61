//! The simulated radio among other people's programs: each is tried where it is installed, and skipped aloud where it is not.
#![cfg(all(feature = "soapy", feature = "cli"))]

mod remote;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use kaflow::radio::DRIVER;

/// The folder with the plug-in, built once.
static PLUG_IN: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--features", "soapy", "--example", "kaflow_testbed_module", "--target-dir"]).arg(profile.parent().unwrap());
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let built = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let directory = tempfile::tempdir().unwrap();
    let name = format!("{}kaflow_testbed_module{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    std::fs::copy(profile.join("examples").join(&name), directory.path().join(&name)).unwrap();
    directory
});

fn in_tests(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name).to_string_lossy().into_owned()
}

/// What a program says with the plug-in in its path, in the folder that is given, and whether it ended well; what is missing where it cannot run.
fn attempt(program: &str, arguments: &[&str], folder: &Path) -> Result<(String, bool), String> {
    let found = Command::new(program).args(arguments).env("SOAPY_SDR_PLUGIN_PATH", PLUG_IN.path()).current_dir(folder).output();
    let output = found.map_err(|_| format!("{program} is not installed"))?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match text.lines().find(|line| line.contains("No module named")) {
        Some(missing) => Err(format!("{program} {arguments:?}: {missing}")),
        None => Ok((text, output.status.success())),
    }
}

/// What a program says; none, and a loud word, where it is not installed.
fn run(program: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    settle(attempt(program, arguments, folder), arguments)
}

fn settle(attempt: Result<(String, bool), String>, arguments: &[&str]) -> Option<String> {
    let (text, well) = attempt.inspect_err(|missing| println!("SKIPPED: {missing}")).ok()?;
    assert!(well, "{arguments:?}: {text}");
    Some(text)
}

/// Runs a script with the first Python that has what it imports: SoapySDR and GNU Radio belong to the system's own, which need not be the first in the path.
fn python(script: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    let arguments: Vec<&str> = std::iter::once(&script).chain(arguments).copied().collect();
    settle(attempt("python3", &arguments, folder).or_else(|_| attempt("/usr/bin/python3", &arguments, folder)), &arguments)
}

/// Runs a script that says "ok" when all is well. Other drivers have much to say when they are asked for devices.
fn script(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    if let Some(text) = python(&in_tests(name), &[], folder.path()) {
        assert!(text.lines().any(|line| line == "ok"), "{text}");
    }
}

fn kaflow(arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kaflow")).args(arguments).current_dir(folder).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

/// The NMSE in dB of a filter in a report that kaflow wrote.
fn nmse_db(report: &Path, filter: &str) -> f64 {
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let filters = report["filters"].as_array().unwrap_or_else(|| panic!("no filters in {report}"));
    filters.iter().find(|f| f["name"] == filter).unwrap()["nmse_db"].as_f64().unwrap()
}

#[test]
fn soapy_sdr_util_finds_it_probes_it_and_measures_its_rate() {
    let folder = tempfile::tempdir().unwrap();
    // A program that only enumerates finds it too.
    for find in ["--find".to_owned(), format!("--find=driver={DRIVER}")] {
        if let Some(text) = run("SoapySDRUtil", &[&find], folder.path()) {
            assert!(text.contains("driver = kaflow-testbed"), "{text}");
        }
    }
    if let Some(text) = run("SoapySDRUtil", &[&format!("--probe=driver={DRIVER}")], folder.path()) {
        for expected in [
            "4 Rx, 4 Tx",
            "Timestamps: YES",
            "Full-duplex: YES",
            "CF32, CS16, CS8",
            "[70, 6000] MHz",
            "61.44",
            "doppler_hz",
            "bufflen",
            "gap_samples",
            "taps_tx0",
        ] {
            assert!(text.contains(expected), "no '{expected}' in\n{text}");
        }
    }
    // It measures until it is interrupted.
    for direction in ["RX", "TX"] {
        let arguments = format!("--args=driver={DRIVER}");
        let measure = ["--signal=INT", "7", "SoapySDRUtil", &arguments, "--rate=1e6", &format!("--direction={direction}")];
        let measured = attempt("timeout", &measure, folder.path()).ok().filter(|(text, _)| !text.starts_with("timeout: failed to run"));
        if let Some((text, _)) = measured {
            let rate = text.split_once(" Msps").and_then(|(before, _)| {
                let number = |c: char| c.is_ascii_digit() || c == '.';
                before.rsplit(|c: char| !number(c)).next()?.parse::<f64>().ok()
            });
            // How fast a loaded machine is, is no matter here.
            assert!(rate.is_some_and(|rate| rate > 0.1 && rate < 1.5), "{direction}: {text}");
        }
    }
}

#[test]
fn python_sends_a_tone_and_measures_its_frequency_and_delay() {
    script("soapy_loopback.py");
    script("soapy_client.py");
}

#[test]
fn gnu_radio_sends_receives_and_changes_settings() {
    script("gnu_radio.py");
}

#[test]
fn gr_osmosdr_opens_it() {
    script("gr_osmosdr.py");
}

#[test]
fn rtl_433_listens_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let device = format!("driver={DRIVER}");
    let listen = ["-d", &device, "-f", "433.92M", "-g", "20", "-t", "doppler_hz=4,snr_db=20", "-T", "2"];
    if let Some(text) = run("rtl_433", &listen, folder.path()) {
        for expected in ["Setting doppler_hz to 4", "Tuner gain set to 20", "Tuned to 433.920MHz", "Time expired"] {
            assert!(text.contains(expected), "no '{expected}' in\n{text}");
        }
    }
}

/// What GNU Radio has recorded, kaflow tracks.
fn track(folder: &Path) {
    kaflow(
        &["track", "tx.cf32", "rx.cf32", "--format", "cf32_le", "--rate", "1e6", "--trim", "--filter", "ensemble", "--json", "run.json"],
        folder,
    );
    // Noise lies 30 dB below a saturated amplifier; a linear filter stays near -16 dB.
    let nmse_db = nmse_db(&folder.join("run.json"), "ensemble");
    assert!(nmse_db < -20.0, "{nmse_db}");
}

#[test]
fn the_gnu_radio_example_runs_as_a_script_and_from_the_companion() {
    let folder = tempfile::tempdir().unwrap();
    let example = |name: &str| -> PathBuf { Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/gnuradio").join(name) };
    if python(&example("testbed.py").to_string_lossy(), &["--samples", "300000"], folder.path()).is_some() {
        track(folder.path());
    }
    let folder = tempfile::tempdir().unwrap();
    if run("grcc", &["-o", ".", &example("testbed.grc").to_string_lossy()], folder.path()).is_some() {
        python("testbed.py", &[], folder.path()).expect("what grcc has written runs where grcc does");
        track(folder.path());
    }
}
