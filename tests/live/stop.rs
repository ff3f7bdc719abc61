//! Hardware is protected: the transmit gain rises behind the start, and whatever ends a run, the transmitter stops first. The simulated radio logs what is switched.

use std::process::{Command, Stdio};
use std::time::Duration;

use futuresdr::prelude::*;
use futuresdr::runtime::dev::prelude::*;
use kaflow::blocks::{Radio, Repeat, SoapySink, SoapySource};

use super::{LEVEL, duplex, frame, tracker};

/// The environment in which the simulated radio tells what it does.
fn telling(command: &mut Command) -> &mut Command {
    command.env("SOAPY_SDR_LOG_LEVEL", "DEBUG").stdin(Stdio::null())
}

/// What a radio was told to do, in order: "transmitter on", "transmit gain PA 30 dB", "receiver off".
fn switched(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split_once("kaflow-testbed: ").map(|(_, said)| said.trim().to_owned()));
    lines.filter(|said| said.starts_with("trans") || said.starts_with("receiver o")).collect()
}

fn at(said: &[String], what: &str) -> usize {
    said.iter().position(|line| line == what).unwrap_or_else(|| panic!("no '{what}' in {said:?}"))
}

fn protects(said: &[String]) {
    let on = at(said, "transmitter on");
    let gains = |said: &[String]| said.iter().filter(|line| line.starts_with("transmit gain")).cloned().collect::<Vec<_>>();
    let (before, after) = (gains(&said[..on]), gains(&said[on..]));
    assert!(!before.is_empty() && before.iter().all(|line| line.ends_with(" 0 dB")), "{said:?}");
    assert!(after.iter().any(|line| !line.ends_with(" 0 dB")), "{said:?}");
    assert!(at(said, "transmitter off") < at(said, "receiver off"), "{said:?}");
    // It is not switched on again.
    assert_eq!(said.iter().filter(|line| *line == "transmitter on").count(), 1, "{said:?}");
}

fn live(device: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kaflow"));
    let device = format!("driver=kaflow-testbed,doppler_hz=5,{device}");
    telling(command.args(["live", "--device", &device, "--rate", "1e6", "--filter", "nlms", "--tx-gain", "46"]).args(arguments));
    command
}

#[test]
fn the_transmitter_stops_first_at_a_normal_end_and_after_an_error() {
    for (device, arguments) in [
        ("pace=fast", &["--seconds", "0.1"][..]),
        ("pace=real", &["--seconds", "0.5"]),
        ("pace=fast,vanish_after=100000", &[]),
        ("pace=real,vanish_after=100000", &[]),
        ("pace=fast,stall_every=100000,stall=1000000", &["--timeout", "0.3"]),
        ("pace=fast,snr_db=-60", &["--seconds", "0.1"]),
    ] {
        let output = live(device, arguments).output().unwrap();
        protects(&switched(&String::from_utf8_lossy(&output.stderr)));
    }
}

#[cfg(unix)]
#[test]
fn the_transmitter_stops_first_after_a_signal() {
    use std::io::{BufRead, BufReader, Read};
    for signal in ["-INT", "-TERM", "-HUP"] {
        let mut run = live("pace=real", &[]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(run.stderr.take().unwrap());
        let mut text = String::new();
        while !text.contains("1 s: ") && lines.read_line(&mut text).unwrap() > 0 {}
        assert!(Command::new("kill").args([signal, &run.id().to_string()]).status().unwrap().success());
        lines.read_to_string(&mut text).unwrap();
        run.wait().unwrap();
        protects(&switched(&text));
    }
}

/// Passes samples until it has had enough of them.
#[derive(Block)]
struct Bomb<I = DefaultCpuReader<Complex32>>
where
    I: CpuBufferReader<Item = Complex32>,
{
    #[input]
    input: I,
    left: usize,
}

impl<I: CpuBufferReader<Item = Complex32>> Kernel for Bomb<I> {
    async fn work(&mut self, _io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let n = self.input.slice().len();
        self.left = self.left.saturating_sub(n);
        assert!(self.left > 0, "on purpose");
        self.input.consume(n);
        Ok(())
    }
}

/// Where the child of the test below panics.
const PLACE: &str = "KAFLOW_TEST_PANIC";

#[test]
#[ignore = "run by the test below, in a process of its own"]
fn panics_where_it_is_told() {
    let radio = || Radio::open(&duplex("pace=real,doppler_hz=5")).unwrap();
    match std::env::var(PLACE).unwrap_or_default().as_str() {
        "block" => {
            let mut radio = radio();
            let repeat = Repeat::new(frame().iter().map(|z| z * LEVEL).collect(), radio.stop());
            let (sink, source) = (SoapySink::new(&mut radio).unwrap(), SoapySource::new(&mut radio).unwrap());
            let bomb: Bomb = Bomb { input: Default::default(), left: 500_000 };
            let build = || -> Result<Flowgraph> {
                let mut fg = Flowgraph::new();
                connect!(fg, repeat > input[0].sink; source.output[0] > input.bomb);
                Ok(fg)
            };
            // The runtime waits for a block that has panicked for ever.
            let fg = build().unwrap();
            std::thread::spawn(|| Runtime::new().run(fg).map(drop));
            std::thread::sleep(Duration::from_secs(3));
            std::process::exit(3);
        }
        "caller" => {
            let nlms = vec![("nlms".into(), tracker("nlms", &[], 1.0))];
            super::follow(radio(), nlms, u64::MAX, 0, Duration::from_millis(200), |_| panic!("on purpose"));
        }
        _ => {}
    }
}

#[test]
fn a_panic_goes_on_its_way_behind_the_end_of_the_transmitter() {
    for place in ["block", "caller"] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "stop::panics_where_it_is_told", "--include-ignored", "--nocapture"]).env(PLACE, place);
        let output = telling(&mut child).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{place}: {text}");
        let (off, panicked) = (text.find("transmitter off"), text.find("on purpose"));
        assert!(off.is_some() && off < panicked, "{place}: {text}");
        let said = switched(&text);
        assert!(
            said.iter().position(|line| line == "receiver off").is_none_or(|rx| at(&said, "transmitter off") < rx),
            "{place}: {said:?}"
        );
    }
}
