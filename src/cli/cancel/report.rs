//! What `kaflow cancel` prints and writes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Args, CLEANED};
use crate::blocks::Summary;
use crate::dsp::db;
use crate::iq::Recording;
use crate::metrics::{Psd, welch};
use crate::plot::{self, Axis, Series};
use crate::{Complex32, Error, Result};

const SPECTRUM: &str = "spectrum";
/// Samples of a spectrum's windows, and the most that it is made of.
const WINDOW: usize = 512;
const MOST: usize = 1 << 22;
/// Of TX's power, what lies in its band.
const INSIDE: f64 = 0.998;

/// All files that are written into `folder`.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let own = [format!("{CLEANED}.sigmf-meta"), format!("{CLEANED}.sigmf-data"), format!("{SPECTRUM}.csv")];
    own.into_iter().map(|name| folder.join(name)).chain(plot::files(&folder.join(SPECTRUM))).collect()
}

/// What was read and written, and from which sample of RX to which the figures are.
pub(super) struct Streams {
    pub(super) tx: Recording,
    pub(super) rx: Recording,
    pub(super) cleaned: Recording,
    pub(super) wanted: Option<Recording>,
    pub(super) from: u64,
    pub(super) until: u64,
}

pub(super) struct Facts {
    pub(super) filter: &'static str,
    pub(super) delay: i64,
    pub(super) advance: usize,
    pub(super) sample_rate: Option<f64>,
    pub(super) interrupted: bool,
}

fn power(samples: impl Iterator<Item = Complex32>) -> f64 {
    samples.map(|z| f64::from(z.norm_sqr())).filter(|p| p.is_finite()).sum()
}

pub(super) fn write(args: &Args, facts: &Facts, summary: &Summary, streams: Streams) -> Result<()> {
    let Streams { mut tx, mut rx, mut cleaned, wanted, from, until } = streams;
    let n = MOST.min(until.saturating_sub(from) as usize);
    let stretch = |recording: &mut Recording| -> Result<Vec<Complex32>> {
        recording.seek(from.min(recording.len()))?;
        recording.read_up_to(n)
    };
    let (before, after, known) = (stretch(&mut rx)?, stretch(&mut cleaned)?, tx.read_up_to(n)?);
    if before.len().min(known.len()) < WINDOW {
        return Err(Error::Data(format!("{} samples are too short for a spectrum: at least {WINDOW} are needed", before.len())));
    }
    let rate = facts.sample_rate.unwrap_or(1.0);
    let (rx_psd, left_psd) = (welch(&before, WINDOW, rate)?, welch(&after, WINDOW, rate)?);
    let (low, high) = welch(&known, WINDOW, rate)?.occupied(INSIDE);
    let total = -summary.series.total().nmse_db();
    let in_band = db(rx_psd.power(low, high), left_psd.power(low, high));
    let unit = if facts.sample_rate.is_some() { "Hz" } else { "cycles a sample" };
    say!(
        "{} samples by {}, delay {} samples{}",
        summary.series.samples(),
        facts.filter,
        facts.delay,
        if facts.interrupted { ", interrupted" } else { "" }
    );
    say!("{:<34} {total:>7.2} dB", "cancellation");
    say!("{:<34} {in_band:>7.2} dB", format!("in the band of TX, {low:.4e} to {high:.4e} {unit}"));
    let sinr = match wanted {
        None => None,
        Some(mut wanted) => {
            let wanted = stretch(&mut wanted)?;
            let of = |heard: &[Complex32]| db(power(wanted.iter().copied()), power(heard.iter().zip(&wanted).map(|(y, w)| y - w)));
            let (without, with) = (of(&before), of(&after));
            say!("{:<34} {with:>7.2} dB, {without:.2} dB before", "SINR of the wanted signal");
            Some((without, with))
        }
    };
    let bands = bands(&rx_psd, &left_psd);
    if let Some(path) = &args.json {
        let found = json!({
            "samples": summary.series.samples(), "skip": args.skip, "filter": facts.filter, "delay": facts.delay, "advance": facts.advance,
            "frozen_after": args.frozen_after, "interrupted": facts.interrupted, "sample_rate": facts.sample_rate,
            "cancellation_db": total, "in_band_db": in_band, "band": [low, high],
            "sinr_before_db": sinr.map(|s| s.0), "sinr_db": sinr.map(|s| s.1),
            "over_frequency": bands.iter().map(|[f, db]| json!({ "frequency": f, "cancellation_db": db })).collect::<Vec<_>>(),
            "rate": summary.latency.rate(),
        });
        crate::cli::json::write(path, "cancel", found)?;
    }
    spectra(args, facts, &rx_psd, &left_psd)?;
    say!("{}", args.out.join(format!("{CLEANED}.sigmf-meta")).display());
    Ok(())
}

/// Cancellation over frequency, in 32 bands.
fn bands(before: &Psd, after: &Psd) -> Vec<[f64; 2]> {
    let (count, edge) = (32, before.sample_rate / 2.0);
    let width = before.sample_rate / f64::from(count);
    let band = |k: i32| {
        let low = f64::from(k) * width - edge;
        [low + width / 2.0, db(before.power(low, low + width), after.power(low, low + width))]
    };
    (0..count).map(band).collect()
}

fn spectra(args: &Args, facts: &Facts, before: &Psd, after: &Psd) -> Result<()> {
    let mut csv = String::from("frequency,before_db,after_db,cancellation_db\n");
    let line = |name: &str, psd: &Psd| Series::new(name, psd.db().into_iter().enumerate().map(|(i, y)| [psd.frequency(i), y]).collect());
    let lines = [line("rx", before), line("error", after)];
    for (a, b) in lines[0].points.iter().zip(&lines[1].points) {
        let _ = writeln!(csv, "{},{},{},{}", a[0], a[1], b[1], a[1] - b[1]);
    }
    crate::files::write(&args.out.join(format!("{SPECTRUM}.csv")), csv.as_bytes())?;
    let (axis, level) = match facts.sample_rate {
        Some(_) => (Axis::new("frequency", "Hz"), "dBFS/Hz"),
        None => (Axis::new("cycles a sample", ""), "dBFS per cycle/sample"),
    };
    plot::psd("What was received, and what remains", axis, level, &lines).save(args.out.join(SPECTRUM)).map(drop)
}
