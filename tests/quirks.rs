//! What real drivers do, against a quiet run: no sample is displaced, and every loss is counted to the sample.
#![cfg(feature = "soapy")]

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futuresdr::prelude::*;
use futuresdr::runtime::dev::prelude::*;
use kaflow::blocks::{End, Fault, Health, Radio, RadioConfig, Repeat, SoapySink, SoapySource, TIME, gap_length};

const RATE: f64 = 5e6;

/// Each transmitted sample says where it belongs, modulo this.
const PERIOD: u64 = 1 << 20;

fn marked() -> Vec<Complex32> {
    let part = |n: u64| (n as f32 - 511.5) / 1024.0;
    (0..PERIOD).map(|n| Complex32::new(part(n % 1024), part(n / 1024))).collect()
}

/// Where a sample belongs; none for silence.
fn place(z: Complex32) -> Option<u64> {
    let whole = |x: f32| (x * 1024.0 + 511.5) as u64;
    (z != Complex32::ZERO).then(|| whole(z.re) + 1024 * whole(z.im))
}

/// What came, as it was received and as the tags tell it.
#[derive(Default)]
struct Ledger {
    samples: u64,
    silent: u64,
    /// Index among what came, and how many are missing before it, by the samples themselves and by tags.
    true_gaps: Vec<(u64, u64)>,
    told_gaps: Vec<(u64, u64)>,
    stamps: Vec<(u64, u64, Option<u64>)>,
    last: Option<u64>,
}

#[derive(Block)]
#[blocking]
struct Clerk<I = DefaultCpuReader<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
{
    #[input]
    input: I,
    ledger: Arc<Mutex<Ledger>>,
    pause: Duration,
}

impl<I: CpuBufferReader<Item = Complex32>> Kernel for Clerk<I> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (input, tags) = self.input.slice_with_tags();
        let mut ledger = self.ledger.lock().unwrap();
        let first = ledger.samples;
        for tag in tags {
            let at = first + tag.index as u64;
            match &tag.tag {
                Tag::NamedUsize(name, time) if name == TIME => ledger.stamps.push((at, *time as u64, place(input[tag.index]))),
                tag => ledger.told_gaps.extend(gap_length(tag).map(|missing| (at, missing as u64))),
            }
        }
        for (at, z) in (first..).zip(input) {
            let here = place(*z);
            match (ledger.last, here) {
                (Some(last), Some(here)) if here != (last + 1) % PERIOD => {
                    ledger.true_gaps.push((at, (here + PERIOD - last - 1) % PERIOD));
                }
                _ => {}
            }
            // Silence takes its time.
            ledger.last = here.or(ledger.last.map(|last| (last + 1) % PERIOD));
            ledger.silent += u64::from(here.is_none());
        }
        let n = input.len();
        ledger.samples += n as u64;
        drop(ledger);
        if n > 0 && !self.pause.is_zero() {
            std::thread::sleep(self.pause);
        }
        self.input.consume(n);
        io.finished = self.input.finished() && self.input.slice().is_empty();
        Ok(())
    }
}

fn config(arguments: &str) -> RadioConfig {
    futuresdr::runtime::config::set("log_level", "off");
    let device = format!("driver=kaflow-testbed,taps=0,snr_db=inf,amplifier=none,delay=40,{arguments}");
    // Not much is read on behind what is asked for.
    let mut config = RadioConfig { patient: arguments.contains("pace=fast"), queue: 1 << 22, ..RadioConfig::duplex(&device, 5.4e9, RATE) };
    // At 40 dB what goes in comes out.
    let unity = |end: Option<End>| end.map(|end| End { gain: Some(40.0), ..end });
    (config.rx, config.tx) = (unity(config.rx), unity(config.tx));
    config
}

/// Receives so many samples of what it transmits through a wire; gives what came, what the radio says of it and why it ended.
fn run_with(config: &RadioConfig, samples: u64, pause: Duration) -> (Ledger, Arc<Health>, Option<String>) {
    let run = || -> Result<_> {
        let mut radio = Radio::open(config).unwrap();
        let health = radio.health();
        let source = SoapySource::new(&mut radio).unwrap().limit(samples).lenient();
        let mut faults = vec![source.fault.clone()];
        let clerk: Clerk = Clerk { input: Default::default(), ledger: Arc::default(), pause };
        let ledger = clerk.ledger.clone();
        let mut fg = Flowgraph::new();
        connect!(fg, source.output[0] > input.clerk);
        if config.tx.is_some() {
            let sink = SoapySink::new(&mut radio).unwrap().repeats(PERIOD as usize).lenient();
            faults.push(sink.fault.clone());
            let repeat = Repeat::new(marked(), radio.stop());
            connect!(fg, repeat > input[0].sink);
        }
        Runtime::new().run(fg).unwrap();
        let ledger = std::mem::take(&mut *ledger.lock().unwrap());
        Ok((ledger, health, faults.iter().find_map(Fault::take).map(|e| e.to_string())))
    };
    run().unwrap()
}

fn run(arguments: &str, samples: u64) -> (Ledger, Arc<Health>) {
    let (ledger, health, fault) = run_with(&config(arguments), samples, Duration::ZERO);
    assert_eq!((fault, ledger.samples), (None, samples), "{arguments}");
    (ledger, health)
}

fn of(counter: &std::sync::atomic::AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

const SAMPLES: u64 = 1_200_000;

#[test]
fn without_losses_every_sample_comes_in_its_place_whatever_reads_and_stamps_are_like() {
    for quirk in [
        "",
        "short_reads=362",
        "short_reads=3",
        "time_stamps=none",
        "time_stamps=alternate",
        "time_jitter=0.3",
        "stall_every=50000,stall=2",
    ] {
        let samples = if quirk == "short_reads=3" { 60_000 } else { SAMPLES };
        let (ledger, health) = run(&format!("pace=fast,{quirk}"), samples);
        assert_eq!((ledger.true_gaps.len(), ledger.told_gaps.len()), (0, 0), "{quirk}: {:?}", ledger.told_gaps);
        assert_eq!((of(&health.gaps), of(&health.gap_samples), of(&health.dropped)), (0, 0, 0), "{quirk}: {health}");
        // The delay at the start, and nothing else.
        assert_eq!(ledger.silent, 40, "{quirk}");
        let stamped = ledger.stamps.len();
        assert!(if quirk.contains("none") { stamped == 0 } else { stamped > 0 }, "{quirk}: {stamped}");
    }
}

#[test]
fn stamps_that_scatter_widely_are_found_out_and_tell_nothing_then() {
    let (ledger, health) = run("pace=fast,time_jitter=50,short_reads=900", SAMPLES);
    assert!(ledger.true_gaps.is_empty() && ledger.told_gaps.iter().all(|g| g.0 < 50_000), "{:?}", ledger.told_gaps);
    assert_eq!(of(&health.gap_samples), 0, "what the first ones told is taken back: {health}");
}

#[test]
fn stamps_travel_with_the_samples_that_they_belong_to() {
    for quirk in ["", "time_stamps=alternate,short_reads=500", "jump_every=70000,jump=1234"] {
        let (ledger, _) = run(&format!("pace=fast,{quirk}"), 400_000);
        let (_, first_time, first_place) = *ledger.stamps.iter().find(|s| s.2.is_some()).unwrap();
        for (_, time, place) in ledger.stamps.iter().filter(|s| s.2.is_some()) {
            let samples = ((time - first_time) as f64 * RATE / 1e9).round() as u64;
            assert_eq!((first_place.unwrap() + samples) % PERIOD, place.unwrap(), "{quirk}");
        }
    }
}

#[test]
fn losses_that_the_driver_or_its_stamps_tell_are_marked_at_their_sample_with_their_length() {
    for quirk in [
        "overflow_every=30000,overflow_length=777",
        "overflow_every=30000,overflow_length=777,time_stamps=alternate",
        "overflow_every=30000,overflow_length=777,time_stamps=alternate,short_reads=362",
        "overflow_every=30000,overflow_length=300000",
        "jump_every=30000,jump=1",
        "jump_every=30000,jump=3,short_reads=362",
        "jump_every=30000,jump=99999",
    ] {
        let (ledger, health) = run(&format!("pace=fast,{quirk}"), SAMPLES);
        assert!(ledger.true_gaps.len() >= 30, "{quirk}");
        // A new stream has few stamps to compare with: the first gaps may be told late where they are as small as stamps may scatter.
        let (started, count) = (ledger.true_gaps[9].0, ledger.true_gaps.len());
        let late = |gaps: &[(u64, u64)]| gaps.iter().copied().filter(|g| g.0 >= started).collect::<Vec<_>>();
        assert_eq!(late(&ledger.told_gaps), late(&ledger.true_gaps), "{quirk}");
        let total: u64 = ledger.true_gaps.iter().map(|g| g.1).sum();
        assert_eq!(ledger.told_gaps.iter().map(|g| g.1).sum::<u64>(), total, "{quirk}");
        // The driver's thread may have read on behind what was asked for.
        let length = ledger.true_gaps[0].1;
        let known = of(&health.gap_samples);
        assert!(known >= total && known.is_multiple_of(length) && known / length <= count as u64 + 150, "{quirk}: {known} of {total}");
        assert_eq!(of(&health.unknown_gaps), 0, "{quirk}");
    }
}

#[test]
fn stamps_that_scatter_or_are_missing_still_count_losses_to_the_sample() {
    for (quirk, length) in [
        ("time_jitter=0.3,jump=2", 2),
        ("time_jitter=0.3,jump=300", 300),
        ("time_stamps=alternate,jump=5", 5),
        ("time_jitter=0.2,time_stamps=alternate,jump=1", 1),
    ] {
        let samples = 4_000_000;
        let (ledger, health) = run(&format!("pace=fast,short_reads=4000,jump_every=400000,{quirk}"), samples);
        let total: u64 = ledger.true_gaps.iter().map(|g| g.1).sum();
        assert_eq!(total, 9 * length, "{quirk}");
        let known = of(&health.gap_samples);
        // The driver's thread may have filled the queue behind what was asked for, eleven jumps and what is under way, and the last one may not have been seen yet.
        assert!((total - length..=total + 14 * length).contains(&known) && known.is_multiple_of(length), "{quirk}: {known} of {total}");
        let told: Vec<u64> = ledger.told_gaps.iter().map(|g| g.0).collect();
        for (at, _) in &ledger.true_gaps[..8] {
            assert!(told.iter().any(|t| (*at..at + 80_000).contains(t)), "{quirk}: {at} in {told:?}");
        }
    }
}

#[test]
fn what_nothing_tells_is_not_made_up() {
    for quirk in ["slip_every=50000,slip=2", "slip_every=50000,slip=2,time_stamps=none", "time_stamps=none,jump_every=50000,jump=7"] {
        let (ledger, health) = run(&format!("pace=fast,{quirk}"), SAMPLES);
        assert!(ledger.true_gaps.len() > 20 && ledger.told_gaps.is_empty(), "{quirk}: {:?}", ledger.told_gaps);
        assert_eq!((of(&health.gaps), of(&health.gap_samples)), (0, 0), "{quirk}");
    }
    // The driver says that it lost some, and nobody knows how many.
    let (ledger, health) = run("pace=fast,time_stamps=none,overflow_every=50000", SAMPLES);
    let places = |gaps: &[(u64, u64)]| gaps.iter().map(|g| g.0).collect::<Vec<_>>();
    assert_eq!(places(&ledger.told_gaps), places(&ledger.true_gaps));
    assert!(ledger.told_gaps.iter().all(|g| g.1 == 0));
    assert!(of(&health.unknown_gaps) == of(&health.gaps) && of(&health.gap_samples) == 0, "{health}");
}

#[test]
fn packets_that_are_late_are_counted_and_the_transmitter_comes_back_in_its_place() {
    let (ledger, health) = run("pace=fast,late_every=500000,late_length=4096", 4 * SAMPLES);
    assert!(of(&health.time_errors) >= 3, "{health}");
    let (_, first_time, first_place) = *ledger.stamps.iter().find(|s| s.2.is_some()).unwrap();
    let displaced = |&&(_, time, place): &&(u64, u64, Option<u64>)| {
        let samples = ((time - first_time) as f64 * RATE / 1e9).round() as u64;
        place.is_some_and(|place| (first_place.unwrap() + samples) % PERIOD != place)
    };
    // What had been written before anybody noticed.
    let wrong = ledger.stamps.iter().filter(displaced).count();
    assert!(10 * wrong < ledger.stamps.len(), "{wrong} of {}", ledger.stamps.len());
}

#[test]
fn a_reader_that_is_too_slow_loses_what_the_figures_say_up_to_the_last_sample() {
    // A pause of 30 ms for at most 65536 samples: less than half of what comes.
    let config = RadioConfig { queue: 100_000, tx: None, ..config("pace=real,short_reads=500") };
    let (ledger, health, fault) = run_with(&config, 1_500_000, Duration::from_millis(30));
    assert_eq!((fault, ledger.samples), (None, 1_500_000));
    assert!(of(&health.dropped) > 100_000 && health.deepest.load(Ordering::Relaxed) <= 100_000, "{health}");
    // Between two stamps lies what came and what was told to be missing, and nothing else.
    assert!(ledger.told_gaps.len() > 3 && ledger.stamps.len() > 1000);
    for pair in ledger.stamps.windows(2) {
        let ((from, start, _), (to, end, _)) = (pair[0], pair[1]);
        let told: u64 = ledger.told_gaps.iter().filter(|g| (from + 1..=to).contains(&g.0)).map(|g| g.1).sum();
        assert_eq!(((end - start) as f64 * RATE / 1e9).round() as u64, to - from + told, "{from} to {to}");
    }
    // Every sample that was received was passed on, is still under way, or is part of a gap; the gap at the end has no sample behind it.
    let told: u64 = ledger.told_gaps.iter().map(|g| g.1).sum();
    assert!(of(&health.gap_samples) >= told, "{health}");
    // On a machine that is loaded the simulated device itself may overflow.
    assert!(of(&health.gap_samples) == of(&health.dropped) || of(&health.overflows) > 0, "{health}");
    let left = of(&health.received) - of(&health.dropped) - ledger.samples;
    assert!(left <= 100_000 + 65_536, "{left}");
}

#[test]
fn a_driver_that_hangs_or_brings_nothing_ends_the_run_with_an_error() {
    for quirk in [
        "pace=fast,hang_after=300000",
        "pace=real,hang_after=300000",
        "pace=real,stall_every=300000,stall=1000000",
        "pace=fast,stall_every=300000,stall=100000000",
    ] {
        let config = RadioConfig { timeout: Duration::from_millis(400), ..config(quirk) };
        let (ledger, health, fault) = run_with(&config, u64::MAX, Duration::ZERO);
        let fault = fault.unwrap();
        assert!(fault.contains("has brought nothing for 0.4 s"), "{quirk}: {fault}");
        // All that came was passed on, but for what came while the transmitter was behind; a paced device may itself lose some on a machine that is loaded.
        assert_eq!(of(&health.received), 300_000, "{quirk}: {health}");
        let accounted = ledger.samples + of(&health.gap_samples);
        assert!(accounted == 300_000 || (accounted > 300_000 && of(&health.overflows) > 0), "{quirk}: {accounted}; {health}");
    }
    let (ledger, _, fault) = run_with(&config("pace=fast,vanish_after=300000"), u64::MAX, Duration::ZERO);
    assert!(ledger.samples == 300_000 && fault.is_some_and(|fault| fault.contains("has disappeared")));
}

#[test]
fn a_device_that_comes_back_is_opened_again_and_every_sample_is_accounted_for() {
    let lost =
        |pace: &str| RadioConfig { reconnect: Duration::from_secs(5), ..config(&format!("pace={pace},vanish_after=300000,serial=back")) };
    let (ledger, health, fault) = run_with(&lost("fast"), 1_000_000, Duration::ZERO);
    assert_eq!((fault, ledger.samples), (None, 1_000_000));
    // Gone at these places, and nobody knows for how long.
    assert_eq!(ledger.told_gaps, [(300_000, 0), (600_000, 0), (900_000, 0)]);
    assert_eq!(of(&health.unknown_gaps), of(&health.reconnects), "{health}");
    // All that was received came out, but for what was read behind the end; each session begins with the delay.
    assert!(of(&health.received) >= 1_000_000 && ledger.silent == 4 * 40, "{health}; {} silent", ledger.silent);
    // Paced, on a machine that is loaded, the device may lose some of its own.
    let (ledger, health, fault) = run_with(&lost("real"), 1_000_000, Duration::ZERO);
    assert_eq!((fault, ledger.samples), (None, 1_000_000));
    assert!(of(&health.reconnects) >= 3 && of(&health.unknown_gaps) >= of(&health.reconnects), "{health}");
    let told = |at: u64| ledger.told_gaps.contains(&(at, 0)) || of(&health.gap_samples) > 0;
    assert!([300_000, 600_000, 900_000].into_iter().all(told), "{:?}; {health}", ledger.told_gaps);
}

#[test]
fn a_device_that_stays_away_is_an_error_after_the_time_that_it_has() {
    let config = RadioConfig { reconnect: Duration::from_millis(500), ..config("pace=fast,vanish_after=300000,serial=away") };
    // Somebody else holds the device, so that it cannot be opened anew.
    let held = soapysdr::Device::new(config.rx.as_ref().unwrap().device.as_str()).unwrap();
    let (ledger, health, fault) = run_with(&config, u64::MAX, Duration::ZERO);
    let fault = fault.unwrap();
    assert!(fault.contains("has disappeared") && fault.contains("has not come back within 0.5 s"), "{fault}");
    assert_eq!((ledger.samples, of(&health.received), of(&health.reconnects)), (300_000, 300_000, 0));
    drop(held);
}

#[test]
fn a_transmitter_is_at_its_lowest_gain_until_it_starts_and_without_a_wish_as_it_was_then() {
    use soapysdr::Direction::Tx;
    let device = "driver=kaflow-testbed,pace=fast,serial=rise";
    let config = RadioConfig { patient: true, ..RadioConfig::duplex(device, 5.4e9, RATE) };
    // SoapySDR has one device for each set of arguments: this is the one that is opened.
    let held = soapysdr::Device::new(device).unwrap();
    let gains = || ["DRIVER", "PA"].map(|name| held.gain_element(Tx, 0, name).unwrap());
    held.set_gain_element(Tx, 0, "DRIVER", 11.0).unwrap();
    held.set_gain_element(Tx, 0, "PA", 7.0).unwrap();
    let mut radio = Radio::open(&config).unwrap();
    assert_eq!((gains(), radio.read_back(Tx).unwrap().gain), ([0.0, 0.0], 18.0));
    let mut run = || -> Result<()> {
        let (sink, source) = (SoapySink::new(&mut radio).unwrap(), SoapySource::new(&mut radio).unwrap().limit(10_000));
        let (repeat, end) = (Repeat::new(marked(), radio.stop()), futuresdr::blocks::NullSink::<Complex32>::new());
        let mut fg = Flowgraph::new();
        connect!(fg, repeat > input[0].sink; source.output[0] > end);
        Runtime::new().run(fg).map(drop).map_err(Into::into)
    };
    run().unwrap();
    assert_eq!((gains(), radio.read_back(Tx).unwrap().gain), ([11.0, 7.0], 18.0));
}

#[test]
fn levels_leave_the_source_as_received_and_clipping_is_counted_at_both_ends() {
    let level = |rx_gain: f64| {
        let mut config = config("pace=fast");
        config.rx = config.rx.map(|end| End { gain: Some(rx_gain), ..end });
        run_with(&config, 300_000, Duration::ZERO).1
    };
    let (low, unity, high) = (level(20.0), level(40.0), level(50.0));
    assert!((low.rx.peak_dbfs() - unity.rx.peak_dbfs() + 20.0).abs() < 0.01, "{low}; {unity}");
    assert!((low.rx.mean_dbfs() - unity.rx.mean_dbfs() + 20.0).abs() < 1.5, "{low}; {unity}");
    assert_eq!((low.rx.clipped(), unity.rx.clipped()), (0, 0));
    // Ten decibels more than fit, behind the 40 samples of the delay: what was asked for, and what the driver's thread read beyond that before the transmitter ended.
    let loud = |x: f32| x.abs() * 10f32.sqrt() > 1.0 - 1.0 / 2048.0;
    let clipped = |received: u64| marked().iter().cycle().take(received as usize - 40).filter(|z| loud(z.re) || loud(z.im)).count() as u64;
    assert!((clipped(300_000)..=clipped(of(&high.received))).contains(&high.rx.clipped()) && high.rx.peak_dbfs() == 0.0, "{high}");
    assert!(high.tx.clipped() == 0 && (high.tx.peak_dbfs() + 6.02).abs() < 0.1, "{high}");
}

#[test]
fn what_cannot_be_is_said_before_anything_is_transmitted() {
    let refused = |config: &RadioConfig| Radio::open(config).err().unwrap().to_string();
    let quiet = || config("pace=fast,serial=refused");
    assert!(refused(&RadioConfig { queue: 99_999_999_999, ..quiet() }).starts_with("queue must be between 1 and"));
    assert!(refused(&RadioConfig { queue: 0, ..quiet() }).starts_with("queue must be between 1 and"));
    assert!(refused(&RadioConfig { timeout: Duration::ZERO, ..quiet() }).starts_with("timeout must be more than 0"));
    let message = refused(&config("half_duplex=true"));
    assert!(message.contains("half duplex: it cannot transmit and receive") && message.contains("--rx-only"), "{message}");
    let gains = |element: &str, gain: f64| {
        let end = quiet().rx.map(|end| End { gains: vec![(element.into(), gain)], ..end });
        refused(&RadioConfig { rx: end, ..quiet() })
    };
    assert!(gains("frequency", 5.3e9).contains("unknown gain element 'frequency'"), "{}", gains("frequency", 5.3e9));
    assert!(gains("LNA", 99.0).contains("rx-gain LNA must be between 0 and 30 dB"), "{}", gains("LNA", 99.0));
    let radio = Radio::open(&RadioConfig { tx: None, ..config("half_duplex=true,serial=half") }).unwrap();
    let found = radio.read_back(soapysdr::Direction::Rx).unwrap();
    assert_eq!((found.frequency, found.rate, found.gain, found.bandwidth), (5.4e9, RATE, 40.0, RATE));
    assert_eq!(radio.read_back(soapysdr::Direction::Tx), None);
}
