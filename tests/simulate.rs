//! `kaflow simulate`: what it writes, what it refuses, and that it can be repeated to the bit.
#![cfg(feature = "cli")]

use assert_cmd::Command;
use kaflow::Complex32;
use kaflow::channel::{Scenario, TestBed};
use kaflow::iq::{Pair, Recording};
use std::path::Path;
use tempfile::TempDir;

/// Runs `kaflow simulate` with words and `--out DIR`; exit status, standard output and error.
fn simulate(out: &Path, words: &str) -> (i32, String, String) {
    let mut command = Command::cargo_bin("kaflow").unwrap();
    let result = command.arg("simulate").arg("--out").arg(out).args(words.split_whitespace()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (result.status.code().unwrap(), text(result.stdout), text(result.stderr))
}

#[track_caller]
fn succeeds(out: &Path, words: &str) -> String {
    let (status, stdout, stderr) = simulate(out, words);
    assert_eq!((status, stderr.as_str()), (0, ""), "{words}");
    stdout
}

fn all(recording: &mut Recording) -> Vec<Complex32> {
    let mut samples = vec![Complex32::ZERO; recording.len() as usize * recording.channels()];
    for channel in 0..recording.channels() {
        recording.select(channel).unwrap();
        recording.seek(0).unwrap();
        let one = recording.read_up_to(usize::MAX).unwrap();
        assert_eq!(one.len() as u64, recording.len());
        samples.iter_mut().skip(channel).step_by(recording.channels()).zip(one).for_each(|(to, z)| *to = z);
    }
    samples
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const FILES: [&str; 8] = [
    "pair.sigmf-collection",
    "rx.sigmf-data",
    "rx.sigmf-meta",
    "scenario.toml",
    "taps.sigmf-data",
    "taps.sigmf-meta",
    "tx.sigmf-data",
    "tx.sigmf-meta",
];

#[test]
fn every_preset_is_a_valid_pair_that_its_scenario_repeats_to_the_bit() {
    for preset in ["paper", "wifi", "a", "b", "d", "e"] {
        let folder = TempDir::new().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        succeeds(&first, &format!("--preset {preset} --samples 5000 --seed 9 --delay 20 --sample-offset-ppm 0.001"));
        let text = std::fs::read_to_string(first.join("scenario.toml")).unwrap();
        succeeds(&second, &format!("--scenario {}", first.join("scenario.toml").display()));
        assert_eq!(names(&first), FILES);
        for name in FILES {
            assert_eq!(std::fs::read(first.join(name)).unwrap(), std::fs::read(second.join(name)).unwrap(), "{preset}: {name}");
        }
        let mut pair = Pair::open(&first).unwrap();
        assert!(pair.verify().unwrap());
        assert_eq!((pair.tx.len(), pair.rx.len(), pair.delay), (5000, 5000, Some(20.0)));
        assert_eq!((pair.rx.meta().global.sample_rate, pair.rx.meta().captures[0].frequency), (Some(20e6), Some(5.4e9)));
        let scenario: Scenario = toml::from_str(&text).unwrap();
        let run = TestBed::run(&scenario).unwrap();
        assert_eq!((all(&mut pair.tx), all(&mut pair.rx)), (run.tx[0].clone(), run.rx[0].clone()), "{preset}");
    }
}

#[test]
fn files_are_the_same_on_every_machine() {
    // The first digits of SHA-512. A change here is a change of every recording ever simulated: say so in the changelog.
    let folder = TempDir::new().unwrap();
    succeeds(
        folder.path(),
        "--preset d --samples 2000 --seed 1 --taps-every 8 --carrier-offset-hz 1234.5 --linewidth-hz 100 --adc-bits 10 --delay 0.3",
    );
    for (name, expected) in [("tx", "7cb838f4bc87397c"), ("rx", "597840e14d9a59a9"), ("taps", "ffcd0165569907e5")] {
        let meta: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder.path().join(format!("{name}.sigmf-meta"))).unwrap()).unwrap();
        let hash = meta["global"]["core:sha512"].as_str().unwrap();
        assert!(!expected.is_empty() && hash.starts_with(expected), "{name}: {hash}");
    }
}

#[test]
fn taps_in_the_file_explain_the_received_signal() {
    let folder = TempDir::new().unwrap();
    succeeds(
        folder.path(),
        "--preset a --amplifier none --snr-db none --samples 800 --taps-every 1 --profile 0:0,4:-3 --doppler 0.002 --tx-antennas 2 --rx-antennas 3",
    );
    let open = |name: &str| Recording::open(folder.path().join(name), None).unwrap();
    let (mut tx, mut rx, mut taps) = (open("tx.sigmf-meta"), open("rx.sigmf-meta"), open("taps.sigmf-meta"));
    assert_eq!((tx.channels(), rx.channels(), taps.channels()), (2, 3, 12));
    let extra = &taps.meta().global.extra;
    assert_eq!(extra["kaflow:taps_delays"], serde_json::json!([0, 4]));
    assert_eq!((extra["kaflow:taps_tx_antennas"].clone(), extra["kaflow:taps_rx_antennas"].clone()), (2.into(), 3.into()));
    let (tx, rx, taps) = (all(&mut tx), all(&mut rx), all(&mut taps));
    for n in 4..800 {
        for r in 0..3 {
            let mut expected = Complex32::ZERO;
            for t in 0..2 {
                for (l, delay) in [0, 4].into_iter().enumerate() {
                    expected += taps[n * 12 + (r * 2 + t) * 2 + l] * tx[(n - delay) * 2 + t];
                }
            }
            assert!((rx[n * 3 + r] - expected).norm() < 1e-5, "sample {n}, antenna {r}");
        }
    }
}

#[test]
fn holes_are_gaps_of_both_recordings() {
    let folder = TempDir::new().unwrap();
    let said = succeeds(folder.path(), "--preset a --samples 30000 --drop-rate 3e-4 --drop-length 30");
    let pair = Pair::open(folder.path()).unwrap();
    let gaps = |recording: &Recording| recording.gaps().map(|g| format!("{g:?}")).collect::<Vec<_>>();
    assert!(!gaps(&pair.tx).is_empty());
    assert_eq!(gaps(&pair.tx), gaps(&pair.rx));
    assert!(pair.tx.len() < 30_000 && said.contains("samples lost"), "{said}");
}

#[test]
fn nothing_is_overwritten_without_force() {
    let folder = TempDir::new().unwrap();
    succeeds(folder.path(), "--preset b --samples 1000");
    let before: Vec<Vec<u8>> = FILES.iter().map(|f| std::fs::read(folder.path().join(f)).unwrap()).collect();
    let (status, stdout, stderr) = simulate(folder.path(), "--preset a --samples 2000");
    assert_eq!((status, stdout.as_str()), (2, ""));
    assert!(stderr.starts_with("kaflow: ") && stderr.contains("--force") && stderr.lines().count() == 1, "{stderr}");
    let after: Vec<Vec<u8>> = FILES.iter().map(|f| std::fs::read(folder.path().join(f)).unwrap()).collect();
    assert!(before == after);
    succeeds(folder.path(), "--preset a --samples 2000 --force");
    assert_eq!(Pair::open(folder.path()).unwrap().rx.len(), 2000);
    let scenario: Scenario = toml::from_str(&std::fs::read_to_string(folder.path().join("scenario.toml")).unwrap()).unwrap();
    assert_eq!(scenario, Scenario { samples: 2000, ..Scenario::preset("a").unwrap() });
}

#[test]
fn every_option_reaches_the_scenario() {
    let folder = TempDir::new().unwrap();
    let csv = folder.path().join("points.csv");
    std::fs::write(&csv, "input,output,phase_deg\n0.5,0.6,1\n1,1,5\n2,1.1,-8\n").unwrap();
    let table = format!("--points {}", csv.display());
    let cases = [
        (
            "--samples 77 --seed 5 --frequency 1e9 --taps-every 3",
            vec!["samples = 77", "seed = 5", "frequency = 1000000000.0", "taps_every = 3"],
        ),
        ("--real --snr-db 3.5 --frames false", vec!["real = true", "snr_db = 3.5", "frames = false"]),
        (
            "--fft 128 --active 100 --pilots -5,5 --cyclic-prefix 20 --modulation qam64 --oversampling 2 --window 3 --symbols 4 --gap 9 --sample-rate 1e6 --payload-seed 8",
            vec![
                "fft = 128",
                "active = 100",
                "pilots = [-5, 5]",
                "cyclic_prefix = 20",
                "\"qam64\"",
                "oversampling = 2",
                "window = 3",
                "symbols = 4",
                "gap = 9",
                "sample_rate = 1000000.0",
                "seed = 8",
            ],
        ),
        ("--clip-db 3 --clip-filter --clip-iterations 2", vec!["level_db = 3.0", "filter = true", "iterations = 2"]),
        ("--amplifier limiter --ibo-db -4.5", vec!["model = \"limiter\"", "ibo_db = -4.5"]),
        ("--smoothness 3", vec!["[amplifier.model.rapp]", "smoothness = 3.0", "ibo_db = -6.0"]),
        ("--saleh 2,1,-1,9", vec!["[amplifier.model.saleh]", "alpha_a = 2.0", "alpha_phi = -1.0"]),
        ("--amplifier saleh", vec!["alpha_a = 2.1587"]),
        ("--terms 1:0:1:0,3:1:-0.1", vec!["amplifier.model.memory-polynomial", "order = 3", "delay = 1", "re = -0.1"]),
        (&table, vec!["amplifier.model.table", "output = 1.1", "phase_deg = -8.0"]),
        ("--taps 2 --decay-db 1", vec!["taps = 2", "decay_db = 1.0"]),
        ("--profile 0:0,3:-6 --doppler 0:1e-3,500:5e-3", vec!["[3, -6.0]", "[500, 0.005]"]),
        ("--rician-k-db 6 --sight-angle-deg 10", vec!["rician_k_db = 6.0", "sight_angle_deg = 10.0"]),
        (
            "--antennas 2 --tx-correlation 0.5 --rx-correlation -0.5",
            vec!["tx_antennas = 2", "rx_antennas = 2", "tx_correlation = 0.5", "rx_correlation = -0.5"],
        ),
        (
            "--delay 1.5 --sample-offset-ppm -7 --carrier-offset-hz 2e4 --carrier-phase -1 --linewidth-hz 200 --loop-bandwidth-hz 2e3",
            vec![
                "delay = 1.5",
                "sample_offset_ppm = -7.0",
                "carrier_offset = 0.001",
                "carrier_phase = -1.0",
                "linewidth = 0.00001",
                "loop_bandwidth = 0.0001",
            ],
        ),
        (
            "--iq-gain-db -1 --iq-phase-deg 2 --dc-re 0.1 --dc-im -0.1 --adc-bits 8 --adc-headroom-db 9 --drop-rate 0.01 --drop-length 5",
            vec![
                "iq_gain_db = -1.0",
                "iq_phase_deg = 2.0",
                "dc_re = 0.1",
                "dc_im = -0.1",
                "adc_bits = 8",
                "adc_headroom_db = 9.0",
                "drop_rate = 0.01",
                "drop_length = 5.0",
            ],
        ),
    ];
    for (k, (words, keys)) in cases.iter().enumerate() {
        let out = folder.path().join(k.to_string());
        let samples = if words.contains("--samples") { "" } else { "--samples 2000 " };
        succeeds(&out, &format!("{samples}{words}"));
        let text = std::fs::read_to_string(out.join("scenario.toml")).unwrap();
        for key in keys {
            assert!(text.contains(key), "{words}: no {key} in\n{text}");
        }
    }
    let out = folder.path().join("off");
    succeeds(&out, "--samples 500 --amplifier none --no-fading --snr-db none --clip-db none");
    let scenario: Scenario = toml::from_str(&std::fs::read_to_string(out.join("scenario.toml")).unwrap()).unwrap();
    assert!(scenario.amplifier.is_none() && scenario.fading.is_none() && scenario.snr_db.is_none() && scenario.ofdm.clip.is_none());
    let mut pair = Pair::open(&out).unwrap();
    assert_eq!(all(&mut pair.tx), all(&mut pair.rx));
}

#[test]
fn bad_input_is_refused_in_one_line_that_names_it() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let unknown = file("unknown.toml", "samples = 100\n\n[fading]\ndoppler = 1e-3\nprofil = 3\n");
    let broken = file("broken.toml", "samples = \n");
    let value = file("value.toml", "samples = 100\nsnr_db = \"loud\"\n");
    let points = file("points.csv", "input,output\n0.5,x\n");
    let cases = [
        ("--preset papr".to_owned(), "did you mean 'paper'?"),
        ("--samples 0".into(), "samples must be"),
        ("--snr-db nan".into(), "--snr-db must be"),
        ("--doppler 0.7".into(), "doppler must be between 0 and 0.5"),
        ("--ibo-db inf".into(), "--ibo-db must be"),
        ("--fft 5".into(), "fft must be"),
        ("--amplifier table".into(), "points must be given"),
        ("--amplifier saleh --smoothness 2".into(), "amplifier must be rapp when --smoothness is given, got saleh"),
        ("--terms 1:2".into(), "terms must be a list of order:delay:re:im, got '1:2'"),
        (format!("--scenario {unknown}"), "unknown.toml: line 5: unknown field `profil`"),
        (format!("--scenario {broken}"), "broken.toml: line 1"),
        (format!("--scenario {value}"), "value.toml: line 2: invalid type: string"),
        ("--scenario nowhere.toml".into(), "nowhere.toml: No such file"),
        (format!("--points {points}"), "points.csv: line 2"),
    ];
    for (words, expected) in cases {
        let out = folder.path().join("out");
        let (status, stdout, stderr) = simulate(&out, &words);
        assert_eq!((status, stdout.as_str()), (2, ""), "{words}");
        assert!(stderr.starts_with("kaflow: ") && stderr.contains(expected) && stderr.lines().count() == 1, "{words}: {stderr}");
        assert!(!out.exists(), "{words} left something behind");
    }
    for words in ["--preset a --scenario x.toml", "--no-fading --taps 3", "--amplifer rapp", "--snr-db loud"] {
        let (status, _, stderr) = simulate(&folder.path().join("out"), words);
        assert!(status == 2 && stderr.starts_with("kaflow: ") && stderr.lines().count() == 1, "{words}: {stderr}");
    }
    let blocked = file("blocked", "a file");
    let (status, _, stderr) = simulate(Path::new(&blocked), "--preset a");
    assert!(status == 2 && stderr.contains("blocked"), "{stderr}");
}
