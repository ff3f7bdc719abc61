//! An endless, or fed, stream of OFDM.

use std::collections::VecDeque;

use num_complex::Complex32;
use rand::RngCore;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::{Code, Config, Constellation, Modulator, Overlap};
use crate::{Error, Result};

/// What a [`Transmitter`] sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Random symbols without an end, no preamble: excitation for a tracker.
    Continuous,
    /// Frames with random payloads by the config's seed: those of [`SentFrames`].
    RandomFrames,
    /// One frame with this payload, repeated; [`Config::payload_bits`] bits.
    Repeat(Vec<u8>),
    /// Frames with the bits that [`Transmitter::push`] brings.
    Queue,
}

/// Seeded random bits, one to a byte.
#[derive(Clone, Debug)]
pub(crate) struct RandomBits {
    rng: ChaCha8Rng,
    word: u64,
    left: u32,
}

impl RandomBits {
    /// The bits of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), word: 0, left: 0 }
    }

    /// The next `bits.len()` bits, each 0 or 1.
    pub(crate) fn fill(&mut self, bits: &mut [u8]) {
        for bit in bits {
            if self.left == 0 {
                (self.word, self.left) = (self.rng.next_u64(), 64);
            }
            *bit = (self.word & 1) as u8;
            self.word >>= 1;
            self.left -= 1;
        }
    }
}

/// A frame of [`SentFrames`].
#[derive(Clone, Debug, PartialEq)]
pub struct SentFrame {
    /// Data bits, one to a byte.
    pub data: Vec<u8>,
    /// Bits on the carriers: the code of the data, or without a [`Config::code`] the data themselves.
    pub payload: Vec<u8>,
    /// Points on the data carriers, symbol after symbol.
    pub points: Vec<Complex32>,
}

/// What a [`Transmitter`] of [`Source::RandomFrames`] sends, frame after frame without an end: to compare with what arrives.
///
/// ```
/// use kaflow::ofdm::{Config, Rate, SentFrames};
/// let config = Config { code: Some(Rate::Half), ..Config::preset("paper")? };
/// let sent = SentFrames::new(&config)?.next().unwrap();
/// assert_eq!((sent.data.len(), sent.payload.len()), (960 - 32 - 6, config.payload_bits())); // a checksum and six zeros are coded too
/// # Ok::<_, kaflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SentFrames {
    random: RandomBits,
    code: Option<Code>,
    constellation: Constellation,
    bits: usize,
    points: usize,
}

impl SentFrames {
    /// The frames of `config`, by its seed.
    pub fn new(config: &Config) -> Result<Self> {
        config.validate()?;
        let code = config.code.map(|rate| Code::new(config, rate)).transpose()?;
        Ok(Self {
            random: RandomBits::new(config.seed),
            bits: code.as_ref().map_or(config.payload_bits(), Code::data_bits),
            code,
            constellation: Constellation::new(config.modulation),
            points: config.symbols * config.data_carriers(),
        })
    }
}

impl Iterator for SentFrames {
    type Item = SentFrame;

    fn next(&mut self) -> Option<SentFrame> {
        let (mut data, mut points) = (vec![0; self.bits], vec![Complex32::ZERO; self.points]);
        self.random.fill(&mut data);
        let payload = self.code.as_ref().map_or_else(|| data.clone(), |code| code.encode(&data));
        self.constellation.map(&payload, &mut points);
        Some(SentFrame { data, payload, points })
    }
}

/// A stream of OFDM samples, rms 1 before clipping, that does not depend on how it is cut into calls.
///
/// ```
/// use kaflow::{Complex32, ofdm::{Config, Source, Transmitter}};
/// let mut transmitter = Transmitter::new(Config::preset("paper")?, Source::Continuous)?;
/// let mut samples = [Complex32::ZERO; 6000];
/// assert_eq!(transmitter.fill(&mut samples), 6000);
/// let peak = samples.iter().map(|z| z.norm()).fold(0.0, f32::max);
/// assert!(peak <= 1.9953); // clipped 6 dB above rms
/// # Ok::<_, kaflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Transmitter {
    config: Config,
    source: Source,
    random: RandomBits,
    queue: VecDeque<u8>,
    constellation: Constellation,
    /// The code of random frames, and the payload of the present one.
    code: Option<Code>,
    payload: Vec<u8>,
    modulator: Modulator,
    overlap: Overlap,
    next: Piece,
    /// Samples that are ready, and how many of them are gone.
    ready: Vec<Complex32>,
    sent: usize,
    piece: Vec<Complex32>,
    bits: Vec<u8>,
    points: Vec<Complex32>,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Preamble,
    Symbol(usize),
    /// Silence of so many samples.
    Gap(usize),
}

impl Transmitter {
    /// A transmitter at the start of its stream.
    pub fn new(config: Config, source: Source) -> Result<Self> {
        config.validate()?;
        if let Source::Repeat(payload) = &source
            && payload.len() != config.payload_bits()
        {
            return Err(Error::parameter("payload", format!("{} bits long", config.payload_bits()), payload.len()));
        }
        let modulator = Modulator::new(&config)?;
        Ok(Self {
            random: RandomBits::new(config.seed),
            queue: VecDeque::new(),
            constellation: Constellation::new(config.modulation),
            code: config.code.filter(|_| source == Source::RandomFrames).map(|rate| Code::new(&config, rate)).transpose()?,
            payload: Vec::new(),
            modulator,
            overlap: Overlap::new(config.window * config.oversampling),
            next: if source == Source::Continuous { Piece::Symbol(0) } else { Piece::Preamble },
            ready: Vec::new(),
            sent: 0,
            piece: Vec::new(),
            bits: vec![0; config.symbol_bits()],
            points: vec![Complex32::default(); config.data_carriers()],
            config,
            source,
        })
    }

    /// Queues bits, one to a byte, for [`Source::Queue`]. A frame starts when its whole payload is there.
    pub fn push(&mut self, bits: &[u8]) {
        self.queue.extend(bits);
    }

    /// Writes the next samples and returns how many: all of `out`, except with a [`Source::Queue`] that has run dry.
    pub fn fill(&mut self, out: &mut [Complex32]) -> usize {
        let mut filled = 0;
        while filled < out.len() {
            if self.sent == self.ready.len() && !self.prepare() {
                break;
            }
            let count = (self.ready.len() - self.sent).min(out.len() - filled);
            out[filled..filled + count].copy_from_slice(&self.ready[self.sent..self.sent + count]);
            filled += count;
            self.sent += count;
        }
        filled
    }

    /// Makes the next piece ready; false when there is nothing to send.
    fn prepare(&mut self) -> bool {
        self.ready.clear();
        self.sent = 0;
        self.piece.clear();
        self.next = match self.next {
            Piece::Preamble if self.source == Source::Queue && self.queue.len() < self.config.payload_bits() => return false,
            Piece::Preamble => {
                self.modulator.short_training(&mut self.piece);
                self.overlap.join(&self.piece, &mut self.ready);
                self.piece.clear();
                self.modulator.long_training(&mut self.piece);
                self.overlap.join(&self.piece, &mut self.ready);
                Piece::Symbol(0)
            }
            Piece::Symbol(index) => {
                self.next_bits(index);
                self.constellation.map(&self.bits, &mut self.points);
                self.modulator.symbol(index, &self.points, &mut self.piece);
                self.overlap.join(&self.piece, &mut self.ready);
                match self.source {
                    // The polarity of the pilots repeats after 127 symbols.
                    Source::Continuous => Piece::Symbol((index + 1) % 127),
                    _ if index + 1 < self.config.symbols => Piece::Symbol(index + 1),
                    _ => Piece::Gap(self.config.gap * self.config.oversampling),
                }
            }
            Piece::Gap(0) => Piece::Preamble,
            Piece::Gap(left) => {
                // In parts, so that a long gap needs no long buffer.
                let part = left.min(4096);
                self.overlap.silence(part, &mut self.ready);
                Piece::Gap(left - part)
            }
        };
        true
    }

    fn next_bits(&mut self, symbol: usize) {
        if let Some(code) = &self.code {
            if symbol == 0 {
                let mut data = vec![0; code.data_bits()];
                self.random.fill(&mut data);
                self.payload = code.encode(&data);
            }
            let length = self.bits.len();
            self.bits.copy_from_slice(&self.payload[symbol * length..][..length]);
            return;
        }
        match &self.source {
            Source::Continuous | Source::RandomFrames => self.random.fill(&mut self.bits),
            Source::Repeat(payload) => {
                let length = self.bits.len();
                self.bits.copy_from_slice(&payload[symbol * length..][..length]);
            }
            Source::Queue => {
                let length = self.bits.len();
                self.queue.drain(..length).zip(&mut self.bits).for_each(|(from, to)| *to = from);
            }
        }
    }
}
