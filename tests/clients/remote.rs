//! Radio here, processing there: `kaflow live` with the simulated radio of a SoapySDRServer.

use std::path::Path;
use std::process::Command;

use super::{PLUG_IN, in_tests, kaflow, nmse_db};

const SERVER: &str = "driver=remote,remote=tcp://127.0.0.1:55132";
const CHANNEL: [&str; 4] = ["driver=kaflow-testbed", "pace=fast", "snr_db=30", "doppler_hz=20"];
const RUN: [&str; 8] = ["--rate", "1e6", "--seconds", "2", "--filter", "ensemble", "--json", "run.json"];

/// Runs kaflow beside a server, with a command after a few seconds where one is given; what it says, and its exit code; none where a server cannot be had.
fn beside_server(arguments: &[&str], folder: &Path, mishap: Option<&str>) -> Option<(String, Option<i32>)> {
    for (program, package) in [
        ("SoapySDRServer", "soapyremote-server"),
        ("dbus-daemon", "dbus-daemon"),
        ("avahi-daemon", "avahi-daemon"),
        ("unshare", "util-linux"),
        ("ip", "iproute2"),
    ] {
        if Command::new(program).arg("--version").output().is_err() {
            println!("SKIPPED: SoapyRemote: {program} is not installed (package {package})");
            return None;
        }
    }
    if !Command::new("unshare").args(["-nm", "true"]).output().is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: SoapyRemote: this user can have no network of its own (unshare -nm)");
        return None;
    }
    let mut server = Command::new("unshare");
    server.args(["-nm", "bash", &in_tests("remote.sh"), env!("CARGO_BIN_EXE_kaflow")]).args(arguments);
    server.envs(mishap.map(|command| ("KAFLOW_MISHAP", command)));
    let output = server.env("SOAPY_SDR_PLUGIN_PATH", PLUG_IN.path()).current_dir(folder).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if text.contains("no match") && !text.contains("SoapyRemote") {
        println!("SKIPPED: SoapyRemote: the client's side is not installed (package soapysdr-module-remote)");
        return None;
    }
    Some((text, output.status.code()))
}

/// The device argument for the server's radio.
fn device(channel: &[&str]) -> String {
    let remote: Vec<String> = channel.iter().map(|argument| format!("remote:{argument}")).collect();
    format!("{SERVER},{}", remote.join(","))
}

#[test]
fn a_radio_at_another_host_gives_the_figures_of_one_that_is_here() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Over TCP nothing is lost. Without a pace the radio waits for the network and for the filter, however slow the machine is.
    let device = device(&CHANNEL);
    let run = [&["live", "--device", &device], &RUN[..]].concat();
    let Some((text, code)) = beside_server(&run, there.path(), None) else { return };
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("0 overflows, 0 underflows, 0 time errors"), "{text}");
    assert!(text.contains("0 gaps"), "{text}");
    // The plug-in in the path is the server's: kaflow has its own, and does not mind.
    assert!(!text.contains("duplicate entry"), "{text}");
    kaflow(&[&["live", "--device", &CHANNEL.join(",")], &RUN[..]].concat(), here.path());
    let (here, there) = (nmse_db(&here.path().join("run.json"), "ensemble"), nmse_db(&there.path().join("run.json"), "ensemble"));
    assert!(here < -24.0 && (here - there).abs() < 0.5, "{here} dB here, {there} dB there");
}

#[test]
fn a_host_that_dies_ends_the_run_with_an_error_and_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let device = device(&CHANNEL);
    let run = ["live", "--device", &device, "--rate", "1e6", "--seconds", "600", "--filter", "nlms", "--json", "run.json"];
    let Some((text, code)) = beside_server(&run, folder.path(), Some("kill -9 $server")) else { return };
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("is the radio, or the host that it is at, still there?") || text.contains("has disappeared"), "{text}");
    assert!(nmse_db(&folder.path().join("run.json"), "nlms") < -3.0, "{text}");
}

#[test]
fn a_network_that_is_away_is_waited_for_and_the_gap_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    // Samples that take their time, so that the network is away in the middle of them.
    let device = device(&[CHANNEL[0], CHANNEL[2], CHANNEL[3]]);
    let mut run = vec!["live", "--device", &device, "--rate", "2e5", "--seconds", "25", "--reconnect", "60", "--timeout", "1"];
    run.extend(["--filter", "nlms", "--json", "run.json"]);
    let away = "ip link set lo down; sleep 4; ip link set lo up";
    let Some((text, code)) = beside_server(&run, folder.path(), Some(away)) else { return };
    assert_eq!(code, Some(0), "{text}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
    assert_eq!((&report["radio"]["reconnects"], &report["radio"]["unknown_gaps"]), (&1.into(), &1.into()), "{text}");
    assert!(nmse_db(&folder.path().join("run.json"), "nlms") < -3.0, "{text}");
}

#[test]
fn a_host_that_dies_and_is_started_again_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let device = device(&[CHANNEL[0], CHANNEL[2], CHANNEL[3]]);
    let mut run = vec!["live", "--device", &device, "--rate", "2e5", "--seconds", "25", "--reconnect", "60", "--timeout", "1"];
    run.extend(["--filter", "nlms", "--json", "run.json"]);
    let killed = "kill -9 $server; sleep 3; exec timeout 100 SoapySDRServer --bind=tcp://127.0.0.1:55132 >/dev/null 2>&1";
    let Some((text, code)) = beside_server(&run, folder.path(), Some(killed)) else { return };
    assert_eq!(code, Some(0), "{text}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.path().join("run.json")).unwrap()).unwrap();
    // On a machine that is busy, a second of silence may be taken for another loss.
    for counted in ["reconnects", "unknown_gaps"] {
        assert!(report["radio"][counted].as_f64().is_some_and(|n| n >= 1.0), "{counted}: {text}");
    }
    assert!(nmse_db(&folder.path().join("run.json"), "nlms") < -3.0, "{text}");
}

#[test]
#[ignore = "takes two minutes of real time, and two cores that have nothing else to do"]
fn paced_at_4_ms_a_second_in_both_directions_nothing_is_lost_in_a_minute() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let channel = [CHANNEL[0], CHANNEL[2], CHANNEL[3]];
    let run = ["--rate", "4e6", "--seconds", "60", "--filter", "nlms", "--json", "run.json"];
    let Some((text, code)) = beside_server(&[&["live", "--device", &device(&channel)], &run[..]].concat(), there.path(), None) else {
        return;
    };
    assert!(code == Some(0) && text.contains("0 overflows, 0 underflows, 0 time errors") && text.contains(" 0 gaps"), "{text}");
    kaflow(&[&["live", "--device", &channel.join(",")], &run[..]].concat(), here.path());
    let (here, there) = (nmse_db(&here.path().join("run.json"), "nlms"), nmse_db(&there.path().join("run.json"), "nlms"));
    println!("{here:.2} dB here, {there:.2} dB there");
    assert!((here - there).abs() < 0.5, "{here} dB here, {there} dB there");
}
