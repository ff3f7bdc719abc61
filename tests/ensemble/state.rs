//! Where calls end, what is saved, and parameters.

use kaflow::Complex32;
use kaflow::filter::ensemble::{Ensemble, EnsembleConfig};
use kaflow::filter::{Adaptive, Guard, Residual, Tracker, registry};

use super::{bare, ensemble, simulated, track};

type Build = fn() -> Box<dyn Tracker<f32>>;

#[test]
fn results_do_not_depend_on_how_the_streams_are_cut() {
    let (mut tx, mut rx) = simulated("a", 8, 1e-3, 3000);
    // Whatever makes the tracker stop and think.
    tx[..40].fill(Complex32::default());
    tx[40..700].iter_mut().chain(&mut rx[40..700]).for_each(|z| z.im = 0.0);
    tx[1000..1600].iter_mut().for_each(|x| *x *= 3.0);
    (tx[800].re, rx[900].im, tx[1700]) = (f32::NAN, f32::INFINITY, Complex32::new(1e6, 1.0));
    let build: [Build; 3] =
        [|| Box::new(bare(4, 0)), || Box::new(bare(7, 3)), || Box::new(Residual::new(Box::new(bare(4, 0)), Box::new(bare(3, 0))))];
    for build in build {
        let whole = track(&mut Guard::new(build()), &tx, &rx);
        let mut tracker = Guard::new(build());
        let (mut at, mut cut) = (0, 1);
        while at < tx.len() {
            let end = (at + cut).min(tx.len());
            let piece = track(&mut tracker, &tx[at..end], &rx[at..end]);
            assert!(piece.prediction == whole.prediction[at..end], "from {at} to {end}");
            assert!(piece.variance == whole.variance[at..end], "from {at} to {end}");
            (at, cut) = (end, cut * 3 % 257 + 1);
        }
    }
}

#[test]
fn a_restored_tracker_goes_on_as_if_it_had_never_stopped() {
    let (tx, rx) = simulated("d", 9, 1e-3, 4000);
    let build: [Build; 2] = [|| Box::new(bare(4, 1)), || Box::new(Residual::new(Box::new(bare(4, 0)), Box::new(bare(3, 0))))];
    for build in build {
        let mut first = Guard::new(build());
        track(&mut first, &tx[..2000], &rx[..2000]);
        let saved = first.save().unwrap();
        let expected = track(&mut first, &tx[2000..], &rx[2000..]);
        let mut second = Guard::new(build());
        track(&mut second, &tx[..100], &rx[..100]);
        second.restore(&saved).unwrap();
        assert!(track(&mut second, &tx[2000..], &rx[2000..]).prediction == expected.prediction);
        second.reset();
        let again = track(&mut second, &tx, &rx);
        assert!(again.prediction == track(&mut Guard::new(build()), &tx, &rx).prediction, "reset forgets everything");
    }
    let saved = ensemble().save().unwrap();
    let mut other = Guard::new(bare(5, 0));
    let error = other.restore(&saved).unwrap_err().to_string();
    assert!(error.contains("4 taps") && error.contains('5'), "{error}");
}

#[test]
fn wrong_parameters_are_named() {
    let wrong = [
        ("taps", EnsembleConfig { taps: 0, ..EnsembleConfig::default() }),
        ("advance", EnsembleConfig { advance: 4, ..EnsembleConfig::default() }),
        ("still-taps", EnsembleConfig { still_taps: 0, ..EnsembleConfig::default() }),
        ("evidence", EnsembleConfig { evidence: f64::NAN, ..EnsembleConfig::default() }),
    ];
    for (name, config) in wrong {
        let error = Ensemble::<f32>::new(config).unwrap_err().to_string();
        assert!(error.starts_with(name), "{error}");
    }
    let mut tracker = ensemble();
    assert!(tracker.set("evidence", 2.0).is_err() && tracker.set("evidence", 0.98).is_ok());
    let error = tracker.set("still-taps", 3.0).unwrap_err().to_string();
    assert!(error.starts_with("still-taps") && error.contains("size of its state"), "{error}");
    let error = tracker.set("sigma", 1.0).unwrap_err().to_string();
    assert!(error.contains("evidence"), "{error}");
    for name in ["mixture", "two-speed"] {
        assert_eq!(registry::recipe(name).unwrap().name, "ensemble");
    }
}
