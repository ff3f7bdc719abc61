//! `--serve` as a program sees it: the page, frames, controls, and what it refuses. A browser sees it in `tests/browser`.

#![cfg(feature = "cli")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

struct Run {
    child: Child,
    host: String,
    token: String,
}

impl Run {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kaflow"));
        command.current_dir(folder).args(args).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let url = lines.find_map(|line| Some(line.split_once("open http://")?.1.to_owned())).expect("an address");
        // Whatever else it says must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let (host, token) = url.split_once("/?token=").unwrap();
        Self { child, host: host.into(), token: token.into() }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let Self { host, token, .. } = self;
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut answer = String::new();
        self.send(method, path, body).read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.into())
    }

    fn state(&self) -> Value {
        serde_json::from_str(&self.ask("GET", "/state", "").1).unwrap()
    }

    fn call(&self, command: Value) -> (u16, String) {
        self.ask("POST", "/control", &command.to_string())
    }

    /// Waits until the state of the run is as wanted.
    fn until(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let state = self.state();
            if wanted(&state) {
                return state;
            }
            assert!(Instant::now() < end, "{state:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_run_is_seen_and_steered_and_ends_with_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let filters = ["--filter", "nlms", "--filter", "ensemble"];
    let args = [&["track", "--samples", "100000000000", "--serve", "--keep", "kept", "--out", "out"][..], &filters].concat();
    let mut run = Run::start(folder.path(), &args);
    assert!(run.host.starts_with("127.0.0.1:"));
    let (status, page) = run.ask("GET", "/", "");
    assert!(status == 200 && page.contains("dashboard.js"));
    assert_eq!(run.ask("GET", "/panels.js", "").0, 200);
    let hello: Value = serde_json::from_str(&run.ask("GET", "/hello", "").1).unwrap();
    assert_eq!(hello["filters"][0]["name"], "nlms");
    let colour = hello["filters"][0]["colour"].as_str().unwrap().to_owned();
    assert!(hello["filters"][1]["members"].as_array().unwrap().len() > 1);
    let mu = hello["filters"][0]["parameters"].as_array().unwrap().iter().find(|p| p["name"] == "mu").unwrap();
    assert!(mu["live"] == true && mu["value"] == 0.5 && mu["high"].as_f64().unwrap() <= 2.0, "{mu}");

    run.until(|state| state["filters"][0]["samples"].as_u64() > Some(0));
    for (on, key) in [(true, "bypass"), (false, "bypass"), (false, "adapt"), (true, "adapt")] {
        assert_eq!(run.call(json!({"do": key, "filter": "nlms", "on": on})).0, 200);
        run.until(|state| state["filters"][0][key] == on);
    }
    let set = |value: f64| run.call(json!({"do": "set", "filter": "nlms", "parameter": "mu", "value": value}));
    assert_eq!(set(0.25).0, 200);
    let (status, refused) = set(2.5);
    assert!(status == 422 && refused.contains("mu must be between 0 and 2, got 2.5"), "{refused}");
    assert_eq!(run.state()["filters"][0]["parameters"]["mu"], 0.25);
    let (status, refused) = run.call(json!({"do": "reset", "filter": "nlsm"}));
    assert!(status == 422 && refused.contains("nlms"), "{refused}");
    assert_eq!(run.call(json!({"do": "radio", "setting": "frequency", "value": 1.0})).0, 422);

    // Nothing is overwritten, and nothing leaves the folder.
    let save = |name: &str| run.call(json!({"do": "save", "filter": "nlms", "name": name})).0;
    assert_eq!((save("a"), save("a"), save("../a"), save("/tmp/a"), save("")), (200, 422, 422, 422, 422));
    assert_eq!(set(0.75).0, 200);
    assert_eq!(run.call(json!({"do": "load", "filter": "nlms", "name": "a"})).0, 200);
    assert_eq!(run.state()["filters"][0]["parameters"]["mu"], 0.25);
    assert_eq!(run.call(json!({"do": "load", "filter": "ensemble", "name": "a"})).0, 422);
    assert_eq!(run.state()["saved"], json!(["a"]));
    let kept = std::fs::read_dir(folder.path().join("kept")).unwrap().count();
    assert_eq!(kept, 1);

    assert_eq!(run.call(json!({"do": "record", "on": true})).0, 200);
    assert_eq!(run.state()["recording"], "rx-1");
    let data = folder.path().join("kept/rx-1.sigmf-data");
    run.until(|_| data.metadata().is_ok_and(|found| found.len() > 0));
    assert_eq!(run.call(json!({"do": "record", "on": false})).0, 200);
    run.until(|state| state["recording"].is_null() && state["record_failure"].is_null());
    let recording = kaflow::iq::Recording::open(folder.path().join("kept/rx-1.sigmf-meta"), None).unwrap();
    assert!(!recording.is_empty());

    assert_eq!(run.call(json!({"do": "stop"})).0, 200);
    assert!(run.child.wait().unwrap().success());
    let report = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(colour.starts_with('#') && report.contains(&colour), "the page and the report show a filter in one colour");
}

/// The sections of the frames that come until `enough` of their kinds, by filter.
fn kinds(run: &Run, enough: &[(u8, u16)]) {
    let mut stream = BufReader::new(run.send("GET", "/frames", ""));
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).unwrap();
    }
    let mut bytes = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let end = Instant::now() + Duration::from_secs(30);
    while !enough.iter().all(|kind| seen.contains(kind)) {
        assert!(Instant::now() < end, "{seen:?}");
        // Chunks of the transfer: a length in hexadecimal, that many bytes, an empty line.
        line.clear();
        stream.read_line(&mut line).unwrap();
        let mut chunk = vec![0; usize::from_str_radix(line.trim(), 16).unwrap()];
        stream.read_exact(&mut chunk).unwrap();
        stream.read_exact(&mut [0; 2]).unwrap();
        bytes.extend(chunk);
        while let Some(length) = bytes.first_chunk::<4>().map(|b| u32::from_le_bytes(*b) as usize).filter(|n| bytes.len() >= 4 + n) {
            let mut frame = &bytes[4..4 + length];
            while let Some((head, rest)) = frame.split_at_checked(16) {
                let count = u32::from_le_bytes(head[4..8].try_into().unwrap()) as usize;
                assert_eq!(head[0], 1, "version");
                let finite = rest[..4 * count].chunks(4).all(|b| !f32::from_le_bytes(b.try_into().unwrap()).is_infinite());
                assert!(finite && count > 0 || head[1] == 5, "kind {}", head[1]);
                seen.insert((head[1], u16::from_le_bytes([head[2], head[3]])));
                frame = &rest[4 * count..];
            }
            assert!(frame.is_empty());
            bytes.drain(..4 + length);
        }
    }
}

#[test]
fn frames_hold_every_picture_of_every_filter() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::start(
        folder.path(),
        &["track", "--samples", "100000000000", "--serve", "--out", "out", "--filter", "nlms", "--filter", "ensemble", "--filter", "fklms"],
    );
    // Spectra, symbols, errors; taps of those that have some; curve and weights of the ensemble.
    let of_all = [1, 2, 3, 4, 6].into_iter().flat_map(|kind| (0..3).map(move |filter| (kind, filter)));
    let wanted: Vec<_> = of_all.chain([(9, 0), (10, 0), (7, 1), (8, 1), (9, 1), (11, 1), (12, 1)]).collect();
    kinds(&run, &wanted);
}

#[test]
fn no_folder_no_files_and_another_address_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::start(folder.path(), &["track", "--samples", "100000000000", "--serve=127.0.0.1:0", "--out", "out", "--filter", "nlms"]);
    run.until(|state| state["filters"][0]["samples"].as_u64() > Some(0));
    for command in [json!({"do": "save", "filter": "nlms", "name": "a"}), json!({"do": "record", "on": true})] {
        let (status, refused) = run.call(command);
        assert!(status == 422 && refused.contains("--keep DIR"), "{refused}");
    }
    for (args, words) in [(["--serve", "tx.wav"], "before --serve"), (["--keep", "kept"], "--serve")] {
        let output = Command::new(env!("CARGO_BIN_EXE_kaflow")).arg("track").args(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{said}");
    }
    let taken = Command::new(env!("CARGO_BIN_EXE_kaflow"))
        .current_dir(folder.path())
        .args(["track", "--serve", &run.host, "--samples", "1000", "--filter", "nlms"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&taken.stderr).contains(&format!("cannot serve on {}", run.host)));
}

#[cfg(feature = "soapy")]
#[test]
fn gains_and_frequency_of_a_radio_change_while_it_runs_and_the_transmitter_never_exceeds_what_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let mut args = vec!["live", "--device", "driver=kaflow-testbed,doppler_hz=5", "--rate", "1e6", "--filter", "nlms", "--serve"];
    args.extend(["--tx-gain", "40", "--rx-gain", "30", "--tx-freq", "5.40001e9", "--freq", "5.4e9"]);
    let run = Run::start(folder.path(), &args);
    let is = |setting: &'static str, value: f64| move |state: &Value| state["radio"]["settings"][setting].as_f64() == Some(value);
    let set = |setting: &str, value: f64| run.call(json!({"do": "radio", "setting": setting, "value": value}));
    // It has risen from its lowest behind the start.
    run.until(is("tx-gain", 40.0));
    run.until(|state| state["radio"]["received"].as_u64() > Some(0));
    for (setting, value) in [("rx-gain", 35.0), ("tx-gain", 20.0), ("tx-gain", 40.0), ("frequency", 5300.0)] {
        assert_eq!(set(setting, value).0, 200, "{setting}");
        run.until(is(setting, value));
    }
    let (status, refused) = set("tx-gain", 41.0);
    assert!(status == 422 && refused.contains("between 0 and 40 dB"), "{refused}");
    assert_eq!(set("rx-gain", 61.0).0, 422);
}
