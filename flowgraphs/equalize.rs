//! Coded frames through a saturated amplifier, echoes and noise, received twice: with one tap a carrier, and by a receiver that learns the amplifier's curve and reads
//! through it (`saturation`).
//!
//! ```text
//! OfdmTx ─► Amplifier ─► Fading ─► Noise ─┬─► OfdmRx, one tap a carrier
//!                                         └─► OfdmRx, reading
//! ```

use futuresdr::{blocks::NullSink, prelude::*};
use num_traits::Zero;

use crate::{
    blocks::{OfdmRx, OfdmTx, Staged},
    channel::{self, FadingConfig, Model, Noise, Profile, Stage},
    metrics::{Ber, Evm},
    ofdm::{Config, Packet, Reading, Receiver, SentFrames, Source, Transmitter},
};

/// The link.
#[derive(Clone, Debug)]
pub struct Link {
    /// The waveform; with a code packets are counted.
    pub ofdm: Config,
    /// Frames that are sent.
    pub frames: u64,
    /// Input back-off of the amplifier, in dB.
    pub ibo_db: f64,
    /// The channel's echoes.
    pub profile: Profile,
    /// Doppler frequency in cycles a sample.
    pub doppler: f64,
    /// Mean power of the received signal over that of the noise, in dB, over the record.
    pub snr_db: f64,
    /// Seed of channel and noise.
    pub seed: u64,
}

/// What a receiver made of the frames.
#[derive(Clone, Debug, Default)]
pub struct Quality {
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that were found.
    pub packets: u64,
    /// Frames whose data came through.
    pub decoded: u64,
    /// Error vector magnitude against what was sent.
    pub evm: Evm,
    /// The same with carriers weighted by the power of their channel: one in a fade counts for little, as it does to a decoder.
    pub weighted: Evm,
    /// Bit errors before decoding.
    pub ber: Ber,
    /// The last constellation points, at most some thousand: for a picture.
    pub points: Vec<Complex32>,
}

impl Quality {
    /// Share of the frames that were lost.
    pub fn packet_errors(&self) -> f64 {
        1.0 - self.decoded as f64 / self.sent.max(1) as f64
    }
}

/// Points that a [`Quality`] keeps.
const POINTS: usize = 4000;

/// Sends frames over `link` and receives them twice: with one tap a carrier, and as `reading` says.
pub fn run(link: &Link, reading: &Reading) -> Result<(Quality, Quality)> {
    let config = &link.ofdm;
    // A frame more than are counted, so that the last one has an end.
    let samples = (link.frames + 1) * period(config) as u64;
    let tx = OfdmTx::new(Transmitter::new(config.clone(), Source::RandomFrames)?, Some(samples));
    let amplifier = channel::Amplifier::new(Model::Rapp { smoothness: 2.0 }, link.ibo_db)?;
    let fading = channel::Fading::new(&FadingConfig::new(link.profile.clone(), link.doppler), link.seed)?;
    let mut noise = Noise::new(link.snr_db, link.seed)?;
    noise.set("signal_power", received_power(config, samples, amplifier.clone(), fading.clone())?)?;
    let (amplifier, fading, noise) = (Staged::new(amplifier), Staged::new(fading), Staged::new(noise));
    let one_tap = OfdmRx::new(Receiver::new(config.clone())?).keep_packets();
    let reader = OfdmRx::new(Receiver::new(config.clone())?.reading(reading)?).keep_packets();
    let (points_1, points_2) = (NullSink::<Complex32>::new(), NullSink::<Complex32>::new());

    let mut fg = Flowgraph::new();
    connect!(fg,
        tx > amplifier > fading > noise;
        noise > one_tap;
        noise > reader;
        one_tap.points > points_1;
        reader.points > points_2;
    );
    let fg = Runtime::new().run(fg)?;
    Ok((quality(link, one_tap.get(&fg)?.packets())?, quality(link, reader.get(&fg)?.packets())?))
}

/// Mean power behind amplifier and channel, from a rehearsal without the flowgraph.
fn received_power(config: &Config, samples: u64, mut amplifier: channel::Amplifier, mut fading: channel::Fading) -> Result<f64> {
    let mut transmitter = Transmitter::new(config.clone(), Source::RandomFrames)?;
    let mut piece = vec![Complex32::zero(); 4096];
    let (mut energy, mut left) = (0.0, samples as usize);
    while left > 0 {
        let n = left.min(piece.len());
        transmitter.fill(&mut piece[..n]);
        amplifier.process(&mut piece[..n]);
        fading.process(&mut piece[..n]);
        energy += piece[..n].iter().map(|z| f64::from(z.norm_sqr())).sum::<f64>();
        left -= n;
    }
    Ok(energy / samples as f64)
}

/// Samples from one frame to the next.
fn period(config: &Config) -> usize {
    config.frame_samples() + config.gap * config.oversampling
}

/// Compares packets with what was sent.
fn quality(link: &Link, packets: &[Packet]) -> Result<Quality> {
    let config = &link.ofdm;
    let slots = config.data_slots();
    let mut frames = (0..).zip(SentFrames::new(config)?);
    let mut sent = frames.next();
    let mut quality = Quality { sent: link.frames, ..Quality::default() };
    for packet in packets {
        let frame = (packet.start.max(0) as u64 + period(config) as u64 / 2) / period(config) as u64;
        if frame >= link.frames {
            break;
        }
        while sent.as_ref().is_some_and(|(number, _)| *number < frame) {
            sent = frames.next();
        }
        let Some((_, sent)) = &sent else { break };
        for (i, (&z, &ideal)) in packet.points.iter().zip(&sent.points).enumerate() {
            let weight = packet.channel[slots[i % slots.len()]].norm();
            quality.evm.push(z, ideal);
            quality.weighted.push(z * weight, ideal * weight);
        }
        quality.ber.extend(&sent.payload, &packet.bits);
        quality.packets += 1;
        // Without a code a packet is right where all its bits are.
        let right = if config.code.is_some() { packet.data.as_ref() == Some(&sent.data) } else { packet.bits == sent.payload };
        quality.decoded += u64::from(right);
    }
    let last = packets.iter().rev().flat_map(|p| p.points.iter().rev()).take(POINTS);
    quality.points = last.copied().collect();
    Ok(quality)
}
