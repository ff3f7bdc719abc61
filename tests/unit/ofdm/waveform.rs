//! What is sent: constellations, spectrum, peaks, prefix.

use kaflow::Complex32;
use kaflow::metrics::{Ber, Evm, papr_db, power, welch};
use kaflow::ofdm::{Clip, Config, Constellation, Demodulator, Modulation, Modulator, RandomBits, Source, Transmitter};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::support::{add_noise, bussgang, transmit};

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
        ("cyclic_prefix", Config { cyclic_prefix: 33, ..good.clone() }),
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

#[test]
fn bit_error_rates_follow_the_closed_forms() {
    // Modulator and demodulator alone: nothing is lost to synchronisation or channel estimation.
    let mut rng = ChaCha8Rng::seed_from_u64(31);
    for (modulation, snr_db) in [
        (Modulation::Bpsk, 4.0),
        (Modulation::Qpsk, 7.0),
        (Modulation::Qam16, 8.0),
        (Modulation::Qam16, 12.0),
        (Modulation::Qam16, 16.0),
        (Modulation::Qam64, 20.0),
        (Modulation::Qam256, 25.0),
    ] {
        let config = Config { modulation, clip: None, ..Config::default() };
        let snr = 10f64.powf(snr_db / 10.0);
        let (sent, received, evm) = awgn(&config, 2000, snr, &mut rng);
        let mut ber = Ber::default();
        ber.extend(&sent, &received);
        let expected = bit_error_rate(modulation, snr);
        let deviation = (expected * (1.0 - expected) / ber.bits as f64).sqrt();
        assert!((ber.rate() - expected).abs() < 4.0 * deviation, "{modulation} at {snr_db} dB: {} instead of {expected}", ber.rate());
        // EVM against theory: the noise on a carrier is the noise of a sample times 52/64 of the band that the signal fills.
        assert!((evm.db() + snr_db).abs() < 0.1, "{modulation} at {snr_db} dB: EVM {}", evm.db());
    }
}

/// The exact bit error rate in white Gaussian noise at `snr = Es/N0` (a power ratio), hard decisions.
///
/// For 16-QAM this is the closed form `3/4 Q(a) + 1/2 Q(3a) − 1/4 Q(5a)` with `a = sqrt(snr / 5)`.
fn bit_error_rate(modulation: Modulation, snr: f64) -> f64 {
    let q = |x: f64| 0.5 * libm::erfc(x / std::f64::consts::SQRT_2);
    let gray = |level: usize| level ^ (level >> 1);
    let bits = modulation.bits().div_ceil(2);
    let levels = 1 << bits;
    // One real axis with noise variance N0/2: sum over sent levels, decided levels and the bits that differ.
    let a = modulation.half_distance() * (2.0 * snr).sqrt();
    let mut errors = 0.0;
    for sent in 0..levels {
        for got in 0..levels {
            let lower = if got == 0 { f64::NEG_INFINITY } else { (2.0 * (got as f64 - sent as f64) - 1.0) * a };
            let upper = if got + 1 == levels { f64::INFINITY } else { (2.0 * (got as f64 - sent as f64) + 1.0) * a };
            errors += f64::from((gray(sent) ^ gray(got)).count_ones()) * (q(lower) - q(upper)).max(0.0);
        }
    }
    errors / (levels as f64 * bits as f64)
}

#[test]
fn the_bit_error_rate_of_16_qam_is_the_closed_form() {
    let q = |x: f64| 0.5 * libm::erfc(x / 2f64.sqrt());
    let a = (10f64 / 5.0).sqrt();
    let closed = 0.75 * q(a) + 0.5 * q(3.0 * a) - 0.25 * q(5.0 * a);
    assert!((bit_error_rate(Modulation::Qam16, 10.0) - closed).abs() < 1e-12);
}

/// Symbols through white noise at `snr = Es/N0` on the carriers: bits sent and received, and the EVM against the points sent.
fn awgn(config: &Config, symbols: usize, snr: f64, rng: &mut ChaCha8Rng) -> (Vec<u8>, Vec<u8>, Evm) {
    let (mut modulator, mut demodulator) = (Modulator::new(config).unwrap(), Demodulator::new(config).unwrap());
    let table = Constellation::new(config.modulation);
    let mut random = RandomBits::new(1);
    let mut bits = vec![0; config.symbol_bits()];
    let mut points = vec![Complex32::ZERO; config.data_carriers()];
    let mut carriers = vec![Complex32::ZERO; config.active];
    let (mut sent, mut received, mut evm) = (Vec::new(), Vec::new(), Evm::default());
    // Unit sample power lies on `active` of `fft · oversampling` carriers, white noise on all.
    let noise = (config.fft * config.oversampling) as f64 / config.active as f64 / snr;
    let mut samples = Vec::new();
    for index in 0..symbols {
        random.fill(&mut bits);
        table.map(&bits, &mut points);
        samples.clear();
        modulator.symbol(index, &points, &mut samples);
        add_noise(&mut samples, noise, rng);
        let prefix = config.cyclic_prefix * config.oversampling;
        demodulator.carriers(&samples[prefix..][..config.fft * config.oversampling], &mut carriers);
        sent.extend_from_slice(&bits);
        for (&slot, &point) in demodulator.data_slots().iter().zip(&points) {
            table.demap(carriers[slot], &mut received);
            evm.push(carriers[slot], point);
        }
    }
    (sent, received, evm)
}

#[test]
fn clipping_distorts_as_bussgang_says() {
    let mut rng = ChaCha8Rng::seed_from_u64(32);
    for level_db in [0.0, 3.0, 6.0, 60.0] {
        // Many carriers make the signal Gaussian, as the theorem wants it. Unfiltered at rate one, all the distortion folds onto the carriers.
        let config = Config {
            fft: 512,
            active: 510,
            pilots: vec![],
            modulation: Modulation::Qpsk,
            clip: Some(Clip::at(level_db)),
            ..Config::default()
        };
        let (gain, distortion) = bussgang(10f64.powf(level_db / 20.0));
        let (_, _, evm) = awgn(&config, 300, 1e12, &mut rng);
        let expected = 10.0 * ((1.0 - gain).powi(2) + distortion).log10();
        assert!((evm.db() - expected).abs() < 0.3 || evm.db() < -100.0, "{level_db} dB: EVM {} instead of {expected}", evm.db());
        let x = transmit(&config, Source::Continuous, 200_000);
        let level = 10f64.powf(level_db / 10.0);
        assert!((power(&x) / (1.0 - (-level).exp()) - 1.0).abs() < 0.01, "{level_db} dB: power {}", power(&x));
    }
}

#[test]
fn a_clipped_signal_never_exceeds_its_level() {
    for (level_db, oversampling, window) in [(6.0, 1, 0), (6.0, 4, 4), (0.0, 2, 0), (3.0, 1, 16)] {
        let config = Config { clip: Some(Clip::at(level_db)), oversampling, window, gap: 40, ..Config::default() };
        let level = 10f64.powf(level_db / 20.0);
        for source in [Source::Continuous, Source::RandomFrames] {
            let x = transmit(&config, source, 100_000);
            let peak = x.iter().map(|z| z.norm()).fold(0.0, f32::max);
            assert!(f64::from(peak) < level * (1.0 + 1e-6), "{level_db} dB: {peak}");
        }
        // Frames include the short and long training and silence; the stream alone must come close to its level.
        let x = transmit(&config, Source::Continuous, 100_000);
        let lost = -10.0 * (1.0 - (-level * level).exp()).log10();
        assert!((papr_db(&x) - (level_db + lost)).abs() < 0.3, "{level_db} dB: PAPR {}", papr_db(&x));
    }
    let unclipped = transmit(&Config { clip: None, ..Config::default() }, Source::Continuous, 100_000);
    assert!(papr_db(&unclipped) > 9.0 && (power(&unclipped) - 1.0).abs() < 0.01);
}

#[test]
fn filtered_clipping_leaves_nothing_outside_the_carriers() {
    let clip = |filter, iterations| Some(Clip { level_db: 4.0, filter, iterations });
    let config = Config { oversampling: 4, cyclic_prefix: 0, pilots: vec![], ..Config::default() };
    let outside = |clip| {
        // Symbol by symbol the spectrum is exact: no window's leakage.
        let config = Config { clip, ..config.clone() };
        let x = transmit(&config, Source::Continuous, 256 * 100);
        let mut all = vec![Complex32::ZERO; 254];
        let mut demodulator = Demodulator::new(&Config { fft: 256, oversampling: 1, active: 254, clip: None, ..config.clone() }).unwrap();
        let (mut inside, mut outside) = (0.0, 0.0);
        for body in x.chunks_exact(256) {
            demodulator.carriers(body, &mut all);
            for (slot, z) in all.iter().enumerate() {
                let carrier = if slot < 127 { slot as i32 - 127 } else { slot as i32 - 126 };
                *(if carrier.abs() <= 26 { &mut inside } else { &mut outside }) += f64::from(z.norm_sqr());
            }
        }
        (10.0 * (outside / inside).log10(), papr_db(&x))
    };
    let (none, hard, once, thrice) = (outside(None), outside(clip(false, 1)), outside(clip(true, 1)), outside(clip(true, 3)));
    assert!(none.0 < -100.0 && once.0 < -100.0 && thrice.0 < -100.0, "{none:?} {once:?} {thrice:?}");
    assert!(hard.0 > -40.0 && hard.1 < 4.5, "{hard:?}");
    // Peaks regrow behind the filter, less with every iteration.
    assert!(hard.1 < thrice.1 && thrice.1 < once.1 && once.1 < none.1, "{hard:?} {thrice:?} {once:?} {none:?}");
}

#[test]
fn the_spectrum_is_the_active_carriers() {
    let config = Config { clip: None, oversampling: 4, ..Config::default() };
    let edges = |window| {
        let x = transmit(&Config { window, ..config.clone() }, Source::Continuous, 400_000);
        welch(&x, 1024, config.output_rate()).unwrap()
    };
    let (hard, soft) = (edges(0), edges(8));
    // Where two edges overlap the power is 3/4 on average.
    for (psd, expected) in [(&hard, 1.0), (&soft, 1.0 - 0.25 * 8.0 / 80.0)] {
        assert!((psd.power(-40e6, 40e6) / expected - 1.0).abs() < 0.01);
        let (low, high) = psd.occupied(0.99);
        let expected = config.occupied_bandwidth() / 2.0;
        assert!((low + expected).abs() < 1e6 && (high - expected).abs() < 1e6, "{low} {high}");
        // The DC carrier is empty.
        assert!(psd.power(-20e3, 20e3) < 0.5 * psd.power(980e3, 1020e3));
    }
    // Windowed edges take the shoulders down.
    let shoulder = |psd: &kaflow::metrics::Psd| psd.acpr_db(16e6, 25e6).unwrap();
    let (hard, soft) = (shoulder(&hard), shoulder(&soft));
    assert!(soft.0 < hard.0 - 10.0 && soft.1 < hard.1 - 10.0, "{hard:?} {soft:?}");
}

#[test]
fn the_training_is_low_in_peaks_and_as_strong_as_the_data() {
    for (fft, active, prefix) in [(64, 52, 16), (32, 16, 8), (100, 80, 20), (256, 200, 64), (1024, 600, 72)] {
        let config = Config { fft, active, cyclic_prefix: prefix, pilots: vec![], clip: None, ..Config::default() };
        let modulator = Modulator::new(&config).unwrap();
        for oversampling in [1, 4] {
            let modulator =
                if oversampling == 1 { modulator.clone() } else { Modulator::new(&Config { oversampling, ..config.clone() }).unwrap() };
            let (mut short, mut long) = (Vec::new(), Vec::new());
            modulator.short_training(&mut short);
            modulator.long_training(&mut long);
            assert_eq!(short.len() + long.len(), config.preamble_samples() * oversampling);
            for part in [&short[..fft * oversampling], &long[long.len() - fft * oversampling..]] {
                assert!((power(part) - 1.0).abs() < 1e-3);
                assert!(papr_db(part) < 5.0, "{fft}: {}", papr_db(part));
            }
            let period = fft * oversampling / 4;
            assert!(short.iter().zip(&short[period..]).all(|(a, b)| (a - b).norm() < 1e-4));
        }
    }
}

#[test]
fn a_stream_has_the_same_samples_on_every_machine() {
    // A fingerprint of the bits, not of rounded values.
    let fingerprint = |config: Config, source| {
        transmit(&config, source, 20_000)
            .iter()
            .flat_map(|z| [z.re.to_bits(), z.im.to_bits()])
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, bits| (hash ^ u64::from(bits)).wrapping_mul(0x100_0000_01b3))
    };
    let config = Config::default();
    let wifi = Config { oversampling: 2, ..Config::preset("wifi").unwrap() };
    let generated =
        Config { fft: 128, active: 100, window: 4, clip: Some(Clip { level_db: 5.0, filter: true, iterations: 2 }), ..config.clone() };
    let found =
        [fingerprint(config, Source::Continuous), fingerprint(wifi, Source::RandomFrames), fingerprint(generated, Source::RandomFrames)];
    assert_eq!(found, [0x6d8f_98c5_b111_8414, 0xcf88_d193_7b77_9ad2, 0xb108_a5ae_a749_3e5d], "{found:#x?}");
}
