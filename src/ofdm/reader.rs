//! The symbols of a frame behind an amplifier: channel and curve from the training and from own decisions, points and soft bits out.

mod teach;

use num_complex::{Complex32, Complex64};

use super::{
    Code, Config, Curve, Method, Packet,
    detector::wide,
    layout::Layout,
    saturation::{Detected, Observation, Saturation, Soft, channel::Channel, learn::Learner},
};
use crate::dsp::Fourier;
use crate::{Error, Result};

/// How a [`Receiver`](super::Receiver) reads frames whose transmitter saturates.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// How symbols are read.
    pub method: Method,
    /// The amplifier's curve with the clipping of the waveform; `None`: learned from the training and from what was read, packet by packet.
    pub curve: Option<Curve>,
    /// How many times the grid's rate the amplifier is modelled at; `None`: the oversampling of the waveform, which is right for an amplifier that works on its
    /// samples. An analogue amplifier before a receiver without oversampling needs 4.
    pub oversampling: Option<usize>,
}

/// Symbols that share a channel estimate: longer blocks average noise, shorter ones follow fading.
const BLOCK: usize = 16;
/// Share of the last block's knowledge of the channel that the next one starts from.
const KEPT: f64 = 0.3;
/// Symbols of the longest frame that is kept for the decoder's feedback.
const LONGEST: usize = 256;
/// How often the decoder is heard before a packet counts as lost.
const FEEDBACKS: usize = 4;
/// A channel that differs from the one that symbols were read with by less than this, over the noise, is the same: the difference is noise in the points.
const SAME: f64 = 0.01;
/// Share of a symbol's phase error that the expected turn from symbol to symbol takes over.
const DRIFT_STEP: f64 = 0.2;

#[derive(Clone, Debug)]
pub(crate) struct Reader {
    config: Config,
    detector: Saturation,
    learner: Option<Learner>,
    curve: Curve,
    /// The curve that the detector's tables are of.
    in_use: Curve,
    channel: Channel,
    soft: Soft,
    layout: Layout,
    fourier: Fourier,
    /// One long training symbol on the amplifier's samples, and its points.
    long: Vec<Complex32>,
    training: Vec<Complex32>,
    /// Slots of the data carriers, and bins of the active ones at the receiver.
    slots: Vec<usize>,
    bins: Vec<usize>,
    /// The two training symbols, and the symbols of the frame or of its present block.
    trained: [Vec<Complex32>; 2],
    arrived: Vec<Complex32>,
    turned: Vec<Complex32>,
    /// Logarithm of the gain that all carriers of a symbol have in common over the channel of its block: its level, and the phase in radians.
    gains: Vec<Complex64>,
    blocks: Vec<BlockChannel>,
    read: Vec<Detected>,
    rebuilt: Vec<Complex32>,
    time: Vec<Complex32>,
    prior: Vec<f32>,
    noise: f64,
    course: Course,
    /// Symbols of the frame that are read.
    done: usize,
}

/// The common gain of the last symbol, and the turn in radians that is expected from each to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Course {
    gain: Complex64,
    drift: f64,
}

/// The channel of a block, as it was when its symbols were read.
#[derive(Clone, Debug)]
struct BlockChannel {
    response: Vec<Complex32>,
    noise: f32,
}

impl Reader {
    pub(crate) fn new(config: &Config, reading: &Reading) -> Result<Self> {
        config.validate()?;
        let oversampling = reading.oversampling.unwrap_or(config.oversampling);
        let curve = reading.curve.clone().unwrap_or_else(Curve::linear);
        let detector = Saturation::new(config, reading.method, oversampling, &curve)?;
        let oversampling = if reading.method == Method::Ep { config.oversampling } else { oversampling };
        let (receiver, layout) = (Layout::new(config), Layout::new(&Config { oversampling, ..config.clone() }));
        if config.fft * oversampling > 1 << 20 {
            return Err(Error::parameter("oversampling of the amplifier", "smaller for so many carriers", oversampling));
        }
        let mut reader = Self {
            detector,
            learner: reading.curve.is_none().then(|| Learner::new(config, oversampling)),
            in_use: curve.clone(),
            curve,
            channel: Channel::new(config),
            soft: Soft::new(config.modulation),
            fourier: Fourier::new(layout.size),
            long: layout.long.clone(),
            training: Vec::new(),
            slots: config.data_slots(),
            bins: receiver.active.iter().map(|&(_, bin)| bin).collect(),
            trained: [vec![Complex32::ZERO; receiver.size], vec![Complex32::ZERO; receiver.size]],
            arrived: Vec::new(),
            turned: vec![Complex32::ZERO; receiver.size],
            gains: Vec::new(),
            blocks: Vec::new(),
            read: Vec::new(),
            rebuilt: vec![Complex32::ZERO; config.active],
            time: vec![Complex32::ZERO; layout.size],
            prior: Vec::new(),
            noise: 1.0,
            course: Course::default(),
            done: 0,
            config: config.clone(),
            layout,
        };
        // The training's own points: its clipped samples have them up to the clipping, which the curve does again.
        let long = reader.long.clone();
        reader.time.copy_from_slice(&long);
        reader.demodulate();
        reader.training = reader.rebuilt.clone();
        Ok(reader)
    }

    pub(crate) fn curve(&self) -> &Curve {
        &self.curve
    }

    /// Whether the curve is learned, and from how many symbols so far.
    pub(crate) fn learned(&self) -> Option<u64> {
        self.learner.as_ref().map(|l| l.symbols() as u64)
    }

    /// A frame begins: the bins of its two training symbols.
    pub(crate) fn begin(&mut self, first: &[Complex32], second: &[Complex32]) {
        self.trained[0].copy_from_slice(first);
        self.trained[1].copy_from_slice(second);
        self.arrived.clear();
        self.gains.clear();
        self.blocks.clear();
        (self.course, self.done) = (Course::default(), 0);
        let difference: f64 = self.bins.iter().map(|&b| wide(first[b] - second[b]).norm_sqr() / 2.0).sum();
        self.noise = (difference / self.bins.len() as f64).max(1e-9);
    }

    /// A symbol of the frame; reads a block of them where it is complete.
    pub(crate) fn symbol(&mut self, bins: &[Complex32], packet: &mut Packet) {
        self.arrived.extend_from_slice(bins);
        if self.waiting() == BLOCK {
            self.block(packet);
        }
    }

    /// Symbols that are not read yet.
    fn waiting(&self) -> usize {
        self.arrived.len() / self.turned.len() - (self.done - self.forgotten())
    }

    /// Symbols of a long frame that are not kept.
    fn forgotten(&self) -> usize {
        if self.config.symbols > LONGEST { self.done } else { 0 }
    }

    /// The frame is complete: reads what is left of it and decodes it.
    pub(crate) fn finish(&mut self, code: Option<&mut Code>, packet: &mut Packet) {
        if self.waiting() > 0 {
            self.block(packet);
        }
        let Some(code) = code else { return };
        let mut tries = 0;
        packet.data = code.decode(&packet.soft).map(<[u8]>::to_vec);
        while packet.data.is_none() && tries < FEEDBACKS && self.config.symbols <= LONGEST {
            code.feedback(&packet.soft, &mut self.prior);
            self.listen(packet);
            packet.data = code.decode(&packet.soft).map(<[u8]>::to_vec);
            tries += 1;
        }
        packet.feedbacks = tries;
    }

    /// Reads all symbols of the frame again, with what the decoder said of their bits.
    fn listen(&mut self, packet: &mut Packet) {
        packet.clear_points();
        let prior = std::mem::take(&mut self.prior);
        let mut detected = self.read.pop().unwrap_or_default();
        for (index, prior) in prior.chunks_exact(self.config.symbol_bits()).enumerate() {
            self.turn(index, self.gains[index]);
            let block = &self.blocks[index / BLOCK];
            let symbol =
                Observation { bins: &self.turned, channel: &block.response, noise: block.noise, index, prior: Some(prior), again: false };
            self.detector.detect(&symbol, &mut detected);
            self.deliver(&detected, packet);
        }
        self.read.push(detected);
        self.prior = prior;
    }

    /// Reads the symbols that wait.
    fn block(&mut self, packet: &mut Packet) {
        let count = self.waiting();
        self.read.resize_with(count.max(self.read.len()), Detected::default);
        if self.done == 0 {
            if self.learner.as_ref().is_some_and(|l| l.symbols() == 0.0) {
                self.guess(count);
            }
            self.train();
        } else {
            self.channel.keep(KEPT);
        }
        self.channel.save();
        let start = self.course;
        self.channel.estimate(self.noise);
        self.pass(count, start, false);
        self.refine(count, start);
        if self.learner.is_some() {
            self.learn(count, start);
        }
        for i in 0..count {
            let detected = std::mem::take(&mut self.read[i]);
            self.deliver(&detected, packet);
            self.read[i] = detected;
            packet.phases.push(self.gains[self.done + i].im);
        }
        self.blocks.push(BlockChannel { response: self.channel.response().to_vec(), noise: self.noise as f32 });
        self.done += count;
        if self.config.symbols > LONGEST {
            self.arrived.clear();
            self.blocks.clear();
        }
    }

    /// Starts the channel from the training.
    fn train(&mut self) {
        self.time.copy_from_slice(&self.long);
        self.saturate();
        self.channel.keep(0.0);
        let rebuilt = std::mem::take(&mut self.rebuilt);
        self.trained.iter().for_each(|bins| self.channel.add(&rebuilt, bins, Complex32::ONE, 1.0));
        self.rebuilt = rebuilt;
    }

    /// Sends `time` through the curve; the active carriers are then in `rebuilt`.
    fn saturate(&mut self) {
        for z in &mut self.time {
            *z = self.curve.apply(*z);
        }
        self.demodulate();
    }

    fn demodulate(&mut self) {
        self.fourier.forward(&mut self.time);
        let scale = (self.rebuilt.len() as f32).sqrt() / self.time.len() as f32;
        for (u, &(_, bin)) in self.rebuilt.iter_mut().zip(&self.layout.active) {
            *u = self.time[bin] * scale;
        }
    }

    /// What the amplifier makes of points on the active carriers.
    fn rebuild(&mut self, points: &[Complex32]) {
        self.time.fill(Complex32::ZERO);
        let scale = 1.0 / (points.len() as f32).sqrt();
        self.layout.active.iter().zip(points).for_each(|(&(_, bin), z)| self.time[bin] = z * scale);
        self.fourier.inverse(&mut self.time);
        self.saturate();
    }

    /// Takes a gain, by its logarithm, out of the kept symbol `index`.
    fn turn(&mut self, index: usize, gain: Complex64) {
        let size = self.turned.len();
        let turn = exp(-gain);
        let bins = &self.arrived[(index - self.forgotten()) * size..][..size];
        self.turned.iter_mut().zip(bins).for_each(|(z, y)| *z = y * turn);
    }

    /// Reads `count` symbols with the present channel and gathers what they say of it; with `gains` known from a pass before, or by following them.
    /// Returns the mean squared error of what was rebuilt.
    fn pass(&mut self, count: usize, start: Course, known: bool) -> f64 {
        self.course = start;
        self.channel.restore();
        self.gains.resize(self.done + count, Complex64::ZERO);
        let (mut sum, mut sure) = (0.0, 0usize);
        let near = self.config.modulation.half_distance().powi(2) as f32;
        for i in 0..count {
            let index = self.done + i;
            let expected = if known { self.gains[index] } else { self.course.gain + Complex64::I * self.course.drift };
            self.turn(index, expected);
            let mut detected = std::mem::take(&mut self.read[i]);
            let symbol = Observation {
                bins: &self.turned,
                channel: self.channel.response(),
                noise: self.noise as f32,
                index,
                prior: None,
                again: known,
            };
            self.detector.detect(&symbol, &mut detected);
            self.rebuild(&detected.means);
            let (mut cross, mut power) = (Complex64::ZERO, 0.0);
            for (u, &bin) in self.rebuilt.iter().zip(&self.bins) {
                let model = u * self.channel.response()[bin];
                cross += wide(self.turned[bin] * model.conj());
                power += f64::from(model.norm_sqr());
            }
            let sure_of_it = detected.doubt < 0.05 * near;
            let phase = if power > 0.0 { cross.arg().clamp(-0.5, 0.5) } else { 0.0 };
            // A level from wrong decisions would be one that hides that they are wrong.
            let level = if power > 0.0 && sure_of_it { (cross.norm() / power).ln().clamp(-0.05, 0.05) } else { 0.0 };
            let error = Complex64::new(level, phase);
            self.course.drift += DRIFT_STEP * phase;
            self.course.gain = expected + error;
            self.gains[index] = self.course.gain;
            let turn = exp(-error);
            if sure_of_it {
                for (u, &bin) in self.rebuilt.iter().zip(&self.bins) {
                    sum += wide(self.turned[bin] * turn - u * self.channel.response()[bin]).norm_sqr();
                }
                sure += self.bins.len();
            }
            let level = power / self.bins.len() as f64;
            let weight = self.noise / (self.noise + f64::from(detected.doubt) * level);
            let rebuilt = std::mem::take(&mut self.rebuilt);
            self.channel.add(&rebuilt, &self.turned, turn, weight);
            self.rebuilt = rebuilt;
            self.read[i] = detected;
        }
        // What two training symbols say of the noise counts as one symbol more.
        let dof = self.bins.len() as f64;
        (sum + self.noise * dof) / (sure as f64 + dof)
    }

    /// Reads again where the channel that the symbols show differs from the one that they were read with.
    fn refine(&mut self, count: usize, start: Course) {
        for _ in 0..2 {
            let before = std::mem::take(&mut self.turned);
            let mut old = before;
            old.copy_from_slice(self.channel.response());
            let new = self.channel.estimate(self.noise);
            let change: f64 = self.bins.iter().map(|&b| wide(new[b] - old[b]).norm_sqr()).sum::<f64>() / self.bins.len() as f64;
            self.turned = old;
            if change < SAME * self.noise {
                break;
            }
            self.noise = self.pass(count, start, true).max(1e-9);
        }
    }

    /// Appends the data carriers of a symbol to the packet.
    fn deliver(&self, detected: &Detected, packet: &mut Packet) {
        let start = packet.points.len();
        packet.points.extend(self.slots.iter().map(|&slot| detected.points[slot]));
        packet.variances.extend(self.slots.iter().map(|&slot| detected.variances[slot]));
        self.soft.bits(&packet.points[start..], &packet.variances[start..], &mut packet.soft);
    }
}

fn exp(z: Complex64) -> Complex32 {
    let ((sin, cos), level) = (libm::sincos(z.im), libm::exp(z.re));
    Complex32::new((level * cos) as f32, (level * sin) as f32)
}
