//! What `kaflow cancel` prints and writes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Args, CLEANED, DEFAULT};
use crate::blocks::Summary;
use crate::dsp::db;
use crate::iq::Recording;
use crate::metrics::{Psd, welch};
use crate::plot::{self, Axis, Series};
use crate::{Complex32, Error, Result};

const SPECTRUM: &str = "spectrum";
/// Samples of a spectrum's windows, and of what is looked at at once.
const WINDOW: usize = 512;
const PIECE: usize = 1 << 18;
/// Decibels of cancellation below which something may be wrong.
const LITTLE: f64 = 10.0;
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

/// Goes through the same samples of some recordings, piece by piece.
fn pieces<const N: usize>(
    mut recordings: [&mut Recording; N],
    from: u64,
    until: u64,
    mut take: impl FnMut([&[Complex32]; N]) -> Result<()>,
) -> Result<()> {
    for recording in &mut recordings {
        recording.seek(from.min(recording.len()))?;
    }
    let mut left = until.saturating_sub(from) as usize;
    while left > 0 {
        let mut read = [const { Vec::new() }; N];
        for (to, recording) in read.iter_mut().zip(&mut recordings) {
            *to = recording.read_up_to(left.min(PIECE))?;
        }
        let n = read[0].len();
        if n == 0 {
            break;
        }
        take(read.each_ref().map(Vec::as_slice))?;
        left -= n;
    }
    Ok(())
}

/// Power over frequency, to which every sample of a stretch adds alike: figures from it are of just these samples.
struct Spectrum {
    energy: f64,
    samples: usize,
    psd: Psd,
}

impl Spectrum {
    fn new(sample_rate: f64) -> Self {
        Self { energy: 0.0, samples: 0, psd: Psd { sample_rate, density: vec![0.0; WINDOW] } }
    }

    /// Hann's windows sum up to a constant power at a quarter's distance, and with silence around them for the samples at the ends too.
    fn push(&mut self, samples: &[Complex32]) -> Result<()> {
        let silence = [Complex32::ZERO; WINDOW];
        let padded = [&silence, samples, &silence].concat();
        let energy = power(samples.iter().copied());
        self.energy += energy;
        self.samples += samples.len();
        for from in [0, WINDOW / 4] {
            let psd = welch(&padded[from..], WINDOW, self.psd.sample_rate)?;
            let scale = 0.5 * energy / psd.density.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            self.psd.density.iter_mut().zip(psd.density).for_each(|(sum, density)| *sum += scale * density);
        }
        Ok(())
    }

    /// The density of all that was pushed.
    fn density(&self) -> Psd {
        let scale = 1.0 / (self.samples.max(1) as f64 * self.psd.sample_rate / WINDOW as f64);
        Psd { density: self.psd.density.iter().map(|energy| energy * scale).collect(), ..self.psd.clone() }
    }
}

/// RX and what is left of it over some of its samples.
struct Span {
    from: u64,
    until: u64,
    before: Spectrum,
    after: Spectrum,
}

impl Span {
    fn measure(streams: &mut Streams, from: u64, until: u64, rate: f64) -> Result<Self> {
        let mut span = Self { from, until, before: Spectrum::new(rate), after: Spectrum::new(rate) };
        pieces([&mut streams.rx, &mut streams.cleaned], from, until, |[received, cleaned]| {
            span.before.push(received)?;
            span.after.push(cleaned)
        })?;
        Ok(span)
    }

    fn total_db(&self) -> f64 {
        db(self.before.energy, self.after.energy)
    }

    fn in_band_db(&self, (low, high): (f64, f64)) -> f64 {
        db(self.before.density().power(low, high), self.after.density().power(low, high))
    }
}

pub(super) fn write(args: &Args, facts: &Facts, summary: &Summary, mut streams: Streams) -> Result<()> {
    let (from, until) = (streams.from, streams.until);
    let known = streams.tx.read_up_to(PIECE.min(until.saturating_sub(from) as usize))?;
    if known.len() < WINDOW {
        return Err(Error::Data(format!("{} samples are too short for a spectrum: at least {WINDOW} are needed", known.len())));
    }
    let rate = facts.sample_rate.unwrap_or(1.0);
    let band = welch(&known, WINDOW, rate)?.occupied(INSIDE);
    let all = Span::measure(&mut streams, from, until, rate)?;
    // By then it has learned, wherever that began.
    let settled = Span::measure(&mut streams, from + until.saturating_sub(from) / 2, until, rate)?;
    let unit = if facts.sample_rate.is_some() { "Hz" } else { "cycles a sample" };
    say!(
        "{} samples by {}, delay {} samples{}; the band of TX is {:.4e} to {:.4e} {unit}",
        summary.series.samples(),
        facts.filter,
        facts.delay,
        if facts.interrupted { ", interrupted" } else { "" },
        band.0,
        band.1
    );
    say!("{:<40} {:>10} {:>18}", "cancellation", "in all", "in the band of TX");
    for (name, span) in [("", &all), (", the last half", &settled)] {
        let name = format!("samples {} to {}{name}", span.from, span.until.saturating_sub(1));
        say!("{name:<40} {:>7.2} dB {:>15.2} dB", span.total_db(), span.in_band_db(band));
    }
    if settled.total_db() < LITTLE && DEFAULT.contains(&facts.filter) {
        note!("little was cancelled: where the channel fades, --filter ensemble follows it");
    }
    let sinr = match streams.wanted {
        None => None,
        Some(mut wanted) => {
            let mut powers = [0.0; 3];
            pieces([&mut wanted, &mut streams.rx, &mut streams.cleaned], from, until, |[wanted, received, cleaned]| {
                let beside = |heard: &[Complex32]| power(heard.iter().zip(wanted).map(|(y, w)| y - w));
                let found = [power(wanted.iter().copied()), beside(received), beside(cleaned)];
                powers.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
                Ok(())
            })?;
            let (without, with) = (db(powers[0], powers[1]), db(powers[0], powers[2]));
            say!("{:<40} {with:>7.2} dB, {without:.2} dB before", format!("SINR of what is wanted, from sample {from}"));
            Some((without, with))
        }
    };
    let (before, after) = (settled.before.density(), settled.after.density());
    if let Some(path) = &args.json {
        let found = json!({
            "samples": summary.series.samples(), "skip": args.skip, "filter": facts.filter, "delay": facts.delay, "advance": facts.advance,
            "frozen_after": args.frozen_after, "interrupted": facts.interrupted, "sample_rate": facts.sample_rate,
            "from": all.from, "until": all.until, "cancellation_db": all.total_db(), "in_band_db": all.in_band_db(band), "band": [band.0, band.1],
            "settled": { "from": settled.from, "until": settled.until, "cancellation_db": settled.total_db(), "in_band_db": settled.in_band_db(band) },
            "sinr_before_db": sinr.map(|s| s.0), "sinr_db": sinr.map(|s| s.1),
            "over_frequency": bands(&before, &after).iter().map(|[f, db]| json!({ "frequency": f, "cancellation_db": db })).collect::<Vec<_>>(),
            "rate": summary.latency.rate(),
        });
        crate::cli::json::write(path, "cancel", found)?;
    }
    spectra(args, facts, &settled, &before, &after)?;
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

fn spectra(args: &Args, facts: &Facts, span: &Span, before: &Psd, after: &Psd) -> Result<()> {
    let mut csv = String::from("frequency,before_db,after_db,cancellation_db\n");
    let line = |name: &str, psd: &Psd| Series::new(name, psd.db().into_iter().enumerate().map(|(i, y)| [psd.frequency(i), y]).collect());
    let lines = [line("before", before), line("after", after)];
    for (a, b) in lines[0].points.iter().zip(&lines[1].points) {
        let _ = writeln!(csv, "{},{},{},{}", a[0], a[1], b[1], a[1] - b[1]);
    }
    crate::files::write(&args.out.join(format!("{SPECTRUM}.csv")), csv.as_bytes())?;
    let (axis, level) = match facts.sample_rate {
        Some(_) => (Axis::new("frequency", "Hz"), "dBFS/Hz"),
        None => (Axis::new("cycles a sample", ""), "dBFS per cycle/sample"),
    };
    let title = format!("Before and after cancellation, samples {} to {}", span.from, span.until.saturating_sub(1));
    crate::cli::linearize::report::told_apart(plot::psd(title, axis, level, &lines)).save(args.out.join(SPECTRUM)).map(drop)
}
