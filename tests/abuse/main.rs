//! What people and scripts do to a command that nobody asked them to: files in each other's place, pipes, full disks, signals, garbage.
#![cfg(all(feature = "cli", unix))]

mod conventions;
mod files;
mod fuzz;
mod limits;
mod pipes;
#[cfg(feature = "soapy")]
mod radio;
mod sigmf;
mod signals;
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use kaflow::Complex32;
use kaflow::channel::{Scenario, TestBed};
use kaflow::iq::{Datatype, Writer, sigmf::Meta};

/// A folder with a pair of recordings (raw and SigMF) and a table in it, and a command that runs there.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

/// What a command did.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        let mut run = TestBed::run(&Scenario { samples: 3000, ..Scenario::preset("a").unwrap() }).unwrap();
        for (name, samples) in [("tx", run.tx.remove(0)), ("rx", run.rx.remove(0))] {
            std::fs::write(bench.at(&format!("{name}.cf32")), raw(&samples)).unwrap();
            let mut writer = Writer::create(bench.at(name), Meta::new(Datatype::CF32_LE, Some(1e6)), false).unwrap();
            writer.write(&samples).unwrap();
            writer.finish().unwrap();
        }
        let rows: String = (0..50).map(|n| format!("{},{}\n", f64::from(n).sin(), f64::from(n).cos())).collect();
        std::fs::write(bench.at("t.csv"), format!("x0,y\n{rows}")).unwrap();
        std::fs::write(bench.at("p.toml"), "[nlms]\nmu = 0.3\n").unwrap();
        bench
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin!("kaflow"));
        command.current_dir(self.folder.path()).args(arguments).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &str) -> Done {
        self.words(&arguments.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn words(&self, arguments: &[&str]) -> Done {
        done(&mut self.command(arguments))
    }

    /// Runs with these bytes coming out of a pipe at its standard input.
    pub(crate) fn piped(&self, arguments: &str, bytes: &[u8]) -> Done {
        let mut command = assert_cmd::Command::from_std(self.command(&arguments.split_whitespace().collect::<Vec<_>>()));
        let output = command.write_stdin(bytes).timeout(LIMIT).output().unwrap();
        Done { code: output.status.code(), stdout: output.stdout, stderr: String::from_utf8(output.stderr).unwrap() }
    }

    /// Refuses with exit code 2 and one line that has all these words, and leaves every file as it was.
    #[track_caller]
    pub(crate) fn refuses(&self, arguments: &str, words: &[&str]) {
        let before = contents(self.folder.path());
        let done = self.run(arguments);
        assert_eq!(done.code, Some(2), "{arguments}: {}", done.stderr);
        assert_eq!(done.stderr.trim_end().lines().count(), 1, "{arguments}: {}", done.stderr);
        for word in words {
            assert!(done.stderr.contains(word), "{arguments}: '{}' does not say '{word}'", done.stderr.trim_end());
        }
        assert!(contents(self.folder.path()) == before, "{arguments} changed a file");
    }

    #[track_caller]
    pub(crate) fn works(&self, arguments: &str) -> Done {
        let done = self.run(arguments);
        assert_eq!(done.code, Some(0), "{arguments}: {}", done.stderr);
        done
    }

    pub(crate) fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.at(name)).unwrap()).unwrap()
    }
}

impl Done {
    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// Nothing here may take longer, not even on a slow machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn done(command: &mut Command) -> Done {
    let name = format!("{command:?}");
    let mut built = Command::new(command.get_program());
    built.args(command.get_args()).stdin(Stdio::null());
    command.get_current_dir().map(|folder| built.current_dir(folder));
    let output = assert_cmd::Command::from_std(built).timeout(LIMIT).output().unwrap_or_else(|e| panic!("{name}: {e}"));
    Done { code: output.status.code(), stdout: output.stdout, stderr: String::from_utf8(output.stderr).unwrap() }
}

pub(crate) fn raw(samples: &[Complex32]) -> Vec<u8> {
    samples.iter().flat_map(|z| [z.re.to_le_bytes(), z.im.to_le_bytes()].concat()).collect()
}

/// All regular files of a folder.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries.filter(|path| path.is_file()).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    all.sort();
    all
}

/// Makes a pipe with a name.
pub(crate) fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
