//! What a study is made of, and that its tasks are the runs of `kaflow track`.

use serde_json::Value;

use crate::{SMALL, Study, stdout};

#[test]
fn the_same_file_gives_the_same_plan_and_a_number_says_what_a_task_is() {
    let study = Study::new(SMALL);
    let said = stdout(&study.study("plan", &["--out", "a"]).success());
    assert!(said.contains("18 tasks"), "{said}");
    study.study("plan", &["--out", "b"]).success();
    let plan = study.read("a/plan.ndjson");
    assert_eq!(plan, study.read("b/plan.ndjson"));
    let tasks: Vec<Value> = plan.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(tasks.len(), 18);
    for (n, task) in tasks.iter().enumerate() {
        assert_eq!(task["task"], n as u64);
        assert_eq!(task["seed"], n as u64 / 3 % 3 + 1);
        assert_eq!(task["scenario"]["snr_db"], [10, 20][n / 9]);
        assert_eq!(task["filter"], if n % 3 == 0 { "nlms" } else { "fklms" });
        let lambda = [Value::Null, 0.99.into(), 0.999.into()][n % 3].clone();
        assert_eq!(task["parameters"].get("lambda").cloned().unwrap_or_default(), lambda);
    }
}

#[test]
fn random_parameters_are_the_same_again_and_within_their_range() {
    let text = r#"
        [[input]]
        preset = "d"
        [[filter]]
        name = "fklms"
        random = { draws = 40, seed = 3, range.lambda = { from = 0.9, to = 0.99 }, range.sigma = { from = 0.1, to = 10, log = true } }
    "#;
    let study = Study::new(text);
    study.study("plan", &["--out", "a"]).success();
    let other = Study::new(&text.replace("seed = 3", "seed = 4"));
    other.study("plan", &["--out", "a"]).success();
    assert_ne!(study.read("a/plan.ndjson"), other.read("a/plan.ndjson"));
    let sigmas: Vec<f64> = study
        .read("a/plan.ndjson")
        .lines()
        .map(|line| {
            let task: Value = serde_json::from_str(line).unwrap();
            assert!((0.9..=0.99).contains(&task["parameters"]["lambda"].as_f64().unwrap()));
            task["parameters"]["sigma"].as_f64().unwrap()
        })
        .collect();
    assert!(sigmas.len() == 40 && sigmas.iter().all(|s| (0.1..=10.0).contains(s)));
    // Uniform in the logarithm: half of them below the middle.
    let low = sigmas.iter().filter(|s| **s < 1.0).count();
    assert!((10..=30).contains(&low), "{low} of 40");
}

#[test]
fn a_task_is_the_run_of_track_to_the_bit() {
    let simulated = r#"
        skip = 100
        filters = ["nlms", "ensemble"]
        [[input]]
        preset = "d"
        set.samples = 3000
        seeds = [7]
        [[input]]
        recordings = "captures/*"
    "#;
    let study = Study::new(simulated);
    for name in ["captures/one", "captures/two"] {
        let seed = name.len().to_string();
        study.kaflow(&["simulate", "--preset", "d", "--samples", "2500", "--seed", &seed, "--out", name]).assert().success();
    }
    study.study("run", &["--out", "a"]).success();
    let results = study.results("a");
    assert_eq!(results.len(), 6);
    let bed = ["--preset", "d", "--samples", "3000", "--seed", "7"];
    let inputs: [&[&str]; 3] = [&bed, &["captures/one"], &["captures/two"]];
    for (n, input) in inputs.iter().enumerate() {
        let track =
            [&["track"], *input, &["--skip", "100", "--filter", "nlms", "--filter", "ensemble", "--json", "t.json", "--force"]].concat();
        study.kaflow(&track).assert().success();
        let tracked: Value = serde_json::from_str(&study.read("t.json")).unwrap();
        for result in &results[2 * n..2 * n + 2] {
            let same = tracked["filters"].as_array().unwrap().iter().find(|f| f["name"] == result["filter"]).unwrap();
            assert_eq!(same["nmse_db"], result["nmse_db"], "{result}");
            assert_eq!((&same["samples"], &same["parameters"]), (&result["samples"], &result["parameters"]));
        }
    }
}

#[test]
fn the_example_is_a_study() {
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/study.toml");
    let study = Study::new("");
    let said = stdout(&study.kaflow(&["study", "plan", "--out", "a"]).arg(&example).assert().success());
    // 3 x 5 scenarios, 10 seeds, two filters as they are and one with three values.
    assert!(said.contains("750 tasks"), "{said}");
}
