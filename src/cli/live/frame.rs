//! The frame that is repeated: ours, of a waveform that is known, or what another box repeats.

use std::path::Path;

use super::Args;
use crate::blocks::Frame;
use crate::cli::recordings::understood;
use crate::cli::run::input::{self, LONGEST_FRAME};
use crate::iq::Recording;
use crate::ofdm::{self, Transmitter};
use crate::{Complex32, Error, Result, metrics};

/// The part of its length by which a frame of ours may be longer, so that it fits both rates.
const PADDED: usize = 8;

/// The frame at the rates of transmitter and receiver, and its waveform where that is known at the receiver's.
pub(super) fn make(args: &Args, tx: f64, rx: f64) -> Result<(Frame, Option<ofdm::Config>)> {
    if args.linearize.wanted() && tx != rx {
        let why = "as a predistorter learns from what it sends, sample by sample";
        return Err(Error::parameter("tx-rate", format!("{rx}, that of the receiver, with --linearize: {why}"), tx));
    }
    let (frame, waveform) = match &args.tx {
        Some(path) => (Frame::at_rates(of_file(args, path)?, tx, rx)?, None),
        // At the lower rate, so that all of it passes both ends.
        None => {
            let (low, high) = (tx.min(rx), tx.max(rx));
            let (mut frame, config) = ours(args, low)?;
            let padding = Frame::padding(frame.len(), low, high);
            if padding <= frame.len() / PADDED {
                frame.resize(frame.len() + padding, Complex32::ZERO);
            }
            let frame = if tx <= rx { Frame::at_rates(frame, tx, rx)? } else { Frame::known_at_rates(frame, tx, rx)? };
            (frame, (rx <= tx).then_some(config))
        }
    };
    if frame.known.len() > LONGEST_FRAME {
        let problem = format!("lower: the frame would have {} samples, and {LONGEST_FRAME} are the most", frame.known.len());
        return Err(Error::parameter("rx-rate", problem, rx));
    }
    Ok((frame, waveform))
}

/// What another box repeats, or is to be repeated, with an rms of 1.
fn of_file(args: &Args, path: &Path) -> Result<Vec<Complex32>> {
    let mut recording = understood(Recording::open_as(path, args.format)?)?;
    input::check_frame(&recording)?;
    let frame = recording.read_up_to(LONGEST_FRAME)?;
    let power = metrics::power(&frame);
    if power == 0.0 {
        return Err(Error::file(path, "samples", "are all zero: they must be the frame that the transmitter repeats"));
    }
    Ok(frame.iter().map(|z| z * power.sqrt().recip() as f32).collect())
}

/// Our own waveform.
fn ours(args: &Args, rate: f64) -> Result<(Vec<Complex32>, ofdm::Config)> {
    let config = args.waveform(rate)?;
    let mut frame = vec![Complex32::ZERO; config.frame_samples()];
    Transmitter::new(config.clone(), ofdm::Source::RandomFrames)?.fill(&mut frame);
    args.linearize.filter(&mut frame, &config);
    Ok((frame, config))
}
