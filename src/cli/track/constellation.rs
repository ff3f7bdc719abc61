//! The constellation before and after an equaliser, on a test bed whose waveform is known.

use num_complex::Complex32;

use super::{Args, graph::Tracked, input::Survey};
use crate::{
    Result,
    filter::registry,
    ofdm::{Config, Demodulator},
};

/// Points of either picture: more only hide one another.
const MOST: usize = 4000;

/// Constellation points of the same data carriers, by two equalisers that both know all that was sent before, and nothing of the present symbol but its
/// pilots.
pub(super) struct Points {
    /// By one tap for each carrier: divided by the gain of the symbol before, and turned as the pilots say.
    pub(super) one_tap: Vec<Complex32>,
    /// By the filter: its predictions of what was sent, demodulated.
    pub(super) equalised: Vec<Complex32>,
}

/// The last points of the start of the streams; nothing without `--equalize`, or where the waveform is not known.
#[cfg_attr(not(test), expect(dead_code, reason = "for the picture of the constellation"))]
pub(super) fn points(args: &Args, survey: &Survey, filter: &Tracked) -> Result<Option<Points>> {
    let Some((config, frames)) = survey.waveform.as_ref().filter(|_| args.equalize) else { return Ok(None) };
    let (received, sent) = (&survey.input, &survey.target);
    let early = &received[survey.advance.min(received.len())..];
    let n = early.len().min(sent.len());
    let mut estimate = vec![Complex32::default(); n];
    registry::tracker::<f32>(&filter.settings, args.taps)?.track(&early[..n], &sent[..n], &mut estimate, None);

    let mut carriers = Carriers { demodulator: Demodulator::new(config)?, config };
    let wanted = MOST / config.data_carriers().max(1);
    let mut pairs: Vec<(usize, usize)> = symbols(config, *frames, n);
    pairs.drain(..pairs.len().saturating_sub(wanted));
    let mut points = Points { one_tap: Vec::new(), equalised: Vec::new() };
    for (before, now) in pairs {
        let (x, y) = (carriers.at(sent, before), carriers.at(received, before));
        let gains: Vec<_> = x.iter().zip(&y).map(|(x, y)| y * x.conj() / x.norm_sqr().max(f32::MIN_POSITIVE)).collect();
        let (x, y, estimate) = (carriers.at(sent, now), carriers.at(received, now), carriers.at(&estimate, now));
        let data = carriers.demodulator.data_slots();
        let pilots = (0..x.len()).filter(|slot| !data.contains(slot));
        let turn: Complex32 = pilots.map(|slot| y[slot] * (gains[slot] * x[slot]).conj()).sum();
        let turn = if turn.norm() > 0.0 { turn / turn.norm() } else { Complex32::new(1.0, 0.0) };
        points.one_tap.extend(data.iter().map(|&slot| y[slot] / (gains[slot] * turn)));
        points.equalised.extend(data.iter().map(|&slot| estimate[slot]));
    }
    let finite = |z: &Complex32| z.re.is_finite() && z.im.is_finite();
    points.one_tap.retain(finite);
    points.equalised.retain(finite);
    Ok(Some(points).filter(|p| !p.equalised.is_empty()))
}

/// Where symbols begin that follow another one at once, with the beginning of that one, among the first `n` samples.
fn symbols(config: &Config, frames: bool, n: usize) -> Vec<(usize, usize)> {
    let length = config.symbol_samples();
    let starts = |first: usize, count: usize| (1..count).map(move |i| (first + (i - 1) * length, first + i * length));
    if !frames {
        return starts(0, n / length).collect();
    }
    let period = config.frame_samples() + config.gap * config.oversampling;
    (0..n / period).flat_map(|frame| starts(frame * period + config.preamble_samples(), config.symbols)).collect()
}

struct Carriers<'a> {
    demodulator: Demodulator,
    config: &'a Config,
}

impl Carriers<'_> {
    /// The active carriers of the symbol that begins at `start`, prefix included.
    fn at(&mut self, samples: &[Complex32], start: usize) -> Vec<Complex32> {
        let body = start + self.config.cyclic_prefix * self.config.oversampling;
        let mut carriers = vec![Complex32::default(); self.config.active];
        self.demodulator.carriers(&samples[body..body + self.config.fft * self.config.oversampling], &mut carriers);
        carriers
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        blocks::Row,
        cli::track::input::Input,
        filter::registry::{Value, Values},
    };

    #[test]
    fn both_equalisers_find_the_constellation_of_the_test_bed() {
        let args = Args { preset: Some("wifi".into()), samples: Some(30_000), equalize: true, taps: 12, ..Args::bare() };
        let survey = Input::open(&args).unwrap().survey(&args).unwrap();
        let given = Values::from([("lambda".into(), Value::Number(0.97))]);
        let settings = registry::recipe("rls").unwrap().settle(&given, 1.0).unwrap();
        let filter = Tracked {
            name: "rls",
            settings,
            total: Row::default(),
            samples: 0,
            rows: Vec::new(),
            centres: 0,
            rate: 0.0,
            p99: Duration::ZERO,
        };
        let found = points(&args, &survey, &filter).unwrap().unwrap();
        assert!(found.one_tap.len() == found.equalised.len() && found.one_tap.len() > 3000 && found.one_tap.len() <= MOST);
        for (points, most) in [(&found.one_tap, 0.3), (&found.equalised, 0.6)] {
            let off = |z: &Complex32| (z - Complex32::new(z.re.signum(), z.im.signum()) * 0.5f32.sqrt()).norm_sqr();
            let rms = (points.iter().map(off).sum::<f32>() / points.len() as f32).sqrt();
            assert!(rms < most, "{rms} away from QPSK");
        }
        assert!(points(&Args { equalize: false, ..args }, &survey, &filter).unwrap().is_none());
    }
}
