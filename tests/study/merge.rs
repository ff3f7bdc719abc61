//! Results that belong together, and those that do not.

use std::fs;

use crate::{SMALL, Study, assert_merged_alike, files, stderr, stdout};

#[test]
fn shards_in_any_order_run_twice_and_torn_merge_to_the_bytes_of_one_run() {
    let study = Study::new(SMALL);
    study.study("run", &["--out", "serial", "--cores", "1"]).success();
    study.study("merge", &["--out", "serial"]).success();

    // Shards of 5 of 18 tasks, whoever says which; one of them by two processes at a time.
    let shard = ["study", "run", "s.toml", "--out", "shards", "--shard-size", "5"];
    study.kaflow(&shard).env("SLURM_ARRAY_TASK_ID", "3").assert().success();
    study.kaflow(&shard).env("JOB_COMPLETION_INDEX", "1").assert().success();
    let both: Vec<_> = (0..2)
        .map(|_| {
            let mut command = std::process::Command::new(study.kaflow(&shard).get_program());
            command.current_dir(study.path("")).args(shard).args(["--task", "0"]).env_remove("SLURM_ARRAY_TASK_ID");
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    both.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    let refused = study.study("merge", &["--out", "shards"]).code(2);
    assert!(stderr(&refused).contains("5 of 18 tasks are missing: 10-14"), "{}", stderr(&refused));
    assert!(!study.path("shards/table.csv").exists());
    let partial = stdout(&study.study("merge", &["--out", "shards", "--partial"]).success());
    assert!(partial.contains("13 tasks,"), "{partial}");

    // What a killed process leaves: a shard with one line and a half.
    study.kaflow(&shard).args(["--task", "2"]).assert().success();
    let path = study.path("shards/tasks/0000010-0000014.ndjson");
    let whole = fs::read_to_string(&path).unwrap();
    let first = whole.lines().next().unwrap();
    fs::write(&path, format!("{first}\n{}", &first[..first.len() / 2])).unwrap();
    let said = stdout(&study.kaflow(&shard).args(["--task", "2"]).assert().success());
    assert!(said.contains("4 of 5 tasks done") && said.contains("1 were done before"), "{said}");
    let said = stdout(&study.kaflow(&shard).args(["--task", "2"]).assert().success());
    assert!(said.contains("0 of 5 tasks done") && said.contains("5 were done before"), "{said}");
    // And with shards of another size, or all at once, there is nothing left to do.
    let said = stdout(&study.study("run", &["--out", "shards"]).success());
    assert!(said.contains("0 of 18 tasks done"), "{said}");

    let said = stdout(&study.study("merge", &["--out", "shards", "--force"]).success());
    assert!(!said.contains("twice"), "{said}");
    assert_merged_alike(&study, "serial", "shards");
    let table = study.read("shards/table.csv");
    assert_eq!(table.lines().count(), 19);
    assert!(table.starts_with("task,input,recording,seed,scenario.snr_db,filter,parameter.lambda,samples,nmse_db,"), "{table}");
    let merged: serde_json::Value = serde_json::from_str(&study.read("shards/merge.json")).unwrap();
    assert_eq!((&merged["schema"], &merged["tasks"], &merged["missing"]), (&"kaflow/study".into(), &18.into(), &0.into()));
}

#[test]
fn means_and_bands_are_those_of_the_table() {
    let study = Study::new(SMALL);
    study.study("run", &[]).success();
    study.study("merge", &[]).success();
    let rows: Vec<serde_json::Value> =
        study.read("s.results/table.ndjson").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let nlms: Vec<f64> = rows.iter().filter(|r| r["filter"] == "nlms").map(|r| r["nmse_db"].as_f64().unwrap()).collect();
    let mean = nlms.iter().sum::<f64>() / 6.0;
    let error = 2.0 * (nlms.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 5.0 / 6.0).sqrt();
    let merged: serde_json::Value = serde_json::from_str(&study.read("s.results/merge.json")).unwrap();
    let found = merged["filters"].as_array().unwrap().iter().find(|f| f["name"] == "nlms").unwrap();
    assert!(
        (found["nmse_db"].as_f64().unwrap() - mean).abs() < 1e-9 && (found["two_standard_errors"].as_f64().unwrap() - error).abs() < 1e-9
    );
    // The best of fklms is the better of its two, whatever that is.
    let of = |lambda: f64| {
        let values: Vec<f64> = rows.iter().filter(|r| r["parameter.lambda"] == lambda).map(|r| r["nmse_db"].as_f64().unwrap()).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let found = merged["filters"].as_array().unwrap().iter().find(|f| f["name"] == "fklms").unwrap();
    assert!((found["nmse_db"].as_f64().unwrap() - of(0.99).min(of(0.999))).abs() < 1e-9);
    let svg = study.read("s.results/curves.svg");
    assert!(svg.contains("snr_db") && svg.contains("lambda"));
}

#[test]
fn a_grid_of_two_parameters_is_a_map_and_its_best_cell_is_the_best_of_the_table() {
    let study = Study::new(
        r#"
        [[input]]
        preset = "d"
        set.samples = 800
        seeds = 2
        [[filter]]
        name = "fklms"
        set.budget = 40
        grid.lambda = [0.9, 0.99]
        grid.sigma = { from = 0.5, to = 8, steps = 3, log = true }
        "#,
    );
    study.study("run", &[]).success();
    study.study("merge", &[]).success();
    assert!(study.read("s.results/maps.svg").contains("log10 sigma") && study.path("s.results/maps.png").exists());
    let rows: Vec<serde_json::Value> =
        study.read("s.results/table.ndjson").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut means = std::collections::BTreeMap::<String, f64>::new();
    for row in &rows {
        *means.entry(format!("{} {}", row["parameter.lambda"], row["parameter.sigma"])).or_default() +=
            row["nmse_db"].as_f64().unwrap() / 2.0;
    }
    assert_eq!(means.len(), 6);
    let (best, mean) = means.iter().min_by(|a, b| a.1.total_cmp(b.1)).unwrap();
    let merged: serde_json::Value = serde_json::from_str(&study.read("s.results/merge.json")).unwrap();
    let found = &merged["filters"][0];
    assert_eq!(*best, format!("{} {}", found["parameters"]["lambda"], found["parameters"]["sigma"]));
    assert!((found["nmse_db"].as_f64().unwrap() - mean).abs() < 1e-9);
}

#[test]
fn what_does_not_belong_together_is_refused_and_nothing_is_overwritten() {
    let study = Study::new(SMALL);
    study.study("run", &[]).success();
    let path = files(&study.path("s.results/tasks")).remove(0);
    let good = fs::read_to_string(&path).unwrap();
    let hash = |text: &str| text.split("\"input_sha256\":\"").nth(1).unwrap()[..64].to_owned();
    let doubled = good.clone() + &good.lines().next().unwrap().replace("\"nmse_db\":-", "\"nmse_db\":-1");
    for (bad, word) in [
        (good.replacen("\"version\":\"0.", "\"version\":\"9.", 1), "is from kaflow 9."),
        (good.replacen("\"study\":\"", "\"study\":\"0", 1), "belongs to another plan"),
        (good.replacen(&hash(&good), &"0".repeat(64), 1), "it was changed in between"),
        (doubled + "\n", "is there twice, with different results"),
        (good.replacen("\"task\":", "\"task\":x", 1), "line 1: is no result"),
        (String::new(), "18 of 18 tasks are missing: 0-17"),
    ] {
        fs::write(&path, &bad).unwrap();
        let refused = study.study("merge", &[]).code(2);
        let said = stderr(&refused);
        assert!(said.contains(word) && said.lines().count() == 1, "{word}: {said}");
        assert_eq!(fs::read_to_string(&path).unwrap(), bad);
        assert!(!study.path("s.results/table.csv").exists() && !study.path("s.results/report.html").exists());
    }
    // A run does not mix with another version either.
    fs::write(&path, good.replace("\"version\":\"0.", "\"version\":\"9.")).unwrap();
    assert!(stderr(&study.study("run", &[]).code(2)).contains("is from kaflow 9."));
    // The same twice is the same.
    fs::write(&path, format!("{good}{good}")).unwrap();
    assert!(stdout(&study.study("merge", &[]).success()).contains("18 tasks were done twice, with the same result"));
    let before = study.read("s.results/table.csv");
    assert!(stderr(&study.study("merge", &[]).code(2)).contains("--force"));
    assert_eq!(before, study.read("s.results/table.csv"));
    study.study("merge", &["--force"]).success();
    assert_eq!(before, study.read("s.results/table.csv"));
}

#[test]
fn a_broken_recording_is_a_result_and_the_others_go_on() {
    let study = Study::new("filters = [\"nlms\"]\n[[input]]\nrecordings = \"captures/*\"\n");
    study.kaflow(&["simulate", "--preset", "d", "--samples", "2000", "--out", "captures/good"]).assert().success();
    fs::create_dir_all(study.path("captures/empty")).unwrap();
    fs::write(study.path("captures/empty/pair.sigmf-collection"), "{}").unwrap();
    // What cannot be read now is no result, and keeps nobody from the others.
    study.kaflow(&["simulate", "--preset", "d", "--samples", "2000", "--seed", "2", "--out", "captures/late"]).assert().success();
    fs::rename(study.path("captures/late/rx.sigmf-data"), study.path("away")).unwrap();
    assert!(stderr(&study.study("run", &[]).failure()).contains("rx.sigmf-data"));
    assert_eq!(study.results("s.results").len(), 2);
    fs::rename(study.path("away"), study.path("captures/late/rx.sigmf-data")).unwrap();
    let said = stdout(&study.study("run", &[]).success());
    assert!(said.contains("1 of 3 tasks done") && said.contains("1 FAILED, the first task 0:"), "{said}");
    let said = stdout(&study.study("merge", &[]).success());
    assert!(said.contains("1 tasks FAILED"), "{said}");
    let rows: Vec<serde_json::Value> =
        study.read("s.results/table.ndjson").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows[0]["error"].is_string() && rows[0]["nmse_db"].is_null() && rows[1]["error"].is_null() && rows[2]["nmse_db"].is_number());
}

/// A million tasks: planned and merged in less than 500 MB of address space. How long it takes stands in the documentation, measured.
#[test]
#[ignore = "half a minute"]
fn a_million_tasks_are_planned_and_merged_in_little_memory() {
    let study = Study::new("filters = [\"nlms\"]\n[[input]]\npreset = \"d\"\nset.samples = 64\nseeds = 1000000\n");
    let limited = |words: &str| {
        let kaflow = study.kaflow(&[]).get_program().to_string_lossy().into_owned();
        let script = format!("ulimit -v 500000; exec {kaflow} study {words} s.toml");
        assert_cmd::Command::new("bash").current_dir(study.path("")).args(["-c", &script]).assert()
    };
    limited("plan").success();
    assert_eq!(study.read("s.results/plan.ndjson").lines().count(), 1_000_000);
    study.study("run", &["--task", "0"]).success();
    let path = files(&study.path("s.results/tasks")).remove(0);
    let line = fs::read_to_string(&path).unwrap();
    let all: String = (0..1_000_000).map(|task| line.replacen("\"task\":0,", &format!("\"task\":{task},"), 1)).collect();
    fs::remove_file(path).unwrap();
    fs::write(study.path("s.results/tasks/0000000-0999999.ndjson"), all).unwrap();
    limited("merge").success();
    assert_eq!(study.read("s.results/table.csv").lines().count(), 1_000_001);
}
