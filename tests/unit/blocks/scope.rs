use super::*;

/// Streams whose samples are their own numbers.
fn push(scope: &mut Scope, from: u64, to: u64) -> u64 {
    let (mut at, mut asked) = (from, 0);
    while at < to {
        let taps = || {
            asked += 1;
            vec![Default::default()]
        };
        scope.begin(at, || Portrait { taps: vec![Default::default()], ..Portrait::default() }, taps);
        let n = scope.to_boundary().min(to - at).min(512);
        let samples: Vec<_> = (at..at + n).map(|i| Complex32::new(i as f32, 0.0)).collect();
        scope.push(&samples, &samples, &samples);
        at += n;
    }
    asked
}

#[test]
fn stretches_are_consecutive_samples_with_taps_for_each_piece_and_seldom() {
    let mut scope = Scope::now_and_then();
    let asked = push(&mut scope, 0, 4_000_000);
    assert!(asked < 4_000_000 / 512, "{asked}");
    let last = scope.last().unwrap();
    assert_eq!((last.target.len(), last.taps.len(), last.portraits.len()), (WHOLE, WHOLE / Stretch::PIECE, WHOLE / Stretch::SCENE));
    assert!(last.start > 2_000_000 && last.input.iter().enumerate().all(|(i, z)| z.re == (last.start + i as u64) as f32));
}

#[test]
fn a_short_stream_is_kept_whole_and_a_gap_is_never_inside() {
    let mut scope = Scope::now_and_then();
    push(&mut scope, 0, 5000);
    assert!(scope.last().is_none());
    scope.close();
    assert_eq!(scope.last().unwrap().target.len(), 5000);
    let mut scope = Scope::now_and_then();
    for k in 0..100 {
        push(&mut scope, 4000 * k, 4000 * k + 3000);
        scope.close();
    }
    let last = scope.last().unwrap();
    assert!(last.start.is_multiple_of(4000) && last.target.len() == 3000, "{} from {}", last.target.len(), last.start);
}

#[test]
fn a_glimpse_is_taken_once_for_each_question_and_costs_nothing_without_one() {
    let mut scope = Scope::on_demand();
    assert_eq!(push(&mut scope, 0, 100_000), 0);
    assert!(scope.last().is_none());
    for start in [100_000, 200_000] {
        scope.ask();
        scope.ask();
        let asked = push(&mut scope, start, start + 1000);
        scope.close();
        let asked = asked + push(&mut scope, start + 1000, start + 100_000);
        assert_eq!(asked, (1000u64.div_ceil(32)) + (GLIMPSE / Stretch::PIECE) as u64);
        let last = scope.last().unwrap();
        assert_eq!((last.start, last.target.len()), (start + 1000, GLIMPSE));
    }
}
