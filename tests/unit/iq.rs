//! Recordings on disk: what is written comes back, what is broken is refused with its place, and nothing panics.
#![cfg(feature = "blocks")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kaflow::Complex32;
use kaflow::iq::sigmf::{Annotation, Meta};
use kaflow::iq::{Datatype, Format, Pair, Raw, Recording, Writer};
use proptest::prelude::*;
use serde_json::{Map, json};
use tempfile::TempDir;

fn ramp(n: usize) -> Vec<Complex32> {
    (0..n).map(|i| Complex32::new((i % 100) as f32 / 128.0, -((i % 64) as f32) / 128.0)).collect()
}

fn write(path: &Path, meta: Meta, samples: &[Complex32]) -> Meta {
    let mut writer = Writer::create(path, meta, false).unwrap();
    writer.write(samples).unwrap();
    writer.finish().unwrap()
}

fn cf32(rate: f64) -> Meta {
    Meta::new(Datatype::CF32_LE, Some(rate))
}

fn message<T: std::fmt::Debug>(result: kaflow::Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn every_datatype_and_channel_comes_back() {
    let dir = TempDir::new().unwrap();
    for name in ["cf32_le", "cf32_be", "ci16_le", "ci16_be", "ci8", "cu8", "cf64_le", "ci32_be"] {
        for channels in [1, 3] {
            let path = dir.path().join(format!("{name}_{channels}"));
            let mut meta = Meta::new(name.parse().unwrap(), Some(1e6));
            meta.global.num_channels = Some(channels);
            let samples = ramp(3000);
            write(&path, meta, &samples);

            let mut recording = Recording::open(&path, None).unwrap();
            assert_eq!(recording.len(), 3000 / channels);
            assert!(recording.verify().unwrap());
            for channel in 0..channels as usize {
                recording.select(channel).unwrap();
                for from in [0, 7] {
                    recording.seek(from).unwrap();
                    let one = recording.read_up_to(usize::MAX).unwrap();
                    let first = from as usize * channels as usize + channel;
                    let expected: Vec<_> = samples.iter().copied().skip(first).step_by(channels as usize).collect();
                    assert_eq!(one, expected, "{name}, channel {channel} from {from}");
                }
            }
            assert!(message(recording.select(channels as usize)).contains("channel must be below"));
        }
    }
}

#[test]
fn real_samples_are_read_with_a_zero_imaginary_part() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("real.rf32_le");
    fs::write(&path, [1.5_f32, -2.0].map(f32::to_le_bytes).concat()).unwrap();
    let mut recording = Recording::open(&path, None).unwrap();
    assert_eq!(recording.read_up_to(10).unwrap(), [Complex32::new(1.5, 0.0), Complex32::new(-2.0, 0.0)]);
}

#[test]
fn a_gap_is_a_capture_with_a_jumped_index() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("gaps");
    let mut meta = cf32(1e6);
    meta.captures[0].frequency = Some(5.4e9);
    let mut writer = Writer::create(&path, meta, false).unwrap();
    let samples = ramp(1000);
    writer.write(&samples[..300]).unwrap();
    writer.gap(50).unwrap();
    writer.gap(7).unwrap();
    writer.write(&samples[300..900]).unwrap();
    writer.gap(1).unwrap();
    writer.write(&samples[900..]).unwrap();
    let meta = writer.finish().unwrap();
    let index: Vec<_> = meta.captures.iter().map(|c| (c.sample_start, c.global_index, c.frequency)).collect();
    assert_eq!(index, [(0, None, Some(5.4e9)), (300, Some(357), Some(5.4e9)), (900, Some(958), Some(5.4e9))]);

    let mut recording = Recording::open(&path, None).unwrap();
    let gaps: Vec<_> = recording.gaps().map(|g| (g.at, g.length)).collect();
    assert_eq!(gaps, [(300, 57), (900, 1)]);
    let mut reads = Vec::new();
    let mut buffer = vec![Complex32::default(); 400];
    loop {
        let gap = recording.gap().map(|g| g.length);
        let n = recording.read(&mut buffer).unwrap();
        if n == 0 {
            break;
        }
        reads.push((n, gap));
    }
    assert_eq!(reads, [(300, None), (400, Some(57)), (200, None), (100, Some(1))]);
    recording.seek(301).unwrap();
    assert_eq!(recording.gap(), None);
    recording.seek(0).unwrap();
    assert_eq!(recording.read_up_to(usize::MAX).unwrap(), samples);
}

#[test]
fn what_is_on_disk_is_valid_at_any_time() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("killed");
    let remark = |start| Annotation { sample_start: start, sample_count: Some(1 << 40), label: Some("x".into()), ..Default::default() };
    let meta = Meta { annotations: (1..=20).map(|round| remark(10 * round)).collect(), ..cf32(1e6) };
    let mut writer = Writer::create(&path, meta, false).unwrap();
    let check = |expected_len: Option<u64>| {
        let mut recording = Recording::open(&path, None).unwrap();
        assert_eq!(recording.warnings(), Vec::<String>::new());
        assert!(!recording.verify().unwrap(), "no hash before the end");
        if let Some(len) = expected_len {
            assert_eq!(recording.len(), len);
        }
    };
    check(Some(0));
    for round in 1..=20 {
        writer.write(&ramp(50_000)).unwrap();
        check(None);
        writer.gap(3).unwrap();
        check(Some(50_000 * round));
    }
    // As good as killed: neither `finish` nor `drop`.
    std::mem::forget(writer);
    check(Some(1_000_000));
    assert_eq!(Recording::open(&path, None).unwrap().gaps().count(), 20, "the gap after the last sample, too");

    assert!(message(Writer::create(&path, cf32(1e6), false)).contains("exists already; overwrite it with --force"));
    assert_eq!(Writer::create(&path, cf32(1e6), true).unwrap().finish().unwrap().captures.len(), 1);
}

#[test]
fn many_gaps_stay_cheap_and_right() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("lossy");
    let mut writer = Writer::create(&path, cf32(1e6), false).unwrap();
    for _ in 0..20_000 {
        writer.write(&ramp(10)).unwrap();
        writer.gap(1).unwrap();
    }
    writer.finish().unwrap();
    let mut recording = Recording::open(&path, None).unwrap();
    assert_eq!((recording.len(), recording.gaps().map(|g| g.length).sum::<u64>()), (200_000, 20_000));
    let mut buffer = [Complex32::default(); 64];
    let mut seen = 0;
    loop {
        seen += recording.gap().map_or(0, |g| g.length);
        if recording.read(&mut buffer).unwrap() == 0 {
            break;
        }
    }
    assert_eq!(seen, 20_000);
}

#[test]
fn not_a_number_is_counted_with_its_place() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("nan");
    let mut samples = ramp(100);
    samples[17].im = f32::NAN;
    samples[40].re = f32::INFINITY;
    write(&path, cf32(1e6), &samples);
    let mut recording = Recording::open(&path, None).unwrap();
    recording.read_up_to(100).unwrap();
    let found = recording.not_finite().unwrap();
    assert_eq!((found.count, found.first), (2, 17));
}

#[test]
fn broken_recordings_are_refused_with_their_place() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a");
    write(&path, cf32(1e6), &ramp(100));
    let (meta, data) = (path.with_extension("sigmf-meta"), path.with_extension("sigmf-data"));
    let good: serde_json::Value = serde_json::from_slice(&fs::read(&meta).unwrap()).unwrap();
    let with = |edit: &dyn Fn(&mut serde_json::Value)| {
        let mut changed = good.clone();
        edit(&mut changed);
        fs::write(&meta, changed.to_string()).unwrap();
        message(Recording::open(&path, None))
    };
    let error = with(&|m| m["captures"] = json!([{"core:sample_start": 101}]));
    assert!(error.contains("captures[0] core:sample_start: 101 lies past the end of the data, which has 100"), "{error}");
    let error = with(&|m| m["captures"] = json!([{"core:sample_start": 50}, {"core:sample_start": 20}]));
    assert!(error.contains("captures[1] core:sample_start: 20 comes after 50"), "{error}");
    let error = with(&|m| m["captures"] = json!([{"core:sample_start": 0}, {"core:sample_start": 20, "core:global_index": 5}]));
    assert!(error.contains("captures[1] core:global_index: 5 goes back"), "{error}");
    let error = with(&|m| m["captures"] = json!([{"core:sample_start": 0, "core:header_bytes": 9_000_000_000_000_000_000_u64}]));
    assert!(error.contains("together they exceed the 800 bytes"), "{error}");
    let error = with(&|m| m["global"]["core:datatype"] = "ci16".into());
    assert!(error.contains("global core:datatype") && error.contains("ci16_le or ci16_be"), "{error}");

    fs::write(&meta, good.to_string()).unwrap();
    let mut bytes = fs::read(&data).unwrap();
    bytes[123] ^= 1;
    fs::write(&data, &bytes).unwrap();
    assert!(message(Recording::open(&path, None).unwrap().verify()).contains("core:sha512"));
    fs::write(&data, &bytes[..795]).unwrap();
    let error = message(Recording::open(&path, None));
    assert!(error.contains("a.sigmf-data: offset 792: 3 stray bytes after 99 whole samples"), "{error}");

    let odd = dir.path().join("b.bin");
    fs::write(&odd, [1, 2, 3]).unwrap();
    assert!(message(Recording::open(&odd, None)).contains("--format"));
    assert!(message(Recording::open(&odd, Some("cu8"))).contains("offset 2: 1 stray bytes"));
    assert!(message(Recording::open(dir.path().join("none.cu8"), None)).contains("none.cu8: "));
    let many = Format::Raw(Raw { channels: usize::MAX, ..Raw::new(Datatype::CF32_LE) });
    assert!(message(Recording::open_as(&odd, Some(many))).contains("channels must be between 1 and 4096"));
}

#[test]
fn headers_and_trailers_of_foreign_data_files_are_skipped() {
    let dir = TempDir::new().unwrap();
    let meta = dir.path().join("foreign.sigmf-meta");
    fs::write(dir.path().join("foreign.dat"), [9, 9, 9, 128, 192, 128, 192, 7, 64, 128, 5, 5]).unwrap();
    let text = json!({
        "global": {"core:datatype": "cu8", "core:version": "1.2.0", "core:dataset": "foreign.dat", "core:trailing_bytes": 2, "core:offset": 1000},
        "captures": [{"core:sample_start": 1000, "core:header_bytes": 3}, {"core:sample_start": 1002, "core:header_bytes": 1}],
        "annotations": []
    });
    fs::write(&meta, text.to_string()).unwrap();
    let mut recording = Recording::open(&meta, None).unwrap();
    let z = |re, im| Complex32::new(re, im);
    assert_eq!(recording.read_up_to(9).unwrap(), [z(0.0, 0.5), z(0.0, 0.5), z(-0.5, 0.0)]);
}

#[test]
fn a_file_of_100_gb_is_read_anywhere_with_a_small_buffer() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("huge.ci16_le");
    let bytes = 100_u64 << 30;
    // Sparse: it takes no room, where the file system can do that.
    if let Err(error) = fs::File::create(&path).and_then(|file| file.set_len(bytes)) {
        eprintln!("SKIPPED: no sparse file of 100 GB here: {error}");
        return;
    }
    let mut recording = Recording::open(&path, None).unwrap();
    assert_eq!(recording.len(), bytes / 4);
    let mut buffer = vec![Complex32::new(1.0, 1.0); 1000];
    for sample in [0, 1 << 33, recording.len() - 500] {
        recording.seek(sample).unwrap();
        let n = recording.read(&mut buffer).unwrap();
        assert_eq!(n as u64, (recording.len() - sample).min(1000));
        assert_eq!(buffer[n - 1], Complex32::default());
    }
    assert!(message(recording.seek(bytes)).contains("sample must be at most"));
}

#[test]
fn an_archive_is_read_in_place_and_its_paths_are_not_trusted() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("inside");
    let samples = ramp(5000);
    write(&path, cf32(2e6), &samples);
    let archive = dir.path().join("all.sigmf");
    let pack = |names: &[(&str, &str)]| {
        let mut tar = tar::Builder::new(fs::File::create(&archive).unwrap());
        for (ending, name) in names {
            let content = fs::read(path.with_extension(ending)).unwrap();
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            // `set_path` refuses what an attacker would write.
            header.as_ustar_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            tar.append(&header, content.as_slice()).unwrap();
        }
        tar.finish().unwrap();
    };
    for base in ["all/inside", "../../../tmp/evil", "/etc/evil"] {
        pack(&[("sigmf-data", &format!("{base}.sigmf-data")), ("sigmf-meta", &format!("{base}.sigmf-meta"))]);
        let mut recording = Recording::open(&archive, None).unwrap();
        assert_eq!(recording.read_up_to(usize::MAX).unwrap(), samples);
        assert!(recording.verify().unwrap());
    }
    assert!(!Path::new("/tmp/evil.sigmf-data").exists() && !Path::new("/etc/evil.sigmf-data").exists());
    pack(&[("sigmf-meta", "a.sigmf-meta"), ("sigmf-data", "b.sigmf-data")]);
    assert!(message(Recording::open(&archive, None)).contains("no a.sigmf-data in the archive"));
    pack(&[("sigmf-meta", "a.sigmf-meta"), ("sigmf-meta", "b.sigmf-meta")]);
    assert!(message(Recording::open(&archive, None)).contains("holds 2 recordings (a, b)"));
    let whole = fs::read(&archive).unwrap();
    fs::write(&archive, &whole[..700]).unwrap();
    assert!(Recording::open(&archive, None).is_err());
}

fn wav(tag: u16, channels: u16, bits: u16, declared: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"RIFF\0\0\0\0WAVEjunk\x03\0\0\0abc\0fmt \x10\0\0\0".to_vec();
    bytes.extend(tag.to_le_bytes());
    bytes.extend(channels.to_le_bytes());
    bytes.extend(48_000_u32.to_le_bytes());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(0_u16.to_le_bytes());
    bytes.extend(bits.to_le_bytes());
    bytes.extend(b"auxi\x24\0\0\0");
    bytes.extend([0; 32]);
    bytes.extend(7_100_000_u32.to_le_bytes());
    bytes.extend(b"data");
    bytes.extend(declared.to_le_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn wav_files_are_imported() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.wav");
    let half = 0.5_f32.to_le_bytes();
    for (tag, bits, one, declared) in [
        (1, 16, vec![0, 0x40], 4),
        (1, 24, vec![0, 0, 0x40], 6),
        (1, 8, vec![192], 2),
        (3, 32, half.to_vec(), 8),
        (1, 16, vec![0, 0x40], 0),
        (1, 16, vec![0, 0x40], u32::MAX),
    ] {
        fs::write(&path, wav(tag, 2, bits, declared, &[one.clone(), one].concat())).unwrap();
        let mut recording = Recording::open(&path, None).unwrap();
        assert_eq!((recording.sample_rate(), recording.frequency()), (Some(48_000.0), Some(7.1e6)));
        assert_eq!(recording.read_up_to(9).unwrap(), [Complex32::new(0.5, 0.5)], "{tag} {bits}");
    }
    for (bytes, expected) in [
        (wav(1, 2, 16, 100, &[0; 8]), "declares 100 bytes, and only 8 follow"),
        (wav(1, 6, 16, 8, &[0; 8]), "channels: 6"),
        (wav(85, 2, 16, 8, &[0; 8]), "format 85 with 16 bits"),
        (wav(1, 2, 16, 7, &[0; 8]), "3 stray bytes"),
        (b"RIFF\0\0\0\0WAVE".to_vec(), "no 'fmt ' and no 'data' chunk"),
        (b"RIFX".to_vec(), "the file ends inside a header"),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = message(Recording::open(&path, None));
        assert!(error.contains(expected), "{error}");
    }
}

fn pair(dir: &Path) -> PathBuf {
    write(&dir.join("tx"), cf32(20e6), &ramp(100));
    write(&dir.join("rx"), cf32(20e6), &ramp(50));
    let extra = json!({"core:description": "a pair", "core:extensions": [{"name": "antenna", "version": "1.0.0", "optional": true}], "antenna:x": 1});
    let extra: Map<_, _> = extra.as_object().unwrap().clone();
    Pair::tie(dir.join("pair"), dir.join("tx"), dir.join("rx.sigmf-meta"), Some(12.25), extra, false).unwrap()
}

#[test]
fn a_pair_is_tied_by_hashes() {
    let dir = TempDir::new().unwrap();
    let collection = pair(dir.path());
    for path in [collection.as_path(), dir.path()] {
        let mut pair = Pair::open(path).unwrap();
        assert_eq!((pair.tx.len(), pair.rx.len(), pair.delay), (100, 50, Some(12.25)));
        assert_eq!(pair.extra["antenna:x"], 1);
        assert!(pair.verify().unwrap());
    }
    assert!(
        message(Pair::tie(&collection, dir.path().join("tx"), dir.path().join("rx"), None, Map::new(), false)).contains("exists already")
    );
    let meta = dir.path().join("rx.sigmf-meta");
    fs::write(&meta, fs::read_to_string(&meta).unwrap() + " ").unwrap();
    assert!(message(Pair::open(&collection)).contains("the hash of 'rx' is not that of"));

    let text = fs::read_to_string(&collection).unwrap();
    for (from, to, expected) in [
        ("\"kaflow:tx\": \"tx\"", "\"kaflow:tx\": \"../tx\"", "kaflow:tx: '../tx' is not a plain file name"),
        ("\"kaflow:tx\": \"tx\"", "\"kaflow:tx\": \"ty\"", "core:streams: has no recording 'ty'"),
        ("\"kaflow:tx\": \"tx\",", "", "kaflow:tx: is missing"),
        ("\"collection\"", "\"colection\"", "collection: is missing"),
    ] {
        fs::write(&collection, text.replace(from, to)).unwrap();
        let error = message(Pair::open(&collection));
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn rewriting_a_recording_keeps_foreign_keys() {
    let dir = TempDir::new().unwrap();
    let mut meta = cf32(1e6);
    meta.global.extra.insert("antenna:gain".into(), json!({"dB": 3.5}));
    meta.captures[0].extra.insert("core:geolocation".into(), json!({"type": "Point", "coordinates": [1.0, 2.0]}));
    write(&dir.path().join("a"), meta, &ramp(10));
    let first = Recording::open(dir.path().join("a"), None).unwrap();
    write(&dir.path().join("b"), first.meta().clone(), &ramp(10));
    let second = Recording::open(dir.path().join("b"), None).unwrap();
    assert_eq!(first.meta(), second.meta());
    assert_eq!(second.meta().global.extra["antenna:gain"]["dB"], 3.5);
    assert_eq!(second.meta().global.extensions[0].name, "antenna", "used, therefore declared");
}

#[test]
fn the_python_package_accepts_what_we_write() {
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    if !Command::new(&python).args(["-c", "import sigmf, sigmf.validate"]).output().is_ok_and(|o| o.status.success()) {
        eprintln!("SKIPPED: {python:?} has no module sigmf; set PYTHON to one that has it");
        return;
    }
    let dir = TempDir::new().unwrap();
    pair(dir.path());
    for name in ["ci16_be", "cu8", "cf64_le"] {
        let mut meta = Meta::new(name.parse().unwrap(), Some(1e6));
        meta.global.extra.insert("antenna:x".into(), 1.into());
        meta.captures[0].frequency = Some(-1.5);
        meta.annotations.push(Annotation { sample_start: 5, sample_count: Some(500), label: Some("x".into()), ..Default::default() });
        let mut writer = Writer::create(dir.path().join(name), meta, false).unwrap();
        writer.write(&ramp(100)).unwrap();
        writer.gap(10).unwrap();
        writer.write(&ramp(100)).unwrap();
        writer.finish().unwrap();
    }
    let script = r#"
import sys, glob, warnings, sigmf, numpy
warnings.simplefilter("error")
for name in sorted(glob.glob(sys.argv[1] + "/*.sigmf-meta")):
    recording = sigmf.fromfile(name)
    recording.validate()
    print(name, len(recording), recording.read_samples()[1])
collection = sigmf.sigmffile.fromfile(sys.argv[1] + "/pair.sigmf-collection")
collection.verify_stream_hashes()
assert sorted(collection.get_stream_names()) == ["rx", "tx"], collection.get_stream_names()
"#;
    let output = Command::new(&python).args(["-c", script]).arg(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let seen = String::from_utf8_lossy(&output.stdout).into_owned();
    let second = ramp(2)[1];
    let line = format!("({}{}j)", second.re, second.im);
    assert_eq!(seen.lines().filter(|l| l.ends_with(&line)).count(), 5, "the same numbers in Python: {seen}");
}

/// Valid files of each kind, to be mutated.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a");
    let mut writer = Writer::create(&path, Meta::new("ci16_le".parse().unwrap(), Some(1e6)), false).unwrap();
    writer.write(&ramp(30)).unwrap();
    writer.gap(5).unwrap();
    writer.write(&ramp(20)).unwrap();
    writer.finish().unwrap();
    let read = |ending: &str| fs::read(path.with_extension(ending)).unwrap();
    let (meta, data) = (read("sigmf-meta"), read("sigmf-data"));
    let mut tar = tar::Builder::new(Vec::new());
    for (name, content) in [("a/a.sigmf-data", &data), ("a/a.sigmf-meta", &meta)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, name, content.as_slice()).unwrap();
    }
    pair(dir.path());
    let collection = fs::read(dir.path().join("pair.sigmf-collection")).unwrap();
    vec![
        ("a.sigmf-meta", meta),
        ("a.sigmf", tar.into_inner().unwrap()),
        ("a.wav", wav(1, 2, 16, 400, &[7; 400])),
        ("pair.sigmf-collection", collection),
        ("a.cu8", data),
    ]
}

#[derive(Clone, Debug)]
enum Mutation {
    Flip(usize, u8),
    Number(usize, u64),
    Cut(usize),
    Repeat(usize, usize),
    Text(usize, &'static str),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let numbers = prop_oneof![Just(u64::MAX), Just(1 << 63), Just(u64::from(u32::MAX)), Just(0), any::<u64>()];
    let texts = prop_oneof![
        Just("9223372036854775807"),
        Just("1e999"),
        Just("-1"),
        Just("null"),
        Just("[[[[[[["),
        Just("\"core:num_channels\": 4096,"),
        Just("\"core:header_bytes\": 3,"),
        Just("\"core:offset\": 9,"),
        Just("\u{0}"),
        Just("\"core:dataset\": \"/dev/zero\","),
        Just("é")
    ];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, bits)| Mutation::Flip(at, bits)),
        (any::<usize>(), numbers).prop_map(|(at, number)| Mutation::Number(at, number)),
        any::<usize>().prop_map(Mutation::Cut),
        (any::<usize>(), 1..64_usize).prop_map(|(at, n)| Mutation::Repeat(at, n)),
        (any::<usize>(), texts).prop_map(|(at, text)| Mutation::Text(at, text)),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    let len = bytes.len().max(1);
    match *mutation {
        _ if bytes.is_empty() => {}
        Mutation::Flip(at, bits) => bytes[at % len] ^= bits,
        Mutation::Number(at, number) => {
            let at = at % len;
            let end = (at + 8).min(len);
            bytes[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
        }
        Mutation::Cut(at) => bytes.truncate(at % len),
        Mutation::Repeat(at, n) => {
            let at = at % len;
            let piece = bytes[at..(at + n).min(len)].to_vec();
            bytes.splice(at..at, piece);
        }
        // After a comma or a colon the text has a chance to be JSON.
        Mutation::Text(at, text) => {
            let at = at % len;
            let place = bytes[at..].iter().position(|b| matches!(b, b',' | b':' | b'{')).map_or(at, |i| at + i + 1);
            bytes.splice(place..place, text.bytes());
        }
    }
}

/// Opens whatever it is and reads all of it.
fn exercise(path: &Path) {
    if path.extension().is_some_and(|e| e == "sigmf-collection") {
        if let Ok(mut pair) = Pair::open(path) {
            let _ = pair.verify();
        }
        return;
    }
    let Ok(mut recording) = Recording::open(path, None) else { return };
    assert!(recording.len() <= 1 << 20, "no more samples than bytes");
    let _ = (recording.warnings(), recording.verify());
    let mut buffer = vec![Complex32::default(); 7];
    let mut total = 0;
    loop {
        let _ = recording.gap();
        match recording.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(n) => total += n as u64,
        }
    }
    assert_eq!(total, recording.len());
    let last = recording.len();
    let _ = recording.seek(last / 2);
    assert!(recording.read_up_to(usize::MAX).unwrap().len() as u64 == last - last / 2);
}

#[test]
fn no_mutation_of_a_file_makes_the_reader_panic() {
    let seeds = seeds();
    let dir = TempDir::new().unwrap();
    pair(dir.path());
    for (name, bytes) in &seeds {
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    fs::write(dir.path().join("a.sigmf-data"), &seeds[4].1).unwrap();
    for (name, _) in &seeds {
        exercise(&dir.path().join(name));
    }
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { cases: 1500, failure_persistence: None, ..Default::default() });
    let cases = (0..seeds.len(), prop::collection::vec(mutation(), 1..5));
    runner
        .run(&cases, |(which, mutations)| {
            let (name, mut bytes) = seeds[which].clone();
            mutations.iter().for_each(|m| mutate(&mut bytes, m));
            fs::write(dir.path().join(name), bytes).unwrap();
            exercise(&dir.path().join(name));
            Ok(())
        })
        .unwrap();
}
