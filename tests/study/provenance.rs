//! Every JSON file says where its numbers come from.

use std::process::Command;

use serde_json::Value;

use crate::Study;

#[test]
fn json_says_version_command_seed_options_inputs_host_processor_and_time() {
    let study = Study::new("");
    study.kaflow(&["simulate", "--preset", "d", "--samples", "2000", "--out", "pair"]).assert().success();
    let tx = ["pair/tx.sigmf-meta", "pair/rx.sigmf-meta"];
    let runs: [(&str, Vec<&str>, usize); 4] = [
        ("track", [&["track"], &tx[..], &["--filter", "nlms", "--skip", "5"]].concat(), 4),
        ("track", vec!["track", "pair", "--filter", "nlms"], 4),
        ("track", vec!["track", "--preset", "e", "--filter", "nlms", "--samples", "900"], 0),
        ("inspect", vec!["inspect", "pair/rx.sigmf-meta"], 2),
    ];
    for (schema, words, inputs) in runs {
        study.kaflow(&words).args(["--json", "x.json", "--force"]).assert().success();
        let all: Value = serde_json::from_str(&study.read("x.json")).unwrap();
        let found = &all["provenance"];
        assert_eq!((&all["schema"], &all["schema_version"]), (&format!("kaflow/{schema}").into(), &1.into()), "{words:?}");
        assert_eq!((&found["version"], &found["command"][0]), (&env!("CARGO_PKG_VERSION").into(), &"kaflow".into()));
        assert_eq!(found["command"][1], words[0]);
        assert!(
            !found["host"].as_str().unwrap().is_empty() && found["cpu"]["simd"].is_string() && found["cpu"]["cores"].as_u64() > Some(0)
        );
        assert!(found["time"].as_str().unwrap().ends_with('Z'), "{found}");
        let listed = found["inputs"].as_array().unwrap();
        assert!(listed.len() >= inputs && (inputs > 0 || listed.is_empty()), "{words:?}: {listed:?}");
        for input in listed {
            let path = study.path(input["path"].as_str().unwrap());
            // Another program's word for it.
            let said = Command::new("sha256sum").arg(&path).output().unwrap();
            assert_eq!(input["sha256"].as_str().unwrap(), &String::from_utf8(said.stdout).unwrap()[..64], "{}", path.display());
        }
        if schema == "track" {
            // Given or not, every option is there.
            let skip = if words.contains(&"--skip") { 5 } else { 0 };
            assert_eq!(
                (&found["options"]["skip"], &found["options"]["align"], &found["options"]["trim"]),
                (&skip.into(), &"auto".into(), &false.into())
            );
            assert_eq!(found["options"]["filter"], "nlms");
        }
        if words.contains(&"--preset") {
            assert_eq!((&found["seed"], &all["scenario"]["seed"], &all["scenario"]["samples"]), (&1.into(), &1.into(), &900.into()));
        } else {
            assert!(found["seed"].is_null());
        }
    }
}
