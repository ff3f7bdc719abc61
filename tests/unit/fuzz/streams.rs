//! Streams of any bytes, cut anywhere, with gaps anywhere.

use kaflow::Complex32;
use kaflow::filter::registry::{self, Values};
use kaflow::filter::{Adaptive, Guard, Tracker};
use kaflow::iq::{Pairs, Synchroniser};
use kaflow::ofdm::{Config, Receiver};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{decent, mutate, rounds};

const TAPS: usize = 3;

fn trackers() -> Vec<Guard<f32, Box<dyn Tracker<f32>>>> {
    let build = |recipe: &'static registry::Recipe| {
        let mut given = Values::new();
        if recipe.has("budget") {
            given.insert("budget".into(), registry::Value::Number(20.0));
        }
        Guard::new(registry::tracker(&recipe.settle_stream(&given, 1.0, TAPS).unwrap(), TAPS).unwrap())
    };
    registry::RECIPES.iter().filter(|recipe| recipe.tracks()).map(build).collect()
}

/// Samples of a channel, some of them any bit pattern at all.
fn stream(rng: &mut ChaCha8Rng, n: usize) -> (Vec<Complex32>, Vec<Complex32>) {
    let garbage = if rng.random_bool(0.5) { 0.02 } else { 0.0 };
    let mut number = |scale: f32| if rng.random_bool(garbage) { f32::from_bits(rng.random()) } else { scale * rng.random_range(-1.0..1.0) };
    let tx: Vec<_> = (0..n).map(|_| Complex32::new(number(1.0), number(1.0))).collect();
    let rx = (0..n).map(|i| tx[i] * 0.5 + tx[i.saturating_sub(1)] * Complex32::new(0.1, 0.2) + Complex32::new(number(0.01), number(0.01)));
    let rx = rx.collect();
    (tx, rx)
}

/// Where a stream of `n` samples is cut: ends, in order.
fn cuts(rng: &mut ChaCha8Rng, n: usize) -> Vec<usize> {
    let mut ends: Vec<usize> = (0..rng.random_range(0..6)).map(|_| rng.random_range(0..=n)).chain([n]).collect();
    ends.sort_unstable();
    ends
}

fn bits(samples: &[Complex32]) -> Vec<(u32, u32)> {
    samples.iter().map(|z| (z.re.to_bits(), z.im.to_bits())).collect()
}

#[test]
fn filters_do_not_notice_where_a_stream_is_cut() {
    rounds("filters", |rng, what| {
        let n = rng.random_range(1..300);
        let (tx, rx) = stream(rng, n);
        let gaps: Vec<(usize, u64)> =
            (0..rng.random_range(0..3)).map(|_| (rng.random_range(0..=n), rng.random_range(1..1u64 << 40))).collect();
        let run = |cuts: &[usize]| -> Vec<Vec<Complex32>> {
            let mut ends: Vec<usize> = cuts.iter().copied().chain(gaps.iter().map(|gap| gap.0)).collect();
            ends.sort_unstable();
            let mut predictions = Vec::new();
            for mut tracker in trackers() {
                let mut p = vec![Complex32::default(); n];
                let mut from = 0;
                for &end in &ends {
                    tracker.track(&tx[from..end], &rx[from..end], &mut p[from..end], None);
                    if end > from || end == 0 {
                        gaps.iter().filter(|gap| gap.0 == end).for_each(|gap| tracker.gap(gap.1));
                    }
                    from = end;
                }
                predictions.push(p);
            }
            predictions
        };
        let (whole, pieces) = (run(&[n]), run(&cuts(rng, n)));
        for (i, (a, b)) in whole.iter().zip(&pieces).enumerate() {
            assert!(bits(a) == bits(b), "{what}: filter {i}");
        }
    });
}

#[test]
fn a_damaged_state_is_refused_and_the_filter_goes_on() {
    rounds("states", |rng, what| {
        let (tx, rx) = stream(rng, 100);
        for mut tracker in trackers() {
            let mut p = vec![Complex32::default(); 100];
            tracker.track(&tx, &rx, &mut p, None);
            let mut state = tracker.save().unwrap();
            mutate(rng, &mut state);
            if let Err(error) = tracker.restore(&state) {
                decent(what, &error.to_string());
            }
            tracker.track(&tx, &rx, &mut p, None);
        }
    });
}

#[test]
fn the_synchroniser_does_not_notice_where_a_stream_is_cut() {
    rounds("synchroniser", |rng, what| {
        let n = rng.random_range(1..20_000);
        let (tx, rx) = stream(rng, n);
        let delay = rng.random_range(-50..50);
        let gap = (rng.random_range(0..=n), rng.random_range(1..100u64));
        let run = |cuts: &[usize]| {
            let (mut sync, mut pairs) = (Synchroniser::delay(delay), Pairs::default());
            let mut ends: Vec<usize> = cuts.iter().copied().chain([gap.0]).collect();
            ends.sort_unstable();
            ends.dedup();
            let mut from = 0;
            for end in ends {
                let missing = (from == gap.0).then_some(gap.1);
                sync.send(&tx[from..end], missing);
                sync.receive(&rx[from..end], missing);
                if let Err(error) = sync.run(&mut pairs) {
                    decent(what, &error.to_string());
                }
                from = end;
            }
            let _ = sync.finish(&mut pairs);
            (bits(&pairs.tx), bits(&pairs.rx))
        };
        let (whole, pieces) = (run(&[n]), run(&cuts(rng, n)));
        assert!(whole.0.len() == whole.1.len() && whole == pieces, "{what}");
        let mut search = Synchroniser::search(Default::default()).follow();
        let mut pairs = Pairs::default();
        search.send(&tx, None);
        search.receive(&rx, Some(gap.1));
        let _ = search.finish(&mut pairs);
        assert_eq!(pairs.tx.len(), pairs.rx.len(), "{what}");
        // So does a receiver of packets.
        let run = |cuts: &[usize]| {
            let (mut receiver, mut starts, mut from) = (Receiver::new(Config::default()).unwrap(), Vec::new(), 0);
            for &end in cuts {
                receiver.push(&rx[from..end], |packet| starts.push(packet.start));
                from = end;
            }
            starts
        };
        assert_eq!(run(&[n]), run(&cuts(rng, n)), "{what}");
    });
}
