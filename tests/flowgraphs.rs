//! The flowgraphs, with real files.
#![cfg(feature = "blocks")]

use std::path::Path;

use kaflow::{
    channel::{FadingConfig, Profile, Scenario, TestBed},
    filter::{Filter, Nlms, Rls, Tracker, Windowed},
    flowgraphs::{
        equalize::{self, Link},
        loopback, mimo, replay,
    },
    iq::{Datatype, Recording, Writer, sigmf::Meta},
    metrics::nmse_db,
    ofdm::{Config, Rate, Reading},
};

fn rls(taps: usize) -> Box<dyn Tracker<f32>> {
    Box::new(Windowed::new(Rls::new(taps, 0.999, 0.01).unwrap(), taps).unwrap())
}

fn record(path: &Path, samples: &[kaflow::Complex32]) -> Recording {
    let mut writer = Writer::create(path, Meta::new(Datatype::CF32_LE, Some(20e6)), false).unwrap();
    writer.write(samples).unwrap();
    writer.finish().unwrap();
    Recording::open(path.with_extension("sigmf-meta"), None).unwrap()
}

#[test]
fn loopback_tracks_a_slow_channel_better_than_a_fast_one_and_repeats_to_the_bit() {
    let slow = loopback::run(rls(4), 30_000, 6.0, 1e-6, 1).unwrap();
    let fast = loopback::run(rls(4), 30_000, 6.0, 1e-3, 1).unwrap();
    assert_eq!(slow.samples(), 30_000);
    assert!(slow.total().nmse_db() < fast.total().nmse_db() - 3.0, "{} and {}", slow.total().nmse_db(), fast.total().nmse_db());
    assert_eq!(loopback::run(rls(4), 30_000, 6.0, 1e-6, 1).unwrap(), slow);
}

#[test]
fn replay_of_recordings_is_the_bare_tracker_on_the_aligned_samples() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = Scenario { samples: 20_000, ..Scenario::preset("a").unwrap() };
    let run = TestBed::run(&scenario).unwrap();
    let late: Vec<_> = vec![Default::default(); 100].into_iter().chain(run.rx[0].iter().copied()).collect();
    let (tx, rx) = (record(&directory.path().join("tx"), &run.tx[0]), record(&directory.path().join("rx"), &late));
    let nlms = || Box::new(Windowed::new(Nlms::new(4, 0.5, 1e-6).unwrap(), 4).unwrap());
    let error = directory.path().join("error");
    let found = replay::run(tx, rx, nlms(), false, &error).unwrap();
    assert_eq!(found.alignment.whole(), 100);

    let (tx, rx) = found.alignment.apply(&run.tx[0], &late);
    let mut prediction = vec![Default::default(); rx.len()];
    nlms().track(&tx, &rx, &mut prediction, None);
    assert!((found.series.total().nmse_db() - nmse_db(&rx, &prediction)).abs() < 1e-6);
    let written = Recording::open(error.with_extension("sigmf-meta"), None).unwrap().read_up_to(usize::MAX).unwrap();
    assert_eq!(written.len(), rx.len());
    assert!(written.iter().zip(rx.iter().zip(&prediction)).all(|(e, (y, p))| *e == y - p));
}

#[test]
fn swapping_the_inputs_turns_identification_into_equalisation() {
    let directory = tempfile::tempdir().unwrap();
    let mut scenario = Scenario { samples: 20_000, snr_db: Some(30.0), amplifier: None, ..Scenario::preset("a").unwrap() };
    scenario.fading = Some(FadingConfig::new(Profile::exponential(1, 3.0), 1e-5));
    let run = TestBed::run(&scenario).unwrap();
    let (tx, rx) = (record(&directory.path().join("tx"), &run.tx[0]), record(&directory.path().join("rx"), &run.rx[0]));
    let found = replay::run(tx, rx, rls(4), true, &directory.path().join("error")).unwrap();
    assert!(found.series.last().nmse_db() < -20.0, "{}", found.series.last().nmse_db());
}

#[test]
fn the_receiver_reads_through_a_saturation_that_one_tap_cannot() {
    for paths in [1, 2] {
        let profile = Profile::exponential(paths, 3.0);
        let ofdm = Config { code: Some(Rate::Half), ..Config::preset("paper").unwrap() };
        let link = Link { ofdm, frames: 30, ibo_db: 2.0, profile, doppler: 1e-6, snr_db: 30.0, seed: 3 };
        let (one_tap, read) = equalize::run(&link, &Reading::default()).unwrap();
        let what = format!("{paths} paths: EVM {} and {}", one_tap.evm.percent(), read.evm.percent());
        assert!(one_tap.packets == 30 && read.packets == 30 && read.decoded == 30, "{what}, {} decoded", read.decoded);
        assert!(
            read.weighted.percent() <= 3.5 && one_tap.weighted.percent() > 10.0,
            "{what}, weighted {} and {}",
            one_tap.weighted.percent(),
            read.weighted.percent()
        );
        assert!(read.ber.rate() < 0.1 * one_tap.ber.rate() && read.points.len() == 4000, "{what}");
    }
}

#[test]
fn four_antennas_are_told_apart() {
    let filter = |length| Ok(Box::new(Rls::new(length, 0.9995, 0.01)?) as Box<dyn Filter<f32>>);
    let series = mimo::run(filter, 4, 20_000, 1e-6, 1).unwrap();
    assert_eq!(series.len(), mimo::ANTENNAS);
    for s in &series {
        assert_eq!(s.samples(), 20_000);
        assert!(s.last().nmse_db() < -12.0, "{}", s.last().nmse_db());
    }
}
