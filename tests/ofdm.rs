//! Laws of the waveform.

use kaflow::Complex32;
use kaflow::ofdm::{Clip, Config, Constellation, Modulation, Modulator, RandomBits, Source, Transmitter};

fn transmit(config: &Config, source: Source, samples: usize) -> Vec<Complex32> {
    let mut transmitter = Transmitter::new(config.clone(), source).unwrap();
    let mut out = vec![Complex32::ZERO; samples];
    assert_eq!(transmitter.fill(&mut out), samples);
    out
}

#[test]
fn constellations_have_unit_power_and_gray_neighbours() {
    for modulation in Modulation::ALL {
        let table = Constellation::new(modulation);
        let points = table.points();
        assert_eq!(points.len(), 1 << modulation.bits());
        let power: f32 = points.iter().map(|z| z.norm_sqr()).sum::<f32>() / points.len() as f32;
        assert!((power - 1.0).abs() < 1e-5, "{modulation}: {power}");
        let step = 2.0 * modulation.half_distance() as f32;
        for (a, &p) in points.iter().enumerate() {
            for (b, &q) in points.iter().enumerate() {
                if a != b {
                    assert!((p - q).norm() > 0.99 * step);
                    assert!((p - q).norm() > 1.01 * step || (a ^ b).count_ones() == 1, "{modulation}: {a:b} and {b:b} are neighbours");
                }
            }
        }
    }
}

#[test]
fn every_label_survives_the_round_trip() {
    for modulation in Modulation::ALL {
        let table = Constellation::new(modulation);
        let bits = modulation.bits();
        for label in 0..1usize << bits {
            let sent: Vec<u8> = (0..bits).rev().map(|shift| (label >> shift & 1) as u8).collect();
            let mut point = [Complex32::ZERO];
            table.map(&sent, &mut point);
            let jolt = Complex32::new(0.9, -0.9) * modulation.half_distance() as f32;
            let mut got = Vec::new();
            assert_eq!(table.demap(point[0] + jolt, &mut got), point[0]);
            assert_eq!(got, sent, "{modulation}");
        }
        for z in [Complex32::new(f32::NAN, f32::NAN), Complex32::new(f32::INFINITY, -1e30), Complex32::new(-1e30, 1e30)] {
            assert!(table.decide(z) < table.points().len());
        }
    }
    assert!("qam16".parse::<Modulation>().is_ok());
    assert!("qam61".parse::<Modulation>().unwrap_err().to_string().contains("did you mean 'qam16'?"));
}

#[test]
fn presets_are_valid_and_others_get_the_nearest_name() {
    for name in Config::PRESETS {
        let config = Config::preset(name).unwrap();
        config.validate().unwrap();
        assert_eq!((config.fft, config.active, config.cyclic_prefix, config.sample_rate), (64, 52, 16, 20e6));
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
    }
    let paper = Config::preset("paper").unwrap();
    assert_eq!((paper.modulation, paper.clip), (Modulation::Qam16, Some(Clip::at(6.0))));
    assert!(Config::preset("wify").unwrap_err().to_string().contains("did you mean 'wifi'?"));
    assert!(serde_json::from_str::<Config>(r#"{"ftf": 64}"#).unwrap_err().to_string().contains("ftf"));
}

#[test]
fn a_wrong_field_is_named() {
    let good = Config::default();
    let clip = |level_db, iterations| Some(Clip { level_db, filter: false, iterations });
    let cases: Vec<(&str, Config)> = vec![
        ("fft", Config { fft: 0, ..good.clone() }),
        ("fft", Config { fft: 62, ..good.clone() }),
        ("fft", Config { fft: 1 << 20, ..good.clone() }),
        ("active", Config { active: 0, ..good.clone() }),
        ("active", Config { active: 51, ..good.clone() }),
        ("active", Config { active: 64, ..good.clone() }),
        ("pilots", Config { pilots: vec![0], ..good.clone() }),
        ("pilots", Config { pilots: vec![27], ..good.clone() }),
        ("pilots", Config { pilots: vec![i32::MIN], ..good.clone() }),
        ("pilots", Config { pilots: vec![7, 7], ..good.clone() }),
        ("pilots", Config { pilots: (-26..=26).filter(|&k| k != 0).collect(), ..good.clone() }),
        ("cyclic_prefix", Config { cyclic_prefix: 65, ..good.clone() }),
        ("oversampling", Config { oversampling: 0, ..good.clone() }),
        ("window", Config { window: 17, ..good.clone() }),
        ("clip.level_db", Config { clip: clip(f64::NAN, 1), ..good.clone() }),
        ("clip.iterations", Config { clip: clip(6.0, 0), ..good.clone() }),
        ("symbols", Config { symbols: 0, ..good.clone() }),
        ("gap", Config { gap: usize::MAX, ..good.clone() }),
        ("sample_rate", Config { sample_rate: -1.0, ..good.clone() }),
    ];
    for (name, config) in cases {
        let error = config.validate().unwrap_err().to_string();
        assert!(error.starts_with(name), "{name}: {error}");
        assert!(Transmitter::new(config.clone(), Source::Repeat(vec![])).is_err() && Modulator::new(&config).is_err());
    }
}

#[test]
fn the_prefix_is_the_end_of_its_symbol() {
    for (oversampling, window) in [(1, 0), (4, 0), (1, 4), (2, 3)] {
        let config = Config { oversampling, window, ..Config::default() };
        let x = transmit(&config, Source::Continuous, 50 * config.symbol_samples());
        let (size, prefix, edge) = (64 * oversampling, 16 * oversampling, window * oversampling);
        for symbol in x.chunks_exact(config.symbol_samples()) {
            for n in edge..prefix {
                assert_eq!(symbol[n], symbol[n + size]);
            }
        }
    }
}

#[test]
fn the_stream_does_not_depend_on_the_cuts() {
    let config = Config { window: 3, gap: 2, oversampling: 2, symbols: 3, ..Config::default() };
    let mut payload = vec![0; config.payload_bits()];
    RandomBits::new(5).fill(&mut payload);
    for source in [Source::Continuous, Source::RandomFrames, Source::Repeat(payload)] {
        let whole = transmit(&config, source.clone(), 10_000);
        let mut transmitter = Transmitter::new(config.clone(), source).unwrap();
        let mut cut = vec![Complex32::ZERO; 10_000];
        let mut start = 0;
        for step in (0..).map(|i| 1 + i * 37 % 501) {
            let end = (start + step).min(cut.len());
            assert_eq!(transmitter.fill(&mut cut[start..end]), end - start);
            start = end;
            if start == cut.len() {
                break;
            }
        }
        assert_eq!(whole, cut);
    }
}
