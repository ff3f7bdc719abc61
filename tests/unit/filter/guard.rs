use super::*;

/// Writes down what it is given: inputs, targets and whether to learn.
#[derive(Clone, Default)]
struct Recorder {
    seen: Vec<(Complex<f32>, Complex<f32>, bool)>,
    calls: usize,
    gaps: Vec<u64>,
}

impl Adaptive for Recorder {
    fn size(&self) -> usize {
        0
    }
    fn reset(&mut self) {
        self.seen.clear();
    }
    fn save(&self) -> Result<Vec<u8>> {
        state::encode("recorder", &self.seen.len())
    }
    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        state::decode::<usize>("recorder", bytes).map(drop)
    }
}

impl Tracker<f32> for Recorder {
    fn taps(&self) -> usize {
        3
    }
    fn track(&mut self, tx: &[Complex<f32>], rx: &[Complex<f32>], learn: bool, p: &mut [Complex<f32>], variance: Option<&mut [f32]>) {
        assert!(tx.len() == rx.len() && tx.len() == p.len() && variance.is_none_or(|v| v.len() == tx.len()) && !tx.is_empty());
        self.seen.extend(tx.iter().zip(rx).map(|(&u, &y)| (u, y, learn)));
        self.calls += 1;
    }
    fn gap(&mut self, missing: u64) {
        self.gaps.push(missing);
    }
}

fn run(guard: &mut Guard<f32, Recorder>, tx: &[Complex<f32>], rx: &[Complex<f32>]) {
    let (mut p, mut v) = (tx.to_vec(), vec![0.0; tx.len()]);
    guard.track(tx, rx, &mut p, Some(&mut v));
}

fn streams() -> (Vec<Complex<f32>>, Vec<Complex<f32>>) {
    let mut tx: Vec<_> = (0..1000).map(|n| Complex::new(n as f32, 1.0)).collect();
    let mut rx = tx.clone();
    for n in [0, 5, 7, 300, 301, 999] {
        tx[n].im = f32::NAN;
    }
    for n in (20..400).step_by(20).chain(600..780) {
        rx[n].re = f32::INFINITY;
    }
    (tx, rx)
}

#[test]
fn nothing_is_learned_from_a_corrupt_sample_or_while_one_is_in_the_window() {
    let (tx, rx) = streams();
    let mut guard = Guard::new(Recorder::default());
    run(&mut guard, &tx, &rx);
    for (n, &(u, y, learn)) in guard.tracker().seen.iter().enumerate() {
        assert_eq!(u, if finite(tx[n]) { tx[n] } else { Complex::zero() }, "{n}");
        assert_eq!(y, if finite(rx[n]) { rx[n] } else { Complex::zero() }, "{n}");
        let clean = (n.saturating_sub(2)..=n).all(|k| finite(tx[k])) && finite(rx[n]);
        assert_eq!(learn, clean, "{n}");
    }
    assert_eq!(guard.tracker().seen.len(), tx.len());
}

#[test]
fn cuts_change_nothing_and_clean_streams_are_passed_on_whole() {
    let (tx, rx) = streams();
    let mut whole = Guard::new(Recorder::default());
    run(&mut whole, &tx[..400], &rx[..400]);
    whole.gap(9);
    whole.freeze(true);
    run(&mut whole, &tx[400..450], &rx[400..450]);
    whole.freeze(false);
    run(&mut whole, &tx[450..], &rx[450..]);
    for cut in [1, 2, 7, 129, 500] {
        let mut pieces = Guard::new(Recorder::default());
        for (from, to) in [(0, 400), (400, 450), (450, 1000)] {
            pieces.freeze(from == 400);
            if from == 400 {
                pieces.gap(9);
            }
            (from..to).step_by(cut).for_each(|at| run(&mut pieces, &tx[at..to.min(at + cut)], &rx[at..to.min(at + cut)]));
        }
        assert!(pieces.tracker().seen == whole.tracker().seen, "cut by {cut}");
    }
    let mut clean = Guard::new(Recorder::default());
    run(&mut clean, &tx[400..600], &rx[400..600]);
    assert_eq!(clean.tracker().calls, 1);
}

#[test]
fn a_gap_is_behind_the_window_before_anything_is_learned_and_that_is_saved() {
    let (tx, rx) = (vec![Complex::new(1.0, 0.0); 10], vec![Complex::new(1.0, 0.0); 10]);
    let mut guard = Guard::new(Recorder::default());
    guard.gap(17);
    run(&mut guard, &tx[..1], &rx[..1]);
    let mut again = Guard::new(Recorder::default());
    again.restore(&guard.save().unwrap()).unwrap();
    run(&mut guard, &tx[1..], &rx[1..]);
    run(&mut again, &tx[1..], &rx[1..]);
    let learned = |guard: &Guard<f32, Recorder>| guard.tracker().seen.iter().map(|s| s.2).collect::<Vec<_>>();
    assert_eq!(learned(&guard), [false, false, true, true, true, true, true, true, true, true]);
    assert_eq!(learned(&again), learned(&guard)[1..]);
    assert_eq!(guard.tracker().gaps, [17]);
    let before = again.save().unwrap();
    assert!(again.restore(b"nothing of the kind").is_err() && again.save().unwrap() == before);
    again.gap(0);
    again.reset();
    run(&mut again, &tx[..2], &rx[..2]);
    assert_eq!(learned(&again), [true, true], "reset forgets the gap");
}

#[test]
fn what_a_new_start_does_not_mend_is_tried_more_and_more_seldom() {
    let mut guard = Guard::new(Recorder::default());
    let rx = vec![Complex::new(1.0, 0.0); 512];
    let mut leave = |part: f32, blocks: usize| {
        for _ in 0..blocks {
            let mut p = vec![Complex::new(1.0 - part.sqrt(), 0.0); rx.len()];
            guard.track(&rx, &rx, &mut p, None);
        }
        guard.restarts()
    };
    // A channel that a strong path leaves the window of at times: after 8, 16, 32 and 64 blocks, and then not within 100.
    let restarts: Vec<u64> = (0..8).map(|_| leave(0.01, 20).max(leave(0.5, 100))).collect();
    assert_eq!(restarts, [1, 2, 3, 4, 4, 4, 4, 4]);
}
