//! `kaflow live --linearize`, with the simulated radio.

use serde_json::Value;

use crate::command::{common, json, kaflow, raw, refused, worse};

/// A radio whose amplifier comes back through a wire.
const RADIO: &str = "live --device driver=kaflow-testbed,pace=fast,snr_db=70,taps=0";

fn number(found: &Value, name: &str) -> f64 {
    found[name].as_f64().unwrap_or_else(|| panic!("{name} in {found}"))
}

#[test]
fn a_radio_is_linearised_while_it_transmits_and_never_beyond_its_level() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "--rate 4e6 --seconds 2 --backoff 12 --peak-growth 1.5 --linearize --json a.json --out report";
    kaflow(folder.path(), &format!("{RADIO} {arguments}")).success();
    let found = json(folder.path().join("a.json"))["linearize"].clone();
    let (before, after) = (worse(&found["aclr_before_dbc"]), worse(&found["aclr_after_dbc"]));
    println!("live: ACLR {before:.1} to {after:.1} dBc, EVM {} to {} dB", found["evm_before_db"], found["evm_db"]);
    assert!(found["applied"] == true && number(&found, "rounds") >= 3.0 && found["bypasses"] == 0, "{found}");
    assert!(after < before - 12.0 && number(&found, "evm_db") < number(&found, "evm_before_db") - 10.0, "{found}");
    assert!(number(&found, "tx_peak_dbfs") <= number(&found, "level_dbfs") + 1e-3, "{found}");
    assert!((-12.6..=-11.99).contains(&number(&found, "tx_mean_dbfs")), "no more power than asked for: {found}");
    for file in ["linearize.svg", "linearize.png", "report.html"] {
        assert!(folder.path().join("report").join(file).metadata().unwrap().len() > 500, "{file}");
    }
}

#[test]
fn where_nothing_but_noise_comes_back_the_plain_signal_is_sent_until_there_is_more() {
    let folder = tempfile::tempdir().unwrap();
    // Four million samples are heard, then none of so many.
    let run = |silent: u64, seconds: f64| {
        let radio = format!("{RADIO},late_every=4000000,late_length={silent}");
        kaflow(folder.path(), &format!("{radio} --rate 4e6 --seconds {seconds} --linearize --json b.json")).success();
        json(folder.path().join("b.json"))["linearize"].clone()
    };
    let lost = run(100_000_000, 1.7);
    assert!(lost["applied"] == false && number(&lost, "bypasses") >= 1.0, "{lost}");
    assert!(worse(&lost["aclr_after_dbc"]) < worse(&lost["aclr_before_dbc"]) - 6.0, "it was applied before: {lost}");
    std::fs::remove_file(folder.path().join("b.json")).unwrap();
    let back = run(1_000_000, 2.0);
    assert!(back["applied"] == true && number(&back, "bypasses") >= 1.0, "{back}");
}

#[test]
fn what_a_radio_cannot_linearise_is_refused_before_it_transmits() {
    let folder = tempfile::tempdir().unwrap();
    raw(folder.path().join("white.cf32"), &common::noise(1, 8000));
    let refuse =
        |arguments: &str, word: &str| refused(folder.path(), &format!("{RADIO} --rate 4e6 --seconds 1 --linearize {arguments}"), word);
    refuse("--tx white.cf32 --format cf32_le --backoff 15", "at least 3");
    refuse("--bandwidth 1e6", "--bandwidth");
    refuse("--peak-growth 50", "--peak-growth");
}
