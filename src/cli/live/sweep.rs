//! The amplifier's drive, step by step, as with a programmable attenuator.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::Session;
use crate::blocks::{RadioConfig, Stretch};
use crate::cli::run::{learned, ranked, report};
use crate::cli::{interrupt, outputs};
use crate::dsp::db;
use crate::metrics::{AmPoint, am_curve};
use crate::plot::{AmplifierCurve, am_am_pm};
use crate::{Complex32, Complex64, Error, Result, files};

/// Points of an AM/AM curve, and samples without which a point is none.
const BINS: usize = 24;
const LEAST: u64 = 16;

/// Seconds at each gain, when nobody says.
const SECONDS: f64 = 1.0;

/// What one gain has shown.
struct Level {
    gain: f64,
    filters: Vec<(String, f64)>,
    /// Of what was received: mean in dB of full scale, and samples that were clipped.
    received: (f64, u64),
    evm_percent: Option<f64>,
    /// What went into the amplifier and came out of it, up to a factor that is common to all.
    pairs: Vec<(Complex64, Complex64)>,
}

pub(super) fn run(session: &Session<'_>, config: &RadioConfig, gains: &[f64]) -> Result<()> {
    let (mut levels, mut failures) = (Vec::new(), Vec::new());
    for &gain in gains.iter().take_while(|_| !interrupt::watch().load(Ordering::Relaxed)) {
        let mut config = config.clone();
        match &mut config.tx {
            Some(tx) => tx.gain = Some(gain),
            None => return Err(Error::parameter("sweep-tx-gain", "used with a transmitter", "--rx-only")),
        }
        note!("TX gain {gain} dB");
        // A level that fails says so, and takes nothing from the others.
        match level(session, &config, gain) {
            Ok((level, fault)) => {
                levels.push(level);
                failures.extend(fault.map(|error| (gain, error)));
            }
            Err(error) => failures.push((gain, error)),
        }
        if let Some((gain, error)) = failures.last().filter(|(failed, _)| *failed == gain) {
            crate::cli::voice::complain(format_args!("TX gain {gain} dB: {error}"));
        }
    }
    if !levels.is_empty() {
        write(session, &levels, &failures)?;
    }
    failures.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
}

fn level(session: &Session<'_>, config: &RadioConfig, gain: f64) -> Result<(Level, Option<Error>)> {
    let (subject, outcome) = session.run(config, Some(session.args.seconds.unwrap_or(SECONDS)))?;
    let filters = ranked(&subject, &outcome);
    // The channel that the best filter with taps saw is taken out; without one there is no curve.
    let mut pairs = filters.iter().filter_map(|f| f.stretch()).map(|stretch| learned::without_channel(&steadied(stretch)));
    let pairs = pairs.find(|pairs| !pairs.is_empty());
    let level = Level {
        gain,
        filters: outcome.filters.iter().map(|(name, summary)| (name.clone(), summary.series.total().nmse_db())).collect(),
        received: subject.level.map_or((f64::NAN, 0), |(mean, _, clipped)| (mean, clipped)),
        evm_percent: report::evm_percent(&subject, &filters),
        pairs: pairs.unwrap_or_default(),
    };
    Ok((level, outcome.fault))
}

/// Moments over which taps are averaged, at most: as many as leave the least error.
const AVERAGED: [usize; 4] = [4, 16, 64, 256];

/// What a filter with taps and no curve would have predicted with calmer taps: those of one that learns fast tremble with every sample, at the large ones most, and what they leave looks like a
/// curve then.
fn steadied(stretch: &Stretch) -> Stretch {
    let taps = &stretch.taps;
    let count = taps.first().map_or(0, |taps| taps.len());
    if count == 0 || taps.iter().any(|taps| taps.len() != count) || !stretch.gain().is_empty() {
        return stretch.clone();
    }
    let energy = |s: &Stretch| s.error()[s.target.len() / 2..].iter().map(|e| f64::from(e.norm_sqr())).sum::<f64>();
    let calmer = |width: usize| {
        let mut calm = stretch.clone();
        for (k, calm) in calm.taps.iter_mut().enumerate() {
            let around = &taps[k.saturating_sub(width / 2)..taps.len().min(k + width / 2 + 1)];
            let mean = |l: usize| around.iter().map(|taps| taps[l]).sum::<Complex64>() / around.len() as f64;
            *calm = (0..count).map(mean).collect();
        }
        for t in count - 1..stretch.target.len() {
            let Some(taps) = calm.taps.get(t / Stretch::PIECE) else { break };
            let sum: Complex64 = taps.iter().zip(stretch.input[..=t].iter().rev()).map(|(h, x)| h * wide(*x)).sum();
            calm.prediction[t] = Complex32::new(sum.re as f32, sum.im as f32);
        }
        calm
    };
    let all = AVERAGED.into_iter().map(calmer).chain([stretch.clone()]);
    all.min_by(|a, b| energy(a).total_cmp(&energy(b))).unwrap_or_default()
}

fn wide(z: Complex32) -> Complex64 {
    Complex64::new(z.re.into(), z.im.into())
}

/// What all levels together say of the amplifier.
struct Amplifier {
    /// Of each level: the curve, in amplitudes at the largest TX gain and with a gain of 1 for small signals; mean output over mean input in dB.
    levels: Vec<(Vec<AmPoint>, f64)>,
    /// The TX gain at which the mean power is 1 dB below the straight line.
    compression_point: Option<f64>,
}

/// Brings the levels to one scale. A channel that fades leaves the scale of each open, so each is fitted to the one with less drive where their amplitudes overlap; the least drive is
/// scaled by its own small amplitudes.
fn stitch(levels: &[Level]) -> Result<Amplifier> {
    let mut order: Vec<usize> = (0..levels.len()).collect();
    order.sort_by(|&a, &b| levels[a].gain.total_cmp(&levels[b].gain));
    let mut curves: Vec<(Vec<AmPoint>, f64)> = vec![(Vec::new(), f64::NAN); levels.len()];
    let most = levels.iter().map(|level| level.gain).fold(f64::NEG_INFINITY, f64::max);
    let mut known: Vec<AmPoint> = Vec::new();
    for level in order {
        let drive = 10f64.powf((levels[level].gain - most) / 20.0);
        let driven = |scale: Complex64| levels[level].pairs.iter().map(move |(x, u)| (x * drive, u * drive * scale)).unzip();
        let (input, output): (Vec<Complex64>, Vec<Complex64>) = driven(Complex64::new(1.0, 0.0));
        let reach = known.last().map_or(f64::INFINITY, |p: &AmPoint| p.input);
        let points: Vec<AmPoint> = match am_curve(&input, &output, 4 * BINS) {
            Ok(points) => points,
            Err(_) => continue,
        };
        let small = reach.min(0.5 * points.last().map_or(0.0, |p| p.input));
        // Gains over amplitude, by least squares with as much weight as there are samples.
        let (mut over, mut under) = (Complex64::default(), 0.0);
        for p in points.iter().filter(|p| p.input <= small && p.samples >= LEAST) {
            let measured = Complex64::from_polar(p.output, p.phase_deg.to_radians());
            let wanted = expected(&known, p.input);
            over += measured * wanted.conj() * p.samples as f64;
            under += wanted.norm_sqr() * p.samples as f64;
        }
        // What was measured is noisy, what is wanted is not: the other way round noise would make the scale too small.
        let scale = if over.norm() > 0.0 { under / over } else { Complex64::new(1.0, 0.0) };
        let (input, output): (Vec<Complex64>, Vec<Complex64>) = driven(scale);
        let curve: Vec<_> = am_curve(&input, &output, BINS)?.into_iter().filter(|p| p.samples >= LEAST).collect();
        // Coherent power, as noise is no output, over the input of the same samples.
        let power = |side: fn(&AmPoint) -> f64| curve.iter().map(|p| side(p).powi(2) * p.samples as f64).sum::<f64>();
        curves[level].1 = db(power(|p| p.output), power(|p| p.input));
        known.extend(curve.iter().filter(|p| known.last().is_none_or(|last| p.input > last.input)).copied().collect::<Vec<_>>());
        curves[level].0 = curve;
    }
    let mut points: Vec<(f64, f64)> = levels.iter().zip(&curves).map(|(l, c)| (l.gain, c.1)).filter(|p| p.1.is_finite()).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let crossing = points.windows(2).find(|w| w[0].1 > -1.0 && w[1].1 <= -1.0);
    let compression_point = crossing.map(|w| w[0].0 + (w[1].0 - w[0].0) * (w[0].1 + 1.0) / (w[0].1 - w[1].1));
    Ok(Amplifier { levels: curves, compression_point })
}

/// The output that the curve so far has at an amplitude; a straight line where there is none yet.
fn expected(known: &[AmPoint], input: f64) -> Complex64 {
    let next = known.partition_point(|p| p.input < input);
    let at = |p: &AmPoint| Complex64::from_polar(p.output / p.input, p.phase_deg.to_radians());
    input
        * match (next.checked_sub(1).and_then(|i| known.get(i)), known.get(next)) {
            (Some(a), Some(b)) => at(a) + (at(b) - at(a)) * ((input - a.input) / (b.input - a.input)),
            (Some(p), None) | (None, Some(p)) => at(p),
            (None, None) => Complex64::new(1.0, 0.0),
        }
}

fn write(session: &Session<'_>, levels: &[Level], failures: &[(f64, Error)]) -> Result<()> {
    let output = &session.args.output;
    let amplifier = stitch(levels)?;
    let mut table =
        format!("{:>10} {:<12} {:>8} {:>8} {:>10} {:>15}\n", "TX gain dB", "filter", "NMSE dB", "EVM %", "RX dBFS", "compression dB");
    let mut csv = String::from("tx_gain_db,filter,nmse_db,evm_percent,level_dbfs,compression_db\n");
    let mut curves = String::from("tx_gain_db,input,output,phase_deg,spread,samples\n");
    for (level, (curve, compression)) in levels.iter().zip(&amplifier.levels) {
        let evm = level.evm_percent.unwrap_or(f64::NAN);
        for (name, nmse) in &level.filters {
            let _ = writeln!(table, "{:>10} {name:<12} {nmse:>8.2} {evm:>8.2} {:>10.1} {compression:>15.2}", level.gain, level.received.0);
            let _ = writeln!(csv, "{},{name},{nmse},{evm},{},{compression}", level.gain, level.received.0);
        }
        for p in curve {
            let _ = writeln!(curves, "{},{},{},{},{},{}", level.gain, p.input, p.output, p.phase_deg, p.spread, p.samples);
        }
    }
    match amplifier.compression_point {
        Some(gain) => drop(writeln!(table, "1 dB compression of the mean power at a TX gain of {gain:.1} dB")),
        None => drop(writeln!(table, "the mean power is not compressed by 1 dB at any of these gains")),
    }
    let found = levels.iter().zip(&amplifier.levels).map(|(level, (curve, compression))| {
        let filters: Vec<_> = level.filters.iter().map(|(name, nmse)| json!({"name": name, "nmse_db": nmse})).collect();
        let curve: Vec<_> = curve.iter().map(|p| json!([p.input, p.output, p.phase_deg])).collect();
        json!({
            "tx_gain_db": level.gain, "compression_db": compression, "level_dbfs": level.received.0, "clipped_samples": level.received.1,
            "evm_percent": level.evm_percent, "filters": filters, "am_am_pm": curve,
        })
    });
    let failed: Vec<_> = failures.iter().map(|(gain, error)| json!({"tx_gain_db": gain, "error": error.to_string()})).collect();
    let found = json!({"levels": found.collect::<Vec<_>>(), "compression_point_tx_gain_db": amplifier.compression_point, "failed": failed});
    // The table first: a disk that is full must not take it along.
    say!("{}", table.trim_end());
    let json = output.json.as_ref().map(|path| crate::cli::json::write(path, "sweep", found));
    let page = output.out.as_ref().map(|folder| {
        for (name, text) in [("sweep.csv", &csv), ("am-am.csv", &curves)] {
            files::write(&folder.join(name), text.as_bytes())?;
        }
        let curve = |(level, (curve, _)): (&Level, &(Vec<AmPoint>, f64))| AmplifierCurve {
            name: format!("{} dB", level.gain),
            input: curve.iter().map(|p| p.input).collect(),
            output: curve.iter().map(|p| p.output).collect(),
            phase_deg: curve.iter().map(|p| p.phase_deg).collect(),
        };
        let curves: Vec<_> = levels.iter().zip(&amplifier.levels).map(curve).collect();
        let caption = "Amplitudes as at the largest gain, that of the amplifier for small signals being 1; each drive is fitted to the ones below it.";
        am_am_pm("The amplifier over its drive", &AmplifierCurve::default(), &curves).captioned(caption).save(folder.join("am-am")).map(drop)
    });
    outputs::all(json.into_iter().chain(page))
}
