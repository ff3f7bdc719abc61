//! The simulated radio, through SoapySDR as any program sees it.
#![cfg(feature = "soapy")]

use std::time::{Duration, Instant};

use kaflow::Complex32;
use kaflow::radio::DRIVER;
use soapysdr::{Device, Direction::Rx, Direction::Tx, ErrorCode, RxStream, TxStream};

const RATE: f64 = 5e6;

fn open(arguments: &str) -> Device {
    let device = Device::new(format!("driver={DRIVER},{arguments}").as_str()).unwrap();
    for direction in [Rx, Tx] {
        for channel in 0..4 {
            device.set_sample_rate(direction, channel, RATE).unwrap();
            device.set_gain(direction, channel, 40.0).unwrap();
            device.set_frequency(direction, channel, 5.4e9, ()).unwrap();
        }
    }
    device
}

/// Both streams, set up before either is activated, both starting at the same time.
fn duplex(device: &Device, tx: &[usize], rx: &[usize]) -> (TxStream<Complex32>, RxStream<Complex32>, i64) {
    let (mut tx, mut rx) = (device.tx_stream(tx).unwrap(), device.rx_stream(rx).unwrap());
    let start = device.get_hardware_time(None).unwrap() + 1_000_000;
    tx.activate(None).unwrap();
    rx.activate(Some(start)).unwrap();
    (tx, rx, start)
}

fn signal(n: usize) -> Vec<Complex32> {
    (0..n).map(|i| Complex32::from_polar(0.3 + 0.2 * ((i * i) % 7) as f32 / 7.0, (i * i % 1013) as f32)).collect()
}

fn read(rx: &mut RxStream<Complex32>, channels: usize, count: usize) -> Vec<Vec<Complex32>> {
    let mut heard = vec![vec![Complex32::ZERO; count]; channels];
    let mut at = 0;
    while at < count {
        let mut buffers: Vec<&mut [Complex32]> = heard.iter_mut().map(|h| &mut h[at..]).collect();
        at += rx.read(&mut buffers, 1_000_000).unwrap();
    }
    heard
}

fn nmse_db(reference: &[Complex32], estimate: &[Complex32]) -> f32 {
    let error: f32 = reference.iter().zip(estimate).map(|(a, b)| (a - b).norm_sqr()).sum();
    10.0 * (error / reference.iter().map(|a| a.norm_sqr()).sum::<f32>()).log10()
}

#[test]
fn what_is_sent_at_a_time_arrives_at_that_time_plus_the_delay() {
    let device = open("pace=fast,taps=0,snr_db=inf,amplifier=none,delay=40");
    let (mut tx, mut rx, start) = duplex(&device, &[0], &[0]);
    let sent = signal(30_000);
    let later = start + (10_000.0 / RATE * 1e9) as i64;
    tx.write_all(&[&sent[..10_000]], Some(start), false, 1_000_000).unwrap();
    tx.write_all(&[&sent[10_000..]], Some(later), true, 1_000_000).unwrap();
    let heard = read(&mut rx, 1, 29_000);
    assert!(heard[0][..40].iter().all(|z| z.norm() == 0.0));
    assert!(nmse_db(&sent[..28_000], &heard[0][40..28_040]) < -100.0);
}

#[test]
fn four_antennas_hear_four_antennas() {
    // With one path to each antenna the four signals mix with sixteen different coefficients.
    let device = open("pace=fast,taps=1,snr_db=inf,amplifier=none,delay=20,doppler_hz=0");
    let (mut tx, mut rx, start) = duplex(&device, &[0, 1, 2, 3], &[0, 1, 2, 3]);
    let sent: Vec<Vec<Complex32>> = (0..4).map(|k| signal(4100)[k..4000 + k].iter().map(|z| z * 0.1).collect()).collect();
    tx.write_all(&sent.iter().map(Vec::as_slice).collect::<Vec<_>>(), Some(start), true, 1_000_000).unwrap();
    let heard = read(&mut rx, 4, 4000);
    // Least squares by repeated projection finds the coefficients of each antenna; what they do not explain is nothing.
    for antenna in &heard {
        let mut rest: Vec<Complex32> = antenna[20..].to_vec();
        let power: f32 = rest.iter().map(|z| z.norm_sqr()).sum();
        for _ in 0..200 {
            for s in &sent {
                let overlap: Complex32 = rest.iter().zip(s).map(|(r, s)| r * s.conj()).sum();
                let h = overlap / s[..rest.len()].iter().map(|s| s.norm_sqr()).sum::<f32>();
                rest.iter_mut().zip(s).for_each(|(r, s)| *r -= h * s);
            }
        }
        assert!(rest.iter().map(|z| z.norm_sqr()).sum::<f32>() < 1e-6 * power);
    }
    assert!(nmse_db(&heard[0][20..], &heard[1][20..]) > -3.0, "two antennas hear the same");
}

#[test]
fn gain_drives_the_amplifier_into_saturation() {
    let level = |gain: f64| {
        let device = open("pace=fast,taps=0,snr_db=inf,delay=20");
        device.set_gain(Tx, 0, gain).unwrap();
        let (mut tx, mut rx, start) = duplex(&device, &[0], &[0]);
        tx.write_all(&[&[Complex32::new(0.5, 0.0); 2000]], Some(start), true, 1_000_000).unwrap();
        read(&mut rx, 1, 1000)[0][999].re
    };
    // Rapp, p = 2: y = x / (1 + x^4)^(1/4) with x = 0.5 times the gain.
    for gain in [0.0, 20.0, 40.0, 46.0, 60.0] {
        let x = 0.5 * 10f64.powf((gain - 40.0) / 20.0);
        let expected = x / (1.0 + x.powi(4)).powf(0.25);
        assert!((f64::from(level(gain)) - expected).abs() < 1e-3 * expected, "{gain} dB");
    }
}

#[test]
fn only_a_receiver_on_the_same_frequency_hears_more_than_noise() {
    for (frequency, heard) in [(5.4e9, true), (5.4e9 + 100e3, true), (5.401e9, false), (2.4e9, false)] {
        let device = open("pace=fast,taps=0,snr_db=40,delay=20");
        device.set_frequency(Rx, 0, frequency, ()).unwrap();
        let (mut tx, mut rx, start) = duplex(&device, &[0], &[0]);
        tx.write_all(&[&[Complex32::new(0.5, 0.0); 9000]], Some(start), true, 1_000_000).unwrap();
        let power = read(&mut rx, 1, 8000)[0][100..].iter().map(|z| z.norm_sqr()).sum::<f32>() / 7900.0;
        assert_eq!(power > 0.1, heard, "{frequency}: {power}");
        assert!(power > 0.5e-4, "noise is always there");
    }
}

#[test]
fn radios_on_the_same_air_hear_each_other() {
    let far = "pace=fast,taps=0,snr_db=inf,amplifier=none,delay=20,air=room";
    let (sender, receiver) = (open(&format!("{far},serial=1")), open(&format!("{far},serial=2")));
    let (mut tx, mut rx) = (sender.tx_stream(&[0]).unwrap(), receiver.rx_stream(&[0]).unwrap());
    tx.activate(None).unwrap();
    rx.activate(None).unwrap();
    let sent = signal(5000);
    tx.write_all(&[&sent], None, true, 1_000_000).unwrap();
    assert!(nmse_db(&sent[..4000], &read(&mut rx, 1, 4020)[0][20..]) < -100.0);
}

#[test]
fn transmitter_and_receiver_may_have_rates_of_their_own() {
    let device = open("pace=fast,taps=0,snr_db=inf,amplifier=none,delay=40,serial=rates");
    let tone =
        |n: usize, rate: f64| Complex32::from_polar(0.5, (n as f64 / rate * 0.3e6 * std::f64::consts::TAU % std::f64::consts::TAU) as f32);
    for sent_at in [2e6, 12e6] {
        device.set_sample_rate(Tx, 0, sent_at).unwrap();
        assert_eq!((device.sample_rate(Tx, 0).unwrap(), device.sample_rate(Rx, 0).unwrap()), (sent_at, RATE));
        let (mut tx, mut rx, start) = duplex(&device, &[0], &[0]);
        // Writes that follow each other, with and without a time, are one signal.
        let sent: Vec<Complex32> = (0..60_000).map(|n| tone(n, sent_at)).collect();
        let later = start + (12_000.0 / sent_at * 1e9) as i64;
        tx.write_all(&[&sent[..12_000]], Some(start), false, 1_000_000).unwrap();
        tx.write_all(&[&sent[12_000..]], Some(later), true, 1_000_000).unwrap();
        let count = (60_000.0 * RATE / sent_at) as usize;
        let heard = &read(&mut rx, 1, count + 200)[0];
        let expected: Vec<Complex32> = (0..count).map(|n| tone(n, RATE)).collect();
        let inner = 300..count - 300;
        let error = nmse_db(&expected[inner.clone()], &heard[40..][inner]);
        assert!(error < -70.0, "{sent_at}: {error} dB");
        // It ends when it has lasted as long as it was, and not before.
        assert!(heard[count - 40].norm() > 0.3 && heard[count + 160..].iter().all(|z| z.norm() < 1e-3), "{sent_at}");
    }
}

#[test]
fn each_radio_has_a_time_of_its_own_until_one_pulse_sets_both() {
    let arguments = "pace=fast,air=pulse";
    let first = open(&format!("{arguments},serial=1"));
    let mut rx = first.rx_stream::<Complex32>(&[0]).unwrap();
    rx.activate(None).unwrap();
    read(&mut rx, 1, 10_000);
    let second = open(&format!("{arguments},serial=2"));
    let times = || [&first, &second].map(|device| device.get_hardware_time(None).unwrap());
    let [a, b] = times();
    assert!(a >= 2_000_000 && b == 0, "{a} {b}: 10,000 samples have passed before the second was opened");
    for device in [&first, &second] {
        device.set_time_source("external").unwrap();
        device.set_hardware_time(Some("PPS"), 7_000_000_000).unwrap();
    }
    assert_eq!(times(), [6_000_000_000 + a; 2], "both show 7 s at the next whole second of the air");
}

#[test]
fn a_second_stream_a_wrong_value_and_a_wrong_rate_are_refused_by_name() {
    let device = open("pace=fast,serial=refuse");
    let _rx = device.rx_stream::<Complex32>(&[0]).unwrap();
    assert!(device.rx_stream::<Complex32>(&[1]).err().unwrap().message.contains("in use"));
    assert!(device.tx_stream::<Complex32>(&[4]).err().unwrap().message.contains("between 0 and 3"));
    let error = device.set_sample_rate(Rx, 0, 100e6).unwrap_err();
    assert!(error.message.contains("rate must be between 100000 and 61440000"), "{}", error.message);
    let error = Device::new(format!("driver={DRIVER},doppler_hz=fast").as_str()).err().unwrap();
    assert!(error.message.contains("doppler_hz must be a number, got fast"), "{}", error.message);
    device.write_setting("snr_db", "12").unwrap();
    assert_eq!(device.read_setting("snr_db").unwrap(), "12");
    let error = device.write_setting("snr", "12").unwrap_err();
    assert!(error.message.contains("did you mean 'snr_db'"), "{}", error.message);
    let error = device.set_gain_element(Rx, 0, "frequency", 5.3e9).unwrap_err();
    assert!(error.message.contains("unknown gain element 'frequency'"), "{}", error.message);
}

#[test]
fn paced_streams_take_their_time_and_say_what_went_wrong() {
    let device = open("pace=real,taps=0,snr_db=inf,serial=paced");
    let (mut tx, mut rx) = (device.tx_stream(&[0]).unwrap(), device.rx_stream::<Complex32>(&[0]).unwrap());
    rx.activate(None).unwrap();
    let began = Instant::now();
    read(&mut rx, 1, 50_000);
    assert!(began.elapsed() >= Duration::from_millis(9));
    // Late for its time, and then too late to go on.
    tx.activate(None).unwrap();
    let now = device.get_hardware_time(None).unwrap();
    tx.write(&[&[Complex32::ONE; 100]], Some(now - 1_000_000), false, 100_000).unwrap();
    let mut status = || tx.read_status(&mut 0, &mut 0, &mut 0, 300_000).unwrap_err().code;
    assert_eq!(status(), ErrorCode::TimeError);
    std::thread::sleep(Duration::from_millis(200));
    // A receiver that does not read for 200 ms has lost samples.
    let mut buffer = vec![Complex32::ZERO; 1000];
    let mut waiting = (0..10).map(|_| rx.read(&mut [&mut buffer], 100_000));
    // What it had before comes first.
    assert_eq!(waiting.find_map(Result::err).unwrap().code, ErrorCode::Overflow);
    let before = rx.read(&mut [&mut buffer], 100_000).map(|_| rx.time_ns()).unwrap();
    assert!(before > now + 150_000_000);
    assert_eq!(status(), ErrorCode::Underflow);
}

#[test]
fn a_transmitter_that_has_not_begun_has_nothing_to_tell_and_is_to_be_asked_again() {
    // SoapyRemote asks from the start, and never again after "not supported".
    for pace in ["real", "fast"] {
        let device = open(&format!("pace={pace},serial=status"));
        let mut tx = device.tx_stream::<Complex32>(&[0]).unwrap();
        assert_eq!(tx.read_status(&mut 0, &mut 0, &mut 0, 1000).unwrap_err().code, ErrorCode::Timeout);
    }
}

#[test]
fn a_paced_radio_takes_and_brings_samples_in_small_pieces() {
    // As over a network: packets of 503 samples. All of them fit into the transmitter, and come so slowly that a machine with much else to do reads them in time.
    let device = open("pace=real,taps=0,snr_db=inf,amplifier=none,delay=40,serial=pieces");
    [Rx, Tx].into_iter().for_each(|direction| device.set_sample_rate(direction, 0, 250e3).unwrap());
    let (mut tx, mut rx) = (device.tx_stream(&[0]).unwrap(), device.rx_stream::<Complex32>(&[0]).unwrap());
    let start = device.get_hardware_time(None).unwrap() + 1_000_000_000;
    tx.activate(None).unwrap();
    rx.activate(Some(start)).unwrap();
    let sent = signal(100_000);
    let mut at = Some(start);
    for piece in sent.chunks(503) {
        tx.write_all(&[piece], at.take(), false, 5_000_000).unwrap();
    }
    let mut heard = vec![Complex32::ZERO; 99_000];
    let mut at = 0;
    while at < heard.len() {
        let end = heard.len().min(at + 503);
        at += rx.read(&mut [&mut heard[at..end]], 2_000_000).unwrap();
    }
    assert!(nmse_db(&sent[..98_000], &heard[40..98_040]) < -100.0);
}

#[test]
fn unpaced_samples_per_second() {
    let device = open("pace=fast,doppler_hz=5000,snr_db=20");
    let (mut tx, mut rx, start) = duplex(&device, &[0], &[0]);
    let total = 4_000_000;
    let began = Instant::now();
    let writer = std::thread::spawn(move || {
        let sent = signal(1 << 14);
        let mut at = Some(start);
        for _ in 0..total / sent.len() + 2 {
            tx.write_all(&[&sent], at.take(), false, 5_000_000).unwrap();
        }
        tx
    });
    let mut buffer = vec![Complex32::ZERO; 8192];
    let mut heard = 0;
    while heard < total {
        heard += rx.read(&mut [&mut buffer], 5_000_000).unwrap();
    }
    println!("unpaced: {:.1} MS/s", total as f64 / began.elapsed().as_secs_f64() / 1e6);
    drop(rx);
    drop(writer.join().unwrap());
}

#[test]
fn a_clock_and_a_carrier_are_off_by_what_the_arguments_say() {
    // A tone at a tenth of the rate: its frequency at the receiver tells carrier and clock.
    for (arguments, expected) in [
        ("carrier_offset_hz=2000", 0.01 + 2000.0 / RATE),
        ("carrier_offset=-0.001", 0.009),
        ("sample_offset_ppm=50", 0.01 * (1.0 + 50e-6)),
        ("sample_offset_ppm=-300,carrier_offset_hz=-1000", 0.01 * (1.0 - 300e-6) - 1000.0 / RATE),
    ] {
        let device = open(&format!("pace=fast,taps=0,snr_db=inf,amplifier=none,delay=20,{arguments}"));
        let (mut tx, mut rx, start) = duplex(&device, &[0], &[0]);
        let tone: Vec<Complex32> = (0..100_000)
            .map(|n| Complex32::from_polar(0.5, (std::f64::consts::TAU * 0.01 * f64::from(n) % std::f64::consts::TAU) as f32))
            .collect();
        tx.write_all(&[&tone], Some(start), true, 1_000_000).unwrap();
        let heard = read(&mut rx, 1, 99_000);
        let turns = |from: usize, by: usize| {
            let sum: kaflow::Complex64 = heard[0][from..]
                .windows(by + 1)
                .map(|w| w[by] * w[0].conj())
                .map(|z| kaflow::Complex64::new(z.re.into(), z.im.into()))
                .sum();
            sum.arg() / std::f64::consts::TAU
        };
        // One step tells the frequency roughly, many tell it finely.
        let rough = turns(100, 1);
        let steps = 1000.0;
        let fine = (turns(100, 1000) + (rough * steps - turns(100, 1000)).round()) / steps;
        assert!((fine - expected).abs() < 1e-8, "{arguments}: {fine}, not {expected}");
    }
}

#[test]
fn tuning_takes_a_carrier_offset_out_and_dc_mode_the_dc() {
    let device = open("pace=fast,taps=0,snr_db=inf,amplifier=none,delay=20,carrier_offset_hz=5400,dc_re=0.1");
    device.set_frequency(Rx, 0, 5.4e9 + 5400.0, ()).unwrap();
    device.set_dc_offset_mode(Rx, 0, true).unwrap();
    let (mut tx, mut rx, start) = duplex(&device, &[0], &[0]);
    tx.write_all(&[&[Complex32::new(0.5, 0.0); 9000]], Some(start), true, 1_000_000).unwrap();
    let heard = &read(&mut rx, 1, 8000)[0][100..];
    assert!(heard.iter().all(|z| (z - heard[0]).norm() < 1e-4 && (z.norm() - 0.5).abs() < 1e-4));
    device.set_dc_offset_mode(Rx, 0, false).unwrap();
    tx.write_all(&[&[Complex32::new(0.5, 0.0); 9000]], None, true, 1_000_000).unwrap();
    let offset = read(&mut rx, 1, 8000)[0][2000] - heard[0];
    assert!((offset - Complex32::new(0.1, 0.0)).norm() < 1e-3, "{offset}");
}

#[test]
fn a_half_duplex_radio_does_one_thing_at_a_time() {
    let device = open("pace=fast,half_duplex=true");
    assert!(!device.full_duplex(Rx, 0).unwrap());
    let (mut tx, mut rx) = (device.tx_stream::<Complex32>(&[0]).unwrap(), device.rx_stream::<Complex32>(&[0]).unwrap());
    tx.activate(None).unwrap();
    assert_eq!(rx.activate(None).unwrap_err().code, ErrorCode::NotSupported);
    tx.deactivate(None).unwrap();
    rx.activate(None).unwrap();
}
