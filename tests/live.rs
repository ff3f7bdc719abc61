//! Live tracking with the simulated radio: blocks, faults, the command.
#![cfg(feature = "soapy")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futuresdr::prelude::*;
use futuresdr::runtime::dev::prelude::*;
use kaflow::blocks::{End, Fault, Follow, Radio, RadioConfig, Repeat, SoapySink, SoapySource, gap_length};
use kaflow::channel::{AmplifierConfig, FadingConfig, Model, Profile, Scenario, TestBed};
use kaflow::filter::registry::{self, Value, Values};
use kaflow::filter::{Adaptive, Nlms, Tracker, Windowed};
use kaflow::flowgraphs::live::{self, Parts};
use kaflow::iq::{Follower, Pair, Recording};
use kaflow::ofdm::{Config, RandomBits, Source, Transmitter};
use serde_json::Value as Json;

const RATE: f64 = 5e6;
const LEVEL: f32 = 0.35;

fn frame() -> Vec<Complex32> {
    let config = Config { symbols: 50, ..Config::default() };
    let mut bits = vec![0; config.payload_bits()];
    RandomBits::new(1).fill(&mut bits);
    let mut frame = vec![Complex32::ZERO; config.frame_samples()];
    Transmitter::new(config, Source::Repeat(bits)).unwrap().fill(&mut frame);
    frame
}

fn duplex(arguments: &str) -> RadioConfig {
    let patient = arguments.contains("pace=fast");
    let mut config = RadioConfig { patient, ..RadioConfig::duplex(&format!("driver=kaflow-testbed,{arguments}"), 5.4e9, RATE) };
    // A mean power of LEVEL² drives the amplifier without back-off.
    let end = |end: Option<End>, gain: f64| end.map(|end| End { gain: Some(gain), ..end });
    config.tx = end(config.tx, (40.0 - 20.0 * f64::from(LEVEL).log10()).min(60.0));
    config.rx = end(config.rx, 28.0);
    config
}

fn tracker(name: &str, parameters: &[(&str, f64)], power: f64) -> Box<dyn Tracker<f32>> {
    let values: Values = parameters.iter().map(|(name, value)| ((*name).into(), Value::Number(*value))).collect();
    let settings = registry::recipe(name).unwrap().settle(&values, (4.0 * power).sqrt()).unwrap();
    registry::tracker(&settings, 4).unwrap()
}

/// The two filters of the goal, and what they reach on the same scenario without a radio.
fn filters() -> Vec<(&'static str, Vec<(&'static str, f64)>)> {
    vec![("nlms", vec![]), ("fklms", vec![("budget", 100.0)])]
}

fn offline(samples: u64) -> (Vec<f64>, f64) {
    let scenario = Scenario {
        samples,
        seed: 7,
        frames: true,
        snr_db: Some(20.0),
        ofdm: Config { symbols: 50, ..Config::default() },
        amplifier: Some(AmplifierConfig { ibo_db: 0.0, model: Model::Rapp { smoothness: 2.0 } }),
        fading: Some(FadingConfig::new(Profile::exponential(4, 3.0), 1e-3)),
        ..Scenario::preset("a").unwrap()
    };
    let mut bed = TestBed::new(&scenario).unwrap();
    let noise = bed.noise_power();
    let mut trackers: Vec<_> = filters().iter().map(|(name, parameters)| tracker(name, parameters, 1.0)).collect();
    let mut sums = vec![(0.0f64, 0.0f64); trackers.len()];
    let mut seen = 0;
    while let Some(chunk) = bed.next_chunk() {
        let (tx, rx) = (&chunk.tx[0], &chunk.rx[0]);
        let mut prediction = vec![Complex32::ZERO; rx.len()];
        for (tracker, sum) in trackers.iter_mut().zip(&mut sums) {
            tracker.track(tx, rx, &mut prediction, None);
            if seen > 20_000 {
                sum.0 += prediction.iter().zip(rx).map(|(p, y)| f64::from((y - p).norm_sqr())).sum::<f64>();
                sum.1 += rx.iter().map(|y| f64::from(y.norm_sqr())).sum::<f64>();
            }
        }
        seen += rx.len();
    }
    (sums.iter().map(|(e, p)| 10.0 * (e / p).log10()).collect(), -10.0 * noise.log10())
}

/// Runs live with the two filters; gives their errors and prints what happened to the streams.
fn run_live(arguments: &str, samples: u64) -> (Vec<f64>, std::sync::Arc<kaflow::blocks::Health>) {
    let trackers = vec![filters().iter().map(|(name, parameters)| ((*name).to_owned(), tracker(name, parameters, 1.0))).collect()];
    let parts = Parts {
        radio: Radio::open(&duplex(arguments)).unwrap(),
        frame: frame(),
        level: LEVEL,
        trackers,
        lead: 0,
        every: 4096,
        skip: 20_000,
        samples: Some(samples),
        time: None,
        keep: 0,
    };
    let began = Instant::now();
    let finished = live::build(parts, None).unwrap().run(&AtomicBool::new(false), Duration::from_secs(1), |_| ()).unwrap();
    println!("{:.1} MS/s; {}", samples as f64 / began.elapsed().as_secs_f64() / 1e6, finished.health);
    let errors = finished.tracks().unwrap().iter().map(|(_, track)| track.series().total().nmse_db()).collect();
    (errors, finished.health.clone())
}

#[test]
fn live_is_as_good_as_the_same_scenario_offline() {
    let (expected, snr) = offline(1_000_000);
    let (errors, health) = run_live(&format!("pace=fast,doppler=5000,snr={snr},delay=57,seed=7"), 1_000_000);
    println!("offline {expected:.2?}, live {errors:.2?} dB");
    for (live, offline) in errors.iter().zip(&expected) {
        assert!((live - offline).abs() < 0.5, "live {errors:?}, offline {expected:?}");
    }
    assert_eq!(health.gaps.load(Ordering::Relaxed), 0);
}

/// Takes a minute: run it with --ignored.
#[test]
#[ignore]
fn paced_at_5_ms_a_second_nothing_is_lost() {
    let seconds: f64 = std::env::var("KAFLOW_PACED_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(60.0);
    let (expected, snr) = offline(2_000_000);
    let (errors, health) = run_live(&format!("pace=real,doppler=5000,snr={snr},delay=57,seed=7"), (seconds * RATE) as u64);
    println!("offline {expected:.2?}, live {errors:.2?} dB");
    assert_eq!(health.overflows.load(Ordering::Relaxed), 0);
    assert_eq!(health.dropped.load(Ordering::Relaxed), 0);
    assert!(health.deepest.load(Ordering::Relaxed) < duplex("").queue);
    for (live, offline) in errors.iter().zip(&expected) {
        assert!((live - offline).abs() < 0.5, "live {errors:?}, offline {expected:?}");
    }
}

#[test]
fn unpaced_sink_channel_and_source_in_samples_per_second() -> Result<()> {
    let mut radio = Radio::open(&duplex("pace=fast,doppler=5000,snr=20,serial=speed")).unwrap();
    let samples = 5_000_000;
    let repeat = Repeat::new(frame().iter().map(|z| z * LEVEL).collect(), radio.stop());
    let (sink, source) = (SoapySink::new(&mut radio).unwrap(), SoapySource::new(&mut radio).unwrap().limit(samples));
    let end = futuresdr::blocks::NullSink::<Complex32>::new();
    let mut fg = Flowgraph::new();
    connect!(fg, repeat > input[0].sink; source.output[0] > end);
    let began = Instant::now();
    let fg = Runtime::new().run(fg).unwrap();
    println!("unpaced: {:.1} MS/s through sink, channel and source", samples as f64 / began.elapsed().as_secs_f64() / 1e6);
    assert_eq!(end.get(&fg).unwrap().n_received() as u64, samples);
    assert_eq!(radio.health().gaps.load(Ordering::Relaxed), 0);
    Ok(())
}

/// Bins of 64 samples behind a gap.
const BINS: usize = 24;

#[derive(Default)]
struct Verdict {
    gaps: Vec<usize>,
    /// Energy of the error of the tracker that goes on, of one that starts afresh at each gap, and of what was received, by distance from the gap.
    kept: [f64; BINS],
    fresh: [f64; BINS],
    power: [f64; BINS],
    samples: u64,
}

/// Tracks on its own and notes how fast it recovers.
#[derive(Block)]
struct Judge<I = DefaultCpuReader<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
{
    #[input]
    tx: I,
    #[input]
    rx: I,
    kept: Windowed<f32, Nlms<f32>>,
    fresh: Windowed<f32, Nlms<f32>>,
    since: usize,
    verdict: Arc<Mutex<Verdict>>,
}

impl Judge {
    fn new() -> Self {
        let tracker = || Windowed::new(Nlms::new(4, 0.5, 1e-6).unwrap(), 4).unwrap();
        Self {
            tx: Default::default(),
            rx: Default::default(),
            kept: tracker(),
            fresh: tracker(),
            since: usize::MAX / 2,
            verdict: Arc::default(),
        }
    }
}

impl<I: CpuBufferReader<Item = Complex32>> Kernel for Judge<I> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (tx, _) = self.tx.slice_with_tags();
        let (rx, tags) = self.rx.slice_with_tags();
        let n = tx.len().min(rx.len());
        let mut verdict = self.verdict.lock().unwrap();
        for i in 0..n {
            for missing in tags.iter().filter(|t| t.index == i).filter_map(|t| gap_length(&t.tag)) {
                verdict.gaps.push(missing);
                self.kept.gap();
                self.fresh.reset();
                self.since = 0;
            }
            let mut p = [Complex32::ZERO; 2];
            self.kept.track(&tx[i..=i], &rx[i..=i], &mut p[..1], None);
            self.fresh.track(&tx[i..=i], &rx[i..=i], &mut p[1..], None);
            if let Some(bin) = Some(self.since / 64).filter(|&bin| bin < BINS) {
                verdict.kept[bin] += f64::from((rx[i] - p[0]).norm_sqr());
                verdict.fresh[bin] += f64::from((rx[i] - p[1]).norm_sqr());
                verdict.power[bin] += f64::from(rx[i].norm_sqr());
            }
            self.since += 1;
            verdict.samples += 1;
        }
        self.tx.consume(n);
        self.rx.consume(n);
        drop(verdict);
        io.finished = (self.tx.finished() && self.tx.slice().is_empty()) || (self.rx.finished() && self.rx.slice().is_empty());
        Ok(())
    }
}

/// Lets a fault strike again and again.
fn afflict(arguments: &str, samples: u64) -> Result<(Verdict, Arc<kaflow::blocks::Health>)> {
    let mut radio = Radio::open(&duplex(&format!("pace=fast,doppler=200,snr=25,delay=33,{arguments}"))).unwrap();
    let health = radio.health();
    let repeat = Repeat::new(frame().iter().map(|z| z * LEVEL).collect(), radio.stop());
    let (sink, source) = (SoapySink::new(&mut radio).unwrap(), SoapySource::new(&mut radio).unwrap().limit(samples));
    let (follow, judge) = (Follow::new(Follower::new(frame()).unwrap()), Judge::new());
    let verdict = judge.verdict.clone();
    let mut fg = Flowgraph::new();
    connect!(fg, repeat > input[0].sink; source.output[0] > input.follow; follow.tx > tx.judge; follow.rx > rx.judge);
    Runtime::new().run(fg).unwrap();
    let verdict = std::mem::take(&mut *verdict.lock().unwrap());
    Ok((verdict, health))
}

/// At least a thousand gaps, all of one length; the driver may have read on behind what was asked for.
fn check_gaps(health: &kaflow::blocks::Health, length: u64) {
    let gaps = health.gaps.load(Ordering::Relaxed);
    assert!(gaps >= 1000);
    assert_eq!(health.missing.load(Ordering::Relaxed), gaps * length);
}

fn check_recovery(verdict: &Verdict) {
    for bin in 0..BINS {
        let (kept, fresh) =
            (10.0 * (verdict.kept[bin] / verdict.power[bin]).log10(), 10.0 * (verdict.fresh[bin] / verdict.power[bin]).log10());
        assert!(kept < fresh + 1.0, "{} samples behind a gap: {kept} dB, a fresh start has {fresh} dB", 64 * bin);
    }
}

#[test]
fn a_thousand_overflows_have_the_right_length_and_the_tracker_recovers() {
    let (verdict, health) = afflict("overflow_every=4000,overflow_length=777", 4_004_000).unwrap();
    assert!(health.overflows.load(Ordering::Relaxed) >= 1000);
    check_gaps(&health, 777);
    assert!(verdict.gaps.len() >= 990 && verdict.gaps.iter().all(|&missing| missing == 777), "{:?}", verdict.gaps);
    check_recovery(&verdict);
}

#[test]
fn a_thousand_jumps_of_the_clock_have_the_right_length_and_the_tracker_recovers() {
    let (verdict, health) = afflict("jump_every=4000,jump=1234", 4_004_000).unwrap();
    assert_eq!(health.overflows.load(Ordering::Relaxed), 0);
    check_gaps(&health, 1234);
    assert!(verdict.gaps.len() >= 990 && verdict.gaps.iter().all(|&missing| missing == 1234), "{:?}", verdict.gaps);
    check_recovery(&verdict);
}

#[test]
fn a_thousand_jumps_backwards_are_counted_and_the_tracker_recovers() {
    let (verdict, health) = afflict("jump_every=20000,jump=-500", 20_020_000).unwrap();
    assert!(health.time_errors.load(Ordering::Relaxed) >= 1000);
    assert_eq!(health.missing.load(Ordering::Relaxed), 0);
    assert!(verdict.gaps.len() >= 990 && verdict.gaps.iter().all(|&missing| missing == 0));
    check_recovery(&verdict);
}

#[test]
fn a_thousand_stalls_lose_nothing_and_are_counted() {
    let (verdict, health) = afflict("stall_every=2000,stall=2", 2_002_000).unwrap();
    assert!(health.timeouts.load(Ordering::Relaxed) >= 2000);
    assert_eq!(health.gaps.load(Ordering::Relaxed), 0);
    assert!(verdict.gaps.is_empty() && verdict.samples == 2_002_000);
}

#[test]
fn a_device_that_disappears_a_thousand_times_ends_the_flowgraph_each_time_and_says_so() -> Result<()> {
    futuresdr::runtime::config::set("log_level", "off");
    let runtime = Runtime::new();
    for round in 0..1000 {
        let mut radio = Radio::open(&duplex(&format!("pace=fast,taps=0,vanish_after={},serial=gone", 1000 + round))).unwrap();
        let repeat = Repeat::new(vec![Complex32::ONE; 1000], radio.stop());
        let (sink, source) = (SoapySink::new(&mut radio).unwrap(), SoapySource::new(&mut radio).unwrap());
        let faults = [sink.fault(), source.fault()];
        let end = futuresdr::blocks::NullSink::<Complex32>::new();
        let mut fg = Flowgraph::new();
        connect!(fg, repeat > input[0].sink; source.output[0] > end);
        assert!(runtime.run(fg).is_err());
        let error = faults.iter().find_map(Fault::take).unwrap().to_string();
        assert!(error.contains("has disappeared"), "{error}");
    }
    Ok(())
}

/// Passes samples on, and pauses.
#[derive(Block)]
#[blocking]
struct Hiccup<I = DefaultCpuReader<Complex32>, O = DefaultCpuWriter<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
    O: CpuBufferWriter<Item = Complex32>,
{
    #[input]
    input: I,
    #[output]
    output: O,
    every: usize,
    to_next: usize,
}

impl<I: CpuBufferReader<Item = Complex32>, O: CpuBufferWriter<Item = Complex32>> Kernel for Hiccup<I, O> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (from, to) = (self.input.slice(), self.output.slice());
        let n = from.len().min(to.len()).min(self.to_next);
        to[..n].copy_from_slice(&from[..n]);
        if n > 0 {
            self.input.consume(n);
            self.output.produce(n);
            self.to_next -= n;
        }
        if self.to_next == 0 {
            std::thread::sleep(Duration::from_millis(450));
            self.to_next = self.every;
        }
        io.finished = self.input.finished();
        io.call_again = n > 0;
        Ok(())
    }
}

#[test]
fn a_transmitter_that_runs_dry_comes_back_in_its_place() {
    // Three seconds of which the transmitter is silent for a while: what it left out is a gap of known length, and no search is needed.
    let device = "pace=real,doppler=5,snr=30,delay=33,serial=dry";
    let mut radio = Radio::open(&RadioConfig { queue: 16, rate: 4e6, ..duplex(device) }).unwrap();
    let health = radio.health();
    let repeat = Repeat::new(frame().iter().map(|z| z * LEVEL).collect(), radio.stop());
    let hiccup: Hiccup = Hiccup { input: Default::default(), output: Default::default(), every: 4_000_000, to_next: 4_000_000 };
    let (sink, source) =
        (SoapySink::new(&mut radio).unwrap().repeats(frame().len()), SoapySource::new(&mut radio).unwrap().limit(12_000_000));
    let (follow, judge) = (Follow::new(Follower::new(frame()).unwrap()), Judge::new());
    let (verdict, watcher) = (judge.verdict.clone(), follow.watcher());
    let mut fg = Flowgraph::new();
    let build = || -> Result<()> {
        connect!(fg, repeat > input.hiccup; hiccup > input[0].sink; source.output[0] > input.follow; follow.tx > tx.judge; follow.rx > rx.judge);
        Runtime::new().run(fg)?;
        Ok(())
    };
    build().unwrap();
    let verdict = verdict.lock().unwrap();
    println!("{health}; gaps {:?}", verdict.gaps);
    assert!(health.underflows.load(Ordering::Relaxed) >= 2, "{health}");
    assert!(verdict.gaps.len() >= 2 && verdict.gaps.iter().all(|&missing| missing > 0), "{:?}", verdict.gaps);
    assert_eq!(watcher.lock().map(|lock| lock.searches), Some(1));
}

#[test]
fn two_radios_on_one_air_and_a_drifting_clock_are_followed() {
    let arguments = "pace=fast,air=lab,taps=2,doppler=50,snr=30,cfo=2000,ppm=3";
    let mut config = duplex(&format!("{arguments},serial=rx"));
    config.tx = config.tx.map(|end| End { device: format!("driver=kaflow-testbed,{arguments},serial=tx"), ..end });
    let parts = Parts {
        radio: Radio::open(&config).unwrap(),
        frame: frame(),
        level: LEVEL,
        trackers: vec![vec![("nlms".into(), tracker("nlms", &[], 1.0))]],
        lead: 0,
        every: 4096,
        skip: 300_000,
        samples: Some(1_500_000),
        time: None,
        keep: 0,
    };
    let mut seen = None;
    let live = live::build(parts, None).unwrap();
    let finished = live.run(&AtomicBool::new(false), Duration::from_millis(10), |view| seen = view.watchers[0].lock().or(seen)).unwrap();
    let lock = seen.unwrap();
    assert!((lock.cfo - 2000.0 / RATE).abs() < 1e-5 && (lock.drift_ppm + 3.0).abs() < 1.5, "{lock:?}");
    let error = finished.tracks().unwrap()[0].1.series().total().nmse_db();
    assert!(error < -11.0, "{error} dB");
}

#[test]
fn a_receiver_without_its_transmitter_follows_another_box() -> Result<()> {
    let sender = Radio::open(&RadioConfig { rx: None, ..duplex("pace=fast,air=box,serial=a") });
    let receiver = Radio::open(&RadioConfig { tx: None, ..duplex("pace=fast,air=box,serial=b") });
    let (mut sender, radio) = (sender.unwrap(), receiver.unwrap());
    let repeat = Repeat::new(frame().iter().map(|z| z * LEVEL).collect(), sender.stop());
    let sink = SoapySink::new(&mut sender).unwrap();
    let mut fg = Flowgraph::new();
    connect!(fg, repeat > input[0].sink);
    let runtime = Runtime::new();
    let sending = runtime.start(fg).unwrap();
    let trackers = vec![vec![("nlms".into(), tracker("nlms", &[], 1.0))]];
    let parts = Parts {
        radio,
        frame: frame(),
        level: LEVEL,
        trackers,
        lead: 0,
        every: 4096,
        skip: 5000,
        samples: Some(400_000),
        time: None,
        keep: 0,
    };
    let finished = live::build(parts, None).unwrap().run(&AtomicBool::new(false), Duration::from_secs(1), |_| ()).unwrap();
    sender.stop().store(true, Ordering::Relaxed);
    sending.wait().unwrap();
    let error = finished.tracks().unwrap()[0].1.series().total().nmse_db();
    assert!(error < -8.0, "{error} dB");
    Ok(())
}

fn kaflow(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kaflow"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn output(arguments: &[&str]) -> (bool, String) {
    let output = kaflow(arguments).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

fn json(path: &Path) -> Json {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

const FAST: &str = "driver=kaflow-testbed,pace=fast,doppler=500,overflow_every=100000";

#[test]
fn the_command_writes_reports_and_a_recording_that_tracks_to_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (pair, live, again, out) = (at("pair"), at("live.json"), at("again.json"), at("report"));
    let filters = ["--filter", "nlms", "--filter", "fklms", "--budget", "50"];
    let mut arguments = vec!["live", "--device", FAST, "--rate", "5e6", "--seconds", "0.1", "--tx-gain", "50", "--rx-gain", "28"];
    arguments.extend(["--record", &pair, "--json", &live, "--out", &out]);
    arguments.extend(filters);
    let (ok, text) = output(&arguments);
    assert!(ok && text.contains(" overflows") && !text.contains(" 0 overflows"), "{text}");
    assert!(Path::new(&out).join("report.html").exists());
    let mut arguments = vec!["track", &pair, "--json", &again];
    arguments.extend(filters);
    let (ok, text) = output(&arguments);
    assert!(ok, "{text}");
    let errors = |path: &str| -> Vec<f64> {
        json(Path::new(path))["filters"].as_array().unwrap().iter().map(|f| f["nmse_db"].as_f64().unwrap()).collect()
    };
    let (live, again) = (errors(&live), errors(&again));
    assert!(live.len() == 2 && live.iter().zip(&again).all(|(a, b)| (a - b).abs() < 0.01), "{live:?} and {again:?}");
    let pair = Pair::open(&pair).unwrap();
    assert_eq!((pair.delay, pair.tx.len()), (Some(0.0), pair.rx.len()));
}

fn recorded(folder: &Path) -> u64 {
    let length = |name: &str| Recording::open(folder.join(name).with_extension("sigmf-meta"), None).unwrap().len();
    length("tx").min(length("rx"))
}

/// The error of the first filter that `track` finds in a recording, without further options.
fn tracked(pair: &Path) -> f64 {
    let path = pair.join("again.json");
    let (ok, text) = output(&["track", &pair.to_string_lossy(), "--filter", "nlms", "--json", &path.to_string_lossy(), "--force"]);
    assert!(ok, "{text}");
    json(&path)["filters"][0]["nmse_db"].as_f64().unwrap()
}

#[test]
fn a_killed_run_leaves_a_recording_that_tracks_to_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.json");
    let command = ["live", "--device", FAST, "--rate", "1e6", "--filter", "nlms"];
    let (ok, text) = output(&[&command[..], &["--seconds", "2", "--json", &whole.to_string_lossy()]].concat());
    assert!(ok, "{text}");
    let expected = json(&whole)["filters"][0]["nmse_db"].as_f64().unwrap();
    for samples in [1_500_000, 2_100_000, 2_900_000] {
        let pair = folder.path().join(samples.to_string());
        let mut run = kaflow(&[&command[..], &["--record", &pair.to_string_lossy()]].concat()).stderr(Stdio::null()).spawn().unwrap();
        let data = pair.join("rx.sigmf-data");
        let began = Instant::now();
        while std::fs::metadata(&data).map_or(0, |m| m.len()) < 8 * samples && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        run.kill().unwrap();
        run.wait().unwrap();
        // All but the last second.
        let written = std::fs::metadata(&data).unwrap().len() / 8;
        assert!(recorded(&pair) + 1_000_000 >= written && written >= samples, "{} of {written}", recorded(&pair));
        let found = tracked(&pair);
        assert!((found - expected).abs() < 0.5, "{found} dB in {} samples, live {expected} dB", recorded(&pair));
    }
}

#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_run_with_an_error_and_leaves_a_valid_recording() {
    let folder = tempfile::tempdir().unwrap();
    let pair = folder.path().join("pair");
    // A limit on the size of files, in blocks of 512 bytes, that is reported instead of killing.
    let script = format!(
        "trap '' XFSZ; ulimit -f 40000; exec {} live --device {FAST} --rate 1e6 --record {} --filter nlms",
        env!("CARGO_BIN_EXE_kaflow"),
        pair.display()
    );
    let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("sigmf-data"), "{text}");
    // All but the last second of the 20,480,000 bytes that there was room for.
    assert!(recorded(&pair) >= 2_560_000 - 1_000_000, "{}", recorded(&pair));
    assert!(tracked(&pair) < -5.0);
}

#[test]
fn a_sweep_of_the_drive_shows_compression() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let device = "driver=kaflow-testbed,pace=fast,taps=1,doppler=20,snr=40";
    let (path, out) = (at("sweep.json"), at("out"));
    let mut arguments = vec!["live", "--device", device, "--rate", "5e6", "--seconds", "0.05", "--rx-gain", "28", "--filter", "nlms"];
    arguments.extend(["--sweep-tx-gain", "30:60:15", "--json", &path, "--out", &out]);
    let (ok, text) = output(&arguments);
    assert!(ok, "{text}");
    let found = json(Path::new(&path));
    let of = |key: &str| -> Vec<f64> { found["levels"].as_array().unwrap().iter().map(|level| level[key].as_f64().unwrap()).collect() };
    assert_eq!(of("tx_gain_db"), [30.0, 45.0, 60.0]);
    let compression = of("compression_db");
    assert!(compression[0].abs() < 0.5 && compression[1] < -0.5 && compression[2] < compression[1] - 3.0, "{compression:?}");
    let error: Vec<f64> = found["levels"].as_array().unwrap().iter().map(|l| l["filters"][0]["nmse_db"].as_f64().unwrap()).collect();
    assert!(error[2] > error[0] + 3.0, "{error:?}");
    assert!(Path::new(&out).join("sweep.csv").exists() && Path::new(&out).join("am-am.svg").exists());
}

#[test]
fn filters_that_cannot_keep_up_are_noticed_and_their_budget_shrinks() {
    let device = "driver=kaflow-testbed,pace=real,doppler=100";
    let mut arguments = vec!["live", "--device", device, "--rate", "4e6", "--seconds", "2", "--rx-gain", "28", "--tx-gain", "45"];
    arguments.extend(["--filter", "fklms", "--budget", "2000", "--adaptive-budget", "--queue", "16"]);
    let (ok, text) = output(&arguments);
    assert!(ok && text.contains("do not keep up") && text.contains("fklms: budget 2000 -> "), "{text}");
}

/// Starts the command, waits until it says `ready`, asks it to stop, and gives how it ended and what it said.
#[cfg(unix)]
fn interrupted(arguments: &[&str], ready: &str) -> (bool, String) {
    use std::io::{BufRead, BufReader, Read};
    let mut run = kaflow(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains(ready) && lines.read_line(&mut text).unwrap() > 0 {}
    assert!(text.contains(ready), "{text}");
    assert!(Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap().success());
    let began = Instant::now();
    lines.read_to_string(&mut text).unwrap();
    run.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let ok = run.wait().unwrap().success();
    println!("{arguments:?} ended {:.2} s after the signal", began.elapsed().as_secs_f64());
    // Far more than it takes, far less than what waits in the queue.
    assert!(began.elapsed() < Duration::from_secs(20), "{text}");
    (ok, text)
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_command_in_every_state() {
    let rate = ["--rate", "1e6", "--filter", "nlms"];
    let overloaded = ["--rate", "20e6", "--filter", "krlst", "--filter", "fklms", "--budget", "300"];
    for (arguments, device, ready, words) in [
        (&rate[..], "driver=kaflow-testbed,doppler=5", "3 s: ", "interrupted"),
        (&overloaded[..], "driver=kaflow-testbed,doppler=5", "a lower --rate", "interrupted"),
        (&rate[..], "driver=kaflow-testbed,snr=-60", "searching: ", "the frame was not found"),
        (&rate[..], "driver=kaflow-testbed,stall_every=100000,stall=1000000", "2 s: ", "interrupted"),
        (&rate[..], "driver=kaflow-testbed,stall_every=1,stall=1000000", "2 s: ", "the frame was not found"),
    ] {
        let mut all = vec!["live", "--device", device];
        all.extend(arguments);
        let (_, text) = interrupted(&all, ready);
        assert!(text.contains(words), "{all:?}: {text}");
    }
}

#[test]
fn any_channels_can_be_chosen_and_each_has_its_own_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("found.json");
    let device = "driver=kaflow-testbed,pace=fast,doppler=5";
    let mut arguments = vec!["live", "--device", device, "--rate", "1e6", "--seconds", "0.1", "--filter", "nlms"];
    arguments.extend(["--tx-channel", "3", "--tx-gain", "49", "--rx-gain", "30"]);
    let target = path.to_string_lossy();
    arguments.extend(["--channel", "1,2,0", "--json", &target]);
    let (ok, text) = output(&arguments);
    assert!(ok, "{text}");
    let mut found: Vec<_> = json(&path)["filters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["name"].as_str().unwrap().to_owned(), f["nmse_db"].as_f64().unwrap()))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found.iter().map(|f| f.0.as_str()).collect::<Vec<_>>(), ["nlms rx0", "nlms rx1", "nlms rx2"]);
    // Three channels of their own: good figures, and not the same ones.
    assert!(found.iter().all(|f| f.1 < -3.0) && found[0].1 != found[1].1 && found[1].1 != found[2].1, "{found:?}");
}

#[test]
fn a_device_that_disappears_leaves_a_report_and_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("found.json");
    let device = "driver=kaflow-testbed,pace=fast,doppler=5,vanish_after=300000";
    let (ok, text) = output(&["live", "--device", device, "--rate", "1e6", "--filter", "nlms", "--json", &path.to_string_lossy()]);
    assert!(!ok && text.contains("NMSE dB") && text.contains("has disappeared"), "{text}");
    assert!(json(&path)["filters"][0]["samples"].as_u64().unwrap() > 100_000);
}

#[test]
fn the_plain_command_finds_the_frame_on_a_machine_that_cannot_keep_up() {
    // The default rate with a filter that no machine runs at it.
    let mut arguments = vec!["live", "--device", "driver=kaflow-testbed", "--seconds", "4", "--queue", "64"];
    arguments.extend(["--filter", "nlms", "--filter", "krlst"]);
    let (ok, text) = output(&arguments);
    assert!(ok && text.contains("do not keep up") && text.contains("--adaptive-budget") && text.contains("NMSE dB"), "{text}");
}

#[test]
fn devices_are_judged_and_mistakes_are_named() {
    let (ok, text) = output(&["devices", "driver=kaflow-testbed"]);
    assert!(ok && text.contains("full duplex: yes") && text.contains("kaflow live --device 'driver=kaflow-testbed"), "{text}");
    for (arguments, words) in [
        (vec!["live"], "device must be given, with an explicit driver="),
        (vec!["live", "--device", "serial=3"], "device must be given with an explicit driver="),
        (vec!["live", "--device", "driver=audio", "--freq", "5.4e9"], "a sound card"),
        (vec!["live", "--device", "driver=null"], "freq must be given, or --yes, before a real device transmits"),
        (vec!["live", "--device", "driver=kaflow-testbed", "--filter", "fklm"], "did you mean 'fklms'"),
        (vec!["live", "--device", "driver=kaflow-testbed", "--rate", "1e9"], "rate must be between"),
        (vec!["live", "--device", "driver=kaflow-testbed", "--rate", "-3"], "rate must be more than 0, got -3"),
        (vec!["live", "--device", "driver=kaflow-testbed", "--freq", "7e9"], "frequency must be between 70000000 and 6000000000"),
        (vec!["live", "--device", "driver=kaflow-testbed", "--tx-gain", "-5"], "tx-gain must be between 0 and 60 dB"),
        (
            vec!["live", "--device", FAST, "--rate", "5e6", "--seconds", "0.1", "--sweep-tx-gain", "80:90:5"],
            "tx-gain must be between 0 and 60 dB",
        ),
        (vec!["live", "--device", "driver=nosuch", "--freq", "5.4e9"], "`kaflow devices` lists what there is"),
        (vec!["live", "--device", "driver=null", "--freq", "5.4e9"], "cannot receive: it has no channels"),
        (vec!["live", "--device", "driver=kaflow-testbed", "--rx-only"], "--tx <FILE>"),
        (vec!["live", "--rx-device", "driver=kaflow-testbed"], "tx-device must be given"),
        (vec!["live", "--device", "driver=kaflow-testbed,dopler=3"], "did you mean 'doppler'"),
        (vec!["live", "--device", FAST, "--sweep-tx-gain", "1:2"], "A:B:STEP"),
        (vec!["live", "--device", FAST, "--channel", "4"], "channel must be below 4"),
        (vec!["live", "--device", FAST, "--channel", "1,1"], "channel must be each given once"),
        (vec!["live", "--device", FAST, "--rate", "5e6", "--tx-gain", "0", "--seconds", "0.05"], "the frame was not found"),
    ] {
        let (ok, text) = output(&arguments);
        assert!(!ok && text.contains(words), "{arguments:?}: {text}");
    }
}
