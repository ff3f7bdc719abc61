//! A kernel equaliser in front of an OFDM receiver, against the receiver's own one-tap equaliser.
//!
//! The equaliser is a [`Track`] block with its inputs swapped: it sees what was received and predicts what was sent. It learns from the known preamble of each
//! frame and then from its own decisions ([`DecisionDirected`]).
//!
//! The amplifier comes before the echoes, so the echoes have to be undone first, and they are linear. A kernel filter on the window of received samples would
//! have to learn both inverses at once, in as many dimensions as the window has: behind two paths it does worse than the one-tap equaliser. A linear filter on the
//! window with a kernel filter on its one estimate ([`Cascade`]) does better. `examples/equalizer.rs`, 16-QAM, 2 dB of back-off, 30 dB of SNR, EVM in percent:
//!
//! | paths | one tap a carrier | RLS | KRLS-T on the window | RLS, then KRLS-T |
//! |---|---|---|---|---|
//! | 1 | 17.7 | 17.7 | 12.2 | 12.2 |
//! | 2 | 18.8 | 18.8 | 25.3 | 15.4 |

use futuresdr::{
    blocks::{Apply, Delay, NullSink},
    prelude::*,
};
use num_traits::Zero;

use crate::{
    blocks::{Amplifier, Fading, OfdmRx, OfdmTx, Staged, Track},
    channel::{self, FadingConfig, Model, Noise, Profile},
    filter::{Adaptive, Filter, Tracker, Window},
    metrics::{Ber, Evm},
    ofdm::{Config, Constellation, Demodulator, Modulator, Packet, RandomBits, Receiver, Source, Transmitter},
};

/// The link that is equalised.
#[derive(Clone, Debug)]
pub struct Link {
    /// The waveform.
    pub ofdm: Config,
    /// Frames that are sent.
    pub frames: u64,
    /// Input back-off of the amplifier, in dB.
    pub ibo_db: f64,
    /// The channel's echoes.
    pub profile: Profile,
    /// Doppler frequency in cycles a sample.
    pub doppler: f64,
    /// Signal-to-noise ratio in dB.
    pub snr_db: f64,
    /// Seed of channel and noise.
    pub seed: u64,
}

/// What a receiver made of the frames.
#[derive(Clone, Debug, Default)]
pub struct Quality {
    /// Frames that were found.
    pub packets: usize,
    /// Error vector magnitude against what was sent.
    pub evm: Evm,
    /// Bit errors.
    pub ber: Ber,
    /// The last constellation points, at most some thousand: for a picture.
    pub points: Vec<Complex32>,
}

/// Points that a [`Quality`] keeps.
const POINTS: usize = 4000;

/// Sends frames over `link` and receives them twice: by the one-tap equaliser alone, and with `filter` on `taps` received samples in front of it, of which
/// `ahead` come after the sample that it estimates.
pub fn run(link: &Link, filter: Box<dyn Filter<f32>>, taps: usize, ahead: usize) -> Result<(Quality, Quality)> {
    let config = &link.ofdm;
    let (frame, preamble) = (period(config), config.preamble_samples());
    let samples = (link.frames + 1) * frame as u64;
    let tx = OfdmTx::new(Transmitter::new(config.clone(), Source::RandomFrames)?, Some(samples));
    let amplifier = Amplifier::new(channel::Amplifier::new(Model::Rapp { smoothness: 2.0 }, link.ibo_db)?);
    let fading = FadingConfig::new(link.profile.clone(), link.doppler);
    let fading = Fading::new(channel::Fading::new(&fading, link.seed)?);
    let noise = Staged::new(Noise::new(link.snr_db, link.seed)?);
    // What the receiver knows of what was sent: the preamble. The rest is not a number, and not learned from.
    let mut at = 0;
    let known = Apply::new(move |z: &Complex32| {
        at = (at + 1) % frame;
        if (1..=preamble).contains(&at) { *z } else { Complex32::new(f32::NAN, f32::NAN) }
    });
    let late = Delay::<Complex32>::new(ahead as isize);
    let equalizer = Track::new(DecisionDirected::new(filter, taps, config)?);
    let error = NullSink::<Complex32>::new();
    let one_tap = OfdmRx::new(Receiver::new(config.clone())?).keep_packets();
    let with_kernel = OfdmRx::new(Receiver::new(config.clone())?).keep_packets();
    let (points_1, points_2) = (NullSink::<Complex32>::new(), NullSink::<Complex32>::new());

    let mut fg = Flowgraph::new();
    connect!(fg,
        tx > amplifier > fading > noise;
        tx > known > late > rx.equalizer;
        noise > tx.equalizer;
        noise > one_tap;
        equalizer.prediction > with_kernel;
        equalizer.error > error;
        one_tap.points > points_1;
        with_kernel.points > points_2;
    );
    let fg = Runtime::new().run(fg)?;
    Ok((quality(config, one_tap.get(&fg)?.packets()), quality(config, with_kernel.get(&fg)?.packets())))
}

/// Samples from one frame to the next.
fn period(config: &Config) -> usize {
    config.frame_samples() + config.gap * config.oversampling
}

/// Compares packets with what was sent.
fn quality(config: &Config, packets: &[Packet]) -> Quality {
    let constellation = Constellation::new(config.modulation);
    let (mut bits, mut sent) = (RandomBits::new(config.seed), vec![0; config.payload_bits()]);
    let mut ideal = vec![Complex32::zero(); config.symbols * config.data_carriers()];
    let mut quality = Quality::default();
    let mut next = 0;
    for packet in packets {
        let frame = (packet.start.max(0) as usize + period(config) / 2) / period(config);
        while next <= frame {
            bits.fill(&mut sent);
            next += 1;
        }
        constellation.map(&sent, &mut ideal);
        packet.points.iter().zip(&ideal).for_each(|(&z, &ideal)| quality.evm.push(z, ideal));
        quality.ber.extend(&sent, &packet.bits);
        quality.packets += 1;
    }
    let last = packets.iter().rev().flat_map(|p| p.points.iter().rev()).take(POINTS);
    quality.points = last.copied().collect();
    quality
}

/// A linear filter that undoes the channel's echoes, and a kernel filter on its estimate, one complex number, that undoes the amplifier's saturation.
///
/// Both learn the same target. The linear filter finds the best linear estimate and leaves the saturation; what it leaves is a function of its estimate alone.
pub struct Cascade {
    /// On the window of received samples.
    pub linear: Box<dyn Filter<f32>>,
    /// On a window of one.
    pub kernel: Box<dyn Filter<f32>>,
}

impl Adaptive for Cascade {
    fn size(&self) -> usize {
        self.linear.size() + self.kernel.size()
    }

    fn reset(&mut self) {
        self.linear.reset();
        self.kernel.reset();
    }

    fn set(&mut self, name: &str, value: f64) -> crate::Result<()> {
        self.kernel.set(name, value)
    }
}

impl Filter<f32> for Cascade {
    fn taps(&self) -> usize {
        self.linear.taps()
    }

    fn predict(&mut self, x: &[Complex32]) -> Complex32 {
        let estimate = self.linear.predict(x);
        self.kernel.predict(&[estimate])
    }

    fn adapt(&mut self, x: &[Complex32], y: Complex32) -> Complex32 {
        let estimate = self.linear.adapt(x, y);
        self.kernel.adapt(&[estimate], y)
    }

    fn variance(&self) -> Option<f32> {
        self.kernel.variance()
    }
}

/// A filter that learns what was sent where that is known, and elsewhere from its own decisions, a symbol at a time.
///
/// The stream to predict is finite in the preambles and NaN in the data, whose first symbol follows a preamble at once: what may be learned from is
/// the preamble. A frame is decided only where its whole preamble was learned.
pub struct DecisionDirected<F> {
    filter: F,
    window: Window<f32>,
    modulator: Modulator,
    demodulator: Demodulator,
    constellation: Constellation,
    prefix: usize,
    size: usize,
    symbols: usize,
    /// Symbols decided since the preamble, and the windows and estimates of the present one.
    decided: usize,
    windows: Vec<Complex32>,
    estimates: Vec<Complex32>,
    carriers: Vec<Complex32>,
    points: Vec<Complex32>,
    targets: Vec<Complex32>,
    /// Samples of a preamble, and how many were learned in a row.
    preamble: usize,
    learned: usize,
}

impl<F: Filter<f32>> DecisionDirected<F> {
    /// `filter` on `taps` received samples, deciding symbols of `config`.
    pub fn new(filter: F, taps: usize, config: &Config) -> crate::Result<Self> {
        Ok(Self {
            filter,
            window: Window::new(taps)?,
            modulator: Modulator::new(config)?,
            demodulator: Demodulator::new(config)?,
            constellation: Constellation::new(config.modulation),
            prefix: config.cyclic_prefix * config.oversampling,
            size: config.fft * config.oversampling,
            symbols: config.symbols,
            // The first preamble tells the place in the frame.
            decided: config.symbols,
            windows: Vec::new(),
            estimates: Vec::new(),
            carriers: vec![Complex32::zero(); config.active],
            points: Vec::new(),
            targets: Vec::new(),
            preamble: config.preamble_samples(),
            learned: 0,
        })
    }

    /// The present symbol is complete: decides it, rebuilds what must have been sent, and learns that.
    fn decide(&mut self) {
        self.demodulator.carriers(&self.estimates[self.prefix..self.prefix + self.size], &mut self.carriers);
        self.points.clear();
        let mut doubt = 0.0;
        for &slot in self.demodulator.data_slots() {
            let point = self.constellation.point(self.constellation.decide(self.carriers[slot]));
            doubt += (self.carriers[slot] - point).norm_sqr();
            self.points.push(point);
        }
        // Decisions that are mostly guesses teach nothing.
        let near = self.constellation.modulation().half_distance() as f32;
        if doubt < self.points.len() as f32 * near * near * 0.5 {
            self.targets.clear();
            self.modulator.symbol(self.decided, &self.points, &mut self.targets);
            for (x, &target) in self.windows.chunks_exact(self.window.taps()).zip(&self.targets) {
                self.filter.adapt(x, target);
            }
        }
        self.decided += 1;
        self.windows.clear();
        self.estimates.clear();
    }
}

impl<F: Filter<f32>> Adaptive for DecisionDirected<F> {
    fn size(&self) -> usize {
        self.filter.size()
    }

    fn reset(&mut self) {
        self.filter.reset();
        self.gap(0);
    }

    fn set(&mut self, name: &str, value: f64) -> crate::Result<()> {
        self.filter.set(name, value)
    }
}

impl<F: Filter<f32>> Tracker<f32> for DecisionDirected<F> {
    fn taps(&self) -> usize {
        self.window.taps()
    }

    fn track(&mut self, tx: &[Complex32], rx: &[Complex32], learn: bool, prediction: &mut [Complex32], mut variance: Option<&mut [f32]>) {
        for (i, ((&u, &known), p)) in tx.iter().zip(rx).zip(prediction).enumerate() {
            let x = self.window.push(u);
            *p = if learn { self.filter.adapt(x, known) } else { self.filter.predict(x) };
            if let Some(variance) = variance.as_deref_mut() {
                variance[i] = self.filter.variance().unwrap_or(f32::NAN);
            }
            if learn {
                self.learned += 1;
                self.decided = if self.learned >= self.preamble { 0 } else { self.symbols };
                self.windows.clear();
                self.estimates.clear();
                continue;
            }
            self.learned = 0;
            if self.decided < self.symbols {
                self.windows.extend_from_slice(x);
                self.estimates.push(*p);
                if self.estimates.len() == self.prefix + self.size {
                    self.decide();
                }
            }
        }
    }

    fn gap(&mut self, _missing: u64) {
        // The place in the frame is lost until the next preamble.
        self.decided = self.symbols;
        self.windows.clear();
        self.estimates.clear();
        self.learned = 0;
    }
}
