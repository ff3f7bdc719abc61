//! Any tracker on a pair of streams.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use futuresdr::runtime::{
    Pmt,
    dev::{ItemTag, Tag},
    mocker::Mocker,
};
use kaflow::{
    Complex32,
    blocks::{GAP, Track, gap},
    filter::{Adaptive, Filter, Guard, Nlms, Tracker},
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{In, Out, bits, pair};

type Any = Box<dyn Tracker<f32>>;

fn nlms() -> Any {
    Nlms::new(4, 0.5, 1e-6).unwrap().on_stream()
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

fn track() -> Mocker<Track<Any, In, Out>> {
    Mocker::new(Track::with_buffers(nlms()))
}

#[test]
fn track_is_the_bare_filter_bit_for_bit_whatever_the_buffer_sizes() {
    let (tx, rx) = pair(1, 20_000);
    let mut bare = Guard::new(nlms());
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
        fn taps(&self) -> usize {
            1
        }
        fn track(&mut self, _: &[Complex32], rx: &[Complex32], _: bool, prediction: &mut [Complex32], _: Option<&mut [f32]>) {
            for (p, y) in prediction.iter_mut().zip(rx) {
                *p = std::mem::replace(&mut self.0, *y);
            }
        }
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
fn a_gap_tag_keeps_the_tracker_from_learning_across_it() {
    let (mut tx, mut rx) = pair(6, 4000);
    tx.drain(2000..2100);
    rx.drain(2000..2100);
    let mut bare = Guard::new(nlms());
    let mut expected = vec![Complex32::default(); tx.len()];
    bare.track(&tx[..2000], &rx[..2000], &mut expected[..2000], None);
    bare.gap(100);
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
    let learned = block.tracker().portrait().taps;

    assert_eq!(block.post("adapt", Pmt::Bool(false)), Ok(Pmt::Ok));
    feed(&mut block, &tx, &rx.iter().map(|y| -y).collect::<Vec<_>>(), || 500);
    assert_eq!(block.tracker().portrait().taps, learned, "frozen");

    let mu = Pmt::MapStrPmt(HashMap::from([("mu".to_string(), Pmt::F64(0.25))]));
    assert_eq!(block.post("set", mu), Ok(Pmt::Ok));
    assert_eq!(block.post("set", Pmt::String("mu = 0.125".into())), Ok(Pmt::Ok));

    assert_eq!(block.post("bypass", Pmt::String("on".into())), Ok(Pmt::Ok));
    let (prediction, error) = feed(&mut block, &tx, &rx, || 500);
    assert_eq!(prediction, tx);
    assert_eq!(error[9], rx[9] - tx[9]);
    assert_eq!(block.post("bypass", Pmt::Bool(false)), Ok(Pmt::Ok));

    assert_eq!(block.post("reset", Pmt::Null), Ok(Pmt::Ok));
    assert!(block.tracker().portrait().taps.iter().all(|w| w.norm() == 0.0));
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
    let mut undisturbed = Guard::new(nlms());
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
    // One behind every thousand samples, and one at the end of the streams.
    assert_eq!(kept.iter().map(|s| s.samples).collect::<Vec<_>>(), [1000, 2000, 3000, 4000, 5000, 5000]);
    let mut resumed = Track::<_, In, Out>::with_buffers(nlms());
    assert!(resumed.resume(b"not a snapshot").is_err());
    resumed.resume(&kept[2].state).unwrap();
    let mut resumed = Mocker::new(resumed);
    let (prediction, _) = feed(&mut resumed, &tx[3000..], &rx[3000..], || 7);
    assert_eq!(bits(&prediction), bits(&expected[3000..]));
    assert_eq!(resumed.series(), block.series());
    assert_eq!(resumed.probe.read().samples, 5000);
}

#[test]
fn a_run_that_goes_on_knows_what_it_had_lost_before() {
    let (tx, rx) = pair(12, 9000);
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = kept.clone();
    let observed = || Track::<_, In, Out>::with_buffers(nlms()).observed();
    let mut block = Mocker::new(observed().snapshots(4000, move |s| {
        keep.lock().unwrap().push(s);
        Ok(())
    }));
    block.tx().set(tx[..4000].to_vec());
    block.rx().set_with_tags(rx[..4000].to_vec(), vec![ItemTag { index: 1000, tag: gap(300) }]);
    block.prediction().reserve(4000);
    block.error().reserve(4000);
    block.run();
    let mut resumed = observed();
    resumed.resume(&kept.lock().unwrap()[0].state).unwrap();
    let mut resumed = Mocker::new(resumed);
    feed(&mut resumed, &tx[4000..], &rx[4000..], || 500);
    resumed.deinit();
    assert_eq!(resumed.summary().stretch.unwrap().start, 4300);
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

#[test]
fn a_tracker_that_panics_ends_the_flowgraph_with_its_reason() {
    use futuresdr::{
        blocks::{NullSink, VectorSource},
        prelude::*,
    };
    struct Broken;
    impl Adaptive for Broken {
        fn size(&self) -> usize {
            0
        }
        fn reset(&mut self) {}
    }
    impl Tracker<f32> for Broken {
        fn taps(&self) -> usize {
            1
        }
        fn track(&mut self, tx: &[Complex32], _: &[Complex32], _: bool, _: &mut [Complex32], _: Option<&mut [f32]>) {
            let _ = tx[tx.len()];
        }
    }
    fn run() -> Result<futuresdr::runtime::Flowgraph> {
        let mut fg = Flowgraph::new();
        let track = Track::new(Broken);
        let fault = track.fault.clone();
        let source = || VectorSource::<Complex32>::new(vec![Complex32::new(1.0, 0.0); 100]);
        let (tx, rx, a, b) = (source(), source(), NullSink::<Complex32>::new(), NullSink::<Complex32>::new());
        connect!(fg, tx > tx.track; rx > rx.track; track.prediction > a; track.error > b);
        Ok(Runtime::new().run(fg).map_err(|e| fault.explain(e))?)
    }
    assert!(run().err().unwrap().to_string().contains("the tracker panicked"));
}
