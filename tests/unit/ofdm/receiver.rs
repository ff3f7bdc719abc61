//! What arrives: packets, their timing, offset and bits.

use kaflow::Complex32;
use kaflow::metrics::{Ber, Evm};
use kaflow::ofdm::{Clip, Config, Constellation, Modulation, Packet, RandomBits, Receiver, Source, Transmitter};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::support::{add_noise, bussgang, convolve, frames, gaussian, shift, station, transmit};

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
            assert_eq!(packet.ber(payload).errors, 0, "packet {i}: EVM {} dB, {config:?}", packet.evm.db());
        }
    }
}

#[test]
fn every_packet_arrives_without_noise() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let base = Config { gap: 0, symbols: 3, ..Config::default() };
    for (name, count, config) in [
        ("paper", 4000, base.clone()),
        ("wifi", 4000, Config { gap: 0, symbols: 3, ..Config::preset("wifi").unwrap() }),
        ("one symbol", 2000, Config { symbols: 1, window: 4, ..base.clone() }),
        ("oversampled", 1000, Config { oversampling: 2, clip: Some(Clip { level_db: 5.0, filter: true, iterations: 1 }), ..base.clone() }),
        ("128 carriers", 1000, Config { fft: 128, active: 108, pilots: vec![-53, -11, 11, 53], window: 8, ..base.clone() }),
        ("32 carriers", 2000, Config { fft: 32, active: 24, pilots: vec![-9, 9], cyclic_prefix: 8, clip: None, ..base.clone() }),
    ] {
        let (payloads, signals) = frames(&config, count, 5);
        let mut stream: Vec<Complex32> = Vec::new();
        let mut truth = Vec::new();
        for signal in &signals {
            // Gaps of any length, none included; any level, phase and carrier offset in range.
            let gap = if rng.random_bool(0.3) { 0 } else { rng.random_range(0..500) };
            stream.resize(stream.len() + gap, Complex32::ZERO);
            let offset = rng.random_range(-0.99..0.99) * 2.0 * config.carrier_spacing() / config.output_rate();
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
        println!("{name}: {missing} of {count} missing");
        assert_eq!(missing, 0, "{name}");
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
        shift(&mut stream, rng.random_range(-0.9..0.9) * 2.0 * config.carrier_spacing() / config.output_rate(), 0.0);
        match &Receiver::new(config.clone()).unwrap().receive(&stream)[..] {
            [packet] => ber.extend(payload, &packet.bits),
            _ => lost += 1,
        }
    }
    assert_eq!((lost, ber.errors), (0, 0));
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
        // In units of the noise: the channel estimate rests on two symbols and adds 1/2; the common phase, slope and gain rest on all carriers and
        // add 1/30. Together 10 log10(1.53) = 1.9 dB.
        assert!((evm.db() + snr_db - 1.9).abs() < 0.3, "{snr_db} dB: EVM {}", evm.db());
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
    assert!(Transmitter::new(config, Source::Repeat(vec![0; 3])).unwrap_err().to_string().starts_with("payload must be"));
}

#[test]
fn real_wifi_frames_are_found_with_their_carrier_offsets() {
    let Some(samples) = station() else { return };
    // The SIGNAL symbol and the first data symbols of 802.11a at 6 Mbit/s are BPSK.
    let config = Config { modulation: Modulation::Bpsk, clip: None, symbols: 10, ..Config::default() };
    let packets = Receiver::new(config.clone()).unwrap().receive(&samples);
    // The offsets that the recording's annotations give, in Hz; the station's cyclic shift of 200 ns is four samples.
    let offsets = [-35213.0, -36417.0, -35829.0, -35045.0, -35721.0, -35673.0, -35038.0, -34777.0, -34671.0, -34840.0];
    assert_eq!(packets.len(), offsets.len());
    for (i, (packet, offset)) in packets.iter().zip(offsets).enumerate() {
        assert_eq!(packet.start, 4160 * i as i64 - 4);
        assert!((packet.offset * 20e6 - offset).abs() < 500.0, "packet {i}: {} Hz instead of {offset}", packet.offset * 20e6);
        assert!(packet.evm.db() < -29.0, "packet {i}: EVM {} dB", packet.evm.db());
    }
}

#[test]
fn arrivals_are_right_to_a_fraction_of_a_sample() {
    // An oversampled stream, taken at every fourth sample from each of four phases, is delayed by quarters of a sample.
    let config = Config { clip: None, gap: 50, ..Config::default() };
    let fine = Config { oversampling: 4, ..config.clone() };
    let (_, signals) = frames(&fine, 20, 3);
    let stream: Vec<Complex32> = signals.concat();
    for (phase, snr_db, tolerance) in [(0, 60.0, 0.002), (1, 60.0, 0.002), (2, 60.0, 0.002), (3, 60.0, 0.002), (1, 20.0, 0.06)] {
        let mut samples = vec![Complex32::ZERO; 33];
        samples.extend(stream.iter().skip(4 - phase).step_by(4));
        samples.extend([Complex32::ZERO; 4]);
        add_noise(&mut samples, 10f64.powf(-snr_db / 10.0), &mut ChaCha8Rng::seed_from_u64(2));
        let packets = Receiver::new(config.clone()).unwrap().receive(&samples);
        assert_eq!(packets.len(), 20);
        for (i, packet) in packets.iter().enumerate() {
            let expected = 32.0 + phase as f64 / 4.0 + (i * (config.frame_samples() + config.gap)) as f64;
            assert!((packet.arrival - expected).abs() < tolerance, "phase {phase}: {} instead of {expected}", packet.arrival);
        }
    }
}

#[test]
fn a_saturated_amplifier_is_levelled_by_the_pilots() {
    // Rapp, p = 2, at an input back-off of 3 dB: the data's peaks lose more than the flat training.
    let config = Config { symbols: 50, ..Config::default() };
    let (payloads, signals) = frames(&config, 40, 12);
    let saturation = 10f32.powf(3.0 / 20.0);
    let rapp = |z: &Complex32| z / (1.0 + (z.norm() / saturation).powi(4)).powf(0.25);
    let stream: Vec<Complex32> = signals.iter().flatten().map(rapp).collect();
    let packets = Receiver::new(config.clone()).unwrap().receive(&stream);
    assert_eq!(packets.len(), 40);
    let table = Constellation::new(config.modulation);
    let (mut evm, mut gain, mut power) = (Evm::default(), 0.0, 0.0);
    for (packet, payload) in packets.iter().zip(&payloads) {
        let mut points = vec![Complex32::ZERO; packet.points.len()];
        table.map(payload, &mut points);
        for (z, point) in packet.points.iter().zip(&points) {
            evm.push(*z, *point);
            gain += f64::from((z * point.conj()).re);
            power += f64::from(point.norm_sqr());
        }
    }
    // Without the pilots' gain the points would be 6 % too small; what is left is the training's own distortion at the pilots.
    assert!((gain / power - 1.0).abs() < 0.04, "gain {}", gain / power);
    assert!(evm.db() < -16.5, "{}", evm.db());
}

#[test]
fn the_paper_waveform_arrives_with_the_distortion_of_its_clipping() {
    let config = Config { symbols: 50, ..Config::default() };
    let (_, signals) = frames(&config, 50, 13);
    let mut evm = Evm::default();
    Receiver::new(config).unwrap().push(&signals.concat(), |packet| evm.merge(&packet.evm));
    let (gain, distortion) = bussgang(10f64.powf(6.0 / 20.0));
    // The distortion spreads over all 64 carriers, the signal's power over 52.
    let expected = 10.0 * (distortion / (gain * gain) * 52.0 / 64.0).log10();
    assert!((evm.db() - expected).abs() < 0.5, "{} instead of {expected}", evm.db());
}

#[test]
fn a_hole_ends_the_frame_that_it_is_in_and_no_other() {
    let config = Config { symbols: 4, gap: 10, ..Config::default() };
    let (payloads, signals) = frames(&config, 3, 14);
    let mut receiver = Receiver::new(config).unwrap();
    let mut got = Vec::new();
    receiver.push(&signals[0], |packet| got.push(packet.clone()));
    receiver.push(&signals[1][..400], |packet| got.push(packet.clone()));
    receiver.gap(1000);
    receiver.push(&signals[2], |packet| got.push(packet.clone()));
    assert_eq!(got.len(), 2);
    assert_eq!((&got[0].bits, &got[1].bits), (&payloads[0], &payloads[2]));
    assert_eq!((got[0].start, got[1].start), (0, signals[0].len() as i64 + 1400));
}

#[test]
fn packets_are_found_in_noise_that_qpsk_can_bear() {
    let config = Config { gap: 300, symbols: 2, ..Config::preset("wifi").unwrap() };
    let (_, signals) = frames(&config, 1000, 15);
    let mut rng = ChaCha8Rng::seed_from_u64(16);
    let mut found = Vec::new();
    for snr_db in [4.0, 6.0, 10.0] {
        let mut stream = signals.concat();
        shift(&mut stream, 0.7 * 2.0 * config.carrier_spacing() / config.output_rate(), 0.0);
        add_noise(&mut stream, 10f64.powf(-snr_db / 10.0), &mut rng);
        found.push(Receiver::new(config.clone()).unwrap().receive(&stream).len());
    }
    println!("found of 1000 at 4, 6 and 10 dB: {found:?}");
    assert!(found[0] > 900 && found[1] > 990 && found[2] == 1000, "{found:?}");
}
