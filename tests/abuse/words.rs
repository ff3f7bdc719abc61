//! What is said when something is wrong: of the right thing, in the user's words, short, and without effect on a terminal.

use crate::Bench;

/// Escape sequences that change colours, the title and the clipboard, and turn the direction of writing.
const EVIL: &str = "\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}2J\r\u{8}\u{202e}";

#[track_caller]
fn harmless(what: &str, text: &str) {
    assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c)), "{what}: {text:?}");
    assert!(text.lines().all(|line| line.chars().count() < 3000), "{what}: a line of {} characters", text.len());
}

#[test]
fn what_a_file_says_has_no_effect_on_a_terminal() {
    let bench = Bench::new();
    let escaped = EVIL.chars().map(|c| if c.is_control() { format!("\\u{:04x}", c as u32) } else { c.into() }).collect::<String>();
    let long = format!("{EVIL}{}", "x".repeat(200_000));
    let meta = |global: &str| {
        format!(
            r#"{{"global": {{"core:datatype": "cf32_le", "core:version": "1.2.0", {global}}}, "captures": [{{"core:sample_start": 0}}]}}"#
        )
    };
    let cases = [
        ("a.sigmf-meta", meta(&format!(r#""core:description": "{escaped}{}""#, "d".repeat(200_000))), "inspect a.sigmf-meta"),
        ("b.sigmf-meta", meta(&format!(r#""{escaped}:key": 1, "core:sample_rate": 1"#)), "inspect b.sigmf-meta"),
        ("c.sigmf-meta", meta(&format!(r#""core:dataset": "{escaped}""#)), "inspect c.sigmf-meta"),
        (
            "d.sigmf-meta",
            meta("").replace("cf32_le", &format!("{escaped}{}", "y".repeat(200_000))).replace(", }", "}"),
            "inspect d.sigmf-meta",
        ),
        ("cell.csv", format!("x0,y\n1,{long}\n"), "fit cell.csv"),
        ("head.csv", format!("{long},{EVIL}\n1,2\n"), "fit head.csv"),
        ("key.toml", format!("[nlms]\n\"{escaped}\" = 1\n"), "track --samples 500 --filter nlms --params key.toml"),
        ("name.toml", format!("[\"{escaped}\"]\nmu = 1\n"), "track --samples 500 --filter nlms --params name.toml"),
        (
            "value.toml",
            format!("[nlms]\nmu = \"{escaped}{}\"\n", "z".repeat(200_000)),
            "track --samples 500 --filter nlms --params value.toml",
        ),
        ("line.toml", format!("{}\n", "=".repeat(200_000)), "simulate --out s --scenario line.toml"),
        ("points.csv", format!("input,output,phase_deg\n1,{long},3\n"), "simulate --out s --points points.csv"),
        ("wave.toml", format!("fft = \"{escaped}{}\"\n", "w".repeat(200_000)), "receive rx.cf32 --waveform wave.toml"),
    ];
    for letter in ["a", "b", "d"] {
        std::fs::copy(bench.at("rx.cf32"), bench.at(&format!("{letter}.sigmf-data"))).unwrap();
    }
    for (name, text, arguments) in cases {
        std::fs::write(bench.at(name), text).unwrap();
        let done = bench.run(arguments);
        harmless(arguments, &done.stderr);
        harmless(arguments, &done.out());
        assert!(done.stderr.len() < 5000, "{arguments}: {} characters", done.stderr.len());
        assert!(matches!(done.code, Some(0 | 2)), "{arguments}: {:?}", done.code);
    }
    let name = format!("{EVIL}.csv");
    let done = bench.words(&["fit", &name]);
    harmless("a file's name", &done.stderr);
    assert!(done.code == Some(2) && done.stderr.contains("\\u{1b}[31mred"), "{}", done.stderr);
    let done = bench.words(&["track", "--filter", &long[..100_000]]);
    harmless("an option's value", &done.stderr);
    assert!(done.stderr.len() < 3000);
    let done = bench.words(&[EVIL]);
    harmless("a command", &done.stderr);
}

#[test]
fn an_archives_names_are_harmless_too() {
    let bench = Bench::new();
    let name = format!("{EVIL}{}", "n".repeat(50));
    for ending in ["meta", "data"] {
        std::fs::copy(bench.at(&format!("rx.sigmf-{ending}")), bench.at(&format!("{name}.sigmf-{ending}"))).unwrap();
    }
    let files = [format!("{name}.sigmf-meta"), "rx.sigmf-meta".into()];
    assert!(std::process::Command::new("tar").current_dir(bench.at("")).args(["cf", "two.sigmf"]).args(files).status().unwrap().success());
    let done = bench.run("inspect two.sigmf");
    harmless("two recordings", &done.stderr);
    assert_eq!(done.code, Some(2));
}

#[test]
fn errors_name_the_option_and_the_value_as_typed() {
    let bench = Bench::new();
    let track = "track --samples 500 --filter";
    for (arguments, words) in [
        (format!("{track} nlms --mu -1"), ["--mu", "got -1"]),
        (format!("{track} nlms --mu 1e3"), ["--mu", "got 1e3"]),
        (format!("{track} fklms --lambda 1.5e0"), ["--lambda", "got 1.5e0"]),
        (format!("{track} fklms --sigma=-2"), ["--sigma", "got -2"]),
        (format!("{track} fklms --budget 0"), ["--budget", "got 0"]),
        (format!("{track} fklms --budget 1.5"), ["--budget", "got 1.5"]),
        (format!("{track} qklms --epsilon -1"), ["--epsilon", "got -1"]),
        (format!("{track} krlst --noise 0"), ["--noise", "got 0"]),
        (format!("{track} kalman --process-noise -1e-3"), ["--process-noise", "got -1e-3"]),
        (format!("{track} mp-rls --order 2"), ["--order", "got 2"]),
        (format!("{track} rls --regularization -1"), ["--regularization", "got -1"]),
        (format!("{track} nlms --taps 5e3"), ["--taps", "got 5e3"]),
        (format!("{track} nlms --taps 4 --advance 9"), ["--advance", "got 9"]),
        (format!("{track} nlms --threads 0"), ["--threads", "got 0"]),
        (format!("{track} nlms --skip 1e6"), ["--skip", "got 1e6"]),
        (format!("{track} nlms --mu nonsense"), ["--mu", "'nonsense'"]),
        ("track --filter nlms --samples 1.5".into(), ["--samples", "1.5"]),
        (format!("{track} nlms --align x"), ["align", "x"]),
        ("simulate --out s --carrier-offset-hz 1e12".into(), ["--carrier-offset-hz", "Hz"]),
        ("simulate --out s --linewidth-hz=-5".into(), ["--linewidth-hz", "Hz"]),
        ("simulate --out s --loop-bandwidth-hz 9e9".into(), ["--loop-bandwidth-hz", "got 9e9"]),
        ("simulate --out s --doppler 3".into(), ["--doppler", "got 3"]),
        ("simulate --out s --snr-db 1e9".into(), ["--snr-db", "got 1e9"]),
        ("simulate --out s --ibo-db 1e4".into(), ["--ibo-db", "got 1e4"]),
        ("simulate --out s --fft 3".into(), ["--fft", "got 3"]),
        ("simulate --out s --cyclic-prefix 1e9".into(), ["--cyclic-prefix", "got 1e9"]),
        ("simulate --out s --drop-rate 2".into(), ["--drop-rate", "got 2"]),
        ("simulate --out s --adc-bits 99".into(), ["--adc-bits", "got 99"]),
        ("simulate --out s --rate -1".into(), ["--rate", "got -1"]),
        ("inspect rx.cf32 --channel 5".into(), ["--channel", "got 5"]),
        ("inspect rx.cf32 --rate -1".into(), ["--rate", "got -1"]),
        ("inspect rx --rate 1e6".into(), ["--rate", "left out"]),
        ("tune tx.cf32 rx.cf32 --candidates 0".into(), ["--candidates", "got 0"]),
        ("fit t.csv --filter multinomial --classes 1e9".into(), ["--classes", "got 1e9"]),
        ("reproduce fig2 --out r --runs 0".into(), ["--runs", "got 0"]),
    ] {
        bench.refuses(&arguments, &words);
    }
}

#[test]
fn what_a_file_says_is_blamed_on_the_file() {
    let bench = Bench::new();
    for (text, words) in [
        ("[nlms]\nmu = 5\n", ["bad.toml: [nlms]", "got 5"]),
        ("[nlms]\nmu = \"fast\"\n", ["bad.toml: [nlms]", "fast"]),
        ("[nlms]\nsigma = 1\n", ["bad.toml: [nlms]", "sigma"]),
        ("mu = 1\n", ["bad.toml: line 1", "mu"]),
        ("[nlms]\nmu = [\n", ["bad.toml: line", "array"]),
    ] {
        std::fs::write(bench.at("bad.toml"), text).unwrap();
        let words: Vec<_> = if text == "mu = 1\n" { vec![words[0]] } else { words.to_vec() };
        bench.refuses("track --samples 500 --filter nlms --params bad.toml", &words);
    }
    std::fs::write(bench.at("twice.csv"), "x0,x0,y\n1,2,3\n").unwrap();
    bench.refuses("fit twice.csv", &["twice.csv", "x0", "twice"]);
}

#[test]
fn an_input_that_is_out_of_range_is_blamed_itself() {
    let bench = Bench::new();
    for scale in [1e-30_f32, 1e30] {
        for name in ["tx", "rx"] {
            let bytes = std::fs::read(bench.at(&format!("{name}.cf32"))).unwrap();
            let (numbers, _) = bytes.as_chunks::<4>();
            let scaled: Vec<u8> = numbers.iter().flat_map(|&b| (f32::from_le_bytes(b) * scale).to_le_bytes()).collect();
            std::fs::write(bench.at(&format!("{name}-scaled.cf32")), scaled).unwrap();
        }
        for filter in ["nlms", "fklms", "qklms", "krlst", "rls", "ensemble"] {
            let done = bench.run(&format!("track tx-scaled.cf32 rx-scaled.cf32 --align none --filter {filter}"));
            assert!(matches!(done.code, Some(0 | 2)) && !done.stderr.contains("sigma must"), "{filter} at {scale}: {}", done.stderr);
        }
    }
}

#[test]
fn a_name_of_any_length_is_told_in_a_line_that_can_be_read() {
    let bench = Bench::new();
    let long = "x".repeat(50_000);
    for arguments in [&["inspect", &long] as &[&str], &["track", "tx.cf32", "rx.cf32", "--json", &long], &["man", "--out", &long]] {
        let done = bench.words(arguments);
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        assert!(done.stderr.len() < 3000, "{}: {} bytes", arguments[0], done.stderr.len());
        harmless(arguments[0], &done.stderr);
    }
}

#[test]
fn help_that_cannot_be_printed_is_a_failure() {
    let bench = Bench::new();
    for arguments in ["--help", "track --help", "--version", "completions bash", "man"] {
        let mut command = bench.command(&arguments.split_whitespace().collect::<Vec<_>>());
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = command.stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("standard output: No space left"), "{arguments}");
    }
}
