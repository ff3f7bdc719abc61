//! What a stretch of the run says of the signal itself: how strong and how clean it is.

use serde_json::{Map, Value, json};

use super::{Subject, Tracked, constellation};
use crate::dsp::db;
use crate::metrics::{Psd, welch};
use crate::{Complex32, Result};

/// Samples of each of the windows that a spectrum averages.
const WINDOW: usize = 512;

/// A spectrum; none of fewer samples than make a smooth one.
pub(super) fn spectrum(samples: &[Complex32], rate: f64) -> Result<Option<Psd>> {
    if samples.len() < 4 * WINDOW { Ok(None) } else { welch(samples, WINDOW, rate).map(Some) }
}

/// Level and clipping of what was received, its signal-to-noise ratio, what leaks into the neighbouring channels, the error vectors of its symbols.
pub(super) fn figures(subject: &Subject, best: Option<&Tracked<'_>>) -> Map<String, Value> {
    let mut figures = Map::new();
    if let Some((mean, peak, clipped)) = subject.level {
        figures.insert("level_dbfs".into(), json!(mean));
        figures.insert("peak_dbfs".into(), json!(peak));
        figures.insert("clipped_samples".into(), json!(clipped));
    }
    let Some((best, stretch)) = best.and_then(|best| Some((best, best.stretch()?))) else { return figures };
    let rate = subject.sample_rate.filter(|rate| *rate > 0.0).unwrap_or(1.0);
    let received = if subject.equalize { &stretch.input } else { &stretch.target };
    if let Ok(Some(psd)) = spectrum(received, rate) {
        let bandwidth = match &subject.waveform {
            // Relative to the rate: a preset may have been made for another one.
            Some(w) => w.config.occupied_bandwidth() / w.config.output_rate() * rate,
            None => {
                let (low, high) = psd.occupied(0.99);
                high - low
            }
        };
        if !subject.equalize {
            figures.insert("snr_db".into(), json!(snr_db(&psd, bandwidth, best.total.nmse_db())));
        }
        if let Ok((lower, upper)) = psd.acpr_db(bandwidth, bandwidth) {
            figures.insert("aclr_db".into(), json!([lower, upper]));
        }
    }
    if let Some(points) = constellation::points(subject, stretch, constellation::MOST) {
        figures.insert("evm_percent".into(), json!(points.received_evm().percent()));
    }
    figures
}

/// The signal-to-noise ratio is at least this, by what nobody can have predicted: noise. Two bounds, the better one counts: what the best filter leaves, and the floor of the
/// spectrum outside the signal's band (a tenth of the bins lie below it), which an amplifier raises.
fn snr_db(psd: &Psd, bandwidth: f64, nmse_db: f64) -> f64 {
    let mut outside: Vec<f64> =
        (0..psd.density.len()).filter(|&i| psd.frequency(i).abs() > bandwidth / 2.0 + psd.resolution()).map(|i| psd.density[i]).collect();
    outside.sort_by(f64::total_cmp);
    let total = psd.power(-psd.sample_rate / 2.0, psd.sample_rate / 2.0);
    let by_floor = outside.get(outside.len() / 10).map_or(f64::NEG_INFINITY, |floor| {
        let noise = floor * psd.sample_rate;
        db(total - noise, noise)
    });
    let predicted = 10f64.powf(nmse_db / 10.0);
    db(1.0 - predicted, predicted).max(by_floor)
}
