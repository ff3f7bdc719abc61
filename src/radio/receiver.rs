//! From what is on the air to what a receive antenna hears.

use num_complex::Complex32;

use super::air::Sent;
use super::format::Sample;
use super::{CHANNELS, Settings};
use crate::Result;
use crate::channel::{CarrierOffset, Fading, Noise, SampleOffset, Stage};
use crate::error::require;

/// Transmitters that are tuned this far away, as a share of the rate, are still heard, off by that much; those farther away are not.
const IN_TUNE: f64 = 0.1;

/// What [`Noise`] takes: beyond 300 dB there is none.
fn audible(snr_db: f64) -> f64 {
    if snr_db > 300.0 { f64::INFINITY } else { snr_db }
}

/// The way from one transmit antenna to one receive antenna.
struct Link {
    fading: Option<Fading>,
    mixer: CarrierOffset,
    heard: bool,
}

/// One receive antenna.
struct Antenna {
    links: Vec<Link>,
    clock: SampleOffset,
    noise: Noise,
    ready: Vec<Complex32>,
}

/// Receive antennas that hear the transmit antennas through a channel.
pub(super) struct Receiver {
    antennas: Vec<Antenna>,
    scratch: Vec<Complex32>,
    sum: Vec<Complex32>,
}

impl Receiver {
    /// The antennas `channels` at `rate` samples a second. The channel between two antennas does not depend on which others are in use.
    pub(super) fn new(settings: &Settings, channels: &[usize], rate: f64) -> Result<Self> {
        let fading = settings.fading(rate)?;
        let antennas = channels
            .iter()
            .map(|&rx| {
                let links = (0..CHANNELS)
                    .map(|tx| {
                        let seed = settings.seed.wrapping_add(((rx * CHANNELS + tx) as u64) << 32);
                        let fading = fading.as_ref().map(|config| Fading::new(config, seed)).transpose()?;
                        Ok(Link { fading, mixer: CarrierOffset::new(0.0, 0.0)?, heard: false })
                    })
                    .collect::<Result<_>>()?;
                Ok(Antenna {
                    links,
                    clock: SampleOffset::new(settings.ppm, settings.delay)?,
                    noise: Noise::new(audible(settings.snr_db), settings.seed.wrapping_add((rx as u64) << 48))?.quick(),
                    ready: Vec::new(),
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self { antennas, scratch: Vec::new(), sum: Vec::new() })
    }

    /// Takes over what can change while running: noise and Doppler.
    pub(super) fn update(&mut self, settings: &Settings, rate: f64) -> Result<()> {
        for antenna in &mut self.antennas {
            antenna.noise.set_snr_db(audible(settings.snr_db))?;
            for fading in antenna.links.iter_mut().filter_map(|link| link.fading.as_mut()) {
                fading.set_doppler((settings.doppler_hz / rate).min(0.5))?;
            }
        }
        Ok(())
    }

    /// Tunes each antenna: `tx` and `rx` are centre frequencies in Hz, `cfo_hz` comes on top.
    pub(super) fn tune(&mut self, tx: &[f64; CHANNELS], rx: &[f64], cfo_hz: f64, rate: f64) -> Result<()> {
        for (antenna, rx) in self.antennas.iter_mut().zip(rx) {
            for (link, tx) in antenna.links.iter_mut().zip(tx) {
                let offset = tx - rx;
                link.heard = offset.abs() <= IN_TUNE * rate;
                if link.heard {
                    let frequency = (offset + cfo_hz) / rate;
                    require(frequency.abs() <= 0.5, "cfo", "at most half the sample rate away", cfo_hz)?;
                    link.mixer.set_frequency(frequency)?;
                }
            }
        }
        Ok(())
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
            let start = antenna.ready.len();
            antenna.clock.process(&self.sum, &mut antenna.ready);
            antenna.noise.process(&mut antenna.ready[start..]);
        }
    }

    /// Fills `out`, which is no longer than what is [`ready`](Self::ready), with samples of the `antenna`-th channel, scaled by `gain` and held at full scale, and drops them.
    pub(super) fn deliver<S: Sample>(&mut self, antenna: usize, gain: f32, out: &mut [S]) {
        let ready = &mut self.antennas[antenna].ready;
        for (out, z) in out.iter_mut().zip(&*ready) {
            *out = S::from_complex(Complex32::new((z.re * gain).clamp(-1.0, 1.0), (z.im * gain).clamp(-1.0, 1.0)));
        }
        ready.drain(..out.len());
    }

    /// Drops up to `count` ready samples of every antenna.
    pub(super) fn discard(&mut self, count: usize) -> usize {
        let n = self.ready().min(count);
        self.antennas.iter_mut().for_each(|a| drop(a.ready.drain(..n)));
        n
    }
}
