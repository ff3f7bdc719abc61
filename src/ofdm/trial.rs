//! Detectors put to the test: coded packets through an amplifier, a channel that is new in each packet, and noise. What belongs to amplifier and channel is known.
//!
//! Synchronisation and estimation are left out on purpose: what is compared is how points are read. The channel has four Rayleigh taps, each 3 dB weaker than the one
//! before, constant over a packet; the amplifier is Rapp's with p = 2 behind the clipping of the waveform, modelled at `oversampling` times the rate of the grid. The SNR
//! is that of the amplifier's output over the noise in the band of the grid.

use num_complex::{Complex32, Complex64};

use super::{
    Code, Config, Constellation, Curve, Method, RandomBits, Rate,
    layout::{Layout, pilot_polarity},
    saturation::{Detected, Observation, Saturation, Soft},
};
use crate::Result;
use crate::channel::random::{Draws, Random};
use crate::dsp::{Fourier, db};

/// A link.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The waveform; its oversampling is that of the receiver.
    pub config: Config,
    /// Input back-off of the amplifier in dB.
    pub ibo_db: f64,
    /// Rate of the amplifier's model over that of the grid.
    pub oversampling: usize,
    /// Signal-to-noise ratio in dB.
    pub snr_db: f64,
}

/// Who reads the symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// One of the detectors.
    Detector(Method),
    /// One that is told the distortion.
    Genie,
    /// One tap behind an amplifier that does not distort.
    Linear,
}

impl Contender {
    /// All of them.
    pub(crate) const ALL: [Self; 6] = [
        Self::Detector(Method::OneTap),
        Self::Detector(Method::Dar),
        Self::Detector(Method::Bdar),
        Self::Detector(Method::Ep),
        Self::Genie,
        Self::Linear,
    ];

    /// Whether it reads once more with the help of the decoder where the checksum is wrong.
    fn hears(self) -> bool {
        matches!(self, Self::Detector(Method::Bdar | Method::Ep))
    }

    /// The name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Detector(method) => method.name(),
            Self::Genie => "genie",
            Self::Linear => "linear",
        }
    }
}

/// How somebody fared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Score {
    /// Bits before decoding, and how many of them were wrong.
    pub bits: u64,
    /// Wrong bits.
    pub errors: u64,
    /// Packets, and how many of them were lost.
    pub packets: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// Packets that would have been lost without the decoder's feedback.
    pub unaided: u64,
    error: f64,
    power: f64,
}

impl Score {
    /// Bit errors before decoding.
    pub(crate) fn ber(&self) -> f64 {
        self.errors as f64 / self.bits.max(1) as f64
    }

    /// Packet errors.
    pub(crate) fn per(&self) -> f64 {
        self.lost as f64 / self.packets.max(1) as f64
    }

    /// Error vector magnitude in percent, carriers weighted by the power of their channel.
    pub(crate) fn evm_percent(&self) -> f64 {
        if self.power > 0.0 { 100.0 * (self.error / self.power).sqrt() } else { 0.0 }
    }

    /// Adds what another one has counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.bits += other.bits;
        self.errors += other.errors;
        self.packets += other.packets;
        self.lost += other.lost;
        self.unaided += other.unaided;
        self.error += other.error;
        self.power += other.power;
    }
}

/// `x → g(x)/x` of Rapp's amplifier with p = 2 at an input back-off, behind the clipping of a waveform.
pub(crate) fn rapp(config: &Config, ibo_db: f64) -> Curve {
    let drive = libm::pow(10.0, -ibo_db / 20.0);
    let level = config.clip.map_or(f64::INFINITY, |clip| clip.level());
    Curve::new(|r| {
        let clipped = r.min(level);
        let z = (drive * clipped).powi(4);
        Complex64::new(clipped / r / (1.0 + z).sqrt().sqrt(), 0.0)
    })
}

/// Sends packets over a [`Case`].
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    case: Case,
    contenders: Vec<Contender>,
    detectors: Vec<Option<Saturation>>,
    curve: Curve,
    layout: Layout,
    fourier: Fourier,
    /// Bussgang's gain of the amplifier on the carriers.
    gain: Complex32,
    code: Code,
    soft: Soft,
    constellation: Constellation,
}

const TAPS: usize = 4;
/// How often a detector that hears the decoder tries again.
const FEEDBACKS: usize = 4;

impl Trial {
    /// A link and those who read it.
    pub(crate) fn new(case: &Case, contenders: &[Contender]) -> Result<Self> {
        let config = &case.config;
        config.validate()?;
        let curve = rapp(config, case.ibo_db);
        let detector = |c: &Contender| match c {
            Contender::Detector(method) => Saturation::new(config, *method, case.oversampling, &curve).map(Some),
            _ => Ok(None),
        };
        let layout = Layout::new(&Config { oversampling: case.oversampling, ..config.clone() });
        let mut trial = Self {
            detectors: contenders.iter().map(detector).collect::<Result<_>>()?,
            contenders: contenders.to_vec(),
            fourier: Fourier::new(layout.size),
            layout,
            gain: Complex32::ONE,
            code: Code::new(config, config.code.unwrap_or(Rate::Half))?,
            soft: Soft::new(config.modulation),
            constellation: Constellation::new(config.modulation),
            case: case.clone(),
            curve,
        };
        trial.gain = trial.bussgang();
        Ok(trial)
    }

    /// Sends one packet and adds to the scores, one for each contender.
    pub(crate) fn packet(&mut self, seed: u64, scores: &mut [Score]) {
        let (config, size) = (self.case.config.clone(), self.layout.size);
        let mut random = Random::new(seed, Draws::Fading);
        let noise = libm::pow(10.0, -self.case.snr_db / 10.0);
        let power = (0..TAPS).map(|l| libm::pow(10.0, -0.3 * l as f64)).sum::<f64>();
        let taps: Vec<Complex64> = (0..TAPS).map(|l| random.complex() * (libm::pow(10.0, -0.3 * l as f64) / power).sqrt()).collect();
        // The receiver's bins.
        let bins = config.fft * config.oversampling;
        let channel: Vec<Complex32> = (0..bins)
            .map(|bin| {
                let carrier = if bin < bins / 2 { bin as f64 } else { bin as f64 - bins as f64 };
                let turn = |l: usize| Complex64::cis(-std::f64::consts::TAU * carrier * l as f64 / config.fft as f64);
                narrow(taps.iter().enumerate().map(|(l, h)| h * turn(l)).sum())
            })
            .collect();
        let mut data = vec![0; self.code.data_bits()];
        RandomBits::new(seed).fill(&mut data);
        let payload = self.code.encode(&data);
        let mut points = vec![Complex32::default(); config.symbols * config.data_carriers()];
        self.constellation.map(&payload, &mut points);
        // White noise of unit power a sample on the samples of the grid is so much on a carrier.
        let variance = (noise * config.active as f64 / config.fft as f64) as f32;
        let polarity = pilot_polarity();
        let slots: Vec<usize> = (0..config.active).filter(|&s| self.layout.data.contains(&self.layout.active[s].1)).collect();
        let mut soft: Vec<Vec<f32>> = vec![Vec::with_capacity(payload.len()); self.contenders.len()];
        let (mut clean, mut received) = (vec![Complex32::default(); size], vec![Complex32::default(); bins]);
        let mut arrived = Vec::new();
        let (mut detected, mut prior) = (Detected::default(), Vec::new());
        for (index, points) in points.chunks_exact(config.data_carriers()).enumerate() {
            let mut sent = vec![Complex32::default(); config.active];
            slots.iter().zip(points).for_each(|(&slot, &z)| sent[slot] = z);
            for &(k, _, sign) in &self.layout.pilots {
                let slot = self.layout.active.partition_point(|&(c, _)| c < k);
                sent[slot] = Complex32::new(sign * polarity[index % polarity.len()], 0.0);
            }
            self.amplify(&sent, &mut clean);
            // A receiver of the same rate sees all bins, a narrower one the carriers alone.
            received.fill(Complex32::default());
            if size == bins {
                received.copy_from_slice(&clean);
            } else {
                let at = |k: i32| k.rem_euclid(bins as i32) as usize;
                self.layout.active.iter().for_each(|&(k, bin)| received[at(k)] = clean[bin]);
            }
            let noises: Vec<Complex32> = (0..bins).map(|_| narrow(random.complex() * f64::from(variance).sqrt())).collect();
            received.iter_mut().zip(&channel).zip(&noises).for_each(|((y, h), n)| *y = *y * h + n);
            arrived.push(received.clone());
            let observation = Observation { bins: &received, channel: &channel, noise: variance, index, prior: None, again: false };
            for (i, contender) in self.contenders.iter().enumerate() {
                if let Some(detector) = &mut self.detectors[i] {
                    detector.detect(&observation, &mut detected);
                } else {
                    let gain = if *contender == Contender::Genie { self.gain } else { Complex32::ONE };
                    detected.points.clear();
                    detected.variances.clear();
                    for (&(k, _), d) in self.layout.active.iter().zip(&sent) {
                        let bin = k.rem_euclid(bins as i32) as usize;
                        detected.points.push(d + noises[bin] / channel[bin] / gain);
                        detected.variances.push(variance / channel[bin].norm_sqr() / gain.norm_sqr());
                    }
                }
                for (&slot, d) in slots.iter().zip(points) {
                    let (z, v) = (detected.points[slot], detected.variances[slot]);
                    let weight = f64::from(channel[self.layout.active[slot].0.rem_euclid(bins as i32) as usize].norm_sqr());
                    scores[i].error += weight * f64::from((z - d).norm_sqr());
                    scores[i].power += weight * f64::from(d.norm_sqr());
                    scores[i].errors += u64::from((self.constellation.decide(z) ^ self.constellation.decide(*d)).count_ones());
                    self.soft.bits(&[z], &[v], &mut soft[i]);
                }
            }
        }
        for (i, soft) in soft.iter_mut().enumerate() {
            scores[i].bits += payload.len() as u64;
            scores[i].packets += 1;
            let mut read = self.code.decode(soft) == Some(&data);
            let Some(detector) = self.detectors[i].as_mut().filter(|_| self.contenders[i].hears()) else {
                scores[i].lost += u64::from(!read);
                continue;
            };
            scores[i].unaided += u64::from(!read);
            for _ in 0..FEEDBACKS {
                if read {
                    break;
                }
                self.code.feedback(soft, &mut prior);
                soft.clear();
                for (index, (bins, prior)) in arrived.iter().zip(prior.chunks_exact(config.symbol_bits())).enumerate() {
                    detector.detect(
                        &Observation { bins, channel: &channel, noise: variance, index, prior: Some(prior), again: false },
                        &mut detected,
                    );
                    slots.iter().for_each(|&slot| self.soft.bits(&[detected.points[slot]], &[detected.variances[slot]], soft));
                }
                read = self.code.decode(soft) == Some(&data);
            }
            scores[i].lost += u64::from(!read);
        }
    }

    /// The carriers behind the amplifier, on its bins, unit power a carrier.
    fn amplify(&mut self, sent: &[Complex32], out: &mut [Complex32]) {
        out.fill(Complex32::default());
        let scale = (sent.len() as f32).sqrt();
        self.layout.active.iter().zip(sent).for_each(|(&(_, bin), z)| out[bin] = z / scale);
        self.fourier.inverse(out);
        out.iter_mut().for_each(|z| *z = self.curve.apply(*z));
        self.fourier.forward(out);
        let size = out.len() as f32;
        out.iter_mut().for_each(|z| *z *= scale / size);
    }

    fn bussgang(&mut self) -> Complex32 {
        let mut random = RandomBits::new(1);
        let active = self.layout.active.len();
        let (mut bits, mut sent) = (vec![0; active * self.case.config.modulation.bits()], vec![Complex32::default(); active]);
        let mut out = vec![Complex32::default(); self.layout.size];
        let (mut cross, mut power) = (Complex64::default(), 0.0);
        for _ in 0..200 {
            random.fill(&mut bits);
            self.constellation.map(&bits, &mut sent);
            self.amplify(&sent, &mut out);
            for (&(_, bin), d) in self.layout.active.iter().zip(&sent) {
                let z = out[bin] * d.conj();
                cross += Complex64::new(z.re.into(), z.im.into());
                power += f64::from(d.norm_sqr());
            }
        }
        narrow(cross / power)
    }
}

fn narrow(z: Complex64) -> Complex32 {
    Complex32::new(z.re as f32, z.im as f32)
}

/// The SNR at which packet errors fall to `target`, on a straight line in their logarithm between the measured points (SNR in dB, packet errors); `None` where they
/// do not.
pub(crate) fn snr_at(points: &[(f64, f64)], target: f64) -> Option<f64> {
    let level = |per: f64| db(per.max(1e-4), 1.0);
    let after = points.iter().position(|&(_, per)| per <= target)?;
    let &(snr, per) = points.get(after)?;
    let Some(&(before, higher)) = after.checked_sub(1).and_then(|i| points.get(i)) else { return Some(snr) };
    Some(before + (snr - before) * (level(higher) - level(target)) / (level(higher) - level(per)))
}
