//! Recordings as sources and sinks.

use std::sync::Arc;

use futuresdr::runtime::{dev::ItemTag, mocker::Mocker};
use kaflow::{
    blocks::{IqSink, IqSource, gap},
    iq::{self, Datatype, Recording, sigmf::Meta},
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{In, Out, noise};

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

    let recording = Recording::open(path.with_extension("sigmf-meta"), None).unwrap();
    assert_eq!(recording.gaps().map(|g| (g.at, g.length)).collect::<Vec<_>>(), [(400, 50)]);
    assert_eq!(recording.len(), 1000);
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
