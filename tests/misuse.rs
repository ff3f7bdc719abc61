//! Absurd arguments: constructors answer with an error, and what panics panics alike everywhere.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kaflow::channel::{Amplifier, Fading, FadingConfig, ImpairmentsConfig, Model, Noise, Profile, Scenario, TestBed};
use kaflow::filter::ensemble::{Ensemble, EnsembleConfig};
use kaflow::filter::registry::{self, RECIPES, Recipe, Task, Value, Values};
use kaflow::filter::{
    Evict, Filter, Guard, Kalman, KrlsT, Lms, MemoryPolynomial, Nlms, Residual, Rls, Tracker, bayesian_klms, fklms, klms, norma, qklms,
};
use kaflow::kernel::{Equivariant, Gaussian, Hammerstein, Kernel, Linear, Polynomial, Sum};
use kaflow::observation::{Bernoulli, Gain, Multinomial, Poisson};
use kaflow::ofdm::{self, Transmitter};
use kaflow::{Complex32, Error, Result};

const NUMBERS: [f64; 8] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1e300, 1e-300, 1.0];
const COUNTS: [usize; 6] = [0, usize::MAX, 1 << 60, 1 << 40, 1 << 27, 3];

/// Calls `make` with everything absurd; what panics goes on the list.
struct Attempts(Vec<String>);

impl Attempts {
    fn at<T>(&mut self, name: &str, make: impl FnOnce() -> Result<T>) -> Option<Error> {
        match catch_unwind(AssertUnwindSafe(|| make().err())) {
            Ok(error) => error.inspect(|e| assert!(!e.to_string().is_empty())),
            Err(panic) => {
                let words = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                self.0.push(format!("{name}: {}", words.unwrap_or_default()));
                None
            }
        }
    }

    fn numbers<T>(&mut self, name: &str, make: impl Fn(f64) -> Result<T>) {
        for number in NUMBERS {
            let error = self.at(&format!("{name}({number})"), || make(number));
            assert!(error.is_some() || !number.is_nan(), "{name}: NaN is accepted");
        }
    }

    /// Sizes that no memory holds are refused before anything is allocated.
    fn sizes<T>(&mut self, name: &str, make: impl Fn(usize) -> Result<T>) {
        for count in COUNTS {
            let error = self.at(&format!("{name}({count})"), || make(count));
            assert_eq!(error.is_some(), count != 3, "{name}({count}): {error:?}");
        }
    }
}

fn gain() -> Gain {
    Gain::Eta(0.5)
}

fn gaussian() -> Gaussian<f64> {
    Gaussian::new(1.0).unwrap()
}

fn trackers() -> impl Iterator<Item = &'static Recipe> {
    RECIPES.iter().filter(|recipe| matches!(recipe.task(), Task::Regression | Task::Stream))
}

fn budget(budget: usize) -> Evict {
    Evict { budget: Some(budget), floor: None }
}

#[test]
fn every_filter_refuses_absurd_arguments() {
    let mut a = Attempts(Vec::new());
    a.sizes("Lms, taps", |n| Lms::<f64>::new(n, gain()));
    a.numbers("Lms, eta", |v| Lms::<f64>::new(3, Gain::Eta(v)));
    a.numbers("Lms, ratio", |v| Lms::<f64>::new(3, Gain::DiffusionRatio(v)));
    a.sizes("Nlms, taps", |n| Nlms::<f64>::new(n, 0.5, 1e-6));
    a.numbers("Nlms, mu", |v| Nlms::<f64>::new(3, v, 1e-6));
    a.numbers("Nlms, regularization", |v| Nlms::<f64>::new(3, 0.5, v));
    a.sizes("Rls, taps", |n| Rls::new(n, 0.9, 0.1));
    a.numbers("Rls, lambda", |v| Rls::new(3, v, 0.1));
    a.numbers("Rls, regularization", |v| Rls::new(3, 0.9, v));
    a.sizes("Kalman, taps", |n| Kalman::new(n, 0.9, 0.1, 0.1));
    a.numbers("Kalman, lambda", |v| Kalman::new(3, v, 0.1, 0.1));
    a.numbers("Kalman, process noise", |v| Kalman::new(3, 0.9, v, 0.1));
    a.numbers("Kalman, noise", |v| Kalman::new(3, 0.9, 0.1, v));
    a.sizes("MemoryPolynomial, taps", |n| MemoryPolynomial::new(n, 3, 1.0, 0.9, 0.1));
    a.sizes("MemoryPolynomial, terms", |n| MemoryPolynomial::new(3, n, 1.0, 0.9, 0.1));
    a.numbers("MemoryPolynomial, rms", |v| MemoryPolynomial::new(3, 3, v, 0.9, 0.1));
    a.numbers("MemoryPolynomial, lambda", |v| MemoryPolynomial::new(3, 3, 1.0, v, 0.1));
    a.numbers("MemoryPolynomial, regularization", |v| MemoryPolynomial::new(3, 3, 1.0, 0.9, v));
    a.sizes("KrlsT, taps", |n| KrlsT::new(gaussian(), 0.9, 0.1, 10, n));
    a.sizes("KrlsT, budget", |n| KrlsT::new(gaussian(), 0.9, 0.1, n, 3));
    a.numbers("KrlsT, lambda", |v| KrlsT::new(gaussian(), v, 0.1, 10, 3));
    a.numbers("KrlsT, noise", |v| KrlsT::new(gaussian(), 0.9, v, 10, 3));
    a.sizes("klms, taps", |n| klms(gaussian(), gain(), Evict::default(), n));
    a.sizes("klms, budget", |n| klms(gaussian(), gain(), budget(n), 3));
    a.sizes("klms, budget and taps", |n| klms(gaussian(), gain(), budget(n), n));
    a.numbers("klms, floor", |v| klms(gaussian(), gain(), Evict { budget: None, floor: Some(v) }, 3));
    a.numbers("fklms, lambda", |v| fklms(gaussian(), gain(), v, Evict::default(), 3));
    a.numbers("norma, ridge", |v| norma(gaussian(), gain(), v, Evict::default(), 3));
    a.numbers("qklms, radius", |v| qklms(gaussian(), gain(), v, Evict::default(), 3));
    a.sizes("bayesian_klms, taps", |n| bayesian_klms(gaussian(), Poisson::new(0.1, 0.0)?, 1.0, Evict::default(), n));
    a.sizes("bayesian_klms, taps", |n| bayesian_klms(gaussian(), Bernoulli::new(0.1, 0.0)?, 1.0, Evict::default(), n));
    a.sizes("bayesian_klms, taps", |n| bayesian_klms(gaussian(), Multinomial::new(0.1, vec![0.0; 3])?, 1.0, Evict::default(), n));
    let ensemble = |config| Ensemble::<f32>::new(config);
    a.sizes("Ensemble, taps", |taps| ensemble(EnsembleConfig { taps, ..EnsembleConfig::default() }));
    a.sizes("Ensemble, still taps", |still_taps| ensemble(EnsembleConfig { still_taps, ..EnsembleConfig::default() }));
    a.at("Ensemble, advance", || ensemble(EnsembleConfig { advance: usize::MAX, ..EnsembleConfig::default() }));
    a.numbers("Ensemble, evidence", |evidence| ensemble(EnsembleConfig { evidence, ..EnsembleConfig::default() }));
    for recipe in trackers() {
        a.sizes(&format!("{}, taps", recipe.name), |n| registry::tracker::<f32>(&recipe.settle_stream(&Values::new(), 1.0, n)?, n));
        for name in ["eta", "lambda", "budget", "sigma", "mu", "noise", "order", "epsilon", "regularization", "process-noise", "ridge"] {
            for number in NUMBERS.iter().copied().filter(|_| recipe.has(name)) {
                let given = Values::from([(name.to_owned(), Value::Number(number))]);
                a.at(&format!("{}, {name} = {number}", recipe.name), || {
                    registry::tracker::<f32>(&recipe.settle_stream(&given, 1.0, 3)?, 3)
                });
            }
        }
        for spread in NUMBERS {
            a.at(&format!("{}, spread {spread}", recipe.name), || {
                registry::tracker::<f32>(&recipe.settle_stream(&Values::new(), spread, 3)?, 3)
            });
        }
    }
    assert!(a.0.is_empty(), "{:#?}", a.0);
}

#[test]
fn every_kernel_and_observation_refuses_absurd_arguments() {
    let mut a = Attempts(Vec::new());
    a.numbers("Gaussian", Gaussian::<f64>::new);
    a.numbers("Gaussian in single precision", Gaussian::<f32>::new);
    a.numbers("Equivariant", Equivariant::<f64>::new);
    a.numbers("Hammerstein", Hammerstein::<f64>::new);
    a.numbers("Polynomial, offset", |v| Polynomial::<f64>::new(2, v));
    for degree in [0, 1, u32::MAX] {
        a.at("Polynomial, degree", || Polynomial::<f64>::new(degree, 1.0));
    }
    a.numbers("Sum, weight", |v| Sum::<f64>::new(vec![(v, Box::new(Linear) as Box<dyn Kernel<f64>>)]));
    a.at("Sum of nothing", || Sum::<f64>::new(Vec::new()));
    a.numbers("Poisson, diffusion", |v| Poisson::new(v, 0.0));
    a.numbers("Poisson, offset", |v| Poisson::new(0.1, v));
    a.numbers("Bernoulli, diffusion", |v| Bernoulli::new(v, 0.0));
    a.numbers("Bernoulli, offset", |v| Bernoulli::new(0.1, v));
    a.numbers("Multinomial, diffusion", |v| Multinomial::new(v, vec![0.0; 3]));
    a.numbers("Multinomial, offset", |v| Multinomial::new(0.1, vec![v; 3]));
    a.at("Multinomial without classes", || Multinomial::new(0.1, Vec::new()));
    assert!(a.0.is_empty(), "{:#?}", a.0);
}

#[test]
fn every_part_of_the_test_bed_refuses_absurd_arguments() {
    let mut a = Attempts(Vec::new());
    a.numbers("Amplifier", |v| Amplifier::new(Model::Rapp { smoothness: 2.0 }, v));
    a.numbers("Amplifier, smoothness", |v| Amplifier::new(Model::Rapp { smoothness: v }, 0.0));
    a.at("Noise", || Noise::new(f64::NAN, 1));
    a.numbers("Fading, Doppler", |v| Fading::new(&FadingConfig::new(Profile::exponential(2, 3.0), v), 1));
    for taps in [0, u32::MAX] {
        a.at("Fading, taps", || Fading::new(&FadingConfig::new(Profile::exponential(taps, 3.0), 0.0), 1));
    }
    let impaired = |impairments| TestBed::new(&Scenario { impairments, ..Scenario::preset("a")? });
    let none = ImpairmentsConfig::default;
    a.numbers("Impairments, carrier", |carrier_offset| impaired(ImpairmentsConfig { carrier_offset, ..none() }));
    a.numbers("Impairments, delay", |delay| impaired(ImpairmentsConfig { delay, ..none() }));
    a.numbers("Impairments, clock", |sample_offset_ppm| impaired(ImpairmentsConfig { sample_offset_ppm, ..none() }));
    a.numbers("Impairments, DC", |dc_re| impaired(ImpairmentsConfig { dc_re, ..none() }));
    a.numbers("Impairments, phase noise", |linewidth| impaired(ImpairmentsConfig { linewidth, ..none() }));
    a.numbers("Impairments, gaps", |drop_rate| impaired(ImpairmentsConfig { drop_rate, drop_length: 10.0, ..none() }));
    a.numbers("Impairments, length of gaps", |drop_length| impaired(ImpairmentsConfig { drop_rate: 0.1, drop_length, ..none() }));
    for samples in [0, 3] {
        a.at("TestBed, samples", || TestBed::run(&Scenario { samples, ..Scenario::preset("a")? }));
    }
    a.at("ofdm::Config of nothing", || Transmitter::new(ofdm::Config { fft: 0, ..ofdm::Config::default() }, ofdm::Source::Continuous));
    a.at("ofdm::Config without end", || {
        Transmitter::new(ofdm::Config { fft: usize::MAX, ..ofdm::Config::default() }, ofdm::Source::Continuous)
    });
    assert!(a.0.is_empty(), "{:#?}", a.0);
}

#[test]
fn slices_of_unequal_length_are_refused_alike_by_every_tracker_before_anything_is_learned() {
    let samples = vec![Complex32::new(1.0, 0.5); 20];
    let build = |name: &str| -> Box<dyn Tracker<f32>> {
        match name {
            "bare nlms" => Nlms::new(3, 0.5, 1e-6).unwrap().on_stream(),
            "bare residual" => {
                Box::new(Residual::new(Nlms::new(3, 0.5, 1e-6).unwrap().on_stream(), Nlms::new(3, 0.5, 1e-6).unwrap().on_stream()))
            }
            _ => registry::tracker(&registry::recipe(name).unwrap().settle_stream(&Values::new(), 1.0, 3).unwrap(), 3).unwrap(),
        }
    };
    let names = trackers().map(|r| r.name).chain(["bare nlms", "bare residual"]);
    for name in names {
        for [tx, rx, p, v] in [[19, 20, 20, 20], [20, 19, 20, 20], [20, 20, 19, 20], [20, 20, 20, 19], [0, 20, 20, 20]] {
            let mut tracker = build(name);
            let before = tracker.save().unwrap();
            let (mut prediction, mut variance) = (samples.clone(), vec![0.0; 20]);
            let call = || tracker.track(&samples[..tx], &samples[..rx], true, &mut prediction[..p], Some(&mut variance[..v]));
            let words = *catch_unwind(AssertUnwindSafe(call)).expect_err(name).downcast::<String>().unwrap();
            assert!(words.starts_with("tx, prediction and variance must have the "), "{name}: {words}");
            assert!(tracker.save().unwrap() == before, "{name}");
        }
    }
    let mut guard = Guard::new(build("nlms"));
    let words = catch_unwind(AssertUnwindSafe(|| guard.track(&samples, &samples[..3], &mut [], None))).unwrap_err();
    assert!(words.downcast_ref::<String>().unwrap().contains("3 samples of rx"));
}

#[cfg(feature = "iq")]
#[test]
fn the_synchroniser_takes_any_place_and_any_frame() {
    use kaflow::iq::align::Options;
    use kaflow::iq::{Pairs, Synchroniser};
    let mut a = Attempts(Vec::new());
    let samples: Vec<_> = (0..600).map(|n| Complex32::from_polar(1.0, (n * n) as f32)).collect();
    for delay in [i64::MIN, i64::MAX, -5, 5] {
        for (tx, rx) in [(u64::MAX, 0), (0, u64::MAX), (1, 1)] {
            a.at(&format!("Synchroniser::delay({delay}), advance {tx} {rx}"), || {
                let (mut sync, mut out) = (Synchroniser::delay(delay).advance(tx, rx).skip(u64::MAX), Pairs::default());
                sync.send(&samples, Some(u64::MAX));
                sync.receive(&samples, Some(u64::MAX));
                sync.finish(&mut out)
            });
        }
    }
    for length in [0, 1, 255] {
        assert!(a.at("Synchroniser::repeated", || Synchroniser::repeated(samples[..length].to_vec())).is_some());
    }
    for (samples_used, max_delay) in [(0, 10), (usize::MAX, usize::MAX), (600, 0)] {
        for length in [0, 1, 600] {
            a.at("Synchroniser::search", || {
                let (mut sync, mut out) = (Synchroniser::search(Options { max_delay, samples: samples_used }), Pairs::default());
                sync.send(&samples[..length], None);
                sync.receive(&samples, None);
                sync.finish(&mut out)
            });
        }
    }
    assert!(a.0.is_empty(), "{:#?}", a.0);
}
