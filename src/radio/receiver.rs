//! From what is on the air to what a receive antenna hears: the parts of the test bed, as a [`Scenario`](crate::channel::Scenario) describes them.

use num_complex::Complex32;

use super::bursts::Sent;
use super::format::Format;
use super::{CHANNELS, Settings};
use crate::Result;
use crate::channel::{CarrierOffset, Doppler, Fading, Impairments, ImpairmentsConfig, Noise, Quantiser, Scenario, Stage};
use crate::dsp::Extent;

/// Transmitters that are tuned this far away, as a share of the rate, are still heard, off by that much; those farther away are not.
const IN_TUNE: f64 = 0.1;

/// The way from one transmit antenna to one receive antenna.
struct Link {
    fading: Option<Fading>,
    mixer: CarrierOffset,
    heard: bool,
}

/// One receive antenna.
struct Antenna {
    links: Vec<Link>,
    front: Impairments,
    ready: Vec<Complex32>,
}

/// Receive antennas that hear the transmit antennas through a channel.
pub(super) struct Receiver {
    antennas: Vec<Antenna>,
    adc: Quantiser,
    scratch: Vec<Complex32>,
    sum: Vec<Complex32>,
}

/// How an antenna stands: where it is tuned to in Hz, the gain behind it, and whether its DC offset is taken out.
#[derive(Clone, Copy, Default)]
pub(super) struct Tuned {
    pub(super) frequency: f64,
    pub(super) gain: f32,
    pub(super) without_dc: bool,
}

/// The converter comes behind the gain, and its full scale is 1.
fn before_gain(scenario: &Scenario) -> ImpairmentsConfig {
    ImpairmentsConfig { adc_bits: 0, ..scenario.impairments.clone() }
}

impl Receiver {
    /// The antennas `channels` at `rate` samples a second. The channel between two antennas does not depend on which others are in use.
    pub(super) fn new(settings: &Settings, channels: &[usize], rate: f64) -> Result<Self> {
        let scenario = settings.scenario(rate)?;
        let antennas = channels
            .iter()
            .map(|&rx| {
                let links = (0..CHANNELS)
                    .map(|tx| {
                        let seed = scenario.seed.wrapping_add(((rx * CHANNELS + tx) as u64) << 32);
                        let fading = scenario.fading.as_ref().map(|config| Fading::new(config, seed)).transpose()?;
                        Ok(Link { fading, mixer: CarrierOffset::new(0.0, 0.0)?, heard: false })
                    })
                    .collect::<Result<_>>()?;
                let snr_db = scenario.snr_db.unwrap_or(f64::INFINITY);
                let noise = Noise::new(snr_db, scenario.seed.wrapping_add((rx as u64) << 48))?.quick();
                Ok(Antenna { links, front: Impairments::with_noise(&before_gain(&scenario), noise, scenario.seed)?, ready: Vec::new() })
            })
            .collect::<Result<_>>()?;
        let adc = Quantiser::new(scenario.impairments.adc_bits, 1.0)?;
        Ok(Self { antennas, adc, scratch: Vec::new(), sum: Vec::new() })
    }

    /// Takes over what can change while running: all but delay, taps and amplifier.
    pub(super) fn update(&mut self, settings: &Settings, rate: f64) -> Result<()> {
        let scenario = settings.scenario(rate)?;
        let r = &scenario.impairments;
        self.adc.set_bits(r.adc_bits)?;
        for antenna in &mut self.antennas {
            for (name, value) in [
                ("snr_db", scenario.snr_db.unwrap_or(f64::INFINITY)),
                ("sample_offset_ppm", r.sample_offset_ppm),
                ("carrier_offset", r.carrier_offset),
                ("linewidth", r.linewidth),
                ("loop_bandwidth", r.loop_bandwidth),
                ("iq_gain_db", r.iq_gain_db),
                ("iq_phase_deg", r.iq_phase_deg),
                ("dc_re", r.dc_re),
                ("dc_im", r.dc_im),
            ] {
                antenna.front.set(name, value)?;
            }
            for fading in antenna.links.iter_mut().filter_map(|link| link.fading.as_mut()) {
                if let Some(Doppler::Constant(doppler)) = scenario.fading.as_ref().map(|f| &f.doppler) {
                    fading.set_doppler(*doppler)?;
                }
                fading.set_rician_k_db(scenario.fading.as_ref().and_then(|f| f.rician_k_db).unwrap_or(f64::NEG_INFINITY))?;
            }
        }
        Ok(())
    }

    /// Tunes each antenna; `tx` are the transmitters' centre frequencies in Hz.
    pub(super) fn tune(&mut self, tx: &[f64; CHANNELS], rx: &[Tuned], settings: &Settings, rate: f64) -> Result<()> {
        for (antenna, tuned) in self.antennas.iter_mut().zip(rx) {
            for (link, tx) in antenna.links.iter_mut().zip(tx) {
                let offset = tx - tuned.frequency;
                link.heard = offset.abs() <= IN_TUNE * rate;
                if link.heard {
                    link.mixer.set_frequency(offset / rate)?;
                }
            }
            let dc = |dc: f64| if tuned.without_dc { 0.0 } else { dc };
            antenna.front.set("dc_re", dc(settings.impairments.dc_re))?;
            antenna.front.set("dc_im", dc(settings.impairments.dc_im))?;
        }
        Ok(())
    }

    /// The true taps between a transmit antenna and the `antenna`-th one in use, at the last sample that was received.
    pub(super) fn taps(&self, antenna: usize, tx: usize) -> Option<Vec<Complex32>> {
        let link = self.antennas.get(antenna)?.links.get(tx)?;
        let narrow = |z: num_complex::Complex64| Complex32::new(z.re as f32, z.im as f32);
        Some(link.fading.as_ref().map_or(vec![Complex32::ONE], |fading| fading.taps().map(narrow).collect()))
    }

    /// Samples that can be delivered without more input.
    pub(super) fn ready(&self) -> usize {
        self.antennas.iter().map(|a| a.ready.len()).min().unwrap_or(0)
    }

    /// Lets the next samples of the air pass through the channel.
    pub(super) fn feed(&mut self, sent: &Sent, count: usize) {
        for antenna in &mut self.antennas {
            self.sum.clear();
            self.sum.resize(count, Complex32::ZERO);
            for (link, sent) in antenna.links.iter_mut().zip(sent) {
                // A transmitter that is off has left no echoes behind after the channel's few taps.
                if sent.is_empty() || !link.heard {
                    continue;
                }
                self.scratch.clone_from(sent);
                if let Some(fading) = &mut link.fading {
                    fading.process(&mut self.scratch);
                }
                link.mixer.process(&mut self.scratch);
                self.sum.iter_mut().zip(&self.scratch).for_each(|(sum, z)| *sum += z);
            }
            antenna.front.process(&self.sum, &mut antenna.ready);
        }
    }

    /// Fills `out` with `count` samples, no more than are [`ready`](Self::ready), of the `antenna`-th channel, scaled by `gain` and held at full scale, and drops them.
    /// Gives the largest part of them, as far as the converter shows it.
    pub(super) fn deliver(&mut self, antenna: usize, gain: f32, count: usize, format: Format, out: &mut [u8]) -> f32 {
        let ready = &mut self.antennas[antenna].ready;
        self.scratch.clear();
        let held = |z: Complex32| Complex32::new((z.re * gain).clamp(-1.0, 1.0), (z.im * gain).clamp(-1.0, 1.0));
        self.scratch.extend(ready.drain(..count).map(held));
        self.adc.process(&mut self.scratch);
        format.encode(&self.scratch, out);
        Extent::of(&self.scratch, f32::INFINITY).peak
    }

    /// Drops up to `count` ready samples of every antenna.
    pub(super) fn discard(&mut self, count: usize) -> usize {
        let n = self.ready().min(count);
        self.antennas.iter_mut().for_each(|a| drop(a.ready.drain(..n)));
        n
    }
}
