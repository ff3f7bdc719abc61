//! The flowgraphs, with real files.
#![cfg(feature = "blocks")]

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kaflow::{
    blocks::{Command, IqSink},
    channel::{FadingConfig, Profile, Scenario, TestBed},
    filter::{Filter, Guard, Nlms, Rls, Tracker},
    flowgraphs::{
        equalize::{self, Link},
        loopback, mimo,
        track::{self, Outcome, Plan, Watch},
    },
    iq::{Datatype, Pairs, Recording, Synchroniser, Writer, align::Options, sigmf::Meta},
    metrics::nmse_db,
    ofdm::{Config, Rate, Reading},
};

fn rls(taps: usize) -> Box<dyn Tracker<f32>> {
    Rls::new(taps, 0.999, 0.01).unwrap().on_stream()
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

/// Tracks two recordings, the error written to `error`.
fn replay(tx: Recording, rx: Recording, sync: Synchroniser, tracker: Box<dyn Tracker<f32>>, equalize: bool, error: &Path) -> Outcome {
    let writer = Writer::create(error, Meta::new(Datatype::CF32_LE, None), false).unwrap();
    let filter = track::Filter { error: Some(IqSink::new(writer)), ..track::Filter::new("the filter", tracker) };
    let plan = Plan { filters: vec![vec![filter]], equalize, ..Plan::default() };
    track::run(track::Source::Recordings(tx, rx, sync), plan, &Watch::new(&false.into()), |_| ()).unwrap()
}

#[test]
fn a_run_over_recordings_is_the_bare_tracker_on_the_aligned_samples() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = Scenario { samples: 20_000, ..Scenario::preset("a").unwrap() };
    let run = TestBed::run(&scenario).unwrap();
    let late: Vec<_> = vec![Default::default(); 100].into_iter().chain(run.rx[0].iter().copied()).collect();
    let (tx, rx) = (record(&directory.path().join("tx"), &run.tx[0]), record(&directory.path().join("rx"), &late));
    let nlms = || Nlms::new(4, 0.5, 1e-6).unwrap().on_stream();
    let error = directory.path().join("error");
    let sync = Synchroniser::search(Options::default());
    let found = replay(tx, rx, sync.clone(), nlms(), false, &error);
    assert_eq!(found.sync[0].alignment.unwrap().delay.round(), 100.0);

    let (mut sync, mut pairs) = (sync, Pairs::default());
    sync.send(&run.tx[0], None);
    sync.receive(&late, None);
    sync.finish(&mut pairs).unwrap();
    let mut prediction = vec![Default::default(); pairs.rx.len()];
    Guard::new(nlms()).track(&pairs.tx, &pairs.rx, &mut prediction, None);
    let summary = &found.filters[0].1;
    assert!((summary.series.total().nmse_db() - nmse_db(&pairs.rx, &prediction)).abs() < 1e-6);
    let written = Recording::open(error.with_extension("sigmf-meta"), None).unwrap().read_up_to(usize::MAX).unwrap();
    assert_eq!(written.len(), pairs.rx.len());
    assert!(written.iter().zip(pairs.rx.iter().zip(&prediction)).all(|(e, (y, p))| *e == y - p));
    // What is kept for a look is a part of the run itself.
    let stretch = summary.stretch.as_ref().unwrap();
    let (start, n) = (stretch.start as usize, stretch.target.len());
    assert!(n >= 2048 && stretch.prediction == prediction[start..start + n] && stretch.target == pairs.rx[start..start + n]);
}

#[test]
fn swapping_the_inputs_turns_identification_into_equalisation() {
    let directory = tempfile::tempdir().unwrap();
    let mut scenario = Scenario { samples: 20_000, snr_db: Some(30.0), amplifier: None, ..Scenario::preset("a").unwrap() };
    scenario.fading = Some(FadingConfig::new(Profile::exponential(1, 3.0), 1e-5));
    let run = TestBed::run(&scenario).unwrap();
    let (tx, rx) = (record(&directory.path().join("tx"), &run.tx[0]), record(&directory.path().join("rx"), &run.rx[0]));
    let found = replay(tx, rx, Synchroniser::search(Options::default()), rls(4), true, &directory.path().join("error"));
    let last = found.filters[0].1.series.last().nmse_db();
    assert!(last < -20.0, "{last}");
}

#[test]
fn a_running_filter_obeys_calls_and_one_that_has_ended_refuses_them() {
    let scenario = Scenario { samples: 100_000_000, ..Scenario::preset("a").unwrap() };
    let source = track::Source::Bed(Box::new(TestBed::new(&scenario).unwrap()));
    let plan = Plan { filters: vec![vec![track::Filter::new("nlms", Nlms::new(4, 0.5, 1e-6).unwrap().on_stream())]], ..Plan::default() };
    let stop = false.into();
    let watch = Watch { every: Duration::from_millis(50), ..Watch::new(&stop) };
    let (mut controls, mut frozen) = (None, Vec::new());
    let outcome = track::run(source, plan, &watch, |view| {
        let filter = &view.filters[0];
        let set = |name: &str| filter.controls.call(Command::Set(name.into(), 0.25));
        assert!(set("mu").is_ok() && set("nu").unwrap_err().to_string().contains("nu"));
        filter.controls.call(Command::Adapt(false)).unwrap();
        filter.controls.call(Command::Reset).unwrap();
        // A filter that has forgotten everything and does not learn predicts nothing.
        frozen.push(filter.probe.read().nmse_db);
        controls = Some(filter.controls.clone());
        stop.store(frozen.len() == 4, Ordering::Relaxed);
    });
    assert!(outcome.unwrap().interrupted && frozen[3].abs() < 1e-9, "{frozen:?}");
    assert!(controls.unwrap().call(Command::Reset).unwrap_err().to_string().contains("has ended"));
}

#[test]
fn the_receiver_reads_through_a_saturation_that_one_tap_cannot() {
    for paths in [1, 2] {
        let profile = Profile::exponential(paths, 3.0);
        let ofdm = Config { code: Some(Rate::Half), ..Config::preset("paper").unwrap() };
        let link = Link { ofdm, frames: 40, ibo_db: 2.0, profile, doppler: 1e-6, snr_db: 30.0, seed: 3 };
        let (one_tap, read) = equalize::run(&link, &Reading::default()).unwrap();
        let what = format!("{paths} paths: EVM {} and {}", one_tap.evm.percent(), read.evm.percent());
        assert!(one_tap.packets == 40 && read.packets == 40 && read.decoded == 40, "{what}, {} decoded", read.decoded);
        assert!(
            read.evm.percent() <= 3.5 && read.weighted.percent() <= 3.0 && one_tap.weighted.percent() > 10.0,
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
