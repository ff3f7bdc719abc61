//! Where the two streams come from.

use std::{path::Path, str::FromStr};

use num_complex::Complex32;

use super::Args;
use crate::{
    Error, Result,
    channel::{Scenario, TestBed},
    iq::{
        Pair, Recording,
        align::{Alignment, Options, align_recordings},
    },
    ofdm,
};

/// How the recordings are brought into step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Align {
    Auto,
    None,
    Delay(f64),
}

impl FromStr for Align {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, text.parse::<f64>()) {
            ("auto", _) => Ok(Self::Auto),
            ("none", _) => Ok(Self::None),
            (_, Ok(delay)) if delay.abs() <= 1e12 => Ok(Self::Delay(delay)),
            _ => Err(Error::parameter("align", "auto, none or a delay in samples", text)),
        }
    }
}

/// Samples at the start that are looked at before anything runs.
const LOOK: usize = 1 << 16;

/// The key of a recording whose samples are in step with those of its partner.
const ALIGNED: &str = "kaflow:aligned";

/// Two recordings, or the test bed.
pub(super) enum Input {
    Recordings(Box<Recordings>),
    Bed(Box<TestBed>),
}

pub(super) struct Recordings {
    pub(super) tx: Recording,
    pub(super) rx: Recording,
    pub(super) step: Step,
}

/// How the recordings are brought into step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// By so many whole samples, positive when rx is late.
    pub(super) whole: i64,
    /// What the search found.
    found: Option<Alignment>,
    /// What is undone; nothing where it would make no difference, so that the samples stay as they were recorded.
    pub(super) correct: Option<Alignment>,
}

/// What a look at the start found out.
pub(super) struct Survey {
    /// The start of what the filters see and of what they predict.
    pub(super) input: Vec<Complex32>,
    pub(super) target: Vec<Complex32>,
    /// Mean power of the filters' input.
    pub(super) power: f64,
    /// Whether all imaginary parts are zero.
    pub(super) real: bool,
    pub(super) sample_rate: Option<f64>,
    pub(super) alignment: Option<Alignment>,
    pub(super) delay: f64,
    /// Taps that reach ahead.
    pub(super) advance: usize,
    /// Pairs there will be, missing samples not counted off.
    pub(super) total: u64,
    /// The streams in words, the same for the same streams.
    pub(super) source: String,
    /// The OFDM waveform that was sent, where that is known, and whether it comes in frames.
    pub(super) waveform: Option<(ofdm::Config, bool)>,
}

impl Input {
    pub(super) fn open(args: &Args) -> Result<Self> {
        let (mut tx, mut rx) = match (&args.tx, &args.rx) {
            (None, _) => {
                let mut scenario = Scenario::preset(args.preset.as_deref().unwrap_or("paper"))?;
                scenario.samples = args.samples.unwrap_or(scenario.samples);
                scenario.seed = args.seed.unwrap_or(scenario.seed);
                return Ok(Self::Bed(Box::new(TestBed::new(&scenario)?)));
            }
            (Some(pair), None) => {
                let pair = Pair::open(pair).map_err(|error| alone(pair, error))?;
                (pair.tx, pair.rx)
            }
            (Some(tx), Some(rx)) => {
                if let Some(folder) = [tx, rx].into_iter().find(|path| path.is_dir()) {
                    return Err(Error::file(folder, "recording", "is a folder: give it alone, or name two recordings"));
                }
                (Recording::open(tx, args.format)?, Recording::open(rx, args.format)?)
            }
        };
        let look = check(args, &mut tx, &mut rx)?;
        let step = match args.align {
            Align::None => Step::whole(0),
            Align::Delay(delay) if delay.fract() == 0.0 => Step::whole(delay as i64),
            Align::Delay(delay) => Step { whole: delay.round() as i64, found: None, correct: Some(Alignment::only_delay(delay)) },
            // What was written in step needs no search; a repeated frame would not even allow one.
            Align::Auto if in_step(&tx, &rx) => Step::whole(0),
            Align::Auto => Step::found(align_recordings(&mut tx, &mut rx, Options::default())?, &look, rx.len()),
        };
        Ok(Self::Recordings(Box::new(Recordings { tx, rx, step })))
    }

    /// Looks at the start of the streams.
    pub(super) fn survey(&mut self, args: &Args) -> Result<Survey> {
        let mut waveform = None;
        let (tx, rx, sample_rate, step, total, source) = match self {
            Self::Bed(bed) => {
                let mut bed = bed.clone();
                let (mut tx, mut rx) = (Vec::new(), Vec::new());
                while tx.len() < LOOK
                    && let Some(chunk) = bed.next_chunk()
                {
                    tx.extend_from_slice(&chunk.tx[0]);
                    rx.extend_from_slice(&chunk.rx[0]);
                }
                let scenario = bed.scenario();
                let source = toml::to_string(scenario).map_err(|e| Error::Data(format!("the scenario cannot be written down: {e}")))?;
                waveform = (!scenario.real).then(|| (scenario.ofdm.clone(), scenario.frames));
                (tx, rx, Some(scenario.sample_rate()), Step::whole(0), scenario.samples, source)
            }
            Self::Recordings(recordings) => {
                let Recordings { tx, rx, step } = &mut **recordings;
                let source = format!("{} ({}) and {} ({})", tx.data_path().display(), tx.len(), rx.data_path().display(), rx.len());
                let start = |recording: &mut Recording| -> Result<Vec<Complex32>> {
                    let samples = recording.read_up_to(LOOK + step.reach())?;
                    recording.seek(0)?;
                    Ok(samples)
                };
                let (a, b) = step.apply(&start(tx)?, &start(rx)?);
                let (skip_tx, skip_rx) = step.skip();
                let total = tx.len().saturating_sub(skip_tx).min(rx.len().saturating_sub(skip_rx));
                (a, b, rx.sample_rate().or(tx.sample_rate()), *step, total, source)
            }
        };
        if total == 0 {
            return Err(Error::Data(format!("the recordings do not overlap at a delay of {} samples", step.delay())));
        }
        let alignment = step.found;
        let ahead = alignment.map_or(0, |a| a.advance).min(args.taps / 2);
        let advance = args.advance.unwrap_or(if args.equalize { args.taps / 2 } else { ahead });
        if advance >= args.taps {
            return Err(Error::parameter("advance", format!("less than the {} taps", args.taps), advance));
        }
        let real = tx.iter().chain(&rx).all(|z| z.im == 0.0);
        let (input, target) = if args.equalize { (rx, tx) } else { (tx, rx) };
        let finite: Vec<f64> = input.iter().map(|z| f64::from(z.re).powi(2) + f64::from(z.im).powi(2)).filter(|p| p.is_finite()).collect();
        let power = finite.iter().sum::<f64>() / finite.len().max(1) as f64;
        Ok(Survey {
            power,
            real,
            sample_rate,
            alignment,
            delay: step.delay(),
            advance,
            total: total.saturating_sub(advance as u64),
            source,
            waveform,
            input,
            target,
        })
    }
}

impl Step {
    fn whole(whole: i64) -> Self {
        Self { whole, found: None, correct: None }
    }

    /// What of an alignment is worth undoing. Levels stay as they were recorded.
    fn found(found: Alignment, look: &Look, samples: u64) -> Self {
        let mut correct = Alignment { gain: 1.0, ..found };
        if look.real {
            // Real-valued samples stay real.
            (correct.cfo, correct.dc.im, correct.inverted) = (0.0, 0.0, false);
        }
        let turns = correct.cfo.abs() * samples as f64;
        let no_difference =
            correct.fraction().abs() < 0.02 && turns < 0.01 && correct.dc.norm_sqr() < 1e-4 * look.rx_power && !correct.inverted;
        Self { whole: correct.whole(), found: Some(found), correct: Some(correct).filter(|_| !no_difference) }
    }

    fn skip(&self) -> (u64, u64) {
        (self.whole.min(0).unsigned_abs(), self.whole.max(0).unsigned_abs())
    }

    /// Samples of either recording that precede the first pair.
    fn reach(&self) -> usize {
        self.whole.unsigned_abs().min(1 << 20) as usize
    }

    fn delay(&self) -> f64 {
        self.correct.or(self.found).map_or(self.whole as f64, |alignment| alignment.delay)
    }

    fn apply(&self, tx: &[Complex32], rx: &[Complex32]) -> (Vec<Complex32>, Vec<Complex32>) {
        if let Some(alignment) = &self.correct {
            return alignment.apply(tx, rx);
        }
        let (skip_tx, skip_rx) = self.skip();
        let tx = tx.get(skip_tx as usize..).unwrap_or_default();
        let rx = rx.get(skip_rx as usize..).unwrap_or_default();
        let n = tx.len().min(rx.len());
        (tx[..n].to_vec(), rx[..n].to_vec())
    }
}

/// One path alone must be a pair; whoever gave one recording forgot the other.
fn alone(path: &Path, error: Error) -> Error {
    let collection = path.is_dir() || path.extension().is_some_and(|e| e == "sigmf-collection");
    if collection || !path.exists() {
        error
    } else {
        Error::file(path, "recording", "is alone: give what was sent and what was received, or a .sigmf-collection")
    }
}

/// What the start of the recordings looks like.
struct Look {
    real: bool,
    rx_power: f64,
}

/// Whether both recordings say that they are in step.
fn in_step(tx: &Recording, rx: &Recording) -> bool {
    [tx, rx].iter().all(|r| r.meta().global.extra.get(ALIGNED).is_some_and(|aligned| aligned == true))
}

/// What has been seen in a recording.
#[derive(Clone, Copy, Default)]
struct Holds {
    numbers: bool,
    /// Numbers that are not zero.
    signal: bool,
}

impl Holds {
    fn look(&mut self, samples: &[Complex32]) {
        for z in samples.iter().filter(|z| z.re.is_finite() && z.im.is_finite()) {
            self.numbers = true;
            self.signal |= *z != Complex32::default();
        }
    }
}

/// Refuses what cannot be tracked.
fn check(args: &Args, tx: &mut Recording, rx: &mut Recording) -> Result<Look> {
    let name = |r: &Recording| r.data_path().display().to_string();
    let same_file = match (std::fs::canonicalize(tx.data_path()), std::fs::canonicalize(rx.data_path())) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    };
    if same_file {
        return Err(Error::Data(format!("{} was given as what was sent and as what was received", name(tx))));
    }
    if let (Some(a), Some(b)) = (tx.sample_rate(), rx.sample_rate())
        && (a - b).abs() > 1e-3 * a
    {
        return Err(Error::Data(format!("{} has {a} samples a second and {} has {b}: resample one of them", name(tx), name(rx))));
    }
    if let Some(empty) = [&*tx, &*rx].into_iter().find(|recording| recording.is_empty()) {
        return Err(Error::Data(format!("{} is empty: it holds no sample", name(empty))));
    }
    // A live recording that was cut short: each file goes as far as it was on disk.
    if tx.len() != rx.len() && !args.trim && !in_step(tx, rx) {
        let lengths = format!("{} has {} samples and {} has {}", name(tx), tx.len(), name(rx), rx.len());
        return Err(Error::Data(format!("{lengths}: add --trim to use the common part")));
    }
    let mut same = tx.len() == rx.len();
    let (mut tx_holds, mut rx_holds) = (Holds::default(), Holds::default());
    let mut look = Look { real: true, rx_power: 0.0 };
    let (mut a, mut b) = (vec![Complex32::default(); LOOK], vec![Complex32::default(); LOOK]);
    // One look decides, unless the recordings start silent or alike.
    loop {
        let (n, m) = (tx.read(&mut a)?, rx.read(&mut b)?);
        tx_holds.look(&a[..n]);
        rx_holds.look(&b[..m]);
        look.real &= a[..n].iter().chain(&b[..m]).all(|z| z.im == 0.0);
        look.rx_power = look.rx_power.max(crate::metrics::power(&b[..m]));
        same &= n == m && a[..n].iter().zip(&b[..m]).all(|(a, b)| a == b);
        if (n == 0 && m == 0) || (tx_holds.signal && rx_holds.signal && !same) {
            break;
        }
    }
    for (holds, recording) in [(tx_holds, &*tx), (rx_holds, &*rx)] {
        if !holds.numbers {
            return Err(Error::Data(format!("{} holds no number: all its samples are NaN or infinite", name(recording))));
        }
        if !holds.signal {
            return Err(Error::Data(format!("{} is silent: all its samples are zero", name(recording))));
        }
    }
    if same {
        return Err(Error::Data(format!("{} and {} hold the same samples: there is no channel between them", name(tx), name(rx))));
    }
    tx.seek(0)?;
    rx.seek(0)?;
    Ok(look)
}
