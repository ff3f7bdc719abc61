//! Filters on several antennas.

use futuresdr::runtime::{Pmt, dev::ItemTag, mocker::Mocker};
use kaflow::{
    Complex32,
    blocks::{TrackMimo, gap},
    filter::{Filter, Nlms},
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{In, Out, bits, noise};

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
    assert!(wrong.err().unwrap().to_string().contains("3 streams of 3 samples"), "a filter of another length is refused at once");
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
