//! Each block alone, fed by hand.
#![cfg(feature = "blocks")]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use futuresdr::runtime::{
    Pmt,
    dev::{ItemTag, Tag},
    mocker::{Mocker, Reader, Writer},
};
use kaflow::{
    Complex32,
    blocks::{
        Align, Classifier, Count, Detect, GAP, Impair, IqSink, IqSource, Meter, OfdmRx, OfdmTx, Soft, Staged, Track, TrackMimo, gap,
        gap_length,
    },
    channel::{self, Dropper, FadingConfig, Impairments, ImpairmentsConfig, Model, Profile, Stage},
    filter::{Adaptive, Evict, Filter, Nlms, Tracker, Windowed, bernoulli_klms, multinomial_klms, poisson_klms},
    iq::{self, Datatype, Recording, align::Options, sigmf::Meta},
    kernel::Gaussian,
    observation::{Bernoulli, Multinomial, Poisson},
    ofdm,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

type In = Reader<Complex32>;
type Out = Writer<Complex32>;
type Nlms4 = Windowed<f32, Nlms<f32>>;

fn nlms() -> Nlms4 {
    Windowed::new(Nlms::new(4, 0.5, 1e-6).unwrap(), 4).unwrap()
}

fn noise(rng: &mut impl Rng, n: usize) -> Vec<Complex32> {
    (0..n).map(|_| Complex32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect()
}

/// A pair of streams through a short channel.
fn pair(seed: u64, n: usize) -> (Vec<Complex32>, Vec<Complex32>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let tx = noise(&mut rng, n);
    let h = [Complex32::new(0.7, 0.1), Complex32::new(-0.2, 0.5)];
    let rx = (0..n).map(|i| h[0] * tx[i] + if i > 0 { h[1] * tx[i - 1] } else { Complex32::new(0.0, 0.0) }).collect();
    (tx, rx)
}

fn bits(z: &[Complex32]) -> Vec<(u32, u32)> {
    z.iter().map(|z| (z.re.to_bits(), z.im.to_bits())).collect()
}

/// Feeds `tx` and `rx` in pieces and collects prediction and error.
fn feed<T: Tracker<f32> + 'static>(
    block: &mut Mocker<Track<T, In, Out>>,
    tx: &[Complex32],
    rx: &[Complex32],
    mut piece: impl FnMut() -> usize,
) -> (Vec<Complex32>, Vec<Complex32>) {
    let (mut prediction, mut error) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tx.len() {
        let end = (at + piece()).min(tx.len());
        block.tx().set(tx[at..end].to_vec());
        block.rx().set(rx[at..end].to_vec());
        block.prediction().reserve(end - at);
        block.error().reserve(end - at);
        block.run();
        prediction.extend(block.prediction().take().0);
        error.extend(block.error().take().0);
        at = end;
    }
    (prediction, error)
}

fn track() -> Mocker<Track<Nlms4, In, Out>> {
    Mocker::new(Track::with_buffers(nlms()))
}

#[test]
fn track_is_the_bare_filter_bit_for_bit_whatever_the_buffer_sizes() {
    let (tx, rx) = pair(1, 20_000);
    let mut bare = nlms();
    let mut expected = vec![Complex32::default(); tx.len()];
    bare.track(&tx, &rx, &mut expected, None);
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for largest in [1, 2, 17, 1000, 20_000] {
        let mut block = Mocker::new(Track::<_, In, Out>::with_buffers(nlms()).metrics_every(777, 100));
        let (prediction, error) = feed(&mut block, &tx, &rx, || rng.random_range(1..=largest));
        assert_eq!(bits(&prediction), bits(&expected), "pieces of up to {largest}");
        let difference: Vec<_> = rx.iter().zip(&expected).map(|(y, p)| y - p).collect();
        assert_eq!(bits(&error), bits(&difference));
        assert_eq!(block.series().total().samples, 19_900);
        assert_eq!(block.messages()[0].len(), 20_000 / 777, "a message of metrics for every 777 samples");
    }
}

#[test]
fn boxed_and_outside_trackers_fit_track() {
    /// Predicts what it saw last.
    struct Last(Complex32);
    impl Adaptive for Last {
        fn size(&self) -> usize {
            1
        }
        fn reset(&mut self) {
            self.0 = Complex32::default();
        }
    }
    impl Tracker<f32> for Last {
        fn track(&mut self, _: &[Complex32], rx: &[Complex32], prediction: &mut [Complex32], _: Option<&mut [f32]>) {
            for (p, y) in prediction.iter_mut().zip(rx) {
                *p = std::mem::replace(&mut self.0, *y);
            }
        }
        fn gap(&mut self) {}
        fn freeze(&mut self, _: bool) {}
    }
    let (tx, rx) = pair(3, 100);
    let mut block = Mocker::new(Track::<Box<dyn Tracker<f32>>, In, Out>::with_buffers(Box::new(Last(Complex32::default()))));
    let (prediction, _) = feed(&mut block, &tx, &rx, || 7);
    assert_eq!(prediction[1..], rx[..99]);
    assert_eq!(block.post("save", Pmt::String("/nowhere".into())), Ok(Pmt::InvalidValue), "it cannot be saved, and says so");
}

#[test]
fn metrics_carry_nmse_now_and_overall_centres_and_step() {
    let (tx, rx) = pair(4, 2000);
    let mut block = Mocker::new(Track::<_, In, Out>::with_buffers(nlms()).metrics_every(1000, 0));
    feed(&mut block, &tx, &rx, || 300);
    let messages = block.take_messages();
    let [Pmt::MapStrPmt(first), Pmt::MapStrPmt(second)] = &messages[0][..] else { panic!("{messages:?}") };
    assert_eq!((&first["step"], &second["step"]), (&Pmt::U64(1000), &Pmt::U64(2000)));
    assert_eq!(second["centres"], Pmt::Usize(4));
    let db = |m: &HashMap<String, Pmt>, key: &str| f64::try_from(&m[key]).unwrap();
    assert!(db(second, "nmse_db") < db(second, "nmse_total_db"), "it learns: {second:?}");
    assert_eq!(db(first, "nmse_db"), db(first, "nmse_total_db"));
}

#[test]
fn tags_are_copied_and_one_that_both_inputs_carry_is_copied_once() {
    let (tx, rx) = pair(5, 10);
    let mut block = track();
    let item = |index, tag| ItemTag { index, tag };
    block.tx().set_with_tags(tx, vec![item(3, gap(5)), item(4, Tag::Id(7))]);
    block.rx().set_with_tags(rx, vec![item(3, gap(5)), item(9, Tag::String("end".into()))]);
    block.prediction().reserve(8);
    block.error().reserve(100);
    block.run();
    let (samples, tags) = block.prediction().take();
    assert_eq!(samples.len(), 8);
    assert_eq!(tags, [item(3, gap(5)), item(4, Tag::Id(7))], "the tag at 9 is behind the eight samples that fit");
    block.prediction().reserve(8);
    block.run();
    let (_, tags) = block.prediction().take();
    assert_eq!(tags, [item(1, Tag::String("end".into()))]);
    assert_eq!(block.error().take().1.len(), 3);
    assert_eq!(gap(5), Tag::NamedUsize(GAP.into(), 5));
}

#[test]
fn a_gap_tag_keeps_the_tracker_from_learning_across_the_hole() {
    let (mut tx, mut rx) = pair(6, 4000);
    tx.drain(2000..2100);
    rx.drain(2000..2100);
    let mut bare = nlms();
    let mut expected = vec![Complex32::default(); tx.len()];
    bare.track(&tx[..2000], &rx[..2000], &mut expected[..2000], None);
    bare.gap();
    bare.track(&tx[2000..], &rx[2000..], &mut expected[2000..], None);

    let mut block = track();
    block.tx().set(tx.clone());
    block.rx().set_with_tags(rx.clone(), vec![ItemTag { index: 2000, tag: gap(100) }]);
    block.prediction().reserve(tx.len());
    block.error().reserve(tx.len());
    block.run();
    let (prediction, _) = block.prediction().take();
    assert_eq!(bits(&prediction), bits(&expected));
    let mut careless = track();
    let (blind, _) = feed(&mut careless, &tx, &rx, || 4000);
    let error = |p: &[Complex32]| (2003..2050).map(|i| (rx[i] - p[i]).norm()).fold(0.0, f32::max);
    assert!(error(&prediction) < 1e-3 && error(&blind) > 0.05, "{} against {}", error(&prediction), error(&blind));
}

#[test]
fn messages_steer_the_tracker() {
    let (tx, rx) = pair(7, 3000);
    let mut block = track();
    feed(&mut block, &tx, &rx, || 500);
    let learned = block.tracker().filter().weights().to_vec();

    assert_eq!(block.post("adapt", Pmt::Bool(false)), Ok(Pmt::Ok));
    feed(&mut block, &tx, &rx.iter().map(|y| -y).collect::<Vec<_>>(), || 500);
    assert_eq!(block.tracker().filter().weights(), learned, "frozen");

    let mu = Pmt::MapStrPmt(HashMap::from([("mu".to_string(), Pmt::F64(0.25))]));
    assert_eq!(block.post("set", mu), Ok(Pmt::Ok));
    assert_eq!(block.post("set", Pmt::String("mu = 0.125".into())), Ok(Pmt::Ok));

    assert_eq!(block.post("bypass", Pmt::String("on".into())), Ok(Pmt::Ok));
    let (prediction, error) = feed(&mut block, &tx, &rx, || 500);
    assert_eq!(prediction, tx);
    assert_eq!(error[9], rx[9] - tx[9]);
    assert_eq!(block.post("bypass", Pmt::Bool(false)), Ok(Pmt::Ok));

    assert_eq!(block.post("reset", Pmt::Null), Ok(Pmt::Ok));
    assert!(block.tracker().filter().weights().iter().all(|w| w.norm() == 0.0));
    assert_eq!(block.post("adapt", Pmt::Finished), Ok(Pmt::Ok), "a finished neighbour changes nothing");
}

#[test]
fn bad_messages_are_answered_invalid_value_and_change_nothing() {
    let (tx, rx) = pair(8, 1000);
    let mut block = track();
    feed(&mut block, &tx[..500], &rx[..500], || 500);
    let before = block.tracker().save().unwrap();
    let map = |entries: &[(&str, Pmt)]| Pmt::MapStrPmt(entries.iter().map(|(k, v)| (k.to_string(), v.clone())).collect());
    for (port, bad) in [
        ("adapt", Pmt::Null),
        ("adapt", Pmt::String("perhaps".into())),
        ("bypass", Pmt::F64(1.0)),
        ("set", Pmt::Null),
        ("set", Pmt::String("mu".into())),
        ("set", Pmt::String("mu=much".into())),
        ("set", Pmt::String("mu=3".into())),
        ("set", Pmt::String("mu=nan".into())),
        ("set", Pmt::String("nu=0.1".into())),
        ("set", map(&[("mu", Pmt::F64(-1.0))])),
        ("set", map(&[("mu", Pmt::F64(0.1)), ("regularization", Pmt::F64(1.0))])),
        ("set", map(&[])),
        ("save", Pmt::F64(1.0)),
        ("save", Pmt::String("/no/such/directory/state".into())),
        ("load", Pmt::String("/no/such/file".into())),
        ("load", Pmt::String("/dev/null".into())),
    ] {
        assert_eq!(block.post(port, bad.clone()), Ok(Pmt::InvalidValue), "{port} {bad:?}");
    }
    assert_eq!(block.tracker().save().unwrap(), before);
    let mut undisturbed = nlms();
    let mut expected = vec![Complex32::default(); 1000];
    undisturbed.track(&tx, &rx, &mut expected, None);
    assert_eq!(bits(&feed(&mut block, &tx[500..], &rx[500..], || 99).0), bits(&expected[500..]));
}

#[test]
fn saved_state_continues_bit_for_bit_in_another_block() {
    let (tx, rx) = pair(9, 2000);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("state");
    let mut first = track();
    feed(&mut first, &tx[..1000], &rx[..1000], || 333);
    assert_eq!(first.post("save", Pmt::String(file.display().to_string())), Ok(Pmt::Ok));
    let mut second = track();
    assert_eq!(second.post("load", Pmt::String(file.display().to_string())), Ok(Pmt::Ok));
    let expected = feed(&mut first, &tx[1000..], &rx[1000..], || 333);
    assert_eq!(feed(&mut second, &tx[1000..], &rx[1000..], || 100), expected);

    let mut confined = Mocker::new(Track::<_, In, Out>::with_buffers(nlms()).confined(directory.path()));
    assert_eq!(confined.post("load", Pmt::String("state".into())), Ok(Pmt::Ok));
    for outside in ["../state", "/etc/passwd", "", ".", "a/b"] {
        assert_eq!(confined.post("save", Pmt::String(outside.into())), Ok(Pmt::InvalidValue), "'{outside}'");
    }
}

#[test]
fn snapshots_fall_on_their_samples_and_resume_to_the_bit() {
    let (tx, rx) = pair(10, 5000);
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = kept.clone();
    let block = Track::<_, In, Out>::with_buffers(nlms()).metrics_every(300, 10).snapshots(1000, move |s| {
        keep.lock().unwrap().push(s);
        Ok(())
    });
    let mut block = Mocker::new(block);
    block.tx().set(tx.clone());
    block.rx().set(rx.clone());
    block.prediction().reserve(5000);
    block.error().reserve(5000);
    block.run();
    let expected = block.prediction().take().0;
    let kept = kept.lock().unwrap();
    assert_eq!(
        kept.iter().map(|s| (s.samples, s.last)).collect::<Vec<_>>(),
        [(1000, false), (2000, false), (3000, false), (4000, false), (5000, false), (5000, true)]
    );
    let mut resumed = Track::<_, In, Out>::with_buffers(nlms());
    assert!(resumed.resume(b"not a snapshot").is_err());
    resumed.resume(&kept[2].state).unwrap();
    let mut resumed = Mocker::new(resumed);
    let (prediction, _) = feed(&mut resumed, &tx[3000..], &rx[3000..], || 7);
    assert_eq!(bits(&prediction), bits(&expected[3000..]));
    assert_eq!(resumed.series(), block.series());
    assert_eq!(resumed.probe().read().samples, 5000);
}

#[test]
fn samples_that_are_not_numbers_pass_through_and_poison_nothing() {
    let (mut tx, mut rx) = pair(11, 3000);
    tx[100].re = f32::NAN;
    rx[200].im = f32::INFINITY;
    let mut block = track();
    let (prediction, _) = feed(&mut block, &tx, &rx, || 64);
    assert!(prediction.iter().all(|p| p.re.is_finite() && p.im.is_finite()));
    assert_eq!(block.series().total().samples, 2999);
    assert!((prediction[2999] - rx[2999]).norm() < 1e-3);
}

/// The received streams of two antennas that hear three transmitters.
fn mimo(seed: u64, n: usize) -> (Vec<Vec<Complex32>>, Vec<Vec<Complex32>>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let tx: Vec<_> = (0..3).map(|_| noise(&mut rng, n)).collect();
    let h: Vec<_> = (0..2).map(|_| noise(&mut rng, 6)).collect();
    let at = |t: &[Complex32], i: usize, d: usize| if i >= d { t[i - d] } else { Complex32::default() };
    let rx = h.iter().map(|h| (0..n).map(|i| (0..6).map(|k| h[k] * at(&tx[k / 2], i, k % 2)).sum()).collect()).collect();
    (tx, rx)
}

type Mimo = TrackMimo<Nlms<f32>, In, Out>;

fn feed_mimo(block: &mut Mocker<Mimo>, tx: &[Vec<Complex32>], rx: &[Vec<Complex32>], piece: usize) -> Vec<Vec<Complex32>> {
    let n = tx[0].len();
    let mut out = vec![Vec::new(); rx.len()];
    for at in (0..n).step_by(piece) {
        let end = (at + piece).min(n);
        block.tx().iter_mut().zip(tx).for_each(|(p, tx)| p.set(tx[at..end].to_vec()));
        block.rx().iter_mut().zip(rx).for_each(|(p, rx)| p.set(rx[at..end].to_vec()));
        block.prediction().iter_mut().for_each(|p| p.reserve(piece));
        block.error().iter_mut().for_each(|p| p.reserve(piece));
        block.run();
        for (p, out) in block.prediction().iter_mut().zip(&mut out) {
            out.extend(p.take().0);
        }
    }
    out
}

fn nlms_mimo() -> Mimo {
    TrackMimo::with_buffers(3, 2, vec![Nlms::new(6, 0.5, 1e-6).unwrap(), Nlms::new(6, 0.5, 1e-6).unwrap()]).unwrap()
}

#[test]
fn track_mimo_is_the_bare_filters_on_the_concatenated_windows() {
    let (tx, rx) = mimo(12, 3000);
    let mut bare = Nlms::new(6, 0.5, 1e-6).unwrap();
    let at = |t: &[Complex32], i: usize, d: usize| if i >= d { t[i - d] } else { Complex32::default() };
    let expected: Vec<Complex32> = (0..3000)
        .map(|i| {
            let x: Vec<_> = (0..6).map(|k| at(&tx[k / 2], i, k % 2)).collect();
            bare.adapt(&x, rx[1][i])
        })
        .collect();
    for piece in [1, 100, 777, 3000] {
        let mut block = Mocker::new(nlms_mimo());
        let prediction = feed_mimo(&mut block, &tx, &rx, piece);
        assert_eq!(bits(&prediction[1]), bits(&expected), "pieces of {piece}");
        assert!(block.series().iter().all(|s| s.last().nmse_db() < -10.0));
    }
}

#[test]
fn track_mimo_takes_the_same_messages_and_refuses_what_does_not_fit() {
    let (tx, rx) = mimo(13, 1000);
    let directory = tempfile::tempdir().unwrap();
    let file = Pmt::String(directory.path().join("state").display().to_string());
    let mut block = Mocker::new(nlms_mimo().metrics_every(500, 0));
    feed_mimo(&mut block, &tx, &rx, 250);
    assert_eq!(block.messages()[0].len(), 2);
    assert_eq!(block.post("save", file.clone()), Ok(Pmt::Ok));
    let weights = block.filters()[0].weights().to_vec();
    assert_eq!(block.post("reset", Pmt::Null), Ok(Pmt::Ok));
    assert_eq!(block.post("load", file.clone()), Ok(Pmt::Ok));
    assert_eq!(block.filters()[0].weights(), weights);
    assert_eq!(block.post("set", Pmt::String("mu=5".into())), Ok(Pmt::InvalidValue));
    assert_eq!(block.post("load", Pmt::String("/dev/null".into())), Ok(Pmt::InvalidValue));
    assert_eq!(block.post("adapt", Pmt::Bool(false)), Ok(Pmt::Ok));
    feed_mimo(&mut block, &tx, &rx, 250);
    assert_eq!(block.filters()[0].weights(), weights, "frozen");
    assert_eq!(block.post("bypass", Pmt::Bool(true)), Ok(Pmt::Ok));
    assert_eq!(feed_mimo(&mut block, &tx, &rx, 250)[1], tx[1]);

    assert!(Mimo::with_buffers(0, 2, vec![Nlms::new(6, 0.5, 1e-6).unwrap()]).is_err());
    assert!(Mimo::with_buffers(3, 2, vec![]).is_err());
    let wrong = Mimo::with_buffers(3, 3, vec![Nlms::new(6, 0.5, 1e-6).unwrap()]);
    assert!(wrong.err().unwrap().to_string().contains("3 x 3"), "a filter of another length is refused at once");
}

#[test]
fn a_gap_on_any_antenna_keeps_all_filters_from_learning() {
    let (tx, rx) = mimo(14, 1000);
    let mut block = Mocker::new(nlms_mimo());
    feed_mimo(&mut block, &tx, &rx, 1000);
    let weights = block.filters()[0].weights().to_vec();
    block.tx().iter_mut().for_each(|p| p.set(vec![Complex32::new(1.0, 1.0)]));
    block.rx().iter_mut().for_each(|p| p.set(vec![Complex32::new(9.0, 9.0)]));
    block.rx()[1].set_with_tags(vec![Complex32::new(9.0, 9.0)], vec![ItemTag { index: 0, tag: gap(1) }]);
    block.prediction().iter_mut().for_each(|p| p.reserve(1));
    block.error().iter_mut().for_each(|p| p.reserve(1));
    block.run();
    assert_eq!(block.filters()[0].weights(), weights);
    assert_eq!(block.error()[1].take().1, [ItemTag { index: 0, tag: gap(1) }]);
    assert!(block.error()[0].take().1.is_empty(), "a tag of one antenna's rx stays with that antenna");
}

#[test]
fn the_meter_counts_every_sample_once_whatever_the_buffer_sizes() {
    let (reference, estimate) = pair(15, 10_000);
    let mut rows = None;
    for piece in [1, 64, 999, 10_000] {
        let mut meter = Mocker::new(Meter::<In>::with_buffers(250, 0));
        for (y, p) in reference.chunks(piece).zip(estimate.chunks(piece)) {
            meter.reference().set(y.to_vec());
            meter.estimate().set(p.to_vec());
            meter.run();
        }
        assert_eq!(meter.messages()[0].len(), 40);
        let now = meter.rows();
        assert_eq!(*rows.get_or_insert(now.clone()), now, "pieces of {piece}");
        let energy: f64 = reference.iter().map(|y| f64::from(y.re).powi(2) + f64::from(y.im).powi(2)).sum();
        assert!((meter.total().reference - energy).abs() < 1e-9 * energy);
    }
}

type Detector<C> = Detect<C, In, Reader<u8>, Writer<f32>>;

fn feed_detector<C: Classifier + 'static>(block: &mut Mocker<Detector<C>>, rx: &[Complex32], training: &[u8], piece: usize) -> Vec<f32> {
    let mut out = Vec::new();
    for (rx, training) in rx.chunks(piece).zip(training.chunks(piece)) {
        block.rx().set(rx.to_vec());
        block.training().set(training.to_vec());
        let space = rx.len() * block.per_sample();
        block.soft().reserve(space);
        block.run();
        out.extend(block.soft().take().0);
    }
    out
}

/// Quarter turns with noise, through a channel that adds part of the sample before.
fn qpsk(seed: u64, n: usize) -> (Vec<u8>, Vec<Complex32>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let symbols: Vec<u8> = (0..n).map(|_| rng.random_range(0..4)).collect();
    let point = |s: u8| Complex32::from_polar(1.0, std::f32::consts::FRAC_PI_2 * f32::from(s));
    let noise = noise(&mut rng, n);
    let rx = (0..n).map(|i| point(symbols[i]) + 0.3 * point(symbols[i.saturating_sub(1)]) + 0.15 * noise[i]).collect();
    (symbols, rx)
}

#[test]
fn detect_learns_symbols_from_training_and_goes_on_without() {
    let (symbols, rx) = qpsk(16, 3000);
    let training: Vec<u8> = symbols.iter().enumerate().map(|(i, &s)| if i < 1500 { s } else { Detect::UNKNOWN }).collect();
    let filter = || {
        let evict = Evict { budget: Some(300), floor: None };
        multinomial_klms(Gaussian::new(0.6).unwrap(), Multinomial::new(1.0, vec![0.0; 4]).unwrap(), 1.0, evict, 2).unwrap()
    };
    let mut whole = None;
    for piece in [1, 100, 3000] {
        let mut block = Mocker::new(Detector::with_buffers(filter(), 2, Soft::Llr).unwrap());
        assert_eq!(block.per_sample(), 2);
        let llr = feed_detector(&mut block, &rx, &training, piece);
        assert_eq!(*whole.get_or_insert(llr.clone()), llr, "pieces of {piece}");
        let wrong = (1500..3000).filter(|&i| u8::from(llr[2 * i] > 0.0) << 1 | u8::from(llr[2 * i + 1] > 0.0) != symbols[i]).count();
        assert!(wrong < 15, "{wrong} of 1500 symbols wrong");
        assert!(llr.iter().all(|l| l.abs() <= 16.0));
    }
    let mut block = Mocker::new(Detector::with_buffers(filter(), 2, Soft::Probability).unwrap());
    let p = feed_detector(&mut block, &rx, &training, 500);
    assert_eq!(p.len(), 4 * 3000);
    assert!(p.chunks(4).all(|p| (p.iter().sum::<f32>() - 1.0).abs() < 1e-5));

    let three =
        multinomial_klms(Gaussian::new(0.6).unwrap(), Multinomial::new(1.0, vec![0.0; 3]).unwrap(), 1.0, Evict::default(), 2).unwrap();
    assert!(Detector::with_buffers(three, 2, Soft::Llr).err().unwrap().to_string().contains("power of two"));
    assert!(Detector::with_buffers(filter(), 3, Soft::Llr).is_err(), "a window of another length than the filter's");
}

#[test]
fn detect_takes_messages_copies_tags_and_survives_any_training() {
    let filter = bernoulli_klms(Gaussian::new(0.6).unwrap(), Bernoulli::new(1.0, 0.0).unwrap(), 1.0, Evict::default(), 1).unwrap();
    let boxed: Box<dyn Classifier> = Box::new(filter);
    let mut block = Mocker::new(Detector::with_buffers(boxed, 1, Soft::Probability).unwrap());
    let mut rx = vec![Complex32::new(1.0, 0.0); 256];
    rx[3].re = f32::NAN;
    let training: Vec<u8> = (0..=255).collect();
    let p = feed_detector(&mut block, &rx, &training, 256);
    assert!(p.iter().all(|p| (0.0..=1.0).contains(p)));
    assert_eq!(block.classifier().size(), 2, "only 0 and 1 are classes");
    assert_eq!(block.post("adapt", Pmt::Bool(false)), Ok(Pmt::Ok));
    feed_detector(&mut block, &rx, &[1; 256], 256);
    assert_eq!(block.classifier().size(), 2);
    assert_eq!(block.post("set", Pmt::String("process-noise=2".into())), Ok(Pmt::Ok));
    assert_eq!(block.post("set", Pmt::String("process-noise=-2".into())), Ok(Pmt::InvalidValue));
    assert_eq!(block.post("reset", Pmt::Null), Ok(Pmt::Ok));
    assert_eq!(block.classifier().size(), 0);

    block.rx().set_with_tags(rx, vec![ItemTag { index: 5, tag: gap(9) }]);
    block.training().set(training);
    block.soft().reserve(256);
    block.run();
    assert_eq!(block.soft().take().1, [ItemTag { index: 5, tag: gap(9) }]);
}

#[test]
fn count_learns_a_rate_and_leaves_out_what_nobody_counted() {
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let input: Vec<Complex32> = (0..4000).map(|_| Complex32::new(rng.random_range(0.0..1.0), 0.0)).collect();
    // Counts of a process whose rate rises from 2 to 12: the number of uniform arrivals in 100 slots.
    let mut counts: Vec<f32> =
        input.iter().map(|x| (0..100).filter(|_| rng.random_range(0.0..100.0) < 2.0 + 10.0 * x.re).count() as f32).collect();
    counts[10] = f32::NAN;
    counts[11] = -1.0;
    let filter = poisson_klms(Gaussian::new(0.2).unwrap(), Poisson::new(0.002, 1.0).unwrap(), 1.0, Evict::default(), 1).unwrap();
    let mut block = Mocker::new(Count::<_, In, Reader<f32>, Writer<f32>>::with_buffers(filter, 1).unwrap());
    let mut rate = Vec::new();
    for (input, counts) in input.chunks(333).zip(counts.chunks(333)) {
        block.input().set(input.to_vec());
        block.counts().set(counts.to_vec());
        block.rate().reserve(333);
        block.run();
        rate.extend(block.rate().take().0);
    }
    assert_eq!(rate.len(), 4000);
    assert_eq!(block.filter().size(), 3998);
    let error: f32 = (3000..4000).map(|i| (rate[i] / (2.0 + 10.0 * input[i].re) - 1.0).abs()).sum::<f32>() / 1000.0;
    assert!(error < 0.15, "mean relative error of the rate {error}");
    assert_eq!(block.post("set", Pmt::String("offset=nan".into())), Ok(Pmt::InvalidValue));
    assert_eq!(block.post("reset", Pmt::Null), Ok(Pmt::Ok));
    assert_eq!(block.filter().size(), 0);
}

/// Collects what a block with one input and one output makes of `input`.
macro_rules! through {
    ($block:expr, $input:expr, $tags:expr, $room:expr) => {{
        $block.input().set_with_tags($input, $tags);
        $block.output().reserve($room);
        $block.run();
        $block.output().take()
    }};
}

#[test]
fn the_test_beds_parts_are_the_bare_parts_and_take_parameters_at_run_time() {
    let mut rng = ChaCha8Rng::seed_from_u64(18);
    let samples = noise(&mut rng, 2000);
    fn checked<S: Stage + Clone + 'static>(stage: S, samples: &[Complex32], good: &str, bad: &str) {
        let mut bare = stage.clone();
        let mut expected = samples.to_vec();
        bare.process(&mut expected);
        let mut block = Mocker::new(Staged::<S, In, Out>::with_buffers(stage));
        let mut found = Vec::new();
        for piece in samples.chunks(77) {
            found.extend(through!(block, piece.to_vec(), vec![], 77).0);
        }
        assert_eq!(bits(&found), bits(&expected));
        assert_eq!(block.post("set", Pmt::String(good.into())), Ok(Pmt::Ok), "{good}");
        assert_eq!(block.post("set", Pmt::String(bad.into())), Ok(Pmt::InvalidValue), "{bad}");
        assert_eq!(block.post("set", Pmt::String("colour=3".into())), Ok(Pmt::InvalidValue));
        assert_eq!(block.post("reset", Pmt::Null), Ok(Pmt::Ok));
        let (_, tags) = through!(block, samples.to_vec(), vec![ItemTag { index: 3, tag: gap(2) }], 2000);
        assert_eq!(tags, [ItemTag { index: 3, tag: gap(2) }]);
    }
    checked(channel::Clip::new(3.0).unwrap(), &samples, "clip_db=6", "clip_db=nan");
    checked(channel::Amplifier::new(Model::Rapp { smoothness: 2.0 }, 0.0).unwrap(), &samples, "ibo_db=-3", "ibo_db=inf");
    let fading = FadingConfig::new(Profile::exponential(4, 3.0), 1e-3);
    checked(channel::Fading::new(&fading, 1).unwrap(), &samples, "doppler=1e-4", "doppler=-1");
}

#[test]
fn impair_loses_samples_at_tags_and_delivers_the_rest() {
    let samples: Vec<Complex32> = (0..20_000).map(|i| Complex32::new(i as f32, 0.0)).collect();
    let receiver = || Impairments::new(&ImpairmentsConfig::default(), f64::INFINITY, 1).unwrap();
    let mut block = Mocker::new(Impair::<In, Out>::with_buffers(receiver(), Dropper::new(1e-3, 20.0, 1).unwrap()));
    let (found, tags) = through!(block, samples.clone(), vec![ItemTag { index: 100, tag: Tag::Id(7) }], 20_000);
    let lost: usize = tags.iter().filter_map(|t| gap_length(&t.tag)).sum();
    assert!(lost > 100);
    assert_eq!(found.len() + lost, 20_000);
    for tag in tags.iter().filter(|t| gap_length(&t.tag).is_some()) {
        let missing = gap_length(&tag.tag).unwrap();
        assert!(
            (found[tag.index].re - found[tag.index - 1].re - missing as f32 - 1.0).abs() < 0.1,
            "the tag lies on the first sample behind the hole"
        );
    }
    let id = tags.iter().find(|t| t.tag == Tag::Id(7)).unwrap();
    assert!((found[id.index].re - 100.0).abs() < 30.0);

    let mut block = Mocker::new(Impair::<In, Out>::with_buffers(receiver(), Dropper::new(0.0, 1.0, 1).unwrap()));
    assert_eq!(block.post("set", Pmt::String("snr_db=10".into())), Ok(Pmt::Ok));
    assert_eq!(block.post("set", Pmt::String("drop_rate=2".into())), Ok(Pmt::InvalidValue));
    assert_eq!(through!(block, samples, vec![], 20_000).0.len(), 20_000, "nothing is lost that is not meant to be");
}

#[test]
fn ofdm_goes_out_and_comes_back_without_a_bit_lost() {
    let config = ofdm::Config { gap: 100, ..ofdm::Config::preset("wifi").unwrap() };
    let mut sent = vec![0; 3 * config.payload_bits()];
    ofdm::RandomBits::new(5).fill(&mut sent);
    let mut tx = Mocker::new(OfdmTx::<Out>::with_buffers(ofdm::Transmitter::new(config.clone(), ofdm::Source::Queue).unwrap(), None));
    assert_eq!(tx.post("bits", Pmt::Blob(vec![0, 1, 2])), Ok(Pmt::InvalidValue));
    assert_eq!(tx.post("set", Pmt::String("gain_db=1000".into())), Ok(Pmt::InvalidValue));
    assert_eq!(tx.post("set", Pmt::String("gain_db=-20".into())), Ok(Pmt::Ok));
    assert_eq!(tx.post("bits", Pmt::Blob(sent.clone())), Ok(Pmt::Ok));
    assert_eq!(tx.post("bits", Pmt::Finished), Ok(Pmt::Ok));
    tx.output().reserve(10_000);
    tx.run();
    let mut samples = tx.output().take().0;
    assert_eq!(samples.len(), 3 * (config.frame_samples() + config.gap));
    samples.extend(vec![Complex32::default(); 500]);

    let mut rx = Mocker::new(OfdmRx::<In, Out>::with_buffers(ofdm::Receiver::new(config).unwrap()).keep_packets());
    let mut points = Vec::new();
    for piece in samples.chunks(333) {
        rx.input().set(piece.to_vec());
        rx.points().reserve(7000);
        rx.run();
        points.extend(rx.points().take().0);
    }
    assert_eq!(rx.received(), 3);
    assert_eq!(rx.packets().iter().flat_map(|p| p.bits.clone()).collect::<Vec<_>>(), sent);
    assert_eq!(points.len(), 3 * 480);
    let messages = rx.messages();
    let Pmt::MapStrPmt(first) = &messages[0][0] else { panic!("{messages:?}") };
    assert_eq!(first["bits"], Pmt::Blob(sent[..960].to_vec()));
}

#[test]
fn recordings_play_with_their_gaps_and_are_written_with_them() {
    let directory = tempfile::tempdir().unwrap();
    let samples = noise(&mut ChaCha8Rng::seed_from_u64(19), 1000);
    let path = directory.path().join("a");
    let writer = iq::Writer::create(&path, Meta::new(Datatype::CF32_LE, Some(1e6)), false).unwrap();
    let mut sink = Mocker::new(IqSink::<In>::sigmf_with_buffers(writer));
    sink.input().set_with_tags(samples.clone(), vec![ItemTag { index: 400, tag: gap(50) }]);
    sink.run();
    sink.deinit();
    assert_eq!(sink.written(), 1000);

    let recording = Recording::open(path.with_extension("sigmf-meta"), None).unwrap();
    assert_eq!(recording.gaps().map(|g| (g.at, g.missing)).collect::<Vec<_>>(), [(400, 50)]);
    let mut source = Mocker::new(IqSource::<Out>::with_buffers(recording));
    source.output().reserve(2000);
    source.run();
    let (found, tags) = source.output().take();
    assert_eq!(found, samples);
    assert_eq!(tags, [ItemTag { index: 400, tag: gap(50) }]);

    let stop = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let recording = Recording::open(path.with_extension("sigmf-meta"), None).unwrap();
    let mut source = Mocker::new(IqSource::<Out>::with_buffers(recording).stop_when(stop));
    source.output().reserve(2000);
    source.run();
    assert!(source.output().take().0.is_empty());
}

type Aligner = Align<In, Out>;

fn feed_align(
    block: &mut Mocker<Aligner>,
    tx: (Vec<Complex32>, Vec<ItemTag>),
    rx: (Vec<Complex32>, Vec<ItemTag>),
) -> [(Vec<Complex32>, Vec<ItemTag>); 2] {
    let room = tx.0.len().max(rx.0.len());
    block.tx().set_with_tags(tx.0, tx.1);
    block.rx().set_with_tags(rx.0, rx.1);
    block.aligned_tx().reserve(room);
    block.aligned_rx().reserve(room);
    block.run();
    [block.aligned_tx().take(), block.aligned_rx().take()]
}

#[test]
fn align_finds_delay_and_carrier_and_tells() {
    let tx = noise(&mut ChaCha8Rng::seed_from_u64(20), 30_000);
    let rx: Vec<_> =
        (0..30_000usize).map(|i| if i < 37 { Complex32::default() } else { tx[i - 37] * Complex32::cis(0.002 * i as f32) }).collect();
    let mut block = Mocker::new(Aligner::with_buffers(Options::default()));
    let [(a, _), (b, _)] = feed_align(&mut block, (tx.clone(), vec![]), (rx, vec![]));
    let found = *block.alignment().unwrap();
    assert_eq!(found.whole(), 37);
    assert!((found.cfo * std::f64::consts::TAU - 0.002).abs() < 1e-5, "{found:?}");
    assert_eq!(a, tx[..a.len()]);
    assert!(a.len() > 29_900);
    let turn = b[100] / a[100];
    let error: f32 = (1000..20_000).map(|i| (b[i] - a[i] * turn).norm_sqr()).sum::<f32>() / 19_000.0;
    assert!(error < 1e-2, "{error}");
    assert!(matches!(&block.messages()[0][0], Pmt::MapStrPmt(m) if m["inverted"] == Pmt::Bool(false)));
}

#[test]
fn align_keeps_the_streams_in_step_across_holes_on_either_side() {
    // Samples that say when they were: equal on both sides means in step.
    let clock = |n: std::ops::Range<usize>| n.map(|i| Complex32::new(i as f32, 1.0)).collect::<Vec<_>>();
    let tx = [clock(0..500), clock(520..2000)].concat();
    let rx = [clock(0..900), clock(1000..2000)].concat();
    let mut block = Mocker::new(Aligner::delay_with_buffers(0));
    let tag = |index, tag| ItemTag { index, tag };
    let [(a, a_tags), (b, b_tags)] =
        feed_align(&mut block, (tx, vec![tag(500, gap(20)), tag(600, Tag::Id(3))]), (rx, vec![tag(900, gap(100))]));
    assert_eq!(a, b);
    assert_eq!(a, [clock(0..500), clock(520..900), clock(1000..2000)].concat());
    assert_eq!(a_tags, [tag(500, gap(20)), tag(600, Tag::Id(3)), tag(880, gap(100))]);
    assert_eq!(b_tags, [tag(500, gap(20)), tag(880, gap(100))]);
    assert_eq!(block.lost().load(std::sync::atomic::Ordering::Relaxed), 120);

    let mut late = Mocker::new(Aligner::delay_with_buffers(10).lead(2, 0).skip(5));
    let [(a, _), (b, _)] = feed_align(&mut late, (clock(0..100), vec![]), (clock(0..110), vec![]));
    assert_eq!((a[0].re, b[0].re, a.len()), (7.0, 15.0, 93), "rx is ten late, tx leads by two, five pairs are left out");
}

#[test]
fn a_tracker_that_panics_ends_the_flowgraph_with_its_reason() {
    use futuresdr::{
        blocks::{NullSink, VectorSource},
        prelude::*,
    };
    fn run() -> Result<futuresdr::runtime::Flowgraph> {
        let mut fg = Flowgraph::new();
        // Four weights behind a window of three.
        let track = Track::new(Windowed::new(Nlms::new(4, 0.5, 1e-6)?, 3)?);
        let fault = track.fault();
        let source = || VectorSource::<Complex32>::new(vec![Complex32::new(1.0, 0.0); 100]);
        let (tx, rx, a, b) = (source(), source(), NullSink::<Complex32>::new(), NullSink::<Complex32>::new());
        connect!(fg, tx > tx.track; rx > rx.track; track.prediction > a; track.error > b);
        Ok(Runtime::new().run(fg).map_err(|e| fault.explain(e))?)
    }
    assert!(run().err().unwrap().to_string().contains("the tracker panicked"));
}
