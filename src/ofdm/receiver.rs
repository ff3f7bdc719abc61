//! Packets out of a stream of samples.

use num_complex::Complex32;

use super::{
    Code, Config, Constellation, Curve, Demodulator, Modulator, RandomBits, Reading,
    detector::{Detector, wide},
    equalizer::Equalizer,
    layout::Layout,
    packet::{Packet, Sighted},
    reader::Reader,
    saturation::Soft,
    synchronizer::{Sync, Synchronizer, rotate},
};
use crate::{Result, metrics::Evm};

/// Receives frames from a stream that is pushed in pieces of any size; what it finds does not depend on the pieces.
///
/// Samples that are not finite count as zero. Memory is bounded, whatever is pushed.
///
/// ```
/// use kaflow::{Complex32, ofdm::{Config, Receiver, SentFrames, Source, Transmitter}};
/// let config = Config::preset("wifi")?;
/// let sent = SentFrames::new(&config)?.next().unwrap();
/// let mut samples = vec![Complex32::ZERO; 1500];
/// Transmitter::new(config.clone(), Source::RandomFrames)?.fill(&mut samples[100..]);
/// let packets = Receiver::new(config)?.receive(&samples);
/// assert_eq!(packets.len(), 1);
/// assert_eq!((packets[0].start, &packets[0].bits), (100, &sent.payload));
/// # Ok::<_, kaflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    size: usize,
    prefix: usize,
    guard: usize,
    detector: Detector,
    synchronizer: Synchronizer,
    demodulator: Demodulator,
    equalizer: Equalizer,
    constellation: Constellation,
    soft: Soft,
    code: Option<Code>,
    /// Another detector than one tap.
    reader: Option<Box<Reader>>,
    bins: [Vec<Complex32>; 2],
    /// Squared errors of a frame on each data carrier.
    errors: Vec<f32>,
    state: State,
    /// The newest samples; the first has the index `base`.
    buffer: Vec<Complex32>,
    base: i64,
    carriers: Vec<Complex32>,
    training: Vec<Complex32>,
    packet: Packet,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Looks for a short training, next at this index.
    Search(i64),
    /// Saw one end about here and waits for its long training.
    Candidate(i64),
    /// Inside a frame: origin of the carrier offset's phase, transform of the next symbol, its number.
    Data { origin: i64, next: i64, symbol: usize, offset: f64, scale: f64 },
}

impl Receiver {
    /// A receiver at the start of a stream.
    pub fn new(config: Config) -> Result<Self> {
        let data_gain = data_gain(&config)?;
        let layout = Layout::new(&config);
        let mut demodulator = Demodulator::of(&layout);
        let mut training = vec![Complex32::default(); config.active];
        demodulator.carriers(&layout.long, &mut training);
        let detector = Detector::new(layout.size);
        let mut receiver = Self {
            size: layout.size,
            prefix: layout.prefix,
            guard: layout.guard,
            synchronizer: Synchronizer::new(&layout),
            equalizer: Equalizer::new(&layout, training.clone(), data_gain),
            constellation: Constellation::new(config.modulation),
            soft: Soft::new(config.modulation),
            code: config.code.map(|rate| Code::new(&config, rate)).transpose()?,
            reader: None,
            bins: [Vec::new(), Vec::new()],
            errors: Vec::new(),
            state: State::Search(0),
            buffer: Vec::new(),
            base: 0,
            carriers: training.clone(),
            training,
            packet: Packet::default(),
            config,
            detector,
            demodulator,
        };
        receiver.reset();
        Ok(receiver)
    }

    /// The same for frames that a saturated amplifier has distorted: it knows or learns the amplifier's curve and reads the points through it.
    ///
    /// What was learned stays for the packets that follow, also after [`reset`](Self::reset).
    pub fn reading(mut self, reading: &Reading) -> Result<Self> {
        self.reader = Some(Box::new(Reader::new(&self.config, reading)?));
        Ok(self)
    }

    /// The amplifier's curve, given or learned, of a receiver that is [`reading`](Self::reading).
    pub(crate) fn curve(&self) -> Option<&Curve> {
        self.reader.as_ref().map(|reader| reader.curve())
    }

    /// Symbols that the curve is learned from; `None` where it is given, or where nobody asked for one.
    pub(crate) fn learned(&self) -> Option<u64> {
        self.reader.as_ref().and_then(|reader| reader.learned())
    }

    /// The waveform.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Back to the start of a stream.
    pub fn reset(&mut self) {
        self.search_afresh(0);
    }

    /// A gap between the last call and the next: gives up the frame that is under way and counts on behind the gap.
    pub fn gap(&mut self, length: u64) {
        self.search_afresh(self.base + self.buffer.len() as i64 + length as i64);
    }

    fn search_afresh(&mut self, from: i64) {
        // Silence before the first sample, so that a frame may start with it.
        let history = self.history();
        self.buffer.clear();
        self.buffer.resize(history, Complex32::default());
        self.base = from - history as i64;
        self.state = State::Search(from);
        self.detector.reset();
    }

    /// How near anything came to being a frame: for somebody who wonders why there is none.
    pub(crate) fn sighted(&self) -> Sighted {
        let ((short, short_needed), (long, long_needed)) = (self.detector.best(), self.synchronizer.best());
        Sighted { short, short_needed, long, long_needed }
    }

    /// Takes in samples and calls `deliver` with each frame that they complete.
    pub fn push(&mut self, samples: &[Complex32], mut deliver: impl FnMut(&Packet)) {
        for piece in samples.chunks(16 * self.size) {
            let start = self.buffer.len();
            self.buffer.extend_from_slice(piece);
            for z in &mut self.buffer[start..] {
                *z = if z.re.is_finite() & z.im.is_finite() { *z } else { Complex32::default() };
            }
            while self.step(&mut deliver) {}
            self.forget();
        }
    }

    /// [`push`](Self::push), with copies of the frames.
    pub fn receive(&mut self, samples: &[Complex32]) -> Vec<Packet> {
        let mut packets = Vec::new();
        self.push(samples, |packet| packets.push(packet.clone()));
        packets
    }

    /// Samples that are kept before the current place: detection looks back, and so may the transform of the first training symbol.
    fn history(&self) -> usize {
        self.detector.reach() + 2 * self.size
    }

    /// One step of the machine; false when it needs more samples.
    fn step(&mut self, deliver: &mut impl FnMut(&Packet)) -> bool {
        let end = self.base + self.buffer.len() as i64;
        match self.state {
            State::Search(from) => match self.detector.find(&self.buffer, (from - self.base) as usize) {
                Some(at) => self.state = State::Candidate(self.base + at as i64),
                None => {
                    self.state = State::Search(end.max(from));
                    return false;
                }
            },
            State::Candidate(at) => {
                // The threshold is crossed between 0.3 and 1.25 symbols into the short training: the long training starts in the block's
                // first one and a half symbols, and the window of the offset lies within the short training.
                let origin = at + (self.size * 3 / 4 + self.guard) as i64;
                if origin + self.synchronizer.block_samples() as i64 > end {
                    return false;
                }
                let coarse = self.detector.offset(&self.buffer, (at - self.base) as usize + self.size);
                let block = (origin - self.base) as usize;
                match self.synchronizer.find(&self.buffer[block..block + self.synchronizer.block_samples()], coarse) {
                    Some(sync) => self.begin(origin, sync),
                    None => {
                        self.detector.reset();
                        self.state = State::Search(at + (self.size / 8) as i64);
                    }
                }
            }
            State::Data { origin, next, symbol, offset, scale } => {
                if next + self.size as i64 > end {
                    return false;
                }
                self.transform(origin, next, offset, scale);
                self.demap(symbol);
                let next = next + (self.size + self.prefix) as i64;
                self.state = if symbol + 1 < self.config.symbols {
                    State::Data { origin, next, symbol: symbol + 1, offset, scale }
                } else {
                    self.finish();
                    deliver(&self.packet);
                    self.detector.reset();
                    State::Search(next - self.prefix as i64)
                };
            }
        }
        true
    }

    /// A frame has begun: estimates the channel.
    fn begin(&mut self, origin: i64, sync: Sync) {
        let first = origin + sync.timing as i64;
        let scale = 1.0 / sync.rms;
        self.transform(origin, first, sync.offset, scale);
        self.training.copy_from_slice(&self.carriers);
        self.keep_bins(0);
        self.transform(origin, first + self.size as i64, sync.offset, scale);
        self.keep_bins(1);
        let packet = &mut self.packet;
        packet.snr = self.equalizer.train(&self.training, &self.carriers);
        let before = (self.size * 5 / 2 + self.guard) as i64;
        packet.start = origin + sync.strongest as i64 - before;
        packet.arrival = (first - before) as f64 + self.equalizer.delay(self.size);
        packet.offset = sync.offset;
        packet.rms = sync.rms;
        packet.channel.clear();
        packet.channel.extend_from_slice(self.equalizer.channel());
        packet.clear_points();
        packet.one_tap.clear();
        packet.bits.clear();
        packet.phases.clear();
        packet.evm = Evm::default();
        (packet.data, packet.feedbacks) = (None, 0);
        if let Some(reader) = &mut self.reader {
            reader.begin(&self.bins[0], &self.bins[1]);
        }
        let next = first + (2 * self.size + self.prefix) as i64;
        self.state = State::Data { origin, next, symbol: 0, offset: sync.offset, scale };
    }

    /// The active carriers of the symbol whose transform starts at `at`, without the carrier offset.
    fn transform(&mut self, origin: i64, at: i64, offset: f64, scale: f64) {
        let start = (at - self.base) as usize;
        let turns = offset * (at - origin) as f64;
        rotate(&self.buffer[start..start + self.size], offset, turns, scale, self.demodulator.body());
        self.demodulator.transform(&mut self.carriers);
    }

    /// All bins of the symbol that was transformed last, for a detector that wants them.
    fn keep_bins(&mut self, place: usize) {
        if self.reader.is_some() {
            let (bins, scale) = self.demodulator.bins();
            self.bins[place].clear();
            self.bins[place].extend(bins.iter().map(|z| z * scale));
        }
    }

    fn demap(&mut self, symbol: usize) {
        self.keep_bins(0);
        let packet = &mut self.packet;
        let constellation = &self.constellation;
        let phase = self.equalizer.equalize(symbol, &mut self.carriers, |z| constellation.nearest(z));
        if let Some(reader) = &mut self.reader {
            packet.one_tap.extend(self.demodulator.data_slots().iter().map(|&slot| self.carriers[slot]));
            reader.symbol(&self.bins[0], packet);
        } else {
            packet.phases.push(phase);
            packet.points.extend(self.demodulator.data_slots().iter().map(|&slot| self.carriers[slot]));
        }
    }

    /// All symbols of a frame are there: decides and decodes.
    fn finish(&mut self) {
        let packet = &mut self.packet;
        if let Some(reader) = &mut self.reader {
            reader.finish(self.code.as_mut(), packet);
        }
        for &z in &packet.points {
            let decided = self.constellation.demap(z, &mut packet.bits);
            packet.evm.push(z, decided);
        }
        if self.reader.is_none() {
            self.weigh();
            let packet = &mut self.packet;
            packet.data = self.code.as_mut().and_then(|code| code.decode(&packet.soft)).map(<[u8]>::to_vec);
        }
    }

    /// Variances and soft bits of one tap a carrier: noise over the channel's power, and a distortion that is the same on all carriers, from what the decisions
    /// leave.
    fn weigh(&mut self) {
        let packet = &mut self.packet;
        let slots = self.demodulator.data_slots();
        let level = packet.channel.iter().map(|h| f64::from(h.norm_sqr())).sum::<f64>() / packet.channel.len() as f64;
        let noise = level / packet.snr.max(1e-6);
        let of = |slot: usize| noise / f64::from(packet.channel[slot].norm_sqr()).max(1e-30);
        self.errors.clear();
        self.errors.resize(slots.len(), 0.0);
        for points in packet.points.chunks_exact(slots.len()) {
            for (error, &z) in self.errors.iter_mut().zip(points) {
                *error += (z - self.constellation.nearest(z)).norm_sqr();
            }
        }
        let symbols = packet.points.len() / slots.len();
        let (mut excess, mut weights) = (0.0, 0.0);
        for (&error, &slot) in self.errors.iter().zip(slots) {
            let expected = of(slot);
            let weight = 1.0 / (1.0 + expected).powi(2);
            excess += weight * (f64::from(error) / symbols as f64 - expected);
            weights += weight;
        }
        let distortion = (excess / weights).max(0.0);
        packet.variances.extend(slots.iter().map(|&slot| (of(slot) + distortion).min(1e9) as f32));
        for _ in 1..symbols {
            packet.variances.extend_from_within(..slots.len());
        }
        self.soft.bits(&packet.points, &packet.variances, &mut packet.soft);
    }

    /// Drops samples that nothing looks at any more, a good many at a time.
    fn forget(&mut self) {
        let place = match self.state {
            State::Search(at) | State::Candidate(at) => at,
            State::Data { next, .. } => next,
        };
        let unused = (place - self.base) as usize - self.history();
        if unused >= 16 * self.size {
            self.buffer.drain(..unused);
            self.base += unused as i64;
        }
    }
}

/// Gain of the data symbols, known to the receiver because it knows the clipping: measured on seeded random symbols, which is right for every
/// constellation, filter and number of iterations (for many carriers it is Bussgang's).
fn data_gain(config: &Config) -> Result<f64> {
    let mut modulator = Modulator::new(config)?;
    if config.clip.is_none() {
        return Ok(1.0);
    }
    let mut demodulator = Demodulator::new(config)?;
    let (constellation, mut random) = (Constellation::new(config.modulation), RandomBits::new(0));
    let mut bits = vec![0; config.symbol_bits()];
    let mut sent = vec![Complex32::default(); config.data_carriers()];
    let mut carriers = vec![Complex32::default(); config.active];
    let mut samples = Vec::new();
    let (mut cross, mut power) = (0.0, 0.0);
    for index in 0..(16384 / config.active).max(4) {
        random.fill(&mut bits);
        constellation.map(&bits, &mut sent);
        samples.clear();
        modulator.symbol(index, &sent, &mut samples);
        let prefix = config.cyclic_prefix * config.oversampling;
        demodulator.carriers(&samples[prefix..][..config.fft * config.oversampling], &mut carriers);
        for (&slot, &z) in demodulator.data_slots().iter().zip(&sent) {
            cross += (wide(carriers[slot]) * wide(z).conj()).re;
            power += wide(z).norm_sqr();
        }
    }
    Ok(cross / power)
}
