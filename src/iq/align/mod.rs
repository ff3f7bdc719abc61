//! Finding out how a received recording lies to the transmitted one: delay, carrier offset, gain, DC, inversion.
//!
//! The search goes in four steps, none of which needs the result of a later one:
//!
//! 1. *Delay to a sample and inversion*, blind to the carrier: not the signals are correlated but their products with themselves `k` samples earlier, `x[n] x*[n-k]`, in
//!    which a carrier offset is a constant phase and fading a slowly changing positive weight. A plain long correlation would vanish under either.
//! 2. *Carrier offset*: the phase that `rx[n] tx*[n-d]` gains over a lag, the lag doubled as long as the channel stays coherent over it.
//! 3. *Delay to a fraction of a sample*: the finest grid of few, evenly spaced paths that explains what was received, fitted in blocks shorter than the
//!    coherence time.
//! 4. *Gain, DC and precursors* from the same fit.

mod carrier;
mod coarse;
mod fine;
pub(super) mod normal;
#[cfg(test)]
#[path = "../../../tests/unit/iq/align/mod.rs"]
mod tests;

use std::ops::RangeInclusive;

use num_complex::{Complex32, Complex64};
use serde::Serialize;

use super::{Pairs, Recording, Synchroniser};
use crate::{Error, Result};

/// What the search may assume.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The largest delay looked for, in samples and in both directions.
    pub max_delay: usize,
    /// How many samples of each recording are used.
    pub samples: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_delay: 131_072, samples: 1 << 18 }
    }
}

/// How the received samples follow from the transmitted ones, the channel's echoes left aside:
/// `rx[n] = gain e^{j phase} e^{j 2 pi cfo n} tx(n - delay) + dc`, with `tx` conjugated when `inverted`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Alignment {
    /// The delay of the first path in samples, positive when `rx` is late; the first path is the earliest within 12 dB of the strongest.
    pub delay: f64,
    /// How many samples after the first path the strongest one comes.
    pub peak: f64,
    /// How many samples before the first path the channel begins to matter: what a tracker of the corrected streams should look ahead.
    pub advance: usize,
    /// The carrier offset in cycles per sample.
    pub cfo: f64,
    /// The amplitude ratio between what `tx` explains of `rx` and `tx`.
    pub gain: f64,
    /// The phase of the strongest path at the first sample of `rx`, in radians; means little when the channel fades.
    pub phase: f64,
    /// The constant that is added in `rx`.
    #[serde(serialize_with = "as_pair")]
    pub dc: Complex64,
    /// Whether the spectrum is mirrored.
    pub inverted: bool,
    /// 0 to 1: how sure it is. The lesser of how far the found delay stands above the best other one, `1 - other / found` in power, and of how sure its fraction is.
    /// Above 0.9 the delay is right to a tenth of a sample.
    pub confidence: f64,
    /// 0 to 1: the share of the received power that a linear channel explains.
    pub explained: f64,
    /// For how many samples the channel stays the same, about; the search's own limit when it does not change.
    pub coherence: usize,
    /// Paths before the first one and from it on, as many as explain what was received.
    #[serde(skip)]
    pub(crate) support: (usize, usize),
}

fn as_pair<S: serde::Serializer>(z: &Complex64, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    [z.re, z.im].serialize(serializer)
}

impl Alignment {
    /// A delay, positive when `rx` is late, and nothing else.
    pub(crate) fn only_delay(delay: f64) -> Self {
        Self {
            delay,
            peak: 0.0,
            advance: 0,
            cfo: 0.0,
            gain: 1.0,
            phase: 0.0,
            dc: Complex64::default(),
            inverted: false,
            confidence: 1.0,
            explained: 1.0,
            coherence: 0,
            support: (0, 1),
        }
    }

    /// Two streams that run together: `tx`, and `rx` without delay, carrier offset, DC and inversion. Both have the length of the overlap; levels stay as they were.
    ///
    /// For recordings that do not fit into memory see `Synchroniser::known`.
    pub fn apply(&self, tx: &[Complex32], rx: &[Complex32]) -> (Vec<Complex32>, Vec<Complex32>) {
        let (mut sync, mut out) = (Synchroniser::known(*self), Pairs::default());
        sync.send(tx, None);
        sync.receive(rx, None);
        // A place that is told needs no search, which alone could fail.
        let _ = sync.finish(&mut out);
        (out.tx, out.rx)
    }

    /// The delay's nearest whole number of samples.
    pub fn whole(&self) -> i64 {
        self.delay.round() as i64
    }

    /// What is left of the delay, between -0.5 and 0.5.
    pub(crate) fn fraction(&self) -> f64 {
        self.delay - self.delay.round()
    }

    /// The carrier offset in Hz.
    pub(crate) fn cfo_hz(&self, sample_rate: f64) -> f64 {
        self.cfo * sample_rate
    }
}

/// The least overlap that makes an estimate worth its name.
const MIN_SAMPLES: usize = 256;

/// Finds the alignment of `rx` to `tx`, or says why there is none.
///
/// Samples that are zero or not finite carry no weight.
pub fn align(tx: &[Complex32], rx: &[Complex32], options: Options) -> Result<Alignment> {
    if options.samples < MIN_SAMPLES {
        return Err(Error::parameter("samples", format!("at least {MIN_SAMPLES}"), options.samples));
    }
    let most = i64::try_from(options.max_delay).unwrap_or(i64::MAX);
    align_within(&tx[..tx.len().min(options.samples)], &rx[..rx.len().min(options.samples)], -most..=most, true)
}

/// As [`align`], with all samples and delays from one to another; `chirps` too, at three times the price.
pub(super) fn align_within(tx: &[Complex32], rx: &[Complex32], delays: RangeInclusive<i64>, chirps: bool) -> Result<Alignment> {
    for (name, samples) in [("tx", tx), ("rx", rx)] {
        if samples.len() < MIN_SAMPLES {
            return Err(Error::Data(format!("{name} has {} samples: at least {MIN_SAMPLES} are needed to align", samples.len())));
        }
    }
    let tx = tame(tx);
    let mut rx = tame(rx);
    for (name, samples) in [("tx", &tx), ("rx", &rx)] {
        let first = samples[0];
        if samples.iter().all(|&z| z == first) {
            return Err(Error::Data(format!("{name} is constant: there is nothing to align by")));
        }
    }
    // Silence, and what is not a number, carries no weight.
    let sounds = |z: &&Complex64| **z != Complex64::default();
    let mean = rx.iter().filter(sounds).sum::<Complex64>() / rx.iter().filter(sounds).count().max(1) as f64;
    rx.iter_mut().filter(|z| **z != Complex64::default()).for_each(|z| *z -= mean);

    let coarse = coarse::find(&tx, &rx, &delays, chirps)?;
    Ok(refine(&tx, rx, mean, &coarse))
}

/// The alignment of `rx` to `tx`, where it is known to a few samples; the confidence is the one that is known.
pub(super) fn align_near(tx: &[Complex32], rx: &[Complex32], known: &Alignment) -> Alignment {
    let mut rx = tame(rx);
    rx.iter_mut().filter(|z| **z != Complex64::default()).for_each(|z| *z -= known.dc);
    let coarse =
        coarse::Coarse { delay: (known.delay + known.peak).round() as i64, inverted: known.inverted, confidence: known.confidence };
    refine(&tame(tx), rx, known.dc, &coarse)
}

/// All but the coarse delay; `mean` was taken from `rx`.
fn refine(tx: &[Complex64], mut rx: Vec<Complex64>, mean: Complex64, coarse: &coarse::Coarse) -> Alignment {
    if coarse.inverted {
        rx.iter_mut().for_each(|z| *z = z.conj());
    }
    let carrier = carrier::find(tx, &rx, coarse.delay);
    for (n, z) in rx.iter_mut().enumerate() {
        *z *= Complex64::cis(-std::f64::consts::TAU * carrier.cfo * n as f64);
    }
    let fine = fine::find(tx, &rx, coarse.delay, &carrier);
    let unmirror = |z: Complex64| if coarse.inverted { z.conj() } else { z };
    Alignment {
        delay: fine.delay,
        peak: fine.peak,
        advance: fine.advance,
        cfo: if coarse.inverted { -carrier.cfo } else { carrier.cfo },
        gain: fine.gain,
        phase: unmirror(Complex64::cis(fine.phase)).arg(),
        dc: mean + unmirror(fine.dc),
        inverted: coarse.inverted,
        confidence: coarse.confidence.min(fine.confidence),
        explained: fine.explained,
        coherence: carrier.coherence,
        support: fine.support,
    }
}

/// [`align`] on the selected channels of two recordings, from where they stand; they are left where they were.
pub(crate) fn align_recordings(tx: &mut Recording, rx: &mut Recording, options: Options) -> Result<Alignment> {
    if let (Some(a), Some(b)) = (tx.sample_rate(), rx.sample_rate())
        && (a - b).abs() > 1e-3 * a
    {
        return Err(Error::Data(format!(
            "{} has {a} samples per second and {} has {b}: resample one of them",
            tx.data_path().display(),
            rx.data_path().display()
        )));
    }
    let places = (tx.position(), rx.position());
    let result = align(&tx.read_up_to(options.samples)?, &rx.read_up_to(options.samples)?, options);
    tx.seek(places.0)?;
    rx.seek(places.1)?;
    result.map_err(|error| match error {
        Error::Data(problem) => Error::Data(format!("{} and {}: {problem}", tx.data_path().display(), rx.data_path().display())),
        other => other,
    })
}

/// In double precision, with zeros for what is not finite or would overflow when squared twice, and with rare giants cut down to 18 dB above rms: products
/// of four samples would see nothing else.
fn tame(x: &[Complex32]) -> Vec<Complex64> {
    let wide = |z: &Complex32| Complex64::new(z.re.into(), z.im.into());
    let mut y: Vec<Complex64> = x.iter().map(|z| Some(wide(z)).filter(|z| z.norm_sqr() < 1e60).unwrap_or_default()).collect();
    // A giant raises the limit itself; each round brings it down by about the root of the length.
    for _ in 0..16 {
        let sounding = y.iter().filter(|z| z.norm_sqr() > 0.0).count().max(1);
        let limit = 8.0 * (y.iter().map(|z| z.norm_sqr()).sum::<f64>() / sounding as f64).sqrt();
        let mut changed = false;
        for z in y.iter_mut().filter(|z| z.norm() > limit) {
            *z *= limit / z.norm();
            changed = true;
        }
        if !changed {
            break;
        }
    }
    y
}
