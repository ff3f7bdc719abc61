//! `kaflow simulate`: the built-in test bed, written to files.

mod amplifier;
mod options;
mod report;

pub(crate) use options::{Options, read};

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::outputs::Outputs;
use super::{interrupt, progress};
use crate::channel::{Chunk, Scenario, TestBed};
use crate::iq::sigmf::Meta;
use crate::iq::{Datatype, Pair, Writer};
use crate::{Complex32, Error, Result, files};
use report::Levels;

/// Simulate a transmission and write it to files
///
/// Clipped OFDM goes through a saturated amplifier, a fading channel and an imperfect receiver. Written are tx and rx (SigMF, cf32_le, antennas as
/// channels), pair.sigmf-collection that ties them, taps (the true taps of the channel, SigMF, coefficients as channels) and scenario.toml, which
/// gives the same files again with --scenario, to the bit, on any machine.
///
/// Data files are plain little-endian float pairs. In Python the taps of 4 channels are numpy.fromfile("taps.sigmf-data", "complex64").reshape(-1, 4).
#[derive(clap::Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Args {
    /// The folder to write to; made where missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write what was made as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace files of an earlier simulation
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    options: Options,
}

/// The version of our keys in SigMF metadata.
const EXTENSION: (&str, &str) = ("kaflow", "1.0.0");

pub(crate) fn run(args: Args) -> Result<()> {
    let scenario = args.options.scenario()?;
    let mut bed = TestBed::new(&scenario)?;
    let files = Files::new(&args.out);
    let written = files.all().into_iter().chain(args.json.clone()).collect();
    Outputs { inputs: args.options.files(), files: written, folder: Some(&args.out), force: args.force, ..Outputs::default() }.check()?;
    let body = toml::to_string(&scenario).map_err(|e| Error::file(&files.scenario, "scenario", e.to_string()))?;
    let text = format!("# kaflow {}: run again with `kaflow simulate --scenario FILE --out DIR`.\n{body}", env!("CARGO_PKG_VERSION"));
    let levels = files.write(&mut bed, args.force)?;
    files::write(&files.scenario, text.as_bytes())?;
    say!("{}", (report::summary(&scenario, &bed, &levels) + &files.list()).trim_end());
    let Some(path) = &args.json else { return Ok(()) };
    let written: Vec<_> = files.all().iter().map(|path| path.display().to_string()).collect();
    let found = json!({ "scenario": scenario, "files": written, "levels": levels.figures(), "interrupted": interrupt::requested() });
    super::json::write(path, "simulate", found)
}

/// Where everything goes.
struct Files {
    tx: PathBuf,
    rx: PathBuf,
    taps: PathBuf,
    collection: PathBuf,
    scenario: PathBuf,
}

impl Files {
    fn new(folder: &Path) -> Self {
        Self {
            tx: folder.join("tx.sigmf-meta"),
            rx: folder.join("rx.sigmf-meta"),
            taps: folder.join("taps.sigmf-meta"),
            collection: folder.join("pair.sigmf-collection"),
            scenario: folder.join("scenario.toml"),
        }
    }

    fn recordings(&self) -> [&PathBuf; 3] {
        [&self.tx, &self.rx, &self.taps]
    }

    fn all(&self) -> Vec<PathBuf> {
        let recordings = self.recordings().into_iter().flat_map(|path| [path.clone(), path.with_extension("sigmf-data")]);
        recordings.chain([self.collection.clone(), self.scenario.clone()]).collect()
    }

    fn write(&self, bed: &mut TestBed, force: bool) -> Result<Levels> {
        let scenario = bed.scenario().clone();
        let mut tx = Writer::create(&self.tx, stream_meta(&scenario, "transmitted", scenario.tx_antennas()), force)?;
        let mut rx = Writer::create(&self.rx, stream_meta(&scenario, "received", scenario.rx_antennas()), force)?;
        let mut taps = Writer::create(&self.taps, taps_meta(&scenario, bed), force)?;
        let bar = progress::bar(scenario.samples, "simulating");
        let mut levels = Levels::default();
        let mut frames = Vec::new();
        let mut kept = 0;
        interrupt::watch();
        while !interrupt::requested()
            && let Some(chunk) = bed.next_chunk()
        {
            levels.add(chunk);
            write_streams(chunk, kept, &mut frames, &mut tx, &mut rx)?;
            taps.write(&chunk.taps)?;
            kept += chunk.len() as u64;
            bar.inc(chunk.len() as u64 + chunk.gaps.iter().map(|g| g.length).sum::<u64>());
        }
        bar.finish_and_clear();
        if interrupt::requested() {
            note!("interrupted: {} of {} samples are written", bar.position(), scenario.samples);
        }
        for writer in [tx, rx, taps] {
            writer.finish()?;
        }
        let mut extra = Map::new();
        extra.insert("kaflow:taps".into(), "taps".into());
        extra.insert("kaflow:scenario".into(), "scenario.toml".into());
        Pair::tie(&self.collection, &self.tx, &self.rx, Some(scenario.impairments.delay), extra, force)?;
        Ok(levels)
    }

    fn list(&self) -> String {
        let mut lines = String::new();
        for path in self.recordings() {
            lines += &format!("wrote      {} and .sigmf-data\n", path.display());
        }
        lines + &format!("wrote      {}\nwrote      {}\n", self.collection.display(), self.scenario.display())
    }
}

/// Writes both streams with their gaps; `kept` samples were written before.
fn write_streams(chunk: &Chunk, kept: u64, frames: &mut Vec<Complex32>, tx: &mut Writer, rx: &mut Writer) -> Result<()> {
    let mut from = 0;
    let gaps = chunk.gaps.iter().map(|gap| ((gap.at - kept) as usize, gap.length));
    for (to, length) in gaps.chain([(chunk.len(), 0)]) {
        for (antennas, writer) in [(&chunk.tx, &mut *tx), (&chunk.rx, &mut *rx)] {
            frames.clear();
            frames.extend((from..to).flat_map(|n| antennas.iter().map(move |a| a[n])));
            writer.write(frames)?;
            writer.gap(length)?;
        }
        from = to;
    }
    Ok(())
}

fn stream_meta(scenario: &Scenario, what: &str, antennas: usize) -> Meta {
    let mut meta = Meta::new(Datatype::CF32_LE, Some(scenario.sample_rate()));
    meta.global.num_channels = Some(antennas as u64);
    meta.global.description = Some(format!("{what} signal of a simulated channel, seed {}; scenario.toml says how", scenario.seed));
    recorder(&mut meta);
    if scenario.frames {
        meta.declare(EXTENSION.0, EXTENSION.1);
        meta.global.extra.insert("kaflow:ofdm".into(), json!(scenario.ofdm));
    }
    for capture in &mut meta.captures {
        capture.frequency = Some(scenario.frequency);
    }
    meta
}

fn taps_meta(scenario: &Scenario, bed: &TestBed) -> Meta {
    let mut meta = Meta::new(Datatype::CF32_LE, Some(scenario.sample_rate() / scenario.taps_every as f64));
    meta.global.num_channels = Some(bed.coefficients() as u64);
    meta.global.description = Some(format!(
        "true channel taps: one frame every {} samples of tx; channel (rx * tx_antennas + tx) * paths + path is the gain from antenna tx to rx at the delay of path",
        scenario.taps_every
    ));
    recorder(&mut meta);
    meta.declare(EXTENSION.0, EXTENSION.1);
    let keys: [(&str, Value); 4] = [
        ("kaflow:taps_every", json!(scenario.taps_every)),
        ("kaflow:taps_delays", json!(bed.delays())),
        ("kaflow:taps_tx_antennas", json!(scenario.tx_antennas())),
        ("kaflow:taps_rx_antennas", json!(scenario.rx_antennas())),
    ];
    meta.global.extra.extend(keys.map(|(key, value)| (key.to_owned(), value)));
    meta
}

fn recorder(meta: &mut Meta) {
    meta.global.extra.insert("core:recorder".into(), concat!("kaflow ", env!("CARGO_PKG_VERSION")).into());
}
