//! Laws of the waveform.

use kaflow::metrics::{Ber, Evm, papr_db, power, welch};
use kaflow::ofdm::{
    Clip, Config, Constellation, Demodulator, Modulation, Modulator, Packet, RandomBits, Receiver, Source, Transmitter, bussgang,
};
use kaflow::{Complex32, Complex64};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn transmit(config: &Config, source: Source, samples: usize) -> Vec<Complex32> {
    let mut transmitter = Transmitter::new(config.clone(), source).unwrap();
    let mut out = vec![Complex32::ZERO; samples];
    assert_eq!(transmitter.fill(&mut out), samples);
    out
}

fn gaussian(rng: &mut ChaCha8Rng) -> Complex32 {
    let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    let z = Complex64::from_polar((-u.ln()).sqrt(), std::f64::consts::TAU * v);
    Complex32::new(z.re as f32, z.im as f32)
}

/// Adds circular noise of the given power.
fn add_noise(samples: &mut [Complex32], power: f64, rng: &mut ChaCha8Rng) {
    samples.iter_mut().for_each(|z| *z += gaussian(rng) * power.sqrt() as f32);
}

/// Turns samples by `offset` cycles a sample.
fn shift(samples: &mut [Complex32], offset: f64, phase: f64) {
    for (n, z) in samples.iter_mut().enumerate() {
        let turn = Complex64::cis(std::f64::consts::TAU * (offset * n as f64 + phase).fract());
        *z *= Complex32::new(turn.re as f32, turn.im as f32);
    }
}

fn convolve(samples: &[Complex32], taps: &[Complex32]) -> Vec<Complex32> {
    (0..samples.len()).map(|n| taps.iter().enumerate().take(n + 1).map(|(l, h)| h * samples[n - l]).sum()).collect()
}

/// Random payloads, and the frames that carry them, one after the other.
fn frames(config: &Config, count: usize, seed: u64) -> (Vec<Vec<u8>>, Vec<Vec<Complex32>>) {
    let mut random = RandomBits::new(seed);
    let mut transmitter = Transmitter::new(config.clone(), Source::Queue).unwrap();
    let mut payloads = Vec::new();
    let mut signals = Vec::new();
    for _ in 0..count {
        let mut payload = vec![0; config.payload_bits()];
        random.fill(&mut payload);
        transmitter.push(&payload);
        let mut signal = vec![Complex32::ZERO; config.frame_samples() + config.gap * config.oversampling + 7];
        let filled = transmitter.fill(&mut signal);
        assert_eq!(filled, signal.len() - 7);
        signal.truncate(filled);
        payloads.push(payload);
        signals.push(signal);
    }
    (payloads, signals)
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
fn clipped_frames_loop_back_bit_for_bit_at_any_numerology() {
    let base = Config::default();
    let pilots = |k: &[i32]| k.to_vec();
    let cases = [
        base.clone(),
        Config::preset("wifi").unwrap(),
        Config { modulation: Modulation::Bpsk, symbols: 1, ..base.clone() },
        Config { modulation: Modulation::Qam256, clip: None, symbols: 30, ..base.clone() },
        Config { modulation: Modulation::Qam64, clip: Some(Clip::at(8.0)), oversampling: 4, window: 4, ..base.clone() },
        Config { clip: Some(Clip { level_db: 5.0, filter: true, iterations: 3 }), oversampling: 4, ..base.clone() },
        Config { fft: 32, active: 16, pilots: pilots(&[-7, 7]), cyclic_prefix: 8, symbols: 2, ..base.clone() },
        Config { fft: 128, active: 108, pilots: pilots(&[-53, -11, 3, 53]), cyclic_prefix: 32, window: 8, ..base.clone() },
        Config { fft: 1024, active: 600, pilots: (-10..=9).map(|k| k * 30 + 15).collect(), cyclic_prefix: 72, ..base.clone() },
        Config { fft: 100, active: 80, pilots: vec![], cyclic_prefix: 25, ..base.clone() },
        Config { cyclic_prefix: 0, ..base.clone() },
        Config { cyclic_prefix: 32, ..base.clone() },
        Config { symbols: 300, gap: 1, window: 16, ..base.clone() },
    ];
    for config in cases {
        let (payloads, signals) = frames(&config, 12, 3);
        let mut stream: Vec<Complex32> = vec![Complex32::ZERO; 77];
        signals.iter().for_each(|signal| stream.extend(signal));
        shift(&mut stream, 0.3 * config.carrier_spacing() / config.output_rate(), 0.2);
        let packets = Receiver::new(config.clone()).unwrap().receive(&stream);
        assert_eq!(packets.len(), payloads.len(), "{config:?}");
        for (i, (packet, payload)) in packets.iter().zip(&payloads).enumerate() {
            assert_eq!(packet.start, 77 + (i * signals[0].len()) as i64, "{config:?}");
            let mut ber = Ber::default();
            ber.extend(payload, &packet.bits);
            assert_eq!(ber.errors(), 0, "packet {i}: EVM {} dB, {config:?}", packet.evm.db());
        }
    }
}

#[test]
fn every_packet_arrives_without_noise() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    for preset in Config::PRESETS {
        let config = Config { gap: 0, symbols: 3, ..Config::preset(preset).unwrap() };
        let (payloads, signals) = frames(&config, 4000, 5);
        let mut stream: Vec<Complex32> = Vec::new();
        let mut truth = Vec::new();
        for signal in &signals {
            // Gaps of any length, none included; silence, or a little rest of something else; any level, phase and carrier offset in range.
            let gap = if rng.random_bool(0.3) { 0 } else { rng.random_range(0..500) };
            stream.resize(stream.len() + gap, Complex32::ZERO);
            let offset = rng.random_range(-0.99..0.99) * config.coarse_range() / config.output_rate();
            let mut signal = signal.clone();
            shift(&mut signal, offset, rng.random());
            let level = 10f32.powf(rng.random_range(-1.0..1.0));
            truth.push((stream.len() as i64, offset));
            stream.extend(signal.iter().map(|z| z * level));
        }
        let mut receiver = Receiver::new(config.clone()).unwrap();
        let packets = receiver.receive(&stream);
        let mut missing = 0;
        let mut packets = packets.iter().peekable();
        for (i, (payload, (start, offset))) in payloads.iter().zip(&truth).enumerate() {
            let Some(packet) = packets.next_if(|p| (p.start - start).abs() <= 2) else {
                println!("packet {i} at {start}, offset {offset}, is missing");
                missing += 1;
                continue;
            };
            assert_eq!(packet.start, *start);
            assert!((packet.offset - offset).abs() < 1e-5, "packet {i}: offset {} instead of {offset}", packet.offset);
            assert_eq!(&packet.bits, payload, "packet {i}: EVM {} dB, offset {offset}", packet.evm.db());
        }
        assert_eq!(missing, 0, "of 4000 ({preset}), {} rejected", receiver.rejected());
        assert!(packets.next().is_none(), "no packet that was not sent");
    }
}

#[test]
fn what_is_received_does_not_depend_on_the_cuts() {
    let config = Config::preset("wifi").unwrap();
    let mut stream = transmit(&config, Source::RandomFrames, 30_000);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    shift(&mut stream, 1e-3, 0.0);
    add_noise(&mut stream, 0.01, &mut rng);
    let whole = Receiver::new(config.clone()).unwrap().receive(&stream);
    assert!(whole.len() > 15);
    for largest in [1, 7, 100, 5000] {
        let mut receiver = Receiver::new(config.clone()).unwrap();
        let mut packets: Vec<Packet> = Vec::new();
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rng.random_range(1..=largest).min(rest.len()));
            receiver.push(piece, |packet| packets.push(packet.clone()));
            rest = after;
        }
        assert_eq!(packets.len(), whole.len());
        for (a, b) in packets.iter().zip(&whole) {
            assert_eq!((a.start, &a.points, &a.bits, a.offset.to_bits()), (b.start, &b.points, &b.bits, b.offset.to_bits()));
        }
    }
}

#[test]
fn multipath_inside_the_prefix_is_equalised() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let config = Config { clip: None, gap: 100, ..Config::default() };
    let (payloads, signals) = frames(&config, 300, 9);
    let (mut lost, mut ber) = (0, Ber::default());
    for (payload, signal) in payloads.iter().zip(&signals) {
        let taps: Vec<Complex32> = (0..8).map(|l| gaussian(&mut rng) * 10f32.powf(-3.0 * l as f32 / 20.0)).collect();
        let mut stream = vec![Complex32::ZERO; rng.random_range(0..300)];
        stream.extend(convolve(signal, &taps));
        shift(&mut stream, rng.random_range(-0.9..0.9) * config.coarse_range() / config.output_rate(), 0.0);
        match &Receiver::new(config.clone()).unwrap().receive(&stream)[..] {
            [packet] => ber.extend(payload, &packet.bits),
            _ => lost += 1,
        }
    }
    assert_eq!((lost, ber.errors()), (0, 0));
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
        let expected = modulation.bit_error_rate(snr);
        let deviation = (expected * (1.0 - expected) / ber.bits() as f64).sqrt();
        assert!((ber.rate() - expected).abs() < 4.0 * deviation, "{modulation} at {snr_db} dB: {} instead of {expected}", ber.rate());
        // EVM against theory: the noise on a carrier is the noise of a sample times 52/64 of the band that the signal fills.
        assert!((evm.db() + snr_db).abs() < 0.1, "{modulation} at {snr_db} dB: EVM {}", evm.db());
    }
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

#[test]
fn noise_tones_and_silence_are_no_packets() {
    let config = Config::default();
    let mut rng = ChaCha8Rng::seed_from_u64(41);
    let mut noise = vec![Complex32::ZERO; 300_000];
    add_noise(&mut noise, 1.0, &mut rng);
    let mut tone = vec![Complex32::ONE; 100_000];
    let constant = tone.clone();
    shift(&mut tone, 0.0431, 0.0);
    let continuous = transmit(&config, Source::Continuous, 300_000);
    let bad = vec![Complex32::new(f32::NAN, f32::INFINITY); 5000];
    for (name, samples) in [
        ("noise", noise),
        ("tone", tone),
        ("constant", constant),
        ("silence", vec![Complex32::ZERO; 5000]),
        ("data", continuous),
        ("bad", bad),
    ] {
        let mut receiver = Receiver::new(config.clone()).unwrap();
        assert_eq!(receiver.receive(&samples).len(), 0, "{name}");
        // And a packet right behind is found.
        let (payloads, signals) = frames(&config, 2, 1);
        let packets: Vec<_> = signals.iter().flat_map(|signal| receiver.receive(signal)).collect();
        assert_eq!(packets.len(), 2, "behind {name}");
        assert!(packets.iter().zip(&payloads).all(|(packet, payload)| &packet.bits == payload), "behind {name}");
    }
}

#[test]
fn the_level_does_not_matter() {
    let config = Config { gap: 200, ..Config::default() };
    let (payloads, signals) = frames(&config, 5, 4);
    for level in [1e-18f32, 1e-6, 1.0, 1e6, 1e30] {
        let stream: Vec<_> = signals.iter().flatten().map(|z| z * level).collect();
        let packets = Receiver::new(config.clone()).unwrap().receive(&stream);
        assert_eq!(packets.len(), 5, "level {level}");
        for (packet, payload) in packets.iter().zip(&payloads) {
            assert_eq!(&packet.bits, payload, "level {level}");
            assert!((packet.rms / f64::from(level) - 1.0).abs() < 0.01);
        }
    }
}

#[test]
fn a_receiver_in_noise_measures_offset_snr_and_evm() {
    let config = Config { clip: None, symbols: 20, gap: 150, ..Config::default() };
    let (payloads, signals) = frames(&config, 300, 6);
    let mut rng = ChaCha8Rng::seed_from_u64(51);
    for snr_db in [15.0, 20.0, 30.0] {
        // SNR on the carriers; see awgn above.
        let noise = 64.0 / 52.0 * 10f64.powf(-snr_db / 10.0);
        let mut stream: Vec<Complex32> = signals.iter().flatten().copied().collect();
        let offset = 41e3 / 20e6;
        shift(&mut stream, offset, 0.1);
        add_noise(&mut stream, noise, &mut rng);
        let packets = Receiver::new(config.clone()).unwrap().receive(&stream);
        assert_eq!(packets.len(), 300, "{snr_db} dB");
        let table = Constellation::new(config.modulation);
        let (mut evm, mut errors, mut snr) = (Evm::default(), 0.0, 0.0);
        for (packet, payload) in packets.iter().zip(&payloads) {
            let mut points = vec![Complex32::ZERO; packet.points.len()];
            table.map(payload, &mut points);
            packet.points.iter().zip(&points).for_each(|(&z, &point)| evm.push(z, point));
            errors += (packet.offset - offset).powi(2) / 300.0;
            snr += packet.snr / 300.0;
        }
        // In units of the noise: the channel estimate rests on two symbols and adds 1/2; the common phase of four pilots, equalised with that
        // estimate, 3/16; their slope 0.08 and gain 0.06. Together 10 log10(1.83) = 2.6 dB.
        assert!((evm.db() + snr_db - 2.6).abs() < 0.3, "{snr_db} dB: EVM {}", evm.db());
        assert!((10.0 * snr.log10() - snr_db).abs() < 0.5, "{snr_db} dB: SNR {}", 10.0 * snr.log10());
        // Deviation of the fine offset: 1 / (2π N sqrt(N snr)) cycles a sample with N samples (Schmidl and Cox 1997).
        let bound = 1.0 / (std::f64::consts::TAU * 64.0 * (64.0 / noise).sqrt());
        assert!(errors.sqrt() < 1.5 * bound && errors.sqrt() > 0.5 * bound, "{snr_db} dB: {} Hz", errors.sqrt() * 20e6);
    }
}

#[test]
fn a_drifting_clock_and_a_residual_offset_are_tracked() {
    // 40 ppm between the clocks over 200 symbols: 0.64 samples, which is 1.6 radians on the outermost carrier.
    let config = Config { clip: None, symbols: 200, oversampling: 4, ..Config::default() };
    let (payloads, signals) = frames(&config, 3, 7);
    let ppm = 40e-6;
    let stream: Vec<Complex32> = signals.iter().flatten().copied().collect();
    // Oversampled four times, cubic interpolation is accurate to better than -50 dB.
    let at = |t: f64| {
        let (n, f) = (t as usize, t.fract() as f32);
        let x = |i: usize| stream.get((n + i).wrapping_sub(1)).copied().unwrap_or_default();
        let (a, b, c, d) = (x(0), x(1), x(2), x(3));
        b + (c - a + (a * 2.0 - b * 5.0 + c * 4.0 - d + ((b - c) * 3.0 + d - a) * f) * f) * (0.5 * f)
    };
    let mut drifted: Vec<Complex32> = (0..stream.len()).map(|n| at(n as f64 * (1.0 + ppm))).collect();
    shift(&mut drifted, 1e-4, 0.0);
    drifted.resize(drifted.len() + 100, Complex32::ZERO);
    let packets = Receiver::new(config).unwrap().receive(&drifted);
    assert_eq!(packets.len(), 3);
    for (packet, payload) in packets.iter().zip(&payloads) {
        assert_eq!(&packet.bits, payload);
        assert!(packet.evm.db() < -30.0, "{}", packet.evm.db());
    }
}

#[test]
fn bits_go_in_and_come_out_of_a_queue() {
    let config = Config { symbols: 2, gap: 30, window: 2, ..Config::default() };
    let mut bits = vec![0; 5 * config.payload_bits() + 17];
    RandomBits::new(2).fill(&mut bits);
    let mut transmitter = Transmitter::new(config.clone(), Source::Queue).unwrap();
    let mut receiver = Receiver::new(config.clone()).unwrap();
    let mut got = Vec::new();
    let mut buffer = [Complex32::ZERO; 333];
    for piece in bits.chunks(101) {
        transmitter.push(piece);
        loop {
            let filled = transmitter.fill(&mut buffer);
            receiver.push(&buffer[..filled], |packet| got.extend_from_slice(&packet.bits));
            if filled < buffer.len() {
                break;
            }
        }
    }
    assert_eq!(got, bits[..5 * config.payload_bits()]);
    assert_eq!(transmitter.queued(), 17);
    assert!(Transmitter::new(config, Source::Repeat(vec![0; 3])).unwrap_err().to_string().starts_with("payload must be"));
}

#[test]
fn real_wifi_frames_are_found_with_their_carrier_offsets() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/wifi80211a_6mbps/rx.sigmf-data");
    let Ok(bytes) = std::fs::read(&path) else {
        println!("SKIPPED: {} is not there", path.display());
        return;
    };
    let float = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    let samples: Vec<Complex32> = bytes.chunks_exact(8).map(|b| Complex32::new(float(b), float(&b[4..]))).collect();
    // The SIGNAL symbol and the first data symbols of 802.11a at 6 Mbit/s are BPSK.
    let config = Config { modulation: Modulation::Bpsk, clip: None, symbols: 10, ..Config::default() };
    let packets = Receiver::new(config.clone()).unwrap().receive(&samples);
    println!("{:?}", packets.iter().map(|p| (p.start, p.offset * 20e6, p.evm.db())).collect::<Vec<_>>());
    assert_eq!(packets.len(), 10);
}

/// `cargo test --release --test ofdm -- --ignored --nocapture throughput`
#[test]
#[ignore = "prints how fast it is"]
fn throughput() {
    let rate = |samples: usize, seconds: f64| samples as f64 / seconds / 1e6;
    for (name, config) in [
        ("paper", Config::default()),
        ("wifi", Config::preset("wifi").unwrap()),
        (
            "paper, 4x oversampled, clipped and filtered",
            Config { oversampling: 4, clip: Some(Clip { level_db: 6.0, filter: true, iterations: 1 }), ..Config::default() },
        ),
        ("1024 carriers", Config { fft: 1024, active: 800, cyclic_prefix: 128, ..Config::default() }),
    ] {
        let mut x = vec![Complex32::ZERO; 4_000_000];
        for source in [Source::Continuous, Source::RandomFrames] {
            let mut transmitter = Transmitter::new(config.clone(), source.clone()).unwrap();
            let start = std::time::Instant::now();
            transmitter.fill(&mut x);
            println!("{name}: transmit {source:?} {:.1} MS/s", rate(x.len(), start.elapsed().as_secs_f64()));
        }
        let mut receiver = Receiver::new(config.clone()).unwrap();
        let (mut packets, start) = (0, std::time::Instant::now());
        receiver.push(&x, |_| packets += 1);
        println!("{name}: receive {:.1} MS/s, {packets} packets", rate(x.len(), start.elapsed().as_secs_f64()));
        let mut noise = x.clone();
        add_noise(&mut noise, 100.0, &mut ChaCha8Rng::seed_from_u64(1));
        let start = std::time::Instant::now();
        Receiver::new(config).unwrap().push(&noise, |_| ());
        println!("{name}: search in noise {:.1} MS/s", rate(x.len(), start.elapsed().as_secs_f64()));
    }
}
