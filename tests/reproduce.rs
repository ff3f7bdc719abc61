//! `kaflow reproduce` as a user runs it, in its quick form.
#![cfg(feature = "cli")]

mod common;

use assert_cmd::Command;
use serde_json::Value;

fn run(args: &[&str]) -> std::process::Output {
    Command::cargo_bin("kaflow").unwrap().arg("reproduce").args(args).output().unwrap()
}

#[test]
fn every_figure_agrees_with_its_reference_and_leaves_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    // Figure, simulations, and how far an average over so few may be from the reference.
    for (figure, runs, tolerance) in [("fig2", "40", 0.25), ("fig3", "11", 3.0), ("fig4", "3", 0.015), ("steady", "1", 0.4)] {
        let result = run(&[figure, "--out", out, "--runs", runs, "--quick"]);
        assert!(result.status.success(), "{figure}: {}", String::from_utf8_lossy(&result.stderr));
        let file = |ending: &str| std::fs::read(folder.path().join(format!("{figure}.{ending}"))).unwrap();
        let json: Value = serde_json::from_slice(&file("json")).unwrap();
        let results = json["results"].as_array().unwrap();
        assert!(!results.is_empty());
        for line in results {
            let (value, reference) = (line["value"].as_f64().unwrap(), line["reference"].as_f64().unwrap());
            assert!((value - reference).abs() < tolerance, "{figure}: {line}");
        }
        assert!(file("png").starts_with(b"\x89PNG") && file("svg").starts_with(b"<svg"));
        assert!(String::from_utf8(file("csv")).unwrap().lines().count() > 20);
        let again = run(&[figure, "--out", out, "--runs", runs]);
        assert_eq!(again.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&again.stderr).contains("exists already"));
    }
}

#[test]
fn the_receiver_study_has_all_detectors_and_the_order_of_its_curves() {
    let folder = tempfile::tempdir().unwrap();
    let result = run(&["receiver", "--packets", "4", "--out", folder.path().to_str().unwrap()]);
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    let json: Value = serde_json::from_slice(&std::fs::read(folder.path().join("receiver.json")).unwrap()).unwrap();
    let results = json["results"].as_array().unwrap();
    let at = |detector: &str| {
        let here = |r: &&Value| {
            r["modulation"] == "qam64" && r["ibo_db"] == -6.0 && r["snr_db"] == 30.0 && r["oversampling"] == 1 && r["detector"] == detector
        };
        results.iter().find(here).unwrap_or_else(|| panic!("{detector}"))
    };
    let evm = ["linear", "genie", "ep", "bdar", "dar", "one-tap"].map(|detector| at(detector)["evm_percent"].as_f64().unwrap());
    assert!(evm.is_sorted(), "{evm:?}");
    assert!(at("one-tap")["per"] == 1.0 && at("bdar")["per"] == 0.0 && at("ep")["per"] == 0.0);
    assert!(std::fs::read(folder.path().join("receiver.png")).unwrap().starts_with(b"\x89PNG"));
    assert_eq!(std::fs::read_to_string(folder.path().join("receiver.csv")).unwrap().lines().count(), results.len() + 1);
}

#[test]
fn the_drawn_curves_are_the_numbers() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(&["steady", "--out", folder.path().to_str().unwrap(), "--quick"]).status.success());
    let svg = std::fs::read_to_string(folder.path().join("steady.svg")).unwrap();
    let table = std::fs::read_to_string(folder.path().join("steady.csv")).unwrap();
    for drift in [0.0, 1e-3, 1e-2, 1e-1] {
        let line = common::read_back(&svg, 0, &format!("σ_q² = {drift}"));
        let rows: Vec<Vec<f64>> = table.lines().skip(1).map(|l| l.split(',').map(|v| v.parse().unwrap()).collect()).collect();
        let rows: Vec<_> = rows.iter().filter(|row| row[1] == drift).collect();
        assert!(rows.len() == 12 && line.len() > 100);
        for row in rows {
            // Between the two points of the line around it.
            let after = line.iter().position(|p| p[0] >= row[0]).unwrap();
            let near = (line[after - 1][1].min(line[after][1]) - 0.02, line[after - 1][1].max(line[after][1]) + 0.02);
            let formula = 10.0 * row[3].log10();
            assert!(formula > near.0 && formula < near.1, "eta {}: {formula} dB, drawn {near:?}", row[0]);
        }
    }
}

#[test]
fn what_cannot_be_done_is_refused_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_owned();
    let file = folder.path().join("file").to_str().unwrap().to_owned();
    std::fs::write(&file, "something").unwrap();
    for (arguments, words) in [
        (vec!["fig9", "--out", &out], "fig5"),
        (vec!["fig2"], "--out"),
        (vec!["fig2", "--out", &out, "--runs", "0"], "--runs must be between 1 and"),
        (vec!["fig2", "--out", &out, "--tx", "a", "--rx", "b"], "only fig5 takes recordings"),
        (vec!["fig5", "--out", &out, "--tx", "a"], "--rx"),
        (vec!["fig5", "--out", &out, "--tx", "missing.sigmf-meta", "--rx", "b"], "missing"),
        (vec!["steady", "--out", &file], "is a file; name a folder"),
    ] {
        let result = run(&arguments);
        let said = String::from_utf8_lossy(&result.stderr).into_owned();
        assert!(result.status.code() == Some(2) && said.contains(words), "{arguments:?}: {said}");
    }
}

#[cfg(unix)]
#[test]
fn after_ctrl_c_what_is_finished_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("kaflow"));
    // More runs than anybody waits for.
    let arguments = ["reproduce", "fig3", "--runs", "1000000", "--out", folder.path().to_str().unwrap()];
    let mut child = command.args(arguments).stdout(std::process::Stdio::null()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let json: Value = serde_json::from_slice(&std::fs::read(folder.path().join("fig3.json")).unwrap()).unwrap();
    let runs = json["settings"]["runs"].as_u64().unwrap();
    assert!((1..1_000_000).contains(&runs), "{runs} runs");
    let table = std::fs::read_to_string(folder.path().join("fig3.csv")).unwrap();
    assert_eq!(table.lines().next().unwrap().split(',').count() as u64, runs + 3);
    assert!(folder.path().join("fig3.png").exists());
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let numbers = || {
        let folder = tempfile::tempdir().unwrap();
        assert!(run(&["fig2", "--out", folder.path().to_str().unwrap(), "--runs", "4", "--seed", "9"]).status.success());
        std::fs::read_to_string(folder.path().join("fig2.csv")).unwrap()
    };
    assert_eq!(numbers(), numbers());
}
