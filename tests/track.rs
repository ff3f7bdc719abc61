//! `kaflow track` as a user runs it.
#![cfg(feature = "cli")]

use std::{fs, io::Read, path::Path, process::Stdio, time::Duration};

use assert_cmd::{Command, cargo::cargo_bin};
use kaflow::{
    Complex32,
    channel::{Scenario, TestBed},
    iq::{Datatype, Writer, sigmf::Meta},
};
use serde_json::Value;

fn kaflow(directory: &Path, arguments: &str) -> assert_cmd::assert::Assert {
    Command::new(cargo_bin!("kaflow")).current_dir(directory).args(arguments.split_whitespace()).timeout(Duration::from_secs(120)).assert()
}

/// Runs, expects exit code 2 and one line on standard error that contains every word.
fn refused(directory: &Path, arguments: &str, words: &[&str]) {
    let output = kaflow(directory, arguments).code(2).get_output().clone();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.trim().lines().count(), 1, "{arguments}: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments}: '{text}' does not say '{word}'");
    }
    assert!(output.stdout.is_empty());
}

fn json(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn raw(path: impl AsRef<Path>, samples: &[Complex32]) {
    let bytes: Vec<u8> = samples.iter().flat_map(|z| [z.re.to_le_bytes(), z.im.to_le_bytes()].concat()).collect();
    fs::write(path, bytes).unwrap();
}

fn bed(samples: u64) -> (Vec<Complex32>, Vec<Complex32>) {
    let mut run = TestBed::run(&Scenario { samples, ..Scenario::preset("a").unwrap() }).unwrap();
    (run.tx.remove(0), run.rx.remove(0))
}

#[test]
fn without_arguments_it_ends_with_a_table_and_pictures() {
    let directory = tempfile::tempdir().unwrap();
    let output = kaflow(directory.path(), "").success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    let rows: Vec<&str> = text.lines().skip_while(|l| !l.starts_with("filter")).skip(1).take_while(|l| l.contains(' ')).collect();
    let errors: Vec<f64> = rows.iter().map(|r| r.split_whitespace().nth(1).unwrap().parse().unwrap()).collect();
    assert!(errors.len() == 7 && errors.is_sorted(), "{text}");
    for file in ["nmse.svg", "nmse.png", "nmse.csv", "report.html", "average.svg", "spectrum.png"] {
        assert!(directory.path().join("kaflow-track").join(file).metadata().unwrap().len() > 500, "{file}");
    }
    let page = fs::read_to_string(directory.path().join("kaflow-track/report.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("src=\"http") && !page.contains("href=\"http"));
}

#[test]
fn recordings_are_aligned_tracked_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (tx, rx) = bed(20_000);
    let late: Vec<_> = std::iter::repeat_n(Complex32::default(), 50).chain(rx.iter().copied()).take(20_000).collect();
    for (name, samples) in [("tx", &tx), ("rx", &late)] {
        let mut writer = Writer::create(directory.path().join(name), Meta::new(Datatype::CF32_LE, Some(20e6)), false).unwrap();
        writer.write(samples).unwrap();
        writer.finish().unwrap();
    }
    let two = "track tx.sigmf-meta rx.sigmf-meta --filter nlms --filter qklms --budget 100 --skip 500";
    kaflow(directory.path(), &format!("{two} --json a.json --out out --record")).success();
    let found = json(directory.path().join("a.json"));
    assert!((found["alignment"]["delay"].as_f64().unwrap() - 50.0).abs() < 0.2, "{found}");
    let filters = found["filters"].as_array().unwrap();
    assert_eq!(filters.len(), 2);
    for filter in filters {
        assert!(filter["nmse_db"].as_f64().unwrap() < -5.0, "{filter}");
        assert!(filter["samples"].as_u64().unwrap() >= 19_900);
        assert!(filter["samples_per_second"].as_f64().unwrap() > 0.0);
        assert!(filter["centres"].as_u64().unwrap() <= 100);
        assert_eq!(filter["parameters"]["taps"], 4);
    }
    for file in ["nlms-prediction.sigmf-data", "qklms-error.sigmf-meta", "nmse.csv"] {
        assert!(directory.path().join("out").join(file).metadata().unwrap().len() > 100, "{file}");
    }
    assert_eq!(found["alignment"]["method"], "auto");
    kaflow(directory.path(), "track tx.sigmf-meta rx.sigmf-meta --align 50 --filter nlms --json told.json").success();
    let told = &json(directory.path().join("told.json"))["alignment"];
    assert_eq!((&told["method"], &told["delay"], &told["searches"]), (&"given".into(), &50.0.into(), &0.into()), "{told}");
    refused(directory.path(), &format!("{two} --json a.json"), &["a.json", "--force"]);
    refused(directory.path(), &format!("{two} --out out"), &["out", "--force"]);
    kaflow(directory.path(), &format!("{two} --json a.json --force")).success();
}

#[test]
fn taps_are_as_many_as_the_channel_has_echoes() {
    let directory = tempfile::tempdir().unwrap();
    for echoes in [1, 4, 8] {
        let name = format!("{echoes}");
        let scenario = format!("--preset paper --samples 20000 --delay 40.3 --taps {echoes} --seed 5");
        kaflow(directory.path(), &format!("simulate {scenario} --out {name}")).success();
        let two = format!("track {name}/tx.sigmf-meta {name}/rx.sigmf-meta --skip 2000 --filter ensemble");
        kaflow(directory.path(), &format!("{two} --json {name}.json")).success();
        let found = json(directory.path().join(format!("{name}.json")));
        let filter = &found["filters"][0];
        // One path that lies between two samples is several; the last echo is 21 dB below the first.
        let taps = filter["parameters"]["taps"].as_u64().unwrap();
        assert!((echoes.max(5) - 1..=echoes.max(4) + 2).contains(&taps), "{echoes} echoes: {filter}");
        let nmse = filter["nmse_db"].as_f64().unwrap();
        assert!(nmse < -17.9, "{echoes} echoes: {nmse} dB");
        kaflow(directory.path(), &format!("{two} --taps 2 --json {name}-two.json")).success();
        let two = &json(directory.path().join(format!("{name}-two.json")))["filters"][0];
        assert_eq!(two["parameters"]["taps"], 2);
        assert!(echoes == 1 || two["nmse_db"].as_f64().unwrap() > nmse + 3.0, "{two}");
    }
}

#[test]
fn recordings_of_two_clocks_are_followed() {
    let directory = tempfile::tempdir().unwrap();
    let mut found = Vec::new();
    for (name, ppm) in [("one", 0), ("two", 50)] {
        let scenario =
            format!("--preset d --doppler 1e-5 --samples 600000 --delay 40 --sample-offset-ppm {ppm} --carrier-offset-hz {}", 50 * ppm);
        kaflow(directory.path(), &format!("simulate --out {name} {scenario}")).success();
        let run =
            kaflow(directory.path(), &format!("track {name}/tx {name}/rx --filter nlms --skip 100000 --json {name}.json --out {name}/o"));
        let output = run.success().get_output().clone();
        let (text, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!((text.contains("clock -"), said.contains("there are two clocks")), (ppm != 0, ppm != 0), "{text}{said}");
        found.push(json(directory.path().join(format!("{name}.json")))["filters"][0]["nmse_db"].as_f64().unwrap());
    }
    println!("{found:?}");
    assert!(found[0] < -6.0 && found[1] < found[0] + 1.0, "{found:?} dB");
    kaflow(directory.path(), "track one/tx one/rx --align follow --filter nlms --out f").success();
    refused(directory.path(), "track one/tx one/rx --align folow", &["align must be auto, follow, none or a delay"]);
    refused(directory.path(), "cancel one/tx one/rx --align follow --out c", &["align must be auto, none or a delay"]);
}

#[test]
fn raw_recordings_give_the_predictions_of_the_bare_filter() {
    use kaflow::filter::Guard;
    use kaflow::filter::registry::{self, Value, Values};
    let directory = tempfile::tempdir().unwrap();
    let (tx, rx) = bed(6000);
    raw(directory.path().join("tx.bin"), &tx);
    raw(directory.path().join("rx.bin"), &rx);
    let command = "track tx.bin rx.bin --format cf32_le --align none --filter nlms --mu 0.3 --regularization 1e-6 --taps 5 --predictions p.cf32 --threads 2";
    kaflow(directory.path(), command).success();
    let mut expected = vec![Complex32::default(); 6000];
    let given = Values::from([("mu".into(), Value::Number(0.3)), ("regularization".into(), Value::Number(1e-6))]);
    let settings = registry::recipe("nlms").unwrap().settle(&given, 1.0).unwrap();
    Guard::new(registry::tracker(&settings, 5).unwrap()).track(&tx, &rx, &mut expected, None);
    raw(directory.path().join("expected.cf32"), &expected);
    assert!(fs::read(directory.path().join("p.cf32")).unwrap() == fs::read(directory.path().join("expected.cf32")).unwrap());
    refused(directory.path(), command, &["p.cf32", "--force"]);
    refused(directory.path(), "track tx.bin rx.bin --format cf32_le --predictions q.cf32", &["predictions", "one --filter"]);
}

#[test]
fn gap_samples_are_left_out_on_both_sides_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    kaflow(directory.path(), "simulate --preset a --samples 20000 --out pair --drop-rate 1e-3 --drop-length 30").success();
    kaflow(directory.path(), "track pair --align none --filter nlms --json a.json").success();
    let found = json(directory.path().join("a.json"));
    let missing = found["gap_samples"].as_u64().unwrap();
    assert!(missing > 100 && missing + found["filters"][0]["samples"].as_u64().unwrap() == 20_000, "{found}");
    assert!(found["filters"][0]["nmse_db"].as_f64().unwrap() < -9.0);
}

#[test]
fn real_valued_recordings_are_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let (tx, rx) = bed(6000);
    let real = |z: &[Complex32]| z.iter().map(|z| Complex32::new(z.re, 0.0)).collect::<Vec<_>>();
    raw(directory.path().join("tx.cf32"), &real(&tx));
    raw(directory.path().join("rx.cf32"), &real(&rx));
    kaflow(directory.path(), "track tx.cf32 rx.cf32 --filter nlms --json a.json").success();
    assert_eq!(json(directory.path().join("a.json"))["real"], true);
}

#[test]
fn parameters_come_from_a_file_and_from_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("p.toml"), "[nlms]\nmu = 0.25\n\n[fklms]\nsigma = 3.0\nlambda = 0.98\n").unwrap();
    kaflow(directory.path(), "track --filter nlms --filter fklms --params p.toml --lambda 0.97 --samples 3000 --json a.json").success();
    let found = json(directory.path().join("a.json"));
    let parameters = |name: &str| found["filters"].as_array().unwrap().iter().find(|f| f["name"] == name).unwrap()["parameters"].clone();
    assert_eq!(parameters("nlms")["mu"], 0.25);
    assert_eq!((parameters("fklms")["sigma"].as_f64(), parameters("fklms")["lambda"].as_f64()), (Some(3.0), Some(0.97)));
    fs::write(directory.path().join("bad.toml"), "[fklms]\nsigmma = 3.0\n").unwrap();
    refused(directory.path(), "track --filter fklms --params bad.toml", &["bad.toml", "sigmma"]);
}

#[test]
fn bad_input_is_refused_in_one_clear_line() {
    let directory = tempfile::tempdir().unwrap();
    let d = directory.path();
    let (tx, rx) = bed(3000);
    raw(d.join("tx.cf32"), &tx);
    raw(d.join("rx.cf32"), &rx);
    raw(d.join("short.cf32"), &rx[..2000]);
    raw(d.join("silent.cf32"), &vec![Complex32::default(); 3000]);
    raw(d.join("copy.cf32"), &tx);
    let nan = Complex32::new(f32::NAN, 0.0);
    raw(d.join("nan.cf32"), &vec![nan; 3000]);
    raw(d.join("one.cf32"), &tx[..1]);
    raw(d.join("uno.cf32"), &rx[..1]);
    raw(d.join("empty.cf32"), &[]);
    raw(d.join("tx.bin"), &tx);
    fs::create_dir(d.join("folder")).unwrap();
    for (name, rate) in [("slow", 1e6), ("fast", 2e6)] {
        let mut writer = Writer::create(d.join(name), Meta::new(Datatype::CF32_LE, Some(rate)), false).unwrap();
        writer.write(if name == "slow" { &tx } else { &rx }).unwrap();
        writer.finish().unwrap();
    }
    refused(d, "track nowhere.cf32 rx.cf32", &["nowhere.cf32"]);
    refused(d, "track nowhere rx.cf32", &["nowhere: no such file"]);
    refused(d, "track folder rx.cf32", &["folder"]);
    refused(d, "track tx.bin rx.cf32", &["tx.bin", "--format"]);
    refused(d, "track tx.bin rx.cf32 --format cf33_le", &["cf33_le", "did you mean 'cf32_le'?"]);
    refused(d, "track tx.cf32 nan.cf32", &["nan.cf32", "NaN"]);
    refused(d, "track nan.cf32 rx.cf32 --align none", &["nan.cf32", "NaN"]);
    refused(d, "track empty.cf32 rx.cf32", &["empty.cf32 is empty"]);
    refused(d, "track one.cf32 uno.cf32", &["1 samples", "256"]);
    refused(d, "track tx.cf32 rx.cf32 --skip 3000", &["skip", "less than the 3000"]);
    refused(d, "track tx.cf32 rx.cf32 --align 5000", &["5000", "overlap"]);
    refused(d, "track tx.cf32 rx.cf32 --threads 0", &["threads", "0"]);
    refused(d, "track tx.cf32 rx.cf32 --json nowhere/a.json", &["nowhere"]);
    refused(d, "track tx.cf32 rx.cf32 --checkpoint nowhere/a.ck", &["nowhere"]);
    refused(d, "track tx.cf32 rx.cf32 --checkpoint a.ck --checkpoint-every 0", &["checkpoint-every"]);
    refused(d, "track tx.cf32 rx.cf32 --checkpoint tx.bin --resume", &["tx.bin", "checkpoint"]);
    refused(d, "track tx.cf32 rx.cf32 --out tx.bin", &["tx.bin", "folder"]);
    refused(d, "track tx.cf32 rx.cf32 third.cf32", &["third.cf32"]);
    refused(d, "track tx.cf32 rx.cf32 --fliter nlms", &["--fliter", "--filter"]);
    refused(d, "track --resume", &["--checkpoint"]);
    refused(d, "trakc", &["trakc", "track"]);
    refused(d, "track tx.cf32", &["tx.cf32", "alone"]);
    refused(d, "track tx.cf32 short.cf32", &["3000", "2000", "--trim"]);
    refused(d, "track slow.sigmf-meta fast.sigmf-meta", &["1000000", "2000000"]);
    refused(d, "track tx.cf32 silent.cf32", &["silent.cf32 is silent"]);
    refused(d, "track tx.cf32 tx.cf32", &["tx.cf32", "sent"]);
    refused(d, "track tx.cf32 copy.cf32", &["same samples"]);
    refused(d, "track --filter fklm", &["did you mean 'fklms'?"]);
    refused(d, "track --filter nlms --sigma 1", &["nlms", "sigma"]);
    refused(d, "track --filter fklms --lambda 2", &["lambda", "2"]);
    refused(d, "track --taps 0", &["taps"]);
    refused(d, "track --preset papper", &["did you mean 'paper'?"]);
    kaflow(d, "track tx.cf32 short.cf32 --trim --filter nlms").success();
    assert!(!d.join("kaflow-track").exists(), "a refused run leaves nothing behind");
}

#[test]
fn equalisation_predicts_what_was_sent() {
    let directory = tempfile::tempdir().unwrap();
    kaflow(directory.path(), "track --preset wifi --samples 30000 --equalize --filter rls --taps 12 --lambda 0.97 --json a.json").success();
    let found = json(directory.path().join("a.json"));
    assert!(found["filters"][0]["nmse_db"].as_f64().unwrap() < -6.0, "{found}");
}

/// All filters that run when nobody says.
const LONG: &str = "track --preset a --samples 30000 --budget 60 --skip 100 --checkpoint-every 3000";

/// Starts a run and kills it (SIGKILL) as soon as there is something to go on from.
fn kill_once_there_is(checkpoint: &Path, directory: &Path, arguments: &str) {
    let mut run = std::process::Command::new(cargo_bin!("kaflow"))
        .current_dir(directory)
        .args(arguments.split_whitespace())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..10_000 {
        if checkpoint.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    run.kill().unwrap();
    run.wait().unwrap();
}

/// The figures of a run that do not depend on how fast it was.
fn figures(path: &Path) -> Vec<(String, u64, u64, u64)> {
    let found = json(path);
    let filters = found["filters"].as_array().unwrap().iter();
    filters
        .map(|f| {
            let bits = f["nmse_db"].as_f64().unwrap().to_bits();
            (f["name"].as_str().unwrap().to_owned(), bits, f["samples"].as_u64().unwrap(), f["centres"].as_u64().unwrap())
        })
        .collect()
}

#[test]
fn a_killed_run_resumes_to_the_bit() {
    let directory = tempfile::tempdir().unwrap();
    let d = directory.path();
    kaflow(d, &format!("{LONG} --checkpoint whole.ck --json whole.json")).success();

    kill_once_there_is(&d.join("killed.ck"), d, &format!("{LONG} --checkpoint killed.ck --json killed.json"));
    assert!(!d.join("killed.json").exists(), "killed before its end");
    kaflow(d, &format!("{LONG} --checkpoint killed.ck --resume --json killed.json --force")).success();
    assert_eq!(figures(&d.join("whole.json")).len(), 7);
    assert_eq!(figures(&d.join("killed.json")), figures(&d.join("whole.json")));

    refused(d, &format!("{LONG} --mu 0.1 --checkpoint killed.ck --resume --json other.json"), &["killed.ck", "another run"]);
    fs::write(d.join("damaged.ck"), &fs::read(d.join("whole.ck")).unwrap()[..1000]).unwrap();
    refused(d, &format!("{LONG} --checkpoint damaged.ck --resume --json other.json"), &["damaged.ck"]);
}

#[test]
fn predictions_of_a_killed_run_continue_where_they_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let d = directory.path();
    let long = "track --preset a --samples 300000 --filter qklms --budget 100 --checkpoint-every 10000";
    kaflow(d, &format!("{long} --predictions whole.cf32 --checkpoint whole.ck")).success();
    kill_once_there_is(&d.join("killed.ck"), d, &format!("{long} --predictions killed.cf32 --checkpoint killed.ck"));
    kaflow(d, &format!("{long} --predictions killed.cf32 --checkpoint killed.ck --resume")).success();
    assert!(fs::read(d.join("whole.cf32")).unwrap() == fs::read(d.join("killed.cf32")).unwrap());
}

fn start(directory: &Path, arguments: &str) -> std::process::Child {
    let mut command = std::process::Command::new(cargo_bin!("kaflow"));
    command.current_dir(directory).args(arguments.split_whitespace());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until it says how it is doing; gives all that it has said.
fn until_it_runs(child: &mut std::process::Child) -> String {
    let (mut text, mut byte) = (String::new(), [0]);
    let from = child.stderr.as_mut().unwrap();
    while !text.ends_with("NMSE dB") && from.read(&mut byte).unwrap() > 0 {
        text.push(byte[0] as char);
    }
    assert!(text.contains("MS/s"), "{text}");
    text
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_cleanly_with_what_has_been_done() {
    let directory = tempfile::tempdir().unwrap();
    let d = directory.path();
    let mut child = start(d, "track --preset a --samples 100000000 --filter nlms --watch --json a.json --checkpoint a.ck");
    let lines = until_it_runs(&mut child);
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("interrupted") && text.contains("nlms"), "{text}");
    assert!(lines.contains("MS/s") && lines.contains("in gaps"), "a line a second: {lines}");
    let found = json(d.join("a.json"));
    assert_eq!(found["interrupted"], true);
    assert!(found["filters"][0]["samples"].as_u64().unwrap() > 0);
    assert!(d.join("a.ck").exists());
}

#[cfg(unix)]
#[test]
fn an_end_does_not_wait_for_what_is_on_the_way_to_a_slow_filter() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(directory.path(), "track --preset a --samples 100000000 --filter nlms --filter krlst --watch --json a.json");
    until_it_runs(&mut child);
    std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
    let found = json(directory.path().join("a.json"));
    let samples =
        |name: &str| found["filters"].as_array().unwrap().iter().find(|f| f["name"] == name).unwrap()["samples"].as_u64().unwrap();
    assert!(samples("krlst") < samples("nlms"), "{found}");
}
