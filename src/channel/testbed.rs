use num_complex::Complex32;
use std::f32::consts::SQRT_2;

use super::scenario::another;
use super::{Amplifier, Dropper, Fading, Gap, Impairments, Noise, Scenario, Stage, narrow, wide};
use crate::ofdm::{Source, Transmitter};
use crate::{Error, Result};

/// Samples that go through the chain at once.
const BLOCK: usize = 4096;

/// Levels are measured over so many samples at most.
const REHEARSAL: u64 = 1 << 20;

/// A stretch of a simulated transmission.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    /// What each transmit antenna sent: the input of its amplifier.
    pub tx: Vec<Vec<Complex32>>,
    /// What each receive antenna got. `rx[r][n]` is the receiver's answer to `tx[t][n − delay]`.
    pub rx: Vec<Vec<Complex32>>,
    /// The true taps, every [`Scenario::taps_every`] samples of the transmitter's clock: frames of a number for each path of each pair of antennas, in the order of
    /// `(rx · tx_antennas + tx) · paths + path`.
    pub taps: Vec<Complex32>,
    /// Gaps: samples that arrive neither in `tx` nor in `rx`. `at` counts the samples that remain from the start of the transmission.
    pub gaps: Vec<Gap>,
}

impl Chunk {
    fn new(scenario: &Scenario) -> Self {
        Self { tx: vec![Vec::new(); scenario.tx_antennas()], rx: vec![Vec::new(); scenario.rx_antennas()], ..Self::default() }
    }

    fn clear(&mut self) {
        self.tx.iter_mut().chain(&mut self.rx).for_each(Vec::clear);
        self.taps.clear();
        self.gaps.clear();
    }

    /// Samples of each antenna.
    pub(crate) fn len(&self) -> usize {
        self.tx[0].len()
    }
}

/// A [`Scenario`] that runs: a stream of transmitted and received samples and of the true taps, in constant memory.
///
/// # Levels
///
/// Back-off and SNR are ratios of mean powers, and means over a short fading record differ from the ensemble's. So the bed rehearses: it runs the
/// transmitter once to learn the power at the amplifier, and the noise-free chain once to learn the power at the receiver, each over the whole
/// record (over its first 2²⁰ samples if it is longer) and only where the transmitter is not silent. All receive antennas have the same
/// noise.
///
/// ```
/// use kaflow::channel::{Scenario, TestBed};
/// let mut bed = TestBed::new(&Scenario::preset("a")?)?;
/// let mut samples = 0;
/// while let Some(chunk) = bed.next_chunk() {
///     samples += chunk.rx[0].len(); // chunk.tx[0] has as many
/// }
/// assert_eq!(samples, 6000);
/// # Ok::<(), kaflow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TestBed {
    scenario: Scenario,
    chain: Chain,
    receivers: Vec<Impairments>,
    dropper: Dropper,
    /// Samples emitted or dropped so far.
    done: u64,
    /// What is made and not yet put out: the receivers' clocks and filters are not in step with the transmitter.
    tx: Vec<Vec<Complex32>>,
    rx: Vec<Vec<Complex32>>,
    keep: Vec<bool>,
    chunk: Chunk,
    noise_power: f64,
}

impl TestBed {
    /// A test bed at its first sample. Rehearses, which takes as long as the record itself.
    pub fn new(scenario: &Scenario) -> Result<Self> {
        scenario.validate()?;
        let mut chain = Chain::new(scenario)?;
        let impairments = &scenario.impairments;
        let noise = |antenna: usize| -> Result<Noise> {
            let noise = Noise::new(scenario.snr_db.unwrap_or(f64::INFINITY), another(scenario.seed, antenna))?;
            Ok(if scenario.real { noise.real_valued() } else { noise })
        };
        let mut receivers = (0..scenario.rx_antennas())
            .map(|antenna| Impairments::with_noise(impairments, noise(antenna)?, scenario.seed))
            .collect::<Result<Vec<_>>>()?;
        let dropper = Dropper::new(impairments.drop_rate, impairments.drop_length, scenario.seed)?;
        let rehearsal = scenario.samples.min(REHEARSAL);
        let input_power = chain.clone().transmit_power(rehearsal)?;
        for amplifier in &mut chain.amplifiers {
            amplifier.set_input_power(input_power)?;
        }
        let mut noise_power = 0.0;
        if scenario.snr_db.is_some() || impairments.adc_bits > 0 {
            let power = chain.clone().receive_power(rehearsal);
            for receiver in &mut receivers {
                receiver.set_signal_power(power, impairments.adc_headroom_db)?;
            }
            noise_power = receivers[0].noise_power();
        }
        Ok(Self {
            chain,
            receivers,
            dropper,
            done: 0,
            tx: vec![Vec::new(); scenario.tx_antennas()],
            rx: vec![Vec::new(); scenario.rx_antennas()],
            keep: Vec::new(),
            chunk: Chunk::new(scenario),
            noise_power,
            scenario: scenario.clone(),
        })
    }

    /// The whole transmission at once.
    pub fn run(scenario: &Scenario) -> Result<Chunk> {
        let mut bed = Self::new(scenario)?;
        let mut all = Chunk::new(scenario);
        while let Some(chunk) = bed.next_chunk() {
            for (all, next) in all.tx.iter_mut().zip(&chunk.tx).chain(all.rx.iter_mut().zip(&chunk.rx)) {
                all.extend_from_slice(next);
            }
            all.taps.extend_from_slice(&chunk.taps);
            all.gaps.extend_from_slice(&chunk.gaps);
        }
        Ok(all)
    }

    /// The next stretch, of some thousand samples; none at the end of the scenario.
    pub fn next_chunk(&mut self) -> Option<&Chunk> {
        let left = self.scenario.samples - self.done;
        if left == 0 {
            return None;
        }
        self.chunk.clear();
        loop {
            let ready = self.tx.iter().chain(&self.rx).map(Vec::len).min().unwrap_or(0);
            if ready > 0 {
                let count = ready.min(BLOCK).min(usize::try_from(left).unwrap_or(usize::MAX));
                self.emit(count);
                return Some(&self.chunk);
            }
            let frame = self.scenario.taps_every;
            self.chain.next_block(BLOCK, &mut |sample, fading| {
                // Beyond the record the chain runs on only to fill the receivers' filters.
                if sample < self.scenario.samples && sample.is_multiple_of(frame) {
                    match fading {
                        Some(fading) => self.chunk.taps.extend(fading.taps().map(narrow)),
                        None => self.chunk.taps.push(Complex32::ONE),
                    }
                }
            });
            for (waiting, sent) in self.tx.iter_mut().zip(&self.chain.sent) {
                waiting.extend_from_slice(sent);
            }
            for ((waiting, received), receiver) in self.rx.iter_mut().zip(&self.chain.received).zip(&mut self.receivers) {
                receiver.process(received, waiting);
            }
        }
    }

    fn emit(&mut self, count: usize) {
        self.done += count as u64;
        self.keep.clear();
        self.keep.extend((0..count).map(|_| self.dropper.keep(&mut self.chunk.gaps)));
        let chunk = self.chunk.tx.iter_mut().chain(&mut self.chunk.rx);
        for (out, waiting) in chunk.zip(self.tx.iter_mut().chain(&mut self.rx)) {
            out.extend(waiting.drain(..count).zip(&self.keep).filter(|(_, keep)| **keep).map(|(sample, _)| sample));
        }
    }

    /// What it runs.
    pub(crate) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The delay of each path of the channel in samples.
    pub(crate) fn delays(&self) -> &[usize] {
        self.chain.fading.as_ref().map_or(&[0], Fading::delays)
    }

    /// Numbers in a frame of [`Chunk::taps`].
    pub(crate) fn coefficients(&self) -> usize {
        self.chain.fading.as_ref().map_or(1, Fading::coefficients)
    }

    /// The mean power of the noise at each receive antenna.
    pub fn noise_power(&self) -> f64 {
        self.noise_power
    }
}

/// From the transmitter to the antennas of the receiver, without noise.
#[derive(Clone, Debug)]
struct Chain {
    scenario: Scenario,
    transmitters: Vec<Transmitter>,
    /// One for each transmit antenna, or none at all.
    amplifiers: Vec<Amplifier>,
    fading: Option<Fading>,
    sample: u64,
    sent: Vec<Vec<Complex32>>,
    amplified: Vec<Vec<Complex32>>,
    received: Vec<Vec<Complex32>>,
}

impl Chain {
    fn new(scenario: &Scenario) -> Result<Self> {
        let amplifier = scenario.amplifier.as_ref().map(|a| Amplifier::new(a.model.clone(), a.ibo_db)).transpose()?;
        let build = if scenario.real { Fading::real_valued } else { Fading::new };
        // The channel checks the number of antennas, which everything else takes for granted.
        let fading = scenario.fading.as_ref().map(|config| build(config, scenario.seed)).transpose()?;
        let antennas = scenario.tx_antennas();
        Ok(Self {
            transmitters: transmitters(scenario)?,
            amplifiers: amplifier.map_or(Vec::new(), |a| vec![a; antennas]),
            fading,
            sample: 0,
            sent: vec![Vec::new(); antennas],
            amplified: vec![Vec::new(); antennas],
            received: vec![Vec::new(); scenario.rx_antennas()],
            scenario: scenario.clone(),
        })
    }

    fn transmit(&mut self, count: usize) {
        for (transmitter, sent) in self.transmitters.iter_mut().zip(&mut self.sent) {
            sent.resize(count, Complex32::ZERO);
            transmitter.fill(sent);
            if self.scenario.real {
                sent.iter_mut().for_each(|z| *z = Complex32::new(SQRT_2 * z.re, 0.0));
            }
        }
    }

    /// Leaves the next samples in `sent` and `received`. `watch` sees the index of each sample and the channel at that time.
    fn next_block(&mut self, count: usize, watch: &mut dyn FnMut(u64, Option<&Fading>)) {
        self.transmit(count);
        for (antenna, (amplified, sent)) in self.amplified.iter_mut().zip(&self.sent).enumerate() {
            amplified.clone_from(sent);
            if let Some(amplifier) = self.amplifiers.get_mut(antenna) {
                amplifier.process(amplified);
            }
        }
        let first = self.sample;
        self.sample += count as u64;
        match &mut self.fading {
            Some(fading) => {
                let tx: Vec<&[Complex32]> = self.amplified.iter().map(Vec::as_slice).collect();
                self.received.iter_mut().for_each(|r| r.resize(count, Complex32::ZERO));
                let mut rx: Vec<&mut [Complex32]> = self.received.iter_mut().map(Vec::as_mut_slice).collect();
                fading.process_mimo(&tx, &mut rx, |n, now| watch(first + n as u64, Some(now)));
            }
            None => {
                self.received.clone_from(&self.amplified);
                (first..self.sample).for_each(|n| watch(n, None));
            }
        }
    }

    /// Mean power of what an antenna sends while it sends.
    fn transmit_power(mut self, samples: u64) -> Result<f64> {
        let mut mean = Mean::default();
        for count in blocks(samples) {
            self.transmit(count);
            for sent in &self.sent {
                mean.add(sent, sent);
            }
        }
        let power = mean.value();
        if power > 0.0 {
            Ok(power)
        } else {
            Err(Error::Data("the transmitter is silent over the whole record: more samples are needed".into()))
        }
    }

    /// Mean power at a receive antenna while there is something to receive.
    fn receive_power(mut self, samples: u64) -> f64 {
        let mut mean = Mean::default();
        for count in blocks(samples) {
            self.next_block(count, &mut |_, _| ());
            for received in &self.received {
                mean.add(received, &self.sent[0]);
            }
        }
        mean.value()
    }
}

/// One transmitter for each antenna, each with its own payload.
fn transmitters(scenario: &Scenario) -> Result<Vec<Transmitter>> {
    let source = if scenario.frames { Source::RandomFrames } else { Source::Continuous };
    (0..scenario.tx_antennas()).map(|antenna| Transmitter::new(scenario.waveform(antenna), source.clone())).collect()
}

fn blocks(samples: u64) -> impl Iterator<Item = usize> {
    (0..samples).step_by(BLOCK).map(move |start| (samples - start).min(BLOCK as u64) as usize)
}

/// Mean power over the samples at which a reference is not silent.
#[derive(Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, samples: &[Complex32], reference: &[Complex32]) {
        self.sum += samples.iter().map(|z| wide(*z).norm_sqr()).sum::<f64>();
        self.count += reference.iter().filter(|z| **z != Complex32::ZERO).count() as u64;
    }

    fn value(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }
}
