//! Where the two streams come from, and what is known of them before a run.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use num_complex::Complex32;

use super::{Sent, Waveform};
use crate::{
    Error, Result,
    channel::{Scenario, TestBed},
    cli::recordings::{RecordingArgs, understood},
    flowgraphs::track::Source,
    iq::{
        Pair, Pairs, Recording, Synchroniser,
        align::{Alignment, Options, align, align_recordings},
    },
    metrics,
};

/// How recordings are brought into step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::cli) enum Align {
    Auto,
    Follow,
    None,
    Delay(f64),
}

impl FromStr for Align {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, text.parse::<f64>()) {
            ("auto", _) => Ok(Self::Auto),
            ("follow", _) => Ok(Self::Follow),
            ("none", _) => Ok(Self::None),
            (_, Ok(delay)) if delay.abs() <= 1e12 => Ok(Self::Delay(delay)),
            _ => Err(Error::parameter("align", "auto, follow, none or a delay in samples", text)),
        }
    }
}

impl std::fmt::Display for Align {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Follow => f.write_str("follow"),
            Self::None => f.write_str("none"),
            Self::Delay(delay) => write!(f, "{delay}"),
        }
    }
}

/// What the streams are made of.
pub(in crate::cli) enum Origin {
    Bed(Box<Scenario>),
    /// Two recordings; without `rx`, `tx` is a collection or a folder that holds both.
    Recordings {
        tx: PathBuf,
        rx: Option<PathBuf>,
        open: RecordingArgs,
        tx_channel: usize,
        align: Align,
        trim: bool,
    },
}

/// What the filters see of the streams.
#[derive(Clone, Copy)]
pub(in crate::cli) struct Sight {
    /// Samples in a window, where that is given.
    pub(in crate::cli) taps: Option<usize>,
    /// Taps behind the predicted sample, where that is given.
    pub(in crate::cli) advance: Option<usize>,
    pub(in crate::cli) equalize: bool,
}

impl Sight {
    pub(in crate::cli) fn new(taps: Option<usize>, advance: Option<usize>, equalize: bool) -> Result<Self> {
        match (taps, advance) {
            (Some(taps), _) if taps == 0 || taps > MOST_TAPS => Err(Error::parameter("taps", format!("between 1 and {MOST_TAPS}"), taps)),
            (taps, Some(advance)) if advance >= taps.unwrap_or(MOST_TAPS) => {
                Err(Error::parameter("advance", format!("less than the {} taps", taps.unwrap_or(MOST_TAPS)), advance))
            }
            _ => Ok(Self { taps, advance, equalize }),
        }
    }
}

/// Taps where nobody says and no echo is found further away, and the most there may be.
pub(in crate::cli) const TAPS: usize = 4;
const MOST_TAPS: usize = 4096;

/// Samples at the start that are looked at before anything runs.
const LOOK: usize = 1 << 16;

/// The key of a recording whose samples are in step with those of its partner.
const ALIGNED: &str = "kaflow:aligned";

/// The key of a recording whose receiver had the transmitter's clock.
pub(in crate::cli) const ONE_CLOCK: &str = "kaflow:one_clock";

/// The key of a recording that is one frame, which its transmitter repeated.
pub(in crate::cli) const REPEATED: &str = "kaflow:repeated";

/// The key of such a recording's OFDM waveform.
pub(in crate::cli) const WAVEFORM: &str = "kaflow:ofdm";

/// What is known of the streams before the run.
pub(in crate::cli) struct Survey {
    /// Mean power of the filters' input.
    pub(in crate::cli) power: f64,
    /// Whether all imaginary parts are zero.
    pub(in crate::cli) real: bool,
    pub(in crate::cli) sample_rate: Option<f64>,
    /// How the streams are brought into step, and what a search before the run found.
    pub(in crate::cli) align: Align,
    pub(in crate::cli) alignment: Option<Alignment>,
    /// By how many samples the received stream is late, to the nearest.
    pub(in crate::cli) late: i64,
    /// Samples in a window of the filters, and how many of them lie behind the predicted one.
    pub(in crate::cli) taps: usize,
    pub(in crate::cli) advance: usize,
    /// Pairs there will be, those in gaps not counted off; the largest number where nobody knows.
    pub(in crate::cli) total: u64,
    /// The channel that is taken of what was sent and of what was received, and of how many.
    pub(in crate::cli) channels: [(usize, usize); 2],
    /// The streams in words, the same for the same streams.
    pub(in crate::cli) source: String,
    pub(in crate::cli) waveform: Option<Waveform>,
    /// The start of what the filters see, and of what they predict: partners.
    pub(in crate::cli) start: (Vec<Complex32>, Vec<Complex32>),
}

impl Survey {
    /// Samples of a row of the error curve: fine enough for a picture of short runs; long ones merge rows. Refuses to leave all of them out of the average.
    pub(in crate::cli) fn row(&self, skip: u64) -> Result<u64> {
        if skip >= self.total {
            return Err(Error::parameter("skip", format!("less than the {} samples there are", self.total), skip));
        }
        Ok((self.total / 400).clamp(16, 4096))
    }
}

/// Opens the streams and looks at their start; refuses what cannot be tracked.
pub(in crate::cli) fn open(origin: &Origin, sight: Sight) -> Result<(Source, Survey)> {
    let (tx, rx, open, tx_channel, align, trim) = match origin {
        Origin::Bed(scenario) => return bed(scenario, sight),
        Origin::Recordings { tx, rx, open, tx_channel, align, trim } => (tx, rx, open, *tx_channel, *align, *trim),
    };
    let (mut tx, mut rx) = match rx {
        None => {
            let mut pair = Pair::open(tx).map_err(|error| alone(tx, error))?;
            pair.tx.select(tx_channel)?;
            pair.rx.select(open.channel)?;
            (pair.tx, pair.rx)
        }
        Some(rx) => {
            if let Some(folder) = [tx, rx].into_iter().find(|path| path.is_dir()) {
                return Err(Error::file(folder, "recording", "is a folder: give it alone, or name two recordings"));
            }
            (open.open(tx, tx_channel)?, open.open(rx, open.channel)?)
        }
    };
    (tx, rx) = (understood(tx)?, understood(rx)?);
    let channels = [(tx_channel, tx.channels()), (open.channel, rx.channels())];
    let repeated = says(&tx, REPEATED);
    let look = check(trim || repeated, &mut tx, &mut rx)?;
    let part = |(channel, of): (usize, usize)| if of > 1 { format!(", channel {channel} of {of}") } else { String::new() };
    let words = |r: &Recording, channel| format!("{} ({}{})", r.data_path().display(), r.len(), part(channel));
    let source = format!("{} and {}", words(&tx, channels[0]), words(&rx, channels[1]));
    let sample_rate = rx.sample_rate().or(tx.sample_rate());
    if repeated {
        check_frame(&tx)?;
        let frame = tx.read_up_to(LONGEST_FRAME)?;
        let config = tx.meta().global.extra.get(WAVEFORM).and_then(|value| serde_json::from_value(value.clone()).ok());
        let waveform = config.map(|config| Waveform { config, sent: Sent::Repeated(frame.clone()) });
        let survey = Survey { sample_rate, total: rx.len(), source, waveform, channels, ..of_frame(&frame, sight)? };
        let sync = Synchroniser::repeated(frame)?;
        return Ok((Source::Repeated(if says(&rx, ONE_CLOCK) { sync.one_clock() } else { sync }, rx), survey));
    }
    let (align, sync, found) = match align {
        // What was written in step needs no search.
        Align::Auto if says(&tx, ALIGNED) && says(&rx, ALIGNED) => (Align::None, Synchroniser::delay(0), None),
        Align::None => (align, Synchroniser::delay(0), None),
        Align::Delay(delay) if delay.fract() == 0.0 => (align, Synchroniser::delay(delay as i64), None),
        Align::Delay(delay) => (align, Synchroniser::known(Alignment::only_delay(delay)), None),
        Align::Auto | Align::Follow => {
            let found = align_recordings(&mut tx, &mut rx, Options::default())?;
            if align == Align::Follow || drifts(&mut tx, &mut rx, &found)? {
                (Align::Follow, Synchroniser::search(Options::default()).follow(), Some(found))
            } else {
                (align, worth_undoing(found, &look, rx.len()), Some(found))
            }
        }
    };
    let late = match align {
        Align::None => 0,
        Align::Delay(delay) => delay.round() as i64,
        Align::Auto | Align::Follow => found.map_or(0, |a| a.whole()),
    };
    let start = |recording: &mut Recording| -> Result<Vec<Complex32>> {
        let samples = recording.read_up_to(LOOK + late.unsigned_abs().min(1 << 20) as usize)?;
        recording.seek(0)?;
        Ok(samples)
    };
    let (mut trial, mut pairs) = (sync.clone(), Pairs::default());
    trial.send(&start(&mut tx)?, None);
    trial.receive(&start(&mut rx)?, None);
    trial.finish(&mut pairs)?;
    let (skip_tx, skip_rx) = (late.min(0).unsigned_abs(), late.max(0).unsigned_abs());
    let total = tx.len().saturating_sub(skip_tx).min(rx.len().saturating_sub(skip_rx));
    if total == 0 {
        return Err(Error::Data(format!("the recordings do not overlap at a delay of {late} samples")));
    }
    let pairs = (pairs.tx, pairs.rx);
    let survey = Survey { sample_rate, align, alignment: found, late, total, source, channels, ..look_at(pairs, found.as_ref(), sight)? };
    let total = survey.total.saturating_sub(survey.advance as u64);
    Ok((Source::Recordings(tx, rx, sync), Survey { total, ..survey }))
}

fn bed(scenario: &Scenario, sight: Sight) -> Result<(Source, Survey)> {
    let bed = TestBed::new(scenario)?;
    let mut trial = bed.clone();
    let (mut tx, mut rx) = (Vec::new(), Vec::new());
    while tx.len() < LOOK
        && let Some(chunk) = trial.next_chunk()
    {
        tx.extend_from_slice(&chunk.tx[0]);
        rx.extend_from_slice(&chunk.rx[0]);
    }
    let source = toml::to_string(bed.scenario()).map_err(|e| Error::Data(format!("the scenario cannot be written down: {e}")))?;
    let sent = if scenario.frames { Sent::Frames } else { Sent::Symbols };
    let survey = look_at((tx, rx), None, sight)?;
    let survey = Survey {
        sample_rate: Some(bed.scenario().sample_rate()),
        total: bed.scenario().samples.saturating_sub(survey.advance as u64),
        source,
        waveform: (!scenario.real).then(|| Waveform { config: bed.scenario().ofdm.clone(), sent }),
        ..survey
    };
    Ok((Source::Bed(Box::new(bed)), survey))
}

/// Samples of the longest frame that a transmitter may repeat: a run with it takes 340 MiB, and a search in vain 5 s of a core.
pub(in crate::cli) const LONGEST_FRAME: usize = 1 << 23;

/// Refuses a recording that is too long to be a frame.
pub(in crate::cli) fn check_frame(recording: &Recording) -> Result<()> {
    if recording.len() <= LONGEST_FRAME as u64 {
        return Ok(());
    }
    let problem = format!("must be one frame that the transmitter repeats, of at most {LONGEST_FRAME} samples: it has {}", recording.len());
    Err(Error::file(recording.data_path(), "samples", problem))
}

/// What is known where a frame is repeated: what is received is not looked at.
pub(in crate::cli) fn of_frame(frame: &[Complex32], sight: Sight) -> Result<Survey> {
    if sight.equalize {
        return Err(Error::parameter("equalize", "used with recordings of two streams, not with a repeated frame", "both"));
    }
    // The place of the first path is found when the frame is.
    let advance = sight.advance.unwrap_or(sight.taps.unwrap_or(TAPS) / 2);
    let start = &frame[..frame.len().min(LOOK)];
    let (power, real) = (metrics::power(frame), frame.iter().all(|z| z.im == 0.0));
    let seen = look_at((start.to_vec(), start.to_vec()), None, Sight { advance: Some(advance), ..sight })?;
    Ok(Survey { power, real, align: Align::Follow, total: u64::MAX, ..seen })
}

/// What the start of streams that are in step says.
fn look_at((tx, rx): (Vec<Complex32>, Vec<Complex32>), found: Option<&Alignment>, sight: Sight) -> Result<Survey> {
    let (before, paths) = found.map_or((0, 1), |found| (found.advance, found.support.1));
    let least = sight.taps.unwrap_or(TAPS);
    let advance = sight.advance.unwrap_or(if sight.equalize { least / 2 } else { before.min(least / 2) });
    let taps = sight.taps.unwrap_or(TAPS.max(advance + paths).min(MOST_TAPS));
    let real = tx.iter().chain(&rx).all(|z| z.im == 0.0);
    let (mut input, mut target) = if sight.equalize { (rx, tx) } else { (tx, rx) };
    let power = metrics::power(&input);
    input.drain(..advance.min(input.len()));
    target.truncate(input.len());
    input.truncate(target.len());
    Ok(Survey {
        power,
        real,
        sample_rate: None,
        align: Align::None,
        alignment: None,
        late: 0,
        taps,
        advance,
        total: 0,
        channels: [(0, 1); 2],
        source: String::new(),
        waveform: None,
        start: (input, target),
    })
}

/// Samples at the end of recordings that are aligned by themselves, and by how many the two places may differ: as paths fade, another one may count as the first.
const END: usize = 1 << 15;
const ASTRAY: f64 = 3.5;

/// Whether the recordings are further apart at their end than at their start, or nearer: their clocks differ, or samples were lost.
fn drifts(tx: &mut Recording, rx: &mut Recording, found: &Alignment) -> Result<bool> {
    let late = found.whole();
    let (skip_tx, skip_rx) = (late.min(0).unsigned_abs(), late.max(0).unsigned_abs());
    let pairs = tx.len().saturating_sub(skip_tx).min(rx.len().saturating_sub(skip_rx));
    let Some(from) = pairs.checked_sub(END as u64).filter(|&from| from > END as u64) else { return Ok(false) };
    let end = |recording: &mut Recording, skip: u64| {
        recording.seek(from + skip)?;
        let samples = recording.read_up_to(END)?;
        recording.seek(0)?;
        Ok::<_, Error>(samples)
    };
    let (sent, received) = (end(tx, skip_tx)?, end(rx, skip_rx)?);
    // An end that holds something else tells nothing.
    let Ok(end) = align(&sent, &received, Options { max_delay: END / 2, samples: END }) else { return Ok(false) };
    let apart = end.delay - found.fraction();
    let drifts = apart.abs() > ASTRAY && end.confidence.min(found.confidence) > 0.8;
    if drifts {
        let (by, way) = (apart.abs(), if apart < 0.0 { "earlier" } else { "later" });
        note!("RX comes {by:.1} samples {way} behind TX at the end than at the start: there are two clocks, or samples were lost");
    }
    Ok(drifts)
}

/// What of an alignment is worth undoing: where it would make no difference the samples stay as they were recorded. Levels always do.
fn worth_undoing(found: Alignment, look: &Look, samples: u64) -> Synchroniser {
    let mut correct = Alignment { gain: 1.0, ..found };
    if look.real {
        // Real-valued samples stay real.
        (correct.cfo, correct.dc.im, correct.inverted) = (0.0, 0.0, false);
    }
    let turns = correct.cfo.abs() * samples as f64;
    let no_difference =
        correct.fraction().abs() < 0.02 && turns < 0.01 && correct.dc.norm_sqr() < 1e-4 * look.rx_power && !correct.inverted;
    if no_difference { Synchroniser::delay(correct.whole()) } else { Synchroniser::known(correct) }
}

/// One path alone must be a pair; with one recording given, the other was forgotten.
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

/// Whether a recording says something of itself.
fn says(recording: &Recording, key: &str) -> bool {
    recording.meta().global.extra.get(key).is_some_and(|said| said == true)
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
fn check(trim: bool, tx: &mut Recording, rx: &mut Recording) -> Result<Look> {
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
    if tx.len() != rx.len() && !trim && !(says(tx, ALIGNED) && says(rx, ALIGNED)) {
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
