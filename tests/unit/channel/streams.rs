//! Laws that hold for every part: pieces, reset, bad samples, bad settings.

use super::*;

type Run = Box<dyn FnMut(&[Complex32], bool) -> Vec<Complex32>>;

fn staged(mut stage: impl Stage + 'static) -> Run {
    Box::new(move |x, reset| {
        if reset {
            stage.reset();
        }
        let mut y = x.to_vec();
        stage.process(&mut y);
        y
    })
}

/// Every part as a function of the next samples that can start over.
fn parts() -> Vec<(&'static str, Run)> {
    let mut fading = FadingConfig::new(Profile::exponential(4, 3.0), 0.01);
    fading.rician_k_db = Some(3.0);
    fading.doppler = "0:1e-3,700:2e-2".parse().unwrap();
    let config = ImpairmentsConfig {
        delay: 3.4,
        sample_offset_ppm: -80.0,
        carrier_offset: 0.01,
        linewidth: 1e-4,
        iq_gain_db: 0.3,
        dc_re: 0.01,
        adc_bits: 8,
        ..Default::default()
    };
    let mut chain = Impairments::new(&config, 20.0, 3).unwrap();
    let mut dropper = Dropper::new(0.01, 5.0, 3).unwrap();
    vec![
        ("polynomial", staged(Amplifier::new(polynomial(), -3.0).unwrap())),
        ("rapp", staged(Amplifier::new(Model::Rapp { smoothness: 2.0 }, -3.0).unwrap())),
        ("limiter", staged(Amplifier::new(Model::Limiter, 3.0).unwrap())),
        ("fading", staged(Fading::new(&fading, 4).unwrap())),
        ("noise", staged(Noise::new(10.0, 4).unwrap())),
        ("carrier", staged(CarrierOffset::new(0.1, 0.0).unwrap())),
        ("phase noise", staged(PhaseNoise::new(1e-3, 0.0, 4).unwrap())),
        ("imbalance", staged(IqImbalance::new(1.0, 2.0).unwrap())),
        ("dc", staged(DcOffset::new(1.0, 2.0).unwrap())),
        ("adc", staged(Quantiser::new(6, 3.0).unwrap())),
        (
            "impairments",
            Box::new(move |x, reset| {
                if reset {
                    chain.reset();
                }
                let mut y = Vec::new();
                chain.process(x, &mut y);
                y
            }),
        ),
        (
            "dropper",
            Box::new(move |x, reset| {
                if reset {
                    dropper.reset();
                }
                let mut y = x.to_vec();
                y.retain(|_| dropper.keep(&mut Vec::new()));
                y
            }),
        ),
    ]
}

#[test]
fn output_does_not_depend_on_the_pieces_and_reset_starts_over() {
    let x = gaussian(3000, 5);
    for (name, mut run) in parts() {
        let whole = run(&x, false);
        let mut pieces = Vec::new();
        let mut rest = &x[..];
        for (k, size) in [1usize, 0, 2, 17, 333, 1024, 5000].into_iter().enumerate() {
            let (piece, tail) = rest.split_at(size.min(rest.len()));
            rest = tail;
            pieces.extend(run(piece, k == 0));
        }
        assert!(rest.is_empty());
        assert_eq!(whole, pieces, "{name}");
    }
}

#[test]
fn a_sample_that_is_not_a_number_does_no_lasting_harm() {
    let mut x = gaussian(3000, 6);
    x[1000] = Complex32::new(f32::NAN, 0.0);
    x[1100] = Complex32::new(f32::INFINITY, f32::NEG_INFINITY);
    for (name, mut run) in parts() {
        let y = run(&x, false);
        assert!(y[1500..].iter().all(|z| z.re.is_finite() && z.im.is_finite()), "{name}");
        assert!(y[..700].iter().all(|z| z.re.is_finite() && z.im.is_finite()), "{name}");
    }
}

#[test]
fn a_bad_setting_is_an_error_and_changes_nothing() {
    let stages: Vec<(Box<dyn Stage>, &str, f64)> = vec![
        (Box::new(Amplifier::new(Model::Rapp { smoothness: 2.0 }, 0.0).unwrap()), "ibo_db", f64::NAN),
        (Box::new(Amplifier::new(Model::Rapp { smoothness: 2.0 }, 0.0).unwrap()), "smoothness", -1.0),
        (Box::new(Amplifier::new(Model::Limiter, 3.0).unwrap()), "ibo_db", f64::INFINITY),
        (Box::new(Fading::new(&FadingConfig::new(Profile::exponential(2, 3.0), 0.1), 1).unwrap()), "doppler", 0.7),
        (Box::new(Noise::new(10.0, 1).unwrap()), "snr_db", f64::NAN),
        (Box::new(CarrierOffset::new(0.1, 0.0).unwrap()), "carrier_offset", 0.6),
        (Box::new(PhaseNoise::new(0.1, 0.0, 1).unwrap()), "linewidth", -1.0),
        (Box::new(IqImbalance::new(1.0, 0.0).unwrap()), "iq_phase_deg", 90.0),
        (Box::new(DcOffset::new(1.0, 0.0).unwrap()), "dc_re", f64::INFINITY),
        (Box::new(Quantiser::new(8, 1.0).unwrap()), "adc_bits", 2.5),
    ];
    for (mut stage, name, value) in stages {
        let x = gaussian(50, 8);
        let mut before = x.clone();
        stage.process(&mut before);
        let error = stage.set(name, value).expect_err(name).to_string();
        assert!(error.contains(name), "{error}");
        let unknown = stage.set("colour", 1.0).expect_err("an unknown name").to_string();
        assert!(unknown.contains("colour") && unknown.contains(name), "{unknown}");
        stage.reset();
        let mut after = x.clone();
        stage.process(&mut after);
        assert_eq!(before, after, "{name}");
    }
}

#[test]
fn a_good_setting_takes_effect() {
    let mut amplifier = Amplifier::new(Model::Limiter, 20.0).unwrap();
    amplifier.set("ibo_db", -20.0).unwrap();
    let mut x = [Complex32::ONE];
    amplifier.process(&mut x);
    assert!((x[0].re - 1.0).abs() < 1e-6);
    let mut receiver = Impairments::new(&ImpairmentsConfig::default(), f64::INFINITY, 1).unwrap();
    receiver.set("dc_re", 0.5).unwrap();
    let mut y = Vec::new();
    receiver.process(&[Complex32::ZERO; 300], &mut y);
    assert_eq!(y[0].re, 0.5);
    let error = receiver.set("dc_r", 0.5).unwrap_err().to_string();
    assert!(error.contains("did you mean 'dc_re'"), "{error}");
}
