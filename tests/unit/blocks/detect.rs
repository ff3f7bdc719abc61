//! Soft decisions.

use futuresdr::runtime::{
    Pmt,
    dev::ItemTag,
    mocker::{Mocker, Reader, Writer},
};
use kaflow::{
    Complex32,
    blocks::{Classifier, Detect, Soft, gap},
    filter::{Adaptive, Evict, bayesian_klms},
    kernel::Gaussian,
    observation::{Bernoulli, Multinomial},
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{In, noise};

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
        bayesian_klms(Gaussian::new(0.6).unwrap(), Multinomial::new(1.0, vec![0.0; 4]).unwrap(), 1.0, evict, 2).unwrap()
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

    let three = bayesian_klms(Gaussian::new(0.6).unwrap(), Multinomial::new(1.0, vec![0.0; 3]).unwrap(), 1.0, Evict::default(), 2).unwrap();
    assert!(Detector::with_buffers(three, 2, Soft::Llr).err().unwrap().to_string().contains("power of two"));
    assert!(Detector::with_buffers(filter(), 3, Soft::Llr).is_err(), "a window of another length than the filter's");
}

#[test]
fn detect_takes_messages_copies_tags_and_survives_any_training() {
    let filter = bayesian_klms(Gaussian::new(0.6).unwrap(), Bernoulli::new(1.0, 0.0).unwrap(), 1.0, Evict::default(), 1).unwrap();
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
