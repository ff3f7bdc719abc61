//! Live tracking with the simulated radio: blocks, faults, the command.
#![cfg(feature = "soapy")]

mod command;
mod faults;
mod quirks;
mod settings;
mod stop;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futuresdr::prelude::*;
use kaflow::blocks::{End, OfdmRx, Radio, RadioConfig, Repeat, SoapySink, SoapySource};
use kaflow::channel::{AmplifierConfig, FadingConfig, Model, Profile, Scenario, TestBed};
use kaflow::filter::registry::{self, Value, Values};
use kaflow::filter::{Guard, Tracker};
use kaflow::flowgraphs::track::{self, Filter, Outcome, Plan, View, Watch};
use kaflow::ofdm::{Config, Reading, Receiver, SentFrames, Source, Transmitter};

const RATE: f64 = 5e6;
const LEVEL: f32 = 0.35;

fn frames() -> Config {
    Config { symbols: 50, seed: 1, ..Config::default() }
}

fn frame() -> Vec<Complex32> {
    let config = frames();
    let mut frame = vec![Complex32::ZERO; config.frame_samples()];
    Transmitter::new(config, Source::RandomFrames).unwrap().fill(&mut frame);
    frame
}

fn duplex(arguments: &str) -> RadioConfig {
    // Devices that disappear are no news here.
    futuresdr::runtime::config::set("log_level", "off");
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
    let mut trackers: Vec<_> = filters().iter().map(|(name, parameters)| Guard::new(tracker(name, parameters, 1.0))).collect();
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

type Named = (String, Box<dyn Tracker<f32>>);

/// Runs filters on the first channel of a radio, for so many samples, the first `skip` not averaged.
fn follow(radio: Radio, filters: Vec<Named>, samples: u64, skip: u64, every: Duration, look: impl FnMut(&View<'_>)) -> Outcome {
    let filter = |(name, tracker)| {
        let filter = Filter::new(name, tracker);
        Filter { track: filter.track.metrics_every(4096, skip), ..filter }
    };
    let plan = Plan { filters: vec![filters.into_iter().map(filter).collect()], samples: Some(samples), ..Plan::default() };
    let watch = AtomicBool::new(false);
    let watch = Watch { every, ..Watch::new(&watch) };
    track::run(track::Source::Radio(Box::new(radio), frame().into(), LEVEL), plan, &watch, look).unwrap()
}

fn errors(outcome: &Outcome) -> Vec<f64> {
    outcome.filters.iter().map(|(_, summary)| summary.series.total().nmse_db()).collect()
}

/// Runs live with the two filters; gives their errors and prints what happened to the streams.
fn run_live(arguments: &str, samples: u64) -> (Vec<f64>, std::sync::Arc<kaflow::blocks::Health>) {
    let trackers = filters().iter().map(|(name, parameters)| ((*name).to_owned(), tracker(name, parameters, 1.0))).collect();
    let radio = Radio::open(&duplex(arguments)).unwrap();
    let health = radio.health();
    let began = Instant::now();
    let outcome = follow(radio, trackers, samples, 20_000, Duration::from_secs(1), |_| ());
    println!("{:.1} MS/s; {}", samples as f64 / began.elapsed().as_secs_f64() / 1e6, health);
    (errors(&outcome), health)
}

#[test]
fn live_is_as_good_as_the_same_scenario_offline() {
    let (expected, snr) = offline(1_000_000);
    let (errors, health) = run_live(&format!("pace=fast,doppler_hz=5000,snr_db={snr},delay=57,seed=7"), 1_000_000);
    println!("offline {expected:.2?}, live {errors:.2?} dB");
    for (live, offline) in errors.iter().zip(&expected) {
        assert!((live - offline).abs() < 0.5, "live {errors:?}, offline {expected:?}");
    }
    assert_eq!(health.gaps.load(Ordering::Relaxed), 0);
}

#[test]
#[ignore = "takes a minute of real time; the one before it is its short form"]
fn paced_at_5_ms_a_second_nothing_is_lost() {
    let seconds: f64 = std::env::var("KAFLOW_PACED_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(60.0);
    let (expected, snr) = offline(2_000_000);
    let (errors, health) = run_live(&format!("pace=real,doppler_hz=5000,snr_db={snr},delay=57,seed=7"), (seconds * RATE) as u64);
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
    let mut radio = Radio::open(&duplex("pace=fast,doppler_hz=5000,snr_db=20,serial=speed")).unwrap();
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

#[test]
fn two_radios_on_one_air_and_a_drifting_clock_are_followed() {
    let arguments = "pace=fast,air=lab,taps=2,doppler_hz=50,snr_db=30,carrier_offset_hz=2000,sample_offset_ppm=3";
    let mut config = duplex(&format!("{arguments},serial=rx"));
    config.tx = config.tx.map(|end| End { device: format!("driver=kaflow-testbed,{arguments},serial=tx"), ..end });
    let (mut seen, nlms) = (None, vec![("nlms".into(), tracker("nlms", &[], 1.0))]);
    let look = |view: &View<'_>| seen = Some(view.sync[0].clone());
    let outcome = follow(Radio::open(&config).unwrap(), nlms, 1_500_000, 300_000, Duration::from_millis(10), look);
    let status = seen.unwrap();
    assert!((status.cfo - 2000.0 / RATE).abs() < 1e-5 && (status.clock_ppm + 3.0).abs() < 0.5, "{status:?}");
    let error = errors(&outcome)[0];
    assert!(error < -11.0, "{error} dB");
}

/// Hands a radio that only receives to `listen` while another box sends the frame.
fn beside_another_box<R>(air: &str, listen: impl FnOnce(Radio) -> R) -> Result<R> {
    let sender = Radio::open(&RadioConfig { rx: None, ..duplex(&format!("pace=fast,air={air},serial={air}-a")) });
    let receiver = Radio::open(&RadioConfig { tx: None, ..duplex(&format!("pace=fast,air={air},serial={air}-b")) });
    let (mut sender, radio) = (sender.unwrap(), receiver.unwrap());
    let repeat = Repeat::new(frame().iter().map(|z| z * LEVEL).collect(), sender.stop());
    let sink = SoapySink::new(&mut sender).unwrap();
    let mut fg = Flowgraph::new();
    connect!(fg, repeat > input[0].sink);
    let runtime = Runtime::new();
    let sending = runtime.start(fg).unwrap();
    let found = listen(radio);
    sender.stop().store(true, Ordering::Relaxed);
    sending.wait().unwrap();
    Ok(found)
}

#[test]
fn a_receiver_without_its_transmitter_follows_another_box() -> Result<()> {
    let nlms = vec![("nlms".into(), tracker("nlms", &[], 1.0))];
    let outcome = beside_another_box("box", |radio| follow(radio, nlms, 400_000, 5000, Duration::from_secs(1), |_| ()))?;
    let error = errors(&outcome)[0];
    assert!(error < -8.0, "{error} dB");
    Ok(())
}

#[test]
fn a_receiver_that_knows_no_frame_receives_the_packets_of_another_box() -> Result<()> {
    let config = frames();
    let sent = SentFrames::new(&config).unwrap().next().unwrap().payload;
    let (tell, told) = std::sync::mpsc::channel();
    let samples = 200_000;
    let outcome = beside_another_box("packets", |radio| {
        let receiver = OfdmRx::new(Receiver::new(config.clone()).unwrap().reading(&Reading::default()).unwrap());
        let receiver =
            receiver.tell(move |_, packet| packet.iter().for_each(|packet| tell.send(packet.ber(&sent).rate()).unwrap_or_default()));
        let plan = Plan { receive: Some(receiver), samples: Some(samples), ..Plan::default() };
        track::run(track::Source::Radio(Box::new(radio), Vec::new().into(), LEVEL), plan, &Watch::new(&false.into()), |_| ())
    })??;
    assert!(outcome.filters.is_empty() && outcome.sync.is_empty() && outcome.fault.is_none() && !outcome.interrupted);
    let rates: Vec<f64> = told.iter().collect();
    let sent = samples as usize / config.frame_samples();
    assert!((sent - 3..=sent).contains(&rates.len()), "{} packets of {sent}", rates.len());
    // Through a saturated amplifier and a fading channel: nearly all bits of nearly all packets.
    assert!(rates.iter().filter(|rate| **rate < 0.05).count() > rates.len() * 3 / 4, "{rates:?}");
    Ok(())
}
