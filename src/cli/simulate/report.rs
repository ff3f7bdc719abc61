use crate::Complex32;
use crate::channel::{Chunk, Doppler, Model, Scenario, TestBed};
use crate::dsp::db;

/// What was measured while writing.
#[derive(Default)]
pub(super) struct Levels {
    tx: Level,
    rx: Level,
    gaps: u64,
    gap_samples: u64,
}

#[derive(Default)]
struct Level {
    energy: f64,
    samples: u64,
    peak: f64,
}

impl Level {
    fn add(&mut self, antennas: &[Vec<Complex32>]) {
        for sample in antennas.iter().flatten() {
            let power = f64::from(sample.norm_sqr());
            self.energy += power;
            self.samples += 1;
            self.peak = self.peak.max(power);
        }
    }

    fn power(&self) -> f64 {
        self.energy / self.samples.max(1) as f64
    }
}

impl Levels {
    pub(super) fn add(&mut self, chunk: &Chunk) {
        self.tx.add(&chunk.tx);
        self.rx.add(&chunk.rx);
        self.gaps += chunk.gaps.len() as u64;
        self.gap_samples += chunk.gaps.iter().map(|g| g.length).sum::<u64>();
    }
}

impl Levels {
    /// The same as JSON.
    pub(super) fn figures(&self) -> serde_json::Value {
        let of = |level: &Level| serde_json::json!({ "power": level.power(), "peak_db": db(level.peak, level.power()), "samples": level.samples });
        serde_json::json!({ "tx": of(&self.tx), "rx": of(&self.rx), "gaps": self.gaps, "gap_samples": self.gap_samples })
    }
}

/// What was made, one line for each part of the chain.
pub(super) fn summary(scenario: &Scenario, bed: &TestBed, levels: &Levels) -> String {
    let rate = scenario.sample_rate();
    let mut lines = vec![
        ("simulated", record(scenario)),
        ("signal", signal(scenario)),
        ("amplifier", amplifier(scenario)),
        ("channel", channel(scenario, rate)),
        ("receiver", receiver(scenario, rate)),
    ];
    let measured = |level: &Level| format!("power {:.4}, peak {:.2} dB above it", level.power(), db(level.peak, level.power()));
    lines.push(("tx", measured(&levels.tx)));
    let mut rx = measured(&levels.rx);
    if bed.noise_power() > 0.0 {
        rx += &format!(", noise power {:.3e}", bed.noise_power());
    }
    lines.push(("rx", rx));
    if levels.gaps > 0 {
        lines.push(("gaps", format!("{} with {} samples lost", levels.gaps, levels.gap_samples)));
    }
    lines.iter().map(|(name, text)| format!("{name:<10} {text}\n")).collect()
}

fn record(scenario: &Scenario) -> String {
    let rate = scenario.sample_rate();
    format!(
        "{} samples at {} MS/s ({:.3} ms), {} GHz, seed {}, {} x {} antennas",
        scenario.samples,
        rate / 1e6,
        scenario.samples as f64 / rate * 1e3,
        scenario.frequency / 1e9,
        scenario.seed,
        scenario.tx_antennas(),
        scenario.rx_antennas(),
    )
}

fn signal(scenario: &Scenario) -> String {
    let ofdm = &scenario.ofdm;
    let mut text =
        format!("OFDM, {} carriers, {} active, prefix {}, {}", ofdm.fft, ofdm.active, ofdm.cyclic_prefix, ofdm.modulation.name());
    if ofdm.oversampling > 1 {
        text += &format!(", oversampled {} times", ofdm.oversampling);
    }
    text += &match ofdm.clip {
        Some(clip) => format!(", clipped {} dB above rms{}", clip.level_db, if clip.filter { " and filtered" } else { "" }),
        None => ", not clipped".into(),
    };
    text += &if scenario.frames { format!(", frames of {} symbols with preamble", ofdm.symbols) } else { ", continuous".into() };
    text + if scenario.real { ", real-valued" } else { "" }
}

fn amplifier(scenario: &Scenario) -> String {
    let Some(amplifier) = &scenario.amplifier else { return "none".into() };
    let model = match &amplifier.model {
        Model::Limiter => "ideal limiter".into(),
        Model::Rapp { smoothness } => format!("Rapp, p = {smoothness}"),
        Model::Saleh { .. } => "Saleh".into(),
        Model::MemoryPolynomial { terms } => format!("memory polynomial of {} terms", terms.len()),
        Model::Table { points } => format!("table of {} points", points.len()),
    };
    format!("{model}, input back-off {} dB", amplifier.ibo_db)
}

fn channel(scenario: &Scenario, rate: f64) -> String {
    let Some(fading) = &scenario.fading else { return "none".into() };
    let kind = fading.rician_k_db.map_or("Rayleigh".into(), |k| format!("Rician with K = {k} dB"));
    let doppler = match &fading.doppler {
        Doppler::Constant(f) => format!("f_d T = {f} ({} Hz)", f * rate),
        points => format!("f_d T = {points}"),
    };
    let mut text = format!("{kind}, {}, {doppler}", fading.profile);
    if fading.tx_correlation != 0.0 || fading.rx_correlation != 0.0 {
        text += &format!(", antennas correlated by {} and {}", fading.tx_correlation, fading.rx_correlation);
    }
    text
}

fn receiver(scenario: &Scenario, rate: f64) -> String {
    let receiver = &scenario.impairments;
    let mut parts = vec![scenario.snr_db.map_or("no noise".into(), |snr| format!("SNR {snr} dB"))];
    let mut say = |on: bool, text: String| {
        if on {
            parts.push(text);
        }
    };
    say(receiver.delay != 0.0, format!("delay {} samples", receiver.delay));
    say(receiver.sample_offset_ppm != 0.0, format!("clock {} ppm off", receiver.sample_offset_ppm));
    say(receiver.carrier_offset != 0.0, format!("carrier {} Hz off", receiver.carrier_offset * rate));
    say(receiver.linewidth != 0.0, format!("line {} Hz wide", receiver.linewidth * rate));
    say(
        receiver.iq_gain_db != 0.0 || receiver.iq_phase_deg != 0.0,
        format!("IQ imbalance {} dB and {} degrees", receiver.iq_gain_db, receiver.iq_phase_deg),
    );
    say(receiver.dc_re != 0.0 || receiver.dc_im != 0.0, format!("DC {}{:+}j", receiver.dc_re, receiver.dc_im));
    say(receiver.adc_bits != 0, format!("{} bits, full scale {} dB above rms", receiver.adc_bits, receiver.adc_headroom_db));
    say(receiver.drop_rate != 0.0, format!("{} gaps per sample, {} long", receiver.drop_rate, receiver.drop_length));
    parts.join(", ")
}
