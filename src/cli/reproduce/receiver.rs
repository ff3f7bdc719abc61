//! Packets through a saturated amplifier: one tap a carrier against detectors that know the curve.

use std::fmt::Write as _;

use serde_json::json;

use super::Size;
use super::report::Report;
use crate::Result;
use crate::cli::{parallel, progress};
use crate::ofdm::trial::{Case, Contender, Score, Trial, snr_at};
use crate::ofdm::{Config, Method, Modulation};
use crate::plot::{self, Axis, Figure, Mark, Panel};

/// Packets of one piece of work.
const PIECE: usize = 10;

/// Modulation, back-off in dB, rate of the amplifier's model, and SNRs in dB.
const STUDIES: [(Modulation, f64, usize, &[f64]); 6] = [
    (Modulation::Qam16, 0.0, 1, &[8.0, 10.0, 12.0, 13.0, 14.0, 15.0, 16.0, 18.0, 20.0, 25.0]),
    (Modulation::Qam16, -6.0, 1, &[10.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 20.0, 25.0, 30.0]),
    (Modulation::Qam64, 0.0, 1, &[16.0, 18.0, 19.0, 20.0, 21.0, 22.0, 24.0, 26.0, 28.0, 30.0]),
    (Modulation::Qam64, -6.0, 1, &[18.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 27.0, 30.0, 35.0]),
    (Modulation::Qam16, -6.0, 4, &[12.0, 14.0, 15.0, 16.0, 18.0, 20.0, 25.0]),
    (Modulation::Qam64, -6.0, 4, &[20.0, 22.0, 24.0, 25.0, 27.0, 30.0, 35.0]),
];

/// EVM in percent of the prototype: modulation, back-off, SNR, rate, its best detector, its EVM.
const PROTOTYPE: [(Modulation, f64, f64, usize, Method, f64); 4] = [
    (Modulation::Qam16, -6.0, 25.0, 1, Method::Ep, 5.9),
    (Modulation::Qam64, 0.0, 30.0, 1, Method::Bdar, 3.6),
    (Modulation::Qam64, -6.0, 30.0, 1, Method::Ep, 8.7),
    (Modulation::Qam64, -6.0, 30.0, 4, Method::Bdar, 8.4),
];

const CAPTION: &str = "Coded packets of ten symbols (waveform of the preset paper, convolutional code of rate 1/2), Rapp's amplifier with p = 2, four Rayleigh taps that are new \
    in each packet; channel and curve are known. One tap takes the distortion for noise, DAR (hard decisions) and BDAR take it away as far as it can be explained, EP infers \
    through the amplifier; BDAR and EP hear the decoder's feedback where the checksum is wrong. Genie: one that is told the distortion. Linear: no distortion.";

struct Row {
    study: usize,
    snr_db: f64,
    contender: Contender,
    score: Score,
}

pub(super) fn run(size: &Size, report: &mut Report) -> Result<()> {
    let packets = size.runs(200);
    let points: Vec<(usize, f64)> = STUDIES.iter().enumerate().flat_map(|(i, s)| s.3.iter().map(move |&snr| (i, snr))).collect();
    let pieces = packets.div_ceil(PIECE);
    let bar = progress::pieces((points.len() * pieces) as u64, "receiver");
    let mut totals: Vec<Vec<Score>> = points.iter().map(|&(i, _)| vec![Score::default(); contenders(i).len()]).collect();
    let work = |n: usize| -> Result<Vec<Score>> {
        let (study, snr_db) = points[n / pieces];
        let (modulation, ibo_db, oversampling, _) = STUDIES[study];
        let case = Case { config: Config { modulation, ..Config::default() }, ibo_db, oversampling, snr_db };
        let contenders = contenders(study);
        let mut trial = Trial::new(&case, &contenders)?;
        let mut scores = vec![Score::default(); contenders.len()];
        let first = n % pieces * PIECE;
        // All contenders and all SNRs see the same channels and payloads.
        let seed = |i: usize| size.seed.wrapping_mul(1_000_003).wrapping_add(((study as u64) << 32) + i as u64);
        (first..packets.min(first + PIECE)).for_each(|i| trial.packet(seed(i), &mut scores));
        Ok(scores)
    };
    let mut failure = None;
    parallel::each(points.len() * pieces, &bar, work, |n, result| match result {
        Ok(scores) => totals[n / pieces].iter_mut().zip(&scores).for_each(|(total, score)| total.merge(score)),
        Err(error) => failure = failure.take().or(Some(error)),
    });
    bar.finish_and_clear();
    if let Some(error) = failure {
        return Err(error);
    }
    let rows: Vec<Row> = points
        .iter()
        .zip(&totals)
        .flat_map(|(&(study, snr_db), scores)| {
            contenders(study).into_iter().zip(scores).map(move |(contender, &score)| Row { study, snr_db, contender, score })
        })
        .filter(|row| row.score.packets > 0)
        .collect();
    print(&rows, packets);
    report.figure(&picture(&rows));
    report.text(".csv", &table(&rows));
    let results: Vec<_> = rows
        .iter()
        .map(|r| {
            let (modulation, ibo_db, oversampling, _) = STUDIES[r.study];
            json!({
                "modulation": modulation.name(), "ibo_db": ibo_db, "snr_db": r.snr_db, "oversampling": oversampling, "detector": r.contender.name(),
                "ber": r.score.ber(), "evm_percent": r.score.evm_percent(), "per": r.score.per(), "packets": r.score.packets,
            })
        })
        .collect();
    let thresholds: Vec<_> = thresholds(&rows)
        .into_iter()
        .map(|(study, name, snr)| {
            let (modulation, ibo_db, oversampling, _) = STUDIES[study];
            json!({ "modulation": modulation.name(), "ibo_db": ibo_db, "oversampling": oversampling, "detector": name, "snr_db_at_per_0.1": snr })
        })
        .collect();
    let value = json!({
        "title": "Reception through a saturated amplifier", "results": results, "snr_for_10_percent_packet_errors": thresholds,
        "settings": { "packets": packets, "seed": size.seed, "code": "1/2", "symbols": 10, "clip_db": 6.0, "smoothness": 2.0, "taps": 4,
                      "evm": "carriers weighted by the power of their channel", "ber": "before decoding" },
    });
    report.json(value)
}

/// EP needs all that the amplifier makes: at the receiver's own rate only.
fn contenders(study: usize) -> Vec<Contender> {
    let narrow = STUDIES[study].2 > 1;
    Contender::ALL.into_iter().filter(|c| !(narrow && *c == Contender::Detector(Method::Ep))).collect()
}

fn title(study: usize) -> String {
    let (modulation, ibo_db, oversampling, _) = STUDIES[study];
    let size = 1usize << modulation.bits();
    let band = if oversampling > 1 { format!(", amplifier at {oversampling}x, receiver in band") } else { String::new() };
    format!("{size}-QAM, back-off {ibo_db} dB{band}")
}

/// The SNR at which one packet in ten is lost.
fn thresholds(rows: &[Row]) -> Vec<(usize, &'static str, Option<f64>)> {
    let mut found = Vec::new();
    for study in 0..STUDIES.len() {
        for contender in contenders(study) {
            let own = rows.iter().filter(|r| r.study == study && r.contender == contender);
            let points: Vec<(f64, f64)> = own.map(|r| (r.snr_db, r.score.per())).collect();
            found.push((study, contender.name(), snr_at(&points, 0.1)));
        }
    }
    found
}

fn picture(rows: &[Row]) -> Figure {
    let mut panels = Vec::new();
    for study in 0..STUDIES.len() {
        // Each contender has its colour in all panels.
        let marks = |value: &dyn Fn(&Score) -> f64| -> Vec<Mark> {
            let line = |(i, contender): (usize, Contender)| {
                let own = rows.iter().filter(|r| r.study == study && r.contender == contender);
                let points = own.map(|r| [r.snr_db, value(&r.score)]).collect();
                Mark::Line { name: contender.name().into(), note: String::new(), points, style: plot::style_at(i) }
            };
            let here = contenders(study);
            Contender::ALL.into_iter().enumerate().filter(|(_, c)| here.contains(c)).map(line).collect()
        };
        let snr = || Axis::new("SNR", "dB");
        // A logarithmic axis has no place for no errors: those packets are drawn at half a packet.
        let least = rows.iter().map(|r| 0.5 / r.score.packets as f64).fold(1.0, f64::min);
        let errors = Axis::new("packet errors", "").log().range(least, 1.2);
        let per = marks(&|s| s.per().max(0.5 / s.packets.max(1) as f64));
        panels.push(Panel { marks: per, ..Panel::new(snr(), errors).titled(title(study)) });
        let evm = Panel::new(snr(), Axis::new("EVM", "%").log()).titled(title(study));
        panels.push(Panel { marks: marks(&Score::evm_percent), ..evm });
    }
    Figure { width: 1000.0, panels, ..Figure::new("Reception through a saturated amplifier") }.columns(2).captioned(CAPTION)
}

fn table(rows: &[Row]) -> String {
    let mut text = "modulation,ibo_db,oversampling,snr_db,detector,packets,ber,evm_percent,per,per_without_feedback\n".to_owned();
    for r in rows {
        let (modulation, ibo_db, oversampling, _) = STUDIES[r.study];
        let s = &r.score;
        let unaided = if s.unaided > 0 { s.unaided as f64 / s.packets as f64 } else { s.per() };
        let _ = writeln!(
            text,
            "{modulation},{ibo_db},{oversampling},{},{},{},{:?},{:?},{:?},{unaided:?}",
            r.snr_db,
            r.contender.name(),
            s.packets,
            s.ber(),
            s.evm_percent(),
            s.per()
        );
    }
    text
}

fn print(rows: &[Row], packets: usize) {
    say!("Reception through a saturated amplifier, {packets} packets a point");
    say!("  {:<56} {:>9} {:>7} {:>6}   {}", "", "BER", "EVM %", "PER", "prototype's EVM");
    for (modulation, ibo_db, snr_db, oversampling, best, evm) in PROTOTYPE {
        let here = |r: &&Row| {
            let (m, ibo, rate, _) = STUDIES[r.study];
            (m, ibo, rate, r.snr_db) == (modulation, ibo_db, oversampling, snr_db)
        };
        for r in rows.iter().filter(here) {
            let note = if r.contender == Contender::Detector(best) { format!("{evm:.1}") } else { String::new() };
            let name = format!("{}, {snr_db} dB: {}", title(r.study), r.contender.name());
            say!("  {name:<56} {:>9.1e} {:>7.1} {:>6.3}   {note}", r.score.ber(), r.score.evm_percent(), r.score.per());
        }
    }
    say!("  SNR for 10 % packet errors, dB");
    for study in 0..STUDIES.len() {
        let own: Vec<String> = thresholds(rows)
            .into_iter()
            .filter(|(s, ..)| *s == study)
            .map(|(_, name, snr)| format!("{name} {}", snr.map_or("-".into(), |snr| format!("{snr:.1}"))))
            .collect();
        say!("  {:<56} {}", title(study), own.join(", "));
    }
}
