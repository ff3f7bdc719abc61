//! The pictures of a run: what is drawn is what the tables beside them hold, and what the filters have learned is there.
#![cfg(feature = "cli")]

mod common;

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use assert_cmd::{Command, cargo::cargo_bin};
use common::read_back;
use kaflow::{
    Complex32,
    channel::{Scenario, TestBed},
    filter::{
        Guard,
        registry::{self, Values},
    },
};

fn kaflow(directory: &Path, arguments: &str) {
    let mut run = Command::new(cargo_bin!("kaflow"));
    run.current_dir(directory).args(arguments.split_whitespace()).timeout(Duration::from_secs(120)).assert().success();
}

/// The rows of a table by the text of their first column, all others as numbers.
fn table(path: &Path) -> BTreeMap<String, Vec<Vec<f64>>> {
    let mut rows: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    for line in fs::read_to_string(path).unwrap().lines().skip(1) {
        let mut cells = line.split(',');
        let name = cells.next().unwrap().to_owned();
        rows.entry(name).or_default().push(cells.map(|v| v.parse().unwrap()).collect());
    }
    rows
}

/// Whether every drawn point is one of the given: a px is the unit, and dense lines keep their extremes only.
fn drawn_from(drawn: &[[f64; 2]], given: &[[f64; 2]], what: &str) {
    assert!(!drawn.is_empty(), "{what}");
    let span = |k: usize| {
        let values = || given.iter().map(|p| p[k]).filter(|v| v.is_finite());
        (values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min)).max(1e-12)
    };
    let (dx, dy) = (2e-4 * span(0), 2e-4 * span(1));
    for d in drawn {
        assert!(given.iter().any(|g| (g[0] - d[0]).abs() < dx && (g[1] - d[1]).abs() < dy), "{what}: {d:?} was not given");
    }
}

#[test]
fn taps_weights_and_curves_are_drawn_as_they_are_in_the_tables() {
    let directory = tempfile::tempdir().unwrap();
    let filters = ["nlms", "ensemble", "fklms", "krlst"];
    let wanted: String = filters.iter().map(|f| format!(" --filter {f}")).collect();
    kaflow(directory.path(), &format!("track --preset a --samples 8000 --out out{wanted}"));
    let out = directory.path().join("out");
    let svg = |name: &str| fs::read_to_string(out.join(name)).unwrap();

    // Taps: two panels for each filter, the best one first: size and phase.
    let taps = table(&out.join("taps.csv"));
    assert_eq!(taps.keys().collect::<Vec<_>>(), ["ensemble", "nlms"]);
    let picture = svg("taps.svg");
    let ofdm = Scenario::preset("a").unwrap().ofdm;
    let rate = ofdm.sample_rate * ofdm.oversampling as f64;
    for (filter, panel) in [("ensemble", 0), ("nlms", 2)] {
        for tap in 0..4 {
            let rows = || taps[filter].iter().filter(|row| row[1] == f64::from(tap));
            let size: Vec<_> = rows().map(|r| [r[0] / rate, r[2].hypot(r[3])]).collect();
            let phase: Vec<_> = rows().map(|r| [r[0] / rate, r[3].atan2(r[2]).to_degrees()]).collect();
            assert!(size.len() > 100, "{} moments", size.len());
            drawn_from(&read_back(&picture, panel, &format!("tap {tap}")), &size, &format!("{filter}, size of tap {tap}"));
            let drawn = read_back(&picture, panel + 1, &format!("tap {tap}"));
            if !drawn.is_empty() {
                drawn_from(&drawn, &phase, &format!("{filter}, phase of tap {tap}"));
            }
        }
        let phases = (0..4).filter(|tap| !read_back(&picture, panel + 1, &format!("tap {tap}")).is_empty()).count();
        assert_eq!(phases, 2, "{filter}: the two strongest");
    }

    let weights = table(&out.join("weights.csv"));
    assert_eq!(weights.keys().collect::<Vec<_>>(), ["fklms", "krlst"]);
    let picture = svg("weights.svg");
    for (filter, count) in [("fklms", 500), ("krlst", 100)] {
        let rows: Vec<_> = weights[filter].iter().map(|r| [r[0], r[1].ln()]).collect();
        assert_eq!(rows.len(), count);
        assert!(rows.windows(2).all(|w| w[0][0] < w[1][0]), "no two weights of one age");
        // A panel for each of the two, before the one of their shares.
        let panel = (0..2).find(|&p| !read_back(&picture, p, filter).is_empty()).unwrap();
        let drawn: Vec<_> = read_back(&picture, panel, filter).iter().map(|p| [p[0], p[1].ln()]).collect();
        drawn_from(&drawn, &rows, filter);
    }

    // The curve of the amplifier saturates, and lies in the middle of the dots.
    let curves = table(&out.join("amplifier.csv"));
    let (learned, measured) = (&curves["ensemble"], &curves["measured"]);
    let rows: Vec<_> = learned.iter().map(|r| [r[0], r[1]]).collect();
    drawn_from(&read_back(&svg("amplifier.svg"), 0, "ensemble"), &rows, "AM/AM");
    let last = rows[rows.len() - 1];
    assert!(last[1] / last[0] < 0.8 * rows[5][1] / rows[5][0], "{rows:?}");
    let at = |r: f64| rows.windows(2).find(|w| w[0][0] <= r && w[1][0] > r).map(|w| (w[0][1] + w[1][1]) / 2.0);
    let off: Vec<f64> = measured.iter().filter_map(|m| Some(m[1] - at(m[0])?)).collect();
    let mean = off.iter().sum::<f64>() / off.len() as f64;
    let deviation = (off.iter().map(|d| d * d).sum::<f64>() / off.len() as f64).sqrt();
    assert!(off.len() > 1000 && mean.abs() < 0.03 && deviation < 0.3, "{} dots, {mean} off, deviation {deviation}", off.len());
}

#[test]
fn the_last_taps_are_those_of_the_bare_filter() {
    let directory = tempfile::tempdir().unwrap();
    let samples = 4096;
    let scenario = Scenario { samples, ..Scenario::preset("a").unwrap() };
    let run = TestBed::run(&scenario).unwrap();
    kaflow(directory.path(), &format!("track --preset a --samples {samples} --filter nlms --mu 0.5 --out out"));
    let taps = table(&directory.path().join("out/taps.csv"));
    let given = Values::from([("mu".into(), registry::Value::Number(0.5))]);
    let spread = (4.0 * kaflow::metrics::power(&run.tx[0])).sqrt();
    let tracker = registry::tracker::<f32>(&registry::recipe("nlms").unwrap().settle_stream(&given, spread, 4).unwrap(), 4).unwrap();
    let mut tracker = Guard::new(tracker);
    let mut prediction = vec![Complex32::default(); samples as usize];
    let mut done = 0;
    for moment in taps["nlms"].chunks(4) {
        let at = moment[0][0] as usize;
        tracker.track(&run.tx[0][done..at], &run.rx[0][done..at], &mut prediction[done..at], None);
        done = at;
        for (row, h) in moment.iter().zip(tracker.portrait().taps) {
            assert!((row[2] - h.re).abs() < 1e-9 && (row[3] - h.im).abs() < 1e-9, "after {at}: {row:?} and {h}");
        }
    }
    assert!(done > 4000);
}

#[test]
fn a_run_that_goes_on_shows_the_taps_from_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let simulate = "simulate --preset a --out pair --samples";
    kaflow(directory.path(), &format!("{simulate} 20000"));
    let track = "track pair --align none --filter nlms --checkpoint state --checkpoint-every 5000";
    kaflow(directory.path(), &format!("{track} --out whole"));
    // Again from the last checkpoint: nothing is left to do, and all is still there.
    kaflow(directory.path(), &format!("{track} --resume --out again"));
    let read = |folder: &str| fs::read_to_string(directory.path().join(folder).join("taps.csv")).unwrap();
    assert_eq!(read("whole"), read("again"));
    assert!(read("whole").lines().count() > 400);
    // In another place it would be another run.
    let elsewhere = track.replace("--align none", "--align 3 --resume --out c");
    let refused = Command::new(cargo_bin!("kaflow")).current_dir(directory.path()).args(elsewhere.split(' ')).assert().code(2);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.contains("belongs to another run"), "{said}");
}

#[test]
fn an_equaliser_shows_the_constellation_before_and_after() {
    let directory = tempfile::tempdir().unwrap();
    kaflow(directory.path(), "track --preset a --samples 20000 --equalize --taps 8 --filter ensemble --filter nlms --out out");
    let out = directory.path().join("out");
    let points = table(&out.join("constellation.csv"));
    let svg = fs::read_to_string(out.join("constellation.svg")).unwrap();
    assert_eq!(points.len(), 2);
    for (panel, name) in points.keys().rev().enumerate() {
        assert!(points[name].len() > 1000, "{name}");
        let title = svg.split("data-title=\"").nth(panel + 1).unwrap().split('"').next().unwrap();
        assert!(points.keys().any(|name| title.starts_with(name.as_str())), "{title}");
    }
    assert!(!out.join("amplifier.svg").exists(), "what lies behind an equaliser is no amplifier");
}
