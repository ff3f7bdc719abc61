//! Pipes, standard input, and files without an end.

use std::io::Write;

use crate::{Bench, fifo};

/// Writes `bytes` into a named pipe, as often as it is opened.
fn feed(bench: &Bench, name: &str, bytes: Vec<u8>) {
    let path = bench.at(name);
    fifo(&path);
    std::thread::spawn(move || std::fs::OpenOptions::new().write(true).open(path).map(|mut pipe| drop(pipe.write_all(&bytes))));
}

#[test]
fn recordings_come_out_of_pipes() {
    let bench = Bench::new();
    let rx = std::fs::read(bench.at("rx.cf32")).unwrap();
    for name in ["-", "/dev/stdin", "/dev/fd/0"] {
        let done = bench.piped(&format!("inspect {name} --format cf32_le --rate 1e6 --json -"), &rx);
        let found: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{name}: {}", done.stderr));
        assert!(found["samples"] == 3000 && found["power"].as_f64().unwrap() > 0.01, "{found}");
    }
    feed(&bench, "pipe.cf32", rx.clone());
    bench.works("track tx.cf32 pipe.cf32 --align none --filter nlms --json piped.json");
    bench.works("track tx.cf32 rx.cf32 --align none --filter nlms --json plain.json");
    assert_eq!(bench.json("piped.json")["filters"][0]["nmse_db"], bench.json("plain.json")["filters"][0]["nmse_db"]);
    let done = bench.piped("track tx.cf32 - --format cf32_le --align none --filter nlms", &rx);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let done = bench.piped("receive - --format cf32_le", &rx);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

#[test]
fn archives_and_wav_come_out_of_pipes_too() {
    let bench = Bench::new();
    let wav = {
        let mut bytes = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x02\0\x40\x1f\0\0\0\x7d\0\0\x04\0\x10\0data\x20\0\0\0".to_vec();
        bytes.extend([1, 2, 3, 4].repeat(8));
        bytes
    };
    let done = bench.piped("inspect - --format wav", &wav);
    assert!(done.code == Some(0) && done.out().contains("8 samples"), "{} {}", done.out(), done.stderr);
    let tar =
        std::process::Command::new("tar").current_dir(bench.at("")).args(["cf", "-", "rx.sigmf-meta", "rx.sigmf-data"]).output().unwrap();
    let done = bench.piped("inspect - --format archive --verify", &tar.stdout);
    assert!(done.code == Some(0) && done.out().contains("3000 samples") && done.out().contains("right"), "{} {}", done.out(), done.stderr);
}

#[test]
fn tables_and_configurations_come_out_of_pipes() {
    let bench = Bench::new();
    let table = std::fs::read(bench.at("t.csv")).unwrap();
    let plain = bench.works("fit t.csv --filter nlms").stdout;
    assert_eq!(bench.piped("fit - --filter nlms", &table).stdout, plain);
    assert_eq!(bench.piped("fit /dev/stdin --filter nlms", &table).stdout, plain);
    feed(&bench, "pipe.csv", table);
    assert_eq!(bench.works("fit pipe.csv --filter nlms").stdout, plain);
    let done = bench.piped("track tx.cf32 rx.cf32 --filter nlms --align none --params - --json a.json", b"[nlms]\nmu = 0.25\n");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(bench.json("a.json")["filters"][0]["parameters"]["mu"], 0.25);
    let done = bench.piped("simulate --scenario - --samples 500 --out s", b"samples = 1000\n");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

#[test]
fn what_can_be_read_once_is_not_read_twice() {
    let bench = Bench::new();
    bench.refuses("track - - --format cf32_le", &["standard input was given twice"]);
    bench.refuses("track - /dev/stdin --format cf32_le", &["standard input was given twice"]);
    bench.refuses("track tx.cf32 - --format cf32_le --params -", &["standard input was given twice"]);
    bench.refuses("inspect -", &["--format"]);
    bench.refuses("inspect - --format sigmf", &["two files"]);
}

#[test]
fn what_has_no_end_is_refused() {
    let bench = Bench::new();
    let endless = std::fs::File::create(bench.at("endless.csv")).unwrap();
    endless.set_len(100 << 30).unwrap();
    bench.works("simulate --samples 300 --out folder");
    std::fs::remove_file(bench.at("folder/tx.sigmf-meta")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", bench.at("folder/tx.sigmf-meta")).unwrap();
    for (arguments, name) in [
        ("inspect /dev/zero --format cf32_le", "/dev/zero"),
        ("receive /dev/zero --format cf32_le", "/dev/zero"),
        ("track /dev/zero rx.cf32 --format cf32_le", "/dev/zero"),
        ("track /dev/zero", "/dev/zero"),
        ("track /dev/ptmx", "/dev/ptmx"),
        ("track folder", "folder/tx.sigmf-meta"),
        ("inspect folder/tx.sigmf-meta", "folder/tx.sigmf-meta"),
        ("track --samples 500 --filter nlms --params /dev/zero", "/dev/zero"),
        ("track --samples 500 --filter nlms --checkpoint /dev/zero --resume", "/dev/zero"),
        ("simulate --scenario /dev/zero --out s", "/dev/zero"),
        ("simulate --points /dev/zero --out s", "/dev/zero"),
        ("receive rx.cf32 --waveform /dev/zero", "/dev/zero"),
        ("fit /dev/zero", "/dev/zero"),
        ("fit endless.csv", "endless.csv"),
        ("track --samples 500 --filter nlms --params endless.csv", "endless.csv"),
    ] {
        let done = bench.run(arguments);
        assert_eq!(done.code, Some(2), "{arguments}: {}", done.stderr);
        assert!(done.stderr.contains(name) && done.stderr.len() < 1000, "{arguments}: {}", done.stderr);
    }
}
