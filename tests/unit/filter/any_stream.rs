//! Every filter with its default parameters, on streams of any scale and behind garbage.

use kaflow::Complex32;
use kaflow::channel::{Doppler, Scenario, TestBed};
use kaflow::filter::registry::{self, RECIPES, Recipe, Task, Value, Values};
use kaflow::filter::{Guard, Tracker};

const TAPS: usize = 4;

type Streams = (Vec<Complex32>, Vec<Complex32>);

fn simulated(preset: &str, seed: u64, samples: u64) -> Streams {
    run(Scenario { seed, samples, ..Scenario::preset(preset).unwrap() })
}

/// What a filter is for: all follow a channel that fades but the canceller, for which one that stands still leaks into a receiver.
fn suited(recipe: &Recipe, seed: u64, samples: u64) -> Streams {
    let mut scenario = Scenario { seed, samples, ..Scenario::preset("d").unwrap() };
    if let ("canceller", Some(fading)) = (recipe.name, &mut scenario.fading) {
        fading.doppler = Doppler::Constant(0.0);
    }
    run(scenario)
}

fn run(mut scenario: Scenario) -> Streams {
    scenario.ofdm.seed = scenario.seed;
    let mut chunk = TestBed::run(&scenario).unwrap();
    (chunk.tx.remove(0), chunk.rx.remove(0))
}

fn power(z: Complex32) -> f64 {
    f64::from(z.re).powi(2) + f64::from(z.im).powi(2)
}

/// As `kaflow track` builds it: the power of the whole recording is known.
fn tracker(recipe: &'static Recipe, given: &Values, tx: &[Complex32]) -> Guard<f32, Box<dyn Tracker<f32>>> {
    let spread = (TAPS as f64 * tx.iter().map(|&z| power(z)).sum::<f64>() / tx.len() as f64).sqrt();
    Guard::new(registry::tracker(&recipe.settle_stream(given, spread, TAPS).unwrap(), TAPS).unwrap())
}

/// NMSE over some samples, in dB.
fn nmse_db(rx: &[Complex32], prediction: &[Complex32]) -> f64 {
    let error: f64 = rx.iter().zip(prediction).map(|(y, p)| power(y - p)).sum();
    10.0 * (error / rx.iter().map(|&y| power(y)).sum::<f64>()).log10()
}

fn trackers() -> impl Iterator<Item = &'static Recipe> {
    RECIPES.iter().filter(|recipe| matches!(recipe.task(), Task::Regression | Task::Stream))
}

#[test]
fn the_scale_of_the_streams_does_not_matter() {
    for recipe in trackers() {
        let (tx, rx) = suited(recipe, 3, 3000);
        let reached = |a: f32, b: f32| {
            let (tx, rx): Streams = (tx.iter().map(|x| x * a).collect(), rx.iter().map(|y| y * b).collect());
            let mut prediction = tx.clone();
            tracker(recipe, &Values::new(), &tx).track(&tx, &rx, &mut prediction, None);
            nmse_db(&rx[500..], &prediction[500..])
        };
        let reference = reached(1.0, 1.0);
        println!("{}: {reference:.2} dB", recipe.name);
        assert!(reference < -3.0, "{}: {reference} dB", recipe.name);
        for (a, b) in [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6), (1e-6, 1e-6), (1e6, 1e6), (1e-6, 1e6), (1e6, 1e-6), (0.01, 0.01)] {
            let scaled = reached(a, b);
            assert!((scaled - reference).abs() < 0.01, "{}: {scaled} dB at {a:e}, {b:e} instead of {reference} dB", recipe.name);
        }
    }
}

/// Garbage of fewer than 1,000 samples, from sample `at` on.
fn spoil(kind: &str, (mut tx, mut rx): Streams, at: usize) -> Streams {
    let huge = |k: usize, size: f32| Complex32::from_polar(size, (k * k) as f32);
    match kind {
        "one received sample, 1000 times as large" => rx[at] *= 1000.0,
        "one sample of 1e30 sent" => tx[at] = huge(1, 1e30),
        "300 received samples of 3e38" => (0..300).for_each(|k| rx[at + k] = huge(k, 3e38)),
        "999 samples of 1e6 sent and received" => (0..999).for_each(|k| (tx[at + k], rx[at + k]) = (huge(k, 1e6), huge(3 * k, 1e6))),
        "999 samples of 1e30 sent" => (0..999).for_each(|k| tx[at + k] = huge(k, 1e30)),
        "500 received samples of 1e-30" => (0..500).for_each(|k| rx[at + k] = huge(k, 1e-30)),
        _ => unreachable!("{kind}"),
    }
    (tx, rx)
}

fn recovers(from: &[&str]) {
    const AT: usize = 4000;
    let after = AT + 10_000..AT + 12_000;
    let mut worse = Vec::new();
    for recipe in trackers() {
        let clean = suited(recipe, 5, 17_000);
        // Built before the garbage comes: what its power is nobody knows.
        let run = |(tx, rx): &Streams| {
            let (mut guard, mut prediction) = (tracker(recipe, &Values::new(), &clean.0), tx.clone());
            guard.track(tx, rx, &mut prediction, None);
            assert!(prediction.iter().all(|p| p.re.is_finite() && p.im.is_finite()), "{}", recipe.name);
            (nmse_db(&rx[after.clone()], &prediction[after.clone()]), guard.restarts())
        };
        let (had, restarts) = run(&clean);
        assert_eq!(restarts, 0, "{}", recipe.name);
        for kind in from {
            let (has, restarts) = run(&spoil(kind, clean.clone(), AT));
            println!("{:<12} {kind:<42} {had:7.2} dB, {has:7.2} dB, {restarts} restarts", recipe.name);
            if has > had + 1.0 {
                worse.push(format!("{} after {kind}: {has} dB instead of {had} dB", recipe.name));
            }
        }
    }
    assert!(worse.is_empty(), "{worse:#?}");
}

#[test]
fn garbage_that_is_received_leaves_nothing_behind() {
    recovers(&["one received sample, 1000 times as large", "300 received samples of 3e38", "500 received samples of 1e-30"]);
}

#[test]
fn garbage_that_is_sent_leaves_nothing_behind() {
    recovers(&["one sample of 1e30 sent", "999 samples of 1e6 sent and received", "999 samples of 1e30 sent"]);
}

/// Streams that filters find hard, with and without sense.
fn bounded(kind: &str) -> Streams {
    const SAMPLES: u64 = 24_000;
    let (tx, rx) = simulated("d", 7, SAMPLES);
    let scaled = |level: &dyn Fn(usize) -> f32| {
        let scale = |z: &[Complex32]| z.iter().enumerate().map(|(n, z)| z * level(n)).collect();
        (scale(&tx), scale(&rx))
    };
    match kind {
        "12 dB power steps" => scaled(&|n| if n / 3000 % 2 == 0 { 1.0 } else { 4.0 }),
        "100 times the amplitude" => scaled(&|n| if n / 8000 == 1 { 100.0 } else { 1.0 }),
        "oversampled" => {
            let mut scenario = Scenario { samples: SAMPLES, snr_db: Some(60.0), ..Scenario::preset("d").unwrap() };
            scenario.ofdm.oversampling = 4;
            let mut chunk = TestBed::run(&scenario).unwrap();
            (chunk.tx.remove(0), chunk.rx.remove(0))
        }
        "unrelated" => (tx, simulated("a", 8, SAMPLES).1),
        _ => unreachable!("{kind}"),
    }
}

#[test]
fn no_filter_is_worse_than_none_for_long_on_bounded_streams() {
    let mut worse = Vec::new();
    for kind in ["12 dB power steps", "100 times the amplitude", "oversampled", "unrelated"] {
        let (tx, rx) = bounded(kind);
        let order = Values::from_iter([("order".to_owned(), Value::Number(15.0))]);
        let given = |recipe: &Recipe| if recipe.name == "mp-rls" { vec![Values::new(), order.clone()] } else { vec![Values::new()] };
        for (recipe, given) in trackers().flat_map(|recipe| given(recipe).into_iter().map(move |given| (recipe, given))) {
            let (mut guard, mut prediction) = (tracker(recipe, &given, &tx), tx.clone());
            guard.track(&tx, &rx, &mut prediction, None);
            let windows = (0..=tx.len() - 10_000).step_by(500).map(|n| nmse_db(&rx[n..n + 10_000], &prediction[n..n + 10_000]));
            let worst = windows.fold(f64::NEG_INFINITY, f64::max);
            let name = format!("{} {:?}", recipe.name, given);
            println!("{kind}, {name}: at most {worst:.2} dB over 10,000 samples, {} restarts", guard.restarts());
            if worst > 1.0 {
                worse.push(format!("{kind}, {name}: {worst} dB"));
            }
        }
    }
    assert!(worse.is_empty(), "{worse:#?}");
}
