//! The commands of the README, as a newcomer types them.
#![cfg(feature = "cli")]

use std::{fs, path::Path, time::Duration};

use assert_cmd::{Command, cargo::cargo_bin};

/// The lines of the README's shell blocks.
fn commands() -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(|block| block.lines().map(str::to_owned)).collect()
}

#[test]
fn every_command_of_the_readme_works() {
    let commands = commands();
    assert!(commands.iter().any(|c| c == "cargo run --release"), "the first thing to type: {commands:?}");
    let run = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run")).unwrap();
    for command in &commands {
        let words: Vec<&str> = command.split_whitespace().collect();
        match &words[..] {
            // What cargo builds and runs with these features has been built for this test; .ci/run types the line itself.
            ["cargo", "run", "--release", rest @ ..] => {
                let (features, arguments) = rest.split_at(rest.iter().position(|w| *w == "--").map_or(rest.len(), |at| at + 1));
                if features.contains(&"soapy") && cfg!(not(feature = "soapy")) {
                    println!("SKIPPED: {command}: built without the feature soapy");
                    continue;
                }
                let directory = tempfile::tempdir().unwrap();
                let mut kaflow = Command::new(cargo_bin!("kaflow"));
                let output = kaflow.current_dir(directory.path()).args(arguments).timeout(Duration::from_secs(120)).assert().success();
                let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
                assert!(text.contains("NMSE"), "{command}: {text}");
            }
            ["apt-get", "install", packages @ ..] => {
                packages.iter().for_each(|p| assert!(run.contains(p), "tests/run does not install {p}"))
            }
            // This test is part of it.
            ["tests/run"] => {}
            _ => panic!("nobody has tried the README's '{command}'"),
        }
    }
}
