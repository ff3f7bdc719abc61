//! Numbers that are too large for the machine, and recordings of several channels.

use crate::{Bench, Done, done};

#[test]
fn a_budget_takes_no_more_memory_than_the_samples_need() {
    let bench = Bench::new();
    for filter in ["fklms", "norma", "klms", "qklms"] {
        bench.works(&format!("track tx.cf32 rx.cf32 --align none --filter {filter} --budget 1e8 --json big.json --force"));
        bench.works(&format!("track tx.cf32 rx.cf32 --align none --filter {filter} --budget 3000 --json enough.json --force"));
        let (big, enough) = (bench.json("big.json"), bench.json("enough.json"));
        assert_eq!(big["filters"][0]["nmse_db"], enough["filters"][0]["nmse_db"], "{filter}");
        assert_eq!(big["filters"][0]["parameters"]["budget"], 100_000_000, "{filter}");
    }
    bench.works("fit t.csv --filter fklms --budget 1e9 -o p.csv");
}

#[test]
fn what_memory_cannot_hold_is_refused_before_the_run() {
    let bench = Bench::new();
    bench.refuses("track --samples 1e12 --filter fklms --budget 1e9", &["--budget", "memory", "GB"]);
    bench.refuses("track --samples 1e12 --filter krlst --budget 1e6", &["--budget", "got 1e6"]);
    bench.refuses("tune tx.cf32 rx.cf32 --filter fklms --budget 1e9 --candidates 2", &["--budget", "memory"]);
    bench.refuses("track --samples 500 --filter mp-rls --order 15 --taps 4096", &["--taps", "memory"]);
    bench.refuses("track --samples 500 --filter ensemble --taps 4096", &["--taps"]);
}

#[test]
fn one_channel_of_several_is_chosen_and_named() {
    let bench = Bench::new();
    bench.works("simulate --preset a --samples 4e3 --antennas 2 --out m");
    let done = bench.works("track m --align none --filter nlms --json zero.json");
    assert!(done.out().contains("channel 0 of 2 sent, 0 of 2 received"), "{}", done.out());
    bench.works("track m --align none --filter nlms --channel 1 --tx-channel 1 --json one.json");
    bench.works("track m/tx m/rx --align none --filter nlms --channel 1 --tx-channel 1 --json named.json");
    let [zero, one, named] = ["zero", "one", "named"].map(|name| bench.json(&format!("{name}.json")));
    assert_ne!(zero["filters"][0]["nmse_db"], one["filters"][0]["nmse_db"]);
    assert_eq!(one["filters"][0]["nmse_db"], named["filters"][0]["nmse_db"]);
    assert_eq!(one["channels"]["rx"]["channel"], 1);
    assert_eq!(one["channels"]["rx"]["channels"], 2);
    bench.refuses("track m --filter nlms --channel 2", &["--channel", "got 2"]);
    assert!(!bench.works("track tx.cf32 rx.cf32 --align none --filter nlms").out().contains("channel"));
}

/// Runs the command with these words in a shell that has set a limit before.
fn limited(bench: &Bench, limit: &str, arguments: &str) -> Done {
    let mut shell = std::process::Command::new("sh");
    let script = format!("{limit} && exec '{}' {arguments}", assert_cmd::cargo::cargo_bin!("kaflow").display());
    done(shell.current_dir(bench.at("")).arg("-c").arg(script))
}

#[test]
fn what_the_blocks_cannot_run_without_is_missed_before_they_run() {
    let bench = Bench::new();
    let track = "track tx.cf32 rx.cf32 --align none --filter nlms";
    for (limit, word) in [
        ("ulimit -f 1", "File too large"),
        ("export TMPDIR=$PWD/nowhere", "nowhere, cannot be made: No such file"),
        ("export TMPDIR=/proc", "/proc, cannot be made"),
        ("ulimit -n 6", "Too many open files"),
    ] {
        let done = limited(&bench, limit, track);
        assert_eq!(done.code, Some(1), "{limit}: {}", done.stderr);
        assert_eq!(done.stderr.trim_end().lines().count(), 1, "{limit}: {}", done.stderr);
        assert!(done.stderr.contains(word), "{limit}: {}", done.stderr);
    }
    // Where memory is short, something or other fails, but nothing panics.
    for kilobytes in (40_000..120_000).step_by(20_000) {
        let done = limited(&bench, &format!("ulimit -v {kilobytes}"), track);
        assert!(done.code != Some(101) && !done.stderr.contains("panicked"), "{kilobytes}: {:?} {}", done.code, done.stderr);
    }
    assert_eq!(limited(&bench, "ulimit -f 4096", track).code, Some(0));
}

#[test]
fn filters_that_fit_into_memory_one_by_one_must_fit_together() {
    let bench = Bench::new();
    let both = "track --samples 1e12 --filter fklms,norma --budget 1e7";
    let done = limited(&bench, "ulimit -v 2000000", both);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    for word in ["--budget", "2 filters", "together fit", "they need 2.9 GB"] {
        assert!(done.stderr.contains(word), "{}", done.stderr);
    }
}
