//! Scenarios and the test bed that runs them.

use super::*;
use kaflow::filter::{Filter, Guard, Nlms};
use kaflow::ofdm::{RandomBits, Receiver};

fn preset(name: &str, seed: u64) -> Scenario {
    Scenario { seed, ..Scenario::preset(name).unwrap() }
}

/// `10 log10(Σ|y − p|² / Σ|y|²)`.
fn nmse_db(y: &[Complex32], p: &[Complex32]) -> f64 {
    let error: f64 = y.iter().zip(p).map(|(y, p)| wide(y - p).norm_sqr()).sum();
    db(error / y.iter().map(|y| wide(*y).norm_sqr()).sum::<f64>())
}

#[test]
fn an_oracle_reaches_the_noise_floor_of_every_preset() {
    for (name, floor_db) in [("a", -20.04), ("d", -20.04), ("b", -10.41), ("e", -10.41), ("paper", -20.04)] {
        for seed in 1..4 {
            let noisy = TestBed::run(&preset(name, seed)).unwrap();
            let clean = TestBed::run(&Scenario { snr_db: None, ..preset(name, seed) }).unwrap();
            assert_eq!(noisy.tx, clean.tx);
            near(nmse_db(&noisy.rx[0], &clean.rx[0]), floor_db, 0.2, &format!("preset {name}, seed {seed}"));
        }
    }
}

#[test]
fn nlms_gets_what_it_is_known_to_get() {
    for (name, taps, mu, expected_db) in [("a", 4, 0.25, -11.9), ("d", 4, 0.2, -8.0), ("b", 2, 0.1, -5.8), ("e", 3, 0.08, -3.5)] {
        let mut mean = 0.0;
        for seed in 1..=8 {
            let run = TestBed::run(&preset(name, seed)).unwrap();
            let mut tracker = Guard::new(Nlms::<f32>::new(taps, mu, 1e-6).unwrap().on_stream());
            let mut prediction = vec![Complex32::ZERO; 6000];
            tracker.track(&run.tx[0], &run.rx[0], &mut prediction, None);
            mean += nmse_db(&run.rx[0][500..], &prediction[500..]) / 8.0;
        }
        near(mean, expected_db, 0.6, &format!("preset {name}"));
    }
}

#[test]
fn a_noise_free_record_is_the_amplified_signal_through_the_true_taps() {
    let mut scenario = preset("d", 3);
    (scenario.snr_db, scenario.taps_every) = (None, 1);
    let run = TestBed::run(&scenario).unwrap();
    let mut amplified = run.tx[0].clone();
    let config = scenario.amplifier.as_ref().unwrap();
    let mut amplifier = Amplifier::new(config.model.clone(), config.ibo_db).unwrap();
    amplifier.set_input_power(power(&run.tx[0])).unwrap();
    amplifier.process(&mut amplified);
    assert_eq!(run.taps.len(), 4 * 6000);
    for n in 3..6000 {
        let expected: Complex32 = (0..4).map(|l| run.taps[4 * n + l] * amplified[n - l]).sum();
        assert!((run.rx[0][n] - expected).norm() < 1e-5, "sample {n}");
    }
}

#[test]
fn preset_e_is_real_valued_and_the_others_are_not() {
    let real = TestBed::run(&preset("e", 1)).unwrap();
    assert!(real.tx[0].iter().chain(&real.rx[0]).chain(&real.taps).all(|z| z.im == 0.0));
    near(power(&real.tx[0]), 1.0, 0.05, "power of the real signal");
    let complex = TestBed::run(&preset("b", 1)).unwrap();
    assert!(complex.rx[0].iter().all(|z| z.im != 0.0));
    let error = TestBed::new(&Scenario { real: true, ..preset("wifi", 1) }).unwrap_err().to_string();
    assert!(error.contains("carrier_offset must be 0 for a real-valued signal"), "{error}");
}

#[test]
fn a_reset_bed_repeats_itself_and_another_seed_does_not() {
    for name in Scenario::PRESETS {
        let mut scenario = preset(name, 2);
        scenario.samples = 9000;
        scenario.impairments.sample_offset_ppm = 30.0;
        scenario.impairments.drop_rate = 1e-3;
        let first = TestBed::run(&scenario).unwrap();
        let mut bed = TestBed::new(&scenario).unwrap();
        let mut again = Vec::new();
        while let Some(chunk) = bed.next_chunk() {
            again.extend_from_slice(&chunk.rx[0]);
        }
        assert_eq!(first.rx[0], again, "{name}");
        let other = TestBed::run(&Scenario { seed: 3, ..scenario }).unwrap();
        assert_ne!(first.rx[0][..100], other.rx[0][..100]);
        assert_ne!(first.tx[0][500..600], other.tx[0][500..600]);
    }
}

#[test]
fn a_receiver_gets_every_frame_of_the_wifi_preset_and_its_carrier_offset() {
    for seed in 1..=4 {
        let scenario = Scenario { snr_db: None, ..preset("wifi", seed) };
        let run = TestBed::run(&scenario).unwrap();
        let config = scenario.waveform(0);
        let packets = Receiver::new(config.clone()).unwrap().receive(&run.rx[0]);
        let frames = scenario.samples as usize / (config.frame_samples() + config.gap);
        assert!((frames..=frames + 1).contains(&packets.len()), "seed {seed}: {} of {frames} frames", packets.len());
        let mut bits = RandomBits::new(config.seed);
        let mut sent = vec![0; config.payload_bits()];
        for packet in &packets[..frames] {
            bits.fill(&mut sent);
            assert!(packet.bits == sent, "seed {seed}: frame at {} is damaged", packet.start);
            near(packet.offset, 1e-3, 2e-5, "carrier offset");
        }
    }
}

#[test]
fn every_antenna_sends_its_own_signal_and_gets_its_own_noise() {
    let mut scenario = preset("d", 1);
    let fading = scenario.fading.as_mut().unwrap();
    (fading.tx_antennas, fading.rx_antennas) = (4, 3);
    let run = TestBed::run(&scenario).unwrap();
    assert_eq!((run.tx.len(), run.rx.len()), (4, 3));
    assert_eq!(run.taps.len(), 4 * 4 * 3 * 6000usize.div_ceil(16));
    let correlation = |a: &[Complex32], b: &[Complex32]| {
        let sum: Complex64 = a.iter().zip(b).map(|(a, b)| wide(a * b.conj())).sum();
        sum.norm() / (power(a) * power(b)).sqrt() / a.len() as f64
    };
    // They share their pilots, 4 of 52 carriers.
    assert!(correlation(&run.tx[0], &run.tx[3]) < 0.12);
    let clean = TestBed::run(&Scenario { snr_db: None, ..scenario }).unwrap();
    let noise: Vec<Vec<Complex32>> = run.rx.iter().zip(&clean.rx).map(|(y, c)| y.iter().zip(c).map(|(y, c)| y - c).collect()).collect();
    assert!(correlation(&noise[0], &noise[2]) < 0.05);
    near(db(power(&noise[0]) / power(&noise[1])), 0.0, 0.2, "noise is the same at all antennas");
}

#[test]
fn a_delay_is_a_delay_and_holes_are_in_both_streams() {
    let mut scenario = preset("a", 1);
    scenario.fading = None;
    (scenario.amplifier, scenario.snr_db) = (None, None);
    scenario.impairments.delay = 5000.0;
    let run = TestBed::run(&scenario).unwrap();
    assert!(run.rx[0][..5000].iter().all(|z| *z == Complex32::ZERO));
    assert_eq!(run.rx[0][5000..], run.tx[0][..1000]);
    scenario.impairments.delay = 0.0;
    let whole = TestBed::run(&scenario).unwrap();
    assert_eq!(whole.tx, whole.rx);
    (scenario.impairments.drop_rate, scenario.impairments.drop_length) = (2e-3, 40.0);
    let gaps = TestBed::run(&scenario).unwrap();
    assert_eq!(gaps.tx, gaps.rx);
    let mut rebuilt = Vec::new();
    let mut from = 0;
    for gap in &gaps.gaps {
        rebuilt.extend_from_slice(&gaps.tx[0][from..gap.at as usize]);
        from = gap.at as usize;
        let next = rebuilt.len();
        rebuilt.extend_from_slice(&whole.tx[0][next..next + gap.length as usize]);
    }
    rebuilt.extend_from_slice(&gaps.tx[0][from..]);
    assert!(!gaps.gaps.is_empty() && rebuilt[..] == whole.tx[0][..rebuilt.len()]);
}

#[test]
fn scenarios_survive_being_written_down() {
    for name in Scenario::PRESETS {
        let scenario = preset(name, 7);
        let text = serde_json::to_string(&scenario).unwrap();
        assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), scenario, "{name}");
    }
    let error = serde_json::from_str::<Scenario>(r#"{"samples": 5, "snr": 3}"#).unwrap_err().to_string();
    assert!(error.contains("unknown field `snr`") && error.contains("snr_db"), "{error}");
    let error = Scenario::preset("papr").unwrap_err().to_string();
    assert!(error.contains("did you mean 'paper'"), "{error}");
}

#[test]
fn a_scenario_that_cannot_be_is_refused() {
    let edit = |change: fn(&mut Scenario)| {
        let mut scenario = preset("a", 1);
        change(&mut scenario);
        TestBed::new(&scenario).unwrap_err().to_string()
    };
    for (error, culprit) in [
        (edit(|s| s.samples = 0), "samples"),
        (edit(|s| s.seed = u64::MAX), "seed"),
        (edit(|s| s.taps_every = 0), "taps_every"),
        (edit(|s| s.snr_db = Some(f64::NAN)), "snr_db"),
        (edit(|s| s.impairments.delay = -1.0), "delay"),
        (edit(|s| s.impairments.drop_length = 0.0), "drop_length"),
        (edit(|s| s.impairments.adc_headroom_db = f64::NAN), "adc_headroom_db"),
        (edit(|s| s.ofdm.fft = 3), "fft"),
        (edit(|s| s.fading.as_mut().unwrap().doppler = Doppler::Constant(3.0)), "doppler"),
    ] {
        assert!(error.starts_with(culprit), "{error}");
    }
}

#[test]
fn hostile_numbers_are_refused_or_give_finite_samples() {
    type Change = fn(&mut Scenario, f64);
    let fields: [Change; 34] = [
        |s, v| s.frequency = v,
        |s, v| s.snr_db = Some(v),
        |s, v| s.seed = v as u64,
        |s, v| s.taps_every = v as u64,
        |s, v| s.ofdm.seed = v as u64,
        |s, v| s.ofdm.fft = v as usize,
        |s, v| s.ofdm.active = v as usize,
        |s, v| s.ofdm.cyclic_prefix = v as usize,
        |s, v| s.ofdm.oversampling = v as usize,
        |s, v| s.ofdm.window = v as usize,
        |s, v| s.ofdm.gap = v as usize,
        |s, v| s.ofdm.sample_rate = v,
        |s, v| s.ofdm.clip.as_mut().unwrap().level_db = v,
        |s, v| s.amplifier.as_mut().unwrap().ibo_db = v,
        |s, v| s.amplifier.as_mut().unwrap().model = Model::Rapp { smoothness: v },
        |s, v| s.amplifier.as_mut().unwrap().model = Model::Saleh { alpha_a: 2.0, beta_a: v, alpha_phi: v, beta_phi: 9.0 },
        |s, v| s.fading.as_mut().unwrap().doppler = Doppler::Constant(v),
        |s, v| s.fading.as_mut().unwrap().doppler = Doppler::Points(vec![(3, v), (v as u64, 0.1)]),
        |s, v| s.fading.as_mut().unwrap().profile = Profile::exponential(v as u32, 1.0),
        |s, v| s.fading.as_mut().unwrap().profile = Profile::exponential(3, v),
        |s, v| s.fading.as_mut().unwrap().profile = Profile::Paths(vec![(v as u32, 0.0), (2, v)]),
        |s, v| s.fading.as_mut().unwrap().rician_k_db = Some(v),
        |s, v| s.fading.as_mut().unwrap().tx_antennas = v as usize,
        |s, v| s.fading.as_mut().unwrap().rx_antennas = v as usize,
        |s, v| s.fading.as_mut().unwrap().rx_correlation = v,
        |s, v| s.impairments.sample_offset_ppm = v,
        |s, v| s.impairments.carrier_offset = v,
        |s, v| s.impairments.carrier_phase = v,
        |s, v| s.impairments.linewidth = v,
        |s, v| s.impairments.iq_gain_db = v,
        |s, v| s.impairments.dc_re = v,
        |s, v| (s.impairments.adc_bits, s.impairments.adc_headroom_db) = (8, v),
        |s, v| s.impairments.drop_rate = v,
        |s, v| (s.impairments.drop_rate, s.impairments.drop_length) = (0.1, v),
    ];
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 0.3, 1.0, 17.0, 99.0, 5000.0, 1e9, 1e30, 1e300, -1e300, 1e-300];
    for (k, field) in fields.iter().enumerate() {
        for value in values {
            let mut scenario = preset("a", 1);
            scenario.samples = 400;
            field(&mut scenario, value);
            if let Ok(run) = TestBed::run(&scenario) {
                let mut samples = run.tx.iter().chain(&run.rx).flatten().chain(&run.taps);
                assert!(samples.all(|z| z.re.is_finite() && z.im.is_finite()), "field {k}, value {value}");
            }
        }
    }
}

#[test]
fn samples_are_the_same_on_every_machine() {
    // FNV-1a over the bits of everything. A change of this number is a change of every recording ever simulated: say so in the changelog.
    let mut scenario = preset("wifi", 1);
    scenario.samples = 3000;
    scenario.impairments.linewidth = 1e-5;
    scenario.impairments.sample_offset_ppm = 20.0;
    scenario.impairments.iq_gain_db = 0.2;
    let fading = scenario.fading.as_mut().unwrap();
    (fading.doppler, fading.rician_k_db) = (Doppler::Constant(0.01), Some(3.0));
    let mut differ = Vec::new();
    for (model, expected) in [
        (Model::Rapp { smoothness: 3.0 }, 0x7a92_798a_b38e_f763),
        (Model::saleh(), 0xc681_e7f0_3566_3271),
        (measured(), 0x1c41_80d1_c9ff_a869),
        (polynomial(), 0xe6cd_bae7_a312_d864),
    ] {
        scenario.amplifier.as_mut().unwrap().model = model.clone();
        let run = TestBed::run(&scenario).unwrap();
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for z in run.tx[0].iter().chain(&run.rx[0]).chain(&run.taps) {
            for byte in z.re.to_le_bytes().into_iter().chain(z.im.to_le_bytes()) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
        differ.extend((hash != expected).then(|| format!("{model:?}: {hash:#018x}")));
    }
    assert!(differ.is_empty(), "{differ:?}");
}
