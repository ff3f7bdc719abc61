//! What the command reads besides recordings: parameters, scenarios, tables, points, waveforms, checkpoints, and its options.

use std::process::Stdio;
use std::time::Duration;

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin;
use rand::{Rng, seq::IndexedRandom};

#[path = "../common/fuzz.rs"]
mod common;
use common::{TOKENS, corpus, decent, mutate, rounds};

/// A file of the corpus, and the command that reads it.
const FILES: [(&str, &str); 6] = [
    ("params.toml", "track --preset a --samples 300 --filter nlms,fklms --params FILE --json out.json"),
    ("scenario.toml", "simulate --scenario FILE --samples 300 --out out"),
    ("table.csv", "fit FILE --filter nlms -o out.csv"),
    ("points.csv", "simulate --points FILE --samples 300 --out out"),
    ("wave.toml", "receive rx.cf32 --waveform FILE --json out.json"),
    ("table.csv", "track --preset a --samples 300 --filter nlms --checkpoint FILE --resume --json out.json"),
];

/// Options with a value in them, to be replaced.
const OPTIONS: [&str; 12] = [
    "track --preset a --samples 300 --filter nlms --mu 0.5 --taps 4 --skip 10 --align none",
    "track --preset a --samples 300 --filter fklms --budget 20 --lambda 0.9 --sigma 1 --kernel gaussian",
    "track --preset a --samples 300 --filter krlst --noise 0.1 --budget 10 --advance 1",
    "track rx.cf32 table.csv --format cf32_le --channel 0 --rate 1e6 --channels 1 --align 3",
    "simulate --samples 300 --doppler 1e-3 --snr-db 20 --taps 4 --decay-db 3 --out out",
    "simulate --samples 300 --profile 0:0,3:-6 --delay 2.5 --carrier-offset-hz 100 --adc-bits 8 --out out",
    "simulate --samples 300 --fft 64 --active 52 --pilots -21,-7,7,21 --cyclic-prefix 16 --modulation qam16 --out out",
    "simulate --samples 300 --amplifier rapp --smoothness 2 --ibo-db 3 --terms 1:0:1:0 --saleh 1,2,3,4 --out out",
    "fit table.csv --filter multinomial --classes 3 --eta 0.5 --offset 1,2,3",
    "inspect rx.cf32 --format cf32_le --rate 1e6 --channel 0 --show psd,envelope",
    "receive rx.cf32 --detector bdar --amplifier-oversampling 2 --channel 0",
    "tune rx.cf32 table.csv --format cf32_le --candidates 2 --seed 1 --samples 100 --burn-in 10",
];

/// Runs, and expects an end with a code that means something and words that a terminal can show.
fn sound(what: &str, folder: &std::path::Path, arguments: &[String]) {
    let mut command = std::process::Command::new(cargo_bin!("kaflow"));
    command.current_dir(folder).args(arguments).arg("--force").stdin(Stdio::null());
    let output = Command::from_std(command).timeout(Duration::from_secs(60)).output().unwrap();
    let (said, code) = (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code());
    assert!(matches!(code, Some(0..=2)), "{what}: {arguments:?} ended with {code:?}: {said}");
    assert!(!said.contains("panicked"), "{what}: {arguments:?}: {said}");
    said.lines().filter(|line| !line.is_empty()).for_each(|line| decent(what, line));
    assert!(code == Some(0) || !said.is_empty(), "{what}: {arguments:?} says nothing");
}

#[test]
fn the_command_ends_in_order_whatever_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("rx.cf32"), corpus("rx.cf32")).unwrap();
    std::fs::write(at("table.csv"), corpus("table.csv")).unwrap();
    rounds("command", |rng, what| {
        let arguments: Vec<String> = if rng.random_bool(0.5) {
            let (name, arguments) = FILES[rng.random_range(0..FILES.len())];
            let mut bytes = corpus(name);
            mutate(rng, &mut bytes);
            std::fs::write(at("input.toml"), bytes).unwrap();
            arguments.split(' ').map(|word| if word == "FILE" { "input.toml".into() } else { word.into() }).collect()
        } else {
            let mut words: Vec<String> = OPTIONS.choose(rng).unwrap().split(' ').map(str::to_owned).collect();
            // Not the samples: what is asked for may take its time. Not the folder either.
            let values: Vec<usize> = (2..words.len())
                .filter(|&i| words[i - 1].starts_with("--") && !["--samples", "--out"].contains(&words[i - 1].as_str()))
                .collect();
            let value = *values.choose(rng).unwrap();
            words[value] = TOKENS.choose(rng).unwrap().replace('\0', "0");
            words
        };
        sound(what, folder.path(), &arguments);
    });
}
