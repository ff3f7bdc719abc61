//! What goes wrong with a radio, a thousand times.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futuresdr::prelude::*;
use futuresdr::runtime::dev::prelude::*;
use kaflow::blocks::{Fault, Health, Radio, RadioConfig, Repeat, SoapySink, SoapySource, Sync, TIME, gap_length};
use kaflow::filter::{Adaptive, Filter, Guard, Nlms, Tracker};
use kaflow::iq::{Pairs, State, Synchroniser};

use super::{LEVEL, duplex, frame};

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
    kept: Guard<f32, Box<dyn Tracker<f32>>>,
    fresh: Guard<f32, Box<dyn Tracker<f32>>>,
    since: usize,
    verdict: Arc<Mutex<Verdict>>,
}

impl Judge {
    fn new() -> Self {
        let tracker = || Guard::new(Nlms::new(4, 0.5, 1e-6).unwrap().on_stream());
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
                self.kept.gap(missing as u64);
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
    let mut radio = Radio::open(&duplex(&format!("pace=fast,doppler_hz=200,snr_db=25,delay=33,{arguments}"))).unwrap();
    let health = radio.health();
    let repeat = Repeat::new(frame().iter().map(|z| z * LEVEL).collect(), radio.stop());
    let (sink, source) = (SoapySink::new(&mut radio).unwrap(), SoapySource::new(&mut radio).unwrap().limit(samples));
    let (follow, judge) = (Sync::new(Synchroniser::repeated(frame()).unwrap()), Judge::new());
    let verdict = judge.verdict.clone();
    let mut fg = Flowgraph::new();
    let unread = futuresdr::blocks::NullSource::<Complex32>::new();
    connect!(fg, repeat > input[0].sink; unread > tx.follow; source.output[0] > rx.follow; follow.aligned_tx > tx.judge; follow.aligned_rx > rx.judge);
    Runtime::new().run(fg).unwrap();
    let verdict = std::mem::take(&mut *verdict.lock().unwrap());
    Ok((verdict, health))
}

/// Samples around a gap that cannot be interpolated, and a slowly adjusted place.
const EDGES: usize = 110;

/// At least a thousand gaps, all of one length; the driver may have read on behind what was asked for.
fn check_gaps(health: &kaflow::blocks::Health, length: u64) {
    let gaps = health.gaps.load(Ordering::Relaxed);
    assert!(gaps >= 1000);
    assert_eq!(health.gap_samples.load(Ordering::Relaxed), gaps * length);
}

/// Gaps of another length: once in a thousand the place is searched for anew, and nobody knows how many are missing.
fn others(gaps: &[usize], length: usize) -> usize {
    gaps.iter().filter(|&missing| !(length..length + EDGES).contains(missing)).count()
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
    assert!(verdict.gaps.len() >= 990 && others(&verdict.gaps, 777) <= 2, "{:?}", verdict.gaps);
    check_recovery(&verdict);
}

#[test]
fn a_thousand_jumps_of_the_clock_have_the_right_length_and_the_tracker_recovers() {
    let (verdict, health) = afflict("jump_every=4000,jump=1234", 4_004_000).unwrap();
    assert_eq!(health.overflows.load(Ordering::Relaxed), 0);
    check_gaps(&health, 1234);
    assert!(verdict.gaps.len() >= 990 && others(&verdict.gaps, 1234) <= 2, "{:?}", verdict.gaps);
    check_recovery(&verdict);
}

#[test]
fn a_thousand_jumps_backwards_are_counted_and_the_tracker_recovers() {
    let (verdict, health) = afflict("jump_every=20000,jump=-500", 20_020_000).unwrap();
    assert!(health.time_errors.load(Ordering::Relaxed) >= 1000);
    assert_eq!(health.gap_samples.load(Ordering::Relaxed), 0);
    // Once in a thousand a whole block is doubtful as well.
    let told: Vec<usize> = verdict.gaps.iter().copied().filter(|&missing| missing != 0).collect();
    assert!(
        verdict.gaps.len() >= 990 && told.len() <= 2 && told.iter().all(|n| n % 4096 == 0),
        "{} gaps, told {told:?}",
        verdict.gaps.len()
    );
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
    let runtime = Runtime::new();
    for round in 0..1000 {
        let mut radio = Radio::open(&duplex(&format!("pace=fast,taps=0,vanish_after={},serial=gone", 1000 + round))).unwrap();
        let repeat = Repeat::new(vec![Complex32::ONE; 1000], radio.stop());
        let (sink, source) = (SoapySink::new(&mut radio).unwrap(), SoapySource::new(&mut radio).unwrap());
        let faults = [sink.fault.clone(), source.fault.clone()];
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
    to_next: usize,
    /// Samples between two pauses.
    between: usize,
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
            std::thread::sleep(Duration::from_millis(600));
            self.to_next = self.between;
        }
        io.finished = self.input.finished();
        io.call_again = n > 0;
        Ok(())
    }
}

/// The time of the first sample, in samples, and samples without a gap.
type Stretch = (f64, Vec<Complex32>);

/// The beginnings of what is received without a gap, and of what comes late.
#[derive(Block)]
struct Stretches<I = DefaultCpuReader<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
{
    #[input]
    input: I,
    /// The time of the next sample, in samples, and how many there were.
    next: f64,
    seen: usize,
    found: Arc<Mutex<Vec<Stretch>>>,
}

/// When the transmitter has run dry and come back several times.
const LATE: usize = 7_000_000;
const DRY_RATE: f64 = 4e6;

impl<I: CpuBufferReader<Item = Complex32>> Kernel for Stretches<I> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (input, tags) = self.input.slice_with_tags();
        let mut found = self.found.lock().unwrap();
        for (i, sample) in input.iter().enumerate() {
            let here = || tags.iter().filter(|t| t.index == i);
            for tag in here() {
                match &tag.tag {
                    Tag::NamedUsize(name, time) if name == TIME => self.next = *time as f64 * DRY_RATE / 1e9,
                    _ => {}
                }
            }
            if self.seen == 0 || self.seen == LATE || here().any(|t| gap_length(&t.tag).is_some()) {
                found.push((self.next, Vec::new()));
            }
            if let Some((_, stretch)) = found.last_mut().filter(|s| s.1.len() < 20_000) {
                stretch.push(*sample);
            }
            (self.next, self.seen) = (self.next + 1.0, self.seen + 1);
        }
        let n = input.len();
        drop(found);
        self.input.consume(n);
        io.finished = self.input.finished();
        Ok(())
    }
}

/// Transmits a frame again and again through a flowgraph that is late now and then; gives the radio's figures and when a frame begins, by the clock and modulo its length, in each stretch.
fn run_dry(repeats: bool) -> Result<(Arc<Health>, Vec<f64>)> {
    let device = format!("pace=real,doppler_hz=5,snr_db=30,delay=33,serial=dry{repeats}");
    let mut radio = Radio::open(&RadioConfig { queue: 16 * 8192, rate: DRY_RATE, ..duplex(&device) })?;
    let health = radio.health();
    let frame = frame();
    let repeat = Repeat::new(frame.iter().map(|z| z * LEVEL).collect(), radio.stop());
    // What does not repeat itself must be made up for: one pause, and then the flowgraph is faster than the radio.
    let between = if repeats { 1_700_001 } else { usize::MAX };
    let hiccup: Hiccup = Hiccup { input: Default::default(), output: Default::default(), to_next: 1_700_001, between };
    let sink = SoapySink::new(&mut radio)?;
    let sink = if repeats { sink.repeats(frame.len()) } else { sink };
    let source = SoapySource::new(&mut radio)?.limit(8_000_000);
    let end: Stretches = Stretches { input: Default::default(), next: 0.0, seen: 0, found: Arc::default() };
    let found = end.found.clone();
    let mut fg = Flowgraph::new();
    connect!(fg, repeat > input.hiccup; hiccup > input[0].sink; source.output[0] > input.end);
    Runtime::new().run(fg)?;
    let place = |(time, stretch): Stretch| {
        let (mut sync, mut pairs) = (Synchroniser::repeated(frame.clone()).ok()?, Pairs::default());
        sync.receive(&stretch, None);
        sync.finish(&mut pairs).ok()?;
        let status = sync.status();
        (status.state == State::Locked).then(|| (time + status.delay_samples).rem_euclid(frame.len() as f64))
    };
    let places: Vec<f64> = std::mem::take(&mut *found.lock().unwrap()).into_iter().filter_map(place).collect();
    println!("{health}; a frame begins at {places:.1?}");
    Ok((health, places))
}

/// How many of the places are where the first is.
fn in_place(places: &[f64]) -> usize {
    let period = frame().len() as f64;
    places.iter().filter(|place| ((*place - places[0] + 0.5 * period).rem_euclid(period) - 0.5 * period).abs() < 6.0).count()
}

#[test]
fn a_transmitter_that_runs_dry_comes_back_in_its_place() -> Result<()> {
    let (health, places) = run_dry(false)?;
    assert!(health.underflows.load(Ordering::Relaxed) >= 1 && places.len() >= 2, "{health}");
    // All but those who catch what was written before anybody noticed.
    assert!(3 * in_place(&places) >= 2 * places.len(), "{places:?}");
    Ok(())
}

#[test]
fn a_transmitter_that_repeats_a_frame_does_not_run_dry() -> Result<()> {
    // A machine that others use takes the time of the driver too now and then; a transmitter that waits for the flowgraph runs dry in every try.
    for _ in 0..5 {
        let (health, places) = run_dry(true)?;
        // One at the beginning, one late, and one behind each gap that a busy machine makes.
        if health.underflows.load(Ordering::Relaxed) == 0 && places.len() >= 2 && in_place(&places) == places.len() {
            return Ok(());
        }
    }
    panic!("it ran dry, or came back in another place, five times of five");
}
