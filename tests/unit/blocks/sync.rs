//! Two streams brought into step.

use futuresdr::runtime::{
    Pmt,
    dev::{ItemTag, Tag},
    mocker::Mocker,
};
use kaflow::{
    Complex32,
    blocks::{Sync, gap},
    iq::{Synchroniser, align::Options},
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::{In, Out, noise};

type Block = Sync<In, Out>;

fn feed(
    block: &mut Mocker<Block>,
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
fn it_finds_delay_and_carrier_and_tells() {
    let tx = noise(&mut ChaCha8Rng::seed_from_u64(20), 30_000);
    let rx: Vec<_> =
        (0..30_000usize).map(|i| if i < 37 { Complex32::default() } else { tx[i - 37] * Complex32::cis(0.002 * i as f32) }).collect();
    let mut block = Mocker::new(Block::with_buffers(Synchroniser::search(Options::default())));
    let [(a, _), (b, _)] = feed(&mut block, (tx.clone(), vec![]), (rx, vec![]));
    let found = block.watch.status().alignment.unwrap();
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
fn it_keeps_the_streams_in_step_across_gaps_on_either_side() {
    // Samples that say when they were: equal on both sides means in step.
    let clock = |n: std::ops::Range<usize>| n.map(|i| Complex32::new(i as f32, 1.0)).collect::<Vec<_>>();
    let tx = [clock(0..500), clock(520..2000)].concat();
    let rx = [clock(0..900), clock(1000..2000)].concat();
    let mut block = Mocker::new(Block::with_buffers(Synchroniser::delay(0)));
    let tag = |index, tag| ItemTag { index, tag };
    let [(a, a_tags), (b, b_tags)] = feed(&mut block, (tx, vec![tag(500, gap(20)), tag(600, Tag::Id(3))]), (rx, vec![tag(900, gap(100))]));
    assert_eq!(a, b);
    assert_eq!(a, [clock(0..500), clock(520..900), clock(1000..2000)].concat());
    let mut a_tags = a_tags;
    a_tags.sort_by_key(|t| t.index);
    assert_eq!(a_tags, [tag(500, gap(20)), tag(600, Tag::Id(3)), tag(880, gap(100))]);
    assert_eq!(b_tags, [tag(500, gap(20)), tag(880, gap(100))]);
    assert_eq!(block.watch.status().gap_samples, 120);

    let mut late = Mocker::new(Block::with_buffers(Synchroniser::delay(10).advance(2, 0).skip(5)));
    let [(a, _), (b, _)] = feed(&mut late, (clock(0..100), vec![]), (clock(0..110), vec![]));
    assert_eq!((a[0].re, b[0].re, a.len()), (7.0, 15.0, 93), "rx is ten late, tx is two in advance, five pairs are left out");
}
