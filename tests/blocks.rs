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
    blocks::{Classifier, Count, Detect, GAP, Meter, Soft, Track, TrackMimo, gap},
    filter::{Adaptive, Evict, Filter, Nlms, Tracker, Windowed, bernoulli_klms, multinomial_klms, poisson_klms},
    kernel::Gaussian,
    observation::{Bernoulli, Multinomial, Poisson},
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
