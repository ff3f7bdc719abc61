//! Options with the device's own names and ranges: taken, read back, or refused with what there is instead.

use std::path::Path;
use std::process::{Command, Stdio};

use kaflow::iq::{Pairs, Synchroniser};
use num_complex::Complex32;
use serde_json::Value as Json;

const DEVICE: &str = "driver=kaflow-testbed,pace=fast,doppler_hz=5";

/// Runs `kaflow live` for a moment; gives the exit code, what it said and what it wrote.
fn live(device: &str, arguments: &[&str]) -> (Option<i32>, String, Option<Json>) {
    live_for("0.2", device, arguments)
}

fn live_for(seconds: &str, device: &str, arguments: &[&str]) -> (Option<i32>, String, Option<Json>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("found.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kaflow"));
    command.args(["live", "--device", device, "--seconds", seconds, "--filter", "nlms"]).args(arguments).arg("--json").arg(&path);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), text, read(&path))
}

fn read(path: &Path) -> Option<Json> {
    std::fs::read_to_string(path).ok().map(|text| serde_json::from_str(&text).unwrap())
}

#[test]
fn each_end_has_settings_of_its_own_and_all_are_read_back_beside_what_was_asked_for() {
    let mut arguments =
        vec!["--rate", "1e6", "--freq", "5.4e9", "--rx-freq", "5.400002e9", "--tx-bandwidth", "2e6", "--rx-bandwidth", "1e6"];
    arguments.extend(["--lo-offset", "-3e6", "--tx-rate", "1e6", "--tx-gain", "PA=20", "--tx-gain", "DRIVER=26.1", "--rx-gain", "40.25"]);
    arguments.extend(["--antenna", "RX", "--clock-source", "external", "--setting", "delay=57", "--setting", "taps=1"]);
    arguments.extend(["--stream-args", "bufflen=500", "--dc", "auto"]);
    let (code, text, found) = live(DEVICE, &arguments);
    let found = found.unwrap();
    assert_eq!(code, Some(0), "{text}");
    let (tx, rx) = (&found["tx"], &found["rx"]);
    assert_eq!((&tx["frequency_hz"], &rx["frequency_hz"]), (&5.4e9.into(), &5.400002e9.into()));
    assert_eq!((&tx["bandwidth_hz"], &rx["bandwidth_hz"]), (&2e6.into(), &1e6.into()));
    assert_eq!((&tx["gain_db"], &rx["gain_db"], &rx["agc"]), (&46.1.into(), &40.25.into(), &false.into()));
    assert_eq!((&rx["clock_source"], &rx["time_source"]), (&"external".into(), &"internal".into()));
    let asked = &rx["asked"];
    assert_eq!((&asked["lo_offset_hz"], &asked["gain_db"], &asked["dc_auto"]), (&(-3e6).into(), &40.25.into(), &true.into()));
    assert_eq!((&tx["asked"]["gains_db"]["PA"], &asked["settings"]["delay"], &asked["ppm"]), (&20.0.into(), &"57".into(), &Json::Null));
    // What was set did something: the carrier is off by as much as the frequencies, and the report tells the delay, to the sample.
    let (carrier, delay) = (found["alignment"]["carrier_hz"].as_f64().unwrap(), found["alignment"]["delay"].as_f64().unwrap());
    assert!((carrier + 2000.0).abs() < 20.0 && (delay - 57.0).abs() < 0.1, "{carrier} Hz, {delay}");
    assert!(text.contains("delay 57.0"), "{text}");
}

#[test]
fn either_end_may_have_its_own_rate_and_the_filters_lose_nothing() {
    let device = "driver=kaflow-testbed,pace=fast,taps=2,doppler_hz=5,delay=57,amplifier=none";
    let nmse_db = |found: &Json| found["filters"][0]["nmse_db"].as_f64().unwrap();
    let one = nmse_db(&live(device, &["--rate", "1e6"]).2.unwrap());
    for (tx, rx) in [("4e6", "1e6"), ("1e6", "2e6"), ("1.25e6", "1e6")] {
        let (code, text, found) = live(device, &["--tx-rate", tx, "--rx-rate", rx]);
        assert_eq!(code, Some(0), "{text}");
        let found = found.unwrap();
        let [sent, received] = [tx, rx].map(|rate| Json::from(rate.parse::<f64>().unwrap()));
        assert_eq!((&found["tx"]["rate_hz"], &found["tx"]["asked"]["rate_hz"]), (&sent, &sent), "{text}");
        assert_eq!((&found["rx"]["rate_hz"], &found["rx"]["asked"]["rate_hz"]), (&received, &received), "{text}");
        assert_eq!(found["sample_rate"], received);
        // Both ends start at one time: the delay is that of the radio.
        let delay = found["alignment"]["delay"].as_f64().unwrap();
        assert!((delay - 57.0).abs() < 0.6, "{tx} to {rx}: delay {delay}");
        assert!(nmse_db(&found) < one + 1.0, "{tx} to {rx}: {} dB, {one} dB at one rate", nmse_db(&found));
    }
}

#[test]
fn two_radios_at_one_pulse_have_one_time_and_one_clock() {
    let (folder, wire) = (tempfile::tempdir().unwrap(), "driver=kaflow-testbed,air=pulse,half_duplex=true,taps=0,delay=57");
    let path = folder.path().join("found.json");
    let (tx, rx) = (format!("{wire},serial=tx"), format!("{wire},serial=rx"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_kaflow"));
    command.args(["live", "--tx-device", &tx, "--rx-device", &rx, "--rate", "2e5", "--seconds", "1", "--filter", "nlms"]);
    command.args(["--time-source", "external", "--clock-source", "external", "--json"]).arg(&path);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = read(&path).unwrap();
    // Their times begin when they are opened, one after the other: without the pulse the delay would be that in between as well.
    assert_eq!((&found["alignment"]["delay"], &found["one_clock"]), (&57.0.into(), &true.into()));
    assert_eq!((&found["tx"]["time_source"], &found["rx"]["time_source"]), (&"external".into(), &"external".into()));
}

#[test]
fn the_oscillator_is_corrected() {
    // 0.1 ppm of 5.4 GHz.
    let (_, text, found) = live(DEVICE, &["--rate", "1e6", "--tx-ppm", "0.1"]);
    let found = found.unwrap();
    let carrier = found["alignment"]["carrier_hz"].as_f64().unwrap();
    assert!((carrier - 540.0).abs() < 20.0 && found["tx"]["ppm"] == 0.1 && found["rx"]["ppm"] == 0.0, "{carrier} Hz: {text}");
}

#[test]
fn the_delay_through_a_wire_is_that_of_the_radio_in_every_run() {
    for (delay, seed) in [("0", "1"), ("33", "2"), ("1234", "3")] {
        let device = format!("driver=kaflow-testbed,pace=fast,taps=0,delay={delay},seed={seed}");
        let found = live(&device, &["--rate", "2e6", "--tx-gain", "46", "--rx-gain", "30"]).2.unwrap();
        assert_eq!(found["alignment"]["delay"].as_f64().unwrap(), delay.parse::<f64>().unwrap());
    }
}

#[test]
fn what_a_device_has_not_is_refused_with_the_nearest_that_it_has() {
    for (arguments, words) in [
        (&["--rate", "1e9"][..], "--rate must be between 100000 and 61440000 samples a second"),
        (&["--rate", "1e9"], "the nearest being 61440000, got 1e9"),
        (&["--rate", "1e6", "--freq", "7e9"], "the nearest being 6000000000, got 7e9"),
        (&["--rate", "1e6", "--tx-freq", "1e6"], "--tx-freq must be between 70000000 and 6000000000 Hz"),
        (&["--rate", "1e6", "--rx-freq", "1e6"], "the nearest being 70000000, got 1e6"),
        (&["--rate", "1e6", "--bandwidth", "1e9"], "the nearest being 56000000, got 1e9"),
        (&["--rate", "1e6", "--lo-offset", "1e9"], "--lo-offset must be between -30000000 and 30000000 Hz"),
        (&["--rate", "1e6", "--tx-gain", "61"], "the nearest being 60, got 61"),
        (&["--rate", "1e6", "--rx-gain", "LNA=31"], "rx-gain LNA must be between 0 and 30 dB"),
        (&["--rate", "1e6", "--tx-rate", "1e9"], "--tx-rate must be between 100000 and 61440000 samples a second"),
        (&["--rate", "1e6", "--tx-rate", "1234567.1"], "last as long as a whole number of transmitted ones, the nearest being 1234490.7"),
        (&["--rate", "1e6", "--tx-rate", "4e6", "--linearize"], "--tx-rate must be 1000000, that of the receiver, with --linearize"),
        (&["--rate", "1e6", "--antenna", "RX2"], "unknown antenna 'RX2', did you mean 'RX'?"),
        (&["--rate", "1e6", "--clock-source", "gps"], "unknown clock source 'gps'; there are internal, external"),
        (&["--rate", "1e6", "--time-source", "gps"], "unknown time source 'gps'"),
        (&["--rate", "1e6", "--setting", "dopler=3"], "unknown setting 'dopler', did you mean 'doppler'?"),
        (&["--rate", "1e6", "--setting", "doppler=3"], "doppler must be between 0 and 0.5 cycles per sample"),
        (&["--rate", "1e6", "--setting", "pace=slow"], "pace must be one of real, fast"),
        (&["--rate", "1e6", "--setting", "pace"], "--setting must be NAME=VALUE"),
        (&["--rate", "1e6", "--stream-args", "bufflen"], "--stream-args must be NAME=VALUE"),
        (&["--rate", "1e6", "--iq", "auto"], "has no balance of I and Q of its own"),
        (&["--rate", "1e6", "--ppm", "2000"], "correction must be between -1000 and 1000"),
        (&["--rate", "1e6", "--reconnect", "0"], "--reconnect must be more than 0"),
        (&["--rate", "1e6", "--agc", "--rx-gain", "30"], "cannot be used with"),
    ] {
        let (code, text, found) = live(DEVICE, arguments);
        assert!(code.is_some_and(|code| code > 0) && text.contains(words) && found.is_none(), "{arguments:?}: {text}");
    }
    let (code, text, _) = live(DEVICE, &["--rate", "1e6", "--stream-args", "buflen=3"]);
    assert!(code == Some(0) && text.contains("'buflen' is not among the arguments that its driver lists: bufflen"), "{text}");
}

#[test]
fn a_reference_from_outside_must_be_there() {
    let without = format!("{DEVICE},reference=false");
    let (code, text, _) = live(&without, &["--rate", "1e6", "--clock-source", "external"]);
    assert!(code == Some(1) && text.contains("is not locked to its clock source 'external'"), "{text}");
    let (code, text, _) = live(&without, &["--rate", "1e6", "--time-source", "external"]);
    assert!(code == Some(1) && text.contains("no pulse a second comes from its time source 'external'"), "{text}");
    let outside = ["--rate", "1e6", "--clock-source", "external", "--time-source", "external"];
    let (code, text, found) = live_for("3", "driver=kaflow-testbed", &outside);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(found.unwrap()["rx"]["time_source"], "external");
}

#[test]
fn a_probe_lists_every_option_with_its_range() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("devices.json");
    let output =
        Command::new(env!("CARGO_BIN_EXE_kaflow")).args(["devices", "driver=kaflow-testbed", "--probe", "--json"]).arg(&path).output();
    let text = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
    let has = |name: &str, said: &str| text.lines().any(|line| line.trim_start().starts_with(name) && line.contains(said));
    for (name, said) in [
        ("--rx-freq ", "70000000 to 6000000000 Hz"),
        ("--tx-rate ", "100000 to 61440000 samples a second"),
        ("--tx-gain PA= ", "0 to 30 dB"),
        ("--tx-antenna ", "TX"),
        ("--lo-offset ", "-30000000 to 30000000 Hz"),
        ("--stream-args bufflen= ", "1 to 8192 samples"),
        ("--clock-source ", "internal, external"),
        ("sensors ", "ref_locked true"),
        ("--setting pace= ", "real or fast; now real"),
        ("rx corrects ", "--agc, --dc, --ppm"),
    ] {
        assert!(has(name, said), "{name}: {text}");
    }
    let found = read(&path).unwrap();
    assert_eq!(found["devices"][0]["probe"]["--rx-gain LNA="], serde_json::json!([[0.0, 30.0]]));
    // Every option that it names is one.
    let help = Command::new(env!("CARGO_BIN_EXE_kaflow")).args(["live", "--help"]).output().unwrap();
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    for name in text.split_whitespace().map(|word| word.trim_end_matches(',')).filter(|word| word.starts_with("--")) {
        assert!(help.contains(&format!("{name} ")) || help.contains(&format!("{name}\n")), "{name}: {help}");
    }
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    assert!(at("--device <") < at("\nRadio:") && at("--tx-gain <") < at("\nRadio:") && at("\nRadio:") < at("--lo-offset <"), "{help}");
}

/// Noise that a transmitter could repeat.
fn noise(length: usize) -> Vec<Complex32> {
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..length).map(|_| Complex32::new(draw(), draw())).collect()
}

#[test]
fn a_frame_longer_than_a_million_samples_is_found_wherever_it_begins() {
    let frame = noise(3_000_000);
    for start in [0, 1_234_567, 2_999_950] {
        let received: Vec<_> = (0..40_000).map(|n| frame[(start + n) % frame.len()] * Complex32::new(0.3, 0.4)).collect();
        let (mut sync, mut out) = (Synchroniser::repeated(frame.clone()).unwrap(), Pairs::default());
        sync.receive(&received, None);
        sync.finish(&mut out).unwrap();
        assert_eq!(sync.status().searches, 1, "{start}");
        let late = (frame.len() - start) % frame.len();
        assert_eq!((sync.status().delay_samples.round() as usize) % frame.len(), late, "{start}");
        assert!(
            out.rx.len() > 30_000 && out.rx.iter().zip(&out.tx).all(|(y, x)| (y - x * Complex32::new(0.3, 0.4)).norm() < 1e-3),
            "{start}"
        );
    }
}

#[test]
fn a_long_frame_from_a_file_is_tracked_and_one_that_is_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frame.cf32");
    let write = |samples: &[Complex32]| {
        let bytes: Vec<u8> = samples.iter().flat_map(|z| [z.re.to_le_bytes(), z.im.to_le_bytes()].concat()).collect();
        std::fs::write(&path, bytes).unwrap();
    };
    write(&noise(1_500_000));
    let name = path.to_string_lossy().into_owned();
    let arguments = ["--rate", "5e6", "--tx", &name, "--format", "cf32_le", "--backoff", "12", "--tx-gain", "40"];
    let (code, text, found) = live(DEVICE, &arguments);
    assert_eq!(code, Some(0), "{text}");
    let found = found.unwrap();
    assert!(found["filters"][0]["nmse_db"].as_f64().unwrap() < -10.0, "{text}");
    assert_eq!(found["alignment"]["delay"].as_f64().unwrap().round(), 40.0, "{text}");
    std::fs::File::create(&path).unwrap().set_len(8 * ((1 << 23) + 1)).unwrap();
    let (code, text, _) = live(DEVICE, &arguments);
    assert!(code == Some(2) && text.contains("of at most 8388608 samples: it has 8388609"), "{text}");
}
