//! The same with a radio at the end.

use crate::Bench;

const LIVE: &str = "live --device driver=kaflow-testbed,pace=fast --rate 1e6 --seconds 0.05 --filter nlms";

#[test]
fn a_live_run_replaces_nothing_that_it_reads_and_nothing_without_force() {
    let bench = Bench::new();
    std::fs::create_dir(bench.at("pair")).unwrap();
    for name in ["tx.sigmf-meta", "tx.sigmf-data"] {
        std::fs::copy(bench.at(name), bench.at("pair").join(name)).unwrap();
    }
    bench.refuses(&format!("{LIVE} --tx pair/tx --record pair --force"), &["is the input"]);
    bench.refuses(&format!("{LIVE} --record pair"), &["exists already"]);
    bench.refuses(&format!("{LIVE} --json t.csv"), &["exists already"]);
    bench.refuses(&format!("{LIVE} --params p.toml --json p.toml --force"), &["is the input"]);
    bench.refuses(&format!("{LIVE} --out t.csv"), &["is a file"]);
    bench.refuses(&format!("{LIVE} --cancel -"), &["-: cancel", "two files"]);
    bench.refuses(&format!("{LIVE} --cancel /dev/null"), &["/dev/null: cancel", "two files"]);
    bench.refuses(&format!("{LIVE} --record -"), &["is standard output; name a folder"]);
    bench.refuses(&format!("{LIVE} --backoff nan"), &["--backoff", "got nan"]);
    bench.refuses(&format!("{LIVE} --record new --json new/rx.sigmf-meta"), &["is the output"]);
    bench.refuses(&format!("{LIVE} --record pair --out pair --cancel pair/rx --force"), &["is the output"]);
    bench.works(&format!("{LIVE} --json a.json"));
    // Packets have a folder of their own, whether theirs is there already or not.
    bench.works(&format!("{LIVE} --receive --out new"));
    std::fs::create_dir(bench.at("there")).unwrap();
    bench.works(&format!("{LIVE} --receive --out there"));
    assert!(bench.at("new/packets/packets.csv").is_file() && bench.at("there/packets/packets.csv").is_file());
    assert_eq!(bench.json("a.json")["schema"], "kaflow/track");
}

#[test]
fn a_radio_that_is_gone_is_a_failure_and_not_a_mistake() {
    let bench = Bench::new();
    let gone = LIVE.replace("pace=fast", "pace=fast,vanish_after=100").replace("--seconds 0.05", "--seconds 5");
    let done = bench.run(&gone);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    bench.works("devices --json d.json");
    assert_eq!(bench.json("d.json")["schema"], "kaflow/devices");
    bench.refuses("live --device audio", &["driver="]);
    bench.refuses(&format!("{LIVE} --queue 1e15"), &["--queue", "got 1e15"]);
}
