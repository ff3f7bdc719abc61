//! The command, from outside.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kaflow::iq::{Pair, Recording};
use serde_json::Value as Json;

fn kaflow(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kaflow"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn output(arguments: &[&str]) -> (bool, String) {
    let output = kaflow(arguments).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

fn json(path: &Path) -> Json {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

const FAST: &str = "driver=kaflow-testbed,pace=fast,doppler_hz=500,overflow_every=100000";

#[test]
fn the_command_writes_reports_and_a_recording_that_tracks_to_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (pair, live, again, out) = (at("pair"), at("live.json"), at("again.json"), at("report"));
    let filters = ["--filter", "nlms", "--filter", "fklms", "--budget", "50"];
    let mut arguments = vec!["live", "--device", FAST, "--rate", "5e6", "--seconds", "0.1", "--tx-gain", "50", "--rx-gain", "28"];
    arguments.extend(["--record", &pair, "--json", &live, "--out", &out]);
    arguments.extend(filters);
    let (ok, text) = output(&arguments);
    assert!(ok && text.contains(" overflows") && !text.contains(" 0 overflows"), "{text}");
    assert!(Path::new(&out).join("report.html").exists());
    let mut arguments = vec!["track", &pair, "--json", &again];
    arguments.extend(filters);
    let (ok, text) = output(&arguments);
    assert!(ok, "{text}");
    let errors = |path: &str| -> Vec<f64> {
        json(Path::new(path))["filters"].as_array().unwrap().iter().map(|f| f["nmse_db"].as_f64().unwrap()).collect()
    };
    let found = json(Path::new(&live));
    let (live, again) = (errors(&live), errors(&again));
    assert!(live.len() == 2 && live.iter().zip(&again).all(|(a, b)| (a - b).abs() < 0.01), "{live:?} and {again:?}");
    // The recording is what was received: every gap a capture of its own, each with its time.
    let mut pair = Pair::open(&pair).unwrap();
    assert!(pair.verify().unwrap() && pair.tx.len() < 10_000 && pair.rx.len() > 400_000);
    let captures = &pair.rx.meta().captures;
    assert!(captures.len() > 3 && captures.iter().all(|c| c.datetime.is_some() && c.extra.contains_key("kaflow:time_ns")), "{captures:?}");
    assert_eq!(pair.rx.gaps().map(|gap| gap.length).sum::<u64>(), found["gap_samples"].as_u64().unwrap());
    assert!(pair.rx.meta().global.extra["core:hw"].as_str().unwrap().contains("kaflow-testbed"));
    // The report tells what was found and what was read back.
    assert!(found["alignment"]["method"] == "follow" && found["alignment"]["carrier_hz"].is_number(), "{found}");
    let level = found["signal"]["level_dbfs"].as_f64().unwrap();
    assert!((-40.0..-5.0).contains(&level) && found["signal"]["clipped_samples"] == 0, "{found}");
    assert!(found["tx"]["gain_db"] == 50.0 && found["rx"]["gain_db"] == 28.0 && found["rate_hz"] == 5e6, "{found}");
    assert!(found["signal"]["snr_db"].as_f64().unwrap() > 5.0 && found["signal"]["evm_percent"].is_number(), "{found}");
}

fn recorded(folder: &Path) -> u64 {
    Recording::open(folder.join("rx.sigmf-meta"), None).unwrap().len()
}

/// The error of the first filter that `track` finds in a recording, without further options.
fn tracked(pair: &Path) -> f64 {
    let path = pair.join("again.json");
    let (ok, text) = output(&["track", &pair.to_string_lossy(), "--filter", "nlms", "--json", &path.to_string_lossy(), "--force"]);
    assert!(ok, "{text}");
    json(&path)["filters"][0]["nmse_db"].as_f64().unwrap()
}

#[test]
fn a_killed_run_leaves_a_recording_that_tracks_to_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.json");
    let command = ["live", "--device", FAST, "--rate", "1e6", "--filter", "nlms"];
    let (ok, text) = output(&[&command[..], &["--seconds", "2", "--json", &whole.to_string_lossy()]].concat());
    assert!(ok, "{text}");
    let expected = json(&whole)["filters"][0]["nmse_db"].as_f64().unwrap();
    for samples in [1_500_000, 2_100_000, 2_900_000] {
        let pair = folder.path().join(samples.to_string());
        let mut run = kaflow(&[&command[..], &["--record", &pair.to_string_lossy()]].concat()).stderr(Stdio::null()).spawn().unwrap();
        let data = pair.join("rx.sigmf-data");
        let began = Instant::now();
        while std::fs::metadata(&data).map_or(0, |m| m.len()) < 8 * samples && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        run.kill().unwrap();
        run.wait().unwrap();
        // All but the last second.
        let written = std::fs::metadata(&data).unwrap().len() / 8;
        assert!(recorded(&pair) + 1_000_000 >= written && written >= samples, "{} of {written}", recorded(&pair));
        let found = tracked(&pair);
        assert!((found - expected).abs() < 0.5, "{found} dB in {} samples, live {expected} dB", recorded(&pair));
    }
}

#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_run_with_an_error_and_leaves_a_valid_recording() {
    let folder = tempfile::tempdir().unwrap();
    let pair = folder.path().join("pair");
    // A limit on the size of files, in blocks of 512 bytes, that is reported instead of killing.
    let script = format!(
        "trap '' XFSZ; ulimit -f 40000; exec {} live --device {FAST} --rate 1e6 --record {} --filter nlms",
        env!("CARGO_BIN_EXE_kaflow"),
        pair.display()
    );
    let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("sigmf-data"), "{text}");
    // All but the last second of the 20,480,000 bytes that there was room for.
    assert!(recorded(&pair) >= 2_560_000 - 1_000_000, "{}", recorded(&pair));
    assert!(tracked(&pair) < -5.0);
}

#[test]
fn a_sweep_of_the_drive_shows_compression() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let device = "driver=kaflow-testbed,pace=fast,taps=1,doppler_hz=20,snr_db=40";
    let (path, out) = (at("sweep.json"), at("out"));
    let mut arguments = vec!["live", "--device", device, "--rate", "5e6", "--seconds", "0.05", "--rx-gain", "28", "--filter", "nlms"];
    arguments.extend(["--sweep-tx-gain", "30:60:15", "--json", &path, "--out", &out]);
    let (ok, text) = output(&arguments);
    assert!(ok, "{text}");
    let found = json(Path::new(&path));
    let of = |key: &str| -> Vec<f64> { found["levels"].as_array().unwrap().iter().map(|level| level[key].as_f64().unwrap()).collect() };
    assert_eq!(of("tx_gain_db"), [30.0, 45.0, 60.0]);
    let compression = of("compression_db");
    assert!(compression[0].abs() < 0.5 && compression[1] < -0.5 && compression[2] < compression[1] - 3.0, "{compression:?}");
    let error: Vec<f64> = found["levels"].as_array().unwrap().iter().map(|l| l["filters"][0]["nmse_db"].as_f64().unwrap()).collect();
    assert!(error[2] > error[0] + 3.0, "{error:?}");
    assert!(Path::new(&out).join("sweep.csv").exists() && Path::new(&out).join("am-am.svg").exists());
    let point = found["compression_point_tx_gain_db"].as_f64().unwrap();
    assert!((35.0..60.0).contains(&point), "{point}");
}

#[test]
fn a_level_that_fails_takes_nothing_from_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sweep.json").to_string_lossy().into_owned();
    let device = "driver=kaflow-testbed,pace=fast,taps=1,doppler_hz=20,snr_db=40";
    let mut arguments = vec!["live", "--device", device, "--rate", "5e6", "--seconds", "0.05", "--rx-gain", "28", "--filter", "nlms"];
    arguments.extend(["--sweep-tx-gain", "50:70:10", "--json", &path]);
    let (ok, text) = output(&arguments);
    assert!(!ok && text.contains("tx-gain must be between 0 and 60 dB"), "{text}");
    let found = json(Path::new(&path));
    let of = |key: &str| found[key].as_array().unwrap().iter().map(|l| l["tx_gain_db"].as_f64().unwrap()).collect::<Vec<_>>();
    assert_eq!((of("levels"), of("failed")), (vec![50.0, 60.0], vec![70.0]));
}

#[test]
fn a_linear_channel_that_fades_shows_no_compression() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 1..=5 {
        let path = folder.path().join(format!("sweep{seed}.json")).to_string_lossy().into_owned();
        let device = format!("driver=kaflow-testbed,pace=fast,taps=4,doppler_hz=100,snr_db=40,seed={seed}");
        let mut arguments = vec!["live", "--device", &device, "--rate", "2e6", "--seconds", "0.1", "--rx-gain", "40", "--filter", "nlms"];
        arguments.extend(["--sweep-tx-gain", "20:32:4", "--json", &path]);
        let (ok, text) = output(&arguments);
        assert!(ok, "{text}");
        let found = json(Path::new(&path));
        for level in found["levels"].as_array().unwrap() {
            assert!(level["compression_db"].as_f64().unwrap().abs() < 0.2, "{text}");
        }
        assert!(found["compression_point_tx_gain_db"].is_null());
    }
}

#[test]
fn without_a_rate_it_starts_with_what_the_machine_sustains() {
    let (ok, text) = output(&["live", "--device", "driver=kaflow-testbed", "--seconds", "1"]);
    assert!(ok && text.contains("MS/s is what this machine sustains with nlms, ensemble"), "{text}");
    let quiet =
        kaflow(&["live", "--device", "driver=kaflow-testbed,pace=fast", "--seconds", "0.1", "--filter", "nlms", "-q"]).output().unwrap();
    assert!(quiet.status.success() && quiet.stderr.is_empty(), "{}", String::from_utf8_lossy(&quiet.stderr));
}

#[test]
fn filters_that_cannot_keep_up_are_noticed_and_their_budget_shrinks() {
    let device = "driver=kaflow-testbed,pace=real,doppler_hz=100";
    let mut arguments = vec!["live", "--device", device, "--rate", "4e6", "--seconds", "2", "--rx-gain", "28", "--tx-gain", "45"];
    arguments.extend(["--filter", "fklms", "--budget", "2000", "--adaptive-budget", "--queue", "131072"]);
    let (ok, text) = output(&arguments);
    assert!(ok && text.contains("do not keep up") && text.contains("fklms: budget 2000 -> "), "{text}");
}

/// Starts the command, waits until it says `ready`, asks it to stop, and gives how it ended and what it said.
#[cfg(unix)]
fn interrupted(arguments: &[&str], ready: &str) -> (bool, String) {
    use std::io::{BufRead, BufReader, Read};
    let mut run = kaflow(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains(ready) && lines.read_line(&mut text).unwrap() > 0 {}
    assert!(text.contains(ready), "{text}");
    assert!(Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap().success());
    let began = Instant::now();
    lines.read_to_string(&mut text).unwrap();
    run.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let ok = run.wait().unwrap().code() == Some(143);
    println!("{arguments:?} ended {:.2} s after the signal", began.elapsed().as_secs_f64());
    // Far more than it takes, far less than what waits in the queue.
    assert!(began.elapsed() < Duration::from_secs(20), "{text}");
    (ok, text)
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_command_in_every_state() {
    let rate = ["--rate", "1e6", "--filter", "nlms"];
    let overloaded = ["--rate", "20e6", "--filter", "krlst", "--filter", "fklms", "--budget", "300"];
    for (arguments, device, ready, words) in [
        (&rate[..], "driver=kaflow-testbed,doppler_hz=5", "3 s: ", "interrupted"),
        (&overloaded[..], "driver=kaflow-testbed,doppler_hz=5", "a lower --rate", "interrupted"),
        (&rate[..], "driver=kaflow-testbed,snr_db=-60", "searching: ", "the frame was not found"),
        (&rate[..], "driver=kaflow-testbed,stall_every=100000,stall=1000000", "1 s: ", "interrupted"),
        (&rate[..], "driver=kaflow-testbed,stall_every=1,stall=1000000", "1 s: ", "the frame was not found"),
    ] {
        let mut all = vec!["live", "--device", device];
        all.extend(arguments);
        let (_, text) = interrupted(&all, ready);
        assert!(text.contains(words), "{all:?}: {text}");
    }
}

#[test]
fn any_channels_can_be_chosen_and_each_has_its_own_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("found.json");
    let device = "driver=kaflow-testbed,pace=fast,doppler_hz=5";
    let mut arguments = vec!["live", "--device", device, "--rate", "1e6", "--seconds", "0.1", "--filter", "nlms"];
    arguments.extend(["--tx-channel", "3", "--tx-gain", "49", "--rx-gain", "30"]);
    let target = path.to_string_lossy();
    arguments.extend(["--channel", "1,2,0", "--json", &target]);
    let (ok, text) = output(&arguments);
    assert!(ok, "{text}");
    let mut found: Vec<_> = json(&path)["filters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["name"].as_str().unwrap().to_owned(), f["nmse_db"].as_f64().unwrap()))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found.iter().map(|f| f.0.as_str()).collect::<Vec<_>>(), ["nlms rx0", "nlms rx1", "nlms rx2"]);
    // Three channels of their own: good figures, and not the same ones.
    assert!(found.iter().all(|f| f.1 < -3.0) && found[0].1 != found[1].1 && found[1].1 != found[2].1, "{found:?}");
}

#[test]
fn a_device_that_disappears_leaves_a_report_and_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("found.json");
    let device = "driver=kaflow-testbed,pace=fast,doppler_hz=5,vanish_after=300000";
    let arguments = ["live", "--device", device, "--rate", "1e6", "--filter", "nlms", "--json", &path.to_string_lossy()];
    let output = kaflow(&arguments).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.code() == Some(1) && text.contains("NMSE dB") && text.contains("has disappeared"), "{text}");
    assert!(json(&path)["filters"][0]["samples"].as_u64().unwrap() > 100_000);
}

#[test]
fn the_plain_command_finds_the_frame_on_a_machine_that_cannot_keep_up() {
    // A rate with a filter that no machine runs at it.
    let mut arguments = vec!["live", "--device", "driver=kaflow-testbed", "--rate", "20e6", "--seconds", "4", "--queue", "524288"];
    arguments.extend(["--filter", "nlms", "--filter", "krlst"]);
    let (ok, text) = output(&arguments);
    assert!(ok && text.contains("do not keep up") && text.contains("--adaptive-budget") && text.contains("NMSE dB"), "{text}");
}

#[test]
fn devices_are_judged_and_mistakes_are_named() {
    let (ok, text) = output(&["devices", "driver=kaflow-testbed"]);
    assert!(ok && text.contains("full duplex: yes") && text.contains("kaflow live --device 'driver=kaflow-testbed"), "{text}");
    for (arguments, words) in [
        (vec!["live"], "device must be given, with an explicit driver="),
        (vec!["live", "--device", "serial=3"], "device must be given with an explicit driver="),
        (vec!["live", "--device", "driver=audio", "--freq", "5.4e9"], "a sound card"),
        (vec!["live", "--device", "driver=null"], "freq must be given, or --yes, before a real device transmits"),
        (vec!["live", "--device", "driver=kaflow-testbed", "--filter", "fklm"], "did you mean 'fklms'"),
        (vec!["live", "--device", "driver=kaflow-testbed", "--rate", "1e9"], "rate must be between"),
        (vec!["live", "--device", "driver=kaflow-testbed", "--rate", "-3"], "rate must be more than 0, got -3"),
        (vec!["live", "--device", "driver=kaflow-testbed", "--freq", "7e9"], "--freq must be between 70000000 and 6000000000"),
        (vec!["live", "--device", "driver=kaflow-testbed", "--tx-gain", "-5"], "tx-gain must be between 0 and 60 dB"),
        (
            vec!["live", "--device", FAST, "--rate", "5e6", "--seconds", "0.1", "--sweep-tx-gain", "80:90:5"],
            "tx-gain must be between 0 and 60 dB",
        ),
        (vec!["live", "--device", "driver=nosuch", "--freq", "5.4e9"], "`kaflow devices` lists what there is"),
        (vec!["live", "--device", "driver=null", "--freq", "5.4e9"], "cannot receive: it has no channels"),
        (vec!["live", "--device", "driver=kaflow-testbed", "--rx-only"], "tx must be given with --rx-only"),
        (vec!["live", "--device", FAST, "--rx-only", "--receive"], "or --receive NAME|FILE, to receive its packets alone"),
        (vec!["live", "--device", FAST, "--rx-only", "--receive", "paper"], "rate must be given where nothing is tracked"),
        (
            vec!["live", "--device", FAST, "--rate", "5e6", "--rx-only", "--receive", "paper", "--filter", "nlms"],
            "filter must be left out where nothing is tracked",
        ),
        (vec!["live", "--rx-device", "driver=kaflow-testbed"], "tx-device must be given"),
        (vec!["live", "--device", "driver=kaflow-testbed,dopler=3"], "did you mean 'doppler'"),
        (vec!["live", "--device", FAST, "--sweep-tx-gain", "1:2"], "A:B:STEP"),
        (vec!["live", "--device", FAST, "--channel", "4"], "channel must be below 4"),
        (vec!["live", "--device", FAST, "--channel", "1,1"], "channel must be each given once"),
        (vec!["live", "--device", FAST, "--rate", "5e6", "--tx-gain", "0", "--seconds", "0.05"], "the frame was not found"),
    ] {
        let (ok, text) = output(&arguments);
        assert!(!ok && text.contains(words), "{arguments:?}: {text}");
    }
}

#[test]
fn our_own_signal_is_cancelled_and_what_remains_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (left, found) = (at("left"), at("live.json"));
    let device = "driver=kaflow-testbed,pace=fast,doppler_hz=0";
    let mut arguments = vec!["live", "--device", device, "--rate", "5e6", "--seconds", "0.05", "--tx-gain", "50", "--rx-gain", "28"];
    arguments.extend(["--cancel", &left, "--json", &found]);
    let (ok, text) = output(&arguments);
    assert!(ok, "{text}");
    let filters = json(Path::new(&found))["filters"].clone();
    assert_eq!(filters[0]["name"], "canceller");
    let cleaned = Recording::open(folder.path().join("left.sigmf-meta"), None).unwrap();
    assert_eq!(cleaned.len(), filters[0]["samples"].as_u64().unwrap());
    assert!(filters[0]["nmse_db"].as_f64().unwrap() < -10.0, "{filters}");
    let (ok, text) = output(&arguments);
    assert!(!ok && text.contains("--force"), "{text}");
}

#[test]
fn packets_are_decoded_while_the_radio_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (found, out) = (at("found.json"), at("out"));
    // Deep in saturation, over a channel that hardly fades.
    let device = "driver=kaflow-testbed,pace=fast,doppler_hz=20,overflow_every=200000";
    let mut arguments = vec!["live", "--device", device, "--rate", "2e6", "--seconds", "0.3", "--filter", "nlms"];
    arguments.extend(["--receive", "--json", &found, "--out", &out]);
    let (ok, text) = output(&arguments);
    assert!(ok && text.contains("packets received"), "{text}");
    let packets = &json(Path::new(&found))["packets"];
    let count = |name: &str| packets[name].as_u64().unwrap();
    // Frames of 50 symbols and a preamble, one after the other, but for those that a gap cuts.
    assert!(count("packets_found") > 120 && 10 * count("packets_decoded") >= 9 * count("packets_found"), "{packets}");
    assert!(packets["evm_percent"].as_f64() < packets["evm_one_tap_percent"].as_f64(), "{packets}");
    let lines = std::fs::read_to_string(Path::new(&out).join("packets/payload.txt")).unwrap();
    let mut decoded: Vec<&str> = lines.lines().filter(|line| !line.is_empty()).collect();
    decoded.dedup();
    assert_eq!(decoded.len(), 1, "it is one frame that is repeated");
    // Nothing is replaced, a waveform that nobody knows is refused, and a frame from a file says nothing of its waveform.
    let (ok, text) = output(&arguments);
    assert!(!ok && text.contains("--force"), "{text}");
    let (ok, text) = output(&["live", "--device", device, "--seconds", "0.1", "--receive", "papper"]);
    assert!(!ok && text.contains("paper"), "{text}");
}

#[test]
fn without_a_frame_packets_are_listened_for_and_none_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let (found, out) = (folder.path().join("found.json"), folder.path().join("out"));
    let arguments = ["live", "--device", FAST, "--rate", "5e6", "--rx-only", "--receive", "paper", "--seconds", "0.1"];
    let outputs = ["--json", found.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let arguments: Vec<&str> = arguments.into_iter().chain(outputs).collect();
    let (ok, text) = output(&arguments);
    assert!(ok && text.contains("packets received") && !text.contains("NMSE"), "{text}");
    let found = json(&found);
    assert!(found["schema"] == "kaflow/receive" && found["packets_found"] == 0 && found["packets_decoded"] == 0, "{found}");
    assert!(out.join("packets/report.html").exists());
    let (ok, text) = output(&arguments);
    assert!(!ok && text.contains("--force"), "{text}");
}
