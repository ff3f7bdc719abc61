//! Ctrl-C and its relatives.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Bench, LIMIT};

fn send(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// Waits until `there` says so.
#[track_caller]
fn until(what: &str, mut there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !there() {
        assert!(began.elapsed() < LIMIT, "{what} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn code(mut child: Child) -> Option<i32> {
    until("the end", || child.try_wait().unwrap().is_some());
    child.wait().unwrap().code()
}

const LONG: [&str; 10] =
    ["track", "--preset", "a", "--samples", "1e9", "--filter", "nlms", "--checkpoint", "a.ck", "--checkpoint-every=1e4"];

#[test]
fn an_interrupted_run_says_by_what_and_leaves_what_was_done() {
    for (signal, expected) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let bench = Bench::new();
        let mut command = bench.command(&LONG);
        let child = command.args(["--json", "a.json", "--out", "o"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("a checkpoint", || bench.at("a.ck").exists());
        send(&child, signal);
        assert_eq!(code(child), Some(expected), "{signal}");
        let found = bench.json("a.json");
        assert!(found["interrupted"] == true && found["filters"][0]["samples"].as_u64().unwrap() >= 10_000, "{found}");
        assert!(bench.at("o/report.html").exists());
    }
}

#[test]
fn a_run_that_was_started_to_survive_the_terminal_does() {
    let bench = Bench::new();
    let mut command = Command::new("nohup");
    command.current_dir(bench.at("")).arg(assert_cmd::cargo::cargo_bin!("kaflow")).args(LONG);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("a checkpoint", || bench.at("a.ck").exists());
    send(&child, "-HUP");
    let before = std::fs::metadata(bench.at("a.ck")).unwrap().modified().unwrap();
    until("another checkpoint", || std::fs::metadata(bench.at("a.ck")).is_ok_and(|m| m.modified().unwrap() > before));
    assert!(child.try_wait().unwrap().is_none());
    send(&child, "-TERM");
    assert_eq!(code(child), Some(143));
}

#[test]
fn a_simulation_that_is_interrupted_can_be_read() {
    let bench = Bench::new();
    let child = bench.command(&["simulate", "--samples", "1e9", "--out", "s"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("data", || std::fs::metadata(bench.at("s/rx.sigmf-data")).is_ok_and(|m| m.len() > 0));
    send(&child, "-INT");
    assert_eq!(code(child), Some(130));
    bench.works("inspect s --verify");
}

#[test]
fn a_table_that_is_interrupted_leaves_its_predictions() {
    let bench = Bench::new();
    let rows: String = (0..200_000).map(|n| format!("{},{}\n", f64::from(n).sin(), f64::from(n).cos())).collect();
    std::fs::write(bench.at("long.csv"), format!("x0,y\n{rows}")).unwrap();
    // So slow that it cannot end before it is interrupted.
    let slow = ["fit", "long.csv", "--filter", "krlst", "--budget", "2000", "-o", "p.csv", "--json", "a.json"];
    let child = bench.command(&slow).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    send(&child, "-INT");
    assert_eq!(code(child), Some(130));
    let found = bench.json("a.json");
    let lines = std::fs::read_to_string(bench.at("p.csv")).unwrap().lines().count() as u64;
    assert!(found["interrupted"] == true && lines == found["samples"].as_u64().unwrap() + 1 && lines < 200_000, "{found}: {lines}");
}

#[test]
fn what_cannot_stop_in_the_middle_ends_with_the_same_code() {
    let bench = Bench::new();
    let child = bench.command(&["bench"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    send(&child, "-INT");
    assert_eq!(code(child), Some(130));
}
