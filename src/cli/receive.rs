//! `kaflow receive`: the packets of a recording.

#[cfg(feature = "radio")]
mod listener;
mod report;
mod waveform;

use std::path::{Path, PathBuf};

#[cfg(feature = "radio")]
pub(super) use self::listener::Listener;
use self::waveform::Waveform;
use super::outputs::Outputs;
use super::progress;
use super::recordings::{RecordingArgs, understood};
use super::typed::whole;
use crate::iq::Recording;
use crate::ofdm::{Config, Curve, Method, Reading, Receiver, Reception, Sighted, Signal, receive_wifi};
use crate::{Complex32, Error, Result, plot};

/// Find and decode the packets of a recording, through the saturation of the transmitter's amplifier.
///
/// The amplifier's curve and the channel are learned from the preambles and from what was read. A recording without packets is no error: it says so, with the best
/// correlation that was seen.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What was received
    rx: PathBuf,
    #[command(flatten)]
    recording: RecordingArgs,
    /// The waveform: a preset (paper, wifi), 802.11a for the frames of stations, or a TOML file: a scenario of simulate, or its section ofdm (default: what the
    /// recording's metadata or a scenario.toml beside it says, else what fits)
    #[arg(long, value_name = "NAME|FILE")]
    waveform: Option<String>,
    /// How symbols are read: one-tap, dar, bdar or ep
    #[arg(long, default_value_t = Method::Bdar)]
    detector: Method,
    /// How many times the carrier grid's rate the amplifier is modelled at; 4 for an analogue one (default: the oversampling of the waveform)
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    amplifier_oversampling: Option<usize>,
    /// Write the numbers as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Folder for payload bits, constellations and report.html; made where it is missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

/// What came of a recording.
struct Outcome {
    waveform: Waveform,
    /// Where the waveform is from.
    origin: String,
    reception: Reception,
    /// What the SIGNAL fields of stations' frames say.
    signals: Vec<Option<Signal>>,
    sighted: Sighted,
    /// The amplifier's curve and the symbols that it was learned from.
    curve: Option<(Curve, u64)>,
    rate: Option<f64>,
    samples: u64,
    method: Method,
}

impl Outcome {
    /// Nothing yet.
    fn new(waveform: Waveform, origin: String, method: Method) -> Self {
        Self {
            waveform,
            origin,
            method,
            reception: Reception::default(),
            signals: Vec::new(),
            sighted: Sighted::default(),
            curve: None,
            rate: None,
            samples: 0,
        }
    }

    /// Takes over what a receiver knows beside its packets.
    fn know(&mut self, receiver: &Receiver) {
        self.sighted = receiver.sighted();
        self.curve = receiver.curve().cloned().map(|curve| (curve, receiver.learned().unwrap_or(0)));
    }
}

/// Samples that are kept in memory where a waveform has to be guessed, or where frames say their length themselves.
const MOST: usize = 50_000_000;

pub(crate) fn run(args: Args) -> Result<()> {
    // What can be refused is refused before a long recording is read.
    if let Some(n) = args.amplifier_oversampling.filter(|n| !(1..=16).contains(n)) {
        return Err(Error::parameter("amplifier-oversampling", "between 1 and 16", n));
    }
    let files = args.json.iter().cloned().chain(args.out.iter().flat_map(|folder| written(folder))).collect();
    let inputs = args.waveform.iter().map(Path::new).filter(|path| path.is_file()).collect();
    Outputs { recordings: vec![&args.rx], inputs, files, folder: args.out.as_deref(), force: args.force }.check()?;
    let mut recording = understood(args.recording.open(&args.rx, args.recording.channel)?)?;
    let outcome = receive(&mut recording, &args)?;
    report::write(recording.data_path(), &outcome, args.json.as_deref(), args.out.as_deref())
}

/// What is written to a folder.
fn written(folder: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    let pictures = ["constellation", "amplifier"].into_iter().flat_map(|name| plot::files(&folder.join(name)));
    pictures.chain(["report.html", "payload.txt", "packets.csv"].map(|name| folder.join(name)))
}

fn receive(recording: &mut Recording, args: &Args) -> Result<Outcome> {
    let (rate, samples) = (recording.sample_rate(), recording.len());
    let reading = Reading { method: args.detector, curve: None, oversampling: args.amplifier_oversampling };
    let (waveform, origin) = match waveform::stated(args.waveform.as_deref(), recording)? {
        Some(stated) => stated,
        None => {
            let start = recording.read_up_to(MOST)?;
            recording.seek(0)?;
            (waveform::guess(&start, rate)?, "not stated: what fits best".into())
        }
    };
    let mut outcome = Outcome::new(waveform.clone(), origin, args.detector);
    (outcome.rate, outcome.samples) = (rate, samples);
    match waveform {
        Waveform::Station => {
            outcome.method = Method::OneTap;
            let all = recording.read_up_to(MOST)?;
            if (all.len() as u64) < samples {
                note!("frames of stations are looked for in the first {MOST} samples only");
            }
            let mut receiver = Receiver::new(Config { clip: None, symbols: 1, ..Config::default() })?;
            receiver.push(&all, |_| {});
            outcome.sighted = receiver.sighted();
            for frame in receive_wifi(&all)? {
                let bits = |data: Vec<u8>| data.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1)).collect();
                outcome.reception.add(&frame.packet, frame.data.map(bits));
                outcome.signals.push(frame.signal);
            }
        }
        Waveform::Frames(config) => {
            let mut receiver = receiver(&config, &reading)?;
            stream(recording, &mut receiver, |packet| outcome.reception.push(&config, packet))?;
            outcome.know(&receiver);
        }
    }
    Ok(outcome)
}

fn receiver(config: &Config, reading: &Reading) -> Result<Receiver> {
    let receiver = Receiver::new(config.clone())?;
    if reading.method == Method::OneTap { Ok(receiver) } else { receiver.reading(reading) }
}

/// Pushes a recording through a receiver, gaps included.
fn stream(recording: &mut Recording, receiver: &mut Receiver, mut deliver: impl FnMut(&crate::ofdm::Packet)) -> Result<()> {
    let bar = progress::bar(recording.len(), "receiving");
    super::interrupt::watch();
    let mut buffer = vec![Complex32::default(); 1 << 16];
    while !super::interrupt::requested() {
        let gap = recording.gap();
        let n = recording.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        if let Some(gap) = gap {
            receiver.gap(gap.length);
        }
        receiver.push(&buffer[..n], &mut deliver);
        bar.inc(n as u64);
    }
    // A frame that ends with the recording may start a little early: silence lets it end.
    buffer.truncate(receiver.config().symbol_samples());
    buffer.fill(Complex32::default());
    receiver.push(&buffer, &mut deliver);
    bar.finish_and_clear();
    Ok(())
}
