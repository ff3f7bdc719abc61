//! What every command line is expected to do.

use crate::Bench;

const COMMANDS: [&str; 12] = ["track", "bench", "cancel", "fit", "inspect", "linearize", "receive", "reproduce", "simulate", "tune", "completions", "man"];

#[test]
fn help_and_version_everywhere() {
    let bench = Bench::new();
    let help = bench.works("--help").out().split_whitespace().collect::<Vec<_>>().join(" ");
    for word in ["Exit codes: 0 it worked", "130 Ctrl-C", "--quiet", "--verbose"] {
        assert!(help.contains(word), "{help}");
    }
    for command in COMMANDS {
        let help = bench.works(&format!("{command} --help")).out();
        assert!(help.contains("Exit codes:"), "{command}");
        assert!(help.lines().all(|line| line.chars().count() <= 120), "{command}: {help}");
        assert!(bench.works(&format!("{command} --version")).out().contains(env!("CARGO_PKG_VERSION")), "{command}");
    }
}

#[test]
fn every_command_that_finds_something_writes_json_with_a_schema() {
    let bench = Bench::new();
    for (command, arguments) in [
        ("track", "track tx.cf32 rx.cf32 --align none --filter nlms"),
        ("inspect", "inspect rx.cf32"),
        ("receive", "receive rx.cf32"),
        ("fit", "fit t.csv -o p.csv"),
        ("simulate", "simulate --samples 500 --out s"),
        ("tune", "tune tx.cf32 rx.cf32 --filter nlms --candidates 2"),
        ("reproduce", "reproduce fig4 --runs 1 --out r"),
    ] {
        bench.works(&format!("{arguments} --json a.json --force"));
        let found = bench.json("a.json");
        assert_eq!(found["schema"], format!("kaflow/{command}"));
        assert_eq!(found["schema_version"], 1, "{command}");
        // Counts are integers.
        for name in ["samples", "budget", "taps", "centres", "channels", "tried", "order"] {
            every(&found, name, &mut |value| assert!(!value.is_f64(), "{command}: {name} is {value}"));
        }
    }
}

/// All values of that name, however deep.
fn every(value: &serde_json::Value, name: &str, each: &mut impl FnMut(&serde_json::Value)) {
    match value {
        serde_json::Value::Object(map) => {
            map.get(name).filter(|v| v.is_number()).into_iter().for_each(&mut *each);
            map.values().for_each(|value| every(value, name, each));
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| every(value, name, each)),
        _ => {}
    }
}

#[test]
fn one_name_for_one_thing_and_numbers_as_people_write_them() {
    let bench = Bench::new();
    bench.works("track --preset a --samples 2e3 --filter nlms,rls --filter lms --taps 4e0 --skip 1e2 --json a.json");
    assert_eq!(bench.json("a.json")["filters"].as_array().unwrap().len(), 3);
    bench.works("simulate --samples 5e2 --rate 2e6 --out s");
    bench.works("simulate --samples 500 --sample-rate 2e6 --out s2");
    assert_eq!(std::fs::read(bench.at("s/rx.sigmf-data")).unwrap(), std::fs::read(bench.at("s2/rx.sigmf-data")).unwrap());
    bench.works("tune tx.cf32 rx.cf32 --filter nlms --candidates 2e0 --out folder");
    assert!(bench.at("folder/params.toml").exists());
    bench.works("tune tx.cf32 rx.cf32 --filter nlms --candidates 2 --output own.toml");
    bench.works("track tx.cf32 rx.cf32 --filter nlms --params own.toml --rate 1e6");
}

#[test]
fn quiet_and_verbose() {
    let bench = Bench::new();
    let run = "track tx.cf32 rx.cf32 --align none --filter nlms";
    let (plain, quiet, verbose) = (bench.works(run), bench.works(&format!("{run} -q")), bench.works(&format!("-v {run}")));
    assert!(plain.out().contains("NMSE dB") && quiet.out().contains("NMSE dB"));
    assert!(quiet.stderr.is_empty() && verbose.stderr.contains("mu") && verbose.stderr.contains("rx.cf32"), "{}", verbose.stderr);
    assert!(bench.works("fit t.csv -o p.csv -q").stderr.is_empty());
    bench.refuses(&format!("{run} -q -v"), &["--quiet", "--verbose"]);
    assert!(!bench.run("fit missing.csv -q").stderr.is_empty());
}

#[test]
fn completions_and_manual_pages_come_from_the_command_line_itself() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = bench.works(&format!("completions {shell}")).out();
        assert!(text.contains("kaflow") && text.contains("checkpoint-every"), "{shell}");
    }
    bench.refuses("completions tcsh", &["tcsh", "bash"]);
    let page = bench.works("man").out();
    assert!(page.starts_with(".ie") && page.contains("kaflow\\-track"), "{page}");
    bench.works("man --out pages");
    for command in COMMANDS {
        assert!(bench.at(&format!("pages/kaflow-{command}.1")).metadata().unwrap().len() > 500, "{command}");
    }
}

#[test]
fn a_slip_gets_a_tip_that_helps() {
    let bench = Bench::new();
    bench.refuses("trakc", &["track"]);
    bench.refuses("track --fliter nlms", &["--filter"]);
    bench.refuses("track --filter nmls", &["nlms"]);
    bench.refuses("simulate --out s --dopler 1", &["--doppler"]);
}
