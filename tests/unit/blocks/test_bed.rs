//! The parts of the test bed.

use futuresdr::runtime::{
    Pmt,
    dev::{ItemTag, Tag},
    mocker::Mocker,
};
use kaflow::{
    Complex32,
    blocks::{Impair, OfdmRx, OfdmTx, Staged, gap, gap_length},
    channel::{self, Dropper, FadingConfig, Impairments, ImpairmentsConfig, Model, Profile, Stage},
    ofdm,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{In, Out, bits, noise};

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
    checked(channel::Amplifier::new(Model::Limiter, 3.0).unwrap(), &samples, "ibo_db=6", "ibo_db=nan");
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
            "the tag lies on the first sample behind the gap"
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
    assert_eq!(rx.packets().iter().flat_map(|p| p.bits.clone()).collect::<Vec<_>>(), sent);
    assert_eq!(points.len(), 3 * 480);
    let messages = rx.messages();
    let Pmt::MapStrPmt(first) = &messages[0][0] else { panic!("{messages:?}") };
    assert_eq!(first["bits"], Pmt::Blob(sent[..960].to_vec()));
}
