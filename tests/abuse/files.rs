//! Nothing lost: what is read and what is written, in every combination that goes wrong.

use std::os::unix::fs::{FileTypeExt, symlink};

use crate::{Bench, fifo};

#[test]
fn no_output_is_an_input_by_whatever_name() {
    let bench = Bench::new();
    std::fs::hard_link(bench.at("rx.cf32"), bench.at("hard.cf32")).unwrap();
    symlink("rx.cf32", bench.at("soft.cf32")).unwrap();
    std::fs::create_dir(bench.at("s")).unwrap();
    bench.works("simulate --samples 500 --out s --force");
    for name in ["rx.cf32", "hard.cf32", "soft.cf32", "./rx.cf32"] {
        bench.refuses(&format!("track tx.cf32 rx.cf32 --filter nlms --force --json {name}"), &["is the input"]);
    }
    for arguments in [
        "track tx.cf32 rx.cf32 --filter nlms --predictions rx.cf32",
        "track tx.cf32 rx.cf32 --filter nlms --predictions tx.cf32 --checkpoint a.ck --resume",
        "track tx.cf32 rx.cf32 --filter nlms --checkpoint tx.cf32",
        "track tx rx --filter nlms --json rx.sigmf-data",
        "track tx.sigmf-meta rx.sigmf-data --filter nlms --json tx.sigmf-data",
        "track s --filter nlms --json s/rx.sigmf-data",
        "track s/pair.sigmf-collection --filter nlms --json s/pair.sigmf-collection",
        "track tx.cf32 rx.cf32 --filter nlms --params p.toml --json p.toml",
        "inspect rx.cf32 --json rx.cf32",
        "inspect rx --json rx.sigmf-meta",
        "receive rx.cf32 --json soft.cf32",
        "tune tx.cf32 rx.cf32 --filter nlms --output tx.cf32",
        "tune tx.cf32 rx.cf32 --filter nlms --json tx.cf32",
        "fit t.csv --output t.csv",
        "fit t.csv --json t.csv",
        "simulate --scenario s/scenario.toml --samples 500 --out s",
        "reproduce fig5 tx.cf32 rx.cf32 --out r --json rx.cf32",
    ] {
        bench.refuses(&format!("{arguments} --force"), &["is the input"]);
    }
    assert!(!bench.at("r").exists());
}

#[test]
fn no_output_is_another_output() {
    let bench = Bench::new();
    for arguments in [
        "track tx.cf32 rx.cf32 --filter nlms --json a --predictions a",
        "track tx.cf32 rx.cf32 --filter nlms --predictions a --checkpoint ./a",
        "fit t.csv -o a --json a",
        "tune tx.cf32 rx.cf32 --filter nlms --output a --json a",
        "inspect rx.cf32 --plot a.svg --json a.svg",
        // In a folder that is not there yet.
        "track tx.cf32 rx.cf32 --filter nlms --out new --json new/report.html",
        "track tx.cf32 rx.cf32 --filter nlms --out ./new --json ./new/nmse.csv",
        "simulate --samples 300 --out new --json new/tx.sigmf-meta",
    ] {
        bench.refuses(&format!("{arguments} --force"), &["is the output"]);
    }
    bench.refuses("track tx.cf32 rx.cf32 --filter nlms --out new --json new/deeper/a.json", &["new/deeper", "no such folder"]);
    assert!(!bench.at("new").exists());
    for arguments in
        ["track tx.cf32 rx.cf32 --filter nlms --json - --predictions -", "fit t.csv --json -", "inspect rx.cf32 --json - --plot -"]
    {
        bench.refuses(arguments, &["standard output was given twice"]);
    }
}

#[test]
fn what_is_there_stays_unless_forced() {
    let bench = Bench::new();
    std::fs::write(bench.at("old"), "precious").unwrap();
    std::fs::create_dir(bench.at("d")).unwrap();
    for name in ["report.html", "nmse.svg", "fig3.csv", "params.toml", "tx.sigmf-data", "payload.txt", "scenario.toml"] {
        std::fs::write(bench.at("d").join(name), "precious").unwrap();
    }
    for arguments in [
        "track tx.cf32 rx.cf32 --filter nlms --json old",
        "track tx.cf32 rx.cf32 --filter nlms --out d",
        "track tx.cf32 rx.cf32 --filter nlms --predictions old",
        "track tx.cf32 rx.cf32 --filter nlms --checkpoint old",
        "inspect rx.cf32 --json old",
        "fit t.csv -o old",
        "fit t.csv --json old",
        "tune tx.cf32 rx.cf32 --filter nlms -o old",
        "tune tx.cf32 rx.cf32 --filter nlms --out d",
        "tune tx.cf32 rx.cf32 --filter nlms --json old",
        "receive rx.cf32 --json old",
        "receive rx.cf32 --out d",
        "simulate --out d",
        "simulate --out new --json old",
        "reproduce fig3 --out d",
        "reproduce fig3 --out new --json old",
        "bench --json old",
    ] {
        bench.refuses(arguments, &["exists already", "--force"]);
    }
    assert!(!bench.at("new").exists());
}

#[test]
fn a_run_that_goes_on_replaces_what_it_wrote_and_nothing_else() {
    let bench = Bench::new();
    let run = "track tx.cf32 rx.cf32 --filter nlms --checkpoint a.ck --checkpoint-every 1e3 --resume";
    // Without a checkpoint it begins.
    bench.works(&format!("{run} --predictions p.cf32 --json a.json"));
    let whole = std::fs::read(bench.at("p.cf32")).unwrap();
    bench.works(&format!("{run} --predictions p.cf32 --json a.json"));
    assert!(std::fs::read(bench.at("p.cf32")).unwrap() == whole);
    std::fs::write(bench.at("other.cf32"), vec![1; 100_000]).unwrap();
    bench.refuses(&format!("{run} --predictions other.cf32"), &["other.cf32", "--force"]);
    std::fs::write(bench.at("other.json"), "{}").unwrap();
    bench.refuses(&format!("{run} --predictions p.cf32 --json other.json"), &["other.json", "--force"]);
}

#[test]
fn special_files_are_written_to_and_stay_what_they_are() {
    let bench = Bench::new();
    fifo(&bench.at("pipe"));
    let path = bench.at("pipe");
    let reader = std::thread::spawn(move || std::fs::read_to_string(path).unwrap());
    bench.works("inspect rx.cf32 --json pipe");
    assert!(reader.join().unwrap().contains("\"schema\": \"kaflow/inspect\""));
    assert!(std::fs::metadata(bench.at("pipe")).unwrap().file_type().is_fifo());
    for arguments in [
        "track tx.cf32 rx.cf32 --filter nlms --json /dev/null --predictions /dev/null",
        "fit t.csv -o /dev/null --json /dev/null",
        "inspect rx.cf32 --json /dev/null",
        "receive rx.cf32 --json /dev/null",
        "simulate --samples 500 --out s --json /dev/null",
    ] {
        bench.works(arguments);
        assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
    // A device of our own can be made by root alone; where that is possible, it must not be replaced either.
    if std::process::Command::new("mknod").args([bench.at("null").to_str().unwrap(), "c", "1", "3"]).status().is_ok_and(|s| s.success()) {
        bench.run("inspect rx.cf32 --json null");
        bench.run("fit t.csv -o null --force");
        assert!(std::fs::metadata(bench.at("null")).unwrap().file_type().is_char_device());
        bench.refuses("track tx.cf32 rx.cf32 --filter nlms --checkpoint null", &["must be a file"]);
    }
}

#[test]
fn a_dash_is_standard_output_for_the_file_alone() {
    let bench = Bench::new();
    for arguments in [
        "inspect rx.cf32 --json -",
        "track tx.cf32 rx.cf32 --filter nlms --json -",
        "track tx.cf32 rx.cf32 --filter nlms --json /dev/stdout",
        "receive rx.cf32 --json -",
        "fit t.csv -o p.csv --json -",
        "tune tx.cf32 rx.cf32 --filter nlms --candidates 2 -o q.toml --json -",
        "simulate --samples 500 --out s --json -",
    ] {
        let done = bench.works(arguments);
        let found: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{arguments}: {e}: {}", done.out()));
        assert!(found["schema"].as_str().unwrap().starts_with("kaflow/") && found["schema_version"] == 1, "{arguments}");
    }
    let done = bench.works("track tx.cf32 rx.cf32 --filter nlms --align none --predictions -");
    assert_eq!(done.stdout.len(), 8 * 3000);
    assert!(done.stderr.contains("nlms"), "{}", done.stderr);
    assert!(bench.works("inspect rx.cf32 --plot -").out().starts_with("<svg"));
}

#[test]
fn what_cannot_be_written_is_found_out_at_once() {
    let bench = Bench::new();
    std::fs::write(bench.at("file"), "x").unwrap();
    for arguments in [
        "track tx.cf32 rx.cf32 --filter nlms --out file",
        "track tx.cf32 rx.cf32 --filter nlms --out file/below",
        "track tx.cf32 rx.cf32 --filter nlms --out /proc/nothing",
        "track tx.cf32 rx.cf32 --filter nlms --json /proc/nothing.json",
        "track tx.cf32 rx.cf32 --filter nlms --json missing/a.json",
        "track tx.cf32 rx.cf32 --filter nlms --json .",
        "track tx.cf32 rx.cf32 --filter nlms --json file.json/",
        "inspect rx.cf32 --json missing/a.json",
        "inspect rx.cf32 --plot missing/a",
        "fit t.csv -o missing/a.csv",
        "receive rx.cf32 --out file",
        "simulate --out file",
        "tune tx.cf32 rx.cf32 --filter nlms --out file",
        "tune tx.cf32 rx.cf32 --filter nlms -o missing/p.toml",
        "reproduce fig2 --out file",
        "reproduce fig2 --out /proc/nothing",
        "bench --json missing/a.json",
    ] {
        let done = bench.run(arguments);
        assert!(matches!(done.code, Some(1 | 2)) && done.stdout.is_empty(), "{arguments}: {:?} {}", done.code, done.stderr);
        assert!(["file", "nothing", "missing", "."].iter().any(|name| done.stderr.contains(name)), "{arguments}: {}", done.stderr);
    }
}

#[test]
fn a_full_disk_takes_the_file_and_not_the_table() {
    if !std::path::Path::new("/dev/full").exists() {
        return eprintln!("SKIPPED: there is no /dev/full here");
    }
    let bench = Bench::new();
    for (arguments, said) in [
        ("track tx.cf32 rx.cf32 --filter nlms --json /dev/full --out o", "NMSE dB"),
        ("inspect rx.cf32 --json /dev/full", "dBFS"),
        ("receive rx.cf32 --json /dev/full", "packets"),
        ("tune tx.cf32 rx.cf32 --filter nlms --candidates 2 --json /dev/full", "tuned dB"),
        ("simulate --samples 500 --out s --json /dev/full", "simulated"),
        ("fit t.csv -o p.csv --json /dev/full", ""),
    ] {
        let done = bench.run(arguments);
        assert_eq!(done.code, Some(1), "{arguments}: {}", done.stderr);
        assert!(done.stderr.contains("/dev/full") && done.stderr.contains("No space left"), "{arguments}: {}", done.stderr);
        assert!(done.out().contains(said), "{arguments}: {}", done.out());
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = bench.command(&["inspect", "rx.cf32"]).stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(1), "a table that was not printed");
    // The rest is written all the same.
    assert!(bench.at("o/report.html").exists() && bench.at("params.toml").exists());
    assert_eq!(bench.run("fit t.csv -o /dev/full").code, Some(1));
    assert_eq!(bench.run("track tx.cf32 rx.cf32 --filter nlms --predictions /dev/full").code, Some(1));
}

#[test]
fn a_file_that_may_not_grow_is_a_failed_write() {
    let bench = Bench::new();
    let kaflow = assert_cmd::cargo::cargo_bin!("kaflow").display().to_string();
    let limited = |arguments: &str| {
        let mut shell = std::process::Command::new("sh");
        crate::done(shell.current_dir(bench.at("")).args(["-c", &format!("ulimit -f 1; exec {kaflow} {arguments}")]))
    };
    let done = limited("simulate --samples 1e5 --out s");
    assert!(done.code == Some(1) && done.stderr.contains("File too large"), "{:?} {}", done.code, done.stderr);
}
