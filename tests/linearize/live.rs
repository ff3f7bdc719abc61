//! `kaflow live --linearize`, with the simulated radio.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kaflow::Complex32;
use kaflow::blocks::{End, LoopConfig, Radio, RadioConfig};
use kaflow::dpd::Options;
use kaflow::filter::{Filter as _, Nlms};
use kaflow::flowgraphs::linearize::Loop;
use kaflow::flowgraphs::track::{self, Plan, Source, Watch};
use kaflow::ofdm::{self, Clip, Config, Transmitter};
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
    assert!(found["applied"] == true && number(&found, "rounds") >= 3.0, "{found}");
    assert!(after < before - 18.0 && number(&found, "evm_db") < number(&found, "evm_before_db") - 10.0, "{found}");
    assert!(number(&found, "tx_peak_dbfs") <= number(&found, "level_dbfs") + 1e-3, "{found}");
    assert!((-12.6..=-11.99).contains(&number(&found, "tx_mean_dbfs")), "no more power than asked for: {found}");
    for file in ["linearize.svg", "linearize.png", "report.html"] {
        assert!(folder.path().join("report").join(file).metadata().unwrap().len() > 500, "{file}");
    }
}

#[test]
fn where_next_to_nothing_but_noise_comes_back_the_plain_signal_is_sent_until_there_is_more() {
    let device = "driver=kaflow-testbed,pace=fast,snr_db=70,taps=0,seed=9";
    let mut config = RadioConfig { queue: 1 << 16, patient: true, ..RadioConfig::duplex(device, 5.4e9, 4e6) };
    config.tx = config.tx.map(|end| End { gain: Some(43.0), ..end });
    let radio = Radio::open(&config).unwrap();
    let ofdm = Config {
        oversampling: 4,
        window: 8,
        symbols: 20,
        clip: Some(Clip { level_db: 8.0, filter: true, iterations: 3 }),
        ..Config::default()
    };
    let mut frame = vec![Complex32::default(); ofdm.frame_samples()];
    Transmitter::new(ofdm, ofdm::Source::Continuous).unwrap().fill(&mut frame);
    let options = Options { memory: 0, ..Options::default() };
    let closed = LoopConfig { options, level: 3.4, back_off_db: 0.1, power_db: 0.0, pairs: 10_000, latency: Some(1 << 20) };
    let closed = Loop::new(closed, &frame).unwrap();
    let rounds = closed.rounds();
    let nlms = track::Filter::new("nlms", Nlms::new(4, 0.5, 1e-6).unwrap().on_stream());
    let plan = Plan { filters: vec![vec![nlms]], samples: Some(40_000_000), linearize: Some(closed), ..Plan::default() };
    let stop = AtomicBool::new(false);
    let watch = Watch { every: Duration::from_millis(20), ..Watch::new(&stop) };
    // The same device: SoapySDR opens one only once.
    let air = soapysdr::Device::new(device).unwrap();
    let (mut noisy, mut seen) = (None, 0);
    let source = Source::Radio(Box::new(radio), frame.into(), 10f32.powf(-12.0 / 20.0));
    track::run(source, plan, &watch, |_| {
        let all = rounds.get();
        match noisy {
            None if all.iter().filter(|round| round.applied).count() >= 3 => {
                air.write_setting("snr_db", "14").unwrap();
                (noisy, seen) = (Some(true), all.len());
            }
            Some(true) if all[seen..].iter().filter(|round| !round.applied).count() >= 2 => {
                air.write_setting("snr_db", "70").unwrap();
                (noisy, seen) = (Some(false), all.len());
            }
            Some(false) if all[seen..].iter().any(|round| round.predistorted && round.applied) => stop.store(true, Ordering::Relaxed),
            _ => {}
        }
    })
    .unwrap();
    let all = rounds.get();
    assert!(noisy == Some(false) && all.last().unwrap().applied, "{all:?}");
    assert!(all.iter().any(|round| !round.applied && round.model_db > -15.0), "it is the fit that gets worse: {all:?}");
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
